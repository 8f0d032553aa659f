"""The answers that each proof rests on.

Without any single one of them, or with a contradiction, nothing may be proven.
"""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...situations import (
    Situation,
    deleted_migration,
    deleted_server,
    ended_migration,
    evacuated_source,
    extra_host,
    unknown_consumer,
)
from ...world import answer
from ..scene import PooledScene

NO_ROW, UNREAD = answer("GET /servers?uuid=…", 200, ()), answer("GET /servers?uuid=…", 503)
NO_MIGRATIONS: t.Any = answer("GET /os-migrations?instance_uuid=…", 200, ())

RESTS_ON = {
    deleted_server: ("server", "migrations", "deleted_listing"),
    deleted_migration: (
        "server",
        "migrations",
        "deleted_listing",
        "actions",
        "marker",
        "host_migrations",
    ),
    unknown_consumer: ("server", "migrations", "deleted_listing", "actions", "marker"),
    evacuated_source: ("server", "migrations"),
    extra_host: ("server", "migrations"),
}


@pytest.fixture(name="cloud")
def _cloud() -> PooledScene:
    return PooledScene()


@pytest.mark.parametrize(
    "situation", [*RESTS_ON, ended_migration], ids=lambda situation: situation.__name__
)
def test_complete_evidence_proves_an_orphan(cloud: PooledScene, situation: Situation) -> None:
    finding = cloud.found(situation(cloud))

    assert (finding.verdict, finding.kind) == ("orphaned", situation.__name__)


@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.parametrize(
    ("situation", "question"),
    [
        pytest.param(kind, question, id=f"{kind.__name__}-{question}")
        for kind, questions in RESTS_ON.items()
        for question in questions
    ],
)
def test_missing_answer_proves_nothing(
    cloud: PooledScene, situation: Situation, question: str, status: int
) -> None:
    consumer = situation(cloud)
    cloud.answers(question, consumer, status)

    reasons = {"server": "server_lookup_failed", "host_migrations": "migrations_unread"}
    said = cloud.undecided(consumer)
    assert said == reasons.get(question, said)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((NO_ROW,), "unknown_to_nova"),
        ((NO_ROW, answer("again", 200, ())), "unknown_to_nova"),
        ((UNREAD,), "cells_not_searched"),
        ((NO_ROW, UNREAD), "cells_not_searched"),
        ((answer("GET /servers?uuid=…", 200, ("another",)),), "other_servers_answered"),
    ],
)
def test_unknown_consumer_is_searched_in_every_cell(
    cloud: PooledScene, rows: tuple[t.Any, ...], said: str
) -> None:
    consumer = unknown_consumer(cloud)
    evidence = cloud.evidence(consumer, rows=rows)
    finding = cloud.found(consumer, evidence=evidence)

    assert (finding.verdict == "orphaned") is (said == "unknown_to_nova")
    assert finding.reason.id == said
    assert ("503" in finding.reason) is (said == "cells_not_searched")
    # One of several equal answers is enough.
    if said == "unknown_to_nova":
        assert [row for row in rows if row in finding.evidence] == [rows[0]]


def test_row_of_the_consumer_in_a_cell_proves_nothing(cloud: PooledScene) -> None:
    consumer = unknown_consumer(cloud)
    rows = (answer("GET /servers?uuid=…", 200, (consumer,)),)

    reason = cloud.undecided(consumer, evidence=cloud.evidence(consumer, rows=rows))
    assert reason == "row_left_in_cell"


def test_consumer_that_was_searched_neither_on_hosts_nor_in_cells_is_undecided(
    cloud: PooledScene,
) -> None:
    consumer = unknown_consumer(cloud)
    listed = cloud.snapshot().hypervisors
    nodes = tuple(d.replace(node, servers=None) for node in listed.value or ())
    changes: dict[str, t.Any] = {"evidence": cloud.evidence(consumer, rows=())}

    assert cloud.found(consumer, **changes).verdict == "orphaned"
    changes["hypervisors"] = d.replace(listed, value=nodes)
    assert cloud.undecided(consumer, **changes) == "search_not_complete"


