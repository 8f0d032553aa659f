#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_detect
short_description: Find orphaned allocations in the Placement service and prove each of them
version_added: 1.0.0
description:
  - Reads Placement and then Nova, and gives a verdict on every consumer that is not clearly a
    server with an allocation on its own host.
  - A finding is an orphan only if answers of Nova prove it. Consumers that cannot be proven
    either way are reported as undecided. Consumers that are in use, moving, too young or of
    another service are reported as protected. Neither are ever changed.
  - This module never writes to the cloud.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.progress
  - osops.placement._options.policy
  - osops.placement._options.guests
  - osops.placement._options.scope
  - osops.placement._options.run
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
requirements:
  - jmespath, if O(select) is set
options:
  also_kinds:
    description:
      - Kinds that are searched for as if O(kinds) named them, with all requests that only they
        need. Other kinds are reported too. It has no effect on a kind that O(kinds) leaves out.
      - The role gives the kinds that it may change.
    type: list
    elements: str
    default: []
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
      - orphaned_provider
      - name_conflict
      - missing_provider
      - hidden_allocation
      - capacity_mismatch
      - uneven_capacity
      - aggregate_mismatch
      - trait_mismatch
      - zone_mismatch
      - unconfirmed_resize
      - stuck_migration
      - unfinished_evacuation
      - stale_service
      - stuck_server
      - missing_project
      - bare_metal_mismatch
    version_added: 3.0.0
  allow_unknown_consumers:
    description:
      - Whether to accept UUIDs in O(consumers) of which neither Placement nor Nova knows anything.
      - Otherwise the module fails, because such a UUID is most likely misspelt. A consumer that
        an earlier run reported in O(state) or O(dest) is always accepted.
    type: bool
    default: false
    version_added: 2.0.0
  select:
    description:
      - A JMESPath expression over the list of findings that returns findings or their ids, for
        example V([?kind == `deleted_server`]). M(osops.placement.orphan_remediate) may change
        only these findings; the others are still reported.
      - An expression that returns nothing selects no findings, and a warning says so. Without
        this option all findings are selected.
    type: str
  min_sightings:
    description:
      - How many runs must have seen a finding before it may be changed, including this run. Until
        then the finding waits, and RV(findings[].waiting) says so.
      - A run counts if its reading is sound, if it finds the same kind at the same generations,
        and if it writes the file O(state), or O(dest) if O(state) is not set. Runs in check mode
        write this file and count too.
      - The count of a finding that a run looked for but did not find in the same way starts
        again. The counts of findings outside the scope of a run, because of O(hosts),
        O(consumers), O(aggregates), O(availability_zones), O(cells), O(projects) or O(kinds), stay
        unchanged.
      - This option requires O(state) or O(dest), with a path that stays from run to run.
    type: int
    default: 1
    version_added: 2.0.0
  dest:
    description:
      - Path of the file to which all results are written, as JSON with mode 0600. It is also
        written in check mode.
    type: path
  state:
    description:
      - Path of a small file that stores from run to run when each finding was first seen, and how
        often. The module reads it first and writes it at the end, with mode 0600, in check mode
        too.
      - If it is not set, the previous contents of O(dest) are read instead.
      - If the file does not exist, all findings are new. If the file is not valid, all findings
        are new, a warning says so, and the file is kept with C(.broken) appended to its name.
      - After a sound reading of the whole cloud, findings that no longer exist are removed from
        the file. A run with O(hosts), O(consumers), O(aggregates), O(availability_zones),
        O(cells), O(projects) or O(kinds) removes nothing.
    type: path
  memory:
    description:
      - Path of the file from which O(mode=incremental) knows what the last reading found. It is
        written at the end of a sound reading, whole or not at all, with mode 0600, in check mode
        too. A reading with O(mode=full) writes it if it exists.
      - It contains UUIDs of providers and consumers, the amounts of their allocations, and names
        of hosts. The file has about 55 bytes for each consumer.
      - What the file says decides only what is looked up, and nothing is proven by it. If it is
        missing, not complete, or of another cloud, region or scope, everything is read.
      - Required with O(mode=incremental).
    type: path
    version_added: 2.0.0
  full_every:
    description:
      - How long after a full reading O(mode=incremental) makes the next one by itself.
      - A full reading finds what an incremental one cannot see, such as changes that were made in
        a database by hand.
      - Seconds, or a number with C(s), C(m), C(h) or C(d), for example V(12h) or V(1d).
    type: str
    default: 1d
    version_added: 2.0.0
  collection_version:
    description:
      - The version of this collection, for RV(versions). Do not set it. The action plugin of the
        same name sets it, because a module cannot read it.
    type: str
    default: ''
    version_added: 2.0.0
  snapshot_dest:
    description:
      - Path of the file to which the whole reading is written, as JSON with mode 0600.
        O(snapshot_src) judges it again.
      - It contains no credentials, but it contains names and UUIDs of servers, hosts, projects
        and users.
    type: path
  snapshot_src:
    description:
      - Path of a file that O(snapshot_dest) wrote. The module sends no request to any cloud, and
        the result is the same as when the file was written.
    type: path
