"""Hosts, and leftovers on hypervisors, as lines for a terminal."""

import typing as t

import pytest

from ......plugins.plugin_utils._hosts.hosts import format_guests, format_host
from ......plugins.plugin_utils._terminal import lines
from ..hostile import HOSTILE

RECORD = "/var/lib/placement/host.json"
PATH = "/var/lib/placement/guests.json"
CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sentences be as wide as the terminal, so that none of them wraps."""
    monkeypatch.setattr(lines, "MAX_PROSE", 10_000)


def _host(name: str = "compute-17", **changes: t.Any) -> dict[str, t.Any]:
    """Return a host with a blocking server and a leftover, all with that name."""
    provider = {"uuid": CONSUMER, "name": name}
    return {
        "name": name,
        "host": name,
        "known": True,
        "service": {"host": name, "status": "disabled", "state": "down", "disabled_reason": name},
        "nodes": [provider],
        "providers": [{**provider, "name": f"{name}_port"}, provider],
        "aggregates": [{"uuid": CONSUMER, "name": name, "zone": name}],
        "servers": [{"uuid": CONSUMER, "name": name, "status": "ACTIVE", "task_state": None}],
        "migrations": [],
        "left_over": [
            {
                "id": "deleted_server/x",
                "kind": "deleted_server",
                "consumer": CONSUMER,
                "reason": f"{name} is deleted.",
            }
        ],
        "blockers": [
            {
                "kind": "server",
                "subject": CONSUMER,
                "name": name,
                "reason": f"Server {name} is on it.",
                "stops": "disable",
            }
        ],
        **changes,
    }


def _agent(**changes: t.Any) -> dict[str, t.Any]:
    return {"type": "L3 agent", "alive": False, "resources": [], **changes}


ROUTERS = [{"kind": "router", "uuid": CONSUMER, "name": "edge"}] * 2
CINDER = {
    "binary": "cinder-volume",
    "host": "compute-17@lvm",
    "status": "enabled",
    "state": "down",
    "command": "cinder-manage service remove cinder-volume compute-17@lvm",
}
PARTS = f"""
compute-17
    service  disabled, down (compute-17)
    nodes    compute-17 ({CONSUMER})
    tree     compute-17_port ({CONSUMER}), compute-17 ({CONSUMER})
    in       compute-17 ({CONSUMER})"""
BLOCKED = f"""

Blocked by:
server                 {CONSUMER}  compute-17
    why      Server compute-17 is on it."""
LEFT_OVER = f"""

Removable leftovers:
deleted_server         {CONSUMER}
    why      compute-17 is deleted."""
UNKNOWN = """
compute-17: neither Nova nor Placement knows it."""

SCREENS: dict[str, tuple[dict[str, t.Any], str]] = {
    "blocked": ({}, PARTS + BLOCKED + LEFT_OVER),
    "ready": ({"blockers": [], "left_over": []}, f"{PARTS}\n\nReady to decommission."),
    "without a service": (
        {"service": None},
        PARTS.replace("disabled, down (compute-17)", "none") + BLOCKED + LEFT_OVER,
    ),
    "with agents and other services": (
        {
            "agents": [_agent(alive=True, resources=ROUTERS), _agent(resources=None)],
            "other_services": [CINDER],
            "warnings": ["compute-17 is the last host of aggregate ssd."],
        },
        f"""{PARTS}
    agents   L3 agent (alive, serves 2 routers), L3 agent (dead)
    also     cinder-volume of compute-17@lvm (enabled, down) is left alone. To remove it:
             cinder-manage service remove cinder-volume compute-17@lvm
    note     compute-17 is the last host of aggregate ssd.{BLOCKED}{LEFT_OVER}""",
    ),
    "unknown": ({"known": False}, UNKNOWN),
    "unknown, with agents": (
        {"known": False, "agents": [_agent()]},
        f"{UNKNOWN}\n    agents   L3 agent (dead){BLOCKED}",
    ),
}


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(("changes", "screen"), SCREENS.values(), ids=SCREENS)
def test_host_is_shown_with_its_contents_and_blockers(
    changes: dict[str, t.Any], screen: str
) -> None:
    assert format_host(_host(**changes), RECORD, 1000) == screen.split("\n")


def test_hundred_of_many_blockers_are_shown() -> None:
    many = _host(blockers=_host()["blockers"] * 103)

    for verbose in (False, True):
        shown = format_host(many, RECORD, 100, verbose)

        assert sum(line.startswith("server  ") for line in shown) == 100
        assert f"… and 3 more in {RECORD}" in shown


def _guests(name: str = "web-1", **changes: t.Any) -> dict[str, t.Any]:
    """Return a domain and a directory of a server with that name.

    Their host and their own names are the same.
    """
    entry = {
        "uuid": CONSUMER,
        "host": name,
        "name": name,
        "server": {"name": name},
        "reason": f"Server {name} is deleted.",
    }
    domain = {**entry, "id": "d", "kind": "leftover_domain", "guest": {"state": "shut off"}}
    directory = {
        **entry,
        "id": "f",
        "kind": "leftover_directory",
        "guest": {"size_bytes": 3 * 1024**3},
    }
    coverage = {"hosts": 1, "domains": 4, "directories": 5, "failed_checks": []}
    found = {
        "finished_at": "2026-10-25T20:13:51Z",
        "summary": {
            "verdicts": {"orphaned": 2, "protected": 1, "undecided": 0},
            "coverage": coverage,
        },
        "findings": [domain, directory],
        "protected": [directory],
        "undecided": [],
    }
    return {**found, **changes}


GUESTS = f"""
Leftovers on 1 hypervisor at 2026-10-25T20:13:51Z

