# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proof of each kind of orphan: one function for each kind, with the name of the kind.

The table of kinds is in `_models.kinds`. Each function returns a decision if the consumer is of its
kind, or None to leave it to the next kind. Protections were asked before: no consumer that comes
here has a task, a migration under way or an unconfirmed resize.
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
    from collections.abc import Collection

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Action,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Resources,
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
    """The server is deleted, and its allocation stayed.

    Proof: A direct look-up finds no server, and the listing of the deleted has it (and not as
    soft-deleted), or Nova still tells its actions, which it does only of a row that is marked as
    deleted. Neither its former host nor a migration shows it alive.

    Needs: The cells of the hosts that it holds. The look-up goes through its own mapping to its own
    cell, and that it is deleted is shown by a cell that answered.

    Change: all that it holds is removed.
    """
    subject = view.subject
    if view.migration or not is_deleted(subject):
        return None
    doubt = view.contradiction or _explain_marker_conflict(subject)
    if doubt:
        return undecided(
            f"Nova knows server {subject.uuid} as deleted, but {doubt}.", *view.server_answers
        )
    return orphaned(
        f"{describe_deletion(subject)} Its claim stayed.",
        *view.server_answers,
        server=find_deleted_server(subject),
    )


def ended_migration(view: ConsumerView, policy: Policy) -> Decision | None:
    """The migration is over, and its server does not need what it holds.

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
    # The listing of all migrations is older than what was asked about the server itself.
    current = _find_current_migration(view)
    if current is None:
        return undecided(
            f"Nova listed migration {view.consumer} and then no longer did: its server is "
            "changing.",
            *evidence,
        )
    ending = _describe_ended_migration(current)
    if is_deleted(view.subject) and not view.contradiction:
        return orphaned(
            f"{ending} {describe_deletion(view.subject)}",
            *evidence,
            server=find_deleted_server(view.subject),
        )
    need = _explain_possible_need(view, current)
    if need:
        return undecided(f"{ending} {need}", *evidence)
    return orphaned(
        f"{ending} Its server {current.server} rests on {view.node_name} and holds that itself.",
        *evidence,
    )


def _find_current_migration(view: ConsumerView) -> Migration | None:
    """Return the migration that the consumer is, as the answer about its server lists it."""
    for migration in view.subject.migrations.value or ():
        if migration.uuid == view.consumer:
            return migration
    return None


def _explain_possible_need(view: ConsumerView, migration: Migration) -> str | None:
    """Say why the server may need the allocation of its ended `migration`; None if it does not."""
    if not view.settled or not view.arrived:
        return f"Its server {migration.server} is not at rest, so what it needs is not known."
    reverted = _explain_possible_revert(view, migration)
    if reverted:
        return reverted
    missing = _describe_missing_resources(view)
    if missing:
        return (
            f"Its server {migration.server} does not itself hold {missing}, "
            "so this claim may be the one it needs."
        )
    return None


def deleted_migration(view: ConsumerView, policy: Policy) -> Decision | None:
    """The migration went with its deleted server, and its allocation stayed.

    Proof: No listing has it, neither as a server nor as a migration, and yet Nova takes its uuid
    for a migration's when it is asked to list from there on. Both were asked several times, each
    time over another connection, and the answers agree. Nothing shows it alive.

    Needs: Every cell: it rests on no listing having the migration.

    Change: all that it holds is removed.
    """
    subject = view.subject
    # Actions would say that the uuid is a server's (is_marked_deleted).
    if (
        view.migration
        or not is_unlisted(subject)
        or subject.marker.status != 200
        or subject.actions.status != 404
        or view.contradiction
    ):
        return None
    # Only agreeing API workers prove it: one that lacks the cell answers differently.
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
    if not _has_own_and_other_trees_allocated(view):
        return None
    evacuations = _find_evacuations_from_other_trees(view)
    # A guest can run where an evacuation or a live migration failed late.
    if not evacuations or view.find_failed_move_to(evacuations):
        return None
    left_hosts = "; ".join(
        _describe_evacuation_from(view, root, evacuation)
        for root, evacuation in sorted(evacuations.items())
    )
    return orphaned(
        f"Server {view.consumer} left {left_hosts}, rests on {view.node_name} "
        "and still holds both.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=next(iter(evacuations.values())),
    )


def _find_evacuations_from_other_trees(view: ConsumerView) -> dict[str, Migration]:
    """Return the evacuation that left each of the other trees, by root; {} unless all were left.

    Of each tree the server must hold what a server holds of its host.
    """
    evacuations: dict[str, Migration] = {}
    for root in view.other_trees:
        evacuation = _find_evacuation_from(view, root)
        # One host that was not left is enough: then none of them is freed by this proof.
        if evacuation is None or not _has_compute_allocation(view, root):
            return {}
        evacuations[root] = evacuation
    return evacuations


def _describe_evacuation_from(view: ConsumerView, root: str, evacuation: Migration) -> str:
    return (
        f"{view.index.get_name(root)} by evacuation {evacuation.uuid} "
        f"({evacuation.status}, {evacuation.changed_at})"
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
    others = ", ".join(sorted(map(view.index.get_name, view.other_trees)))
    doubt = _explain_possible_use_of_other_hosts(view, others)
    if doubt:
        return undecided(
            f"Server {view.consumer} rests on {view.node_name} and also holds {doubt}",
            *view.server_answers,
        )
    return orphaned(
        f"Server {view.consumer} rests on {view.node_name}, with no move under way, "
        f"and also holds {others}.",
        *view.server_answers,
        freed_providers=frozenset().union(*view.other_trees.values()),
        migration=_find_migration_from_other_trees(view),
    )


def _explain_possible_use_of_other_hosts(view: ConsumerView, others: str) -> str | None:
    """Say what the server holds of the `others`, and why it may need that; None if it does not."""
    doubtful = [root for root in view.other_trees if not _has_compute_allocation(view, root)]
    if doubtful:
        names = ", ".join(sorted(map(view.index.get_name, doubtful)))
        return (
            f"a part of {names}, but not as a server's claim on its host: "
            "it may be something that this host shares."
        )
    missing = _list_classes_only_on_gone_hosts(view)
    if missing:
        return (
            f"{others}; of that, {', '.join(missing)} it does not hold on its own host, "
            "which may lack a part of its claim."
        )
    # The hypervisors can finish a move that Nova gave up.
    failed = view.find_failed_move_to(view.other_trees)
    if failed:
        return f"{others}, where {failed.type} {failed.uuid} of it failed: its guest may run there."
    return None


def _find_migration_from_other_trees(view: ConsumerView) -> Migration | None:
    """Return the newest ended migration away from the first of the other trees that has one."""
    for root in view.other_trees:
        migration = view.find_migration_from(root)
        if migration is not None:
            return migration
    return None


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
    # A server that has a node may be there.
    if server.node:
        return None
    if not view.trees or not all(_is_tree_of_nova(view, root) for root in view.trees):
        return None
    evidence = (*view.server_answers, *subject.last_actions)
    doubt = view.contradiction or _explain_possible_placement(view)
    was_read = server.task_known and server.host_known and subject.migrations.value is not None
    if not doubt and not was_read:
        doubt = "not all of its state was told"
    if doubt:
        return undecided(
            f"Server {server.uuid} is {server.status} and seems to have no host, but {doubt}.",
            *evidence,
        )
    return orphaned(
        f"Server {server.uuid} is {server.status} and has no host, and all that was asked of it "
        "is over.",
        *evidence,
    )


def _is_tree_of_nova(view: ConsumerView, root: str | None) -> bool:
    """Return whether `root` is a compute node's provider, or has a trait that only Nova gives."""
    if not root:
        return False
    return root in view.index.nodes or view.index.has_nova_trait(root)


