# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Plain servers: those that ask for VCPU, MEMORY_MB and DISK_GB and nothing else.

Their flavor says what their allocation has to be. How Nova makes an allocation of a flavor:
nova/scheduler/utils.py, ResourceRequest.from_request_spec.
"""

from __future__ import annotations

import re
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Container, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Flavor, Server
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Evidence
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.server import ServerView

_PLAIN_CLASSES = frozenset({"VCPU", "MEMORY_MB", "DISK_GB"})

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


def needs_resource_lookups(view: ServerView, nova_roots: Container[str]) -> bool:
    """Return whether more has to be read about a server to decide on its allocation.

    That is so for a settled server whose allocation on its host is not just what its flavor says.

    nova_roots: as `ServerView.has_only_own_tree` takes them.
    """
    server, own, allocation = view.server, view.own_tree, view.subject.allocation.value
    if server is None or own is None or allocation is None or not view.settled:
        return False
    if own not in view.server_trees:
        return True
    if not view.has_only_own_tree(nova_roots) or server.flavor is None:
        return False
    if view.server_trees[own] != {own}:
        return True
    # Whether the root disk is on the host is not read yet: either amount is right.
    amounts = dict(allocation.resources[own])
    return amounts not in (
        calculate_resources(server.flavor, volume_backed=False),
        calculate_resources(server.flavor, volume_backed=True),
    )


def calculate_plain_resources(view: ConsumerView) -> tuple[Resources | None, str]:
    """Return the amounts that the server has to have on the root provider of its host.

    The second item is empty. Where the amounts cannot be concluded, return None and the reason.
    """
    server, stock = view.server, view.subject.stock.value
    if server is None or server.flavor is None or server.flavor.extra_specs is None:
        return None, "Nova does not show all of its flavor"
    special_specs = list_special_specs(server.flavor.extra_specs)
    if special_specs:
        return None, f"its flavor requests more than a plain one ({', '.join(special_specs)})"
    doubt = _find_image_doubt(view.subject) or _find_port_doubt(view.subject)
    if doubt:
        return None, doubt
    foreign = sorted(_collect_classes(view.allocation) - _PLAIN_CLASSES)
    if foreign:
        return None, f"its allocation has {', '.join(foreign)}, which a plain server never has"
    amounts = calculate_resources(server.flavor, volume_backed=False)
    # A class that the root lacks may be that of a child or of a sharing provider.
    if stock is None or set(amounts) - set(stock):
        return None, f"the provider of its host does not have all of {', '.join(amounts)}"
    return amounts, ""


def _find_image_doubt(subject: Evidence) -> str:
    """Return why the image or the volumes of a server may ask for more; empty if they do not."""
    shape = subject.shape.value
    if shape is None or not shape.image or shape.image_properties is None:
        # Booted from a volume, a server has the properties of that volume's image, which only
        # Cinder shows.
        return (
            "Nova does not show the properties of its image (it is booted from a volume, or Nova "
            "does not offer compute microversion 2.98)"
        )
    special_properties = list_special_specs(shape.image_properties)
    if special_properties:
        return f"its image requests more than a plain one ({', '.join(special_properties)})"
    if shape.volumes:
        return "it has an image and volumes, so it is unknown where its root disk is"
    return ""


def _find_port_doubt(subject: Evidence) -> str:
    """Return why the ports of a server may ask for more; empty if they do not."""
    ports = subject.ports.value
    if ports is None or not _has_all_ports(subject):
        return "not all of its ports could be read from Neutron"
    for port in ports:
        if not port.plain:
            return f"port {port.uuid} requests resources of its own"
    return ""


def _collect_classes(allocation: Allocation) -> set[str]:
    return {cls for amounts in allocation.resources.values() for cls in amounts}


def may_explain_children(server: Server, view: ConsumerView) -> bool:
    """Return whether the server may have asked for an allocation on a child provider.

    What could not be read counts as such a request.
    """
    shape, ports = view.subject.shape.value, view.subject.ports.value
    if server.flavor is None or server.flavor.extra_specs is None or shape is None or ports is None:
        return True
    if shape.image_properties is None or not _has_all_ports(view.subject):
        return True
    if list_special_specs({**server.flavor.extra_specs, **shape.image_properties}):
        return True
    return not all(port.plain for port in ports)


def _has_all_ports(subject: Evidence) -> bool:
    """Return whether Neutron shows just the ports that Nova lists for the server."""
    # To some roles Neutron shows no ports of other projects, and does not say so.
    attached, shown = subject.interfaces.value, subject.ports.value
    if attached is None or shown is None:
        return False
    return set(attached) == {port.uuid for port in shown}
