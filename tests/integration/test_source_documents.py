"""What operators have written about orphaned allocations.

Each situation is created and resolved in the order of its document.

The documents resolve it by hand with several command line tools; here only our playbooks and
modules do.
"""

import contextlib
import typing as t
import uuid
from pathlib import Path

import pytest
from minicloud_ctl import databases, holdings, servers, steering
from minicloud_ctl.scenarios import deleted, leftovers
from minicloud_ctl.scenarios.registry import Context

from .support import Ansible, Placement, Run
from .world import CELL1, CLAIM, World

# The statement of the document: it writes 1 where Nova writes the row's id, so that for Nova the
# row is neither deleted nor live.
DELETED_BY_HAND = (
    "UPDATE instances SET deleted = 1, deleted_at = datetime('now'), vm_state = 'deleted' "
    "WHERE uuid = ?"
)

OWN_CLOUD = True
ABSENT: dict[str, t.Any] = {"state": "absent", "ignore_other_regions": True}
pytestmark = pytest.mark.long


class Operator:
    """An operator who follows a document, with our modules and playbooks."""

    def __init__(self, ansible: Ansible) -> None:
        self._ansible = ansible

    def module(self, name: str, /, **arguments: t.Any) -> dict[str, t.Any]:
        """Run a module that must succeed."""
        result = self._ansible.module(name, **arguments)
        assert not result["failed"], result
        return result

    def refused(self, name: str, /, **arguments: t.Any) -> dict[str, t.Any]:
        """Run a module that must fail and change nothing."""
        result = self._ansible.module(name, **arguments)
        assert result["failed"] and not result.get("changed"), result
        return result

    def services(self, *hosts: str) -> list[dict[str, t.Any]]:
        """Return the compute services of hosts, or all of them."""
        found = self.module("compute_host_info", hosts=list(hosts), services_only=True)["hosts"]
        return [host["service"] for host in found]

    def keeps(self, host: str) -> list[str]:
        """Return because of whom a host must not be deleted."""
        refused = self.refused("compute_host", host=host, **ABSENT)
        subjects = {blocker["subject"] for blocker in refused["blockers"]}
        return sorted(subjects | {leftover["consumer"] for leftover in refused["left_over"]})

    def playbook(self, name: str, host: str, **variables: t.Any) -> Run:
        """Run a playbook on one host."""
        run = self._ansible.playbook(name, variables={"orphan_cleanup_hosts": [host], **variables})
        assert run.status == 0, run.output
        return run

    def restore(self, journal: Path) -> None:
        """Restore everything in the journal."""
        variables = {"orphan_cleanup_journal": str(journal)}
        run = self._ansible.playbook("restore_allocations", variables=variables)
        assert run.status == 0, run.output

    def is_offered(self, host: str, resources: dict[str, int]) -> bool:
        """Return whether the scheduler may choose the host for these amounts."""
        candidates = self.module("allocation_candidate_info", resources=resources)["candidates"]
        return host in {candidate["root_name"] for candidate in candidates}

    def provider(self, host: str) -> dict[str, t.Any]:
        return self.module("placement_provider_info", resource_provider=host)["providers"][0]

    def holders(self, host: str) -> dict[str, dict[str, dict[str, int]]]:
        """Return the allocations of everybody on the host, by the names of providers."""
        allocations = self.module("placement_allocation_info", resource_provider=host)[
            "allocations"
        ]
        return {
            entry["consumer"]: {held["name"]: held["resources"] for held in entry["providers"]}
            for entry in allocations
        }


@pytest.fixture
def operator(ansible: Ansible) -> Operator:
    return Operator(ansible)


def _new_host(world: World, driver: str = "") -> str:
    name = f"document-{uuid.uuid4().hex[:8]}"
    world.own_host(name, driver=driver)
    return name


def _decommission(operator: Operator, world: World, placement: Placement, host: str) -> None:
    """Delete the service, which must remove everything of the host."""
    assert operator.module("compute_host", host=host, **ABSENT)["deleted"]["service"]
    assert operator.services(host) == []
    assert host not in placement.providers()
    assert host not in world.cloud.hypervisors()


