# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known about one uuid, and the conditions of the table in `order`. Pure.

A condition yields what the request is sent about, and nothing where it does not hold. It sees all
answers so far; one that yields more than once sees also those to its own requests.
"""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ..._common.times import is_earlier
from ..expected.amounts import compare_listed
from ..expected.inputs import find_root_volume, list_device_profiles
from ..facts.devices import MAX_PORT_ACTIONS, list_port_actions, may_have_leak
from ..facts.index import ListingsIndex, group_by_tree
from ..facts.moves import (
    find_placement_after_unshelve,
    list_relevant_request_ids,
    list_repeated_unshelves,
    list_taken_over_roots,
)
from ..facts.server import ServerView, build_server_view, find_deletion
from ..models import snapshot as q
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    LIVE_MOVING_ACTION,
    PLACING_ACTIONS,
    UNHOSTED_STATUSES,
    UNSHELVE_ACTION,
    Action,
    Migration,
    Server,
)
from ..models.other_services import PciAlias
from ..models.placement import Allocation, Allocations
from ..models.snapshot import NOT_ASKED, Answer, Evidence, ListedAmounts, Request, Scope
from ..options.scope import is_needed

# How far back the action that placed or shelved a server is searched; beyond that it stays
# undecided.
_MAX_ACTIONS = 10

_FIELDS = frozenset(field.name for field in d.fields(Evidence))

Condition = t.Callable[["Look"], t.Iterable[t.Any]]


@d.dataclass(frozen=True)
class Context:
    """What the conditions of a reading depend on besides the answers.

    scope: what is looked up; it may be narrower than the scope of the listings.
    fresh: whether a write follows, so that nothing that a listing said may replace an answer.
    nova_roots: the root providers with a trait that only Nova sets.
    listed_amounts: what the listings say of the amounts of servers.
    with_amounts: whether the amounts of every server are compared.
    pci_aliases: as in the policy.
    """

    index: ListingsIndex
    scope: Scope
    fresh: bool
    nova_roots: frozenset[str] = frozenset()
    listed_amounts: ListedAmounts = d.field(default_factory=ListedAmounts)
    with_amounts: bool = False
    pci_aliases: Mapping[str, PciAlias] = d.field(default_factory=dict)


class Look:
    """All that is known so far about one uuid.

    evidence: the answers about it. asked: the requests that were sent for it.
    of_migrations: the allocations of its migrations, where those were looked up too.
    times: how often the present request is to be sent.
    migration: the migration for whose sake its server is looked up; None for a consumer itself.
    """

    def __init__(
        self,
        context: Context,
        uuid: str,
        allocation: Answer[t.Any],
        migration: Migration | None = None,
        held: Allocation | None = None,
    ) -> None:
        """Begin with the allocation of the uuid. held: that of the migration."""
        self.context = context
        self.evidence = Evidence(uuid, allocation)
        self.asked: set[str] = set()
        self.of_migrations: list[Evidence] = []
        self.times = 1
        self.migration, self.held = migration, held

    @property
    def uuid(self) -> str:
        """Whom it is about."""
        return self.evidence.uuid

    @functools.cached_property
    def view(self) -> ServerView | None:
        """The server as the answers so far show it; None without one."""
        return build_server_view(self.evidence, self.context.index)

    @property
    def resources(self) -> Allocations:
        """What the uuid itself has allocated."""
        allocation = self.evidence.allocation.value
        return allocation.resources if allocation else {}

    def add(self, request: Request, about: t.Any, answer: t.Any) -> None:
        """Add an answer to the evidence, after those to the same request where that has several."""
        self.asked.add(request)
        if request == q.ALLOCATION:
            self.of_migrations.append(Evidence(about, answer))
        elif request in _FIELDS:
            before = getattr(self.evidence, request)
            if isinstance(before, tuple):
                answer = (*before, *(answer if isinstance(answer, tuple) else (answer,)))
            self.replace(request, answer)

    def replace(self, request: Request, answer: t.Any) -> None:
        """Put an answer in the place of the one before."""
        self.evidence = d.replace(self.evidence, **{request: answer})
        vars(self).pop("view", None)


def of_each(look: Look) -> Iterator[str]:
    """Yield every consumer that is looked up."""
    yield look.uuid


def after(request: Request) -> Condition:
    """Return the condition that another request was sent for the same consumer."""

    def is_asked(look: Look) -> Iterator[str]:
        if request in look.asked:
            yield look.uuid

    return is_asked


def of_server_that_may_have_moved(look: Look) -> Iterator[str]:
    """Yield a server whose actions show what no migration does.

    * Without a host: which action could still give it one.
    * With a host and no migration: that may be the answer of an API worker that does not know the
      server's cell. Actions are asked there.
    * With an allocation on another host than its own: a move whose migration was deleted, whether a
      failed move may have been reverted, and which host made the guest after more than one
      unshelve.
    * With a live migration that failed early, and no allocation on its host: who refused it.
    * With a resize to confirm, and not in VERIFY_RESIZE: whether its state was reset.
    * Not where its newest move ended: whether it was unshelved since, for which Nova creates no
      migration.
    """
    server, view = look.evidence.server.value, look.view
    if server is None:
        return
    if not server.host:
        may_have_moved = server.status in UNHOSTED_STATUSES
    elif not look.evidence.migrations.value:
        may_have_moved = True
    else:
        may_have_moved = view is not None and (
            bool(view.unconfirmed_resizes)
            or bool(_list_early_failures(view))
            or bool(view.seems_settled and view.other_roots)
            or bool(view.settled and not view.arrived)
        )
    if may_have_moved:
        yield look.uuid


def back_to_its_last_host(look: Look) -> Iterator[Action]:
    """Yield the actions of a server without a host, back to one on a host.

    That is the newest placing action that a host began: one for which conductor found no host says
    nothing about those before it. Actions before a shelve that its host has finished are not read:
    they were over by then.
    """
    server = look.evidence.server.value
    if server is None or server.host:
        return
    listed = look.evidence.actions.value or ()
    for number, action in enumerate(listed[:_MAX_ACTIONS]):
        yield action
        read = look.evidence.last_actions[-1].value
        if read is None or read.placing_hosts:
            return
        if read.shelving_hosts:
            yield from itertools.islice(
                (older for older in listed[number:] if older.action in PLACING_ACTIONS), 1
            )
            return


def that_gave_it_its_host(look: Look) -> Iterator[Action]:
    """Yield the placements of a server with an allocation on another host, if unshelves repeat."""
    view = look.view
    if view is None or not view.seems_settled:
        return
    for root in view.other_roots:
        placement = find_placement_after_unshelve(view, root)
        if placement is not None:
            for action in (placement, *list_repeated_unshelves(view, root)):
                yield from _list_unread(look, action)


def _list_early_failures(view: ServerView) -> list[Migration]:
    """Return the live migrations that may have been refused, if that can matter."""
    is_misplaced = bool(view.other_roots) or view.own_tree not in view.server_trees
    moves = view.server_migrations if view.seems_settled and is_misplaced else ()
    return [move for move in moves if move.is_without_nodes]


def that_conductor_may_have_refused(look: Look) -> Iterator[Action]:
    """Yield what began the live migrations of such a server that failed early."""
    actions = look.evidence.actions.value or ()
    moves = [action for action in actions if action.action == LIVE_MOVING_ACTION]
    for move in _list_early_failures(look.view) if look.view else ():
        # The API, which records the action first, may have another clock.
        begun = [one for one in moves if not is_earlier(move.updated_at, one.start_time)]
        for action in begun[:1]:
            yield from _list_unread(look, action)


def newest_unshelve(look: Look) -> Iterator[Action]:
    """Yield the newest unshelve of a server that is not where its newest move ended."""
    view = look.view
    if view is None or not view.settled or view.arrived:
        return
    for action in look.evidence.actions.value or ():
        if action.action == UNSHELVE_ACTION:
            yield from _list_unread(look, action)
            return


def _list_unread(look: Look, action: Action) -> Iterator[Action]:
    """Yield an action of which the events were not read yet."""
    if action.request_id not in _get_last_actions(look):
        yield action


def _get_last_actions(look: Look) -> dict[str, Answer[Action]]:
    read = look.evidence.last_actions
    return {answer.value.request_id: answer for answer in read if answer.value is not None}


def of_missing(look: Look) -> Iterator[str]:
    """Yield a uuid that a direct lookup of a server does not find."""
    if look.evidence.server.status == 404:
        yield look.uuid


def of_missing_in_brief(look: Look) -> Iterator[bool]:
    """Yield whether the actions of such a uuid say already that it is a deleted server."""
    if look.evidence.server.status == 404:
        yield find_deletion(look.evidence.actions) is not None


def of_row_marked_as_deleted(look: Look) -> Iterator[str]:
    """Yield a server that only its actions show.

    So that it was not made or brought back meanwhile, it is read again.
    """
    if look.evidence.actions.value and _is_unknown(look):
        yield look.uuid


def _is_unknown(look: Look) -> bool:
    """Return whether a uuid was missing, and is not among the deleted servers either."""
    return q.DELETED in look.asked and not look.evidence.deleted_listing.value


def of_unknown(look: Look) -> Iterator[str]:
    """Yield a uuid that is no server's, to be asked for as a migration's.

    Nova leaves a cell out of a listing when its database is too slow, and says nothing of it. That
    a migration is in no listing is therefore asked again with a filter that has an index.
    """
    if _is_unknown(look):
        yield look.uuid


def while_workers_agree_on(status: int) -> Condition:
    """Return the condition that all API workers so far gave the same answer to the marker.

    One may know the uuid as a migration's and another, which does not know its cell, list no such
    migration: together they seem to show a migration that is deleted. Workers that disagree prove
    nothing, whatever the others say.
    """

    def list_attempts(look: Look) -> Iterator[int]:
        if look.evidence.marker.status != status:
            return
        for attempt in range(1, look.times):
            yield attempt
            if look.evidence.markers[-1].status != status:
                return

    return list_attempts


def hosts_if_marker(*statuses: int) -> Condition:
    """Return the condition that the marker had one of these statuses; none stands for all others.

    The listing of all migrations may leave some out, so that the hosts on which the consumer has an
    allocation are asked for theirs.
    """

    def list_hosts(look: Look) -> Iterable[str]:
        status = look.evidence.marker.status
        if status == 0 or (status not in statuses if statuses else status in (200, 400)):
            return ()
        return look.context.index.list_host_names_of(look.resources)

    return list_hosts


def of_migration_without_record(look: Look) -> Iterator[str]:
    """Yield a uuid that is a migration's, and in no listing: a live server may need it."""
    if look.evidence.marker.status == 200:
        yield look.uuid


