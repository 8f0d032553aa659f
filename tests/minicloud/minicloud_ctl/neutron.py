"""The real Neutron: how a cloud gets it, its first network, and the agents of the hosts."""

from collections.abc import Collection, Mapping, Sequence

from minicloud_ctl import processes, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import NEUTRON
from minicloud_ctl.waiting import wait_for

OVS = "neutron-openvswitch-agent"
# ``minicloud_venv.neutron_agents`` reports these for each host.
BINARIES = (OVS, "neutron-dhcp-agent", "neutron-l3-agent", "neutron-metadata-agent")

NETWORK = "minicloud"
# The only one that the agents of Open vSwitch are connected to.
PHYSICAL_NETWORK = "physnet0"
BRIDGE = "br-physnet0"
CIDR = "10.77.0.0/16"


def await_agents(paths: Paths, hosts: Collection[str]) -> None:
    """Wait until the agents of the hosts report, and Neutron has created their providers."""
    state = states.load(paths)
    cloud = Cloud(state)

    def ready() -> bool:
        processes.must_live(paths, [services.NEUTRON_SERVER, services.NEUTRON_AGENTS])
        return are_ready(list_agents(cloud), hosts, state.dead_agents)

    wait_for(
        f"the network agents of {', '.join(sorted(hosts))}, and their bandwidth in Placement",
        ready,
        interval=0.5,
    )


def create_network(cloud: Cloud) -> None:
    """Create a network that all projects share; its ports can ask for bandwidth."""
    there = cloud.neutron("GET", f"/networks?name={NETWORK}")["networks"]
    network = there[0] if there else _create_network(cloud)
    if not network["subnets"]:
        subnet = {"network_id": network["id"], "ip_version": 4, "cidr": CIDR}
        cloud.neutron("POST", "/subnets", {"subnet": {"name": NETWORK, **subnet}})


def _create_network(cloud: Cloud) -> dict:
    document = {
        "name": NETWORK,
        "shared": True,
        "provider:network_type": "vlan",
        "provider:physical_network": PHYSICAL_NETWORK,
    }
    return cloud.neutron("POST", "/networks", {"network": document})["network"]


def find_network(cloud: Cloud) -> str:
    return cloud.neutron("GET", f"/networks?name={NETWORK}")["networks"][0]["id"]


def create_policy(cloud: Cloud, kilobits: int) -> str:
    """Create a QoS policy with this minimum bandwidth in both directions; returns its uuid."""
    policy = cloud.neutron("POST", "/qos/policies", {"policy": {"name": f"{kilobits} kbit/s"}})
    path = f"/qos/policies/{policy['policy']['id']}/minimum_bandwidth_rules"
    for direction in ("egress", "ingress"):
        rule = {"min_kbps": kilobits, "direction": direction}
        cloud.neutron("POST", path, {"minimum_bandwidth_rule": rule})
    return policy["policy"]["id"]


def add_packet_rate(cloud: Cloud, policy: str, thousands: int) -> None:
    """Add a minimum packet rate to a QoS policy, in thousands of packets per second."""
    rule = {"min_kpps": thousands, "direction": "any"}
    path = f"/qos/policies/{policy}/minimum_packet_rate_rules"
    cloud.neutron("POST", path, {"minimum_packet_rate_rule": rule})


def create_port(cloud: Cloud, policy: str | None = None) -> str:
    """Create a port of the first network, with a QoS policy or without; returns its uuid."""
    document = {"network_id": find_network(cloud), "qos_policy_id": policy}
    return cloud.neutron("POST", "/ports", {"port": document})["port"]["id"]


def bandwidth_provider(host: str) -> str:
    """Return the name that Neutron gives to the provider of a host's bandwidth."""
    return f"{host}:Open vSwitch agent:{BRIDGE}"


def list_agents(cloud: Cloud) -> dict[tuple[str, str], dict]:
    """Return the agents by host and binary."""
    found = cloud.neutron("GET", "/agents")["agents"]
    return {(agent["host"], agent["binary"]): agent for agent in found}


def are_ready(
    known: Mapping[tuple[str, str], dict],
    hosts: Collection[str],
    dead: Mapping[str, Collection[str]],
) -> bool:
    """Return whether the agents of these hosts report, and their bandwidth is in Placement.

    ``dead`` are the binaries of each host that should not report.
    """
    for host in hosts:
        wanted = set(BINARIES).difference(dead.get(host, []))
        if not all(_is_ready(known.get((host, binary))) for binary in wanted):
            return False
    return True


def _is_ready(agent: dict | None) -> bool:
    if agent is None or not agent["alive"]:
        return False
    return agent["binary"] != OVS or bool(agent["resources_synced"])


def switch_agents(paths: Paths, host: str, binaries: Sequence[str], alive: bool) -> None:
    """Let agents of a host die or live again, and wait until Neutron says so.

    A dead agent that was deleted stays so. A switch agent that starts has its bandwidth created in
    Placement, if the host has a provider there.
    """
    with states.changing(paths) as state:
        if NEUTRON not in state.parts:
            raise MinicloudError(
                "There are no network agents here: 'minicloud up --with neutron' adds a real "
                "Neutron."
            )
        if host not in state.computes:
            raise MinicloudError(
                f"There is no compute host {host}; there are: "
                f"{', '.join(sorted(state.computes)) or 'none'}."
            )
        dead = set(state.dead_agents.get(host, []))
        dead = dead.difference(binaries) if alive else dead.union(binaries)
        state.dead_agents[host] = sorted(dead)
    cloud = Cloud(state)

    def done() -> bool:
        known = list_agents(cloud)
        living = [binary for binary in binaries if known.get((host, binary), {}).get("alive")]
        if not alive:
            return not living
        if len(living) < len(binaries):
            return False
        return OVS not in binaries or _has_bandwidth(cloud, host)

    word = "alive" if alive else "dead"
    wait_for(f"Neutron to call {', '.join(binaries)} of {host} {word}", done, interval=0.5)


def _has_bandwidth(cloud: Cloud, host: str) -> bool:
    """Return whether the bandwidth of a host is in Placement, or the host itself is not."""
    uuids = {name: uuid for uuid, name in cloud.providers().items()}
    if host not in uuids:
        return True
    provider = uuids.get(bandwidth_provider(host))
    if provider is None:
        return False
    path = f"/resource_providers/{provider}/inventories"
    return bool(cloud.placement("GET", path)["inventories"])
