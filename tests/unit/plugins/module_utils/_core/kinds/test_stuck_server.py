"""Which servers hang, which only look so, and what to do next."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.kinds import stuck_server, unconfirmed_resize
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Action, ActionEvent, Service
from .......plugins.module_utils._core.models.other_services import DeletedServer, Deletion
from .......plugins.module_utils._core.models.snapshot import Deletions, Surroundings
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import list_cases
from ...world import answer
from ..scene import Scene

LONG_AGO, LATELY = "2026-11-01T15:00:00.000000", "2026-11-20T14:00:00.000000"
DELETING, SOFT = {"task_state": "deleting"}, {"task_state": "soft-deleting"}
HALFWAY = {"vm_state": "deleted", "status": "DELETED"}
FAILED = {"status": "ERROR"}
DOWN = {"service": {"state": "down"}}


def make_action(result: str = "Error", start: str = LONG_AGO) -> Action:
    event = ActionEvent("compute_terminate_instance", start, start, result, "compute-1")
    return Action("delete", "req-1", "user", start, None, (event,))


class Site(Scene):
    """Two hosts, and a server on one of them that Nova works on."""

    def __init__(self) -> None:
        super().__init__()
        self.guest = self.server(self.here, self.here, updated=LONG_AGO, created=LONG_AGO)
        self.evacuated: list[str] = []

    def find(
        self,
        *,
        code: int = 200,
        vm_state: str = "active",
        fault: str = "",
        locked: bool = False,
        deletion: Deletion | None = None,
        service: dict[str, t.Any] | None = None,
        **fields: t.Any,
    ) -> list[Finding]:
        server = d.replace(self.servers[self.guest], **fields)
        row = DeletedServer(server, vm_state, fault, locked)
        lookup = answer(f"GET /servers/{self.guest}", code, row if code == 200 else None)
        actions = {}
        if deletion is not None:
            actions = {self.guest: answer("GET /servers/…/os-instance-actions", 200, deletion)}
        deletions = Deletions(lookups={self.guest: lookup}, actions=actions)
        snapshot = self.snapshot(surroundings=Surroundings(deletions=deletions))
        if service is not None:
            rows = tuple(
                Service(**{**vars(row), **service})
                for row in self.services
                if service.get("host") != ""
            )
            snapshot = d.replace(snapshot, services=answer("GET /os-services", 200, rows))
        return list(stuck_server.check(SnapshotIndex(snapshot), Policy()))

    def hang(self, service: dict[str, t.Any] | None = None, **fields: t.Any) -> list[Finding]:
        """Return the findings while the server is like that, as its lookup shows it."""
        self.servers[self.guest] = d.replace(self.servers[self.guest], **fields)
        changes: dict[str, t.Any] = {}
        if service is not None:
            changed = tuple(d.replace(row, **service) for row in self.services)
            rows = () if service.get("host") == "" else changed
            changes["services"] = answer("GET /os-services", 200, rows)
        evacuated = {uuid: self.snapshot().evidence[uuid].server for uuid in self.evacuated}
        surroundings = Surroundings(evacuated=evacuated)
        index = SnapshotIndex(self.snapshot(surroundings=surroundings, **changes))
        return list(stuck_server.check(index, Policy()))


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


NEWEST = Deletion(make_action(), is_newest=True)
SUCCEEDED = Deletion(make_action("Success"), is_newest=True)
UNTIMED = d.replace(make_action(), start_time=None)

STUCK: dict[str, dict[str, dict[str, t.Any]]] = {
    "deletion_to_begin_again": {
        "deleting, and the host is up": DELETING,
        "half-way": HALFWAY,
        "Nova shows no action": {**DELETING, "deletion": Deletion(None, True)},
        "the action has no time": {**DELETING, "deletion": Deletion(UNTIMED, True)},
        "changed lately": {**DELETING, "updated": LATELY, "deletion": SUCCEEDED},
    },
    "deletion_on_down_host": {
        "deleting": {**DELETING, **DOWN},
        "forced down": {**DELETING, "service": {"state": "up", "forced_down": True}},
        "soft-deleting": {**SOFT, **DOWN},
        "half-way": {**HALFWAY, **DOWN},
    },
    "deletion_without_service": {
        "deleting, and the service is gone": {**DELETING, "service": {"host": ""}}
    },
    "deletion_without_host": {"deleting without a host": {**DELETING, "host": None, "node": None}},
    "deletion_task_to_end": {"soft-deleting": SOFT},
    "deletion_cause_to_mend": {
        "failed": {**FAILED, "deletion": NEWEST, "fault": "Volume is busy."},
        "failed, and locked": {**FAILED, "deletion": NEWEST, "locked": True},
    },
}


@pytest.mark.parametrize(("reason", "fields"), list_cases(STUCK))
def test_deletion_that_does_not_end_is_found_with_its_next_step(
    site: Site, reason: str, fields: dict[str, t.Any]
) -> None:
    (finding,) = site.find(**fields)

    assert (finding.verdict, finding.subject, finding.change) == ("drifted", site.guest, None)
    assert finding.reason.id == reason
    assert site.guest in finding.reason


@pytest.mark.parametrize(
    ("fields", "deletes_again"),
    [(DELETING, False), (HALFWAY, False), (SOFT, True), ({**FAILED, "deletion": NEWEST}, True)],
    ids=str,
)
def test_only_a_deletion_that_nova_compute_resumes_needs_no_second_one(
    site: Site, fields: dict[str, t.Any], deletes_again: bool
) -> None:
    (finding,) = site.find(**fields, **DOWN)

    assert finding.reason.count("openstack server delete") == 1 + deletes_again


@pytest.mark.parametrize(("seconds", "is_found"), [("00", True), ("01", False)])
def test_deletion_is_stuck_from_the_age_of_the_option_on(
    site: Site, seconds: str, is_found: bool
) -> None:
    """The lookup is of 15:00 on the next day."""
    assert Policy().stuck_min_age == 24 * 3600

    assert bool(site.find(**DELETING, updated=f"2026-11-19T15:00:{seconds}")) is is_found


NOT_STUCK: dict[str, dict[str, t.Any]] = {
    "it has just begun": {**DELETING, "updated": LATELY},
    "just asked for": {**DELETING, "deletion": Deletion(make_action(start=LATELY), True)},
    "nobody knows since when": {**DELETING, "updated": None},
    "it has ended since": {"code": 404},
    "it lives again": {},
    "its error is not that of a deletion": {**FAILED, "deletion": Deletion(None, False)},
    "its actions are not known": FAILED,
    "something was done after it failed": {**FAILED, "deletion": Deletion(make_action(), False)},
    "the deletion has not failed": {**FAILED, "deletion": SUCCEEDED},
    "an error of a server with another task": {
        **FAILED,
        "task_state": "rebuilding",
        "deletion": NEWEST,
    },
}


@pytest.mark.parametrize("case", NOT_STUCK)
def test_deletion_that_only_looks_stuck_is_not_reported(site: Site, case: str) -> None:
    assert site.find(**NOT_STUCK[case]) == []


def test_servers_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    server = site.servers[site.guest]
    deleting = d.replace(server, task_state="deleting")
    lookups = {"a": answer("GET /servers/a", 404)}
    for uuid, row in (("b", server), ("c", d.replace(deleting, updated=LATELY)), ("d", deleting)):
        shown = DeletedServer(row, "active", "", locked=False)
        lookups[uuid] = answer(f"GET /servers/{uuid}", 200, shown)
    surroundings = Surroundings(deletions=Deletions(lookups=lookups))
    found = stuck_server.check(SnapshotIndex(site.snapshot(surroundings=surroundings)), Policy())

    assert [finding.subject for finding in found] == ["d"]


@pytest.mark.parametrize("status", [403, 500])
def test_server_that_cannot_be_looked_up_is_undecided(site: Site, status: int) -> None:
    (finding,) = site.find(code=status)

    assert finding.verdict == "undecided"
    assert finding.reason.id == "deleted_server_unread" and f"{status}" in finding.reason


def test_server_of_a_cell_that_does_not_answer_is_not_reported(site: Site) -> None:
    assert site.find(**DELETING, service={"status": "UNKNOWN", "state": None}) == []


def test_names_and_errors_are_printed_as_data(site: Site) -> None:
    (finding,) = site.find(**DELETING, fault="\x1b[31m")
    (long,) = site.find(**DELETING, fault="x" * 201)

    assert finding.reason.isprintable()
    assert f" {'x' * 199}…. " in long.reason
    assert finding.reason.id == "deletion_to_begin_again"


# Servers in their build and with other tasks


BUILD = {"status": "BUILD", "task_state": "spawning"}
STOPPING, MOVING = {"task_state": "powering-off"}, {"task_state": "migrating"}
BUSY: dict[str, dict[str, dict[str, t.Any]]] = {
    "build_without_host": {
        "scheduling": {**BUILD, "task_state": "scheduling", "host": None, "node": None},
        # Nova gives a server that was never changed the present time.
        "just changed": {**BUILD, "task_state": None, "host": None, "updated": LATELY},
    },
    "task_without_host": {
        "unshelving": {"status": "SHELVED_OFFLOADED", "task_state": "unshelving", "host": None}
    },
    "task_without_service": {"powering off": {**STOPPING, "service": {"host": ""}}},
    "task_on_live_host": {
        "powering off": STOPPING,
        "just long enough": {**STOPPING, "updated": "2026-11-19T15:00:00"},
        "in BUILD": BUILD,
    },
    "task_on_down_host": {
        "powering off": {**STOPPING, **DOWN},
        "forced down": {**STOPPING, "service": {"state": "up", "forced_down": True}},
        "in BUILD": {**BUILD, **DOWN},
    },
    "task_without_migration": {
        "moving": MOVING,
        "its host is down": {"task_state": "resize_migrating", **DOWN},
    },
}


@pytest.mark.parametrize(("reason", "fields"), list_cases(BUSY))
def test_server_that_hangs_is_found_with_its_next_step(
    site: Site, reason: str, fields: dict[str, t.Any]
) -> None:
    (finding,) = site.hang(**fields)

    assert (finding.verdict, finding.subject, finding.change) == ("drifted", site.guest, None)
    assert finding.reason.id == reason
    # A build has no guest to keep; everything else may have one.
    is_build = fields.get("status") == "BUILD"
    assert (f"openstack server delete {site.guest}" in finding.reason) is is_build
    has_host = fields.get("host", "compute-1") is not None
    assert (f"set --state active {site.guest}" in finding.reason) is (has_host and not is_build)


NOT_HANGING: dict[str, dict[str, t.Any]] = {
    "it has just begun": {**STOPPING, "updated": "2026-11-19T15:00:01"},
    "it was just requested": {**BUILD, "created": LATELY},
    "nobody knows since when": {**STOPPING, "updated": None},
    "it has no task": {},
    "its cell does not answer": {**STOPPING, "service": {"status": "UNKNOWN", "state": None}},
    "it is being deleted": DELETING,
}


@pytest.mark.parametrize("case", NOT_HANGING)
def test_server_that_only_looks_hung_is_not_reported(site: Site, case: str) -> None:
    assert site.hang(**NOT_HANGING[case]) == []


@pytest.mark.parametrize("status", ["running", "completed"])
def test_move_that_goes_on_is_no_task_without_a_migration(site: Site, status: str) -> None:
    """The finding names each hypervisor on which the guest may be."""
    site.goes(site.guest, status, type="live-migration")
    found = site.hang(**MOVING)

    assert [finding.reason.id for finding in found] == (
        [] if status == "running" else ["task_without_migration"]
    )
    assert all("look on compute-1, compute-2" in finding.reason for finding in found)


def test_nova_compute_is_not_to_be_started_where_that_destroys_a_server(site: Site) -> None:
    site.evacuated.append(site.server(site.here, site.here))
    found = [*site.hang(**STOPPING), *site.hang(**STOPPING, **DOWN)]

    assert [finding.reason.id for finding in found] == ["task_beside_evacuation"] * 2


def test_server_that_only_a_listing_shows_is_found(site: Site) -> None:
    server = d.replace(site.servers[site.guest], uuid="listed", **STOPPING)
    busy = {"listed": answer("GET /servers/detail", 200, server)}
    surroundings = Surroundings(deletions=Deletions(busy=busy))
    index = SnapshotIndex(site.snapshot(surroundings=surroundings))

    assert [one.subject for one in stuck_server.check(index, Policy())] == ["listed"]


# Resizes whose server was reset


RESIZED: dict[str, tuple[dict[str, t.Any], str]] = {
    "active": ({}, "reset_resize_to_confirm"),
    "shut off": ({"status": "SHUTOFF"}, "reset_resize_to_confirm"),
    "paused": ({"status": "PAUSED"}, "reset_resize_left"),
    "in error": ({"status": "ERROR"}, "reset_resize_left"),
    # To confirm would delete the guest.
    "on the source": ({"host": "compute-2", "node": "compute-2"}, "reset_resize_left"),
    "offloaded": ({"status": "SHELVED_OFFLOADED", "host": None}, "reset_resize_left"),
    "it waits": ({"status": "VERIFY_RESIZE"}, ""),
    "it is being confirmed": ({"task_state": "resize_confirming"}, "task_on_live_host"),
    # It was confirmed after the migrations were listed.
    "it has just changed": ({"updated": LATELY}, ""),
    "nobody knows since when": ({"updated": None}, ""),
    "its task is not shown": ({"task_known": False}, ""),
}


@pytest.mark.parametrize("case", RESIZED)
def test_resize_is_confirmed_only_where_the_guest_is_its_result(site: Site, case: str) -> None:
    fields, reason = RESIZED[case]
    move = site.alter(site.comes(site.guest, "finished"), updated_at=LONG_AGO)
    found = site.hang(**fields)

    assert [finding.reason.id for finding in found] == ([reason] if reason else [])
    if "reset" in reason:
        assert [finding.subject for finding in found] == [move]
        # After ended_migration has freed it, nothing remains.
        assert "both hosts remain" not in found[0].reason
        site.hold(move, site.there)
        assert "both hosts remain" in site.hang()[0].reason
        # Two kinds never report the same.
        index = SnapshotIndex(site.snapshot())
        assert list(unconfirmed_resize.check(index, Policy())) == []


def test_which_of_two_resizes_nova_would_confirm_is_not_certain(site: Site) -> None:
    for _number in range(2):
        site.alter(site.comes(site.guest, "finished"), updated_at=LONG_AGO)

    assert [finding.reason.id for finding in site.hang()] == ["reset_resize_left"] * 2
