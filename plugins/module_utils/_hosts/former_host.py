# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host had before it was decommissioned, from the `host.json` of that run."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from .._common.errors import InvalidInput
from .._common.text import make_printable
from .._core.clients.provider_state import ProviderState, parse_provider_state
from .._core.findings.entries import FORMAT
from .._core.models.documents import Unchecked
from .._core.models.host_documents import RecordedCloud
from .._core.models.nova import Aggregate
from .host_record import require_same_cloud


@d.dataclass(frozen=True)
class FormerHost:
    """What a host had.

    node: the uuid of its only compute node; None if it had none, or several as with ironic.
    zone, disabled_reason: of its compute service; None where it had none. A record of version 1
        may have the reason of the decommissioning itself, and then it is None too.
    aggregates: its host aggregates.
    provider: the state of its root provider; None where the record does not have it.
    names: those of the host and of its compute nodes.
    names_cloud: whether the record says of which cloud it is, which one of 2.0.0 does not.
    """

    host: str
    node: str | None
    zone: str | None
    disabled_reason: str | None
    aggregates: tuple[Aggregate, ...]
    provider: ProviderState | None
    names_cloud: bool = True
    names: frozenset[str] = frozenset()


def parse_former_host(
    document: t.Any, name: str, service: str | None, cloud: RecordedCloud
) -> FormerHost | None:
    """Return what the host `name` had when it was decommissioned; None if the file has no record.

    service: the id of the compute service that the host has now; None without one.
    Raises InvalidInput if `document` is not a `host.json`, or is about another host or cloud.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInput("The record does not have the form that compute_host_info writes.")
    try:
        (host,) = document["hosts"]
        if name not in (host["name"], host["host"]):
            raise InvalidInput(
                f"The record is about {make_printable(host['name'], 100)} and not about "
                f"{make_printable(name, 100)}."
            )
        found = _choose_record(host, service)
        if found is None:
            return None
        require_same_cloud(found, cloud)
        return _parse_record(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"The record does not have the form that compute_host_info writes ({error!r})."
        ) from error


def _choose_record(host: Unchecked, service: str | None) -> Unchecked | None:
    """Return the record of the life of the host before the present one."""
    # Version 1 wrote only what the host had at its last check.
    if "record" not in host:
        return _choose_plain_record(host, service)
    record: Unchecked | None = host["record"]
    if record is not None and service and (record["service"] or {}).get("id") == service:
        # A check was run after the machine was back: this is what it has now.
        record = host.get("former_record")
    return record


def _choose_plain_record(host: Unchecked, service: str | None) -> Unchecked | None:
    """Return the host itself, of a file without records, unless it is about its present life."""
    if not host["known"]:
        return None
    if service and (host["service"] or {}).get("id") == service:
        return None
    return host


def _parse_record(record: Unchecked) -> FormerHost:
    # Of several nodes, as with ironic, none is that of the host.
    nodes = [node["uuid"] for node in record["nodes"]]
    node = nodes[0] if len(nodes) == 1 else None
    service = record["service"] or {}
    groups = record["aggregates"]
    aggregates = [Aggregate(one["uuid"], one["name"], one["zone"], ()) for one in groups]
    return FormerHost(
        host=record["host"],
        node=node,
        zone=service.get("zone"),
        disabled_reason=service.get("disabled_reason"),
        aggregates=tuple(aggregates),
        provider=_parse_root(record["providers"], node),
        names_cloud="cloud" in record,
        names=frozenset({record["host"], *(node["name"] for node in record["nodes"])}),
    )


def _parse_root(providers: list[Mapping[str, t.Any]], node: str | None) -> ProviderState | None:
    """Return the state of the provider of the compute node; None where it was not recorded."""
    for provider in providers:
        if provider["uuid"] == node and "traits" in provider:
            return parse_provider_state(provider)
    return None