def _explain_lost_host(server: Server, view: ConsumerView) -> Decision | None:
    """Say what to do about a server without a host whose status is that of a server on a host."""
    if not server.host_known or not server.task_known:
        return None
    return undecided(
        f"Server {server.uuid} is {server.status} without a task and without a host, and holds "
        f"{format_providers(view)}. Nova can neither start nor move it: delete it, or set it to "
        "ERROR, and its allocation becomes an orphan that can be proven.",
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
    if not is_unknown_to_nova(view) or not view.trees:
        return None
    gone = [root for root in view.trees if root is not None and index.is_gone(root)]
    # On any other provider it may be another service's.
    if not set(view.trees) <= {*index.nodes, *gone}:
        return None
    evidence: tuple[Answer[t.Any], ...] = (
        index.snapshot.hypervisors,
        *view.migration_listings,
        *view.server_answers,
    )
    unnamed = _list_unnamed_hosts(view, gone)
    if unnamed:
        return undecided(
            "Nova has no memory of it, and no compute node stands behind "
            f"{', '.join(sorted(unnamed))}, which was one's by its traits: name that host "
            "(orphan_cleanup_hosts) to have this taken for a leftover.",
            *evidence,
        )
    if age is None or age < policy.unknown_min_age:
        return protected(_explain_unknown_min_age(age, policy), *evidence)
    doubt = _explain_incomplete_search(view) or _explain_possible_allocator(view, policy)
    if doubt:
        return undecided(doubt, *evidence)
    return orphaned(_describe_unknown_consumer(view, policy), *evidence)


def _list_unnamed_hosts(view: ConsumerView, gone: Collection[str]) -> list[str]:
    """Return the names of the roots in `gone` that the user did not name, nor their consumer."""
    if view.consumer in view.index.snapshot.scope.consumers:
        return []
    return [view.index.get_name(root) for root in gone if not view.index.is_named(root)]


def _explain_unknown_min_age(age: int | None, policy: Policy) -> str:
    """Say how old a consumer of which Nova has no record must be; `age` in seconds."""
    written = "at an unknown time"
    if age is not None:
        written = f"{format_duration(age)} ago"
    return (
        f"Nova has no memory of it, but it was written {written} and must be "
        f"{format_duration(policy.unknown_min_age)} old for that."
    )


def _explain_incomplete_search(view: ConsumerView) -> str | None:
    """Say why Nova may know the consumer although no answer shows it; None if all were asked."""
    if not view.index.has_servers_of_every_host:
        return (
            "Nova has no memory of it, but not every host was asked whether it is there: "
            "run mode=full on the whole cloud."
        )
    # Credentials that may not see the servers of others get the same answers.
    if not any(sample.status == 200 for sample in view.index.snapshot.samples):
        return (
            "Nova says that it does not know it, but there was no live server to see whether "
            "it would tell us."
        )
    return None


def _explain_possible_allocator(view: ConsumerView, policy: Policy) -> str | None:
    """Say which other service may have allocated for an untyped consumer; None if there is none."""
    if view.allocation.type:
        return None
    others = view.index.snapshot.cloud.allocators
    suspects = [name for name in others if name not in policy.ignore_allocators]
    if not suspects:
        return None
    return (
        "Nova has no memory of it, but it has no consumer type and this cloud has "
        f"{', '.join(suspects)} in its catalogue: it may hold this. Look there, and name in "
        "ignore_allocators (orphan_cleanup_ignore_allocators) what holds nothing on Nova's hosts."
    )


def _describe_unknown_consumer(view: ConsumerView, policy: Policy) -> str:
    allocators = _describe_allocators(view.index.snapshot.cloud.allocators, policy)
    return (
        "Nova has no memory of it, neither as a server nor as a migration. This is a conclusion "
        f"from absence: a container service that shares Nova's hosts ({allocators}), "
        "or an operator who blocks capacity by hand, looks the same."
    )


def _describe_allocators(others: Collection[str], policy: Policy) -> str:
    if not others:
        return "this cloud has no container service in its catalogue"
    in_catalogue = f"this cloud has {', '.join(others)} in its catalogue"
    ignored = ", ".join(name for name in others if name in policy.ignore_allocators)
    if not ignored:
        return in_catalogue
    return f"{in_catalogue}; ignore_allocators says that {ignored} holds nothing on Nova's hosts"


def is_unknown_to_nova(view: ConsumerView) -> bool:
    """Return whether Nova, asked in every way, has no record of a server or migration like it."""
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
    # A migration that names it as its server shows that Nova had that server.
    if view.server_migrations:
        return False
    for listing in view.migration_listings:
        if any(migration.server == view.consumer for migration in listing.value or ()):
            return False
    return True


def _explain_possible_revert(view: ConsumerView, migration: Migration) -> str | None:
    """Say why the source of a failed move may have the only disk of a server at the destination.

    A revert that fails half-way has destroyed what was on the destination
    (nova/compute/manager.py, revert_resize, finish_revert_resize), and leaves the migration in
    error and the server where it was.
    """
    if not view.is_at_failed_destination(migration):
        return None
    actions = view.subject.actions.value
    if actions is None:
        return (
            f"Its server {migration.server} is on the destination, and whether it was reverted "
            "there could not be read."
        )
    if any(action.action == REVERT_ACTION for action in actions):
        return (
            f"Its server {migration.server} is said to be on the destination, but was to be "
            "reverted: its disk may be on the source."
        )
    return None


def _explain_possible_placement(view: ConsumerView) -> str | None:
    """Say which action on a server without a host may still give it one; None if none can."""
    actions: list[Action] = []
    for answer in view.subject.last_actions:
        if answer.value is None or not answer.value.is_finished:
            return "its last actions may still run"
        actions.append(answer.value)
    placing = next((action for action in actions if action.action in PLACING_ACTIONS), None)
    shelving = next((action for action in actions if action.shelving_hosts), None)
    allocated_hosts = set(view.index.list_hosts_of(view.allocation.resources))
    if shelving is not None:
        only_on_shelving_host = allocated_hosts <= shelving.shelving_hosts
        return _explain_possible_queued_action(view, placing is not None, only_on_shelving_host)
    if placing is None:
        return "what gave it its last host is not known"
    # Conductor tries a build on a second host when the first has ended its part. Nova calls the
    # server ERROR when that host starts, and then that host takes the build from its queue
    # (nova/compute/manager.py, _error_out_instances_whose_build_was_interrupted).
    begun_on = placing.placing_hosts
    if begun_on and not allocated_hosts <= begun_on:
        return "the host that it claims may still have to take up what was asked"
    return None


def _explain_possible_queued_action(
    view: ConsumerView, placed: bool, only_on_shelving_host: bool
) -> str | None:
    """Say why an action from before a finished shelve may still give the server a host.

    Only a host that has the server shelves it, and the API takes no other action while one has a
    task (nova/compute/api.py, check_instance_state): so all that came before is over. The exception
    is a reset of the state, which hides the task of an action that waits in the queue of another
    host. The server holds an allocation of that other host. So where the server holds only the host
    that shelved it, no action waits; that host takes its messages in their order.

    placed: whether the newest action that could give it a host was listed, and is over.
    """
    if only_on_shelving_host:
        return None
    if not placed:
        return "what gave it its last host is not known"
    actions = view.subject.actions.value
    if actions is None or any(action.action == RESET_ACTION for action in actions):
        return (
            "its state was reset once, and what was asked before that may wait for the host that "
            "it claims"
        )
    return None


def is_deleted(subject: Evidence) -> bool:
    """Return whether Nova knows the server as deleted, by its listing or by its actions."""
    return find_deleted_server(subject) is not None or is_marked_deleted(subject)


def is_marked_deleted(subject: Evidence) -> bool:
    """Return whether the row of the server is marked as deleted, but not listed as deleted.

    A repair of the database that sets `deleted` to 1, where Nova sets it to the row's own id,
    leaves such a row. `GET /servers/{id}` selects rows with `deleted = 0`, the listing of the
    deleted for `deleted = id` (nova/db/main/api.py, instance_get_all_by_filters_sort), and the
    actions of a server for any (nova/api/openstack/compute/instance_actions.py, _get_instance).
    All three go by the instance mapping to the same cell, so where that is lost there are no
    actions either.
    """
    return is_unlisted(subject) and bool(subject.actions.value)


def _explain_marker_conflict(subject: Evidence) -> str | None:
    """Say that Nova takes the uuid of a server with actions for a migration's as well, if so."""
    if find_deleted_server(subject) or subject.marker.status != 200:
        return None
    return "takes its uuid for a migration's as well"


def find_deleted_server(subject: Evidence) -> Server | None:
    """Return the server that Nova lists as deleted, if a direct look-up of it is a 404."""
    if subject.server.status != 404 or subject.migrations.value is None:
        return None
    listed = None
    for server in subject.deleted_listing.value or ():
        if server.uuid == subject.uuid:
            listed = server
            break
    # The listing of the deleted also has the soft-deleted, which can be restored; the brief one
    # does not say which they are.
    if listed is None or listed.status == "SOFT_DELETED":
        return None
    if not listed.status and find_deletion(subject.actions) is None:
        return None
    return listed


def is_unlisted(subject: Evidence) -> bool:
    """Return whether Nova has no server of this uuid, live or deleted.

    The listings of migrations at its hosts must have been read as well.
    """
    # An answer that could not be read is None, which is not the same as an empty listing.
    has_no_server = subject.server.status == 404 and subject.deleted_listing.value == ()
    return has_no_server and subject.migrations.value is not None and bool(subject.host_migrations)


def _has_own_tree_allocated(view: ConsumerView) -> bool:
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and _has_compute_allocation(view, view.own_tree)
    )


