"""Hosts that are drained on a real Nova: what the check says is what happens, and none is lost.

They drain a host of their own, so that the hosts of the cloud stay as they are.
"""

import json
import os
import random
import signal
import subprocess
import typing as t
import uuid
from collections.abc import Iterator, Sequence

import pytest
from minicloud_ctl import servers

from .interposer import Fault, Wires
from .support import Ansible, Placement, told
from .world import World

STATES = {"ACTIVE": None, "PAUSED": "pause", "SHUTOFF": "os-stop"}
ACTION = "/servers/[^/]*/action$"

TRAIT = "CUSTOM_ONLY_ON_THE_DRAINED_HOST"

# How many random clouds are drained.
CLOUDS = int(os.environ.get("DRAIN_CLOUDS", "5"))


class Drained:
    """A host of a test, and the module on it."""

    def __init__(self, world: World, ansible: Ansible, host: str) -> None:
        self.world = world
        self.ansible = ansible
        self.host = host
        self.statuses: dict[str, str] = {}

    def boot(self, name: str, status: str = "ACTIVE", flavor: str = "m1.tiny") -> str:
        server = self.world.boot(self.host, flavor, name=name)
        action = STATES[status]
        if action:
            servers.act(self.world.cloud, server, action)
            servers.settle(self.world.cloud, server, self.host, status)
        self.statuses[server] = status
        return server

    @property
    def arguments(self) -> dict[str, t.Any]:
        return {"host": self.host, "output_dir": str(self.ansible.folder / "drain")}

    def check(self, **options: t.Any) -> dict[str, t.Any]:
        """Return the plan by the names of the servers."""
        found = self.ansible.module("host_drain", "--check", **self.arguments, **options)
        assert not found["failed"], found
        return {entry["name"]: entry for entry in found["plan"]["servers"]}

    def run(self, **options: t.Any) -> dict[str, t.Any]:
        return self.ansible.module("host_drain", **self.arguments, **options)

    def start(self, **options: t.Any) -> subprocess.Popen[str]:
        return self.ansible.started("host_drain", **self.arguments, **options)

    def find_host(self, server: str) -> str | None:
        return servers.get(self.world.cloud, server)["OS-EXT-SRV-ATTR:host"]

    def have_moved(self, *moved: str) -> None:
        """Check that servers are on other hosts, and otherwise as they were."""
        for server in moved:
            found = servers.get(self.world.cloud, server)
            assert found["OS-EXT-SRV-ATTR:host"] != self.host, found["name"]
            assert found["status"] == self.statuses[server], found["name"]
            assert found["OS-EXT-STS:task_state"] is None, found["name"]

    def reopen(self) -> None:
        """Delete what is still on the host or on its way from it, and enable it."""
        cloud = self.world.cloud
        listed = cloud.nova("GET", f"/servers?all_tenants=1&host={self.host}")["servers"]
        moves = cloud.nova("GET", f"/os-migrations?host={self.host}", version="2.80")["migrations"]
        left = {server["id"] for server in listed}
        left |= {move["instance_uuid"] for move in moves if move["status"] not in servers.ENDED}
        for server in left:
            servers.delete(cloud, server)
        servers.update_service(cloud, self.host, {"status": "enabled"})


@pytest.fixture(scope="module")
def own_host(world: World) -> str:
    world.own_host("drain-1")
    return "drain-1"


@pytest.fixture
def drained(world: World, ansible: Ansible, own_host: str) -> Iterator[Drained]:
    """A host without servers, which is enabled."""
    drained = Drained(world, ansible, own_host)
    yield drained
    drained.reopen()


def by_name(result: dict[str, t.Any]) -> dict[str, dict[str, t.Any]]:
    return {entry["name"]: entry for entry in result["outcomes"]}


def outcomes(result: dict[str, t.Any]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in result["outcomes"]}


def require_trait(drained: Drained) -> str:
    """Return a flavor that requires a trait of this host alone."""
    drained.world.give_trait(TRAIT, [drained.host])
    return drained.world.flavor(1, 512, 1, extra_specs={f"trait:{TRAIT}": "required"})


