"""No sequence of Nova's own operations makes a needed allocation removable.

Each operation may be interrupted at any step.

First every operation with one interruption and every possible operation after it, systematically;
then whole lives, at random.
"""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._core.models.kind import REMEDIATE
from .......plugins.module_utils._core.models.kinds import KINDS, ORPHAN_KINDS
from .....examples import count_examples
from ...nova_lives import MOVES, OPERATIONS, Life, Watch, begun_with, do, half_way, lives
from ...nova_model import Aborted, Nova, RolledBack

Interrupt = Callable[[Life, t.Any], None]


INTERRUPTIONS: dict[str, Interrupt] = {
    "only Placement": lambda life, operation: None,
    "cut": lambda life, operation: life.cut(operation),
    "fails": lambda life, operation: life.fail(operation),
    "rolls back": lambda life, operation: life.fail(operation, RolledBack),
    "fails, and its handlers are cut": lambda life, operation: (
        life.fail(operation),
        life.go(operation, 1),
        life.cut(operation),
    )[0],
}
OF_LIVE_MIGRATIONS: dict[str, Interrupt] = {
    "cut, and libvirt goes on": lambda life, operation: life.cut(operation, alone=True),
    "aborted": lambda life, operation: life.fail(operation, Aborted),
}

AFTERMATHS = (
    ("finish", "reset", "start", "finish"),
    ("start", "finish", "poll", "reset", "poll", "delete", "purge"),
    ("reset", "finish", "migrate", "start", "confirm"),
    ("finish", "start", "reset", "down", "evacuate", "start"),
    ("reset to error", "start", "finish"),
    (
        "reset",
        "start",
        "finish",
        "reset",
        "shelve",
        "unshelve to host 2",
        "finish",
        "migrate",
        "revert",
    ),
)

RENAMED = [
    name if name in ("migrate", "evacuate") else pytest.param(name, marks=pytest.mark.long)
    for name in MOVES
]
# The other renamings differ from these only in the new name.
EVERY_STEP = ("rename", "rename the host", "rename the node", "replace")
AFTERMATHS_OF_RENAMING = (
    ("rename", "reset", "start", "finish"),
    ("finish", "reset", "rename", "down", "evacuate", "start"),
)


@pytest.fixture(name="watch", scope="module")
def _watch() -> Watch:
    """Judges each state once, whichever life it belongs to, and remembers what it has seen."""
    return Watch()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("placement", ["answers", "refuses"])
def test_needed_allocations_survive_any_operation_cut_at_any_step(
    watch: Watch, operation: str, placement: str
) -> None:
    watch.complete.add((operation, placement))
    name = operation.partition(" ")[0]
    interruptions = [
        *INTERRUPTIONS.values(),
        *(OF_LIVE_MIGRATIONS.values() if name == "live_migrate" else ()),
    ]
    homes = range(2) if "resize" in (name, *OPERATIONS[operation]) else range(1)
    for home, interrupt, aftermath in itertools.product(homes, interruptions, AFTERMATHS):
        steps = 0
        while _interrupted(watch, operation, home, placement, interrupt, steps, aftermath):
            steps += 1


def _interrupted(
    watch: Watch,
    operation: str,
    home: int,
    placement: str,
    interrupt: Interrupt,
    steps: int,
    aftermath: t.Iterable[str],
) -> bool:
    """Return whether the operation was still under way after so many steps."""
    life, begun = begun_with(Nova(pooled=True, devices=True), operation, home)
    life.go(begun, steps)
    if begun not in life.running:
        return False
    life.watch = watch
    life.happens(f"Placement {placement}", lambda: setattr(life.nova, "placement", placement))
    interrupt(life, begun)
    for after in aftermath:
        do(life, after, home)
    return True


@pytest.mark.parametrize(
    "kind", [kind.name for kind in KINDS if kind in ORPHAN_KINDS or kind.by_default == REMEDIATE]
)
def test_lives_reach_every_kind_of_orphan_and_every_default_change(watch: Watch, kind: str) -> None:
    """The properties only hold for what is reached."""
    _all_seen(watch)
    assert watch.kinds[kind]


@pytest.mark.parametrize("name", half_way)
def test_lives_reach_every_halfway_move(watch: Watch, name: str) -> None:
    _all_seen(watch)
    assert watch.moves[name]


def _all_seen(watch: Watch) -> None:
    """If only one of these tests is run, nothing was seen before it."""
    for operation, placement in itertools.product(OPERATIONS, ("answers", "refuses")):
        if (operation, placement) not in watch.complete:
            test_needed_allocations_survive_any_operation_cut_at_any_step(
                watch, operation, placement
            )


@pytest.mark.parametrize("operation", RENAMED)
def test_needed_allocations_survive_any_renaming_at_any_step(watch: Watch, operation: str) -> None:
    interruptions = [INTERRUPTIONS["cut"], INTERRUPTIONS["fails"]]
    if operation == "live_migrate":
        interruptions.append(OF_LIVE_MIGRATIONS["cut, and libvirt goes on"])
    for home, renaming in itertools.product(range(3), EVERY_STEP):
        for interrupt in interruptions:
            for aftermath in AFTERMATHS_OF_RENAMING:
                after = [what.replace("rename", renaming) for what in aftermath]
                steps = 0
                while _interrupted(watch, operation, home, "answers", interrupt, steps, after):
                    steps += 1


@hypothesis.settings(max_examples=count_examples(600))
@hypothesis.given(st.data())
def test_needed_allocations_survive_an_operator_who_changes_names(
    watch: Watch, data: st.DataObject
) -> None:
    data.draw(lives(watch=watch, clean=watch.clean, renames=True))


@hypothesis.settings(max_examples=count_examples(1500))
@hypothesis.given(st.data())
def test_needed_allocations_are_never_removable_after_any_life(
    watch: Watch, data: st.DataObject
) -> None:
    data.draw(lives(watch=watch, clean=watch.clean))