notes:
  - With a local connection, this module runs in the process of Ansible itself, which saves the time
    to start another one. It is sent to the host as any module is if the task has O(auth),
    O(client_key), a dictionary as O(cloud), C(become), C(async) or C(environment), if
    C(ansible_python_interpreter) is not the Python that runs Ansible, and on macOS.
seealso:
  - module: osops.placement.orphan_remediate
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Find orphaned allocations
  osops.placement.orphan_detect:
    cloud: admin
    dest: /var/lib/placement/findings.json
  register: orphans

- name: Distinguish new findings from known ones with a small state file
  osops.placement.orphan_detect:
    cloud: admin
    state: /var/lib/placement/state.json
  register: orphans

- name: Save the whole reading for a bug report
  osops.placement.orphan_detect:
    cloud: admin
    snapshot_dest: /var/lib/placement/snapshot.json

- name: Judge a saved reading without access to its cloud
  osops.placement.orphan_detect:
    snapshot_src: snapshot.json
    dest: findings.json

- name: Read the second of eight parts of a very large cloud
  osops.placement.orphan_detect:
    cloud: admin
    shard: 2/8
    dest: findings-2.json

- name: Read only the hosts of one aggregate
  osops.placement.orphan_detect:
    cloud: admin
    aggregates: rack-7
    dest: findings-rack-7.json

- name: Read only the hosts of one cell, while another one is down
  osops.placement.orphan_detect:
    cloud: admin
    cells: cell1
    cell_hosts:
      cell1:
        - compute-1
        - compute-2
    dest: findings-cell1.json

- name: Read only what changed since the last run, and everything once a day
  osops.placement.orphan_detect:
    cloud: admin
    mode: incremental
    memory: /var/lib/placement/findings.memory.json
    dest: /var/lib/placement/findings.json

- name: Show the number of orphans and what is stranded
  ansible.builtin.debug:
    msg: >-
      {{ orphans.summary.verdicts.orphaned }} orphans strand
      {{ orphans.summary.stranded.resource_classes }}
"""

RETURN = r"""
dest:
  description: Path of the file with all results.
  returned: when O(dest) is given
  type: str
  sample: /var/lib/placement/findings.json
finished_at:
  description: When the reading ended, as in O(dest).
  returned: success
  type: str
  sample: '2026-11-20T03:04:05Z'
  version_added: 3.0.0
versions:
  description: The versions of what detected, which O(dest) has too. Each is an empty text if it is
    not known.
  returned: success
  type: dict
  version_added: 2.0.0
  contains:
    collection:
      description: The version of this collection.
      returned: success
      type: str
      sample: 2.0.0
    ansible_core:
      description: The version of ansible-core.
      returned: success
      type: str
      sample: 2.21.5
    openstacksdk:
      description: The version of openstacksdk where the module ran.
      returned: success
      type: str
      sample: 4.22.0