def _has_own_and_other_trees_allocated(view: ConsumerView) -> bool:
    return _has_own_tree_allocated(view) and bool(view.other_trees)


def _describe_doubtful_trees(view: ConsumerView) -> str:
    """Say which former compute nodes' providers a server holds, and who may still need them."""
    doubts = "; ".join(
        f"{view.index.get_name(root)}: {view.index.find_possible_host(root)}"
        for root in sorted(view.doubtful_trees)
    )
    return (
        f"Server {view.consumer} rests on {view.node_name} and also holds providers without a "
        f"compute node that were one's ({doubts})."
    )


def _list_classes_only_on_gone_hosts(view: ConsumerView) -> list[str]:
    """Return the resource classes that a server holds only on hosts that are gone.

    What it holds on its own host or of a sharing provider is left out.
    """
    resources = view.allocation.resources
    on_gone_hosts: set[str] = set()
    for root, providers in view.other_trees.items():
        if not view.index.is_gone(root):
            continue
        for provider in providers:
            on_gone_hosts.update(resources[provider])
    usable: set[str] = set()
    for provider, amounts in resources.items():
        if view.index.get_root(provider) == view.own_tree or view.index.is_sharing(provider):
            usable.update(amounts)
    return sorted(on_gone_hosts - usable)


def _find_evacuation_from(view: ConsumerView, root: str) -> Migration | None:
    """Return the newest evacuation that left the tree `root` and took place."""
    for migration in view.server_migrations:
        took_place = migration.type == "evacuation" and migration.status in ("done", "completed")
        if took_place and view.is_source(root, migration):
            return migration
    return None


