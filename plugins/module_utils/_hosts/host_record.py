# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host had right before its deletion, so that it can be restored."""

from __future__ import annotations

import dataclasses as d
import os
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence

from .._common.errors import InvalidInput
from .._common.json_files import read_json, require_private_file, write_json
from .._common.text import make_printable
from .._core.findings.entries import FORMAT
from .._core.models.codec import Unchecked
from .._core.models.nova import Aggregate
from .._core.models.placement import NOVA_TRAITS, Provider, ProviderState, parse_provider_state
from .._core.models.snapshot import Cloud

HostRecord = dict[str, t.Any]
"""What a host had right before its deletion, as `compute_host_info` documents it."""

_SEEN_KEYS = {"id", "status", "state", "disabled_reason"}
# Stands for that of a record of version 2.0.0.
_NO_CLOUD = {"region": None, "placement_endpoint": "", "compute_endpoint": ""}
_KEYS = {"taken_at", "begun", "host", "service", "nodes", "aggregates", "providers"}


def read_host_file(path: str | None) -> t.Any:
    """Return the contents of a file of an earlier task; None if there is none."""
    if not path or not os.path.exists(path):
        return None
    require_private_file(path)
    return read_json(path)


def write_host_file(path: str, hosts: Sequence[Mapping[str, t.Any]]) -> None:
    """Write hosts with what each had."""
    write_json(path, {"format": FORMAT, "hosts": hosts})


@d.dataclass(frozen=True)
class HostRecords:
    """The records of one name of a host.

    record: of the host, or of the last one of that name. former: of the one before.
    name: as the user named the host at the last look.
    existed: whether anything of it was there then, or before. had_agents: whether it had network
        agents then.
    seen: its service then, as Nova listed it.
    names: those that the host and its compute nodes had. roots: the uuids of its root providers.
    """

    record: HostRecord | None = None
    former: HostRecord | None = None
    name: str = ""
    existed: bool = False
    had_agents: bool = False
    seen: Unchecked | None = None
    names: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()

    def is_root(self, provider: Provider, traits: Collection[str]) -> bool:
        """Return whether a provider is one of `roots` that can be a leftover of the host.

        Raises InvalidInput for another provider among them: anybody can write such a file.
        """
        if provider.uuid not in self.roots or not provider.is_host:
            return False
        if provider.name in self.names and NOVA_TRAITS.intersection(traits):
            return True
        raise InvalidInput(
            f"The record has provider {make_printable(provider.name, 80)} ({provider.uuid}), which "
            "has no name that the host had, or no trait that Nova sets. Nothing was changed: find "
            "out whose it is, and move the record away."
        )

    def find_interrupted(self, service: Unchecked | None) -> HostRecord | None:
        """Return the record if the deletion of the host with this service has begun and not ended.

        A service that was changed since, or that is in use, belongs to a host whose deletion was
        given up.
        """
        record, seen = self.record, self.seen
        # A record of version 2.0.0 has begun with the first check.
        if record is None or not record["begun"] or "cloud" not in record:
            return None
        if service is None or seen is None or not _is_same_service(seen, service):
            return None
        state = (service["status"], service["disabled_reason"])
        is_in_use = service["status"] == "enabled" and service["state"] == "up"
        is_same = state == (seen["status"], seen["disabled_reason"])
        return record if is_same and not is_in_use else None


def choose_records(
    earlier: HostRecords, current: HostRecord, own_reasons: Collection[str]
) -> HostRecords:
    """Return the records after another look at the host.

    The present state counts, with what runs of this collection have taken from the host.

    own_reasons: why such runs disable a service.
    """
    before, service = earlier.record, current["service"]
    if before is None:
        return d.replace(earlier, record=current)
    if service is None or service["id"] is None:
        has_all = _list_uuids(before["providers"]) <= _list_uuids(current["providers"])
        if before["service"] is None and has_all:
            return d.replace(earlier, record=current)
        # Only a part of the host is left or can be seen: the earlier record has all of it.
        return earlier
    if not _is_same_service(before["service"], service):
        # Another machine has the name now.
        return d.replace(earlier, record=current, former=before)
    record = _add_own_changes(earlier, before, current, own_reasons)
    return d.replace(earlier, record=record)


