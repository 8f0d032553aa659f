"""Which moves are given up, because Nova may never end them."""

import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._core.models.nova import Migration
from ......plugins.module_utils._hosts.draining import (
    COLD,
    EVACUATION,
    FAILED,
    LIVE,
    UNDER_WAY,
    DrainSettings,
)
from ......plugins.module_utils._hosts.move_journal import DRAIN
from ......plugins.module_utils._hosts.move_progress import NOT_BEGUN, WAITING, Attempt
from ......plugins.module_utils._hosts.nova_client import parse_drain_server
from ......plugins.module_utils._hosts.server_move import ActiveMove, MoveEnd
from .moving_host import MovingHost

SOURCE, DEST, OTHER = "compute-1", "compute-2", "compute-3"
BEGAN = "2026-11-20T03:00:00"
# Ten minutes later, and a second before.
LATE, EARLY = "2026-11-20T03:10:00Z", "2026-11-20T03:09:59Z"
TASK, NO_TASK = "migrating", None


class Site(MovingHost):
    """A Nova with one server, whose move is given up or not."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = self.boot("web")
        self.settings = DrainSettings()

    def build(
        self,
        how: str,
        status: str | None = "running",
        task: str | None = TASK,
        seen_at: str = LATE,
        **changes: t.Any,
    ) -> ActiveMove:
        """Return a move of which nothing has changed since it began.

        status: that of its migration; None if there is none.
        """
        row = self.servers[self.server]
        self.set_task(self.server, task)
        attempt = Attempt(self.server, "web", SOURCE, how=how, requested_at=BEGAN, is_accepted=True)
        migration = None
        if status:
            ends = (SOURCE, SOURCE, changes.pop("dest", DEST), DEST)
            times = (BEGAN, changes.pop("changed_at", BEGAN))
            migration = Migration("m", self.server, how, status, *ends, *times)
        known = {"state": WAITING, "server": parse_drain_server(row), **changes}
        return ActiveMove(attempt, migration=migration, seen_at=seen_at, **known)

    def judge(self, move: ActiveMove) -> MoveEnd | None:
        return self.make_mover(DRAIN, self.settings).give_up(move)

    def be_down(self, *hosts: str) -> None:
        for host in hosts:
            self.services[host]["state"] = "down"

    def add_service(self, binary: str, state: str) -> None:
        host = f"controller-{len(self.services)}"
        service = {**self.services[OTHER], "binary": binary, "host": host, "state": state}
        self.services[host] = service


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize(
    ("how", "fields", "is_given_up"),
    [
        (LIVE, {}, True),
        (LIVE, {"seen_at": EARLY}, False),
        (LIVE, {"seen_at": ""}, False),
        # It is being scheduled, or prepared on both hosts.
        (LIVE, {"status": "preparing"}, False),
        # A disk is copied for as long as it takes.
        (COLD, {"status": "migrating"}, False),
        (COLD, {"status": "migrating", "task": NO_TASK, "seen_at": BEGAN}, True),
        (LIVE, {"task": NO_TASK, "seen_at": BEGAN}, True),
        (LIVE, {"status": None}, True),
        (LIVE, {"status": None, "seen_at": EARLY}, False),
        (LIVE, {"status": "queued", "seen_at": BEGAN}, True),
        (LIVE, {"changed_at": "2026-11-20T03:05:00"}, False),
        (LIVE, {"changed_at": None}, True),
        (LIVE, {"server": None}, False),
        (LIVE, {"state": NOT_BEGUN, "status": None, "seen_at": EARLY}, False),
    ],
    ids=str,
)
def test_move_of_which_nothing_is_heard_is_given_up(
    site: Site, how: str, fields: dict[str, t.Any], is_given_up: bool
) -> None:
    end = site.judge(site.build(how, **fields))

    assert (end.outcome if end else None) == (UNDER_WAY if is_given_up else None)


@pytest.mark.parametrize(("seen_at", "is_given_up"), [(LATE, True), (EARLY, False)])
def test_source_may_clean_up_for_a_while_after_the_server_has_arrived(
    site: Site, seen_at: str, is_given_up: bool
) -> None:
    site.put(site.server, DEST)

    end = site.judge(site.build(COLD, "post-migrating", NO_TASK, seen_at))

    assert (end is not None) is is_given_up


def test_request_that_was_lost_is_sent_again(site: Site) -> None:
    move = site.build(LIVE, None, state=NOT_BEGUN)
    move.attempt = Attempt(site.server, "web", SOURCE)
    site.open_journal().record_request(move.attempt, DRAIN)

    end = site.judge(move)

    assert end is not None and (end.outcome, end.may_retry, end.how) == (FAILED, True, LIVE)
    assert site.read_history().list_attempts(DRAIN) == []


@pytest.mark.parametrize(
    ("how", "down", "is_fenced", "named"),
    [
        (LIVE, [OTHER], False, None),
        (LIVE, [DEST], False, DEST),
        (LIVE, [SOURCE], False, SOURCE),
        (LIVE, [SOURCE], True, "fenced"),
        (LIVE, [DEST], True, DEST),
        # Its source is down in any case.
        (EVACUATION, [SOURCE], True, None),
        (EVACUATION, [DEST], True, DEST),
        (LIVE, [SOURCE, DEST, OTHER], False, "RabbitMQ"),
    ],
)
def test_move_is_given_up_if_the_service_that_it_waits_for_is_down(
    site: Site, how: str, down: list[str], is_fenced: bool, named: str | None
) -> None:
    site.settings = DrainSettings(fenced=is_fenced)
    site.be_down(*down)

    end = site.judge(site.build(how, seen_at=BEGAN))

    assert (end is not None) is (named is not None)
    if end is not None:
        assert end.outcome == UNDER_WAY and end.may_be_on == (SOURCE, DEST)
        assert named in end.reason and ("fenced" in end.reason) is (named == "fenced")


def test_move_without_a_destination_waits_for_its_source_alone(site: Site) -> None:
    site.be_down(DEST, OTHER)

    assert site.judge(site.build(LIVE, seen_at=BEGAN, dest=None)) is None


@pytest.mark.parametrize("binary", ["nova-conductor", "nova-scheduler"])
@pytest.mark.parametrize("states", [["up"], ["up", "down"], ["down", "down"]], ids=str)
def test_move_needs_one_of_each_service_of_the_controllers(
    site: Site, binary: str, states: list[str]
) -> None:
    for state in states:
        site.add_service(binary, state)

    end = site.judge(site.build(LIVE, seen_at=BEGAN))

    assert (end is None) is ("up" in states)
    assert end is None or f"every {binary} is down" in end.reason
