"""`drain_host` and the stage `drain` of `decommission_host`, as users run them on a real Nova.

What the check shows is what happens, and a host that is dead needs the operator's word. The tests
of the module have a run that is killed, and what users do meanwhile.
"""

import json
import re
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from .interposer import Wires
from .support import Ansible, Placement, Run
from .test_drain import STATES, boot_in_group, boot_too_large
from .test_drain import Drained as DrainedModule
from .world import World

# A line of the plan: how, name, uuid, status, flavor, to.
PLANNED = re.compile(
    r"^(live|cold|evacuation|stays) +(\S+) +[0-9a-f-]{36} +\S+ +\S+(?: +(\S+))?$", re.MULTILINE
)
YOUNG = {
    "host_decommission_min_age": 0,
    "host_decommission_unknown_min_age": 0,
    # The catalogue of the minicloud always has a second region.
    "host_decommission_ignore_other_regions": True,
}


class Drained(DrainedModule):
    """A host of a test, and the playbooks on it."""

    def play(self, *arguments: str, playbook: str = "drain_host", **variables: t.Any) -> Run:
        prefixed = {f"host_decommission_{name}": value for name, value in variables.items()}
        given = {"host_decommission_target": self.host, **prefixed}
        run = self.ansible.playbook(playbook, *arguments, variables=given)
        assert "Traceback" not in run.output, run.output
        return run

    def done(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.play(*arguments, **variables)
        assert run.status == 0, run.output
        return run

    def refused(self, *arguments: str, **variables: t.Any) -> Run:
        run = self.play(*arguments, **variables)
        assert run.status == 2, run.output
        return run

    @property
    def state(self) -> str:
        return str(self.world.cloud.compute_services()[self.host]["status"])

    def die(self) -> None:
        self.world.crash(self.host)
        services = self.world.cloud.compute_services
        wait_for("the service to be down", lambda: services()[self.host]["state"] == "down")


@pytest.fixture(scope="module")
def own_host(world: World) -> str:
    world.own_host("drain-3")
    return "drain-3"


@pytest.fixture
def drained(world: World, ansible: Ansible, own_host: str) -> Iterator[Drained]:
    """A host without servers, which is enabled."""
    drained = Drained(world, ansible, own_host)
    yield drained
    drained.reopen()


@pytest.fixture
def doomed(world: World, ansible: Ansible) -> Drained:
    """A host to be killed."""
    world.own_host("drain-4")
    return Drained(world, ansible, "drain-4")


def read_plan(run: Run) -> dict[str, tuple[str, str]]:
    """Return how each server would leave, and where to, by its name."""
    return {name: (how, to) for how, name, to in PLANNED.findall(run.output)}


@pytest.mark.long
def test_a_host_is_drained_and_returned_by_the_playbook(drained: Drained) -> None:
    """The return has another folder, and of the drain nothing but its artifact."""
    server = drained.boot("web-1")
    drained.ansible.environment["ANSIBLE_SHOW_CUSTOM_STATS"] = "1"

    done = drained.done()

    drained.have_moved(server)
    assert read_plan(done)["web-1"][0] == "live" and drained.state == "disabled"
    assert f"1 of 1 web-1 {drained.host} -> {drained.find_host(server)}" in done.told
    assert "1 moved (1 live)." in done.told and "drain-3 is empty." in done.told

    back = {"return": True, "move_back": True, "output_dir": "elsewhere"}
    lost = drained.refused(**back)
    assert f"nothing about {drained.host}" in lost.told and drained.state == "disabled"
    (exported,) = re.findall(r"\tRUN: (.*)", done.output)
    artifact = json.loads(exported)["host_decommission_drained"]
    assert "web-1" not in exported and artifact[0]["packed"]
    drained.done(**back, journal=artifact)

    assert drained.find_host(server) == drained.host and drained.state == "enabled"


@pytest.mark.long
def test_a_host_with_twelve_servers_goes_as_its_check_said(
    drained: Drained, placement: Placement
) -> None:
    world, cloud = drained.world, drained.world.cloud
    moving = {f"{status.lower()}-{number}": status for status in STATES for number in (1, 2)}
    hosted = {name: drained.boot(name, status) for name, status in moving.items()}
    hosted["locked"] = drained.boot("locked")
    servers.act(cloud, hosted["locked"], "lock", {})
    hosted["in-group"] = boot_in_group(drained)
    hosted["suspended"] = drained.boot("suspended")
    servers.act(cloud, hosted["suspended"], "suspend")
    servers.settle(cloud, hosted["suspended"], drained.host, "SUSPENDED")
    hosted["resized"] = world.boot("compute-3", name="resized")
    servers.migrate(cloud, hosted["resized"], drained.host)
    hosted["kept"] = drained.boot("kept")
    hosted["large"] = boot_too_large(drained, placement)
    kept = {"name": hosted["kept"], "reason": "its owner counts on it"}
    variables = {"exclude_consumers": [kept], "parallel": 3}
    before = world.picture()

    said = drained.done("--check", **variables)

    assert world.picture() == before and drained.state == "enabled"
    assert not list(drained.ansible.folder.rglob("moves-*"))
    plan = read_plan(said)
    assert set(plan) == set(hosted) and len(hosted) == 12
    stays = {name for name, (how, _to) in plan.items() if how == "stays"}
    assert stays == {"suspended", "resized", "kept", "large"}
    # The biggest problems come first, and each warning once.
    assert set(list(plan)[:4]) == stays
    assert said.told.count("disk is copied") == 1
    assert kept["reason"] in said.told and "8 of 12 servers" in said.told

    refused = drained.refused(**variables)

    assert read_plan(refused) == plan
    assert "8 moved (6 live, 2 cold), 4 left." in refused.told
    assert drained.state == "disabled" and refused.changed == 1
    for name, server in hosted.items():
        assert (drained.find_host(server) == drained.host) == (name in stays), name
    drained.have_moved(*(hosted[name] for name in plan if name not in stays))
    assert drained.find_host(hosted["in-group"]) != "compute-2"
    assert servers.get(cloud, hosted["resized"])["status"] == "VERIFY_RESIZE"
    assert len(re.findall(r"\d+ of 8 +\S+ +drain-3 -> compute-\d +\d+ s", refused.output)) == 8
    assert " ansible-playbook osops.placement.drain_host -e " in refused.told.partition("Undo: ")[2]

    # Its owners do their part, and nothing stays any longer.
    servers.confirm(cloud, hosted["resized"])
    servers.act(cloud, hosted["suspended"], "resume")
    servers.settle(cloud, hosted["suspended"], drained.host)
    servers.delete(cloud, hosted["large"])
    drained.statuses[hosted["resized"]] = "ACTIVE"
    done = drained.done()
    assert "drain-3 is empty." in done.told
    assert (
        " ansible-playbook osops.placement.decommission_host " in done.told.partition("Next: ")[2]
    )
    drained.have_moved(*(hosted[name] for name in ("resized", "suspended", "kept")))
    assert world.cloud.compute_services()["drain-3"]["disabled_reason"] == (
        "drained with osops.placement"
    )

    back = drained.done(**{"return": True, "move_back": True, "parallel": 4})
    assert drained.state == "enabled" and "in service." in back.told
    for name in ("active-1", "paused-1", "shutoff-1", "resized", "locked"):
        assert drained.find_host(hosted[name]) == drained.host, name


@pytest.mark.long
def test_what_would_be_lost_by_a_wrong_word_is_refused(drained: Drained, world: World) -> None:
    """The host is excluded, is up although somebody calls it fenced, or is to be returned."""
    drained.boot("web-1")
    before = world.picture()

    both = drained.done("--check", target=[drained.host, "compute-1"], max_hosts=2)
    excluded = drained.refused(exclude_providers=[drained.host])
    fenced = drained.refused(fenced=True)
    opposite = drained.refused(playbook="decommission_host", **{"return": True})
    many = drained.refused(target=[drained.host, "compute-1"])
    tagged = drained.refused("--tags", "drain")
    unknown = drained.refused(target="compute-99")

    assert "drain-3 HOW" in both.told and " on compute-1 " in both.told
    assert "drain-3 is excluded" in excluded.told
    assert "service is up" in fenced.told
    assert "host_decommission_return is for" in opposite.told
    assert "host_decommission_max_hosts is 1" in many.told
    assert "leave out --tags drain:" in tagged.told
    assert "'compute-99'" in unknown.told
    assert world.picture() == before


@pytest.mark.long
def test_a_dead_host_is_evacuated_with_the_word_and_decommissioned(
    doomed: Drained, world: World, placement: Placement
) -> None:
    hosted = [doomed.boot("web-1"), doomed.boot("off-1", "SHUTOFF")]
    doomed.die()
    before = world.picture()
    stages = ["disable", "drain", "clean", "delete", "verify"]
    variables = {**{name[18:]: value for name, value in YOUNG.items()}, "stages": stages}

    # The word counts for the hosts that are named, and for no others.
    refused = doomed.refused(playbook="decommission_host", fenced=["drain-40"], **variables)
    said = doomed.done("--check")

    assert "host_decommission_fenced" in refused.told and world.picture() == before
    assert {how for how, _to in read_plan(said).values()} == {"stays"}
    assert said.told.count("set fenced (host_decommission_fenced)") == 1

    predicted = doomed.done("--check", playbook="decommission_host", fenced=True, **variables)
    assert {how for how, _to in read_plan(predicted).values()} == {"evacuation"}
    assert world.picture() == before

    done = doomed.done(playbook="decommission_host", fenced=True, **variables)

    assert "2 moved (2 by evacuation)." in done.told and "drain-4 is gone" in done.told
    doomed.have_moved(*hosted)
    for server in hosted:
        assert list(placement.held(server)) == [world.provider(str(doomed.find_host(server)))]


@pytest.mark.long
def test_a_check_without_servers_asks_no_more_than_before(drained: Drained, wires: Wires) -> None:
    done = drained.play(
        "--check", playbook="decommission_host", cloud="minicloud", stages=["check"]
    )

    assert done.status == 0, done.output
    asked = "\n".join([*wires.nova.requests, *wires.placement.requests])
    # The check reads the aggregates itself.
    assert "os-aggregates" in asked
    assert "allocation_candidates" not in asked and "os-server-groups" not in asked
