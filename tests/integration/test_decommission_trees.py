"""Provider trees without a compute node are deleted if their kind is chosen.

Trees that may have a compute node are kept.
"""

import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import holdings, servers

from .interposer import interposed
from .support import Ansible, Minicloud, Placement, Run
from .world import API, CLAIM, World

OWN_CLOUD = True

NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
KINDS = ["deleted_server", "orphaned_provider", "name_conflict"]
STOCK = {"VCPU": {"total": 8}}


@pytest.fixture(scope="module", autouse=True)
def _one_nova(minicloud: Minicloud, world: World) -> Iterator[None]:
    """Where another region has a Nova on the same Placement, no tree is deleted."""
    minicloud.scenario("healthy")
    with world.one_region():
        yield


def _dead_host(world: World) -> str:
    name = f"ghost-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    world.kill(name)
    return name


def _leave_orphaned_provider(world: World, host: str) -> str:
    """Let a host die and Nova delete its service, with an allocation of a deleted server on it.

    Its provider stays. Returns the server.
    """
    server = world.boot(host)
    held = holdings.of(world.cloud, server)
    servers.delete(world.cloud, server)
    holdings.await_providers(world.cloud, server)
    world.kill(host)
    holdings.write_back(world.cloud, server, held)
    world.delete_service(host)
    return server


def _leave_allocated_provider(
    world: World, placement: Placement, host: str
) -> tuple[str, str, str]:
    """Let Nova delete the service of a dead host while a consumer has an allocation.

    Returns the remaining root, a child of it, and that consumer.
    """
    root, stray = world.provider(host), world.claim(host)
    world.delete_service(host)
    world.hold(stray, {})
    return root, placement.create_provider(f"{host} port", STOCK, parent=root), stray


def _clean_up(ansible: Ansible, host: str, *arguments: str, **variables: t.Any) -> Run:
    chosen = {"orphan_cleanup_hosts": [host], "orphan_cleanup_remediate_kinds": KINDS, **variables}
    run = ansible.playbook("cleanup_orphans", *arguments, variables=chosen)
    assert run.status == 0 and "Traceback" not in run.output, run.output
    return run


def _only_finding(run: Run, kind: str) -> dict[str, t.Any]:
    (finding,) = [found for found in run.read("findings.json")["findings"] if found["kind"] == kind]
    return finding


def _deleted(run: Run) -> dict[str, t.Any]:
    """Return the record of a deletion in the newest journal before it was made."""
    newest = max((run.folder / "orphan-cleanup").glob("journal-*.jsonl"))
    (record,) = [record for record in run.records(newest) if record["event"] == "before"]
    return record


@pytest.mark.long
def test_orphaned_provider_is_deleted_by_a_second_run_when_empty(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    host = f"ghost-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    root = world.provider(host)
    server = _leave_orphaned_provider(world, host)
    child = placement.create_provider(f"{host} port", STOCK, parent=root)

    first = _clean_up(ansible, host)
    finding = _only_finding(first, "orphaned_provider")
    assert finding["reason_id"] == "tree_has_allocations" and server in finding["reason"]
    assert first.outcome(server)["outcome"] == "removed"
    assert {root, child} <= set(placement.providers().values())
    reading = world.picture()
    foretold = _clean_up(ansible, host, "--check", "--diff")
    assert world.picture() == reading
    by_default = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_hosts": [host]})
    assert by_default.status == 0 and world.picture() == reading
    second = _clean_up(ansible, host)
    again = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_plan": "orphan-cleanup/plan.json"}
    )

    assert set(reading["providers"]) - set(world.picture()["providers"]) == {root, child}
    assert {**world.picture(), "providers": {}, "claims": {}} == {
        **reading,
        "providers": {},
        "claims": {},
    }
    assert foretold.changed == second.changed == 1
    assert f'"{child}": "{host} port"' in foretold.output
    record = _deleted(second)
    assert [provider["uuid"] for provider in record["providers"]] == [child, root]
    assert record["details"][child]["inventories"]["VCPU"]["total"] == 8
    assert set(record["details"][root]) == {"generation", "inventories", "traits", "aggregates"}
    assert {"VCPU", "MEMORY_MB", "DISK_GB"} <= set(record["details"][root]["inventories"])
    assert "COMPUTE_NODE" in record["details"][root]["traits"]
    assert (again.status, again.changed) == (0, 0), again.output
    (gone,) = again.read("remediation.json")["outcomes"]
    assert (gone["outcome"], gone["reason_id"]) == ("skipped", "tree_gone")
    newest = max((second.folder / "orphan-cleanup").glob("journal-*.jsonl"))
    reading = world.picture()
    restored = ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(newest)}
    )
    assert restored.status == 0 and world.picture() == reading, restored.output
    (outcome,) = restored.read("restoration.json")["outcomes"]
    assert (outcome["outcome"], outcome["reason_id"]) == ("skipped", "root_not_recreated")


