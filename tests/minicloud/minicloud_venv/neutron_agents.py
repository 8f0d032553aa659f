"""The network agents of all hosts, as far as Neutron sees them: they speak its RPC.

Run as ``python -m minicloud_venv.neutron_agents STATE_FILE TRANSPORT_URL INTERVAL``.

A real Open vSwitch agent needs a switch and root, so no packet is sent here. What these agents
report has the form of the real reports. ``state.json`` says which hosts there are and which of
their agents are dead; it is read again before each round of reports.

A real agent of Open vSwitch sees a new interface in the switch and wires it. Nova's fake driver
plugs nothing, so the agent here takes a port that Neutron bound to its host for a plugged one.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oslo_messaging
from neutron_lib import constants, context
from neutron_lib.agent import topics
from oslo_config import cfg
from oslo_utils import timeutils

if TYPE_CHECKING:
    Report = dict[str, Any]

LOG = logging.getLogger(__name__)

PHYSICAL_NETWORK = "physnet0"
BRIDGE = "br-physnet0"
# 10 Gbit/s in each direction.
KILOBITS = 10000000
# Thousands of packets per second.
PACKETS = 10_000
INVENTORY = {"allocation_ratio": 1.0, "min_unit": 1, "step_size": 1, "reserved": 0}
# Nobody waits longer for an answer: the next round reports again.
TIMEOUT = 10
# Neutron's own, not oslo.messaging's default.
EXCHANGE = "neutron"


def configure_switch(host: str) -> Report:
    return {
        "bridge_mappings": {PHYSICAL_NETWORK: BRIDGE},
        "integration_bridge": "br-int",
        "datapath_type": "system",
        "ovs_capabilities": {
            "datapath_types": ["netdev", "system"],
            "iface_types": ["geneve", "internal", "tap", "vxlan"],
        },
        "ovs_hybrid_plug": False,
        "tunnel_types": [],
        "tunneling_ip": "127.0.0.1",
        "l2_population": False,
        "extensions": ["qos"],
        # Neutron creates providers in Placement from these.
        "resource_provider_bandwidths": {BRIDGE: {"egress": KILOBITS, "ingress": KILOBITS}},
        "resource_provider_packet_processing_without_direction": {host: {"any": PACKETS}},
        "resource_provider_packet_processing_with_direction": {},
        "resource_provider_packet_processing_inventory_defaults": INVENTORY,
        "resource_provider_inventory_defaults": INVENTORY,
        "resource_provider_hypervisors": {BRIDGE: host},
    }


# Binary: the rest of its report, that of the switch agent without the host.
# ``minicloud_ctl.neutron`` has the same binaries.
AGENTS: dict[str, Report] = {
    constants.AGENT_PROCESS_OVS: {
        "agent_type": constants.AGENT_TYPE_OVS,
        "topic": constants.L2_AGENT_TOPIC,
    },
    constants.AGENT_PROCESS_DHCP: {
        "agent_type": constants.AGENT_TYPE_DHCP,
        "topic": topics.DHCP_AGENT,
        "availability_zone": "nova",
        "configurations": {"dhcp_driver": "neutron.agent.linux.dhcp.Dnsmasq"},
    },
    constants.AGENT_PROCESS_L3: {
        "agent_type": constants.AGENT_TYPE_L3,
        "topic": topics.L3_AGENT,
        "availability_zone": "nova",
        "configurations": {
            "agent_mode": "legacy",
            "handle_internal_only_routers": True,
            "interface_driver": "openvswitch",
            "extensions": [],
        },
    },
    constants.AGENT_PROCESS_METADATA: {
        "agent_type": constants.AGENT_TYPE_METADATA,
        "topic": "N/A",
        "configurations": {"nova_metadata_host": "127.0.0.1", "nova_metadata_port": 8775},
    },
}


def describe(host: str, binary: str) -> Report:
    report = {**AGENTS[binary], "binary": binary, "host": host}
    if binary == constants.AGENT_PROCESS_OVS:
        report["configurations"] = configure_switch(host)
    return report


class Server:
    """The calls that agents send to the Neutron server."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        # Neutron creates its own context from this.
        self._context = context.get_admin_context_without_session().to_dict()

    def _call(self, topic: str, version: str, method: str, **values: Any) -> Any:
        target = oslo_messaging.Target(topic=topic, version=version, exchange=EXCHANGE)
        client = oslo_messaging.get_rpc_client(self._transport, target, timeout=TIMEOUT)
        return client.call(self._context, method, **values)

    def report(self, state: Report) -> None:
        self._call(
            topics.REPORTS,
            "1.4",
            "report_state",
            agent_state={"agent_state": {**state, "uuid": str(uuid.uuid4())}},
            time=timeutils.utcnow().strftime(constants.ISO8601_TIME_FORMAT),
        )

    def report_wired(self, host: str, ports: list[str]) -> None:
        """Say that the ports work: Neutron makes them ACTIVE and sends the event to Nova."""
        self._call(
            topics.PLUGIN,
            "1.9",
            "update_device_list",
            devices_up=ports,
            devices_down=[],
            agent_id=f"ovs-agent-{host}",
            host=host,
            refresh_tunnels=False,
        )

    def report_addresses(self, ports: list[str]) -> None:
        """Say what the DHCP agent of the network says, without which ports stay DOWN."""
        self._call(topics.PLUGIN, "1.5", "dhcp_ready_on_ports", port_ids=ports)

    def list_bound(self, host: str) -> list[str]:
        """Return the ports on a host: those that an agent finds in the switch when it starts."""
        found = self._call(
            topics.PLUGIN, "1.7", "get_ports_by_vnic_type_and_host", vnic_type="normal", host=host
        )
        return [port["id"] for port in found]


