"""No needed allocation is removed while a cell dies and returns at any request.

Nor while some API workers do not know a cell.

Nova's own operations continue meanwhile, as in `test_nova_races`. All of them are in one cell; a
second cell has a host with an orphan that can be proven without the first.
"""

import contextlib
import dataclasses as d
import functools
import random
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common.errors import UnsoundReading
from .......plugins.module_utils._core.models.kind import EVERY
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.snapshot import Answer
from .......plugins.module_utils._core.reading import compute_nodes
from .....examples import choose_examples, count_examples
from ...nova_lives import Life, Moment
from ...world import answer
from ..changes.test_nova_races import LONGEST, Cloud, draw_race, list_races, paces, run

OTHER = "other-cell-1"


class TwoCells(Cloud):
    """A cloud whose first cell is missing from an answer or makes it fail.

    The cell has everything of the life.

    down: the requests that the cell does not answer.
    """

    def __init__(
        self, life: Life, goes_on: t.Container[int] = (), down: t.Container[int] = ()
    ) -> None:
        super().__init__(life, goes_on)
        self.down = down
        self.is_down = False

    def prepare(self, moment: Moment) -> Moment:
        self.first = {node.host for node in moment.nodes.values()}
        host = moment.host(OTHER)
        self.second_server, self.orphan, _live = (moment.server(host, host) for _one in range(3))
        moment.delete(self.second_server)
        moment.delete(self.orphan)
        return moment

    def happens(self) -> None:
        super().happens()
        self.is_down = self.asked in self.down

    def is_unaware(self) -> bool:
        """Return whether the worker that answers does not know the first cell."""
        return False

    def lacks_first(self) -> bool:
        """Return whether the current listing omits the first cell."""
        return self.is_down or self.is_unaware()

    def _is_first(self, server: str) -> bool:
        of_second = {uuid for uuid, row in self.world.servers.items() if row.host == OTHER}
        return server not in of_second | {self.orphan, self.second_server}

    def _known_to_nova(self, uuid: str) -> bool:
        """Return whether a server has a mapping to its cell."""
        return uuid in self.world.servers or uuid in self.world.deleted

    def _rows(self, found: Answer[t.Any]) -> Answer[t.Any]:
        """Return a listing of migrations, all of which are in the first cell."""
        return d.replace(found, value=()) if self.lacks_first() else found

    def list_services(self) -> t.Any:
        found = super().list_services()
        if self.is_unaware():
            others = tuple(service for service in found.value if service.host not in self.first)
            return d.replace(found, value=others)
        if not self.is_down:
            return found
        silent = {host: Service("nova-compute", host, "UNKNOWN", None) for host in self.first}
        return d.replace(
            found, value=tuple(silent.get(service.host, service) for service in found.value)
        )

    def list_hypervisors(self, with_servers: bool, roots: t.Iterable[str]) -> t.Any:
        found = super().list_hypervisors(with_servers, roots)
        if self.is_unaware():
            others = tuple(node for node in found.value if node.host not in self.first)
            return d.replace(found, value=others)
        return answer(found.request, 500) if self.is_down else found

    def get_hypervisor(self, uuid: str) -> t.Any:
        found = super().get_hypervisor(uuid)
        if found.value is None or found.value.host not in self.first or not self.lacks_first():
            # Nova reaches the cell before it finds the node elsewhere.
            return answer(found.request, 500) if self.is_down else found
        return answer(found.request, 500 if self.is_down else 404)

    def list_servers_on_host(self, host: str) -> t.Any:
        found = super().list_servers_on_host(host)
        return () if host in self.first and self.lacks_first() else found

    def list_migrations(self) -> t.Any:
        return self._rows(super().list_migrations())

    def list_migrations_of_server(self, server: str) -> t.Any:
        return self._rows(super().list_migrations_of_server(server))

    def list_migrations_of_host(self, host: str, attempt: int = 0) -> t.Any:
        return self._rows(super().list_migrations_of_host(host, attempt))

    def get_server(self, uuid: str) -> t.Any:
        found = super().get_server(uuid)
        return self._fails(found, uuid)

    def list_instance_actions(self, uuid: str) -> t.Any:
        found = super().list_instance_actions(uuid)
        return self._fails(found, uuid)

    def get_instance_action(self, uuid: str, request: str) -> t.Any:
        found = super().get_instance_action(uuid, request)
        return self._fails(found, uuid)

    def _fails(self, found: Answer[t.Any], uuid: str) -> Answer[t.Any]:
        """Return a direct answer.

        It goes through the mapping of the server, to a cell that may be down.
        """
        if self.is_down and self._known_to_nova(uuid) and self._is_first(uuid):
            return answer(found.request, 500)
        return found

    def find_deleted_server(self, uuid: str, brief: bool = False) -> t.Any:
        found = super().find_deleted_server(uuid, brief)
        return d.replace(found, value=()) if self._is_first(uuid) and self.lacks_first() else found

    def list_server_rows(self, uuid: str, attempt: int = 0) -> t.Any:
        found = super().list_server_rows(uuid, attempt)
        return d.replace(found, value=()) if self._is_first(uuid) and self.lacks_first() else found

    def list_server_uuids_in_status(self, status: str, attempt: int = 0) -> t.Any:
        found = super().list_server_uuids_in_status(status, attempt)
        if not self.lacks_first():
            return found
        left = tuple(uuid for uuid in found.value if not self._is_first(uuid))
        return d.replace(found, value=left)

    def probe_migration_marker(self, uuid: str, attempt: int = 0) -> t.Any:
        found = super().probe_migration_marker(uuid, attempt)
        return answer(found.request, 400) if self.lacks_first() else found

    def get_host(self, name: str) -> t.Any:
        found = super().get_host(name)
        return answer(found.request, 500) if self.is_down and name in self.first else found

    def list_server_uuids(self) -> t.Any:
        found = super().list_server_uuids()
        return (
            frozenset(uuid for uuid in found if not self._is_first(uuid))
            if self.lacks_first()
            else found
        )

    def list_newest_servers(self, count: int) -> t.Any:
        found = super().list_newest_servers(count)
        shown = tuple(server for server in found.value if not self._is_first(server.uuid))
        return d.replace(found, value=shown) if self.lacks_first() else found


