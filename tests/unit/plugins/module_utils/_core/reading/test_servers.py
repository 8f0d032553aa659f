"""Which requests are sent about one server, and no more than a proof needs."""

from __future__ import annotations

import types
import typing as t

import pytest

from .......plugins.module_utils._core.clients.other_services import CyborgReader
from .......plugins.module_utils._core.facts.devices import MAX_PORT_ACTIONS
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from .......plugins.module_utils._core.models.snapshot import Evidence
from .......plugins.module_utils._core.reading.evidence import look_up
from .......plugins.module_utils._core.reading.servers import Context
from .......plugins.module_utils._core.reading.sources import Clients, Sources
from ...world import NOW, World, answer


class Site(World):
    """Two hosts, and a Nova that records its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.asked: list[str] = []
        self.looked_for: list[int] = []
        # The questions about ports, in their order.
        self.order: list[str] = []
        # Whether a write follows.
        self.fresh = False
        # The trees whose allocations were read, by root.
        self.trees: list[str] = []

    def about(self, uuid: str) -> Evidence:
        """Return the first evidence about a consumer.

        `asked` has the actions that were requested one by one.
        """
        snapshot = self.snapshot()
        known = snapshot.evidence

        def server(uuid: str) -> t.Any:
            if self.looked_for:
                status = self.looked_for.pop(0)
                return answer(f"GET /servers/{uuid}", status, self.servers.get(uuid))
            return known[uuid].server

        def action(uuid: str, request: str) -> t.Any:
            found = next(action for action in self.actions[uuid] if action.request_id == request)
            self.asked.append(f"{found.action} {request}")
            return answer("GET /os-instance-actions/…", 200, found)

        def ports(uuid: str) -> t.Any:
            self.order.append("ports")
            return known[uuid].server_ports

        def tree_allocations(root: str, providers: t.Any) -> t.Any:
            self.trees.append(root)
            return known[uuid].former_tree

        def actions(uuid: str) -> t.Any:
            self.order.append("actions")
            if uuid in self.servers:
                return answer("GET /os-instance-actions", 200, self.actions.get(uuid, ()))
            return known[uuid].actions

        nova = types.SimpleNamespace(
            get_server=server,
            list_instance_actions=actions,
            get_instance_action=action,
            find_deleted_server=lambda uuid, brief: known[uuid].deleted_listing,
            list_migrations_of_host=lambda host, attempt: answer("GET …?host", 200, ()),
            probe_migration_marker=lambda uuid, attempt=0: known[uuid].marker,
            get_server_with_image_properties=lambda uuid: known[uuid].shape,
            list_attached_port_uuids=lambda uuid: known[uuid].interfaces,
            list_server_uuids_in_status=lambda status, attempt: answer("GET …?status", 200, ()),
            list_server_uuids_on_host=lambda host: known[uuid].host_servers,
        )
        allocations = {consumer: evidence.allocation for consumer, evidence in known.items()}
        placement = types.SimpleNamespace(
            query_host_tree=lambda root: snapshot.host_trees[root],
            query_tree_allocations=tree_allocations,
            query_usages=lambda root: known[uuid].own_usages,
        )
        neutron = types.SimpleNamespace(list_ports=ports)
        services: list[t.Any] = [placement, nova, neutron, types.SimpleNamespace()]
        index = ListingsIndex(snapshot)
        context = Context(index=index, scope=snapshot.scope, fresh=self.fresh)
        sources = Sources(Clients(*services, CyborgReader(None)), index, allocations)
        sources.list_migrations = lambda uuid: known[uuid].migrations
        return look_up(uuid, context, sources, allocations)[0]


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

    assert site.asked == asked
    read = [answered.value.action for answered in told if answered.value]
    assert read == [action.split()[0] for action in asked]


def test_unshelve_that_found_no_host_does_not_end_the_reading_of_actions(site: Site) -> None:
    """An earlier one may still wait for its host."""
    server = _shelved(site, ("create", NOW), ("unshelve", NOW))
    for _attempt in range(2):
        site.did(server, "unshelve", NOW, event="schedule_instances")
    site.about(server)

    assert site.asked == ["unshelve req-3", "unshelve req-2", "unshelve req-1"]


def test_newest_unshelve_is_read_for_a_server_not_where_its_newest_move_ended(
    site: Site,
) -> None:
    server = site.server(site.there, site.here, site.there)
    site.migration(server, site.there, site.here, "confirmed")
    for action in ("create", "shelve", "unshelve", "shelve", "unshelve", "reboot"):
        site.did(server, action, NOW)
    told = site.about(server).last_actions

    assert site.asked == ["unshelve req-4"]
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
    assert site.asked == []


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

    assert site.asked == asked


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

    assert site.order[-2:] == ["ports", "actions"]
    assert site.asked == ["detach_interface req-2", "attach_interface req-0"]
    assert len(evidence.port_actions) == 2 and evidence.actions.value


def test_not_all_of_very_many_actions_on_ports_are_read(site: Site) -> None:
    server = _with_bandwidth(site)
    for _number in range(2 * MAX_PORT_ACTIONS):
        site.did(server, "attach_interface", NOW)
    site.about(server)

    assert len(site.asked) == MAX_PORT_ACTIONS


def test_actions_on_ports_are_not_read_where_the_ports_explain_the_bandwidth(site: Site) -> None:
    group = PortGroup("group", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    server = _with_bandwidth(site)
    (bridge,) = set(site.allocations[server].resources) - {site.here}
    port = ServerPort("port", "normal", (group,), {"group": bridge}, shows_request=True)
    site.ports[server] = (port,)
    site.did(server, "attach_interface", NOW)

    assert site.about(server).port_actions == () and site.asked == []


def test_hosts_of_a_migration_without_a_record_are_read(site: Site) -> None:
    """Only of such a migration: whether a server there lacks the allocation that it has."""
    gone = site.provider("compute-9")
    migration = site.stranger(site.here, site.provider("compute-1_pci", site.here), gone)
    site.unlisted_migrations.add(migration)
    unknown = site.stranger(site.there)

    site.about(migration)
    site.about(unknown)

    assert site.trees == [site.here]


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

    assert site.order.count("actions") == reads
    assert (evidence.actions.value is not None) == bool(reads)
