# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services of Nova as the service modules take and return them."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import CloudError, InvalidInput
from ..._common.text import summarize_names
from ..models.nova import Service
from ..models.snapshot import Answer, Listings

COMPUTE = "nova-compute"

_Value = t.TypeVar("_Value")


def get_listed_services(answer: Answer[tuple[Service, ...]]) -> tuple[Service, ...]:
    """Return the services that Nova listed.

    Raises CloudError when Nova did not list them.
    """
    return require_answer(answer, "its services")


def require_answer(answer: Answer[_Value], what: str) -> _Value:
    """Return what Nova answered. Raises CloudError when it did not."""
    if answer.value is None:
        raise CloudError(f"Nova answered {answer.status} when asked for {what} ({answer.request}).")
    return answer.value


def get_compute_hosts(answer: Answer[tuple[Service, ...]]) -> frozenset[str]:
    """Return the hosts whose nova-compute the answer names, those of unreachable cells included."""
    return frozenset(service.host for service in answer.value or () if service.binary == COMPUTE)


def have_same_compute_hosts(
    one: Answer[tuple[Service, ...]], other: Answer[tuple[Service, ...]]
) -> bool:
    """Return whether two answers name the same compute services."""
    return get_compute_hosts(one) == get_compute_hosts(other)


def has_every_cell_answered(services: Answer[tuple[Service, ...]]) -> bool:
    """Return whether every cell answered when Nova was asked for its services."""
    return services.value is not None and not list_down_cell_hosts(services)


def list_unjudged_hosts(listings: Listings) -> list[str]:
    """Return the hosts about which a listing says nothing, although they exist."""
    return sorted({*list_silent_hosts(listings), *list_hosts_without_service(listings)})


def list_silent_hosts(listings: Listings) -> list[str]:
    """Return the hosts of cells that did not answer at some time of the reading."""
    # A cell that fell silent during the reading may have left anything out of it.
    answers = (listings.services, listings.services_after)
    return sorted({host for answer in answers for host in list_down_cell_hosts(answer)})


def list_hosts_without_service(listings: Listings) -> list[str]:
    """Return the hosts that have a compute node, and no row in the table of services any more.

    Every listing leaves out such a host, whatever cells the API workers know.
    """
    listed = get_compute_hosts(listings.services) | get_compute_hosts(listings.services_after)
    # The name of a provider that was searched for need not be that of a host that was looked up.
    found = {host for host, lookup in listings.host_lookups.items() if lookup.status == 200}
    return sorted(
        host
        for host, search in listings.node_searches.items()
        if search.value == () and host in found - listed
    )


def list_down_cell_hosts(answer: Answer[tuple[Service, ...]]) -> list[str]:
    """Return the hosts of unreachable cells.

    Their services have the status `UNKNOWN` (compute microversion 2.69 and later).
    """
    return sorted({service.host for service in answer.value or () if service.status == "UNKNOWN"})


def is_same_listing(
    before: Answer[tuple[Service, ...]], after: Answer[tuple[Service, ...]]
) -> bool:
    """Return whether Nova named the same services again, from as many answering cells."""
    return (
        after.value is not None
        and have_same_compute_hosts(before, after)
        and list_down_cell_hosts(before) == list_down_cell_hosts(after)
    )


def describe_services(services: Iterable[Service]) -> list[dict[str, t.Any]]:
    """Return `services` as the modules return them, sorted by host, binary and id."""
    # A service of an unreachable cell has no id.
    ordered = sorted(services, key=lambda service: (service.host, service.binary, service.id or ""))
    return [d.asdict(service) for service in ordered]


def filter_services(
    services: Iterable[Service], hosts: Collection[str] | None, binaries: Collection[str] | None
) -> list[Service]:
    """Return the services on those hosts and of those binaries; None stands for any."""
    return [
        service
        for service in services
        if (hosts is None or service.host in hosts)
        and (binaries is None or service.binary in binaries)
    ]


def require_service(host: str, services: Iterable[Service]) -> Service:
    """Return the compute service of a host.

    Raises CloudError when it may be in a cell that does not answer. Raises InvalidInput if Nova has
    none, or several in different cells.
    """
    listed = list(services)
    # Of a service in an unreachable cell, Nova shows little more than its host.
    matches = [one for one in filter_services(listed, [host], [COMPUTE]) if one.id is not None]
    silent = sorted({service.host for service in listed if service.id is None})
    if not matches and silent:
        raise CloudError(
            "A cell does not answer, so Nova returned nothing about "
            f"{summarize_names(silent)}, and the service may be there."
        )
    if not matches:
        raise InvalidInput(
            f"Nova has no compute service on {host!r}: check host and the region. "
            "`openstack compute service list` shows the names."
        )
    if len(matches) > 1:
        ids = summarize_names(service.id or "" for service in matches)
        raise InvalidInput(
            f"{host} has {len(matches)} services {COMPUTE}, in different cells ({ids}): delete the "
            "one that is not in use (openstack compute service delete ID)."
        )
    return matches[0]


def build_update(service: Service, params: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the body of the request that changes `service` to what `params` ask for.

    The body is empty when the service is already so.

    Raises InvalidInput for a reason for a service that is not to be disabled.
    """
    enabled, reason = params["enabled"], params["disabled_reason"]
    forced_down = params["forced_down"]
    if reason is not None and enabled is not False:
        raise InvalidInput(
            "disabled_reason requires state=disabled: only a disabled service has a reason."
        )
    body: dict[str, t.Any] = {}
    if enabled is True and service.status != "enabled":
        body["status"] = "enabled"
    is_new_reason = reason is not None and reason != service.disabled_reason
    if enabled is False and (service.status != "disabled" or is_new_reason):
        # Nova takes a reason only together with the status.
        body["status"] = "disabled"
        if reason is not None:
            body["disabled_reason"] = reason
    if forced_down is not None and forced_down != service.forced_down:
        body["forced_down"] = forced_down
    return body


def apply_update(service: Service, body: Mapping[str, t.Any]) -> Service:
    """Return `service` as Nova lists it after the request with `body`."""
    changed = d.replace(service, **body)
    # Nova drops the reason when the status changes without one.
    if "status" in body:
        changed = d.replace(changed, disabled_reason=body.get("disabled_reason"))
    # A service that is no longer forced down may be up or down: its last state is kept.
    return d.replace(changed, state="down") if changed.forced_down else changed


def may_have_unlisted_node(service: Service, hosts: Collection[str], provider: str) -> bool:
    """Return whether the provider may be of a compute node of `service` that Nova does not list.

    Nova does not list the compute nodes of a host that it has not yet discovered, whether the host
    is up or just down.

    hosts: the hosts of the compute nodes that Nova lists. provider: the name of the provider.
    """
    return (
        service.binary == COMPUTE
        and service.host not in hosts
        and strip_domain(service.host) == strip_domain(provider)
    )


def strip_domain(host: str) -> str:
    """Return a name of a host so that it can be compared with another one of the same host.

    The service of a host may lack the domain that its compute node has, and letter case has no
    meaning in names of hosts.
    """
    # An address has no domain.
    is_address = host.replace(".", "").isdigit()
    return host if is_address else host.partition(".")[0].casefold()
