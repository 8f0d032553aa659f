"""The whole way of one host: drained, retired, deployed again under its name, and filled again.

Each playbook is killed in the middle and started again.
"""

import os
import signal
import subprocess
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers

from .interposer import Fault, Wires
from .support import Ansible, Minicloud, Placement
from .test_drain import ACTION, boot_in_group, boot_too_large
from .test_drain_host import Drained
from .world import CLAIM, World

pytestmark = pytest.mark.long

HOST = "way-1"
TRAIT = "CUSTOM_RACK_7"
RETIRED = {"min_age": 0, "unknown_min_age": 0, "ignore_other_regions": True}
SERVERS = {
    "active-1": "ACTIVE",
    "active-2": "ACTIVE",
    "active-3": "ACTIVE",
    "paused-1": "PAUSED",
    "paused-2": "PAUSED",
    "off-1": "SHUTOFF",
    "off-2": "SHUTOFF",
    "off-3": "SHUTOFF",
}


class Way(Drained):
    """A host on its way."""

    def is_killed(
        self, wires: Wires, playbook: str, method: str, path: str, **variables: t.Any
    ) -> None:
        """Run a playbook and kill it with SIGKILL right after a request."""
        chosen = {f"host_decommission_{name}": value for name, value in variables.items()}
        given = {"host_decommission_target": self.host, **chosen}
        running: list[subprocess.Popen[str]] = []

        def kill() -> Fault:
            os.killpg(running[-1].pid, signal.SIGKILL)
            return Fault.NO_ANSWER

        hook = wires.nova.on(method, path, after=kill)
        running.append(
            self.ansible.launch(playbook, {**given, "host_decommission_cloud": "minicloud"})
        )
        output = running[-1].communicate(timeout=300)[0]
        assert hook.ran and running[-1].returncode == -signal.SIGKILL, output
        wires.nova.clear()

    def give(self, placement: Placement) -> str:
        """Put the host into an aggregate, and give it a trait; returns the aggregate's name."""
        cloud, name = self.world.cloud, f"rack-{self.host}"
        body = {"aggregate": {"name": name, "availability_zone": None}}
        number = cloud.nova("POST", "/os-aggregates", body)["aggregate"]["id"]
        for host in (self.host, "compute-4"):
            action = {"add_host": {"host": host}}
            cloud.nova("POST", f"/os-aggregates/{number}/action", action)
        self.world._undo.callback(self._forget, number)
        path = f"/resource_providers/{self.world.provider(self.host)}/traits"
        traits = placement.get(path)
        placement.change("PUT", f"/traits/{TRAIT}")
        placement.change("PUT", path, {**traits, "traits": [*traits["traits"], TRAIT]})
        return name

    def aggregates(self) -> list[str]:
        """Return the names of the aggregates that the host is in."""
        listed = self.world.cloud.nova("GET", "/os-aggregates")["aggregates"]
        return [entry["name"] for entry in listed if self.host in entry["hosts"]]

    def _forget(self, number: int) -> None:
        cloud = self.world.cloud
        for host in cloud.nova("GET", f"/os-aggregates/{number}")["aggregate"]["hosts"]:
            action = {"remove_host": {"host": host}}
            cloud.nova("POST", f"/os-aggregates/{number}/action", action)
        cloud.nova("DELETE", f"/os-aggregates/{number}")


@pytest.fixture
def way(world: World, ansible: Ansible, minicloud: Minicloud) -> Iterator[Way]:
    minicloud.scenario("healthy")
    world.own_host(HOST)
    way = Way(world, ansible, HOST)
    yield way
    way.reopen()


def test_host_goes_its_whole_way_and_is_filled_again(
    way: Way, placement: Placement, wires: Wires
) -> None:
    world, cloud = way.world, way.world.cloud
    hosted = {name: way.boot(name, status) for name, status in SERVERS.items()}
    hosted["locked"] = way.boot("locked")
    servers.act(cloud, hosted["locked"], "lock", {})
    hosted["in-group"] = boot_in_group(way)
    hosted["resized"] = world.boot("compute-3", name="resized")
    servers.migrate(cloud, hosted["resized"], HOST)
    hosted["large"] = boot_too_large(way, placement)
    assert len(hosted) == 12
    rack = way.give(placement)
    former = world.provider(HOST)

    # Drain
    way.is_killed(wires, "drain_host", "POST", ACTION, parallel=3)
    left = way.refused(parallel=3, cloud="minicloud")
    assert "2 left." in left.told
    servers.confirm(cloud, hosted["resized"])
    way.statuses[hosted["resized"]] = "ACTIVE"
    servers.delete(cloud, hosted.pop("large"))
    way.done(cloud="minicloud")
    way.have_moved(*hosted.values())
    kept = {server: placement.held(server) for server in hosted.values()}
    assert former not in {provider for held in kept.values() for provider in held}

    # Retire
    world.kill(HOST)
    way.is_killed(wires, "decommission_host", "DELETE", "/os-services/", **RETIRED)
    way.done(playbook="decommission_host", cloud="minicloud", **RETIRED)
    assert HOST not in cloud.compute_services() and HOST not in placement.providers()
    assert way.aggregates() == []
    assert {server: placement.held(server) for server in hosted.values()} == kept

    # Redeploy
    (world.paths.compute(HOST) / "compute_id").unlink(missing_ok=True)
    world.own_host(HOST)
    provider = cloud.hypervisors()[HOST]
    assert provider != former
    way.is_killed(wires, "redeploy_host", "POST", "/os-aggregates/.*/action$", **RETIRED)
    whole = way.done(playbook="redeploy_host", cloud="minicloud", **RETIRED)
    assert f"{HOST} is complete." in whole.told
    assert way.aggregates() == [rack]
    assert TRAIT in placement.get(f"/resource_providers/{provider}/traits")["traits"]

    # Fill
    assert placement.held(world.boot(HOST)) == {provider: CLAIM}
    back = way.done(cloud="minicloud", **{"return": True, "move_back": True})
    assert "in service" in back.told
    assert way.find_host(hosted["active-1"]) == HOST
    for server in hosted.values():
        (held,) = placement.held(server)
        assert held == cloud.hypervisors()[str(way.find_host(server))]
