# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as one HTML page that needs nothing besides.

Anything from a cloud is treated as hostile. It gets into the page in two ways only: through a
template that escapes it, and as JSON that a script of known digest sets as text. The page's own
policy forbids every other script, style and request.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping

import jinja2
from markupsafe import Markup

from ...module_utils._common.text import make_printable
from ...module_utils._common.times import format_duration
from ...module_utils._core.findings.entries import Entry, FindingsDocument, iterate_entries
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kind import OPT_IN, REMEDIATE, REPORT
from ...module_utils._core.models.kinds import KINDS
from .log_correlation import Correlation, correlate_records, describe_complaint, get_record_subject
from .phrases import (
    UUID,
    format_number,
    format_others,
    humanize_amount,
    humanize_amounts,
    list_parts,
)
from .proposed_commands import build_cleanup, build_restore, keep_safe, list_safe_hosts
from .view import RESOURCE_COLUMNS, TEMPLATES, Item, Report, build_environment, list_items

# How many rows have their details in one piece of JSON, which is parsed when the first of them is
# unfolded.
_CHUNK_SIZE = 50

# What could end a script element, start a comment in it, or end a line of it.
_ESCAPES = {char: f"\\u{ord(char):04X}" for char in "<>&\u2028\u2029"}

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# How JSON writes a control character, or a backslash that is followed by what looks like one.
_CONTROL = re.compile(r"\\[bfnrtu]")


