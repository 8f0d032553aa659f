"""What each tool printed or wrote, as the allocations that it named. Pure."""

from __future__ import annotations

import ast
import json
import re
import typing as t

from benchmark.scoring import find_audited

from compare.truth import DRIFTS, Named, Pair, Truth, select_pairs

if t.TYPE_CHECKING:
    from collections.abc import Mapping

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
# "[dry-run] Update allocations for instance UUID: …", and Create.
_HEALED = re.compile(rf"allocations for instance ({_UUID})")
_CONSUMERS = re.compile(r'^\{\s*"orphan_allocations".*', re.DOTALL | re.MULTILINE)
_MISSING = re.compile(
    r"instance (\S+) is missing in nova: placement host: (\[.*\]), clean up in placement"
)
_INCORRECT = re.compile(
    r"instance (\S+) is incorrect in placement: placement host: (\[.*\]), nova host: (\[.*\])"
)


def read_audit(output: str, truth: Truth) -> Named:
    pairs = frozenset(find_audited(output))
    return Named(pairs, frozenset(consumer for consumer, _provider in pairs))


def read_heal(output: str, _truth: Truth) -> Named:
    return Named(frozenset(), frozenset(_HEALED.findall(output)))


def read_names_check(output: str, truth: Truth) -> Named:
    """Read the output of the new statement of the check for Nagios."""
    alerts = json.loads(output.splitlines()[-1])["alerts"]
    return _read_alerts(
        {consumer: (alert["placement"], alert["nova"]) for consumer, alert in alerts.items()}, truth
    )


def read_nrpe(output: str, truth: Truth) -> Named:
    """Read the output of the original check for Nagios."""
    alerts: dict[str, tuple[list[str], list[str]]] = {}
    for line in output.splitlines():
        sentence = json.loads(line) if line.startswith('"') else ""
        missing, incorrect = _MISSING.fullmatch(sentence), _INCORRECT.fullmatch(sentence)
        if missing:
            alerts[missing[1]] = (_read_list(missing[2]), [])
        elif incorrect:
            alerts[incorrect[1]] = (_read_list(incorrect[2]), _read_list(incorrect[3]))
    return _read_alerts(alerts, truth)


def _read_list(text: str) -> list[str]:
    """Return the list that the sentence of an alert has as Python writes it."""
    found: list[str] = ast.literal_eval(text)
    return found


def _read_alerts(alerts: Mapping[str, tuple[list[str], list[str]]], truth: Truth) -> Named:
    """Return the allocations on providers whose names are not that of the server's host."""
    pairs: set[Pair] = set()
    for consumer, (providers, hosts) in alerts.items():
        for pair in select_pairs(truth, [consumer]):
            name = truth.names[pair[1]]
            if name in providers and name not in hosts:
                pairs.add(pair)
    return Named(frozenset(pairs), frozenset(alerts))


def read_consumers(output: str, truth: Truth) -> Named:
    """Read the output of the script: it removes all allocations of what it names."""
    # Its log is on the same terminal.
    document = json.loads("".join(_CONSUMERS.findall(output)))
    consumers = {entry["server_id"] for entry in document["orphan_allocations"]}
    return Named(select_pairs(truth, consumers), frozenset(consumers))


def read_findings(findings: Mapping[str, t.Any]) -> Named:
    """Read our own findings.json."""
    pairs, servers = set(), set()
    for finding in findings["findings"]:
        consumer, change = finding["consumer"], finding["change"]
        if finding["kind"] in DRIFTS:
            servers.add(consumer)
        elif change:
            pairs.update((consumer, provider) for provider in change.get("frees", ()))
    return Named(frozenset(pairs), frozenset(servers))


def read_outcomes(remediation: Mapping[str, t.Any]) -> Named:
    """Read our own remediation.json: what a run without check mode would have changed."""
    pairs, servers = set(), set()
    for outcome in remediation["outcomes"]:
        if outcome["outcome"] in ("skipped", "failed"):
            continue
        if outcome["kind"] in DRIFTS:
            servers.add(outcome["consumer"])
        else:
            pairs.update((outcome["consumer"], provider) for provider in outcome["frees"])
    return Named(frozenset(pairs), frozenset(servers))
