"""What several consumers share, and is read once: servers that are being moved unlisted."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.nova import Action, Migration
from .......plugins.module_utils._core.models.snapshot import Answer
from .......plugins.module_utils._core.reading.sources import read_unlisted_moves
from ...world import World, answer

EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@d.dataclass
class Nova:
    """What Nova answers after the listings were read.

    moving: the servers in the status VERIFY_RESIZE.
    migrations, actions: those that a lookup of one server finds.
    blind: which of the requests reach an API worker that does not know the cell of the servers.
    """

    workers = 1
    moving: tuple[str, ...] = ()
    migrations: tuple[Migration, ...] = ()
    actions: tuple[Action, ...] | None = ()
    status: int = 200
    blind: t.Collection[int] = ()
    looked_up: list[str] = d.field(default_factory=list)

    def list_server_uuids_in_status(self, status: str, attempt: int) -> Answer[t.Any]:
        if self.status != 200:
            return answer("GET /servers", self.status, None)
        is_known = attempt not in self.blind
        shown = self.moving if status == "VERIFY_RESIZE" and is_known else ()
        return answer("GET /servers", 200, shown)

    def list_migrations_of_server(self, server: str) -> Answer[t.Any]:
        self.looked_up.append(server)
        return answer("GET /os-migrations", 200, self.migrations)

    def list_instance_actions(self, server: str) -> Answer[t.Any]:
        status = 200 if self.actions is not None else 500
        return answer(f"GET /servers/{server}/os-instance-actions", status, self.actions)


def _make_moves(world: World, server: str, moves: dict[str, str]) -> tuple[Migration, ...]:
    """Return migrations with these statuses and times, without listing them."""
    here = world.host(f"compute-{len(world.nodes)}")
    made = []
    for status, created_at in moves.items():
        uuid = world.migration(server, here, here, status)
        made.append(d.replace(world.migrations.pop(uuid), created_at=created_at))
    return tuple(made)


def _read(world: World, nova: Nova, consumers: t.Sequence[str] = ()) -> Answer[t.Any]:
    index = ListingsIndex(world.listings())
    return read_unlisted_moves(t.cast("t.Any", nova), index, consumers, times=4)


@pytest.mark.parametrize(
    ("listed", "looked_up", "unlisted"),
    [
        pytest.param({"finished": EARLIER}, {}, False, id="listed"),
        pytest.param({"confirmed": EARLIER, "finished": LATER}, {}, False, id="second-move"),
        pytest.param({}, {"migrating": LATER}, False, id="began-since"),
        pytest.param({"error": EARLIER}, {"finished": LATER}, False, id="listed-before"),
        pytest.param({"error": EARLIER}, {"error": EARLIER}, True, id="only-a-failed-move"),
        pytest.param({}, {}, True, id="no-migration"),
        pytest.param({"confirmed": EARLIER}, {"confirmed": EARLIER}, True, id="only-the-last-move"),
        pytest.param(
            {"error": EARLIER, "confirmed": LATER},
            {"error": EARLIER, "confirmed": LATER},
            True,
            id="failed-before-the-last-move",
        ),
    ],
)
def test_server_is_unlisted_where_no_migration_can_be_its_move(
    listed: dict[str, str], looked_up: dict[str, str], unlisted: bool
) -> None:
    world = World()
    there = world.host("compute-2")
    server = world.server(there, there, status="VERIFY_RESIZE")

    nova = Nova((server,), _make_moves(world, server, looked_up))
    for migration in _make_moves(world, server, listed):
        world.migrations[migration.uuid] = migration

    assert _read(world, nova).value == ((server,) if unlisted else ())
    assert nova.looked_up == ([server] if looked_up or unlisted else [])


@pytest.mark.parametrize(
    ("moves", "did", "unlisted"),
    [
        pytest.param({"error": LATER}, [("resize", EARLIER)], False, id="stale"),
        pytest.param({"error": LATER}, [("migrate", LATER)], False, id="in-the-same-second"),
        pytest.param(
            {"confirmed": EARLIER, "error": LATER},
            [("resize", EARLIER), ("reboot", LATER), ("resize", LATER)],
            False,
            id="stale-after-another-move",
        ),
        # The record of the move under way was deleted, and an earlier move has failed.
        pytest.param({"error": EARLIER}, [("resize", LATER)], True, id="failed-before"),
        pytest.param(
            {"error": LATER},
            [("resize", EARLIER), ("resize", EARLIER)],
            True,
            id="failed-before-by-a-clock-ahead",
        ),
        pytest.param({"error": LATER}, [("reboot", EARLIER)], True, id="no-move"),
        pytest.param({"error": LATER}, [("resize", "soon")], True, id="time-unknown"),
        pytest.param({"error": LATER}, None, True, id="actions-unknown"),
        pytest.param({"failed": LATER}, [("resize", EARLIER)], True, id="ended-otherwise"),
    ],
)
def test_move_in_error_is_the_one_under_way_only_if_it_is_the_last_one(
    moves: dict[str, str], did: list[tuple[str, str]] | None, unlisted: bool
) -> None:
    world = World()
    there = world.host("compute-2")
    server = world.server(there, there, status="VERIFY_RESIZE")
    actions = None
    if did is not None:
        actions = tuple(Action(action, "req-1", None, start, None) for action, start in did)
    nova = Nova((server,), _make_moves(world, server, moves), actions)

    assert _read(world, nova).value == ((server,) if unlisted else ())


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize(
    ("did", "unlisted"),
    [
        pytest.param([("live-migration", EARLIER)], False, id="under-way"),
        pytest.param([("live-migration", EARLIER), ("reboot", LATER)], False, id="no-later-move"),
        pytest.param([("live-migration", LATER)], False, id="by-a-clock-behind"),
        pytest.param([("resize", EARLIER), ("migrate", EARLIER)], False, id="given-up-before"),
        # The record of the move under way was deleted, and an earlier move was interrupted.
        pytest.param([("live-migration", EARLIER), ("resize", LATER)], True, id="later-move"),
        pytest.param([("resize", EARLIER), ("resize", "soon")], True, id="time-unknown"),
        pytest.param(None, True, id="actions-unknown"),
    ],
)
def test_interrupted_move_does_not_hide_a_later_one(
    did: list[tuple[str, str]] | None, unlisted: bool, is_listed: bool
) -> None:
    """It is listed, or an old answer about the server shows it as it was while it ran."""
    world = World()
    there = world.host("compute-2")
    server = world.server(there, there, status="VERIFY_RESIZE")
    moves = _make_moves(world, server, {"running": EARLIER})
    if is_listed:
        world.migrations[moves[0].uuid] = moves[0]
    actions = None
    if did is not None:
        actions = tuple(Action(action, "req-1", None, start, None) for action, start in did)

    assert _read(world, Nova((server,), moves, actions)).value == ((server,) if unlisted else ())


@pytest.mark.parametrize("blind", [{0}, {0, 1, 2}, {1, 2, 3}])
def test_server_is_found_if_any_api_worker_knows_its_cell(blind: set[int]) -> None:
    world = World()
    there = world.host("compute-2")
    server = world.server(there, there, status="VERIFY_RESIZE")

    assert _read(world, Nova((server,), blind=blind)).value == (server,)


@pytest.mark.parametrize(("is_candidate", "unlisted"), [(False, False), (True, True)])
def test_old_lookup_does_not_list_the_move_whose_record_was_deleted(
    is_candidate: bool, unlisted: bool
) -> None:
    """A cache still has the migration, whose allocation is to be judged as one without a record."""
    world = World()
    there = world.host("compute-2")
    server = world.server(there, there, status="VERIFY_RESIZE")
    old = _make_moves(world, server, {"finished": LATER})
    candidates = [old[0].uuid] if is_candidate else []

    assert _read(world, Nova((server,), old), candidates).value == ((server,) if unlisted else ())


def test_a_refusal_proves_nothing() -> None:
    answered = _read(World(), Nova(status=403))

    assert (answered.status, answered.value) == (403, None)