def render(report: Report) -> str:
    """Return the page. It is the same for the same report."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    policy = (
        "default-src 'none'",
        f"style-src '{_compute_digest(style)}'",
        f"script-src '{_compute_digest(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    items, correlation = list_items(report), correlate_records(report.findings, report.complaints)
    return _load_template().render(
        policy="; ".join(policy),
        style=Markup(style),
        script=Markup(script),
        report=report,
        unexplained=correlation["unexplained"],
        items=items,
        index=_encode_list(map(_build_index, items)),
        chunk_size=_CHUNK_SIZE,
        chunks=_encode_chunks(report, items, correlation),
    )


def name_projects(scope: Json) -> list[str]:
    """Return the projects in the scope, each with its name if that is known."""
    names = scope.get("project_names") or [""] * len(scope["projects"])
    pairs = zip(scope["projects"], names, strict=True)
    return [f"{name} ({uuid})" if name else uuid for uuid, name in pairs]


# --- the rows of the table, and what they unfold to


def _build_index(item: Item) -> dict[str, t.Any]:
    """Return what the page shows, sorts, searches and filters rows by, unfolded or not."""
    entry, frees = item.entry, item.frees
    return {
        "id": entry["id"],
        "kind": entry["kind"],
        "verdict": entry["verdict"],
        "about": item.subject,
        "server": item.server,
        "hosts": item.hosts,
        "project": entry["project"] or "",
        "frees": [frees.get(cls, 0) for cls in RESOURCE_COLUMNS],
        "amounts": [
            humanize_amount(cls, frees[cls]) if frees.get(cls) else "" for cls in RESOURCE_COLUMNS
        ],
        "others": format_others(frees, RESOURCE_COLUMNS),
        "age": entry["age_seconds"],
        "age_text": _format_age(entry),
        "reason": entry["reason"],
        "state": item.state.text,
        "look": item.state.style,
        "new": bool(entry.get("new")),
    }


def _format_age(entry: Entry) -> str:
    return "" if entry["age_seconds"] is None else format_duration(entry["age_seconds"])


def _encode_chunks(report: Report, items: list[Item], correlation: Correlation) -> Iterator[Markup]:
    names = _map_names(report.findings)
    complaints = correlation["explained"]

    def build_details(item: Item) -> dict[str, t.Any]:
        entry = item.entry
        hosts = list_safe_hosts(entry)
        return {
            # This looks at the hosts of the entry only; the others fix what it is about.
            "command": build_cleanup({"orphan_cleanup_hosts": hosts}, report.run) if hosts else "",
            "fixes": list(entry.get("commands", [])),
            # Of the providers and servers in what follows, by uuid.
            "names": _choose_names(entry, names),
            "known": _describe_subject(entry),
            "why": item.state.reason,
            "providers": list(map(_describe_provider, entry["providers"])),
            "changes": _describe_changes(entry["change"]),
            "evidence": entry["evidence"],
            "complaints": list(map(describe_complaint, complaints.get(entry["id"], ()))),
        }

    for start in range(0, len(items), _CHUNK_SIZE):
        yield _encode_list(map(build_details, items[start : start + _CHUNK_SIZE]))


def _map_names(findings: FindingsDocument) -> dict[str, str]:
    """Return the names of all providers and servers of the entries, by uuid."""
    names: dict[str, str] = {}
    for entry in iterate_entries(findings):
        for named in (*entry["providers"], entry["server"]):
            if named and named["name"]:
                names[named["uuid"]] = named["name"]
    return names


def _choose_names(entry: Entry, names: Mapping[str, str]) -> dict[str, str]:
    """Return those of the names whose uuids are in the change or in the evidence of an entry."""
    texts = [answer["request"] for answer in entry["evidence"]]
    for part in list_parts(entry["change"]):
        allocations = (*part["before"]["allocations"], *part["after"]["allocations"])
        texts += [part["consumer"], *allocations]
    # The name of a node of ironic is its uuid.
    found = UUID.findall(" ".join(texts))
    return {uuid: names[uuid] for uuid in found if names.get(uuid, uuid) != uuid}


def _describe_provider(provider: Json) -> dict[str, t.Any]:
    fields: Mapping[str, t.Any] = provider
    known = {name: fields[name] for name in ("name", "uuid", "root_name", "dropped")}
    return {**known, "allocated": humanize_amounts(provider["resources"]) or "nothing"}


def _describe_changes(change: Json | None) -> list[dict[str, t.Any]]:
    """Return the documents of a change and of its partner, or the providers that it deletes."""
    if change and change["action"] == DELETE_PROVIDERS:
        return [{"title": "Providers to delete, children first", "providers": change["providers"]}]
    described = []
    for part in list_parts(change):
        title = f"{part['action'].capitalize()} the allocation of {part['consumer']}"
        described.append({"title": title, "before": part["before"], "after": part["after"]})
    return described


def _describe_subject(entry: Entry) -> list[tuple[str, str]]:
    """Return the facts about the subject of an entry, as labels and texts."""
    facts: dict[str, t.Any] = {
        "Finding": entry["id"],
        "Consumer": entry["consumer"],
        "Type": entry["type"],
        "Generation": entry["generation"],
        "Age": _format_age(entry),
        "First seen": entry.get("first_seen"),
        "Project": entry["project"],
        "User": entry["user"],
    }
    server, migration, service = entry["server"], entry["migration"], entry["service"]
    if server:
        task = f", task {server['task_state']}" if server["task_state"] else ""
        state = f"{server['status']}{task}, on {server['host'] or 'no host'}"
        facts |= {"Server": server["name"], "Server UUID": server["uuid"]}
        facts["Server state"] = state if server["status"] else ""
    if migration:
        places = [migration[end] or "nowhere" for end in ("source_compute", "dest_compute")]
        named = (migration["uuid"], migration["type"], migration["status"], " → ".join(places))
        facts["Migration"] = ", ".join(map(str, named))
    if service:
        state = f"{service['status']}, {service['state'] or 'state unknown'}"
        facts["Service"] = f"{service['binary']} on {service['host']}, {state}"
        facts["Disabled because"] = service["disabled_reason"]
    return [(label, str(text)) for label, text in facts.items() if text not in (None, "")]


# --- the two ways into the page


def _encode_list(entries: Iterable[t.Any]) -> Markup:
    """Return a list as JSON that is text to HTML and to a script alike."""
    text = f"[{','.join(map(_encode_json, entries))}]"
    for char, escape in _ESCAPES.items():
        text = text.replace(char, escape)
    return Markup(text)


def _encode_json(data: t.Any) -> str:
    text = _ENCODER.encode(data)
    # To escape every text by itself takes twice as long as everything else together.
    if text.isprintable() and not _CONTROL.search(text):
        return text
    return _ENCODER.encode(_escape_unprintable(data))


def _escape_unprintable(value: t.Any) -> t.Any:
    """Return data with every character spelled out that is invisible or moves its neighbours."""
    if isinstance(value, str):
        return value if value.isprintable() else make_printable(value)
    if isinstance(value, dict):
        pairs = value.items()
        return {_escape_unprintable(str(key)): _escape_unprintable(part) for key, part in pairs}
    if isinstance(value, list | tuple):
        return [_escape_unprintable(part) for part in value]
    return value


def _compute_digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _finalize(value: t.Any) -> t.Any:
    return value if isinstance(value, Markup) else _escape_unprintable(str(value))


def _format_percentage(fraction: float) -> str:
    """Return a fraction as a percentage; a fraction above zero is never `0 %`."""
    if 0 < fraction < 0.001:
        return "< 0.1 %"
    return f"{fraction:.1%}".replace("%", " %").replace(".0 %", " %")


_CLASS_LABELS = {"MEMORY_MB": "memory", "DISK_GB": "disk"}
_POLICIES = {
    REMEDIATE: "Changed by default.",
    OPT_IN: "Changed only if you choose this kind.",
    REPORT: "Never changed, only reported.",
}


@functools.cache
def _load_template() -> jinja2.Template:
    helpers = (build_cleanup, build_restore, describe_complaint, get_record_subject, keep_safe)
    environment = build_environment((*helpers, name_projects), _finalize, autoescape=True)
    # A file of another version may have a kind of which this one knows nothing.
    kinds = {kind.name: kind for kind in KINDS}
    environment.globals.update(columns=RESOURCE_COLUMNS, kinds_by_name=kinds, policies=_POLICIES)
    environment.filters.update(
        class_label=lambda cls: _CLASS_LABELS.get(cls, cls),
        number=format_number,
        percentage=_format_percentage,
    )
    return environment.get_template("page.html.j2")
