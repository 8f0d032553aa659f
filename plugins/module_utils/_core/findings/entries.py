# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The structure of `findings.json`, and how the files of a run are told from each other.

`docs/findings.md` describes them to users. Times and amounts are written as in `models.codec`. What
is a `Json` here has the fields of a dataclass, or is described there.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator

from ..._common.errors import InvalidInput
from ..models.codec import Json, Unchecked, convert_from_json
from ..models.kinds import get_finding_subject
from ..models.snapshot import Cloud, Scope

# The version of the structure of all the files that a run writes.
FORMAT = 1

# 20 000 findings passed from task to task cost Ansible up to a gigabyte: modules return this many,
# and the files have all of them.
MAX_RETURNED = 200

# The lists of entries; those that an operator may have to act on come first.
ENTRY_LISTS: tuple[t.Literal["findings"], t.Literal["undecided"], t.Literal["protected"]] = (
    "findings",
    "undecided",
    "protected",
)


class Entry(t.TypedDict):
    """A finding, or what was examined and left alone. Fields that do not apply are None."""

    # `kind/subject`; the same from run to run.
    id: str
    kind: str
    # `orphaned`, `drifted`, `protected` or `undecided`.
    verdict: str
    # The uuid of the consumer.
    consumer: str | None
    # A sentence for people.
    reason: str
    # Its ID (docs/reasons.md). Files of older versions do not have it.
    reason_id: t.NotRequired[str]
    server: Json | None
    migration: Json | None
    service: Json | None
    # The uuids of the owners of the allocation.
    project: str | None
    user: str | None
    # The consumer type, such as `INSTANCE`.
    type: str | None
    # The consumer generation.
    generation: int | None
    # Seconds since the newest write of the allocation, by Placement's own clock.
    age_seconds: int | None
    providers: list[Json]
    evidence: list[Json]
    change: Json | None
    # When a run first saw it.
    first_seen: str
    # Whether the run before did not have it.
    new: bool
    # What may be pasted into a shell to fix it, in this order. Files of version 1.0 do not have
    # it.
    commands: t.NotRequired[list[str]]
    # Only findings have the rest. Whether the user selects it.
    selected: t.NotRequired[bool]
    # How many runs have seen it unchanged. Files of version 1.0 do not have it.
    sightings: t.NotRequired[int]
    # Why it may not be changed yet, empty when it may. Files of version 1.0 do not have it.
    waiting: t.NotRequired[str]


class Stranded(t.TypedDict):
    """What all proposed changes would free."""

    # Amounts by resource class.
    resource_classes: dict[str, int]
    # By resource class all that is allocated in the cloud; empty unless the whole cloud was read.
    # Files of older versions do not have it.
    allocated: t.NotRequired[dict[str, int]]
    # The fraction (0 to 1) of these amounts that is stranded.
    share_of_claimed: dict[str, float]
    # Amounts by resource class, by the name of the provider and by the uuid of the project.
    providers: dict[str, dict[str, int]]
    projects: dict[str, dict[str, int]]
    # By the uuid of the project. Files of older versions do not have it.
    quota: t.NotRequired[dict[str, Json]]


class Coverage(t.TypedDict):
    """How much was read, and whether that is enough to change anything."""

    # Whether there are hosts that were not judged, because their cell does not answer, and their
    # names, sorted. Files of version 1.0 do not have these two.
    partial: t.NotRequired[bool]
    unjudged_hosts: t.NotRequired[list[str]]
    # Those of them whose row in Nova's table of services is missing. Files of older versions do not
    # have it.
    hosts_without_service: t.NotRequired[list[str]]
    # What the figures are about, such as "the whole cloud". Files of older versions do not have it.
    scope: t.NotRequired[str]
    # "full", or "incremental" where only what changed was read again. Files of version 1.0 do not
    # have these three.
    reading: t.NotRequired[str]
    # When the last full reading began, in UTC.
    full_at: t.NotRequired[str]
    # Why an incremental reading was not enough; a sentence, or empty.
    why_full: t.NotRequired[str]
    # Whether no check of the reading failed.
    complete: bool
    # A sentence for each reason why nothing may be changed, and the IDs of these sentences. Files
    # of older versions do not have the IDs.
    failed_checks: list[str]
    failed_check_ids: t.NotRequired[list[str]]
    # A sentence for each thing that services as old as these cannot prove.
    not_provable: list[str]
    # A sentence for each thing that was not searched, because a service did not answer. Files of
    # older versions do not have it.
    unread: t.NotRequired[list[str]]
    # How many hosts are in cells that do not answer.
    silent_hosts: int
    # How many requests were sent again.
    retried: int
    # How many of each were read; servers by the figures that the hosts report.
    providers: int
    consumers: int
    servers: int
    hypervisors: int
    # How many consumers were looked up, and how many were not because nothing may be changed.
    looked_at_closely: int
    left_out: int
    # Of how many servers the amounts were checked. Files of older versions do not have it.
    amounts: t.NotRequired[Json]


