"""`decommission_host` with a real Neutron.

The network agents, aggregates and other services of a host that goes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import configs, lifecycle, neutron, servers, services

from .interposer import Fault, interposed
from .local_server import LocalServer, QuietHandler
from .support import Aggregate, Ansible, Minicloud, Placement, Run
from .world import World

REAL_PARTS = ("neutron",)
pytestmark = pytest.mark.long

L3, DHCP = "neutron-l3-agent", "neutron-dhcp-agent"
SETTINGS = {
    "host_decommission_min_age": 0,
    "host_decommission_unknown_min_age": 0,
    "host_decommission_ignore_other_regions": True,
}


class Retired:
    """A host of one test, with everything that a run may take from it."""

    def __init__(
        self, world: World, minicloud: Minicloud, ansible: Ansible, placement: Placement
    ) -> None:
        self.world, self.minicloud, self.ansible = world, minicloud, ansible
        self.cloud, self.placement = world.cloud, placement
        self.host = f"retire-{uuid.uuid4().hex[:8]}"
        self.aggregates: list[Aggregate] = []
        world.own_host(self.host)

    @property
    def agents(self) -> dict[str, dict[str, t.Any]]:
        """The network agents of the host by binary."""
        listed = neutron.list_agents(self.cloud)
        return {binary: agent for (host, binary), agent in listed.items() if host == self.host}

    @property
    def record(self) -> dict[str, t.Any]:
        """The contents of `host.json` about the host."""
        path = self.ansible.folder / "host-decommission" / self.host / "host.json"
        return json.loads(path.read_text())["hosts"][0]

    @property
    def picture(self) -> dict[str, t.Any]:
        """Everything that a check must leave alone."""
        aggregates = self.cloud.nova("GET", "/os-aggregates")["aggregates"]
        hosts = {entry["name"]: sorted(entry["hosts"]) for entry in aggregates}
        agents = {binary: agent["id"] for binary, agent in self.agents.items()}
        return {**self.world.picture(), "aggregates": hosts, "agents": agents}

    def aggregate(self, *others: str, zone: str | None = None) -> str:
        """Create an aggregate of the host and others; returns its name."""
        name = f"{self.host}-{len(self.aggregates)}"
        self.aggregates.append(Aggregate(self.cloud, name, self.host, *others, zone=zone))
        return name

    def members(self) -> list[list[str]]:
        """Return the hosts of each aggregate."""
        return [aggregate.hosts for aggregate in self.aggregates]

    def give_trait(self, provider: str, trait: str) -> None:
        path = f"/resource_providers/{provider}/traits"
        traits = self.placement.get(path)
        self.placement.change("PUT", f"/traits/{trait}")
        self.placement.change("PUT", path, {**traits, "traits": [*traits["traits"], trait]})

    def bind_port(self, server: str) -> str:
        """Create a port of a server that is bound to the host; returns its uuid."""
        port = {
            "network_id": neutron.find_network(self.cloud),
            "device_owner": "compute:nova",
            "device_id": server,
            "binding:host_id": self.host,
        }
        return self.cloud.neutron("POST", "/ports", {"port": port})["port"]["id"]

    def die(self) -> None:
        """Let the host and its agents die."""
        self.minicloud.run("agent", self.host, "all", "down")
        self.world.kill(self.host)

    def run(self, *arguments: str, **variables: t.Any) -> Run:
        chosen = {f"host_decommission_{name}": value for name, value in variables.items()}
        return self.ansible.playbook(
            "decommission_host",
            *arguments,
            variables={**SETTINGS, "host_decommission_target": self.host, **chosen},
        )

    def succeed(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.run(*arguments, **variables)
        assert run.status == 0, run.output
        return run

    def fail(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.run(*arguments, **variables)
        assert run.status != 0 and "Traceback" not in run.output, run.output
        return run

    def is_gone(self) -> None:
        assert self.host not in self.cloud.compute_services()
        assert self.host not in self.cloud.hypervisors()
        assert self.host not in self.world.mapped_hosts()
        assert not [name for name in self.placement.providers() if name.startswith(self.host)]
        assert self.agents == {}
        for hosts in self.picture["aggregates"].values():
            assert self.host not in hosts


@pytest.fixture
def retired(
    world: World, minicloud: Minicloud, ansible: Ansible, placement: Placement
) -> Iterator[Retired]:
    retired = Retired(world, minicloud, ansible, placement)
    yield retired
    for aggregate in retired.aggregates:
        aggregate.delete()


def test_host_goes_with_its_dead_agents_and_its_aggregates(retired: Retired) -> None:
    disks = retired.aggregate("compute-1")
    zone = retired.aggregate("compute-2", zone=f"{retired.host}-zone")
    root = retired.world.provider(retired.host)
    retired.give_trait(root, "CUSTOM_RACK")
    retired.die()
    before = retired.picture

    foretold = retired.succeed("--check")

    assert retired.picture == before
    assert "L3 agent (dead)" in foretold.told
    done = retired.succeed()
    retired.is_gone()
    again = retired.succeed()
    assert (foretold.changed, again.changed) == (done.changed, 0)
    # Disabled, and deleted with its four agents.
    assert done.changed == 2
    assert "no network agent" in done.told
    assert retired.members() == [["compute-1"], ["compute-2"]]
    # The second run found nothing, and forgot nothing.
    record = retired.record["record"]
    assert record["begun"] and record["service"]["status"] == "enabled"
    assert [entry["name"] for entry in record["aggregates"]] == [disks, zone]
    assert record["aggregates"][1]["metadata"] == {"availability_zone": f"{retired.host}-zone"}
    assert record["nodes"] == [{"uuid": root, "name": retired.host}]
    provider = record["providers"][-1]
    assert provider["uuid"] == root and "CUSTOM_RACK" in provider["traits"]
    assert len(provider["aggregates"]) == 2
    assert provider["inventories"]["VCPU"]["allocation_ratio"] > 0
    assert len(record["providers"]) == 3


def test_whatever_still_needs_the_host_blocks_its_deletion(retired: Retired) -> None:
    """Each blocker by itself would stop the run, and none of them lets it remove anything."""
    retired.aggregate(zone=f"{retired.host}-zone")
    server = retired.world.boot("compute-1")
    network = neutron.find_network(retired.cloud)
    router = retired.cloud.neutron("POST", "/routers", {"router": {"name": "edge"}})["router"]["id"]
    l3, dhcp = retired.agents[L3]["id"], retired.agents[DHCP]["id"]
    # Neutron waits for the answer of the agent, and the agents here have none.
    retired.world.sql(
        "neutron",
        "INSERT INTO routerl3agentbindings (router_id, l3_agent_id, binding_index) "
        "VALUES (?, ?, 1)",
        router,
        l3,
    )
    retired.cloud.neutron("POST", f"/agents/{dhcp}/dhcp-networks", {"network_id": network})
    retired.world.kill(retired.host)
    port = retired.bind_port(server)
    before = retired.picture

    checked = retired.run("--check", stages=["check"])
    refused = retired.fail()
    allowed = retired.fail(delete_running_agents=True, allow_empty_zone=True)

    assert checked.status == 0
    kinds = sorted({blocker["kind"] for blocker in retired.record["blockers"]})
    assert kinds == ["agent_in_use", "port"]
    for text in (f"Port {port}", f"remove router --l3 {l3} {router}", f"--dhcp {dhcp} {network}"):
        assert text in checked.told and text in refused.told and text in allowed.told
    for text in ("is alive, and would register", f"last host of availability zone {retired.host}"):
        assert text in checked.told and text in refused.told and text not in allowed.told
    # Only the service was disabled, which is a stage before the deletion.
    for service in before["services"], retired.picture["services"]:
        service.pop(retired.cloud.compute_services()[retired.host]["id"])
    before["services"] = retired.picture["services"]
    assert {**retired.picture, "services": None} == {**before, "services": None}

    retired.cloud.neutron("DELETE", f"/agents/{l3}/l3-routers/{router}")
    retired.cloud.neutron("DELETE", f"/agents/{dhcp}/dhcp-networks/{network}")
    still = retired.fail(delete_running_agents=True, allow_empty_zone=True)
    assert f"Port {port}" in still.told and retired.host in retired.cloud.hypervisors()
    # The port stays, and is nobody's.
    retired.cloud.neutron("PUT", f"/ports/{port}", {"port": {"device_id": str(uuid.uuid4())}})
    retired.minicloud.run("agent", retired.host, "all", "down")
    retired.succeed(allow_empty_zone=True)
    retired.is_gone()
    retired.cloud.neutron("DELETE", f"/ports/{port}")
    retired.cloud.neutron("DELETE", f"/routers/{router}")


def test_everything_on_a_next_page_is_found(retired: Retired) -> None:
    """Neutron answers with pages of one row, whatever a client asks for."""
    server = retired.world.boot("compute-1")
    retired.die()
    ports = [retired.bind_port(server) for _number in range(3)]
    with short_pages(retired):
        refused = retired.fail()
        assert all(f"Port {port}" in refused.told for port in ports)
        assert retired.host in retired.cloud.hypervisors()
        for port in ports:
            retired.cloud.neutron("DELETE", f"/ports/{port}")
        retired.succeed()
    retired.is_gone()


@contextlib.contextmanager
def short_pages(retired: Retired) -> Iterator[None]:
    """Let Neutron have pages of one row."""
    paths = retired.world.paths
    settings = configs.neutron_folder(paths) / "local.conf"
    usual = settings.read_text()
    settings.write_text(f"{usual}\npagination_max_limit = 1\n")
    server = services.neutron(paths, retired.world.state)[0]
    lifecycle.restart(paths, [server])
    try:
        listed = retired.cloud.neutron("GET", "/agents")
        assert len(listed["agents"]) == 1 and listed["agents_links"]
        yield
    finally:
        settings.write_text(usual)
        lifecycle.restart(paths, [server])


def test_a_decommissioning_that_was_given_up_does_not_win_over_what_came_after(
    retired: Retired,
) -> None:
    former = retired.aggregate("compute-1")
    # It is disabled, and then blocked by its living nova-compute and agents.
    retired.fail()
    assert retired.record["record"]["service"]["status"] == "enabled"
    servers.update_service(retired.cloud, retired.host, {"status": "enabled"})
    retired.give_trait(retired.world.provider(retired.host), "CUSTOM_LATER")
    later = retired.aggregate("compute-2")
    retired.aggregates[0].remove(retired.host)
    reason = {"status": "disabled", "disabled_reason": "broken fan"}
    servers.update_service(retired.cloud, retired.host, reason)
    retired.die()

    retired.succeed()

    retired.is_gone()
    record = retired.record["record"]
    assert [entry["name"] for entry in record["aggregates"]] == [later] != [former]
    assert "CUSTOM_LATER" in record["providers"][-1]["traits"]
    assert (record["service"]["disabled_reason"], record["begun"]) == ("broken fan", True)
    assert record["cloud"]["region"] == "RegionOne"
    # The same folder is of no use to another cloud.
    path = retired.ansible.folder / "host-decommission" / retired.host / "host.json"
    document = json.loads(path.read_text())
    document["hosts"][0]["record"]["cloud"]["region"] = "RegionTwo"
    path.write_text(json.dumps(document))
    assert "of another cloud" in retired.fail().told


def test_agents_that_are_to_stay_are_left_alone(retired: Retired) -> None:
    retired.world.kill(retired.host)
    agents = {binary: agent["id"] for binary, agent in retired.agents.items()}

    # As a text, as it comes from the command line.
    done = retired.succeed("-e", "host_decommission_delete_agents=false")

    assert "removed completely" not in done.told and "is gone:" in done.told
    assert {binary: agent["id"] for binary, agent in retired.agents.items()} == agents
    assert retired.host not in retired.cloud.compute_services()
    # A check of what is left finds the agents, of which neither Nova nor Placement knows anything.
    left = retired.run("--check", stages=["check"])
    assert left.status == 0 and "knows it" in left.told
    assert "agents" in left.told and "is alive" in left.told
    retired.minicloud.run("agent", retired.host, "all", "down")
    assert retired.succeed().changed == 1
    retired.is_gone()


@pytest.mark.follows("host_report.find_agent_blockers")
def test_running_agents_are_deleted_on_request_and_may_return(retired: Retired) -> None:
    retired.world.kill(retired.host)
    agents = {agent["id"] for agent in retired.agents.values()}

    retired.succeed(delete_running_agents=True)

    assert not agents & {agent["id"] for agent in retired.agents.values()}
    assert retired.host not in retired.cloud.compute_services()
    retired.minicloud.run("agent", retired.host, "all", "down")
    retired.succeed()
    retired.is_gone()


class Cinder(LocalServer):
    """The one request to Cinder that there is."""

    def __init__(self, services: list[dict[str, str]]) -> None:
        self.requests: list[str] = []
        self.status = 200
        cinder = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                cinder.requests.append(self.path)
                assert self.path == "/v3/project/os-services" and self.headers["X-Auth-Token"]
                document: dict[str, t.Any] = {"services": services}
                if cinder.status != 200:
                    document = {"forbidden": {"code": 403, "message": "not yours"}}
                body = json.dumps(document).encode()
                self.send_response(cinder.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)
        self.url = f"{self.address}/v3/project"


def test_services_of_cinder_are_named_and_left_alone(retired: Retired) -> None:
    service = {"binary": "cinder-volume", "status": "enabled", "state": "down", "zone": "nova"}
    rows = [{**service, "host": f"{retired.host}@lvm"}, {**service, "host": "compute-1@lvm"}]
    command = f"cinder-manage service remove cinder-volume {retired.host}@lvm"
    retired.world.kill(retired.host)

    with Cinder(rows) as cinder, retired.world.service("block-storage", cinder.url):
        cinder.status = 403
        hidden = retired.succeed("--check", delete_agents=False)
        cinder.status = 200
        foretold = retired.succeed("--check", delete_agents=False)
        done = retired.succeed(delete_agents=False)

    assert "services of Cinder" in hidden.told and command not in hidden.told
    assert command in foretold.told
    assert f"was left alone: {command}" in done.told
    assert "compute-1@lvm" not in done.told and cinder.requests
    retired.minicloud.run("agent", retired.host, "all", "down")
    retired.succeed()
    retired.is_gone()


@pytest.fixture
def engine(retired: Retired, tmp_path: Path) -> Path:
    """A container engine that can do two things: say that nova-compute runs, and end it."""
    script = tmp_path / "engine"
    log = tmp_path / "engine.log"
    command = [str(retired.minicloud.root / "tests" / "minicloud" / "minicloud")]
    command += ["--home", str(retired.minicloud.home), "kill", retired.host]
    script.write_text(
        f"""#!{sys.executable}
