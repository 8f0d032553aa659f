# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the benchmark seeds, and what changes in it."""

from __future__ import annotations

import collections
import random

import pytest
from benchmark.layout import (
    HEALTHY,
    HEALTHY_TRANSITIONS,
    HOME,
    MOVED,
    ORPHAN_KINDS,
    ORPHANING_TRANSITIONS,
    OTHER,
    UNCONFIRMED,
    UNCONFIRMED_TRANSITION,
    Change,
    Placed,
    Scale,
    Situation,
    Transition,
    apply_changes,
    place_servers,
    plan_changes,
    undo_changes,
)

from ansible_collections.osops.placement.plugins.module_utils._core.models.kind import REMEDIATE
from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import KINDS

SCALE = Scale(30, 10)
TRANSITIONS = [*HEALTHY_TRANSITIONS, UNCONFIRMED_TRANSITION, *ORPHANING_TRANSITIONS]


def _plan(changed: int = 12, orphans: int = 16) -> tuple[list[Placed], list[Change]]:
    placed = list(place_servers(SCALE))
    return placed, plan_changes(placed, SCALE.hosts, changed, orphans, random.Random(7))


def test_cloud_without_orphans_has_only_servers_that_need_no_lookup() -> None:
    situations = collections.Counter(server.situation for server in place_servers(SCALE))

    assert situations == {HEALTHY: 294, MOVED: 6}


def test_cloud_with_orphans_has_lookalikes_too() -> None:
    situations = [server.situation for server in place_servers(Scale(30, 10, 0.1))]

    assert situations.count(UNCONFIRMED) == 1


def test_cloud_with_orphans_has_all_kinds() -> None:
    placed = place_servers(Scale(30, 10, 0.001))

    kinds = [server.situation.kind for server in placed if server.situation.orphans]
    assert sorted(kinds) == sorted(ORPHAN_KINDS)


def test_seeded_kinds_are_the_default_ones_and_unknown_consumer() -> None:
    default_kinds = {kind.name for kind in KINDS if kind.by_default == REMEDIATE}

    assert set(ORPHAN_KINDS) == default_kinds | {"unknown_consumer"}


def test_one_scale_is_always_seeded_in_the_same_way() -> None:
    assert list(place_servers(SCALE)) == list(place_servers(SCALE))


def test_changes_are_as_many_as_planned_and_begin_with_healthy_servers() -> None:
    placed, changes = _plan()

    befores = [change.before for change in changes if change.before]
    assert len(changes) == 28
    assert len(set(befores)) == len(befores)
    assert {before.situation for before in befores} == {HEALTHY}
    after = apply_changes(placed, changes)
    assert [server.situation for server in after].count(UNCONFIRMED) == 1
    orphans = collections.Counter(server.situation.kind for server in after)
    assert {kind: orphans[kind] for kind in ORPHAN_KINDS} == dict.fromkeys(ORPHAN_KINDS, 2)


def test_undone_changes_restore_every_server() -> None:
    placed, changes = _plan()

    restored = apply_changes(apply_changes(placed, changes), undo_changes(changes))

    assert sorted(restored, key=repr) == sorted(placed, key=repr)


def test_server_that_leaves_keeps_its_old_host_as_the_other_one() -> None:
    _placed, changes = _plan(changed=4, orphans=0)

    moved = next(change for change in changes if change.after and change.after.situation is MOVED)

    assert moved.before and moved.after
    assert moved.after.other == moved.before.home
    assert moved.after.home != moved.before.home
    assert set(moved.written) == {moved.after.home, moved.before.home}


def _list_new_allocations(transition: Transition) -> set[str]:
    """Return the hosts where an allocation is after a transition and was not before."""
    before = set()
    if transition.exists:
        before = {("server", OTHER if transition.leaves else HOME)}
    return {host for role, host in transition.after.allocations if (role, host) not in before}


@pytest.mark.parametrize("transition", TRANSITIONS, ids=lambda transition: str(transition.after))
def test_generations_show_every_new_allocation(transition: Transition) -> None:
    """Otherwise the seeded cloud would hide what a real one shows."""
    assert _list_new_allocations(transition) <= set(transition.writes)


@pytest.mark.parametrize("transition", TRANSITIONS, ids=lambda transition: str(transition.after))
def test_deletion_alone_shows_in_no_generation(transition: Transition) -> None:
    if not _list_new_allocations(transition):
        assert transition.writes == ()


@pytest.mark.parametrize(
    "situation", [transition.after for transition in ORPHANING_TRANSITIONS], ids=str
)
def test_orphans_are_among_the_allocations(situation: Situation) -> None:
    assert set(situation.orphans) <= set(situation.allocations)
    assert situation.kind


def test_what_only_placement_knows_is_not_saved_by_nova() -> None:
    """A reading must find these orphans by the generations of the providers alone."""
    _placed, changes = _plan()

    kinds = {
        change.after.situation.kind for change in changes if change.after and not change.in_nova
    }
    assert kinds == {"extra_host", "unknown_consumer"}
