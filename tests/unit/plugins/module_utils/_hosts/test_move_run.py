"""Whatever happens while servers move, none is lost, stopped, or confirmed for somebody else."""

import dataclasses as d
import itertools
import re
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import InvalidInput, JournalError
from ......plugins.module_utils._common.progress import PROGRESS, Stage
from ......plugins.module_utils._core.clients.nova import NovaReader
from ......plugins.module_utils._core.models.snapshot import Answer
from ......plugins.module_utils._hosts.drain import DrainOptions, HostDrain
from ......plugins.module_utils._hosts.draining import (
    FAILED,
    GONE,
    LEFT,
    MOVED,
    SKIPPED,
    UNDER_WAY,
    DrainSettings,
)
from ......plugins.module_utils._hosts.fencing import explain_contradiction
from ......plugins.module_utils._hosts.move_journal import DRAIN, RETURN, MoveHistory, MoveJournal
from ......plugins.module_utils._hosts.move_progress import Attempt, MoveTask
from ......plugins.module_utils._hosts.move_run import (
    MoveRun,
    RunLimits,
    build_outcome,
    describe_end,
)
from ......plugins.module_utils._hosts.server_move import ActiveMove, MoveEnd
from ..drain_world import build_service
from ..moving_nova import CHILD, HOSTS, POOL, lose
from .moving_host import LATE, SOURCE, MovingHost

ACTION = "/action$"
DEST, THIRD = HOSTS[1:]


class Site(MovingHost):
    """Runs that move the servers of the host, or that move one back."""

    def run(
        self,
        *servers: str,
        parallel: int = 2,
        retries: int = 1,
        max_failures: int = 5,
        is_fenced: bool = False,
        excluded: t.Mapping[str, str] | None = None,
        stopped: t.Callable[[], str] = str,
        whose: str = "",
    ) -> dict[str, str]:
        """Drain the servers that are on the host, or these, and return the outcomes by name.

        whose: each runs with journals of its own.
        """
        begun = self.read_history(whose).list_attempts(DRAIN)
        settings = DrainSettings(fenced=is_fenced, excluded=excluded or {})
        mover = self.make_mover(DRAIN, settings, LATE if is_fenced else None, whose)
        limits = RunLimits(parallel, retries, max_failures, timeout=600)
        chosen = servers or [uuid for uuid in self.servers if self.host(uuid) == SOURCE]
        tasks = [MoveTask(uuid, uuid.removeprefix("uuid-of-"), SOURCE) for uuid in chosen]
        known = {attempt.server for attempt in begun}
        runner = MoveRun(mover, limits, stopped, self.sleep, lambda: self.now)
        self.outcomes = runner.run([task for task in tasks if task.server not in known], begun)
        return {entry["name"]: entry["outcome"] for entry in self.outcomes}

    def bring_back(self, server: str, retries: int = 1) -> str:
        """Return the outcome of moving a server back to the source."""
        mover = self.make_mover(RETURN)
        limits = RunLimits(1, retries, 5, 600)
        task = MoveTask(server, server.removeprefix("uuid-of-"), self.host(server), SOURCE)
        self.outcomes = MoveRun(mover, limits, str, self.sleep, lambda: self.now).run([task])
        return str(self.outcome["outcome"])

    def reason(self, name: str = "web") -> str:
        return next(entry["reason"] for entry in self.outcomes if entry["name"] == name)

    @property
    def outcome(self) -> t.Mapping[str, t.Any]:
        (outcome,) = self.outcomes
        return outcome

    def departures(self) -> list[str]:
        return [task.server for task in self.read_history().list_departures()]

    def on_look(self, server: str, nth: int, happens: t.Callable[[], object]) -> None:
        """Let something happen right before Nova is asked for a server for the nth time."""
        self.on("GET", f"^/servers/{server}$", nth, before=lambda: happens() and None)

    def on_request(
        self,
        before: t.Callable[[], object] | None = None,
        after: t.Callable[[], object] | None = None,
    ) -> None:
        """Let something happen right before or after Nova gets a request."""
        self.on(
            "POST",
            ACTION,
            before=lambda: before() and None if before else None,
            after=lambda: after() and None if after else None,
        )

    def freeze(self, server: str, status: str) -> None:
        """Let Nova stand still as soon as it has accepted a request."""
        self.on_request(after=lambda: self.stand_still(server, status))

    def update(self, server: str, **changes: t.Any) -> None:
        self.servers[server].update(changes)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_servers_move_and_keep_their_status(site: Site) -> None:
    statuses = {"web": "ACTIVE", "idle": "PAUSED", "old": "SHUTOFF"}
    for name, status in statuses.items():
        site.boot(name, status)

    assert site.run() == dict.fromkeys(statuses, MOVED)
    for name, status in statuses.items():
        assert (site.status(f"uuid-of-{name}"), site.host(f"uuid-of-{name}")) == (status, DEST)
    assert sorted(site.writes) == [
        ("uuid-of-idle", "os-migrateLive"),
        ("uuid-of-old", "confirmResize"),
        ("uuid-of-old", "migrate"),
        ("uuid-of-web", "os-migrateLive"),
    ]


def test_no_request_names_a_host_or_forces(site: Site) -> None:
    sent: list[t.Any] = []
    real = site.request

    def keep(url: str, method: str, **options: t.Any) -> t.Any:
        if method != "GET":
            sent.append(options["json"])
        return real(url, method, **options)

    site.request = keep  # type: ignore[method-assign]
    site.boot("web")
    site.boot("old", "SHUTOFF")
    site.run()

    assert {"os-migrateLive": {"host": None, "block_migration": "auto"}} in sent
    assert {"migrate": None} in sent
    assert "force" not in str(sent)


