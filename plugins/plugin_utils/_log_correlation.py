# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What hosts complained of in their logs, set against what was found. It is shown, and nothing is ever concluded from it."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    Entry,
    iterate_entries,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    Record = Mapping[str, t.Any]


def extract_records(contents: t.Any) -> list[Record]:
    """Return the records in what `nova_log_info` returned, or in a list of records of any hosts.

    Raises InvalidInput when it holds anything else.
    """
    records = contents.get("records") if isinstance(contents, dict) else contents
    if not isinstance(records, list) or not all(map(_is_record, records)):
        raise InvalidInput(
            "These are no complaints: give the records that nova_log_info returns, as a list or under the key records."
        )
    return records


def correlate_records(
    findings: Mapping[str, t.Any], records: Iterable[Record]
) -> dict[str, list[t.Any]]:
    """Return under `explained` each complaint with the `finding` that explains it, and under `unexplained` those without a finding.

    findings: the contents of `findings.json`; what is protected or undecided explains a complaint, too.
    """
    about: dict[str, list[Entry]] = collections.defaultdict(list)
    for entry in iterate_entries(findings):
        for name in _list_subjects(entry):
            about[name].append(entry)
    explained, unexplained = [], []
    for record in records:
        found = [
            entry
            for entry in about.get(get_record_subject(record), ())
            if _is_about_host(entry, record)
        ]
        explained += [{"finding": entry["id"], "record": record} for entry in found]
        unexplained += [] if found else [record]
    return {"explained": explained, "unexplained": unexplained}


def get_record_subject(record: Record) -> str:
    """Return the uuid of the consumer or server, or the name of the provider, that a complaint is about."""
    return record.get("instance") or (record.get("provider") or {}).get("name") or ""


def _is_record(row: t.Any) -> bool:
    if not isinstance(row, dict) or not all(
        isinstance(row.get(key), dict | None)
        for key in ("amounts", "counts", "versions", "provider")
    ):
        return False
    told = (
        row.get("kind"),
        row.get("host"),
        row.get("instance") or "",
        (row.get("provider") or {}).get("name") or "",
    )
    return all(isinstance(text, str) for text in told)


def _list_subjects(entry: Entry) -> set[str]:
    """Return the uuids of consumer and server; of an entry that is about providers, their names."""
    if entry["consumer"] is None and entry["server"] is None:
        return {provider["name"] for provider in entry["providers"]}
    return {
        uuid for uuid in (entry["consumer"], entry["server"] and entry["server"]["uuid"]) if uuid
    }


def _is_about_host(entry: Entry, record: Record) -> bool:
    """Tell whether the host that complained is one of those that an entry is about."""
    if not record.get("instance"):
        return True
    roots = {provider["root_name"] for provider in entry["providers"]}
    return not roots or any(_is_same_host(root, record["host"]) for root in roots)


def _is_same_host(one: str, other: str) -> bool:
    """Tell whether two names may be those of one host: a node has its full name where a service has the short one."""
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]
