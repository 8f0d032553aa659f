"""Ports, network agents and bandwidth of a real Neutron."""

from __future__ import annotations

import typing as t

import pytest
from minicloud_ctl import holdings, neutron, servers
from minicloud_ctl.errors import MinicloudError

from .support import Ansible, Minicloud, Placement
from .world import World

REAL_PARTS = ("neutron",)
pytestmark = pytest.mark.long

KILOBITS = 2000
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": KILOBITS, "NET_BW_IGR_KILOBIT_PER_SEC": KILOBITS}
TINY = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}


def boot_with_bandwidth(world: World, host: str) -> tuple[str, str]:
    """Return a live server on the host, and its port that has a minimum bandwidth."""
    port = world.bandwidth_port(KILOBITS)
    return world.boot(host, networks=[{"port": port}]), port


def get_agent(world: World, host: str, binary: str) -> dict[str, t.Any] | None:
    return neutron.list_agents(world.cloud).get((host, binary))


def find_providers(placement: Placement, host: str) -> set[str]:
    """Return the names of a host's providers."""
    return {name for name in placement.providers() if name.partition(":")[0] == host}


def test_port_is_bound_to_the_host_and_deleted_with_its_server(world: World) -> None:
    network = neutron.find_network(world.cloud)
    server = world.boot("compute-1", networks=[{"uuid": network}])

    def is_active() -> bool:
        return [port["status"] for port in world.ports(server)] == ["ACTIVE"]

    world.wait("the agent of the host to wire the port", is_active)
    (port,) = world.ports(server)
    assert (port["binding:host_id"], port["binding:vif_type"]) == ("compute-1", "ovs")
    assert port["binding:profile"] == {}
    (address,) = servers.get(world.cloud, server)["addresses"][neutron.NETWORK]
    assert address["addr"] == port["fixed_ips"][0]["ip_address"]
    servers.delete(world.cloud, server)
    world.wait("the port to be deleted", lambda: not world.ports(server))


def test_minimum_bandwidth_is_allocated_and_freed_with_the_server(
    world: World, placement: Placement
) -> None:
    server, port = boot_with_bandwidth(world, "compute-2")
    provider = placement.providers()[neutron.bandwidth_provider("compute-2")]
    assert placement.held(server) == {world.provider("compute-2"): TINY, provider: BANDWIDTH}
    (bound,) = world.ports(server)
    assert (bound["id"], bound["binding:host_id"]) == (port, "compute-2")
    assert list(bound["binding:profile"]["allocation"].values()) == [provider]
    servers.delete(world.cloud, server)
    holdings.await_providers(world.cloud, server)
    # It was created before the server, so Nova keeps it.
    kept = world.cloud.neutron("GET", f"/ports/{port}")["port"]
    assert (kept["binding:host_id"], kept["binding:profile"]) == ("", {})


def test_bandwidth_moves_with_the_server(world: World, placement: Placement) -> None:
    server, _port = boot_with_bandwidth(world, "compute-1")
    providers = placement.providers()
    migration = servers.migrate(world.cloud, server, "compute-3")
    for consumer, host in ((migration, "compute-1"), (server, "compute-3")):
        bandwidth = providers[neutron.bandwidth_provider(host)]
        assert placement.held(consumer) == {world.provider(host): TINY, bandwidth: BANDWIDTH}
    servers.confirm(world.cloud, server)
    holdings.await_providers(world.cloud, migration)
    servers.act(
        world.cloud, server, "os-migrateLive", {"host": "compute-2", "block_migration": "auto"}
    )
    servers.await_migration(world.cloud, server, "completed")
    bandwidth = providers[neutron.bandwidth_provider("compute-2")]
    holdings.await_providers(world.cloud, server, world.provider("compute-2"), bandwidth)
    (bound,) = world.ports(server)
    assert bound["binding:host_id"] == "compute-2"


def test_each_host_has_its_agents(world: World) -> None:
    known = neutron.list_agents(world.cloud)
    hosts = sorted(world.cloud.hypervisors())
    assert hosts and sorted(known) == sorted(
        (host, binary) for host in hosts for binary in neutron.BINARIES
    )
    assert all(agent["alive"] for agent in known.values())


def test_dead_agent_is_deleted_for_good_and_a_living_one_returns(
    world: World, minicloud: Minicloud
) -> None:
    binary = "neutron-l3-agent"
    minicloud.run("agent", "compute-4", binary, "down")
    dead = get_agent(world, "compute-4", binary)
    assert dead is not None and not dead["alive"]
    alive = get_agent(world, "compute-3", binary)
    assert alive is not None and alive["alive"]
    for agent in (dead, alive):
        world.cloud.neutron("DELETE", f"/agents/{agent['id']}")
    world.wait("the living agent to report", lambda: get_agent(world, "compute-3", binary))
    assert get_agent(world, "compute-4", binary) is None
    minicloud.run("agent", "compute-4", binary, "up")
    created = get_agent(world, "compute-4", binary)
    assert created is not None and created["alive"] and created["id"] != dead["id"]


def test_host_with_a_dead_switch_agent_gets_no_port(world: World, minicloud: Minicloud) -> None:
    minicloud.run("agent", "compute-4", neutron.OVS, "down")
    networks = [{"uuid": neutron.find_network(world.cloud)}]
    server = servers.request_boot(world.cloud, "unbound", "compute-4", networks=networks)
    world.forget(server)
    with pytest.raises(MinicloudError, match="ERROR"):
        servers.settle(world.cloud, server, "compute-4")
    minicloud.run("agent", "compute-4", neutron.OVS, "up")
    world.boot("compute-4", networks=networks)


def test_retired_host_loses_its_bandwidth_and_gets_it_back_with_its_agents(
    world: World, minicloud: Minicloud, ansible: Ansible, placement: Placement
) -> None:
    world.own_host("retired")
    whole = {"retired", "retired:Open vSwitch agent", neutron.bandwidth_provider("retired")}
    assert find_providers(placement, "retired") == whole
    minicloud.run("agent", "retired", "all", "down")
    world.kill("retired")
    run = ansible.playbook("decommission_host", variables={"host_decommission_target": "retired"})
    assert run.status == 0, run.output
    assert find_providers(placement, "retired") == set()
    minicloud.run("start", "retired")
    minicloud.run("agent", "retired", "all", "up")
    assert find_providers(placement, "retired") == whole
    world.boot("retired", networks=[{"port": world.bandwidth_port(KILOBITS)}])


def test_everything_is_kept_by_a_restart(world: World, minicloud: Minicloud) -> None:
    server, port = boot_with_bandwidth(world, "compute-2")
    minicloud.run("agent", "compute-1", "neutron-metadata-agent", "down")
    minicloud.run("down")
    assert not list((minicloud.home / "run").glob("*.json"))
    minicloud.run("up")
    assert [known["id"] for known in world.ports(server)] == [port]
    agent = get_agent(world, "compute-1", "neutron-metadata-agent")
    assert agent is not None and not agent["alive"]
    world.boot("compute-1", networks=[{"uuid": neutron.find_network(world.cloud)}])
