# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of the values in the answers of Nova and Placement, by the names of their keys.

An answer in which a value has another type is as broken as one that is cut off: the rules compute
with numbers and compare texts, and would otherwise end with an error of Python, or compare a text
with a number and conclude that they differ.

Only names that mean the same in both are here, with every type that any release gives them.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable

_TEXTS = [
    # Of anything.
    *("name", "uuid", "status", "state", "project_id", "tenant_id", "user_id", "consumer_type"),
    *("created", "created_at", "updated", "updated_at", "start_time", "finish_time"),
    # Of providers and services.
    *("parent_provider_uuid", "root_provider_uuid", "hypervisor_hostname"),
    *("binary", "zone", "availability_zone", "disabled_reason"),
    # Of servers.
    *("OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-AZ:availability_zone"),
    *("OS-EXT-SRV-ATTR:root_device_name", "OS-EXT-STS:task_state", "OS-EXT-STS:vm_state"),
    *("OS-SRV-USG:launched_at", "OS-SRV-USG:terminated_at", "pinned_availability_zone"),
    # Of migrations and actions.
    *("instance_uuid", "migration_type", "source_compute", "source_node"),
    *("dest_compute", "dest_node", "action", "request_id", "event", "result"),
]
_NUMBERS = [
    *("generation", "consumer_generation", "resource_provider_generation"),
    *("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used"),
    *("running_vms", "ram", "disk", "ephemeral"),
]
# Placement always has these, and they are never null.
_WHOLE_NUMBERS = ["max_unit", "min_unit", "reserved", "step_size", "total"]
# Of mappings.
_ROWS = [
    *("events", "hypervisors", "instanceActions", "interfaceAttachments", "migrations"),
    *("resource_providers", "servers", "services", "volumeAttachments"),
    "os-extended-volumes:volumes_attached",
]
_MAPPINGS = ["inventories", "provider_summaries"]
# Nova leaves these out, or null, where there are none.
_OPTIONAL_MAPPINGS = ["fault", "flavor", "metadata", "properties"]
# Their values are amounts by resource class. Summaries of providers have a mapping for each class.
_AMOUNTS = ["resources", "usages"]
_OF_SUMMARY = {"capacity", "used"}
# Half of a character, which no database of a service stores, and which cannot be sent or written.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Placement knows consumers and providers by nothing else.
_UUID = re.compile("[0-9a-fA-F-]{32,36}")
# The keys in these are names of hosts and networks, or whatever a user writes.
_KEYS_OF_USERS = frozenset(
    {
        *("addresses", "cpu_info", "details", "extra_specs", "fault", "hosts"),
        *("metadata", "properties", "scheduler_hints"),
    }
)

# Placement's own largest ratio (placement/schemas/inventory.py), and more than any amount or size.
_LARGEST_RATIO, _LARGEST_NUMBER = 3.5e38, 2**63


def find_wrong_type(body: t.Any) -> str | None:
    """Return the name of a key in an answer whose value has another type, None without one.

    Mappings with keys of users are left out: a server may have `total=x` among its metadata.
    """
    # Not by recursion: an answer may be nested more deeply than Python allows. Every value of every
    # answer comes by here, so nothing is called for those without a check.
    left = [body]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            for key, inner in value.items():
                check = _CHECKS.get(key)
                if check is not None and not check(inner):
                    return str(key)
                if isinstance(inner, _CONTAINERS) and key not in _KEYS_OF_USERS:
                    left.append(inner)
    return None


def _is_text(value: t.Any) -> bool:
    return value is None or (isinstance(value, str) and _SURROGATE.search(value) is None)


def _is_host(value: t.Any) -> bool:
    # `GET /os-hosts/{host}` has rows of its resources there.
    return _is_text(value) or _has_rows(value)


def _is_number(value: t.Any) -> bool:
    return value is None or _is_whole_number(value)


def _is_integer(value: t.Any) -> bool:
    # A truth value is a number for Python, and for nobody else.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_whole_number(value: t.Any) -> bool:
    return _is_integer(value) and abs(value) < _LARGEST_NUMBER


def _is_ratio(value: t.Any) -> bool:
    # NaN is not in any range.
    return (isinstance(value, float) or _is_integer(value)) and 0 <= value <= _LARGEST_RATIO


def _has_rows(value: t.Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(row, dict) for row in value)
    )


def _is_mapping(value: t.Any) -> bool:
    return isinstance(value, dict)


def _is_mapping_or_none(value: t.Any) -> bool:
    return value is None or isinstance(value, dict)


def _has_texts(value: t.Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_name, value)))


def _has_named_texts(value: t.Any) -> bool:
    return value is None or (isinstance(value, dict) and all(map(_is_name, value.values())))


def _is_name(value: t.Any) -> bool:
    return value is not None and _is_text(value)


def _is_image(value: t.Any) -> bool:
    # A server that boots from a volume has an empty text there.
    return value == "" or _is_mapping_or_none(value)


def _is_by_uuid(value: t.Any) -> bool:
    return isinstance(value, dict) and all(map(_UUID.fullmatch, value))


def _has_amounts(value: t.Any) -> bool:
    return isinstance(value, dict) and all(map(_is_amount, value.values()))


def _is_amount(value: t.Any) -> bool:
    if _is_integer(value):
        return bool(0 <= value < _LARGEST_NUMBER)
    return isinstance(value, dict) and value.keys() == _OF_SUMMARY


_CONTAINERS = (dict, list)
_CHECKS: dict[str, Callable[[t.Any], bool]] = {
    **dict.fromkeys(_TEXTS, _is_text),
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_WHOLE_NUMBERS, _is_whole_number),
    **dict.fromkeys(_ROWS, _has_rows),
    **dict.fromkeys(_MAPPINGS, _is_mapping),
    **dict.fromkeys(_OPTIONAL_MAPPINGS, _is_mapping_or_none),
    **dict.fromkeys(_AMOUNTS, _has_amounts),
    "allocation_ratio": _is_ratio,
    "host": _is_host,
    "allocations": _is_by_uuid,
    "extra_specs": _has_named_texts,
    "image": _is_image,
    "traits": _has_texts,
}