summary:
  description: Numbers of findings, stranded capacity, and how much was read.
  returned: success
  type: dict
  contains:
    verdicts:
      description: Number of findings by verdict. V(orphaned) is an allocation that nothing needs.
        V(drifted) is an allocation of a live server, or another condition, that is not as it
        should be.
      returned: success
      type: dict
      sample:
        orphaned: 2
        drifted: 1
        protected: 5
        undecided: 0
    kinds:
      description: Number of orphaned and drifted findings by kind.
      returned: success
      type: dict
      sample:
        deleted_server: 1
        evacuated_source: 1
    new:
      description: Number of these findings by kind that the previous run did not report, see
        O(state).
      returned: success
      type: dict
      sample:
        evacuated_source: 1
    stranded:
      description: The capacity that all proposed changes together would free.
      returned: success
      type: dict
      contains:
        resource_classes:
          description: Amounts by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 3
            MEMORY_MB: 2560
            DISK_GB: 11
        allocated:
          description: All that is allocated of these resource classes in the cloud. Empty unless
            the whole cloud was read.
          returned: success
          type: dict
          sample:
            VCPU: 240
            MEMORY_MB: 204800
            DISK_GB: 880
          version_added: 2.0.0
        share_of_claimed:
          description: The fraction of RV(summary.stranded.allocated) that is stranded, by resource
            class.
          returned: success
          type: dict
          sample:
            VCPU: 0.0125
        providers:
          description: Amounts by provider name and resource class.
          returned: success
          type: dict
          sample:
            compute-17:
              VCPU: 3
        projects:
          description: Amounts by resource class and by the UUID of the project that owns the
            server, or else the allocation.
          returned: success
          type: dict
          sample:
            2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908:
              VCPU: 3
        quota:
          description:
            - What each project gets back of its quota, by project UUID. C(cores) are C(VCPU) and
              C(PCPU) together, C(ram_mib) is C(MEMORY_MB), C(resource_classes) has all amounts,
              and C(consumers) is the number of consumers that the changes would free.
            - Placement counts for the project that it has for an allocation, also where the server
              belongs to another one.
            - C(name) is empty and C(exists) is V(null) where Keystone did not say so.
            - Nova counts cores and RAM in Placement where C([quota]count_usage_from_placement) is
              set, and each resource class by itself if the quota driver is that of unified limits.
              Otherwise it counts its own records, and orphans take nothing of a quota. It never
              counts servers in Placement.
          returned: success
          type: dict
          sample:
            2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908:
              name: web-shop
              exists: true
              consumers: 2
              cores: 3
              ram_mib: 2560
              resource_classes:
                VCPU: 3
                MEMORY_MB: 2560
                DISK_GB: 11
          version_added: 2.0.0
    capacity:
      description:
        - Sums over the providers whose inventory was read, by resource class. These are the
          providers of the named O(hosts), all providers with V(capacity_mismatch) or
          V(uneven_capacity) in O(kinds), and up to 100 providers of consumers that were looked
          up directly.
      returned: success
      type: dict
      sample:
        VCPU:
          total: 64
          reserved: 0
          capacity: 256
          used: 120
          stranded: 3
          providers: 1
      contains:
        total:
          description: Sum of the totals.
          returned: success
          type: int
          sample: 64
        reserved:
          description: Sum of the reserved amounts.
          returned: success
          type: int
          sample: 0
        capacity:
          description: Sum of the capacities.
          returned: success
          type: int
          sample: 256
        used:
          description: Sum of the allocated amounts.
          returned: success
          type: int
          sample: 120
        stranded:
          description: Sum of the amounts that all proposed changes would free on these providers.
          returned: success
          type: int
          sample: 3
        providers:
          description: Number of these providers.
          returned: success
          type: int
          sample: 1
    overcommit:
      description:
        - How many hosts have more allocated than they physically have, by resource class. C(VCPU)
          are the shared CPUs of a host. Dedicated ones cannot be overcommitted.
        - What the host reserves for itself is taken off where the inventory was read.
      returned: success
      type: dict
      sample:
        VCPU:
          hosts: 42
          overcommitted: 17
          highest: 3.5
          highest_host: compute-17
      version_added: 2.0.0
      contains:
        hosts:
          description: Number of hosts that report a figure of this class.
          returned: success
          type: int
          sample: 42
        overcommitted:
          description: Number of these hosts that are over-committed.
          returned: success
          type: int
          sample: 17
        highest:
          description: How many times what it has is allocated on the host where that is most.
          returned: success
          type: float
          sample: 3.5
        highest_host:
          description: The name of this host.
          returned: success
          type: str
          sample: compute-17
    coverage:
      description: How much was read, and whether that is enough to change anything.
      returned: success
      type: dict
      contains:
        scope:
          description: What the figures of the summary are about.
          returned: success
          type: str
          sample: the whole cloud
          version_added: 2.0.0
        reading:
          description: What was read. V(full) is everything in scope. V(incremental) is what
            changed since an earlier reading, and what had a finding.
          returned: success
          type: str
          sample: incremental
          version_added: 2.0.0
        full_at:
          description: When the last full reading began, in UTC.
          returned: success
          type: str
          sample: '2026-11-22T03:00:00Z'
          version_added: 2.0.0
        why_full:
          description: Why everything was read in spite of O(mode=incremental), as a sentence.
            Otherwise empty.
          returned: success
          type: str
          sample: ''
          version_added: 2.0.0
        complete:
          description:
            - Whether the whole cloud was read and no two answers contradict each other.
            - While a cell does not answer, it is V(false) and RV(summary.coverage.failed_checks)
              is empty. Findings that are proven without that cell may then be changed.
          returned: success
          type: bool
          sample: true
        failed_checks:
          description: Why the reading is not sound, one sentence each with what to do. Unless
            this list is empty, nothing may be changed.
          returned: success
          type: list
          elements: str
          sample:
            - '0 of 40 hypervisors have a resource provider in this Placement: check that the region
              is right and that this Placement belongs to this Nova.'
          version_added: 2.0.0
        failed_check_ids:
          description: The IDs of RV(summary.coverage.failed_checks), in the same order.
          returned: success
          type: list
          elements: str
          sample: [nodes_not_in_placement]
          version_added: 3.0.0
        not_provable:
          description: What cannot be proven because a service is too old, one sentence each with
            the kinds that are undecided for this reason, and whether no age is known because
            Placement tells no time.
          returned: success
          type: list
          elements: str
          sample: []
        unread:
          description: What was not searched because a service such as Ironic or Keystone did not
            answer, one sentence each.
          returned: success
          type: list
          elements: str
          sample: []
          version_added: 2.0.0
        silent_hosts:
          description: Number of hosts that were not judged because their cell does not answer.
          returned: success
          type: int
          sample: 0
        partial:
          description: Whether some hosts were not judged because their cell does not answer,
            while the others were.
          returned: success
          type: bool
          sample: false
          version_added: 2.0.0
        unjudged_hosts:
          description: Names of the hosts that were not judged because their cell does not answer,
            or because of RV(summary.coverage.hosts_without_service).
          returned: success
          type: list
          elements: str
          sample: []
          version_added: 2.0.0
        hosts_without_service:
          description: Names of those of these hosts that have a compute node, but no row in Nova's
            table of services.
          returned: success
          type: list
          elements: str
          sample: []
          version_added: 3.0.0
        retried:
          description: Number of requests that were sent again because their answer was incomplete
            or did not arrive.
          returned: success
          type: int
          sample: 0
          version_added: 2.0.0
        providers:
          description: Number of resource providers; with O(shard), of those in the shard.
          returned: success
          type: int
          sample: 40
        consumers:
          description: Number of consumers that were read. With O(shard), a consumer with
            allocations in several shards counts in each of them.
          returned: success
          type: int
          sample: 812
        servers:
          description: Number of servers that the compute nodes report; with O(shard), of the
            compute nodes in the shard.
          returned: success
          type: int
          sample: 798
        hypervisors:
          description: Number of compute nodes that Nova lists; with O(shard), of those in the
            shard.
          returned: success
          type: int
          sample: 40
        looked_at_closely:
          description: Number of consumers that were looked up directly.
          returned: success
          type: int
          sample: 9
        left_out:
          description: Number of candidates that were not looked up because nothing may be changed
            anyway.
          returned: success
          type: int
          sample: 0
        amounts:
          description:
            - Of how many servers the amounts of their allocations were checked.
            - A server that is only compared by the sums of its host is checked for VCPU and memory
              alone. V(wrong_amount) in O(kinds) compares every server by itself.
          returned: success
          type: dict
          version_added: 2.0.0
          contains:
            servers:
              description: Number of servers in scope.
              returned: success
              type: int
              sample: 840
            checked:
              description: Number of these whose amounts were checked in either way.
              returned: success
              type: int
              sample: 812
            by_server:
              description: Number of servers that were compared with what Nova would allocate for
                them.
              returned: success
              type: int
              sample: 40
            by_host:
              description: Number of servers on hosts whose own figures agree with the sums of all
                allocations there.
              returned: success
              type: int
              sample: 772
            unchecked:
              description:
                - Number of the other servers by what is missing. V(flavor), V(image) and V(volume)
                  are not shown by Nova, V(volume_image) by Cinder, V(ports) by Neutron,
                  V(device_profile) and V(accelerators) by Cyborg, V(tree) by Placement, and
                  V(pci_alias) is missing in O(pci_aliases).
                - V(contradictory) servers request what their host cannot have. V(unsettled) ones
                  are moving or changing. V(unchanged) ones were not read again by
                  O(mode=incremental). V(not_compared) ones are only compared with
                  V(wrong_amount) in O(kinds).
              returned: success
              type: dict
              sample:
                volume_image: 20
                pci_alias: 8
