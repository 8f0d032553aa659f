"""What a cell that is down leaves unproven, and answers that Placement's listings contradict."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.consumer import build_views
from .......plugins.module_utils._core.facts.gaps import (
    choose_providers,
    explain_contradictions,
    explain_loss,
    find_gap,
    list_touched_hosts,
)
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.models.kind import EVERY
from .......plugins.module_utils._core.models.placement import ProviderDetails
from .......plugins.module_utils._core.models.snapshot import LISTED_BY_SERVERS, Snapshot
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import PLENTY, World, answer
from ..scene import Scene

SILENT = "dead-1"


class Site(Scene):
    """Three hosts, of which the cell of one does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.dead = self.host(SILENT)

    def snapshot(self, **changes: t.Any) -> Snapshot:
        """Return what is read then.

        These are the services of all hosts, and the compute nodes of those that answer.
        """
        listed = super().snapshot().hypervisors.value or ()
        nodes = tuple(node for node in listed if node.host != SILENT)
        hypervisors = answer(LISTED_BY_SERVERS, 200, nodes)
        return super().snapshot(**{**self.silence(SILENT), "hypervisors": hypervisors, **changes})

    def read_later(self) -> dict[str, t.Any]:
        """Return the listings from before the cell fell silent."""
        whole = super().snapshot()
        return {"services": whole.services, "hypervisors": whole.hypervisors}


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_deleted_server_of_an_answering_cell_is_proven(site: Site) -> None:
    server = site.delete(site.server(site.here, site.here))

    assert site.told(server)[:2] == ("deleted_server", "orphaned")


@pytest.mark.parametrize("kind", ["evacuated_source", "extra_host", "ended_migration"])
def test_presence_in_an_answering_cell_is_proven(site: Site, kind: str) -> None:
    consumer = server = site.server(site.here, site.here)
    if kind == "ended_migration":
        consumer = site.comes(server, "confirmed", site.there)
    else:
        site.hold(server, site.there)
    if kind == "evacuated_source":
        site.comes(server, "done", type="evacuation")

    assert site.told(consumer)[:2] == (kind, "orphaned")


def test_consumer_also_on_a_host_of_the_dead_cell_is_undecided(site: Site) -> None:
    server = site.delete(site.server(site.here, site.here, site.dead))

    assert site.undecided(server) == "cell_of_host_down"
    assert SILENT in site.found(server).reason


def test_server_that_once_left_the_dead_cell_is_undecided(site: Site) -> None:
    server = site.spread()
    site.migration(server, site.dead, site.here, "confirmed")

    assert site.undecided(server)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(404, "orphaned"), (500, "undecided"), (403, "undecided"), (200, "undecided")],
)
def test_provider_without_a_compute_node_may_be_in_the_dead_cell_until_looked_up(
    site: Site, status: int, verdict: str
) -> None:
    server = site.delete(site.server(site.here, site.provider("gone-1")))
    lookups = {"gone-1": answer("GET /os-hosts/gone-1", status, status == 200 or None)}

    assert site.found(server, host_lookups=lookups).verdict == verdict


def test_provider_without_a_compute_node_may_be_of_a_renamed_host_in_the_dead_cell(
    site: Site,
) -> None:
    """The host was renamed since, so nothing has the name of the provider any more."""
    server = site.server(site.here, site.here, site.dead)
    move = site.migration(server, site.dead, site.here, "done", type="evacuation")
    del site.nodes[site.dead]
    site.providers[site.dead] = d.replace(site.providers[site.dead], name="old-name")
    site.alter(move, source_compute="old-name", source_node="old-name")
    lookups = {"old-name": answer("GET /os-hosts/old-name", 404)}

    told = site.told(server, host_lookups=lookups)
    assert told == ("evacuated_source", "undecided", "may_be_of_down_cell")


def test_consumer_on_a_provider_named_like_a_host_of_the_dead_cell_is_undecided(site: Site) -> None:
    server = site.server(site.here, site.provider(f"{SILENT}.example.org"))

    assert site.undecided(site.delete(server))


