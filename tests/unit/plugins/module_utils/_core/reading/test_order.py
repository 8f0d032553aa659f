"""The table of order: what can be sent about a consumer, in which order, and how often."""

import dataclasses as d
import types
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.models.snapshot import (
    ALLOCATION,
    MIGRATIONS,
    SERVER,
    Request,
)
from .......plugins.module_utils._core.reading.order import (
    PROOF,
    PROOF_OF_MIGRATION,
    PROOF_OF_SERVER,
    Row,
    ask,
    require_known_needs,
    walk,
)
from .......plugins.module_utils._core.reading.servers import Context, Look, of_each
from .......plugins.module_utils._core.reading.sources import Clients, Sources
from ...world import World, answer

UNLISTED = Request("password")


class Services:
    """Services that know nothing of a uuid, and record what they are asked."""

    def __init__(self, marker: int) -> None:
        self.marker = marker
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> t.Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def record(*_about: t.Any, **_options: t.Any) -> t.Any:
            self.asked.append(name)
            if name == "probe_migration_marker":
                return answer("GET /os-migrations?marker", self.marker, self.marker == 200 or None)
            if name == "get_server":
                return answer("GET /servers", 404)
            return answer(f"GET {name}", 200, ())

        return record


def _ask_about_nothing(marker: int, fresh: bool) -> Services:
    """Walk the whole table about a uuid with an allocation that Nova does not know."""
    world, services = World(), Services(marker)
    consumer = world.stranger(world.host("compute-1"))
    snapshot = world.snapshot()
    nodes = tuple(d.replace(node, servers=None) for node in snapshot.hypervisors.value or ())
    hypervisors = d.replace(snapshot.hypervisors, value=nodes)
    index = ListingsIndex(d.replace(snapshot, hypervisors=hypervisors))
    sources = Sources(t.cast("t.Any", Clients(*[services] * 6)), index, [consumer])
    sources.list_migrations = services.list_migrations_of_server
    context = Context(index=index, scope=snapshot.scope, fresh=fresh)
    look = Look(context, consumer, snapshot.evidence[consumer].allocation)
    walk([*PROOF[1:], *PROOF_OF_SERVER], sources, look)
    return services


def test_request_that_the_table_lacks_cannot_be_sent() -> None:
    services = Services(400)
    sources: t.Any = types.SimpleNamespace(clients=services)

    with pytest.raises(LookupError):
        ask(UNLISTED, sources, None, "uuid")
    with pytest.raises(LookupError):
        Row(UNLISTED, of_each)
    assert services.asked == []


def test_kind_with_a_need_that_nothing_asks_is_refused() -> None:
    require_known_needs(KINDS)

    for planted in ({"needs": (UNLISTED,)}, {"named_needs": (UNLISTED,)}):
        with pytest.raises(LookupError):
            require_known_needs([*KINDS, d.replace(KINDS[0], **planted)])


def test_placement_is_asked_first_then_for_migrations_and_then_for_the_server() -> None:
    assert [row.request for row in PROOF[:3]] == [ALLOCATION, MIGRATIONS, SERVER]
    services = _ask_about_nothing(400, fresh=True)

    assert services.asked[:2] == ["list_migrations_of_server", "get_server"]


@pytest.mark.parametrize(
    ("marker", "fresh", "times"),
    [
        # As often as any other answer, since nothing would be removed.
        (500, False, (1, 1, 0)),
        (500, True, (1, 1, 0)),
        (400, False, (1, 1, 4)),
        (400, True, (10, 4, 10)),
        (200, False, (4, 4, 0)),
        (200, True, (10, 10, 0)),
    ],
)
def test_absence_is_asked_more_often_before_a_write(
    marker: int, fresh: bool, times: tuple[int, int, int]
) -> None:
    asked = _ask_about_nothing(marker, fresh).asked
    counted = [
        asked.count(name)
        for name in ("probe_migration_marker", "list_migrations_of_host", "list_server_rows")
    ]

    assert tuple(counted) == times


def test_no_row_asks_less_often_before_a_write_than_at_detection() -> None:
    rows = [*PROOF, *PROOF_OF_MIGRATION, *PROOF_OF_SERVER]

    assert all(1 <= row.at_detection <= row.before_a_write for row in rows)
