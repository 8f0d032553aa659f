"""Evacuations that nova-compute has not completed: which a restart completes, and which it must not
find.
"""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._common.errors import CloudError
from ......plugins.module_utils._core.models.nova import Migration, Server
from ......plugins.module_utils._core.models.snapshot import Answer
from ......plugins.module_utils._hosts.migrations import (
    UnfinishedEvacuations,
    describe_migration,
    find_returning_hosts,
    read_unfinished_evacuations,
)
from ..drain_world import build_service
from ..host_site import Site
from ..world import NOW

HOST, NODE, ELSEWHERE = "compute-1", "compute-1.example.org", "compute-2"
GUEST = "55555555-5555-4555-8555-555555555555"
NAMES = {HOST, NODE, "former-name"}


def _migration(uuid: str = "m-1", **changes: t.Any) -> Migration:
    fields: dict[str, t.Any] = {
        "server": GUEST,
        "type": "evacuation",
        "status": "done",
        "source_compute": HOST,
        "source_node": NODE,
        "dest_compute": ELSEWHERE,
        "dest_node": ELSEWHERE,
        "created_at": "2026-11-20T10:00:00",
        "updated_at": "2026-11-20T10:01:00",
    }
    return Migration(uuid, **{**fields, **changes})


def _server(
    host: str | None, node: str | None = None, host_known: bool = True, **changes: t.Any
) -> Server:
    server = Server(
        uuid=GUEST,
        name="guest",
        status="ACTIVE",
        project=None,
        user=None,
        host=host,
        node=node,
        task_state=None,
        task_known=True,
        host_known=host_known,
        created=None,
        updated=None,
        terminated_at=None,
    )
    return d.replace(server, **changes)


def _answer(value: t.Any, status: int = 200) -> Answer[t.Any]:
    return Answer("GET /somewhere", "2.68", status, "2026-11-20T12:00:00Z", value)


class Nova:
    """Answers of a Nova about evacuations, one server, and the migrations of the host."""

    def __init__(
        self,
        evacuations: t.Any,
        server: Answer[Server] | None = None,
        moves: t.Any = (),
        services: t.Iterable[dict[str, str]] = (),
        hosted: t.Any = (),
    ) -> None:
        self.evacuations, self.moves, self.hosted = evacuations, moves, hosted
        self.server = server or _answer(_server(ELSEWHERE, ELSEWHERE))
        # By host, the status of its service in each listing.
        self.services = iter(services or [{HOST: "enabled"}] * 2)

    def list_services(self) -> Answer[t.Any]:
        listed = next(self.services).items()
        return _answer([build_service(host, status=status) for host, status in listed])

    def list_evacuations(self) -> Answer[t.Any]:
        return _answer(self.evacuations, 200 if self.evacuations is not None else 500)

    def list_migrations_of_host(self, _host: str) -> Answer[t.Any]:
        return _answer(self.moves, 200 if self.moves is not None else 500)

    def query_servers_on_host(self, _host: str) -> Answer[t.Any]:
        return _answer(self.hosted, 200 if self.hosted is not None else 500)

    def get_server(self, _uuid: str) -> Answer[Server]:
        return self.server


def _read(nova: Nova, nodes: t.Sequence[str] = (NODE,)) -> UnfinishedEvacuations:
    return read_unfinished_evacuations(t.cast("t.Any", nova), HOST, NAMES, nodes)


@pytest.mark.parametrize(
    ("changes", "is_found", "restart_completes"),
    [
        ({}, True, True),
        ({"status": "accepted"}, True, True),
        ({"status": "pre-migrating"}, True, True),
        ({"status": "completed"}, False, False),
        ({"status": "failed"}, False, False),
        ({"type": "live-migration"}, False, False),
        ({"source_compute": ELSEWHERE, "source_node": ELSEWHERE}, False, False),
        # No start completes it: nova-compute looks for its present names only.
        ({"source_node": "compute-1.old.example.org"}, True, False),
        ({"source_compute": "former-name"}, True, False),
        ({"source_compute": "COMPUTE-1"}, True, False),
    ],
)
def test_a_restart_completes_what_has_the_present_names(
    changes: dict[str, t.Any], is_found: bool, restart_completes: bool
) -> None:
    found = _read(Nova([_migration(**changes)]))

    assert bool(found.evacuations) is bool(found.explain()) is is_found
    assert found.restart_completes is restart_completes
    assert found.present == ()


