# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of the rules for a model's Nova, compared with the truth.

And the difficult situations of a Nova.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._core.facts.listings_index import (
    ListingsIndex,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.change import Change
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import (
    SETTLED_STATUSES,
    UNSHELVE_ACTION,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    find_candidates,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    NO_MINIMUM_AGE,
    judge,
)

if t.TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import Migration
    from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
        Allocations,
    )
    from ansible_collections.osops.placement.plugins.module_utils._core.models.verdict import (
        Finding,
    )
    from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_lives import Life
    from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_model import Nova
    from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World


def changing(nova: Nova) -> list[Finding]:
    """Return the findings of all kinds that a run would change."""
    snapshot = nova.world.snapshot()
    candidates = set(find_candidates(ListingsIndex(snapshot)))
    found = judge(snapshot, NO_MINIMUM_AGE)
    return [
        finding
        for finding in found
        if isinstance(finding.change, Change) and finding.consumer in candidates
    ]


def lost(nova: Nova, change: Change) -> dict[str, dict[str, int]]:
    """Return what `change` removes that a server needs, by provider and class.

    Nothing may be removed from a server itself that it needs; from a migration's allocation only
    what its server, or another migration of it, has as well.
    """
    before, after = (_together(change, side) for side in ("before", "after"))
    move = nova.world.migrations.get(change.consumer)
    server = move.server if move else change.consumer
    others: list[Allocations] = []
    if move:
        migrations = [
            row.uuid
            for row in nova.world.migrations.values()
            if row.server == server and row.uuid != change.consumer
        ]
        others = [nova.held(other) for other in (server, *migrations)]
    taken: dict[str, dict[str, int]] = {}
    for provider, share in nova.needed(server).items():
        for cls, need in share.items():
            elsewhere = sum(other.get(provider, {}).get(cls, 0) for other in others)
            had, has = (
                min(need, elsewhere + document.get(provider, {}).get(cls, 0))
                for document in (before, after)
            )
            # If all allocations together are too small for the guest, Nova has lost the right one,
            # and this one is of an earlier size.
            if has < had and (not move or had == need):
                taken.setdefault(provider, {})[cls] = had - has
    return taken


def _together(change: Change, side: str) -> dict[str, dict[str, int]]:
    """Return the allocations of a change's consumer and its partner on one side of it."""
    sums = _together(change.partner, side) if change.partner else {}
    for provider, share in getattr(change, side)["allocations"].items():
        for cls, amount in share["resources"].items():
            held = sums.setdefault(provider, {})
            held[cls] = held.get(cls, 0) + amount
    return sums


def make(nova: Nova, change: Change) -> None:
    if change.partner:
        make(nova, change.partner)
    nova.put(
        change.consumer,
        {provider: share["resources"] for provider, share in change.after["allocations"].items()},
    )


def _order_of_times(world: World) -> dict[str | None, int]:
    """Return the order of the times that are compared with each other.

    Lives may differ in all other times.
    """
    moved = {time for row in world.migrations.values() for time in (row.created_at, row.updated_at)}
    unshelved = {
        action.start_time
        for did in world.actions.values()
        for action in did
        if action.action == UNSHELVE_ACTION
    }
    return {time: place for place, time in enumerate(sorted(moved | unshelved, key=str))}


def _shares(allocations: Allocations) -> list[t.Any]:
    return [(provider, *share.items()) for provider, share in allocations.items()]


class Watch:
    """Checks each state of each life, and the same state only once.

    It counts what it has seen.
    """

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.moves: collections.Counter[str] = collections.Counter()
        self.complete: set[tuple[str, str]] = set()
        self._seen: set[int] = set()

    def __call__(self, life: Life) -> None:
        nova, world = life.nova, life.nova.world
        order = _order_of_times(world)
        state = hash(
            (
                *(
                    (row.uuid, row.status, row.task_state, row.host, row.node)
                    for row in world.servers.values()
                ),
                *world.deleted,
                *world.marked_deleted,
                *(
                    (
                        d.replace(row, created_at=None, updated_at=None),
                        order[row.created_at],
                        order[row.updated_at],
                    )
                    for row in world.migrations.values()
                ),
                *world.unlisted_migrations,
                *((root, node.host, node.name) for root, node in world.nodes.items()),
                *(provider.name for provider in world.providers.values()),
                *((service.host, service.state) for service in world.services),
                *sorted(nova.up),
                *(
                    (consumer, *_shares(held.resources))
                    for consumer, held in world.allocations.items()
                ),
                *(
                    (server, place, *_shares(share))
                    for server, places in nova.copies.items()
                    for place, share in places.items()
                ),
                *(
                    (server, place, *_shares(share))
                    for server, places in nova.coming.items()
                    for place, share in places.items()
                ),
                *(
                    (
                        *(
                            action.action,
                            action.is_finished,
                            action.placing_hosts,
                            action.shelving_hosts,
                            action.unshelving_hosts,
                            order.get(action.start_time),
                        ),
                        *(
                            (event.event, event.host, event.result, event.failed_in_copy)
                            for event in action.events
                        ),
                    )
                    for server, row in world.servers.items()
                    for action in world.actions.get(server, ())
                    if not row.host
                    or nova.host(server) not in nova.held(server)
                    or action.action == UNSHELVE_ACTION
                ),
            )
        )
        if state in self._seen:
            return
        for name, is_it in half_way.items():
            self.moves[name] += is_it(Situation(nova, life.server))
        for finding in changing(nova):
            assert finding.change
            self.kinds[finding.kind] += 1
            taken = lost(nova, finding.change)
            assert not taken, (
                f"{life}\n{finding.kind} of {finding.consumer} takes {taken}: {finding.reason}"
            )
        self._seen.add(state)

    def clean(self, life: Life) -> None:
        """Make all changes at once, and check again."""
        for finding in changing(life.nova):
            assert finding.change
            make(life.nova, finding.change)
        self(life)


