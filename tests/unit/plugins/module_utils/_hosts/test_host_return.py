"""Which changes of its service the return of a host takes back, and what it says."""

import contextlib
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
from ..drain_world import build_service
from .moving_host import REASON, SOURCE, MovingHost

NOVA = "http://nova/"
DISABLED = {"status": "disabled", "disabled_reason": REASON}


def _record(tmp_path: Path, *changes: tuple[dict[str, t.Any], dict[str, t.Any]]) -> MoveHistory:
    """Return the history of drains that found the service like this and changed that."""
    journal = MoveJournal(str(tmp_path), NOVA, SOURCE)
    for before, body in changes:
        journal.record_service(build_service(SOURCE, **before), body)
    return read_history(find_move_journals(str(tmp_path)), NOVA, SOURCE)


FENCED = {**DISABLED, "forced_down": True}
BROKEN = {**DISABLED, "disabled_reason": "bad RAM"}
DOWN, UP = {"forced_down": True}, {"forced_down": False}
ENABLED = {"status": "enabled"}
# What drains found and changed.
TWICE = (({}, DISABLED), (DISABLED, DOWN))

# What drains found and changed, what the service is now, and what is taken back.
TAKEN_BACK: dict[str, tuple[tuple[t.Any, ...], dict[str, t.Any], dict[str, t.Any]]] = {
    "unforced since": (TWICE, DISABLED, ENABLED),
    "as it was left": (TWICE, FENCED, {**ENABLED, **UP}),
    "disabled by somebody": (TWICE, BROKEN, {}),
    "disabled by somebody, and forced down": (TWICE, {**BROKEN, **DOWN}, {}),
    "deployed again": (TWICE, {**DISABLED, "id": "another"}, {}),
    "enabled since": (TWICE, {}, {}),
    "enabled since, and forced down": (TWICE, DOWN, {}),
    # An operator returned the host of an earlier drain, which had forced it down, by hand.
    "forced down by somebody": ((({}, FENCED), ({}, DISABLED)), FENCED, ENABLED),
    "only forced down": ((({}, DOWN),), DOWN, UP),
    "only forced down, and disabled since": ((({}, DOWN),), FENCED, UP),
    # A journal that was made by hand: the service was so before.
    "forced down before": (((DOWN, DOWN),), DOWN, {}),
    "disabled before": (((DISABLED, DISABLED),), DISABLED, {}),
    "disabled before by somebody": (((BROKEN, DOWN),), {**BROKEN, **DOWN}, UP),
    # The reason alone counts without a journal.
    "no journal": ((), DISABLED, ENABLED),
    "no journal, another reason": ((), BROKEN, {}),
    "no journal, no reason": ((), {**DISABLED, "disabled_reason": None}, {}),
}


