"""What a drain predicts, does with the service of the host, and says at its end."""

import functools
import types
import typing as t
from pathlib import Path

import pytest

from ......plugins.module_utils._common.errors import CloudError, InvalidInput
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
from ......plugins.module_utils._hosts.move_journal import MoveJournal
from ......plugins.module_utils._hosts.move_run import MoveRun, RunLimits
from ..drain_world import build_server
from ..moving_nova import HOSTS, lose
from .moving_host import REASON, SOURCE, MovingHost

HIDDEN = Blocker("hidden_allocation", "x", "", "Hidden.")


class Drain(MovingHost):
    """Drains of the host. hidden: what is on it beside its servers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        self.roomy = HOSTS[1:]
        self.hidden: tuple[Blocker, ...] = ()
        # Why the host cannot be read at the end.
        self.unreadable: str | None = None
        run = functools.partial(MoveRun, sleep=self.sleep, clock=lambda: self.now)
        monkeypatch.setattr(drain, "MoveRun", run)
        monkeypatch.setattr(drain, "read_contents", self._read_contents)
        writer = types.SimpleNamespace(update_service=self.update_service)
        monkeypatch.setattr(drain, "ServiceWriter", lambda _compute: writer)

    def run(self, stopped: t.Callable[[], str] = str, max_failures: int = 5) -> dict[str, t.Any]:
        journal, host_drain = self._prepare(max_failures)
        return host_drain.run(journal, self.read_history(), stopped)

    def predict(self, **settings: t.Any) -> dict[str, t.Any]:
        journal, host_drain = self._prepare(5, **settings)
        return host_drain.predict(journal, self.read_history())

    def _prepare(self, max_failures: int, **settings: t.Any) -> tuple[MoveJournal, HostDrain]:
        limits = RunLimits(1, 0, max_failures, timeout=600)
        options = DrainOptions(SOURCE, REASON, DrainSettings(**settings), limits, self.excluded)
        return self.open_journal(), HostDrain(self.session(), options, self.sleep)

    def _read_contents(self, _session: object, host: str) -> Contents:
        if self.unreadable is not None:
            raise CloudError(self.unreadable)
        servers = [
            build_server(row["name"], uuid=uuid).server
            for uuid, row in self.servers.items()
            if self.host(uuid) == host
        ]
        return Contents(Host(host), servers=tuple(servers), hidden=self.hidden)

    def update_service(self, service: Service, body: dict[str, t.Any]) -> Service:
        assert self.list_journals(), "the journal comes first"
        return super().update_service(service, body)

    def boot_late(self, nth: int = 1) -> None:
        """Let a server come to the host when Nova gets a request; `nth` as of a hook."""
        names = iter(["late", *map(str, range(100))])
        self.on("POST", "/action$", nth, after=lambda: self.boot(next(names)) and None)

    def explain_stop(self) -> str:
        """Stop a run as soon as it has asked Nova to move a server."""
        is_asked = any(request.startswith("POST") for request in self.requests)
        return "Stopped." if is_asked else ""


@pytest.fixture(name="site")
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drain:
    return Drain(tmp_path, monkeypatch)


def _list_ends(result: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in result["outcomes"]}


def _list_kinds(result: t.Mapping[str, t.Any]) -> list[str]:
    return [entry["kind"] for entry in result["occupants"]]


def test_host_is_disabled_drained_and_empty(site: Drain) -> None:
    for name in ("a", "b"):
        site.boot(name)

    result = site.run()

    assert _list_ends(result) == {"a": MOVED, "b": MOVED}
    assert result["msg"].endswith(" compute-1 is empty.")
    assert (result["changed"], result["failed"], result["empty"]) == (True, False, True)
    assert (result["remaining"], result["occupants"], result["migrations"]) == ([], [], [])
    assert result["tally"][MOVED] == 2 and sum(result["tally"].values()) == 2
    assert site.updates == [{"status": "disabled", "disabled_reason": REASON}]
    assert result["service"]["status"] == "disabled"


def test_servers_that_stay_are_named_with_their_reasons(site: Drain) -> None:
    failed, parked = site.boot("failed"), site.boot("parked", "SUSPENDED")
    site.boot("web")
    site.fails = {"failed"}

    result = site.run()

    assert _list_ends(result) == {"failed": FAILED, "parked": LEFT, "web": MOVED}
    attempts = {entry["name"]: entry["attempts"] for entry in result["outcomes"]}
    assert attempts == {"failed": 1, "parked": 0, "web": 1}
    assert result["failed"] is True and result["empty"] is False
    assert sorted(result["remaining"]) == [failed, parked]
    reasons = {entry["name"]: entry["reason"] for entry in result["outcomes"]}
    assert result["msg"] == (
        "1 server moved from compute-1. 2 servers are still on it. Not moved: failed "
        f"({reasons['failed']}), parked ({reasons['parked']})."
    )


def test_server_that_is_left_fails_no_run(site: Drain) -> None:
    site.boot("parked", "SUSPENDED")

    result = site.run()

    assert (result["failed"], result["changed"], len(result["remaining"])) == (False, True, 1)


def test_nothing_to_do_changes_nothing(site: Drain) -> None:
    site.services[SOURCE].update(status="disabled", disabled_reason="bad RAM")

    result = site.run()

    assert (result["changed"], site.updates) == (False, [])
    assert result["service"]["disabled_reason"] == "bad RAM"
    assert site.list_journals() == []


def test_moved_server_is_a_change_of_a_host_that_was_disabled_before(site: Drain) -> None:
    site.services[SOURCE].update(status="disabled", disabled_reason="bad RAM")
    site.boot("web")

    assert site.run()["changed"] is True


def test_run_that_is_told_to_end_says_how_to_go_on(site: Drain) -> None:
    for name in ("a", "b"):
        site.boot(name)

    def explain_stop() -> str:
        moved = [uuid for uuid in site.servers if site.host(uuid) != SOURCE]
        return "Stopped." if moved else ""

    result = site.run(explain_stop)

    assert result["failed"] is True
    assert sorted(_list_ends(result).values()) in ([MOVED, SKIPPED], [SKIPPED, UNDER_WAY])
    assert result["msg"].startswith("Stopped. ") and "Run again" in result["msg"]
    assert len(site.writes) == 1


def test_what_is_no_server_keeps_the_host_from_being_empty(site: Drain) -> None:
    site.hidden = (HIDDEN,)

    result = site.run()

    assert (result["empty"], result["remaining"]) == (False, [])
    assert result["msg"].endswith(f" {HIDDEN.reason}")
    assert [entry["subject"] for entry in result["occupants"]] == ["x"]


@pytest.mark.parametrize("words", ["No answer.", ""])
def test_what_cannot_be_read_at_the_end_loses_no_outcome(site: Drain, words: str) -> None:
    site.boot("web")
    site.unreadable = words

    result = site.run()

    assert _list_ends(result) == {"web": MOVED}
    assert (result["empty"], _list_kinds(result)) == (False, ["unsound_reading"])
    assert words in result["msg"]


def test_host_to_which_servers_come_without_end_is_not_listed_for_ever(site: Drain) -> None:
    site.boot("first")
    site.boot_late(nth=0)

    result = site.run()

    assert result["tally"][MOVED] == 5
    assert len(result["remaining"]) == 1


@pytest.mark.parametrize(
    ("fails", "max_failures", "ends"),
    [
        (set(), 5, {"first": MOVED, "late": MOVED}),
        # One that has failed is not tried again in the same run.
        ({"first"}, 5, {"first": FAILED, "late": MOVED}),
        ({"first"}, 1, {"first": FAILED}),
    ],
)
def test_server_that_arrives_during_the_drain_moves_too(
    site: Drain, fails: set[str], max_failures: int, ends: dict[str, str]
) -> None:
    site.boot("first")
    site.fails = fails
    site.boot_late()

    assert _list_ends(site.run(max_failures=max_failures)) == ends
    assert len(site.writes) == len(ends)


# Migrations of somebody else


@pytest.mark.parametrize(
    ("status", "outcome", "open_migrations"), [("ACTIVE", GONE, 0), ("SHUTOFF", LEFT, 1)]
)
def test_migration_of_somebody_else_is_followed_and_not_asked_again(
    site: Drain, status: str, outcome: str, open_migrations: int
) -> None:
    """A cold one is theirs to confirm."""
    site.begin_as_user(site.boot("web", status))

    result = site.run()

    assert (_list_ends(result), site.writes) == ({"web": outcome}, [])
    assert len(result["remaining"]) == len(result["migrations"]) == open_migrations


def test_migration_without_a_task_is_not_waited_for(site: Drain) -> None:
    server = site.boot("web")
    site.request_as_user(server)
    site.stand_still(server, "running")
    site.set_task(server, None)

    assert _list_ends(site.run()) == {"web": LEFT}
    assert site.now < 600


def test_migration_that_has_not_changed_for_a_day_is_named_and_not_waited_for(site: Drain) -> None:
    server = site.boot("web")
    site.request_as_user(server)
    site.stand_still(server, "running")
    site.migrations[0]["updated_at"] = "2026-01-01T00:00:00Z"
    (outcome,) = site.run()["outcomes"]

    assert outcome["outcome"] == LEFT and "(stuck_migration)" in outcome["reason"]
    assert site.now < 600


def test_migration_to_the_host_is_not_one_from_it(site: Drain) -> None:
    site.begin_as_user(site.boot("web", host="compute-3"))
    assert site.migrations[0]["dest_compute"] == SOURCE

    assert _list_ends(site.run()) == {}


def test_evacuation_of_somebody_else_is_followed(site: Drain) -> None:
    server = site.boot("web")
    site._act(server, "evacuate", None, "somebody")
    site._steps[server].pop(0)()

    (outcome,) = site.run()["outcomes"]

    assert (outcome["outcome"], outcome["how"], site.writes) == (GONE, EVACUATION, [])
    assert outcome["attempts"] == 0
    # What somebody else has begun is in no journal of ours.
    assert {record["action"] for record in site.records()} == {"service"}


def test_server_with_two_open_migrations_is_followed_once(site: Drain) -> None:
    site.begin_as_user(site.boot("web"))
    site.migrations.append({**site.migrations[0], "uuid": "older"})

    assert len(site.run()["outcomes"]) == 1


def test_migration_of_a_server_that_is_gone_is_not_followed(site: Drain) -> None:
    server = site.boot("web")
    site.request_as_user(server)
    site.stand_still(server, "running")
    site.delete(server)

    assert site.run()["outcomes"] == []


def test_host_that_cannot_be_read_is_not_drained(site: Drain) -> None:
    site.boot("web")
    site.refuse("/servers/detail")

    with pytest.raises(CloudError):
        site.run()
    assert site.writes == []


def test_host_that_somebody_enables_during_the_drain_is_not_empty(site: Drain) -> None:
    site.boot("web")
    enable = functools.partial(site.services[SOURCE].update, status="enabled")
    site.on("POST", "/action$", after=enable)

    result = site.run()

    assert _list_ends(result) == {"web": MOVED}
    assert not result["empty"] and "is empty" not in result["msg"]
    assert _list_kinds(result) == ["enabled"]


# What a run would do


def test_prediction_changes_nothing_and_shows_the_service_as_it_would_be(site: Drain) -> None:
    site.boot("web")
    site.hidden = (HIDDEN,)

    result = site.predict()

    assert (result["changed"], site.updates, site.writes) == (True, [], [])
    assert result["service"]["status"] == "disabled"
    assert result["service"]["disabled_reason"] == REASON
    assert (result["outcomes"], set(result["tally"].values())) == ([], {0})
    assert result["msg"] == result["plan"]["summary"]
    assert result["msg"].endswith(f" {HIDDEN.reason}")
    assert site.list_journals() == []


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
    site.services[SOURCE]["status"] = status
    for name, server_status in servers.items():
        site.boot(name, server_status)

    assert site.predict()["changed"] is changed


@pytest.mark.parametrize("is_fenced", [True, False])
def test_only_the_word_that_it_is_fenced_drains_a_host_that_is_down(
    site: Drain, is_fenced: bool
) -> None:
    """Without it, a run would be refused. With it, the service is forced down."""
    site.go_down()
    site.boot("web")

    result = site.predict(fenced=is_fenced)

    assert (result["changed"], result["service"]["forced_down"]) == (is_fenced, is_fenced)


@pytest.mark.parametrize("is_back", [True, False])
def test_nobody_is_told_to_start_a_nova_compute_that_would_destroy_its_servers(
    site: Drain, is_back: bool
) -> None:
    """A server is on the source of its own evacuation, and nova-compute there is down."""
    site.go_down()
    server = site.boot("web", host=SOURCE if is_back else "compute-2")
    site.add_migration(server, "evacuation", "done", "compute-2")

    advice = "Do not restart" if is_back else "First start"
    for ask in (site.run, site.predict)[: 1 + is_back]:
        with pytest.raises(InvalidInput, match=advice):
            ask()
    assert (site.updates, site.writes) == ([], [])


def test_move_of_an_earlier_run_is_predicted_to_be_followed(site: Drain) -> None:
    site.boot("web")
    # The answer is lost, and the run ends before it is known whether Nova has the request.
    site.on("POST", "/action$", before=lose)
    site.run(site.explain_stop)

    result = site.predict()

    (entry,) = result["plan"]["servers"]
    assert "an earlier run" in entry["reason"] and "(live, " in entry["reason"]
    assert "follows that move" in entry["advice"]
    assert (entry["how"], result["changed"]) == ("stays", False)


def test_move_of_an_earlier_run_is_followed_once(site: Drain) -> None:
    """Nova lists its migration too."""
    server = site.boot("web")

    def begin() -> None:
        site.wait(server, 5)
        site._steps[server].pop(0)()

    site.on("POST", "/action$", after=begin)
    site.run(site.explain_stop)
    assert [row["status"] for row in site.migrations] == ["running"]

    (outcome,) = site.run()["outcomes"]

    assert (outcome["outcome"], len(site.writes)) == (MOVED, 1)
    # Its request was that of the other run.
    assert outcome["attempts"] == 0


def test_prediction_for_a_fenced_host_needs_its_silence(site: Drain) -> None:
    """One that is not forced down yet is watched right before it is."""
    site.go_down(is_forced=True)

    with pytest.raises(InvalidInput, match="silence"):
        site.predict(fenced=True)


def test_host_that_is_up_is_not_called_fenced(site: Drain) -> None:
    site.boot("web")

    with pytest.raises(InvalidInput, match="fenced=true"):
        site.predict(fenced=True)
    assert (site.updates, site.writes) == ([], [])


def test_excluded_host_is_not_touched(site: Drain) -> None:
    site.boot("web")
    site.excluded = {SOURCE: ", until Monday"}

    for drain_or_predict in (site.run, site.predict):
        with pytest.raises(InvalidInput, match=r"\(compute-1, until Monday\)"):
            drain_or_predict()
    assert (site.updates, site.writes) == ([], [])


def test_names_of_a_host_are_read_only_if_any_is_excluded(
    site: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DrainReader, "list_labels", None)

    site.run()


def test_host_is_listed_again_until_it_has_no_new_server(
    site: Drain, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.boot("web")
    listed: list[str] = []
    real = DrainReader.read

    def read(reader: DrainReader, host: str) -> t.Any:
        listed.append(host)
        return real(reader, host)

    monkeypatch.setattr(DrainReader, "read", read)
    site.run()

    assert listed == [SOURCE] * 2


def test_exclusion_of_another_host_does_not_matter(site: Drain) -> None:
    site.excluded = {"compute-2": ""}

    assert site.run()["empty"] is True