def boot_in_group(drained: Drained) -> str:
    """Boot a member of an anti-affinity group whose other member is on compute-2."""
    cloud = drained.world.cloud
    group = cloud.nova(
        "POST",
        "/os-server-groups",
        {"server_group": {"name": f"group-{uuid.uuid4()}", "policy": "anti-affinity"}},
    )["server_group"]["id"]
    made = []
    for name, host in (("elsewhere", "compute-2"), ("in-group", drained.host)):
        document = {
            "name": name,
            "imageRef": cloud.image(),
            "flavorRef": cloud.flavor("m1.tiny"),
            "networks": "none",
            "availability_zone": f"nova:{host}",
        }
        body = {"server": document, "os:scheduler_hints": {"group": group}}
        made.append(cloud.nova("POST", "/servers", body)["server"]["id"])
        servers.settle(cloud, made[-1], host)
    drained.world.forget(*made)
    drained.statuses[made[1]] = "ACTIVE"
    return made[1]


def boot_too_large(drained: Drained, placement: Placement) -> str:
    """Boot a server for which the other hosts have too little memory."""
    world = drained.world
    own = placement.get(f"/resource_providers/{world.provider(drained.host)}/inventories")
    inventory = own["inventories"]["MEMORY_MB"]
    capacity = int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"])
    half = min(capacity // 2, inventory["max_unit"] - 20480)
    for host, provider in world.cloud.hypervisors().items():
        if host == drained.host:
            continue
        used = placement.get(f"/resource_providers/{provider}/usages")["usages"]
        free = capacity - used.get("MEMORY_MB", 0)
        world.fill(host, {"MEMORY_MB": free - half})
    flavor = world.flavor(vcpus=1, ram=half + 10240, disk=1)
    return drained.boot("large", flavor=flavor)


@pytest.mark.long
def test_a_drain_that_is_killed_at_any_request_is_continued(drained: Drained, wires: Wires) -> None:
    """Each run is killed before or after a request that moves or confirms, and started again."""
    hosted = [drained.boot(f"server-{number}", "SHUTOFF") for number in (1, 2)]
    hosted += [drained.boot(f"server-{number}") for number in (3, 4)]
    running: list[subprocess.Popen[str]] = []

    def kill() -> Fault:
        running[-1].kill()
        return Fault.NO_ANSWER

    points: list[dict[str, t.Any]] = [
        {"before": kill},
        {"after": kill},
        {"after": kill, "body": "confirmResize"},
        {"before": kill, "body": "confirmResize"},
        {"after": kill, "body": "os-migrateLive"},
    ]
    for point in points:
        wires.nova.clear()
        hook = wires.nova.on("POST", ACTION, **point)
        running.append(drained.start(cloud="minicloud"))
        if told(running[-1]):
            # Nothing was left to be killed at.
            assert not hook.ran
            break
        assert running[-1].returncode == -signal.SIGKILL

    wires.nova.clear()
    drained.run(cloud="minicloud")
    confirm_by_hand(drained, hosted)
    result = drained.run(cloud="minicloud")
    assert not result["failed"] and result["empty"], result["msg"]
    drained.have_moved(*hosted)
    for server in hosted:
        found = servers.migrations(drained.world.cloud, server)
        assert [entry["status"] for entry in found] in (["completed"], ["confirmed"])


def confirm_by_hand(drained: Drained, hosted: Sequence[str]) -> None:
    """Confirm the migration whose request may be that of somebody else: its id was lost."""
    cloud = drained.world.cloud
    waiting = [one for one in hosted if servers.get(cloud, one)["status"] == "VERIFY_RESIZE"]
    assert len(waiting) <= 1
    for server in waiting:
        servers.act(cloud, server, "confirmResize")
        servers.settle(cloud, server, None, "SHUTOFF")


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_drain_that_is_asked_to_stop_says_what_is_under_way(
    drained: Drained, wires: Wires, number: signal.Signals
) -> None:
    hosted = [drained.boot(f"server-{index}", "SHUTOFF") for index in (1, 2, 3)]
    running: list[subprocess.Popen[str]] = []
    wires.nova.on("POST", ACTION, after=lambda: running[-1].send_signal(number))
    running.append(drained.start(cloud="minicloud", parallel=1))

    result = told(running[-1])

    assert result["failed"] and number.name in result["msg"]
    assert sorted(outcomes(result).values()) == ["skipped", "skipped", "under_way"]
    rest = drained.run(cloud="minicloud")
    assert set(outcomes(rest).values()) == {"moved"} and rest["empty"], rest["msg"]
    drained.have_moved(*hosted)


def is_migrated(world: World, server: str) -> None:
    servers.act(world.cloud, server, "migrate")
    servers.settle(world.cloud, server, None, "VERIFY_RESIZE")


@pytest.mark.long
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF"])
def test_a_failed_move_is_reported_in_the_words_of_nova(
    drained: Drained, wires: Wires, status: str
) -> None:
    """All other hosts are disabled between the plan and the request."""
    world = drained.world
    server = drained.boot("server", status)
    others = [host for host in world.cloud.compute_services() if host != drained.host]

    def set_others(status: str) -> None:
        for host in others:
            servers.update_service(world.cloud, host, {"status": status})

    wires.nova.on("POST", ACTION, before=lambda: set_others("disabled"))
    try:
        result = drained.run(cloud="minicloud", retries=0)
    finally:
        set_others("enabled")

    assert result["failed"] and outcomes(result) == {"server": "failed"}
    assert "No valid host" in by_name(result)["server"]["reason"]
    assert drained.find_host(server) == drained.host
    assert servers.get(world.cloud, server)["status"] == status
    assert outcomes(drained.run(cloud="minicloud")) == {"server": "moved"}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CLOUDS))