@pytest.mark.parametrize("question", ["deleted_listing", "actions", "marker"])
def test_reason_names_the_status_of_a_missing_answer(cloud: PooledScene, question: str) -> None:
    """Behind a proxy with a dead worker, one of the requests about a consumer may fail."""
    consumer = unknown_consumer(cloud)
    cloud.answers(question, consumer, 503)

    assert "503" in cloud.found(consumer).reason


@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.parametrize("question", ["server", "migrations"])
def test_migration_has_not_ended_without_an_answer_about_its_server(
    cloud: PooledScene, question: str, status: int
) -> None:
    migration = ended_migration(cloud)
    cloud.answers(question, cloud.migrations[migration].server, status)

    assert cloud.found(migration).verdict == "undecided"


def seen_on_a_host(cloud: PooledScene, consumer: str) -> None:
    """Let the hypervisor listing show it."""
    cloud.nodes[cloud.here] = d.replace(cloud.nodes[cloud.here], servers=(consumer,))


def being_moved(cloud: PooledScene, consumer: str) -> None:
    cloud.migration(consumer, cloud.here, cloud.there, "migrating")


def moved_once(cloud: PooledScene, consumer: str) -> None:
    cloud.migration(consumer, cloud.here, cloud.there, "completed")


@pytest.mark.parametrize(
    ("situation", "sighting", "reason"),
    [
        (deleted_server, seen_on_a_host, "listed_on_host"),
        (deleted_server, being_moved, "migration_under_way"),
        (deleted_migration, seen_on_a_host, "listed_on_host"),
        (deleted_migration, being_moved, "migration_under_way"),
        (unknown_consumer, seen_on_a_host, "listed_on_host"),
        (unknown_consumer, being_moved, "migration_under_way"),
        (unknown_consumer, moved_once, "migrations_left"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_contradicted_404_proves_nothing(
    cloud: PooledScene,
    situation: Situation,
    sighting: Callable[[PooledScene, str], None],
    reason: str,
) -> None:
    consumer = situation(cloud)
    sighting(cloud, consumer)

    _kind, verdict, said = cloud.told(consumer)
    assert verdict in ("undecided", "protected") and said == reason


def test_migration_of_a_deleted_server_seen_on_a_host_has_not_ended(cloud: PooledScene) -> None:
    server = deleted_server(cloud)
    migration = cloud.goes(server, "error", cloud.here)
    seen_on_a_host(cloud, server)

    assert cloud.undecided(migration) == "server_not_settled"


@pytest.mark.parametrize("listed", ["everywhere", "for the server"])
def test_consumer_named_by_a_migration_is_not_unknown(cloud: PooledScene, listed: str) -> None:
    """Either of the two listings may have it."""
    consumer = unknown_consumer(cloud)
    migration = cloud.migration(consumer, cloud.here, cloud.there, "completed")
    evidence = cloud.snapshot().evidence
    if listed == "everywhere":
        evidence = cloud.evidence(consumer, migrations=NO_MIGRATIONS)
    else:
        cloud.left_out_migrations.add(migration)

    assert cloud.undecided(consumer, evidence=evidence) == "migrations_left"


def test_consumer_on_a_shared_pool_alone_is_not_unknown(cloud: PooledScene) -> None:
    """The pool belongs to no host, so nothing shows that it is this Nova's."""
    assert cloud.found(cloud.stranger(cloud.pool)).verdict == "undecided"


def test_consumer_on_a_foreign_provider_too_is_not_unknown(cloud: PooledScene) -> None:
    consumer = cloud.stranger(cloud.here, cloud.provider("fpga-farm"))

    assert cloud.found(consumer).verdict == "protected"


def test_migration_of_a_server_with_an_unknown_move_has_that_as_a_reason(
    cloud: PooledScene,
) -> None:
    migration = ended_migration(cloud)
    server = cloud.migrations[migration].server
    cloud.goes(server, "completed", type="teleport")

    assert cloud.told(migration) == ("ended_migration", "undecided", "server_has_unknown_move")


def test_migration_that_was_under_way_in_the_listing_is_protected(cloud: PooledScene) -> None:
    server = cloud.server(cloud.there, cloud.there)
    migration = cloud.goes(server, "post-migrating", cloud.here)
    ended = (d.replace(cloud.migrations[migration], status="confirmed"),)
    evidence = cloud.evidence(server, migrations=d.replace(NO_MIGRATIONS, value=ended))

    told = cloud.told(migration, evidence=evidence)
    assert told == ("moving", "protected", "migration_under_way")


def test_migration_that_ends_during_its_lookup_has_not_ended_yet(cloud: PooledScene) -> None:
    """The listing had it, the server's own migrations no longer do."""
    migration = ended_migration(cloud)
    evidence = cloud.evidence(cloud.migrations[migration].server, migrations=NO_MIGRATIONS)

    assert cloud.undecided(migration, evidence=evidence) == "migration_no_longer_listed"


def test_server_whose_allocation_cannot_be_read_may_need_that_of_its_migration(
    cloud: PooledScene,
) -> None:
    migration = ended_migration(cloud)
    unread = answer("GET /allocations", 503)
    evidence = cloud.evidence(cloud.migrations[migration].server, allocation=unread)

    assert cloud.undecided(migration, evidence=evidence) == "server_has_less_than_migration"


def test_migration_on_a_provider_that_is_not_listed_is_kept(cloud: PooledScene) -> None:
    migration = ended_migration(cloud)
    cloud.hold(migration, "ffffffff-0000-4000-8000-000000000000")

    assert cloud.undecided(migration) == "server_has_less_than_migration"


def test_deleted_migration_is_proven_by_the_listing_of_its_host(cloud: PooledScene) -> None:
    migration = deleted_migration(cloud)
    del cloud.allocations[migration]
    cloud.hold(migration, cloud.pool)

    assert cloud.undecided(migration) == "deletion_not_proven"


def _answer_markers(cloud: PooledScene, consumer: str, *statuses: int) -> dict[str, t.Any]:
    """Return the evidence with an answer about the consumer from each worker that was asked."""
    markers = tuple(answer("GET /os-migrations?marker", status) for status in statuses)
    return cloud.evidence(consumer, markers=markers)


@pytest.mark.parametrize(
    ("statuses", "verdict", "reason"),
    [((400, 400), "orphaned", "unknown_to_nova"), ((400, 503), "undecided", "other_lookup_failed")],
    ids=str,
)
def test_consumer_is_unknown_to_every_worker_that_is_asked(
    cloud: PooledScene, statuses: tuple[int, ...], verdict: str, reason: str
) -> None:
    consumer = unknown_consumer(cloud)

    told = cloud.told(consumer, evidence=_answer_markers(cloud, consumer, *statuses))

    assert told == ("unknown_consumer" if verdict == "orphaned" else "unproven", verdict, reason)


@pytest.mark.parametrize(
    ("statuses", "verdict", "reason"),
    [
        ((200, 200), "orphaned", "migration_deleted_with_server"),
        ((200, 503), "undecided", "marker_answers_differ"),
        ((500,), "undecided", "marker_answers_differ"),
    ],
    ids=str,
)
def test_deleted_migration_is_known_to_every_worker_that_is_asked(
    cloud: PooledScene, statuses: tuple[int, ...], verdict: str, reason: str
) -> None:
    migration = deleted_migration(cloud)
    evidence = _answer_markers(cloud, migration, *statuses)

    finding = cloud.found(migration, evidence=evidence)

    assert (finding.kind, finding.verdict) == ("deleted_migration", verdict)
    for differing in evidence[migration].markers:
        assert (differing in finding.evidence) is (differing.status != 200)
        assert finding.reason.id == reason


def test_host_that_is_gone_does_not_hide_a_server_that_may_need_the_migration(
    cloud: PooledScene,
) -> None:
    lacking = cloud.server(cloud.there)
    cloud.did(lacking, "migrate", "2026-11-20T12:00:00Z")
    migration = cloud.stranger(cloud.here, cloud.there)
    cloud.unlisted_migrations.add(migration)
    cloud.remove_host(cloud.here)
    finding = cloud.found(migration)

    assert (finding.kind, finding.verdict) == ("deleted_migration", "undecided")
    assert finding.reason.id == "moved_server_without_allocation" and lacking in finding.reason


def test_deleted_migration_may_be_needed_on_a_host_that_came_back_with_another_node(
    cloud: PooledScene,
) -> None:
    migration = deleted_migration(cloud)
    node = cloud.nodes.pop(cloud.here)
    cloud.were_novas.add(cloud.here)
    new = cloud.provider("compute-1-new")
    cloud.nodes[new] = d.replace(node, uuid=new)

    assert cloud.undecided(migration) == "renamed_host_may_need_it"


def test_deleted_migration_needs_the_allocations_of_its_host(cloud: PooledScene) -> None:
    reason = cloud.undecided(deleted_migration(cloud), host_allocations={})
    assert reason == "host_allocations_unread"


@pytest.mark.parametrize("beside", [True, False])
def test_consumer_on_a_provider_that_is_not_listed_is_not_proven(
    cloud: PooledScene, beside: bool
) -> None:
    held = (cloud.here, "ffffffff-0000-4000-8000-000000000000")[1 - beside :]
    consumer = cloud.stranger(*held)

    assert cloud.found(consumer).reason.id == "of_other_nova"


def test_deleted_migration_has_the_answers_about_its_host_as_evidence(cloud: PooledScene) -> None:
    finding = cloud.found(deleted_migration(cloud))
    host = cloud.snapshot().host_allocations[cloud.here]

    assert host.tree in finding.evidence and host.servers in finding.evidence
    assert finding.reason.id == "migration_deleted_with_server"


@pytest.mark.parametrize(
    ("type", "status", "kind", "reason"),
    [
        ("evacuation", "done", "evacuated_source", "left_by_evacuation"),
        ("evacuation", "completed", "evacuated_source", "left_by_evacuation"),
        ("evacuation", "error", "extra_host", "move_may_have_ended"),
        ("evacuation", "confirmed", "extra_host", "move_may_have_ended"),
        ("live-migration", "completed", "extra_host", "extra_allocation"),
        ("migration", "done", "extra_host", "extra_allocation"),
    ],
)
def test_only_a_finished_evacuation_is_an_evacuated_source(
    cloud: PooledScene, type: str, status: str, kind: str, reason: str
) -> None:
    server = extra_host(cloud)
    migration = cloud.goes(server, status, type=type)
    finding = cloud.found(server)

    assert finding.kind == kind
    if finding.verdict == "orphaned":
        assert finding.migration and finding.migration.uuid == migration
        assert finding.reason.id == reason


@pytest.mark.parametrize("evacuated", [True, False])
@pytest.mark.parametrize("move", ["live-migration", "evacuation"])
def test_host_of_a_failed_move_of_a_running_guest_is_kept(
    cloud: PooledScene, move: str, evacuated: bool
) -> None:
    server = extra_host(cloud)
    if evacuated:
        cloud.goes(server, "done", type="evacuation")
    cloud.comes(server, "error", type=move)

    assert (cloud.found(server).kind, cloud.found(server).verdict) == ("extra_host", "undecided")


@pytest.mark.parametrize(("evacuated", "kind"), [(True, "evacuated_source"), (False, "extra_host")])
def test_several_other_hosts_must_all_have_been_evacuated(
    cloud: PooledScene, evacuated: bool, kind: str
) -> None:
    third = cloud.host("compute-3")
    server = cloud.server(cloud.there, cloud.here, third, cloud.there)
    kind_of_move, status = ("evacuation", "done") if evacuated else ("migration", "confirmed")
    cloud.migration(server, third, cloud.here, status, type=kind_of_move)
    cloud.goes(server, "done", type="evacuation")

    finding = cloud.found(server)
    assert (finding.kind, finding.freed_providers) == (kind, {cloud.here, third})


@pytest.mark.parametrize("evacuations", [0, 1, 2])
def test_disk_alone_is_no_allocation_on_another_host(cloud: PooledScene, evacuations: int) -> None:
    """The host may share the disk, or may once have shared it.

    One such allocation leaves all of them undecided.
    """
    third = cloud.host("compute-3")
    server = cloud.server(cloud.there, third, cloud.there)
    cloud.hold(server, cloud.here, amounts={"DISK_GB": 10})
    for source in (third, cloud.here)[:evacuations]:
        cloud.migration(server, source, cloud.there, "done", type="evacuation")

    assert cloud.undecided(server) == "may_share_resources"


@pytest.mark.parametrize(
    ("age", "verdict", "reason"),
    [
        (86399, "protected", "younger_than_unknown_min_age"),
        (86400, "orphaned", "unknown_to_nova"),
        (None, "protected", "younger_than_unknown_min_age"),
    ],
)
def test_unknown_consumer_must_have_its_own_minimum_age(
    cloud: PooledScene, age: int | None, verdict: str, reason: str
) -> None:
    stranger = cloud.stranger(cloud.here, age=age)
    (finding,) = judge(cloud.snapshot(), Policy(min_age=0, unknown_min_age=86400))

    assert (finding.consumer, finding.verdict) == (stranger, verdict)
    assert finding.reason.id == reason


@pytest.mark.parametrize(
    ("age", "min_age", "verdict"),
    [
        (3599, 3600, "protected"),
        (3600, 3600, "orphaned"),
        (None, 3600, "protected"),
        (0, 0, "orphaned"),
        (None, 0, "orphaned"),
    ],
)
def test_orphan_must_have_the_minimum_age(
    cloud: PooledScene, age: int | None, min_age: int, verdict: str
) -> None:
    server = cloud.hold(deleted_server(cloud), cloud.here, age=age)
    (finding,) = judge(cloud.snapshot(), Policy(min_age=min_age))

    assert (finding.consumer, finding.verdict) == (server, verdict)


def _beside(
    allocators: tuple[str, ...], ignored: tuple[str, ...] = (), consumer_type: str | None = None
) -> Finding:
    """Judge an unknown consumer in a cloud with these services in its catalogue.

    The user says that some of them allocate nothing.
    """
    scene = PooledScene()
    consumer = scene.stranger(scene.here, type=consumer_type)
    policy = d.replace(NO_MINIMUM_AGE, ignore_allocators=frozenset(ignored))
    cloud = d.replace(scene.snapshot().cloud, allocators=allocators)
    return scene.found(consumer, policy, cloud=cloud)


CONTAINER, RESERVATION = ("container",), ("reservation",)


@pytest.mark.parametrize(
    ("allocators", "ignored", "type", "named"),
    [
        ((), (), None, "no container service"),
        (CONTAINER, CONTAINER, None, "has container, and ignore_allocators names container"),
        (CONTAINER, (*CONTAINER, *RESERVATION), None, "ignore_allocators names container"),
        (CONTAINER, (), "INSTANCE", "has container"),
        (CONTAINER, (), "MIGRATION", "has container"),
    ],
)
def test_unknown_consumer_lists_other_possible_owners(
    allocators: tuple[str, ...], ignored: tuple[str, ...], type: str | None, named: str
) -> None:
    """One with a type belongs to no other service."""
    finding = _beside(allocators, ignored, type)

    assert (finding.kind, finding.verdict) == ("unknown_consumer", "orphaned")
    assert finding.reason.id == "unknown_to_nova" and named in finding.reason


@pytest.mark.parametrize(
    ("allocators", "ignored", "suspect"),
    [
        (CONTAINER, (), "container"),
        (RESERVATION, CONTAINER, "reservation"),
        (("accelerator",), (), "accelerator"),
        ((*CONTAINER, *RESERVATION), CONTAINER, "reservation"),
    ],
)
def test_unknown_consumer_without_a_type_may_belong_to_another_service(
    allocators: tuple[str, ...], ignored: tuple[str, ...], suspect: str
) -> None:
    finding = _beside(allocators, ignored)

    assert (finding.kind, finding.verdict) == ("unknown_consumer", "undecided")
    assert finding.reason.id == "other_service_may_allocate"
    assert suspect in finding.reason and "orphan_cleanup_ignore_allocators" in finding.reason


@pytest.mark.parametrize("status", ["ACTIVE", "BUILD", "SHUTOFF"])
def test_server_that_lost_its_host_is_undecided_until_deleted_or_set_to_error(
    cloud: PooledScene, status: str
) -> None:
    finding = cloud.found(cloud.server(None, cloud.here, status=status))

    assert (finding.kind, finding.verdict, finding.change) == ("unhosted_server", "undecided", None)
    assert finding.reason.id == "lost_host"
