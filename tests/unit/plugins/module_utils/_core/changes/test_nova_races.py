"""No needed allocation is removed while Nova continues.

Between any two requests of a whole run an operation may make its next steps, as they are recorded.

The run is the real one: `Collector` reads in its own order, `judge` finds, `Remediation` proves
again and `AllocationWriter` writes.
"""

import contextlib
import dataclasses as d
import functools
import itertools
import threading
import types
import typing as t
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common import parallel
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.changes.remediation import Remediation
from .......plugins.module_utils._core.clients import allocation_writer
from .......plugins.module_utils._core.models.change import Change, build_body
from .......plugins.module_utils._core.models.finding import ORPHANED, Finding
from .......plugins.module_utils._core.models.placement import Allocation
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.plan import Step
from .......plugins.module_utils._core.reading import (
    allocations,
    compute_nodes,
    evidence,
    incremental,
    listings,
    reading,
    renewal,
    sources,
)
from .....examples import count_examples
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import Life, Moment, read_lives
from ...service import open_service
from ...world import answer

# Approximately the number of requests of a detection here.
LONGEST = 30
# What asks several things side by side.
PARALLEL = (
    allocation_writer,
    allocations,
    reading,
    compute_nodes,
    evidence,
    listings,
    incremental,
    parallel,
    sources,
)
PARALLEL_PAIRS = (allocations, evidence, incremental, listings)


