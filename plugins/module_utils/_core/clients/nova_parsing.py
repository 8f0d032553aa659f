# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn the rows of Nova's answers into objects."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..._common.uuids import normalize_uuid
from ..models.nova import (
    Action,
    ActionEvent,
    Aggregate,
    Flavor,
    Hypervisor,
    Migration,
    Server,
    Service,
)
from ..models.resource_request import Attachment
from ..models.surroundings import DeletedServer
from .api import Reply

# What the traceback of `compute_resize_instance` shows when the driver gave up: that it raised
# itself; or that it had Nova roll back (InstanceFaultRollback), which Nova then did, or failed to
# write to Placement. What fails after the copy shows none of them (nova/compute/manager.py,
# _resize_instance and _error_out_instance_on_exception).
_GAVE_UP = ("in migrate_disk_and_power_off", "raise error.inner_exception", "in _instance_update")

# The fields of a hypervisor by the resource class that they count.
_CAPACITY_FIELDS = {"VCPU": "vcpus", "MEMORY_MB": "memory_mb", "DISK_GB": "local_gb"}
_USED_FIELDS = {"VCPU": "vcpus_used", "MEMORY_MB": "memory_mb_used", "DISK_GB": "local_gb_used"}


def parse_service(row: Mapping[str, t.Any]) -> Service:
    """Return the service in a row; one of an unreachable cell has few of the fields."""
    return Service(
        binary=row["binary"],
        host=_require_name(row["host"]),
        status=row["status"],
        state=row.get("state"),
        forced_down=bool(row.get("forced_down")),
        disabled_reason=row.get("disabled_reason"),
        updated_at=row.get("updated_at"),
        id=row.get("id"),
        zone=row.get("zone"),
    )


