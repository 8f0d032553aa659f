"""Bandwidth that ports of a real Neutron have left on live servers (LP 1820588)."""

import dataclasses as d
import typing as t
import uuid

import pytest
from minicloud_ctl import databases, holdings, neutron, servers

from .support import Ansible, Minicloud, Placement, Run
from .world import World

REAL_PARTS = ("neutron",)
pytestmark = pytest.mark.long

KILOBITS, MORE_KILOBITS = 2000, 300
EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
TINY = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}


def bandwidth(kilobits: int) -> dict[str, int]:
    return {EGRESS: kilobits, INGRESS: kilobits}


@d.dataclass
class Leaks:
    """Servers with ports on one host, and runs about them."""

    host: str
    world: World
    placement: Placement
    ansible: Ansible

    def boot(self, *ports: str) -> str:
        return self.world.boot(self.host, networks=[{"port": port} for port in ports])

    def delete_port(self, port: str) -> None:
        """Delete a bound port in Neutron: Nova detaches it and keeps its allocation."""
        self.world.cloud.neutron("DELETE", f"/ports/{port}")
        self.world.wait(
            "Nova to hear of the deleted port",
            lambda: f"The bound port {port} is deleted in Neutron" in self.world.log(self.host),
        )

    def attach(self, server: str, port: str) -> None:
        document = {"interfaceAttachment": {"port_id": port}}
        self.world.cloud.nova("POST", f"/servers/{server}/os-interface", document)

    def detach(self, server: str, port: str) -> None:
        """Request Nova to detach a port, and do not wait for it."""
        self.world.cloud.nova("DELETE", f"/servers/{server}/os-interface/{port}")

    def held(self, server: str) -> dict[str, dict[str, int]]:
        """Return what a server has, by the names of the providers."""
        names = {uuid: name for name, uuid in self.placement.providers().items()}
        return {
            names[provider]: amounts for provider, amounts in self.placement.held(server).items()
        }

    def expected(self, kilobits: int) -> dict[str, dict[str, int]]:
        """Return what a server has whose ports request so much."""
        held = {self.host: TINY}
        if kilobits:
            held[neutron.bandwidth_provider(self.host)] = bandwidth(kilobits)
        return held

    def run(self, playbook: str, *arguments: str, **variables: t.Any) -> Run:
        # What was just written may be one half of a change.
        databases.set_allocations_back(self.world.paths, 24)
        named = {f"orphan_cleanup_{name}": value for name, value in variables.items()}
        return self.ansible.playbook(playbook, *arguments, variables=named)

    def detect(self, **variables: t.Any) -> dict[str, t.Any]:
        """Return the findings about servers of this test, by consumer."""
        run = self.run("detect_orphans", **variables)
        assert run.status == 0, run.output
        document = run.read("findings.json")
        assert document["summary"]["coverage"]["complete"], run.output
        entries = [*document["findings"], *document["undecided"], *document["protected"]]
        return {entry["consumer"]: entry for entry in entries}

    def clean(self, *arguments: str, **variables: t.Any) -> Run:
        chosen = {"remediate_kinds": ["leaked_port"], "kinds": ["leaked_port"], **variables}
        run = self.run("cleanup_orphans", *arguments, **chosen)
        assert run.status == 0, run.output
        return run


@pytest.fixture(name="leaks")
def _leaks(world: World, placement: Placement, ansible: Ansible) -> Leaks:
    host = f"leaks-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    return Leaks(host, world, placement, ansible)


def outcomes(run: Run) -> list[str]:
    return [entry["outcome"] for entry in run.read("remediation.json")["outcomes"]]


