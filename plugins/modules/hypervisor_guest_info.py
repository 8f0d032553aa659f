#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_guest_info
short_description: Show the libvirt domains and instance directories of a hypervisor
version_added: 1.0.0
description:
  - Returns the libvirt domains, the instance directories and the directories in quarantine on a
    hypervisor, whether or not Nova knows them.
  - Only Nova can tell whether one of them is left over. A domain or directory that Nova does not
    show on this host may belong to a server that is being moved, or may be on a file system that
    other hosts use too.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.hypervisor
  - osops.placement._attributes
  - osops.placement._attributes.read_only
options:
  parts:
    description:
      - What to read. V(directories) includes the directories in quarantine. A part that is not
        named is V(null) in the result.
      - Without V(domains), O(virsh) is not run.
    type: list
    elements: str
    choices:
      - domains
      - directories
    default:
      - domains
      - directories
  uuids:
    description:
      - UUIDs of instances. Show only the domains and directories of these instances. Without it,
        all are shown.
    type: list
    elements: str
notes:
  - If libvirt does not answer, or O(instances_path) does not exist, the task fails. So an empty
    list always means that there are none.
seealso:
  - module: osops.placement.hypervisor_guest
"""

EXAMPLES = r"""
---
- name: List the domains and instance directories of hypervisors
  osops.placement.hypervisor_guest_info:
  become: true
  register: found

- name: List them on hypervisors that Kolla deployed
  osops.placement.hypervisor_guest_info:
    virsh: docker exec -i nova_libvirt virsh
    instances_path: /var/lib/docker/volumes/nova_compute/_data/instances
  become: true
  register: found

- name: Show the domains that are shut off
  ansible.builtin.debug:
    msg: "{{ found.domains | selectattr('state', '==', 'shut off') | map(attribute='uuid') }}"
"""

RETURN = r"""
host:
  description: Hostname of the hypervisor.
  returned: success
  type: str
  sample: compute-17
compute_id:
  description:
    - UUID of the compute node, from the file that nova-compute keeps beside O(instances_path)
      since Nova 2023.1; V(null) without this file.
  returned: success
  type: str
  sample: 0d1f5a3c-6b5e-4a3e-9d3a-2f1b7c8d9e0f
read_at:
  description: When the data was read, by the clock of the host, in UTC.
  returned: success
  type: str
  sample: '2026-10-25T20:13:51Z'
domains:
  description: The libvirt domains, sorted by UUID; V(null) if O(parts) does not name them.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the domain. Nova gives a domain the UUID of its server.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the domain.
      returned: success
      type: str
      sample: instance-0000002a
    state:
      description: 'State of the domain, as C(virsh) returns it: V(running), V(idle), V(paused),
        V(in shutdown), V(shut off), V(crashed), V(pmsuspended) or V(no state).'
      returned: success
      type: str
      sample: shut off
    vcpus:
      description: Number of VCPUs.
      returned: success
      type: int
      sample: 2
    memory_mb:
      description: Maximum memory in MiB.
      returned: success
      type: int
      sample: 4096
    persistent:
      description: Whether the domain stays defined when it is shut off.
      returned: success
      type: bool
      sample: true
    managed_save:
      description: Whether libvirt has saved the memory of the domain, to resume from it at the
        next start.
      returned: success
      type: bool
      sample: false
    snapshots:
      description: Number of snapshots that libvirt knows.
      returned: success
      type: int
      sample: 0
    nvram:
      description: Path of the file with the UEFI variables, or V(null).
      returned: success
      type: str
      sample: /var/lib/libvirt/qemu/nvram/instance-0000002a_VARS.fd
    tpm:
      description: Whether the domain has an emulated TPM, whose state libvirt keeps.
      returned: success
      type: bool
      sample: false
    nova:
      description: The metadata that Nova wrote into the domain; V(null) for a domain that Nova
        did not define.
      returned: success
      type: dict
      contains:
        name:
          description: Name of the server.
          returned: success
          type: str
          sample: web-1
        flavor:
          description: Name of its flavor.
          returned: success
          type: str
          sample: m1.small
        project:
          description: ID of its project.
          returned: success
          type: str
          sample: 3a705b9f56bb439381b43c4fe59dccce
        user:
          description: ID of the user who created it.
          returned: success
          type: str
          sample: 70b7a1d0a5a54c4f8ec4f2a5f3f0a3a1
        created_at:
          description: When Nova wrote the metadata, in UTC.
          returned: success
          type: str
          sample: '2026-10-20T08:00:12Z'
    disks:
      description: Paths of the disks, as libvirt sees them. Disks that are neither a file nor a
        block device of the host are left out.
      returned: success
      type: list
      elements: str
      sample:
        - /var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11/disk
    hostdevs:
      description: PCI devices of the host that the domain uses, or that it gets when it starts.
      returned: success
      type: list
      elements: dict
      version_added: 2.0.0
      contains:
        address:
          description: PCI address of the device.
          returned: success
          type: str
          sample: '0000:84:00.1'
        present:
          description: Whether the host has such a device now.
          returned: success
          type: bool
          sample: true
        physical_function:
          description: PCI address of its physical function. V(null) for a device that is not a
            virtual function, or that is not present.
          returned: success
          type: str
          sample: '0000:84:00.0'
    mdevs:
      description: Mediated devices that the domain uses, such as virtual GPUs, or that it gets
        when it starts.
      returned: success
      type: list
      elements: dict
      version_added: 2.0.0
      contains:
        uuid:
          description: UUID of the mediated device.
          returned: success
          type: str
          sample: 1c1cbd32-1b8a-4a0e-8e5a-0d3c8a1f7e55
        parent:
          description: PCI address of the device that it is a part of. V(null) if the host does not
            show this, for example after the host was restarted.
          returned: success
          type: str
          sample: '0000:84:00.0'
        physical_function:
          description: PCI address of the physical function of the parent, if the parent is a
            virtual function. Otherwise V(null).
          returned: success
          type: str
          sample: '0000:84:00.0'
    other_devices:
      description: Other parts of the domain that may be devices of the host, and for which its XML
        has no PCI address, such as an interface of the type C(direct).
      returned: success
      type: list
      elements: str
      version_added: 2.0.0
      sample: []
