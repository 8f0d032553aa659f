"""Servers that go through one operation after another in the real Nova.

Their allocations are damaged in between.

After every operation of Nova a server must have the allocation of its flavor on its own host. Only
Nova, which is called from here alone, and the code under test write meanwhile.
"""

import collections
import random
import typing as t
import uuid
from collections.abc import Callable, Sequence

from minicloud_ctl import holdings, lifecycle, servers
from minicloud_ctl.errors import MinicloudError

from .world import CELL1, CLAIM, World

STEADY = ("compute-1", "compute-2", "compute-3", "compute-4")
DOOMED = "live-doomed"
# Both flavors require the steady hosts, so that the scheduler never selects the doomed one.
SMALL, LARGE = "live.small", "live.large"
_SIZES = {SMALL: (1, 512, 1), LARGE: (2, 1024, 2)}
_STEADY_TRAIT = "CUSTOM_LIVE_STEADY"


def prepare(world: World) -> None:
    """Create the flavors and the host that dies, and give the steady hosts what flavors require."""
    # Before any reading: a host that is added during one makes its listings contradict each other.
    world.own_host(DOOMED)
    world.give_trait(_STEADY_TRAIT, STEADY)
    for name, (vcpus, ram, disk) in _SIZES.items():
        world.flavor(
            vcpus, ram, disk, name=name, extra_specs={f"trait:{_STEADY_TRAIT}": "required"}
        )


def claim(server: dict[str, t.Any]) -> dict[str, int]:
    """Return the allocation that a server, as Nova shows it, must have on its host."""
    return {
        "VCPU": server["flavor"]["vcpus"],
        "MEMORY_MB": server["flavor"]["ram"],
        "DISK_GB": server["flavor"]["disk"],
    }


