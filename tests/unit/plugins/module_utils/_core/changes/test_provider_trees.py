"""When the tree of a provider is deleted, and what is said of one that is not.

Placement does not guard a deletion by a generation, so everything depends on what is read before.
"""

import dataclasses as d
import types
import typing as t
from collections.abc import Callable, Iterable
from unittest import mock

import pytest

from .......plugins.module_utils._common.errors import (
    CloudError,
    InvalidInput,
    JournalError,
    Reason,
)
from .......plugins.module_utils._core.changes import provider_trees
from .......plugins.module_utils._core.changes.group_check import EVERY_HOST
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.facts.soundness import list_failed_absence_checks
from .......plugins.module_utils._core.models.change import ProviderRemoval
from .......plugins.module_utils._core.models.nova import Hypervisor, Service
from .......plugins.module_utils._core.models.placement import Provider
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.plan import TreeStep
from ...judging import NO_MINIMUM_AGE, judge
from ...world import World, answer


class Site:
    """A cloud with trees of hosts that are gone, and everything that a run asks and writes there.

    reading: what a reading has instead of its own listings, or why there is none.
    generations: those that Placement shows instead of the true ones, by provider; None for a
        provider that it does not have.
    refusal: what Placement says to the deletion of the last provider of a tree.
    """

    def __init__(self, trees: int = 1) -> None:
        self.world = World()
        self.here = self.world.host("compute-1")
        self.world.server(self.here, self.here)
        self.roots = []
        for number in range(trees):
            root = self.world.provider(f"compute-9{number}")
            self.world.provider(f"compute-9{number}_child", root)
            self.world.were_novas.add(root)
            self.roots.append(root)
        self.reading: dict[str, t.Any] | InvalidInput = {}
        self.scopes: list[Scope] = []
        self.generations: dict[str, int | None] = {}
        self.meanwhile: Callable[[], object] = lambda: None
        self.refusal: Reason | Exception | None = None
        self.refuses_all = False
        self.unreadable_after: int | None = None
        self.breaks = False
        self.read: list[str] = []
        self.deleted: list[str] = []
        self.records: list[tuple[str, t.Any]] = []
        self.details: dict[str, t.Any] = {}
        self.steps = []
        for finding in judge(self.world.snapshot(), NO_MINIMUM_AGE):
            assert isinstance(finding.change, ProviderRemoval)
            assert len(finding.change.providers) == 2
            self.steps.append(TreeStep(finding.id, finding.kind, finding.change))
        assert [step.subject for step in self.steps] == self.roots

    def remove(
        self,
        check_mode: bool = False,
        max_failures: int = 5,
        failed_before: int = 0,
        stopped: Callable[[], str] = str,
        group_check: t.Any = EVERY_HOST,
    ) -> list[Outcome]:
        session: t.Any = types.SimpleNamespace(placement=None)
        ours: t.Any = self
        with mock.patch.multiple(
            provider_trees,
            Collector=lambda _session: types.SimpleNamespace(collect=self._collect),
            PlacementReader=lambda _session: types.SimpleNamespace(get_part=self._get_part),
            ProviderStateReader=lambda _session: types.SimpleNamespace(read=self._read),
            ProviderWriter=lambda _session: types.SimpleNamespace(delete_tree=self._delete),
        ):
            remover = provider_trees.TreeRemover(
                session, NO_MINIMUM_AGE, None if check_mode else ours, max_failures, group_check
            )
        outcomes = remover.remove_trees(self.steps, stopped, failed_before)
        assert [outcome.step for outcome in outcomes] == self.steps
        return outcomes

    def _collect(self, scope: Scope) -> t.Any:
        self.scopes.append(scope)
        if isinstance(self.reading, InvalidInput):
            raise self.reading
        return self.world.snapshot(scope=scope, **self.reading)

    def _read(self, uuid: str) -> t.Any:
        if self.unreadable_after is not None and len(self.read) >= self.unreadable_after:
            raise CloudError("Placement answered 500.")
        self.read.append(uuid)
        known = self.world.providers.get(uuid)
        generation = self.generations.get(uuid, known.generation if known else None)
        if generation is None:
            return None
        return types.SimpleNamespace(generation=generation, as_dict=lambda: {"uuid": uuid})

    def _get_part(self, uuid: str, _part: str) -> dict[str, int]:
        return self.world.unlisted.get(uuid, {"VCPU": 0})

    def _delete(self, providers: t.Sequence[Provider]) -> tuple[list[Provider], str]:
        if isinstance(self.refusal, Exception):
            raise self.refusal
        gone = list(providers)
        if self.refusal:
            gone = [] if self.refuses_all else gone[:-1]
        self.deleted += [provider.uuid for provider in gone]
        return gone, self.refusal

    # The journal

    def record_before(self, steps: Iterable[TreeStep], details: dict[str, t.Any]) -> None:
        self.records += [("before", step.finding) for step in steps]
        self.details |= details
        self.meanwhile()

    def record_after(self, outcomes: Iterable[Outcome]) -> None:
        if self.breaks:
            raise JournalError("The disk is full.")
        self.records += [("after", outcome.outcome) for outcome in outcomes]


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def _summarize(outcomes: Iterable[Outcome]) -> list[tuple[str, bool]]:
    return [(outcome.outcome, outcome.partly) for outcome in outcomes]


