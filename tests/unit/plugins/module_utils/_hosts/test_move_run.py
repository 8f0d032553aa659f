"""Whatever happens while servers move, none is lost, stopped, or confirmed for somebody else."""

from __future__ import annotations

import itertools
import re
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import InvalidInput, JournalError
from ......plugins.module_utils._common.progress import PROGRESS, Stage
from ......plugins.module_utils._core.changes.journal import read_journal
from ......plugins.module_utils._core.clients.nova import NovaReader
from ......plugins.module_utils._core.models.nova import Service
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
from ......plugins.module_utils._hosts.move_journal import (
    DRAIN,
    RETURN,
    MoveHistory,
    MoveJournal,
    find_move_journals,
    read_history,
)
from ......plugins.module_utils._hosts.move_progress import Attempt, MoveTask
from ......plugins.module_utils._hosts.move_run import (
    MoveRun,
    RunLimits,
    build_outcome,
    describe_end,
)
from ......plugins.module_utils._hosts.server_move import ActiveMove, MoveEnd, Mover
from ..moving_nova import CHILD, HOSTS, POOL, MovingNova, lose

SOURCE = "compute-1"
ACTION = "/action$"


class Drain:
    """Runs of one folder, on a clock that only sleep moves."""

    def __init__(self, nova: MovingNova, folder: Path) -> None:
        self.nova = nova
        self.folder = folder
        self.now = 0.0
        self._runs = 0

    def run(
        self,
        *servers: str,
        parallel: int = 2,
        retries: int = 1,
        max_failures: int = 5,
        settings: DrainSettings | None = None,
        stopped: t.Callable[[], str] = lambda: "",
        last_report: str | None = None,
    ) -> dict[str, str]:
        """Drain the servers that are on the host, or these, and return the outcomes by name."""
        nova, session = self.nova, self.nova.session()
        endpoint = session.compute.endpoint
        history = read_history(find_move_journals(str(self.folder)), endpoint, SOURCE)
        journal = MoveJournal(str(self.folder), endpoint, SOURCE)
        # Two runs of one process in one second.
        self._runs += 1
        journal.path = journal.path.replace(".jsonl", f"-{self._runs:03}.jsonl")
        mover = Mover(session, journal, settings or DrainSettings(), DRAIN, last_report)
        limits = RunLimits(parallel, retries, max_failures, timeout=600)
        begun = history.list_attempts(DRAIN)
        chosen = list(servers) or [uuid for uuid in nova.servers if nova.host(uuid) == SOURCE]
        tasks = []
        for uuid in chosen:
            if uuid not in {attempt.server for attempt in begun}:
                tasks.append(MoveTask(uuid, uuid.removeprefix("uuid-of-"), SOURCE))
        self.outcomes = MoveRun(mover, limits, stopped, self.sleep, lambda: self.now).run(
            tasks, begun
        )
        return {entry["name"]: entry["outcome"] for entry in self.outcomes}

    def bring_back(self, server: str, host: str) -> dict[str, str]:
        """Return the outcome of moving a server back to the source, by name."""
        session = self.nova.session()
        journal = MoveJournal(str(self.folder), session.compute.endpoint, SOURCE)
        mover = Mover(session, journal, DrainSettings(), RETURN)
        runner = MoveRun(mover, RunLimits(1, 1, 5, 600), lambda: "", self.sleep, lambda: self.now)
        task = MoveTask(server, server.removeprefix("uuid-of-"), host, SOURCE)
        self.outcomes = runner.run([task])
        return {entry["name"]: entry["outcome"] for entry in self.outcomes}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def reason(self, name: str) -> str:
        return next(entry["reason"] for entry in self.outcomes if entry["name"] == name)

    def outcome(self) -> t.Mapping[str, t.Any]:
        (outcome,) = self.outcomes
        return outcome

    def departures(self) -> list[str]:
        endpoint = self.nova.session().compute.endpoint
        history = read_history(find_move_journals(str(self.folder)), endpoint, SOURCE)
        return [entry.server for entry in history.list_departures()]

    def records(self) -> list[t.Mapping[str, t.Any]]:
        found: list[t.Mapping[str, t.Any]] = []
        for path in find_move_journals(str(self.folder)):
            found += read_journal(path)[0]
        return found


@pytest.fixture
def nova() -> MovingNova:
    return MovingNova()


@pytest.fixture
def drain(nova: MovingNova, tmp_path: Path) -> Drain:
    return Drain(nova, tmp_path)


def test_servers_move_and_keep_their_status(nova: MovingNova, drain: Drain) -> None:
    statuses = {"web": "ACTIVE", "idle": "PAUSED", "old": "SHUTOFF"}
    for name, status in statuses.items():
        nova.boot(name, status)

    assert drain.run() == dict.fromkeys(statuses, MOVED)
    for name, status in statuses.items():
        assert nova.status(f"uuid-of-{name}") == status
        assert nova.host(f"uuid-of-{name}") == "compute-2"
    assert sorted(nova.writes) == [
        ("uuid-of-idle", "os-migrateLive"),
        ("uuid-of-old", "confirmResize"),
        ("uuid-of-old", "migrate"),
        ("uuid-of-web", "os-migrateLive"),
    ]


def test_no_request_names_a_host_or_forces(nova: MovingNova, drain: Drain) -> None:
    sent: list[t.Any] = []
    real = nova.request

    def keep(url: str, method: str, **options: t.Any) -> t.Any:
        if method != "GET":
            sent.append(options["json"])
        return real(url, method, **options)

    nova.request = keep  # type: ignore[method-assign]
    nova.boot("web")
    nova.boot("old", "SHUTOFF")
    drain.run()

    assert {"os-migrateLive": {"host": None, "block_migration": "auto"}} in sent
    assert {"migrate": None} in sent
    assert "force" not in str(sent)