def _add_own_changes(
    earlier: HostRecords, before: HostRecord, current: HostRecord, own_reasons: Collection[str]
) -> HostRecord:
    """Return the record of a host with what runs have taken from it since the earlier one."""
    record = current
    service, now = before["service"], current["service"]
    if service is not None and now is not None and now["disabled_reason"] in own_reasons:
        record = {**record, "service": service}
    begun = earlier.find_interrupted(now)
    # A host with more than its record was in service since.
    if begun is None or _list_uuids(current["aggregates"]) - _list_uuids(begun["aggregates"]):
        return record
    # Nova takes the provider out of these aggregates, and puts it back into them, by itself.
    return {**record, **{name: begun[name] for name in ("begun", "service", "aggregates")}}


def _list_uuids(entries: Iterable[Mapping[str, t.Any]]) -> set[str]:
    return {entry["uuid"] for entry in entries}


def _is_same_service(one: Unchecked | None, other: Unchecked | None) -> bool:
    return one is not None and other is not None and bool(one["id"] == other["id"])


def name_cloud(cloud: Cloud) -> dict[str, t.Any]:
    """Return what a record has of its cloud."""
    return {name: getattr(cloud, name) for name in _NO_CLOUD}


def require_same_cloud(record: Mapping[str, t.Any] | None, cloud: Unchecked) -> None:
    """Raise InvalidInput for a record of another cloud; one of 2.0.0 does not name its cloud."""
    there = (record or {}).get("cloud") or cloud
    name = "region"
    if there["region"] is None or cloud["region"] is None:
        # A connection that names no region has its only or first one. Several regions can have one
        # Placement, but not one Nova.
        name = "compute_endpoint"
    if any(there[field] != cloud[field] for field in (name, "placement_endpoint")):
        raise InvalidInput(
            f"The record of {(record or {})['host']} is of another cloud, or was made with another "
            f"interface of this one: it names {_describe_cloud(there)}, and this connection has "
            f"{_describe_cloud(cloud)}. Nothing was changed. Connect with the interface whose "
            "endpoints the record names, and keep the hosts of each cloud in an output directory "
            "of their own (host_decommission_output_dir)."
        )


def _describe_cloud(cloud: Mapping[str, t.Any]) -> str:
    region = f"the region {cloud['region']}" if cloud["region"] else "no region"
    nova, placement = cloud["compute_endpoint"], cloud["placement_endpoint"]
    return f"{region}, Nova at {nova} and Placement at {placement}"


def build_record(
    document: Unchecked,
    providers: list[dict[str, t.Any]],
    taken_at: str,
    is_deleting: bool,
    cloud: Unchecked,
) -> HostRecord:
    """Return the record of a host as it is now.

    is_deleting: whether the host is to be deleted now.
    """
    return {
        "taken_at": taken_at,
        "cloud": cloud,
        "begun": is_deleting,
        "host": document["host"],
        "service": document["service"],
        "nodes": [{"uuid": node["uuid"], "name": node["name"]} for node in document["nodes"]],
        "aggregates": document["aggregates"],
        "providers": providers,
    }


