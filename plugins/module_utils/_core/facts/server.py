# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One server, as the listings and the evidence about it show it: what it is doing and where it is.

Each question about a server is answered in one place. Pure: no request, no clock.
"""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
import typing as t
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ..._common.errors import Reason
from ..._common.times import is_earlier, seconds_between
from ..models.nova import (
    ARRIVED_MIGRATION_STATUSES,
    CONCLUDING_ACTIONS,
    CONCLUSIVE_STATUSES,
    DELETING_ACTIONS,
    GUEST_LEAVING_MIGRATION_TYPES,
    LIVE_MOVING_ACTION,
    MOVING_ACTIONS,
    RESET_ACTION,
    REVERT_ACTION,
    UNSHELVE_ACTION,
    Action,
    Migration,
    Server,
)
from ..models.snapshot import Answer, Evidence
from .index import ListingsIndex, group_by_tree

ACTIONS_UNREAD = Reason("actions_unread", "its instance actions could not be read")


@d.dataclass(frozen=True, kw_only=True)
class ServerView:
    """A server, alive or not.

    subject: the evidence about it.
    """

    index: ListingsIndex
    subject: Evidence

    @property
    def server(self) -> Server | None:
        """The server as a direct lookup shows it now."""
        return self.subject.server.value

    @functools.cached_property
    def server_migrations(self) -> tuple[Migration, ...]:
        """The migrations of the server, newest first, from every answer that has any."""
        # Nova leaves a cell that is too slow for one of the requests out of its answer, without
        # an error, so no answer alone is complete. Of one migration, the last answer counts.
        answers = (
            self.index.get_listed_migrations(self.subject.uuid),
            *self.subject.host_migrations,
            self.subject.migrations,
        )
        migrations: dict[str, Migration] = {}
        for answer in answers:
            for row in answer.value or ():
                if row.server == self.subject.uuid:
                    migrations[row.uuid] = row
        rows = migrations.values()
        return tuple(sorted(rows, key=lambda row: row.created_at or "", reverse=True))

    @functools.cached_property
    def active_migration(self) -> Migration | None:
        """A migration of the server that is still under way."""
        return next((row for row in self.server_migrations if not self.is_over(row)), None)

    def is_over(self, migration: Migration) -> bool:
        """Return whether a migration of the server has ended, or can never end."""
        return migration.ended or migration.uuid in self.abandoned_resizes

    @functools.cached_property
    def abandoned_resizes(self) -> frozenset[str]:
        """The migrations that nobody can confirm or revert, because the server's state was reset.

        They stay `finished` for ever: Nova confirms and reverts only what is VERIFY_RESIZE
        (nova/compute/api.py, confirm_resize and revert_resize). The server may have been moved
        since. A confirmation or a revert that came in between has an action, which was read last.
        """
        resizes = self.unconfirmed_resizes
        actions = self.subject.actions.value
        if not resizes or not actions:
            return frozenset()
        resets = [one.start_time for one in actions if one.action == RESET_ACTION]
        ends = [one.start_time for one in actions if one.action in CONCLUDING_ACTIONS]
        return frozenset(
            move.uuid
            for move in resizes
            if any(is_earlier(move.changed_at, at) for at in resets)
            and all(is_earlier(at, move.created_at) for at in ends)
        )

    @functools.cached_property
    def unconfirmed_resizes(self) -> tuple[Migration, ...]:
        """The migrations to be confirmed of a server that is idle, and not in VERIFY_RESIZE."""
        if self.server is None or not self.server.is_idle:
            return ()
        return tuple(row for row in self.subject.migrations.value or () if row.is_unconfirmed)

    @functools.cached_property
    def own_tree(self) -> str | None:
        """The root provider of the compute node where the server is, whatever its state."""
        server = self.server
        return self.index.find_tree_at(server.host, server.node) if server else None

    @functools.cached_property
    def settled(self) -> bool:
        """The server rests: nothing is being done to it and it is not on its way."""
        return self.seems_settled and self.unlisted_move is None

    @functools.cached_property
    def seems_settled(self) -> bool:
        """The server rests, if Nova lists each of its migrations."""
        # Migrations that could not be read may hide one that is under way.
        is_staying = self.subject.migrations.value is not None and self.active_migration is None
        return self.server is not None and self.server.is_idle and is_staying

    @functools.cached_property
    def unlisted_move(self) -> Reason | None:
        """Why the server may have moved without a migration that Nova lists, or None.

        An API worker that does not know the server's cell lists no migration of it. One that lists
        any lists all, but operators delete or hide a migration that is stuck. That matters where
        the server has an allocation to which the move may have taken it.
        """
        if self.server is None or not self.server.host:
            return None
        migrations = self.server_migrations if self.subject.migrations.value else ()
        if migrations and not self.other_roots:
            return None
        actions = self.subject.actions.value
        if actions is None:
            return ACTIONS_UNREAD.reword(
                "its instance actions, which would show a move of it, could not be read"
            )
        action = find_move_without_migration(actions, migrations)
        if action is None:
            return None
        return Reason(
            "move_without_migration",
            f"Nova recorded the action {action.action} at {action.start_time} "
            "and lists no migration for it",
        )

    @property
    def unknown_move(self) -> Migration | None:
        """The newest migration of a type of which it is not known where it leaves the guest.

        A later release of Nova may have such a type.
        """
        moves = self.server_migrations
        return next((move for move in moves if move.type not in CONCLUSIVE_STATUSES), None)

    @functools.cached_property
    def arrived(self) -> bool:
        """Whether the server is where its newest move took it.

        The newest move that took place ended on the host where Nova says that the server is, or
        the server was unshelved there since. After a move of an unknown type it is not known.
        """
        if self.unknown_move is not None:
            return False
        moves = [
            row
            for row in self.server_migrations
            if row.status in ARRIVED_MIGRATION_STATUSES or row.uuid in self.abandoned_resizes
        ]
        if not moves:
            return True
        if self.server is None:
            return False
        newest = moves[0]
        end = newest.source_compute if newest.status == "reverted" else newest.dest_compute
        return end == self.server.host or self._was_unshelved_after(moves)

    def _was_unshelved_after(self, moves: Collection[Migration]) -> bool:
        """Return whether the server was unshelved on its host after the last change of each move.

        An unshelve makes no migration. Its host saves itself as the server's before it makes the
        guest, and its event ends well only after that (nova/compute/manager.py,
        _unshelve_instance).
        """
        actions = filter(None, (answer.value for answer in self.subject.last_actions))
        unshelve = next((one for one in actions if one.action == UNSHELVE_ACTION), None)
        if unshelve is None or self.server is None:
            return False
        if self.server.host not in unshelve.unshelving_hosts:
            return False
        # Nova changes the row of an evacuation once more when its source is back.
        return all(is_earlier(move.changed_at, unshelve.start_time) for move in moves)

    @functools.cached_property
    def server_trees(self) -> Mapping[str | None, frozenset[str]]:
        """The providers of the server's own allocation, by their root."""
        allocation = self.subject.allocation.value
        return group_by_tree(allocation.resources if allocation else (), self.index)

    @functools.cached_property
    def other_roots(self) -> tuple[str, ...]:
        """The root providers of its own allocation, without that of its host."""
        return tuple(root for root in self.server_trees if root and root != self.own_tree)

    def has_only_own_tree(self, nova_roots: Container[str]) -> bool:
        """Return whether the server has an allocation in its host's tree, and in no other host's.

        nova_roots: the roots with a trait that only Nova sets. Such a tree was a host's, whether or
            not that host is proven to be gone.
        """
        # A provider that Placement did not list has no root that would say whose it is.
        return self.own_tree in self.server_trees.keys() - {None} and not any(
            root in self.index.nodes or root in nova_roots or self.find_migration_from(root)
            for root in self.other_roots
        )

    def find_migration_from(self, root: str) -> Migration | None:
        """Return the newest migration that is over and has the tree `root` as its source."""
        over = filter(self.is_over, self.server_migrations)
        return next((row for row in over if self.is_source(root, row)), None)

    def is_source(self, root: str, migration: Migration) -> bool:
        """Return whether `migration` names the tree `root` as the host that was left."""
        return self.index.is_at(root, migration.source_compute, migration.source_node)

    def may_be_at(
        self, root: str, host: str | None, node: str | None, failed: Migration | None = None
    ) -> bool:
        """Return whether the tree `root` may be that of a compute node that a migration names.

        failed: the migration, if it failed: what a later move left explains nothing of it.
        """
        if not host and not node:
            return False
        may_be_at = self.index.may_be_at(root, host, node)
        return may_be_at or self._may_have_had_name(root, host, node, failed)

    def may_be_source(self, root: str, migration: Migration) -> bool:
        """Return whether the tree `root` may be that of the host that `migration` left."""
        return self.may_be_at(root, migration.source_compute, migration.source_node)

    def is_named_by_migration(self, root: str) -> bool:
        """Return whether a migration of the server names the host or node of a root provider."""
        return any(self._names(move, root) for move in self.server_migrations)

    def _names(self, move: Migration, root: str) -> bool:
        ends = (move.source_compute, move.source_node), (move.dest_compute, move.dest_node)
        return any(self.index.has_name(root, *end) for end in ends)

    @property
    def held_roots(self) -> AbstractSet[str | None]:
        """The trees that explain where a move of the server has left an allocation."""
        return self.server_trees.keys()

    def _is_named_after(self, failed: Migration | None, root: str) -> bool:
        """Return whether a move later than a `failed` one names the tree `root`.

        Then an allocation there may come from that one.
        """
        return failed is not None and any(
            is_earlier(failed.updated_at, later.created_at) and self._names(later, root)
            for later in self.server_migrations
        )

    def _may_have_had_name(
        self, root: str, host: str | None, node: str | None, failed: Migration | None
    ) -> bool:
        """Return whether a tree may have had a name that another one has now.

        Operators rename hosts, and the former provider of a host that has a new one; and a new
        machine can get the name that a host had. That another migration has the present name of the
        tree shows nothing: it may be older than the name, or younger.
        """
        if root not in self.index.providers or root == self.own_tree:
            return False
        own_name = self.server.node if self.server else None
        if root not in self.index.nodes and self.index.get_name(root) == own_name:
            return False
        unexplaining = {self.own_tree} if failed else set()
        for held in filter(None, self.held_roots - unexplaining):
            if self.index.is_at(held, host, node) and not self._is_named_after(failed, held):
                return False
        # Until nova-compute starts, which a new name needs, an evacuation from there is `done`.
        return not any(
            move.type == "evacuation" and move.status == "done" and self.is_source(root, move)
            for move in self.server_migrations
        )

    def may_be_at_failed_destination(self, migration: Migration) -> bool:
        """Return whether the server may be where a failed `migration` ended, as far as Nova says.

        The name of that host may have changed since, and with it that of the server's host.
        """
        server, own = self.server, self.own_tree
        if server is None or not migration.is_inconclusive:
            return False
        is_there = server.host == migration.dest_compute
        if is_there or own is None:
            return is_there
        # A host that has got the name of the source is not told apart after a revert.
        if self.is_source(own, migration):
            return self._was_revert_requested
        may_be_there = self.may_be_at(own, migration.dest_compute, migration.dest_node)
        return may_be_there or not self.is_named_by_migration(own)

    @property
    def _was_revert_requested(self) -> bool:
        return any(action.action == REVERT_ACTION for action in self.subject.actions.value or ())

    def may_be_reverted_halfway(self, migration: Migration, roots: Iterable[str | None]) -> bool:
        """Return whether nothing but instance actions can exclude a revert that failed halfway.

        Such a revert has destroyed the guest on the destination (nova/compute/manager.py,
        revert_resize, finish_revert_resize), and leaves the server there, with the migration in
        error or already `reverted`. An evacuation from there makes a new guest, and needs no disk.
        If the server was moved from the source since, the disk was moved with it.

        roots: the trees that may have the disk.
        """
        is_there = self.may_be_at_failed_destination(migration)
        if not is_there and not self._was_evacuated_after(migration):
            return False
        # Of a host that has another name now, a later move does not show that it left there.
        is_source = any(root and self.is_source(root, migration) for root in roots)
        return not is_source or not self._has_left_source_of(migration)

    def _was_evacuated_after(self, migration: Migration) -> bool:
        """Return whether the next move of the server was an evacuation from the destination."""
        if migration.type not in ("migration", "resize"):
            return False
        if not migration.is_inconclusive and migration.status != "reverted":
            return False
        later = itertools.takewhile(lambda row: row.uuid != migration.uuid, self.server_migrations)
        arrived = [move for move in later if move.has_arrived]
        if not arrived or arrived[-1].type != "evacuation":
            return False
        # The destination may have got another name between the two.
        is_same_source = arrived[-1].source_compute == migration.source_compute
        return not is_same_source or not self.index.lists_node(
            migration.dest_compute, migration.dest_node
        )

    def explain_possible_revert(
        self, migration: Migration, roots: Collection[str | None]
    ) -> Reason | None:
        """Return why the only disk of the server may be on the source of a failed move, or None.

        roots: the trees that may have it.
        """
        if not self.may_be_reverted_halfway(migration, roots):
            return None
        is_there = self.may_be_at_failed_destination(migration)
        actions = self.subject.actions.value
        if actions is None:
            return ACTIONS_UNREAD.reword(
                f"Its server {migration.server} {'is on' if is_there else 'was evacuated from'} "
                "the destination, but its instance actions, which would show a revert, could not "
                "be read."
            )
        if not self._was_revert_requested:
            return None
        if is_there:
            return Reason(
                "revert_was_requested",
                f"Nova has its server {migration.server} on the destination, but a revert was "
                "requested: its disk may be on the source.",
            )
        return Reason(
            "evacuated_after_revert",
            f"Its server {migration.server} was evacuated from the destination after a revert was "
            "requested: its last disk may be on the source.",
        )

    def _has_left_source_of(self, failed: Migration) -> bool:
        """Return whether a later move took the server from the source of a `failed` one."""
        return any(
            move.has_arrived
            and move.source_compute == failed.source_compute != move.dest_compute
            and is_earlier(failed.updated_at, move.created_at)
            for move in self.server_migrations
        )

    def find_possible_revert_to(self, roots: Collection[str]) -> Migration | None:
        """Return the newest move whose revert may have left the only disk in one of `roots`."""
        for move in self.server_migrations:
            # After a revert, the host of the server may have got the name of the source.
            is_own = self.own_tree is not None and self.is_source(self.own_tree, move)
            sources = [root for root in roots if is_own or self.may_be_source(root, move)]
            if sources and self.explain_possible_revert(move, sources):
                return move
        return None

    @functools.cached_property
    def refused_live_migrations(self) -> frozenset[str]:
        """The live migrations that conductor gave up before it asked the source for the guest.

        Neither has a compute node, and the action that began it ended with an error of conductor
        and has no event but those of the checks (LP 1712411).
        """
        read = [answer.value for answer in self.subject.last_actions if answer.value is not None]
        actions = [action for action in read if action.action == LIVE_MOVING_ACTION]
        return frozenset(
            move.uuid
            for move in self.server_migrations
            if move.is_without_nodes
            and any(_was_refused(one) and has_begun(one, move, _REFUSING) for one in actions)
        )

    def explain_failed_move_to(self, roots: Collection[str]) -> Reason | None:
        """Return which failed move may have left its guest on a host of `roots`, or None."""
        failed = self._find_failed_move_to(roots)
        if failed is None:
            return None
        left_in = [root for root in roots if self._may_have_left_guest_in(root, failed)]
        hosts = map(self.index.get_host_name, left_in)
        reason = Reason(
            "move_may_have_ended",
            f"{failed.type} {failed.uuid} to {failed.dest_compute} ended as {failed.status}, and "
            f"its guest may run on {', '.join(sorted(hosts))}",
        )
        if self.index.lists_node(failed.dest_compute, failed.dest_node):
            return reason
        return reason.reword(
            f"{reason}: Nova lists no host {failed.dest_compute}, which may have been renamed"
        )

    def _find_failed_move_to(self, roots: Collection[str]) -> Migration | None:
        """Return the newest failed move whose guest may have survived in one of the trees `roots`.

        An evacuation can fail when the guest already runs (nova/compute/manager.py,
        _do_rebuild_instance), and the hypervisors go on with a live migration of which a restarted
        nova-compute has no record (_reset_live_migration).
        """
        next_host = self.server.host if self.server else None
        for move in self.server_migrations:
            has_failed = move.is_inconclusive or _was_not_finished(move, next_host)
            next_host = move.source_compute
            if move.uuid in self.refused_live_migrations:
                continue
            if move.type not in GUEST_LEAVING_MIGRATION_TYPES or not has_failed:
                continue
            if any(self._may_have_left_guest_in(root, move) for root in roots):
                return move
        return None

    def _may_have_left_guest_in(self, root: str, failed: Migration) -> bool:
        # Host or node is enough: a guest that may be there is not to be overlooked.
        dest = failed.dest_compute, failed.dest_node
        is_named = self.index.has_name(root, *dest)
        # A host that is gone has not got the name of another one.
        is_other = root not in self.index.nodes and self.index.lists_node(*dest)
        has_left = self.has_left_after(failed, root, is_named or is_other)
        return self.may_be_at(root, *dest, failed) and not has_left

    def has_left_after(self, earlier: Migration, root: str, is_named: bool) -> bool:
        """Return whether a later move took the server out of the tree `root`.

        Only a move counts that began after the last change of the `earlier` one. A host has one
        domain of a server at most, so whatever the earlier move left there is what the later one
        took away:

        * a confirmed resize or cold migration from there has powered it off and undefined it
          (nova/compute/manager.py, _resize_instance and _confirm_resize);
        * a completed live migration from there has moved it (_post_live_migration);
        * an evacuation from there was requested by an operator who says that the host is dead, as
          for every evacuated server, and when the host is back it destroys the guest
          (_destroy_evacuated_instances);
        * a reverted resize or cold migration to there has destroyed it (revert_resize, before
          `reverted` is saved).

        Moves between other hosts say nothing: after an evacuation that failed late, guests can run
        on both.

        is_named: whether the earlier move names the tree. If it does not, the tree has got its name
            since, so only a later move counts that has an allocation there itself.
        """
        return any(
            is_earlier(earlier.updated_at, later.created_at)
            and self._is_move_away_from(root, later)
            and (is_named or self.has_own_allocation(later, root))
            for later in self.server_migrations
        )

    def has_own_allocation(self, migration: Migration, root: str) -> bool:
        """Return whether a migration is known to have an allocation in the tree `root` itself."""
        return False

    def _is_move_away_from(self, root: str, move: Migration) -> bool:
        from_there = self.is_source(root, move)
        to_there = self.index.is_at(root, move.dest_compute, move.dest_node)
        if move.status == "reverted":
            return to_there and not from_there
        return move.has_arrived and from_there and not to_there

    @property
    def state_evidence(self) -> tuple[Answer[t.Any], ...]:
        """The answers that say what the server is doing."""
        return (self.subject.migrations, self.subject.server)

    @property
    def server_answers(self) -> tuple[Answer[t.Any], ...]:
        """The answers about the server, in the order of their requests."""
        subject = self.subject
        read_later = (subject.deleted_listing, subject.actions, subject.marker)
        return (*self.state_evidence, *read_later)

    @property
    def node_name(self) -> str:
        """The name of the compute node where Nova says that the server is."""
        return str(self.server.node) if self.server else "?"