class Life:
    """One server after the other, with all their operations until `over`.

    Meanwhile `rounds` of cleanup run.

    A restless life waits for none of them, and its server only moves.

    done: how often each operation happened, and how often Nova did not do what was requested.
    spoilt: how often an allocation was damaged so that it needs a change of a kind.
    losses: what a server lacked when it was checked.
    """

    def __init__(
        self,
        world: World,
        name: str,
        over: Callable[[], bool],
        rounds: Callable[[], int],
        restless: bool = False,
    ) -> None:
        self.world = world
        self.cloud = world.cloud
        self.over = over
        self._rounds = rounds
        self._restless = restless
        self.server = ""
        self.done: collections.Counter[str] = collections.Counter()
        self.spoilt: collections.Counter[tuple[str, str]] = collections.Counter()
        self.losses: list[str] = []
        self._chance = random.Random(name)

    def goes_on(self) -> None:
        """Run servers until it is over; the last one stays alive."""
        while True:
            self.server = self.world.boot(self._chance.choice(STEADY), SMALL)
            self._is_done("boot")
            happenings = self._chance.sample(
                MOVES if self._restless else HAPPENINGS, self._chance.randrange(2, 6)
            )
            # This operation comes last: no migration says where an unshelved server is, so a
            # damaged allocation cannot be proven afterwards.
            for happens in [*happenings, Life._shelving]:
                if self.over():
                    return
                self._chance.choice(SPOILING)(self)
                if not self._restless and self._now_and_then():
                    self._is_healed()
                happens(self)
                if self._is_done(happens.__name__) != "ACTIVE":
                    break
            self._die()

    # Operations -----------------------------------------------------------------------------------

    def _live_migration(self) -> None:
        source, target = self._host(), self._elsewhere()
        servers.act(
            self.cloud, self.server, "os-migrateLive", {"host": target, "block_migration": "auto"}
        )
        if self._host_of(self._rests()) == target:
            self._keeps_allocation_of_migration(source)

    def _confirmed_migration(self) -> None:
        source = self._host()
        servers.act(self.cloud, self.server, "migrate", {"host": self._elsewhere()})
        if self._is_unconfirmed() and self._confirm():
            self._keeps_allocation_of_migration(source)

    def _reverted_migration(self) -> None:
        servers.act(self.cloud, self.server, "migrate", {"host": self._elsewhere()})
        if self._is_unconfirmed():
            servers.revert(self.cloud, self.server)

    def _confirmed_resize(self) -> None:
        servers.act(
            self.cloud, self.server, "resize", {"flavorRef": self.cloud.flavor(self._other_size())}
        )
        if self._is_unconfirmed():
            self._confirm()

    def _confirm(self) -> bool:
        """Confirm a move, and return whether Nova did all of it.

        Placement gives up after ten conflicts with other writes, and Nova then sets the server to
        ERROR and leaves the allocation of the migration.
        """
        servers.act(self.cloud, self.server, "confirmResize")
        servers.await_migration(self.cloud, self.server, "confirmed")
        return bool(self._rests()["status"] == "ACTIVE")

    def _reverted_resize(self) -> None:
        servers.act(
            self.cloud, self.server, "resize", {"flavorRef": self.cloud.flavor(self._other_size())}
        )
        if self._is_unconfirmed():
            servers.revert(self.cloud, self.server)

    def _shelving(self) -> None:
        held = {self._own(): claim(self._seen())}
        servers.act(self.cloud, self.server, "shelve")
        servers.settle(self.cloud, self.server, None, "SHELVED_OFFLOADED")
        if self._now_and_then() and self._let_hold(self.server, held):
            # Once the server is unshelved elsewhere, this is the allocation on another host.
            self.spoilt[self.server, "extra_host"] += 1
        servers.act(self.cloud, self.server, "unshelve")

    def _abandoned_boot(self) -> None:
        """Delete a server at once, while Nova may still be looking for a host."""
        born = servers.request_boot(
            self.cloud, f"live-{uuid.uuid4()}", self._chance.choice(STEADY), SMALL
        )
        servers.delete(self.cloud, born)

    def _missing_allocation(self) -> None:
        if self._let_hold(self.server, {}):
            self.spoilt[self.server, "missing_allocation"] += 1
            self._is_healed()

    def _misplaced_allocation(self) -> None:
        if self._let_hold(
            self.server, {self.world.provider(self._elsewhere()): claim(self._seen())}
        ):
            self.spoilt[self.server, "misplaced_allocation"] += 1
            self._is_healed()

    def _unreverted_allocation(self) -> None:
        """Leave the allocations of a revert that did not move them back.

        The migration has the allocation on the server's host, and the server has the one on the
        other host.
        """
        servers.act(self.cloud, self.server, "migrate", {"host": self._elsewhere()})
        if not self._is_unconfirmed():
            return
        servers.revert(self.cloud, self.server)
        migration = self._newest_migration()
        self.world.sql(
            CELL1, "UPDATE migrations SET status = 'error' WHERE uuid = ?", migration["uuid"]
        )
        held, nobody = (
            holdings.of(self.cloud, self.server),
            holdings.of(self.cloud, migration["uuid"]),
        )
        share = claim(self._seen())
        owner = holdings.Holding({}, held.project, held.user, nobody.generation)
        swapped = {
            self.server: holdings.document(
                held, {self.world.provider(migration["dest_compute"]): share}
            ),
            migration["uuid"]: holdings.document(owner, {self._own(): share}),
        }
        if self.cloud.placement_call("POST", "/allocations", swapped, holdings.UNTYPED).ok:
            self.spoilt[self.server, "unreverted_allocation"] += 1
            self._is_healed()

    def _die(self) -> None:
        """Delete the server; its allocation, and that of its newest migration, may stay."""
        left = {self._own(): CLAIM} if self._host() else {}
        moves = servers.migrations(self.cloud, self.server)
        servers.delete(self.cloud, self.server)
        self.done["delete"] += 1
        for consumer in (self.server, *(move["uuid"] for move in moves[:1])):
            if left and self._now_and_then():
                self._let_hold(consumer, left)

    # Damage ---------------------------------------------------------------------------------------

    def _nothing(self) -> None:
        """Do no damage."""

    def _another_host(self) -> None:
        held = holdings.of(self.cloud, self.server).allocations
        if self._let_hold(self.server, {**held, self.world.provider(self._elsewhere()): CLAIM}):
            self.spoilt[self.server, "extra_host"] += 1

    def _too_much(self) -> None:
        held, own = holdings.of(self.cloud, self.server).allocations, self._own()
        if self._let_hold(
            self.server, {**held, own: {name: 2 * amount for name, amount in held[own].items()}}
        ):
            self.spoilt[self.server, "wrong_amount"] += 1

    def _another_owner(self) -> None:
        held = holdings.of(self.cloud, self.server)
        if self._let_hold(self.server, held.allocations, holdings.somebody()):
            self.spoilt[self.server, "wrong_owner"] += 1

    # ----------------------------------------------------------------------------------------------

    def _let_hold(
        self,
        consumer: str,
        allocations: holdings.Allocations,
        owner: holdings.Holding | None = None,
    ) -> bool:
        """Give a consumer exactly this allocation, unless somebody else writes at the same time."""
        now = holdings.of(self.cloud, consumer)
        somebody = owner or (now if now.project else holdings.somebody())
        body = holdings.document(
            holdings.Holding({}, somebody.project, somebody.user, now.generation), allocations
        )
        answer = self.cloud.placement_call(
            "PUT", f"/allocations/{consumer}", body, holdings.UNTYPED
        )
        if not answer.ok and answer.status != 409:
            raise MinicloudError(f"Placement answered {answer.status}: {answer.body}")
        return answer.ok

    def _keeps_allocation_of_migration(self, source: str) -> None:
        if self._now_and_then():
            self._let_hold(self._newest_migration()["uuid"], {self.world.provider(source): CLAIM})

    def _is_healed(self) -> None:
        """Wait until the server has exactly the allocation that it should have."""

        def probe() -> bool:
            found, held = self._seen(), holdings.of(self.cloud, self.server)
            right = {self.world.provider(self._host_of(found)): claim(found)}
            return held.allocations == right and (held.project, held.user) == (
                found["tenant_id"],
                found["user_id"],
            )

        try:
            self.world.wait(f"the claim of server {self.server} to be put right", probe)
        except MinicloudError as error:
            moves = [
                f"{move['migration_type']} {move['source_compute']} {move['dest_compute']} "
                f"{move['status']}"
                for move in servers.migrations(self.cloud, self.server)
            ]
            held = holdings.of(self.cloud, self.server).allocations
            raise MinicloudError(
                f"{error} It is on {self._host()} ({self._own()}), has {held}, and its moves were "
                f"{moves}."
            ) from error

    def _is_unconfirmed(self) -> bool:
        found = self._rests()
        self._check(found, "parking")
        if self._now_and_then():
            self._stays()
            self._check(self._rests(), "having waited for confirmation")
        return found["status"] == "VERIFY_RESIZE"

    def _stays(self) -> None:
        """Do nothing for a whole round."""
        begun = self._rounds() + 1
        self.world.wait("a round of cleaning", lambda: self._rounds() > begun or self.over())

    def _rests(self) -> dict[str, t.Any]:
        """Wait until the server has no task, and return how Nova shows it then."""

        def probe() -> dict[str, t.Any] | None:
            found = self._seen()
            busy = [
                move
                for move in servers.migrations(self.cloud, self.server)
                if move["status"] not in servers.ENDED | {"finished"}
            ]
            return None if found["OS-EXT-STS:task_state"] or busy else found

        return self.world.wait(f"server {self.server} to rest", probe)

    def _is_done(self, name: str) -> str:
        """Check the server after an operation, and return its status."""
        found, what = self._rests(), name.strip("_")
        self._check(found, what)
        self.done[what] += 1
        if found["status"] != "ACTIVE":
            self.done[f"{what} that ended in {found['status']}"] += 1
        return found["status"]

    def _check(self, found: dict[str, t.Any], after: str) -> None:
        if found["status"] != "ERROR" and (lacking := self._lacks(found)):
            self.losses.append(
                f"after {after} server {self.server} is {found['status']} on "
                f"{self._host_of(found)}: {lacking}"
            )

    def _lacks(self, found: dict[str, t.Any]) -> str:
        host = self._host_of(found)
        held = holdings.of(self.cloud, self.server)
        share = held.allocations.get(self.world.provider(host), {}) if host else claim(found)
        lacks = any(share.get(cls, 0) < amount for cls, amount in claim(found).items())
        return (
            (
                f"it holds {held.allocations} and not {claim(found)} of "
                f"{self.world.provider(str(host))}"
            )
            if lacks
            else ""
        )

    def _seen(self) -> dict[str, t.Any]:
        return servers.get(self.cloud, self.server)

    def _host(self) -> str:
        return self._host_of(self._seen())

    @staticmethod
    def _host_of(found: dict[str, t.Any]) -> str:
        return found["OS-EXT-SRV-ATTR:host"] or ""

    def _own(self) -> str:
        return self.world.provider(self._host())

    def _elsewhere(self) -> str:
        return self._chance.choice([host for host in STEADY if host != self._host()])

    def _other_size(self) -> str:
        return LARGE if self._seen()["flavor"]["original_name"] == SMALL else SMALL

    def _newest_migration(self) -> dict[str, t.Any]:
        return servers.migrations(self.cloud, self.server)[0]

    def _now_and_then(self) -> bool:
        return self._chance.random() < 0.5