@pytest.mark.parametrize(
    ("kind", "outcome"), [("unreverted_allocation", "rewritten"), ("extra_host", "reduced")]
)
def test_000_5c58c3b8669d2bfb_failed_migration_hides_its_target_from_the_scheduler(
    operator: Operator, world: World, placement: Placement, kind: str, outcome: str
) -> None:
    """The server has an allocation only on the target, as after a Nova without Placement.

    Or it has both, as with an old Nova.
    """
    source, target = _new_host(world, steering.DRIVER), _new_host(world)
    asked = {"VCPU": 30, "MEMORY_MB": 741376, "DISK_GB": 1638}
    claim = {**asked, "DISK_GB": 1668}
    server = world.boot(source, world.flavor(30, 741376, 1638, ephemeral=30))
    assert operator.is_offered(target, asked)

    # 1. to 4.: the migration failed while the disk was copied.
    migration = steering.migrate_until_copy(world.paths, world.cloud, server, source, target)
    with world.without_placement() if kind == "unreverted_allocation" else contextlib.nullcontext():
        steering.fail_copy(world.paths, world.cloud, server, source)
    servers.act(world.cloud, server, "os-resetState", {"state": "active"})
    servers.settle(world.cloud, server, source)
    servers.act(world.cloud, server, "os-stop")
    servers.settle(world.cloud, server, source, "SHUTOFF")
    if kind == "extra_host":
        world.hold(server, dict.fromkeys((world.provider(source), world.provider(target)), claim))
    held = {consumer: placement.held(consumer) for consumer in (server, migration)}
    # The leftover disk is deleted on the target itself.

    # 5. Another migration: "No valid host found for cold migrate".
    servers.act(world.cloud, server, "migrate", {"host": target})
    servers.await_migration(world.cloud, server, "error")
    servers.settle(world.cloud, server, source, "SHUTOFF")

    # 6. and 7.: the target is not a candidate because it is full, but of what?
    assert not operator.is_offered(target, asked)
    blocked = operator.module(
        "allocation_candidate_info", resource_provider=target, resources=asked
    )
    assert [entry["resource_class"] for entry in blocked["lacking"]] == ["MEMORY_MB"]
    assert operator.provider(target)["usages"] == claim
    assert operator.holders(target) == {
        server: {name: claim for name in (source, target) if world.provider(name) in held[server]}
    }
    assert operator.playbook("detect_orphans", target).entry(server)["kind"] == kind

    # 8. The document removes the server's whole allocation; here only the target is removed, and
    # that can be restored.
    cleaned = operator.playbook("cleanup_orphans", target)
    assert cleaned.outcome(server)["outcome"] == outcome
    (journal,) = (cleaned.folder / "orphan-cleanup").glob("journal-*")
    operator.restore(journal)
    assert {consumer: placement.held(consumer) for consumer in held} == held
    operator.playbook("cleanup_orphans", target)

    # 9. The target is back, and the server can move there.
    assert (placement.held(server), placement.held(migration)) == (
        {world.provider(source): claim},
        {},
    )
    assert operator.holders(target) == {}
    assert operator.provider(target)["usages"] == dict.fromkeys(claim, 0)
    assert operator.is_offered(target, asked)
    servers.migrate(world.cloud, server, target)
    servers.act(world.cloud, server, "confirmResize")
    servers.await_migration(world.cloud, server, "confirmed")


@pytest.mark.parametrize("solution", ["unset", "overwrite", "delete and heal", "cleanup_orphans"])
def test_001_5c03795a902544a6_evacuated_source_host_is_decommissioned(
    operator: Operator, world: World, placement: Placement, solution: str
) -> None:
    source, destination = _new_host(world), "compute-1"
    server = world.boot(source)
    world.kill(source)
    migration = servers.evacuate(world.cloud, server, destination)

    # Problem: the source is down, and the server has allocations on both hosts.
    services = operator.services(source, destination)
    assert {service["host"]: service["state"] for service in services} == {
        source: "down",
        destination: "up",
    }
    (noted,) = operator.module("placement_allocation_info", consumer=server)["allocations"]
    assert {held["name"]: held["resources"] for held in noted["providers"]} == {
        source: CLAIM,
        destination: CLAIM,
    }
    found = operator.playbook("detect_orphans", source).entry(server)
    assert (found["kind"], found["migration"]["uuid"]) == ("evacuated_source", migration)
    refusal = world.cloud.placement_call("DELETE", f"/resource_providers/{world.provider(source)}")
    assert refusal.status == 409 and "has allocations" in str(refusal.body)
    assert operator.keeps(source) == [server]

    # Solution
    if solution == "unset":
        operator.module(
            "placement_allocation", consumer=server, state="absent", resource_provider=source
        )
    elif solution == "overwrite":
        operator.module("placement_allocation", consumer=server, resources={destination: CLAIM})
    elif solution == "delete and heal":
        owner = {key: noted[key] for key in ("project", "user")}
        operator.module("placement_allocation", consumer=server, state="absent")
        operator.module(
            "placement_allocation", consumer=server, resources={destination: CLAIM}, **owner
        )
    else:
        assert operator.playbook("cleanup_orphans", source).outcome(server)["outcome"] == "reduced"
    (left,) = operator.module("placement_allocation_info", consumer=server)["allocations"]
    assert {held["name"]: held["resources"] for held in left["providers"]} == {destination: CLAIM}
    assert (left["project"], left["user"]) == (noted["project"], noted["user"])

    # The document deletes provider and service one after the other.
    _decommission(operator, world, placement, source)
    assert placement.held(server) == {world.provider(destination): CLAIM}