class Cloud:
    """Both APIs of one life, at its current moment at each request.

    goes_on: the requests before which the next moment comes.
    """

    workers = 1

    def __init__(self, life: t.Sequence[Moment], goes_on: t.Container[int] = ()) -> None:
        self.life = life
        self.at = 0
        self.world = self.prepare(life[0])
        self.goes_on = goes_on
        self.asked = 0
        self.written: list[Change] = []
        self.wrong: list[str] = []
        self._replaced: list[tuple[Allocation, Change]] = []

    def prepare(self, moment: Moment) -> Moment:
        """Add to a moment what the cloud has beside the life."""
        return moment

    def happens(self) -> None:
        """Let Nova continue until the next request."""
        self.asked += 1
        if self.asked in self.goes_on and self.at + 1 < len(self.life):
            self.go_to(self.at + 1)

    def go_to(self, moment: int) -> None:
        self.at = moment
        self.world = self.prepare(self.life[moment])
        for before, change in self._replaced:
            # What Nova has written since stands.
            if self.world.allocations.get(change.consumer) == before:
                self.world.apply(change)

    # Placement

    def list_providers(self) -> t.Any:
        self.happens()
        return dict(self.world.providers)

    def list_allocations_on_providers(self, providers: t.Iterable[str]) -> t.Any:
        held: dict[str, dict[str, t.Any]] = {}
        for provider in providers:
            self.happens()
            for consumer, allocation in self.world.allocations.items():
                if provider in allocation.resources:
                    held.setdefault(consumer, {})[provider] = allocation.resources[provider]
        return held

    def get_allocation(self, consumer: str) -> t.Any:
        self.happens()
        nothing = Allocation(consumer, None, None, None, None, {}, None)
        return answer("GET /allocations", 200, self.world.allocations.get(consumer, nothing))

    def get_details(self, providers: t.Iterable[str], parts: t.Iterable[str]) -> t.Any:
        return {}

    def get_usages(self, project: str) -> dict[str, int]:
        self.happens()
        return {}

    def query_providers_with_trait(self, trait: str) -> t.Any:
        self.happens()
        return answer("GET /resource_providers?required", 200, ())

    def query_members(self, aggregate: str) -> t.Any:
        raise AssertionError("There are no aggregates.")

    query_members_without_trait = query_aggregates = query_members

    def query_host_tree(self, provider: str) -> t.Any:
        self.happens()
        return answer("GET /resource_providers", 200, self.world.host_tree(provider))

    def query_totals(self, provider: str) -> t.Any:
        self.happens()
        return self.world.totals(provider)

    def query_tree_allocations(self, root: str, providers: t.Iterable[str]) -> t.Any:
        self.happens()
        held = self.world.allocations_of_tree(root)
        return answer("GET /resource_providers/…/allocations", 200, held)

    def request(self, url: str, method: str, json: t.Any = None, **options: t.Any) -> t.Any:
        """Handle a request of the writer, over HTTP.

        It shows the allocation of a consumer, and changes several under their generations, all or
        none.
        """
        # Without an inventory there is room on all providers.
        status, body = 404, {"errors": [{"detail": "no such provider"}]}
        if "/resource_providers/" not in url:
            consumer = url.rpartition("/")[2]
            status, body = self._told(consumer) if method == "GET" else self._take(json)
        return types.SimpleNamespace(
            status_code=status, headers={}, content=b"{}", json=lambda: body
        )

    def _told(self, consumer: str) -> tuple[int, t.Any]:
        told = build_body(self.get_allocation(consumer).value)
        return 200, told if told["allocations"] else {"allocations": {}}

    def _take(self, body: t.Mapping[str, t.Any]) -> tuple[int, t.Any]:
        self.happens()
        before = {consumer: self.world.allocations.get(consumer) for consumer in body}
        for consumer, wanted in body.items():
            current = before[consumer]
            if current is None or current.generation != wanted["consumer_generation"]:
                return 409, {
                    "errors": [{"detail": "it changed", "code": "placement.concurrent_update"}]
                }
        for consumer, wanted in body.items():
            current = before[consumer]
            assert current
            change = Change(consumer, wanted["consumer_generation"], build_body(current), wanted)
            # This is not asserted here, because a run survives every exception.
            if taken := self.world.find_loss(change):
                self.wrong.append(f"{self.life}\nthe write to {consumer} takes {taken}")
            self.world.apply(change)
            self.written.append(change)
            self._replaced.append((current, change))
        return 204, {}

    # Nova

    lists_changed_migrations = True
    undisturbed = threading.Event()
    undisturbed.set()

    def ask(self) -> t.Any:
        """Return the cloud as a request finds it."""
        self.happens()
        return self.world

    def get_hypervisor(self, uuid: str) -> t.Any:
        nodes = self._list_nodes()
        found = [d.replace(node, servers=None) for node in nodes if node.uuid == uuid]
        return _find("GET /os-hypervisors/", *found)

    def get_hypervisors(self, uuids: t.Iterable[str]) -> t.Any:
        return [self.get_hypervisor(uuid) for uuid in uuids]

    def list_services(self) -> t.Any:
        return answer("GET /os-services", 200, tuple(self.ask().services))

    def list_hypervisors(self, with_servers: bool, roots: t.Iterable[str]) -> t.Any:
        listing = self.ask().snapshot().hypervisors
        if with_servers:
            return listing
        nodes = tuple(d.replace(node, servers=None) for node in listing.value or ())
        return d.replace(listing, value=nodes)

    def list_hypervisor_servers(self, node: str) -> t.Any:
        return next(known.servers for known in self._list_nodes() if known.uuid == node)

    def _list_nodes(self) -> t.Any:
        return self.ask().snapshot().hypervisors.value or ()

    def list_servers_on_host(self, host: str) -> t.Any:
        return tuple(server for server in self.ask().servers.values() if server.host == host)

    def get_server_with_image_properties(self, uuid: str) -> t.Any:
        return self.get_server(uuid)

    def list_attached_port_uuids(self, uuid: str) -> t.Any:
        self.happens()
        return answer("GET /os-interface", 200, ())

    def list_ports(self, uuid: str) -> t.Any:
        self.happens()
        return answer("GET /v2.0/ports", 200, ())

    def list_migrations(self) -> t.Any:
        return answer("GET /os-migrations", 200, tuple(self.ask().migrations.values()))

    def list_migrations_of_server(self, server: str) -> t.Any:
        rows = tuple(row for row in self.ask().migrations.values() if row.server == server)
        return answer("GET /os-migrations?instance_uuid", 200, rows)

    def list_migrations_of_host(self, host: str, attempt: int = 0) -> t.Any:
        every = self.ask().migrations.values()
        rows = tuple(row for row in every if host in (row.source_compute, row.dest_compute))
        return answer("GET /os-migrations?host", 200, rows)

    def get_server(self, uuid: str) -> t.Any:
        return _find("GET /servers", self.ask().servers.get(uuid))

    def find_deleted_server(self, uuid: str, brief: bool = False) -> t.Any:
        found = self.ask().deleted.get(uuid)
        return answer("GET /servers/detail?deleted=True", 200, (found,) if found else ())

    def list_instance_actions(self, uuid: str) -> t.Any:
        world = self.ask()
        known = {*world.servers, *world.deleted, *world.marked_deleted}
        if uuid not in known:
            return answer("GET /os-instance-actions", 404)
        return answer("GET /os-instance-actions", 200, world.actions.get(uuid, ()))

    def get_instance_action(self, uuid: str, request: str) -> t.Any:
        actions = self.ask().actions.get(uuid, ())
        found = [action for action in actions if action.request_id == request]
        return _find("GET /os-instance-actions/", *found)

    def probe_migration_marker(self, uuid: str, attempt: int = 0) -> t.Any:
        known = uuid in {*self.ask().migrations, *self.world.unlisted_migrations}
        return answer("GET /os-migrations?marker", 200 if known else 400, known or None)

    def list_server_uuids_in_status(self, status: str, attempt: int = 0) -> t.Any:
        found = [row.uuid for row in self.ask().servers.values() if row.status == status]
        return answer("GET /servers?status", 200, tuple(found))

    def list_server_rows(self, uuid: str, attempt: int = 0) -> t.Any:
        return answer("GET /servers?uuid", 200, (uuid,) if uuid in self.ask().servers else ())

    def list_newest_servers(self, count: int) -> t.Any:
        return answer("GET /servers/detail", 200, tuple(self.ask().servers.values())[:count])

    def list_server_uuids(self) -> t.Any:
        return frozenset(self.ask().servers)

    def list_newest_servers_on_host(self, host: str, count: int) -> t.Any:
        return answer("GET /servers/detail?host", 200, self.list_servers_on_host(host)[:count])

    def list_server_uuids_on_host(self, host: str) -> t.Any:
        found = tuple(server.uuid for server in self.list_servers_on_host(host))
        return answer("GET /servers?host", 200, found)

    def list_aggregates(self) -> t.Any:
        self.happens()
        return ()

    def get_host(self, name: str) -> t.Any:
        return _find("GET /os-hosts", name in {node.host for node in self.ask().nodes.values()})

    def search_nodes(self, name: str) -> t.Any:
        nodes = self.ask().nodes.values()
        return _find("GET /os-hypervisors?…", tuple(n.name for n in nodes if name in n.name))

    def believe_errors(self, believe: bool) -> None:
        """Do nothing: no request is repeated here."""

    @property
    def retried(self) -> int:
        return 0


