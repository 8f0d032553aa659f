# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Services of Nova as the service modules take and return them."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    CloudError,
    InvalidInput,
)
from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import require_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Service
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

COMPUTE = "nova-compute"


def get_listed_services(answer: Answer[tuple[Service, ...]]) -> tuple[Service, ...]:
    """Return the services that Nova listed. Raises CloudError when it did not."""
    if answer.value is None:
        raise CloudError(
            f"Nova answered {answer.status} when asked for its services ({answer.request})."
        )
    return answer.value


def describe_services(services: Iterable[Service]) -> list[dict[str, t.Any]]:
    """Return `services` as the modules return them."""
    return [
        d.asdict(service)
        for service in sorted(
            services, key=lambda service: (service.host, service.binary, service.id or "")
        )
    ]


def filter_services(
    services: Iterable[Service], hosts: Collection[str] | None, binaries: Collection[str] | None
) -> list[Service]:
    """Return the services on those hosts and of those binaries; None is any."""
    return [
        service
        for service in services
        if (hosts is None or service.host in hosts)
        and (binaries is None or service.binary in binaries)
    ]


def find_service(services: Iterable[Service], params: Mapping[str, t.Any]) -> Service | None:
    """Return the one service that has the `id`, or the `host` and `binary`, of `params`; None when there is none.

    Raises CloudError when it may be in a cell that does not answer, InvalidInput for a host that several cells have, and for an id that is none.
    """
    known = list(services)
    if params["id"] is not None:
        wanted = require_uuid(params["id"], "id")
        found = [service for service in known if service.id == wanted]
    else:
        found = [
            service
            for service in filter_services(known, [params["host"]], [params["binary"]])
            if service.id is not None
        ]
    if not found and (silent := sorted({service.host for service in known if service.id is None})):
        raise CloudError(
            f"A cell is not answering: Nova could not say anything of {summarize_names(silent)}, and the service may be there."
        )
    if len(found) > 1:
        ids = summarize_names(service.id or "" for service in found)
        raise InvalidInput(
            f"{params['host']} has {len(found)} services {params['binary']}, which several cells may: give the id of one ({ids})."
        )
    return found[0] if found else None


def build_update(service: Service, params: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the body that makes `service` as wished, nothing when it is so; Nova takes a reason only together with the status."""
    enabled, reason, forced_down = (
        params["enabled"],
        params["disabled_reason"],
        params["forced_down"],
    )
    if reason is not None and enabled is not False:
        raise InvalidInput("disabled_reason is of a disabled service: give enabled=false with it.")
    body: dict[str, t.Any] = {}
    if enabled is True and service.status != "enabled":
        body["status"] = "enabled"
    if enabled is False and (
        service.status != "disabled" or reason not in (None, service.disabled_reason)
    ):
        body |= {"status": "disabled", **({} if reason is None else {"disabled_reason": reason})}
    if forced_down is not None and forced_down != service.forced_down:
        body["forced_down"] = forced_down
    return body


def apply_update(service: Service, body: Mapping[str, t.Any]) -> Service:
    """Return `service` as Nova lists it after such a change; one that is no longer forced down may be up or down."""
    reason = body.get("disabled_reason") if "status" in body else service.disabled_reason
    forced_down = body.get("forced_down", service.forced_down)
    state = "down" if forced_down else service.state
    return d.replace(
        service,
        status=body.get("status", service.status),
        disabled_reason=reason,
        forced_down=forced_down,
        state=state,
    )


def may_have_unlisted_node(service: Service, hosts: Collection[str], provider: str) -> bool:
    """Tell whether the provider with that name may be of a compute node of `service` that Nova does not list.

    Nova lists none of a host that it has not yet discovered, whether that is up or just down.

    hosts: those of the compute nodes that it lists.
    """
    return (
        service.binary == COMPUTE
        and service.host not in hosts
        and _strip_domain(service.host) == _strip_domain(provider)
    )


def _strip_domain(host: str) -> str:
    """Return the name of a host without its domain, which its service may not have and its compute node may."""
    return host.partition(".")[0]
