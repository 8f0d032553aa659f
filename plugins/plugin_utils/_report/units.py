# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Amounts of resource classes, as text for people."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Mapping

from ...module_utils._common.text import make_printable

# The classes that every cloud has, in the order in which they are shown.
COMMON_CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")

_BINARY_UNITS = ("MiB", "GiB", "TiB", "PiB", "EiB")
_LABELS = {"VCPU": "VCPU", "PCPU": "PCPU", "MEMORY_MB": "memory", "DISK_GB": "disk"}
# What follows an amount among others: of memory, the unit is enough.
_NOUNS = {"MEMORY_MB": "", "DISK_GB": " disk"}
# Placement's MB and GB are binary.
_BASE_UNITS = {"MEMORY_MB": "MiB", "DISK_GB": "GiB"}


def sort_resource_classes(classes: Iterable[str]) -> list[str]:
    """Return resource classes in the order in which they are shown."""
    return sorted(classes, key=_rank_class)


def _rank_class(resource_class: str) -> tuple[int, str]:
    if resource_class in COMMON_CLASSES:
        return COMMON_CLASSES.index(resource_class), resource_class
    return len(COMMON_CLASSES), resource_class


def format_amounts(resources: Mapping[str, int]) -> str:
    """Return amounts as `2 VCPU, 2048 MEMORY_MB, 1 CUSTOM_PCI`; nothing for none."""
    return ", ".join(
        f"{resources[cls]} {make_printable(cls)}" for cls in sort_resource_classes(resources)
    )


def format_others(resources: Mapping[str, int], columns: Collection[str]) -> str:
    """Return the amounts of the classes that have no column of their own; nothing for none."""
    return format_amounts(
        {cls: amount for cls, amount in resources.items() if amount and cls not in columns}
    )


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


def get_class_label(resource_class: str) -> str:
    """Return the short name of a resource class."""
    return _LABELS.get(resource_class, resource_class)


def humanize_amount(resource_class: str, amount: int) -> str:
    """Return an amount with its unit, if it has one: `12 288 MEMORY_MB` is `12 GiB`."""
    if resource_class not in _BASE_UNITS:
        return format_number(amount)
    units = _BINARY_UNITS[_BINARY_UNITS.index(_BASE_UNITS[resource_class]) :]
    size, unit = float(amount), units[0]
    for larger in units[1:]:
        if size < 1024:
            break
        size /= 1024
        unit = larger
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def format_number(number: int) -> str:
    """Return a number with a space before each group of three digits."""
    return f"{number:,}".replace(",", " ")