def test_the_journal_is_written_before_the_request(site: Site) -> None:
    server = site.boot("web")
    seen: list[t.Any] = []
    site.on_request(before=lambda: seen.extend(site.records()))
    site.run()

    (record,) = seen
    assert (record["event"], record["server"], record["source"]) == ("before", server, SOURCE)
    assert [entry["event"] for entry in site.records()] == ["before", "after", "after"]
    (path,) = site.list_journals()
    assert Path(path).stat().st_mode & 0o777 == 0o600


ON_ANOTHER = "is on another host"
HAPPENINGS: dict[str, tuple[t.Callable[[Site, str], None], str]] = {
    "is deleted": (Site.delete, GONE),
    "is resized by its user": (Site.resize_as_user, GONE),
    "is being deleted": (lambda site, server: site.set_task(server, "deleting"), LEFT),
    "is being rebuilt": (lambda site, server: site.set_task(server, "rebuilding"), LEFT),
    "is suspended": (lambda site, server: site.update(server, status="SUSPENDED"), LEFT),
    "is in ERROR": (lambda site, server: site.update(server, status="ERROR"), LEFT),
    "is shown without its task": (lambda site, server: site.set_task(server, ...), LEFT),
    "is on no host": (lambda site, server: site.put(server, None), GONE),
    ON_ANOTHER: (lambda site, server: site.put(server, THIRD), GONE),
}


@pytest.mark.parametrize("name", HAPPENINGS)
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_server_that_changes_before_the_request(site: Site, name: str, status: str) -> None:
    happens, outcome = HAPPENINGS[name]
    server = site.boot("web", status)
    other = site.boot("other")
    # The look right before the request is not the last word: Nova refuses what came later.
    site.on_look(server, 1, lambda: happens(site, server))

    assert site.run() == {"web": outcome, "other": MOVED}
    assert (THIRD in site.reason()) == (name == ON_ANOTHER)
    assert [uuid for uuid, _action in site.writes] == [other]


@pytest.mark.parametrize("name", ["is deleted", "is resized by its user", "is being rebuilt"])
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_server_that_changes_as_the_request_is_sent(site: Site, name: str, status: str) -> None:
    happens, outcome = HAPPENINGS[name]
    server = site.boot("web", status)
    site.on_request(before=lambda: happens(site, server))

    assert site.run() == {"web": outcome}
    assert "Nova answered 4" in site.reason()
    assert (server, "confirmResize") not in site.writes


@pytest.mark.parametrize(("retries", "outcome"), [(0, FAILED), (1, MOVED)])
def test_a_server_that_nova_could_not_move_for_a_moment_is_tried_again(
    site: Site, retries: int, outcome: str
) -> None:
    server = site.boot("web")
    site.on_request(lambda: site.set_task(server, "rebooting"), lambda: site.set_task(server, None))

    assert site.run(retries=retries) == {"web": outcome}
    assert site.outcome["attempts"] == 1 + retries
    ends = [entry["outcome"] for entry in site.records() if "outcome" in entry]
    assert ends == [FAILED, "accepted", MOVED][: 1 + 2 * retries]


@d.dataclass(frozen=True)
class Case:
    """What happens while a server moves, and what becomes of it.

    requests: how many requests to move it Nova has got. reason: what the reason has.
    may_be_on: where its guest may be. seconds: how long the run takes at least and at most.
    """

    happens: t.Callable[[Site, str], object]
    outcome: str
    requests: int = 1
    status: str = "ACTIVE"
    reason: str = ""
    may_be_on: tuple[str, ...] = ()
    seconds: tuple[int, int] = (0, 90)
    retries: int = 1


def move_and_lose(site: Site, server: str) -> None:
    """The same user does the same by hand at the same moment."""

    def happen() -> None:
        site.move_by_hand(server)
        lose()

    site.on_request(before=happen)


def move_instead(site: Site, server: str) -> None:
    """Nova gives up the move of the run before it has a record, and somebody moves the server."""

    def happen() -> None:
        site.give_up(server)
        site.move_by_hand(server)

    site.on_request(after=happen)


def confirm_and_resize(site: Site, server: str) -> None:
    """A user begins a resize right after the move."""

    def happen() -> None:
        site.finish(server)
        site.confirm_as_user(server)
        site.resize_as_user(server)

    site.on("GET", "^/os-migrations$", 2, before=happen)


def lose_ids_and_fail(site: Site, server: str) -> None:
    site.lost_ids, site.fails = True, {"web"}


def fail_with_words(site: Site, server: str) -> None:
    site.fails = {"web"}
    event = {"result": "Error", "details": "No valid host was found."}
    site.on_request(after=lambda: site.actions[server][0].update(events=[event]))


def lose_looks(site: Site, server: str) -> None:
    for nth in (2, 3, 4):
        site.on_look(server, nth, lose)


def say_nothing(site: Site, server: str) -> None:
    site.freeze(server, "running")
    site.on_request(after=lambda: site.refuse(f"/servers/{server}"))


def be_down_for_a_moment(site: Site, server: str) -> None:
    site.on_request(after=lambda: site.wait(server, 12))
    service = site.services[SOURCE]
    site.on_look(server, 8, lambda: service.update(state="down"))
    site.on_look(server, 9, lambda: service.update(state="up"))


def lose_task(site: Site, server: str) -> None:
    """nova-compute was restarted while the migration was queued."""
    site.freeze(server, "queued")
    site.on_look(server, 3, lambda: site.set_task(server, None))


def clean_up(site: Site, server: str) -> None:
    site.freeze(server, "running")
    site.on_look(server, 2, lambda: site.put(server, DEST))
    site.on_look(server, 2, lambda: site.set_task(server, None))
    site.on_look(server, 16, lambda: site.migrations[0].update(status="completed"))


def pass_hours(site: Site, server: str, status: str = "running") -> None:
    """The broker was down when libvirt had moved the guest, and Nova does not go on."""
    site.freeze(server, status)
    site.on_look(
        server, 2, lambda: site.migrations[0].update(updated_at="2026-11-20T00:00:00.000000")
    )


