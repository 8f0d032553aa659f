"""Which changes of its service the return of a host takes back, and what it says."""

from __future__ import annotations

import contextlib
import dataclasses as d
import functools
import types
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._hosts import drain
from ......plugins.module_utils._hosts.drain import DrainOptions, HostReturn, build_return
from ......plugins.module_utils._hosts.draining import GONE, LEFT, MOVED, DrainSettings
from ......plugins.module_utils._hosts.move_journal import (
    DRAIN,
    MoveHistory,
    MoveJournal,
    find_move_journals,
    read_history,
)
from ......plugins.module_utils._hosts.move_progress import Attempt
from ......plugins.module_utils._hosts.move_run import MoveRun, RunLimits
from ..drain_world import SOURCE, build_service
from ..moving_nova import MovingNova

NOVA = "http://nova/"
REASON = "drained with osops.placement"
DISABLED = {"status": "disabled", "disabled_reason": REASON}


def _record(tmp_path: Path, *changes: tuple[dict[str, t.Any], dict[str, t.Any]]) -> MoveHistory:
    """Return the history of drains that found the service like this and changed that."""
    journal = MoveJournal(str(tmp_path), NOVA, SOURCE)
    for before, body in changes:
        journal.record_service(build_service(SOURCE, **before), body)
    return read_history(find_move_journals(str(tmp_path)), NOVA, SOURCE)


@pytest.mark.parametrize(
    ("now", "body"),
    [
        (DISABLED, {"status": "enabled"}),
        ({**DISABLED, "forced_down": True}, {"status": "enabled", "forced_down": False}),
        ({**DISABLED, "disabled_reason": "bad RAM"}, {}),
        ({**DISABLED, "disabled_reason": "bad RAM", "forced_down": True}, {}),
        ({**DISABLED, "id": "the one of the host that was deployed again"}, {}),
        ({}, {}),
        ({"forced_down": True}, {}),
    ],
)
def test_only_what_drains_changed_and_nobody_since_is_taken_back(
    tmp_path: Path, now: dict[str, t.Any], body: dict[str, t.Any]
) -> None:
    history = _record(tmp_path, ({}, DISABLED), (DISABLED, {"forced_down": True}))

    assert build_return(build_service(SOURCE, **now), history, REASON) == body


def test_a_service_that_somebody_else_forced_down_stays_so(tmp_path: Path) -> None:
    """An operator returned the host of an earlier drain, which had forced it down, by hand."""
    fenced = {**DISABLED, "forced_down": True}
    history = _record(tmp_path, ({}, fenced), ({}, DISABLED))

    assert build_return(build_service(SOURCE, **fenced), history, REASON) == {"status": "enabled"}


@pytest.mark.parametrize(
    ("before", "change", "now", "body"),
    [
        ({}, {"forced_down": True}, {"forced_down": True}, {"forced_down": False}),
        # Somebody has disabled it since.
        ({}, {"forced_down": True}, {**DISABLED, "forced_down": True}, {"forced_down": False}),
        # A journal that was made by hand: the service was so before.
        ({"forced_down": True}, {"forced_down": True}, {"forced_down": True}, {}),
        (DISABLED, DISABLED, DISABLED, {}),
    ],
)
def test_each_change_is_taken_back_alone(
    tmp_path: Path,
    before: dict[str, t.Any],
    change: dict[str, t.Any],
    now: dict[str, t.Any],
    body: dict[str, t.Any],
) -> None:
    history = _record(tmp_path, (before, change))

    assert build_return(build_service(SOURCE, **now), history, REASON) == body


def test_service_that_was_disabled_before_the_drain_stays_disabled(tmp_path: Path) -> None:
    before = {**DISABLED, "disabled_reason": "bad RAM"}
    history = _record(tmp_path, (before, {"forced_down": True}))
    now = build_service(SOURCE, **before, forced_down=True)

    assert build_return(now, history, REASON) == {"forced_down": False}


@pytest.mark.parametrize(
    ("reason", "body"), [(REASON, {"status": "enabled"}), ("bad RAM", {}), (None, {})]
)
def test_reason_alone_counts_without_a_journal(
    tmp_path: Path, reason: str | None, body: dict[str, t.Any]
) -> None:
    now = build_service(SOURCE, status="disabled", disabled_reason=reason)

    assert build_return(now, _record(tmp_path), REASON) == body


