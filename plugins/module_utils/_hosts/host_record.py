# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What is recorded of a host before it is decommissioned, so that it can get it back. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._hosts.blockers import DISABLE

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        ServiceDocument,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.host_documents import (
        HostDocument,
        HostProviderDocument,
        HostRecord,
        NodeRecord,
        ProviderRecord,
    )

_KEYS = {"taken_at", "begun", "host", "service", "nodes", "aggregates", "providers"}


@d.dataclass(frozen=True)
class HostRecords:
    """The records of one name of a host.

    record: of the host, or of the last one of that name. former: of the one before.
    """

    record: HostRecord | None = None
    former: HostRecord | None = None

    def find_started(self, service: ServiceDocument | None) -> HostRecord | None:
        """Return the record if the decommissioning of the host with this service has begun.

        service: what Nova lists now; None where it is deleted, maybe by that decommissioning.
        """
        if self.record is None or not self.record["begun"]:
            return None
        if service is None:
            return self.record
        if not _is_same_service(self.record["service"], service):
            return None
        # A host in service again was not decommissioned, whatever was begun.
        if service["status"] == "enabled" and service["state"] == "up":
            return None
        return self.record


def choose_records(earlier: HostRecords, current: HostRecord) -> HostRecords:
    """Return the records after another look at the host.

    A decommissioning that has begun has already taken from the host what its record says. It gives
    nothing to a host: one that has more than its record was in service again since.
    """
    if earlier.record is None:
        return HostRecords(current, earlier.former)
    if earlier.find_started(current["service"]) is not None:
        if _has_new_aggregate(earlier.record, current):
            return HostRecords(current, earlier.record)
        return earlier
    if current["service"] is None or current["service"]["id"] is None:
        # Only a part of the host is left or can be seen: the earlier record has all of it.
        return earlier
    if _is_same_service(earlier.record["service"], current["service"]):
        return HostRecords(current, earlier.former)
    # Another machine has the name now.
    return HostRecords(current, earlier.record)


def _has_new_aggregate(earlier: HostRecord, current: HostRecord) -> bool:
    """Return whether the host is in an aggregate now in which it was not before."""
    before = {aggregate["uuid"] for aggregate in earlier["aggregates"]}
    now = {aggregate["uuid"] for aggregate in current["aggregates"]}
    return not now <= before


def _is_same_service(one: ServiceDocument | None, other: ServiceDocument | None) -> bool:
    if one is None or other is None:
        return False
    return one["id"] == other["id"]


def build_record(
    document: HostDocument, providers: list[ProviderRecord], taken_at: str, is_changing: bool
) -> HostRecord:
    """Return the record of a host as it is now.

    is_changing: whether the host is to be changed now, if nothing blocks it.
    """
    is_blocked = any(blocker["stops"] == DISABLE for blocker in document["blockers"])
    nodes: list[NodeRecord] = []
    for node in document["nodes"]:
        nodes.append({"uuid": node["uuid"], "name": node["name"]})
    return {
        "taken_at": taken_at,
        "begun": is_changing and not is_blocked,
        "host": document["host"],
        "service": document["service"],
        "nodes": nodes,
        "aggregates": document["aggregates"],
        "providers": providers,
    }


def record_provider(provider: HostProviderDocument, state: Mapping[str, t.Any]) -> ProviderRecord:
    """Return the record of a provider.

    state: as `ProviderState.as_dict` returns it.
    """
    return {
        "uuid": provider["uuid"],
        "name": provider["name"],
        "root": provider["root"],
        "parent": provider["parent"],
        "generation": state["generation"],
        "inventories": state["inventories"],
        "traits": state["traits"],
        "aggregates": state["aggregates"],
    }


def read_records(document: t.Any, name: str) -> HostRecords:
    """Return the records of a host in the file of an earlier task.

    name: as the user named the host. A file of another host, or of an older version, has none.
    Raises InvalidInput for anything else than such a file.
    """
    try:
        hosts = [host for host in document["hosts"] if host["name"] == name]
    except (KeyError, TypeError) as error:
        raise _refuse() from error
    if not hosts:
        return HostRecords()
    return HostRecords(
        _check_record(hosts[0].get("record")), _check_record(hosts[0].get("former_record"))
    )


def _check_record(record: t.Any) -> HostRecord | None:
    if record is None:
        return None
    if not isinstance(record, dict) or not record.keys() >= _KEYS:
        raise _refuse()
    service = record["service"]
    if service is not None:
        is_service = isinstance(service, dict) and service.keys() >= {"id", "status", "zone"}
        if not is_service:
            raise _refuse()
    return t.cast("HostRecord", record)


def _refuse() -> InvalidInput:
    return InvalidInput(
        "earlier is not a file that compute_host_info wrote, or it was changed since: restore it, "
        "or move it away if nothing of the host has to be restored."
    )
