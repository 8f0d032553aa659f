"""What several consumers share, and is read once: servers that are being moved unlisted."""

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


class Site(World):
    """A host with a server that waits for the confirmation of its resize."""

    def __init__(self) -> None:
        super().__init__()
        there = self.host("compute-2")
        self.resized = self.server(there, there, status="VERIFY_RESIZE")

    def make_moves(self, moves: dict[str, str]) -> tuple[Migration, ...]:
        """Return migrations with these statuses and times, without listing them."""
        here = self.host(f"compute-{len(self.nodes)}")
        made = []
        for status, created_at in moves.items():
            uuid = self.migration(self.resized, here, here, status)
            made.append(d.replace(self.migrations.pop(uuid), created_at=created_at))
        return tuple(made)

    def list_move(self, migration: Migration) -> None:
        self.migrations[migration.uuid] = migration

    def read(self, consumers: t.Sequence[str] = (), **nova: t.Any) -> Answer[t.Any]:
        """Ask a Nova that shows the server as one that is being moved."""
        return self.read_from(Nova(**{"moving": (self.resized,), **nova}), consumers)

    def read_from(self, nova: Nova, consumers: t.Sequence[str] = ()) -> Answer[t.Any]:
        index = ListingsIndex(self.listings())
        return read_unlisted_moves(t.cast("t.Any", nova), index, consumers, times=4)

    def expect(self, unlisted: bool) -> tuple[str, ...]:
        return (self.resized,) if unlisted else ()


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def _make_actions(did: list[tuple[str, str]] | None) -> tuple[Action, ...] | None:
    """Return actions with these names and times; None where they are unknown."""
    if did is None:
        return None
    return tuple(Action(action, "req-1", None, start, None) for action, start in did)


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
    site: Site, listed: dict[str, str], looked_up: dict[str, str], unlisted: bool
) -> None:
    nova = Nova((site.resized,), site.make_moves(looked_up))
    for migration in site.make_moves(listed):
        site.list_move(migration)

    assert site.read_from(nova).value == site.expect(unlisted)
    assert nova.looked_up == ([site.resized] if looked_up or unlisted else [])


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
    site: Site, moves: dict[str, str], did: list[tuple[str, str]] | None, unlisted: bool
) -> None:
    found = site.read(migrations=site.make_moves(moves), actions=_make_actions(did))

    assert found.value == site.expect(unlisted)


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
    site: Site, did: list[tuple[str, str]] | None, unlisted: bool, is_listed: bool
) -> None:
    """It is listed, or an old answer about the server shows it as it was while it ran."""
    moves = site.make_moves({"running": EARLIER})
    if is_listed:
        site.list_move(moves[0])
    found = site.read(migrations=moves, actions=_make_actions(did))

    assert found.value == site.expect(unlisted)


@pytest.mark.parametrize("blind", [{0}, {0, 1, 2}, {1, 2, 3}])
def test_server_is_found_if_any_api_worker_knows_its_cell(site: Site, blind: set[int]) -> None:
    assert site.read(blind=blind).value == (site.resized,)


@pytest.mark.parametrize(("is_candidate", "unlisted"), [(False, False), (True, True)])
def test_old_lookup_does_not_list_the_move_whose_record_was_deleted(
    site: Site, is_candidate: bool, unlisted: bool
) -> None:
    """A cache still has the migration, whose allocation is to be judged as one without a record."""
    old = site.make_moves({"finished": LATER})
    candidates = [old[0].uuid] if is_candidate else []

    assert site.read(candidates, migrations=old).value == site.expect(unlisted)


def test_a_refusal_proves_nothing(site: Site) -> None:
    answered = site.read(status=403)

    assert (answered.status, answered.value) == (403, None)
