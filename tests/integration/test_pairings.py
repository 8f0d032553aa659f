"""Compute nodes, services and providers of which one has no partner, and the advice for each."""

import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import configs, lifecycle, services
from minicloud_ctl import state as states

from .support import EVERY_KIND, Ansible, Minicloud, Placement
from .world import API, CELL1, World

pytestmark = pytest.mark.long
EVERYTHING = {
    **EVERY_KIND,
    **dict.fromkeys(("orphan_cleanup_min_age", "orphan_cleanup_unknown_min_age"), "0s"),
}


@pytest.fixture(name="one_nova")
def _one_nova(minicloud: Minicloud, world: World) -> Iterator[None]:
    minicloud.scenario("healthy")
    with world.one_region():
        yield


def _start(world: World, host: str, node: str) -> None:
    """Start a host whose compute node has this name, as libvirt's has the name of the system."""
    driver, paths = "minicloud.NamedNode", world.paths
    paths.compute(host).mkdir(parents=True, exist_ok=True)
    (paths.compute(host) / "hypervisor-hostname").write_text(node)
    with states.changing(paths) as state:
        state.computes[host] = {"nova": "first", "cell": "cell1", "driver": driver, "running": True}
    configs.write_compute(paths, host, "first", driver)
    lifecycle.start(paths, [services.compute(paths, host, **state.computes[host])])
    world.wait(f"the compute node of {host}", lambda: host in _nodes(world))


def _nodes(world: World) -> dict[str, dict[str, t.Any]]:
    listed = world.cloud.nova("GET", "/os-hypervisors/detail", version="2.68")["hypervisors"]
    return {row["service"]["host"]: row for row in listed if row["state"] == "up"}


def _find(ansible: Ansible, kind: str) -> dict[str, str]:
    """Return the reasons of the findings of a kind, by ID of the reason."""
    run = ansible.playbook("detect_orphans")
    assert run.status == 0, run.output
    found = run.read("findings.json")
    entries = [*found["findings"], *found["undecided"]]
    return {entry["reason_id"]: entry["reason"] for entry in entries if entry["kind"] == kind}


def _decommission(ansible: Ansible, world: World, host: str) -> None:
    world.kill(host)
    run = ansible.playbook("decommission_host", variables={"host_decommission_target": host})
    assert run.status == 0, run.output
    assert host not in world.cloud.compute_services()


def _restart(world: World, placement: Placement, host: str, node: str) -> None:
    """Start nova-compute again, which creates the provider of its compute node."""
    lifecycle.kill_compute(world.paths, host)
    _start(world, host, node)
    uuid = _nodes(world)[host]["id"]
    world.wait(f"the provider of {host}", lambda: placement.providers().get(node) == uuid)


@pytest.mark.usefixtures("one_nova")
def test_compute_nodes_without_a_provider_get_one_as_advised(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    hosts = (("twin-1", "same.dc1"), ("short", "short"), ("kept", "kept"))
    for host, node in hosts:
        _start(world, host, node)
        world.wait(f"the provider of {host}", lambda node=node: node in placement.providers())
    roots = placement.providers()
    server = world.boot("twin-1")
    held = placement.held(server)
    assert set(held) == {roots["same.dc1"]}
    world.kill("short")
    placement.change("PUT", f"/resource_providers/{roots['kept']}", {"name": "newcomer"})
    for host, node in (("twin-2", "same.dc1"), ("short.dc1", "short"), ("newcomer", "newcomer")):
        _start(world, host, node)

    found = _find(ansible, "missing_provider")

    assert set(found) == {
        "hypervisors_have_one_name",
        "host_got_other_name",
        "provider_has_name_of_other_node",
    }
    _decommission(ansible, world, "twin-2")
    (world.paths.compute("twin-2") / "compute_id").unlink()
    _restart(world, placement, "twin-2", "other.dc1")
    _decommission(ansible, world, "short")
    _restart(world, placement, "short.dc1", "short")
    advised = f"openstack resource provider set --name kept {roots['kept']}"
    assert advised in found["provider_has_name_of_other_node"]
    placement.change("PUT", f"/resource_providers/{roots['kept']}", {"name": "kept"})
    _restart(world, placement, "newcomer", "newcomer")
    assert _find(ansible, "missing_provider") == {}
    assert placement.held(server) == held
    for host in ("twin-1", "twin-2", "short.dc1", "kept", "newcomer"):
        world.kill(host)


@pytest.mark.usefixtures("one_nova")
def test_provider_of_a_host_that_is_down_and_not_discovered_is_kept(
    ansible: Ansible, world: World, minicloud: Minicloud, placement: Placement
) -> None:
    host, node = "az1-c07", "srv0423.dc1"
    world.own_host(host)
    root = world.provider(host)
    world.kill(host)
    placement.change("PUT", f"/resource_providers/{root}", {"name": node})
    rename = "UPDATE compute_nodes SET hypervisor_hostname = ?, mapped = ? WHERE host = ?"
    # The scheduler would discover it.
    world.sql(CELL1, rename, node, 1, host)
    world.sql(API, "DELETE FROM host_mappings WHERE host = ?", host)

    run = ansible.playbook("cleanup_orphans", variables=EVERYTHING)
    tree = ansible.playbook("decommission_host", variables={"host_decommission_target": node})

    assert run.status == 0, run.output
    assert tree.status != 0 and "discover_hosts" in tree.output
    assert placement.providers()[node] == root
    assert set(_find(ansible, "orphaned_provider")) == {"node_not_listed"}
    world.sql(CELL1, rename, node, 0, host)
    minicloud.run("nova-manage", "cell_v2", "discover_hosts")
    assert _find(ansible, "orphaned_provider") == {}


@pytest.mark.usefixtures("one_nova")
def test_row_of_a_service_deleted_by_hand_leaves_out_that_host_alone(
    ansible: Ansible, world: World, minicloud: Minicloud, placement: Placement
) -> None:
    minicloud.scenario("deleted_server")
    orphan = minicloud.truth("deleted_server")["server"]
    world.own_host("row-1")
    server = world.boot("row-1")
    world.claim_also(server, "compute-1")
    held = placement.held(server)
    world.sql(CELL1, "UPDATE services SET deleted = id WHERE host = 'row-1'")

    run = ansible.playbook("cleanup_orphans", variables=EVERYTHING)

    assert run.status == 0, run.output
    coverage = run.read("findings.json")["summary"]["coverage"]
    assert coverage["hosts_without_service"] == coverage["unjudged_hosts"] == ["row-1"]
    assert run.outcome(orphan)["outcome"] == "removed"
    assert run.entry(server)["verdict"] == "undecided" and placement.held(server) == held
    world.restart("row-1")
    again = ansible.playbook("detect_orphans")
    assert again.read("findings.json")["summary"]["coverage"]["complete"]


def test_hosts_of_a_nova_that_the_catalogue_does_not_name_are_kept(
    ansible: Ansible, world: World, minicloud: Minicloud, placement: Placement
) -> None:
    minicloud.scenario("second_nova")
    truth = minicloud.truth("second_nova")
    named = {**EVERYTHING, "orphan_cleanup_hosts": [truth["hosts"]["host"]]}
    before = placement.everything(), placement.providers()
    with world.hidden_region():
        run = ansible.playbook("cleanup_orphans", variables=named)
        assert set(_find(ansible, "orphaned_provider")) == {"other_nova_on_placement"}

    assert run.status == 0, run.output
    assert (placement.everything(), placement.providers()) == before
    assert run.entry(truth["server"])["kind"] == "foreign_provider"
