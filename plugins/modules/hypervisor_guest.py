#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_guest
short_description: Undefine libvirt domains and put instance directories into quarantine
version_added: 1.0.0
description:
  - Undefines a domain of libvirt that is left over on a hypervisor.
    Its XML is saved first, and it can be defined again.
  - Moves the directory of an instance to a quarantine folder, from where it can be brought back.
    To delete it there is a step of its own.
  - Does not ask Nova.
    Make sure that the server does not exist, or is
    somewhere else and not on its way from or to this host.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._hypervisor
  - osops.placement._attributes
attributes:
  check_mode:
    support: full
    details:
      - Names with a date in them are not foretold.
      - Whether libvirt would refuse is known to libvirt alone, which is not asked in check mode.
        Nor is it known whether somebody has files open after O(destroy).
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  uuid:
    description:
      - UUID of the instance, in lower case and with dashes. Anything else is refused.
      - Required for all but O(directory=purged).
    type: str
  domain:
    description:
      - With V(undefined), the domain of that UUID is
        undefined after its XML was saved in O(backup_path).
        It must be shut off unless O(destroy) says otherwise, and
        have metadata of Nova, without which it is somebody else's.
      - With V(defined), it is defined again from such an XML. A
        domain that is there is left as it is, whatever it looks like.
      - At least one of O(domain) and O(directory) must be given.
        Without O(domain), domains are left alone.
    type: str
    choices:
      - defined
      - undefined
  directory:
    description:
      - With V(quarantined), the directory of the instance is moved
        to O(quarantine_path), and the date is added to its name.
        It stays where it is, and the task fails, when it is a symbolic link, when a file in
        it is open or that cannot be told, or when the domain of that UUID is not shut off.
      - With V(present), the one that was last moved there is brought back, unless there is one.
      - With V(purged), those directories in O(quarantine_path) are deleted that were moved
        there longer than O(older_than) ago, of O(uuid) or, without it, of all instances.
        Nothing but what this module put there is touched.
    type: str
    choices:
      - present
      - quarantined
      - purged
  directory_kind:
    description:
      - Which directory of the instance is meant, for
        O(directory=quarantined) and O(directory=present).
      - V(instance) is named by the UUID alone.
        V(resize) has C(_resize) after it and is what Nova needs to revert a resize or migration.
        V(del) has C(_del) after it and is what Nova did not come to the end of deleting.
    type: str
    choices:
      - instance
      - resize
      - del
    default: instance
  destroy:
    description:
      - With O(domain=undefined), destroy a domain first that is not shut off.
        That is like pulling the plug of a machine.
    type: bool
    default: false
  remove:
    description:
      - What may be lost with O(domain=undefined).
      - The variables of its firmware (V(nvram)) and the state of
        its emulated TPM (V(tpm)) are kept unless they are listed.
        Before version 8.9, libvirt cannot keep the latter and refuses.
      - A domain with a managed save (V(managed_save)) or with
        snapshots (V(snapshots)) is refused unless they are listed.
        Of snapshots only what libvirt knows of them is
        removed, and what is inside of disks stays there.
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
      - Folder on the hypervisor for the XML of domains.
        It is made with mode 0700, and the files have mode 0600, for they hold passwords.
    type: path
    default: /var/lib/osops-placement
  xml_path:
    description:
      - File on the hypervisor with the XML for O(domain=defined).
        The default is what was last saved of this domain in O(backup_path).
    type: path
  older_than:
    description:
      - How long something must have been in quarantine for
        O(directory=purged), for example V(7d) or V(12h).
        It counts from the date in its name to the clock of the host.
    type: str
  expect_state:
    description:
      - State that the domain had when it was looked at.
        With O(domain=undefined), the task fails when it has another one now.
    type: str
  expect_created_at:
    description:
      - C(created_at) in RV(osops.placement.hypervisor_guest_info#module:domains[].nova)
        when the domain was looked at.
        With O(domain=undefined), the task fails when Nova has defined
        it anew since, as it does for a server that comes back.
    type: str
  expect_changed_at:
    description:
      - RV(osops.placement.hypervisor_guest_info#module:directories[].changed_at)
        of the directory when it was looked at.
        With O(directory=quarantined), the task fails when it is another one now.
    type: str
  allow_shared:
    description:
      - With O(directory=quarantined), move the directory also when it is
        on a file system that other hosts may use as well, such as NFS.
        Whether one of them has a file in it open cannot be seen from here.
    type: bool
    default: false
notes:
  - All is looked at before anything is done.
    Each part is looked at again right before it is done, and afterwards.
  - A disk in quarantine may need its base image in C(_base), which
    Nova deletes after a while when no instance of the host uses it.
  - What is in quarantine still takes up space.
seealso:
  - module: osops.placement.hypervisor_guest_info
"""

EXAMPLES = r"""
---
- name: Undefine a domain that Nova no longer knows, and put its directory aside
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: undefined
    directory: quarantined
  become: true

- name: The same, although the guest still runs
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: undefined
    directory: quarantined
    destroy: true
  become: true

- name: Have both back as they were
  osops.placement.hypervisor_guest:
    uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    domain: defined
    directory: present
  become: true

- name: Delete what has been in quarantine for a month
  osops.placement.hypervisor_guest:
    directory: purged
    older_than: 30d
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
    - What was done, or would be in check mode, in that order.
      Of V(destroy), V(undefine), V(quarantine), V(restore), V(purge) and V(define).
    - Like all of this, returned as well when the task failed half-way.
  returned: success
  type: list
  elements: str
  sample:
    - undefine
    - quarantine
domain:
  description:
    - The domain after the task, or as it would be in check mode.
    - V(null) when there is none, or when neither
      O(domain) nor O(directory=quarantined) asked for it.
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
      description:
        - State in the words of C(virsh).
          These are V(running), V(idle), V(paused), V(in shutdown),
          V(shut off), V(crashed), V(pmsuspended) and V(no state).
      returned: success
      type: str
      sample: shut off
    vcpus:
      description: Its processors.
      returned: success
      type: int
      sample: 2
    memory_mb:
      description: Its memory at most, in MiB.
      returned: success
      type: int
      sample: 4096
    persistent:
      description: Whether it stays defined when it is shut off.
      returned: success
      type: bool
      sample: true
    managed_save:
      description: Whether libvirt has saved its memory, to go on from when it is started.
      returned: success
      type: bool
      sample: false
    snapshots:
      description: Number of the snapshots that libvirt knows.
      returned: success
      type: int
      sample: 0
    nvram:
      description: Path of the file with the variables of its firmware, or V(null).
      returned: success
      type: str
      sample: /var/lib/libvirt/qemu/nvram/instance-0000002a_VARS.fd
    tpm:
      description: Whether it has an emulated TPM, whose state libvirt keeps.
      returned: success
      type: bool
      sample: false
    nova:
      description: What Nova wrote into its metadata.
        V(null) when there is no such, for the domain is somebody else's then.
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
          description: ID of the user who made it.
          returned: success
          type: str
          sample: 70b7a1d0a5a54c4f8ec4f2a5f3f0a3a1
        created_at:
          description: When Nova wrote this, in UTC.
          returned: success
          type: str
          sample: '2026-10-20T08:00:12Z'
    disks:
      description: Paths of its disks, as libvirt sees them.
        Those that are neither a file nor a device of the host are not listed.
      returned: success
      type: list
      elements: str
      sample:
        - /var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11/disk
directory:
  description:
    - Path of the directory in O(instances_path) after the task, or as it would be in check mode.
      V(null) when there is none, or when O(directory) did not ask for it.
  returned: success
  type: str
  sample: /var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
xml_path:
  description:
    - File that the XML of the domain was saved in, or that it was defined from.
      V(null) otherwise, and in check mode when it would be saved.
  returned: success
  type: str
  sample: /var/lib/osops-placement/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z.xml
quarantined:
  description:
    - Where the directory was moved. V(null) when it was not, and in check mode.
  returned: success
  type: str
  sample: /var/lib/nova/instances/.quarantine/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11.20261025T201351Z
purged:
  description:
    - Paths of the directories that were deleted, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._common.runner import run_offline
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.domain_xml import (
    DEFAULT_BACKUP_PATH,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.guest import (
    ensure_guest_state,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.instance_dirs import (
    SUFFIX_BY_KIND,
    instances_options,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.virsh import (
    KEPT_UNLESS_REMOVED,
    REFUSED_UNLESS_REMOVED,
    virsh_options,
)


def work(module: AnsibleModule) -> dict[str, t.Any]:
    """Bring the guest into the requested state, and return the result of the module."""
    result = ensure_guest_state(module)
    if not module._diff:
        result.pop("diff", None)
    return result


def main() -> None:
    argument_spec = {
        **virsh_options(),
        **instances_options(),
        "uuid": {"type": "str"},
        "domain": {"type": "str", "choices": ["defined", "undefined"]},
        "directory": {"type": "str", "choices": ["present", "quarantined", "purged"]},
        "directory_kind": {"type": "str", "choices": list(SUFFIX_BY_KIND), "default": "instance"},
        "destroy": {"type": "bool", "default": False},
        "remove": {
            "type": "list",
            "elements": "str",
            "choices": [*KEPT_UNLESS_REMOVED, *REFUSED_UNLESS_REMOVED],
            "default": [],
        },
        "backup_path": {"type": "path", "default": DEFAULT_BACKUP_PATH},
        "xml_path": {"type": "path"},
        "older_than": {"type": "str"},
        "expect_state": {"type": "str"},
        "expect_created_at": {"type": "str"},
        "expect_changed_at": {"type": "str"},
        "allow_shared": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        argument_spec,
        supports_check_mode=True,
        required_one_of=[("domain", "directory")],
        required_if=[
            ("domain", "defined", ["uuid"]),
            ("domain", "undefined", ["uuid"]),
            ("directory", "present", ["uuid"]),
            ("directory", "quarantined", ["uuid"]),
            ("directory", "purged", ["older_than"]),
        ],
    )
    run_offline(module, work)


if __name__ == "__main__":
    main()
