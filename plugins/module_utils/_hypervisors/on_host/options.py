# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where libvirt and the files of Nova are on a hypervisor."""

from __future__ import annotations

from ..._common.options import Int, Options, Path, Text


class LibvirtOptions(Options):
    virsh = Text("virsh")
    """
    The command that runs C(virsh) on the hypervisor, with its arguments. It is split like a command
    line and runs without a shell.

    If libvirt runs in a container, as with Kolla, set the command that runs C(virsh) there, for
    example V(docker exec -i nova_libvirt virsh) or V(podman exec -i nova_libvirt virsh). C(-i) is
    required to define a domain again.
    """

    uri = Text("qemu:///system")
    """
    The connection URI of libvirt.
    """


class InstanceOptions(Options):
    instances_path = Path("/var/lib/nova/instances")
    """
    The directory on the hypervisor in which Nova keeps the directories of its instances
    (C(instances_path) in C(nova.conf)).

    If Nova runs in a container, set the path on the host. With Kolla this is the path of the volume
    C(nova_compute), V(/var/lib/docker/volumes/nova_compute/_data/instances) or
    V(/var/lib/containers/storage/volumes/nova_compute/_data/instances).
    """

    quarantine_path = Path(empty="leave it out for its default.")
    """
    The directory to which leftover instance directories are moved. It is created with mode 0700
    when it is needed. Its parent directory must exist.

    It must be on the same file system as O(instances_path), and only root and the user of the task
    may be able to write to it.

    The default is C(.quarantine) in O(instances_path), which is always on the same file system.
    Nova ignores this directory, because it looks there only for the UUIDs of its own instances.
    """


class BackupOptions(Options):
    backup_path = Path("/var/lib/osops-placement")
    """
    The folder in which the XML of domains is saved before they are undefined.
    """


class HypervisorOptions(LibvirtOptions, InstanceOptions):
    virsh_timeout = Int(60, lowest=1)
    """
    How many seconds one call of O(virsh) may take.
    """