@pytest.mark.parametrize("solution", ["by hand", "cleanup_orphans"])
def test_002_1fe01b3cec3724ea_server_deleted_by_sql_still_occupies_its_host(
    operator: Operator, world: World, placement: Placement, solution: str
) -> None:
    host = _new_host(world)
    provider = world.provider(host)
    neighbour = world.boot(host, world.flavor(2, 8192, 80))
    server = world.boot(host, world.flavor(12, 32768, 80))
    shares = {
        neighbour: {"VCPU": 2, "MEMORY_MB": 8192, "DISK_GB": 80},
        server: {"VCPU": 12, "MEMORY_MB": 32768, "DISK_GB": 80},
    }
    all_but_its_neighbours = {"MEMORY_MB": operator.provider(host)["free"]["MEMORY_MB"] + 32768 - 1}

    world.sql(CELL1, DELETED_BY_HAND, server)
    assert world.cloud.nova_call("GET", f"/servers/{server}").status == 404
    world.restart(host)
    complaint = (
        f"Instance {server} is not being actively managed by this compute host but has allocations "
        "referencing this compute host"
    )
    world.wait("nova-compute to complain", lambda: complaint in world.log(host))
    assert not operator.is_offered(host, all_but_its_neighbours)

    # The steps: find the provider, its allocations, and that of the server.
    found = operator.playbook("detect_orphans", host).entry(server)
    assert (found["kind"], found["verdict"]) == ("deleted_server", "orphaned")
    assert "by hand" in found["reason"]
    assert operator.holders(host) == {consumer: {host: share} for consumer, share in shares.items()}
    owner = {key: placement.allocation(server)[f"{key}_id"] for key in ("project", "user")}
    if solution == "cleanup_orphans":
        # A default run removes it.
        assert operator.playbook("cleanup_orphans", host).outcome(server)["outcome"] == "removed"
        assert operator.holders(host) == {neighbour: {host: shares[neighbour]}}
        assert operator.is_offered(host, all_but_its_neighbours)
        return

    # Change it to the minimum, because "only positive integers" can be set.
    one = {"VCPU": 1, "MEMORY_MB": 1, "DISK_GB": 1}
    zero = operator.refused(
        "placement_allocation", consumer=server, resources={host: dict.fromkeys(one, 0)}
    )
    assert zero["reason_id"] == "invalid_input" and "has 0 VCPU" in zero["msg"]
    operator.module("placement_allocation", consumer=server, resources={provider: one}, **owner)
    assert placement.held(server) == {provider: one}
    assert operator.is_offered(host, all_but_its_neighbours)

    # Remove it altogether; the neighbour stays. There is nothing to heal for either.
    operator.module("placement_allocation", consumer=server, state="absent")
    assert operator.holders(host) == {neighbour: {host: shares[neighbour]}}
    assert operator.provider(host)["usages"] == shares[neighbour]
    # Its shut off domain is undefined on the hypervisor: test_cleanup_hypervisor.py.


def _evacuated_leftover(operator: Operator, world: World) -> tuple[str, str, str]:
    """A server that was evacuated, moved on while its source was down, and moved back later.

    Its allocation on the source stays for ever.

    Returns the dead source, the consumer, and the kind of the finding. Today's Nova removes
    leftovers of an evacuation that is still `done` together with the service.
    """
    source = _new_host(world)
    server = world.boot(source)
    world.kill(source)
    servers.evacuate(world.cloud, server, "compute-1")
    servers.migrate(world.cloud, server, "compute-2")
    world.restart(source)
    servers.revert(world.cloud, server)
    holdings.await_providers(
        world.cloud, server, world.provider("compute-1"), world.provider(source)
    )
    world.kill(source)
    return source, server, "evacuated_source"


def _migrations_leftover(operator: Operator, world: World) -> tuple[str, str, str]:
    """A confirmed migration that still has its allocation on the source.

    Returns the same.
    """
    source = _new_host(world)
    server = world.boot(source)
    migration = servers.migrate(world.cloud, server, "compute-1")
    held = holdings.of(world.cloud, migration)
    service = world.cloud.compute_services()[source]["id"]
    # "For migrations, that seems pretty simple - wait for the migration to complete and confirm
    # it". Today Nova requires it, and so do we.
    assert world.cloud.nova_call("DELETE", f"/os-services/{service}").status == 409
    assert migration in operator.keeps(source)
    servers.confirm(world.cloud, server)
    holdings.await_providers(world.cloud, migration)
    holdings.write_back(world.cloud, migration, held)
    world.kill(source)
    return source, migration, "ended_migration"


