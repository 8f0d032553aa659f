# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Whether a host that was deployed again is complete: one check for each of its parts. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    NOVA_TRAITS,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

    from ansible_collections.osops.placement.plugins.module_utils._hosts.redeployed_host import (
        RedeployedHost,
    )

OK, MISSING, DIFFERS, RESTORED, FAILED = "ok", "missing", "differs", "restored", "failed"

# A host without one of these is not complete, or not as it was asked for.
BAD_OUTCOMES = frozenset({MISSING, FAILED})

DISCOVER_HOSTS = "nova-manage cell_v2 discover_hosts"
_SYNC_AGGREGATES = "nova-manage placement sync_aggregates"


@d.dataclass(frozen=True)
class Check:
    """One part of a host.

    outcome: `ok`, `missing` (the host is not complete), `differs` (it is not what it was),
        `restored` or `failed` (it could not be restored).
    """

    name: str
    outcome: str
    detail: str

    def as_dict(self) -> dict[str, str]:
        return d.asdict(self)


def list_checks(host: RedeployedHost) -> list[Check]:
    """Return the checks of a host, in the order in which its parts come back.

    A part that rests on a missing one is missing too, and says so.
    """
    checks: list[Check] = []
    for name, find_fault, describe in _CHECKS:
        fault = find_fault(host)
        if fault:
            checks.append(Check(name, MISSING, fault))
        else:
            checks.append(Check(name, OK, describe(host)))
    return checks


def _find_service_fault(host: RedeployedHost) -> str:
    if not host.services:
        return f"Nova lists no nova-compute on {host.name}: start it, it registers itself."
    if host.service is None:
        return (
            f"Nova lists {len(host.services)} services nova-compute with the host name "
            f"{host.name}, in different cells: only one may remain."
        )
    if host.service.status == "UNKNOWN":
        return "Its cell does not answer."
    # Nova shows such a service as down, whatever it reports.
    if host.service.forced_down:
        return "It is forced down: unset that once the host is back."
    if host.service.state != "up":
        return f"It is {host.service.state}, and last reported at {host.service.updated_at}."
    return ""


def _describe_service(host: RedeployedHost) -> str:
    service = host.service
    if service is None:
        return ""
    if service.status == "disabled":
        return f"up, disabled ({service.disabled_reason or 'without a reason'})"
    return f"up, {service.status}"


def _find_mapping_fault(host: RedeployedHost) -> str:
    if not host.services:
        return "There is no service that could be assigned to a cell yet."
    if host.mapped is None:
        return "Nova did not say whether the host is assigned to a cell."
    if not host.mapped:
        return (
            "The host is not assigned to a cell, so Nova's API does not list its compute node and "
            f"nothing is scheduled there: run {DISCOVER_HOSTS}."
        )
    return ""


def _describe_mapping(host: RedeployedHost) -> str:
    return "assigned to a cell"


def _find_node_fault(host: RedeployedHost) -> str:
    if host.nodes:
        return ""
    # The compute node may well exist in the database of its cell.
    if host.mapped is False:
        return "Nova does not list compute nodes of a host that is not assigned to a cell."
    return (
        "Nova lists no compute node of the host: nova-compute creates it, so look into its log "
        "for what stops it."
    )


def _describe_node(host: RedeployedHost) -> str:
    names = summarize_names(sorted(f"{node.name} ({node.uuid})" for node in host.nodes))
    return names


def _find_provider_fault(host: RedeployedHost) -> str:
    # With ironic each node has its own provider, and nodes change their service.
    if len(host.nodes) > 1:
        return ""
    if host.provider is None:
        return _explain_missing_provider(host)
    if host.node is not None and host.provider.name != host.node.name:
        return (
            f"Provider {host.provider.uuid} has the name {host.provider.name}, and its compute "
            f"node the name {host.node.name}."
        )
    return ""


