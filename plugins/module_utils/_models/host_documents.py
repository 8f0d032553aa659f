# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The JSON about hosts: `host.json`, and the file of what hypervisors have left over.

Times and amounts are written as in `_models.documents`.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
    AnswerDocument,
    CloudDocument,
    MigrationDocument,
    ServerDocument,
    ServiceDocument,
)


class NodeDocument(t.TypedDict):
    """A compute node of a host."""

    uuid: str
    name: str
    # `up` or `down`.
    state: str
    # `enabled` or `disabled`.
    status: str
    # The number of servers as nova-compute last reported it.
    running_vms: int


class HostProviderDocument(t.TypedDict):
    """A provider of the trees of a host."""

    uuid: str
    name: str
    # uuids
    root: str
    parent: str | None


class AggregateDocument(t.TypedDict):
    """A host aggregate of Nova that a host is in."""

    uuid: str
    name: str
    # The availability zone.
    zone: str | None


class HostServerDocument(t.TypedDict):
    """A server on a host."""

    uuid: str
    name: str
    status: str
    task_state: str | None


class HostMigrationDocument(MigrationDocument):
    """A migration under way from or to a host."""

    # Since its last change, by Nova's own clock.
    age_seconds: int | None
    advice: str


class HostLeftoverDocument(t.TypedDict):
    """An orphan on a host, which does not block its decommissioning."""

    id: str
    kind: str
    consumer: str | None
    reason: str


class BlockerDocument(t.TypedDict):
    """Something that blocks the decommissioning of a host."""

    kind: str
    # A uuid, or the name of a service.
    subject: str
    name: str
    reason: str
    # The step of the decommissioning that it blocks.
    stops: str


class HostDocument(t.TypedDict):
    """Everything about one host."""

    # As the user named it.
    name: str
    # The name of its compute service.
    host: str
    # Whether Nova or Placement knows it.
    known: bool
    service: ServiceDocument | None
    nodes: list[NodeDocument]
    providers: list[HostProviderDocument]
    aggregates: list[AggregateDocument]
    servers: list[HostServerDocument]
    migrations: list[HostMigrationDocument]
    left_over: list[HostLeftoverDocument]
    blockers: list[BlockerDocument]


class HostsDocument(t.TypedDict):
    """The contents of `host.json`."""

    format: int
    hosts: list[HostDocument]


class GuestEntry(t.TypedDict):
    """A domain or a directory on a hypervisor, and what the rules conclude of it."""

    id: str
    # `leftover_domain` or `leftover_directory`.
    kind: str
    # `orphaned`, `protected` or `undecided`.
    verdict: str
    # The name of the hypervisor.
    host: str
    # The uuid of the server.
    uuid: str
    # The name of the domain or of the directory.
    name: str
    reason: str
    # None where Nova does not know it.
    server: ServerDocument | None
    # The facts that the hypervisor reported (`hypervisor_guest_info`).
    guest: dict[str, t.Any]
    evidence: list[AnswerDocument]


class GuestCoverage(t.TypedDict):
    """How much was read of the hypervisors."""

    complete: bool
    # A sentence for each reason why nothing may be changed.
    failed_checks: list[str]
    # How many of each were read.
    hosts: int
    domains: int
    directories: int
    # How many servers were looked up.
    looked_at_closely: int


class GuestSummary(t.TypedDict):
    """The figures of a detection on hypervisors."""

    # How many entries have each verdict.
    verdicts: dict[str, int]
    # How many findings are of each kind.
    kinds: dict[str, int]
    coverage: GuestCoverage


class GuestsDocument(t.TypedDict):
    """The file of `hypervisor_guest_detect`."""

    # The version of this structure.
    format: int
    cloud: CloudDocument
    started_at: str
    finished_at: str
    summary: GuestSummary
    findings: list[GuestEntry]
    protected: list[GuestEntry]
    undecided: list[GuestEntry]