LEFTOVERS = pytest.mark.parametrize(
    "leave", [_evacuated_leftover, _migrations_leftover], ids=["evacuated", "migration"]
)
Leave = t.Callable[[Operator, "World"], tuple[str, str, str]]


@LEFTOVERS
def test_003_0faa89b690f7b7c2_nova_alone_leaves_an_orphaned_provider_that_can_be_deleted(
    operator: Operator, world: World, placement: Placement, leave: Leave
) -> None:
    source, consumer, kind = leave(operator, world)
    provider = world.provider(source)
    others = {held: share for held, share in placement.held(consumer).items() if held != provider}

    world.delete_service(source)

    assert operator.services(source) == []
    assert placement.providers()[source] == provider
    assert provider in placement.held(consumer)
    assert operator.keeps(source) == [consumer]

    assert operator.playbook("detect_orphans", source).entry(consumer)["kind"] == kind
    operator.playbook("cleanup_orphans", source)
    assert placement.held(consumer) == others
    operator.module("compute_host", host=source, **ABSENT)
    assert source not in placement.providers()


@LEFTOVERS
def test_003_0faa89b690f7b7c2_service_is_not_deleted_before_everything_else(
    operator: Operator, world: World, placement: Placement, leave: Leave
) -> None:
    source, consumer, kind = leave(operator, world)
    provider = world.provider(source)
    others = {held: share for held, share in placement.held(consumer).items() if held != provider}

    assert operator.keeps(source) == [consumer]
    assert source in world.cloud.compute_services()

    assert operator.playbook("detect_orphans", source).entry(consumer)["kind"] == kind
    operator.playbook("cleanup_orphans", source)
    assert placement.held(consumer) == others
    _decommission(operator, world, placement, source)


def test_004_07799cc69980f59e_server_missing_from_the_database_still_has_allocations(
    operator: Operator, world: World, placement: Placement
) -> None:
    host = _new_host(world)
    context = Context(world.paths, "purged_server")
    server, held = leftovers.delete_on(context, host, "document 004", world.flavor(1, 1024, 10))
    deleted.purge(context, server, keep_mapping=False)
    holdings.write_back(world.cloud, server, held)
    world.restart(host)
    complaint = (
        f"Instance {server} has allocations against this compute host but is not found in the "
        "database"
    )
    world.wait("nova-compute to complain", lambda: complaint in world.log(host))
    everything = {"MEMORY_MB": operator.provider(host)["free"]["MEMORY_MB"] + 1024}
    assert not operator.is_offered(host, everything)

    # Search for the hypervisor and its allocations. That it is unknown is concluded only after
    # every host was asked.
    assert operator.holders(host) == {server: {host: {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}}}
    variables = {
        "orphan_cleanup_hosts": [],
        "orphan_cleanup_consumers": [],
        "orphan_cleanup_kinds": ["unknown_consumer"],
    }
    found = operator.playbook("detect_orphans", host, **variables).entry(server)
    assert (found["kind"], found["verdict"]) == ("unknown_consumer", "orphaned")

    # Delete this allocation, whose kind must be chosen.
    chosen = {
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
        "orphan_cleanup_select": f"[?consumer == '{server}']",
    }
    run = operator.playbook("cleanup_orphans", host, **variables, **chosen)
    assert run.outcome(server)["outcome"] == "removed"
    assert operator.holders(host) == {}
    assert operator.is_offered(host, everything)


def test_004_07799cc69980f59e_old_disabled_service_limits_the_rpc_version(
    operator: Operator, world: World, placement: Placement
) -> None:
    host = _new_host(world)
    wish = {"state": "disabled", "disabled_reason": "not upgraded"}
    operator.module("compute_host", host=host, **wish)
    world.kill(host)
    current = _oldest(world)
    world.sql(CELL1, "UPDATE services SET version = version - 1 WHERE host = ?", host)
    # "Disabled services in the Nova database are still considered."
    assert _oldest(world) == current - 1

    old = [
        service
        for service in operator.services()
        if service["status"] == "disabled"
        and service["state"] == "down"
        and service["host"] == host
    ]
    assert [service["disabled_reason"] for service in old] == ["not upgraded"]
    assert operator.module("compute_host", host=host, **ABSENT)["changed"]

    assert _oldest(world) == current
    assert operator.services(host) == []
    assert host not in placement.providers()


def _oldest(world: World) -> int:
    """Return the version from which Nova derives that of its RPC."""
    with databases.writing(world.paths, CELL1) as connection:
        return connection.execute(
            "SELECT MIN(version) FROM services WHERE deleted = 0 AND binary = 'nova-compute'"
        ).fetchone()[0]
