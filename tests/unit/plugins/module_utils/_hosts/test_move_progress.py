"""What is under way, and whose resize it is: every end of a move that Nova can show."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._core.models.nova import Action
from ......plugins.module_utils._hosts.draining import COLD, EVACUATION, LIVE
from ......plugins.module_utils._hosts.move_progress import (
    ABORTED,
    ARRIVED,
    AWAY,
    BROKEN,
    CONFIRMABLE,
    FOREIGN,
    NOT_BEGUN,
    UNCERTAIN,
    WAITING,
    Attempt,
    Sighting,
    is_own_move,
    judge_progress,
)
from ..drain_world import SOURCE, build_migration, build_server

OLD = build_migration(0, "completed")
AT = "2026-11-20T03:00:00Z"


def migration(status: str, how: str = LIVE, **changes: t.Any) -> t.Any:
    types = {LIVE: "live-migration", COLD: "migration", EVACUATION: "evacuation"}
    return build_migration(1, status, **{"type": types[how], **changes})


def away(**changes: t.Any) -> dict[str, t.Any]:
    return {"host": "compute-2", **changes}


CASES: dict[str, tuple[str, dict[str, t.Any] | None, t.Any, str]] = {
    "a live migration that runs": (
        LIVE,
        {"task_state": "migrating"},
        migration("running"),
        WAITING,
    ),
    "one that has not been recorded yet": (LIVE, {"task_state": "migrating"}, None, WAITING),
    "a task that is cleared before the migration ends": (LIVE, {}, migration("running"), WAITING),
    "one that has arrived": (LIVE, away(), migration("completed"), ARRIVED),
    "one that has arrived and is not yet completed": (LIVE, away(), migration("running"), WAITING),
    "one that has arrived, though Nova calls it an error": (
        LIVE,
        away(),
        migration("error"),
        ARRIVED,
    ),
    "one that found no host": (LIVE, {}, migration("error", dest_node=None), ABORTED),
    "one that was cut off when it may have been copied": (LIVE, {}, migration("error"), UNCERTAIN),
    "one that was cancelled": (LIVE, {}, migration("cancelled"), UNCERTAIN),
    "one that ended on the same host": (LIVE, {}, migration("completed"), ABORTED),
    "one that left the server in ERROR": (
        LIVE,
        {"status": "ERROR", "fault": "broken"},
        migration("error"),
        BROKEN,
    ),
    "a request that did not arrive": (LIVE, {}, None, NOT_BEGUN),
    "a server that was deleted": (LIVE, None, None, AWAY),
    "a server that is being deleted": (LIVE, {"task_state": "deleting"}, None, WAITING),
    "a server that is being rebuilt by its user": (
        LIVE,
        {"task_state": "rebuilding", "status": "REBUILD"},
        None,
        WAITING,
    ),
    "a server that its user has resized": (
        LIVE,
        away(status="VERIFY_RESIZE"),
        migration("finished", type="resize"),
        FOREIGN,
    ),
    "a server whose resize by its user is confirmed": (
        LIVE,
        away(),
        migration("confirmed", type="resize"),
        AWAY,
    ),
    "a server whose resize by its user is reverted": (
        LIVE,
        {},
        migration("reverted", type="resize"),
        ABORTED,
    ),
    "a server that was shelved meanwhile": (
        LIVE,
        {"host": None, "status": "SHELVED_OFFLOADED"},
        None,
        AWAY,
    ),
    "a server that came elsewhere without a migration": (LIVE, away(), None, AWAY),
    "a server in a dead cell": (LIVE, {"status": "UNKNOWN"}, None, WAITING),
    "a server whose task is not shown": (LIVE, {"task_known": False}, None, WAITING),
    "a server whose host is not shown": (LIVE, {"host_known": False}, None, WAITING),
    "a cold migration that runs": (
        COLD,
        {"status": "RESIZE", "task_state": "resize_prep"},
        migration("pre-migrating", COLD),
        WAITING,
    ),
    "one to confirm": (
        COLD,
        away(status="VERIFY_RESIZE"),
        migration("finished", COLD),
        CONFIRMABLE,
    ),
    "one to confirm on the same host": (
        COLD,
        {"status": "VERIFY_RESIZE"},
        migration("finished", COLD),
        CONFIRMABLE,
    ),
    "one whose task still runs": (
        COLD,
        away(status="VERIFY_RESIZE", task_state="resize_finish"),
        migration("finished", COLD),
        WAITING,
    ),
    "one that is being confirmed": (
        COLD,
        away(status="VERIFY_RESIZE"),
        migration("confirming", COLD),
        WAITING,
    ),
    "one whose migration is confirmed before its status changes": (
        COLD,
        away(status="VERIFY_RESIZE"),
        migration("confirmed", COLD),
        WAITING,
    ),
    "one that is confirmed": (
        COLD,
        away(status="SHUTOFF"),
        migration("confirmed", COLD),
        ARRIVED,
    ),
    "one that its user has reverted": (
        COLD,
        {"status": "SHUTOFF"},
        migration("reverted", COLD),
        FOREIGN,
    ),
    "one that cannot be confirmed": (
        COLD,
        away(status="VERIFY_RESIZE"),
        migration("error", COLD),
        BROKEN,
    ),
    "a resize of before that waits": (COLD, {"status": "VERIFY_RESIZE"}, None, FOREIGN),
    "a cold migration of somebody else after a live one of ours": (
        LIVE,
        away(status="VERIFY_RESIZE"),
        migration("finished", COLD),
        FOREIGN,
    ),
    "an evacuation that runs": (
        EVACUATION,
        {"task_state": "rebuilding"},
        migration("accepted", EVACUATION),
        WAITING,
    ),
    "one that is done": (EVACUATION, away(), migration("done", EVACUATION), ARRIVED),
    "one that is not yet done": (
        EVACUATION,
        away(),
        migration("pre-migrating", EVACUATION),
        WAITING,
    ),
    "one that found no room": (
        EVACUATION,
        {},
        migration("failed", EVACUATION, dest_node=None),
        ABORTED,
    ),
    "one that failed on its destination": (
        EVACUATION,
        {},
        migration("failed", EVACUATION),
        UNCERTAIN,
    ),
    "one that the source has ended, whose destination died": (
        EVACUATION,
        {},
        migration("completed", EVACUATION),
        UNCERTAIN,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_progress_of_a_move(name: str) -> None:
    how, fields, newest, state = CASES[name]
    server = None
    if fields is not None:
        server = build_server(**fields)
    migrations = [OLD]
    if newest is not None:
        migrations.insert(0, newest)
    known = frozenset({OLD.uuid})
    attempt = Attempt("uuid-of-web-1", "web-1", SOURCE, how=how, known=known, is_accepted=True)

    verdict = judge_progress(attempt, Sighting(AT, server, migrations))

    assert verdict.state == state
    if state == ARRIVED:
        assert verdict.to == "compute-2"
    if state not in (ARRIVED,):
        assert verdict.reason


def own(**changes: t.Any) -> Attempt:
    fields: dict[str, t.Any] = {
        "server": "uuid-of-web-1",
        "name": "web-1",
        "how": COLD,
        "source": SOURCE,
        "known": frozenset({OLD.uuid}),
        "requested_at": AT,
        "request_id": "req-1",
    }
    return Attempt(**{**fields, **changes})


def action(name: str = "migrate", request_id: str = "req-1") -> Action:
    return Action(name, request_id, "admin", "2026-11-20T03:00:01.000000", None)


MOVES: dict[str, tuple[Attempt, t.Any, list[Action], bool]] = {
    "ours": (own(), {}, [action()], True),
    "ours, after a lock": (own(), {}, [action("lock", "req-2"), action()], True),
    "of another request": (own(), {}, [action(request_id="req-2")], False),
    "of another request, after ours": (own(), {}, [action(request_id="req-2"), action()], False),
    "a resize of a user, after ours": (
        own(),
        {"type": "resize"},
        [action("resize", "req-2"), action()],
        False,
    ),
    "a resize of a user in the meantime": (own(), {}, [action("resize", "req-2")], False),
    "from another host": (own(), {"source_compute": "compute-3"}, [action()], False),
    "from before the request": (own(known=frozenset({"migration-1"})), {}, [action()], False),
    "without actions": (own(), {}, [], False),
    "whose answer was lost": (own(request_id=""), {}, [action()], False),
    "whose answer was lost, as that of the action": (
        own(request_id=""),
        {},
        [action(request_id="")],
        False,
    ),
    "a live migration, ours": (
        own(how=LIVE),
        {"type": "live-migration"},
        [action("live-migration")],
        True,
    ),
    "a live migration of somebody else, after ours": (
        own(how=LIVE),
        {"type": "live-migration"},
        [action("live-migration", "req-2"), action("live-migration")],
        False,
    ),
    "a live migration, by an action of another name": (
        own(how=LIVE),
        {"type": "live-migration"},
        [action("evacuate")],
        False,
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_only_our_own_moves_are_confirmed_and_counted(name: str) -> None:
    attempt, changes, actions, expected = MOVES[name]

    waiting = migration("finished", COLD, **changes)

    assert is_own_move(attempt, waiting, actions) is expected


def test_a_later_move_of_somebody_else_is_not_that_of_a_request_that_was_never_sent() -> None:
    """Taken for ours, it would be undone when the host returns."""
    never_sent = own(how=LIVE, request_id="")

    assert not is_own_move(never_sent, migration("completed"), [action("live-migration")])
