"""Operations of Nova that are halfway, or were interrupted there.

First all of them under way, then what a restart or an outage left of them.
"""

import dataclasses as d
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import holdings, lifecycle, servers

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from ..integration.support import Ansible, Minicloud, Placement, Run
from ..integration.world import World

pytestmark = pytest.mark.long

HELD = "race-held"
# The servers of this module must stay whatever is chosen.
CHOSEN = {"orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHAN_KINDS]}
SETTINGS = "[DEFAULT]\nallow_resize_to_same_host = true\nshelved_offload_time = -1\n"


@d.dataclass(frozen=True)
class Stage:
    """One run, and all allocations before and after it."""

    run: Run
    before: dict[str, t.Any]
    after: dict[str, t.Any]


@d.dataclass
class Cast:
    """The servers by operation, and the migrations of those that move.

    others: the consumers of the cloud before, among them orphans of other modules.
    """

    others: list[str]
    servers: dict[str, str] = d.field(default_factory=dict)
    migrations: dict[str, str] = d.field(default_factory=dict)


@pytest.fixture(scope="module")
def cast(minicloud: Minicloud, placement: Placement, world: World) -> Iterator[Cast]:
    minicloud.scenario("healthy")
    with world.nova_setting(SETTINGS):
        world.own_host(HELD, driver="minicloud.HeldLiveMigration")
        yield Cast(list(placement.everything()))


def reverts(cast: Cast, world: World) -> None:
    """Prepare unconfirmed moves that will be reverted.

    One is to another host, and one to a smaller flavor on the same host.
    """
    server = world.boot("compute-1")
    cast.servers["reverts"], cast.migrations["reverts"] = (
        server,
        servers.migrate(world.cloud, server, "compute-2"),
    )
    server = world.boot(HELD, flavor="m1.small")
    world.resize_in_place(server, HELD, vcpus=1, ram=512, disk=10)
    cast.servers["reverts in place"], cast.migrations["reverts in place"] = (
        server,
        servers.migrations(world.cloud, server)[0]["uuid"],
    )


def revert_without_placement(cast: Cast, world: World) -> None:
    """Let Placement fail when the destination has done its part of the revert.

    The source then begins with its own.
    """
    moved, in_place = cast.servers["reverts"], cast.servers["reverts in place"]
    with world.paused("nova-compute-compute-1") as go_on:
        servers.act(world.cloud, moved, "revertResize")
        world.wait(
            "the destination's part",
            lambda: world.ended_events(moved, "revertResize") >= {"compute_revert_resize"},
        )
        with world.without_placement():
            go_on()
            servers.act(world.cloud, in_place, "revertResize")
            # Nova only logs that it did not find what to return; on one host the destination's part
            # already fails.
            servers.await_migration(world.cloud, moved, "reverted")
            servers.await_migration(world.cloud, in_place, "error")
            servers.settle(world.cloud, moved, "compute-1")
            servers.settle(world.cloud, in_place, None, "ERROR", "ACTIVE")
    servers.act(world.cloud, in_place, "os-resetState", {"state": "active"})
    servers.settle(world.cloud, in_place, HELD)


def live_migrates(cast: Cast, world: World) -> None:
    """Begin a live migration.

    Its server has the allocation on the destination, the migration the one on the source.
    """
    server = world.boot(HELD)
    servers.act(
        world.cloud, server, "os-migrateLive", {"host": "compute-2", "block_migration": "auto"}
    )
    cast.servers["live-migrates"], cast.migrations["live-migrates"] = (
        server,
        servers.await_migration(world.cloud, server, "running"),
    )
    holdings.await_providers(world.cloud, server, world.provider("compute-2"))


def doubled(world: World, host: str) -> str:
    """Create a live server with an allocation on another host too, so that it is a candidate."""
    server = world.boot(host)
    world.claim_also(server, "compute-1")
    return server


def shelved_away(world: World) -> str:
    server = world.boot("compute-3")
    servers.act(world.cloud, server, "shelve")
    servers.settle(world.cloud, server, None, "SHELVED", "SHELVED_OFFLOADED")
    if servers.get(world.cloud, server)["status"] == "SHELVED":
        servers.act(world.cloud, server, "shelveOffload")
    servers.settle(world.cloud, server, None, "SHELVED_OFFLOADED")
    holdings.await_providers(world.cloud, server)
    return server


@pytest.fixture(scope="module")
def stages(
    cast: Cast,
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Stage, Stage]:
    def play(name: str) -> Stage:
        ansible = Ansible(minicloud.root, tmp_path_factory.mktemp(name), minicloud.environment)
        before = placement.everything()
        variables = {**CHOSEN, "orphan_cleanup_exclude_consumers": cast.others}
        run = ansible.playbook("cleanup_orphans", variables=variables)
        return Stage(run, before, placement.everything())

    reverts(cast, world)
    hold = world.paths.compute(HELD) / "hold-live-migrations"
    hold.touch()
    live_migrates(cast, world)
    unshelves, shelves, offloads = (
        shelved_away(world),
        doubled(world, "compute-4"),
        doubled(world, HELD),
    )
    cast.servers |= {"unshelves": unshelves, "shelves": shelves, "offloads": offloads}
    servers.act(world.cloud, offloads, "shelve")
    servers.settle(world.cloud, offloads, HELD, "SHELVED")
    with world.paused("nova-compute-compute-3"):
        servers.act(world.cloud, unshelves, "unshelve", {"host": "compute-3"}, version="2.91")
        holdings.await_providers(world.cloud, unshelves, world.provider("compute-3"))
        with world.paused("nova-compute-compute-4"), world.paused(f"nova-compute-{HELD}"):
            servers.act(world.cloud, shelves, "shelve")
            servers.act(world.cloud, offloads, "shelveOffload")
            under_way = play("under-way")

        servers.act(world.cloud, unshelves, "os-resetState", {"state": "error"})
        lifecycle.kill_compute(world.paths, HELD)
        hold.unlink()
        lifecycle.start_computes(world.paths, [HELD])
        servers.settle(world.cloud, cast.servers["live-migrates"], HELD)
        revert_without_placement(cast, world)
        cut = play("cut")
    return under_way, cut


UNDER_WAY = {"live-migrates": "moving", "unshelves": "task", "shelves": "task", "offloads": "task"}
WAITS = {"live-migrates": "moving", "reverts": "verify_resize", "reverts in place": "verify_resize"}


@pytest.mark.parametrize("name", UNDER_WAY)
def test_server_under_way_keeps_its_allocation(
    stages: tuple[Stage, Stage], cast: Cast, name: str
) -> None:
    assert stages[0].run.entry(cast.servers[name])["kind"] == UNDER_WAY[name]


@pytest.mark.parametrize("name", WAITS)
def test_migration_under_way_keeps_its_allocation(
    stages: tuple[Stage, Stage], cast: Cast, name: str
) -> None:
    """One of them is a resize on the same host.

    There the server and its migration have allocations on the same tree.
    """
    assert stages[0].run.entry(cast.migrations[name])["kind"] == WAITS[name]


@pytest.mark.parametrize("name", ["live-migrates", "reverts"])
def test_interrupted_move_is_reported_as_an_unreverted_allocation(
    stages: tuple[Stage, Stage], cast: Cast, world: World, name: str
) -> None:
    """The guest is at the source, where only the ended migration has an allocation.

    The server has an allocation on the host where it never arrived.
    """
    server, migration = cast.servers[name], cast.migrations[name]
    source = servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"]

    assert set(stages[1].after[migration]) == {world.provider(source)}
    assert world.provider(source) not in stages[1].after[server]
    entry = stages[1].run.entry(server)
    assert entry["kind"] == "unreverted_allocation" and migration in entry["reason"]
    # Where the guest of an interrupted live migration is, only the hypervisors know.
    assert (entry["change"] is None) is (name == "live-migrates")
    assert stages[1].run.entry(migration)["reason_id"] == "server_has_less_than_migration"


def test_revert_to_a_larger_flavor_on_the_same_host_keeps_both_allocations(
    stages: tuple[Stage, Stage], cast: Cast, world: World
) -> None:
    """The server has the smaller flavor, the ended migration the larger one.

    The server may need the larger one again.
    """
    migration = cast.migrations["reverts in place"]

    assert (
        set(stages[1].after[migration])
        == set(stages[1].after[cast.servers["reverts in place"]])
        == {world.provider(HELD)}
    )
    assert stages[1].run.entry(migration)["reason_id"] == "revert_was_requested"


def test_reset_unshelve_that_may_still_continue_keeps_its_allocation(
    stages: tuple[Stage, Stage], cast: Cast
) -> None:
    entry = stages[1].run.entry(cast.servers["unshelves"])
    assert entry["reason_id"] == "last_actions_unfinished"


def test_run_changes_nothing(stages: tuple[Stage, Stage]) -> None:
    for stage in stages:
        assert (
            stage.run.status == 0 and stage.run.changed == 0 and "Traceback" not in stage.run.output
        )
        assert stage.after == stage.before
