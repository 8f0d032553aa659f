# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proof of each kind of finding: one function a kind, named as the kind. The table of kinds is in `_judge`.

Each returns a ruling if the case is of its kind, or None to let the next one look. Protections were asked before:
no case here has a task, a move under way or a parked resize.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._case import deletion_in
from ansible_collections.osops.placement.plugins.module_utils._clock import spoken
from ansible_collections.osops.placement.plugins.module_utils._model import (
    PLACING_ACTIONS,
    REVERT_ACTION,
    SHELVING_ACTIONS,
    UNHOSTED_STATUS,
)
from ansible_collections.osops.placement.plugins.module_utils._ruling import orphaned, protected, undecided

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection

    from ansible_collections.osops.placement.plugins.module_utils._case import Case
    from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Dossier, Holding, Migration, Policy, Server
    from ansible_collections.osops.placement.plugins.module_utils._ruling import Ruling


def deleted_server(case: Case, policy: Policy) -> Ruling | None:
    """The server is deleted, and its claim stayed.

    Proof: A direct look-up finds no server, the listing of the deleted has it (and not as soft-deleted), and neither its former host
    nor a migration shows it alive.

    Change: all that it holds is removed.
    """
    deleted = deletion_of(case.subject)
    if case.migration or deleted is None:
        return None
    if case.contradiction:
        return undecided(f"Nova lists server {deleted.uuid} as deleted, but {case.contradiction}.", *case.questions)
    return orphaned(f"{how_it_went(case.subject, deleted)} Its claim stayed.", *case.questions, server=deleted)


def ended_migration(case: Case, policy: Policy) -> Ruling | None:
    """The migration is over, and nobody needs what it holds.

    Proof: Nova lists it as ended. Either its server is deleted, as above; or its server is settled where its newest move took it,
    cannot come back by a revert, and itself holds all of what this claim may stand for.

    Change: all that the migration holds is removed.
    """
    if case.migration is None:
        return None
    evidence = (case.land.snapshot.migrations, *case.questions)
    current = next((known for known in case.subject.migrations.value or () if known.uuid == case.consumer), None)
    if current is None:
        return undecided(f"Nova listed migration {case.consumer} and then no longer did: its server is changing.", *evidence)
    deleted = deletion_of(case.subject)
    if deleted and not case.contradiction:
        return orphaned(f"{_ended(current)} {how_it_went(case.subject, deleted)}", *evidence, server=deleted)
    if not case.settled or not case.arrived:
        return undecided(f"{_ended(current)} Its server {current.server} is not at rest, so what it needs is not known.", *evidence)
    if reverted := _may_be_reverted(case, current):
        return undecided(f"{_ended(current)} {reverted}", *evidence)
    lacking = _needed_from(case)
    if lacking:
        return undecided(
            f"{_ended(current)} Its server {current.server} does not itself hold {lacking}, so this claim may be the one it needs.",
            *evidence,
        )
    return orphaned(f"{_ended(current)} Its server {current.server} rests on {case.home} and holds that itself.", *evidence)


def forgotten_migration(case: Case, policy: Policy) -> Ruling | None:
    """The migration went with its deleted server, and its claim stayed.

    Proof: No listing has it, neither as a server nor as a migration, and yet Nova takes its uuid for a migration's when it is asked
    to list from there on. Both were asked several times, each over a connection of its own, and the answers agree. Nothing shows it
    alive.

    Change: all that it holds is removed.
    """
    subject = case.subject
    if case.migration or not unlisted(subject) or subject.marker.status != 200 or case.contradiction:
        return None
    differing = [answer for answer in subject.markers if answer.status != 200]
    if differing:
        return undecided(
            f"Nova knew it as a migration's, and then answered {differing[0].status} to the same question: its API workers disagree.",
            *case.questions,
            *differing,
        )
    return orphaned(
        "Nova knows the uuid as a migration's and no longer lists it: the migration went with its deleted server.",
        *case.migration_listings,
        *case.questions,
    )


