# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether all servers of a host fit on other hosts together: a simple packing, biggest first. Pure.

What is packed is a possible assignment: each server is on a host that could take it alone, and no
provider has more on it than is free. A better assignment may exist, so a server that is left over
may fit after all; one that is placed together with the others certainly does.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable, Mapping, Sequence

from .._core.models.placement import Resources
from .draining import MoveOption, ServerGroup
from .move_needs import allows_group


@d.dataclass(frozen=True)
class Parcel:
    """A server to place.

    amounts: what it needs in all, by resource class. options: where it could go alone.
    """

    uuid: str
    amounts: Resources
    options: Sequence[MoveOption]


class Packing:
    """The assignment of servers to hosts, with what is then still free."""

    def __init__(
        self,
        free: Mapping[str, Resources],
        groups: Iterable[ServerGroup] = (),
        places: Mapping[str, str] | None = None,
        source: str = "",
    ) -> None:
        """Begin with nothing placed.

        free: by provider uuid. places: the present hosts of the members of groups, by uuid.
        source: the host that all servers leave.
        """
        self._free = {uuid: dict(amounts) for uuid, amounts in free.items()}
        self._groups = [group for group in groups if group.is_hard]
        self._places = dict(places or {})
        self._source = source
        self.hosts: dict[str, str] = {}

    def place_all(self, parcels: Sequence[Parcel]) -> None:
        """Place the servers, the biggest first."""
        for parcel in sort_biggest_first(parcels):
            option = self._choose(parcel)
            if option is not None:
                self._take(parcel.uuid, option)

    def _choose(self, parcel: Parcel) -> MoveOption | None:
        """Return the option that leaves the least free, so that big gaps stay for big servers."""
        fitting = [option for option in parcel.options if self._fits(parcel.uuid, option)]
        if not fitting:
            return None
        return min(fitting, key=lambda option: (self._rate_rest(option), option.host))

    def _fits(self, uuid: str, option: MoveOption) -> bool:
        # Sharing providers count too: several hosts take from what is free there.
        for provider, amounts in option.amounts.items():
            free = self._free.get(provider, {})
            if any(amount > free.get(cls, 0) for cls, amount in amounts.items()):
                return False
        for group in self._groups:
            is_member = uuid in group.members
            if is_member and not allows_group(group, uuid, option.host, self._places, self._source):
                return False
        return True

    def _rate_rest(self, option: MoveOption) -> float:
        """Return how much of what is free would remain, between 0 and 1: the least of any class."""
        rest = 1.0
        for provider, amounts in option.amounts.items():
            for cls, amount in amounts.items():
                free = self._free[provider][cls]
                rest = min(rest, (free - amount) / max(free, 1))
        return rest

    def _take(self, uuid: str, option: MoveOption) -> None:
        for provider, amounts in option.amounts.items():
            for cls, amount in amounts.items():
                self._free[provider][cls] -= amount
        # The next member of its group is judged by this place.
        self._places[uuid] = option.host
        self.hosts[uuid] = option.host


def sort_biggest_first(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return the servers by their largest fraction of the largest amount of a class.

    Those with the fewest options come first among servers of one size.
    """
    largest: dict[str, int] = {}
    for parcel in parcels:
        for cls, amount in parcel.amounts.items():
            largest[cls] = max(largest.get(cls, 1), amount)

    def rate(parcel: Parcel) -> tuple[float, int, str]:
        size = 0.0
        for cls, amount in parcel.amounts.items():
            size = max(size, amount / largest[cls])
        return (-size, len(parcel.options), parcel.uuid)

    return sorted(parcels, key=rate)
