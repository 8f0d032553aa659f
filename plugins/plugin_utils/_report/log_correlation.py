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
from collections.abc import Iterable

from ...module_utils._common.errors import InvalidInput
from ...module_utils._core.findings.entries import Entry, FindingsDocument, iterate_entries

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json


class ComplaintProvider(t.TypedDict, total=False):
    """The resource provider that a complaint names."""

    name: str
    uuid: str


class Complaint(t.TypedDict):
    """What a host complained of in its log: a record of `nova_log_info`."""

    # One of the names in `on_host.nova_log`, such as `not_in_database`.
    kind: str
    # The name of the host that complained.
    host: str
    # Which of the rest there are depends on the kind. The uuid of a server.
    instance: t.NotRequired[str | None]
    provider: t.NotRequired[ComplaintProvider | None]
    # The host that the server has moved to.
    other_host: t.NotRequired[str | None]
    # Amounts by resource class that the server has there.
    amounts: t.NotRequired[dict[str, int] | None]
    # How many servers the `database` and the `hypervisor` count.
    counts: t.NotRequired[dict[str, int] | None]
    # The version of an RPC that was `requested`, and the `cap`.
    versions: t.NotRequired[dict[str, str] | None]
    # The uuid of the port that was deleted.
    port: t.NotRequired[str | None]
    # How often the host complained, and when it last did, in UTC.
    count: t.NotRequired[int]
    last_seen: t.NotRequired[str]


class Correlation(t.TypedDict):
    """All complaints: those that a finding explains, and those that none does."""

    # By the id of the finding.
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


def correlate_records(
    findings: FindingsDocument,
    records: Iterable[Complaint],
    guests: Json | None = None,
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


def _is_record(row: t.Any) -> bool:
    if not isinstance(row, dict):
        return False
    for key in ("amounts", "counts", "versions", "provider"):
        if not isinstance(row.get(key), dict | None):
            return False
    provider = row.get("provider") or {}
    texts = (
        row.get("kind"),
        row.get("host"),
        row.get("instance") or "",
        provider.get("name") or "",
    )
    return all(isinstance(text, str) for text in texts)


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
    if not record.get("instance"):
        return True
    roots = {provider["root_name"] for provider in entry["providers"]}
    return not roots or any(_is_same_host(root, record["host"]) for root in roots)


def _is_same_host(one: str, other: str) -> bool:
    """Return whether two names may be those of one host.

    A compute node has the full name of its host where a service has the short one.
    """
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]
