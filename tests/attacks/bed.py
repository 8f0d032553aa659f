"""Servers to attack, and runs that are attacked while they read, judge and write."""

from __future__ import annotations

import dataclasses as d
import json
import typing as t

from minicloud_ctl import holdings, servers

from ...plugins.module_utils._core.models.kinds import DRIFT_KINDS, ORPHAN_KINDS
from ..integration.forks import Schedule
from ..integration.interposer import Wires
from ..integration.support import Placement
from ..integration.world import CLAIM, World

HOME, OTHER, THIRD, FOURTH = "compute-1", "compute-2", "compute-3", "compute-4"
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
EVERY_KIND = [kind.name for kind in (*ORPHAN_KINDS, *DRIFT_KINDS) if kind.by_default != "report"]


@d.dataclass
class Bed:
    """Consumers by what they are.

    live: none of these may ever be written.
    doubled: a live server on HOME that also holds something on OTHER, which any run may take away.
    orphans: nobody needs these; each has the allocation that it gets again after each test.
    others: the consumers of the cloud before, which belong to other tests.
    """

    world: World
    placement: Placement
    others: list[str]
    doubled: str
    live: dict[str, str] = d.field(default_factory=dict)
    orphans: dict[str, tuple[str, holdings.Holding]] = d.field(default_factory=dict)

    @classmethod
    def make(cls, world: World, placement: Placement) -> Bed:
        bed = cls(world, placement, list(placement.everything()), world.boot(HOME))
        bed._add_live()
        bed._add_moved()
        bed._add_deleted()
        bed._add_shelved()
        stray = world.claim(THIRD)
        bed.orphans["unknown consumer"] = (stray, holdings.of(world.cloud, stray))
        return bed

    def _add_live(self) -> None:
        world = self.world
        self.live["active"] = world.boot(HOME)
        unconfirmed = world.boot(HOME)
        self.live["migration of unconfirmed"] = servers.migrate(world.cloud, unconfirmed, FOURTH)
        self.live["unconfirmed"] = unconfirmed

    def _add_moved(self) -> None:
        cloud = self.world.cloud
        moved = self.world.boot(OTHER)
        migration = servers.migrate(cloud, moved, FOURTH)
        held = holdings.of(cloud, migration)
        servers.confirm(cloud, moved)
        holdings.await_providers(cloud, migration)
        self.live["moved"] = moved
        self.orphans["ended migration"] = (migration, held)

    def _add_deleted(self) -> None:
        cloud = self.world.cloud
        deleted = self.world.boot(OTHER)
        held = holdings.of(cloud, deleted)
        servers.delete(cloud, deleted)
        holdings.await_providers(cloud, deleted)
        self.orphans["deleted server"] = (deleted, held)

    def _add_shelved(self) -> None:
        cloud = self.world.cloud
        shelved = self.world.boot(OTHER)
        held = holdings.of(cloud, shelved)
        servers.act(cloud, shelved, "shelve")
        servers.settle(cloud, shelved, None, "SHELVED_OFFLOADED")
        holdings.await_providers(cloud, shelved)
        self.orphans["unhosted server"] = (shelved, held)

    def renew(self) -> None:
        """Give all orphans their allocations again."""
        cloud = self.world.cloud
        for consumer, held in self.orphans.values():
            if not self.placement.held(consumer):
                holdings.write_back(cloud, consumer, held)
        if len(self.placement.held(self.doubled)) < 2:
            self.world.claim_also(self.doubled, OTHER)

    def remaining(self) -> list[str]:
        """Return the names of the orphans that still have their allocation."""
        return [
            name
            for name, (consumer, _held) in self.orphans.items()
            if self.placement.held(consumer)
        ]

    def picture(self) -> dict[str, str]:
        """Return what Placement says of each live consumer, as text, and of the providers."""
        said = {name: self._show(consumer) for name, consumer in self.live.items()}
        doubled = self.placement.held(self.doubled).get(self.world.provider(HOME))
        said["doubled, on its host"] = json.dumps(doubled)
        said["providers"] = json.dumps(self.placement.providers(), sort_keys=True)
        return said

    def _show(self, consumer: str) -> str:
        answer = self.placement.allocation(consumer)
        for part in answer["allocations"].values():
            # That of the provider, which every neighbor changes.
            del part["generation"]
        return json.dumps(answer, sort_keys=True)


@d.dataclass
class Siege:
    """Runs of detection, plan and remediation with somebody in between.

    Each test begins with all orphans in their places, and ends with a comparison of everything that
    lives.
    """

    bed: Bed
    wires: Wires
    scheduled: Schedule
    before: dict[str, str] = d.field(default_factory=dict)

    def begin(self) -> None:
        for wire in (self.wires.nova, self.wires.placement):
            wire.clear()
            wire.route = wire.newest = None
        self.bed.renew()
        self.scheduled.kinds = EVERY_KIND
        self.scheduled.policy = {**NO_AGE, "exclude_consumers": self.bed.others}
        self.scheduled.told.clear()
        self.before = self.bed.picture()

    def run(self) -> dict[str, t.Any]:
        """Detect, plan and remediate once; return the summary of the detection, or nothing."""
        return self.scheduled.run()

    def end(self) -> None:
        """Compare what lives, and each reported outcome with Placement.

        An attack that no request has met proves nothing.
        """
        for wire in (self.wires.nova, self.wires.placement):
            assert getattr(wire.middlebox, "lies", 1), "no request has met the attack"
        self.assert_alive()
        for outcome in self.scheduled.done.get("outcomes", ()):
            if outcome["outcome"] == "removed":
                assert not self.bed.placement.held(outcome["consumer"]), outcome
        for said in self.scheduled.told:
            assert "Traceback" not in said and "unexpected error" not in said.lower(), said

    def list_changed(self) -> list[str]:
        """Return the consumers that the last run says it has changed.

        A running nova-compute removes the orphan of a deleted server on its host by itself.
        """
        outcomes = self.scheduled.done.get("outcomes", ())
        kept = ("failed", "skipped")
        return [entry["consumer"] for entry in outcomes if entry["outcome"] not in kept]

    def assert_alive(self) -> None:
        """Assert that whatever lives has what it had, to the byte and to the generation."""
        now = self.bed.picture()
        changed = {
            name: (self.before[name], now[name]) for name in now if self.before[name] != now[name]
        }
        assert not changed, (changed, self.scheduled.told)


__all__ = ["CLAIM", "EVERY_KIND", "FOURTH", "HOME", "NO_AGE", "OTHER", "THIRD", "Bed", "Siege"]