class Agents:
    """All agents that are alive, and an endpoint for the notices that Neutron sends to them."""

    target = oslo_messaging.Target(version="1.5")

    def __init__(self, state_file: Path, server: Server) -> None:
        self._state_file = state_file
        self._server = server
        self._alive: set[tuple[str, str]] = set()

    def read_wanted(self) -> set[tuple[str, str]]:
        """Return (host, binary) of the agents that should be alive."""
        state = json.loads(self._state_file.read_text(encoding="utf-8"))
        found = set()
        for host in state["computes"]:
            dead = state["dead_agents"].get(host, [])
            found |= {(host, binary) for binary in AGENTS if binary not in dead}
        return found

    def report_all(self) -> None:
        """Let each living agent report; the first report after a start says so, as agents do."""
        wanted = self.read_wanted()
        self._alive &= wanted
        for host, binary in sorted(wanted):
            started = (host, binary) not in self._alive
            state = describe(host, binary)
            if started:
                state["start_flag"] = True
            self._server.report(state)
            self._alive.add((host, binary))
            if started and binary == constants.AGENT_PROCESS_OVS:
                self._wire(host, self._server.list_bound(host))

    def port_update(self, ctxt: Any, port: Report, **kwargs: Any) -> None:
        """Wire a port as soon as Neutron has bound it to a host whose agent is alive."""
        host = port.get("binding:host_id", "")
        is_of_server = port.get("device_owner", "").startswith("compute:")
        if is_of_server and port["admin_state_up"] and port["status"] != "ACTIVE":
            self._wire(host, [port["id"]])

    def _wire(self, host: str, ports: list[str]) -> None:
        if ports and (host, constants.AGENT_PROCESS_OVS) in self._alive:
            self._server.report_wired(host, ports)
            self._server.report_addresses(ports)


def subscribe(transport: Any, agents: Agents) -> None:
    topic = topics.get_topic_name(topics.AGENT, topics.PORT, topics.UPDATE)
    target = oslo_messaging.Target(topic=topic, server="minicloud", fanout=True, exchange=EXCHANGE)
    oslo_messaging.get_rpc_server(transport, target, [agents], executor="threading").start()


def main(state_file: str, url: str, interval: float) -> None:
    logging.basicConfig(level=logging.INFO)
    # The context looks for a policy file, so the configuration has to be there.
    cfg.CONF([], project="neutron", default_config_files=[])
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url)
    agents = Agents(Path(state_file), Server(transport))
    subscribe(transport, agents)
    stop = threading.Event()
    while not stop.is_set():
        began = time.monotonic()
        try:
            agents.report_all()
        except Exception:
            # The server is not ready or restarts. A real agent repeats its report, too.
            LOG.exception("a round of reports failed")
        stop.wait(max(0.1, began + interval - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
