# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines about hypervisors: what was undefined and quarantined, and how to restore it."""

from __future__ import annotations

import collections
import os
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.models.outcomes import FAILED, READY, SKIPPED, WITHOUT_CHECK

if t.TYPE_CHECKING:  # pragma: no cover
    # What one round of the loop over leftovers has returned.
    Round = Mapping[str, t.Any]

_CLEAN, _FOUND, _KEPT, _RUNNING = "clean", "found", "kept", "running"
_DOMAIN, _DIRECTORY = "leftover_domain", "leftover_directory"
_RUNNING_LEFTOVER = "running_leftover"
_OUTCOMES = {_DOMAIN: "undefined", _DIRECTORY: "quarantined"}
_NOUNS = {_DOMAIN: ("domain", "domains"), _DIRECTORY: ("directory", "directories")}

# What hypervisor_guest uses unless its options say otherwise.
_DEFAULTS = {
    "virsh": "virsh",
    "uri": "qemu:///system",
    "instances_path": "/var/lib/nova/instances",
    "backup_path": "/var/lib/osops-placement",
}
_QUARANTINE = ".quarantine"

_MAX_NAME, _MAX_FAILURES = 40, 3


def describe_guest_results(
    detected: Mapping[str, t.Any],
    rounds: Mapping[str, Iterable[Round]],
    kinds: Collection[str],
    check_mode: bool,
    options: Mapping[str, t.Any],
) -> dict[str, t.Any]:
    """Return what a run did on all hypervisors, or would do without check mode.

    `results`: a line for each leftover, or one about all of them. Of a hypervisor that stopped,
    only its failures: it has shown the rest itself. `undo`: the module that brings the first of
    them back; None if nothing was changed. `failures`: by inventory host, why it stopped, as
    `_describe_failure` returns it. `kinds`: those that were found, chosen or not.

    detected: what `hypervisor_guest_detect` returned at first.
    rounds: by inventory host, what each round of the loop over its leftovers has returned.
    kinds: those that may be changed.
    options: `virsh`, `uri` and `become`, with which the leftovers were changed.
    """
    results: list[dict[str, str]] = []
    made: list[tuple[str, Round]] = []
    failures: dict[str, dict[str, t.Any]] = {}
    for host, all_rounds in rounds.items():
        done = [each for each in all_rounds if not each.get("skipped")]
        failed = _select(done, FAILED)
        results += _describe_rounds(failed)
        if failed:
            failures[host] = _describe_failure(host, done, check_mode, options)
            continue
        results += _describe_rounds(_select(done, SKIPPED))
        changed = _select(done, *_OUTCOMES.values())
        # In check mode, one line about all of them says what would be done.
        if not check_mode:
            results += _describe_rounds(changed)
        made += [(host, each) for each in changed]
    if check_mode and made:
        results.append(_predict(detected, [each for _host, each in made]))
    found = [kind for kind, count in detected["summary"]["kinds"].items() if count]
    if _RUNNING_LEFTOVER in found:
        found.remove(_RUNNING_LEFTOVER)
        running = [each for each in detected["findings"] if each["kind"] == _RUNNING_LEFTOVER]
        results += map(_describe_running, running)
    if not results:
        results.append(_describe_nothing(detected, kinds))
    undo = _build_undo([] if check_mode else made, options)
    return {"results": results, "undo": undo, "failures": failures, "kinds": found}


def _select(done: Iterable[Round], *outcomes: str) -> list[Round]:
    return [each for each in done if _get_outcome(each) in outcomes]


def _describe_rounds(rounds: Iterable[Round]) -> list[dict[str, str]]:
    return [_describe_round(each, _get_outcome(each)) for each in rounds]