def _was_not_finished(move: Migration, next_host: str | None) -> bool:
    """Return whether the server was still on the source after an evacuation became `completed`.

    The source saves that status when it starts, also for an evacuation whose destination died
    before it saved the server's new host (nova/compute/manager.py, _destroy_evacuated_instances).

    next_host: where the next migration of the server began, or the server is without one; None if
    it has no host.
    """
    is_completed = move.type == "evacuation" and move.status == "completed"
    return is_completed and next_host not in (None, move.dest_compute)


# The event of conductor around a live migration, and those of the checks that it has hosts make.
_REFUSING = "conductor_live_migrate_instance"
_CHECKS = frozenset(f"compute_check_can_live_migrate_{host}" for host in ("destination", "source"))


def _was_refused(action: Action) -> bool:
    """Return whether a live migration ended with an error, and no host was asked to begin."""
    names = {event.event for event in action.events}
    results = {event.result for event in action.events if event.event == _REFUSING}
    has_ended = all(event.finish_time for event in action.events)
    return has_ended and results == {"Error"} and names <= {_REFUSING, *_CHECKS}


def has_begun(action: Action, move: Migration, event: str) -> bool:
    """Return whether conductor created `move` on behalf of `action`.

    event: the one around the part of conductor in which it creates the migration.
    """
    rows = [row for row in action.events if row.event == event]
    begin = min((_normalize_time(row.start_time) for row in rows if row.start_time), default="")
    end = max((_normalize_time(row.finish_time) for row in rows if row.finish_time), default="")
    created = _normalize_time(move.created_at)
    return "" not in (begin, end, created) and begin <= created <= end