def _find(request: str, found: t.Any = None) -> t.Any:
    return answer(request, 200 if found else 404, found or None)


def _one_after_another(
    function: t.Callable[[t.Any], t.Any], items: t.Iterable[t.Any], _workers: int = 1, **_stage: str
) -> list[t.Any]:
    return list(map(function, items))


class Reading(incremental.IncrementalCollector, renewal.RenewingCollector):
    """Reads for detection and for remediation."""


def _first_then_second(first: t.Callable[[], t.Any], second: t.Callable[[], t.Any]) -> t.Any:
    return first(), second()


@contextlib.contextmanager
def open_collector(cloud: Cloud) -> t.Iterator[Reading]:
    """Yield a collector that reads `cloud`, one request after the other."""
    services = ("placement", "compute", "network", "block_storage", "accelerator")
    session = types.SimpleNamespace(
        require_one_clock=lambda: None,
        cloud=cloud.world.snapshot().cloud,
        project="",
        roles=frozenset(),
        query_other_novas=lambda: answer("GET /endpoints", 200, ()),
        **dict.fromkeys(services),
    )
    with (
        mock.patch.object(reading, "PlacementReader", lambda api: cloud),
        mock.patch.object(reading, "NovaReader", lambda api: cloud),
        mock.patch.object(reading, "NeutronReader", lambda *_: cloud),
        mock.patch.object(reading, "ProviderGroupReader", lambda api: cloud),
        contextlib.ExitStack() as patches,
    ):
        for module in PARALLEL:
            patches.enter_context(mock.patch.object(module, "map_parallel", _one_after_another))
        for module in PARALLEL_PAIRS:
            patches.enter_context(mock.patch.object(module, "run_parallel", _first_then_second))
        yield Reading(t.cast("t.Any", session))