def read_records(document: t.Any, name: str, cloud: Unchecked) -> HostRecords:
    """Return the records of a host in the file of an earlier task.

    name: as the user named the host, or that of its compute service. A file of another host, or of
        an older version, has none.
    Raises InvalidInput for anything else than such a file, and for one of another cloud.
    """
    try:
        hosts = [host for host in document["hosts"] if name in (host["name"], host.get("host"))]
    except (AttributeError, KeyError, TypeError) as error:
        raise _refuse() from error
    if not hosts:
        return HostRecords()
    host = hosts[0]
    seen = host.get("service")
    former, record = (_check_record(host.get(key)) for key in ("former_record", "record"))
    for entry in (record, former):
        require_same_cloud(entry, cloud)
    # The records keep the names and providers that a host without its service has lost. A former
    # host of that name may be another machine, with other providers.
    lives = [life for life in (host, record, former) if life and "host" in life]
    try:
        names = {name for life in lives for name in list_names(life)}
        roots = {root["root"] for life in lives if life != former for root in life["providers"]}
    except (KeyError, TypeError) as error:
        raise _refuse() from error
    return HostRecords(
        record=record,
        former=former,
        name=host["name"],
        existed=bool(host.get("known")) or record is not None,
        had_agents=bool(host.get("agents")),
        seen=seen if _has_keys(seen, _SEEN_KEYS) else None,
        names=frozenset(names),
        roots=frozenset(roots),
    )


def list_names(life: Unchecked) -> set[str]:
    """Return the names that a host and its compute nodes had."""
    return {life["host"], *(node["name"] for node in life["nodes"])}


def _check_record(record: t.Any) -> HostRecord | None:
    if record is None:
        return None
    if not _has_keys(record, _KEYS) or not _has_keys(record.get("cloud", _NO_CLOUD), _NO_CLOUD):
        raise _refuse()
    if record["service"] is not None and not _has_keys(record["service"], {"id", "status", "zone"}):
        raise _refuse()
    return t.cast("HostRecord", record)


def _has_keys(value: t.Any, keys: Iterable[str]) -> bool:
    return isinstance(value, dict) and value.keys() >= set(keys)


def _refuse() -> InvalidInput:
    return InvalidInput(
        "earlier is not a file that compute_host_info wrote, or it was changed since: restore it, "
        "or move it away if nothing of the host has to be restored."
    )


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

    node: str | None
    zone: str | None
    disabled_reason: str | None
    aggregates: tuple[Aggregate, ...]
    provider: ProviderState | None
    names_cloud: bool = True
    names: frozenset[str] = frozenset()


def parse_former_host(
    document: t.Any, name: str, service: str | None, cloud: Unchecked
) -> FormerHost | None:
    """Return what the host `name` had when it was decommissioned; None if the file has no record.

    service: the id of the compute service that the host has now; None without one.
    Raises InvalidInput if `document` is not a `host.json`, or is about another host or cloud.
    """
    try:
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        (host,) = document["hosts"]
        if name not in (host["name"], host["host"]):
            raise InvalidInput(
                f"The record is about {make_printable(host['name'], 100)} and not about "
                f"{make_printable(name, 100)}."
            )
        record = _choose_record(host, service)
        if record is None:
            return None
        require_same_cloud(record, cloud)
        return _parse_record(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"The record does not have the form that compute_host_info writes ({error!r})."
        ) from error


def _parse_record(record: Unchecked) -> FormerHost:
    # Of several nodes, as with ironic, none is that of the host.
    nodes = [node["uuid"] for node in record["nodes"]]
    node = nodes[0] if len(nodes) == 1 else None
    roots = [one for one in record["providers"] if one["uuid"] == node and "traits" in one]
    groups = [Aggregate(one["uuid"], one["name"], one["zone"], ()) for one in record["aggregates"]]
    service = record["service"] or {}
    return FormerHost(
        node=node,
        zone=service.get("zone"),
        disabled_reason=service.get("disabled_reason"),
        aggregates=tuple(groups),
        provider=parse_provider_state(roots[0]) if roots else None,
        names_cloud="cloud" in record,
        names=frozenset(list_names(record)),
    )


def _choose_record(host: Unchecked, service: str | None) -> Unchecked | None:
    """Return the record of the life of the host before the present one."""
    lives: list[Unchecked | None] = [host.get("record"), host.get("former_record")]
    # Version 1 wrote only what the host had at its last check.
    if "record" not in host and host["known"]:
        lives = [host]
    for life in (life for life in lives if life is not None):
        # A check after the machine was back has recorded what it has now.
        if service is None or (life["service"] or {}).get("id") != service:
            return life
    return None
