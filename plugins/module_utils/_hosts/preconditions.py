# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What keeps a host's providers and its service from being removed. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    InvalidInput,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    sort_children_first,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import (
    COMPUTE,
    get_listed_services,
    may_have_unlisted_node,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    find_region_mismatch,
    list_down_cell_hosts,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Provider,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer


def find_tree(name: str, providers: Mapping[str, Provider]) -> tuple[Provider, ...]:
    """Return the tree whose root has that uuid or name, children first; nothing when nobody has it.

    A uuid is nobody's name as long as a provider has it. Raises InvalidInput, naming the root, for a provider below one.
    """
    by_name = next((known for known in providers.values() if known.name == name), None)
    provider = providers.get(normalize_uuid(name) or "", by_name)
    if provider is None:
        return ()
    if provider.uuid != provider.root:
        root = providers[provider.root].name if provider.root in providers else provider.root
        raise InvalidInput(
            f"{provider.name} is a part of the tree of {root} ({provider.root}), and only whole trees are deleted: name its root."
        )
    return sort_children_first(provider.uuid, providers.values())


def describe_consumers(allocations: Mapping[str, Allocations], what: str) -> str:
    """Say who holds a share of `what`; nothing when nobody does."""
    if not allocations:
        return ""
    hold = (
        "1 consumer still holds"
        if len(allocations) == 1
        else f"{len(allocations)} consumers still hold"
    )
    return f"{hold} a share of {what}: {summarize_names(sorted(allocations))}."


def require_compute_nodes(answer: Answer[tuple[Hypervisor, ...]]) -> tuple[Hypervisor, ...]:
    """Return the compute nodes that Nova listed. Raises GateClosed when it did not, for then it may have any."""
    if answer.value is None:
        raise UnsoundReading(
            f"Nova answered {answer.status} when asked for its compute nodes ({answer.request}), so what stands on which of them is not known."
        )
    return answer.value


def check_no_compute_node(
    root: Provider,
    providers: Collection[str],
    nodes: Answer[tuple[Hypervisor, ...]],
    services: Answer[tuple[Service, ...]],
    other_novas: Collection[str],
    lookups: Mapping[str, Answer[bool]],
) -> None:
    """Raise GateClosed unless it is sure that no compute node stands behind `root`.

    providers: the uuids of all providers; other_novas: regions with a Nova of their own on the same Placement, whose nodes nobody asked for.
    lookups: by name, the direct look-ups of the host that may stand behind `root`.
    """
    known = require_compute_nodes(nodes)
    for node in known:
        if node.uuid == root.uuid:
            raise UnsoundReading(
                f"{root.name} ({root.uuid}) is a compute node of {node.host} that Nova lists. Its provider goes with its service: "
                "use osops.placement.compute_service."
            )
    if silent := list_down_cell_hosts(services):
        raise UnsoundReading(
            f"A cell is not answering: Nova could not say anything of {summarize_names(silent)}, and {root.name} may be there."
        )
    if strange := find_region_mismatch(known, providers):
        raise UnsoundReading(strange)
    hosts = {node.host for node in known}
    for service in get_listed_services(services):
        if may_have_unlisted_node(service, hosts, root.name):
            raise UnsoundReading(
                f"The {COMPUTE} of {service.host} is {service.state} and Nova lists no compute node of it (nova-manage cell_v2 "
                f"discover_hosts), and {root.name} may be its provider. If the host is gone, delete its service first."
            )
    in_both = hosts & {service.host for service in get_listed_services(services)}
    for name, lookup in sorted(lookups.items()):
        if lookup.status == 404 or (lookup.status == 200 and name in in_both):
            continue
        raise UnsoundReading(
            f"Nova answered {lookup.status} when asked for host {name} directly, and {root.name} may be its provider. If its API workers do not "
            "all know the same cells, restart every nova-api; if the host is gone for good, nova-manage cell_v2 delete_host."
        )
    if other_novas:
        raise UnsoundReading(
            f"Region {summarize_names(other_novas)} has a Nova of its own on this same Placement, and {root.name} may be one of its hosts: "
            "see there, then set ignore_other_regions."
        )


def find_service_providers(
    service: Service, nodes: Iterable[Hypervisor], providers: Mapping[str, Provider]
) -> dict[str, Provider]:
    """Return the providers in the trees of the compute nodes of `service`, by uuid, and in what others of its name left behind."""
    every = tuple(nodes)
    own = {node.uuid: node.name for node in every if node.host == service.host}
    names = {service.host, *own.values()}
    roots = own.keys() | {
        provider.uuid for provider in providers.values() if provider.name in names
    } - {node.uuid for node in every}
    return {uuid: provider for uuid, provider in providers.items() if provider.root in roots}


def describe_service_blocker(service: Service, allocations: Mapping[str, Allocations]) -> str:
    """Say what would stay behind if `service` were deleted now, and what to do about it; nothing when nothing would."""
    if held := describe_consumers(allocations, f"what {service.host} has"):
        return (
            f"{held} Nova would delete the service and leave its resource provider behind. Move or delete the servers, remove what is "
            "orphaned (osops.placement.cleanup_orphans), then run again; force_residual lets Nova try all the same."
        )
    if service.state == "up":
        return (
            f"The {service.binary} of {service.host} is up, and what is deleted under a running one comes back half: stop it, "
            "set forced_down if Nova is to know of it at once, then run again; force_residual lets Nova try all the same."
        )
    return ""
