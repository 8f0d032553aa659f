# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request groups of one resource request while they are collected. Pure."""

from __future__ import annotations

import string
from collections.abc import Iterable

from ..models.placement import STANDARD_CLASSES
from ..models.resource_request import AmountRule, RequestGroup

# The group without a suffix.
MAIN_GROUP = ""

_CLASS_CHARACTERS = frozenset(string.ascii_uppercase + string.digits + "_")


class RefusedByNovaError(Exception):
    """Nova would have refused to boot such a server. The text says why, as a part of a sentence."""


class Group:
    """One request group while it is collected."""

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()
        self.unknown_classes: set[str] = set()
        self.provider: str | None = None
        self.pci = False

    def add_resource(self, cls: str, amount: str | int, source: str) -> None:
        """Request `amount` of a class, in place of any earlier amount of it.

        Nova ignores classes that it does not know and amounts that are not whole numbers
        (nova/objects/request_spec.py, RequestGroup.add_resource).
        """
        if not cls.startswith("CUSTOM_") and cls not in STANDARD_CLASSES:
            # A newer Nova may know it, if it is the name of a class at all.
            if cls and _CLASS_CHARACTERS.issuperset(cls):
                self.unknown_classes.add(cls)
            return
        try:
            number = int(amount)
        except ValueError:
            return
        if number < 0:
            return
        self.amounts[cls] = number
        self.sources[cls] = source

    def add_trait(self, trait: str, value: str) -> None:
        """Require or forbid a trait; Nova ignores any other value."""
        if value == "required":
            self.required.add(trait)
        elif value == "forbidden":
            self.forbidden.add(trait)

    def strip_zeros(self) -> None:
        """Remove the amounts of zero."""
        self.amounts = {cls: amount for cls, amount in self.amounts.items() if amount}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is requested; an amount of zero is something."""
        return not (self.amounts or self.required or self.forbidden)


class GroupBuilder:
    """Collects the groups of one resource request (nova/scheduler/utils.py, ResourceRequest)."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.isolate = False

    def get_group(self, name: str) -> Group:
        """Return a group; it is made if it is not there."""
        return self._groups.setdefault(name, Group())

    def add_groups(self, groups: Iterable[tuple[str, Group]], without_zeros: bool) -> None:
        """Add groups of ports or devices.

        Raises RefusedByNovaError for an empty group and for a name that is taken.
        """
        for name, group in groups:
            if without_zeros:
                group.strip_zeros()
            if group.is_empty:
                raise RefusedByNovaError(f"request group {name} requests nothing")
            if name in self._groups:
                raise RefusedByNovaError(f"two request groups have the name {name}")
            self._groups[name] = group

    def has_class(self, *classes: str) -> bool:
        """Return whether any group has an amount of one of the classes, even of zero."""
        return any(not group.amounts.keys().isdisjoint(classes) for group in self._groups.values())

    def list_unknown_classes(self) -> frozenset[str]:
        """Return the names of classes that were ignored because they are unknown."""
        names: set[str] = set()
        for group in self._groups.values():
            names |= group.unknown_classes
        return frozenset(names)

    def finish_groups(self) -> dict[str, RequestGroup]:
        """Return the groups by name, without amounts of zero and without empty groups."""
        finished = {}
        for name, group in self._groups.items():
            group.strip_zeros()
            if group.is_empty:
                continue
            finished[name] = RequestGroup(
                name=name,
                resources=dict(group.amounts),
                required=frozenset(group.required),
                forbidden=frozenset(group.forbidden),
                provider=group.provider,
                pci=group.pci,
            )
        return finished

    def finish_rules(self) -> tuple[AmountRule, ...]:
        """Return where each amount of the finished groups comes from."""
        rules = []
        for name, group in self._groups.items():
            for cls, amount in group.amounts.items():
                rules.append(AmountRule(name, cls, amount, group.sources[cls]))
        return tuple(rules)
