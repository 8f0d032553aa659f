"""What a drain predicts, does with the service of the host, and says at its end."""

from __future__ import annotations

import dataclasses as d
import functools
import types
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import CloudError, InvalidInput
from ......plugins.module_utils._core.changes.journal import read_journal
from ......plugins.module_utils._core.models.nova import Service
from ......plugins.module_utils._hosts import drain
from ......plugins.module_utils._hosts.drain import DrainOptions, HostDrain
from ......plugins.module_utils._hosts.drain_reader import DrainReader
from ......plugins.module_utils._hosts.draining import (
    EVACUATION,
    FAILED,
    GONE,
    LEFT,
    MOVED,
    SKIPPED,
    UNDER_WAY,
    DrainSettings,
)
from ......plugins.module_utils._hosts.emptiness import Blocker, Contents
from ......plugins.module_utils._hosts.host import Host
from ......plugins.module_utils._hosts.move_journal import (
    MoveJournal,
    find_move_journals,
    read_history,
)
from ......plugins.module_utils._hosts.move_run import MoveRun, RunLimits
from ..drain_world import build_server
from ..moving_nova import HOSTS, MovingNova, lose

SOURCE = "compute-1"
REASON = "drained with osops.placement"


class Drain:
    """Drains of one host, on a clock that only sleep moves.

    hidden: what is on the host beside its servers.
    updates: what was written to its service.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nova = MovingNova()
        self.nova.roomy = HOSTS[1:]
        self.folder = folder
        self.now = 0.0
        self.hidden: tuple[Blocker, ...] = ()
        self.unreadable = False
        self.updates: list[t.Any] = []
        self.excluded: dict[str, str] = {}
        self._runs = 0
        run = functools.partial(MoveRun, sleep=self._sleep, clock=lambda: self.now)
        monkeypatch.setattr(drain, "MoveRun", run)
        monkeypatch.setattr(drain, "read_contents", self._read_contents)
        writer = types.SimpleNamespace(update_service=self._update)
        monkeypatch.setattr(drain, "ServiceWriter", lambda _compute: writer)

    def run(self, stopped: t.Callable[[], str] = str, max_failures: int = 5) -> dict[str, t.Any]:
        journal, host_drain, history = self._prepare(max_failures)
        return host_drain.run(journal, history, stopped)

    def predict(self, **settings: t.Any) -> dict[str, t.Any]:
        journal, host_drain, history = self._prepare(5, **settings)
        return host_drain.predict(journal, history)

    def _prepare(
        self, max_failures: int, **settings: t.Any
    ) -> tuple[MoveJournal, HostDrain, t.Any]:
        session = self.nova.session()
        endpoint = session.compute.endpoint
        history = read_history(find_move_journals(str(self.folder)), endpoint, SOURCE)
        journal = MoveJournal(str(self.folder), endpoint, SOURCE)
        # Two runs of one process in one second.
        self._runs += 1
        journal.path = journal.path.replace(".jsonl", f"-{self._runs:03}.jsonl")
        limits = RunLimits(1, 0, max_failures, timeout=600)
        options = DrainOptions(SOURCE, REASON, DrainSettings(**settings), limits, self.excluded)
        return journal, HostDrain(session, options, self._sleep), history

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _read_contents(self, _session: object, host: str) -> Contents:
        if self.unreadable:
            raise CloudError("Placement does not answer.")
        servers = []
        for uuid, row in self.nova.servers.items():
            if self.nova.host(uuid) == host:
                servers.append(build_server(row["name"], uuid=uuid).server)
        return Contents(Host(host), servers=tuple(servers), hidden=self.hidden)

    def _update(self, service: Service, body: dict[str, t.Any]) -> Service:
        assert find_move_journals(str(self.folder)), "the journal comes first"
        self.updates.append(body)
        self.nova.services[service.host].update(body)
        return d.replace(service, **body)


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drain:
    return Drain(tmp_path, monkeypatch)


def _list_ends(result: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in result["outcomes"]}


def test_host_is_disabled_drained_and_empty(site: Drain) -> None:
    for name in ("a", "b"):
        site.nova.boot(name)

    result = site.run()

    assert _list_ends(result) == {"a": MOVED, "b": MOVED}
    assert result["msg"] == "2 servers moved from compute-1. compute-1 is empty."
    assert (result["changed"], result["failed"], result["empty"]) == (True, False, True)
    assert (result["remaining"], result["occupants"], result["migrations"]) == ([], [], [])
    assert result["tally"][MOVED] == 2 and sum(result["tally"].values()) == 2
    assert site.updates == [{"status": "disabled", "disabled_reason": REASON}]
    assert result["service"]["status"] == "disabled"


def test_servers_that_stay_are_named_with_their_reasons(site: Drain) -> None:
    failed, parked = site.nova.boot("failed"), site.nova.boot("parked", "SUSPENDED")
    site.nova.boot("web")
    site.nova.fails = {"failed"}

    result = site.run()

    assert _list_ends(result) == {"failed": FAILED, "parked": LEFT, "web": MOVED}
    attempts = {entry["name"]: entry["attempts"] for entry in result["outcomes"]}
    assert attempts == {"failed": 1, "parked": 0, "web": 1}
    assert result["failed"] is True and result["empty"] is False
    assert sorted(result["remaining"]) == [failed, parked]
    assert result["msg"].startswith(
        "1 server moved from compute-1. 2 servers are still on it. Not moved: failed ("
    )
    assert "parked (it is SUSPENDED: resume it" in result["msg"]


def test_server_that_is_left_fails_no_run(site: Drain) -> None:
    site.nova.boot("parked", "SUSPENDED")

    result = site.run()

    assert (result["failed"], result["changed"]) == (False, True)
    assert result["msg"].startswith(
        "0 servers moved from compute-1. 1 server is still on it. Not moved: parked ("
    )


def test_nothing_to_do_changes_nothing(site: Drain) -> None:
    site.nova.services[SOURCE].update(status="disabled", disabled_reason="bad RAM")

    result = site.run()

    assert (result["changed"], site.updates) == (False, [])
    assert result["service"]["disabled_reason"] == "bad RAM"
    assert find_move_journals(str(site.folder)) == []


def test_moved_server_is_a_change_of_a_host_that_was_disabled_before(site: Drain) -> None:
    site.nova.services[SOURCE].update(status="disabled", disabled_reason="bad RAM")
    site.nova.boot("web")

    assert site.run()["changed"] is True


def test_run_that_is_told_to_end_says_how_to_go_on(site: Drain) -> None:
    for name in ("a", "b"):
        site.nova.boot(name)

    def explain_stop() -> str:
        moved = [uuid for uuid in site.nova.servers if site.nova.host(uuid) != SOURCE]
        return "It was told to end." if moved else ""

    result = site.run(explain_stop)

    assert result["failed"] is True
    assert sorted(_list_ends(result).values()) in ([MOVED, SKIPPED], [SKIPPED, UNDER_WAY])
    assert result["msg"].startswith("It was told to end. ")
    assert result["msg"].endswith(" Run again to go on.")
    assert len(site.nova.writes) == 1


def test_what_is_no_server_keeps_the_host_from_being_empty(site: Drain) -> None:
    site.hidden = (Blocker("hidden_allocation", "x", "", "Something hidden is there."),)

    result = site.run()

    assert (result["empty"], result["remaining"]) == (False, [])
    assert result["msg"] == "0 servers moved from compute-1. Something hidden is there."
    assert [entry["subject"] for entry in result["occupants"]] == ["x"]


def test_what_cannot_be_read_at_the_end_loses_no_outcome(site: Drain) -> None:
    site.nova.boot("web")
    site.unreadable = True

    result = site.run()

    assert _list_ends(result) == {"web": MOVED}
    assert [entry["kind"] for entry in result["occupants"]] == ["unsound_reading"]
    assert "Placement does not answer." in result["msg"]


def test_host_is_not_empty_where_the_error_of_a_reading_has_no_words(
    site: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_session: object, _host: str) -> Contents:
        raise CloudError("")

    monkeypatch.setattr(drain, "read_contents", fail)

    result = site.run()

    assert not result["empty"]
    assert [entry["kind"] for entry in result["occupants"]] == ["unsound_reading"]


def test_server_that_arrives_during_the_drain_moves_too(site: Drain) -> None:
    site.nova.boot("first")
    site.nova.on("POST", "/action$", after=lambda: site.nova.boot("late") and None)

    assert _list_ends(site.run()) == {"first": MOVED, "late": MOVED}


def test_host_to_which_servers_come_without_end_is_not_listed_for_ever(site: Drain) -> None:
    site.nova.boot("0")
    names = iter(range(1, 100))
    site.nova.on("POST", "/action$", 0, after=lambda: site.nova.boot(str(next(names))) and None)

    result = site.run()

    assert result["tally"][MOVED] == 5
    assert len(result["remaining"]) == 1


def test_server_that_failed_is_not_tried_again_in_the_same_run(site: Drain) -> None:
    site.nova.boot("failed")
    site.nova.fails = {"failed"}
    site.nova.on("POST", "/action$", after=lambda: site.nova.boot("late") and None)

    assert _list_ends(site.run()) == {"failed": FAILED, "late": MOVED}
    assert len(site.nova.writes) == 2


def test_too_many_failures_end_the_drain(site: Drain) -> None:
    site.nova.boot("failed")
    site.nova.fails = {"failed"}
    site.nova.on("POST", "/action$", after=lambda: site.nova.boot("late") and None)

    assert _list_ends(site.run(max_failures=1)) == {"failed": FAILED}


# Migrations of somebody else


def test_live_migration_of_somebody_else_is_followed_and_not_asked_again(site: Drain) -> None:
    server = site.nova.boot("web")
    site.nova.request_as_user(server)
    # Its record, and nothing more.
    site.nova._steps[server].pop(0)()

    result = site.run()

    assert _list_ends(result) == {"web": GONE}
    assert site.nova.writes == [] and result["remaining"] == []


def test_cold_migration_of_somebody_else_is_theirs(site: Drain) -> None:
    server = site.nova.boot("old", "SHUTOFF")
    site.nova.request_as_user(server)
    site.nova._steps[server].pop(0)()

    result = site.run()

    assert _list_ends(result) == {"old": LEFT}
    assert site.nova.writes == []
    assert [entry["server"] for entry in result["migrations"]] == [server]


def test_migration_without_a_task_is_not_waited_for(site: Drain) -> None:
    server = site.nova.boot("web")
    site.nova.request_as_user(server)
    site.nova.stand_still(server, "running")
    site.nova.servers[server]["OS-EXT-STS:task_state"] = None

    assert _list_ends(site.run()) == {"web": LEFT}
    assert site.now < 600


def test_migration_to_the_host_is_not_one_from_it(site: Drain) -> None:
    server = site.nova.boot("web", host="compute-3")
    site.nova.request_as_user(server)
    site.nova._steps[server].pop(0)()
    assert site.nova.migrations[0]["dest_compute"] == SOURCE

    assert _list_ends(site.run()) == {}


def test_evacuation_of_somebody_else_is_followed(site: Drain) -> None:
    server = site.nova.boot("web")
    site.nova._act(server, "evacuate", None, "somebody")
    site.nova._steps[server].pop(0)()

    (outcome,) = site.run()["outcomes"]

    assert (outcome["outcome"], outcome["how"], site.nova.writes) == (GONE, EVACUATION, [])
    assert outcome["attempts"] == 0
    # What somebody else has begun is in no journal of ours.
    (path,) = find_move_journals(str(site.folder))
    assert {record["action"] for record in read_journal(path)[0]} == {"service"}


def test_server_with_two_open_migrations_is_followed_once(site: Drain) -> None:
    server = site.nova.boot("web")
    site.nova.request_as_user(server)
    site.nova._steps[server].pop(0)()
    site.nova.migrations.append({**site.nova.migrations[0], "uuid": "older"})

    assert len(site.run()["outcomes"]) == 1


def test_migration_of_a_server_that_is_gone_is_not_followed(site: Drain) -> None:
    server = site.nova.boot("web")
    site.nova.request_as_user(server)
    site.nova.stand_still(server, "running")
    site.nova.delete(server)

    assert site.run()["outcomes"] == []


def test_host_that_cannot_be_read_is_not_drained(site: Drain) -> None:
    site.nova.boot("web")
    site.nova.refuse("/servers/detail")

    with pytest.raises(CloudError):
        site.run()
    assert site.nova.writes == []


def test_host_that_somebody_enables_during_the_drain_is_not_empty(site: Drain) -> None:
    site.nova.boot("web")
    enable = functools.partial(site.nova.services[SOURCE].update, status="enabled")
    site.nova.on("POST", "/action$", after=enable)

    result = site.run()

    assert _list_ends(result) == {"web": MOVED}
    assert not result["empty"] and f"{SOURCE} is empty" not in result["msg"]
    assert [entry["kind"] for entry in result["occupants"]] == ["enabled"]


# What a run would do


def test_prediction_changes_nothing_and_shows_the_service_as_it_would_be(site: Drain) -> None:
    site.nova.boot("web")
    site.hidden = (Blocker("hidden_allocation", "x", "", "Something hidden is there."),)

    result = site.predict()

    assert (result["changed"], site.updates, site.nova.writes) == (True, [], [])
    assert result["service"]["status"] == "disabled"
    assert result["service"]["disabled_reason"] == REASON
    assert (result["outcomes"], set(result["tally"].values())) == ([], {0})
    assert result["msg"] == result["plan"]["summary"]
    assert result["msg"].endswith(" Something hidden is there.")
    assert find_move_journals(str(site.folder)) == []


@pytest.mark.parametrize(
    ("status", "servers", "changed"),
    [
        ("enabled", {}, True),
        ("disabled", {}, False),
        ("disabled", {"web": "ACTIVE"}, True),
        ("disabled", {"parked": "SUSPENDED"}, False),
    ],
)
def test_prediction_tells_whether_anything_would_change(
    site: Drain, status: str, servers: dict[str, str], changed: bool
) -> None:
    site.nova.services[SOURCE]["status"] = status
    for name, server_status in servers.items():
        site.nova.boot(name, server_status)

    assert site.predict()["changed"] is changed


def test_run_that_would_be_refused_changes_nothing(site: Drain) -> None:
    """The host is down, and nobody has said that it is fenced."""
    for service in site.nova.services.values():
        service["updated_at"] = "2026-11-20T03:00:00.000000"
    site.nova.services[SOURCE].update(state="down", updated_at="2026-11-20T02:00:00.000000")
    site.nova.boot("web")

    assert site.predict()["changed"] is False


def test_service_of_a_fenced_host_is_forced_down(site: Drain) -> None:
    for service in site.nova.services.values():
        service["updated_at"] = "2026-11-20T03:00:00.000000"
    site.nova.services[SOURCE].update(state="down", updated_at="2026-11-20T02:00:00.000000")

    result = site.predict(fenced=True)

    assert (result["changed"], result["service"]["forced_down"]) == (True, True)
    assert site.predict()["service"]["forced_down"] is False


@pytest.mark.parametrize("is_back", [True, False])
def test_nobody_is_told_to_start_a_nova_compute_that_would_destroy_its_servers(
    site: Drain, is_back: bool
) -> None:
    """A server is on the source of its own evacuation, and nova-compute there is down."""
    for service in site.nova.services.values():
        service["updated_at"] = "2026-11-20T03:00:00.000000"
    site.nova.services[SOURCE].update(state="down", updated_at="2026-11-20T02:00:00.000000")
    server = site.nova.boot("web", host=SOURCE if is_back else "compute-2")
    site.nova.add_migration(server, "evacuation", "done", "compute-2")

    advice = "destroys them. Do not restart it" if is_back else "First start nova-compute"
    for ask in (site.run, site.predict)[: 1 + is_back]:
        with pytest.raises(InvalidInput, match=advice):
            ask()
    assert (site.updates, site.nova.writes) == ([], [])


def test_move_of_an_earlier_run_is_predicted_to_be_followed(site: Drain) -> None:
    site.nova.boot("web")
    # The answer is lost, and the run ends before it is known whether Nova has the request.
    site.nova.on("POST", "/action$", before=lose)
    site.run(lambda: "It was told to end." if is_asked(site) else "")

    result = site.predict()

    (entry,) = result["plan"]["servers"]
    assert "an earlier run asked Nova to move it (live, " in entry["reason"]
    assert "follows that move first" in entry["advice"]
    assert (entry["how"], result["changed"]) == ("stays", False)


def test_move_of_an_earlier_run_is_followed_once(site: Drain) -> None:
    """Nova lists its migration too."""
    server = site.nova.boot("web")

    def begin() -> None:
        site.nova.wait(server, 5)
        site.nova._steps[server].pop(0)()

    site.nova.on("POST", "/action$", after=begin)
    site.run(lambda: "It was told to end." if is_asked(site) else "")
    assert [row["status"] for row in site.nova.migrations] == ["running"]

    (outcome,) = site.run()["outcomes"]

    assert (outcome["outcome"], len(site.nova.writes)) == (MOVED, 1)
    # Its request was that of the other run.
    assert outcome["attempts"] == 0


@pytest.mark.parametrize("is_forced", [True, False])
def test_prediction_for_a_fenced_host_needs_its_silence(site: Drain, is_forced: bool) -> None:
    """A host that is not forced down yet is watched right before it is."""
    for service in site.nova.services.values():
        service["updated_at"] = "2026-11-20T03:00:00.000000"
    late = "2026-11-20T02:00:00.000000"
    site.nova.services[SOURCE].update(state="down", forced_down=is_forced, updated_at=late)

    if is_forced:
        with pytest.raises(InvalidInput, match="silence"):
            site.predict(fenced=True)
    else:
        assert site.predict(fenced=True)["changed"] is True


def test_host_that_is_up_is_not_called_fenced(site: Drain) -> None:
    site.nova.boot("web")

    with pytest.raises(InvalidInput, match="fenced=true"):
        site.predict(fenced=True)
    assert (site.updates, site.nova.writes) == ([], [])


def is_asked(site: Drain) -> bool:
    return any(request.startswith("POST") for request in site.nova.requests)


def test_excluded_host_is_not_touched(site: Drain) -> None:
    site.nova.boot("web")
    site.excluded = {SOURCE: ", until Monday"}

    for drain_or_predict in (site.run, site.predict):
        with pytest.raises(InvalidInput, match=r"is excluded by name \(compute-1, until Monday\)"):
            drain_or_predict()
    assert (site.updates, site.nova.writes) == ([], [])


def test_names_of_a_host_are_read_only_if_any_is_excluded(
    site: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DrainReader, "list_labels", None)

    site.run()


def test_host_is_listed_again_until_it_has_no_new_server(site: Drain) -> None:
    site.nova.boot("web")
    listed: list[str] = []
    real = DrainReader.read

    def read(reader: DrainReader, host: str) -> t.Any:
        listed.append(host)
        return real(reader, host)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DrainReader, "read", read)
        site.run()

    assert listed == [SOURCE] * 2


def test_exclusion_of_another_host_does_not_matter(site: Drain) -> None:
    site.excluded = {"compute-2": ""}

    assert site.run()["empty"] is True
