# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons never to change a consumer: one small function for each reason.

Each returns the reason, or None. They are checked in the order of `PROTECTIONS`, and
before any proof. The first paragraph of each docstring is published in docs/safety.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..._common.errors import Reason
from ..._common.text import normalize_uuid
from ..._common.times import format_duration, seconds_between
from ..models.nova import Action
from ..options.policy import Policy
from .consumer import ConsumerView

# Nova itself sends no consumer type (nova/scheduler/client/report.py), so None may be Nova's.
_NOVA_CONSUMER_TYPES = frozenset({None, "INSTANCE", "MIGRATION"})


def protect_excluded(view: ConsumerView, policy: Policy) -> Reason | None:
    """You excluded the consumer, its server, or a host, or a provider in its tree, on which the
    consumer has an allocation or its server is.
    """
    if excluded := {view.consumer, view.subject.uuid} & policy.exclude_consumers:
        return Reason(
            "excluded_by_name",
            "This consumer, or the server whose migration it is, is excluded by "
            f"name{policy.get_exclusion_note(excluded)}.",
        )
    # A change may also write to the server's host, on which it may have no allocation yet.
    providers = set(filter(None, (*view.allocation.resources, view.own_tree)))
    trees = {view.index.get_root(provider) or provider for provider in providers}
    # Excluding one provider of a tree excludes the whole tree.
    return policy.explain_exclusion(
        name
        for name in policy.exclude_providers
        if name in providers or not trees.isdisjoint(view.index.find_roots(name))
    )


