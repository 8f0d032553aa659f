"""What is read last, and is about no allocation in doubt."""

import dataclasses as d
import types
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex, SnapshotIndex
from .......plugins.module_utils._core.models.nova import (
    HIDDEN_TASKS,
    TASK_STATUSES,
    Action,
    Aggregate,
    Service,
)
from .......plugins.module_utils._core.models.other_services import (
    BareMetalNode,
    DeletedServer,
    Project,
)
from .......plugins.module_utils._core.models.placement import (
    Allocation,
    ProviderAggregates,
    ProviderDetails,
    Totals,
)
from .......plugins.module_utils._core.models.snapshot import Answer, Mirror, Scope, Shard
from .......plugins.module_utils._core.reading.others import (
    MirrorReader,
    is_wanted,
    read_bare_metal,
    read_deletions,
    read_projects,
    read_totals,
)
from ...world import OLD, OUR_PROJECT, PROJECT, World, answer

# What is asked of Ironic, Keystone and Nova at the end of a reading, and what is not


CLASS = "CUSTOM_GOLD"
STRANGER = "99999999-0000-4000-8000-000000000000"


class Services(World):
    """Services that answer according to the world, and record what they are asked."""

    workers = 1

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.listed: dict[str, BareMetalNode] = {}
        self.known_projects = [Project(OUR_PROJECT, "ours", "default")]
        self.domains: tuple[str, ...] = ("default",)
        self.free: tuple[str, ...] = ()
        self.full: set[str] = set()
        self.states: dict[str, list[DeletedServer]] = {}
        self.here = self.host("compute-1")

    def metal(self, **fields: t.Any) -> str:
        """Add a node with its provider, and return its uuid."""
        name = f"{self._count + 1:08x}-0000-4000-8000-000000000000"
        node = self.host(name, "metal")
        values = {
            "provision_state": "available",
            "maintenance": False,
            "power_state": "power off",
            "instance": None,
            "resource_class": "gold",
            "owner": "somebody",
            **fields,
        }
        self.listed[node] = BareMetalNode(uuid=node, **values)
        return node

    def _reply(self, asked: str, value: t.Any) -> Answer[t.Any]:
        """Note a question, and return the answer to it; None is what a service does not have."""
        self.asked.append(asked)
        return answer(f"GET {asked}", 404 if value is None else 200, value)

    # Ironic.

    def list_nodes(self) -> Answer[t.Any]:
        return self._reply("nodes", tuple(self.listed.values()))

    def get_node(self, uuid: str) -> Answer[t.Any]:
        return self._reply(f"node {uuid}", self.listed.get(uuid))

    # Placement.

    def query_free_providers(self, resource_class: str) -> Answer[t.Any]:
        return self._reply(f"free {resource_class}", self.free)

    def get_allocation(self, consumer: str) -> Answer[Allocation]:
        return self._reply(f"allocation {consumer}", self.allocations[consumer])

    def get_details(self, providers: t.Iterable[str], parts: t.Any) -> dict[str, ProviderDetails]:
        self.asked += [f"details {provider}" for provider in providers]
        return {}

    def list_allocation_candidates(self, query: dict[str, str]) -> t.Any:
        self.asked.append(f"candidates {query['resources']}")
        summaries = {
            uuid: types.SimpleNamespace(used=self.used(uuid))
            for uuid in self.providers
            if uuid not in self.full and (uuid in self.listed) == (CLASS in query["resources"])
        }
        return types.SimpleNamespace(summaries=summaries)

    def query_usages(self, provider: str) -> Answer[t.Any]:
        return self._reply(f"usages {provider}", self.used(provider))

    def query_totals(self, provider: str) -> Answer[Totals]:
        return self._reply(f"totals {provider}", self.totals(provider).value)

    def list_allocations_on_providers(self, providers: t.Sequence[str]) -> t.Any:
        self.asked += [f"allocations {provider}" for provider in providers]
        held = self.allocations.items()
        return {uuid: one.resources for uuid, one in held if set(one.resources) & set(providers)}

    def used(self, provider: str) -> t.Any:
        totals = self.totals(provider).value
        assert totals is not None
        return totals.used

    # Keystone.

    def query_projects(self) -> Answer[t.Any]:
        return self._reply("projects", tuple(self.known_projects))

    def query_domains(self) -> Answer[t.Any]:
        return self._reply("domains", self.domains)

    def query_project(self, uuid: str) -> Answer[t.Any]:
        found = next((project for project in self.known_projects if project.uuid == uuid), None)
        return self._reply(f"project {uuid}", found)

    # Nova.

    def list_server_projects(self) -> Answer[t.Any]:
        rows = tuple((uuid, server.project) for uuid, server in self.servers.items())
        return self._reply("servers", rows)

    def get_server(self, uuid: str) -> Answer[t.Any]:
        return self._reply(f"server {uuid}", None)

    get_deleted_server = get_server

    def list_servers_in_state(self, field: str, states: t.Sequence[str]) -> Answer[t.Any]:
        rows = (row for state in states for row in self.states.get(state, ()))
        return self._reply(f"{field}={','.join(states)}", tuple(rows))

    def list_instance_actions(self, uuid: str) -> Answer[t.Any]:
        return self._reply(f"actions {uuid}", self.actions.get(uuid, ()))

    def get_instance_action(self, uuid: str, request_id: str) -> Answer[Action]:
        (found,) = [row for row in self.actions[uuid] if row.request_id == request_id]
        return self._reply(f"action {request_id}", found)

    def deleting(self, **fields: t.Any) -> str:
        """Add a server that is being deleted, as Nova lists it, and return its uuid."""
        server = self.server(self.here, task_state="deleting", **fields)
        listed = DeletedServer(self.servers[server], "active")
        self.states.setdefault("deleting", []).append(listed)
        return server

    def index(self, **scope: t.Any) -> SnapshotIndex:
        return SnapshotIndex(self.snapshot(scope=Scope(**scope)))

    def read_bare_metal(self) -> t.Any:
        service = t.cast("t.Any", self)
        return read_bare_metal(service, service, service, self.index())

    def read_projects(self, **scope: t.Any) -> t.Any:
        service = t.cast("t.Any", self)
        return read_projects(service, service, self.index(**scope).snapshot)

    def read_deletions(self, **scope: t.Any) -> t.Any:
        return read_deletions(t.cast("t.Any", self), self.index(**scope))


