"""How servers would leave a host, and what became of them: on a terminal and for other jobs."""

import typing as t
from pathlib import Path

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ......plugins.plugin_utils._hosts.drain import (
    build_drain_artifact,
    format_departures,
    format_drain_ending,
    format_drain_plan,
    format_drain_result,
)
from ......plugins.plugin_utils._report.proposed_commands import ENVIRONMENT
from ..hostile import HOSTILE

UUID = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
COPIED = "its disk is copied with it"
PARKED = ("it is VERIFY_RESIZE", "have its owner confirm or revert the resize")
SERVICE = {"status": "disabled", "disabled_reason": "new memory"}


def predict(name: str, how: str = "live", to: str | None = "compute-9", **changes: t.Any) -> t.Any:
    return {
        "uuid": UUID,
        "name": name,
        "status": "ACTIVE",
        "flavor": "m1.small",
        "how": how,
        "hosts": ["compute-3", "compute-9"],
        "to": to,
        "reason": "it is ACTIVE",
        "advice": "",
        "warnings": [COPIED],
        **changes,
    }


def stay(name: str, reason: tuple[str, str] = PARKED, **changes: t.Any) -> t.Any:
    left = {"reason": reason[0], "advice": reason[1], "warnings": [], **changes}
    return predict(name, "stays", None, **left)


def plan(*servers: t.Any, **changes: t.Any) -> t.Any:
    return {
        "host": "compute-17",
        "servers": list(servers),
        "warnings": [],
        "movable": 1,
        "fitting": 1,
        "summary": "1 of 2 servers on compute-17 can leave.",
        **changes,
    }


def outcome(name: str, what: str = "moved", how: str = "live", **changes: t.Any) -> t.Any:
    return {
        "uuid": UUID,
        "name": name,
        "outcome": what,
        "how": how,
        "source": "compute-17",
        "to": "compute-9" if what == "moved" else None,
        "may_be_on": [],
        "seconds": 74,
        "attempts": 1,
        "reason": "" if what == "moved" else f"why it is {what}",
        **changes,
    }


def result(*outcomes: t.Any, **changes: t.Any) -> t.Any:
    return {
        "outcomes": list(outcomes),
        "empty": True,
        "remaining": [],
        "migrations": [],
        "occupants": [],
        **changes,
    }


# The biggest problems come first, and each reason once.
PLAN = f"""
6 servers on compute-17

HOW    SERVER     UUID{" " * 34}STATUS   FLAVOR    TO
stays  resized-1  {UUID}  ACTIVE   m1.small
stays  resized-2  {UUID}  ACTIVE   m1.small
    why      it is VERIFY_RESIZE: have its owner confirm or revert the resize
stays  big        {UUID}  ACTIVE   m1.small
    why      it needs 512 GiB of memory: add a host
live   crowded    {UUID}  ACTIVE   m1.small  no room
    why      there is room for it alone (compute-3, compute-9), but not for all servers together
cold   off-1      {UUID}  SHUTOFF  m1.small  compute-9
live   web-1      {UUID}  ACTIVE   m1.small  compute-9

web-1, off-1, crowded: {COPIED}

1 of 2 servers on compute-17 can leave."""

EMPTY_PLAN = """
0 servers on compute-17

No server is on compute-17."""

# Only servers that were not moved have a line, with the words of Nova.
UNMOVED = f"""
OUTCOME    SERVER  UUID{" " * 34}HOW    IS ON
failed     db-7    {UUID}  live   compute-17
    why      No valid host was found.
under way  slow    {UUID}  live   compute-3
    why      why it is under_way
left       parked  {UUID}  stays  compute-17
    why      why it is left
gone       away    {UUID}  stays
    why      why it is gone

Outcome: 3 moved (2 live, 1 cold), 1 gone, 1 left, 1 failed, 1 under way.

compute-17 is not empty: 3 servers, 1 migration from or to it, 2 other reasons."""

MOVED = """
Outcome: 2 moved (2 live).

compute-17 is empty."""

DEPARTURES = f"""
Moves back:

SERVER  UUID{" " * 34}FROM       TO
web-1   {UUID}  compute-9  compute-17

OUTCOME  SERVER  UUID{" " * 34}HOW    IS ON
left     parked  {UUID}  stays  compute-9
    why      why it is left

compute-17 is in service."""

RETURNED = """
Outcome: 1 moved (1 live).

compute-17 stays disabled, because no drain has disabled it (new memory)."""


