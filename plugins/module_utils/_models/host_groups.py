# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Groups of hosts that a user names: as data, in words, and as a plan keeps them."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import (
    make_printable,
    summarize_names,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        PlanGroupsDocument,
        Unchecked,
    )


@d.dataclass(frozen=True)
class HostGroups:
    """The groups of hosts that the user names; a host must be in one of each that is not empty.

    aggregates: host aggregates by uuid; as the user has named them until they are looked up.
    aggregate_names, aggregate_numbers: the name and the id of each of `aggregates`, in the same
        order.
    availability_zones: by name.
    cells: as the user has named them. No API says which hosts a cell has.
    hosts: the hosts of compute services that are in these groups; empty until they are looked up.
    """

    aggregates: tuple[str, ...] = ()
    aggregate_names: tuple[str, ...] = ()
    aggregate_numbers: tuple[str, ...] = ()
    availability_zones: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no group is named, so that all hosts are meant."""
        return not (self.aggregates or self.availability_zones or self.cells)


def describe_groups(groups: HostGroups) -> str:
    """Return the groups for people, such as `aggregate rack-7 within availability zone az1`.

    Empty if none is named.
    """
    parts = [
        _describe("aggregate", "aggregates", groups.aggregate_names or groups.aggregates),
        _describe("availability zone", "availability zones", groups.availability_zones),
        _describe("cell", "cells", groups.cells),
    ]
    return " within ".join(part for part in parts if part)


def _describe(one: str, many: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = summarize_names(make_printable(name, 100) for name in names)
    if len(names) == 1:
        return f"{one} {shown}"
    return f"{many} {shown}"


def build_plan_groups(groups: HostGroups) -> PlanGroupsDocument:
    """Return the groups as a plan keeps them: the names, and not the hosts."""
    return {
        "aggregates": list(groups.aggregates),
        "aggregate_names": list(groups.aggregate_names),
        "availability_zones": list(groups.availability_zones),
        "cells": list(groups.cells),
    }


def parse_plan_groups(document: Unchecked | PlanGroupsDocument | None) -> HostGroups:
    """Return the groups of which `build_plan_groups` made the document; none for None.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    if document is None:
        return HostGroups()
    groups = HostGroups(
        aggregates=_parse_names(document["aggregates"]),
        aggregate_names=_parse_names(document["aggregate_names"]),
        availability_zones=_parse_names(document["availability_zones"]),
        cells=_parse_names(document["cells"]),
    )
    # A plan that has lost the names of its groups must not pass for one of the whole cloud.
    if groups.is_empty or len(groups.aggregates) != len(groups.aggregate_names):
        raise ValueError("its groups name nothing")
    return groups


def _parse_names(value: t.Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of names is not a list")
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError("a name is not a text")
    return tuple(value)