import pathlib, subprocess, sys
log = pathlib.Path({str(log)!r})
ran = log.read_text() if log.exists() else ""
log.write_text(ran + " ".join(sys.argv[1:]) + "\\n")
if sys.argv[1:] == ["inspect", "--format", "{{{{.State.Running}}}}", "nova_compute"]:
    print("false" if "stop" in ran else "true")
elif sys.argv[1:] == ["stop", "nova_compute"]:
    subprocess.run({command!r}, check=True)
elif sys.argv[1:] != ["inspect", "nova_compute"]:
    sys.exit("unknown command")
"""
    )
    script.chmod(0o755)
    return script


def test_nova_compute_is_stopped_where_the_inventory_reaches_it(
    retired: Retired, engine: Path
) -> None:
    retired.minicloud.run("agent", retired.host, "all", "down")
    stop = {
        "stop_container": "nova_compute",
        "container_engine": str(engine),
        "stop_host": "localhost",
        "become": False,
    }
    log = engine.with_name("engine.log")

    elsewhere = retired.fail(**{**stop, "stop_host": "elsewhere"})
    assert "Nothing was changed" in elsewhere.told and not log.exists()
    foretold = retired.succeed("--check", **stop)
    assert "stop nova_compute" not in log.read_text()
    assert retired.cloud.compute_services()[retired.host]["status"] == "enabled"
    done = retired.succeed(**stop)

    retired.is_gone()
    # Disabled, stopped and deleted.
    assert foretold.changed == done.changed == 3
    assert log.read_text().count("stop nova_compute") == 1
    assert retired.succeed(**stop).changed == 0


def test_a_nova_compute_that_goes_on_running_is_not_deleted(
    retired: Retired, tmp_path: Path
) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\necho true\n")
    engine.chmod(0o755)
    retired.minicloud.run("agent", retired.host, "all", "down")

    run = retired.fail(
        stop_container="nova_compute",
        container_engine=str(engine),
        stop_host="localhost",
        stop_timeout=10,
        become=False,
    )

    assert f"nova-compute of {retired.host}" in run.told
    assert retired.host in retired.cloud.compute_services() and len(retired.agents) == 4


def test_a_run_that_is_killed_at_any_change_is_continued(retired: Retired) -> None:
    """Each run is killed before or after one of its changes, and the last one is not."""
    # Without its zone, the host would be the only one in the default zone.
    neighbor = f"neighbor-of-{retired.host}"
    retired.world.own_host(neighbor)
    zone = retired.aggregate(neighbor, zone=f"{retired.host}-zone")
    disks = retired.aggregate("compute-2")
    retired.die()
    running: list[subprocess.Popen[str]] = []

    def kill() -> Fault:
        os.killpg(running[-1].pid, signal.SIGKILL)
        return Fault.NO_ANSWER

    points: list[tuple[str, str, str, str]] = [
        ("nova", "PUT", "/os-services/", "after"),
        ("nova", "POST", "/os-aggregates/.*/action", "after"),
        ("nova", "POST", "/os-aggregates/.*/action", "before"),
        ("nova", "DELETE", "/os-services/", "before"),
        ("nova", "DELETE", "/os-services/", "after"),
        # All agents are deleted at once: after this one, at least one of them is left.
        ("neutron", "DELETE", "/agents/", "before"),
        ("neutron", "DELETE", "/agents/", "after"),
    ]
    with interposed(retired.ansible, retired.minicloud) as wires:
        for service, method, path, moment in points:
            wire = getattr(wires, service)
            hook = wire.on(method, path, **{moment: kill})
            variables = {**SETTINGS, "host_decommission_target": retired.host}
            running.append(retired.ansible.launch("decommission_host", variables))
            output, _errors = running[-1].communicate()
            assert running[-1].returncode == -signal.SIGKILL and hook.ran, output
            wire.clear()
        retired.succeed()

    retired.is_gone()
    record = retired.record["record"]
    assert [entry["name"] for entry in record["aggregates"]] == [zone, disks]
    assert record["service"]["status"] == "enabled" and len(record["providers"]) == 3
    assert retired.members() == [[neighbor], ["compute-2"]]


def test_agents_that_the_credentials_may_not_see_do_not_count_as_deleted(retired: Retired) -> None:
    """Neutron shows them to nobody else, and a 404 would look as if they were gone."""
    retired.world.kill(retired.host)
    options = {"cloud": "minicloud", "host": retired.host, "state": "absent"}

    refused = retired.ansible.module("compute_host", **options, ignore_other_regions=True)
    assert {entry["kind"] for entry in refused["blockers"]} == {"agent_up"}
    assert len(refused["blockers"]) == len(retired.agents) == 4
    with interposed(retired.ansible, retired.minicloud) as wires:
        hook = wires.neutron.on("GET", "/agents", nth=0, before=lambda: Fault.CONFLICT)
        done = retired.ansible.module("compute_host", **options, ignore_other_regions=True)

    assert hook.ran and done["deleted"]["service"] and not done["deleted"]["agents"]
    assert "network agents" in str(done["warnings"])
    assert len(retired.agents) == 4
    retired.minicloud.run("agent", retired.host, "all", "down")
    again = retired.ansible.module("compute_host", **options)
    assert len(again["deleted"]["agents"]) == 4 and not retired.agents