def test_plan_is_shown() -> None:
    servers = [
        predict("web-1"),
        predict("off-1", "cold", status="SHUTOFF"),
        stay("big", ("it needs 512 GiB of memory", "add a host")),
        stay("resized-1"),
        predict("crowded", to=None),
        stay("resized-2"),
    ]
    empty = plan(summary="No server is on compute-17.")

    assert format_drain_plan(plan(*servers), 120) == PLAN.split("\n")
    assert format_drain_plan(empty, 120) == EMPTY_PLAN.split("\n")


def list_tones(lines: list[str]) -> list[t.Any]:
    return [getattr(line, "tone", None) for line in lines]


def test_warnings_about_the_host_come_before_those_about_servers() -> None:
    zone = "Availability zone az1 is left without a host."
    servers = [predict(f"web-{number}") for number in range(5)]

    lines = format_drain_plan(plan(*servers, warnings=[zone]), 120)

    assert lines[-5:-2] == ["", zone, f"web-0, web-1, web-2 and 2 more: {COPIED}"]
    assert list_tones(lines)[-4:] == ["warning", "warning", None, None]


def test_reason_of_many_servers_is_shown_once() -> None:
    reason = ("the compute service is down", "set fenced to true")

    lines = format_drain_plan(plan(*(stay(f"web-{number}", reason) for number in range(9))), 80)

    assert " ".join(lines).count(reason[1]) == 1


def test_outcomes_are_shown() -> None:
    outcomes = [
        outcome("web-1"),
        outcome("web-2"),
        outcome("off-1", how="cold"),
        outcome("parked", "left", "stays"),
        outcome("away", "gone", "stays"),
        outcome("slow", "under_way", to="compute-3"),
        outcome("db-7", "failed", reason="No valid host was found."),
    ]
    counts: dict[str, t.Any] = {"remaining": [UUID] * 3, "migrations": [{}], "occupants": [{}] * 6}

    lines = format_drain_result(result(*outcomes, empty=False, **counts), "compute-17", 120)

    assert lines == UNMOVED.split("\n")
    assert list_tones(lines)[2:9:2] == ["error", "warning", "warning", None]
    moved = result(outcome("a"), outcome("b"))
    assert format_drain_result(moved, "compute-17", 120) == MOVED.split("\n")
    assert format_drain_result(result(), "compute-17", 120) == ["", "compute-17 is empty."]


def test_a_guest_that_may_be_on_two_hosts_is_shown_on_both() -> None:
    broken = outcome("db-7", "failed", may_be_on=["compute-17", "compute-3"])

    lines = format_drain_result(result(broken, empty=False, remaining=[UUID]), "compute-17", 120)

    assert f"failed   db-7    {UUID}  live  compute-17 or compute-3" in lines


def test_returned_host_says_how_its_service_is() -> None:
    departures = [{"server": UUID, "name": "web-1", "source": "compute-17", "to": "compute-9"}]
    back = {**result(outcome("web-1", source="compute-9", to="compute-17")), "service": SERVICE}
    parked = [outcome("parked", "left", "stays", source="compute-9")]
    planned = {"departures": departures, "service": {"status": "enabled"}, "outcomes": parked}

    assert format_departures(planned, "compute-17", 120) == DEPARTURES.split("\n")
    shown = format_drain_result({**back, "departures": departures}, "compute-17", 120)
    assert shown == RETURNED.split("\n")


def test_a_host_whose_nova_compute_is_down_is_not_in_service() -> None:
    service = {"status": "enabled", "state": "down"}
    planned = {"departures": [], "service": service, "outcomes": []}

    (line,) = filter(None, format_departures(planned, "compute-17", 120))

    assert "nova-compute is down" in line and "in service" not in line


