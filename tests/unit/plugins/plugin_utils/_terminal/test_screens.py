"""Whole screens with their colours, compared with text files; and their width, whatever it is.

`WRITE_SCREENS=1` writes the files instead: read their differences before you commit them.
"""

import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ......plugins.module_utils._core.models.kinds import KINDS
from ......plugins.plugin_utils._hosts.hosts import format_guests, format_host
from ......plugins.plugin_utils._report.proposed_commands import (
    Context,
    Ending,
    format_commands,
    format_ending,
    format_journals,
)
from ......plugins.plugin_utils._terminal.changes import (
    format_plan,
    format_remediation,
    format_results,
)
from ......plugins.plugin_utils._terminal.lines import get_prose_width, measure_width
from ......plugins.plugin_utils._terminal.terminal import format_findings
from ...module_utils.judging import NO_MINIMUM_AGE, build_findings
from ...module_utils.situations import build_world_of_every_action

FIXTURES = Path(__file__).parents[4] / "fixtures"
FINDINGS, JOURNAL = "/out/findings.json", "/out/journal-1.jsonl"
REPORTS = {"html": "/out/report.html"}


# The playbook of each screen that is not of a cleanup.
PLAYBOOKS = {
    "ready_host": "decommission_host",
    "cleaned_hosts": "decommission_host",
    "leftovers": "cleanup_hypervisor",
    "quarantine": "cleanup_hypervisor",
}


