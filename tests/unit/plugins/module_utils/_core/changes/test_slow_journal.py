"""What happens while the journal is being written, after the proof and before the write.

A network file system can take minutes for that, and a laptop can be closed. What happens to a tree
of providers meanwhile is in `test_provider_trees`.
"""

import typing as t
from collections.abc import Callable, Iterable

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.changes import remediation
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.clients import allocation_writer
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.plan import Step
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import boot
from .test_nova_races import Cloud, open_collector, remediate


class SlowJournal:
    """A journal that keeps its records, and lets something happen while it writes one."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile
        self.before: list[Step] = []
        self.after: list[Outcome] = []

    def record_before(self, steps: Iterable[Step], **_facts: t.Any) -> None:
        self.before += steps
        self.meanwhile()

    def record_after(self, outcomes: Iterable[Outcome]) -> None:
        self.after += outcomes


def _live_on_two_hosts() -> Cloud:
    """Return the cloud of a server with an allocation on a second host, at generation 1."""
    moment, _server = boot(0, 1)
    return Cloud([moment])


def _remediate(cloud: Cloud, journal: SlowJournal) -> list[Outcome]:
    with open_collector(cloud) as reading:
        found = judge(reading.collect(Scope()), NO_MINIMUM_AGE)
        assert [row.kind for row in found if isinstance(row.change, Change)] == ["extra_host"]
        return remediate(cloud, reading, found, journal=journal)


def test_change_is_made_after_a_quick_journal() -> None:
    journal = SlowJournal(lambda: None)

    (outcome,) = _remediate(_live_on_two_hosts(), journal)

    assert outcome.changed
    assert journal.after == [outcome]


def test_move_that_brings_the_generation_back_is_not_overwritten() -> None:
    """A cold migration empties the server's consumer, and the claim makes it anew.

    Its generation is then 1 again (placement/objects/consumer.py), as it was at detection, and
    would let the write pass.
    """
    moment, server = boot(0, 1)
    cloud, third = Cloud([moment]), list(moment.nodes)[2]

    def migrate() -> None:
        del moment.allocations[server]
        moment.hold(server, third)

    journal = SlowJournal(migrate)

    (outcome,) = _remediate(cloud, journal)

    assert moment.allocations[server].generation == 1
    assert list(moment.list_held(server)) == [third]
    assert (cloud.written, outcome.changed) == ([], False)
    assert outcome.reason.id == "allocation_conflict"
    assert journal.after == [outcome]


def test_proof_that_grew_old_while_the_journal_was_written_is_not_relied_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(remediation, "read_monotonic_clock", lambda: now[0])
    cloud, journal = _live_on_two_hosts(), SlowJournal(lambda: now.append(now.pop() + 61))

    (outcome,) = _remediate(cloud, journal)

    assert (cloud.written, outcome.outcome) == ([], "failed")
    assert outcome.reason.id == "proof_too_old"
    assert journal.after == [outcome]


def test_silent_placement_after_the_journal_leaves_everything_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = _live_on_two_hosts()

    def silence() -> None:
        def refuse(*_arguments: t.Any) -> t.Any:
            raise CloudError("Placement does not answer.")

        monkeypatch.setattr(allocation_writer.AllocationWriter, "find_conflicts", refuse)

    (outcome,) = _remediate(cloud, SlowJournal(silence))

    assert (cloud.written, outcome.outcome) == ([], "failed")
    assert outcome.reason.id == "cloud_error"