@pytest.fixture(name="services")
def _services() -> Services:
    return Services()


def test_cloud_without_bare_metal_asks_ironic_nothing(services: Services) -> None:
    services.read_bare_metal()

    assert services.asked == []


def test_nodes_that_agree_cost_one_listing_and_one_request_for_each_class(
    services: Services,
) -> None:
    services.free = tuple(services.metal() for _number in range(3))
    services.metal(maintenance=True)
    node = services.metal()
    used = services.hold(services.server(node), node, amounts={CLASS: 1})
    services.listed[node] = d.replace(services.listed[node], instance=used)
    services.read_bare_metal()

    assert services.asked == ["nodes", f"free {CLASS}"]


def test_each_node_that_may_be_wrong_is_looked_up(services: Services) -> None:
    reserved = services.metal()
    offered = services.metal(provision_state="cleaning")
    claimed = services.metal()
    used = services.metal(instance=STRANGER)
    gone = services.metal()
    del services.listed[gone]
    services.free = (offered,)
    services.hold("consumer", claimed, amounts={CLASS: 1}, age=OLD)
    reading = services.read_bare_metal()

    assert set(services.asked) == {
        "nodes",
        *(f"node {node}" for node in (reserved, offered, claimed, used, gone)),
        f"free {CLASS}",
        "allocation consumer",
        f"server {STRANGER}",
        *(f"details {root}" for root in (reserved, offered, claimed, used, gone)),
    }
    assert (reading.left_out, reading.unseen) == (0, 0)


def test_absent_nodes_are_not_looked_up_for_who_sees_only_the_own_ones(services: Services) -> None:
    services.free = (services.metal(owner=OUR_PROJECT),)
    gone = services.metal()
    del services.listed[gone]
    reading = services.read_bare_metal()

    assert services.asked == ["nodes", f"free {CLASS}"]
    assert reading.unseen == 1


def test_more_suspects_than_can_be_looked_up_are_counted(services: Services) -> None:
    for _number in range(103):
        services.metal()
    reading = services.read_bare_metal()

    assert reading.left_out == 3
    assert len(services.asked) == 202


def test_keystone_is_asked_nothing_without_a_candidate(services: Services) -> None:
    services.server(services.here)
    services.read_projects()

    assert services.asked == []