def run(cloud: Cloud, but: t.Collection[str] = ()) -> list[Change]:
    """Detect and remediate all but some kinds, and return what was written."""
    with open_collector(cloud) as collector:
        remediate(cloud, collector, judge(collector.collect(Scope()), NO_MINIMUM_AGE), but)
    return cloud.written


_NO_JOURNAL = types.SimpleNamespace(
    record_before=lambda steps: None, record_after=lambda outcomes: None
)


def remediate(
    cloud: Cloud,
    reading: Reading,
    found: t.Iterable[Finding],
    but: t.Collection[str] = (),
    journal: t.Any = _NO_JOURNAL,
) -> list[Outcome]:
    """Make the changes of all orphans in `found` and all swaps, but not those of some kinds."""
    steps = [
        Step(finding.id, finding.kind, finding.change)
        for finding in found
        if isinstance(finding.change, Change)
        and (finding.verdict == ORPHANED or finding.change.partner)
        and finding.kind not in but
    ]
    api = open_service("placement", cloud.request, (1, 37), (1, 28))
    writer = allocation_writer.AllocationWriter(api)
    outcomes = Remediation(reading, NO_MINIMUM_AGE, writer, journal).run(steps, str)
    assert not [outcome for outcome in outcomes if "unexpected" in outcome.reason]
    return outcomes


@st.composite
def paces(draw: st.DrawFn) -> range:
    """Draw the request at which an operation begins, and how often it makes a step."""
    first, stride = draw(st.integers(1, 2 * LONGEST)), draw(st.sampled_from([1, 1, 2, 4, 8]))
    return range(first, 3 * LONGEST, stride)


@functools.cache
def list_races() -> list[Life]:
    return [*read_lives("race", "swap")]


def draw_race(draw: st.DrawFn) -> Life:
    return draw(st.sampled_from(list_races()))


@st.composite
def races(draw: st.DrawFn) -> Cloud:
    return Cloud(draw_race(draw), draw(paces()))


@hypothesis.settings(max_examples=count_examples(800))
@hypothesis.given(races())
def test_needed_allocations_survive_while_nova_continues(cloud: Cloud) -> None:
    for change in run(cloud):
        hypothesis.event(change.action)
    assert not cloud.wrong, "\n".join(cloud.wrong)


def test_generated_races_end_in_changes() -> None:
    """Otherwise the property would prove nothing."""
    hypothesis.find(
        races().filter(lambda cloud: len(cloud.life) > 10),
        lambda cloud: bool(run(cloud)),
        settings=hypothesis.settings(max_examples=2000, phases=[hypothesis.Phase.generate]),
    )


@pytest.mark.parametrize("operation", ["resize", "migrate"])
def test_swap_is_written_only_where_it_takes_nothing_needed(operation: str) -> None:
    """A move was reverted, and its allocations were not; then each possible operation begins."""
    lives = list(read_lives(f"swap {operation}"))
    assert lives
    assert run(Cloud(lives[0])) != []
    for life, first in itertools.product(lives, range(1, 2 * LONGEST, 3)):
        cloud = Cloud(life, range(first, 3 * LONGEST))
        run(cloud)
        assert not cloud.wrong, (first, cloud.wrong)