def evacuated_source(case: Case, policy: Policy) -> Ruling | None:
    """The server was evacuated, and still holds the host that it left.

    Proof: It is settled where its newest move took it and holds that host; every other host that it holds was left by an evacuation
    that is `done` or `completed`, and no move of it to there failed.

    Change: the hosts that it left are taken out of its claim; the rest stays.
    """
    left = {root: _evacuation_from(case, root) for root in case.other_trees}
    if not _holds_home_and_more(case) or not all(left.values()) or not all(_claims_host(case, root) for root in left):
        return None
    if case.failed_move_to(left):
        return None
    told = "; ".join(
        f"{case.land.name(root)} by evacuation {evacuation.uuid} ({evacuation.status}, {evacuation.updated_at or evacuation.created_at})"
        for root, evacuation in sorted(left.items())
        if evacuation
    )
    return orphaned(
        f"Server {case.consumer} left {told}, rests on {case.home} and still holds both.",
        *case.questions,
        drops=frozenset().union(*case.other_trees.values()),
        migration=next(iter(left.values())),
    )


def wrong_host(case: Case, policy: Policy) -> Ruling | None:
    """The server holds its host, and another one as well.

    Proof: It is settled where its newest move took it, holds that host, has no move under way, and holds of the other host what a
    server claims on its host. No evacuation or live migration to there failed, so that its guest cannot run there.

    Change: the other hosts are taken out of its claim; the rest stays.
    """
    if not _holds_home_and_more(case):
        return None
    doubtful = sorted(case.land.name(root) for root in case.other_trees if not _claims_host(case, root))
    if doubtful:
        return undecided(
            f"Server {case.consumer} rests on {case.home} and also holds a part of {', '.join(doubtful)}, "
            "but not as a server's claim on its host: it may be something that this host shares.",
            *case.questions,
        )
    others = ", ".join(sorted(map(case.land.name, case.other_trees)))
    if failed := case.failed_move_to(case.other_trees):
        return undecided(
            f"Server {case.consumer} rests on {case.home} and also holds {others}, where {failed.type} {failed.uuid} of it failed: "
            "its guest may run there.",
            *case.questions,
        )
    return orphaned(
        f"Server {case.consumer} rests on {case.home}, with no move under way, and also holds {others}.",
        *case.questions,
        drops=frozenset().union(*case.other_trees.values()),
        migration=next(filter(None, map(case.named_by, case.other_trees)), None),
    )


def unhosted_server(case: Case, policy: Policy) -> Ruling | None:
    """The server failed to boot or is shelved away, and still holds a host.

    Proof: It is in ERROR or SHELVED_OFFLOADED, has neither a host nor a task, is on no hypervisor and no migration, and all that was
    asked of it is over, so that no host can still take it up.

    Change: all that it holds is removed; what it needs is claimed anew when it is rebuilt or unshelved.
    """
    server, subject = case.server, case.subject
    if case.migration or server is None or server.host or server.node or server.status not in UNHOSTED_STATUS:
        return None
    if not case.trees or not set(case.trees) <= set(case.land.nodes):
        return None
    evidence = (*case.questions, *subject.last_actions)
    doubt = case.contradiction or _may_get_a_host(case)
    if doubt or not server.task_known or not server.host_known or subject.migrations.value is None:
        told = doubt or "not all of its state was told"
        return undecided(f"Server {server.uuid} is {server.status} and seems to have no host, but {told}.", *evidence)
    return orphaned(f"Server {server.uuid} is {server.status} and has no host, and all that was asked of it is over.", *evidence)