def test_few_projects_are_looked_up_and_named(services: Services) -> None:
    services.known_projects.append(Project(PROJECT, "web", "default"))
    services.server(services.here, services.here)
    read = services.read_projects()

    assert services.asked == [f"project {PROJECT}"]
    assert read.lookups[PROJECT].value.name == "web"


def test_missing_project_is_compared_with_those_that_are_visible(services: Services) -> None:
    services.server(services.here, services.here)
    services.read_projects()

    assert services.asked == [f"project {PROJECT}", "projects", "domains"]
    services.asked.clear()
    services.known_projects.append(Project("p2", "two", "elsewhere"))
    services.read_projects()
    assert services.asked == [f"project {PROJECT}", "projects"]


def test_servers_are_listed_only_for_who_asks_for_the_kind(services: Services) -> None:
    server = services.server(services.here)
    services.known_projects.append(Project("p2", "two", "elsewhere"))
    read = services.read_projects(kinds=("missing_project",))

    assert services.asked == ["servers", f"project {PROJECT}", "projects"]
    assert read.servers == {PROJECT: (server,)}
    services.asked.clear()
    assert services.read_projects(kinds=("missing_project",), projects=("p2",)).lookups == {}


def test_many_projects_are_listed_and_only_the_others_looked_up(services: Services) -> None:
    for number in range(12):
        services.server(services.here, project=f"p{number}")
        if number:
            services.known_projects.append(Project(f"p{number}", "", "elsewhere"))
    services.read_projects(kinds=("missing_project",))

    assert services.asked == ["servers", "projects", "project p0"]


DEFAULT_STATES = [
    *("task_state=deleting", "task_state=soft-deleting", "status=BUILD,DELETED"),
    f"status={','.join(TASK_STATUSES)}",
]
HIDDEN = [f"task_state={task}" for task in HIDDEN_TASKS]


@pytest.mark.parametrize(
    ("scope", "states"),
    [
        ({}, DEFAULT_STATES),
        ({"kinds": ("deleted_server", "stuck_server")}, [*DEFAULT_STATES, "status=ERROR", *HIDDEN]),
        ({"hosts": ("compute-1",)}, [*DEFAULT_STATES, "status=ERROR"]),
    ],
    ids=["default", "named", "narrow"],
)
def test_servers_in_error_are_read_only_where_that_is_cheap(
    services: Services, scope: dict[str, t.Any], states: list[str]
) -> None:
    services.read_deletions(**scope)

    assert services.asked == states


@pytest.mark.parametrize(
    ("number", "hidden"), [(0, []), (1, ["host=down-0"]), (len(HIDDEN) + 1, HIDDEN)]
)
def test_hidden_tasks_are_searched_for_on_hosts_that_are_down(
    services: Services, number: int, hidden: list[str]
) -> None:
    """A conductor of the same name is no nova-compute."""
    for count in range(number):
        services.set_service(services.host(f"down-{count}"), "down")
        services.services.append(Service("nova-conductor", f"down-{count}", "enabled", "up"))
    server = services.server(services.here, task_state="powering-off")
    listed = services.states.setdefault("down-0" if number == 1 else "powering-off", [])
    listed.append(DeletedServer(services.servers[server], "active"))
    read = services.read_deletions()

    assert services.asked[len(DEFAULT_STATES) :] == hidden
    assert list(read.busy) == ([server] if hidden else [])


def test_deletion_is_the_newest_action_whatever_was_locked_or_reset(services: Services) -> None:
    server, other = services.deleting(), services.deleting(project="another")
    for uuid, did in ((server, "delete lock resetState"), (other, "delete reboot")):
        for action in did.split():
            services.did(uuid, action, None)
    read = services.read_deletions()

    assert read.actions[server].value.is_newest
    assert not read.actions[other].value.is_newest
    assert set(services.read_deletions(projects=("another",)).lookups) == {other}
    assert set(services.read_deletions(consumers=(server,)).lookups) == {server}
    assert set(services.read_deletions(hosts=("compute-9",)).lookups) == set()
    assert set(services.read_deletions(hosts=("compute-1",)).lookups) == {server, other}


def test_the_longest_deletions_are_looked_up_where_there_are_too_many(services: Services) -> None:
    for number in range(103):
        services.deleting(updated=f"2026-11-20T12:{number % 60:02}:00Z")
    read = services.read_deletions()

    assert read.left_out == 3
    assert len(read.lookups) == 100


