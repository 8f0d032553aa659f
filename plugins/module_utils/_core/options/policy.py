# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy of the user: what is protected, and from which age on something is reported."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..models.resource_request import PciAlias

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.guest_devices import HostGuests

# The types of services that allocate from Placement themselves, and what each is called here:
# Zun (by either name; also on Nova's own providers and without a consumer type), Cyborg and Blazar.
ALLOCATORS: Mapping[str, str] = {
    "container": "container",
    "application-container": "container",
    "accelerator": "accelerator",
    "reservation": "reservation",
}


@d.dataclass(frozen=True)
class Policy:
    """The policy of the user; ages are in seconds.

    unconfirmed_min_age, stuck_min_age, stale_min_age: the ages from which on unconfirmed resizes,
        stuck migrations and stale services are reported.
    ignore_allocators: the services that allocate nothing on Nova's hosts, as the user has checked.
    exclusion_notes: by name, what to say of an exclusion that has an end or a reason.
    ended_exclusions: the exclusions that have ended, as sentences.
    guests: what was seen of guests on hosts; evidence that no API can give.
    pci_aliases: by name, the aliases of PCI devices in nova.conf, which no API shows.
    """

    min_age: int = 3600
    unknown_min_age: int = 86400
    unconfirmed_min_age: int = 7 * 86400
    stuck_min_age: int = 86400
    stale_min_age: int = 7 * 86400
    exclude_consumers: frozenset[str] = frozenset()
    exclude_providers: frozenset[str] = frozenset()
    ignore_allocators: frozenset[str] = frozenset()
    exclusion_notes: Mapping[str, str] = d.field(default_factory=dict)
    ended_exclusions: tuple[str, ...] = ()
    guests: tuple[HostGuests, ...] = ()
    pci_aliases: Mapping[str, PciAlias] = d.field(default_factory=dict)

    def explain_exclusion(self, names: Iterable[str]) -> str | None:
        """Return a sentence about one of these providers or hosts that is excluded.

        None when none of `names` is.
        """
        excluded = self.exclude_providers.intersection(names)
        if not excluded:
            return None
        note = self.get_exclusion_note(excluded)
        return f"Provider {min(excluded)} is excluded by name{note}."

    def get_exclusion_note(self, names: Collection[str]) -> str:
        """Return until when the first of `names` is excluded, and why.

        Empty when the user did not say so.
        """
        if not names:
            return ""
        return self.exclusion_notes.get(min(names), "")