def cut_off(site: Site, server: str) -> None:
    """Nova has given up a live migration, and its host shows that the guest runs there."""
    site.cut_off = {"web": "ACTIVE"}


def start_and_stray(site: Site, server: str) -> None:
    """A start before the move does not show where its guest is."""
    site.control_guest(server, "start", "compute_start_instance", "Success", SOURCE)
    cut_off(site, server)
    site.strays = {server}


def abort(site: Site, server: str, status: str) -> None:
    site.strays = {server}
    site.on_request(after=lambda: site.abort_as_user(server, status))


def leave_allocation_elsewhere(site: Site, server: str) -> None:
    site.fails = {"web"}
    site.on_request(after=lambda: site.held.update({server: (DEST,)}))


def hold(*hosts: str) -> t.Callable[[Site, str], object]:
    return lambda site, server: site.held.update({server: hosts})


NO_ID, LONG = "x-openstack-request-id", (600, 700)
LISTED = "orphan_cleanup_consumers=uuid-of-web"

CASES: dict[str, Case] = {
    "it is deleted while it moves": Case(
        lambda site, server: site.on_look(server, 2, lambda: site.delete(server)), GONE
    ),
    "its user resizes it right after the move": Case(confirm_and_resize, LEFT, status="SHUTOFF"),
    "it ends on the same host": Case(
        lambda site, server: setattr(site, "destination", SOURCE),
        FAILED,
        3,
        reason=f"still on {SOURCE}",
        retries=2,
    ),
    "Nova does not show it": Case(
        lambda site, server: site.refuse(f"/servers/{server}"), FAILED, 0, retries=0
    ),
    "Nova does not show its request": Case(lose_ids_and_fail, FAILED, retries=0),
    "Nova says why": Case(fail_with_words, FAILED, reason=": No valid host was found.", retries=0),
    # What becomes of a server when it is not certain that the run began its move.
    "the answer is lost": Case(lambda site, server: site.on_request(after=lose), GONE),
    "the answer is lost, cold": Case(
        lambda site, server: site.on_request(after=lose), LEFT, status="SHUTOFF"
    ),
    "it is moved by hand": Case(move_and_lose, GONE, 0, reason="was lost"),
    "it is moved by hand, cold": Case(move_and_lose, LEFT, 0, "SHUTOFF", "was lost"),
    "the id is lost": Case(
        lambda site, server: setattr(site, "lost_ids", True), GONE, reason=NO_ID
    ),
    "the id is lost, cold": Case(
        lambda site, server: setattr(site, "lost_ids", True), LEFT, 1, "SHUTOFF", NO_ID
    ),
    "it is moved by hand later": Case(move_instead, GONE),
    # The first copy is accepted, and only the answer to the second one comes back.
    "a proxy repeats": Case(lambda site, server: site.on_request(site.repeat_next), LEFT),
    "a proxy repeats, cold": Case(
        lambda site, server: site.on_request(site.repeat_next), LEFT, status="SHUTOFF"
    ),
    "the request is lost": Case(lambda site, server: site.on_request(lose), MOVED),
    "nothing comes of the request": Case(
        lambda site, server: site.on_request(after=lambda: site.give_up(server)), MOVED, 2
    ),
    "the confirmation is lost": Case(
        lambda site, server: site.on("POST", ACTION, before=lose, body="confirmResize"),
        MOVED,
        status="SHUTOFF",
    ),
    "Nova does not answer for a while": Case(lose_looks, MOVED),
    "it does not end": Case(
        lambda site, server: site.on_request(after=lambda: site._steps.pop(server)),
        UNDER_WAY,
        reason="its task moving to end",
        seconds=(0, 700),
    ),
    "Nova says nothing of it": Case(say_nothing, UNDER_WAY, reason="503", seconds=LONG),
    "its service is down for a moment": Case(be_down_for_a_moment, MOVED, seconds=(0, 600)),
    "its migration has no task": Case(lose_task, UNDER_WAY, reason="stuck_migration"),
    "its source still cleans up": Case(clean_up, MOVED, seconds=(60, 600)),
    "nothing is heard of its copy": Case(
        pass_hours, UNDER_WAY, reason="migration abort", may_be_on=(SOURCE, DEST)
    ),
    "it is prepared": Case(
        lambda site, server: pass_hours(site, server, "preparing"),
        UNDER_WAY,
        reason="move_timeout",
        seconds=LONG,
    ),
    "Nova gives it up": Case(cut_off, FAILED, 3, retries=2),
    "it was started before": Case(start_and_stray, FAILED, may_be_on=(SOURCE, DEST)),
    "somebody aborts it": Case(lambda site, server: abort(site, server, "cancelled"), LEFT),
    # nova-compute has died meanwhile, and has aborted nothing.
    "it is aborted with an error": Case(
        lambda site, server: abort(site, server, "error"), FAILED, may_be_on=(SOURCE, DEST)
    ),
    "its allocation is left elsewhere": Case(
        leave_allocation_elsewhere, LEFT, reason="unreverted_allocation", retries=3
    ),
    # It has its allocation on the tree of its host and on sharing providers, or it stays.
    "a child is used": Case(hold(SOURCE, CHILD), MOVED),
    "a pool is used": Case(hold(SOURCE, POOL), MOVED),
    "only a child is used": Case(hold(CHILD), MOVED),
    "it has no allocation": Case(hold(), LEFT, 0, reason=LISTED),
    "only a pool is used": Case(hold(POOL), LEFT, 0, reason=LISTED),
    "another host is used": Case(hold(THIRD), LEFT, 0, reason=LISTED),
    "another host and a pool are used": Case(hold(THIRD, POOL), LEFT, 0, reason=LISTED),
    "two hosts are used": Case(hold(SOURCE, THIRD), LEFT, 0, reason=LISTED),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_becomes_of_a_move(site: Site, case: Case) -> None:
    server = site.boot("web", case.status)
    case.happens(site, server)

    assert site.run(retries=case.retries) == {"web": case.outcome}
    assert sum(action != "confirmResize" for _server, action in site.writes) == case.requests
    assert case.reason in site.reason()
    assert site.outcome["may_be_on"] == list(case.may_be_on)
    assert case.seconds[0] <= site.now < case.seconds[1]
    # Only what the run has moved can come back, and is confirmed.
    assert site.departures() == ([server] if case.outcome == MOVED else [])
    if case.outcome == MOVED:
        assert (site.host(server) != SOURCE, site.status(server)) == (True, case.status)
    else:
        assert (server, "confirmResize") not in site.writes


def test_a_failed_move_does_not_keep_the_others(site: Site) -> None:
    for name in ("a", "b", "c"):
        site.boot(name)
    site.fails = {"a"}

    assert site.run(parallel=1) == {"a": FAILED, "b": MOVED, "c": MOVED}


def test_too_many_failures_end_the_run(site: Site) -> None:
    names = {"a", "b", "c", "d"}
    for name in sorted(names):
        site.boot(name)
    site.fails = names

    outcomes = site.run(parallel=1, retries=0, max_failures=2)

    assert outcomes == {"a": FAILED, "b": FAILED, "c": SKIPPED, "d": SKIPPED}
    tried = {entry["name"]: (entry["attempts"], entry["seconds"] > 0) for entry in site.outcomes}
    assert tried == {"a": (1, True), "b": (1, True), "c": (0, False), "d": (0, False)}
    assert [entry["seconds"] for entry in site.outcomes[2:]] == [0, 0]


def test_a_confirmation_that_never_arrives_is_left_to_the_next_run(site: Site) -> None:
    server = site.boot("old", "SHUTOFF")
    site.on("POST", ACTION, 0, before=lose, body="confirmResize")
    assert site.run() == {"old": FAILED}
    # The move, and three attempts to confirm it.
    assert sum(request.startswith("POST") for request in site.requests) == 4

    site._hooks.clear()
    assert site.run() == {"old": MOVED}
    assert site.status(server) == "SHUTOFF"


def test_two_drains_at_once_move_each_server_once(site: Site) -> None:
    servers = [site.boot(name, status) for name, status in (("a", "ACTIVE"), ("b", "SHUTOFF"))]
    found: dict[str, str] = {}
    # The second run takes place as the first one looks at its first server.
    site.on_look(servers[0], 1, lambda: found.update(site.run(*servers, whose="other")))

    mine = site.run(*servers, parallel=1)

    assert found == {"a": MOVED, "b": MOVED}
    assert mine == {"a": GONE, "b": GONE}
    assert [site.host(server) for server in servers] == [DEST, DEST]
    assert site.status(servers[1]) == "SHUTOFF"


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_of_two_requests_at_once_nova_refuses_one(site: Site, status: str) -> None:
    server = site.boot("web", status)
    reasons = iter(["", ""])

    def send_first() -> None:
        # It is stopped once it has sent its request.
        site.run(server, stopped=lambda: next(reasons, "Stopped."), whose="other")

    site.on_request(before=send_first)

    assert site.run(server) == {"web": LEFT}
    assert site.run(server, whose="other") == {"web": MOVED}
    assert (site.host(server), site.status(server)) == (DEST, status)


@pytest.mark.parametrize("event", ["before", "accepted", "confirm"])
def test_a_journal_that_breaks_ends_the_run(
    site: Site, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last move is not counted as requested, or followed without its record."""
    for name in "abc":
        site.boot(name, "SHUTOFF")
    append = MoveJournal._append

    def break_at(journal: MoveJournal, records: t.Any) -> None:
        (record,) = records
        if event in (record["action"], record["event"], record.get("outcome")):
            raise JournalError("No space.")
        append(journal, [record])

    monkeypatch.setattr(MoveJournal, "_append", break_at)

    outcomes = site.run(parallel=1, retries=5, max_failures=1)

    assert outcomes == {"a": FAILED, "b": SKIPPED, "c": SKIPPED}
    assert {entry["reason"] for entry in site.outcomes} == {"No space."}
    assert site.outcomes[0]["how"] == ("cold" if event == "confirm" else "stays")
    assert len(site.writes) == (event != "before")


@pytest.mark.parametrize(
    ("parallel", "looks", "ends"),
    [(3, 2, [SKIPPED, SKIPPED, UNDER_WAY]), (2, 3, [SKIPPED, UNDER_WAY, UNDER_WAY])],
)
def test_a_stopped_run_begins_no_more_and_leaves_nova_to_end_its_moves(
    site: Site, parallel: int, looks: int, ends: list[str]
) -> None:
    """With room for three moves at once, it is stopped between two requests."""
    for name in "abc":
        site.boot(name, "SHUTOFF")
    reasons = iter([""] * looks)

    outcomes = site.run(parallel=parallel, stopped=lambda: next(reasons, "Stopped."))

    assert sorted(outcomes.values()) == ends
    assert len(site.writes) == ends.count(UNDER_WAY)
    assert site.run() == dict.fromkeys("abc", MOVED)
    assert {site.status(f"uuid-of-{name}") for name in "abc"} == {"SHUTOFF"}


class Killed(BaseException):
    """The end of a process, which nothing can catch."""


def test_a_run_that_is_killed_at_any_request_is_continued(tmp_path: Path) -> None:
    """Kill a run before and after each of its requests, and start it again."""
    statuses = {"web": "ACTIVE", "idle": "PAUSED", "old": "SHUTOFF"}
    undisturbed = Site(tmp_path / "undisturbed")
    for name, status in statuses.items():
        undisturbed.boot(name, status)
    undisturbed.run()

    unproven: list[int] = []
    for number in range(1, len(undisturbed.requests) + 1):
        for when in ("before", "after"):
            site = Site(tmp_path / f"{number}-{when}")
            for name, status in statuses.items():
                site.boot(name, status)
            parked = site.boot("parked", "SHUTOFF")
            site.resize_as_user(parked)
            site.put(parked, THIRD)
            kill_at(site, number, when)
            with pytest.raises(Killed):
                site.run()
            site._hooks.clear()
            site.run()

            moved = {name: site.status(f"uuid-of-{name}") for name in statuses}
            if moved["old"] == "VERIFY_RESIZE":
                # Its request may be that of somebody else, because its id was lost.
                assert site.reason("old"), (number, when)
                assert ("uuid-of-old", "confirmResize") not in site.writes
                moved["old"] = "SHUTOFF"
                unproven.append(number)
            assert moved == statuses, (number, when)
            assert all(site.host(f"uuid-of-{name}") != SOURCE for name in statuses), (number, when)
            assert site.status(parked) == "VERIFY_RESIZE"
            # Nothing twice.
            moves = [entry for entry in site.writes if entry[1] != "confirmResize"]
            assert len(moves) == len(set(moves)) == 3, (number, when)
    assert len(unproven) == 1


def kill_at(site: Site, number: int, when: str) -> None:
    seen = {"before": 0, "after": 0}

    def count(point: str) -> t.Callable[[], None]:
        def run() -> None:
            seen[point] += 1
            if point == when and seen[point] == number:
                raise Killed

        return run

    for method in ("GET", "POST"):
        site.on(method, "", 0, before=count("before"), after=count("after"))


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize("is_fenced", [False, True])
def test_only_a_fenced_host_that_is_down_is_evacuated(
    site: Site, is_down: bool, is_forced: bool, is_fenced: bool
) -> None:
    server = site.boot("web")
    site.go_down(is_forced)
    site.services[SOURCE]["state"] = "down" if is_down or is_forced else "up"

    outcomes = site.run(is_fenced=is_fenced)

    evacuated = (server, "evacuate") in site.writes
    assert evacuated == (is_forced and is_fenced)
    if is_down or is_forced:
        assert outcomes == {"web": MOVED if evacuated else LEFT}
        assert len(site.writes) == int(evacuated)
    else:
        assert site.writes == [(server, "os-migrateLive")]


def test_a_server_that_is_excluded_is_never_asked_to_move(site: Site) -> None:
    kept, moving = site.boot("kept"), site.boot("moving")

    assert site.run(excluded={kept: ""}) == {"kept": LEFT, "moving": MOVED}
    assert {server for server, _action in site.writes} == {moving}


class SlowMover:
    """Begins a move that Nova never ends.

    looks: what the clock shows at each look, if the pauses between them do not say it. The move is
        then hindered.
    seen, given_up: when it has looked, and when it was asked whether Nova may ever end the move.
    """

    def __init__(self, *looks: float) -> None:
        self.now = 0.0
        self.looks = list(looks)
        self.is_hindered = bool(looks)
        self.seen: list[float] = []
        self.given_up: list[float] = []

    def run(self, name: str = "web") -> t.Mapping[str, t.Any]:
        mover: t.Any = self
        limits = RunLimits(1, 0, 5, timeout=600)
        run = MoveRun(mover, limits, self.explain_stop, self.sleep, lambda: self.now)
        (outcome,) = run.run([MoveTask("uuid", name, SOURCE)])
        return outcome

    def explain_stop(self) -> str:
        return "It was told to end." if self.now > 100 else ""

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def begin(self, task: MoveTask) -> ActiveMove:
        return ActiveMove(Attempt(task.server, task.name, task.source))

    def follow(self, _move: ActiveMove) -> None:
        if self.looks:
            self.now = self.looks.pop(0)
        self.seen.append(self.now)

    def give_up(self, _move: ActiveMove) -> MoveEnd | None:
        self.given_up.append(self.now)
        return MoveEnd(UNDER_WAY, "nova-compute is down") if self.is_hindered else None


def test_a_move_is_hindered_after_20_seconds_and_given_up_after_20_more() -> None:
    mover = SlowMover(20, 20, 30, 49.9, 50)

    outcome = mover.run()

    assert (outcome["outcome"], outcome["reason"]) == (UNDER_WAY, "nova-compute is down")
    # A look at 20 seconds is too early, and a second of pause later is not.
    assert mover.given_up == [30, 49.9, 50] and outcome["seconds"] == 50


def test_the_pauses_between_looks_grow_from_1_to_10_seconds() -> None:
    mover = SlowMover()

    assert mover.run()["outcome"] == UNDER_WAY
    pauses = [later - earlier for earlier, later in itertools.pairwise(mover.seen)]
    # They are cut into pieces of half a second.
    assert pauses[:4] == [0, 1, 1.5, 2] and pauses[-2:] == [10, 10]


@d.dataclass(frozen=True)
class Shown:
    """What is shown while servers move: lines for good, and a line that changes with a count."""

    lines: list[str] = d.field(default_factory=list)
    texts: list[str] = d.field(default_factory=list)
    done: list[int] = d.field(default_factory=list)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    shown = Shown()
    monkeypatch.setattr(
        PROGRESS, "add_line", lambda text: shown.lines.append(re.sub(r"\d+ s$", "N s", text))
    )
    monkeypatch.setattr(
        Stage, "rename", lambda _stage, text: shown.texts.append(re.sub(r"\d+ s", "N s", text))
    )
    monkeypatch.setattr(Stage, "show_done", lambda _stage, count: shown.done.append(count))
    return shown


def test_each_server_has_a_line_when_it_is_done(site: Site, shown: Shown) -> None:
    site.boot("web")
    site.boot("parked", "SUSPENDED")

    site.run(parallel=1)

    reason = site.reason("parked")
    assert shown.lines == [
        f"1 of 2  web  {SOURCE} -> {DEST}  N s",
        f"2 of 2  parked  left on {SOURCE}: {reason}",
    ]


def test_a_line_of_progress_has_at_most_40_characters_of_a_name(shown: Shown) -> None:
    SlowMover(21, 30, 50).run("n" * 41)

    assert shown.lines[0].startswith(f"1 of 1  {'n' * 39}…  ")
    assert shown.texts[0].startswith(f"moves ({'n' * 39}… ")


def test_server_that_returns_is_shown_with_where_it_was_asked_to_go(
    site: Site, shown: Shown
) -> None:
    assert site.bring_back(site.boot("web", host=DEST)) == MOVED
    assert shown.texts[0] == f"moves (web compute-2 -> {SOURCE} N s)"


@pytest.mark.parametrize(
    ("outcome", "to", "line"),
    [
        (MOVED, DEST, f"1 of 2  web  {SOURCE} -> compute-2  7 s"),
        (GONE, THIRD, "1 of 2  web  gone on compute-3: Why."),
        (LEFT, None, f"1 of 2  web  left on {SOURCE}: Why."),
    ],
)
def test_line_of_an_outcome_says_where_the_server_is(
    outcome: str, to: str | None, line: str
) -> None:
    document = build_outcome(MoveTask("uuid", "web", SOURCE), MoveEnd(outcome, "Why.", to), 1, 7)

    assert describe_end(document, 1, 2) == line


def test_servers_that_move_are_shown_with_where_they_go(site: Site, shown: Shown) -> None:
    site.boot("web")
    site.run()

    # Nova has chosen no destination yet, and then one.
    assert list(dict.fromkeys(shown.texts)) == [
        f"moves (web {SOURCE} -> ? N s)",
        f"moves (web {SOURCE} -> {DEST} N s)",
        "moves",
    ]
    assert list(dict.fromkeys(shown.done)) == [0, 1]


def test_nothing_more_is_evacuated_from_a_host_that_is_back(site: Site) -> None:
    """Nova calls it down, because it is forced down, and its guests run."""
    site.go_down(is_forced=True)
    for name in ("a", "b"):
        site.boot(name)
    report = {"updated_at": "2026-11-20T03:00:10.000000"}
    site.on_request(after=lambda: site.services[SOURCE].update(report))

    outcomes = site.run(parallel=1, is_fenced=True)

    assert sorted(outcomes.values()) == [LEFT, MOVED]
    (left,) = [name for name, outcome in outcomes.items() if outcome == LEFT]
    assert report["updated_at"] in site.reason(left)


class Fenced(Site):
    """A drain of a host of which the operator says that it is fenced, and which is forced down."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.go_down(is_forced=True)
        for host in HOSTS[1:]:
            self.services[host]["updated_at"] = LATE
        self.living.discard(SOURCE)
        self.boot("a")
        self.slept: list[float] = []

    def refuse_drain(
        self,
        match: str,
        sleep: t.Callable[[float], None] = pytest.fail,
        stopped: t.Callable[[], str] = str,
    ) -> str:
        """Return why the host is not drained, without a request that changes anything."""

        def sleep_and_count(seconds: float) -> None:
            self.slept.append(seconds)
            sleep(seconds)

        session = self.session()
        # It is not asked before the host is known to be silent.
        session.placement = session.compute
        options = DrainOptions(SOURCE, "", DrainSettings(fenced=True), RunLimits(1, 0, 1, 600))
        host_drain = HostDrain(session, options, sleep_and_count)
        with pytest.raises(InvalidInput, match=match) as refused:
            host_drain.run(self.open_journal(), MoveHistory([]), stopped)
        assert self.writes == []
        return str(refused.value)


@pytest.fixture
def fenced(tmp_path: Path) -> Fenced:
    return Fenced(tmp_path)


def test_a_host_that_reports_although_it_is_forced_down_is_not_drained(fenced: Fenced) -> None:
    """It reports more seldom than the others."""

    def report(_seconds: float) -> None:
        count = len(fenced.slept)
        fenced.services[DEST]["updated_at"] = f"2026-11-20T03:00:{count:02}.000000"
        fenced.services[THIRD]["updated_at"] = f"2026-11-20T03:00:{count // 5:02}.000000"
        if count == 4:
            fenced.services[SOURCE]["updated_at"] = "2026-11-20T03:00:10.000000"

    fenced.refuse_drain("reports to Nova", report)

    assert len(fenced.slept) == 4


def test_a_host_whose_nova_compute_answers_is_not_drained(fenced: Fenced) -> None:
    """It has not reported for as long as anybody would watch it."""
    fenced.living.add(SOURCE)

    fenced.refuse_drain("answers to Nova")


@pytest.mark.parametrize("silent", [HOSTS[1:], HOSTS[1:2]])
def test_silence_that_is_shared_is_no_death(fenced: Fenced, silent: tuple[str, ...]) -> None:
    """The others, or some of them, fall silent while they are watched, or are down before."""

    def die(_seconds: float) -> None:
        for host in silent:
            fenced.services[host]["state"] = "down"

    assert "power" not in fenced.refuse_drain("RabbitMQ", die)
    fenced.refuse_drain("RabbitMQ")


def test_silence_is_not_waited_for_by_a_run_that_is_told_to_end(
    fenced: Fenced, shown: Shown
) -> None:
    def explain_stop() -> str:
        return "Stopped." if len(fenced.slept) == 2 else ""

    fenced.refuse_drain("Stopped", lambda _seconds: None, explain_stop)

    assert len(fenced.slept) == 2
    # Somebody waits at the terminal.
    assert len(shown.lines) == 1 and SOURCE in shown.lines[0]


def test_silence_is_not_waited_for_without_end(fenced: Fenced) -> None:
    """The clock of another host is ahead: Nova calls it up for hours after its last report."""
    fenced.refuse_drain("clocks", lambda _seconds: None)

    assert 1200 < sum(fenced.slept) <= 3600


def test_a_return_never_advises_to_fence_a_host(site: Site) -> None:
    server = site.boot("web", host=DEST)
    site.services[DEST]["state"] = "down"

    assert site.bring_back(server) == LEFT and site.writes == []
    assert "start it" in site.reason() and "fence" not in site.reason()


@pytest.mark.parametrize(("source", "outcome"), [(SOURCE, LEFT), (THIRD, MOVED)])
def test_a_server_does_not_return_to_where_it_would_be_destroyed(
    site: Site, source: str, outcome: str
) -> None:
    server = site.boot("web", host=DEST)
    row = site.add_migration(server, "evacuation", "done", DEST)
    row.update(source_compute=source, source_node=source)

    assert site.bring_back(server) == outcome


@pytest.mark.parametrize(("status", "outcome"), [("enabled", LEFT), ("disabled", MOVED)])
def test_a_server_does_not_move_while_it_may_come_to_where_it_would_be_destroyed(
    site: Site, status: str, outcome: str
) -> None:
    server = site.boot("web")
    site.services[THIRD]["status"] = status
    row = site.add_migration(server, "evacuation", "done", SOURCE)
    row.update(source_compute=THIRD, source_node=THIRD)

    assert site.run() == {"web": outcome}


@pytest.mark.parametrize("there", [SOURCE, DEST])
def test_a_failed_move_is_reported_where_the_server_is(site: Site, there: str) -> None:
    server = site.boot("web", host=DEST)

    def fail() -> None:
        site.finish(server)
        site.update(server, status="ERROR")
        site.put(server, there)

    site.on_request(after=fail)

    assert site.bring_back(server, retries=0) == FAILED
    assert site.outcome["to"] == there


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_move_back_that_somebody_makes_by_hand_is_not_counted(site: Site, status: str) -> None:
    server = site.boot("web", status, host=DEST)
    site.destination = SOURCE
    move_and_lose(site, server)

    assert site.bring_back(server) == (GONE if status == "ACTIVE" else LEFT)
    assert site.writes == []


@pytest.mark.parametrize("is_forced", [True, False])
def test_fencing_is_not_the_first_advice(is_forced: bool) -> None:
    text = explain_contradiction(build_service(SOURCE, state="down", forced_down=is_forced))

    assert 0 < text.index("start nova-compute") < text.index("power") < text.index("fenced")


@pytest.mark.parametrize(
    ("dead", "named"),
    [
        ({SOURCE}, f"nova-compute on {SOURCE}"),
        ({DEST}, f"nova-compute on {DEST}"),
        (set(HOSTS), "RabbitMQ"),
    ],
)
def test_a_move_whose_service_is_down_is_not_waited_for(
    site: Site, dead: set[str], named: str
) -> None:
    server = site.boot("web")
    site.freeze(server, "running")
    for host in dead:
        site.on_look(server, 2, lambda host=host: site.services[host].update(state="down"))

    assert site.run() == {"web": UNDER_WAY}
    assert site.now < 90
    assert named in site.reason()
    assert site.outcome["may_be_on"] == [SOURCE, DEST]
    # The next run follows it, and asks for nothing.
    assert site.run() == {"web": UNDER_WAY}
    assert len(site.writes) == 1


def test_a_migration_that_nobody_takes_from_the_queue_is_not_followed_for_ever(site: Site) -> None:
    server = site.boot("web")
    site.freeze(server, "queued")
    ahead = site.boot("ahead")
    site.request_as_user(ahead)
    site.stand_still(ahead, "running")

    # Behind another one it waits its turn.
    assert site.run(server) == {"web": UNDER_WAY}
    assert "move_timeout" in site.reason()

    # One that comes to the host keeps none waiting.
    site.migrations[-1].update(source_compute=THIRD, dest_compute=SOURCE)
    before = site.now
    assert site.run(server) == {"web": UNDER_WAY}
    assert site.now - before < 90
    assert f"migration abort {server} " in site.reason()
    # Its copy has not begun.
    assert site.outcome["may_be_on"] == []


def test_a_migration_in_a_queue_that_cannot_be_read_is_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.freeze(site.boot("web"), "queued")
    silent = Answer("GET /os-migrations", "2.79", 500, "")
    monkeypatch.setattr(NovaReader, "list_migrations_of_host", lambda *_arguments: silent)

    assert site.run() == {"web": UNDER_WAY}
    assert "move_timeout" in site.reason() and site.now > 600


@pytest.mark.parametrize("status", ["accepted", "pre-migrating"])
def test_an_evacuation_that_fetches_an_image_is_waited_for(site: Site, status: str) -> None:
    """It takes longer than ten minutes, and no record changes."""
    server = site.boot("web")
    site.go_down(is_forced=True)
    pass_hours(site, server, status)

    assert site.run(is_fenced=True) == {"web": UNDER_WAY}
    # The next run follows it.
    assert site.now > 600
    assert "move_timeout" in site.reason()
    # Only a move that has begun on its destination can have left its source.
    assert site.outcome["may_be_on"] == ([SOURCE, DEST] if status == "pre-migrating" else [])


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR"])
def test_a_server_whose_guest_may_be_elsewhere_is_not_moved_again(site: Site, status: str) -> None:
    """Nova has given up a live migration that libvirt may have completed."""
    server = site.boot("web")
    site.cut_off = {"web": status}
    site.strays = {server}

    assert site.run() == {"web": FAILED}
    assert site.outcome["may_be_on"] == [SOURCE, DEST]
    assert "virsh list" in site.reason()
    assert site.migrations[0]["uuid"] in site.reason()
    # Somebody resets the state of the server, and the next run finds it as before.
    site.update(server, status="ACTIVE")
    site.cut_off = {}
    assert site.run() == {"web": FAILED}
    assert site.outcome["may_be_on"] == [SOURCE, DEST]
    assert len(site.writes) == 1

    # Its host shows that the guest runs there.
    site.strays = set()
    assert site.run() == {"web": MOVED}
    assert site.host(server) == DEST


@pytest.mark.parametrize(
    ("action", "event", "result", "host", "outcome"),
    [
        ("start", "compute_start_instance", "Success", SOURCE, MOVED),
        ("reboot", "compute_reboot_instance", "Success", SOURCE, MOVED),
        ("unpause", "compute_unpause_instance", "Success", SOURCE, MOVED),
        ("start", "compute_start_instance", "Error", SOURCE, FAILED),
        ("start", "compute_start_instance", "Success", DEST, FAILED),
        # A guest that is not there can be stopped.
        ("stop", "compute_stop_instance", "Success", SOURCE, FAILED),
    ],
)
def test_a_server_that_its_host_has_started_since_is_moved_again(
    site: Site, action: str, event: str, result: str, host: str, outcome: str
) -> None:
    """It does not run now, so that its host cannot show it."""
    server = site.boot("web")
    site.cut_off = {"web": "SHUTOFF"}
    site.strays = {server}
    assert site.run() == {"web": FAILED}
    assert f"started it on {SOURCE}" in site.reason()
    site.cut_off = {}

    site.control_guest(server, action, event, result, host)

    assert site.run() == {"web": outcome}


@pytest.mark.parametrize("status", ["preparing", "running", "error"])
def test_nobody_is_told_to_start_a_fenced_host(site: Site, status: str) -> None:
    """It has died while a server moved live from it."""
    server = site.boot("web")
    site.freeze(server, status)
    site.on_request(after=lambda: site.services[SOURCE].update(state="down"))
    site.on_request(after=lambda: site.living.discard(SOURCE))
    site.run()
    site.go_down(is_forced=True)
    site.set_task(server, None)

    site.run(is_fenced=True)

    assert "start it" not in site.reason()
    assert "by hand" in site.reason()
    assert len(site.writes) == 1
    # Once it is evacuated by hand, nothing is left to be done.
    site.migrations[0]["status"] = "error"
    site.request_as_user(server)
    site.finish(server)
    site.migrations[0].update(migration_type="evacuation", status="done")
    assert site.run(server, is_fenced=True) == {"web": GONE}


EVACUATED = ("evacuation", "completed", THIRD, SOURCE)


@pytest.mark.parametrize(
    ("moves", "outcome"),
    [
        ([("evacuation", "done", THIRD, SOURCE)], MOVED),
        ([EVACUATED], MOVED),
        ([("evacuation", "error", THIRD, SOURCE)], LEFT),
        ([("evacuation", "done", SOURCE, THIRD)], LEFT),
        ([("evacuation", "done", DEST, SOURCE)], LEFT),
        ([("live-migration", "completed", THIRD, SOURCE)], LEFT),
        # A later move to the source of the evacuation may have left a guest there.
        ([EVACUATED, ("live-migration", "error", SOURCE, THIRD)], LEFT),
    ],
)
def test_a_server_is_evacuated_again_when_its_next_host_dies_too(
    site: Site, moves: list[tuple[str, str, str, str]], outcome: str
) -> None:
    """Until nova-compute starts on the first host, the server has an allocation there."""
    server = site.boot("web")
    site.held[server] = (SOURCE, THIRD)
    site.go_down(is_forced=True)
    site.services[THIRD].update(state="down", forced_down=True)
    site.destination = DEST
    for kind, status, source, target in moves:
        row = site.add_migration(server, kind, status, target)
        row.update(source_compute=source, source_node=source, created_at=None, updated_at=None)

    assert site.run(is_fenced=True) == {"web": outcome}
    assert len(site.writes) == (outcome == MOVED)


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
@pytest.mark.parametrize("is_up", [True, False])
def test_a_bare_metal_node_is_not_moved(site: Site, status: str, is_up: bool) -> None:
    """Ironic's driver can do none of it, and Nova would set the server in ERROR."""
    site.bare_metal = {site.boot("node", status)}
    if not is_up:
        site.go_down(is_forced=True)

    assert site.run(is_fenced=not is_up) == {"node": LEFT} and site.writes == []
    assert "bare metal" in site.reason("node")


@pytest.mark.parametrize("status", ["failed", "error", "completed"])
@pytest.mark.parametrize("is_up", [True, False])
@pytest.mark.parametrize("is_started", [True, False])
def test_a_server_of_an_evacuation_by_hand_that_failed_is_not_evacuated_again(
    site: Site, status: str, is_up: bool, is_started: bool
) -> None:
    """It failed after the guest ran, and a person reset the state of the server."""
    server = site.boot("web")
    row = site.add_migration(server, "evacuation", status, DEST)
    if not is_up:
        site.go_down(is_forced=True)
    if is_started:
        site.control_guest(server, "start", "compute_start_instance", "Success", SOURCE)

    outcomes = site.run(is_fenced=not is_up)

    assert outcomes == {"web": MOVED if is_started else LEFT}
    if not is_started:
        assert site.outcome["may_be_on"] == [SOURCE, DEST] and site.writes == []
        assert row["uuid"] in site.reason()


def test_a_listing_that_fails_before_a_move_loses_no_outcome(site: Site) -> None:
    """Without the compute nodes, the allocation of no server can be judged."""
    for name in ("a", "b"):
        site.boot(name)
    site.refuse("/os-hypervisors/detail")

    assert site.run() == {"a": FAILED, "b": FAILED}
    assert "503" in site.reason("a")
    assert site.writes == []


def test_a_listing_that_fails_between_two_rounds_loses_no_outcome(site: Site) -> None:
    server = site.boot("web")
    site.services[SOURCE]["status"] = "disabled"

    def refuse() -> None:
        site.refuse("/servers/detail")
        site.refuse("/os-migrations")

    # The first round asks for them last.
    site.on("GET", "^/flavors/detail", after=refuse)
    options = DrainOptions(SOURCE, "reason", DrainSettings(), RunLimits(1, 0, 1, 600))

    result = HostDrain(site.session(), options).run(site.open_journal(), MoveHistory([]), str)

    assert {entry["uuid"]: entry["outcome"] for entry in result["outcomes"]} == {server: LEFT}
    assert "unsound_reading" in [entry["kind"] for entry in result["occupants"]]
    assert not result["empty"]