directories:
  description:
    - The directories in O(instances_path) with a name that Nova gives to instance directories,
      sorted by name. Others, such as C(_base) and C(locks), are left out. V(null) if O(parts)
      does not name them.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the directory.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    path:
      description: Path of the directory.
      returned: success
      type: str
      sample: /var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    uuid:
      description: UUID of the instance.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description:
        - V(instance).
        - V(resize) for a directory with C(_resize) after the UUID, which is the source of a
          resize or cold migration that can still be reverted.
        - V(del) for a directory with C(_del) after the UUID, which Nova was about to delete.
      returned: success
      type: str
      sample: instance
    size_bytes:
      description: Disk space that the directory uses, in bytes; V(null) if some of it cannot be
        read, or if it contains more than 100000 files.
      returned: success
      type: int
      sample: 1431655936
    changed_at:
      description: When something in the directory last changed, in UTC; V(null) in the same cases
        as RV(directories[].size_bytes). For a symbolic link, when the link itself last changed.
      returned: success
      type: str
      sample: '2026-10-21T11:40:03Z'
    age_seconds:
      description: Seconds since then, by the clock of the host.
      returned: success
      type: int
      sample: 376428
    open:
      description:
        - Whether a process or a loop device of this host has a file in the directory open, or
          something is mounted in it. V(null) if this is unknown, for example without root
          permissions, and for a symbolic link.
      returned: success
      type: bool
      sample: false
    link:
      description: Whether it is a symbolic link. The link is not followed.
      returned: success
      type: bool
      sample: false
    device:
      description: Device number of its file system.
      returned: success
      type: int
      sample: 65024
    shared:
      description: Whether other hosts may use the directory too, because its file system is one
        such as NFS or CephFS, or because this host exports it (C(exports), NFS-Ganesha); V(null)
        if this is unknown.
      returned: success
      type: bool
      sample: false
    inode:
      description: Number of its inode, which all hosts show for a directory that they share.
      returned: success
      type: int
      sample: 1835021
      version_added: 3.0.0
quarantined:
  description: The directories that M(osops.placement.hypervisor_guest) moved to
    O(quarantine_path), sorted by name; V(null) if O(parts) does not name directories.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the directory in quarantine, with the time of the move.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z
    uuid:
      description: UUID of the instance.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: As in RV(directories[].kind).
      returned: success
      type: str
      sample: instance
    path:
      description: Path of the directory in quarantine.
      returned: success
      type: str
      sample:
        /var/lib/nova/instances/.quarantine/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z
    moved_at:
      description: When the directory was moved, in UTC.
      returned: success
      type: str
      sample: '2026-10-25T20:13:51Z'
    age_seconds:
      description: Seconds since the move, by the clock of the host.
      returned: success
      type: int
      sample: 86400
    size_bytes:
      description: Disk space that the directory uses, as in RV(directories[].size_bytes).
      returned: success
      type: int
      sample: 1431655936
    shared:
      description: As in RV(directories[].shared), of the quarantine itself.
      returned: success
      type: bool
      sample: false
      version_added: 3.0.0
"""

from ..module_utils._common.context import Task
from ..module_utils._hypervisors.on_host.guest import PARTS, read_guests
from ..module_utils._hypervisors.on_host.options import HypervisorOptions

TASK = Task(
    read_guests,
    {
        **HypervisorOptions.build_spec(),
        "parts": {"type": "list", "elements": "str", "choices": PARTS, "default": PARTS},
        "uuids": {"type": "list", "elements": "str"},
    },
)


if __name__ == "__main__":
    TASK.run_module()
