# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The structure of `findings.json`: its entries, and the figures about them.

`docs/findings.md` describes it to users. Times and amounts are written as in `models.documents`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from ..._common.text import format_count, summarize_names
from ..models.documents import (
    AnswerDocument,
    ChangeDocument,
    CloudDocument,
    MigrationDocument,
    RemovalDocument,
    ScopeDocument,
    ServerDocument,
    ServiceDocument,
)
from ..models.host_groups import describe_groups
from ..models.kinds import get_finding_subject

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


class EntryProvider(t.TypedDict):
    """A provider that an entry is about."""

    uuid: str
    name: str
    # The uuid of the root of its tree; None for a provider that Placement does not list.
    root: str | None
    root_name: str
    # What the consumer has there, by resource class.
    resources: dict[str, int]
    # Whether what the consumer has there is an orphan.
    dropped: bool


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
    server: ServerDocument | None
    migration: MigrationDocument | None
    service: ServiceDocument | None
    # The uuids of the owners of the allocation.
    project: str | None
    user: str | None
    # The consumer type, such as `INSTANCE`.
    type: str | None
    # The consumer generation.
    generation: int | None
    # Seconds since the newest write of the allocation, by Placement's own clock.
    age_seconds: int | None
    providers: list[EntryProvider]
    evidence: list[AnswerDocument]
    change: ChangeDocument | RemovalDocument | None
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


class ProjectQuota(t.TypedDict):
    """What a project gets back of its quota where Nova counts usage in Placement."""

    # The name that Keystone has for it; empty where that is not known.
    name: str
    # Whether Keystone has it; None where that is not known.
    exists: bool | None
    # How many consumers the proposed changes would free, in whole or in part.
    consumers: int
    # VCPU and PCPU together, as Nova counts the quota `cores`; and MEMORY_MB, its quota `ram`.
    cores: int
    ram_mib: int


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
    quota: t.NotRequired[dict[str, ProjectQuota]]


class Capacity(t.TypedDict):
    """What the providers whose inventory was read have of one resource class, added up."""

    total: int
    reserved: int
    # (total - reserved) * allocation_ratio, as Placement rounds it.
    capacity: int
    # What is allocated.
    used: int
    # What the proposed changes would free on these providers, and how many providers they are.
    # Files of older versions have neither.
    stranded: t.NotRequired[int]
    providers: t.NotRequired[int]


class Overcommit(t.TypedDict):
    """How many hosts have more allocated of one resource class than they physically have."""

    # How many hosts report a figure of this class, and how many of these are over-committed.
    hosts: int
    overcommitted: int
    # How many times what it has is allocated on the host where that is most, and this host; 0 and
    # "" where nothing is allocated.
    highest: float
    highest_host: str


class Unjudged(t.TypedDict):
    """Which hosts were not judged, because their cell does not answer."""

    # Whether there are any.
    partial: bool
    # Their names, sorted. Files of version 1.0 do not have them.
    unjudged_hosts: t.NotRequired[list[str]]


class AmountCoverage(t.TypedDict):
    """Of how many servers in scope the amounts were checked."""

    # All servers, and those that were checked, in either way.
    servers: int
    checked: int
    # Those that were compared by themselves with what Nova would allocate for them.
    by_server: int
    # Those on hosts whose figures agree with the sums of their allocations.
    by_host: int
    # How many were not checked, by what is missing.
    unchecked: dict[str, int]


class Coverage(Unjudged):
    """How much was read, and whether that is enough to change anything."""

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
    amounts: t.NotRequired[AmountCoverage]


class Summary(t.TypedDict):
    """The figures of a detection."""

    # How many entries have each verdict.
    verdicts: dict[str, int]
    # How many findings are of each kind, and how many of these are new.
    kinds: dict[str, int]
    new: dict[str, int]
    stranded: Stranded
    # By resource class.
    capacity: dict[str, Capacity]
    # By resource class. Files of version 1.0 do not have it.
    overcommit: t.NotRequired[dict[str, Overcommit]]
    coverage: Coverage


