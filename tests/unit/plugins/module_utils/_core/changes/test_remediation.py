"""How many changes one proof is for, and what ends a run between two writes."""

import collections
import dataclasses as d
import typing as t
from unittest import mock

import pytest

from .......plugins.module_utils._common.errors import (
    NO_REASON,
    AllocationConflict,
    CapacityRefused,
    CloudError,
    JournalError,
    Reason,
    RecordWithoutAllocations,
    UnsoundReading,
)
from .......plugins.module_utils._common.progress import Stage
from .......plugins.module_utils._core.changes import remediation
from .......plugins.module_utils._core.changes.remediation import Remediation, list_providers
from .......plugins.module_utils._core.facts.soundness import list_failed_checks
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.plan.plan import Step
from ...judging import NO_MINIMUM_AGE, judge
from ...world import World, answer

MANY_SERVICES = 7000
_STOPPED = Reason("stopped", "Stopped.")
_CONTRADICTED = Reason("contradicted", "Placement contradicts itself.")
_FULL = Reason("blocked_by_capacity", "Placement refuses this change.")


@d.dataclass
class Run:
    """A run over the orphans of one host, and everything that it asks for and writes.

    `seconds` pass with each proof, and `seconds_of_write` with each write. The consumers in
    `moved` change after they were proven, those in `unreadable` cannot be looked up, and of those
    in `contradicted` Placement says different things. After `sound_proofs` proofs, a reading has
    the listings in `unsound` instead of its own. The hosts of the consumers in `outside` have left
    the groups of the plan. There is no room for those in `full`, and the first writes of those in
    `refused` fail with these errors. The write number `raises_at` ends with an error of our own,
    and the record `broken` cannot be written in the journal.
    """

    orphans: int
    services: int = 1
    seconds: float = 0
    seconds_of_write: float = 0
    moved: t.Collection[str] = ()
    unreadable: t.Collection[str] = ()
    error: Exception = d.field(default_factory=lambda: CloudError("Nova answered 500."))
    contradicted: t.Collection[str] = ()
    failing: bool = False
    raises_at: int | None = None
    writes_until_stop: int | None = None
    check_mode: bool = False
    sound_proofs: int | None = None
    unsound: t.Mapping[str, t.Any] = d.field(default_factory=dict)
    outside: t.Collection[str] = ()
    full: t.Collection[str] = ()
    refused: dict[str, CloudError | None] = d.field(default_factory=dict)
    broken: str = ""
    after_write: t.Callable[[], object] = lambda: None
    proofs: list[int] = d.field(default_factory=list)
    looks: list[int] = d.field(default_factory=list)
    writes: list[int] = d.field(default_factory=list)
    ages: list[float] = d.field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = self.proven_at = 0.0
        self.world = World()
        host = self.world.host("a")
        self.world.server(host, host)
        for number in range(1, self.services):
            service = Service("nova-conductor", f"conductor-{number}", "enabled", "up")
            self.world.services.append(service)
        for _number in range(self.orphans):
            self.world.delete(self.world.server(host, host))
        self.steps = []
        for finding in judge(self.world.snapshot(), NO_MINIMUM_AGE):
            assert isinstance(finding.change, Change)
            self.steps.append(Step(finding.id, finding.kind, finding.change))
        assert len(self.steps) == self.orphans

    def run(self, max_failures: int = 5) -> dict[str, int]:
        """Return how many changes have which outcome."""
        ours: t.Any = self
        journal = None if self.check_mode else ours
        run = Remediation(ours, NO_MINIMUM_AGE, ours, journal, max_failures, ours)
        with mock.patch.object(remediation, "read_monotonic_clock", lambda: self.clock):
            outcomes = run.run(self.steps, self.explain_stop)
        assert [outcome.step for outcome in outcomes] == self.steps
        self.reasons = [outcome.reason for outcome in outcomes if outcome.reason]
        return collections.Counter(outcome.outcome for outcome in outcomes)

    def edit_step(self, consumer: str, edit: t.Callable[[Step], Step]) -> None:
        consumers = [step.change.consumer for step in self.steps]
        number = consumers.index(consumer)
        self.steps[number] = edit(self.steps[number])

    def explain_stop(self) -> Reason:
        stop = self.writes_until_stop is not None and len(self.writes) >= self.writes_until_stop
        return _STOPPED if stop else NO_REASON

    # What reads the cloud

    def begin_renewal(self, consumers: object, providers: object) -> t.Any:
        return self.read()

    def read(self) -> t.Any:
        if self.sound_proofs is not None and len(self.proofs) > self.sound_proofs:
            return self.world.snapshot(**self.unsound)
        return self.world.snapshot()

    def renew(self, consumers: t.Sequence[str]) -> t.Any:
        self.proofs.append(len(consumers))
        self.proven_at = self.clock
        self.clock += self.seconds
        if not set(consumers).isdisjoint(self.unreadable):
            raise self.error
        return self.read()

    def explain_contradictions(self, snapshot: object) -> dict[str, Reason]:
        return dict.fromkeys(self.contradicted, _CONTRADICTED)

    def explain_changes(self, changes: t.Sequence[Change], listings: t.Any) -> list[str]:
        assert listings.providers == self.world.providers
        return ["It left." if change.consumer in self.outside else "" for change in changes]

    # What writes

    def find_conflicts(self, changes: t.Sequence[Change]) -> dict[str, AllocationConflict]:
        self.looks.append(len(changes))
        found = {change.consumer for change in changes} & set(self.moved)
        return {consumer: AllocationConflict("It has just changed.") for consumer in found}

    def foresee(self, changes: t.Sequence[Change], check_mode: bool) -> list[Reason | None]:
        assert check_mode == self.check_mode
        return [_FULL if change.consumer in self.full else None for change in changes]

    def write(self, changes: t.Sequence[Change]) -> list[CloudError | None]:
        if len(self.writes) == self.raises_at:
            self.raises_at = None
            raise KeyError("a fault")
        self.writes.append(len(changes))
        self.ages.append(self.clock - self.proven_at)
        self.clock += self.seconds_of_write
        if self.failing:
            return [CloudError("Placement answered 500.") for _change in changes]
        self.after_write()
        errors = [self.refused.pop(change.consumer, None) for change in changes]
        for change, error in zip(changes, errors, strict=True):
            if error is None:
                self.world.apply(change)
        return errors

    def record_before(self, steps: object) -> None:
        self.record("before")

    def record_after(self, outcomes: object) -> None:
        self.record("after")

    def record(self, event: str) -> None:
        if event == self.broken:
            raise JournalError("The disk is full.")