def test_the_journal_is_written_before_the_request(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    seen: list[t.Any] = []
    nova.on("POST", ACTION, before=lambda: seen.extend(drain.records()))
    drain.run()

    (record,) = seen
    assert (record["event"], record["server"], record["source"]) == ("before", server, SOURCE)
    assert [entry["event"] for entry in drain.records()] == ["before", "after", "after"]
    (path,) = find_move_journals(str(drain.folder))
    assert Path(path).stat().st_mode & 0o777 == 0o600


def set_task(nova: MovingNova, server: str, task: t.Any) -> None:
    """Let a server have a task; `...` stands for one that Nova does not show."""
    nova.servers[server]["OS-EXT-STS:task_state"] = task
    if task is ...:
        del nova.servers[server]["OS-EXT-STS:task_state"]


HAPPENINGS: dict[str, tuple[t.Callable[[MovingNova, str], None], str]] = {
    "is deleted": (MovingNova.delete, GONE),
    "is resized by its user": (MovingNova.resize_as_user, GONE),
    "is being deleted": (lambda nova, server: set_task(nova, server, "deleting"), LEFT),
    "is being rebuilt": (lambda nova, server: set_task(nova, server, "rebuilding"), LEFT),
    "is suspended": (lambda nova, server: nova.servers[server].update(status="SUSPENDED"), LEFT),
    "is in ERROR": (lambda nova, server: nova.servers[server].update(status="ERROR"), LEFT),
    "is shown without its task": (lambda nova, server: set_task(nova, server, ...), LEFT),
    "is on no host": (
        lambda nova, server: nova.servers[server].update({"OS-EXT-SRV-ATTR:host": None}),
        GONE,
    ),
    "is on another host": (
        lambda nova, server: nova.servers[server].update({"OS-EXT-SRV-ATTR:host": "compute-3"}),
        GONE,
    ),
}


@pytest.mark.parametrize("name", HAPPENINGS)
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_server_that_changes_before_the_request(
    nova: MovingNova, drain: Drain, name: str, status: str
) -> None:
    happens, outcome = HAPPENINGS[name]
    server = nova.boot("web", status)
    other = nova.boot("other")
    # The look right before the request is not the last word: Nova refuses what came later.
    nova.on("GET", f"^/servers/{server}$", before=lambda: happens(nova, server))

    assert drain.run() == {"web": outcome, "other": MOVED}
    assert ("compute-3" in drain.reason("web")) == (name == "is on another host")
    assert (server, "confirmResize") not in nova.writes
    assert [uuid for uuid, _action in nova.writes] == [other]


@pytest.mark.parametrize("name", ["is deleted", "is resized by its user", "is being rebuilt"])
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_server_that_changes_as_the_request_is_sent(
    nova: MovingNova, drain: Drain, name: str, status: str
) -> None:
    happens, outcome = HAPPENINGS[name]
    server = nova.boot("web", status)
    nova.on("POST", f"^/servers/{server}{ACTION}", before=lambda: happens(nova, server))

    assert drain.run() == {"web": outcome}
    assert "Nova answered 4" in drain.reason("web")
    assert (server, "confirmResize") not in nova.writes


@pytest.mark.parametrize(("retries", "outcome"), [(0, FAILED), (1, MOVED)])
def test_a_server_that_nova_could_not_move_for_a_moment_is_tried_again(
    nova: MovingNova, drain: Drain, retries: int, outcome: str
) -> None:
    server = nova.boot("web")
    nova.on(
        "POST",
        ACTION,
        before=lambda: set_task(nova, server, "rebooting"),
        after=lambda: set_task(nova, server, None),
    )

    assert drain.run(retries=retries) == {"web": outcome}
    assert drain.outcome()["attempts"] == 1 + retries
    ends = [entry["outcome"] for entry in drain.records() if "outcome" in entry]
    assert ends == [FAILED, "accepted", MOVED][: 1 + 2 * retries]


@pytest.mark.parametrize("is_asked_about", ["server", "request"])
def test_a_server_that_nova_does_not_show_is_not_taken_for_deleted(
    nova: MovingNova, drain: Drain, is_asked_about: str
) -> None:
    server = nova.boot("web")
    if is_asked_about == "server":
        nova.refuse(f"/servers/{server}")
    else:
        # Its move has failed without an ID of its request.
        nova.lost_ids = True
        nova.fails = {"web"}

    assert drain.run(retries=0) == {"web": FAILED}
    assert len(nova.writes) == (is_asked_about == "request")


def test_a_server_that_is_deleted_while_it_moves(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    nova.on("GET", f"^/servers/{server}$", 2, before=lambda: nova.delete(server))

    assert drain.run() == {"web": GONE}


def test_a_resize_that_a_user_begins_right_after_the_move_is_not_confirmed(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("old", "SHUTOFF")

    def confirm_and_resize() -> None:
        nova.finish(server)
        nova.confirm_as_user(server)
        nova.resize_as_user(server)

    nova.on("GET", "^/os-migrations$", 2, before=confirm_and_resize)

    assert drain.run() == {"old": LEFT}
    assert nova.status(server) == "VERIFY_RESIZE"
    assert (server, "confirmResize") not in nova.writes


def test_a_move_that_ends_on_the_same_host_is_tried_again(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    nova.destination = SOURCE

    assert drain.run(retries=2) == {"web": FAILED}
    assert nova.writes == [(server, "os-migrateLive")] * 3
    assert f"still on {SOURCE}" in drain.reason("web")


def test_the_reason_of_a_failed_move_ends_with_the_words_of_nova(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    nova.fails = {"web"}
    event = {"result": "Error", "details": "No valid host was found."}
    nova.on("POST", ACTION, after=lambda: nova.actions[server][0].update(events=[event]))

    assert drain.run(retries=0) == {"web": FAILED}
    assert drain.reason("web").endswith(": No valid host was found.")


def test_a_failed_move_does_not_keep_the_others(nova: MovingNova, drain: Drain) -> None:
    for name in ("a", "b", "c"):
        nova.boot(name)
    nova.fails = {"a"}

    assert drain.run(parallel=1) == {"a": FAILED, "b": MOVED, "c": MOVED}


def test_too_many_failures_end_the_run(nova: MovingNova, drain: Drain) -> None:
    names = {"a", "b", "c", "d"}
    for name in sorted(names):
        nova.boot(name)
    nova.fails = names

    outcomes = drain.run(parallel=1, retries=0, max_failures=2)
    assert outcomes == {"a": FAILED, "b": FAILED, "c": SKIPPED, "d": SKIPPED}
    tried = {entry["name"]: (entry["attempts"], entry["seconds"] > 0) for entry in drain.outcomes}
    assert tried == {"a": (1, True), "b": (1, True), "c": (0, False), "d": (0, False)}
    assert [entry["seconds"] for entry in drain.outcomes[2:]] == [0, 0]


# What becomes of a server when it is not certain that the run began its move, by its status.
UNPROVEN = {"ACTIVE": GONE, "SHUTOFF": LEFT}


@pytest.mark.parametrize("status", UNPROVEN)
def test_an_answer_that_is_lost_is_no_second_request(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    server = nova.boot("web", status)
    nova.on("POST", ACTION, after=lose)

    assert drain.run() == {"web": UNPROVEN[status]}
    assert nova.host(server) != SOURCE
    assert len(nova.writes) == 1


@pytest.mark.parametrize("status", UNPROVEN)
def test_a_move_of_somebody_else_is_not_taken_for_a_request_that_was_lost(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    """The same user does the same by hand at the same moment."""
    server = nova.boot("web", status)

    def move_and_lose() -> None:
        nova.move_by_hand(server)
        lose()

    nova.on("POST", ACTION, before=move_and_lose)

    assert drain.run() == {"web": UNPROVEN[status]}
    assert nova.writes == []
    assert "was lost" in drain.reason("web")
    assert drain.departures() == []


@pytest.mark.parametrize("status", UNPROVEN)
def test_nothing_is_confirmed_or_counted_without_the_id_of_the_request(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    server = nova.boot("web", status)
    nova.lost_ids = True

    assert drain.run() == {"web": UNPROVEN[status]}
    assert "x-openstack-request-id" in drain.reason("web")
    assert (server, "confirmResize") not in nova.writes
    assert drain.departures() == []


def test_a_later_move_by_hand_is_not_counted(nova: MovingNova, drain: Drain) -> None:
    """Nova gives up the move of the run before it has a record, and somebody moves the server."""
    server = nova.boot("web")

    def move_instead() -> None:
        nova.give_up(server)
        nova.move_by_hand(server)

    nova.on("POST", ACTION, after=move_instead)

    assert drain.run() == {"web": GONE}


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_request_that_a_proxy_repeats_moves_the_server_once(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    server = nova.boot("web", status)
    # The first copy is accepted, and only the answer to the second one comes back.
    nova.on("POST", ACTION, before=nova.repeat_next)

    assert drain.run() == {"web": LEFT}
    assert len(nova.writes) == 1
    assert (server, "confirmResize") not in nova.writes


def test_a_request_that_is_lost_is_sent_again(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    nova.on("POST", ACTION, before=lose)

    assert drain.run() == {"web": MOVED}
    assert nova.host(server) != SOURCE
    assert nova.writes == [(server, "os-migrateLive")]


def test_an_accepted_request_of_which_nothing_comes_is_sent_again(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    nova.on("POST", ACTION, after=lambda: nova.give_up(server))

    assert drain.run() == {"web": MOVED}
    assert [action for _server, action in nova.writes] == ["os-migrateLive"] * 2


def test_a_confirmation_that_is_lost_is_sent_again(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("old", "SHUTOFF")
    nova.on("POST", ACTION, before=lose, body="confirmResize")

    assert drain.run() == {"old": MOVED}
    assert nova.status(server) == "SHUTOFF"


def test_a_confirmation_that_never_arrives_is_left_to_the_next_run(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("old", "SHUTOFF")
    nova.on("POST", ACTION, 0, before=lose, body="confirmResize")
    assert drain.run() == {"old": FAILED}
    # The move, and three attempts to confirm it.
    assert sum(request.startswith("POST") for request in nova.requests) == 4

    nova._hooks.clear()
    assert drain.run() == {"old": MOVED}
    assert nova.status(server) == "SHUTOFF"


def test_nova_that_does_not_answer_for_a_while_is_waited_for(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    for nth in (2, 3, 4):
        nova.on("GET", f"^/servers/{server}$", nth, before=lose)

    assert drain.run() == {"web": MOVED}


def test_a_move_that_does_not_end_is_not_waited_for_forever(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    nova.on("POST", ACTION, after=lambda: nova._steps.pop(server, None) and None)

    assert drain.run() == {"web": UNDER_WAY}
    assert "its task moving to end" in drain.reason("web")
    assert drain.now < 700


def test_a_move_of_which_nova_says_nothing_is_not_waited_for_forever(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    freeze(nova, server, "running")
    nova.on("POST", ACTION, after=lambda: nova.refuse(f"/servers/{server}"))

    assert drain.run() == {"web": UNDER_WAY}
    assert "503" in drain.reason("web") and 600 < drain.now < 700


def test_two_drains_at_once_move_each_server_once(
    nova: MovingNova, drain: Drain, tmp_path: Path
) -> None:
    servers = [nova.boot(name, status) for name, status in (("a", "ACTIVE"), ("b", "SHUTOFF"))]
    other = Drain(nova, tmp_path / "other")
    found: dict[str, str] = {}
    # The second run takes place as the first one looks at its first server.
    first_look = f"^/servers/{servers[0]}$"
    nova.on("GET", first_look, before=lambda: found.update(other.run(*servers)))

    mine = drain.run(*servers, parallel=1)

    assert found == {"a": MOVED, "b": MOVED}
    assert mine == {"a": GONE, "b": GONE}
    assert [nova.host(server) for server in servers] == ["compute-2", "compute-2"]
    assert nova.status(servers[1]) == "SHUTOFF"


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_of_two_requests_at_once_nova_refuses_one(
    nova: MovingNova, drain: Drain, tmp_path: Path, status: str
) -> None:
    server = nova.boot("web", status)
    other = Drain(nova, tmp_path / "other")
    reasons = iter(["", ""])

    def send_first() -> None:
        # It is stopped once it has sent its request.
        other.run(server, stopped=lambda: next(reasons, "Stopped."))

    nova.on("POST", ACTION, before=send_first)

    assert drain.run(server) == {"web": LEFT}
    assert other.run(server) == {"web": MOVED}
    assert nova.host(server) == "compute-2"
    assert nova.status(server) == status


def test_a_run_that_is_stopped_between_two_requests_begins_no_more(
    nova: MovingNova, drain: Drain
) -> None:
    for name in "abc":
        nova.boot(name)
    reasons = iter(["", ""])

    outcomes = drain.run(parallel=3, stopped=lambda: next(reasons, "Stopped."))

    assert outcomes == {"a": UNDER_WAY, "b": SKIPPED, "c": SKIPPED}
    assert len(nova.writes) == 1


@pytest.mark.parametrize("event", ["before", "accepted", "confirm"])
def test_a_journal_that_breaks_ends_the_run(
    nova: MovingNova, drain: Drain, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last move is not counted as requested, or followed without its record."""
    for name in "abc":
        nova.boot(name, "SHUTOFF")
    append = MoveJournal._append

    def break_at(journal: MoveJournal, records: t.Any) -> None:
        (record,) = records
        if event in (record["action"], record["event"], record.get("outcome")):
            raise JournalError("The disk is full.")
        append(journal, [record])

    monkeypatch.setattr(MoveJournal, "_append", break_at)

    outcomes = drain.run(parallel=1, retries=5, max_failures=1)

    assert outcomes == {"a": FAILED, "b": SKIPPED, "c": SKIPPED}
    assert {entry["reason"] for entry in drain.outcomes} == {"The disk is full."}
    assert drain.outcomes[0]["how"] == ("cold" if event == "confirm" else "stays")
    assert len(nova.writes) == (event != "before")


def test_a_stopped_run_leaves_nova_to_end_its_moves(nova: MovingNova, drain: Drain) -> None:
    for name in ("a", "b", "c"):
        nova.boot(name, "SHUTOFF")
    reasons = iter(["", "", ""])

    outcomes = drain.run(stopped=lambda: next(reasons, "Stopped."))

    assert sorted(outcomes.values()) == [SKIPPED, UNDER_WAY, UNDER_WAY]
    assert drain.run() == dict.fromkeys("abc", MOVED)
    assert {nova.status(f"uuid-of-{name}") for name in "abc"} == {"SHUTOFF"}


class Killed(BaseException):
    """The end of a process, which nothing can catch."""


def test_a_run_that_is_killed_at_any_request_is_continued(tmp_path: Path) -> None:
    """Kill a run before and after each of its requests, and start it again."""
    statuses = {"web": "ACTIVE", "idle": "PAUSED", "old": "SHUTOFF"}
    undisturbed = MovingNova()
    for name, status in statuses.items():
        undisturbed.boot(name, status)
    Drain(undisturbed, tmp_path / "undisturbed").run()

    unproven: list[int] = []
    for number in range(1, len(undisturbed.requests) + 1):
        for when in ("before", "after"):
            nova = MovingNova()
            for name, status in statuses.items():
                nova.boot(name, status)
            parked = nova.boot("parked", "SHUTOFF")
            nova.resize_as_user(parked)
            nova.servers[parked]["OS-EXT-SRV-ATTR:host"] = "compute-3"
            drain = Drain(nova, tmp_path / f"{number}-{when}")
            kill_at(nova, number, when)
            with pytest.raises(Killed):
                drain.run()
            nova._hooks.clear()
            drain.run()

            moved = {name: nova.status(f"uuid-of-{name}") for name in statuses}
            if moved["old"] == "VERIFY_RESIZE":
                # Its request may be that of somebody else, because its id was lost.
                assert drain.reason("old"), (number, when)
                assert ("uuid-of-old", "confirmResize") not in nova.writes
                moved["old"] = "SHUTOFF"
                unproven.append(number)
            assert moved == statuses, (number, when)
            assert all(nova.host(f"uuid-of-{name}") != SOURCE for name in statuses), (number, when)
            assert nova.status(parked) == "VERIFY_RESIZE"
            # Nothing twice.
            moves = [entry for entry in nova.writes if entry[1] != "confirmResize"]
            assert len(moves) == len(set(moves)) == 3, (number, when)
    assert len(unproven) == 1


def kill_at(nova: MovingNova, number: int, when: str) -> None:
    seen = {"before": 0, "after": 0}

    def count(point: str) -> t.Callable[[], None]:
        def run() -> None:
            seen[point] += 1
            if point == when and seen[point] == number:
                raise Killed

        return run

    for method in ("GET", "POST"):
        nova.on(method, "", 0, before=count("before"), after=count("after"))


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize("is_fenced", [False, True])
def test_only_a_fenced_host_that_is_down_is_evacuated(
    nova: MovingNova, drain: Drain, is_down: bool, is_forced: bool, is_fenced: bool
) -> None:
    server = nova.boot("web")
    nova.services[SOURCE]["state"] = "down" if is_down or is_forced else "up"
    nova.services[SOURCE]["forced_down"] = is_forced

    outcomes = drain.run(settings=DrainSettings(fenced=is_fenced))

    evacuated = (server, "evacuate") in nova.writes
    assert evacuated == (is_forced and is_fenced)
    if is_down or is_forced:
        assert outcomes == {"web": MOVED if evacuated else LEFT}
        assert len(nova.writes) == int(evacuated)
    else:
        assert nova.writes == [(server, "os-migrateLive")]


def test_a_server_that_is_excluded_is_never_asked_to_move(nova: MovingNova, drain: Drain) -> None:
    kept = nova.boot("kept")
    moving = nova.boot("moving")

    outcomes = drain.run(settings=DrainSettings(excluded={kept: ""}))

    assert outcomes == {"kept": LEFT, "moving": MOVED}
    assert {server for server, _action in nova.writes} == {moving}


def test_each_server_has_a_line_when_it_is_done(
    nova: MovingNova, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(PROGRESS, "add_line", lines.append)
    nova.boot("web")
    nova.boot("parked", "SUSPENDED")

    drain.run(parallel=1)

    assert [re.sub(r"\d+ s$", "N s", line) for line in lines] == [
        "1 of 2  web  compute-1 -> compute-2  N s",
        "2 of 2  parked  left on compute-1: it is SUSPENDED: resume it, or have its owner shut it "
        "off",
    ]


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

    assert mover.run()["reason"].startswith("It was told to end.")
    pauses = [later - earlier for earlier, later in itertools.pairwise(mover.seen)]
    # They are cut into pieces of half a second.
    assert pauses[:4] == [0, 1, 1.5, 2] and pauses[-2:] == [10, 10]


def test_a_line_of_progress_has_at_most_40_characters_of_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    shown: list[str] = []
    monkeypatch.setattr(PROGRESS, "add_line", lines.append)
    monkeypatch.setattr(Stage, "rename", lambda _stage, text: shown.append(text))

    SlowMover(21, 30, 50).run("n" * 41)

    assert lines[0].startswith(f"1 of 1  {'n' * 39}…  ")
    assert shown[0].startswith(f"moves ({'n' * 39}… ")


def test_server_that_returns_is_shown_with_where_it_was_asked_to_go(
    nova: MovingNova, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Stage, "rename", lambda _stage, text: shown.append(text))
    server = nova.boot("web", host="compute-2")

    assert drain.bring_back(server, "compute-2") == {"web": MOVED}
    assert shown[0].startswith(f"moves (web compute-2 -> {SOURCE} ")


@pytest.mark.parametrize(
    ("outcome", "to", "line"),
    [
        (MOVED, "compute-2", f"1 of 2  web  {SOURCE} -> compute-2  7 s"),
        (GONE, "compute-3", "1 of 2  web  gone on compute-3: Why."),
        (LEFT, None, f"1 of 2  web  left on {SOURCE}: Why."),
    ],
)
def test_line_of_an_outcome_says_where_the_server_is(
    outcome: str, to: str | None, line: str
) -> None:
    task = MoveTask("uuid", "web", SOURCE)

    document = build_outcome(task, MoveEnd(outcome, "Why.", to), 1, 7)

    assert describe_end(document, 1, 2) == line


def test_servers_that_move_are_shown_with_where_they_go(
    nova: MovingNova, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    done: list[int] = []
    monkeypatch.setattr(Stage, "rename", lambda _stage, text: shown.append(text))
    monkeypatch.setattr(Stage, "show_done", lambda _stage, count: done.append(count))
    nova.boot("web")
    drain.run()

    texts = [re.sub(r"\d+ s", "N s", text) for text in shown]
    # Nova has chosen no destination yet, and then one.
    assert list(dict.fromkeys(texts)) == [
        "moves (web compute-1 -> ? N s)",
        "moves (web compute-1 -> compute-2 N s)",
        "moves",
    ]
    assert list(dict.fromkeys(done)) == [0, 1]


REPORTED = "2026-11-20T02:00:00.000000"


def test_nothing_more_is_evacuated_from_a_host_that_is_back(nova: MovingNova, drain: Drain) -> None:
    """Nova calls it down, because it is forced down, and its guests run."""
    service = nova.services[SOURCE]
    service.update(state="down", forced_down=True, updated_at=REPORTED)
    for name in ("a", "b"):
        nova.boot(name)
    nova.on("POST", ACTION, after=lambda: service.update(updated_at="2026-11-20T03:00:10.000000"))

    outcomes = drain.run(parallel=1, settings=DrainSettings(fenced=True), last_report=REPORTED)

    assert sorted(outcomes.values()) == [LEFT, MOVED]
    (left,) = [name for name, outcome in outcomes.items() if outcome == LEFT]
    assert "reports to Nova again" in drain.reason(left)


def drain_fenced(
    nova: MovingNova,
    folder: Path,
    sleep: t.Callable[[float], None],
    stopped: t.Callable[[], str] = str,
) -> dict[str, t.Any]:
    """Drain the source with the word that it is fenced."""
    session = nova.session()
    # It is not asked before the host is known to be silent.
    session.placement = session.compute
    journal = MoveJournal(str(folder), session.compute.endpoint, SOURCE)
    options = DrainOptions(SOURCE, "reason", DrainSettings(fenced=True), RunLimits(1, 0, 1, 600))
    return HostDrain(session, options, sleep).run(journal, MoveHistory([]), stopped)


def force_source_down(nova: MovingNova) -> None:
    nova.services[SOURCE].update(state="down", forced_down=True, updated_at=REPORTED)
    for host in HOSTS[1:]:
        nova.services[host]["updated_at"] = REPORTED
    nova.living.discard(SOURCE)
    nova.boot("a")


def test_a_host_that_reports_although_it_is_forced_down_is_not_drained(
    nova: MovingNova, tmp_path: Path
) -> None:
    """It reports more seldom than the others."""
    force_source_down(nova)
    slept: list[float] = []

    def report(seconds: float) -> None:
        slept.append(seconds)
        nova.services["compute-2"]["updated_at"] = f"2026-11-20T03:00:{len(slept):02}.000000"
        nova.services["compute-3"]["updated_at"] = f"2026-11-20T03:00:{len(slept) // 5:02}.000000"
        if len(slept) == 4:
            nova.services[SOURCE]["updated_at"] = "2026-11-20T03:00:10.000000"

    with pytest.raises(InvalidInput, match="reports to Nova"):
        drain_fenced(nova, tmp_path, report)

    assert len(slept) == 4 and nova.writes == []


def test_a_host_whose_nova_compute_answers_is_not_drained(nova: MovingNova, tmp_path: Path) -> None:
    """It has not reported for as long as anybody would watch it."""
    force_source_down(nova)
    nova.living.add(SOURCE)

    with pytest.raises(InvalidInput, match="answers to Nova"):
        drain_fenced(nova, tmp_path, pytest.fail)

    assert nova.writes == []


@pytest.mark.parametrize("silent", [HOSTS[1:], HOSTS[1:2]])
def test_silence_that_is_shared_is_no_death(
    nova: MovingNova, tmp_path: Path, silent: tuple[str, ...]
) -> None:
    """The others, or some of them, fall silent while they are watched, or are down before."""
    force_source_down(nova)

    def die(_seconds: float) -> None:
        for host in silent:
            nova.services[host]["state"] = "down"

    with pytest.raises(InvalidInput, match="RabbitMQ") as refused:
        drain_fenced(nova, tmp_path, die)

    assert "power" not in str(refused.value) and nova.writes == []
    with pytest.raises(InvalidInput, match="RabbitMQ"):
        drain_fenced(nova, tmp_path, pytest.fail)


def test_silence_is_not_waited_for_by_a_run_that_is_told_to_end(
    nova: MovingNova, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    force_source_down(nova)
    slept: list[float] = []
    lines: list[str] = []
    monkeypatch.setattr(PROGRESS, "add_line", lines.append)

    def explain_stop() -> str:
        return "It was told to end." if len(slept) == 2 else ""

    with pytest.raises(InvalidInput, match=r"It was told to end\. Nothing was changed"):
        drain_fenced(nova, tmp_path, slept.append, explain_stop)
    assert len(slept) == 2 and nova.writes == []
    # Somebody waits at the terminal.
    assert len(lines) == 1 and SOURCE in lines[0]


def test_silence_is_not_waited_for_without_end(nova: MovingNova, tmp_path: Path) -> None:
    """The clock of another host is ahead: Nova calls it up for hours after its last report."""
    force_source_down(nova)
    slept: list[float] = []

    with pytest.raises(InvalidInput, match="clocks"):
        drain_fenced(nova, tmp_path, slept.append)

    assert 1200 < sum(slept) <= 3600 and nova.writes == []


def return_servers(nova: MovingNova, folder: Path, *servers: str) -> list[t.Any]:
    """Move servers back from where they are to the source."""
    session = nova.session()
    journal = MoveJournal(str(folder), session.compute.endpoint, SOURCE)
    mover = Mover(session, journal, DrainSettings(), RETURN)
    limits = RunLimits(parallel=1, retries=0, max_failures=5, timeout=600)
    tasks = [MoveTask(server, server, nova.host(server), SOURCE) for server in servers]
    return MoveRun(mover, limits, str, lambda _seconds: None, lambda: 0.0).run(tasks)


def test_a_return_never_advises_to_fence_a_host(nova: MovingNova, tmp_path: Path) -> None:
    server = nova.boot("web", host="compute-2")
    nova.services["compute-2"]["state"] = "down"

    (outcome,) = return_servers(nova, tmp_path, server)

    assert outcome["outcome"] == LEFT and nova.writes == []
    assert "start it" in outcome["reason"] and "fence" not in outcome["reason"]


@pytest.mark.parametrize(("source", "outcome"), [(SOURCE, LEFT), ("compute-3", MOVED)])
def test_a_server_does_not_return_to_where_it_would_be_destroyed(
    nova: MovingNova, drain: Drain, source: str, outcome: str
) -> None:
    server = nova.boot("web", host="compute-2")
    row = nova.add_migration(server, "evacuation", "done", "compute-2")
    row.update(source_compute=source, source_node=source)

    assert drain.bring_back(server, "compute-2") == {"web": outcome}


@pytest.mark.parametrize(("status", "outcome"), [("enabled", LEFT), ("disabled", MOVED)])
def test_a_server_does_not_move_while_it_may_come_to_where_it_would_be_destroyed(
    nova: MovingNova, drain: Drain, status: str, outcome: str
) -> None:
    server = nova.boot("web")
    nova.services["compute-3"]["status"] = status
    row = nova.add_migration(server, "evacuation", "done", SOURCE)
    row.update(source_compute="compute-3", source_node="compute-3")

    assert drain.run() == {"web": outcome}


@pytest.mark.parametrize("arrives", [True, False])
def test_a_failed_move_is_reported_where_the_server_is(
    nova: MovingNova, tmp_path: Path, arrives: bool
) -> None:
    server = nova.boot("web", host="compute-2")
    there = SOURCE if arrives else "compute-2"

    def fail() -> None:
        nova.finish(server)
        nova.servers[server].update({"status": "ERROR", "OS-EXT-SRV-ATTR:host": there})

    nova.on("POST", ACTION, after=fail)

    (outcome,) = return_servers(nova, tmp_path, server)

    assert (outcome["outcome"], outcome["to"]) == (FAILED, there)


def build_service(**changes: t.Any) -> Service:
    fields: dict[str, t.Any] = {"state": "down", "status": "enabled", **changes}
    return Service(binary="nova-compute", host=SOURCE, **fields)


@pytest.mark.parametrize("is_forced", [True, False])
def test_fencing_is_not_the_first_advice(is_forced: bool) -> None:
    service = build_service(forced_down=is_forced)

    text = explain_contradiction(service)
    assert 0 < text.index("start nova-compute") < text.index("power") < text.index("fenced")


def freeze(nova: MovingNova, server: str, status: str) -> None:
    """Let Nova stand still as soon as it has accepted a request."""
    nova.on("POST", ACTION, after=lambda: nova.stand_still(server, status))


@pytest.mark.parametrize(
    ("dead", "named"),
    [
        ({SOURCE}, f"nova-compute on {SOURCE} is down"),
        ({"compute-2"}, "nova-compute on compute-2 is down"),
        ({"compute-1", "compute-2", "compute-3"}, "RabbitMQ"),
    ],
)
def test_a_move_whose_service_is_down_is_not_waited_for(
    nova: MovingNova, drain: Drain, dead: set[str], named: str
) -> None:
    server = nova.boot("web")
    freeze(nova, server, "running")

    def die() -> None:
        for host in dead:
            nova.services[host]["state"] = "down"

    nova.on("GET", f"^/servers/{server}$", 2, before=die)

    assert drain.run() == {"web": UNDER_WAY}
    assert drain.now < 90
    assert named in drain.reason("web")
    assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"]
    # The next run follows it, and asks for nothing.
    assert drain.run() == {"web": UNDER_WAY}
    assert len(nova.writes) == 1


def test_a_service_that_is_down_for_a_moment_ends_no_move(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    nova.on("POST", ACTION, after=lambda: nova.wait(server, 12))
    service = nova.services[SOURCE]
    for nth, state in ((8, "down"), (9, "up")):
        nova.on("GET", f"^/servers/{server}$", nth, before=lambda s=state: service.update(state=s))

    assert drain.run() == {"web": MOVED}


def test_a_migration_that_nobody_takes_from_the_queue_is_not_followed_for_ever(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    freeze(nova, server, "queued")
    ahead = nova.boot("ahead")
    nova.request_as_user(ahead)
    nova.stand_still(ahead, "running")

    # Behind another one it waits its turn.
    assert drain.run(server) == {"web": UNDER_WAY}
    assert "move_timeout" in drain.reason("web")

    # One that comes to the host keeps none waiting.
    nova.migrations[-1].update(source_compute="compute-3", dest_compute=SOURCE)
    before = drain.now
    assert drain.run(server) == {"web": UNDER_WAY}
    assert drain.now - before < 90
    assert f"migration abort {server} " in drain.reason("web")
    # Its copy has not begun.
    assert drain.outcome()["may_be_on"] == []


def test_a_migration_in_a_queue_that_cannot_be_read_is_waited_for(
    nova: MovingNova, drain: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze(nova, nova.boot("web"), "queued")
    silent = Answer("GET /os-migrations", "2.79", 500, "")
    monkeypatch.setattr(NovaReader, "list_migrations_of_host", lambda *_arguments: silent)

    assert drain.run() == {"web": UNDER_WAY}
    assert "move_timeout" in drain.reason("web") and drain.now > 600


def test_a_migration_without_a_task_is_not_followed_for_ever(
    nova: MovingNova, drain: Drain
) -> None:
    """nova-compute was restarted while the migration was queued."""
    server = nova.boot("web")
    freeze(nova, server, "queued")
    nova.on(
        "GET",
        f"^/servers/{server}$",
        3,
        before=lambda: nova.servers[server].update({"OS-EXT-STS:task_state": None}),
    )

    assert drain.run() == {"web": UNDER_WAY}
    assert drain.now < 90
    assert "stuck_migration" in drain.reason("web")


def test_a_source_that_still_cleans_up_is_waited_for(nova: MovingNova, drain: Drain) -> None:
    server = nova.boot("web")
    freeze(nova, server, "running")
    arrived = {"OS-EXT-SRV-ATTR:host": "compute-2", "OS-EXT-STS:task_state": None}
    path = f"^/servers/{server}$"
    nova.on("GET", path, 2, before=lambda: nova.servers[server].update(arrived))
    nova.on("GET", path, 16, before=lambda: nova.migrations[0].update(status="completed"))

    assert drain.run() == {"web": MOVED}
    assert drain.now > 60


def test_a_copy_of_which_nothing_is_heard_is_not_followed_for_ever(
    nova: MovingNova, drain: Drain
) -> None:
    """The broker was down when libvirt had moved the guest, and Nova does not go on."""
    server = nova.boot("web")
    freeze(nova, server, "running")

    def pass_hours() -> None:
        nova.migrations[0]["updated_at"] = "2026-11-20T00:00:00.000000"

    nova.on("GET", f"^/servers/{server}$", 2, before=pass_hours)

    assert drain.run() == {"web": UNDER_WAY}
    assert drain.now < 90
    assert "migration abort" in drain.reason("web")
    assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"]


@pytest.mark.parametrize(
    ("is_fenced", "status"), [(True, "accepted"), (True, "pre-migrating"), (False, "preparing")]
)
def test_a_move_that_fetches_an_image_is_waited_for(
    nova: MovingNova, drain: Drain, is_fenced: bool, status: str
) -> None:
    """It takes longer than ten minutes, and no record changes."""
    server = nova.boot("web")
    if is_fenced:
        nova.services[SOURCE].update(state="down", forced_down=True, updated_at=REPORTED)
    freeze(nova, server, status)

    def pass_hours() -> None:
        nova.migrations[0]["updated_at"] = "2026-11-20T00:00:00.000000"

    nova.on("GET", f"^/servers/{server}$", 2, before=pass_hours)

    assert drain.run(settings=DrainSettings(fenced=is_fenced), last_report=REPORTED) == {
        "web": UNDER_WAY
    }
    # The next run follows it.
    assert drain.now > 600
    assert "move_timeout" in drain.reason("web")
    # Only a move that has begun on its destination can have left its source.
    hosts = [SOURCE, "compute-2"] if status == "pre-migrating" else []
    assert drain.outcome()["may_be_on"] == hosts


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR"])
def test_a_server_whose_guest_may_be_elsewhere_is_not_moved_again(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    """Nova has given up a live migration that libvirt may have completed."""
    server = nova.boot("web")
    nova.cut_off = {"web": status}
    nova.strays = {server}

    assert drain.run() == {"web": FAILED}
    assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"]
    assert "virsh list" in drain.reason("web")
    assert nova.migrations[0]["uuid"] in drain.reason("web")
    # Somebody resets the state of the server, and the next run finds it as before.
    nova.servers[server]["status"] = "ACTIVE"
    nova.cut_off = {}
    assert drain.run() == {"web": FAILED}
    assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"]
    assert len(nova.writes) == 1

    # Its host shows that the guest runs there.
    nova.strays = set()
    assert drain.run() == {"web": MOVED}
    assert nova.host(server) == "compute-2"


@pytest.mark.parametrize(
    ("action", "event", "result", "host", "outcome"),
    [
        ("start", "compute_start_instance", "Success", SOURCE, MOVED),
        ("reboot", "compute_reboot_instance", "Success", SOURCE, MOVED),
        ("unpause", "compute_unpause_instance", "Success", SOURCE, MOVED),
        ("start", "compute_start_instance", "Error", SOURCE, FAILED),
        ("start", "compute_start_instance", "Success", "compute-2", FAILED),
        # A guest that is not there can be stopped.
        ("stop", "compute_stop_instance", "Success", SOURCE, FAILED),
    ],
)
def test_a_server_that_its_host_has_started_since_is_moved_again(
    nova: MovingNova, drain: Drain, action: str, event: str, result: str, host: str, outcome: str
) -> None:
    """It does not run now, so that its host cannot show it."""
    server = nova.boot("web")
    nova.cut_off = {"web": "SHUTOFF"}
    nova.strays = {server}
    assert drain.run() == {"web": FAILED}
    assert f"started it on {SOURCE}" in drain.reason("web")
    nova.cut_off = {}

    nova.control_guest(server, action, event, result, host)

    assert drain.run() == {"web": outcome}


def test_a_start_before_the_move_does_not_show_where_its_guest_is(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    nova.control_guest(server, "start", "compute_start_instance", "Success", SOURCE)
    nova.cut_off = {"web": "ACTIVE"}
    nova.strays = {server}

    assert drain.run() == {"web": FAILED}
    assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"]


@pytest.mark.parametrize("status", ["preparing", "running", "error"])
def test_nobody_is_told_to_start_a_fenced_host(nova: MovingNova, drain: Drain, status: str) -> None:
    """It has died while a server moved live from it."""
    server = nova.boot("web")
    freeze(nova, server, status)
    nova.on("POST", ACTION, after=lambda: nova.services[SOURCE].update(state="down"))
    nova.on("POST", ACTION, after=lambda: nova.living.discard(SOURCE))
    drain.run()
    nova.services[SOURCE].update(forced_down=True, updated_at=REPORTED)
    nova.servers[server]["OS-EXT-STS:task_state"] = None
    settings = DrainSettings(fenced=True)

    drain.run(settings=settings, last_report=REPORTED)

    assert "start it, and run again" not in drain.reason("web")
    assert "by hand" in drain.reason("web")
    assert len(nova.writes) == 1
    # Once it is evacuated by hand, nothing is left to be done.
    nova.migrations[0]["status"] = "error"
    nova.request_as_user(server)
    nova.finish(server)
    nova.migrations[0].update(migration_type="evacuation", status="done")
    assert drain.run(server, settings=settings, last_report=REPORTED) == {"web": GONE}


@pytest.mark.parametrize(("status", "outcome"), [("cancelled", LEFT), ("error", FAILED)])
def test_a_live_migration_that_somebody_aborts_is_not_repeated(
    nova: MovingNova, drain: Drain, status: str, outcome: str
) -> None:
    """With the status `error`, nova-compute has died meanwhile, and has aborted nothing."""
    server = nova.boot("web")
    nova.strays = {server}
    nova.on("POST", ACTION, after=lambda: nova.abort_as_user(server, status))

    assert drain.run() == {"web": outcome}
    assert len(nova.writes) == 1


def test_a_live_migration_that_nova_gives_up_is_repeated(nova: MovingNova, drain: Drain) -> None:
    """Its host shows that the guest runs there."""
    server = nova.boot("web")
    nova.cut_off = {"web": "ACTIVE"}

    assert drain.run(retries=2) == {"web": FAILED}
    assert nova.writes == [(server, "os-migrateLive")] * 3


@pytest.mark.parametrize("status", UNPROVEN)
def test_a_move_back_that_somebody_makes_by_hand_is_not_counted(
    nova: MovingNova, drain: Drain, status: str
) -> None:
    server = nova.boot("web", status, host="compute-2")
    nova.destination = SOURCE

    def move_and_lose() -> None:
        nova.move_by_hand(server)
        lose()

    nova.on("POST", ACTION, before=move_and_lose)

    assert drain.bring_back(server, "compute-2") == {"web": UNPROVEN[status]}
    assert nova.writes == []


@pytest.mark.parametrize("held", [(SOURCE, CHILD), (SOURCE, POOL), (CHILD,)])
def test_a_server_has_its_allocation_on_the_tree_of_its_host_and_on_sharing_providers(
    nova: MovingNova, drain: Drain, held: tuple[str, ...]
) -> None:
    server = nova.boot("web")
    nova.held[server] = held

    assert drain.run() == {"web": MOVED}


@pytest.mark.parametrize(
    "hosts", [(), (POOL,), ("compute-3",), ("compute-3", POOL), (SOURCE, "compute-3")]
)
def test_a_server_whose_allocation_is_not_on_its_host_alone_is_not_moved(
    nova: MovingNova, drain: Drain, hosts: tuple[str, ...]
) -> None:
    wrong = nova.boot("wrong")
    fine = nova.boot("fine")
    nova.held[wrong] = hosts

    assert drain.run() == {"wrong": LEFT, "fine": MOVED}
    assert f"orphan_cleanup_consumers={wrong}" in drain.reason("wrong")
    assert [uuid for uuid, _action in nova.writes] == [fine]


@pytest.mark.parametrize(
    ("moves", "outcome"),
    [
        ([("evacuation", "done", "compute-3", SOURCE)], MOVED),
        ([("evacuation", "completed", "compute-3", SOURCE)], MOVED),
        ([("evacuation", "error", "compute-3", SOURCE)], LEFT),
        ([("evacuation", "done", SOURCE, "compute-3")], LEFT),
        ([("evacuation", "done", "compute-2", SOURCE)], LEFT),
        ([("live-migration", "completed", "compute-3", SOURCE)], LEFT),
        # A later move to the source of the evacuation may have left a guest there.
        (
            [
                ("live-migration", "error", SOURCE, "compute-3"),
                ("evacuation", "completed", "compute-3", SOURCE),
            ],
            LEFT,
        ),
    ],
)
def test_a_server_is_evacuated_again_when_its_next_host_dies_too(
    nova: MovingNova, drain: Drain, moves: list[tuple[str, str, str, str]], outcome: str
) -> None:
    """Until nova-compute starts on the first host, the server has an allocation there."""
    server = nova.boot("web")
    nova.held[server] = (SOURCE, "compute-3")
    nova.services[SOURCE].update(state="down", forced_down=True, updated_at=REPORTED)
    nova.services["compute-3"].update(state="down", forced_down=True)
    nova.destination = "compute-2"
    for number, (kind, status, source, target) in enumerate(moves):
        row = {"uuid": f"before-{number}", "instance_uuid": server, "migration_type": kind}
        row |= {"status": status, "source_compute": source, "source_node": source}
        row |= {"dest_compute": target, "dest_node": target, "created_at": None, "updated_at": None}
        nova.migrations.append(row)

    settings = DrainSettings(fenced=True)

    assert drain.run(settings=settings, last_report=REPORTED) == {"web": outcome}
    assert len(nova.writes) == (outcome == MOVED)


@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
@pytest.mark.parametrize("is_up", [True, False])
def test_a_bare_metal_node_is_not_moved(
    nova: MovingNova, drain: Drain, status: str, is_up: bool
) -> None:
    """Ironic's driver can do none of it, and Nova would set the server in ERROR."""
    server = nova.boot("node", status)
    nova.bare_metal = {server}
    if not is_up:
        nova.services[SOURCE].update(state="down", forced_down=True, updated_at=REPORTED)

    outcomes = drain.run(settings=DrainSettings(fenced=not is_up), last_report=REPORTED)

    assert outcomes == {"node": LEFT} and nova.writes == []
    assert "bare metal" in drain.reason("node")


@pytest.mark.parametrize("status", ["failed", "error", "completed"])
@pytest.mark.parametrize("is_up", [True, False])
@pytest.mark.parametrize("is_started", [True, False])
def test_a_server_of_an_evacuation_by_hand_that_failed_is_not_evacuated_again(
    nova: MovingNova, drain: Drain, status: str, is_up: bool, is_started: bool
) -> None:
    """It failed after the guest ran, and a person reset the state of the server."""
    server = nova.boot("web")
    row = nova.add_migration(server, "evacuation", status, "compute-2")
    if not is_up:
        nova.services[SOURCE].update(state="down", forced_down=True, updated_at=REPORTED)
    if is_started:
        nova.control_guest(server, "start", "compute_start_instance", "Success", SOURCE)

    outcomes = drain.run(settings=DrainSettings(fenced=not is_up), last_report=REPORTED)

    assert outcomes == {"web": MOVED if is_started else LEFT}
    if not is_started:
        assert drain.outcome()["may_be_on"] == [SOURCE, "compute-2"] and nova.writes == []
        assert row["uuid"] in drain.reason("web")


def test_a_failed_move_that_left_the_allocation_elsewhere_is_not_repeated(
    nova: MovingNova, drain: Drain
) -> None:
    server = nova.boot("web")
    nova.fails = {"web"}
    nova.on("POST", ACTION, after=lambda: nova.held.update({server: ("compute-2",)}))

    assert drain.run(retries=3) == {"web": LEFT}
    assert "unreverted_allocation" in drain.reason("web")
    assert len(nova.writes) == 1


def test_a_listing_that_fails_before_a_move_loses_no_outcome(
    nova: MovingNova, drain: Drain
) -> None:
    """Without the compute nodes, the allocation of no server can be judged."""
    for name in ("a", "b"):
        nova.boot(name)

    nova.refuse("/os-hypervisors/detail")

    assert drain.run() == {"a": FAILED, "b": FAILED}
    assert "503" in drain.reason("a")
    assert nova.writes == []


def test_a_listing_that_fails_between_two_rounds_loses_no_outcome(
    nova: MovingNova, tmp_path: Path
) -> None:
    server = nova.boot("web")
    nova.services[SOURCE]["status"] = "disabled"

    def refuse() -> None:
        nova.refuse("/servers/detail")
        nova.refuse("/os-migrations")

    # The first round asks for them last.
    nova.on("GET", "^/flavors/detail", after=refuse)
    journal = MoveJournal(str(tmp_path), "http://nova", SOURCE)
    options = DrainOptions(SOURCE, "reason", DrainSettings(), RunLimits(1, 0, 1, 600))

    result = HostDrain(nova.session(), options).run(journal, MoveHistory([]), str)

    assert {entry["uuid"]: entry["outcome"] for entry in result["outcomes"]} == {server: LEFT}
    assert "unsound_reading" in [entry["kind"] for entry in result["occupants"]]
    assert not result["empty"]