def roots_of_migration_without_record(look: Look) -> Iterator[str]:
    """Yield the compute nodes on which such a migration has an allocation."""
    if look.evidence.marker.status == 200:
        index = look.context.index
        for root in group_by_tree(look.resources, index):
            if root in index.nodes:
                yield root


def until_a_row_is_found(look: Look) -> Iterator[int]:
    """Yield the attempts to find a row of a server in any cell.

    400: the uuid is not a migration's either, so that Nova may have no record of it at all. The
    listing of every host's servers has shown all rows already.
    """
    context = look.context
    has_shown_all = not context.fresh and context.index.has_servers_of_every_host
    if look.evidence.marker.status != 400 or has_shown_all or not is_needed(q.ROWS, context.scope):
        return
    for attempt in range(look.times):
        yield attempt
        if look.evidence.rows[-1].value != ():
            return


def of_doubtful_migration(look: Look) -> Iterator[str]:
    """Yield the server of a migration with an allocation of its own, if a move is in doubt.

    Its actions say whether a failed move was to be reverted, and which hosts its unshelves may have
    given to it.
    """
    view, migration = look.view, look.migration
    if view is None or migration is None or look.held is None or q.ACTIONS in look.asked:
        return
    trees = group_by_tree(look.held.resources, look.context.index)
    is_doubtful = view.may_be_reverted_halfway(migration, trees)
    if is_doubtful or list_taken_over_roots(view, migration, trees):
        yield look.uuid