@pytest.mark.long
def test_orphaned_provider_changed_after_review_is_kept(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    host = _dead_host(world)
    root, child, stray = _leave_allocated_provider(world, placement, host)
    path, findings, folder = (
        str(ansible.folder / name) for name in ("plan.json", "findings.json", "kept")
    )

    def plan() -> None:
        ansible.direct("orphan_detect", hosts=[host], dest=findings, **NO_AGE)
        assert ansible.direct("orphan_plan", findings=findings, kinds=KINDS, dest=path)[
            "actions"
        ] == {"delete_providers": 1}

    def skipped(**more: t.Any) -> str:
        result = ansible.direct("orphan_remediate", plan=path, output_dir=folder, **NO_AGE, **more)
        (outcome,) = result["outcomes"]
        assert (outcome["outcome"], result["changed"], result["failed"]) == (
            "skipped",
            False,
            False,
        ), result
        assert {root, child} <= set(placement.providers().values())
        return outcome["reason_id"]

    plan()
    assert skipped(exclude_providers=[f"{host} port"]) == "provider_excluded"
    world.hold(stray, {child: {"VCPU": 1}})
    assert skipped() == "tree_has_allocations"
    world.hold(stray, {})
    assert skipped() == "removal_differs"
    plan()
    more = placement.create_provider(f"{host} agent", STOCK, parent=root)
    assert skipped() == "removal_differs"
    placement.change("DELETE", f"/resource_providers/{more}")
    plan()
    world.own_host(host)
    assert world.cloud.hypervisors()[host] == root
    assert skipped() == "no_longer_found"
    assert root in placement.held(world.boot(host))


@pytest.mark.long
def test_root_allocated_at_the_last_moment_is_kept(
    ansible: Ansible, world: World, placement: Placement, minicloud: Minicloud
) -> None:
    host = _dead_host(world)
    root, child, stray = _leave_allocated_provider(world, placement, host)
    with interposed(ansible, minicloud) as wires:
        hook = wires.placement.on("DELETE", child, after=lambda: world.hold(stray, {root: CLAIM}))
        run = ansible.playbook(
            "cleanup_orphans",
            variables={"orphan_cleanup_hosts": [host], "orphan_cleanup_remediate_kinds": KINDS},
        )
    world.hold(stray, {})

    assert hook.ran and run.status != 0
    assert run.failed_stages == {"remediated"} and "1 of its 2 providers" in run.told
    assert root in placement.providers().values()


@pytest.mark.follows("node_name_has_other_provider")
@pytest.mark.long
def test_conflicting_name_is_freed_for_the_new_compute_node(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    host = f"ghost-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    old = world.provider(host)
    server = _leave_orphaned_provider(world, host)
    # A reinstallation loses this: nova-compute creates a new uuid, and Placement refuses its name.
    (world.paths.compute(host) / "compute_id").unlink()
    world.own_host(host)
    new = world.cloud.hypervisors()[host]
    assert new != old and placement.providers()[host] == old

    first = _clean_up(ansible, host)
    assert first.outcome(server)["outcome"] == "removed"
    assert placement.providers()[host] == old
    second = _clean_up(ansible, host)
    assert old not in placement.providers().values()
    reason = _only_finding(second, "name_conflict")["reason"]
    world.restart(host)

    assert f"has the UUID {new}, but" in reason and f"restart nova-compute on {host}" in reason
    assert [provider["uuid"] for provider in _deleted(second)["providers"]] == [old]
    assert placement.providers()[host] == new
    assert list(placement.held(world.boot(host))) == [new]


@pytest.mark.long
def test_provider_of_an_unlisted_hypervisor_is_kept_while_its_service_exists(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    """Nova does not list a hypervisor without a host mapping.

    Its compute node exists, and its nova-compute is only down.
    """
    host = _dead_host(world)
    world.sql(API, "UPDATE host_mappings SET host = ? WHERE host = ?", f"{host}-away", host)
    before = world.picture()
    assert host not in before["nodes"]

    run = _clean_up(ansible, host)
    now = world.picture()
    world.sql(API, "UPDATE host_mappings SET host = ? WHERE host = ?", host, f"{host}-away")

    assert now == before
    (finding,) = [
        found
        for found in run.read("findings.json")["undecided"]
        if found["kind"] == "orphaned_provider"
    ]
    assert f"nova-compute on {host} is down" in finding["reason"]
