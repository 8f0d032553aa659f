# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How servers would leave a host, and what became of them: on the terminal and for other jobs."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.text import format_count, make_printable, summarize_names
from ...module_utils._hosts.draining import (
    COLD,
    EVACUATION,
    FAILED,
    GONE,
    LEFT,
    LIVE,
    MOVE_OUTCOMES,
    MOVED,
    SKIPPED,
    STAYS,
    UNDER_WAY,
    DrainPlanDocument,
    MoveOutcomeDocument,
    PredictionDocument,
)
from .._report.phrases import MAX_NAME
from .._report.proposed_commands import Context, build_command, format_fields
from .._terminal.lines import (
    ERROR,
    OK,
    SHORT_UUID,
    WARNING,
    Column,
    Line,
    Row,
    format_explained_table,
    format_table,
    get_prose_width,
    paint,
    wrap_item,
    wrap_text,
)
from .._variables.play_hosts import get_started_name
from .hosts import build_row

ARTIFACT = "host_decommission_drained"
_DRAIN, _DECOMMISSION = "drain_host", "decommission_host"
_PREFIX = "host_decommission_"
_NO_ROOM = "no room"
_NO_ROOM_WARNING = "there is room for it alone, but not for all servers together"

# The biggest problems first: what stays, what has no room, what loses its guest, what is shut off.
_ORDER_OF_WAYS = (STAYS, _NO_ROOM, EVACUATION, COLD, LIVE)
_ORDER_OF_OUTCOMES = (FAILED, UNDER_WAY, SKIPPED, LEFT, GONE)
_TONES = {FAILED: ERROR, UNDER_WAY: WARNING, SKIPPED: WARNING, LEFT: WARNING}

_WAYS = {LIVE: "live", COLD: "cold", EVACUATION: "by evacuation"}

_SERVER = (Column("SERVER", least=8, comfort=16), Column("UUID", short=SHORT_UUID))
_PLAN_COLUMNS = (
    Column("HOW"),
    *_SERVER,
    Column("STATUS", least=6, comfort=10),
    Column("FLAVOR", least=6, comfort=12),
    Column("TO", least=6, comfort=16),
)
_OUTCOME_COLUMNS = (
    Column("OUTCOME"),
    *_SERVER,
    Column("HOW"),
    Column("IS ON", least=6, comfort=16),
)
_DEPARTURE_COLUMNS = (
    *_SERVER,
    Column("FROM", least=6, comfort=16),
    Column("TO", least=6, comfort=16),
)


def format_drain_plan(plan: DrainPlanDocument, width: int) -> list[str]:
    """Return how the servers would leave a host: one line each, the biggest problems first."""
    prose = get_prose_width(width)
    count = format_count(len(plan["servers"]), "server", "servers")
    lines = ["", f"{count} on {make_printable(plan['host'], MAX_NAME)}"]
    # Servers with one reason stand together, so that it is shown once.
    entries = sorted(
        plan["servers"], key=lambda e: (_ORDER_OF_WAYS.index(_find_place(e)), _explain_problem(e))
    )
    rows = [_build_plan_row(entry) for entry in entries]
    reasons = [_explain_problem(entry) for entry in entries]
    lines += _format_rows(_PLAN_COLUMNS, rows, reasons, width)
    lines += _format_warnings(plan, prose)
    return [*lines, "", *wrap_text(make_printable(plan["summary"]), prose)]


def _find_place(entry: PredictionDocument) -> str:
    """Return how a server would leave, or that there is no room for it."""
    return _NO_ROOM if entry["how"] != STAYS and entry["to"] is None else str(entry["how"])


def _explain_problem(entry: PredictionDocument) -> str:
    """Return why a server stays, and what to do about it; empty for one that can leave."""
    place = _find_place(entry)
    if place == _NO_ROOM:
        hosts = summarize_names(entry["hosts"])
        return f"there is room for it alone ({hosts}), but not for all servers together"
    if place != STAYS:
        return ""
    return ": ".join(filter(None, (entry["reason"], entry["advice"])))