def ended_migrations(look: Look) -> Iterator[str]:
    """Yield the ended migrations of a server without an allocation on its host."""
    view, context = look.view, look.context
    if view is None or not view.settled or view.own_tree in view.server_trees:
        return
    listings = context.index.listings
    # A listing of all allocations already shows which migrations have none.
    is_partial = context.fresh or listings.trees is not None or listings.reading.is_incremental
    for migration in view.server_migrations:
        if migration.ended and (is_partial or migration.uuid in listings.allocations):
            yield migration.uuid


def host_of_uncertain_amounts(look: Look) -> Iterator[str]:
    """Yield the host of a server of which more has to be read to decide on its allocation.

    That is so for a settled server whose allocation on its host is not just what its flavor says.
    """
    view = look.view
    if view is not None and view.own_tree is not None and _needs_amounts(view, look):
        yield view.own_tree


def _needs_amounts(view: ServerView, look: Look) -> bool:
    server, own, context = view.server, view.own_tree, look.context
    if server is None or not view.settled:
        return False
    if own not in view.server_trees:
        return True
    if not view.has_only_own_tree(context.nova_roots):
        return False
    listed = context.listed_amounts
    # The listing has the properties of its image, which the direct lookup lacks.
    if not context.fresh and listed.candidates.get(server.uuid) == "":
        return False
    is_named = not context.fresh and server.uuid in context.scope.consumers
    if context.with_amounts or is_named or server.uuid in listed.differing:
        return True
    # On which of several providers the amounts have to be, only the tree of the host shows.
    if view.server_trees[own] != {own}:
        return True
    return not compare_listed(server, look.resources, context.pci_aliases).fits


