"""Which requests are sent about one server, and no more than a proof needs."""

import dataclasses as d
import types
import typing as t

import pytest

from .......plugins.module_utils._common.parallel import ReadOnce
from .......plugins.module_utils._core.facts.devices import MAX_PORT_ACTIONS
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from .......plugins.module_utils._core.models.placement import Totals
from .......plugins.module_utils._core.models.snapshot import (
    NOT_ASKED,
    Evidence,
    ListedAmounts,
    Scope,
)
from .......plugins.module_utils._core.reading.evidence import look_up
from .......plugins.module_utils._core.reading.order import PROOF_OF_SERVER, walk
from .......plugins.module_utils._core.reading.servers import Context, Look
from .......plugins.module_utils._core.reading.sources import Clients, Sources
from ...world import CLAIM, FLAVOR, NOW, World, answer

# The rows from the tree of the host to the devices, and what they read.
AMOUNTS = PROOF_OF_SERVER[1:11]
UNREAD = ("shape", "interfaces", "server_ports", "attachments", "root_volume")
MORE = {**CLAIM, "VCPU": 7}
NO_DISK = {"VCPU": 1, "MEMORY_MB": 512}
ALWAYS = ["tree", "image", "interfaces", "ports"]
PROFILE = d.replace(FLAVOR, extra_specs={"accel:device_profile": "fpga"})


