# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""One consumer and all that a snapshot says about it: the questions that the rules ask, answered in one place.

Pure: no request, no clock.
"""

from __future__ import annotations

import dataclasses as d
import functools
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    is_earlier,
    seconds_between,
)
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    DELETING_ACTIONS,
    FAILED_MIGRATION_STATUSES,
    GUEST_LEAVING_MIGRATION_TYPES,
    MOVING_ACTIONS,
    SETTLED_STATUSES,
    SUCCESSFUL_MIGRATION_STATUSES,
    UNSHELVE_ACTION,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import group_by_tree

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Evidence,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )


@d.dataclass(frozen=True)
class ConsumerView:
    """A consumer, what it holds, and the server it is or whose migration it is.

    `get_subject` is the dossier of that server; for a consumer that Nova lists as no migration it is the consumer's own.
    """

    index: SnapshotIndex
    allocation: Allocation
    evidence: Evidence
    subject: Evidence
    migration: Migration | None

    @property
    def consumer(self) -> str:
        return self.allocation.consumer

    @property
    def server(self) -> Server | None:
        """The server as a direct look-up shows it now."""
        return self.subject.server.value

    @functools.cached_property
    def server_migrations(self) -> tuple[Migration, ...]:
        """The migrations of the server, newest first, from every answer that has any.

        A cell that is too slow for one of the questions is left out of its answer without a word.
        """
        answers = (
            self.index.get_listed_migrations(self.subject.uuid),
            *self.subject.host_migrations,
            self.subject.migrations,
        )
        known = {
            row.uuid: row
            for answer in answers
            for row in answer.value or ()
            if row.server == self.subject.uuid
        }
        return tuple(
            sorted(known.values(), key=lambda migration: migration.created_at or "", reverse=True)
        )

    @functools.cached_property
    def active_migration(self) -> Migration | None:
        """A migration of the server that is still under way."""
        return next(
            (migration for migration in self.server_migrations if not migration.ended), None
        )

    @functools.cached_property
    def own_tree(self) -> str | None:
        """The root provider of the compute node where the server is, whatever its state."""
        return self.index.find_tree_at(self.server.host, self.server.node) if self.server else None

    @functools.cached_property
    def settled(self) -> bool:
        """The server rests: nothing is being done to it and it is not on its way."""
        server = self.server
        return (
            server is not None
            and server.status in SETTLED_STATUSES
            and server.task_known
            and server.task_state is None
            and bool(server.host)
            and bool(server.node)
            and self.subject.migrations.value is not None
            and self.active_migration is None
            and self.unlisted_move is None
        )

    @property
    def unlisted_move(self) -> str | None:
        """Why the server may have moved though Nova lists no migration of it; None where it lists one or no move was ever asked for.

        An API worker that does not know the server's cell lists none. A worker that lists one knows the cell and so lists all.
        """
        if self.subject.migrations.value or self.server is None or not self.server.host:
            return None
        if self.subject.actions.value is None:
            return "whether a move of it was ever asked for could not be read"
        move = next(
            (action for action in self.subject.actions.value if action.action in MOVING_ACTIONS),
            None,
        )
        return (
            f"the action {move.action} of {move.start_time} was recorded and no migration is listed"
            if move
            else None
        )

    @functools.cached_property
    def arrived(self) -> bool:
        """The newest move that took place ended on the host where the server is said to be, or it was unshelved there since."""
        took_place = [
            migration
            for migration in self.server_migrations
            if migration.status in SUCCESSFUL_MIGRATION_STATUSES | {"reverted"}
        ]
        if not took_place:
            return True
        newest = took_place[0]
        end = newest.source_compute if newest.status == "reverted" else newest.dest_compute
        return self.server is not None and (
            end in (None, self.server.host) or self._was_unshelved_after(took_place)
        )

    def _was_unshelved_after(self, moves: Collection[Migration]) -> bool:
        """Tell whether the server was unshelved on its host after the last change of each of `moves`.

        An unshelve makes no migration. Its host saves itself as the server's before it makes the guest, and its event ends well only
        after that (nova/compute/manager.py, _unshelve_instance). A row that changed later may be of a move that ended later: an
        evacuation is `done` before the server's new host is saved.
        """
        newest = next(
            (
                answer.value
                for answer in self.subject.last_actions
                if answer.value and answer.value.action == UNSHELVE_ACTION
            ),
            None,
        )
        if newest is None or self.server is None or self.server.host not in newest.unshelving_hosts:
            return False
        return all(
            is_earlier(move.updated_at or move.created_at, newest.start_time) for move in moves
        )

    @property
    def is_settled_in_place(self) -> bool:
        """A server, not a migration of one, that is settled where its newest move took it."""
        return self.migration is None and self.settled and self.arrived

    def is_at_failed_destination(self, migration: Migration) -> bool:
        """Tell whether the server is said to be where a move ended that failed."""
        return (
            migration.status in FAILED_MIGRATION_STATUSES
            and self.server is not None
            and self.server.host == migration.dest_compute
        )

    def find_failed_move_to(self, roots: Collection[str]) -> Migration | None:
        """The newest failed move of the server to one of the trees `roots`, by host or node, that its guest may have survived there.

        An evacuation can fail when the guest already runs (nova/compute/manager.py, _do_rebuild_instance), and the hypervisors go on
        with a live migration of which a restarted nova-compute knows nothing (_reset_live_migration).
        """
        risky = [
            known
            for known in self.server_migrations
            if known.type in GUEST_LEAVING_MIGRATION_TYPES
            and known.status in FAILED_MIGRATION_STATUSES
        ]
        for known in risky:
            for root in roots:
                if self.index.may_be_at(
                    root, known.dest_compute, known.dest_node
                ) and not self._has_left_after(known, root):
                    return known
        return None

    def _has_left_after(self, failed: Migration, root: str) -> bool:
        """Tell whether the server left the tree `root` by a move that began after the last change of a `failed` one to there.

        A host has one domain of a server at most, so whatever the failed move left there is what the later move took away:

        * a confirmed resize or cold migration from there has powered it off and undefined it (nova/compute/manager.py, _resize_instance
          and _confirm_resize);
        * a completed live migration from there has moved it (_post_live_migration);
        * an evacuation from there was asked for by somebody who says that the host is dead, as for every evacuated server, and when it
          is back it destroys the guest (_destroy_evacuated_instances);
        * a reverted resize or cold migration to there has destroyed it (revert_resize, before `reverted` is saved).

        Moves between other hosts say nothing: after an evacuation that failed late, guests can run on both.
        """
        return any(
            self._is_move_away_from(root, later) and is_earlier(failed.updated_at, later.created_at)
            for later in self.server_migrations
        )

    def _is_move_away_from(self, root: str, move: Migration) -> bool:
        from_there = self.is_source(root, move)
        to_there = self.index.is_at(root, move.dest_compute, move.dest_node)
        if move.status == "reverted":
            return to_there and not from_there
        return move.status in SUCCESSFUL_MIGRATION_STATUSES and from_there and not to_there

    @property
    def healthy(self) -> bool:
        """A server that holds the tree of the host where it is, and no other host's."""
        if self.migration is not None or self.own_tree is None:
            return False
        return self.own_tree in self.trees and not self.other_trees and not self.doubtful_trees

    @functools.cached_property
    def migration_allocations(self) -> Mapping[str, Allocation]:
        """What the ended migrations of the server hold, by their uuid, those that hold nothing left out."""
        evidence_by_uuid = self.index.snapshot.evidence
        asked = (
            evidence_by_uuid[known.uuid].allocation.value
            for known in self.server_migrations
            if known.ended and known.uuid in evidence_by_uuid
        )
        return {
            allocation.consumer: allocation
            for allocation in asked
            if allocation and allocation.resources
        }

    @property
    def age_seconds(self) -> int | None:
        """The time since the claim was written; for a server without one, since Nova last changed the server."""
        if self.allocation.resources or self.server is None:
            return self.allocation.age_seconds
        return seconds_between(self.server.updated, self.subject.server.at)

    @functools.cached_property
    def trees(self) -> Mapping[str | None, frozenset[str]]:
        """The providers held, by their root; sharing providers belong to no tree and are left out."""
        return group_by_tree(self.allocation.resources, self.index)

    @functools.cached_property
    def other_trees(self) -> Mapping[str, frozenset[str]]:
        """The trees held that are another host's: a known compute node's, one's that is gone, or that of a migration's named source."""
        return {
            root: held
            for root, held in self.trees.items()
            if root is not None and root != self.own_tree and self._is_of_host(root)
        }

    @functools.cached_property
    def doubtful_trees(self) -> Mapping[str, frozenset[str]]:
        """The trees held that were a compute node's which Nova does not list, while it is not sure that nobody stands behind them."""
        others = {
            root: held
            for root, held in self.trees.items()
            if root is not None and root != self.own_tree
        }
        return {
            root: held
            for root, held in others.items()
            if self.index.has_nova_trait(root) and not self._is_of_host(root)
        }

    def _is_of_host(self, root: str) -> bool:
        return (
            root in self.index.nodes
            or self.find_migration_from(root) is not None
            or self.index.is_gone(root)
        )

    def find_migration_from(self, root: str) -> Migration | None:
        """The newest ended migration of the server that names the tree `root` as its source."""
        return next(
            (
                migration
                for migration in self.server_migrations
                if migration.ended and self.is_source(root, migration)
            ),
            None,
        )

    def is_source(self, root: str, migration: Migration) -> bool:
        """Tell whether `migration` names the tree `root` as the host that was left."""
        return self.index.is_at(root, migration.source_compute, migration.source_node)

    @property
    def state_evidence(self) -> tuple[Answer[t.Any], ...]:
        """The answers that say what the server is doing."""
        return (self.subject.migrations, self.subject.server)

    @property
    def server_answers(self) -> tuple[Answer[t.Any], ...]:
        """All that was asked about the server, in the order in which it was asked."""
        subject = self.subject
        return (
            subject.migrations,
            subject.server,
            subject.deleted_listing,
            subject.actions,
            subject.marker,
        )

    @property
    def node_name(self) -> str:
        """The name of the compute node where the server is said to be."""
        return str(self.server.node) if self.server else "?"

    @property
    def migration_listings(self) -> tuple[Answer[tuple[Migration, ...]], ...]:
        """The listings in which a migration would be, if it were still there."""
        return (self.index.snapshot.migrations, *self.subject.host_migrations)

    @functools.cached_property
    def contradiction(self) -> str | None:
        """What speaks against the server being gone or without a host, or what would and could not be read."""
        if self.index.snapshot.hypervisors.value is None:
            return "the hypervisor listing, which would show it on its host, could not be read"
        if host := self.index.get_listed_host(self.subject.uuid):
            return f"the hypervisor listing shows it on {host}"
        if self.active_migration:
            return f"migration {self.active_migration.uuid} of it is {self.active_migration.status}"
        if any(listing.value is None for listing in self.migration_listings):
            return "a listing of migrations could not be read"
        if self.migration is None and any(
            known.uuid == self.consumer
            for listing in self.subject.host_migrations
            for known in listing.value or ()
        ):
            return "Nova lists a migration of this uuid in one answer and leaves it out in another"
        return None


def find_deletion(actions: Answer[tuple[Action, ...]]) -> Action | None:
    """Return the action that deleted a server.

    Asked about a server that a direct look-up does not find, Nova answers with actions only if it finds it among the deleted.
    """
    return next(
        (action for action in actions.value or () if action.action in DELETING_ACTIONS), None
    )


def format_providers(view: ConsumerView) -> str:
    return ", ".join(sorted(map(view.index.get_name, view.allocation.resources))) or "nothing"
