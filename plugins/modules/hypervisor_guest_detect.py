#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_guest_detect
short_description: Find leftover libvirt domains and instance directories
version_added: 1.0.0
description:
  - Asks Nova about every domain and every instance directory on hypervisors that Nova does not
    show there, and reports which of them are left over, with the proof.
  - A domain or directory is left over if its server is deleted, if Nova has no record of its
    server, or if its server is settled on another host after a move away from this host. A domain
    or directory that runs, is in use, is moving, may be shared or could not be read is protected
    or undecided.
  - A directory of a server on another host is left over only if O(guests) has that host as well,
    with another directory of the server, because the two hosts may share one.
  - A domain that runs although Nova has its server on another host is reported as
    V(running_leftover), which is the worst finding there is. Nothing changes it.
  - This module runs where the API can be reached, and changes nothing.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.leftovers
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  guests:
    description:
      - The result of M(osops.placement.hypervisor_guest_info) on each host, with C(host) replaced
        by the name of the host of its compute service.
      - Each entry is such a dictionary, or the path of a JSON file with one.
      - Read the hypervisors before this module asks Nova, not after.
    type: list
    elements: raw
    required: true
  findings:
    description:
      - Path of a file that this module wrote to O(dest) before. Only the findings in this file
        are returned again. Findings that are new since then are left out, because nobody has
        reviewed them.
    type: path
    version_added: 2.0.0
  quarantined:
    description:
      - Whether to report the directories in quarantine whose servers still do not need them,
        instead of what is left over.
    type: bool
    default: false
    version_added: 3.0.0
  dest:
    description:
      - Path of the file to which all results are written, as JSON with mode 0600.
    type: path
seealso:
  - module: osops.placement.hypervisor_guest_info
  - module: osops.placement.hypervisor_guest
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: List the domains and instance directories of a hypervisor
  osops.placement.hypervisor_guest_info:
  delegate_to: compute-17
  become: true
  register: found

- name: Find out which of them are left over
  osops.placement.hypervisor_guest_detect:
    cloud: admin
    guests:
      - "{{ found | combine({'host': 'compute-17'}) }}"
    dest: /var/lib/placement/guests.json
"""

RETURN = r"""
summary:
  description: Numbers of findings, and how much was read.
  returned: success
  type: dict
  contains:
    verdicts:
      description: 'Number of domains and directories by verdict: V(orphaned), V(protected) and
        V(undecided).'
      returned: success
      type: dict
      sample:
        orphaned: 2
        protected: 1
        undecided: 0
    kinds:
      description: 'Number of orphaned domains and directories by kind: V(running_leftover),
        V(leftover_domain) and V(leftover_directory).'
      returned: success
      type: dict
      sample:
        leftover_directory: 1
        leftover_domain: 1
    coverage:
      description: How much was read.
      returned: success
      type: dict
      contains:
        complete:
          description: Whether the reading of Nova was sound. If it was not, nothing may be
            changed.
          returned: success
          type: bool
          sample: true
        failed_checks:
          description: Why nothing may be changed, one sentence each.
          returned: success
          type: list
          elements: str
          sample: []
          version_added: 2.0.0
        hosts:
          description: Number of hosts in O(guests).
          returned: success
          type: int
          sample: 2
        domains:
          description: Number of domains.
          returned: success
          type: int
          sample: 41
        directories:
          description: Number of instance directories.
          returned: success
          type: int
          sample: 42
        looked_at_closely:
          description: Number of servers that were looked up directly.
          returned: success
          type: int
          sample: 3
findings:
  description:
    - The domains and directories that are left over, and first those of the kind
      V(running_leftover). At most 200 are returned here. The file
      RV(dest) has all of them, and the protected and undecided ones with the same fields.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Kind, host, and the UUID of the domain or the name of the directory.
      returned: success
      type: str
      sample: leftover_domain/compute-17/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: V(leftover_domain) or V(leftover_directory).
      returned: success
      type: str
      sample: leftover_domain
    verdict:
      description: V(orphaned), V(protected) or V(undecided).
      returned: success
      type: str
      sample: orphaned
    host:
      description: Name of the host of the compute service.
      returned: success
      type: str
      sample: compute-17
    uuid:
      description: UUID of the server.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the domain or directory.
      returned: success
      type: str
      sample: instance-0000002a
    reason:
      description: The reason for the verdict, in one or more sentences.
      returned: success
      type: str
      sample: User 4f8e deleted server 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 at
        2026-10-25T20:13:51. Its domain remains on compute-17.
    reason_id:
      description: The ID of the reason, from docs/reasons.md of the collection.
      returned: success
      type: str
      sample: left_by_deleted_server
      version_added: 3.0.0
    server:
      description: The server, as Nova returns it; V(null) if Nova returns none.
      returned: success
      type: dict
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
    guest:
      description: The domain or directory, with the fields that
        M(osops.placement.hypervisor_guest_info) returns in
        RV(osops.placement.hypervisor_guest_info#module:domains) or
        RV(osops.placement.hypervisor_guest_info#module:directories).
      returned: success
      type: dict
    evidence:
      description: The requests that the decision depends on, with their answers, in the order in
        which they were sent.
      returned: success
      type: list
      elements: dict
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
dest:
  description: Path of the file with all results, or V(null).
  returned: success
  type: str
  sample: /var/lib/placement/guests.json
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._hypervisors.guest_detection import detect_guests
from ..module_utils._hypervisors.hypervisor_cleanup import LeftoverOptions

TASK = CloudTask(
    detect_guests,
    {
        **LeftoverOptions.build_spec(),
        "guests": {"type": "list", "elements": "raw", "required": True},
        "findings": {"type": "path"},
        "quarantined": {"type": "bool", "default": False},
        "dest": {"type": "path"},
    },
)


if __name__ == "__main__":
    TASK.run_module()
