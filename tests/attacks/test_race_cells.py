"""A cell that stops answering midway.

For Nova its servers do not exist, and still all their allocations are needed.

`test_soundness` has the cell that is dead from the start by its mapping. Here its database fails
for the running nova-api, between any two of our requests, and returns as suddenly.
"""

import uuid
from collections.abc import Iterator

import pytest

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from ..integration.interposer import Wires
from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed
from ..integration.world import CELL2, CELLS_ASKED, World

pytestmark = pytest.mark.long

HOST = "cell2-compute-1"
EVERY_KIND = {"orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHAN_KINDS]}
WRONG_HOST = {"orphan_cleanup_remediate_kinds": ["extra_host"]}
FORGOTTEN = {"orphan_cleanup_remediate_kinds": ["unknown_consumer", "deleted_migration"]}


@pytest.fixture(scope="module", autouse=True)
def second_cell(minicloud: Minicloud, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A second cell, and no orphans of other tests that are proven with one cell down."""
    minicloud.scenario("healthy")
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("cells"), minicloud.environment)
    assert ansible.playbook("cleanup_orphans").status == 0
    if not (minicloud.home / "scenarios" / "cell_down.json").exists():
        minicloud.scenario("cell_down")
        minicloud.run("scenario", "--undo", "cell_down")


@pytest.fixture(scope="module")
def victim(world: World) -> str:
    """A live server in the second cell that also has an allocation on a host of the first.

    That makes it a candidate.
    """
    server = world.boot(HOST)
    world.claim_also(server, "compute-1")
    return server


@pytest.fixture(autouse=True)
def cell(world: World) -> Iterator[None]:
    yield
    world.open_cell()


@pytest.fixture
def stray(world: World) -> Iterator[list[str]]:
    """Three consumers on compute-1 unknown to Nova, in the order in which they are processed."""
    consumers = sorted(world.claim("compute-1") for count in range(3))
    yield consumers
    for consumer in consumers:
        world.hold(consumer, {})


@pytest.fixture
def moving(world: World, victim: str) -> Iterator[str]:
    """A migration of the victim under way to compute-1, with an allocation of its own; its uuid."""
    migration = str(uuid.uuid4())
    world.sql(
        CELL2,
        "INSERT INTO migrations (created_at, uuid, instance_uuid, user_id, project_id, "
        "migration_type, status, source_compute, source_node,"
        " dest_compute, dest_node, deleted, cross_cell_move, hidden)"
        " SELECT strftime('%Y-%m-%d %H:%M:%S.000000', 'now'), ?, uuid, user_id, project_id, "
        "'live-migration', 'preparing', host, node,"
        " 'compute-1', 'compute-1', 0, 0, 0 FROM instances WHERE uuid = ?",
        *(migration, victim),
    )
    world.claim(HOST, migration)
    yield migration
    world.open_cell()
    world.hold(migration, {})
    world.sql(CELL2, "DELETE FROM migrations WHERE uuid = ?", migration)


@pytest.mark.parametrize("queued_for_delete", [0, 1])
def test_cell_is_dead_for_one_lookup(
    ansible: Ansible,
    placement: Placement,
    wires: Wires,
    world: World,
    victim: str,
    queued_for_delete: int,
) -> None:
    """Nova answers 404 for a server of a dead cell that is queued for deletion.

    It does not at the microversion of our lookup.
    """
    before = placement.everything()
    world.sql(
        "first_nova_api",
        "UPDATE instance_mappings SET queued_for_delete = ? WHERE instance_uuid = ?",
        queued_for_delete,
        victim,
    )
    look_up = wires.nova.on(
        "GET", f"/servers/{victim}$", nth=0, before=world.close_cell, after=world.open_cell
    )

    run = ansible.playbook("cleanup_orphans", variables=WRONG_HOST)

    world.sql(
        "first_nova_api",
        "UPDATE instance_mappings SET queued_for_delete = 0 WHERE instance_uuid = ?",
        victim,
    )
    assert look_up.ran and run.status == 0
    assert run.entry(victim)["reason_id"] == "server_lookup_failed"
    assert_nothing_changed(run, before, placement)


def test_cell_is_dead_and_its_server_queued_for_delete(
    ansible: Ansible, placement: Placement, world: World, victim: str
) -> None:
    before = placement.everything()
    world.sql(
        "first_nova_api",
        "UPDATE instance_mappings SET queued_for_delete = 1 WHERE instance_uuid = ?",
        victim,
    )
    world.close_cell()

    run = ansible.playbook("cleanup_orphans", variables=EVERY_KIND)

    world.sql(
        "first_nova_api",
        "UPDATE instance_mappings SET queued_for_delete = 0 WHERE instance_uuid = ?",
        victim,
    )
    coverage = run.read("findings.json")["summary"]["coverage"]
    assert (coverage["complete"], coverage["unjudged_hosts"]) == (False, [HOST])
    assert_nothing_changed(run, before, placement)


def test_cell_is_dead_while_migrations_are_listed(
    ansible: Ansible, placement: Placement, wires: Wires, world: World, moving: str
) -> None:
    """The listing then silently lacks a migration, and its consumer looks unknown."""
    before = placement.everything()
    listing = wires.nova.on(
        "GET", "/os-migrations.limit=1000$", nth=0, before=world.close_cell, after=world.open_cell
    )

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert listing.ran
    assert run.entry(moving)["reason_id"] == "migration_listed_once"
    assert_nothing_changed(run, before, placement)


def test_cell_is_dead_from_the_migrations_to_the_last_lookup(
    ansible: Ansible, placement: Placement, wires: Wires, world: World, moving: str
) -> None:
    """Only the listing of services that follows finds the cell dead.

    No later request repairs that.
    """
    before = placement.everything()
    wires.nova.on("GET", "/os-migrations.limit=1000$", before=world.close_cell)
    back = wires.nova.on("GET", "/os-services$", nth=2, after=world.open_cell)

    run = ansible.playbook("detect_orphans", variables=EVERY_KIND)

    assert back.ran
    assert run.read("findings.json")["summary"]["coverage"]["complete"] is False
    assert moving not in {entry["consumer"] for entry in run.read("findings.json")["findings"]}
    assert_nothing_changed(run, before, placement)


def test_cell_is_dead_while_migrations_are_listed_again(
    ansible: Ansible, placement: Placement, wires: Wires, world: World, victim: str, moving: str
) -> None:
    """The listing is a 200 without the move under way.

    The first listing of all migrations had it.
    """
    before = placement.everything()
    asked = wires.nova.on(
        "GET", "/os-migrations.limit=1000$", nth=2, before=world.close_cell, after=world.open_cell
    )

    run = ansible.playbook("cleanup_orphans", variables=WRONG_HOST)

    assert asked.ran
    assert victim not in {entry["consumer"] for entry in run.read("findings.json")["findings"]}
    assert_nothing_changed(run, before, placement)


@pytest.mark.usefixtures("stray", "victim")
def test_cell_dies_between_detection_and_remediation(
    ansible: Ansible, placement: Placement, wires: Wires, world: World
) -> None:
    before = placement.everything()
    died = wires.nova.on("GET", "/os-services$", nth=CELLS_ASKED + 1, before=world.close_cell)

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert died.ran
    outcomes = run.read("remediation.json")["outcomes"]
    assert {(outcome["outcome"], outcome["reason_id"]) for outcome in outcomes} == {
        ("skipped", "every_cell_needed")
    }
    assert_nothing_changed(run, before, placement)