class Summary(t.TypedDict):
    """The figures of a detection."""

    # How many entries have each verdict.
    verdicts: dict[str, int]
    # How many findings are of each kind, and how many of these are new.
    kinds: dict[str, int]
    new: dict[str, int]
    stranded: Stranded
    # By resource class.
    capacity: dict[str, Json]
    # By resource class. Files of version 1.0 do not have it.
    overcommit: t.NotRequired[dict[str, Json]]
    coverage: Coverage


class FindingsDocument(t.TypedDict):
    """The contents of `findings.json`."""

    # The version of this structure.
    format: int
    # By id, when a finding was first seen that this reading does not report.
    known: dict[str, str]
    # By id. Files of version 1.0 do not have it.
    sightings: t.NotRequired[dict[str, Json]]
    # Files of version 1.0 do not have it.
    versions: t.NotRequired[Json]
    cloud: Json
    scope: Json
    started_at: str
    finished_at: str
    summary: Summary
    # The orphaned entries, then the drifted ones.
    findings: list[Entry]
    protected: list[Entry]
    undecided: list[Entry]
    # The providers that findings are about, sorted by name.
    capacity: list[Json]
    # The consumers in the scope that have allocations.
    held: list[str]


class _AboutDocument(t.TypedDict):
    """What a reading was about, where that is checked in every part."""

    cloud: Cloud
    scope: Scope


def iterate_entries(findings: FindingsDocument) -> Iterator[Entry]:
    """Yield every entry of `findings.json`."""
    for key in ENTRY_LISTS:
        yield from findings[key]


def get_subject(entry: Entry) -> str:
    """Return the uuid or the name of the object that an entry is about."""
    return entry["consumer"] or get_finding_subject(entry["id"])


def describe_scope(scope: Unchecked) -> str:
    """Return of what the figures of a detection are, such as `the whole cloud`."""
    return str(convert_from_json(Scope, scope))


DocumentName = t.Literal["findings", "plan", "remediation", "hosts", "guests", "summary"]

# For each file the module that writes it, and the keys that only such a file has.
_WRITERS: dict[DocumentName, tuple[str, tuple[str, ...]]] = {
    "findings": ("orphan_detect", ()),
    "plan": ("orphan_plan", ("placement_endpoint", "detected_at", "changes")),
    "remediation": ("orphan_remediate", ("check_mode", "tally", "journal", "outcomes")),
    "hosts": ("compute_host_info", ("hosts",)),
    "guests": (
        "hypervisor_guest_detect",
        ("summary.coverage.domains", "findings", "protected", "undecided"),
    ),
    "summary": ("orphan_report", ("complete", "totals.verdicts", "runs", "missing_shards")),
}


def validate_document(what: DocumentName, document: t.Any, path: str) -> t.Any:
    """Return the contents of `path`, which everything after this may take for what they are.

    what: the file that it should be.
    Raises InvalidInput when it is another file, or one of another version.
    """
    try:
        _check_document(what, document)
    except ValueError as error:
        raise InvalidInput(
            f"{path} is not a file that {_WRITERS[what][0]} of this version of the collection "
            f"wrote, or not all of it ({error}): set {what} to the path of such a file."
        ) from error
    return document


def _check_document(what: DocumentName, document: t.Any) -> None:
    """Raise ValueError with what is missing or wrong."""
    if not isinstance(document, dict):
        raise ValueError("it is not a mapping")
    if "format" not in document:
        raise ValueError("it has no format")
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, and this version reads {FORMAT}")
    for dotted_key in _WRITERS[what][1]:
        if not _has_key(document, dotted_key):
            raise ValueError(f"{dotted_key} is missing")
    if what == "findings":
        convert_from_json(FindingsDocument, document)
        convert_from_json(_AboutDocument, document)


def _has_key(document: Unchecked, dotted_key: str) -> bool:
    part: t.Any = document
    for key in dotted_key.split("."):
        if not isinstance(part, dict) or key not in part:
            return False
        part = part[key]
    return True