class Site(World):
    """Two hosts, and services that answer as the world is and note what they are asked.

    asked: the questions about what a server has. actions_read: the actions that were read one by
        one. trees_read: the trees whose allocations were read, by root.
    looked_for: the statuses of the next lookups. fresh: whether a write follows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.asked: list[str] = []
        self.actions_read: list[str] = []
        self.trees_read: list[str] = []
        self.looked_for: list[int] = []
        self.fresh = False
        self.trees = ReadOnce(self._query_host_tree)

    def made(self, held: t.Mapping[str, int] = CLAIM, **fields: t.Any) -> str:
        return self.hold(self.server(self.here, **fields), self.here, amounts=held)

    def _note(self, question: str, answered: t.Any) -> t.Any:
        self.asked.append(question)
        return answered

    def _query_host_tree(self, root: str) -> t.Any:
        return self._note("tree", answer("GET", 200, self.host_tree(root)))

    def _open(self, about: str, known: t.Mapping[str, Evidence], index: ListingsIndex) -> Sources:
        """Return all services as one; `known` is what they say of each consumer."""

        def get_server(uuid: str) -> t.Any:
            if self.looked_for:
                status = self.looked_for.pop(0)
                return answer(f"GET /servers/{uuid}", status, self.servers.get(uuid))
            return known[uuid].server

        def get_action(uuid: str, request: str) -> t.Any:
            found = next(action for action in self.actions[uuid] if action.request_id == request)
            self.actions_read.append(f"{found.action} {request}")
            return answer("GET /os-instance-actions/…", 200, found)

        def list_actions(uuid: str) -> t.Any:
            if uuid in self.servers:
                done = answer("GET /os-instance-actions", 200, self.actions.get(uuid, ()))
                return self._note("actions", done)
            return self._note("actions", known[uuid].actions)

        def query_tree_allocations(root: str, providers: t.Any) -> t.Any:
            self.trees_read.append(root)
            return known[about].former_tree

        of_server = known[about]
        service: t.Any = types.SimpleNamespace(
            get_server=get_server,
            get_instance_action=get_action,
            list_instance_actions=list_actions,
            query_tree_allocations=query_tree_allocations,
            query_host_tree=self._query_host_tree,
            query_totals=lambda _: answer("GET usages", 200, Totals({}, {})),
            query_usages=lambda root: of_server.own_usages,
            list_server_uuids_on_host=lambda host: of_server.host_servers,
            find_deleted_server=lambda uuid, brief: known[uuid].deleted_listing,
            probe_migration_marker=lambda uuid, attempt=0: known[uuid].marker,
            list_migrations_of_host=lambda host, attempt: answer("GET …?host", 200, ()),
            list_server_uuids_in_status=lambda status, attempt: answer("GET …?status", 200, ()),
            get_server_with_image_properties=lambda _: self._note("image", of_server.shape),
            list_attached_port_uuids=lambda _: self._note("interfaces", of_server.interfaces),
            list_ports=lambda _: self._note("ports", of_server.server_ports),
            list_attachments=lambda _: self._note("attachments", of_server.attachments),
            get_root_volume=lambda _: self._note("volume", of_server.root_volume),
            get_device_profile=lambda _: self._note("profile", answer("GET", 404)),
            list_accelerator_requests=lambda _: self._note("accelerators", answer("GET", 200, ())),
        )
        allocations = {consumer: evidence.allocation for consumer, evidence in known.items()}
        sources = Sources(Clients(*[service] * 6), index, allocations)
        sources.list_migrations = lambda uuid: known[uuid].migrations
        sources.host_trees = self.trees
        return sources

    def about(self, uuid: str) -> Evidence:
        """Return the first evidence about a consumer."""
        snapshot = self.snapshot()
        known, index = snapshot.evidence, ListingsIndex(snapshot)
        context = Context(index=index, scope=snapshot.scope, fresh=self.fresh)
        allocations = {consumer: evidence.allocation for consumer, evidence in known.items()}
        return look_up(uuid, context, self._open(uuid, known, index), allocations)[0]

    def look_up(self, server: str, fresh: bool = False, **context: t.Any) -> list[str]:
        """Return what is asked about the amounts of a server."""
        snapshot = self.snapshot()
        known, index = snapshot.evidence, ListingsIndex(snapshot)
        given = Context(index=index, fresh=fresh, **{"scope": Scope(), **context})
        look = Look(given, server, known[server].allocation)
        look.evidence = d.replace(known[server], **dict.fromkeys(UNREAD, NOT_ASKED))
        walk(AMOUNTS, self._open(server, known, index), look)
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def _shelved(site: Site, *did: tuple[str, str | None]) -> str:
    server = site.server(None, site.here, status="SHELVED_OFFLOADED")
    for action, finished in did:
        site.did(server, action, finished)
    return server


@pytest.mark.parametrize(
    ("did", "asked"),
    [
        # Back to a shelve that has ended, but for the actions that place a server.
        (
            [("create", NOW), *[("reboot", None)] * 20, ("shelve", NOW), ("lock", NOW)],
            ["lock req-22", "shelve req-21", "create req-0"],
        ),
        # That one may no longer be listed.
        ([("reboot", NOW), ("shelveOffload", NOW)], ["shelveOffload req-1"]),
        (
            [("create", NOW), ("reboot", NOW), ("shelve", None)],
            ["shelve req-2", "reboot req-1", "create req-0"],
        ),
        ([("create", NOW), ("shelve", NOW), ("unshelve", NOW)], ["unshelve req-2"]),
        # At most ten.
        ([("create", NOW), *[("reboot", NOW)] * 20], [f"reboot req-{20 - n}" for n in range(10)]),
    ],
    ids=["shelved", "shelve-not-listed", "shelve-not-ended", "unshelved", "many"],
)
def test_actions_of_a_shelved_server_are_read_back_to_what_explains_it(
    site: Site, did: list[tuple[str, str | None]], asked: list[str]
) -> None:
    told = site.about(_shelved(site, *did)).last_actions

    assert site.actions_read == asked
    read = [answered.value.action for answered in told if answered.value]
    assert read == [action.split()[0] for action in asked]


def test_unshelve_that_found_no_host_does_not_end_the_reading_of_actions(site: Site) -> None:
    """An earlier one may still wait for its host."""
    server = _shelved(site, ("create", NOW), ("unshelve", NOW))
    for _attempt in range(2):
        site.did(server, "unshelve", NOW, event="schedule_instances")
    site.about(server)

    assert site.actions_read == ["unshelve req-3", "unshelve req-2", "unshelve req-1"]


def test_newest_unshelve_is_read_for_a_server_not_where_its_newest_move_ended(site: Site) -> None:
    server = site.server(site.there, site.here, site.there)
    site.migration(server, site.there, site.here, "confirmed")
    for action in ("create", "shelve", "unshelve", "shelve", "unshelve", "reboot"):
        site.did(server, action, NOW)
    told = site.about(server).last_actions

    assert site.actions_read == ["unshelve req-4"]
    assert [answered.value.action for answered in told if answered.value] == ["unshelve"]


@pytest.mark.parametrize(
    ("moved", "elsewhere", "status"),
    [(False, True, 200), (True, True, 200), (False, False, 200), (True, False, 0)],
)
def test_actions_are_read_without_a_migration_or_with_another_host(
    site: Site, moved: bool, elsewhere: bool, status: int
) -> None:
    """An API worker may not know its cell, and an operator may have deleted a migration."""
    server = site.server(site.there, site.there, *[site.here] * elsewhere)
    if moved:
        site.migration(server, site.here, site.there, "confirmed")
    site.did(server, "unshelve", NOW)

    assert site.about(server).actions.status == status
    assert site.actions_read == []


@pytest.mark.parametrize(
    ("did", "asked"),
    [
        (("unshelve", "shelve", "unshelve", "reboot"), ["unshelve req-2"]),
        (("unshelve", "rebuild"), ["rebuild req-1", "unshelve req-0"]),
        (("unshelve", "unshelve"), ["unshelve req-1", "unshelve req-0"]),
        (("rebuild", "unshelve"), []),
    ],
)
def test_newest_placement_is_read_with_the_unshelves_that_it_repeats_of_a_server_with_another_host(
    site: Site, did: tuple[str, ...], asked: list[str]
) -> None:
    """The host of an earlier unshelve may have done it late, or may have left a guest."""
    server = site.server(site.there, site.there, site.here)
    for action in did:
        site.did(server, action, NOW)

    site.about(server)

    assert site.actions_read == asked


@pytest.mark.parametrize(
    ("is_deleted", "looked_for", "status"),
    [
        # Known only by its actions: it may have been created, or restored, in between.
        (False, [404, 404], 404),
        (False, [404, 200], 200),
        (False, [404, 500], 500),
        # Known as deleted: it is looked up once.
        (True, [404], 404),
    ],
)
def test_server_known_only_by_its_actions_is_looked_up_again(
    site: Site, is_deleted: bool, looked_for: list[int], status: int
) -> None:
    server = site.server(site.here, site.here)
    (site.delete if is_deleted else site.delete_by_hand)(server)
    site.looked_for = looked_for

    assert site.about(server).server.status == status
    assert site.looked_for == []


def _with_bandwidth(site: Site, *ports: ServerPort) -> str:
    bridge = site.provider("compute-1:Open vSwitch agent:br-ex", site.here)
    server = site.server(site.here, site.here)
    site.hold(server, bridge, amounts={"NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    site.ports[server] = ports
    return server


def test_actions_on_ports_are_read_after_the_ports_of_a_server_with_more_bandwidth(
    site: Site,
) -> None:
    """Nova records an action on a port before it does anything to the port."""
    server = _with_bandwidth(site)
    for action in ("attach_interface", "reboot", "detach_interface"):
        site.did(server, action, NOW)
    evidence = site.about(server)

    assert site.asked[-2:] == ["ports", "actions"]
    assert site.actions_read == ["detach_interface req-2", "attach_interface req-0"]
    assert len(evidence.port_actions) == 2 and evidence.actions.value


def test_not_all_of_very_many_actions_on_ports_are_read(site: Site) -> None:
    server = _with_bandwidth(site)
    for _number in range(2 * MAX_PORT_ACTIONS):
        site.did(server, "attach_interface", NOW)
    site.about(server)

    assert len(site.actions_read) == MAX_PORT_ACTIONS


def test_actions_on_ports_are_not_read_where_the_ports_explain_the_bandwidth(site: Site) -> None:
    group = PortGroup("group", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    server = _with_bandwidth(site)
    (bridge,) = set(site.allocations[server].resources) - {site.here}
    port = ServerPort("port", "normal", (group,), {"group": bridge}, shows_request=True)
    site.ports[server] = (port,)
    site.did(server, "attach_interface", NOW)

    assert site.about(server).port_actions == () and site.actions_read == []


def test_hosts_of_a_migration_without_a_record_are_read(site: Site) -> None:
    """Only of such a migration: whether a server there lacks the allocation that it has."""
    gone = site.provider("compute-9")
    migration = site.stranger(site.here, site.provider("compute-1_pci", site.here), gone)
    site.unlisted_migrations.add(migration)
    unknown = site.stranger(site.there)

    site.about(migration)
    site.about(unknown)

    assert site.trees_read == [site.here]


@pytest.mark.parametrize(
    ("status", "holds_source", "reads"),
    [("error", True, 1), ("cancelled", True, 1), ("error", False, 0), ("confirmed", True, 1)],
)
def test_actions_of_a_server_with_another_host_are_read_once(
    site: Site, status: str, holds_source: bool, reads: int
) -> None:
    server = site.server(site.there, site.there, *[site.here] * holds_source)
    site.migration(server, site.here, site.there, status)
    site.did(server, "migrate", NOW)

    evidence = site.about(server)

    assert site.asked.count("actions") == reads
    assert (evidence.actions.value is not None) == bool(reads)


# Which requests are sent about the amounts of a server


def test_server_with_what_its_flavor_says_needs_no_request(site: Site) -> None:
    assert site.look_up(site.made()) == []
    assert site.look_up(site.made(NO_DISK, image=None, volumes=("v",))) == []


@pytest.mark.parametrize(
    ("held", "fields", "more"),
    [
        (MORE, {}, []),
        (MORE, {"image": None, "volumes": ("v",)}, ["attachments", "volume"]),
        (MORE, {"volumes": ("v",)}, ["attachments"]),
        (MORE, {"flavor": PROFILE}, ["profile", "accelerators"]),
    ],
)
def test_only_what_may_decide_is_asked(
    site: Site, held: dict[str, int], fields: dict[str, t.Any], more: list[str]
) -> None:
    assert site.look_up(site.made(held, **fields)) == [*ALWAYS, *more]


def test_cinder_is_not_asked_while_the_root_disk_is_unknown(site: Site) -> None:
    server = site.made(MORE, image=None, volumes=("v", "w"), root_device=None)

    assert site.look_up(server) == [*ALWAYS, "attachments"]


def test_profile_of_a_port_is_asked_for(site: Site) -> None:
    server = site.made(MORE)
    site.ports[server] = (ServerPort("p", "accelerator-direct", (), device_profile="fpga"),)

    assert site.look_up(server) == [*ALWAYS, "profile", "accelerators"]


def test_tree_is_read_once_for_all_servers_of_a_host(site: Site) -> None:
    assert site.look_up(site.made(MORE)) == ALWAYS
    assert site.look_up(site.made(MORE)) == ALWAYS[1:]


@pytest.mark.parametrize(
    ("listed", "is_named", "context", "asks"),
    [
        (None, False, {}, False),
        (None, False, {"with_amounts": True}, True),
        (None, False, {"with_amounts": True, "fresh": True}, True),
        ("differing", False, {}, True),
        ("settled", False, {}, False),
        # Right before a write no listing replaces a lookup.
        ("settled", False, {"with_amounts": True, "fresh": True}, True),
        (None, True, {}, True),
        # Other renewed proofs name their consumers too.
        (None, True, {"fresh": True}, False),
    ],
)
def test_server_that_seems_right_is_asked_for_where_more_is_to_be_known(
    site: Site, listed: str | None, is_named: bool, context: dict[str, t.Any], asks: bool
) -> None:
    server = site.made()
    amounts = ListedAmounts()
    if listed == "differing":
        amounts = ListedAmounts(differing=(server,))
    elif listed == "settled":
        amounts = ListedAmounts(candidates={server: ""})
    scope = Scope(consumers=(server,) if is_named else ())

    asked = site.look_up(server, listed_amounts=amounts, scope=scope, **context)

    assert asked == (ALWAYS if asks else [])


def test_server_with_a_child_or_without_its_host_is_asked_for(site: Site) -> None:
    child = site.provider("child", site.here)
    nested = site.hold(site.made(), child, amounts={"CUSTOM_VF": 1})

    assert site.look_up(nested) == ALWAYS
    assert site.look_up(site.server(site.here)) == ALWAYS[1:]
    assert site.look_up(site.server(site.here, site.there)) == ALWAYS[1:]


def test_unsettled_server_and_one_on_two_hosts_are_not_asked_for(site: Site) -> None:
    assert site.look_up(site.made(MORE, task_state="resize_prep")) == []
    assert site.look_up(site.hold(site.made(MORE), site.there)) == []
