#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_host_info
short_description: Show compute hosts, and what blocks their decommissioning
version_added: 1.0.0
description:
  - Reads everything that Nova and Placement have about compute hosts, and returns what must be
    removed before a host can be decommissioned without leaving anything behind.
  - Allocations that are provably left over, by the same proofs as in
    M(osops.placement.orphan_detect), are returned separately from everything else.
  - Where the service catalogue has a network service, the network agents of the hosts are read
    too, and where it has block storage, the services of Cinder.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.policy
  - osops.placement._options.retirement
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  hosts:
    description:
      - The hosts to read. Each entry is the name of the host of a compute service, or the name or
        UUID of its only compute node.
      - 'If a service has several compute nodes, as with ironic, they can only be decommissioned
        together: name the host of the service.'
      - Required, unless O(services_only=true).
    type: list
    elements: str
  providers:
    description:
      - UUIDs of root providers that an earlier task returned. Those that still exist are returned
        with the only host in O(hosts), whatever their names are.
    type: list
    elements: str
    default: []
  allow_unknown:
    description:
      - Whether to accept a host of which neither Nova nor Placement has anything, for example
        because it was decommissioned already. Its RV(hosts[].known) is then V(false). A name that
        a host has in other upper case, or with or without a domain, is not accepted.
      - Otherwise the module fails for such a host and shows similar names, unless a migration
        still names it, O(providers) has its providers or O(earlier) has its record.
    type: bool
    default: false
    version_added: 2.0.0
  dest:
    description:
      - Path of the file to which all results are written, as JSON with mode 0600.
      - Each host then also has a RV(hosts[].record), which needs three requests for each of its
        providers.
    type: path
  earlier:
    description:
      - Path of a file that an earlier task wrote to O(dest). What interrupted runs have taken from
        a host is added to its RV(hosts[].record) from there. A path without a file is accepted,
        and a file of another cloud is refused.
      - Root providers that the record has and Placement still has are returned with the host. The
        module fails if one of them has no name that the host had, or no trait that Nova sets.
    type: path
    version_added: 2.0.0
  assume_drained:
    description:
      - Whether a later task moves the servers away. Servers, migrations and resizes are then no
        reason in RV(hosts[].refusal).
    type: bool
    default: false
    version_added: 3.0.0
  services_only:
    description:
      - Whether to read only the compute services of O(hosts), with one request. Each host then has
        only its name and RV(hosts[].service), and hosts without a compute service are left out.
        Without O(hosts), all compute services are returned.
      - It names the services of a cell that is down, which have the status V(UNKNOWN) and hardly
        anything else.
    type: bool
    default: false
    version_added: 3.0.0
seealso:
  - module: osops.placement.compute_host
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: Find out what blocks the decommissioning of a host
  osops.placement.compute_host_info:
    cloud: admin
    hosts:
      - compute-17
  register: found

- name: Show the blockers
  ansible.builtin.debug:
    msg: "{{ found.hosts[0].blockers | map(attribute='reason') }}"

- name: List the compute services
  osops.placement.compute_host_info:
    cloud: admin
    services_only: true
  register: compute

- name: Show the hosts whose service is disabled and down
  ansible.builtin.debug:
    msg: >-
      {{ compute.hosts | selectattr('service.status', '==', 'disabled')
      | selectattr('service.state', '==', 'down') | map(attribute='host') }}
