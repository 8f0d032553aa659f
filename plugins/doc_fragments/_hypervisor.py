# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  virsh:
    description:
      - The command that runs C(virsh) on the hypervisor, with its arguments. It is split like a
        command line and runs without a shell.
      - If libvirt runs in a container, as with Kolla, set the command that runs C(virsh) there, for
        example V(docker exec -i nova_libvirt virsh) or V(podman exec -i nova_libvirt virsh). C(-i)
        is required to define a domain again.
    type: str
    default: virsh
  uri:
    description:
      - The connection URI of libvirt.
    type: str
    default: qemu:///system
  instances_path:
    description:
      - The directory on the hypervisor in which Nova keeps the directories of its instances
        (C(instances_path) in C(nova.conf)).
      - If Nova runs in a container, set the path on the host. With Kolla this is the path of the
        volume C(nova_compute), V(/var/lib/docker/volumes/nova_compute/_data/instances) or
        V(/var/lib/containers/storage/volumes/nova_compute/_data/instances).
    type: path
    default: /var/lib/nova/instances
  quarantine_path:
    description:
      - The directory to which leftover instance directories are moved. It is created with mode 0700
        when it is needed. Its parent directory must exist.
      - It must be on the same file system as O(instances_path), and only root and the user of the
        task may be able to write to it.
      - The default is C(.quarantine) in O(instances_path), which is always on the same file system.
        Nova ignores this directory, because it looks there only for the UUIDs of its own instances.
    type: path
  virsh_timeout:
    description:
      - How many seconds one call of O(virsh) may take.
    type: int
    default: 60
requirements:
  - Python 3.9 or newer on the hypervisor
  - C(virsh), from the client programs of libvirt
notes:
  - This module runs on the hypervisor, and needs neither access to the cloud nor openstacksdk
    there. Run it as root, with C(become).
"""