def _explain_missing_provider(host: RedeployedHost) -> str:
    if host.namesake is not None and host.node is not None:
        return (
            f"Placement refuses to create provider {host.node.uuid} of the compute node, because "
            f"provider {host.namesake.uuid} has its name. See the finding name_conflict or "
            "former_provider."
        )
    if host.node is None:
        return "Without a compute node it is unknown which provider is that of the host."
    return (
        f"Placement has no provider {host.node.uuid}: nova-compute creates it at its next "
        "update, or says in its log why it cannot."
    )


def _describe_provider(host: RedeployedHost) -> str:
    if host.provider is None:
        return "one for each of its compute nodes is not checked"
    return f"{host.provider.name} ({host.provider.uuid}), as the compute node"


def _find_inventory_fault(host: RedeployedHost) -> str:
    if len(host.nodes) > 1:
        return ""
    if host.state is None:
        return "There is no provider that could have one."
    # All of a class may be reserved, which leaves nothing to schedule.
    present = {cls for cls, stock in host.state.inventories.items() if stock.capacity > 0}
    lacking = []
    # A host can dedicate all of its CPUs. Its disk may be that of a sharing provider.
    if not present & {"VCPU", "PCPU"}:
        lacking.append("VCPU")
    if "MEMORY_MB" not in present:
        lacking.append("MEMORY_MB")
    if lacking:
        return (
            f"The provider has no {' and no '.join(lacking)}: nova-compute adds it at its next "
            "update."
        )
    return ""


def _describe_inventory(host: RedeployedHost) -> str:
    if host.state is None:
        return "not checked"
    return ", ".join(
        f"{stock.total} {cls}" for cls, stock in sorted(host.state.inventories.items())
    )


def _find_trait_fault(host: RedeployedHost) -> str:
    if len(host.nodes) > 1:
        return ""
    if host.state is None:
        return "There is no provider that could have any."
    if not NOVA_TRAITS & host.state.traits:
        return "The provider has not COMPUTE_NODE: nova-compute adds it at its next update."
    return ""


def _describe_traits(host: RedeployedHost) -> str:
    if host.state is None:
        return "not checked"
    return f"{len(host.state.traits)}, with COMPUTE_NODE"


def _find_aggregate_fault(host: RedeployedHost) -> str:
    if len(host.nodes) > 1:
        return ""
    if host.state is None:
        return "There is no provider that could be in any."
    # Nova mirrors an aggregate when a host is added, and only logs it if that fails.
    unmirrored = []
    for aggregate in host.aggregates:
        if host.name in aggregate.hosts and aggregate.uuid not in host.state.aggregates:
            unmirrored.append(aggregate.name)
    if unmirrored:
        return (
            f"The host is in {summarize_names(sorted(unmirrored))}, but its provider is not in the "
            f"aggregate of Placement: run {_SYNC_AGGREGATES}."
        )
    return ""


def _describe_aggregates(host: RedeployedHost) -> str:
    names = [aggregate.name for aggregate in host.aggregates if host.name in aggregate.hosts]
    if not names:
        return "in none"
    return f"in {summarize_names(sorted(names))}, and its provider too"


def _find_evacuation_fault(host: RedeployedHost) -> str:
    return host.evacuations.explain()


def _describe_evacuations(host: RedeployedHost) -> str:
    return "none from the host waits for a start of nova-compute"


_Describe = t.Callable[["RedeployedHost"], str]

_CHECKS: tuple[tuple[str, Callable[[RedeployedHost], str], _Describe], ...] = (
    ("service", _find_service_fault, _describe_service),
    ("host mapping", _find_mapping_fault, _describe_mapping),
    ("compute node", _find_node_fault, _describe_node),
    ("provider", _find_provider_fault, _describe_provider),
    ("inventory", _find_inventory_fault, _describe_inventory),
    ("traits", _find_trait_fault, _describe_traits),
    ("aggregates", _find_aggregate_fault, _describe_aggregates),
    ("evacuations", _find_evacuation_fault, _describe_evacuations),
)