leftover_domain        {CONSUMER}  web-1
    host     web-1, web-1
    why      Server web-1 is deleted.
    write    undefine the domain

leftover_directory     {CONSUMER}  web-1
    host     web-1, web-1, 3.0 GiB
    why      Server web-1 is deleted.
    could    move the directory to the quarantine; not now: \
leftover_directory is not among the kinds to remediate

Protected, not changed:
leftover_directory     {CONSUMER}  web-1
    host     web-1, web-1, 3.0 GiB
    why      Server web-1 is deleted.

Of 4 domains and 5 directories: 2 orphaned, 1 protected, 0 undecided."""


@pytest.mark.parametrize("failed", [[], ["A cell is not answering."]])
def test_leftovers_on_hypervisors_are_shown_with_the_planned_change(failed: list[str]) -> None:
    found = _guests()
    found["summary"]["coverage"]["failed_checks"] = failed

    shown = format_guests(found, PATH, ["leftover_domain"], 1000)

    assert shown == [*GUESTS.split("\n"), *(f"NOTHING MAY BE CHANGED: {one}" for one in failed)]


@pytest.mark.parametrize("many", [1, 6])
def test_running_leftover_is_red_and_offered_no_change(many: int) -> None:
    found = _guests()
    (domain, directory) = found["findings"]
    running = {**domain, "kind": "running_leftover", "reason": "Two guests."}
    found["findings"] = [running, *[directory] * many]

    shown = format_guests(found, PATH, ["leftover_directory"], 200)

    (row,) = (line for line in shown if line.startswith("running_leftover  "))
    red = [line for line in shown if getattr(line, "tone", None) == lines.ERROR]
    assert row in red and shown.index(row) < 6
    assert "undefine" not in row and not any("not now" in line for line in red)
    assert not any("running_leftover is not among" in line for line in shown)


def test_a_reason_that_the_task_fails_with_is_not_shown_before() -> None:
    found = _guests()
    found["summary"]["coverage"]["failed_checks"] = ["Down.", "Wrong region."]

    left = lines.leave_out_reasons(found, "Nothing was changed. Down.")

    assert left["summary"]["coverage"]["failed_checks"] == ["Wrong region."]
    assert lines.leave_out_reasons(found, "") == found


def _with_agents(name: str) -> dict[str, t.Any]:
    service = dict.fromkeys(("binary", "host", "status", "state", "command"), name)
    return _host(name, agents=[_agent(type=name)], other_services=[service], warnings=[name])


# What is drawn with a name that somebody in the cloud has chosen.
DRAWN: dict[str, t.Callable[[str, int], list[str]]] = {
    "host": lambda name, width: format_host(_host(name), RECORD, width),
    "unknown host": lambda name, width: format_host(_host(name, known=False), RECORD, width),
    "host with agents": lambda name, width: format_host(_with_agents(name), RECORD, width),
    "guests": lambda name, width: format_guests(_guests(name), PATH, [], width),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_stay_on_their_lines_and_in_the_width(
    draw: t.Callable[[str, int], list[str]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = draw(name, 80)

    assert shown and all(line.isprintable() and len(line) <= 80 for line in shown)
    for line in shown:
        line.encode("utf-8")
    # Where sentences are as wide as the terminal, none of them wraps.
    monkeypatch.setattr(lines, "MAX_PROSE", 10_000)
    assert len(draw(name, 10_000)) == len(draw("x", 10_000))