@pytest.mark.parametrize(
    ("server", "moves", "is_present"),
    [
        (_answer(_server(ELSEWHERE)), [], False),
        (_answer(_server(HOST)), [], True),
        (_answer(_server("Compute-1")), [], True),
        (_answer(_server("new-name", NODE)), [], True),
        # Nobody says where it is.
        (_answer(_server(None, host_known=False)), [], True),
        (_answer(None, 500), [], True),
        (_answer(None, 404), [], True),
        # A shelved server is on no host, unless it is being unshelved.
        (_answer(_server(None)), [], False),
        (_answer(_server(None, task_state="spawning")), [], True),
        # Nova has accepted a move, and has no record of it yet.
        (_answer(_server(ELSEWHERE, task_state="migrating")), [], True),
        # It is on its way, or a failed move has left its guest.
        (None, [{"status": "running", "type": "live-migration"}], True),
        (None, [{"status": "finished", "type": "resize"}], True),
        (None, [{"status": "error", "type": "live-migration"}], True),
        (None, [{"status": "completed", "type": "live-migration"}], False),
        # Before the evacuation, which has started the guest anew.
        (None, [{"status": "error", "created_at": "2026-11-20T09:00:00"}], False),
        (None, [{"status": "error", "server": "another"}], False),
    ],
)
def test_nobody_restarts_nova_compute_under_a_server_that_may_be_there(
    server: Answer[Server] | None, moves: list[dict[str, t.Any]], is_present: bool
) -> None:
    given = []
    for change in moves:
        later = {"type": "live-migration", "created_at": "2026-11-20T11:00:00"}
        given.append(_migration("m-2", **{**later, **change}))
    found = _read(Nova([_migration()], server, given))

    assert found.present == ((GUEST,) if is_present else ())
    assert found.restart_completes is not is_present
    assert ("Do not restart" in found.explain()) is is_present


OTHER = {"uuid": "66666666-6666-4666-8666-666666666666"}


@pytest.mark.parametrize(
    ("changes", "move", "is_busy"),
    [
        ({}, {"status": "completed"}, False),
        ({}, {"status": "finished", "type": "resize"}, False),
        ({}, {"status": "running"}, True),
        ({"status": "BUILD"}, {"status": "completed"}, True),
        ({"task_state": "image_uploading"}, {"status": "completed"}, True),
    ],
)
def test_a_restart_breaks_off_no_build_and_no_move(
    changes: dict[str, t.Any], move: dict[str, t.Any], is_busy: bool
) -> None:
    """Nova gives builds to a host that was deployed again as soon as it has discovered it."""
    moves = [_migration("m-2", **{"type": "live-migration", "server": OTHER["uuid"], **move})]
    found = _read(Nova([_migration()], moves=moves, hosted=[_server(HOST, **OTHER, **changes)]))

    assert found.restart_completes is not is_busy
    assert (OTHER["uuid"] in found.explain()) is is_busy
    assert (f"Restart nova-compute on {HOST}" in found.explain()) is not is_busy


def test_what_nova_does_not_list_is_not_taken_for_nothing() -> None:
    for nova in (Nova(None), Nova([_migration()], moves=None), Nova([_migration()], hosted=None)):
        with pytest.raises(CloudError, match="answered 500"):
            _read(nova)


UP, SILENT = {HOST: "enabled"}, {HOST: "UNKNOWN"}
OTHER_CELL = {ELSEWHERE: "UNKNOWN"}


@pytest.mark.parametrize(
    "services", [[SILENT, UP], [UP, SILENT], [OTHER_CELL, UP], [UP, OTHER_CELL]]
)
@pytest.mark.parametrize("evacuations", [[], [_migration()]])
def test_what_a_silent_cell_leaves_out_is_not_taken_for_completed(
    services: list[dict[str, str]], evacuations: list[Migration]
) -> None:
    """Nova answers 200 with an empty list, and the evacuations would look complete."""
    with pytest.raises(CloudError, match=f"The cell of {HOST} does not answer"):
        _read(Nova(evacuations, services=services))


def test_another_silent_cell_hides_no_evacuation_from_the_host() -> None:
    assert _read(Nova([], services=[{**UP, **OTHER_CELL}] * 2)).explain() == ""


def test_an_evacuation_that_only_the_listing_of_the_host_has_counts() -> None:
    """The cell was silent for the other listing only."""
    found = _read(
        Nova([], moves=[_migration(), _migration("m-2", type="resize", status="confirmed")])
    )

    assert [entry.uuid for entry in found.evacuations] == ["m-1"] and found.present == ()


def test_without_a_listed_node_a_restart_may_complete() -> None:
    assert _read(Nova([_migration()]), nodes=()).restart_completes


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        ({HOST: {HOST}, ELSEWHERE: {ELSEWHERE}}, [HOST]),
        ({"new-name": {"new-name", NODE}}, ["new-name"]),
        ({ELSEWHERE: {ELSEWHERE}}, []),
    ],
)
def test_hosts_to_which_a_server_must_not_return(
    names: dict[str, set[str]], hosts: list[str]
) -> None:
    assert find_returning_hosts([_migration(), _migration("m-2", status="failed")], names) == hosts


@pytest.mark.parametrize(
    ("status", "type", "advice"),
    [
        ("finished", "resize", "confirm"),
        ("running", "live-migration", "abort"),
        ("accepted", "evacuation", "wait"),
        ("done", "evacuation", ""),
    ],
)
def test_move_has_its_age_and_advice(status: str, type: str, advice: str) -> None:
    site = Site()
    move = site.migration(site.server(site.new, site.new), site.old, site.new, status, type=type)
    told = describe_migration(site.migrations[move], NOW)

    assert told["age_seconds"] == 0
    assert advice in told["advice"] and bool(told["advice"]) == bool(advice)