@pytest.mark.parametrize(("changes", "now", "body"), TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_only_what_drains_changed_and_nobody_since_is_taken_back(
    tmp_path: Path, changes: tuple[t.Any, ...], now: dict[str, t.Any], body: dict[str, t.Any]
) -> None:
    history = _record(tmp_path, *changes)

    assert build_return(build_service(SOURCE, **now), history, REASON) == body


class Return(MovingHost):
    """The return of a host whose servers a drain has moved to the second host."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self.move_back = True
        self.services[SOURCE].update(DISABLED)
        run = functools.partial(MoveRun, sleep=self.sleep, clock=lambda: self.now)
        monkeypatch.setattr(drain, "MoveRun", run)
        writer = types.SimpleNamespace(update_service=self.update_service)
        monkeypatch.setattr(drain, "ServiceWriter", lambda _compute: writer)
        self.journal = self.open_journal()
        self.journal.record_service(build_service(SOURCE), DISABLED)

    def boot_away(self, name: str, status: str = "ACTIVE") -> str:
        """Add a server that the drain has moved away."""
        server = self.boot(name, status, host="compute-2")
        attempt = Attempt(server, name, SOURCE)
        self.journal.record_request(attempt, DRAIN)
        self.journal.record_end(attempt, MOVED, "compute-2", "")
        return server

    def predict(self) -> dict[str, t.Any]:
        return self._make().predict(self.open_journal(), self.read_history())

    def run(self, stopped: t.Callable[[], str] = str) -> dict[str, t.Any]:
        return self._make().run(self.open_journal(), self.read_history(), stopped)

    def _make(self) -> HostReturn:
        limits, settings = RunLimits(1, 0, 5, 600), DrainSettings()
        options = DrainOptions(SOURCE, REASON, settings, limits, self.excluded, self.move_back)
        return HostReturn(self.session(), options)

    def leave_evacuation(self) -> None:
        """Leave an evacuation from the host that its nova-compute has not completed."""
        server = self.boot("evacuated", host="compute-2")
        self.add_migration(server, "evacuation", "done", "compute-2")


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Return:
    return Return(tmp_path, monkeypatch)


WEB = "uuid-of-web"
BAD_RAM = {"disabled_reason": "bad RAM"}

# By what happened since the drain: how, and what becomes of the server; None if nothing does.
SINCE: dict[str, tuple[t.Callable[[Return], t.Any], str | None]] = {
    "nothing": (lambda site: None, MOVED),
    "it was moved back": (lambda site: site.put(WEB, SOURCE), None),
    "it was moved on": (lambda site: site.put(WEB, "compute-3"), GONE),
    "it was suspended": (lambda site: site.servers[WEB].update(status="SUSPENDED"), LEFT),
    "its host went down": (lambda site: site.services["compute-2"].update(state="down"), LEFT),
    "nova-compute was not started": (lambda site: site.services[SOURCE].update(state="down"), LEFT),
    "somebody disabled the host": (lambda site: site.services[SOURCE].update(BAD_RAM), LEFT),
    "somebody disabled the host, and it was moved on": (
        lambda site: (site.services[SOURCE].update(BAD_RAM), site.put(WEB, "compute-3")),
        GONE,
    ),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("happens", "outcome"), SINCE.values(), ids=SINCE)
def test_each_server_is_predicted_and_reported_as_it_is(
    site: Return, happens: t.Callable[[Return], t.Any], outcome: str | None, check: bool
) -> None:
    site.boot_away("web")
    happens(site)

    result = site.predict() if check else site.run()

    moves = [entry["server"] for entry in result["departures"]]
    if outcome != MOVED:
        assert all(entry["attempts"] == entry["seconds"] == 0 for entry in result["outcomes"])
    ends = {entry["uuid"]: entry["outcome"] for entry in result["outcomes"]}
    assert moves == ([WEB] if outcome == MOVED else [])
    if outcome is None or (check and outcome == MOVED):
        assert ends == {}
    else:
        assert ends == {WEB: outcome}
    assert bool(site.writes) == (outcome == MOVED and not check)
    assert "fence" not in str(result)
    assert ("moved back: web" in result["msg"]) == (outcome == LEFT and not check)


def test_host_is_enabled_and_its_servers_are_moved_back(site: Return) -> None:
    servers = [site.boot_away("a"), site.boot_away("b")]

    result = site.run()

    assert result["msg"].endswith(" 2 servers moved back.")
    assert (result["changed"], result["failed"]) == (True, False)
    assert result["tally"][MOVED] == 2 and result["unfinished_evacuations"] == []
    assert site.updates == [{"status": "enabled"}]
    assert result["service"]["status"] == "enabled"
    assert [site.host(server) for server in servers] == [SOURCE] * 2
    # Another run has nothing to take back, and nothing to move.
    history = site.read_history()
    assert (history.service, history.list_departures()) == (None, [])


def test_return_is_predicted(site: Return) -> None:
    site.boot_away("a")

    result = site.predict()

    assert "1 server would" in result["msg"]
    assert (result["changed"], result["service"]["status"]) == (True, "enabled")
    assert (site.updates, site.writes, result["outcomes"]) == ([], [], [])


def test_host_that_a_drain_forced_down_is_expected_to_be_up(site: Return) -> None:
    """As long as it is forced down, Nova does not show whether it is up."""
    site.journal.record_service(
        build_service(SOURCE, status="disabled", disabled_reason=REASON), {"forced_down": True}
    )
    site.services[SOURCE].update(forced_down=True, state="down")
    site.boot_away("a")

    result = site.predict()

    assert [entry["name"] for entry in result["departures"]] == ["a"]
    assert (result["service"]["state"], result["outcomes"]) == (None, [])


def test_only_the_service_is_returned_if_no_server_is_to_move(site: Return) -> None:
    server = site.boot_away("a")
    site.move_back = False

    predicted, result = site.predict(), site.run()

    assert "move back" not in predicted["msg"] and "0 servers moved" in result["msg"]
    assert (predicted["departures"], site.host(server)) == ([], "compute-2")
    assert (predicted["changed"], result["changed"]) == (True, True)


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


@pytest.mark.parametrize(("changes", "text"), STATES.values(), ids=STATES)
def test_state_in_which_the_host_stays_is_told(
    site: Return, changes: dict[str, t.Any], text: str
) -> None:
    site.services[SOURCE].update(changes)
    site.boot_away("web")

    predicted, result = site.predict(), site.run()

    assert predicted["msg"] == text
    assert result["msg"].startswith(text) and "back: web (" in result["msg"]
    assert site.writes == []


@pytest.mark.parametrize(("status", "fails"), [("ACTIVE", True), ("SUSPENDED", False)])
def test_only_a_server_that_could_not_be_moved_back_fails_the_run(
    site: Return, status: str, fails: bool
) -> None:
    site.boot_away("web", status)
    site.fails = {"web"}

    result = site.run()

    (outcome,) = result["outcomes"]
    assert result["failed"] is fails
    assert f"back: web ({outcome['reason']})" in result["msg"]


def test_return_that_is_told_to_end_says_how_to_go_on(site: Return) -> None:
    site.boot_away("web")

    result = site.run(lambda: "Stopped.")

    assert result["failed"] is True
    assert result["msg"].startswith("Stopped. ") and "Run again" in result["msg"]


def test_move_that_an_earlier_run_began_is_followed_and_not_asked_again(site: Return) -> None:
    begun, other = site.boot_away("begun"), site.boot_away("other")
    site.run(lambda: "Stopped." if site.writes else "")
    assert [server for server, _action in site.writes] == [begun]

    predicted, result = site.predict(), site.run()

    assert [entry["server"] for entry in predicted["departures"]] == [other]
    assert [server for server, _action in site.writes] == [begun, other]
    assert [entry["outcome"] for entry in result["outcomes"]] == [MOVED, MOVED]
    assert site.host(begun) == site.host(other) == SOURCE


@pytest.mark.parametrize("is_away", [True, False, None])
def test_server_of_a_drain_that_was_killed_is_not_forgotten(
    site: Return, is_away: bool | None
) -> None:
    """Nova has moved it, and the journal does not say so; or it was deleted."""
    server = site.boot("web", host="compute-2" if is_away else SOURCE)
    if is_away is None:
        site.delete(server)
    site.journal.record_request(Attempt(server, "web", SOURCE), DRAIN)

    for result in (site.predict(), site.run()):
        left = [(entry["uuid"], entry["outcome"], entry["to"]) for entry in result["outcomes"]]
        assert left == ([(server, LEFT, "compute-2")] if is_away else [])
        assert all(entry["attempts"] == entry["seconds"] == 0 for entry in result["outcomes"])
    assert ("moved back: web" in result["msg"]) is bool(is_away)
    assert site.writes == []


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


def test_host_that_would_destroy_its_servers_is_not_returned(site: Return) -> None:
    site.leave_evacuation()

    for predict_or_run in (site.predict, site.run):
        with pytest.raises(InvalidInput) as refused:
            predict_or_run()
        assert refused.value.reason.id == "unfinished_evacuation"
    assert (site.updates, site.writes) == ([], [])


def test_evacuation_during_the_return_is_told(site: Return) -> None:
    site.boot_away("web")
    site.on("POST", "/action$", after=site.leave_evacuation)

    result = site.run()

    assert result["failed"] is True
    assert result["unfinished_evacuations"] == [site.migrations[0]["uuid"]]
    assert f"Evacuations from {SOURCE}" in result["msg"]