@pytest.mark.parametrize(
    ("services", "proofs"),
    [
        pytest.param(1, [8] * 10, id="small cloud"),
        pytest.param(999, [8] * 10, id="just small"),
        pytest.param(1000, [16] * 5, id="medium"),
        pytest.param(MANY_SERVICES, [64, 16], id="very large"),
    ],
)
def test_one_listing_of_many_services_is_for_more_changes(services: int, proofs: list[int]) -> None:
    run = Run(80, services)

    assert run.run() == {"removed": 80}
    assert (run.proofs, run.writes) == (proofs, [8] * 10)


def test_check_mode_proves_more_at_once_and_writes_nothing() -> None:
    run = Run(80, check_mode=True)

    assert run.run() == {"removed": 80}
    assert (run.proofs, run.writes) == ([32, 32, 16], [])
    assert run.looks == run.proofs


def test_what_changes_after_the_proof_is_not_written() -> None:
    run = Run(64, MANY_SERVICES)
    run.moved = {run.steps[60].change.consumer}

    assert run.run() == {"removed": 63, "skipped": 1}
    assert run.writes == [8] * 7 + [7]


def test_what_placement_refuses_for_its_capacity_ends_no_run() -> None:
    run = Run(20)
    foreseen, refused = ([step.change.consumer for step in run.steps[first::2]] for first in (0, 1))
    run.full = foreseen[:6]
    run.refused = {consumer: CapacityRefused(_FULL) for consumer in refused[:6]}

    assert run.run(max_failures=1) == {"removed": 8, "blocked": 12}
    assert {reason.id for reason in run.reasons} == {_FULL.id}
    assert sum(run.writes) == 14


@pytest.mark.parametrize(
    ("again", "outcome"), [("", "removed"), ("moved", "skipped"), ("unreadable", "failed")]
)
def test_record_without_allocations_is_written_once_more_after_another_proof(
    again: str, outcome: str
) -> None:
    run = Run(10)
    consumer = run.steps[1].change.consumer
    run.refused = {consumer: RecordWithoutAllocations("It has a record.")}
    if again:
        # Nothing more is known of it after the first write.
        run.after_write = lambda: setattr(run, again, {consumer})

    assert run.run() == collections.Counter({"removed": 9}) + collections.Counter([outcome])
    assert run.proofs[-1] == 1