def host_of_server_without_allocation(look: Look) -> Iterator[str]:
    """Yield the root of the host of a settled server that has no allocation at all."""
    view = look.view
    if view is not None and view.own_tree is not None and view.settled and not look.resources:
        yield view.own_tree


def of_server_with_volumes(look: Look) -> Iterator[str]:
    """Yield a server that may boot from a volume."""
    server = look.evidence.shape.value
    if server is not None and (server.volumes or not server.image):
        yield look.uuid


def of_volume_server_without_actions(look: Look) -> Iterator[str]:
    """Yield a server without an image, whose actions show whether a volume was swapped."""
    if _get_volume_server(look) and look.evidence.actions == NOT_ASKED:
        yield look.uuid


def its_root_volume(look: Look) -> Iterator[str]:
    """Yield the volume from which a server boots. Of one with an image Nova has the properties."""
    server = _get_volume_server(look)
    if server is not None:
        volume = find_root_volume(server, look.evidence.attachments.value)
        if volume is not None:
            yield volume


def _get_volume_server(look: Look) -> Server | None:
    server = look.evidence.shape.value
    if server is None or server.image or q.ATTACHMENTS not in look.asked:
        return None
    return server


def its_device_profiles(look: Look) -> Iterator[str]:
    """Yield the device profiles that the flavor and the ports of a server name."""
    server = look.evidence.server.value
    if q.SHAPE in look.asked:
        specs = server.flavor.extra_specs if server and server.flavor else None
        yield from list_device_profiles(specs, look.evidence.server_ports.value or ())


def of_server_with_too_much_of_a_child(look: Look) -> Iterator[str]:
    """Yield a server that may have a part of a child provider which it does not need.

    This comes after its ports were read: what Nova is doing to one of them was recorded before.
    """
    if look.view is not None and q.SHAPE in look.asked and may_have_leak(look.view):
        yield look.uuid


def actions_on_its_ports(look: Look) -> Iterator[Action]:
    """Yield what was done to the ports of such a server."""
    for _uuid in of_server_with_too_much_of_a_child(look):
        yield from list_port_actions(look.evidence.actions.value or ())[:MAX_PORT_ACTIONS]


def former_tree_of_its_host(look: Look) -> Iterator[tuple[str, str, str]]:
    """Yield the tree of a server's only allocation, if it may be its host's former provider.

    With it come the tree that the host has now, and the host.
    """
    view = look.view
    if view is None or view.own_tree is None or view.server is None or not view.settled:
        return
    roots = set(view.server_trees)
    if len(roots) != 1:
        return
    (root,) = roots
    # A compute node that was not read may still be behind it: the rule decides.
    if root is None or root == view.own_tree or root in look.context.index.nodes:
        return
    yield root, view.own_tree, view.server.host or ""


def of_server_behind_a_failed_move(look: Look) -> Iterator[str]:
    """Yield a server whose allocation a cold migration has that failed.

    The actions since then show where its guest is.
    """
    if _list_cold_migrations_with_host(look):
        yield look.uuid


def actions_since_a_failed_move(look: Look) -> Iterator[Action]:
    """Yield what was done to such a server since, newest first; what was read before is kept."""
    failed = _list_cold_migrations_with_host(look)
    if not failed:
        return
    actions, read = look.evidence.actions.value or (), _get_last_actions(look)
    wanted = set(list_relevant_request_ids(actions, failed[-1].created_at))
    look.replace(q.LAST_ACTIONS, ())
    for action in actions:
        if action.request_id in read:
            look.add(q.LAST_ACTIONS, action, read[action.request_id])
        elif action.request_id in wanted:
            yield action


def _list_cold_migrations_with_host(look: Look) -> list[Migration]:
    """Return the cold migrations with an allocation on the host of their server, newest first."""
    view = look.view
    if view is None:
        return []
    held = {known.uuid: known.allocation.value for known in look.of_migrations}
    with_host = {uuid for uuid in held if (one := held[uuid]) and view.own_tree in one.resources}
    cold = [row for row in view.server_migrations if row.type in COLD_MIGRATION_TYPES]
    return [migration for migration in cold if migration.uuid in with_host]


def merge_evidence(one: Evidence | None, other: Evidence) -> Evidence:
    """Return the evidence about one uuid as a whole: `other`, and what `one` has of answers.

    A uuid may be looked up for its own sake and again for the sake of another.
    """
    if one is None:
        return other
    answers = {name: getattr(one, name) for name in _FIELDS}
    # These stand for what was not asked.
    answered = {name: value for name, value in answers.items() if value not in (NOT_ASKED, ())}
    return d.replace(other, **answered)
