"""The outcome of a write with a refused part, or without an answer.

Nothing is reported as made that was not.
"""

import typing as t

import pytest

from .......plugins.module_utils._common import clock as clock_module
from .......plugins.module_utils._common.errors import (
    AllocationConflict,
    CloudError,
    ProofExpired,
    RecordWithoutAllocations,
    WriteRefused,
)
from .......plugins.module_utils._core.clients import allocation_writer
from .......plugins.module_utils._core.clients.allocation_writer import AllocationWriter
from .......plugins.module_utils._core.clients.placement import PlacementReader
from .......plugins.module_utils._core.models.change import Change, build_change
from .......plugins.module_utils._core.models.placement import Allocation
from ...placement import HERE, THERE, Body, Placement, build_error, refuse, uuid
from ...trees import inventory

CLAIM = {"VCPU": 2}
Act = t.Callable[[Placement, Body], "int | None"]


class Clock:
    """Time that passes only when somebody waits, or when the machine sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asleep = 0.0
        self.alarm: t.Callable[[], object] | None = None

    def read(self) -> float:
        return self.now + self.asleep

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.alarm and self.now > 1002:
            self.alarm()


@pytest.fixture(name="placement")
def _placement() -> Placement:
    return Placement()


@pytest.fixture(name="clock", autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.sleep", clock.sleep)
    monkeypatch.setattr(clock_module, "_LAG", 5.0)
    for module in (allocation_writer, clock_module):
        monkeypatch.setattr(module, "read_monotonic_clock", clock.read)
    return clock


def _allocation(placement: Placement, consumer: str) -> Allocation:
    held = PlacementReader(placement.api()).get_allocation(consumer).value
    assert held
    return held


def _removal(placement: Placement, number: int, type: str | None = None) -> Change:
    return build_change(_allocation(placement, placement.give(number, type, VCPU=2)), resources={})


def _removals(placement: Placement, count: int = 3) -> list[Change]:
    return [_removal(placement, number) for number in range(count)]


def _swap(placement: Placement) -> Change:
    """Return the change that gives a server what its migration has."""
    server, migration = (
        _allocation(placement, placement.give(number, VCPU=2)) for number in (1, 2)
    )
    emptied = build_change(migration, resources={})
    return build_change(server, partner=emptied, resources={THERE: CLAIM})


def _write(placement: Placement, *changes: Change) -> list[CloudError | None]:
    return AllocationWriter(placement.api()).write(changes)


def _claim_a_change(_body: Body) -> tuple[int, Body]:
    """Answer that the consumer has changed, although it reads as unchanged."""
    said = "consumer generation conflict - expected 2 but got 1"
    return 409, build_error(said, "placement.concurrent_update")


def _take_and_fail(status: int | None) -> Act:
    """Make the change, and answer with a status of a proxy, or have no memory left."""

    def fail(placement: Placement, body: Body) -> int:
        placement.take(body, "1.28")
        if status is None:
            raise MemoryError
        return status

    return fail


def _send_twice(placement: Placement, body: Body) -> None:
    """Make the change, and then once more, as a proxy does that lost the first answer."""
    for consumer in body:
        placement.held.pop(consumer)


def _kinds(errors: t.Iterable[CloudError | None]) -> list[type[CloudError] | None]:
    return [error and type(error) for error in errors]


# One request


def test_all_changes_are_sent_in_one_request(placement: Placement) -> None:
    changes = _removals(placement)

    assert _write(placement, *changes) == [None, None, None]
    assert placement.posts == [("1.28", [change.consumer for change in changes])]
    assert placement.held == {}


def test_empty_list_of_changes_sends_no_request(placement: Placement) -> None:
    assert (_write(placement), placement.posts) == ([], [])


def test_kept_provider_is_written_unchanged(placement: Placement) -> None:
    consumer = placement.give(1, VCPU=2, DISK_GB=5)
    before = _allocation(placement, consumer)
    _write(placement, build_change(before, resources={HERE: {"DISK_GB": 5}}))

    assert placement.held[consumer]["allocations"] == {HERE: {"resources": {"DISK_GB": 5}}}
    assert placement.held[consumer]["generation"] == 2


def test_pair_is_written_completely_or_not_at_all(placement: Placement) -> None:
    swap = _swap(placement)
    placement.give(2, generation=2, VCPU=2)
    before = dict(placement.held)

    assert _kinds(_write(placement, swap)) == [AllocationConflict]
    assert placement.held == before
    assert [consumers for _version, consumers in placement.posts] == [[uuid(1), uuid(2)]]


# Refused


def test_refused_request_is_split_and_only_changed_consumers_are_refused(
    placement: Placement,
) -> None:
    changes = _removals(placement)
    moved = placement.give(1, generation=2, VCPU=1)

    assert _kinds(_write(placement, *changes)) == [None, AllocationConflict, None]
    assert list(placement.held) == [moved] and placement.held[moved]["generation"] == 2
    assert [len(consumers) for _version, consumers in placement.posts] == [3, 1, 1]


def test_consumer_recreated_at_the_same_generation_during_a_split_is_not_written(
    placement: Placement,
) -> None:
    """Nova empties a server and allocates for it again while a request is split.

    Its generation is 1 again.
    """
    changes = _removals(placement)
    placement.give(0, generation=2, VCPU=1)

    def reallocate(body: Body) -> int | tuple[int, Body] | None:
        placement.give(2, VCPU=7)
        return refuse(409)(body)

    placement.faults = [reallocate]

    assert _kinds(_write(placement, *changes)) == [AllocationConflict, None, AllocationConflict]
    assert placement.held[uuid(2)]["allocations"] == {HERE: {"resources": {"VCPU": 7}}}


def test_changes_of_a_repeated_request_of_which_one_has_changed_since_say_so(
    placement: Placement,
) -> None:
    """The others have what was to be written: nobody may say that they were left alone."""

    def repeat(body: Body) -> None:
        _send_twice(placement, body)
        placement.give(1, VCPU=4)

    placement.faults = [repeat]
    errors = _write(placement, *_removals(placement))

    assert _kinds(errors) == [CloudError, AllocationConflict, CloudError]
    assert ["already has" in str(error) for error in errors] == [True, False, True]


def test_consumer_changed_by_others_in_a_request_without_effect_has_changed(
    placement: Placement,
) -> None:
    """One that is unchanged shows that Placement made nothing of the request."""
    changes = _removals(placement)
    placement.give(1)
    errors = _write(placement, *changes)

    assert _kinds(errors) == [None, AllocationConflict, None]
    assert "already has" in str(errors[1])


def test_only_change_whose_request_a_proxy_sent_twice_says_so(placement: Placement) -> None:
    placement.faults = [lambda body: _send_twice(placement, body)]
    (error,) = _write(placement, _removal(placement, 1))

    assert _kinds([error]) == [CloudError]
    assert "unknown" in str(error) and "already has" in str(error)


@pytest.mark.parametrize("count", [1, 3])
def test_repeated_request_whose_effect_a_cache_hides_leaves_the_outcome_unknown(
    placement: Placement, count: int
) -> None:
    """A proxy sends each request twice, and a cache answers with what was there before it."""
    changes = _removals(placement, count)
    placement.faults = [_claim_a_change] * (1 + count)
    errors = _write(placement, *changes)

    assert _kinds(errors) == [CloudError] * count
    assert all("unknown" in str(error) for error in errors)


def test_conflict_of_a_provider_is_not_taken_for_a_change_of_the_consumer(
    placement: Placement,
) -> None:
    """Its consumer is unchanged, as it should be."""
    said = "Inventory and/or allocations changed while attempting to allocate"
    placement.faults = [lambda _body: (409, build_error(said, "placement.concurrent_update"))]
    (error,) = _write(placement, _removal(placement, 1))

    assert isinstance(error, AllocationConflict) and said in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409])
def test_refusal_for_another_cause_is_final_and_not_a_conflict(
    placement: Placement, status: int
) -> None:
    changes = _removals(placement, 2)
    placement.faults = [refuse(status)] * 3

    assert _kinds(_write(placement, *changes)) == [WriteRefused, WriteRefused]
    assert len(placement.posts) == 3 and len(placement.held) == 2


# Seen before it is written


def test_consumer_recreated_at_the_same_generation_has_changed(placement: Placement) -> None:
    """The generation of an emptied consumer starts again at 1."""
    change = _removal(placement, 1)
    placement.give(1, VCPU=4)
    before = dict(placement.held)

    assert list(AllocationWriter(placement.api()).find_conflicts([change])) == [change.consumer]
    with pytest.raises(AllocationConflict, match="has just changed"):
        AllocationWriter(placement.api()).replace(change)
    assert (placement.posts, placement.held) == ([], before)


def test_single_change_is_made_or_raises_the_refusal(placement: Placement) -> None:
    writer, removal = AllocationWriter(placement.api()), _removal(placement, 1)
    writer.replace(removal)
    assert placement.held == {}

    refused = _removal(placement, 2)
    placement.faults = [refuse(403)]
    with pytest.raises(WriteRefused, match="answered 403"):
        writer.replace(refused)


def test_only_a_change_whose_consumers_have_changed_has_a_conflict(placement: Placement) -> None:
    writer, swap = AllocationWriter(placement.api()), _swap(placement)
    removals = [_removal(placement, 3)]
    assert writer.find_conflicts([*removals, swap]) == {}

    # The partner of the pair.
    placement.give(2)
    assert list(writer.find_conflicts([*removals, swap])) == [swap.consumer]


def test_unreadable_consumer_is_not_reported_as_unchanged(placement: Placement) -> None:
    changes = _removals(placement)
    placement.reads_fail = True

    with pytest.raises(CloudError, match="answered 500"):
        AllocationWriter(placement.api()).find_conflicts(changes)


# A record of a consumer without allocations


def _creation(placement: Placement, generation: int) -> Change:
    """Return the change that gives a consumer allocations, which has a record and none."""
    placement.records[uuid(1)] = generation
    held = _allocation(placement, uuid(1))
    return build_change(held, resources={HERE: CLAIM}, project="p", user="u")


@pytest.mark.parametrize("generation", [0, 3])
def test_generation_of_a_record_is_used_by_the_next_write(
    placement: Placement, generation: int
) -> None:
    change, other = _creation(placement, generation), _removal(placement, 2)
    writer = AllocationWriter(placement.api())

    assert _kinds(writer.write([change, other])) == [RecordWithoutAllocations, None]
    assert placement.held == {}
    assert writer.write([change]) == [None]
    assert placement.held[uuid(1)]["generation"] == generation + 1


def test_generation_of_a_record_guards_the_write(placement: Placement) -> None:
    """What others write between both proofs is not overwritten."""
    change, writer = _creation(placement, 0), AllocationWriter(placement.api())
    writer.write([change])
    placement.records[uuid(1)] = 2

    assert _kinds(writer.write([change])) == [AllocationConflict]
    assert placement.held == {}


def test_allocation_of_a_live_server_that_no_answer_shows_is_not_overwritten(
    placement: Placement,
) -> None:
    """Without the record of its project or user, it is in use and in no answer."""
    placement.give(1, generation=3, VCPU=4)
    placement.hidden.add(uuid(1))
    placement.stock = {HERE: {"VCPU": inventory(8)}, THERE: {"VCPU": inventory(8)}}
    before = dict(placement.held)
    change = build_change(
        _allocation(placement, uuid(1)), resources={THERE: CLAIM}, project="p", user="u"
    )
    writer = AllocationWriter(placement.api())

    for _attempt in range(2):
        (error,) = writer.write([change])
        assert error and error.reason.id == "hidden_allocation_possible" and HERE in str(error)
    assert placement.held == before


# Without an answer


@pytest.mark.parametrize(
    "act",
    [
        *map(_take_and_fail, [400, 401, 403, 404, 409, 502, None]),
        Placement.unanswered,
        # Nobody else makes all changes of a batch at one moment.
        _send_twice,
    ],
)
def test_write_whose_answer_is_lost_or_wrong_is_recognized_by_the_allocations(
    placement: Placement, act: Act
) -> None:
    placement.faults = [lambda body: act(placement, body)]

    assert _write(placement, *_removals(placement)) == [None, None, None]
    assert len(placement.posts) == 1 and placement.held == {}


def test_write_that_is_answered_with_an_impossible_date_is_recognized_by_the_allocations(
    placement: Placement,
) -> None:
    api = placement.api()
    api.needs_one_clock = True
    answer = api._adapter.request

    def request(url: str, method: str, **options: t.Any) -> t.Any:
        reply = answer(url, method, **options)
        if method == "POST":
            reply.headers = {"Date": "Mon, 23 Nov 99999 10:00:00 GMT"}
        return reply

    changes = _removals(placement)
    api._adapter.request = request

    assert AllocationWriter(api).write(changes) == [None, None, None]
    assert placement.held == {}


@pytest.mark.parametrize("status", [None, 404, 408, 429, 500, 502, 503, 504])
def test_lost_write_is_sent_again(placement: Placement, status: int | None) -> None:
    placement.faults = [(lambda _body: status) if status else placement.lost] * 2

    assert _write(placement, *_removals(placement)) == [None, None, None]
    assert len(placement.posts) == 3


def test_write_that_stays_lost_is_given_up_and_not_made(placement: Placement, clock: Clock) -> None:
    placement.faults = [lambda _body: 503] * 1000
    began = clock.now
    errors = _write(placement, *_removals(placement))

    assert all(error and "answered 503" in str(error) for error in errors)
    assert len(placement.held) == 3
    assert 1 < len(placement.posts) < 20 and clock.now - began < 10


def _hang(placement: Placement, clock: Clock) -> int:
    """A worker that waits for its database goes on after the time-out of a proxy."""
    clock.sleep(60)
    return 504


def _sleep(placement: Placement, clock: Clock) -> int:
    """The machine sleeps, and the proof is as old as that."""
    clock.asleep += 8 * 3600
    return 503


def _hide(placement: Placement, clock: Clock) -> int:
    """Nothing can be read from now on."""
    placement.reads_fail = True
    return 502


def _accept(placement: Placement, clock: Clock) -> int:
    """Something on the way answers for Placement."""
    return 204


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (_hang, "504"),
        (_hang, "still take effect"),
        (_sleep, "503"),
        (_hide, "unknown"),
        (_accept, "other allocations"),
    ],
)
def test_write_without_an_effect_is_not_counted_nor_repeated_without_a_proof(
    placement: Placement, clock: Clock, act: t.Callable[[Placement, Clock], int], said: str
) -> None:
    changes = _removals(placement)
    placement.faults = [lambda _body: act(placement, clock)]
    errors = _write(placement, *changes)

    assert _kinds(errors) == [CloudError] * 3 and all(said in str(error) for error in errors)
    assert len(placement.posts) == 1 and len(placement.held) == 3


def test_lost_write_is_not_sent_again_after_a_change_by_others(placement: Placement) -> None:
    def moves_and_is_lost(_body: Body) -> int:
        placement.give(1, generation=2, VCPU=4)
        return 503

    changes = _removals(placement)
    placement.faults = [moves_and_is_lost]
    errors = _write(placement, *changes)

    assert _kinds(errors) == [CloudError] * 3
    assert len(placement.posts) == 1 and len(placement.held) == 3
    assert ["unknown" in str(error) for error in errors] == [False, True, False]


@pytest.mark.parametrize("count", [1, 3])
def test_late_write_that_conflicts_with_its_repetition_is_counted_as_made(
    placement: Placement, count: int
) -> None:
    placement.faults = [placement.late]

    assert _write(placement, *_removals(placement, count)) == [None] * count
    assert len(placement.posts) == 2 and placement.held == {}


def test_repetition_refused_for_another_cause_leaves_the_outcome_unknown(
    placement: Placement,
) -> None:
    """It is not a conflict, because that would mean that the run certainly did not change it."""

    def moves(_body: Body) -> None:
        placement.give(0, generation=2, VCPU=4)

    placement.faults = [placement.lost, moves]
    errors = _write(placement, *_removals(placement, 1))

    assert _kinds(errors) == [CloudError]


def test_accepted_write_is_waited_for_on_other_nodes_of_the_database(
    placement: Placement, clock: Clock
) -> None:
    changes = _removals(placement, 1)
    placement.faults = [lambda body: placement.under_way.append(body) or 204]
    clock.alarm = lambda: placement.take(placement.under_way[0], "1.28")

    assert _write(placement, *changes) == [None]
    assert len(placement.posts) == 1


def test_writes_delayed_too_long_by_another_are_not_started(
    placement: Placement, clock: Clock
) -> None:
    """Their proof is as old as the wait."""

    def hangs(_body: Body) -> int:
        clock.sleep(120)
        return 504

    changes = _removals(placement)
    placement.give(1, generation=2, VCPU=4)
    placement.faults = [None, hangs]
    first, *others = _write(placement, *changes)

    assert "504" in str(first) and _kinds(others) == [ProofExpired, ProofExpired]
    assert len(placement.posts) == 2 and len(placement.held) == 3


# Types


@pytest.mark.parametrize("type", [None, "INSTANCE"])
def test_consumer_keeps_its_type_by_default(placement: Placement, type: str | None) -> None:
    """From 1.38 on an untyped consumer cannot be written back unchanged."""
    consumer = placement.give(1, type, VCPU=2, DISK_GB=5)
    before = _allocation(placement, consumer)

    assert _write(placement, build_change(before, resources={THERE: CLAIM})) == [None]
    assert [version for version, _consumers in placement.posts] == ["1.28"]
    assert placement.held[consumer]["type"] == type


@pytest.mark.parametrize("held", [0, 2])
def test_consumer_can_be_given_a_type(placement: Placement, held: int) -> None:
    consumer = placement.give(1, **({"VCPU": held} if held else {}))
    before = _allocation(placement, consumer)
    change = build_change(before, resources={HERE: CLAIM}, project="p", user="u", type="INSTANCE")

    assert _write(placement, change) == [None]
    assert [version for version, _consumers in placement.posts] == ["1.38"]
    assert placement.held[consumer]["type"] == "INSTANCE"


def test_removed_consumer_needs_no_type(placement: Placement) -> None:
    removals = [_removal(placement, 1, "INSTANCE"), _removal(placement, 2)]

    assert _write(placement, *removals) == [None, None]
    assert placement.posts == [("1.28", [uuid(1), uuid(2)])]


def test_results_belong_to_their_changes_across_two_requests(placement: Placement) -> None:
    typing = build_change(_allocation(placement, placement.give(1, VCPU=2)), type="INSTANCE")
    removals = [_removal(placement, 2), _removal(placement, 3)]
    placement.give(3, generation=2, VCPU=2)
    placement.give(1, generation=2, VCPU=2)

    errors = _write(placement, removals[1], typing, removals[0])

    assert _kinds(errors) == [AllocationConflict, AllocationConflict, None]
    assert placement.posts == [("1.28", [uuid(2)])]
