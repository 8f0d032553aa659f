"""Listings of two rows per page that change while they are read."""

import contextlib
import dataclasses as d
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers

from ..integration.interposer import Wires
from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed
from ..integration.world import CELL1, World

pytestmark = pytest.mark.long

HOSTS = ("compute-1", "compute-2", "compute-3", "compute-4")
CHOSEN = {
    "orphan_cleanup_remediate_kinds": [
        "extra_host",
        "ended_migration",
        "deleted_migration",
        "unknown_consumer",
    ]
}


@d.dataclass(frozen=True)
class Residents:
    """A live server on each host (by the host's uuid), and some more.

    One to be moved, one with more migrations than a page, and an older one with an unconfirmed
    resize.
    """

    homes: dict[str, str]
    mover: str
    traveller: str
    unconfirmed: str


@pytest.fixture(scope="module", autouse=True)
def residents(minicloud: Minicloud, world: World) -> Iterator[Residents]:
    minicloud.scenario("healthy")
    unconfirmed = servers.migrate(world.cloud, world.boot("compute-1"), "compute-2")
    traveller = world.boot("compute-1")
    for host in ("compute-2", "compute-3", "compute-1"):
        world.live_migrate(traveller, host)
    world.claim_also(traveller, "compute-4")
    homes = {world.provider(host): world.boot(host) for host in HOSTS}
    mover = world.boot("compute-3")
    with world.nova_setting("[api]\nmax_limit = 2\n"):
        yield Residents(homes, mover, traveller, unconfirmed)


@pytest.fixture
def nodes(world: World) -> list[str]:
    """The compute nodes in the order of their listing."""
    pages = [world.cloud.nova("GET", "/os-hypervisors", version="2.87")["hypervisors"]]
    while pages[-1] and len(pages) < 50:
        pages.append(
            world.cloud.nova(
                "GET", f"/os-hypervisors?marker={pages[-1][-1]['id']}", version="2.87"
            )["hypervisors"]
        )
    return [row["id"] for page in pages for row in page]


def hide(world: World, table: str, row: str) -> None:
    world.sql(CELL1, f"UPDATE {table} SET deleted = id WHERE uuid = ?", row)


def show(world: World, table: str, row: str) -> None:
    world.sql(CELL1, f"UPDATE {table} SET deleted = 0 WHERE uuid = ?", row)


@pytest.fixture
def still(world: World) -> Iterator[None]:
    """Let hosts stop reporting: a host that misses its row would create it again."""
    with contextlib.ExitStack() as stack:
        for host in HOSTS:
            stack.enter_context(world.paused(f"nova-compute-{host}"))
        yield


def test_pages_are_read_to_the_end(
    ansible: Ansible, placement: Placement, wires: Wires, residents: Residents, nodes: list[str]
) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)

    coverage = run.read("findings.json")["summary"]["coverage"]
    assert run.status == 0 and coverage["complete"]
    assert coverage["hypervisors"] == len(nodes) >= len(HOSTS)
    assert (
        sum("/os-migrations?limit=1000&marker=" in request for request in wires.nova.requests) >= 2
    )
    assert run.entry(residents.unconfirmed)["kind"] == "verify_resize"
    # It has more migrations than a page, and the renewed proof does not know those that are not on
    # the first.
    skipped = run.outcome(residents.traveller)
    assert (skipped["outcome"], skipped["reason_id"]) == ("skipped", "move_without_migration")
    assert_nothing_changed(run, before, placement)


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("how", ["vanishes", "appears"])
def test_host_missing_from_the_listing_keeps_its_servers(
    ansible: Ansible,
    placement: Placement,
    wires: Wires,
    world: World,
    residents: Residents,
    nodes: list[str],
    how: str,
) -> None:
    """It disappears before its page is read, or returns after that.

    Its servers are live all the time.
    """
    before = placement.everything()
    homes = [node for node in nodes if node in residents.homes]
    if how == "vanishes":
        missed, marker = homes[-1], nodes[1]
        turn = wires.nova.on(
            "GET",
            f"/os-hypervisors/detail.*marker={marker}",
            before=lambda: hide(world, "compute_nodes", missed),
        )
    else:
        missed = homes[0]
        hide(world, "compute_nodes", missed)
        marker = nodes[nodes.index(missed) + 2]
        turn = wires.nova.on(
            "GET",
            "/os-hypervisors/detail.*marker=",
            nth=2,
            before=lambda: show(world, "compute_nodes", missed),
        )

    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)
    show(world, "compute_nodes", missed)

    assert turn.ran
    coverage = run.read("findings.json")["summary"]["coverage"]
    assert coverage["hypervisors"] == len(nodes) - 1
    # A host found again by a direct lookup is like one that an API worker does not know.
    assert coverage["complete"] is (how == "vanishes")
    assert run.entry(residents.homes[missed])["reason_id"] == "compute_node_ambiguous"
    assert_nothing_changed(run, before, placement)


@pytest.mark.usefixtures("still")
def test_listing_is_read_again_when_the_last_host_of_a_page_vanishes(
    ansible: Ansible, placement: Placement, wires: Wires, world: World, nodes: list[str]
) -> None:
    """The next page cannot be requested, and the listing is read again."""
    before = placement.everything()
    wires.nova.on(
        "GET",
        f"/os-hypervisors/detail.*marker={nodes[1]}",
        before=lambda: hide(world, "compute_nodes", nodes[1]),
    )

    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)
    show(world, "compute_nodes", nodes[1])

    assert run.read("findings.json")["summary"]["coverage"]["hypervisors"] == len(nodes) - 1
    assert_nothing_changed(run, before, placement)


def test_migrations_that_start_or_vanish_while_listed_are_protected(
    ansible: Ansible, placement: Placement, wires: Wires, world: World, residents: Residents
) -> None:
    """One begins after its page was read.

    One is missing for a moment, as when its cell is too slow.
    """
    mover, unconfirmed_migration = residents.mover, residents.unconfirmed
    before = placement.everything()

    def change() -> None:
        servers.migrate(world.cloud, mover, "compute-4")
        hide(world, "migrations", residents.unconfirmed)

    wires.nova.on("GET", "/os-migrations.limit=1000&marker=", before=change)
    back = wires.nova.on(
        "GET",
        f"/servers/{residents.unconfirmed}$",
        before=lambda: show(world, "migrations", residents.unconfirmed),
    )

    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)

    (begun,) = servers.migrations(world.cloud, mover)
    after = placement.everything()
    assert back.ran and run.status == 0 and "Traceback" not in run.output
    missed = run.entry(unconfirmed_migration)
    assert (missed["verdict"], missed["reason_id"]) == ("undecided", "migration_listed_once")
    assert (
        after.pop(begun["uuid"]).keys() == before.pop(mover).keys() == {world.provider("compute-3")}
    )
    assert after.pop(mover).keys() == {world.provider("compute-4")}
    assert {consumer: set(held) for consumer, held in after.items()} == {
        consumer: set(held) for consumer, held in before.items()
    }