def _build_plan_row(entry: PredictionDocument) -> Row:
    place = _find_place(entry)
    tone = WARNING if place in (STAYS, _NO_ROOM) else None
    to = _NO_ROOM if place == _NO_ROOM else entry["to"] or ""
    texts = (entry["how"], entry["name"], entry["uuid"], entry["status"], entry["flavor"], to)
    return build_row(texts, tone)


def _format_rows(
    columns: Sequence[Column], rows: Sequence[Row], reasons: Sequence[str], width: int
) -> list[str]:
    """Return a table, with a reason under the last of the rows that have it; nothing for none."""
    pairs = zip(reasons, [*reasons[1:], ""], strict=False)
    shown = ["" if reason == following else reason for reason, following in pairs]
    return ["", *format_explained_table(columns, rows, shown, width)] if rows else []


def _format_warnings(plan: DrainPlanDocument, width: int) -> list[str]:
    """Return each warning once, with the servers that it is about."""
    names: dict[str, list[str]] = {}
    for entry in plan["servers"]:
        for text in entry["warnings"]:
            # Its row says so.
            if text != _NO_ROOM_WARNING:
                name = make_printable(entry["name"], MAX_NAME)
                names.setdefault(make_printable(text), []).append(name)
    texts = [make_printable(sentence) for sentence in plan["warnings"]]
    texts += [f"{summarize_names(about)}: {text}" for text, about in names.items()]
    lines = [line for text in texts for line in wrap_item(text, width)]
    return ["", *paint(lines, WARNING)] if lines else []


def format_drain_result(result: Mapping[str, t.Any], host: str, width: int) -> list[str]:
    """Return what became of the servers of a host: those that were not moved, and the totals.

    result: as host_drain returned it, with either state.
    """
    outcomes = result["outcomes"]
    lines = _format_unmoved(outcomes, width)
    if outcomes:
        lines += ["", *wrap_text(_summarize_outcomes(outcomes), get_prose_width(width))]
    name = make_printable(host, MAX_NAME)
    if "departures" in result:
        sentence = _describe_service(result["service"], name)
        lines += ["", *wrap_text(sentence, get_prose_width(width))]
    elif result["empty"]:
        lines += ["", Line(f"{name} is empty.", OK)]
    else:
        lines += ["", Line(f"{name} is not empty: {_describe_rest(result)}.", WARNING)]
    return lines


def _format_unmoved(outcomes: Iterable[MoveOutcomeDocument], width: int) -> list[str]:
    unmoved = [entry for entry in outcomes if entry["outcome"] != MOVED]
    unmoved.sort(key=lambda entry: _ORDER_OF_OUTCOMES.index(entry["outcome"]))
    rows = [_build_outcome_row(entry) for entry in unmoved]
    return _format_rows(_OUTCOME_COLUMNS, rows, [entry["reason"] for entry in unmoved], width)


def _build_outcome_row(entry: MoveOutcomeDocument) -> Row:
    place = " or ".join(entry["may_be_on"]) or entry["to"] or entry["source"]
    # A server that was deleted is nowhere.
    if entry["outcome"] == GONE:
        place = entry["to"] or ""
    outcome = entry["outcome"].replace("_", " ")
    texts = (outcome, entry["name"], entry["uuid"], entry["how"], place)
    return build_row(texts, _TONES.get(entry["outcome"]))


def _summarize_outcomes(outcomes: Sequence[MoveOutcomeDocument]) -> str:
    """Return how many servers have each outcome, and how those that moved did so."""
    counts = collections.Counter(entry["outcome"] for entry in outcomes)
    ways = collections.Counter(entry["how"] for entry in outcomes if entry["outcome"] == MOVED)
    parts = {name: f"{counts[name]} {name.replace('_', ' ')}" for name in MOVE_OUTCOMES}
    parts[MOVED] += f" ({', '.join(f'{ways[how]} {_WAYS[how]}' for how in _WAYS if ways[how])})"
    return f"Outcome: {', '.join(parts[name] for name in MOVE_OUTCOMES if counts[name])}."


