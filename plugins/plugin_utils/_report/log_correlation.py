# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts complained of in their logs, with the findings that explain it.

It is shown, and nothing is ever concluded from it.
"""

from __future__ import annotations

import collections
import contextlib
import typing as t
from collections.abc import Iterable, Mapping

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.text import make_printable
from ...module_utils._core.findings.entries import Entry, FindingsDocument, iterate_entries
from .phrases import MAX_NAME, format_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

# A record of `nova_log_info`, which describes its fields. It always has `kind` and `host`; which of
# the others there are depends on the kind.
Complaint = Mapping[str, t.Any]

# What a host says by each kind of complaint.
_TEXTS = {
    "not_in_database": "it is not found in the database",
    "not_managed": "it is not managed here",
    "moved_away": "it has moved to <to>",
    "power_state_counts": "servers in the database: <database>, on the hypervisor: <hypervisor>",
    "provider_conflict": "another resource provider has this name",
    "port_deleted": "its port <port> was deleted in Neutron, and its bandwidth was not freed",
    "rpc_version_cap": "version <requested> was requested, and the cap is <cap>",
    "renamed_host": "nova-compute does not start: its compute node is recorded for <to>",
    "lost_identity": "nova-compute does not start: its file compute_id is gone",
    "unknown_to_database": "nova-compute does not start: its database does not know this host",
    "no_such_provider": "Placement lacks its provider <provider>",
    "inventory_in_use": "what provider <provider> no longer has is still allocated",
}


class Correlation(t.TypedDict):
    """All complaints: those that a finding explains, by its id, and those that none does."""

    explained: dict[str, list[Complaint]]
    unexplained: list[Complaint]


def extract_records(contents: t.Any) -> list[Complaint]:
    """Return the records in what `nova_log_info` returned, or in a list of records of any hosts.

    Raises InvalidInput when it holds anything else.
    """
    records = contents.get("records") if isinstance(contents, dict) else contents
    if not isinstance(records, list) or not all(map(_is_record, records)):
        raise InvalidInput(
            "they are not the records that nova_log_info returns, "
            "as a list or under the key records."
        )
    return records


def _is_record(row: t.Any) -> bool:
    if not isinstance(row, dict):
        return False
    parts = [row.get(key) for key in ("amounts", "counts", "versions", "provider")]
    if not all(isinstance(part, dict | None) for part in parts):
        return False
    names = (row.get("instance"), (row.get("provider") or {}).get("name"))
    texts = (row.get("kind"), row.get("host"), *(name or "" for name in names))
    return all(isinstance(text, str) for text in texts)


def correlate_records(
    findings: FindingsDocument, records: Iterable[Complaint], guests: Json | None = None
) -> Correlation:
    """Return the complaints that a finding explains, and those that none does.

    findings: the contents of `findings.json`; what is protected or undecided explains a
        complaint, too.
    guests: the contents of the file of `hypervisor_guest_detect` in the same run.
    """
    by_subject: dict[str, list[Entry]] = collections.defaultdict(list)
    for entry in iterate_entries(findings):
        for subject in _list_subjects(entry):
            by_subject[subject].append(entry)
    explained: dict[str, list[Complaint]] = {}
    unexplained: list[Complaint] = []
    for record in records:
        candidates = by_subject.get(get_record_subject(record), ())
        matches = [entry["id"] for entry in candidates if _is_about_host(entry, record)]
        matches += [guest["id"] for guest in _find_guests(guests, record)]
        for identity in matches:
            explained.setdefault(identity, []).append(record)
        if not matches:
            unexplained.append(record)
    return {"explained": explained, "unexplained": unexplained}


def get_record_subject(record: Complaint) -> str:
    """Return what a complaint is about: a uuid of a consumer or server, or a provider's name."""
    return record.get("instance") or (record.get("provider") or {}).get("name") or ""


def _find_guests(guests: Json | None, record: Complaint) -> list[Json]:
    """Return the domains and directories on the host of a complaint that explain it."""
    entries: list[Json] = []
    if guests is not None:
        entries = [*guests["findings"], *guests["protected"], *guests["undecided"]]
    here = [entry for entry in entries if _is_same_host(entry["host"], record["host"])]
    counts = record.get("counts") or {}
    # Each domain without a server here adds one to those that Nova counts on the hypervisor.
    domains = [entry for entry in here if entry["kind"] != "leftover_directory"]
    with contextlib.suppress(KeyError, TypeError):
        if 0 < counts["hypervisor"] - counts["database"] <= len(domains):
            return domains
    return [entry for entry in here if entry["uuid"] == record.get("instance")]


def _list_subjects(entry: Entry) -> set[str]:
    """Return the uuids of consumer and server; of an entry that is about providers, their names."""
    consumer, server = entry["consumer"], entry["server"]
    # A log names providers, and never their uuids.
    if consumer is None and server is None:
        return {provider["name"] for provider in entry["providers"]}
    subjects = (consumer, server and server["uuid"])
    return {uuid for uuid in subjects if uuid}


def _is_about_host(entry: Entry, record: Complaint) -> bool:
    """Return whether the host that complained is one of those that an entry is about."""
    roots = {provider["root_name"] for provider in entry["providers"]}
    is_anywhere = not roots or not record.get("instance")
    return is_anywhere or any(_is_same_host(root, record["host"]) for root in roots)


def _is_same_host(one: str, other: str) -> bool:
    """Return whether two names may be those of one host.

    A compute node has the full name of its host where a service has the short one.
    """
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]


def describe_complaint(record: Complaint) -> str:
    """Return who complained of what, how often and until when."""
    kind: str = record["kind"]
    text = _TEXTS.get(kind, kind)
    facts = {
        "to": record.get("other_host") or "no host",
        "port": record.get("port") or "of an unknown UUID",
        "provider": (record.get("provider") or {}).get("uuid"),
        **(record.get("counts") or {}),
        **(record.get("versions") or {}),
    }
    for name, fact in facts.items():
        text = text.replace(f"<{name}>", str(fact))
    if record.get("amounts"):
        text += f", with an allocation of {format_amounts(record['amounts'])}"
    count = record.get("count", 1)
    times = "once" if count == 1 else f"{count} times"
    if record.get("last_seen"):
        times += f", last at {record['last_seen']}"
    return f"{make_printable(record['host'], MAX_NAME)} says: {text} ({times})"