findings:
  description: The orphaned and then the drifted findings. At most 200 are returned here; the file
    O(dest) has all of them.
  returned: success
  type: list
  elements: dict
  contains: &entry
    id:
      description: The kind and the subject of the finding, which do not change from run to run.
      returned: success
      type: str
      sample: evacuated_source/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: The kind of the finding; for a protected or undecided consumer, the name of the
        reason.
      returned: success
      type: str
      sample: evacuated_source
    verdict:
      description: V(orphaned), V(drifted), V(protected) or V(undecided).
      returned: success
      type: str
      sample: orphaned
    first_seen:
      description: When a run first reported the finding, in UTC.
      returned: success
      type: str
      sample: '2026-11-19T03:04:05Z'
    new:
      description: Whether the previous run did not report the finding, see O(state).
      returned: success
      type: bool
      sample: false
    selected:
      description: Whether O(select) selects the finding. Only entries of RV(findings) have this
        field.
      returned: success
      type: bool
      sample: true
    sightings:
      description: How many runs have seen the finding unchanged, including this run. Only entries
        of RV(findings) have this field.
      returned: success
      type: int
      sample: 1
      version_added: 2.0.0
    waiting:
      description: Why the finding may not be changed yet, see O(min_sightings); otherwise empty.
        Only entries of RV(findings) have this field.
      returned: success
      type: str
      sample: it was seen 1 of 2 times
      version_added: 2.0.0
    consumer:
      description: UUID of the consumer; V(null) for a finding that is not about a consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    reason:
      description: The reason for the verdict, in one or more sentences.
      returned: success
      type: str
      sample: 'Server 6f7a1f5c-… is settled on compute-18, but still has an allocation on each
        host that it left: compute-17, by evacuation 0b0c… (done at 2026-11-02T03:04:05.000000).'
    reason_id:
      description: The ID of the reason, from docs/reasons.md of the collection.
      returned: success
      type: str
      sample: left_by_evacuation
      version_added: 3.0.0
    commands:
      description:
        - What you can paste into a shell to fix it, in this order; names from the cloud are
          quoted.
        - Empty if the plan of this collection does it, and where no command is certain to be right.
      returned: success
      type: list
      elements: str
      sample:
        - nova-manage placement sync_aggregates
      version_added: 2.0.0
    server:
      description: The server that the consumer is, or whose migration the consumer is, as Nova
        returns it; V(null) if Nova returns none.
      returned: success
      type: dict
      sample:
        uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name: web-1
        status: ACTIVE
        host: compute-18
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
          sample: web-1
        status:
          description: Status of the server, as Nova returns it.
          returned: success
          type: str
          sample: ACTIVE
        project:
          description: UUID of its project.
          returned: success
          type: str
          sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
        user:
          description: UUID of its user.
          returned: success
          type: str
          sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        host:
          description: Name of the host of its compute service; V(null) without one.
          returned: success
          type: str
          sample: compute-18
        node:
          description: Name of its compute node; V(null) without one.
          returned: success
          type: str
          sample: compute-18.example.org
        task_state:
          description: Its task; V(null) without one.
          returned: success
          type: str
        task_known:
          description: Whether the answer has the field for the task. If it is V(false), a task of
            V(null) proves nothing.
          returned: success
          type: bool
          sample: true
        host_known:
          description: Whether the answer has the field for the host. If it is V(false), a host of
            V(null) proves nothing.
          returned: success
          type: bool
          sample: true
        created:
          description: When the server was created, in UTC.
          returned: success
          type: str
          sample: '2026-11-01T03:00:00Z'
        updated:
          description: When Nova last changed the server, in UTC.
          returned: success
          type: str
          sample: '2026-11-02T03:04:05Z'
        terminated_at:
          description: When the server was terminated, in UTC; V(null) for a live server.
          returned: success
          type: str
        image:
          description: UUID of its image; V(null) for a server without an image.
          returned: success
          type: str
          sample: b9e0a1c2-51f7-4ab6-9e1d-7a0a3c5d2f10
        volumes:
          description: UUIDs of its volumes.
          returned: success
          type: list
          elements: str
          sample: []
        flavor:
          description: Its flavor, as kept with the server; V(null) before compute microversion
            2.47.
          returned: success
          type: dict
          contains:
            vcpus:
              description: Number of VCPUs.
              returned: success
              type: int
              sample: 1
            ram:
              description: Memory in MiB.
              returned: success
              type: int
              sample: 512
            disk:
              description: Root disk in GiB.
              returned: success
              type: int
              sample: 1
            ephemeral:
              description: Ephemeral disk in GiB.
              returned: success
              type: int
              sample: 0
            swap:
              description: Swap in MiB.
              returned: success
              type: int
              sample: 0
            extra_specs:
              description: Its extra specs; V(null) if these credentials may not see them.
              returned: success
              type: dict
              sample: {}
        image_properties:
          description: Properties of its image; V(null) before compute microversion 2.98, and for
            a server without an image.
          returned: success
          type: dict
          sample: {}
        fault:
          description: The message of its fault; V(null) without one.
          returned: success
          type: str
          sample: No valid host was found.
        launched_at:
          description: When a host last launched its guest, in UTC; V(null) for a server that never
            ran.
          returned: success
          type: str
          sample: "2026-11-20T12:00:00.000000"
        pinned_zone:
          description: The availability zone to which the user bound the server; V(null) where it is
            not bound, and before compute microversion 2.96.
          returned: success
          type: str
          sample: az1
        root_device:
          description: The name of its root disk.
          returned: success
          type: str
          sample: /dev/vda
    migration:
      description: The migration that the consumer is, or that explains the finding; V(null)
        without one.
      returned: success
      type: dict
      sample:
        uuid: 0b0c1a7e-93b5-4d0e-9d57-1f6f0b9b0a55
        type: evacuation
        status: done
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
    service:
      description: The compute service that the finding is about; V(null) without one.
      returned: success
      type: dict
      sample:
        binary: nova-compute
        host: compute-17
        status: disabled
        state: down
      contains:
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
    project:
      description: UUID of the project for which the allocation is recorded.
      returned: success
      type: str
      sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
    user:
      description: UUID of the user for whom the allocation is recorded.
      returned: success
      type: str
      sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
    type:
      description: Type of the consumer; V(null) if it has none.
      returned: success
      type: str
      sample: INSTANCE
    generation:
      description: Generation of the consumer.
      returned: success
      type: int
      sample: 2
    age_seconds:
      description: Seconds since the allocation was last written, by the clock of Placement.
      returned: success
      type: int
      sample: 86400
    providers:
      description: The providers on which the consumer has or will have allocations, or the
        providers that the finding is about.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17
          root: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          root_name: compute-17
          resources:
            VCPU: 2
          dropped: true
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
          sample: compute-17
        root:
          description: UUID of the root of its tree; V(null) if Placement did not list the
            provider.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        root_name:
          description: Name of the root of its tree.
          returned: success
          type: str
          sample: compute-17
        resources:
          description: The amounts of the consumer on this provider, by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 2
        dropped:
          description: Whether the change removes the allocation on this provider.
          returned: success
          type: bool
          sample: true
    evidence:
      description: The requests that the decision depends on, with their answers, in the order in
        which they were sent.
      returned: success
      type: list
      elements: dict
      sample:
        - request: GET /servers/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          microversion: '2.68'
          status: 404
          at: '2026-11-20T03:04:05Z'
          facts: null
      contains:
        request:
          description: Method and path of the request.
          returned: success
          type: str
          sample: GET /servers/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        microversion:
          description: Microversion of the request.
          returned: success
          type: str
          sample: '2.68'
        status:
          description: HTTP status of the answer.
          returned: success
          type: int
          sample: 404
        at:
          description: When the service answered, by its own clock, in UTC.
          returned: success
          type: str
          sample: '2026-11-20T03:04:05Z'
        facts:
          description: 'What the answer contains: a value, a dictionary or a list. For a long list
            only C(rows), the number of its entries.'
          returned: success
          type: raw
    change:
      description: The change that resolves the finding; V(null) if nothing may be changed.
      returned: success
      type: dict
      sample:
        action: remove
        consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        generation: 2
      contains:
        action:
          description: V(remove) if all allocations of the consumer are removed, V(reduce) if some
            of them stay, V(rewrite) if they are replaced, V(create) if the consumer had none, or
            V(delete_providers) for a tree of providers, which has C(providers) and none of the
            following fields.
          returned: success
          type: str
          sample: remove
        providers:
          description: The providers to delete, children first. Only an action V(delete_providers)
            has them.
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
              sample: compute-17
            generation:
              description: Generation of the provider at detection.
              returned: success
              type: int
              sample: 54
            parent:
              description: UUID of its parent provider; V(null) for the root.
              returned: success
              type: str
          sample: []
        consumer:
          description: UUID of the consumer.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        generation:
          description: Generation of the consumer at detection; V(null) for a consumer without
            allocations.
          returned: success
          type: int
          sample: 2
        before:
          description: The allocations of the consumer before the change, in the format of C(PUT
            /allocations/{consumer}).
          returned: success
          type: dict
          contains:
            allocations:
              description: The amounts by provider UUID, each as C(resources) with the amounts by
                resource class.
              returned: success
              type: dict
              sample: {}
            consumer_generation:
              description: Generation of the consumer at detection; V(null) for a consumer without
                allocations.
              returned: success
              type: int
              sample: 2
            project_id:
              description: UUID of the project.
              returned: success
              type: str
              sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id:
              description: UUID of the user.
              returned: success
              type: str
              sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
            consumer_type:
              description: Type of the consumer. It is missing for a consumer without a type.
              returned: success
              type: str
              sample: INSTANCE
          sample:
            consumer_generation: 2
            allocations: {}
            project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        after:
          description: The allocations of the consumer after the change, in the same format.
          returned: success
          type: dict
          contains:
            allocations:
              description: The amounts by provider UUID, each as C(resources) with the amounts by
                resource class.
              returned: success
              type: dict
              sample: {}
            consumer_generation:
              description: Generation of the consumer at detection; V(null) for a consumer without
                allocations.
              returned: success
              type: int
              sample: 2
            project_id:
              description: UUID of the project.
              returned: success
              type: str
              sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id:
              description: UUID of the user.
              returned: success
              type: str
              sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
            consumer_type:
              description: Type of the consumer. It is missing for a consumer without a type.
              returned: success
              type: str
              sample: INSTANCE
          sample:
            consumer_generation: 2
            allocations: {}
            project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        partner:
          description: The change of another consumer that must be made in the same request, with
            the fields of a change; otherwise V(null).
          returned: success
          type: dict
        frees:
          description: The amounts that the change frees, by provider UUID and resource class.
          returned: success
          type: dict
          sample:
            f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
              VCPU: 2
        claims:
          description: The amounts that the change allocates, by provider UUID and resource class.
          returned: success
          type: dict
          sample: {}