def _describe_failure(
    host: str, done: Collection[Round], check_mode: bool, options: Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """Return what a hypervisor says that stops, because a change failed on it.

    `results`, `undo`: what was changed on it nevertheless, and how to undo the first of it.
    """
    changed = [] if check_mode else _select(done, *_OUTCOMES.values())
    return {
        "message": _format_failures(_select(done, FAILED), len(done), check_mode),
        "results": _describe_rounds(changed),
        "undo": _build_undo([(host, each) for each in changed], options),
    }


def _get_outcome(each: Round) -> str:
    # The task of the loop does not fail itself. Only a module that failed returns a message, and
    # one that did not even start returns no actions.
    if "msg" in each or "actions" not in each:
        return FAILED
    if not each["actions"]:
        return SKIPPED
    return _OUTCOMES[each["item"]["kind"]]


def _describe_round(each: Round, outcome: str) -> dict[str, str]:
    item = each["item"]
    name = item["name"]
    server = (item["server"] or {}).get("name")
    # A directory has the UUID of its server as its name, a domain has not.
    if item["kind"] == _DOMAIN:
        name = item["uuid"]
    if server:
        name += f" ({make_printable(server, _MAX_NAME)})"
    noun = item["kind"].removeprefix("leftover_")
    return {
        "outcome": outcome,
        "subject": item["host"],
        "reason": f"{noun} {name}{_describe_place(each, outcome)}",
    }


def _describe_place(each: Round, outcome: str) -> str:
    """Return where a leftover is now, or why it was not changed."""
    if outcome == FAILED:
        return f": {_get_message(each)}"
    if outcome == SKIPPED:
        return ": it is not there any more"
    moved, saved = each.get("quarantined"), each.get("xml_path")
    if moved:
        return f" to {os.path.dirname(moved)}"
    if saved:
        return f", its XML is in {os.path.dirname(saved)}"
    return ""


def _get_message(each: Round) -> str:
    return str(each.get("msg") or "the module did not return a result.")


def _format_failures(failed: Sequence[Round], count: int, check_mode: bool) -> str:
    """Return one sentence about the changes that failed on a hypervisor."""
    host = make_printable(failed[0]["item"]["host"], _MAX_NAME)
    verb = "would fail" if check_mode else "failed"
    reasons = []
    for each in failed[:_MAX_FAILURES]:
        reasons.append(f"{each['item']['kind']} {each['item']['uuid']}: {_get_message(each)}")
    text = f"{len(failed)} of {format_count(count, 'change', 'changes')} {verb} on {host}. "
    text += " ".join(reasons)
    if len(failed) > _MAX_FAILURES:
        text += f" And {len(failed) - _MAX_FAILURES} more."
    return text


def _predict(detected: Mapping[str, t.Any], made: Iterable[Round]) -> dict[str, str]:
    counts = collections.Counter(each["item"]["kind"] for each in made)
    parts = []
    for kind, nouns in _NOUNS.items():
        if counts[kind]:
            parts.append(f"{format_count(counts[kind], *nouns)} {_OUTCOMES[kind]}")
    return {
        "outcome": READY,
        "subject": _count_hypervisors(detected),
        "reason": f"{WITHOUT_CHECK}{', '.join(parts)}.",
    }


def _describe_nothing(detected: Mapping[str, t.Any], kinds: Collection[str]) -> dict[str, str]:
    """Return the line of a run that had nothing to change."""
    summary = detected["summary"]
    counts = {kind: count for kind, count in summary["kinds"].items() if count}
    outcome = _FOUND
    parts = [format_count(counts[kind], *_NOUNS[kind]) for kind in _NOUNS if kind in counts]
    if not counts:
        outcome, reason = _CLEAN, "no leftovers"
    elif counts.keys() & set(kinds):
        outcome = _CLEAN
        reason = "what was found first is not left over any more, and nothing was changed"
    else:
        found = " and ".join(parts)
        reason = f"{found} left over. Nothing was changed, because these kinds are not chosen"
    verdicts = summary["verdicts"].items()
    left = [f"{count} {verdict}" for verdict, count in verdicts if count and verdict != "orphaned"]
    if left and outcome == _CLEAN:
        # Somebody has to look at these.
        outcome, reason = _KEPT, "nothing to change"
    reason = "; ".join([reason, ", ".join(left)] if left else [reason])
    return {
        "outcome": outcome,
        "subject": _count_hypervisors(detected),
        "reason": f"{reason}.",
    }


def _describe_running(entry: Mapping[str, t.Any]) -> dict[str, str]:
    text = f"domain {entry['uuid']}: perhaps a second guest of its server, see the reason above"
    return {"outcome": _RUNNING, "subject": entry["host"], "reason": text}


def _count_hypervisors(detected: Mapping[str, t.Any]) -> str:
    hosts = detected["summary"]["coverage"]["hosts"]
    return format_count(hosts, "hypervisor", "hypervisors")


def _build_undo(
    made: Collection[tuple[str, Round]], options: Mapping[str, t.Any]
) -> dict[str, t.Any] | None:
    """Return the module that restores what was changed first, with its arguments; None for none."""
    if not made:
        return None
    by_server: dict[tuple[str, str, str], list[Round]] = {}
    for host, each in made:
        item = each["item"]
        # Nova's directories of a resize are restored apart from those of the instance.
        kind = item["guest"].get("kind") if item["kind"] == _DIRECTORY else "instance"
        by_server.setdefault((host, item["uuid"], kind), []).append(each)
    (host, uuid, kind), rounds = next(iter(by_server.items()))
    arguments = {"uuid": uuid}
    for each in rounds:
        arguments |= _list_restore_arguments(each, options)
    if kind != "instance":
        arguments["directory_kind"] = kind
    return {
        "host": host,
        "module": "hypervisor_guest",
        "arguments": arguments,
        "become": bool(options["become"]),
        "others": len(by_server) - 1,
    }


def _list_restore_arguments(each: Round, options: Mapping[str, t.Any]) -> dict[str, str]:
    """Return the arguments that restore one leftover, without those that are the default."""
    item = each["item"]
    needed = {"virsh": options["virsh"], "uri": options["uri"]}
    arguments = {}
    if item["kind"] == _DOMAIN:
        arguments["domain"] = "defined"
        if each.get("xml_path"):
            needed["backup_path"] = os.path.dirname(each["xml_path"])
    else:
        arguments["directory"] = "present"
        instances = os.path.dirname(item["guest"]["path"])
        needed["instances_path"] = instances
        quarantine = os.path.dirname(each.get("quarantined") or "")
        if quarantine not in ("", os.path.join(instances, _QUARANTINE)):
            arguments["quarantine_path"] = quarantine
    for name, value in needed.items():
        if value != _DEFAULTS[name]:
            arguments[name] = str(value)
    return arguments


def select_leftover_changes(
    detected: Mapping[str, t.Any], kinds: Collection[str], host: str
) -> dict[str, t.Any]:
    """Return the changes of the chosen kinds.

    `count`: their number on all hypervisors together. `on_host`: whether any of them is, or may be,
    on one particular hypervisor.

    detected: what hypervisor_guest_detect returned, with the first of its findings only.
    """
    count = 0
    for kind, number in detected["summary"]["kinds"].items():
        if kind in kinds:
            count += number
    findings = detected["findings"]
    is_named = any(finding["host"] == host for finding in findings)
    # The findings that are not returned may be on any host.
    is_cut_short = len(findings) < detected["summary"]["verdicts"]["orphaned"]
    return {"count": count, "on_host": count > 0 and (is_named or is_cut_short)}