def forgotten_consumer(case: Case, policy: Policy) -> Ruling | None:
    """Nova has no memory of it at all.

    Proof: It is no server, no deleted server and no migration, has no actions, is named by no migration, every host was asked and
    does not have it, and it holds nothing but hosts of this Nova. A conclusion from absence: another service that shares Nova's hosts
    looks the same. It must be older than `orphan_cleanup_forgotten_min_age`. Without a consumer type it is undecided while the service
    catalogue has a service that allocates for itself, unless `orphan_cleanup_ignore_allocators` names that.

    Change: all that it holds is removed, if this kind was chosen.
    """
    land, age = case.land, case.allocation.age_seconds
    if not forgotten(case) or not case.trees or not set(case.trees) <= set(land.nodes):
        return None
    evidence: tuple[Answer[t.Any], ...] = (land.snapshot.hypervisors, *case.migration_listings, *case.questions)
    if age is None or age < policy.forgotten_min_age:
        written = "at an unknown time" if age is None else f"{spoken(age)} ago"
        return protected(
            f"Nova has no memory of it, but it was written {written} and must be {spoken(policy.forgotten_min_age)} old for that.",
            *evidence,
        )
    if not land.everywhere:
        return undecided(
            "Nova has no memory of it, but not every host was asked whether it is there: run mode=full on the whole cloud.", *evidence
        )
    if not any(sample.status == 200 for sample in land.snapshot.samples):
        return undecided("Nova says that it does not know it, but there was no live server to see whether it would tell us.", *evidence)
    others = land.snapshot.cloud.allocators
    if not case.allocation.type and (suspects := [name for name in others if name not in policy.ignore_allocators]):
        return undecided(
            f"Nova has no memory of it, but it has no consumer type and this cloud has {', '.join(suspects)} in its catalogue: it may hold "
            "this. Look there, and name in ignore_allocators (orphan_cleanup_ignore_allocators) what holds nothing on Nova's hosts.",
            *evidence,
        )
    return orphaned(
        "Nova has no memory of it, neither as a server nor as a migration. This is a conclusion from absence: "
        f"a container service that shares Nova's hosts ({_allocators_told(others, policy)}), or an operator who blocks capacity by hand, looks the same.",
        *evidence,
    )


def _allocators_told(others: Collection[str], policy: Policy) -> str:
    if not others:
        return "this cloud has no container service in its catalogue"
    ignored = ", ".join(name for name in others if name in policy.ignore_allocators)
    by_whom = f"; ignore_allocators says that {ignored} holds nothing on Nova's hosts" if ignored else ""
    return f"this cloud has {', '.join(others)} in its catalogue{by_whom}"


def forgotten(case: Case) -> bool:
    """Tell whether Nova, asked in every way there is, shows no memory of the consumer, neither as a server nor as a migration."""
    subject = case.subject
    if any(answer.status != 400 for answer in subject.markers):
        return False
    if case.migration or not unlisted(subject) or subject.marker.status != 400 or subject.actions.status != 404 or case.contradiction:
        return False
    named = any(known.server == case.consumer for listing in case.migration_listings for known in listing.value or ())
    return not named and not case.server_migrations


def _may_be_reverted(case: Case, migration: Migration) -> str | None:
    """Say why the source of a failed move may have the server's only disk, though the server rests on the destination.

    A revert that fails half-way has destroyed what was on the destination (nova/compute/manager.py, revert_resize, finish_revert_resize),
    and leaves the migration in error and the server where it was.
    """
    if not case.at_failed_destination(migration):
        return None
    if case.subject.actions.value is None:
        return f"Its server {migration.server} is on the destination, and whether it was reverted there could not be read."
    if any(action.action == REVERT_ACTION for action in case.subject.actions.value):
        return f"Its server {migration.server} is said to be on the destination, but was to be reverted: its disk may be on the source."
    return None


def _may_get_a_host(case: Case) -> str | None:
    """Say why something that was asked of a server without a host may still give it one."""
    actions = [answer.value for answer in case.subject.last_actions]
    if not all(action is not None and action.over for action in actions):
        return "its last actions may still run"
    placing = next((action for action in actions if action and action.action in PLACING_ACTIONS), None)
    if placing is None:
        return "what gave it its last host is not known"
    # Conductor tries a build on a second host when the first has ended its part. Nova calls the server ERROR when that host
    # starts, and then that host takes the build from its queue (nova/compute/manager.py, _error_out_instances_whose_build_was_interrupted).
    shelved = any(action and action.action in SHELVING_ACTIONS for action in actions)
    begun_on = placing.taken_up_by
    if not shelved and begun_on and not set(case.land.hosts_of(case.allocation.resources)) <= begun_on:
        return "the host that it claims may still have to take up what was asked"
    return None