def draw_all(name: str, width: int) -> list[str]:
    """Return everything that is drawn, with this name wherever somebody can choose one."""
    servers = [
        predict(name, to=name, flavor=name, status=name, warnings=[name]),
        stay(name, (name, name)),
        predict(name, to=None, hosts=[name]),
    ]
    departures = [{"server": UUID, "name": name, "source": name, "to": name}]
    service = {"status": "disabled", "disabled_reason": name}
    rest = result(outcome(name, "failed", reason=name), empty=False, remaining=[UUID])
    return [
        *format_drain_plan(plan(*servers, host=name, warnings=[name], summary=name), width),
        *format_drain_result(rest, name, width),
        *format_departures({**rest, "departures": departures, "service": service}, name, width),
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_on_their_lines(name: str) -> None:
    lines = draw_all(HOSTILE[name], 120)

    for line in lines:
        assert line.isprintable()
        line.encode("utf-8")
    table = [line for line in lines if line.startswith(("live", "stays", "failed"))]
    assert len(table) == 5


@pytest.mark.parametrize("width", [80, 120, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, draw_all("a-name-of-some-length.example.org", width))) <= width


ROOT = Path(__file__).parents[5]
TARGET = "host_decommission_target=compute-17"
DRAIN = f"ansible-playbook osops.placement.drain_host -e {TARGET}"
BACK = f"{DRAIN} -e host_decommission_return=true -e host_decommission_move_back=true"
DECOMMISSION = f"ansible-playbook osops.placement.decommission_host -e {TARGET} --check"
JOURNAL = "/out/moves-1.jsonl"
FULL = {"empty": False, "changed": True, "journal": JOURNAL}


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Set the command line of Ansible; without a call, only the host was named."""
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)

    def started(playbook: str, extra_vars: tuple[str, ...] = (TARGET,)) -> None:
        options = ImmutableDict(args=(playbook,), extra_vars=extra_vars)
        monkeypatch.setattr(context, "CLIARGS", options)

    started("osops.placement.drain_host")
    return started


def end(result: dict[str, t.Any], check_mode: bool = False) -> list[str]:
    return format_drain_ending(result, "compute-17", check_mode)


PREDICTED = {**FULL, "journal": None}
UNCHANGED = "Check mode: nothing was changed."
STAGE = ("osops.placement.decommission_host", (TARGET, "host_decommission_stages=drain"))

# A result, whether it is a prediction, and the last lines.
ENDINGS: dict[str, tuple[dict[str, t.Any], bool, list[str]]] = {
    "servers are left": (
        FULL,
        False,
        [f"Journal: {JOURNAL}", f"Undo:    {BACK}", f"Next:    {DRAIN}"],
    ),
    "empty": ({**PREDICTED, "empty": True}, False, [f"Next:    {DECOMMISSION}"]),
    "predicted": (PREDICTED, True, [UNCHANGED, f"Next:    {DRAIN}"]),
    "nothing would move": ({**PREDICTED, "changed": False}, True, [UNCHANGED]),
    "returned": (
        {"departures": [], "changed": True, "journal": JOURNAL},
        False,
        [f"Journal: {JOURNAL}"],
    ),
}


@pytest.mark.parametrize(("result", "check_mode", "lines"), ENDINGS.values(), ids=ENDINGS)
def test_last_lines_lead_to_what_is_next(
    result: dict[str, t.Any], check_mode: bool, lines: list[str]
) -> None:
    assert end(result, check_mode) == ["", *lines]


def test_other_options_are_repeated(start: t.Callable[..., None]) -> None:
    start("osops.placement.drain_host", (f"{TARGET},b host_decommission_cold=active", "@file"))

    assert end(FULL)[-1].endswith(f" -e host_decommission_cold=active -e @file -e {TARGET}")
    start("osops.placement.drain_host", (TARGET, "host_decommission_auth=secret"))
    assert f"run osops.placement.drain_host with {TARGET}" in end(FULL)[-1]


def test_path_of_a_playbook_is_kept(start: t.Callable[..., None]) -> None:
    start(str(ROOT / "playbooks" / "drain_host.yml"))

    (_empty, last) = end({**FULL, "empty": True, "journal": ""})

    assert last.startswith(f"Next:    ansible-playbook {ROOT}/playbooks/decommission_host.yml -e ")


def test_stage_of_a_decommissioning_is_followed_by_the_others(start: t.Callable[..., None]) -> None:
    start(*STAGE)

    assert end(FULL) == ["", f"Journal: {JOURNAL}", f"Undo:    {BACK}"]


def test_job_of_awx_shows_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")

    assert end(FULL) == ["", f"Journal: {JOURNAL}"]


def test_name_of_a_host_is_quoted() -> None:
    lines = format_drain_ending(FULL, "a; rm -rf b", check_mode=False)

    assert lines[-1].endswith("""-e '{"host_decommission_target": "a; rm -rf b"}'""")


LEFT: dict[str, t.Any] = {
    "empty": False,
    "remaining": [UUID],
    "journal": "/out/moves-1.jsonl",
    "packed": "osops.placement.run:1:…",
}
NOTHING = {"empty": False, "remaining": [], "outcomes": {}, "journal": "", "packed": ""}


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize(
    ("result", "entry"),
    [
        # No text from the cloud is in it.
        (
            {**LEFT, "tally": {"moved": 3}, "outcomes": [{"name": "a name that a user chose"}]},
            {**LEFT, "outcomes": {"moved": 3}},
        ),
        ({"msg": "refused"}, NOTHING),
    ],
)
def test_artifact_has_what_is_left(
    result: dict[str, t.Any], entry: dict[str, t.Any], check_mode: bool
) -> None:
    expected = {"host": "compute-17", "check_mode": check_mode, **entry}

    found = build_drain_artifact(result, "compute-17", check_mode=check_mode)

    assert found == {"host_decommission_drained": [expected]}