"""

RETURN = r"""
hosts:
  description: The hosts, in the order of O(hosts); with O(services_only=true), sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The name of the host in O(hosts).
      returned: success
      type: str
      sample: compute-17.example.org
    host:
      description: The name of the host of its compute service.
      returned: success
      type: str
      sample: compute-17
    known:
      description: Whether Nova or Placement has anything about the host.
      returned: success
      type: bool
      sample: true
    service:
      description: Its compute service; V(null) without one.
      returned: success
      type: dict
      sample:
        id: e3c18c2d-9488-4863-b728-f3f292ec5da8
        state: down
      contains: &service
        id:
          description: ID of the service; V(null) while its cell does not answer.
          returned: success
          type: str
          sample: e3c18c2d-9488-4863-b728-f3f292ec5da8
        host:
          description: Name of the host on which the service runs.
          returned: success
          type: str
          sample: compute-17
        binary:
          description: Binary of the service.
          returned: success
          type: str
          sample: nova-compute
        zone:
          description: Availability zone of the host; V(null) while its cell does not answer.
          returned: success
          type: str
          sample: nova
        status:
          description: V(enabled) or V(disabled); V(UNKNOWN) while its cell does not answer.
          returned: success
          type: str
          sample: disabled
        state:
          description: V(up) or V(down) by its last report, and V(down) if it is forced down;
            V(null) while its cell does not answer.
          returned: success
          type: str
          sample: down
        forced_down:
          description: Whether an operator has forced the service down.
          returned: success
          type: bool
          sample: false
        disabled_reason:
          description: Why the service is disabled, or V(null).
          returned: success
          type: str
          sample: replaced by compute-41
        updated_at:
          description: When the service last reported, in UTC, or V(null).
          returned: success
          type: str
          sample: '2026-10-25T20:13:51.000000'
    nodes:
      description: Its compute nodes; with ironic there can be several.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17.example.org
          state: down
          status: disabled
          running_vms: 0
      contains:
        uuid:
          description: UUID of the compute node.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name of the compute node.
          returned: success
          type: str
          sample: compute-17.example.org
        state:
          description: V(up) or V(down).
          returned: success
          type: str
          sample: down
        status:
          description: V(enabled) or V(disabled).
          returned: success
          type: str
          sample: disabled
        running_vms:
          description: Number of servers that the compute node reports.
          returned: success
          type: int
          sample: 0
    providers:
      description:
        - Its resource providers, children first. For a host without a compute node, the tree with
          its name.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17.example.org
          root: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          parent: null
      contains:
        uuid:
          description: UUID of the provider.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name of the provider.
          returned: success
          type: str
          sample: compute-17.example.org
        root:
          description: UUID of the root of its tree.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        parent:
          description: UUID of its parent provider; V(null) for the root.
          returned: success
          type: str
    aggregates:
      description: The host aggregates of the host.
      returned: success
      type: list
      elements: dict
      sample: []
      contains: &aggregate
        id:
          description: Number of the aggregate, by which Nova's requests name it.
          returned: success
          type: int
          sample: 3
        uuid:
          description: UUID of the aggregate.
          returned: success
          type: str
          sample: 0d2a9c1e-6f0b-4c83-9b1f-2f5c8d1e7a64
        name:
          description: Name of the aggregate.
          returned: success
          type: str
          sample: ssd
        zone:
          description: Its availability zone; V(null) without one.
          returned: success
          type: str
        metadata:
          description: Its metadata.
          returned: success
          type: dict
          sample:
            ssd: 'true'
    agents:
      description: The network agents of the host; empty without a network service.
      returned: success
      type: list
      elements: dict
      sample: []
      version_added: 2.0.0
      contains:
        uuid:
          description: UUID of the agent.
          returned: success
          type: str
          sample: 5a4b5a0e-5e3d-4f43-b3f4-57d0e2f0bb0c
        binary:
          description: Binary of the agent.
          returned: success
          type: str
          sample: neutron-l3-agent
        type:
          description: Type of the agent.
          returned: success
          type: str
          sample: L3 agent
        host:
          description: Name of the host.
          returned: success
          type: str
          sample: compute-17
        alive:
          description: Whether the agent has reported lately.
          returned: success
          type: bool
          sample: false
        admin_state_up:
          description: Whether the agent is enabled.
          returned: success
          type: bool
          sample: true
        heartbeat_at:
          description: When the agent last reported, as Neutron writes it; V(null) if it never did.
          returned: success
          type: str
          sample: '2026-11-02 03:04:05'
        description:
          description: Description of the agent; V(null) without one.
          returned: success
          type: str
        resources:
          description: The networks that a DHCP agent serves, or the routers that an L3 agent
            serves; V(null) if Neutron did not list them.
          returned: success
          type: list
          elements: dict
          sample: []
          contains:
            kind:
              description: V(network) or V(router).
              returned: success
              type: str
              sample: router
            uuid:
              description: UUID of the network or router.
              returned: success
              type: str
              sample: 9d0a0a0e-3b2f-4a3a-8d4a-0f6a3b7d5c11
            name:
              description: Name of the network or router.
              returned: success
              type: str
              sample: edge
    ports:
      description: The ports that are bound to the host and in use, if it has network agents.
      returned: success
      type: list
      elements: dict
      sample: []
      version_added: 2.0.0
      contains:
        uuid:
          description: UUID of the port.
          returned: success
          type: str
          sample: 2f1e0f4a-7f7c-4c0a-9a9b-2d6f0f9c7e11
        device_owner:
          description: Owner of the device, as Neutron returns it.
          returned: success
          type: str
          sample: compute:nova
        device:
          description: UUID of the server or router, or Neutron's own id of a DHCP server.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    other_services:
      description: The other services of Nova and Cinder with the name of the host. Nothing here
        deletes them.
      returned: success
      type: list
      elements: dict
      sample: []
      version_added: 2.0.0
      contains:
        api:
          description: V(compute) or V(block-storage).
          returned: success
          type: str
          sample: block-storage
        id:
          description: ID of the service; V(null) for block storage.
          returned: success
          type: str
        binary:
          description: Binary of the service.
          returned: success
          type: str
          sample: cinder-volume
        host:
          description: Name of its host, which can have the name of a backend behind it.
          returned: success
          type: str
          sample: compute-17@lvm
        status:
          description: V(enabled) or V(disabled).
          returned: success
          type: str
          sample: enabled
        state:
          description: V(up) or V(down).
          returned: success
          type: str
          sample: down
        command:
          description: The command that removes the service.
          returned: success
          type: str
          sample: cinder-manage service remove cinder-volume compute-17@lvm
    warnings:
      description: Sentences about what blocks nothing and somebody should know, such as an
        aggregate that is left without a host.
      returned: success
      type: list
      elements: str
      sample: []
      version_added: 2.0.0
    unread:
      description: A sentence for each service of the cloud that could not be asked about the host.
      returned: success
      type: list
      elements: str
      sample: []
      version_added: 2.0.0
    record:
      description: What the host has, or had right before its deletion, with what the run itself
        had taken from it, so that a host of that name can get it back; V(null) if nothing was
        known of it.
      returned: when O(dest) is set
      type: dict
      version_added: 2.0.0
      contains: &record
        taken_at:
          description: When this was read, in UTC.
          returned: success
          type: str
          sample: '2026-11-23T03:30:00Z'
        cloud:
          description: The region and the endpoints of the cloud; missing in a record of 2.0.0.
          returned: success
          type: dict
          version_added: 3.0.0
        begun:
          description: Whether the deletion of the host has begun.
          returned: success
          type: bool
          sample: true
        host:
          description: Name of the host of its compute service.
          returned: success
          type: str
          sample: compute-17
        service:
          description: Its compute service; V(null) without one.
          returned: success
          type: dict
          contains: *service
        nodes:
          description: Its compute nodes.
          returned: success
          type: list
          elements: dict
          contains:
            uuid:
              description: UUID of the compute node and of its root provider.
              returned: success
              type: str
              sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
            name:
              description: Name of the compute node.
              returned: success
              type: str
              sample: compute-17.example.org
        aggregates:
          description: Its host aggregates.
          returned: success
          type: list
          elements: dict
          contains: *aggregate
        providers:
          description: Its resource providers, children first.
          returned: success
          type: list
          elements: dict
          contains:
            uuid:
              description: UUID of the provider.
              returned: success
              type: str
              sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
            name:
              description: Name of the provider.
              returned: success
              type: str
              sample: compute-17.example.org
            root:
              description: UUID of the root of its tree.
              returned: success
              type: str
              sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
            parent:
              description: UUID of its parent provider; V(null) for the root.
              returned: success
              type: str
            generation:
              description: Generation of the provider.
              returned: success
              type: int
              sample: 42
            inventories:
              description: Its inventories, by resource class.
              returned: success
              type: dict
              contains:
                total:
                  description: Amount of the resource.
                  returned: success
                  type: int
                  sample: 64
                reserved:
                  description: Amount that cannot be allocated.
                  returned: success
                  type: int
                  sample: 2
                min_unit:
                  description: Smallest amount of an allocation.
                  returned: success
                  type: int
                  sample: 1
                max_unit:
                  description: Largest amount of an allocation.
                  returned: success
                  type: int
                  sample: 64
                step_size:
                  description: Amounts of allocations are multiples of this.
                  returned: success
                  type: int
                  sample: 1
                allocation_ratio:
                  description: Factor by which more can be allocated than there is.
                  returned: success
                  type: float
                  sample: 4.0
            traits:
              description: Its traits.
              returned: success
              type: list
              elements: str
              sample:
                - CUSTOM_RACK_4
            aggregates:
              description: UUIDs of its aggregates in Placement.
              returned: success
              type: list
              elements: str
              sample: []
    former_record:
      description: The same of an earlier host of that name, with another compute service;
        V(null) without one.
      returned: when O(dest) is set
      type: dict
      version_added: 2.0.0
      contains: *record
    servers:
      description: The servers on the host.
      returned: success
      type: list
      elements: dict
      sample: []
      contains:
        uuid:
          description: UUID of the server.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name:
          description: Name of the server.
          returned: success
          type: str
          sample: web-7
        status:
          description: Status of the server, as Nova returns it.
          returned: success
          type: str
          sample: ACTIVE
        task_state:
          description: Its task; V(null) without one.
          returned: success
          type: str
    migrations:
      description:
        - The migrations from or to the host that have not ended, as
          M(osops.placement.migration_info) returns them.
      returned: success
      type: list
      elements: dict
      sample: []
      contains:
        uuid:
          description: UUID of the migration, which is also the UUID of the consumer of its
            allocation.
          returned: success
          type: str
          sample: 0b0c1a7e-93b5-4d0e-9d57-1f6f0b9b0a55
        server:
          description: UUID of the server.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        type:
          description: V(migration), V(resize), V(live-migration) or V(evacuation).
          returned: success
          type: str
          sample: evacuation
        status:
          description: Status of the migration, as Nova returns it.
          returned: success
          type: str
          sample: done
        source_compute:
          description: Name of the source host.
          returned: success
          type: str
          sample: compute-17
        source_node:
          description: Name of the source compute node.
          returned: success
          type: str
          sample: compute-17.example.org
        dest_compute:
          description: Name of the destination host; V(null) before one is chosen.
          returned: success
          type: str
          sample: compute-18
        dest_node:
          description: Name of the destination compute node; V(null) before one is chosen.
          returned: success
          type: str
          sample: compute-18.example.org
        created_at:
          description: When the migration began, in UTC.
          returned: success
          type: str
          sample: '2026-11-02T03:00:00.000000'
        updated_at:
          description: When the migration last changed, in UTC; V(null) if it has not changed
            since it began.
          returned: success
          type: str
          sample: '2026-11-02T03:04:05.000000'
        age_seconds:
          description: Seconds since the migration last changed, by the clock of Nova.
          returned: success
          type: int
          sample: 86400
        advice:
          description: What to do about the migration.
          returned: success
          type: str
          sample: confirm or revert the resize
    left_over:
      description: The findings about allocations on the host that are provably left over.
      returned: success
      type: list
      elements: dict
      sample:
        - id: evacuated_source/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          kind: evacuated_source
          consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          reason: Server 6f7a1f5c-… left compute-17 by evacuation …
      contains:
        id:
          description: Id of the finding.
          returned: success
          type: str
          sample: evacuated_source/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        kind:
          description: Kind of the finding.
          returned: success
          type: str
          sample: evacuated_source
        consumer:
          description: UUID of the consumer.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        reason:
          description: The reason for the verdict.
          returned: success
          type: str
          sample: 'Server 6f7a1f5c-… is settled on compute-18, but still has an allocation on each
            host that it left: compute-17, by evacuation …'
    blockers:
      description: Everything that blocks the decommissioning and is not provably left over.
      returned: success
      type: list
      elements: dict
      contains:
        kind:
          description: V(server), V(migration), V(resize) (which waits to be confirmed), V(claim)
            (an allocation of any other consumer), V(hidden_allocation) (a provider of which other
            amounts are in use than its listed allocations say), V(provider_in_use) (a former
            provider that may be another host's), V(excluded) (the host or one of its providers
            is in O(exclude_providers)), V(service_up), V(agent_up) (a network agent that is
            alive), V(agent_in_use) (a network agent that serves a network or a router), V(port)
            (a port in use that is bound to the host), V(empty_zone) (the last host of its
            availability zone), or V(unsound_reading) if the reading is not sound and therefore
            nothing is certain.
          returned: success
          type: str
          sample: server
        subject:
          description: UUID of the server, migration, consumer, provider, service, agent or port,
            name of the host or of the availability zone, or the excluded name.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name:
          description: Name of the server or of the excluded provider, type of the agent, owner of
            the port; otherwise empty.
          returned: success
          type: str
          sample: web-7
        reason:
          description: What blocks the host, and what to do about it.
          returned: success
          type: str
          sample: 'Server 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 (ACTIVE) is on compute-17: move,
            evacuate or delete it.'
        stops:
          description: V(disable) if it must be removed before anything is done to the host, or
            V(delete) if it must be removed before the service is deleted.
          returned: success
          type: str
          sample: disable
    refusal:
      description: A sentence that says why nothing may be changed on the host, with the first of
        the RV(hosts[].blockers) that stop the stage V(disable); empty without such blockers.
      returned: success
      type: str
      sample: ''
      version_added: 3.0.0
    removal:
      description: Whether anything remains of the host, of which O(earlier) can have more than its
        name.
      returned: success
      type: dict
      version_added: 3.0.0
      contains:
        complete:
          description: Whether nothing remains. Network agents do not matter with
            O(delete_agents=false), and those that are alive do not with
            O(delete_running_agents=true), because they may have registered themselves again.
          returned: success
          type: bool
          sample: true
        message:
          description: A sentence that names everything that remains, or says that nothing remains.
          returned: success
          type: str
          sample: 'compute-17 is gone: no service, no compute node, no provider, and its name is
            free.'
      sample:
        complete: true
        message: 'compute-17 is gone: no service, no compute node, no provider, and its name is
          free.'
dest:
  description: Path of the file with all results, or V(null).
  returned: success
  type: str
  sample: /var/lib/placement/hosts.json
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.policy import PolicyOptions
from ..module_utils._hosts.host_decommission import RetirementOptions
from ..module_utils._hosts.stages import read_hosts

TASK = CloudTask(
    read_hosts,
    {
        **PolicyOptions.build_spec(),
        **RetirementOptions.build_spec(),
        "hosts": {"type": "list", "elements": "str"},
        "providers": {"type": "list", "elements": "str", "default": []},
        "allow_unknown": {"type": "bool", "default": False},
        "dest": {"type": "path"},
        "earlier": {"type": "path"},
        "assume_drained": {"type": "bool", "default": False},
        "services_only": {"type": "bool", "default": False},
    },
)


if __name__ == "__main__":
    TASK.run_module()
