# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proof of each kind of finding: one function a kind, named as the kind. The table of kinds is
in `_rules.engine`.

Each returns a ruling if the case is of its kind, or None to let the next one look. Protections were
asked before: no case here has a task, a move under way or a parked resize.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import format_duration
from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
    PLACING_ACTIONS,
    RESET_ACTION,
    REVERT_ACTION,
    UNHOSTED_STATUSES,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    orphaned,
    protected,
    undecided,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
    find_deletion,
    format_providers,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Evidence,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Decision
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )


def deleted_server(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server is deleted, and its claim stayed.

    Proof: A direct look-up finds no server, and the listing of the deleted has it (and not as
    soft-deleted), or Nova still tells its actions, which it does only of a row that is marked as
    deleted. Neither its former host nor a migration shows it alive.

    Needs: The cells of the hosts that it holds. The look-up goes through its own mapping to its own
    cell, and that it is deleted is shown by a cell that answered.

    Change: all that it holds is removed.
    """
    if view.migration or not is_deleted(view.subject):
        return None
    if doubt := view.contradiction or _explain_marker_conflict(view.subject):
        return undecided(
            f"Nova knows server {view.subject.uuid} as deleted, but {doubt}.", *view.server_answers
        )
    return orphaned(
        f"{describe_deletion(view.subject)} Its claim stayed.",
        *view.server_answers,
        server=find_deleted_server(view.subject),
    )


def ended_migration(view: ConsumerView, policy: Policy) -> Decision | None:
    """The migration is over, and nobody needs what it holds.

    Proof: Nova lists it as ended. Either its server is deleted, as above; or its server is settled
    where its newest move took it, cannot come back by a revert, and itself holds all of what this
    claim may stand for.

    Needs: The cells of the hosts that it, its server and the server's migrations name. The
    migration is listed by the cell that has its server too, and an answer that lists it is of a
    worker that knows this cell.

    Change: all that the migration holds is removed.
    """
    if view.migration is None:
        return None
    evidence = (view.index.snapshot.migrations, *view.server_answers)
    current = next(
        (known for known in view.subject.migrations.value or () if known.uuid == view.consumer),
        None,
    )
    if current is None:
        return undecided(
            f"Nova listed migration {view.consumer} and then no longer did: its server is "
            "changing.",
            *evidence,
        )
    if is_deleted(view.subject) and not view.contradiction:
        return orphaned(
            f"{_describe_ended_migration(current)} {describe_deletion(view.subject)}",
            *evidence,
            server=find_deleted_server(view.subject),
        )
    if not view.settled or not view.arrived:
        return undecided(
            f"{_describe_ended_migration(current)} Its server {current.server} is not at rest, "
            "so what it needs is not known.",
            *evidence,
        )
    if reverted := _explain_possible_revert(view, current):
        return undecided(f"{_describe_ended_migration(current)} {reverted}", *evidence)
    lacking = _describe_missing_resources(view)
    if lacking:
        return undecided(
            f"{_describe_ended_migration(current)} Its server {current.server} does not itself "
            f"hold {lacking}, so this claim may be the one it needs.",
            *evidence,
        )
    return orphaned(
        f"{_describe_ended_migration(current)} Its server {current.server} rests on "
        f"{view.node_name} and holds that itself.",
        *evidence,
    )


def deleted_migration(view: ConsumerView, policy: Policy) -> Decision | None:
    """The migration went with its deleted server, and its claim stayed.

    Proof: No listing has it, neither as a server nor as a migration, and yet Nova takes its uuid
    for a migration's when it is asked to list from there on. Both were asked several times, each
    time over another connection, and the answers agree. Nothing shows it alive.

    Needs: Every cell: it rests on no listing having the migration.

    Change: all that it holds is removed.
    """
    subject = view.subject
    if (
        view.migration
        or not is_unlisted(subject)
        or subject.marker.status != 200
        or subject.actions.status != 404
        or view.contradiction
    ):
        return None
    differing = [answer for answer in subject.markers if answer.status != 200]
    if differing:
        return undecided(
            f"Nova knew it as a migration's, and then answered {differing[0].status} to the same "
            "question: its API workers disagree.",
            *view.server_answers,
            *differing,
        )
    return orphaned(
        "Nova knows the uuid as a migration's and no longer lists it: the migration went with "
        "its deleted server.",
        *view.migration_listings,
        *view.server_answers,
    )


def evacuated_source(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server was evacuated, and still holds the host that it left.

    Proof: It is settled where its newest move took it, or was unshelved since, and holds that host;
    every other host that it holds was left by an evacuation that is `done` or `completed`, and no
    move of it to there failed since it last left it.

    Needs: The cells of the hosts that the server holds, rests on and moved between. All of its
    migrations are in its own cell, and an answer that lists one lists them all.

    Change: the hosts that it left are taken out of its claim; the rest stays.
    """
    left = {root: _find_evacuation_from(view, root) for root in view.other_trees}
    if (
        not _has_own_and_other_trees_allocated(view)
        or not all(left.values())
        or not all(_has_compute_allocation(view, root) for root in left)
    ):
        return None
    if view.find_failed_move_to(left):
        return None
    told = "; ".join(
        f"{view.index.get_name(root)} by evacuation {evacuation.uuid} ({evacuation.status}, "
        f"{evacuation.updated_at or evacuation.created_at})"
        for root, evacuation in sorted(left.items())
        if evacuation
    )
    return orphaned(
        f"Server {view.consumer} left {told}, rests on {view.node_name} and still holds both.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(iter(left.values())),
    )


def extra_host(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server holds its host, and another one as well.

    Proof: It is settled where its newest move took it, or was unshelved since, holds that host, has
    no move under way, and holds of the other host what a server claims on its host. No evacuation
    or live migration to there failed since it last left it, so that its guest cannot run there. The
    other host may be gone: then its provider has Nova's trait `COMPUTE_NODE`, no compute node or
    service stands behind it, and the server holds on its own host every resource class that it
    holds there.

    Needs: The cells of the hosts that the server holds, rests on and moved between. Where no
    migration of it is listed, its actions, which are read from its own cell, show that no move was
    ever asked for.

    Change: the other hosts are taken out of its claim; the rest stays.
    """
    if _has_own_tree_allocated(view) and view.doubtful_trees:
        return undecided(_describe_doubtful_trees(view), *view.server_answers)
    if not _has_own_and_other_trees_allocated(view):
        return None
    doubtful = sorted(
        view.index.get_name(root)
        for root in view.other_trees
        if not _has_compute_allocation(view, root)
    )
    if doubtful:
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and also holds a part of "
            f"{', '.join(doubtful)}, "
            "but not as a server's claim on its host: it may be something that this host shares.",
            *view.server_answers,
        )
    others = ", ".join(sorted(map(view.index.get_name, view.other_trees)))
    if lacking := _list_classes_only_on_gone_hosts(view):
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and also holds {others}; of that, "
            f"{', '.join(lacking)} it does not hold on its "
            "own host, which may lack a part of its claim.",
            *view.server_answers,
        )
    if failed := view.find_failed_move_to(view.other_trees):
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and also holds {others}, where "
            f"{failed.type} {failed.uuid} of it failed: "
            "its guest may run there.",
            *view.server_answers,
        )
    return orphaned(
        f"Server {view.consumer} rests on {view.node_name}, with no move under way, and also "
        f"holds {others}.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(filter(None, map(view.find_migration_from, view.other_trees)), None),
    )


def unhosted_server(view: ConsumerView, policy: Policy) -> Decision | None:
    """The server failed to boot or is shelved away, and still holds a host.

    Proof: It is in ERROR or SHELVED_OFFLOADED, has neither a host nor a task, is on no hypervisor
    and no migration, and all that was asked of it is over, so that no host can still take it up.
    What came before a shelve that its host has ended was over then. In any other state a server
    without a host and without a task is undecided: delete it, or set it to ERROR, and it can be
    proven.

    Needs: The cells of the hosts that it holds. The server and its actions are read from its own
    cell.

    Change: all that it holds is removed; what it needs is claimed anew when it is rebuilt or
    unshelved.
    """
    server, subject = view.server, view.subject
    if view.migration or server is None or server.host:
        return None
    if server.status not in UNHOSTED_STATUSES:
        return _explain_lost_host(server, view)
    if server.node:
        return None
    if not view.trees or not all(
        root and (root in view.index.nodes or view.index.has_nova_trait(root))
        for root in view.trees
    ):
        return None
    evidence = (*view.server_answers, *subject.last_actions)
    doubt = view.contradiction or _explain_possible_placement(view)
    if doubt or not server.task_known or not server.host_known or subject.migrations.value is None:
        told = doubt or "not all of its state was told"
        return undecided(
            f"Server {server.uuid} is {server.status} and seems to have no host, but {told}.",
            *evidence,
        )
    return orphaned(
        f"Server {server.uuid} is {server.status} and has no host, and all that was asked of it "
        "is over.",
        *evidence,
    )


def _explain_lost_host(server: Server, view: ConsumerView) -> Decision | None:
    """Say what to do about a server whose state is one of servers on a host, and that has none."""
    if not server.host_known or not server.task_known:
        return None
    return undecided(
        f"Server {server.uuid} is {server.status} without a task and without a host, and holds "
        f"{format_providers(view)}. "
        "Nova can neither start nor move it: delete it, or set it to ERROR, and its allocation "
        "becomes an orphan that can be proven.",
        *view.server_answers,
    )


def unknown_consumer(view: ConsumerView, policy: Policy) -> Decision | None:
    """Nova has no memory of it at all.

    Proof: It is no server, no deleted server and no migration, has no actions, is named by no
    migration, every host was asked and does not have it, and it holds nothing but hosts of this
    Nova. Of a host that is gone, the provider must have Nova's trait `COMPUTE_NODE` and the host,
    or the consumer, must be named in `orphan_cleanup_hosts` or `orphan_cleanup_consumers`. A
    conclusion from absence: another service that shares Nova's hosts looks the same. It must be
    older than `orphan_cleanup_unknown_min_age`. Without a consumer type it is undecided while the
    service catalogue has a service that allocates for itself, unless
    `orphan_cleanup_ignore_allocators` names that.

    Needs: Every cell: it rests on Nova having no record of it anywhere.

    Change: all that it holds is removed, if this kind was chosen.
    """
    index, age = view.index, view.allocation.age_seconds
    gone = [root for root in view.trees if root is not None and index.is_gone(root)]
    if (
        not is_unknown_to_nova(view)
        or not view.trees
        or not set(view.trees) <= {*index.nodes, *gone}
    ):
        return None
    evidence: tuple[Answer[t.Any], ...] = (
        index.snapshot.hypervisors,
        *view.migration_listings,
        *view.server_answers,
    )
    if unnamed := [
        index.get_name(root)
        for root in gone
        if not index.is_named(root) and view.consumer not in index.snapshot.scope.consumers
    ]:
        return undecided(
            "Nova has no memory of it, and no compute node stands behind "
            f"{', '.join(sorted(unnamed))}, which was one's by its traits: name "
            "that host (orphan_cleanup_hosts) to have this taken for a leftover.",
            *evidence,
        )
    if age is None or age < policy.unknown_min_age:
        written = "at an unknown time" if age is None else f"{format_duration(age)} ago"
        return protected(
            f"Nova has no memory of it, but it was written {written} and must be "
            f"{format_duration(policy.unknown_min_age)} old for that.",
            *evidence,
        )
    if not index.has_servers_of_every_host:
        return undecided(
            "Nova has no memory of it, but not every host was asked whether it is there: run "
            "mode=full on the whole cloud.",
            *evidence,
        )
    if not any(sample.status == 200 for sample in index.snapshot.samples):
        return undecided(
            "Nova says that it does not know it, but there was no live server to see whether it "
            "would tell us.",
            *evidence,
        )
    others = index.snapshot.cloud.allocators
    if not view.allocation.type and (
        suspects := [name for name in others if name not in policy.ignore_allocators]
    ):
        return undecided(
            "Nova has no memory of it, but it has no consumer type and this cloud has "
            f"{', '.join(suspects)} in its catalogue: it may hold "
            "this. Look there, and name in ignore_allocators (orphan_cleanup_ignore_allocators) "
            "what holds nothing on Nova's hosts.",
            *evidence,
        )
    return orphaned(
        "Nova has no memory of it, neither as a server nor as a migration. This is a conclusion "
        "from absence: "
        f"a container service that shares Nova's hosts ({_describe_allocators(others, policy)}), "
        "or an operator who blocks capacity by hand, looks the same.",
        *evidence,
    )


def _describe_allocators(others: Collection[str], policy: Policy) -> str:
    if not others:
        return "this cloud has no container service in its catalogue"
    ignored = ", ".join(name for name in others if name in policy.ignore_allocators)
    by_whom = (
        f"; ignore_allocators says that {ignored} holds nothing on Nova's hosts" if ignored else ""
    )
    return f"this cloud has {', '.join(others)} in its catalogue{by_whom}"


def is_unknown_to_nova(view: ConsumerView) -> bool:
    """Tell whether Nova, asked in every way there is, shows no memory of the consumer, neither as a
    server nor as a migration.
    """
    subject = view.subject
    if any(answer.status != 400 for answer in subject.markers):
        return False
    if (
        view.migration
        or not is_unlisted(subject)
        or subject.marker.status != 400
        or subject.actions.status != 404
        or view.contradiction
    ):
        return False
    named = any(
        known.server == view.consumer
        for listing in view.migration_listings
        for known in listing.value or ()
    )
    return not named and not view.server_migrations


def _explain_possible_revert(view: ConsumerView, migration: Migration) -> str | None:
    """Say why the source of a failed move may have the server's only disk, though the server rests
    on the destination.

    A revert that fails half-way has destroyed what was on the destination (nova/compute/manager.py,
    revert_resize, finish_revert_resize), and leaves the migration in error and the server where it
    was.
    """
    if not view.is_at_failed_destination(migration):
        return None
    if view.subject.actions.value is None:
        return (
            f"Its server {migration.server} is on the destination, and whether it was reverted "
            "there could not be read."
        )
    if any(action.action == REVERT_ACTION for action in view.subject.actions.value):
        return (
            f"Its server {migration.server} is said to be on the destination, but was to be "
            "reverted: its disk may be on the source."
        )
    return None


def _explain_possible_placement(view: ConsumerView) -> str | None:
    """Say why something that was asked of a server without a host may still give it one."""
    actions = [answer.value for answer in view.subject.last_actions]
    if not all(action is not None and action.is_finished for action in actions):
        return "its last actions may still run"
    placing = next(
        (action for action in actions if action and action.action in PLACING_ACTIONS), None
    )
    claimed = set(view.index.list_hosts_of(view.allocation.resources))
    shelved_by = next(
        (action.shelving_hosts for action in actions if action and action.shelving_hosts), None
    )
    if shelved_by is not None:
        return _explain_possible_queued_action(view, placing is not None, claimed <= shelved_by)
    if placing is None:
        return "what gave it its last host is not known"
    # Conductor tries a build on a second host when the first has ended its part. Nova calls the
    # server ERROR when that host starts, and then that host takes the build from its queue
    # (nova/compute/manager.py, _error_out_instances_whose_build_was_interrupted).
    begun_on = placing.placing_hosts
    if begun_on and not claimed <= begun_on:
        return "the host that it claims may still have to take up what was asked"
    return None


def _explain_possible_queued_action(
    view: ConsumerView, placed: bool, only_on_shelving_host: bool
) -> str | None:
    """Say why something that was asked before a finished shelve may still give the server a host.

    Only a host that has the server shelves it, and the API takes no other action while one has a
    task (nova/compute/api.py, check_instance_state): so all that came before is over. But for a
    reset of the state, which hides the task of an action that waits in the queue of another host.
    That host is the one that is claimed for it, so where the server holds only the host that
    shelved it, nothing waits; that one takes its messages in their order.

    placed: whether the newest action that could give it a host is known, and over.
    """
    if only_on_shelving_host:
        return None
    if not placed:
        return "what gave it its last host is not known"
    if view.subject.actions.value is None or any(
        action.action == RESET_ACTION for action in view.subject.actions.value
    ):
        return (
            "its state was reset once, and what was asked before that may wait for the host that "
            "it claims"
        )
    return None


def is_deleted(subject: Evidence) -> bool:
    """Tell whether Nova knows the server as deleted, in one way or the other."""
    return find_deleted_server(subject) is not None or is_marked_deleted(subject)


def is_marked_deleted(subject: Evidence) -> bool:
    """Tell whether the row of the server is marked as deleted, though Nova does not list it among
    the deleted.

    A repair of the database that sets `deleted` to 1, where Nova sets it to the row's own id,
    leaves such a row. `GET /servers/{id}` looks for rows with `deleted = 0`, the listing of the
    deleted for `deleted = id` (nova/db/main/api.py, instance_get_all_by_filters_sort), and the
    actions of a server for any (nova/api/openstack/compute/instance_actions.py, _get_instance). All
    three go by the instance mapping to the same cell, so where that is lost there are no actions
    either.
    """
    return is_unlisted(subject) and bool(subject.actions.value)


def _explain_marker_conflict(subject: Evidence) -> str | None:
    """Say so when Nova tells actions of a server and takes its uuid for a migration's as well."""
    if find_deleted_server(subject) or subject.marker.status != 200:
        return None
    return "takes its uuid for a migration's as well"


def find_deleted_server(subject: Evidence) -> Server | None:
    """Return the server as Nova remembers it, if Nova remembers its deletion and a direct look-up
    finds nothing.
    """
    if subject.server.status != 404 or subject.migrations.value is None:
        return None
    named = next(
        (server for server in subject.deleted_listing.value or () if server.uuid == subject.uuid),
        None,
    )
    # The listing of the deleted also has the soft-deleted, which can be restored; the brief one
    # does not say which they are.
    if (
        named is None
        or named.status == "SOFT_DELETED"
        or (not named.status and find_deletion(subject.actions) is None)
    ):
        return None
    return named


def is_unlisted(subject: Evidence) -> bool:
    """No server of this uuid is found, neither a live one nor a deleted one, and it was looked for
    among its hosts' migrations.
    """
    found_nothing = subject.server.status == 404 and subject.deleted_listing.value == ()
    return found_nothing and subject.migrations.value is not None and bool(subject.host_migrations)


def _has_own_tree_allocated(view: ConsumerView) -> bool:
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and _has_compute_allocation(view, view.own_tree)
    )


def _has_own_and_other_trees_allocated(view: ConsumerView) -> bool:
    return _has_own_tree_allocated(view) and bool(view.other_trees)


def _describe_doubtful_trees(view: ConsumerView) -> str:
    """Say what a server holds of providers that were a compute node's, and why it is not sure that
    they are nobody's now.
    """
    told = "; ".join(
        f"{view.index.get_name(root)}: {view.index.find_possible_host(root)}"
        for root in sorted(view.doubtful_trees)
    )
    return (
        f"Server {view.consumer} rests on {view.node_name} and also holds providers without a "
        f"compute node that were one's ({told})."
    )


def _list_classes_only_on_gone_hosts(view: ConsumerView) -> list[str]:
    """Return the resource classes that a server holds on hosts that are gone, and neither on its
    own host nor of what hosts share.
    """
    gone = {
        provider
        for root, held in view.other_trees.items()
        if view.index.is_gone(root)
        for provider in held
    }
    own = {
        provider
        for provider in view.allocation.resources
        if view.index.get_root(provider) == view.own_tree or view.index.is_sharing(provider)
    }
    return sorted(_list_resource_classes(view, gone) - _list_resource_classes(view, own))


def _list_resource_classes(view: ConsumerView, providers: Iterable[str]) -> set[str]:
    return {cls for provider in providers for cls in view.allocation.resources[provider]}


def _find_evacuation_from(view: ConsumerView, root: str) -> Migration | None:
    named = (
        known
        for known in view.server_migrations
        if known.type == "evacuation" and known.status in ("done", "completed")
    )
    return next((evacuation for evacuation in named if view.is_source(root, evacuation)), None)


def _has_compute_allocation(view: ConsumerView, root: str | None) -> bool:
    """Tell whether the server holds of `root` what it also holds of its own host; a share that
    looks otherwise is no leftover of a move.
    """
    held = view.allocation.resources
    return bool(_list_compute_classes(held, root) & _list_compute_classes(held, view.own_tree))


def _list_compute_classes(allocations: Allocations, root: str | None) -> frozenset[str]:
    """Return the classes of a server's claim on a host: it is on the root itself, and never of disk
    alone.
    """
    return frozenset(allocations.get(root or "", {})) - {"DISK_GB"}


def _describe_missing_resources(view: ConsumerView) -> str:
    """Name what a migration's consumer holds that its server may need and does not itself hold;
    nothing if there is none.

    Nova can fail to give a claim back after a failed or reverted move and only log it
    (nova/compute/manager.py, _revert_allocation): the server then rests with less than it needs,
    and the rest is the migration's. After a confirmed move the server's own claim is the right one.
    """
    allocation = view.subject.allocation.value
    held = allocation.resources if allocation else {}
    confirmed = view.migration is not None and view.migration.status == "confirmed"
    claim = _list_compute_classes(held, view.own_tree)
    if not claim:
        return f"its own host {view.node_name}"
    for provider, share in view.allocation.resources.items():
        root = view.index.get_root(provider)
        at_home = root == view.own_tree
        left = root is not None and (
            view.find_migration_from(root)
            or (
                root in view.index.nodes
                and _list_compute_classes(view.allocation.resources, root) & claim
            )
        )
        if left and not at_home and not view.index.is_sharing(provider):
            continue
        if at_home and confirmed:
            continue
        lacking = [
            cls
            for cls, amount in share.items()
            if held.get(provider, {}).get(cls, 0) < (1 if confirmed else amount)
        ]
        if lacking:
            return f"as much {', '.join(sorted(lacking))} of {view.index.get_name(provider)}"
    return ""


def _describe_ended_migration(migration: Migration) -> str:
    return (
        f"Migration {migration.uuid} ({migration.type}) is over: {migration.status} since "
        f"{migration.updated_at or migration.created_at}."
    )


def describe_deletion(subject: Evidence) -> str:
    """Say how a server that Nova knows as deleted came to be so."""
    deleted, deletion = find_deleted_server(subject), find_deletion(subject.actions)
    if deleted is None:
        asked = (
            f"user {deletion.user} asked for its deletion at {deletion.start_time}"
            if deletion
            else "Nova recorded no delete action"
        )
        return (
            f"Server {subject.uuid} is marked as deleted in the database by hand, in a way that "
            f"Nova itself does not use; {asked}."
        )
    if deletion:
        return (
            f"Server {deleted.uuid} is deleted, by user {deletion.user} at {deletion.start_time}."
        )
    return (
        f"Server {deleted.uuid} is deleted, last changed "
        f"{deleted.terminated_at or deleted.updated}; Nova recorded no delete action."
    )