def test_tree_is_proven_journaled_and_deleted(site: Site) -> None:
    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason, outcome.partly) == ("removed", "", False)
    [child, root] = site.steps[0].change.providers
    assert site.deleted == [child.uuid, root.uuid]
    assert site.scopes == [Scope(hosts=(root.uuid,), kinds=("orphaned_provider",))]
    assert site.records == [("before", site.steps[0].finding), ("after", "removed")]
    # What is needed to restore them.
    assert site.details == {known.uuid: {"uuid": known.uuid} for known in (child, root)}


def test_check_mode_proves_and_deletes_nothing(site: Site) -> None:
    [outcome] = site.remove(check_mode=True)

    assert (outcome.outcome, len(site.scopes)) == ("removed", 1)
    assert (site.records, site.read, site.deleted) == ([], [], [])


def _register(site: Site, uuid: str) -> None:
    """Let a compute node have the name of the first root."""
    site.world.nodes[uuid] = Hypervisor(uuid, "compute-90", "compute-90", "up", "enabled", ())
    site.world.services.append(Service("nova-compute", "compute-90", "enabled", "up"))


def _come_back(site: Site) -> None:
    _register(site, site.roots[0])


def _allocate(site: Site) -> None:
    site.world.stranger(site.roots[0])


def _add_child(site: Site) -> None:
    site.world.provider("compute-90_other", site.roots[0])


def _write_inventory(site: Site) -> None:
    root = site.roots[0]
    site.world.providers[root] = d.replace(site.world.providers[root], generation=2)


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(_come_back, "no_longer_found", id="its host is back"),
        pytest.param(_allocate, "tree_has_allocations", id="it has an allocation"),
        pytest.param(_add_child, "removal_differs", id="it has a new child"),
        pytest.param(_write_inventory, "removal_differs", id="it was written"),
    ],
)
def test_tree_that_is_no_longer_as_at_detection_stays(
    site: Site, change: Callable[[Site], None], reason: str, check_mode: bool
) -> None:
    change(site)

    [outcome] = site.remove(check_mode)

    assert outcome.outcome == "skipped" and outcome.reason.id == reason
    assert (site.records, site.deleted) == ([], [])


def test_tree_of_another_kind_now_stays(site: Site) -> None:
    """Its name is now that of a compute node with another UUID."""
    _register(site, site.world.uuid())

    [outcome] = site.remove()

    assert outcome.outcome == "skipped"
    assert outcome.reason.id == "node_name_has_other_provider"
    assert site.deleted == []


def test_tree_that_is_gone_is_left_out(site: Site) -> None:
    site.reading = InvalidInput("hosts: neither Nova nor Placement has it.")

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == ("skipped", "tree_gone")
    assert site.deleted == []


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param({"services": answer("GET /os-services", 500)}, id="services"),
        pytest.param({"samples": (answer("GET /servers/a", 403),)}, id="credentials"),
        pytest.param({"hypervisors": answer("GET /os-hypervisors", 500)}, id="compute nodes"),
        # The first check that fails is the reason.
        pytest.param(
            {
                "services": answer("GET /os-services", 500),
                "samples": (answer("GET /servers/a", 403),),
            },
            id="both",
        ),
    ],
)
def test_unsound_reading_ends_the_run(reading: dict[str, t.Any]) -> None:
    site = Site(trees=2)
    site.reading = reading

    outcomes = site.remove()

    assert _summarize(outcomes) == [("failed", False)] * 2
    checks = list_failed_absence_checks(site.world.snapshot(**reading))
    assert outcomes[0].reason.id == checks[0].id
    assert (len(site.scopes), site.records, site.deleted) == (1, [], [])


def test_silent_cell_ends_the_run(site: Site) -> None:
    """The compute node may be in the cell that does not answer."""
    services = [d.replace(service, status="UNKNOWN") for service in site.world.services]
    site.reading = {"services_after": answer("GET /os-services", 200, tuple(services))}

    [outcome] = site.remove()

    assert outcome.outcome == "failed"
    assert outcome.reason.id == "cell_down"
    assert site.deleted == []


