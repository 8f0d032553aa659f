"""Some hosts with a server each, whose figures fit."""

import dataclasses as d
import typing as t
from collections.abc import Mapping

from .....plugins.module_utils._core.facts.index import ListingsIndex
from .....plugins.module_utils._core.models.nova import Server
from .....plugins.module_utils._core.models.snapshot import Scope
from .world import CLAIM, World

RESERVED = 512


class Fleet(World):
    """Some hosts with a server each.

    The figures of nova-compute count exactly these servers.
    """

    def __init__(self, hosts: int = 3) -> None:
        super().__init__()
        self.roots = [self.host(f"compute-{number}") for number in range(hosts)]
        self.guests = [self.hold(self.server(root), root) for root in self.roots]
        for root in self.roots:
            self.figures(root, CLAIM)

    def figures(self, root: str, used: Mapping[str, int], **fields: t.Any) -> None:
        told = {"VCPU": used.get("VCPU", 0), "MEMORY_MB": used.get("MEMORY_MB", 0) + RESERVED}
        self.nodes[root] = d.replace(self.nodes[root], used=told, **fields)

    def read(self, **scope: t.Any) -> ListingsIndex:
        return ListingsIndex(self.listings(scope=Scope(**scope)))

    def glances(self) -> dict[str, Server]:
        return dict(self.servers)