@pytest.fixture(autouse=True)
def _started(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Start every run as a user does, by the name of the playbook."""
    monkeypatch.delenv("AWX_PRIVATE_DATA_DIR", raising=False)
    screen = request.node.callspec.params.get("name") if hasattr(request.node, "callspec") else ""
    playbook = PLAYBOOKS.get(screen, "cleanup_orphans")
    options = ImmutableDict(args=(f"osops.placement.{playbook}",), extra_vars=())
    monkeypatch.setattr(context, "CLIARGS", options)


def _read(name: str) -> t.Any:
    return json.loads((FIXTURES / "report" / name).read_text())


def _draw_check(width: int) -> list[str]:
    findings = _read("findings.json")
    for entry in findings["findings"][:2]:
        entry["commands"] = ["nova-manage placement sync_aggregates"]
    ending = Ending(REPORTS, FINDINGS, plan="/out/plan.json", check_mode=True)
    return [*format_findings(findings, FINDINGS, None, width), *format_ending(ending)]


def _draw_verbose(width: int) -> list[str]:
    return format_findings(_read("findings.json"), FINDINGS, None, width, verbose=True)


def _draw_unsound(width: int) -> list[str]:
    ending = Ending(REPORTS, FINDINGS, check_mode=True, failed=True)
    drawn = format_findings(_read("closed.json"), FINDINGS, None, width)
    return [*drawn, *format_ending(ending)]


def _draw_every_action(width: int) -> list[str]:
    """Return the screen of a finding for each action, all but one of them of chosen kinds.

    Hosts complain of them, and of what nothing explains; names and answers are hostile.
    """
    world, changes = build_world_of_every_action()
    findings = json.loads(json.dumps(build_findings(world.snapshot(**changes), NO_MINIMUM_AGE)))
    first, second, *_others = findings["findings"]
    summary = findings["summary"]
    (first["new"], first["first_seen"]) = (False, "2026-01-02T03:04:05Z")
    summary["new"][first["kind"]] -= 1
    summary["coverage"] |= {"failed_checks": ["No\x1b."], "unread": ["Ironic answered 403\x1b."]}
    for number in range(7):
        fields = {"name": f"web-{number}\x1b", "exists": True, "consumers": 1, "cores": 1}
        summary["stranded"]["quota"][f"p{number}"] = {**fields, "ram_mib": 512}
    kinds = [kind.name for kind in KINDS if kind.name != "unknown_consumer"]
    complaints: list[t.Any] = [
        {**complaint, "host": "compute-1", "count": 12, "last_seen": "2026-11-02T07:48:00Z"}
        for complaint in (
            {"kind": "not_managed", "instance": first["consumer"], "amounts": {"VCPU": 1}},
            *[{"kind": "moved_away", "instance": second["consumer"], "other_host": "b"}] * 4,
            {"kind": "moved_away", "instance": UUIDS[0]},
            {"kind": "power_state_counts", "counts": {"database": 1, "hypervisor": 2}},
            {"kind": "rpc_version_cap", "versions": {"requested": "5.0", "cap": "4.17"}},
            {"kind": "provider_conflict", "provider": {"name": "compute-9"}},
            {"kind": "of_a_newer_version"},
        )
    ]
    complaints.append(
        {"kind": "not_in_database", "host": "a", "instance": UUIDS[1], "last_seen": None}
    )
    return format_findings(findings, FINDINGS, kinds, width, complaints, verbose=True)


def _draw_outcomes(width: int) -> list[str]:
    """Return the outcomes in check mode, some of them skipped, and those of no changes at all."""
    remediation = {**_read("remediation.json"), "check_mode": True}
    nothing: t.Any = {"check_mode": False, "tally": {}, "outcomes": []}
    drawn = format_remediation(remediation, "/j\x07.jsonl", width, _read("findings.json"))
    return [*drawn, *format_remediation(nothing, None, width)]


def _draw_changes(width: int) -> list[str]:
    findings = _read("findings.json")
    ending = Ending(REPORTS, FINDINGS, journal=JOURNAL)
    drawn = format_plan(_read("plan.json"), findings, width)
    drawn += format_remediation(_read("remediation.json"), None, width, findings)
    return [*drawn, *format_ending(ending)]


def _draw_failed_write(width: int) -> list[str]:
    """Return the screen of a run whose first write failed."""
    remediation = _read("remediation.json")
    outcome = remediation["outcomes"][0]
    remediation["tally"][outcome["outcome"]] -= 1
    remediation["tally"]["failed"] += 1
    outcome |= {"outcome": "failed", "reason": "Placement answered 503: Service Unavailable."}
    ending = Ending(REPORTS, FINDINGS, journal=JOURNAL, failed=True)
    drawn = format_remediation(remediation, None, width, _read("findings.json"))
    return [*drawn, *format_ending(ending)]


UUIDS = [f"{number * 0x07A1F5C3:08x}-2a2c-4f0c-8f07-0d3a6d6f1c11" for number in range(1, 17)]
HOST = "compute-17.example.org"


def _make_host(blockers: list[t.Any]) -> t.Any:
    leftovers = []
    for uuid in UUIDS[8:15]:
        reason = f"Server {uuid} is deleted, and Nova shows its deletion."
        leftovers.append({"kind": "deleted_server", "consumer": uuid, "reason": reason})
    provider = {"uuid": UUIDS[15], "name": HOST}
    return {
        "name": HOST,
        "known": True,
        "service": {"status": "enabled", "state": "down", "disabled_reason": None},
        "nodes": [provider],
        "providers": [provider],
        "aggregates": [],
        "blockers": blockers,
        "left_over": leftovers,
    }


def _draw_blocked_host(width: int) -> list[str]:
    """Return the screen of a check of a host with each kind of blocker and advice."""
    advice = (
        "move, evacuate or delete it",
        "restore it",
        "run again",
        "confirm or revert the resize",
    )
    kinds = ("server", "server", "server", "resize", "migration", "claim", "claim", "service_up")
    blockers = []
    for number, kind in enumerate(kinds):
        reason = f"{UUIDS[number]} is in the way, for a reason that has to be read."
        reason += f" It is there: {advice[number]}." if number < len(advice) else ""
        name = f"web-{number}" if kind == "server" else ""
        blockers.append({"kind": kind, "subject": UUIDS[number], "name": name, "reason": reason})
    reason = "8 blockers (3 server, 5 others), 7 removable leftovers."
    results = [{"outcome": "blocked", "subject": HOST, "reason": reason}]
    drawn = format_host(_make_host(blockers), "/out/host.json", width)
    return [*drawn, *format_results(results, get_prose_width(width))]


def _draw_ready_host(width: int) -> list[str]:
    reason = (
        "nothing was changed. Without --check: service disabled, 7 leftovers removed, "
        "service and 1 provider deleted."
    )
    results = [{"outcome": "ready", "subject": HOST, "reason": reason}]
    following = {
        "playbook": "decommission_host",
        "variables": {"host_decommission_target": HOST},
        "check": False,
    }
    drawn = format_host(_make_host([]), "/out/host.json", width)
    drawn += format_results(results, get_prose_width(width))
    return [*drawn, *format_commands(None, following, Context())]


def _draw_cleaned_hosts(width: int) -> list[str]:
    results = []
    for number in (18, 17):
        name = f"compute-{number}"
        reason = "service disabled, 2 leftovers removed."
        results.append({"outcome": "cleaned", "subject": name, "reason": reason})
    drawn = format_results(results, get_prose_width(width))
    journals = ["/out/compute-17/journal-1.jsonl", JOURNAL]
    return [*drawn, *format_journals(journals, Context(connection={}))]


def _make_guest(number: int, host: str) -> t.Any:
    uuid, is_domain = UUIDS[number], number % 2 == 0
    name = f"instance-{number:08x}" if is_domain else uuid
    guest = {"state": "shut off"} if is_domain else {"size_bytes": (number + 1) * 7 * 1024**3}
    return {
        "kind": "leftover_domain" if is_domain else "leftover_directory",
        "uuid": uuid,
        "name": name,
        "host": host,
        "server": {"name": f"web-{number}"} if number < 5 else None,
        "reason": f"Somebody deleted server {uuid} at 2026-10-2{number % 5}T03:45:26.173944.",
        "guest": guest,
    }


def _draw_leftovers(width: int) -> list[str]:
    """Return the screen of a run without kinds on two hypervisors."""
    entries = [_make_guest(number, f"compute-{17 + number // 5}") for number in range(16)]
    coverage = {"hosts": 2, "domains": 20, "directories": 21, "failed_checks": []}
    verdicts = {"orphaned": 8, "protected": 7, "undecided": 1}
    document: t.Any = {
        "finished_at": "2026-10-25T20:13:51Z",
        "summary": {"verdicts": verdicts, "coverage": coverage},
        "findings": entries[:8],
        "undecided": entries[15:],
        "protected": entries[8:15],
    }
    reason = (
        "4 domains and 4 directories left over. Nothing was changed, because these kinds are "
        "not chosen; 1 undecided."
    )
    results = [{"outcome": "found", "subject": "2 hypervisors", "reason": reason}]
    following = {
        "playbook": "cleanup_hypervisor",
        "variables": {"hypervisor_cleanup_remediate_kinds": ["leftover_domain"]},
        "check": True,
    }
    drawn = format_guests(document, "/out/guests.json", ["leftover_directory"], width)
    drawn += format_results(results, get_prose_width(width))
    return [*drawn, *format_commands(None, following, Context())]


def _draw_quarantine(width: int) -> list[str]:
    """Return the last lines of a run that undefined a domain and quarantined a directory."""
    backup, quarantine = "/var/lib/osops-placement", "/var/lib/nova/instances/.quarantine"
    results = [
        {
            "outcome": "undefined",
            "subject": "compute-17",
            "reason": f"domain {UUIDS[0]} (web-0), its XML is in {backup}",
        },
        {
            "outcome": "quarantined",
            "subject": "compute-17",
            "reason": f"directory {UUIDS[0]} (web-0) to {quarantine}",
        },
        {
            "outcome": "failed",
            "subject": "compute-18",
            "reason": f"directory {UUIDS[1]}: a file in it is open.",
        },
    ]
    undo: dict[str, t.Any] = {
        "host": "compute-17",
        "module": "hypervisor_guest",
        "arguments": {"uuid": UUIDS[0], "domain": "defined", "directory": "present"},
        "become": True,
        "others": 0,
    }
    drawn = format_results(results, get_prose_width(width))
    return [*drawn, *format_commands(undo, None, Context())]


SCREENS = {
    "blocked_host": _draw_blocked_host,
    "ready_host": _draw_ready_host,
    "cleaned_hosts": _draw_cleaned_hosts,
    "leftovers": _draw_leftovers,
    "quarantine": _draw_quarantine,
    "check": _draw_check,
    "verbose": _draw_verbose,
    "unsound": _draw_unsound,
    "every_action": _draw_every_action,
    "outcomes": _draw_outcomes,
    "changes": _draw_changes,
    "failed_write": _draw_failed_write,
}


def _format_with_tone(line: str) -> str:
    """Return a line as the files have it, after the name of what its colour stands for."""
    return f"{getattr(line, 'tone', ''):8}|{line}\n"


@pytest.mark.parametrize("name", SCREENS)
def test_screen_is_that_of_its_file(name: str) -> None:
    shown = "".join(map(_format_with_tone, SCREENS[name](120)))
    path = FIXTURES / "terminal" / f"{name}.txt"
    if os.environ.get("WRITE_SCREENS"):
        path.write_text(shown)

    assert shown == path.read_text()


@pytest.mark.parametrize("name", SCREENS)
def test_only_what_is_copied_is_wider_than_the_screen(name: str) -> None:
    for width in range(80, 200, 3):
        wide = [line for line in SCREENS[name](width) if measure_width(line) > width]

        assert all(line.startswith(("Next: ", "Undo: ")) for line in wide), (width, wide)
