# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON that a run writes: servers, changes, plans and outcomes.

The entries of `findings.json` are in `findings.entries`. `docs/findings.md` describes the files to
users. All times are in UTC, as `2026-01-31T12:00:00Z` unless another form is named. Amounts are in
the unit of their resource class: VCPU in processors, MEMORY_MB in MiB, DISK_GB in GiB.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

Unchecked = t.Mapping[str, t.Any]
"""A JSON object from a file, whose keys and values are not checked yet."""

Amounts = dict[str, dict[str, int]]
"""Amounts by provider uuid and resource class."""


def convert_to_json(value: t.Any) -> t.Any:
    """Return the fields of a dataclass as JSON, anything else as it is.

    The fields of a model are those of its document here; a test compares them.
    """
    if d.is_dataclass(value) and not isinstance(value, type):
        return d.asdict(value, dict_factory=_sort_sets)
    return value


def _sort_sets(items: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    fields = {}
    for key, value in items:
        if isinstance(value, frozenset):
            fields[key] = sorted(value)
        elif isinstance(value, tuple):
            fields[key] = list(value)
        else:
            fields[key] = value
    return fields


# --- Nova


class FlavorDocument(t.TypedDict):
    """The flavor of a server, as Nova keeps it with the server."""

    vcpus: int
    # MiB
    ram: int
    # GiB
    disk: int
    # GiB
    ephemeral: int
    # MiB
    swap: int
    # None where these credentials may not see them.
    extra_specs: dict[str, str] | None


class ServerDocument(t.TypedDict):
    """A server (`models.nova.Server`)."""

    uuid: str
    name: str
    # Nova's, such as `ACTIVE`.
    status: str
    # uuids
    project: str | None
    user: str | None
    # The name of the compute service.
    host: str | None
    # The name of the compute node.
    node: str | None
    task_state: str | None
    # Whether Nova's answer had the task and the host at all.
    task_known: bool
    host_known: bool
    # Nova's own times.
    created: str | None
    updated: str | None
    terminated_at: str | None
    # The uuid of the image; None for a server that boots from a volume.
    image: str | None
    # uuids
    volumes: list[str]
    # None before compute microversion 2.47.
    flavor: FlavorDocument | None
    # None before compute microversion 2.98.
    image_properties: dict[str, str] | None
    # The name of its root disk, such as `/dev/vda`. Files of version 1.0 do not have it.
    root_device: t.NotRequired[str | None]
    # The availability zone to which the user bound the server; None before compute microversion
    # 2.96. Files of older versions do not have it.
    pinned_zone: t.NotRequired[str | None]
    launched_at: t.NotRequired[str | None]


class MigrationDocument(t.TypedDict):
    """A migration (`models.nova.Migration`)."""

    uuid: str
    # The uuid of the server.
    server: str
    # `migration`, `resize`, `live-migration` or `evacuation`.
    type: str
    # Nova's, such as `confirmed`.
    status: str
    # Names of compute services and compute nodes.
    source_compute: str | None
    source_node: str | None
    dest_compute: str | None
    dest_node: str | None
    # Nova's own times.
    created_at: str | None
    updated_at: str | None


class ServiceDocument(t.TypedDict):
    """A service of Nova (`models.nova.Service`)."""

    # Such as `nova-compute`.
    binary: str
    host: str
    # `enabled`, `disabled`, or `UNKNOWN` while its cell does not answer.
    status: str
    # `up` or `down`.
    state: str | None
    forced_down: bool
    disabled_reason: str | None
    # Nova's own time of the last report.
    updated_at: str | None
    id: str | None
    # The availability zone.
    zone: str | None


# --- the cloud and the part of it that was read


class CloudDocument(t.TypedDict):
    """The cloud that was read (`models.snapshot.Cloud`)."""

    placement_endpoint: str
    compute_endpoint: str
    region: str | None
    # The uuid of the project of the credentials.
    project: str | None
    # Types of other services that allocate from Placement, such as `container`.
    allocators: list[str]
    # The other regions whose Nova uses the same Placement.
    other_novas: list[str]
    # The newest microversions: major and minor.
    placement_version: list[int]
    compute_version: list[int]
    # Whether Placement's answers have a time, without which no age is known.
    tells_time: bool


class ShardDocument(t.TypedDict):
    """The part of a cloud that one of several runs reads."""

    # From 1 to `count`.
    number: int
    count: int


class PlanGroupsDocument(t.TypedDict):
    """The groups of hosts to which a reading was narrowed, as a plan names them."""

    # uuids
    aggregates: list[str]
    # The name of each of them, in the same order.
    aggregate_names: list[str]
    availability_zones: list[str]
    # As the user has named them.
    cells: list[str]


class GroupsDocument(PlanGroupsDocument):
    """The same in `findings.json`, with the hosts."""

    # The id of each of the aggregates, in the same order.
    aggregate_numbers: list[str]
    # The hosts of compute services that are in one of each of these groups.
    hosts: list[str]


class ScopeDocument(t.TypedDict):
    """What the reading was narrowed to; an empty list excludes nothing."""

    # Names or uuids of hypervisors.
    hosts: list[str]
    # uuids
    consumers: list[str]
    # uuids
    projects: list[str]
    # The name of each of these projects, in the same order; "" where it is not known. Files of
    # version 1.0 do not have it.
    project_names: t.NotRequired[list[str]]
    kinds: list[str]
    # `full`; in files of version 2.0 also `triage`.
    mode: str
    # None for the whole cloud. Files of version 1.0 do not have it.
    shard: t.NotRequired[ShardDocument | None]
    # Its lists are empty where no group is named. Files of version 1.0 do not have it.
    groups: t.NotRequired[GroupsDocument]
    # Searched as if `kinds` named them, unless that names others. Since version 3.0.
    also_kinds: t.NotRequired[list[str]]


class AnswerDocument(t.TypedDict):
    """A request and its answer: a piece of evidence (`models.snapshot.Answer`)."""

    # The method and the path with its query.
    request: str
    # Of the request, such as `2.68`.
    microversion: str
    # The HTTP status.
    status: int
    at: str
    # What was read from the body, as far as a proof uses it; of a long listing, how many `rows`.
    facts: t.Any


# --- changes


class ProviderAmounts(t.TypedDict):
    """What is allocated on one provider."""

    # By resource class.
    resources: dict[str, int]


class AllocationBody(t.TypedDict):
    """All allocations of a consumer, as `PUT /allocations/{consumer}` takes them."""

    # By provider uuid; empty for a consumer without allocations.
    allocations: dict[str, ProviderAmounts]
    # None for a consumer without allocations.
    consumer_generation: int | None
    # uuids; None only for a consumer that Placement does not know.
    project_id: str | None
    user_id: str | None
    # Such as `INSTANCE`; missing where Placement has no type for the consumer.
    consumer_type: t.NotRequired[str]


Action = t.Literal["remove", "reduce", "rewrite", "create"]
"""What a change does to the allocations of its consumer."""


class ChangeDocument(t.TypedDict):
    """The change of one consumer's allocations (`models.change.Change`)."""

    action: Action
    # The uuid of the consumer.
    consumer: str
    # The consumer generation at detection; None for a consumer without allocations.
    generation: int | None
    before: AllocationBody
    after: AllocationBody
    # The change of another consumer that goes into the same request.
    partner: ChangeDocument | None
    # What the change and its partner together free, and what they allocate.
    frees: Amounts
    claims: Amounts


class ProviderDocument(t.TypedDict):
    """A provider to delete, as it was at detection."""

    uuid: str
    name: str
    # The provider generation.
    generation: int
    # The uuid of the parent; None for a root.
    parent: str | None


class RemovalDocument(t.TypedDict):
    """The deletion of a provider tree (`models.change.ProviderRemoval`)."""

    action: t.Literal["delete_providers"]
    # Children before their parents; the root is last.
    providers: list[ProviderDocument]


class _StepReference(t.TypedDict):
    # The id of the finding that the step resolves: `kind/subject`.
    finding: str
    kind: str


class StepDocument(ChangeDocument):
    """One change of allocations in a plan."""

    finding: str
    kind: str


class TreeStepDocument(RemovalDocument):
    """One deletion of a provider tree in a plan."""

    finding: str
    kind: str


class PlanDocument(t.TypedDict):
    """The contents of `plan.json`."""

    # The version of this structure.
    format: int
    placement_endpoint: str
    region: str | None
    # When the reading ended in which the changes were found.
    detected_at: str
    # How many consumers were read; None after a reading of named hosts or consumers.
    consumers: int | None
    # Missing if no group of hosts was named.
    groups: t.NotRequired[PlanGroupsDocument]
    # The part of the cloud that was read; None for all of it. Files of version 1.0 do not have it.
    shard: t.NotRequired[ShardDocument | None]
    # In their order: what frees capacity comes first, the deletions of trees come last.
    changes: list[StepDocument | TreeStepDocument]
    # The SHA-256 of all other keys. Files of version 2.0 do not have it.
    digest: t.NotRequired[str]


# --- outcomes


class StepOutcomeDocument(StepDocument):
    """The outcome of a change of allocations."""

    # One of the names that the tally has.
    outcome: str
    # Why the step was not made; empty when it was made without remarks.
    reason: str
    # The ID of the reason (docs/reasons.md). Files of older versions do not have it.
    reason_id: t.NotRequired[str]


class TreeOutcomeDocument(TreeStepDocument):
    """The outcome of the deletion of a provider tree, with the same fields."""

    outcome: str
    reason: str
    reason_id: t.NotRequired[str]


OutcomeDocument: t.TypeAlias = "StepOutcomeDocument | TreeOutcomeDocument"


class NameDocument(t.TypedDict):
    """A provider by its uuid and its name."""

    uuid: str
    name: str


class ProviderSideDocument(t.TypedDict):
    """What a provider has before or after something is added to it; both lists are sorted."""

    traits: list[str]
    # uuids
    aggregates: list[str]


class ProviderAdditionDocument(t.TypedDict):
    """What is added to one provider of a tree that was created again."""

    uuid: str
    name: str
    # The provider generation before; None where it is not known.
    generation: int | None
    before: ProviderSideDocument
    after: ProviderSideDocument


class TreeAdditionDocument(_StepReference):
    """What is added to the providers of a tree that was created again."""

    action: t.Literal["restore_providers"]
    providers: list[ProviderAdditionDocument]


class RestoredOutcomeDocument(_StepReference):
    """The outcome of one change to restore, with the same fields."""

    outcome: str
    reason: str
    reason_id: t.NotRequired[str]
    # The uuid of the consumer; None for a tree of providers.
    consumer: str | None
    # The root of the tree as it was deleted; None for a consumer.
    provider: NameDocument | None
    # None where there was nothing to write.
    write: ChangeDocument | TreeAdditionDocument | None


class _RunDocument(t.TypedDict):
    # The version of this structure.
    format: int
    check_mode: bool
    # How many changes had each outcome, also those that none had.
    tally: dict[str, int]
    # The path of the journal; None where nothing was written.
    journal: str | None


class RemediationDocument(_RunDocument):
    """The contents of `remediation.json`."""

    outcomes: list[OutcomeDocument]


class RestorationDocument(_RunDocument):
    """The contents of `restoration.json`."""

    outcomes: list[RestoredOutcomeDocument]
