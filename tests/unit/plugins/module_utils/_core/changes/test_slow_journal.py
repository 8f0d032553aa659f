"""What happens while the journal is being written, after the proof and before the write.

A network file system can take minutes for that, and a laptop can be closed. What happens to a tree
of providers meanwhile is in `test_provider_trees`.
"""

from __future__ import annotations

import dataclasses as d
import types
import typing as t
from collections.abc import Callable, Iterable

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.changes import remediation
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.clients import allocation_writer
from .......plugins.module_utils._core.clients.api import Api
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.plan import Step
from ... import nova_operations
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import Life, booted
from ...nova_model import Nova
from .test_nova_races import Cloud, open_collector


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


def _live_on_two_hosts() -> Life:
    """Return the life of a server with an allocation on a second host, at generation 1."""
    life = booted(Nova())
    nova, world = life.nova, life.nova.world
    first, second, _third = nova.hosts
    nova.put(life.server, {**nova.share(first, large=False), **nova.share(second, large=False)})
    world.allocations[life.server] = d.replace(world.allocations[life.server], generation=1)
    return life


def _remediate(cloud: Cloud, journal: SlowJournal) -> list[Outcome]:
    newest = types.SimpleNamespace(max_microversion=(1, 37))
    adapter = types.SimpleNamespace(
        get_endpoint=lambda: "http://placement",
        get_endpoint_data=lambda: newest,
        request=cloud.request,
    )
    writer = allocation_writer.AllocationWriter(Api("Placement", adapter, (1, 28)))
    with open_collector(cloud) as reading:
        found = judge(reading.collect(Scope()), NO_MINIMUM_AGE)
        steps = [
            Step(finding.id, finding.kind, finding.change)
            for finding in found
            if isinstance(finding.change, Change)
        ]
        assert [step.kind for step in steps] == ["extra_host"]
        run = remediation.Remediation(reading, NO_MINIMUM_AGE, writer, t.cast("t.Any", journal))
        return run.run(steps, str)


def test_change_is_made_after_a_quick_journal() -> None:
    life = _live_on_two_hosts()
    journal = SlowJournal(lambda: None)

    (outcome,) = _remediate(Cloud(life, {}), journal)

    assert outcome.changed
    assert journal.after == [outcome]


def test_move_that_brings_the_generation_back_is_not_overwritten() -> None:
    """A cold migration empties the server's consumer, and the claim makes it anew.

    Its generation is then 1 again (placement/objects/consumer.py), as it was at detection, and
    would let the write pass.
    """
    life = _live_on_two_hosts()
    nova, cloud = life.nova, Cloud(life, {})
    third = nova.hosts[2]
    move = nova_operations.resize(nova, life.server, (third,), larger=False)
    journal = SlowJournal(
        lambda: life.go(life.start("migrate", move, life.server), until="claimed")
    )

    (outcome,) = _remediate(cloud, journal)

    assert nova.world.allocations[life.server].generation == 1
    assert list(nova.held(life.server)) == [third]
    assert (cloud.written, outcome.changed) == ([], False)
    assert outcome.reason.id == "allocation_conflict"
    assert journal.after == [outcome]


def test_proof_that_grew_old_while_the_journal_was_written_is_not_relied_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = _live_on_two_hosts()
    now = [0.0]
    monkeypatch.setattr(remediation, "read_monotonic_clock", lambda: now[0])
    cloud, journal = Cloud(life, {}), SlowJournal(lambda: now.append(now.pop() + 61))

    (outcome,) = _remediate(cloud, journal)

    assert (cloud.written, outcome.outcome) == ([], "failed")
    assert outcome.reason.id == "proof_too_old"
    assert "too old" in outcome.reason
    assert journal.after == [outcome]


def test_silent_placement_after_the_journal_leaves_everything_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = _live_on_two_hosts()
    cloud = Cloud(life, {})

    def silence() -> None:
        def refuse(*_arguments: t.Any) -> t.Any:
            raise CloudError("Placement does not answer.")

        monkeypatch.setattr(allocation_writer.AllocationWriter, "find_conflicts", refuse)

    (outcome,) = _remediate(cloud, SlowJournal(silence))

    assert (cloud.written, outcome.outcome) == ([], "failed")
    assert outcome.reason.id == "cloud_error"
