# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Amounts and ages as people say them."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import (
    format_number,
    humanize_amount,
    sort_resource_classes,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

# What follows the amount. Memory is what people expect of an amount in GiB.
_NOUNS = {"MEMORY_MB": "", "DISK_GB": " disk"}

# The units of an age, from the largest one, each with its seconds.
_AGE_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def describe_amounts(
    resources: Mapping[str, int], fractions: Mapping[str, float] | None = None
) -> str:
    """Return amounts as `2 VCPU, 2 GiB, 10 GiB disk`; nothing for none.

    fractions: by resource class, added to the amount as in `2 VCPU (0.4%)`.
    """
    parts = []
    for cls in sort_resource_classes(resources):
        part = _describe_amount(cls, resources[cls])
        if fractions and cls in fractions:
            part += f" ({fractions[cls]:.1%})"
        parts.append(part)
    return ", ".join(parts)


def _describe_amount(cls: str, amount: t.Any) -> str:
    # A file can have been written by hand, and the amounts of a log are text.
    if not isinstance(amount, int):
        return f"{make_printable(amount)} {make_printable(cls)}"
    if cls in _NOUNS:
        return f"{humanize_amount(cls, amount)}{_NOUNS[cls]}"
    return f"{format_number(amount)} {make_printable(cls)}"


def describe_age(seconds: int | None) -> str:
    """Return an age as `45s`, `3m`, `5h` or `12d`; a dash where it is not known."""
    if seconds is None:
        return "-"
    for unit, size in _AGE_UNITS:
        # One day and a half is 36h, which says more than 1d.
        if seconds >= 2 * size or size == 1:
            return f"{seconds // size}{unit}"
    return "-"