class Situation:
    """The words that describe halfway moves."""

    def __init__(self, nova: Nova, server: str) -> None:
        self.nova = nova
        self.server = server
        self.row = nova.world.servers.get(server)
        self.home = nova.host(server) if self.row else None
        self.rests = bool(
            self.row
            and self.row.status in SETTLED_STATUSES
            and self.row.task_state is None
            and self.home
        )

    def holds_home(self) -> bool:
        return self.home in self.nova.held(self.server)

    def guest_home(self) -> bool:
        return self.nova.has_guest(self.server, self.home)

    def moved(self, kinds: t.Collection[str], *statuses: str) -> list[Migration]:
        """Return the moves of the server that ended so."""
        rows = self.nova.world.migrations.values()
        return [
            row
            for row in rows
            if row.server == self.server and row.type in kinds and row.status in statuses
        ]

    def needs_allocation_of(self, kinds: t.Collection[str], *statuses: str) -> bool:
        """The server is on its host without an allocation there.

        Such a migration has what the guest needs.
        """
        if not self.rests or self.holds_home() or not self.guest_home():
            return False
        return any(self.home in self.nova.held(row.uuid) for row in self.moved(kinds, *statuses))

    def unshelved_elsewhere(self) -> bool:
        """The server is where it was unshelved, and no move of it ended there."""
        ends = {
            row.dest_compute
            for row in self.moved((*COLD, *LIVE, *EVACUATION), "confirmed", "completed", "done")
        }
        did = self.nova.world.actions.get(self.server, ())
        return (
            self.rests
            and self.row is not None
            and bool(ends)
            and any(self.row.host in action.unshelving_hosts for action in did)
            and not ({self.row.host} & ends)
        )

    def left_a_failed_move(self) -> bool:
        """The server is elsewhere than the destination of a failed live migration or evacuation.

        It was there through another move.
        """
        failed = {row.dest_compute for row in self.moved((*LIVE, *EVACUATION), "error", "failed")}
        left = {row.source_compute for row in self.moved((*COLD, *LIVE), "confirmed", "completed")}
        left |= {row.dest_compute for row in self.moved(COLD, "reverted")}
        return self.rests and self.row is not None and bool((failed & left) - {self.row.host})

    def holds_own_move(self) -> bool:
        """A failed move within the host still has an allocation there."""
        failed = (
            row for row in self.moved(COLD, "error") if row.source_compute == row.dest_compute
        )
        return any(self.home in self.nova.held(row.uuid) for row in failed)


COLD, LIVE, EVACUATION = ("resize", "migration"), ("live-migration",), ("evacuation",)

half_way: dict[str, Callable[[Situation], bool]] = {
    "live migration reset at start-up": lambda now: now.needs_allocation_of(LIVE, "error"),
    "live migration rolled back without its claim": lambda now: now.needs_allocation_of(
        LIVE, "failed", "cancelled"
    ),
    "cold migration rolled back without its claim": lambda now: now.needs_allocation_of(
        COLD, "error"
    ),
    "resize reverted without its claim": lambda now: now.needs_allocation_of(COLD, "reverted"),
    "cold migration cut while it powered off": lambda now: (
        now.rests and bool(now.moved(COLD, "migrating"))
    ),
    "libvirt went on without Nova": lambda now: (
        now.rests
        and not now.guest_home()
        and bool(now.moved(LIVE, "error"))
        and bool(now.nova.copies.get(now.server))
    ),
    "unconfirmed resize with an errored migration": lambda now: (
        now.row is not None and now.row.status == "VERIFY_RESIZE" and bool(now.moved(COLD, "error"))
    ),
    "resize within a host rolled back without its claim": lambda now: (
        now.rests and now.guest_home() and now.holds_own_move()
    ),
    "evacuated and not yet moved": lambda now: (
        now.rests and not now.guest_home() and bool(now.moved(EVACUATION, "pre-migrating"))
    ),
    "evacuation completed by the source before its end": lambda now: (
        now.rests
        and bool(now.moved(EVACUATION, "completed"))
        and now.holds_home()
        and not now.guest_home()
    ),
    "unshelved where no move ended": Situation.unshelved_elsewhere,
    "left where a move had failed to": Situation.left_a_failed_move,
    "deleted in the middle of a move": lambda now: (
        now.row is None
        and bool(set(now.nova.world.allocations) & now.nova.world.unlisted_migrations)
    ),
}
