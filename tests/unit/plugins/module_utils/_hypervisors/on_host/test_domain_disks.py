# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files a domain uses: a directory with one of them stays."""

from __future__ import annotations

import pytest

from ansible_collections.osops.placement.plugins.module_utils._hypervisors.on_host.virsh import (
    parse_domain,
)

DISK = "/var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c12/disk"


@pytest.mark.parametrize(
    ("xml", "disks"),
    [
        (f"<disk type='file'><source file='{DISK}'/></disk>", (DISK,)),
        ("<disk type='block'><source dev='/dev/sdb'/></disk>", ("/dev/sdb",)),
        ("<disk type='network'><source protocol='rbd' name='vms/x'/></disk>", ()),
        (
            "<disk type='file'><source file='/srv/copy.qcow2'/>"
            f"<backingStore type='file'><source file='{DISK}'/>"
            "<backingStore type='file'><source file='/srv/base'/></backingStore>"
            "</backingStore></disk>",
            ("/srv/copy.qcow2", DISK, "/srv/base"),
        ),
    ],
    ids=["a file", "a device", "of a network", "layers"],
)
def test_disks_and_what_they_are_layers_of(xml: str, disks: tuple[str, ...]) -> None:
    domain = (
        "<domain type='kvm'><name>instance-00000001</name>"
        "<uuid>6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c12</uuid>"
        f"<devices>{xml}</devices></domain>"
    )

    assert parse_domain(domain.encode(), state="shut off", persistent=True).disks == disks
