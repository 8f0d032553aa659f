"""What Nova did to a server must be as old as the allocation, whatever the kind."""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.nova import Action, ActionEvent
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE
from ...situations import (
    Situation,
    deleted_migration,
    deleted_server,
    ended_migration,
    evacuated_source,
    extra_host,
)
from ...world import ASKED_AT, OLD, answer
from ..scene import PooledScene

Change = Callable[[PooledScene, str | None], None]


# Half an hour and a day before the answers, and a day after them.
LATELY, LONG_AGO, LATER = (
    "2026-11-20T14:30:00.000000",
    "2026-11-19T15:00:00Z",
    "2026-11-21T15:00:00",
)


def unhosted_server(cloud: PooledScene) -> str:
    server = cloud.server(None, cloud.here, status="SHELVED_OFFLOADED")
    return cloud.act(cloud.act(server, "create", cloud.here), "shelve", cloud.here)


def server_changed(cloud: PooledScene, moment: str | None) -> None:
    for uuid in (*cloud.servers, *cloud.deleted):
        cloud.alter(uuid, updated=moment, terminated_at=None)


def server_terminated(cloud: PooledScene, moment: str | None) -> None:
    for uuid in cloud.deleted:
        cloud.alter(uuid, updated=None, terminated_at=moment)


def migration_changed(cloud: PooledScene, moment: str | None) -> None:
    for uuid, migration in cloud.migrations.items():
        created = migration.created_at if moment else None
        cloud.alter(uuid, updated_at=moment, created_at=created)


CASES: list[tuple[Situation, Change]] = [
    (deleted_server, server_changed),
    (deleted_server, server_terminated),
    (ended_migration, migration_changed),
    (ended_migration, server_changed),
    (evacuated_source, migration_changed),
    (evacuated_source, server_changed),
    (extra_host, server_changed),
    (unhosted_server, server_changed),
]


@pytest.fixture(name="cloud")
def _cloud() -> PooledScene:
    return PooledScene()


@pytest.mark.parametrize("moment", [LATELY, LATER, ASKED_AT, None, "soon"])
@pytest.mark.parametrize(("situation", "change"), CASES)
def test_recent_or_unknown_event_protects_an_old_allocation(
    cloud: PooledScene, situation: Situation, change: Change, moment: str | None
) -> None:
    consumer = situation(cloud)
    change(cloud, moment)

    assert _judge(cloud, consumer) == "too_young"
    assert _judge(cloud, consumer, NO_MINIMUM_AGE) == situation.__name__


@pytest.mark.parametrize(("situation", "change"), CASES)
def test_old_event_protects_nothing(
    cloud: PooledScene, situation: Situation, change: Change
) -> None:
    consumer = situation(cloud)
    change(cloud, LONG_AGO)

    assert _judge(cloud, consumer) == situation.__name__


def test_newest_of_all_migrations_counts(cloud: PooledScene) -> None:
    consumer = ended_migration(cloud)
    server = cloud.migrations[consumer].server
    cloud.alter(cloud.comes(server, "reverted"), updated_at=LATELY)

    assert _judge(cloud, consumer) == "too_young"


def _delete(at: str, *event: str | None, **fields: t.Any) -> Action:
    """Return a delete action that began then; event: when its event began and ended."""
    name, *result = "compute_terminate_instance", "Success" if event[1:] != (None,) else None
    events = (ActionEvent(name, *event, *result),) if event else ()
    return Action("delete", "req-1", "user", at, None, events, **fields)


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (_delete(LONG_AGO), "deleted_server"),
        (_delete(LATELY), "too_young"),
        # A guest whose disks were deleted for an hour.
        (_delete(LONG_AGO, updated_at=LATELY), "too_young"),
        (_delete(LONG_AGO, LONG_AGO, LATELY), "too_young"),
        (_delete(LONG_AGO, LATELY, None), "too_young"),
    ],
)
def test_action_counts_until_its_last_event(cloud: PooledScene, action: Action, kind: str) -> None:
    consumer = deleted_server(cloud)
    actions = answer("GET os-instance-actions", 200, (action,))

    assert _judge(cloud, consumer, evidence=cloud.evidence(consumer, actions=actions)) == kind