protected:
  description: The consumers that looked like orphans but are never changed, with the reason. At
    most 200 are returned here; the file O(dest) has all of them.
  returned: success
  type: list
  elements: dict
  contains: *entry
undecided:
  description: The consumers that could not be proven to be orphans or healthy. At most 200 are
    returned here; the file O(dest) has all of them.
  returned: success
  type: list
  elements: dict
  contains: *entry
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.guest_devices import GuestOptions
from ..module_utils._core.options.policy import PolicyOptions
from ..module_utils._core.options.run import DetectionOptions
from ..module_utils._core.options.scope import ScopeOptions
from ..module_utils._core.stages.detect import detect

TASK = CloudTask(
    detect,
    {
        **DetectionOptions.build_spec(),
        **PolicyOptions.build_spec(),
        **GuestOptions.build_spec(),
        **ScopeOptions.build_spec(),
        "also_kinds": ScopeOptions.kinds.build_spec(),
        "allow_unknown_consumers": {"type": "bool", "default": False},
        "select": {"type": "str"},
        "dest": {"type": "path"},
        "state": {"type": "path"},
        "memory": {"type": "path"},
        "collection_version": {"type": "str", "default": ""},
        "snapshot_dest": {"type": "path"},
        "snapshot_src": {"type": "path"},
    },
)


if __name__ == "__main__":
    TASK.run_module()
