# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user asks of the rules. Frozen."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping


# The types of services that allocate from Placement themselves, and what each is called here: Zun (also on Nova's own providers, without a
# consumer type, and by either name), Cyborg and Blazar.
ALLOCATORS: Mapping[str, str] = {
    "container": "container",
    "application-container": "container",
    "accelerator": "accelerator",
    "reservation": "reservation",
}


@d.dataclass(frozen=True)
class Policy:
    """What the user asks of the judge; ages in seconds.

    The three for parked resizes, stuck migrations and stale services say from when on they are reported.

    ignore_allocators: the services that hold nothing on Nova's hosts, as somebody found out.
    exclusion_notes: of what is excluded with an end or a reason, what is to be said of it.
    ended_exclusions: what is excluded no longer, as sentences.
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

    def explain_exclusion(self, names: Iterable[str]) -> str | None:
        """Name one of these providers, or of their hosts, that is excluded."""
        named = self.exclude_providers.intersection(names)
        return (
            f"Provider {min(named)} is excluded by name{self.get_exclusion_note(named)}."
            if named
            else None
        )

    def get_exclusion_note(self, names: Collection[str]) -> str:
        """Return until when the first of the names that are excluded is, and why, if the user said so."""
        return self.exclusion_notes.get(min(names), "") if names else ""
