# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain servers: those that ask for VCPU, MEMORY_MB and DISK_GB and nothing else.

It is enough to see whether a server would fit on another host. What a server has to have on its own
host is in `expected`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._core.models.nova import Flavor
from .._core.models.placement import Resources

# Extra specs and image properties that ask for other resource classes or for other amounts. What is
# `hw:` in an extra spec is `hw_` in an image property.
_SPECIAL_SPECS = re.compile(
    r"resources.*|pci_passthrough:.*|accel:.*"
    r"|hw[:_](cpu_policy|cpu_dedicated_mask|cpu_realtime.*|emulator_threads_policy|numa_.*"
    r"|mem_page_size|mem_encryption.*|pmem)"
)


def list_special_specs(specs: Mapping[str, str]) -> list[str]:
    """Return those extra specs or image properties that make a server more than plain."""
    return sorted(name for name in specs if _SPECIAL_SPECS.fullmatch(name))


def calculate_resources(flavor: Flavor, volume_backed: bool) -> Resources:
    """Return the amounts that Nova allocates for a server of a plain flavor.

    These are VCPU, MEMORY_MB (MiB) and DISK_GB (GiB). A class of which the server needs nothing is
    left out.
    """
    # Swap is in MiB and rounded up to GiB.
    disk = flavor.ephemeral + -(-flavor.swap // 1024)
    if not volume_backed:
        disk += flavor.disk
    amounts = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.ram, "DISK_GB": disk}
    return {cls: amount for cls, amount in amounts.items() if amount}