def test_consumer_of_which_placement_says_different_things_is_not_written() -> None:
    run = Run(8)
    run.contradicted = {run.steps[3].change.consumer}

    assert run.run() == {"removed": 7, "skipped": 1}
    assert run.writes == [7]


def lose_allocation(run: Run, consumer: str) -> None:
    del run.world.allocations[consumer]


def empty_allocation(run: Run, consumer: str) -> None:
    allocation = run.world.allocations[consumer]
    run.world.allocations[consumer] = d.replace(allocation, resources={})


def change_allocation(run: Run, consumer: str) -> None:
    allocation = run.world.allocations[consumer]
    run.world.allocations[consumer] = d.replace(allocation, generation=2)


def restore_server(run: Run, consumer: str) -> None:
    deleted = run.world.deleted.pop(consumer)
    run.world.servers[consumer] = d.replace(deleted, status="ACTIVE", terminated_at=None)


def plan_another_kind(run: Run, consumer: str) -> None:
    run.edit_step(consumer, lambda step: d.replace(step, kind="unknown_consumer"))


def plan_another_document(run: Run, consumer: str) -> None:
    def edit(step: Step) -> Step:
        before: t.Any = {**step.change.before, "user_id": "another"}
        return d.replace(step, change=d.replace(step.change, before=before))

    run.edit_step(consumer, edit)


def plan_nothing(run: Run, consumer: str) -> None:
    def edit(step: Step) -> Step:
        return d.replace(step, change=d.replace(step.change, after=step.change.before))

    run.edit_step(consumer, edit)


def plan_creation(run: Run, consumer: str) -> None:
    """The consumer has nothing, as it had when something was planned for it."""

    def edit(step: Step) -> Step:
        change = step.change
        return d.replace(step, change=d.replace(change, before=change.after, after=change.before))

    empty_allocation(run, consumer)
    run.edit_step(consumer, edit)


@pytest.mark.parametrize(
    ("happen", "reason"),
    [
        (lose_allocation, "allocations_gone"),
        (empty_allocation, "allocations_gone"),
        (change_allocation, "generation_changed"),
        (restore_server, "healthy_now"),
        (plan_another_kind, "server_deleted"),
        (plan_another_document, "write_differs"),
        (plan_nothing, "allocations_already_right"),
        (plan_creation, "healthy_now"),
    ],
)
def test_what_is_not_proven_as_it_was_planned_is_not_written(
    happen: t.Callable[[Run, str], None], reason: str
) -> None:
    run = Run(8)
    happen(run, run.steps[3].change.consumer)

    assert run.run() == {"removed": 7, "skipped": 1}
    assert [told.id for told in run.reasons] == [reason]
    assert run.writes == [7]


def test_proof_that_grows_old_during_the_writes_is_renewed() -> None:
    run = Run(64, MANY_SERVICES, seconds=30, seconds_of_write=10)

    assert run.run() == {"removed": 64}
    # After four writes it is 70 seconds old.
    assert run.proofs == [64, 8, 8, 8, 8]
    assert max(run.ages) <= 60


def test_proof_that_is_always_too_old_ends_the_run() -> None:
    run = Run(64, MANY_SERVICES, seconds=61)

    assert run.run() == {"failed": 5, "skipped": 59}
    assert run.writes == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [(CloudError("Nova answered 500."), "cloud_error"), (KeyError("a"), "unexpected_error")],
)
@pytest.mark.parametrize("number", [20, 70])
def test_consumer_that_cannot_be_read_costs_only_its_own_change(
    error: Exception, reason: str, number: int
) -> None:
    run = Run(80, MANY_SERVICES, error=error)
    run.unreadable = {run.steps[number].change.consumer}

    assert run.run() == {"removed": 79, "failed": 1}
    assert [told.id for told in run.reasons] == [reason]


@pytest.mark.parametrize("number", [0, 1])
def test_consumer_that_cannot_be_read_does_not_keep_the_only_other_one(number: int) -> None:
    run = Run(2)
    run.unreadable = {run.steps[number].change.consumer}

    assert run.run() == {"removed": 1, "failed": 1}


def test_fault_of_our_own_costs_the_rest_of_its_batch() -> None:
    """The second batch has 64 changes, of which 8 are written before the fault."""
    run = Run(136, MANY_SERVICES, raises_at=9)

    assert run.run(max_failures=99) == {"removed": 80, "failed": 56}
    assert {told.id for told in run.reasons} == {"unexpected_error"}
    assert run.writes == [8] * 10