def test_leak_is_found_removed_as_that_part_alone_and_restored(leaks: Leaks) -> None:
    world = leaks.world
    lookalike = leaks.boot(world.bandwidth_port(KILOBITS))
    kept, lost = world.bandwidth_port(KILOBITS), world.bandwidth_port(MORE_KILOBITS)
    server = leaks.boot(kept, lost)
    leaks.delete_port(lost)
    leaking = leaks.expected(KILOBITS + MORE_KILOBITS)
    assert leaks.held(server) == leaking

    found = leaks.detect()
    assert (found[server]["kind"], found[server]["verdict"]) == ("leaked_port", "drifted")
    provider = neutron.bandwidth_provider(leaks.host)
    assert (
        f"{MORE_KILOBITS} {EGRESS}, {MORE_KILOBITS} {INGRESS} on {provider}"
        in found[server]["reason"]
    )
    assert kept in found[server]["reason"]
    assert lookalike not in found

    # Nothing is changed unless the kind is chosen.
    run = leaks.run("cleanup_orphans", kinds=["leaked_port"])
    assert run.status == 0 and leaks.held(server) == leaking, run.output
    assert "reduced" in outcomes(leaks.clean("--check"))
    assert leaks.held(server) == leaking
    run = leaks.clean()
    assert "reduced" in outcomes(run), run.output
    assert leaks.held(server) == leaks.expected(KILOBITS)
    assert leaks.held(lookalike) == leaks.expected(KILOBITS)
    journal = run.read("remediation.json")["journal"]
    found = leaks.detect(kinds=["leaked_port"])
    assert server not in found and lookalike not in found

    run = leaks.run("restore_allocations", journal=journal)
    assert run.status == 0 and leaks.held(server) == leaking, run.output
    assert leaks.detect()[server]["kind"] == "leaked_port"
    leaks.clean()
    # Nova goes on with what is left: it frees just what the other port has.
    leaks.world.cloud.neutron("DELETE", f"/ports/{kept}")
    servers.delete(world.cloud, server)
    holdings.await_providers(world.cloud, server)


def test_ports_that_nova_itself_attaches_and_detaches_leave_nothing(leaks: Leaks) -> None:
    world = leaks.world
    kept, other = world.bandwidth_port(KILOBITS), world.bandwidth_port(KILOBITS)
    server = leaks.boot(kept)
    leaks.attach(server, other)
    assert leaks.held(server) == leaks.expected(2 * KILOBITS)
    assert server not in leaks.detect(kinds=["leaked_port"])
    leaks.detach(server, other)
    world.wait(
        "Nova to free the bandwidth of the detached port",
        lambda: leaks.held(server) == leaks.expected(KILOBITS),
    )
    assert server not in leaks.detect(kinds=["leaked_port"])


def test_change_that_was_planned_before_a_port_was_attached_is_not_made(leaks: Leaks) -> None:
    """The new port has the same bandwidth as the lost one."""
    world = leaks.world
    lost, new = world.bandwidth_port(KILOBITS), world.bandwidth_port(KILOBITS)
    server = leaks.boot(lost)
    leaks.delete_port(lost)
    leaks.clean("--check", consumers=[server])
    plan = str(leaks.ansible.folder / "orphan-cleanup" / "plan.json")
    leaks.attach(server, new)
    assert leaks.held(server) == leaks.expected(2 * KILOBITS)
    run = leaks.run("cleanup_orphans", plan=plan, remediate_kinds=["leaked_port"])
    assert outcomes(run) == ["skipped"], run.output
    assert leaks.held(server) == leaks.expected(2 * KILOBITS)
    # The leak is still one, and only the new port explains its part.
    assert "reduced" in outcomes(leaks.clean(consumers=[server]))
    assert leaks.held(server) == leaks.expected(KILOBITS)


def test_port_that_the_server_got_in_neutron_alone_explains_nothing_for_certain(
    leaks: Leaks,
) -> None:
    """A port that names no provider may have been meant by what is left over."""
    world = leaks.world
    lost = world.bandwidth_port(KILOBITS)
    server = leaks.boot(lost)
    leaks.delete_port(lost)
    moved = world.bandwidth_port(KILOBITS)
    owner = {"device_id": server, "device_owner": "compute:nova"}
    world.cloud.neutron("PUT", f"/ports/{moved}", {"port": owner})
    found = leaks.detect(consumers=[server])
    assert (found[server]["kind"], found[server]["verdict"]) == ("leaked_port", "undecided")
    assert moved in found[server]["reason"]
    leaks.clean(consumers=[server])
    assert leaks.held(server) == leaks.expected(KILOBITS)


def test_leak_is_undecided_while_a_detach_waits_for_its_host(
    leaks: Leaks, minicloud: Minicloud
) -> None:
    """Nova would free the bandwidth again when its host carries it out."""
    world = leaks.world
    kept, lost, detached = (world.bandwidth_port(KILOBITS) for _port in range(3))
    server = leaks.boot(kept, lost)
    leaks.attach(server, detached)
    leaks.delete_port(lost)
    world.kill(leaks.host)
    leaks.detach(server, detached)
    found = leaks.detect(consumers=[server])
    assert (found[server]["kind"], found[server]["verdict"]) == ("leaked_port", "undecided")
    assert "detach_interface" in found[server]["reason"]
    before = leaks.held(server)
    leaks.clean(consumers=[server])
    assert leaks.held(server) == before
    minicloud.run("start", leaks.host)
    world.wait("the host to end the detach", lambda: world.ended_events(server, "detach_interface"))
    assert leaks.detect(consumers=[server])[server]["verdict"] == "drifted"