def deletion_of(subject: Dossier) -> Server | None:
    """Return the server as Nova remembers it, if Nova remembers its deletion and a direct look-up finds nothing."""
    if subject.server.status != 404 or subject.migrations.value is None:
        return None
    named = next((server for server in subject.deleted_listing.value or () if server.uuid == subject.uuid), None)
    # The listing of the deleted also has the soft-deleted, which can be restored; the brief one does not say which they are.
    if named is None or named.status == "SOFT_DELETED" or (not named.status and deletion_in(subject.actions) is None):
        return None
    return named


def unlisted(subject: Dossier) -> bool:
    """No server of this uuid is found, neither a live one nor a deleted one, and it was looked for among its hosts' migrations."""
    found_nothing = subject.server.status == 404 and subject.deleted_listing.value == ()
    return found_nothing and subject.migrations.value is not None and bool(subject.host_migrations)


def _holds_home_and_more(case: Case) -> bool:
    return case.at_rest and case.own_tree is not None and _claims_host(case, case.own_tree) and bool(case.other_trees)


def _evacuation_from(case: Case, root: str) -> Migration | None:
    named = (known for known in case.server_migrations if known.type == "evacuation" and known.status in ("done", "completed"))
    return next((evacuation for evacuation in named if case.is_source(root, evacuation)), None)


def _claims_host(case: Case, root: str | None) -> bool:
    """Tell whether the server holds of `root` what it also holds of its own host; a share that looks otherwise is no leftover of a move."""
    held = case.allocation.resources
    return bool(_claim_on(held, root) & _claim_on(held, case.own_tree))


def _claim_on(holding: Holding, root: str | None) -> frozenset[str]:
    """Return the classes of a server's claim on a host: it is on the root itself, and never of disk alone."""
    return frozenset(holding.get(root or "", {})) - {"DISK_GB"}


def _needed_from(case: Case) -> str:
    """Name what a migration's consumer holds that its server may need and does not itself hold; nothing if there is none.

    Nova can fail to give a claim back after a failed or reverted move and only log it (nova/compute/manager.py,
    _revert_allocation): the server then rests with less than it needs, and the rest is the migration's. After a confirmed
    move the server's own claim is the right one.
    """
    allocation = case.subject.allocation.value
    held = allocation.resources if allocation else {}
    confirmed = case.migration is not None and case.migration.status == "confirmed"
    claim = _claim_on(held, case.own_tree)
    if not claim:
        return f"its own host {case.home}"
    for provider, share in case.allocation.resources.items():
        root = case.land.root(provider)
        at_home = root == case.own_tree
        left = root is not None and (
            case.named_by(root) or (root in case.land.nodes and _claim_on(case.allocation.resources, root) & claim)
        )
        if left and not at_home and not case.land.shared(provider):
            continue
        if at_home and confirmed:
            continue
        lacking = [cls for cls, amount in share.items() if held.get(provider, {}).get(cls, 0) < (1 if confirmed else amount)]
        if lacking:
            return f"as much {', '.join(sorted(lacking))} of {case.land.name(provider)}"
    return ""


def _ended(migration: Migration) -> str:
    return (
        f"Migration {migration.uuid} ({migration.type}) is over: {migration.status} since {migration.updated_at or migration.created_at}."
    )


def how_it_went(subject: Dossier, deleted: Server) -> str:
    when = deleted.terminated_at or deleted.updated
    if deletion := deletion_in(subject.actions):
        return f"Server {deleted.uuid} is deleted, by user {deletion.user} at {deletion.start_time}."
    return f"Server {deleted.uuid} is deleted, last changed {when}; Nova recorded no delete action."