def _describe_rest(result: Mapping[str, t.Any]) -> str:
    servers, migrations = len(result["remaining"]), len(result["migrations"])
    counts = (
        (servers, "server", "servers"),
        (migrations, "migration from or to it", "migrations from or to it"),
        (len(result["occupants"]) - servers - migrations, "other reason", "other reasons"),
    )
    return ", ".join(format_count(*count) for count in counts if count[0] > 0)


def format_departures(result: Mapping[str, t.Any], host: str, width: int) -> list[str]:
    """Return which servers would move back to a host or cannot, and how its service would be."""
    rows = [
        build_row((entry["name"], entry["server"], entry["to"], entry["source"]))
        for entry in result["departures"]
    ]
    table = format_table(_DEPARTURE_COLUMNS, rows, width)
    lines = ["", "Moves back:", "", *table] if rows else []
    lines += _format_unmoved(result["outcomes"], width)
    sentence = _describe_service(result["service"], make_printable(host, MAX_NAME))
    return [*lines, "", *wrap_text(sentence, get_prose_width(width))]


def _describe_service(service: Mapping[str, t.Any], host: str) -> str:
    if service["status"] == "enabled" and service.get("state") == "down":
        return f"{host} is enabled, but its nova-compute is down: start it."
    if service["status"] == "enabled":
        return f"{host} is in service."
    reason = make_printable(service["disabled_reason"] or "without a reason")
    return f"{host} stays disabled, because no drain has disabled it ({reason})."


def format_drain_ending(result: Mapping[str, t.Any], host: str, check_mode: bool) -> list[str]:
    """Return the last lines of a drain, or of its prediction.

    result: as host_drain returned it. check_mode: whether the user wanted a prediction only.
    """
    journal = result.get("journal") or ""
    fields = [("Journal", journal)]
    # A return needs no undoing: the host can be drained again.
    is_return = "departures" in result
    if journal and not is_return:
        back = {f"{_PREFIX}return": "true", f"{_PREFIX}move_back": "true"}
        fields.append(("Undo", _build_command(_DRAIN, host, back)))
    # As a stage of another playbook, it is followed by others.
    if not is_return and get_started_name() != _DECOMMISSION:
        fields.append(("Next", _suggest_next(result, host, check_mode)))
    lines = format_fields(fields)
    if check_mode:
        lines.insert(0, "Check mode: nothing was changed.")
    return ["", *lines] if lines else []


def _suggest_next(result: Mapping[str, t.Any], host: str, check_mode: bool) -> str:
    if result["empty"]:
        return _build_command(_DECOMMISSION, host, {}, check=True)
    # A prediction without a change would be followed by the same run again.
    return _build_command(_DRAIN, host, {}) if not check_mode or result["changed"] else ""


def _build_command(
    playbook: str, host: str, variables: Mapping[str, str], check: bool = False
) -> str:
    """Return the command that runs a playbook of the collection for a host."""
    named = {f"{_PREFIX}target": host, **variables}
    # Only the playbook decommission_host has stages.
    stages = [f"{_PREFIX}stages"]
    return build_command(playbook, named, Context(), without=stages, check=check)


def build_drain_artifact(
    result: Mapping[str, t.Any], host: str, check_mode: bool
) -> dict[str, t.Any]:
    """Return the artifact of the drain of one host.

    Numbers, UUIDs, paths, the name of the host and a pack: no text that somebody in the cloud
    chose. It is a list, because a job over several hosts adds an entry for each.

    result: as host_drain returned it; a drain that was refused has nothing but a message.
    """
    tally = result.get("tally") or {}
    entry: dict[str, t.Any] = {
        "host": str(host),
        "check_mode": bool(check_mode),
        "empty": bool(result.get("empty")),
        "remaining": [str(uuid) for uuid in result.get("remaining") or ()],
        "outcomes": {str(name): int(count) for name, count in tally.items()},
        "journal": str(result.get("journal") or ""),
        "packed": str(result.get("packed") or ""),
    }
    return {ARTIFACT: [entry]}