@pytest.mark.parametrize("what", ["unknown_consumer", "deleted_migration"])
def test_absence_proves_nothing_while_a_cell_is_silent(site: Site, what: str) -> None:
    site.server(site.here, site.here)
    consumer = site.stranger(site.there)
    if what == "deleted_migration":
        site.unlisted_migrations.add(consumer)

    assert site.told(consumer) == (what, "undecided", "every_cell_needed")
    assert SILENT in site.found(consumer).reason


@pytest.mark.parametrize("kind", ["misplaced_allocation", "missing_allocation"])
def test_unlisted_compute_node_is_never_written_to(site: Site, kind: str) -> None:
    server = site.server(site.here, *([site.there] if kind == "misplaced_allocation" else []))

    assert site.told(server)[:2] == (kind, "undecided")


def test_provider_without_a_compute_node_is_not_orphaned_while_a_cell_is_silent(site: Site) -> None:
    site.server(site.here, site.here)
    orphaned = site.provider("compute-9")
    looks_like_a_host = ProviderDetails(
        {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, traits=frozenset({"COMPUTE_NODE"})
    )
    details = dict.fromkeys((orphaned, site.dead), looks_like_a_host)

    for snapshot, expected in (
        (World.snapshot(site, details=details), [orphaned]),
        (site.snapshot(details=details), []),
    ):
        found = judge(snapshot, NO_MINIMUM_AGE)
        kinds = ("orphaned_provider", "name_conflict")
        assert [finding.subject for finding in found if finding.kind in kinds] == expected


def test_cell_silent_at_the_end_counts_for_the_whole_reading(site: Site) -> None:
    server = site.server(site.dead, site.dead, site.here)

    assert site.undecided(server, **site.read_later()) == "own_service_not_up"


def test_answering_cells_leave_no_gap(site: Site) -> None:
    server = site.spread()
    site.migration(server, site.dead, site.here, "confirmed")
    (view,) = build_views(SnapshotIndex(World.snapshot(site, candidates=(server,))))

    assert find_gap(view, cells=EVERY) is None
    assert list_touched_hosts(view) == {"compute-1", "compute-2", SILENT}


class ListedSite(Scene):
    """A server that has moved from one host to the other, and an orphan beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = self.server(self.there, self.there)
        self.move = self.goes(self.moved, "confirmed", self.here)
        self.orphan = self.server(self.here, self.here, self.there)

    def list_truly(self) -> dict[str, dict[str, t.Any]]:
        """Return what all providers list, by consumer."""
        return {uuid: dict(held.resources) for uuid, held in self.allocations.items()}

    def explain(
        self, listed: dict[str, dict[str, t.Any]], snapshot: Snapshot | None = None
    ) -> dict[str, str]:
        snapshot = snapshot or self.snapshot()
        assert {self.moved, self.move, self.orphan} <= snapshot.evidence.keys()
        index = SnapshotIndex(snapshot)
        return explain_contradictions(snapshot, index, choose_providers(snapshot, index), listed)


@pytest.fixture(name="whole")
def _whole() -> ListedSite:
    return ListedSite()


def test_same_allocations_in_both_answers_are_no_contradiction(whole: ListedSite) -> None:
    assert whole.explain(whole.list_truly()) == {}


@pytest.mark.parametrize("change", ["nothing", "less", "other amounts", "more"])
def test_consumer_whose_answer_differs_from_the_listing_is_named(
    whole: ListedSite, change: str
) -> None:
    listed = whole.list_truly()
    held = listed[whole.orphan]
    if change == "nothing":
        del listed[whole.orphan]
    elif change == "less":
        del held[whole.here]
    elif change == "other amounts":
        held[whole.here] = {**held[whole.here], "VCPU": 99}
    else:
        held[whole.host("compute-3")] = held[whole.here]

    reasons = whole.explain(listed)

    assert list(reasons) == [whole.orphan]
    assert whole.orphan in reasons[whole.orphan] and "cache" in reasons[whole.orphan]
    assert reasons[whole.orphan].id == "listing_contradicts_answer"


def test_shared_provider_is_listed_only_for_a_consumer_on_no_host(whole: ListedSite) -> None:
    pool = whole.provider("pool")
    whole.server(whole.here, whole.here, pool)
    snapshot = whole.snapshot()

    assert choose_providers(snapshot, SnapshotIndex(snapshot)) == sorted([whole.here, whole.there])
    stray = whole.server(None, pool)
    snapshot = whole.snapshot()
    assert pool in choose_providers(snapshot, SnapshotIndex(snapshot))
    assert whole.explain(whole.list_truly()) == {}
    truly = whole.list_truly()
    del truly[stray]
    assert list(whole.explain(truly)) == [stray]


@pytest.mark.parametrize("is_looked_up", [True, False])
@pytest.mark.parametrize("contradicted", ["moved", "move"])
def test_server_and_its_migration_count_together(
    whole: ListedSite, contradicted: str, is_looked_up: bool
) -> None:
    """A cache has what one of them had before the move.

    The lookup of the server may have reached a worker that does not know its cell.
    """
    consumer = getattr(whole, contradicted)
    listed = {uuid: held for uuid, held in whole.list_truly().items() if uuid != consumer}
    snapshot = whole.snapshot()
    if not is_looked_up:
        server = snapshot.evidence[whole.moved]
        empty = d.replace(server, migrations=d.replace(server.migrations, value=()))
        snapshot = d.replace(snapshot, evidence={**snapshot.evidence, whole.moved: empty})

    reasons = whole.explain(listed, snapshot)

    assert set(reasons) == {whole.moved, whole.move}
    assert all(consumer in reason for reason in reasons.values())


def test_old_answer_about_a_host_that_is_gone_is_noticed_by_its_migration(
    whole: ListedSite,
) -> None:
    """Of the server only its living host is listed, and of its migration the one that is gone."""
    truly = whole.list_truly()
    whole.remove_host(whole.here)
    whole.hold(whole.moved, whole.here)

    assert set(whole.explain(truly)) == {whole.moved, whole.move}


def _list_more(snapshot: Snapshot, consumer: str, **more: dict[str, int]) -> Snapshot:
    """Return a snapshot whose listings have more of a consumer than the answer about it."""
    held = {**snapshot.allocations.get(consumer, {}), **more}
    return d.replace(snapshot, allocations={**snapshot.allocations, consumer: held})


def _judge(snapshot: Snapshot) -> dict[str, str]:
    return {finding.subject: finding.verdict for finding in judge(snapshot, Policy())}


def test_answer_that_lacks_what_a_shared_provider_lists_proves_nothing(whole: ListedSite) -> None:
    pool = whole.provider("pool")
    true = whole.snapshot()

    assert _judge(true)[whole.orphan] == "orphaned"
    more = _list_more(true, whole.orphan, **{pool: {"DISK_GB": 1}})
    assert _judge(more)[whole.orphan] == "undecided"


@pytest.mark.parametrize("contradicted", ["moved", "move"])
def test_what_a_provider_lists_of_a_server_counts_for_its_migration(
    whole: ListedSite, contradicted: str
) -> None:
    pool = whole.provider("pool")
    true = whole.snapshot()

    assert _judge(true)[whole.move] == "orphaned"
    listed = _list_more(true, getattr(whole, contradicted), **{pool: {"DISK_GB": 1}})
    assert _judge(listed)[whole.move] == "undecided"
    why = explain_loss(whole.move, listed.allocations, listed, SnapshotIndex(listed))
    assert why and getattr(whole, contradicted) in why and why.id == "allocation_answers_differ"


def test_answer_with_more_than_is_listed_is_no_loss(whole: ListedSite) -> None:
    """A new allocation, or one on a provider that this reading did not list."""
    true = whole.snapshot()
    listed = d.replace(true, allocations={})

    assert explain_loss(whole.orphan, {}, listed, SnapshotIndex(listed)) is None
