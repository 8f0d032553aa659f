# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The groups of hosts of a plan, from findings and from the plan itself. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..models.documents import PlanGroupsDocument, ScopeDocument, Unchecked
from ..models.host_groups import describe_groups
from ..models.snapshot import NO_GROUPS, HostGroups

# What a plan says of its groups.
_NAMES = ("aggregates", "aggregate_names", "availability_zones", "cells")


def get_groups(scope: ScopeDocument) -> HostGroups:
    """Return the groups of hosts in a scope, without the hosts."""
    groups = scope.get("groups")
    # Files of version 1.0 have none.
    if not groups:
        return NO_GROUPS
    named: Unchecked = groups
    fields = (*_NAMES, "aggregate_numbers")
    return HostGroups(**{field: tuple(named[field]) for field in fields})


def build_plan_groups(groups: HostGroups) -> PlanGroupsDocument:
    """Return the groups as a plan keeps them: their names, and not their hosts."""
    named = {field: list(getattr(groups, field)) for field in _NAMES}
    return t.cast("PlanGroupsDocument", named)


def describe_plan_groups(groups: HostGroups) -> str:
    """Return the groups for people; empty if none is named."""
    return describe_groups(d.asdict(groups))


def parse_plan_groups(document: Unchecked | PlanGroupsDocument | None) -> HostGroups:
    """Return the groups of which `build_plan_groups` made the document; none for None.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    if document is None:
        return NO_GROUPS
    named: Unchecked = document
    groups = HostGroups(**{field: _parse_names(named[field]) for field in _NAMES})
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
