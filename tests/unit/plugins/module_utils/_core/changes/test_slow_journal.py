"""What happens while the journal is being written, after the proof and before the write.

A network file system can take minutes for that, and a laptop can be closed.
"""

from __future__ import annotations

import types
import typing as t
from collections.abc import Callable, Iterable

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.changes import provider_trees, remediation
from .......plugins.module_utils._core.changes.outcomes import Outcome
from .......plugins.module_utils._core.clients import allocation_writer
from .......plugins.module_utils._core.models.change import Change, ProviderRemoval
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.plan import Step, TreeStep
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import boot
from ...world import World
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


# Deletions of providers, which Placement does not guard by a generation


class Site:
    """A provider of a host that is gone, and its deletion."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
        world = World()
        world.server(*[world.host("compute-1")] * 2)
        self.root = world.provider("compute-9")
        world.were_novas.add(self.root)
        self.generation = 1
        self.deleted: list[str] = []
        self.journal = SlowJournal(meanwhile)
        snapshot = world.snapshot()
        readers = types.SimpleNamespace(collect=lambda scope: snapshot, read=self._read)
        writer = types.SimpleNamespace(delete_tree=self._delete)
        for name, fake in (
            ("Collector", readers),
            ("ProviderStateReader", readers),
            ("ProviderWriter", writer),
        ):
            monkeypatch.setattr(provider_trees, name, lambda _session, fake=fake: fake)
        session: t.Any = types.SimpleNamespace(placement=None)
        self.remover = provider_trees.TreeRemover(
            session, NO_MINIMUM_AGE, t.cast("t.Any", self.journal), max_failures=1
        )
        (change,) = (
            found.change
            for found in judge(snapshot, NO_MINIMUM_AGE)
            if isinstance(found.change, ProviderRemoval)
        )
        self.step = TreeStep(f"orphaned_provider/{self.root}", "orphaned_provider", change)

    def remove(self) -> Outcome:
        (outcome,) = self.remover.remove_trees([self.step], str)
        return outcome

    def _read(self, uuid: str) -> t.Any:
        return types.SimpleNamespace(generation=self.generation, as_dict=lambda: {"uuid": uuid})

    def _delete(self, providers: Iterable[t.Any]) -> tuple[list[str], str]:
        self.deleted += [provider.uuid for provider in providers]
        return self.deleted, ""


def test_provider_is_deleted_after_a_quick_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, lambda: None)

    assert site.remove().changed
    assert site.deleted == [site.root]


def test_provider_that_changes_while_the_journal_is_written_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A nova-compute of that name has come back, and has written its inventory."""
    site = Site(monkeypatch, lambda: setattr(site, "generation", 2))

    outcome = site.remove()

    assert (site.deleted, outcome.outcome) == ([], "skipped")
    assert site.journal.after == [outcome]


def test_provider_stays_after_a_journal_that_took_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(provider_trees, "read_monotonic_clock", lambda: now[0])
    site = Site(monkeypatch, lambda: now.append(now.pop() + 61))

    outcome = site.remove()

    assert (site.deleted, outcome.outcome) == ([], "failed")
    assert "too old" in outcome.reason
    assert site.journal.after == [outcome]
