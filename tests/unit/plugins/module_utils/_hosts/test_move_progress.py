"""What is under way, and whose resize it is: every end of a move that Nova can show."""

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


TYPES = {LIVE: "live-migration", COLD: "migration", EVACUATION: "evacuation"}
# What Nova shows of the server, beside that it is ACTIVE on its source.
HERE: dict[str, t.Any] = {}
AWAY_FROM_IT = {"host": "compute-2"}
MOVING = {"task_state": "migrating"}
WAITS, WAITS_AWAY = {"status": "VERIFY_RESIZE"}, {**AWAY_FROM_IT, "status": "VERIFY_RESIZE"}
OFFLOADED = {"host": None, "status": "SHELVED_OFFLOADED"}
# The newest migration: its status, and what else it has if that is not as usual.
RESIZE, COLDLY, NOWHERE = {"type": "resize"}, {"type": "migration"}, {"dest_node": None}
Newest = tuple[str, dict[str, t.Any]] | str | None

CASES: dict[str, dict[str, tuple[dict[str, t.Any] | None, Newest, str]]] = {
    LIVE: {
        "runs": (MOVING, "running", WAITING),
        "has not been recorded yet": (MOVING, None, WAITING),
        "has a task that is cleared before the migration ends": (HERE, "running", WAITING),
        "has arrived": (AWAY_FROM_IT, "completed", ARRIVED),
        "has arrived and is not yet completed": (AWAY_FROM_IT, "running", WAITING),
        "has arrived, though Nova calls it an error": (AWAY_FROM_IT, "error", ARRIVED),
        "found no host": (HERE, ("error", NOWHERE), ABORTED),
        "was cut off when it may have been copied": (HERE, "error", UNCERTAIN),
        "was cancelled": (HERE, "cancelled", UNCERTAIN),
        "ended on the same host": (HERE, "completed", ABORTED),
        "left the server in ERROR": ({"status": "ERROR", "fault": "broken"}, "error", BROKEN),
        "has a request that did not arrive": (HERE, None, NOT_BEGUN),
        "is of a server that was deleted": (None, None, AWAY),
        "is of a server that is being deleted": ({"task_state": "deleting"}, None, WAITING),
        "is of a server that its user rebuilds": (
            {"task_state": "rebuilding", "status": "REBUILD"},
            None,
            WAITING,
        ),
        "is of a server that its user has resized": (WAITS_AWAY, ("finished", RESIZE), FOREIGN),
        "is followed by a resize that is confirmed": (AWAY_FROM_IT, ("confirmed", RESIZE), AWAY),
        "is followed by a resize that is reverted": (HERE, ("reverted", RESIZE), ABORTED),
        "is of a server that was shelved meanwhile": (OFFLOADED, None, AWAY),
        "is of a server that came elsewhere without a migration": (AWAY_FROM_IT, None, AWAY),
        "is of a server in a dead cell": ({"status": "UNKNOWN"}, None, WAITING),
        "is of a server whose task is not shown": ({"task_known": False}, None, WAITING),
        "is of a server whose host is not shown": ({"host_known": False}, None, WAITING),
        "is followed by a cold one of somebody else": (WAITS_AWAY, ("finished", COLDLY), FOREIGN),
    },
    COLD: {
        "runs": ({"status": "RESIZE", "task_state": "resize_prep"}, "pre-migrating", WAITING),
        "is to be confirmed": (WAITS_AWAY, "finished", CONFIRMABLE),
        "is to be confirmed on the same host": (WAITS, "finished", CONFIRMABLE),
        "has a task that still runs": ({**WAITS_AWAY, **MOVING}, "finished", WAITING),
        "is being confirmed": (WAITS_AWAY, "confirming", WAITING),
        "is confirmed before the status changes": (WAITS_AWAY, "confirmed", WAITING),
        "is confirmed": ({**AWAY_FROM_IT, "status": "SHUTOFF"}, "confirmed", ARRIVED),
        "was reverted by its user": ({"status": "SHUTOFF"}, "reverted", FOREIGN),
        "cannot be confirmed": (WAITS_AWAY, "error", BROKEN),
        "comes after a resize that waits": (WAITS, None, FOREIGN),
    },
    EVACUATION: {
        "runs": ({"task_state": "rebuilding"}, "accepted", WAITING),
        "is done": (AWAY_FROM_IT, "done", ARRIVED),
        "is not yet done": (AWAY_FROM_IT, "pre-migrating", WAITING),
        "found no room": (HERE, ("failed", NOWHERE), ABORTED),
        "failed on its destination": (HERE, "failed", UNCERTAIN),
        # Its destination died.
        "was ended by the source": (HERE, "completed", UNCERTAIN),
    },
}


@pytest.mark.parametrize(("how", "name"), [(how, name) for how in CASES for name in CASES[how]])
def test_progress_of_a_move(how: str, name: str) -> None:
    fields, newest, state = CASES[how][name]
    server = None if fields is None else build_server(**fields)
    migrations = [OLD]
    if newest is not None:
        status, changes = (newest, {}) if isinstance(newest, str) else newest
        migrations.insert(0, build_migration(1, status, **{"type": TYPES[how], **changes}))
    attempt = own(how=how, is_accepted=True)

    verdict = judge_progress(attempt, Sighting(AT, server, migrations))

    assert verdict.state == state
    if state == ARRIVED:
        assert verdict.to == "compute-2"
    else:
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


OTHERS = action(request_id="req-2")
LIVE_ONE = {"type": "live-migration"}
# The attempt and the migration that waits, where they are not as usual; the actions, newest first.
MOVES: dict[str, tuple[dict[str, t.Any], dict[str, t.Any], list[Action], bool]] = {
    "ours": ({}, {}, [action()], True),
    "ours, after a lock": ({}, {}, [action("lock", "req-2"), action()], True),
    "of another request": ({}, {}, [OTHERS], False),
    "of another request, after ours": ({}, {}, [OTHERS, action()], False),
    "a resize, after ours": ({}, RESIZE, [action("resize", "req-2"), action()], False),
    "a resize in the meantime": ({}, {}, [action("resize", "req-2")], False),
    "from another host": ({}, {"source_compute": "compute-3"}, [action()], False),
    "from before the request": ({"known": frozenset({"migration-1"})}, {}, [action()], False),
    "without actions": ({}, {}, [], False),
    "whose answer was lost": ({"request_id": ""}, {}, [action()], False),
    "whose answer was lost, as that of the action": (
        {"request_id": ""},
        {},
        [action(request_id="")],
        False,
    ),
    "live, ours": ({"how": LIVE}, LIVE_ONE, [action("live-migration")], True),
    "live, of somebody else, after ours": (
        {"how": LIVE},
        LIVE_ONE,
        [action("live-migration", "req-2"), action("live-migration")],
        False,
    ),
    "live, by an action of another name": ({"how": LIVE}, LIVE_ONE, [action("evacuate")], False),
    # It was never sent. Taken for ours, it would be undone when the host returns.
    "live, of somebody else, after a request that was lost": (
        {"how": LIVE, "request_id": ""},
        LIVE_ONE,
        [action("live-migration")],
        False,
    ),
}


@pytest.mark.parametrize(("fields", "changes", "actions", "is_ours"), MOVES.values(), ids=MOVES)
def test_only_our_own_moves_are_confirmed_and_counted(
    fields: dict[str, t.Any], changes: dict[str, t.Any], actions: list[Action], is_ours: bool
) -> None:
    waiting = build_migration(1, "finished", **{"type": "migration", **changes})

    assert is_own_move(own(**fields), waiting, actions) is is_ours