def _return(nova: MovingNova, tmp_path: Path, check: bool) -> dict[str, t.Any]:
    """Return the source of a drain that moved each of its servers to the second host."""
    session = nova.session()
    endpoint = session.compute.endpoint
    journal = MoveJournal(str(tmp_path), endpoint, SOURCE)
    journal.record_service(build_service(SOURCE), {**DISABLED, "forced_down": True})
    for uuid in nova.servers:
        attempt = Attempt(uuid, uuid, SOURCE)
        journal.record_request(attempt, DRAIN)
        journal.record_end(attempt, MOVED, "compute-2", "")
    history = read_history(find_move_journals(str(tmp_path)), endpoint, SOURCE)
    options = DrainOptions(SOURCE, REASON, DrainSettings(), RunLimits(1, 0, 5, 600), move_back=True)
    returning = HostReturn(session, options)
    if check:
        return returning.predict(journal, history)
    return returning.run(journal, history, str)


def _place(nova: MovingNova, host: str) -> None:
    nova.servers["uuid-of-web"]["OS-EXT-SRV-ATTR:host"] = host


# By what happened since the drain: how, and what becomes of the server; None if nothing does.
SINCE: dict[str, tuple[t.Callable[[MovingNova], t.Any], str | None]] = {
    "nothing": (lambda nova: None, MOVED),
    "it was moved back": (lambda nova: _place(nova, SOURCE), None),
    "it was moved on": (lambda nova: _place(nova, "compute-3"), GONE),
    "it was suspended": (lambda nova: nova.servers["uuid-of-web"].update(status="SUSPENDED"), LEFT),
    "its host went down": (lambda nova: nova.services["compute-2"].update(state="down"), LEFT),
    "nova-compute was not started": (lambda nova: nova.services[SOURCE].update(state="down"), LEFT),
    "somebody disabled the host": (
        lambda nova: nova.services[SOURCE].update(status="disabled", disabled_reason="bad RAM"),
        LEFT,
    ),
    "somebody disabled the host, and it was moved on": (
        lambda nova: (
            nova.services[SOURCE].update(status="disabled", disabled_reason="bad RAM"),
            _place(nova, "compute-3"),
        ),
        GONE,
    ),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", SINCE)
def test_each_server_is_predicted_and_reported_as_it_is(
    tmp_path: Path, name: str, check: bool
) -> None:
    nova = MovingNova()
    happens, outcome = SINCE[name]
    nova.boot("web", host="compute-2")
    # The host was enabled by hand.
    happens(nova)

    result = _return(nova, tmp_path, check)

    moves = [entry["server"] for entry in result["departures"]]
    if outcome != MOVED:
        assert all(entry["attempts"] == entry["seconds"] == 0 for entry in result["outcomes"])
    ends = {entry["uuid"]: entry["outcome"] for entry in result["outcomes"]}
    assert moves == (["uuid-of-web"] if outcome == MOVED else [])
    if outcome is None or (check and outcome == MOVED):
        assert ends == {}
    else:
        assert ends == {"uuid-of-web": outcome}
    assert bool(nova.writes) == (outcome == MOVED and not check)
    assert "fence" not in str(result)
    assert ("Not moved back: uuid-of-web" in result["msg"]) == (outcome == LEFT and not check)


class Return:
    """The return of the source of a drain that moved all of its servers to the second host.

    updates: what was written to its service.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nova = MovingNova()
        self.folder = folder
        self.now = 0.0
        self._runs = 0
        self.move_back = True
        self.excluded: dict[str, str] = {}
        self.updates: list[t.Any] = []
        self.nova.services[SOURCE].update(status="disabled", disabled_reason=REASON)
        run = functools.partial(MoveRun, sleep=self._sleep, clock=lambda: self.now)
        monkeypatch.setattr(drain, "MoveRun", run)
        writer = types.SimpleNamespace(update_service=self._update)
        monkeypatch.setattr(drain, "ServiceWriter", lambda _compute: writer)
        self.journal = self._open_journal()
        self.journal.record_service(build_service(SOURCE), DISABLED)

    def boot(self, name: str, status: str = "ACTIVE") -> str:
        """Add a server that was moved away by the drain."""
        server = self.nova.boot(name, status, host="compute-2")
        attempt = Attempt(server, name, SOURCE)
        self.journal.record_request(attempt, DRAIN)
        self.journal.record_end(attempt, MOVED, "compute-2", "")
        return server

    def read_history(self) -> MoveHistory:
        endpoint = self.nova.session().compute.endpoint
        return read_history(find_move_journals(str(self.folder)), endpoint, SOURCE)

    def predict(self) -> dict[str, t.Any]:
        return self._make().predict(self._open_journal(), self.read_history())

    def run(self, stopped: t.Callable[[], str] = str) -> dict[str, t.Any]:
        return self._make().run(self._open_journal(), self.read_history(), stopped)

    def _make(self) -> HostReturn:
        limits = RunLimits(1, 0, 5, 600)
        settings = DrainSettings()
        options = DrainOptions(SOURCE, REASON, settings, limits, self.excluded, self.move_back)
        return HostReturn(self.nova.session(), options)

    def _open_journal(self) -> MoveJournal:
        journal = MoveJournal(str(self.folder), self.nova.session().compute.endpoint, SOURCE)
        # Several runs of one process in one second.
        self._runs += 1
        journal.path = journal.path.replace(".jsonl", f"-{self._runs:03}.jsonl")
        return journal

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _update(self, service: t.Any, body: dict[str, t.Any]) -> t.Any:
        self.updates.append(body)
        self.nova.services[SOURCE].update(body)
        return d.replace(service, **body)


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Return:
    return Return(tmp_path, monkeypatch)


def test_host_is_enabled_and_its_servers_are_moved_back(site: Return) -> None:
    servers = [site.boot("a"), site.boot("b")]

    result = site.run()

    assert result["msg"] == "compute-1 is in service. 2 servers moved back."
    assert (result["changed"], result["failed"]) == (True, False)
    assert result["tally"][MOVED] == 2 and result["unfinished_evacuations"] == []
    assert site.updates == [{"status": "enabled"}]
    assert result["service"]["status"] == "enabled"
    assert [site.nova.host(server) for server in servers] == [SOURCE] * 2
    # Another run has nothing to take back, and nothing to move.
    history = site.read_history()
    assert (history.service, history.list_departures()) == (None, [])


def test_return_is_predicted(site: Return) -> None:
    site.boot("a")

    result = site.predict()

    assert result["msg"] == "compute-1 is in service. 1 server would move back."
    assert (result["changed"], result["service"]["status"]) == (True, "enabled")
    assert (site.updates, site.nova.writes, result["outcomes"]) == ([], [], [])


def test_host_that_a_drain_forced_down_is_expected_to_be_up(site: Return) -> None:
    """As long as it is forced down, Nova does not show whether it is up."""
    site.journal.record_service(
        build_service(SOURCE, status="disabled", disabled_reason=REASON), {"forced_down": True}
    )
    site.nova.services[SOURCE].update(forced_down=True, state="down")
    site.boot("a")

    result = site.predict()

    assert [entry["name"] for entry in result["departures"]] == ["a"]
    assert (result["service"]["state"], result["outcomes"]) == (None, [])


def test_only_the_service_is_returned_if_no_server_is_to_move(site: Return) -> None:
    server = site.boot("a")
    site.move_back = False

    predicted, result = site.predict(), site.run()

    assert predicted["msg"] == "compute-1 is in service."
    assert result["msg"] == "compute-1 is in service. 0 servers moved back."
    assert (predicted["departures"], site.nova.host(server)) == ([], "compute-2")
    assert result["changed"] is True


def test_host_without_changes_is_left_as_it_is(site: Return) -> None:
    site.run()

    predicted, result = site.predict(), site.run()

    assert (predicted["changed"], result["changed"]) == (False, False)
    assert len(site.updates) == 1


STATES: dict[str, tuple[dict[str, t.Any], str]] = {
    "disabled": (
        {"disabled_reason": "bad\x1bRAM"},
        "compute-1 stays disabled, because somebody else has disabled it (bad\\x1bRAM).",
    ),
    "disabled without a reason": (
        {"disabled_reason": None},
        "compute-1 stays disabled, because somebody else has disabled it (without a reason).",
    ),
    "forced down": (
        {"forced_down": True, "state": "down"},
        "compute-1 stays forced down, because somebody else may have forced it down.",
    ),
    "down": ({"state": "down"}, "compute-1 is enabled, but its nova-compute is down: start it."),
}


@pytest.mark.parametrize("name", STATES)
def test_state_in_which_the_host_stays_is_told(site: Return, name: str) -> None:
    changes, text = STATES[name]
    site.nova.services[SOURCE].update(changes)
    site.boot("web")

    predicted, result = site.predict(), site.run()

    assert predicted["msg"] == text
    assert result["msg"].startswith(f"{text} 0 servers moved back. Not moved back: web (")
    assert site.nova.writes == []


def test_server_that_cannot_be_moved_back_fails_the_run(site: Return) -> None:
    site.boot("web")
    site.nova.fails = {"web"}

    result = site.run()

    assert result["failed"] is True
    assert result["msg"].startswith(
        "compute-1 is in service. 0 servers moved back. Not moved back: web ("
    )


def test_server_that_is_left_elsewhere_fails_no_return(site: Return) -> None:
    site.boot("parked", "SUSPENDED")

    result = site.run()

    assert result["failed"] is False
    assert "Not moved back: parked (it is SUSPENDED" in result["msg"]


def test_return_that_is_told_to_end_says_how_to_go_on(site: Return) -> None:
    site.boot("web")

    result = site.run(lambda: "It was told to end.")

    assert result["failed"] is True
    assert result["msg"].startswith("It was told to end. compute-1 is in service. 0 servers")
    assert result["msg"].endswith(" Run again to go on.")


def test_move_that_an_earlier_run_began_is_followed_and_not_asked_again(site: Return) -> None:
    begun, other = site.boot("begun"), site.boot("other")
    site.run(lambda: "It was told to end." if site.nova.writes else "")
    assert [server for server, _action in site.nova.writes] == [begun]

    predicted, result = site.predict(), site.run()

    assert [entry["server"] for entry in predicted["departures"]] == [other]
    assert [server for server, _action in site.nova.writes] == [begun, other]
    assert [entry["outcome"] for entry in result["outcomes"]] == [MOVED, MOVED]
    assert site.nova.host(begun) == site.nova.host(other) == SOURCE


@pytest.mark.parametrize("is_away", [True, False, None])
def test_server_of_a_drain_that_was_killed_is_not_forgotten(
    site: Return, is_away: bool | None
) -> None:
    """Nova has moved it, and the journal does not say so; or it was deleted."""
    server = site.nova.boot("web", host="compute-2" if is_away else SOURCE)
    if is_away is None:
        site.nova.delete(server)
    site.journal.record_request(Attempt(server, "web", SOURCE), DRAIN)

    for result in (site.predict(), site.run()):
        left = [(entry["uuid"], entry["outcome"], entry["to"]) for entry in result["outcomes"]]
        assert left == ([(server, LEFT, "compute-2")] if is_away else [])
        assert all(entry["attempts"] == entry["seconds"] == 0 for entry in result["outcomes"])
    assert ("Not moved back: web" in result["msg"]) is bool(is_away)
    assert site.nova.writes == []


@pytest.mark.parametrize("move_back", [True, False])
def test_nova_that_cannot_move_servers_back_changes_nothing(
    site: Return, move_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is too old for a request that names a host."""

    def refuse(_mover: object) -> None:
        raise InvalidInput("Too old.")

    monkeypatch.setattr(drain.ServerMover, "check_hosts_can_be_named", refuse)
    site.move_back = move_back
    expected = pytest.raises(InvalidInput) if move_back else contextlib.nullcontext()

    with expected:
        site.run()
    assert bool(site.updates) is not move_back


def test_excluded_host_is_not_returned(site: Return) -> None:
    site.excluded = {SOURCE: ""}

    for predict_or_run in (site.predict, site.run):
        with pytest.raises(InvalidInput, match="excluded by name"):
            predict_or_run()
    assert site.updates == []


def _leave_evacuation(site: Return) -> None:
    """Leave an evacuation from the host that its nova-compute has not completed."""
    server = site.nova.boot("evacuated", host="compute-2")
    row = {
        "uuid": "migration-of-evacuation",
        "instance_uuid": server,
        "migration_type": "evacuation",
        "status": "done",
        "source_compute": SOURCE,
        "source_node": SOURCE,
        "dest_compute": "compute-2",
        "dest_node": "compute-2",
        "created_at": "2026-11-20T02:00:00",
        "updated_at": "2026-11-20T02:00:00",
    }
    site.nova.migrations.insert(0, row)


def test_host_that_would_destroy_its_servers_is_not_returned(site: Return) -> None:
    _leave_evacuation(site)

    for predict_or_run in (site.predict, site.run):
        with pytest.raises(InvalidInput) as refused:
            predict_or_run()
        assert refused.value.reason.id == "unfinished_evacuation"
    assert (site.updates, site.nova.writes) == ([], [])


def test_evacuation_during_the_return_is_told(site: Return) -> None:
    site.boot("web")
    site.nova.on("POST", "/action$", after=lambda: _leave_evacuation(site))

    result = site.run()

    assert result["failed"] is True
    assert result["unfinished_evacuations"] == ["migration-of-evacuation"]
    assert "1 server moved back. Evacuations from compute-1 are not completed" in result["msg"]