def _has_compute_allocation(view: ConsumerView, root: str | None) -> bool:
    """Return whether the server holds of `root` a class that it also holds of its own host.

    An allocation without such a class is not a leftover of a move.
    """
    resources = view.allocation.resources
    own_classes = _list_compute_classes(resources, view.own_tree)
    return bool(_list_compute_classes(resources, root) & own_classes)


def _list_compute_classes(allocations: Allocations, root: str | None) -> frozenset[str]:
    """Return the classes that a server holds of the root of a host itself, its disk left out."""
    # A disk alone is not an allocation of a server on its host.
    return frozenset(allocations.get(root or "", {})) - {"DISK_GB"}


def _describe_missing_resources(view: ConsumerView) -> str:
    """Name what a migration holds that its server may need and does not hold; '' if nothing.

    Nova can fail to give an allocation back after a failed or reverted move and only log it
    (nova/compute/manager.py, _revert_allocation): the server then rests with less than it needs,
    and the rest is the migration's. After a confirmed move the server's own allocation is the right
    one.
    """
    server_allocation = view.subject.allocation.value
    server_resources: Allocations = {}
    if server_allocation:
        server_resources = server_allocation.resources
    confirmed = view.migration is not None and view.migration.status == "confirmed"
    own_classes = _list_compute_classes(server_resources, view.own_tree)
    if not own_classes:
        return f"its own host {view.node_name}"
    for provider, amounts in view.allocation.resources.items():
        if _is_of_left_host(view, provider, own_classes):
            continue
        # After a confirmed move the server's own allocation is right, whatever its amounts.
        if confirmed and view.index.get_root(provider) == view.own_tree:
            continue
        missing = _list_missing_classes(amounts, server_resources.get(provider, {}), confirmed)
        if missing:
            return f"as much {', '.join(missing)} of {view.index.get_name(provider)}"
    return ""


