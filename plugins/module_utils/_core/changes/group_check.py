# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the hosts that a plan changes are still in the groups for which it was made.

A host that has moved to another aggregate since is not one that the user has named.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Sequence

from ..._common.errors import Reason
from ..._common.text import make_printable, summarize_names
from ..clients.session import Session
from ..models.change import Change
from ..models.snapshot import NO_GROUPS, HostGroups, Listings
from ..reading.allocations import find_roots_of_members
from ..reading.host_groups import read_hosts_still_in_groups


@d.dataclass(frozen=True)
class GroupCheck:
    """The groups of a plan, and the hosts that are in them now.

    hosts: None if every host may be changed.
    """

    groups: HostGroups = NO_GROUPS
    hosts: frozenset[str] | None = None

    @classmethod
    def read(cls, session: Session, groups: HostGroups) -> GroupCheck:
        """Read which hosts are in the groups of a plan now.

        Raises InvalidInput for a group that does not exist any more.
        """
        return cls(groups, read_hosts_still_in_groups(session, groups))

    def explain_changes(self, changes: Sequence[Change], listings: Listings) -> list[Reason | None]:
        """Return of each change why no host that it frees or fills is in the groups now.

        None where one is.
        """
        if self.hosts is None:
            return [None] * len(changes)
        in_groups = self._find_roots(self.hosts, listings)
        return [self._explain(_list_touched(change), in_groups, listings) for change in changes]

    def explain_provider(self, provider: str, listings: Listings) -> Reason | None:
        """Return why a provider is not of a host in the groups; None if it is."""
        if self.hosts is None:
            return None
        return self._explain({provider}, self._find_roots(self.hosts, listings), listings)

    def _find_roots(self, hosts: Collection[str], listings: Listings) -> frozenset[str]:
        nodes = listings.hypervisors.value or ()
        return find_roots_of_members(hosts, nodes, listings.providers)

    def _explain(
        self, touched: Collection[str], in_groups: Collection[str], listings: Listings
    ) -> Reason | None:
        providers = listings.providers
        roots = {providers[uuid].root for uuid in touched if uuid in providers}
        if not roots.isdisjoint(in_groups):
            return None
        hosts = _list_host_names(roots, listings)
        shown = summarize_names(make_printable(host, 100) for host in hosts) or "its host"
        return Reason(
            "host_left_groups",
            f"{shown} is not in {self.groups}, for which the plan was made: detect and plan again, "
            "or name the host itself in hosts (orphan_cleanup_hosts).",
        )


# Of a plan that was made for no group.
EVERY_HOST = GroupCheck()


def _list_touched(change: Change) -> set[str]:
    """Return the providers that a change frees or fills."""
    # A change of the owner leaves all amounts where they are.
    return {*change.frees, *change.allocates} or set(change.before["allocations"])


def _list_host_names(roots: Collection[str], listings: Listings) -> list[str]:
    hosts_by_root = {node.uuid: node.host for node in listings.hypervisors.value or ()}
    known = [listings.providers[root] for root in roots if root in listings.providers]
    return sorted({hosts_by_root.get(one.uuid, one.name) for one in known if one.is_host})
