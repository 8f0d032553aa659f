# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Plain servers: those that ask for VCPU, MEMORY_MB and DISK_GB and nothing else, so that their claim is known from their flavor.

How Nova makes a claim of a flavor: nova/scheduler/utils.py, ResourceRequest.from_request_spec.
"""

from __future__ import annotations

import re
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Flavor, Server
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Resources
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Evidence
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )

_PLAIN_CLASSES = frozenset({"VCPU", "MEMORY_MB", "DISK_GB"})

# Extra specs and image properties (`hw:` there is `hw_` here) that ask for other resource classes or for other amounts.
_SPECIAL_SPECS = re.compile(
    r"resources.*|pci_passthrough:.*|accel:.*"
    r"|hw[:_](cpu_policy|cpu_dedicated_mask|cpu_realtime.*|emulator_threads_policy|numa_.*|mem_page_size|mem_encryption.*|pmem)"
)


def list_special_specs(specs: Mapping[str, str]) -> list[str]:
    """Return those extra specs or image properties that make a server more than plain."""
    return sorted(name for name in specs if _SPECIAL_SPECS.fullmatch(name))


def calculate_resources(flavor: Flavor, volume_backed: bool) -> Resources:
    """Return what Nova claims for a server of a plain flavor: VCPU, MEMORY_MB, and DISK_GB unless that is nothing."""
    disk = flavor.ephemeral + -(-flavor.swap // 1024) + (0 if volume_backed else flavor.disk)
    claim = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.ram, "DISK_GB": disk}
    return {cls: amount for cls, amount in claim.items() if amount}


def needs_resource_lookups(view: ConsumerView) -> bool:
    """Tell whether the server rests on a host of which it does not hold just what its flavor says, so that more has to be known of it."""
    server, own = view.server, view.own_tree
    if server is None or own is None or not view.settled:
        return False
    if own not in view.trees:
        return True
    if not view.healthy or server.flavor is None:
        return False
    claims = [calculate_resources(server.flavor, volume_backed) for volume_backed in (False, True)]
    return view.trees[own] != {own} or dict(view.allocation.resources[own]) not in claims


def calculate_plain_resources(view: ConsumerView) -> tuple[Resources | None, str]:
    """Return what the server has to claim on the root of its host and nothing, or None and why that is not known."""
    server, subject = view.server, view.subject
    shape, ports, stock = subject.shape.value, subject.ports.value, subject.stock.value
    if server is None or server.flavor is None or server.flavor.extra_specs is None:
        return None, "its flavor is not shown in full"
    if special := list_special_specs(server.flavor.extra_specs):
        return None, f"its flavor asks for more ({', '.join(special)})"
    if shape is None or not shape.image or shape.image_properties is None:
        # Booted from a volume, a server has the properties of that volume's image, which only Cinder shows.
        return (
            None,
            "the properties of its image are not shown (it is booted from a volume, or this is before compute microversion 2.98)",
        )
    if special := list_special_specs(shape.image_properties):
        return None, f"its image asks for more ({', '.join(special)})"
    if shape.volumes:
        return None, "it has an image and volumes, so where its root disk is cannot be told"
    if ports is None or not _has_all_ports(subject):
        return None, "not all of its ports could be read from Neutron"
    if special := [port.uuid for port in ports if not port.plain]:
        return None, f"port {special[0]} asks for resources of its own"
    claim = calculate_resources(server.flavor, volume_backed=False)
    if foreign := sorted(
        {cls for share in view.allocation.resources.values() for cls in share} - _PLAIN_CLASSES
    ):
        return None, f"it holds {', '.join(foreign)}, which no plain server has"
    if stock is None or set(claim) - set(stock):
        return None, f"its host does not itself have all of {', '.join(claim)}"
    return claim, ""


def may_explain_children(server: Server, view: ConsumerView) -> bool:
    """Tell whether anything that the server asked for may be a share of a child provider, or that is not known."""
    shape, ports = view.subject.shape.value, view.subject.ports.value
    if server.flavor is None or server.flavor.extra_specs is None or shape is None or ports is None:
        return True
    if shape.image_properties is None or not _has_all_ports(view.subject):
        return True
    return bool(
        list_special_specs({**server.flavor.extra_specs, **shape.image_properties})
    ) or not all(port.plain for port in ports)


def _has_all_ports(subject: Evidence) -> bool:
    """Tell whether Neutron shows just the ports that Nova knows: to some roles it shows nothing of other projects, and says so to nobody."""
    attached, shown = subject.interfaces.value, subject.ports.value
    return (
        attached is not None
        and shown is not None
        and set(attached) == {port.uuid for port in shown}
    )
