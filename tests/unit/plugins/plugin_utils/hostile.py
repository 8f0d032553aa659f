"""Names that are code, markup or nonsense somewhere, and a detection with them."""

import json
import typing as t

from .....plugins.module_utils._core.findings.sightings import History
from .....plugins.module_utils._core.options.policy import Policy
from .....plugins.plugin_utils._report.view import Report
from ..module_utils.judging import build_findings
from ..module_utils.world import World

HOSTILE = {
    "template": "{{ lookup('pipe', 'id') }}{% raw %}",
    "quotes": "a'b\"c`d",
    "newlines": "a\nb\r\nc\vd\fe\x85f\u2028g\u2029h",
    "tab and backspace": "a\tb\x08c",
    "escape sequences": "\x1b[2J\x1b]0;title\x07\x9b31m",
    "NUL": "a\x00b",
    "right to left": "a\u202eb\u2066c\u200fd\u061ce",
    "invisible": "a\u200bb\u00adc\ufeffd\xa0e",
    "half a surrogate pair": "a\udc80b",
    "255 characters": "x" * 255,
    "script": "<script>alert(1)</script>]]>&amp;<!--",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd()",
    "minus": "-2+3",
    "at": "@SUM(1)",
    "wide formula": "\uff1dcmd()",
    "formula behind spaces": "  =cmd()",
    "tab formula": "\t=cmd()",
    "bars": "a|b\\|c\\\\|d\\\\\\|e",
    "backslash at the end": "a\\",
    "ticks": "``a```b`",
    "links": "[x](https://evil.example) ![y](//evil.example/z) www.evil.example user@evil.example https://evil.example",
    "mentions": "@everyone @channel <!channel> <@U1> #1 !2 team/x#3 :smile: ~y $z$ %a &b",
    "emphasis": "*a* _b_ ~~c~~ # d\n> e",
}


def hostile(name: str) -> World:
    """Return a cloud with an orphan, a protected and an undecided consumer.

    Their servers have this `name`, on a host of this `name`.
    """
    world = World()
    here, there = world.host(name), world.host("compute-2")
    world.delete(world.server(here, here, name=name))
    world.server(there, here, there, name=name)
    world.server(None, here, status="BUILD", task_state="scheduling", name=name)
    world.server(here, there, name=name, node="elsewhere")
    return world


def told(world: World, known: dict[str, str] | None = None, **changes: t.Any) -> t.Any:
    """Return the contents of `findings.json` about a world."""
    return json.loads(
        json.dumps(
            build_findings(world.snapshot(**changes), Policy(), history=History(known or {}))
        )
    )


def hostile_report(name: str) -> Report:
    """Return a report in which everything has that name.

    The plan, the outcomes and the failures have it too.
    """
    findings = told(hostile(HOSTILE[name]))
    findings["summary"]["coverage"]["failed_checks"] = [HOSTILE[name]]
    findings["summary"]["coverage"]["unread"] = [HOSTILE[name]]
    for quota in findings["summary"]["stranded"]["quota"].values():
        quota.update({"name": HOSTILE[name], "exists": True})
    findings["cloud"]["region"] = HOSTILE[name]
    findings["summary"]["stranded"]["resource_classes"][HOSTILE[name]] = 1
    return Report(
        findings,
        plan=plan_of(findings),
        remediation=remediation_of(findings, "skipped", HOSTILE[name]),
        failure=HOSTILE[name],
    )


def plan_of(findings: t.Any) -> dict[str, t.Any]:
    changes = [
        {"finding": entry["id"], "kind": entry["kind"], **entry["change"]}
        for entry in findings["findings"]
        if entry["change"]
    ]
    return {"detected_at": findings["finished_at"], "changes": changes}


def remediation_of(
    findings: t.Any, outcome: str, reason: str = "", check_mode: bool = False
) -> dict[str, t.Any]:
    """Return the contents of `remediation.json` when all changes had the same outcome."""
    outcomes = [
        {**change, "outcome": outcome, "reason": reason} for change in plan_of(findings)["changes"]
    ]
    tally = dict.fromkeys(("removed", "reduced", "rewritten", "created", "skipped", "failed"), 0)
    return {
        "check_mode": check_mode,
        "tally": {**tally, outcome: len(outcomes)},
        "outcomes": outcomes,
    }
