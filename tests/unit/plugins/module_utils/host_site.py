"""A host to decommission in a cloud of two."""

import dataclasses as d
import typing as t
from collections.abc import Collection

from .....plugins.module_utils._core.facts.index import SnapshotIndex
from .....plugins.module_utils._core.models.kind import REMEDIATE
from .....plugins.module_utils._core.models.kinds import KINDS
from .....plugins.module_utils._core.models.snapshot import Snapshot
from .....plugins.module_utils._core.options.policy import Policy
from .....plugins.module_utils._hosts.emptiness import Blocker, Contents, list_occupants
from .....plugins.module_utils._hosts.host import Host, find_host
from .....plugins.module_utils._hosts.host_info import list_consumers
from .....plugins.module_utils._hosts.host_report import find_blockers
from .world import World, answer

BY_DEFAULT = [kind.name for kind in KINDS if kind.by_default == REMEDIATE]


class Site(World):
    """A host to decommission, and one that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.old, self.new = self.host("old"), self.host("new")
        self.services[0] = d.replace(self.services[0], state="down", id="service-of-old")

    def found(self, name: str = "old", remembered: Collection[str] = ()) -> Host:
        return find_host(
            name,
            self.services,
            tuple(map(self._with_servers, self.nodes.values())),
            self.providers,
            remembered,
        )

    def contents(
        self,
        kinds: Collection[str] = tuple(BY_DEFAULT),
        snapshot: Snapshot | None = None,
        policy: Policy | None = None,
        **seen: t.Any,
    ) -> Contents:
        host, index = self.found(), SnapshotIndex(snapshot or self.snapshot())
        contents = Contents(
            host,
            index,
            list_consumers(host, index, policy or Policy()),
            kinds,
            tuple(server for server in self.servers.values() if server.host == "old"),
            migrations=answer("GET /os-migrations?host=old", 200, self._migrations_at("old")),
        )
        return d.replace(contents, **seen)

    def blockers(self, excluded: Collection[str] = (), **seen: t.Any) -> list[Blocker]:
        policy = Policy(exclude_providers=frozenset(excluded))
        return list(find_blockers(self.contents(policy=policy, **seen), policy))

    def occupants(self, **seen: t.Any) -> list[Blocker]:
        return list_occupants(self.contents(**seen))

    def left_over(self, kinds: Collection[str] = tuple(BY_DEFAULT)) -> list[str]:
        return [finding.kind for finding in self.contents(kinds).leftovers]
