"""Nothing is changed that an operation of Nova is about to write, however old it is.

Some operations show their end first. Everything before the operation happened weeks ago here, so
that only what the operation itself records protects an allocation.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.models.placement import Allocations
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import OPERATIONS, Life, begin, booted, do
from ...nova_model import Nova, RolledBack

# The services answer three hours after the operation (`world.ASKED_AT`).
RECENT, PAST = Policy(min_age=4 * 3600), Policy(min_age=3600)
ENDS = {
    "succeeds": lambda life, operation: None,
    "fails": lambda life, operation: life.fail(operation),
    "rolls back": lambda life, operation: life.fail(operation, RolledBack),
}


class CleanedNova(Nova):
    """A Nova in whose cloud orphans are looked for right before each write of an allocation."""

    def __init__(self) -> None:
        super().__init__(pooled=True)
        self.is_watched = False
        self.changed: dict[str, set[str]] = {"recent": set(), "any age": set()}

    def put(self, consumer: str, resources: Allocations) -> None:
        if self.is_watched and self.held(consumer):
            self.changed["recent"] |= self.find_changes(RECENT) & {consumer}
            self.changed["any age"] |= self.find_changes(NO_MINIMUM_AGE) & {consumer}
        super().put(consumer, resources)

    def find_changes(self, policy: Policy) -> set[str]:
        """Return the consumers that a run of every kind would change now."""
        changes = [finding.change for finding in judge(self.world.snapshot(), policy)]
        return {part.consumer for change in changes if change for part in change.parts}

    def grow_old(self) -> None:
        """Let weeks pass since everything that Nova has recorded."""
        world = self.world
        for rows in (world.servers, world.deleted, world.migrations):
            rows.update({uuid: _age(row) for uuid, row in rows.items()})
        world.actions.update(
            {
                server: tuple(
                    d.replace(_age(action), events=tuple(map(_age, action.events)))
                    for action in actions
                )
                for server, actions in world.actions.items()
            }
        )


def _age(row: t.Any) -> t.Any:
    changes = {}
    for field in d.fields(row):
        value = getattr(row, field.name)
        if isinstance(value, str) and value.startswith("2026-11-20T"):
            changes[field.name] = value.replace("2026-11-20T", "2026-11-01T")
    return d.replace(row, **changes)


def _watch(operation: str, end: str, steps: int) -> tuple[CleanedNova, Life, bool]:
    """Let an operation end that way after so many steps, and return whether it was under way."""
    nova = CleanedNova()
    life = Life(nova) if operation == "boot" else booted(nova)
    for before in OPERATIONS[operation]:
        do(life, before, 0)
    nova.grow_old()
    nova.is_watched = True
    begun = begin(life, operation.partition(" ")[0], 0)
    life.go(begun, steps)
    is_under_way = begun in life.running
    if is_under_way:
        ENDS[end](life, begun)
        life.go(begun)
    return nova, life, is_under_way


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_allocation_that_nova_is_about_to_write_is_kept(operation: str, end: str) -> None:
    steps = 0
    is_under_way = True
    while is_under_way:
        nova, _life, is_under_way = _watch(operation, end, steps)
        assert nova.changed["recent"] == set(), f"{operation} {end} after {steps} steps"
        steps += 1
    assert steps > 1


def test_end_of_a_confirmation_is_visible_before_its_last_write() -> None:
    """Without the age of the event, that migration would lose its allocation to a run."""
    nova, life, _is_under_way = _watch("confirm", "succeeds", 0)

    (migration,) = nova.changed["any age"]
    assert nova.world.migrations[migration].status == "confirmed"
    assert nova.held(life.server)


def test_leftover_is_found_once_its_event_is_old() -> None:
    nova, life, _is_under_way = _watch("confirm", "succeeds", 0)
    (migration,) = nova.world.migrations
    nova.is_watched = False
    nova.put(migration, nova.share(nova.hosts[1], large=False))

    assert nova.find_changes(RECENT) == set()
    assert nova.find_changes(PAST) == {migration}
    assert nova.held(life.server)