MOVES: Sequence[Callable[[Life], None]] = (
    Life._live_migration,
    Life._live_migration,
    Life._confirmed_migration,
    Life._reverted_migration,
    Life._confirmed_resize,
    Life._reverted_resize,
    Life._abandoned_boot,
)
HAPPENINGS: Sequence[Callable[[Life], None]] = (
    *MOVES,
    Life._missing_allocation,
    Life._misplaced_allocation,
    Life._unreverted_allocation,
)
SPOILING: Sequence[Callable[[Life], None]] = (
    Life._nothing,
    Life._another_host,
    Life._another_host,
    Life._too_much,
    Life._another_owner,
)


class DoomedLife(Life):
    """Servers on a host that dies.

    They are evacuated, and continue while it is dead and when it is back.
    """

    def goes_on(self) -> None:
        while True:
            first, second = (self.world.boot(DOOMED) for _count in range(2))
            rested = ""
            self.done["boot"] += 2
            self.world.kill(DOOMED)
            for server in (first, second):
                servers.act(self.cloud, server, "evacuate", {"host": self._chance.choice(STEADY)})
            for self.server in (first, second):
                rested = self._is_done("evacuation")
            if rested == "ACTIVE":
                self._live_migration()
                self._is_done("live_migration")
            self.server = first
            self._die()
            self._let_hold(first, {self.world.provider(DOOMED): CLAIM})
            if self.over():
                return
            lifecycle.start_computes(self.world.paths, [DOOMED])
            self.server = second
            if self._is_done("return of the host it left") == "ACTIVE":
                self._confirmed_migration()
                self._is_done("confirmed_migration")
            self._die()