def test_migration_that_was_deleted_with_its_server_has_no_event(cloud: PooledScene) -> None:
    """No live server is left that Nova could put into ERROR."""
    assert _judge(cloud, deleted_migration(cloud)) == "deleted_migration"


@pytest.mark.parametrize(
    ("reported_at", "state", "kind"),
    [
        ("2026-11-20T12:20:00.000000", "up", "too_young"),
        ("2026-11-20T12:20:00.000000", "down", "extra_host"),
        ("2026-11-20T14:59:50.000000", "up", "extra_host"),
        ("2026-11-20T18:00:00.000000", "up", "extra_host"),
    ],
)
def test_clock_of_nova_that_is_behind_makes_no_event_old(
    cloud: PooledScene, reported_at: str, state: str, kind: str
) -> None:
    consumer = extra_host(cloud)
    cloud.alter(consumer, updated="2026-11-20T12:19:00.000000")
    reporting = d.replace(cloud.services[0], host="other", state=state, updated_at=reported_at)
    cloud.services.append(reporting)

    assert _judge(cloud, consumer) == kind


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"status": "BUILD"}, "booting"),
        ({"status": "BUILD", "host": "compute-1", "node": "compute-1"}, "unproven"),
        ({"status": "SHELVED_OFFLOADED"}, "unhosted_server"),
    ],
)
def test_only_a_server_that_is_being_built_without_a_host_is_booting(
    cloud: PooledScene, fields: dict[str, t.Any], kind: str
) -> None:
    """Its allocation is old enough, and not so old that it no longer boots."""
    consumer = unhosted_server(cloud)
    cloud.hold(consumer, cloud.there, age=7200)
    cloud.act(consumer, "shelve", cloud.there)
    cloud.alter(consumer, **fields)

    assert _judge(cloud, consumer) == kind


@pytest.mark.parametrize(
    ("age", "fields", "kind"),
    [
        (OLD, {}, "unhosted_server"),
        (OLD, {"task_known": False}, "booting"),
        (OLD, {"task_state": "spawning"}, "booting"),
        (Policy().stuck_min_age, {}, "unhosted_server"),
        (Policy().stuck_min_age - 1, {}, "booting"),
        (None, {}, "booting"),
    ],
    ids=str,
)
def test_server_without_a_task_boots_no_longer_than_the_age_says(
    cloud: PooledScene, age: int | None, fields: dict[str, t.Any], kind: str
) -> None:
    consumer = cloud.hold(cloud.server(None, status="BUILD", **fields), cloud.here, age=age)

    assert _judge(cloud, consumer) == kind


def test_brief_listing_of_the_deleted_does_not_say_when(cloud: PooledScene) -> None:
    """The recorded action does, which was long ago."""
    consumer = deleted_server(cloud)
    cloud.alter(consumer, status="", updated=None, terminated_at=None)

    assert _judge(cloud, consumer) == "deleted_server"


def test_clock_is_that_of_the_last_listing_of_services(cloud: PooledScene) -> None:
    """The reports in the first one are older."""
    consumer = extra_host(cloud)
    cloud.alter(consumer, updated="2026-11-20T12:19:00.000000")
    listings = []
    for moment in ("2026-11-20T12:20:00.000000", "2026-11-20T14:59:50.000000"):
        rows = tuple(d.replace(row, updated_at=moment) for row in cloud.services)
        listings.append(answer("GET /os-services", 200, rows))
    first, last = listings

    assert _judge(cloud, consumer, services=first, services_after=last) == "extra_host"
    assert _judge(cloud, consumer, services=last, services_after=first) == "too_young"


def _judge(
    cloud: PooledScene, consumer: str, policy: Policy | None = None, **changes: t.Any
) -> str | None:
    """Return the kind of the finding about a consumer, at the default ages."""
    finding = cloud.find(consumer, policy or Policy(), **changes)
    return finding.kind if finding else None
