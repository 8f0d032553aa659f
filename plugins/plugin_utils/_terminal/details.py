# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings in full: several lines for each, with its proof and the write that would be made."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterable, Mapping

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.entries import Entry, get_subject
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.codec import Json
from .._report.phrases import MAX_NAME, explain_kind
from .._report.units import humanize_amounts
from .lines import (
    CHANGED,
    Line,
    format_command_field,
    format_field,
    format_row,
    format_second_column,
    format_server,
    format_write,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from .._report.view import Item

# What a change does to its consumer; what the consumer has after it follows.
_VERBS = {"reduce": "keeps", "rewrite": "gives it", "create": "gives it"}


def format_drifted(entry: Entry, width: int, log: Callable[[Entry], list[str]]) -> list[str]:
    """Return an entry whose kind is not among those that may be changed."""
    lines = [*format_entry(entry, width, CHANGED), *log(entry)]
    # Each command is on one line, to be copied.
    for command in entry.get("commands", []):
        lines.append(format_command_field("fix", command))
    if entry["change"]:
        reason = explain_kind(entry["kind"])
        lines += format_field("could", f"be corrected; not now: {reason}", width)
    return lines


def format_with_write(item: Item, width: int) -> list[str]:
    """Return a finding with the write that would be made."""
    entry = item.entry
    change, names = entry["change"], map_names(entry)
    fields: list[tuple[str, str]] = []
    write = ""
    # Some orphans have no change that is known to be right.
    if change and change["action"] == DELETE_PROVIDERS:
        write = f"DELETE /resource_providers for {_list_providers(change['providers'])}"
    elif change:
        fields = [
            ("host", _list_dropped_hosts(entry)),
            ("frees", _format_allocations(change["frees"], names)),
            ("adds", _format_allocations(change["claims"], names)),
        ]
        write = _format_post(change, names)
    lines = ["", *format_entry(entry, width, CHANGED, fields)]
    if write:
        lines += format_write(write, item.left, width)
    return lines


def format_entry(
    entry: Entry, width: int, tone: str, fields: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """Return an entry with its reason, and before it the fields that are not empty."""
    about = format_second_column(get_subject(entry))
    heading = format_row(entry["kind"], about, format_server(entry, width))
    # An earlier run has seen it.
    known = "" if entry["new"] else f"since {entry['first_seen']}"
    lines: list[str] = [Line(heading, tone)]
    for label, text in (("known", known), *fields, ("why", entry["reason"])):
        lines += format_field(label, text, width)
    return lines


def map_names(entry: Entry) -> dict[str, str]:
    """Return the names of the providers that an entry is about, by uuid."""
    names: dict[str, str] = {}
    for provider in entry["providers"]:
        names[provider["uuid"]] = make_printable(provider["name"], MAX_NAME)
    return names


def _list_providers(providers: Iterable[Json]) -> str:
    return ", ".join(
        f"{make_printable(provider['name'], MAX_NAME)} ({provider['uuid']})"
        for provider in providers
    )


def _format_allocations(
    allocations: Mapping[str, Mapping[str, int]], names: Mapping[str, str]
) -> str:
    parts = []
    for provider, resources in allocations.items():
        parts.append(f"{humanize_amounts(resources)} on {names.get(provider, provider)}")
    return "; ".join(parts)


def _format_post(change: Json, names: Mapping[str, str]) -> str:
    """Return the request that makes a change, and what its consumer has then."""
    consumers = _format_consumer_generation(change)
    if change["partner"]:
        consumers += f" and {_format_consumer_generation(change['partner'])}"
    return f"POST /allocations for {consumers}: {describe_effect(change, names)}"


def describe_effect(
    change: Json,
    names: Mapping[str, str],
) -> str:
    """Return what a change does, such as `keeps compute-4` or `deletes 2 providers`.

    names: the names of providers, by uuid.
    """
    if change["action"] == DELETE_PROVIDERS:
        return f"deletes {format_count(len(change['providers']), 'provider', 'providers')}"
    after = change["after"]["allocations"]
    if not after:
        return "removes all of it"
    kept = ", ".join(names.get(provider, provider) for provider in after)
    return f"{_VERBS[change['action']]} {kept}"


def _format_consumer_generation(change: Json) -> str:
    generation = change["generation"]
    if generation is None:
        return f"{change['consumer']} (new)"
    return f"{change['consumer']} (generation {generation})"


def _list_dropped_hosts(entry: Entry) -> str:
    """Return the hosts whose allocation is an orphan."""
    dropped = {
        make_printable(provider["root_name"], MAX_NAME)
        for provider in entry["providers"]
        if provider["dropped"]
    }
    return ", ".join(sorted(dropped))