def test_servers_that_nova_lists_because_it_ignores_the_filter_are_left_alone(
    services: Services,
) -> None:
    """Nova drops a filter that its policy does not allow (servers:allow_all_filters)."""
    server = services.server(services.here)
    services.states["deleting"] = [DeletedServer(services.servers[server], "active")]

    assert services.read_deletions().lookups == {}


# How the groups of hosts are read: few requests, and what does not agree once more


RACK, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"


class Site(World):
    """Two hosts, and the two services as far as the reader asks them; it notes each request."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = self.host("compute-1"), self.host("compute-2")
        metadata = {"trait:CUSTOM_X": "required"}
        self.aggregates = (
            Aggregate(RACK, "rack", None, ("compute-1", "compute-2"), metadata, 7),
            Aggregate(OTHER, "other", None, (), {}, 8),
        )
        self.members = {RACK: (self.one, self.two), OTHER: ()}
        self.lacking: tuple[str, ...] = ()
        self.disabled: tuple[str, ...] = ()
        self.asked: list[tuple[str, ...]] = []

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        self.asked.append(("nova",))
        return self.aggregates

    def _reply(self, asked: tuple[str, ...], value: t.Any) -> t.Any:
        self.asked.append(asked)
        return answer("GET", 200, value)

    def query_members(self, aggregate: str) -> t.Any:
        return self._reply(("members", aggregate), self.members[aggregate])

    def query_members_without_trait(self, aggregate: str, trait: str) -> t.Any:
        return self._reply(("lacking", aggregate, trait), self.lacking)

    def query_providers_with_trait(self, trait: str) -> t.Any:
        return self._reply(("trait", trait), self.disabled)

    def query_aggregates(self, provider: str) -> t.Any:
        return self._reply(("aggregates", provider), ProviderAggregates(1, ()))

    def read(self, **scope: t.Any) -> Mirror:
        return self._reader().read(Scope(**scope))

    def _reader(self) -> MirrorReader:
        return MirrorReader(t.cast("t.Any", self), t.cast("t.Any", self))

    def read_again(self) -> Mirror | None:
        """Read twice, and forget the requests of the first time."""
        groups = self.read()
        self.asked.clear()
        return self._reader().read_again(ListingsIndex(self.listings(mirror=groups)))


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


MEMBERS = {("members", RACK), ("members", OTHER)}
TRAITS = {("lacking", RACK, "CUSTOM_X"), ("trait", "COMPUTE_STATUS_DISABLED")}


@pytest.mark.parametrize(
    ("kinds", "asked"),
    [((), {*MEMBERS, *TRAITS}), (("aggregate_mismatch",), MEMBERS), (("trait_mismatch",), TRAITS)],
)
def test_only_the_kinds_that_are_asked_for_cost_requests(
    site: Site, kinds: tuple[str, ...], asked: set[tuple[str, ...]]
) -> None:
    site.read(kinds=kinds)

    assert sorted(site.asked) == sorted([("nova",), *asked])


def test_each_aggregate_belongs_to_one_shard(site: Site) -> None:
    parts = [set(site.read(shard=Shard(number, 3)).members) for number in (1, 2, 3)]

    assert set.union(*parts) == {RACK, OTHER}
    assert sum(map(len, parts)) == 2


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        (Scope(), True),
        (Scope(hosts=("compute-1",)), True),
        (Scope(consumers=(RACK,)), False),
        (Scope(kinds=("zone_mismatch", "deleted_server")), False),
        (Scope(kinds=("trait_mismatch",)), True),
        (None, False),
    ],
)
def test_groups_are_read_only_for_findings_about_them(scope: Scope | None, wanted: bool) -> None:
    assert is_wanted(scope) is wanted


def test_what_agrees_is_not_read_again(site: Site) -> None:
    assert site.read_again() is None
    assert site.asked == []


def test_only_what_does_not_agree_is_read_again(site: Site) -> None:
    site.members[RACK] = (site.one,)
    again = site.read_again()

    assert again is not None and set(again.members) == {RACK}
    # Nova is read last: while it adds a host, its own record comes first.
    assert site.asked == [("members", RACK), ("aggregates", site.two), ("nova",)]


def test_lacking_traits_and_wrong_statuses_are_read_again(site: Site) -> None:
    site.lacking, site.disabled = (site.two,), (site.two,)
    again = site.read_again()

    assert again is not None
    assert site.asked == [
        ("trait", "COMPUTE_STATUS_DISABLED"),
        ("lacking", RACK, "CUSTOM_X"),
        ("nova",),
    ]


def test_the_aggregates_of_at_most_twenty_providers_are_read(site: Site) -> None:
    hosts = [f"compute-{number}" for number in range(3, 40)]
    for host in hosts:
        site.host(host)
    rack = site.aggregates[0]
    site.aggregates = (d.replace(rack, hosts=(*rack.hosts, *hosts)), site.aggregates[1])
    again = site.read_again()

    assert again is not None and len(again.provider_aggregates) == 20


# What is in use


@pytest.fixture(name="fleet")
def _fleet() -> Services:
    fleet = Services()
    for number in range(2, 6):
        root = fleet.host(f"compute-{number}")
        fleet.server(root, root)
    return fleet


def compare(fleet: Services, index: t.Any = None) -> tuple[list[str], int]:
    """Return the providers whose totals were read, and how many could not be compared."""
    fleet.asked.clear()
    totals, unread = read_totals(t.cast("t.Any", fleet), index or fleet.index())
    return list(totals), unread


def test_few_requests_show_that_everything_in_use_is_listed(fleet: Services) -> None:
    index = fleet.index()
    assert compare(fleet) == ([], 0)
    assert fleet.asked == ["candidates MEMORY_MB:1"]
    # A server that was booted since the listing is listed now.
    fleet.server(fleet.here, fleet.here)
    assert compare(fleet, index) == ([], 0)
    assert fleet.asked == ["candidates MEMORY_MB:1", f"allocations {fleet.here}"]
    # Only what is full is asked for each.
    fleet.full = {fleet.here}
    assert compare(fleet) == ([], 0)
    assert fleet.asked == ["candidates MEMORY_MB:1", f"usages {fleet.here}"]


def test_what_is_not_listed_is_found_on_full_and_other_hosts(fleet: Services) -> None:
    *others, last = fleet.nodes
    fleet.full = set(others)
    fleet.unlisted = {fleet.here: {"VCPU": 1}, last: {"DISK_GB": 1}}

    assert compare(fleet) == ([fleet.here, last], 0)
    assert sum("candidates" in row for row in fleet.asked) == 3


@pytest.mark.parametrize(("status", "unread"), [(404, 0), (403, 1), (503, 1)])
@pytest.mark.parametrize("request_name", ["query_usages", "query_totals"])
def test_what_cannot_be_compared_is_counted(
    fleet: Services, request_name: str, status: int, unread: int
) -> None:
    """A provider that is gone has nothing in use."""
    fleet.full, fleet.unlisted = {fleet.here}, {fleet.here: {"VCPU": 1}}
    setattr(fleet, request_name, lambda provider: answer("GET usages", status))

    assert compare(fleet)[1] == unread


def test_at_most_a_hundred_are_asked_for_each() -> None:
    fleet = Services()
    for number in range(105):
        fleet.unlisted[fleet.host(f"full-{number}")] = {"VCPU": 1}

    assert (len(compare(fleet)[0]), compare(fleet)[1]) == (100, 5)
    fleet.full, fleet.unlisted = set(fleet.nodes), {}
    assert compare(fleet) == ([], 6)


def test_shard_compares_its_own_hosts(fleet: Services) -> None:
    """It keeps only its own consumers of what all hosts share."""
    pool = fleet.provider("pool", sharing=True)
    fleet.unlisted = {root: {"DISK_GB": 1} for root in (pool, *fleet.nodes)}
    part = SnapshotIndex(fleet.snapshot(trees=(fleet.here,)))

    assert set(compare(fleet)[0]) == {pool, *fleet.nodes}
    assert compare(fleet, part) == ([fleet.here], 0)


def test_bare_metal_nodes_of_a_class_take_one_request() -> None:
    """Those in use are full with what is listed, and the class of the others is known from them."""
    metal = Services()
    nodes = [metal.metal() for _number in range(9)]
    for node in nodes[:4]:
        metal.server(node)
        metal.hold(metal.uuid(), node, amounts={CLASS: 1})
    metal.full = set(nodes[:4])

    assert compare(metal) == ([], 0)
    assert metal.asked == ["candidates MEMORY_MB:1", f"candidates {CLASS}:1"]