def protect_foreign_type(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its consumer type is not INSTANCE, MIGRATION or unknown, so the consumer belongs to another
    service.
    """
    if view.allocation.type in _NOVA_CONSUMER_TYPES:
        return None
    return Reason(
        "of_other_service",
        f"Its consumer type is {view.allocation.type}, which Nova does not use: the consumer "
        "belongs to another service.",
    )


def protect_foreign_uuid(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its UUID is not in lower case with dashes, as Nova writes UUIDs: the consumer belongs to
    another service, or was created by hand.
    """
    if normalize_uuid(view.consumer) == view.consumer:
        return None
    return Reason(
        "uuid_not_novas",
        f"Nova does not write UUIDs like {view.consumer}: the consumer belongs to another service, "
        "or was created by hand.",
    )


def protect_verify_resize(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its server has a resize to confirm or to revert, and both need the allocation."""
    server = view.server
    if server is None or server.status != "VERIFY_RESIZE":
        return None
    return Reason(
        "resize_to_confirm",
        f"Server {server.uuid} is in VERIFY_RESIZE{_describe_age(server.updated, view)}: its "
        "resize has to be confirmed or reverted, and both need this allocation.",
    )


def protect_moving(view: ConsumerView, policy: Policy) -> Reason | None:
    """A migration of its server is under way, whether the allocation is on the source or on the
    destination.
    """
    # The consumer's own migration comes first, because the server may have another one.
    is_own = view.migration is not None and not view.is_over(view.migration)
    underway = view.migration if is_own else view.active_migration
    if underway is None:
        return None
    return Reason(
        "migration_under_way",
        f"Migration {underway.uuid} ({underway.type}) of server {underway.server} is under way: "
        f"{underway.status}{_describe_age(underway.changed_at, view)}.",
    )


def protect_soft_deleted(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its server is soft-deleted and can still be restored."""
    if view.server is None or view.server.status != "SOFT_DELETED":
        return None
    return Reason(
        "soft_deleted", f"Server {view.server.uuid} is soft-deleted and can still be restored."
    )


def protect_unknown_status(view: ConsumerView, policy: Policy) -> Reason | None:
    """The cell of its server does not answer (status UNKNOWN)."""
    if view.server is None or view.server.status != "UNKNOWN":
        return None
    return Reason(
        "status_unknown",
        f"The status of server {view.server.uuid} is UNKNOWN, because its cell does not answer.",
    )


def protect_booting(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its server is being built: Nova allocates before it sets the host. Without a task, this
    holds only up to the age `orphan_cleanup_stuck_min_age`.
    """
    server = view.server
    if server is None or server.status != "BUILD" or server.host:
        return None
    # A server that has been in BUILD for so long without a task is no longer being built.
    has_no_task = server.task_known and server.task_state is None
    if has_no_task and (view.age_seconds or 0) >= policy.stuck_min_age:
        return None
    return Reason(
        "being_built",
        f"Server {server.uuid} is being built{_describe_age(server.created, view)}: Nova allocates "
        "before it sets the host.",
    )


def protect_task(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its server has a task, so Nova is working on it."""
    server = view.server
    if server is None or server.task_state is None:
        return None
    return Reason(
        "task_under_way",
        f"Nova is working on server {server.uuid}: its task is {server.task_state}"
        f"{_describe_age(server.updated, view)}.",
    )


def protect_error_with_host(view: ConsumerView, policy: Policy) -> Reason | None:
    """Its server is in ERROR on a host, where its guest may run."""
    if view.server is None or view.server.status != "ERROR" or not view.server.host:
        return None
    return Reason(
        "error_on_host",
        f"Server {view.server.uuid} is in ERROR on {view.server.host}, where its guest may run.",
    )


def protect_guest_elsewhere(view: ConsumerView, policy: Policy) -> Reason | None:
    """A domain of its server was on another host than Nova's in a result of
    `orphan_cleanup_guests`, running or not and however old the result is.
    """
    server = view.migration.server if view.migration else view.subject.uuid
    own_host = view.server.host if view.server else None
    for seen in policy.guests:
        state = seen.states.get(server)
        is_own = seen.node == view.own_tree if seen.node else seen.host == own_host
        if state and not is_own:
            return Reason(
                "domain_elsewhere",
                f"Host {seen.host} had a domain of server {server} at {seen.read_at} ({state}), "
                f"and Nova has the server on {own_host or 'no host'}: its guest may be on "
                f"{seen.host}. If it is not, read the hosts again.",
            )
    return None


def protect_too_young(view: ConsumerView, policy: Policy) -> Reason | None:
    """The allocation was last written less than `orphan_cleanup_min_age` ago, or at an unknown
    time. The same holds for the newest change of its server, of a migration of the server, and for
    the newest action: Nova writes some allocations after the end of an operation is visible.
    """
    if view.allocation.resources:
        reason = _explain_age("Its allocation was last written", view.age_seconds, policy)
        if reason:
            return reason
    return explain_recent_event(view, policy)


def explain_recent_event(view: ConsumerView, policy: Policy) -> Reason | None:
    """Return what Nova did to the server less than the minimum age ago, or None.

    Nova writes some allocations after it has made the end of an operation visible. For example, it
    sets the migration of a confirmed resize to `confirmed` and the server to ACTIVE, and then reads
    and removes the allocation of the migration (nova/compute/manager.py, confirm_resize): if that
    changes in between, Nova puts the server into ERROR. docs/safety.md lists these places. The age
    of the allocation says nothing about that.
    """
    now = _find_time(view)
    ages = [(what, seconds_between(moment, now)) for what, moment in _list_events(view)]
    # An event at an unknown time counts as the newest.
    newest = min(ages, key=lambda event: -1 if event[1] is None else event[1], default=None)
    return _explain_age(*newest, policy) if newest else None


def _explain_age(what: str, age: int | None, policy: Policy) -> Reason | None:
    """Return that something was done too short a time ago; None if it was not.

    age: in seconds; None if it is unknown.
    """
    # A minimum age of 0 switches this protection off, also for what is unknown.
    if not policy.min_age or (age is not None and age >= policy.min_age):
        return None
    when = "at an unknown time" if age is None else f"{format_duration(age)} ago"
    return Reason(
        "younger_than_min_age",
        f"{what} {when}, and the minimum age is {format_duration(policy.min_age)}.",
    )


def _describe_age(since: str | None, view: ConsumerView) -> str:
    """Return how long a state has not changed, as the next words; empty if that is unknown."""
    age = seconds_between(since, _find_time(view))
    return "" if age is None else f" (unchanged for {format_duration(max(age, 0))})"


def _find_time(view: ConsumerView) -> str | None:
    """Return the earliest of the times that the services show, so that no event seems too old.

    Nova's own clock is in the reports of its services: while one is up, nova-api and whoever wrote
    its report have the same time.
    """
    snapshot = view.index.snapshot
    for answer in (snapshot.services_after, snapshot.services):
        rows = [row for row in answer.value or () if row.state == "up"]
        # Compared as text, a time without a Z or a fraction counts as the earlier one.
        if reported := max(filter(None, (row.updated_at for row in rows)), default=None):
            break
    times = (view.evidence.allocation.at, view.subject.server.at, reported)
    return min(filter(None, times), default=None)


def _list_events(view: ConsumerView) -> Iterator[tuple[str, str | None]]:
    """Yield what was done to the server, in words, and when; None for an unknown time."""
    subject = view.subject
    if subject.server.value is not None:
        yield "Nova last changed its server", subject.server.value.updated
    for server in subject.deleted_listing.value or ():
        # Where only its name was asked for, an action shows the deletion.
        if server.status:
            times = (server.terminated_at, server.updated)
            yield "Nova deleted its server", max(filter(None, times), default=None)
    for move in view.server_migrations:
        yield f"Nova last changed migration {move.uuid} of its server", move.changed_at
    read_alone = [answer.value for answer in (*subject.last_actions, *subject.port_actions)]
    for action in (*(subject.actions.value or ()), *filter(None, read_alone)):
        yield f"The action {action.action} was recorded", _find_last_time(action)


def _find_last_time(action: Action) -> str | None:
    ends = (event.finish_time or event.start_time for event in action.events)
    return max(filter(None, (action.start_time, action.updated_at, *ends)), default=None)


PROTECTIONS: Mapping[str, Callable[[ConsumerView, Policy], Reason | None]] = {
    "excluded": protect_excluded,
    "foreign_type": protect_foreign_type,
    "foreign_uuid": protect_foreign_uuid,
    "verify_resize": protect_verify_resize,
    "moving": protect_moving,
    "soft_deleted": protect_soft_deleted,
    "unknown_status": protect_unknown_status,
    "booting": protect_booting,
    "task": protect_task,
    "error_with_host": protect_error_with_host,
    "guest_elsewhere": protect_guest_elsewhere,
    "too_young": protect_too_young,
}
