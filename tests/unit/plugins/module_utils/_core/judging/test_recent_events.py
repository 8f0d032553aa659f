"""What Nova did to a server must be as old as the allocation, whatever the kind."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.nova import Action, ActionEvent
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...situations import (
    Cloud,
    Situation,
    deleted_migration,
    deleted_server,
    ended_migration,
    evacuated_source,
    extra_host,
)
from ...world import ASKED_AT, NOW, OLD, answer

Change = Callable[[Cloud, str | None], None]


# Half an hour and a day before the answers, and a day after them.
LATELY, LONG_AGO, LATER = (
    "2026-11-20T14:30:00.000000",
    "2026-11-19T15:00:00Z",
    "2026-11-21T15:00:00",
)


def unhosted_server(cloud: Cloud) -> str:
    server = cloud.server(None, cloud.here, status="SHELVED_OFFLOADED")
    cloud.did(server, "create", NOW, host="compute-1")
    cloud.did(server, "shelve", NOW, host="compute-1")
    return server


def server_changed(cloud: Cloud, moment: str | None) -> None:
    for rows in (cloud.servers, cloud.deleted):
        for uuid, server in rows.items():
            rows[uuid] = d.replace(server, updated=moment, terminated_at=None)


def server_terminated(cloud: Cloud, moment: str | None) -> None:
    for uuid, server in cloud.deleted.items():
        cloud.deleted[uuid] = d.replace(server, updated=None, terminated_at=moment)


def migration_changed(cloud: Cloud, moment: str | None) -> None:
    for uuid, migration in cloud.migrations.items():
        created = migration.created_at if moment else None
        cloud.migrations[uuid] = d.replace(migration, updated_at=moment, created_at=created)


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


@pytest.mark.parametrize("moment", [LATELY, LATER, ASKED_AT, None, "soon"])
@pytest.mark.parametrize(("situation", "change"), CASES)
def test_recent_or_unknown_event_protects_an_old_allocation(
    situation: Situation, change: Change, moment: str | None
) -> None:
    cloud = Cloud()
    consumer = situation(cloud)
    change(cloud, moment)

    assert _judge(cloud, consumer) == "too_young"
    assert _judge(cloud, consumer, NO_MINIMUM_AGE) == situation.__name__


@pytest.mark.parametrize(("situation", "change"), CASES)
def test_old_event_protects_nothing(situation: Situation, change: Change) -> None:
    cloud = Cloud()
    consumer = situation(cloud)
    change(cloud, LONG_AGO)

    assert _judge(cloud, consumer) == situation.__name__


def test_newest_of_all_migrations_counts() -> None:
    cloud = Cloud()
    consumer = ended_migration(cloud)
    server = cloud.migrations[consumer].server
    later = cloud.migration(server, cloud.there, cloud.here, "reverted")
    cloud.migrations[later] = d.replace(cloud.migrations[later], updated_at=LATELY)

    assert _judge(cloud, consumer) == "too_young"


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Action("delete", "req-1", "user", LONG_AGO, None), "deleted_server"),
        (Action("delete", "req-1", "user", LATELY, None), "too_young"),
        # A guest whose disks were deleted for an hour.
        (Action("delete", "req-1", "user", LONG_AGO, None, updated_at=LATELY), "too_young"),
        (
            Action(
                "delete",
                "req-1",
                "user",
                LONG_AGO,
                None,
                (ActionEvent("compute_terminate_instance", LONG_AGO, LATELY, "Success"),),
            ),
            "too_young",
        ),
        (
            Action(
                "delete",
                "req-1",
                "user",
                LONG_AGO,
                None,
                (ActionEvent("compute_terminate_instance", LATELY, None, None),),
            ),
            "too_young",
        ),
    ],
)
def test_action_counts_until_its_last_event(action: Action, kind: str) -> None:
    cloud = Cloud()
    consumer = deleted_server(cloud)
    snapshot = cloud.snapshot()
    evidence = snapshot.evidence[consumer]
    answer = d.replace(evidence.actions, status=200, value=(action,))
    changed = {**snapshot.evidence, consumer: d.replace(evidence, actions=answer)}

    assert _judge(cloud, consumer, evidence=changed) == kind


def test_migration_that_was_deleted_with_its_server_has_no_event() -> None:
    """No live server is left that Nova could put into ERROR."""
    cloud = Cloud()

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
    reported_at: str, state: str, kind: str
) -> None:
    cloud = Cloud()
    consumer = extra_host(cloud)
    cloud.servers[consumer] = d.replace(
        cloud.servers[consumer], updated="2026-11-20T12:19:00.000000"
    )
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
    fields: dict[str, t.Any], kind: str
) -> None:
    """Its allocation is old enough, and not so old that it no longer boots."""
    cloud = Cloud()
    consumer = unhosted_server(cloud)
    cloud.hold(consumer, cloud.there, age=7200)
    cloud.did(consumer, "shelve", NOW, host="compute-2")
    cloud.servers[consumer] = d.replace(cloud.servers[consumer], **fields)

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
    age: int | None, fields: dict[str, t.Any], kind: str
) -> None:
    cloud = Cloud()
    consumer = cloud.hold(cloud.server(None, status="BUILD", **fields), cloud.here, age=age)

    assert _judge(cloud, consumer) == kind


def test_brief_listing_of_the_deleted_does_not_say_when() -> None:
    """The recorded action does, which was long ago."""
    cloud = Cloud()
    consumer = deleted_server(cloud)
    brief = d.replace(cloud.deleted[consumer], status="", updated=None, terminated_at=None)
    cloud.deleted[consumer] = brief

    assert _judge(cloud, consumer) == "deleted_server"


def test_clock_is_that_of_the_last_listing_of_services() -> None:
    """The reports in the first one are older."""
    cloud = Cloud()
    consumer = extra_host(cloud)
    changed = "2026-11-20T12:19:00.000000"
    cloud.servers[consumer] = d.replace(cloud.servers[consumer], updated=changed)
    listings = []
    for moment in ("2026-11-20T12:20:00.000000", "2026-11-20T14:59:50.000000"):
        rows = tuple(d.replace(row, updated_at=moment) for row in cloud.services)
        listings.append(answer("GET /os-services", 200, rows))
    first, last = listings

    assert _judge(cloud, consumer, services=first, services_after=last) == "extra_host"
    assert _judge(cloud, consumer, services=last, services_after=first) == "too_young"


def _judge(
    cloud: Cloud, consumer: str, policy: Policy | None = None, **changes: t.Any
) -> str | None:
    """Return the kind of the finding about a consumer, at the default ages."""
    for finding in judge(cloud.snapshot(**changes), policy or Policy()):
        if finding.consumer == consumer:
            return finding.kind
    return None