def test_host_that_left_the_groups_of_the_plan_keeps_its_tree(site: Site) -> None:
    asked = []

    def explain(provider: str, listings: t.Any) -> str:
        asked.append((provider, listings.scope))
        return "It left."

    [outcome] = site.remove(group_check=types.SimpleNamespace(explain_provider=explain))

    assert (outcome.outcome, outcome.reason) == ("skipped", "It left.")
    assert asked == [(site.roots[0], site.scopes[0])]
    assert (site.records, site.deleted) == ([], [])


@pytest.mark.parametrize("generation", [None, 0, 2])
@pytest.mark.parametrize("position", [0, 1])
def test_provider_that_changes_after_the_proof_keeps_its_tree(
    site: Site, generation: int | None, position: int
) -> None:
    changed = site.steps[0].change.providers[position]
    site.generations[changed.uuid] = generation

    [outcome] = site.remove()

    assert outcome.outcome == "skipped"
    assert outcome.reason.id == "provider_just_changed" and changed.name in outcome.reason
    assert (site.records, site.deleted) == ([], [])


@pytest.mark.parametrize("position", [0, 1])
def test_tree_of_which_something_is_in_use_that_is_not_listed_stays(
    site: Site, position: int
) -> None:
    """Its children would be deleted before Placement refuses to delete the provider."""
    site.world.unlisted[site.steps[0].change.providers[position].uuid] = {"VCPU": 1}

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == ("skipped", "tree_has_hidden_allocation")
    assert (site.records, site.deleted) == ([], [])


def test_provider_that_cannot_be_read_after_the_journal_keeps_its_tree(site: Site) -> None:
    site.unreadable_after = 2

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == ("failed", "cloud_error")
    assert (site.deleted, outcome.partly) == ([], False)
    assert site.records[-1] == ("after", "failed")


def test_provider_that_changes_while_the_journal_is_written_keeps_its_tree(site: Site) -> None:
    """A nova-compute of that name has come back, and has written its inventory."""
    site.meanwhile = lambda: site.generations.update({site.roots[0]: 2})

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == ("skipped", "provider_just_changed")
    assert (site.deleted, site.records[-1]) == ([], ("after", "skipped"))


@pytest.mark.parametrize(
    ("seconds", "expected", "reason"), [(60, "removed", ""), (60.1, "failed", "proof_too_old")]
)
def test_proof_may_be_a_minute_old(
    site: Site, seconds: float, expected: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(provider_trees, "read_monotonic_clock", lambda: now[0])
    site.meanwhile = lambda: now.append(now.pop() + seconds)

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == (expected, reason)
    assert bool(site.deleted) is (not reason)
    assert site.records[-1] == ("after", expected)


@pytest.mark.parametrize(
    ("refusal", "refuses_all", "partly", "said"),
    [
        (CloudError("Placement did not answer."), True, True, "cloud_error"),
        (Reason("told", "It has allocations."), True, False, "told"),
        (Reason("told", "It has allocations."), False, True, "told"),
    ],
    ids=["unanswered", "refused", "halfway"],
)
def test_deletion_that_fails_may_have_changed_something(
    site: Site, refusal: Reason | CloudError, refuses_all: bool, partly: bool, said: str
) -> None:
    site.refusal, site.refuses_all = refusal, refuses_all

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.partly, outcome.reason.id) == ("failed", partly, said)
    assert (" 1 of its 2 " in outcome.reason) is bool(site.deleted)
    assert site.records[-1] == ("after", "failed")


def test_deleted_tree_is_told_although_the_journal_breaks(site: Site) -> None:
    site.breaks = True

    [outcome] = site.remove()

    assert (outcome.outcome, outcome.reason.id) == ("removed", "journal_error")
    assert len(site.deleted) == 2


def test_failure_does_not_keep_the_other_trees() -> None:
    site = Site(trees=3)
    site.generations[site.roots[0]] = 7

    outcomes = site.remove()

    assert [outcome.outcome for outcome in outcomes] == ["skipped", "removed", "removed"]
    assert len(site.deleted) == 4


@pytest.mark.parametrize(
    ("failed_before", "expected"),
    [
        (0, ["failed", "failed", "skipped"]),
        (1, ["failed", "skipped", "skipped"]),
        (2, ["skipped"] * 3),
    ],
)
def test_failures_of_the_whole_run_count(failed_before: int, expected: list[str]) -> None:
    site = Site(trees=3)
    site.refusal, site.refuses_all = Reason("told", "No."), True

    outcomes = site.remove(max_failures=2, failed_before=failed_before)

    assert [outcome.outcome for outcome in outcomes] == expected


def test_run_that_is_told_to_end_deletes_no_more() -> None:
    site = Site(trees=2)

    def explain_stop() -> str:
        return "Stopped." if site.deleted else ""

    outcomes = site.remove(stopped=explain_stop)

    assert [outcome.outcome for outcome in outcomes] == ["removed", "skipped"]
    assert outcomes[1].reason == "Stopped."