def _require_name(value: t.Any) -> str:
    """Return the name of a host, which Nova always gives to a service."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is not the name of a host")
    return value


def parse_aggregate(row: Mapping[str, t.Any]) -> Aggregate:
    """Return the host aggregate in a row."""
    return Aggregate(
        row["uuid"],
        row["name"],
        row.get("availability_zone"),
        tuple(row["hosts"]),
        dict(row.get("metadata") or {}),
        row.get("id"),
    )


def parse_hypervisor(row: Mapping[str, t.Any], with_servers: bool) -> Hypervisor:
    """Return the compute node in a row.

    with_servers: whether the row comes from a request for the servers of the host as well.
    """
    servers = None
    if with_servers:
        # A host without servers has no such key.
        servers = tuple(server["uuid"] for server in row.get("servers", ()))
    return Hypervisor(
        uuid=row["id"],
        name=row["hypervisor_hostname"],
        host=_require_name(row["service"]["host"]),
        state=row["state"],
        status=row["status"],
        servers=servers,
        has=_parse_amounts(row, _CAPACITY_FIELDS),
        used=_parse_amounts(row, _USED_FIELDS),
        running_vms=row.get("running_vms") or 0,
    )


def _parse_amounts(row: Mapping[str, t.Any], fields: Mapping[str, str]) -> dict[str, int]:
    return {cls: row[field] for cls, field in fields.items() if row.get(field) is not None}


def parse_migration(row: Mapping[str, t.Any]) -> Migration:
    """Return the migration in a row; before 2.59 it has no uuid, and its number stands for one."""
    return Migration(
        uuid=row.get("uuid") or f"migration {row['id']}",
        server=row["instance_uuid"],
        type=row["migration_type"],
        status=row["status"],
        source_compute=row["source_compute"],
        source_node=row["source_node"],
        dest_compute=row["dest_compute"],
        dest_node=row["dest_node"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def require_same_uuid(row: Mapping[str, t.Any], key: str, asked: str) -> Mapping[str, t.Any]:
    """Return a row of an answer about one server.

    Raises ValueError if the row is about another server: a cache or a proxy may mix up answers.
    """
    wanted = normalize_uuid(asked)
    if wanted is not None and key in row and normalize_uuid(str(row[key])) != wanted:
        raise ValueError("the answer is about something else")
    return row


def parse_complete_migrations(reply: Reply, server: str) -> tuple[Migration, ...] | None:
    """Return the migrations of a server, or None when they continue on another page."""
    if reply.body.get("migrations_links"):
        return None
    rows = reply.body["migrations"]
    return tuple(parse_migration(require_same_uuid(row, "instance_uuid", server)) for row in rows)


def parse_named_server(reply: Reply, uuid: str) -> Server:
    """Return the server of a reply about one server."""
    return parse_server(require_same_uuid(reply.body["server"], "id", uuid))


def parse_named_servers(reply: Reply, uuid: str) -> tuple[Server, ...]:
    """Return the servers of a listing that is limited to one server; one or none."""
    rows = reply.body["servers"]
    return tuple(parse_server(require_same_uuid(row, "id", uuid)) for row in rows)


def parse_server(row: Mapping[str, t.Any]) -> Server:
    """Return the server in a row.

    Nova leaves out fields that these credentials may not see, and most of them in a brief listing.
    """
    # Booted from a volume, a server has an empty text where others have their image.
    image = row.get("image") or {}
    return Server(
        uuid=row["id"],
        name=row.get("name", ""),
        status=row.get("status", ""),
        project=row.get("tenant_id"),
        user=row.get("user_id"),
        host=row.get("OS-EXT-SRV-ATTR:host"),
        node=row.get("OS-EXT-SRV-ATTR:hypervisor_hostname"),
        task_state=row.get("OS-EXT-STS:task_state"),
        task_known="OS-EXT-STS:task_state" in row,
        host_known="OS-EXT-SRV-ATTR:host" in row,
        created=row.get("created"),
        updated=row.get("updated"),
        terminated_at=row.get("OS-SRV-USG:terminated_at"),
        image=image.get("id"),
        volumes=tuple(
            volume["id"] for volume in row.get("os-extended-volumes:volumes_attached", ())
        ),
        flavor=_parse_flavor(row.get("flavor") or {}),
        image_properties=image.get("properties"),
        root_device=row.get("OS-EXT-SRV-ATTR:root_device_name"),
        pinned_zone=row.get("pinned_availability_zone"),
        launched_at=row.get("OS-SRV-USG:launched_at"),
    )


def parse_deleted_server(row: Mapping[str, t.Any]) -> DeletedServer:
    """Return the server in a row, with what says whether and why its deletion has not ended."""
    fault = row.get("fault") or {}
    return DeletedServer(
        server=parse_server(row),
        vm_state=row.get("OS-EXT-STS:vm_state"),
        fault=str(fault.get("message") or ""),
        locked=row.get("locked"),
    )


def _parse_flavor(row: Mapping[str, t.Any]) -> Flavor | None:
    if "vcpus" not in row:
        return None
    return Flavor(
        row["vcpus"], row["ram"], row["disk"], row["ephemeral"], row["swap"], row.get("extra_specs")
    )


def parse_attachment(row: Mapping[str, t.Any]) -> Attachment:
    """Return the attached volume in a row."""
    return Attachment(row["volumeId"], row.get("device"))


def parse_actions(reply: Reply, server: str) -> tuple[Action, ...]:
    """Return the instance actions of a server."""
    rows = reply.body["instanceActions"]
    return tuple(parse_action(require_same_uuid(row, "instance_uuid", server)) for row in rows)


def parse_action(row: Mapping[str, t.Any]) -> Action:
    """Return the instance action in a row; only the reply about one action has its events."""
    return Action(
        action=row["action"],
        request_id=row["request_id"],
        user=row["user_id"],
        start_time=row["start_time"],
        message=row["message"],
        events=tuple(map(_parse_event, row.get("events") or ())),
        updated_at=row.get("updated_at"),
    )


def _parse_event(event: Mapping[str, t.Any]) -> ActionEvent:
    return ActionEvent(
        event["event"],
        event["start_time"],
        event["finish_time"],
        event["result"],
        event.get("host"),
        _has_failed_in_copy(event),
    )


def _has_failed_in_copy(event: Mapping[str, t.Any]) -> bool:
    traceback = event.get("traceback") or ""
    return any(sign in traceback for sign in _GAVE_UP)
