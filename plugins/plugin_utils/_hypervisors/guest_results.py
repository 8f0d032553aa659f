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
from ...module_utils._core.models.change import FAILED, READY, SKIPPED, WITHOUT_CHECK

# What one round of the loop over leftovers has returned, and a line about what a run did.
Round = Mapping[str, t.Any]
Result = dict[str, str]

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
    them back; None if nothing was changed. `failures`: by inventory host, why it stopped, with the
    results and the undo of what was changed on it nevertheless. `kinds`: those that were found,
    chosen or not.

    detected: what `hypervisor_guest_detect` returned at first.
    rounds: by inventory host, what each round of the loop over its leftovers has returned.
    kinds: those that may be changed.
    options: `virsh`, `uri` and `become`, with which the leftovers were changed.
    """
    results: list[Result] = []
    made: list[tuple[str, Round]] = []
    failures: dict[str, dict[str, t.Any]] = {}
    for host, all_rounds in rounds.items():
        done = [each for each in all_rounds if not each.get("skipped")]
        failed, changed = _select(done, FAILED), _select(done, *_OUTCOMES.values())
        # In check mode, one line about all of them says what would be done.
        shown = [] if check_mode else list(map(_describe_round, changed))
        results += map(_describe_round, failed or _select(done, SKIPPED))
        pairs = [(host, each) for each in changed]
        if failed:
            message = _format_failures(failed, len(done), check_mode)
            undo = None if check_mode else _build_undo(pairs, options)
            failures[host] = {"message": message, "results": shown, "undo": undo}
        else:
            results += shown
            made += pairs
    if check_mode and made:
        results.append(_predict(detected, made))
    entries = detected.get("findings", ())
    results += [_describe_running(each) for each in entries if each["kind"] == _RUNNING_LEFTOVER]
    found = [kind for kind, count in detected["summary"]["kinds"].items() if count]
    return {
        "results": results or [_describe_nothing(detected, kinds)],
        "undo": None if check_mode else _build_undo(made, options),
        "failures": failures,
        "kinds": [kind for kind in found if kind != _RUNNING_LEFTOVER],
    }


def _select(done: Iterable[Round], *outcomes: str) -> list[Round]:
    return [each for each in done if _get_outcome(each) in outcomes]


def _get_outcome(each: Round) -> str:
    # The task of the loop does not fail itself. Only a module that failed returns a message, and
    # one that did not even start returns no actions.
    if "msg" in each or "actions" not in each:
        return FAILED
    return _OUTCOMES[each["item"]["kind"]] if each["actions"] else SKIPPED


def _make_result(outcome: str, subject: str, reason: str) -> Result:
    return {"outcome": outcome, "subject": subject, "reason": reason}


def _describe_round(each: Round) -> Result:
    item, outcome = each["item"], _get_outcome(each)
    # A directory has the UUID of its server as its name, a domain has not.
    name = item["uuid"] if item["kind"] == _DOMAIN else item["name"]
    server = (item["server"] or {}).get("name")
    if server:
        name += f" ({make_printable(server, _MAX_NAME)})"
    noun = item["kind"].removeprefix("leftover_")
    return _make_result(outcome, item["host"], f"{noun} {name}{_describe_place(each, outcome)}")


def _describe_place(each: Round, outcome: str) -> str:
    """Return where a leftover is now, or why it was not changed."""
    if outcome == FAILED:
        return f": {_get_message(each)}"
    if outcome == SKIPPED:
        return ": it is not there any more"
    if each.get("quarantined"):
        return f" to {os.path.dirname(each['quarantined'])}"
    if each.get("xml_path"):
        return f", its XML is in {os.path.dirname(each['xml_path'])}"
    return ""


def _get_message(each: Round) -> str:
    return str(each.get("msg") or "the module did not return a result.")


def _format_failures(failed: Sequence[Round], count: int, check_mode: bool) -> str:
    """Return one sentence about the changes that failed on a hypervisor."""
    host = make_printable(failed[0]["item"]["host"], _MAX_NAME)
    verb = "would fail" if check_mode else "failed"
    changes = format_count(count, "change", "changes")
    parts = [f"{len(failed)} of {changes} {verb} on {host}."]
    for each in failed[:_MAX_FAILURES]:
        parts.append(f"{each['item']['kind']} {each['item']['uuid']}: {_get_message(each)}")
    if len(failed) > _MAX_FAILURES:
        parts.append(f"And {len(failed) - _MAX_FAILURES} more.")
    return " ".join(parts)


def _predict(detected: Mapping[str, t.Any], made: Iterable[tuple[str, Round]]) -> Result:
    counts = collections.Counter(each["item"]["kind"] for _host, each in made)
    parts = [f"{_count(kind, counts)} {_OUTCOMES[kind]}" for kind in _NOUNS if counts[kind]]
    reason = f"{WITHOUT_CHECK}{', '.join(parts)}."
    return _make_result(READY, _count_hypervisors(detected), reason)


def _describe_nothing(detected: Mapping[str, t.Any], kinds: Collection[str]) -> Result:
    """Return the line of a run that had nothing to change."""
    summary = detected["summary"]
    counts = {kind: count for kind, count in summary["kinds"].items() if count}
    outcome, reason = _CLEAN, "no leftovers"
    if counts.keys() & set(kinds):
        reason = "what was found first is not left over any more, and nothing was changed"
    elif counts:
        found = " and ".join(_count(kind, counts) for kind in _NOUNS if kind in counts)
        reason = f"{found} left over. Nothing was changed, because these kinds are not chosen"
        outcome = _FOUND
    verdicts = summary["verdicts"].items()
    left = [f"{count} {verdict}" for verdict, count in verdicts if count and verdict != "orphaned"]
    if left and outcome == _CLEAN:
        # Somebody has to look at these.
        outcome, reason = _KEPT, "nothing to change"
    text = "; ".join(filter(None, (reason, ", ".join(left))))
    return _make_result(outcome, _count_hypervisors(detected), f"{text}.")


def _describe_running(entry: Mapping[str, t.Any]) -> Result:
    text = f"domain {entry['uuid']}: perhaps a second guest of its server, see the reason above"
    return _make_result(_RUNNING, entry["host"], text)


def _count(kind: str, counts: Mapping[str, int]) -> str:
    return format_count(counts[kind], *_NOUNS[kind])


def _count_hypervisors(detected: Mapping[str, t.Any]) -> str:
    hosts = detected["summary"]["coverage"]["hosts"]
    return format_count(hosts, "hypervisor", "hypervisors")


def _build_undo(
    made: Iterable[tuple[str, Round]], options: Mapping[str, t.Any]
) -> dict[str, t.Any] | None:
    """Return the module that restores what was changed first, with its arguments; None for none."""
    by_server: dict[tuple[str, str, str], list[Round]] = {}
    for host, each in made:
        item = each["item"]
        # Nova's directories of a resize are restored apart from those of the instance.
        kind = item["guest"].get("kind") if item["kind"] == _DIRECTORY else "instance"
        by_server.setdefault((host, item["uuid"], kind), []).append(each)
    if not by_server:
        return None
    (host, uuid, kind), rounds = next(iter(by_server.items()))
    arguments = {"uuid": uuid}
    for each in rounds:
        arguments |= _list_restore_arguments(each, options)
    if kind != "instance":
        arguments["directory_kind"] = kind
    undo = {"host": host, "module": "hypervisor_guest", "arguments": arguments}
    return {**undo, "become": bool(options["become"]), "others": len(by_server) - 1}


def _list_restore_arguments(each: Round, options: Mapping[str, t.Any]) -> dict[str, str]:
    """Return the arguments that restore one leftover, without those that are the default."""
    needed = {"virsh": options["virsh"], "uri": options["uri"]}
    arguments = {"domain": "defined"}
    if each["item"]["kind"] == _DIRECTORY:
        arguments = {"directory": "present"}
        instances = os.path.dirname(each["item"]["guest"]["path"])
        needed["instances_path"] = instances
        quarantine = os.path.dirname(each.get("quarantined") or "")
        if quarantine not in ("", os.path.join(instances, _QUARANTINE)):
            arguments["quarantine_path"] = quarantine
    elif each.get("xml_path"):
        needed["backup_path"] = os.path.dirname(each["xml_path"])
    others = {name: str(value) for name, value in needed.items() if value != _DEFAULTS[name]}
    return arguments | others


def select_leftover_changes(
    detected: Mapping[str, t.Any], kinds: Collection[str], host: str
) -> dict[str, t.Any]:
    """Return the changes of the chosen kinds.

    `count`: their number on all hypervisors together. `on_host`: whether any of them is, or may be,
    on one particular hypervisor.

    detected: what hypervisor_guest_detect returned, with the first of its findings only.
    """
    summary, findings = detected["summary"], detected["findings"]
    count = sum(number for kind, number in summary["kinds"].items() if kind in kinds)
    # The findings that are not returned may be on any host.
    is_cut_short = len(findings) < summary["verdicts"]["orphaned"]
    is_named = any(finding["host"] == host for finding in findings)
    return {"count": count, "on_host": count > 0 and (is_named or is_cut_short)}