def _normalize_time(time: str | None) -> str:
    """Return a time of Nova's in a form that can be compared: some answers end it with a Z."""
    return (time or "").removesuffix("Z")


def build_server_view(evidence: Evidence, index: ListingsIndex) -> ServerView | None:
    """Return the view of a live server whose allocation was read, None without one."""
    if evidence.allocation.value is None or evidence.server.value is None:
        return None
    return ServerView(index=index, subject=evidence)


def find_deletion(actions: Answer[tuple[Action, ...]]) -> Action | None:
    """Return the action that deleted a server, or None where none is recorded.

    About a server that a direct lookup does not find, Nova answers with actions only if the server
    is among the deleted ones.
    """
    return next((one for one in actions.value or () if one.action in DELETING_ACTIONS), None)


# An action has the time of nova-api, a migration that of conductor. No server begins its next move
# so soon after the migration of the one before was created.
_CLOCKS_APART = 5


def find_move_without_migration(
    actions: Iterable[Action], migrations: Sequence[Migration]
) -> Action | None:
    """Return the newest move that was requested and of which Nova lists no migration, or None.

    Each migration belongs to the newest action before it that no newer one belongs to. Older moves
    do not matter once a migration has taken the server to its destination, where Nova then knew the
    server to be. A revert gives the server back all allocations that it had before.

    migrations: those of the server, newest first.
    """
    moves = [action for action in actions if action.action in MOVING_ACTIONS]
    # An action without a time may be newer than all others.
    moves.sort(key=lambda action: (action.start_time is None, action.start_time or ""))
    for migration in migrations:
        if moves and not _was_requested_by(moves[-1], migration.created_at):
            return moves[-1]
        if migration.has_arrived:
            return None
        if moves:
            moves.pop()
    return moves[-1] if moves else None


def _was_requested_by(action: Action, moment: str | None) -> bool:
    """Return whether the action is known to have been requested by that time."""
    seconds = seconds_between(moment, action.start_time)
    return seconds is not None and seconds <= _CLOCKS_APART
