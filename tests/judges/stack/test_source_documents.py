"""What operators have written about orphaned allocations, from the state that reality leaves.

The documents whose state needs no steered driver are the tests of the minicloud, run on the stack.
"""

from __future__ import annotations

from minicloud_ctl import holdings, servers

from ...integration import test_source_documents as documents
from ...integration.support import Ansible, Placement
from ...integration.test_source_documents import Operator, operator
from ...integration.world import CELL1, CLAIM
from . import configs
from .bed import Stack
from .world import Measured, StackWorld

__all__ = ["operator"]


def test_nothing_is_found_in_a_healthy_cloud(
    ansible: Ansible, world: StackWorld, placement: Placement, measured: Measured
) -> None:
    world.free(placement.everything())
    hosted = [world.boot(host) for host in ("compute-1", "compute-2", "compute-3")]
    before = placement.everything()

    run = ansible.playbook("detect_orphans")

    found = run.read("findings.json")
    assert run.status == 0, run.output
    assert found["findings"] == [] and found["undecided"] == []
    assert found["summary"]["coverage"]["complete"]
    assert set(hosted) <= set(before)
    assert placement.everything() == before
    measured["allocations"] = len(before)


def test_000_5c58c3b8669d2bfb_cold_migration_fails_while_placement_is_away(
    operator: Operator, stack: Stack, world: StackWorld, placement: Placement, measured: Measured
) -> None:
    """The destination hangs, Placement goes away, and Nova cannot revert the allocation."""
    source, target = "compute-1", "compute-2"
    server = world.boot(source)
    sshd = world.host(target)
    sshd.signal("sshd", "STOP")
    servers.act(world.cloud, server, "migrate", {"host": target})
    servers.await_task(world.cloud, server, "resize_migrating")
    migration = servers.await_migration(world.cloud, server, "migrating")
    workers = [f"placement-{worker}" for worker in configs.WORKERS]
    stack.stop(*workers, now=True)
    sshd.tell("sshd", "killed")
    servers.await_event(world.cloud, server, "migrate", "compute_resize_instance")
    stack.start(*workers)
    stack.await_workers("placement")
    sshd.tell("sshd", "on")
    measured["status_after_failure"] = servers.get(world.cloud, server)["status"]
    measured["migration_after_failure"] = servers.migrations(world.cloud, server)[0]["status"]
    servers.act(world.cloud, server, "os-resetState", {"state": "active"})
    servers.settle(world.cloud, server, source)
    assert world.find_guests(source) >= {server} and server not in world.find_guests(target)
    held = {consumer: placement.held(consumer) for consumer in (server, migration)}
    assert list(held[server]) == [world.provider(target)]

    found = operator.playbook("detect_orphans", target).entry(server)
    measured["kind"] = found["kind"]
    assert found["kind"] == "unreverted_allocation"
    cleaned = operator.playbook("cleanup_orphans", target)
    assert cleaned.outcome(server)["outcome"] == "rewritten"
    (journal,) = (cleaned.folder / "orphan-cleanup").glob("journal-*")
    operator.restore(journal)
    assert {consumer: placement.held(consumer) for consumer in held} == held
    operator.playbook("cleanup_orphans", target)

    assert placement.held(server) == {world.provider(source): CLAIM}
    assert placement.held(migration) == {}
    servers.migrate(world.cloud, server, target)
    servers.confirm(world.cloud, server)
    assert server in world.find_guests(target)


def test_001_5c03795a902544a6_evacuated_source_host_is_decommissioned(
    operator: Operator, world: StackWorld, placement: Placement
) -> None:
    documents.test_001_5c03795a902544a6_evacuated_source_host_is_decommissioned(
        operator, world, placement, "cleanup_orphans"
    )


def test_002_1fe01b3cec3724ea_server_deleted_by_sql_still_occupies_its_host(
    operator: Operator, world: StackWorld, placement: Placement, measured: Measured
) -> None:
    """Its guest runs on: the allocation is an orphan and the guest a leftover."""
    host = "compute-3"
    server = world.boot(host)
    world.sql(CELL1, documents.DELETED_BY_HAND, server)
    world.restart(host)

    found = operator.playbook("detect_orphans", host).entry(server)
    assert (found["kind"], found["verdict"]) == ("deleted_server", "orphaned")
    held = placement.held(server)
    cleaned = operator.playbook("cleanup_orphans", host)
    assert cleaned.outcome(server)["outcome"] == "removed" and placement.held(server) == {}
    (journal,) = (cleaned.folder / "orphan-cleanup").glob("journal-*")
    operator.restore(journal)
    assert placement.held(server) == held
    operator.playbook("cleanup_orphans", host)
    assert placement.held(server) == {}
    assert server in world.find_guests(host)
    measured["guest_still_runs"] = True
    world.discard(host, server)


def test_003_0faa89b690f7b7c2_nova_alone_leaves_an_orphaned_provider_that_can_be_deleted(
    operator: Operator, world: StackWorld, placement: Placement
) -> None:
    documents.test_003_0faa89b690f7b7c2_nova_alone_leaves_an_orphaned_provider_that_can_be_deleted(
        operator, world, placement, documents._migrations_leftover
    )


def test_004_07799cc69980f59e_server_missing_from_the_database_still_has_allocations(
    ansible: Ansible, world: StackWorld, placement: Placement
) -> None:
    """It was deleted while its host was down, archived, and purged."""
    host = "compute-3"
    server = world.boot(host)
    held = holdings.of(world.cloud, server)
    world.purge(server, host)
    holdings.write_back(world.cloud, server, held)
    variables = {"orphan_cleanup_kinds": ["unknown_consumer"]}
    chosen = {**variables, "orphan_cleanup_remediate_kinds": ["unknown_consumer"]}

    found = ansible.playbook("detect_orphans", variables=variables).entry(server)
    assert (found["kind"], found["verdict"]) == ("unknown_consumer", "orphaned")
    cleaned = ansible.playbook("cleanup_orphans", variables=chosen)

    assert cleaned.outcome(server)["outcome"] == "removed" and placement.held(server) == {}
    world.revive(host)
    world.discard(host, server)
