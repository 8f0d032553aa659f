"""An evacuation that ends while its server is read.

The server has allocations on both hosts, and which of them is the leftover changes in between.

Nova saves the new host first and the migration's end after that (nova/compute/resource_tracker.py,
finish_evacuation), and no write to Placement marks the moment.
"""

import dataclasses as d
import typing as t

import pytest
from minicloud_ctl import holdings, servers

from ..integration.interposer import interposed
from ..integration.support import Ansible, Minicloud, Placement, Run
from ..integration.world import CELL1, CLAIM, World

pytestmark = pytest.mark.long

SOURCE, DESTINATION, SLOW = "race-source", "compute-2", "compute-3"
# Here an answer waits for whole evacuations.
CHOSEN = {
    "orphan_cleanup_remediate_kinds": ["extra_host", "evacuated_source"],
    "orphan_cleanup_api_timeout": 900,
}

# The requests of a detection about one server, in their order, and the moment after them. The
# migrations of all are listed first among the listings, and then for each candidate.
MOMENTS = {
    "its migrations": ("before", "/os-migrations.limit=1000$", 2),
    "its look-up": ("before", "/servers/{}$", 1),
    "the end": ("after", "/servers/{}$", 1),
}
# When the new host is saved, when the migration's end is saved, and what detection then finds.
ENDS = {
    ("its migrations", "its migrations"): "evacuated_source",
    ("its migrations", "its look-up"): "moving",
    ("its migrations", "the end"): "moving",
    ("its look-up", "its look-up"): "moving",
    ("its look-up", "the end"): "moving",
    ("the end", "the end"): "moving",
    # This is not Nova's order, and still nothing that is needed may be removed.
    ("its look-up", "its migrations"): "evacuated_source",
    ("the end", "its migrations"): "unproven",
    ("the end", "its look-up"): "moving",
}


class Evacuated:
    """A server that was evacuated from SOURCE, and is shown at earlier stages of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = world.boot(SOURCE)

    def is_on(self, host: str) -> None:
        self.world.sql(
            CELL1, "UPDATE instances SET host = ?, node = ? WHERE uuid = ?", host, host, self.server
        )

    def migration_is(self, status: str) -> None:
        self.world.sql(
            CELL1, "UPDATE migrations SET status = ? WHERE instance_uuid = ?", status, self.server
        )

    def rewind(self) -> None:
        """Go back to a moment before its end.

        It is active at the destination, which is not yet saved as its host.
        """
        self.is_on(SOURCE)
        self.migration_is("accepted")

    def arrives(self) -> None:
        self.is_on(DESTINATION)

    def is_over(self) -> None:
        self.migration_is("done")


@d.dataclass(frozen=True)
class Story:
    """One run while all of them end; `held` has each server's allocation before, `now` after it."""

    run: Run
    ended: dict[tuple[str, str], str]
    real: str
    slow: str
    held: dict[str, t.Any]
    now: dict[str, t.Any]


@pytest.fixture(scope="module")
def story(
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    minicloud.scenario("healthy")
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("evacuations"), minicloud.environment)
    world.own_host(SOURCE)
    ended = {ends: Evacuated(world) for ends in ENDS}
    real, slow = world.boot(SOURCE), world.boot(SOURCE)
    world.boot_samples()
    world.kill(SOURCE)
    for evacuated in ended.values():
        servers.act(world.cloud, evacuated.server, "evacuate", {"host": DESTINATION})
    for evacuated in ended.values():
        servers.await_migration(world.cloud, evacuated.server, "done")
        servers.settle(world.cloud, evacuated.server, DESTINATION)
        evacuated.rewind()

    with (
        world.paused(f"nova-compute-{DESTINATION}") as go_on,
        world.paused(f"nova-compute-{SLOW}"),
        interposed(ansible, minicloud) as wires,
    ):
        for server, host in ((real, DESTINATION), (slow, SLOW)):
            servers.act(world.cloud, server, "evacuate", {"host": host})
            holdings.await_providers(
                world.cloud, server, world.provider(SOURCE), world.provider(host)
            )

        def real_one_ends() -> None:
            go_on()
            servers.await_migration(world.cloud, real, "done")

        wires.nova.on("GET", MOMENTS["its look-up"][1].format(real), before=real_one_ends)
        for (saved, over), evacuated in ended.items():
            for moment, step in ((saved, evacuated.arrives), (over, evacuated.is_over)):
                when, path, nth = MOMENTS[moment]
                wires.nova.on("GET", path.format(evacuated.server), nth=nth, **{when: step})
        held = placement.everything()
        run = ansible.playbook("cleanup_orphans", variables=CHOSEN)
        now = placement.everything()
    servers.await_migration(world.cloud, slow, "done")
    return Story(
        run, {ends: evacuated.server for ends, evacuated in ended.items()}, real, slow, held, now
    )


@pytest.mark.parametrize("ends", ENDS)
def test_evacuation_ends_during_the_reading(
    story: Story, world: World, ends: tuple[str, str]
) -> None:
    server, kind = story.ended[ends], ENDS[ends]

    assert story.run.entry(server)["kind"] == kind
    if kind == "evacuated_source":
        assert set(story.now[server]) == {world.provider(DESTINATION)}
    else:
        assert story.now[server] == story.held[server]


def test_real_evacuation_ends_between_its_migrations_and_its_lookup(story: Story) -> None:
    assert story.run.entry(story.real)["kind"] == "moving"
    assert story.now[story.real] == story.held[story.real]


def test_real_evacuation_is_halfway_all_the_time(story: Story) -> None:
    assert "(evacuation)" in story.run.entry(story.slow)["reason"]
    assert story.now[story.slow] == story.held[story.slow]


def test_no_other_consumer_changes(story: Story) -> None:
    expected = [server for ends, server in story.ended.items() if ENDS[ends] == "evacuated_source"]

    assert story.run.status == 0 and "Traceback" not in story.run.output
    assert sorted(
        consumer for consumer, held in story.held.items() if story.now[consumer] != held
    ) == sorted(expected)


@pytest.mark.long
def test_source_allocation_is_removed_by_the_next_run(
    story: Story, ansible: Ansible, placement: Placement, world: World
) -> None:
    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)

    assert run.status == 0
    for server in (*story.ended.values(), story.real):
        assert placement.held(server) == {world.provider(DESTINATION): CLAIM}
    assert placement.held(story.slow) == {world.provider(SLOW): CLAIM}
