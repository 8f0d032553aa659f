# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova has no record of the consumer; this rests on absence of evidence alone."""

from __future__ import annotations

import typing as t
from collections.abc import Collection

from ..._common.errors import Reason
from ..._common.times import format_duration
from ..facts.consumer import ConsumerView
from ..facts.deletion import is_unknown_to_nova
from ..models.finding import Decision, orphaned, protected, undecided
from ..models.kind import EVERY, OPT_IN, ORPHAN, Requirement, define_kind
from ..models.snapshot import ACTIONS, DELETED, HOST_MIGRATIONS, MARKER, ROWS, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    ORPHAN,
    OPT_IN,
    needs=(DELETED, ACTIONS, MARKER, HOST_MIGRATIONS, ROWS),
    version=Requirement("Placement", (1, 38), "which consumers belong to another service"),
    cells=EVERY,
    was="forgotten_consumer",
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether Nova has no record of the consumer.

    Proof: Nova has no record of the UUID: it is not a server, a deleted server or a migration, it
    has no instance actions, no migration names it as its server, and no cell has a row of it: every
    host was asked for its servers, or every cell for this one, several times over. The credentials
    can see a live server, so a 404 is not for lack of permission. The consumer has allocations only
    on compute nodes of this Nova. A host that is gone counts too, if its provider has the trait
    `COMPUTE_NODE` or `OWNER_NOVA`, no other Nova uses this Placement, and you name the host in
    `orphan_cleanup_hosts` or the consumer in `orphan_cleanup_consumers`. The allocation is older
    than `orphan_cleanup_unknown_min_age`. All of this rests on absence of evidence alone: a
    consumer of another service that shares Nova's hosts looks the same, and so does the migration
    of a live server whose row was purged by hand. A consumer without a type is undecided while the
    service catalogue has a service that makes allocations itself, unless
    `orphan_cleanup_ignore_allocators` names that service.

    Needs: Every cell, because the proof is that Nova has no record of the consumer anywhere.

    Change: All its allocations are removed.
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
        *view.subject.rows[:1],
    )
    if gone and (possible := index.find_possible_nova(policy)):
        reason = possible.reword(f"Nova has no record of the consumer. But {possible}.")
        return undecided(reason, *evidence)
    if unnamed := _list_unnamed_hosts(view, gone):
        reason = Reason(
            "host_to_be_named",
            "Nova has no record of the consumer, and its allocation is on "
            f"{', '.join(sorted(unnamed))}, which by its traits belonged to a compute node that "
            "Nova no longer lists. If that host is gone, name it in orphan_cleanup_hosts, and the "
            "consumer can be proven to be a leftover.",
        )
        return undecided(reason, *evidence)
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


def _explain_unknown_min_age(age: int | None, policy: Policy) -> Reason:
    """Return why a consumer of this `age` in seconds is too young for this kind."""
    written = f"{format_duration(age)} ago" if age is not None else "at an unknown time"
    return Reason(
        "younger_than_unknown_min_age",
        f"Nova has no record of the consumer, but its allocation was last written {written}, and "
        f"the minimum age for this kind is {format_duration(policy.unknown_min_age)}.",
    )


def _explain_incomplete_search(view: ConsumerView) -> Reason | None:
    """Return why Nova may have a record although no answer shows it; None if all were asked."""
    rows = view.subject.rows
    if any(answer.value is None for answer in rows):
        return Reason(
            "cells_not_searched",
            "A direct lookup finds no record of the consumer, but Nova did not answer when every "
            f"cell was searched for it ({rows[-1].request}: {rows[-1].status}).",
        )
    if not rows and not view.index.has_servers_of_every_host:
        return Reason(
            "search_not_complete",
            "Nova has no record of the consumer, but neither was every host asked for its servers "
            "nor every cell for this one: run detection with mode=full for this kind.",
        )
    # Credentials that may not see the servers of others get the same answers.
    if not any(sample.status == 200 for sample in view.index.snapshot.samples):
        return Reason(
            "credentials_not_checked",
            "Nova returns no record of the consumer, but there was no live server to check "
            "whether these credentials can see the servers of other projects.",
        )
    return None


def _explain_possible_allocator(view: ConsumerView, policy: Policy) -> Reason | None:
    """Return which other service may have made the allocation; None if no other can have."""
    if view.allocation.type:
        return None
    others = view.index.snapshot.cloud.allocators
    suspects = [name for name in others if name not in policy.ignore_allocators]
    if not suspects:
        return None
    return Reason(
        "other_service_may_allocate",
        "Nova has no record of the consumer, but the consumer has no type and the service "
        f"catalogue has {', '.join(suspects)}, which may have made this allocation. Check there. "
        "If that service makes no allocations on Nova's hosts, name it in ignore_allocators "
        "(orphan_cleanup_ignore_allocators).",
    )


def _describe_unknown_consumer(view: ConsumerView, policy: Policy) -> Reason:
    allocators = _describe_allocators(view.index.snapshot.cloud.allocators, policy)
    return Reason(
        "unknown_to_nova",
        "Nova has no record of the consumer, neither as a server nor as a migration. This rests "
        "on absence of evidence alone: an allocation of a container service that shares Nova's "
        f"hosts ({allocators}), or of an operator who blocks capacity by hand, looks the same.",
    )


def _describe_allocators(others: Collection[str], policy: Policy) -> str:
    if not others:
        return "the service catalogue has no container service"
    in_catalogue = f"the service catalogue has {', '.join(others)}"
    ignored = ", ".join(name for name in others if name in policy.ignore_allocators)
    if not ignored:
        return in_catalogue
    return f"{in_catalogue}, and ignore_allocators names {ignored}"
