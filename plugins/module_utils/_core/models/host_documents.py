# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON about hosts: `host.json`, and the file of what hypervisors have left over.

Times and amounts are written as in `models.documents`.
"""

from __future__ import annotations

import typing as t

from .documents import (
    AnswerDocument,
    CloudDocument,
    MigrationDocument,
    ServerDocument,
    ServiceDocument,
)


class NodeRecord(t.TypedDict):
    """A compute node that a host had."""

    # Also the uuid of its root provider.
    uuid: str
    name: str


class NodeDocument(NodeRecord):
    """A compute node of a host."""

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

    # Nova's requests name an aggregate by this number.
    id: int
    uuid: str
    name: str
    # The availability zone.
    zone: str | None
    # With `availability_zone`, as Nova has it.
    metadata: dict[str, str]


class AgentResourceDocument(t.TypedDict):
    """A network that a DHCP agent serves, or a router that an L3 agent serves."""

    # `network` or `router`.
    kind: str
    uuid: str
    name: str


class AgentDocument(t.TypedDict):
    """A network agent of a host, as Neutron lists it."""

    uuid: str
    # Such as `neutron-openvswitch-agent`, `neutron-l3-agent` or `ovn-controller`.
    binary: str
    # Such as `Open vSwitch agent`, `L3 agent` or `OVN Controller agent`.
    type: str
    host: str
    # Whether it has reported within Neutron's `agent_down_time`.
    alive: bool
    admin_state_up: bool
    # The time of its last report, as Neutron writes it; None where it never reported.
    heartbeat_at: str | None
    description: str | None
    # What only this agent may serve. None where Neutron did not list it.
    resources: list[AgentResourceDocument] | None


class BoundPortDocument(t.TypedDict):
    """A port that is bound to a host, with a server, a router or a DHCP agent behind it."""

    uuid: str
    # Such as `compute:nova`, `network:dhcp` or `network:router_interface`.
    device_owner: str
    # The uuid of the server or of the router, or Neutron's own id of a DHCP server.
    device: str


class OtherServiceDocument(t.TypedDict):
    """A service other than nova-compute that is registered with the name of a host."""

    # The service type in the catalogue: `compute` or `block-storage`.
    api: str
    # None for services of block storage, which have none.
    id: str | None
    binary: str
    # Of cinder-volume also `host@backend`.
    host: str
    status: str
    # `up` or `down`.
    state: str | None
    # The command that removes it.
    command: str


class ProviderRecord(HostProviderDocument):
    """A provider of a host with all that a new provider of that name can be compared with."""

    generation: int | None
    # By resource class, with the fields of `models.placement.Inventory`.
    inventories: dict[str, dict[str, float]]
    # All of them, sorted: those of nova-compute, and those that somebody added.
    traits: list[str]
    # The uuids of its aggregates in Placement, sorted, mirrored by Nova or not.
    aggregates: list[str]


class RecordedCloud(t.TypedDict):
    """The cloud of a host."""

    region: str | None
    placement_endpoint: str
    compute_endpoint: str


class HostRecord(t.TypedDict):
    """What a host had right before its deletion, with what the run itself had taken from it.

    A host of that name can get it back after it was deployed again.
    """

    # In UTC.
    taken_at: str
    # A record of version 2.0.0 has none.
    cloud: RecordedCloud
    # Whether the deletion of the host was to follow.
    begun: bool
    # The name of the compute service.
    host: str
    # With its status, its disabled reason and its zone before the run disabled it. A host that was
    # deployed again has another `id`.
    service: ServiceDocument | None
    nodes: list[NodeRecord]
    aggregates: list[AggregateDocument]
    # Children first.
    providers: list[ProviderRecord]


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
    # Empty in a cloud without a network service.
    agents: list[AgentDocument]
    # The ports that are bound to the host and in use.
    ports: list[BoundPortDocument]
    other_services: list[OtherServiceDocument]
    # A sentence for each thing that the user should know and that blocks nothing.
    warnings: list[str]
    # A sentence for each service of the cloud that could not be asked about the host.
    unread: list[str]


class RecordedHostDocument(HostDocument):
    """A host in `host.json`, which has a memory of it."""

    # What the host has, or had when it was deleted. None where nothing was known of the host.
    record: HostRecord | None
    # The record of an earlier host of that name, with another compute service. None without one.
    former_record: HostRecord | None


class HostsDocument(t.TypedDict):
    """The contents of `host.json`."""

    format: int
    hosts: list[RecordedHostDocument]


class GuestEntry(t.TypedDict):
    """A domain or a directory on a hypervisor, and what the rules conclude of it."""

    id: str
    # `running_leftover`, `leftover_domain` or `leftover_directory`.
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
