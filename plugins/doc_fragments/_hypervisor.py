# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  virsh:
    description:
      - Command that runs C(virsh) on the hypervisor, with its arguments.
        It is split like a command line, and no shell sees it.
      - Where libvirt runs in a container, as with Kolla, the command that runs it there, for
        example V(docker exec -i nova_libvirt virsh) or V(podman exec -i nova_libvirt virsh).
        With C(-i), a domain can be defined again.
    type: str
    default: virsh
  uri:
    description:
      - URI of libvirt.
    type: str
    default: qemu:///system
  virsh_timeout:
    description:
      - Seconds that one call of O(virsh) may take.
    type: int
    default: 60
  instances_path:
    description:
      - Folder on the hypervisor in which Nova has the directories
        of its instances, C(instances_path) in C(nova.conf).
      - Where Nova runs in a container, the folder as the host sees it.
        With Kolla it is that of the volume C(nova_compute),
        V(/var/lib/docker/volumes/nova_compute/_data/instances) or
        V(/var/lib/containers/storage/volumes/nova_compute/_data/instances).
    type: path
    default: /var/lib/nova/instances
  quarantine_path:
    description:
      - Folder to which directories are moved that are left over.
        It is made when it is needed, with mode 0700.
        The folder above it must be there.
      - It must be on the same file system as O(instances_path), and
        can be changed by nobody but root and the user of the task.
      - The default is C(.quarantine) in O(instances_path),
        which is on that file system for certain.
        Nova takes no notice of it, for it looks there only for the UUIDs of its own instances.
    type: path
requirements:
  - Python 3.9 or newer on the hypervisor
  - C(virsh), from the client programs of libvirt
notes:
  - Runs on the hypervisor and needs neither the cloud nor openstacksdk there.
    Run it as root, with C(become).
"""
