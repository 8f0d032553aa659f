"""Reports to open.

One of the minicloud, the same with many more findings, and the same with hostile names.
"""

import copy
import dataclasses as d
import json
import re
import typing as t
import uuid
from pathlib import Path

from ...plugins.plugin_utils._report.view import Report

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "report"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# The kinds that the run behind the fixtures was allowed to remediate.
KINDS = (
    "deleted_server",
    "ended_migration",
    "deleted_migration",
    "evacuated_source",
    "extra_host",
    "unhosted_server",
    "wrong_amount",
    "wrong_owner",
)

HOSTILE = {
    "script": "<script>window.__pwned=1;alert(1)</script>",
    "image": '<img src=x onerror="window.__pwned=1;alert(1)">',
    "end of script": "</script><script>window.__pwned=1</script>",
    "end of others": "</title></style></noscript></textarea><svg onload=alert(1)>",
    "comment": "<!--<script>",
    "CDATA": "]]><![CDATA[",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "link": "javascript:alert(1)",
    "template": "{{ 7*7 }}{% raw %}${7*7}$placeholder",
    "entity": "&lt;b&gt;&#60;",
    "formula": "=cmd|' /C calc'!A0",
    "pipe": "a|b",
    "newlines": "a\nb\r\nc\u2028d\u2029e",
    "escape sequences": "\x1b[2J\x1b]0;title\x07\x9b31m",
    "NUL": "a\x00b",
    "right to left": "a\u202eb\u2066c\u200fd\u061ce",
    "invisible": "a\u200bb\u00adc\ufeffd\xa0e",
    "half a surrogate pair": "a\udc80b\ud83d",
    "255 characters": "x" * 255,
    "255 wide characters": "\U0001f600" * 255,
    "key of every object": "__proto__",
}

# Fields whose text comes from users and from other services.
_CHOSEN = {"name", "root_name", "project", "user", "host", "node", "region"}
_CHOSEN |= {"reason", "disabled_reason", "request", "placement_endpoint"}


def remediated() -> Report:
    """The minicloud with orphans, and the outcome of their remediation.

    One of them was changed by somebody else meanwhile.
    """
    remediation, complaints = _read("remediation"), _read("complaints")["records"]
    read = _read("findings"), KINDS, _read("plan"), remediation
    return Report(*read, remediation["journal"], complaints)


def planned() -> Report:
    """The same report before anything is written."""
    return Report(_read("findings"), KINDS, _read("plan"))


def closed() -> Report:
    """The minicloud with a cell out of reach."""
    return Report(_read("closed"), KINDS)


def many(count: int) -> Report:
    """The remediated cloud, repeated until it has at least `count` entries.

    Each repetition is about other consumers.
    """
    report = remediated()
    parts = ("findings", "undecided", "protected", "capacity")
    whole = {key: report.findings[key] for key in parts}
    whole |= {"changes": report.plan["changes"], "outcomes": report.remediation["outcomes"]}
    text = json.dumps(whole)
    hosts = {provider["name"] for provider in report.findings["capacity"]}
    longest_first = sorted(hosts, key=len, reverse=True)
    patterns = [rf"(?<=[\" ]){re.escape(host)}(?=[\" ,.])" for host in longest_first]
    found = re.compile("|".join([_UUID.pattern, *patterns]))
    times = -(-count // len(entries_of(report)))
    grown: dict[str, list[t.Any]] = {key: [] for key in whole}
    for number in range(times):
        again = found.sub(lambda match, number=number: _another(match.group(), number), text)
        for key, entries in json.loads(again).items():
            grown[key] += entries
    findings = {**copy.deepcopy(report.findings), **{key: grown[key] for key in parts}}
    summary = report.findings["summary"]
    findings["summary"] = {**_times(summary, times), "coverage": summary["coverage"]}
    share = summary["stranded"]["share_of_claimed"]
    findings["summary"]["stranded"]["share_of_claimed"] = share
    return d.replace(
        report,
        findings=findings,
        plan={**report.plan, "changes": grown["changes"]},
        remediation={**report.remediation, "outcomes": grown["outcomes"]},
    )


def named(name: str) -> Report:
    """The remediated cloud with `name` wherever users and other services choose names.

    A soundness check that names it fails as well.
    """
    report = remediated()
    findings = _named(report.findings, name)
    findings["summary"]["coverage"].update(complete=False, failed_checks=[name])
    for key in ("providers", "projects"):
        held = findings["summary"]["stranded"][key]
        findings["summary"]["stranded"][key] = {name: next(iter(held.values()))}
    for entry in findings["findings"][:3]:
        entry.update(id=f"{entry['kind']}/{name}", new=True, first_seen=name)
    findings["scope"]["hosts"] = [name]
    complaints = [_named(record, name) for record in report.complaints]
    return d.replace(
        report,
        findings=findings,
        remediation=_named(report.remediation, name),
        journal=name,
        complaints=[*complaints, _stray(complaints[0], name)],
    )


def entries_of(report: Report) -> list[dict[str, t.Any]]:
    """Return all entries, whatever their verdict."""
    verdicts = ("findings", "undecided", "protected")
    return [entry for key in verdicts for entry in report.findings[key]]


def _read(name: str) -> t.Any:
    return json.loads((_FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


def _another(text: str, number: int) -> str:
    if _UUID.fullmatch(text):
        return str(uuid.uuid5(uuid.UUID(text), str(number)))
    return f"{text}.rack{number % 40}"


def _times(value: t.Any, times: int) -> t.Any:
    if isinstance(value, dict):
        return {key: _times(part, times) for key, part in value.items()}
    return value * times if isinstance(value, int) else value


def _named(value: t.Any, name: str) -> t.Any:
    if isinstance(value, dict):
        parts = value.items()
        return {k: name if k in _CHOSEN and part else _named(part, name) for k, part in parts}
    return [_named(part, name) for part in value] if isinstance(value, list) else value


def _stray(record: dict[str, t.Any], name: str) -> dict[str, t.Any]:
    return {**record, "instance": None, "provider": {"name": f"{name} of nobody"}}