def test_what_the_check_says_is_what_happens(drained: Drained, seed: int) -> None:
    """Servers of random sizes and states: each moves as predicted, or the difference is named."""
    chance = random.Random(seed)
    flavors = ["m1.tiny", "m1.small", "m1.medium", require_trait(drained)]
    names = [f"server-{number}" for number in range(chance.randint(2, 5))]
    hosted: dict[str, str] = {}
    for name in names:
        hosted[name] = drained.boot(name, chance.choice(list(STATES)), chance.choice(flavors))
    disturb(drained, chance, list(hosted.values()))
    predicted = drained.check()

    result = drained.run(parallel=chance.randint(1, 3))

    assert compare(predicted, result) == [], json.dumps([seed, predicted, result], indent=1)
    for name, server in hosted.items():
        stays = predicted[name]["how"] == "stays"
        assert (drained.find_host(server) == drained.host) == stays, (seed, name)


def disturb(drained: Drained, chance: random.Random, hosted: Sequence[str]) -> None:
    """Let some servers have something that matters to a move."""
    world = drained.world
    for server in hosted:
        what = chance.choice(["nothing", "nothing", "lock", "suspend"])
        status = drained.statuses[server]
        if what == "lock":
            servers.act(world.cloud, server, "lock", {})
        elif what == "suspend" and status == "ACTIVE":
            servers.act(world.cloud, server, "suspend")
            servers.settle(world.cloud, server, drained.host, "SUSPENDED")


def compare(predicted: dict[str, t.Any], result: dict[str, t.Any]) -> list[str]:
    """Return what happened in another way than predicted."""
    differences = []
    for name, outcome in by_name(result).items():
        entry = predicted[name]
        if entry["how"] == "stays" and outcome["outcome"] != "left":
            differences.append(f"{name} should stay, and is {outcome['outcome']}")
        elif entry["how"] != "stays":
            moved = outcome["outcome"] == "moved" and outcome["how"] == entry["how"]
            if not moved or outcome["to"] not in entry["hosts"]:
                differences.append(f"{name} should move {entry['how']}: {outcome}")
    return differences
