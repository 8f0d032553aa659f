#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_guest
short_description: Undefine libvirt domains and move instance directories to quarantine
version_added: 1.0.0
description:
  - Undefines a leftover libvirt domain on a hypervisor. Its XML is saved first, so that it can be
    defined again.
  - Moves a leftover instance directory to a quarantine directory, from which it can be restored.
    Deleting it there is a separate step.
  - This module never asks Nova. Make sure that the server does not exist, or that it is on
    another host and not moving from or to this host.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.hypervisor
  - osops.placement._attributes
attributes:
  check_mode:
    support: full
    details:
      - Names that contain a time are not predicted.
      - Only libvirt knows whether it would refuse a change, and check mode does not ask it. Check
        mode also cannot know whether files are still open after O(destroy).
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  uuid:
    description:
      - UUID of the instance, in lower case with dashes; anything else is refused.
      - Required for everything except O(directory=purged).
    type: str
  domain:
    description:
      - With V(undefined), the domain with this UUID is undefined after its XML is saved in
        O(backup_path). It must be shut off unless O(destroy) is set, and it must have metadata of
        Nova, because otherwise it is not a domain of Nova.
      - With V(defined), the domain is defined again from the saved XML. An existing domain is
        left unchanged, whatever its definition is.
      - Set at least one of O(domain) and O(directory). Without O(domain), no domain is changed.
    type: str
    choices:
      - defined
      - undefined
  directory:
    description:
      - With V(quarantined), the instance directory is moved to O(quarantine_path), with the time
        of the move appended to its name. The task fails and moves nothing if the directory is a
        symbolic link, if a file in it is open or this is unknown, or if the domain with this UUID
        is not shut off.
      - With V(present), the directory that was last moved to quarantine is restored, unless the
        instance directory exists.
      - 'With V(purged), directories that were moved to O(quarantine_path) longer than
        O(older_than) ago are deleted: those of O(uuid), or of all instances without O(uuid). Only
        directories that this module moved there are deleted.'
    type: str
    choices:
      - present
      - quarantined
      - purged
  directory_kind:
    description:
      - Which directory of the instance O(directory=quarantined) and O(directory=present) change.
      - V(instance) is named by the UUID alone. V(resize) has C(_resize) after the UUID, and Nova
        needs it to revert a resize or cold migration. V(del) has C(_del) after the UUID, and Nova
        did not finish deleting it.
    type: str
    choices:
      - instance
      - resize
      - del
    default: instance
  destroy:
    description:
      - With O(domain=undefined), destroy the domain first if it is not shut off. This is like
        pulling the power plug of a machine.
    type: bool
    default: false
  remove:
    description:
      - What O(domain=undefined) may delete together with the domain.
      - UEFI variables (V(nvram)) and the state of an emulated TPM (V(tpm)) are kept unless they
        are listed. Before version 8.9, libvirt cannot keep the state of a TPM and refuses.
      - A domain with a managed save (V(managed_save)) or with snapshots (V(snapshots)) is refused
        unless they are listed. Only the metadata of snapshots is removed; internal snapshots stay
        in the disks.
    type: list
    elements: str
    choices:
      - nvram
      - tpm
      - managed_save
      - snapshots
    default: []
  backup_path:
    description:
      - Directory on the hypervisor for the XML of domains. The module creates it with mode 0700,
        and the files have mode 0600, because they contain passwords.
    type: path
    default: /var/lib/osops-placement
  xml_path:
    description:
      - File on the hypervisor with the XML for O(domain=defined). The default is the file in
        O(backup_path) that was last saved for this domain.
    type: path
  older_than:
    description:
      - How long a directory must have been in quarantine before O(directory=purged) deletes it,
        from the time in its name both to the clock of the host and to O(now).
      - Seconds, or a number with C(s), C(m), C(h) or C(d), for example V(90), V(15m) or V(7d).
    type: str
  now:
    description:
      - The time by the clock of another machine, such as the controller, in UTC. Required for
        O(directory=purged), because a clock that is wrong would delete what is new.
      - With O(directory=quarantined), the name of the directory gets the later of both times.
    type: str
    version_added: 3.0.0
  expect_state:
    description:
      - State that the domain had when it was read, for example V(shut off). With
        O(domain=undefined), the task fails if the domain now has another state.
    type: str
  expect_created_at:
    description:
      - C(created_at) in RV(osops.placement.hypervisor_guest_info#module:domains[].nova) when the
        domain was read. With O(domain=undefined), the task fails if Nova has defined the domain
        again since, as it does for a server that comes back.
    type: str
  expect_changed_at:
    description:
      - RV(osops.placement.hypervisor_guest_info#module:directories[].changed_at) of the directory
        when it was read. With O(directory=quarantined), the task fails if the directory has
        changed since.
    type: str
  allow_shared:
    description:
      - With O(directory=quarantined), move the directory even if it is on a file system that
        other hosts may use too, such as NFS. This module cannot see whether another host has a
        file in it open.
    type: bool
    default: false
notes:
  - Everything is checked before anything is changed. Each part is checked again immediately
    before it is changed, and read back afterwards.
  - A disk in quarantine may need its base image in C(_base), which Nova deletes after a while if
    no instance on the host uses it.
  - Directories in quarantine still use disk space.
seealso:
  - module: osops.placement.hypervisor_guest_info
"""

EXAMPLES = r"""
---
- name: Undefine a domain that Nova no longer knows, and move its directory to quarantine
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: undefined
    directory: quarantined
  become: true

- name: Do the same although the guest still runs
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: undefined
    directory: quarantined
    destroy: true
  become: true

- name: Restore both
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: defined
    directory: present
  become: true

- name: Delete the directories that have been in quarantine for 30 days
  osops.placement.hypervisor_guest:
    directory: purged
    older_than: 30d
    now: "{{ now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ') }}"
  become: true
"""

RETURN = r"""
uuid:
  description: UUID of the instance, or V(null).
  returned: success
  type: str
  sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
actions:
  description:
    - 'The actions that were done, or would be done in check mode, in this order: V(destroy),
      V(undefine), V(quarantine), V(restore), V(purge) and V(define).'
    - This and all other values are also returned if the task failed halfway.
  returned: success
  type: list
  elements: str
  sample:
    - undefine
    - quarantine
domain:
  description:
    - The domain after the task, or as it would be in check mode.
    - V(null) if there is none, and if neither O(domain) nor O(directory=quarantined) is set.
  returned: success
  type: dict
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
directory:
  description: Path of the instance directory after the task, or as it would be in check mode;
    V(null) if there is none, and if O(directory) is not set.
  returned: success
  type: str
  sample: /var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
xml_path:
  description: Path of the file to which the XML of the domain was saved, or from which the domain
    was defined. V(null) otherwise, and in check mode if it would be saved.
  returned: success
  type: str
  sample: /var/lib/osops-placement/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z.xml
quarantined:
  description: Path to which the directory was moved; V(null) if it was not moved, and in check
    mode.
  returned: success
  type: str
  sample: /var/lib/nova/instances/.quarantine/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z
purged:
  description: Paths of the directories that were deleted, or would be deleted in check mode.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ..module_utils._common.context import Task
from ..module_utils._hypervisors.on_host.guest import ensure_guest_state
from ..module_utils._hypervisors.on_host.instance_dirs import SUFFIX_BY_KIND
from ..module_utils._hypervisors.on_host.options import BackupOptions, HypervisorOptions
from ..module_utils._hypervisors.on_host.virsh import KEPT_UNLESS_REMOVED, REFUSED_UNLESS_REMOVED

_REMOVABLE = [*KEPT_UNLESS_REMOVED, *REFUSED_UNLESS_REMOVED]
TASK = Task(
    ensure_guest_state,
    {
        **HypervisorOptions.build_spec(),
        **BackupOptions.build_spec(),
        "uuid": {"type": "str"},
        "domain": {"type": "str", "choices": ["defined", "undefined"]},
        "directory": {"type": "str", "choices": ["present", "quarantined", "purged"]},
        "directory_kind": {"type": "str", "choices": list(SUFFIX_BY_KIND), "default": "instance"},
        "destroy": {"type": "bool", "default": False},
        "remove": {"type": "list", "elements": "str", "choices": _REMOVABLE, "default": []},
        "xml_path": {"type": "path"},
        "older_than": {"type": "str"},
        "now": {"type": "str"},
        "expect_state": {"type": "str"},
        "expect_created_at": {"type": "str"},
        "expect_changed_at": {"type": "str"},
        "allow_shared": {"type": "bool", "default": False},
    },
    required_one_of=[("domain", "directory")],
    required_if=[
        ("domain", "defined", ["uuid"]),
        ("domain", "undefined", ["uuid"]),
        ("directory", "present", ["uuid"]),
        ("directory", "quarantined", ["uuid"]),
        ("directory", "purged", ["older_than", "now"]),
    ],
)


if __name__ == "__main__":
    TASK.run_module()