class ProviderClass(t.TypedDict):
    """What a provider has of one resource class; None where it was not read."""

    total: int | None
    reserved: int | None
    allocation_ratio: float | None
    capacity: int | None
    # What is allocated.
    used: int | None
    # What the proposed changes would free.
    stranded: int
    # What Nova reports for the compute node.
    hypervisor_total: int | None
    hypervisor_used: int | None


class ProviderCapacity(t.TypedDict):
    """What a provider has that a finding is about."""

    uuid: str
    name: str
    # By resource class.
    resource_classes: dict[str, ProviderClass]


class SightingDocument(t.TypedDict):
    """How often runs have seen a finding unchanged."""

    # How many runs.
    count: int
    # When the first and the last of them ended; the last is empty before the first sound reading.
    since: str
    last: str
    # Those of the consumers or providers that the change would write.
    generations: list[int | None]


class VersionsDocument(t.TypedDict):
    """The versions of what made a reading, each empty where it is not known."""

    # Of this collection.
    collection: str
    ansible_core: str
    openstacksdk: str


class HistoryDocument(t.TypedDict):
    """What a run remembers for the next one, as it is kept in a file of its own."""

    # The version of this structure.
    format: int
    # By id, when a finding was first seen.
    known: dict[str, str]
    # By id. Files of version 1.0 do not have it.
    sightings: t.NotRequired[dict[str, SightingDocument]]


class FindingsDocument(HistoryDocument):
    """The contents of `findings.json`; its `known` has only what this reading does not report."""

    # Files of version 1.0 do not have it.
    versions: t.NotRequired[VersionsDocument]
    cloud: CloudDocument
    scope: ScopeDocument
    started_at: str
    finished_at: str
    summary: Summary
    # The orphaned entries, then the drifted ones.
    findings: list[Entry]
    protected: list[Entry]
    undecided: list[Entry]
    # The providers that findings are about, sorted by name.
    capacity: list[ProviderCapacity]
    # The consumers in the scope that have allocations.
    held: list[str]


def iterate_entries(findings: FindingsDocument) -> Iterator[Entry]:
    """Yield every entry of `findings.json`."""
    for key in ENTRY_LISTS:
        yield from findings[key]


def get_subject(entry: Entry) -> str:
    """Return the uuid or the name of the object that an entry is about."""
    return entry["consumer"] or get_finding_subject(entry["id"])


def describe_scope(scope: ScopeDocument) -> str:
    """Return of what the figures of a detection are, such as `the whole cloud`."""
    about = []
    if scope["hosts"]:
        about.append(_count_names(scope["hosts"], "host", "hosts"))
    if scope["consumers"]:
        about.append(_count_names(scope["consumers"], "consumer", "consumers"))
    shard = scope.get("shard")
    if shard:
        about.append(f"shard {shard['number']} of {shard['count']} of the cloud")
    # Only files of version 2.0 have it.
    if scope["mode"] == "triage":
        about.append("the hosts whose figures look wrong")
    text = " and ".join(about) or "the whole cloud"
    # Files of version 1.0 have no groups.
    groups = scope.get("groups")
    named_groups = describe_groups(groups) if groups else ""
    if named_groups and about:
        text += f" within {named_groups}"
    elif groups and named_groups:
        hosts = format_count(len(groups["hosts"]), "host", "hosts")
        text = f"{hosts} of {named_groups}"
    # These choose among what was found, and not what is read.
    if scope["projects"]:
        text += f", findings of {_count_names(scope['projects'], 'project', 'projects')} only"
    if scope["kinds"]:
        text += f", findings of {_count_names(scope['kinds'], 'kind', 'kinds')} only"
    return text


def _count_names(names: Sequence[str], one: str, many: str) -> str:
    return f"{format_count(len(names), one, many)} ({summarize_names(sorted(names))})"