def test_progress_counts_changes_as_they_are_made_and_as_they_fail() -> None:
    run = Run(17, MANY_SERVICES)
    run.unreadable = {run.steps[-1].change.consumer}
    with mock.patch.object(Stage, "show_done") as show:
        assert run.run() == {"removed": 16, "failed": 1}

    shown = [call.args[-1] for call in show.call_args_list]
    assert list(dict.fromkeys(shown))[-3:] == [8, 16, 17]


def test_too_many_failures_end_the_run_before_the_next_write() -> None:
    run = Run(64, MANY_SERVICES, failing=True)

    assert run.run() == {"failed": 8, "skipped": 56}
    assert run.writes == [8]


def test_run_that_is_told_to_end_writes_no_more_of_what_is_proven() -> None:
    run = Run(64, MANY_SERVICES, writes_until_stop=2)
    run.contradicted = {run.steps[40].change.consumer}

    assert run.run() == {"removed": 16, "skipped": 48}
    # What was not proven keeps its own reason.
    assert run.reasons[40 - 16] == "Placement contradicts itself."


@pytest.mark.parametrize(("check_mode", "proofs"), [(False, [8]), (True, [])])
def test_nothing_more_is_proven_by_a_run_that_is_told_to_end(
    check_mode: bool, proofs: list[int]
) -> None:
    run = Run(80, check_mode=check_mode, writes_until_stop=len(proofs))

    assert run.run()["skipped"] == 80 - sum(proofs)
    assert run.proofs == proofs


# None of these is an answer about a consumer, so each proof alone would still hold.
UNSOUND = [
    pytest.param({"services": answer("GET /os-services", 500)}, id="services before"),
    pytest.param({"services_after": answer("GET /os-services", 500)}, id="services after"),
    pytest.param({"samples": (answer("GET /servers/a", 403),)}, id="credentials"),
    pytest.param({"control": answer("GET /servers/detail", 200, (None,))}, id="filter"),
    pytest.param(
        {"services": answer("GET /os-services", 500), "samples": (answer("GET /servers/a", 403),)},
        id="several",
    ),
]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("unsound", UNSOUND)
def test_unsound_reading_ends_the_run_before_its_changes_are_written(
    unsound: dict[str, t.Any], check_mode: bool
) -> None:
    run = Run(80, sound_proofs=1, unsound=unsound, check_mode=check_mode)
    size = 32 if check_mode else 8

    assert run.run() == {"removed": size, "failed": 80 - size}
    assert run.proofs == [size, size]
    assert run.writes == ([] if check_mode else [8])
    # Of several checks that fail, the first is the reason.
    checks = list_failed_checks(run.world.snapshot(**unsound))
    assert {reason.id for reason in run.reasons} == {checks[0].id}


@pytest.mark.parametrize("unsound", UNSOUND)
def test_cloud_that_is_unsound_at_the_beginning_is_not_changed(unsound: dict[str, t.Any]) -> None:
    run = Run(8, sound_proofs=-1, unsound=unsound)

    with pytest.raises(UnsoundReading) as refused:
        run.run()
    assert (run.proofs, run.writes) == ([], [])
    assert refused.value.reason.id == list_failed_checks(run.read())[0].id


@pytest.mark.parametrize(
    ("broken", "failing", "tally", "writes", "reasons"),
    [
        ("before", False, {"failed": 16}, [], ["journal_error"] * 16),
        # What was written is told as it was, and its reason comes first.
        ("after", False, {"removed": 16}, [8, 8], ["journal_error"] * 16),
        (
            "after",
            True,
            {"failed": 8, "skipped": 8},
            [8],
            ["cloud_error"] * 8 + ["too_many_failures"] * 8,
        ),
    ],
)
def test_broken_journal_ends_the_run_and_hides_no_write(
    broken: str, failing: bool, tally: dict[str, int], writes: list[int], reasons: list[str]
) -> None:
    run = Run(16, broken=broken, failing=failing)

    assert run.run() == tally
    assert run.writes == writes
    assert [reason.id for reason in run.reasons] == reasons


def test_only_the_hosts_in_the_groups_of_the_plan_are_changed() -> None:
    run = Run(8)
    run.outside = {run.steps[number].change.consumer for number in (0, 5)}

    assert run.run() == {"removed": 6, "skipped": 2}
    assert (run.proofs, run.writes) == ([6], [6])


def test_all_providers_are_listed_for_a_change_that_adds_amounts() -> None:
    (step,) = Run(1).steps
    change = d.replace(step.change, before=step.change.after, after=step.change.before)

    assert list_providers([step]) == set(step.change.before["allocations"])
    assert list_providers([step, d.replace(step, change=change)]) is None