def _is_of_left_host(view: ConsumerView, provider: str, own_classes: Collection[str]) -> bool:
    """Return whether `provider` is of a host that the server left, or on which it is not.

    own_classes: what the server holds of its own host; of the other host the migration must hold
        one of these classes, unless a migration names that host as its source.
    """
    root = view.index.get_root(provider)
    if root is None or root == view.own_tree or view.index.is_sharing(provider):
        return False
    if view.find_migration_from(root):
        return True
    if root not in view.index.nodes:
        return False
    return bool(_list_compute_classes(view.allocation.resources, root).intersection(own_classes))


def _list_missing_classes(needed: Resources, held: Resources, confirmed: bool) -> list[str]:
    """Return the classes of which less is `held` than `needed`, in their order.

    confirmed: whether any amount is enough, for the server's own allocation is the right one after
        a confirmed move.
    """
    missing = []
    for cls, amount in needed.items():
        enough = amount
        if confirmed:
            enough = 1
        if held.get(cls, 0) < enough:
            missing.append(cls)
    return sorted(missing)


def _describe_ended_migration(migration: Migration) -> str:
    return (
        f"Migration {migration.uuid} ({migration.type}) is over: {migration.status} since "
        f"{migration.changed_at}."
    )


def describe_deletion(subject: Evidence) -> str:
    """Return a sentence that says how a server that Nova knows as deleted was deleted."""
    deleted, deletion = find_deleted_server(subject), find_deletion(subject.actions)
    if deleted is None:
        asked = "Nova recorded no delete action"
        if deletion:
            asked = f"user {deletion.user} asked for its deletion at {deletion.start_time}"
        return (
            f"Server {subject.uuid} is marked as deleted in the database by hand, in a way that "
            f"Nova itself does not use; {asked}."
        )
    if deletion:
        return (
            f"Server {deleted.uuid} is deleted, by user {deletion.user} at {deletion.start_time}."
        )
    changed_at = deleted.terminated_at or deleted.updated
    return (
        f"Server {deleted.uuid} is deleted, last changed {changed_at}; "
        "Nova recorded no delete action."
    )