class MixedWorkers(TwoCells):
    """A cloud whose workers answer at random.

    Some of them do not know the first cell, or only for one kind of listing: they do not report
    either that it is down.
    """

    def __init__(self, life: Life, seed: int, unaware: float, *when: t.Container[int]) -> None:
        super().__init__(life, *when)
        self._random = random.Random(seed)
        self._unaware = unaware

    def is_unaware(self) -> bool:
        return self._random.random() < self._unaware


class UnawareListings(TwoCells):
    """A cloud in which an adversary chooses the worker that answers a listing.

    Some of the workers do not know the first cell.
    """

    LISTINGS = (
        "list_migrations",
        "list_migrations_of_server",
        "list_migrations_of_host",
        "find_deleted_server",
        "probe_migration_marker",
        "get_hypervisor",
        "list_server_rows",
        "list_server_uuids_in_status",
        "list_servers_on_host",
        "list_newest_servers",
        "list_server_uuids",
    )

    def __init__(
        self, life: Life, unaware: t.Collection[str], goes_on: t.Container[int] = ()
    ) -> None:
        super().__init__(life, goes_on)
        for name in unaware:
            setattr(self, name, functools.partial(self._without_first, getattr(self, name)))
        self._lacks = False

    def _without_first(
        self, listing: t.Callable[..., t.Any], *arguments: t.Any, **more: t.Any
    ) -> t.Any:
        self._lacks = True
        try:
            return listing(*arguments, **more)
        finally:
            self._lacks = False

    def is_unaware(self) -> bool:
        return self._lacks


# What rests on absence, for which every cell has to answer.
_ABSENT = [kind.name for kind in KINDS if kind.cells == EVERY]


