# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of all reports: for an entry, for amounts, and for what projects get back."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ...module_utils._common.text import make_printable
from ...module_utils._core.models.change import DELETE_PROVIDERS, NOT_MADE, Amounts
from ...module_utils._core.models.placement import sum_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.findings.entries import Entry, Stranded
    from ...module_utils._core.models.codec import Json

UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

# The longest name that is shown whole, and that of a project.
MAX_NAME, _MAX_PROJECT = 40, 80

# The classes that every cloud has, in the order in which they are shown.
COMMON_CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
_RANKS = {cls: rank for rank, cls in enumerate(COMMON_CLASSES)}

# Placement's MB and GB are binary.
_BINARY_UNITS = ("MiB", "GiB", "TiB", "PiB", "EiB")
_BASE_UNITS = {"MEMORY_MB": 0, "DISK_GB": 1}
# What follows an amount among others: of memory, the unit is enough.
_NOUNS = {"MEMORY_MB": "", "DISK_GB": " disk"}


def get_server_name(entry: Entry | Json) -> str:
    """Return the name of the server that an entry is about, nothing where it has none."""
    server = entry["server"]
    return str(server["name"] or "") if server else ""


def choose_providers(entry: Entry) -> list[Json]:
    """Return the providers whose allocation is an orphan, or else all that an entry is about."""
    dropped = [provider for provider in entry["providers"] if provider["dropped"]]
    return dropped or entry["providers"]


def list_hosts(entry: Entry) -> list[str]:
    """Return the hosts of `choose_providers`, or that of the service that an entry is about."""
    hosts = {provider["root_name"] for provider in choose_providers(entry)}
    if not hosts and entry["service"]:
        return [entry["service"]["host"]]
    return sorted(hosts)


def map_freed(entry: Entry) -> Mapping[str, Mapping[str, int]]:
    """Return the amounts that the change of an entry would free, by the uuid of the provider."""
    change = entry["change"]
    if change is None or change["action"] == DELETE_PROVIDERS:
        return {}
    frees: Amounts = change["frees"]
    return frees


def sum_freed(entry: Entry) -> dict[str, int]:
    """Return the amounts that the change of an entry would free, by resource class."""
    return sum_amounts(map_freed(entry).values())


def explain_unchanged(entry: Entry, kinds: Collection[str] | None) -> str:
    """Return why the change of a finding is not made, nothing when it is made.

    kinds: those that may be changed; None for any.
    """
    if kinds is not None and entry["kind"] not in kinds:
        return explain_kind(entry["kind"])
    if not entry["selected"]:
        return "it is not selected, or changes only hosts that are not named"
    # What version 1.0 wrote does not wait.
    return entry.get("waiting", "")


def explain_kind(kind: str) -> str:
    """Return why nothing of a kind is changed that was not chosen."""
    return f"{kind} is not among the kinds to remediate"


def list_parts(change: Json | None) -> list[Json]:
    """Return a change of allocations and that of its partner; none for other changes."""
    if not change or change["action"] == DELETE_PROVIDERS:
        return []
    return [change, change["partner"]] if change["partner"] else [change]


# --- outcomes


def join_counts(counts: Mapping[str, int]) -> str:
    """Return `2 removed, 1 failed`; nothing for none."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def count_made(tally: Mapping[str, int]) -> int:
    """Return how many changes were made, by the numbers of their outcomes."""
    return sum(count for name, count in tally.items() if name not in NOT_MADE)


# --- projects and their quota


def label_project(uuid: str, stranded: Stranded) -> str:
    """Return the name of a project with its uuid, and whether Keystone still has it."""
    if not uuid:
        return "no project"
    label = make_printable(uuid, _MAX_PROJECT)
    # Files of older versions do not have it, and an allocation may have no project.
    quota = stranded.get("quota", {}).get(uuid)
    if quota and quota["name"]:
        label = f"{make_printable(quota['name'], _MAX_PROJECT)} ({label})"
    if quota and quota["exists"] is False:
        label += ", which no longer exists"
    return label


def list_quota_lines(stranded: Stranded) -> list[str]:
    """Return for each project what it gets back of its quota, the largest amounts first.

    Only of those that Keystone has: what no longer exists has no quota. Nova counts dedicated CPUs
    as cores or as a class of their own, so they have an amount of their own here.
    """
    quotas, lines = stranded.get("quota", {}), []
    for uuid in sorted(
        quotas, key=lambda uuid: (-quotas[uuid]["cores"], -quotas[uuid]["ram_mib"], uuid)
    ):
        quota = quotas[uuid]
        # Files of older versions have only these two.
        older = {"VCPU": quota["cores"], "MEMORY_MB": quota["ram_mib"]}
        amounts = {cls: one for cls, one in quota.get("resource_classes", older).items() if one}
        if quota["exists"] and amounts:
            lines.append(f"{label_project(uuid, stranded)}: {humanize_amounts(amounts)}")
    return lines


# --- amounts


def sort_resource_classes(classes: Iterable[str]) -> list[str]:
    """Return resource classes in the order in which they are shown."""
    return sorted(classes, key=lambda cls: (_RANKS.get(cls, len(_RANKS)), cls))


def format_amounts(resources: Mapping[str, int]) -> str:
    """Return amounts as `2 VCPU, 2048 MEMORY_MB, 1 CUSTOM_PCI`; nothing for none."""
    classes = sort_resource_classes(resources)
    return ", ".join(f"{resources[cls]} {make_printable(cls)}" for cls in classes)


def format_others(resources: Mapping[str, int], columns: Collection[str]) -> str:
    """Return the amounts of the classes that have no column of their own; nothing for none."""
    others = [cls for cls, amount in resources.items() if amount and cls not in columns]
    return format_amounts({cls: resources[cls] for cls in others})


def humanize_amounts(
    resources: Mapping[str, int], fractions: Mapping[str, float] | None = None
) -> str:
    """Return amounts for people, as `2 VCPU, 2 GiB, 10 GiB disk, 1 VF`; nothing for none.

    fractions: by resource class, added to the amount as in `2 VCPU (0.4%)`.
    """
    parts = []
    for cls in sort_resource_classes(resources):
        part = _describe_amount(cls, resources[cls])
        if fractions and cls in fractions:
            part += f" ({fractions[cls]:.1%})"
        parts.append(part)
    return ", ".join(parts)


def _describe_amount(resource_class: str, amount: t.Any) -> str:
    name = make_printable(resource_class)
    # A file can have been written by hand, and the amounts of a log are text.
    if not isinstance(amount, int):
        return f"{make_printable(amount)} {name}"
    return f"{humanize_amount(resource_class, amount)}{_NOUNS.get(resource_class, f' {name}')}"


def humanize_amount(resource_class: str, amount: int) -> str:
    """Return an amount with its unit, if it has one: `12 288 MEMORY_MB` is `12 GiB`."""
    if resource_class not in _BASE_UNITS:
        return format_number(amount)
    size, unit = float(amount), _BASE_UNITS[resource_class]
    while size >= 1024 and unit < len(_BINARY_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_BINARY_UNITS[unit]}"


def format_number(number: int) -> str:
    """Return a number with a space before each group of three digits."""
    return f"{number:,}".replace(",", " ")