def _survive(cloud: TwoCells, but: t.Collection[str] = ()) -> None:
    """Detect and remediate all but some kinds, even if the reading was not sound in the end."""
    with contextlib.suppress(UnsoundReading):
        run(cloud, but)
    assert not cloud.wrong, "\n".join(cloud.wrong)


def _draw_pace(draw: st.DrawFn) -> t.Container[int]:
    return draw(paces()) if draw(st.booleans()) else ()


@st.composite
def _outages(draw: st.DrawFn, latest: int) -> range:
    """Draw the request at which a cell goes down, and perhaps a later one for its return."""
    down = draw(st.integers(1, latest * LONGEST))
    length = draw(st.integers(1, LONGEST)) if draw(st.booleans()) else 100 * LONGEST
    return range(down, down + length)


def _draw_unaware(draw: st.DrawFn, least: float) -> tuple[int, float]:
    shares = [share for share in (0.1, 0.3, 0.5, 0.7, 0.9) if share >= least]
    return draw(st.integers(0, 2**32)), draw(st.sampled_from(shares))


@st.composite
def dying_cells(draw: st.DrawFn) -> TwoCells:
    return TwoCells(draw_race(draw), _draw_pace(draw), draw(_outages(3)))


@st.composite
def mixed_workers(draw: st.DrawFn) -> MixedWorkers:
    return MixedWorkers(draw_race(draw), *_draw_unaware(draw, 0.1), _draw_pace(draw))


@st.composite
def dead_and_unaware(draw: st.DrawFn) -> MixedWorkers:
    when = _draw_pace(draw), draw(_outages(2))
    return MixedWorkers(draw_race(draw), *_draw_unaware(draw, 0.3), *when)


@st.composite
def unaware_listings(draw: st.DrawFn) -> UnawareListings:
    listings = draw(st.sets(st.sampled_from(UnawareListings.LISTINGS), min_size=1))
    return UnawareListings(draw_race(draw), listings, _draw_pace(draw))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second look at a cell follow the first without a pause."""
    monkeypatch.setattr(compute_nodes, "_RETRY_PAUSE", 0)


SETTINGS = hypothesis.settings(
    max_examples=count_examples(400),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@SETTINGS
@hypothesis.given(dying_cells())
def test_needed_allocations_survive_while_a_cell_dies(cloud: TwoCells) -> None:
    _survive(cloud)


@SETTINGS
@hypothesis.given(mixed_workers())
def test_needed_allocations_survive_while_workers_do_not_know_a_cell(cloud: MixedWorkers) -> None:
    _survive(cloud)


@SETTINGS
@hypothesis.given(dead_and_unaware())
def test_needed_allocations_survive_while_an_unknown_cell_is_down(cloud: MixedWorkers) -> None:
    _survive(cloud)


@SETTINGS
@hypothesis.given(unaware_listings())
def test_proofs_by_presence_hold_whichever_listings_lack_a_cell(cloud: UnawareListings) -> None:
    """No load balancer, whatever it prefers, makes these kinds remove what is needed."""
    _survive(cloud, but=_ABSENT)


def test_halfway_moves_are_noticed_where_no_migration_is_listed() -> None:
    """A live guest has arrived where an evacuation was interrupted.

    Nova still has the server elsewhere, and each listing lacks the migration.
    """
    listings = ("list_migrations", "list_migrations_of_server", "list_migrations_of_host")
    for life in choose_examples(list_races()):
        _survive(UnawareListings(life, listings), but=_ABSENT)


@pytest.mark.parametrize("down", [1, 5, 9, 13])
def test_provable_orphans_of_the_answering_cell_are_removed(down: int) -> None:
    cloud = TwoCells(list_races()[0], (), range(down, 100 * LONGEST))
    written = {change.consumer for change in run(cloud)}

    assert {cloud.orphan, cloud.second_server} <= written
    assert all(not cloud._is_first(consumer) for consumer in written) or down > 1


def test_workers_that_know_all_cells_remove_all_orphans() -> None:
    cloud = MixedWorkers(list_races()[0], 1, 0.0)

    assert {cloud.orphan, cloud.second_server} <= {change.consumer for change in run(cloud)}
