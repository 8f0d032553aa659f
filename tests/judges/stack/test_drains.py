"""Hosts that are drained while libvirt, QEMU and the message bus are real."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from ...integration.support import Ansible, Placement, told
from ...integration.test_drain import STATES, Drained, by_name, compare, outcomes
from .bed import Stack
from .hosts import COMPUTE
from .world import Measured, StackWorld

HOST = "compute-3"
SLOW, FAST = 1, 1000


@pytest.fixture
def drained(world: StackWorld, ansible: Ansible) -> Iterator[Drained]:
    """A host without servers, which is enabled."""
    world.revive(HOST)
    drained = Drained(world, ansible, HOST)
    yield drained
    # What a fault has left waiting in a nova-compute would wait for minutes, or for ever.
    for host in world.stack.hosts.values():
        if host.is_on():
            host.tell(COMPUTE, "killed")
    world.revive(*world.stack.hosts)
    drained.reopen()


def begin_copy(drained: Drained, world: StackWorld, server: str) -> str:
    """Wait until the memory of a server is being copied, and return the host where it goes."""
    servers.await_migration(world.cloud, server, "running")

    def copies() -> bool:
        told = world.host(HOST).guests("domjobinfo", server)
        return re.search(r"Memory processed: +[^0 ]", told) is not None

    wait_for(f"libvirt to copy {server}", copies)
    (found,) = servers.migrations(world.cloud, server)
    return str(found["dest_compute"])


def locate(world: StackWorld, server: str) -> list[str]:
    """Return the hosts on which libvirt runs the guest."""
    hosts = world.stack.hosts.values()
    running = [host.name for host in hosts if host.is_on()]
    return [name for name in running if server in world.find_guests(name)]


def test_servers_leave_by_live_and_cold_migrations_and_return(
    drained: Drained, world: StackWorld
) -> None:
    hosted = [drained.boot(f"server-{status}", status) for status in STATES]
    predicted = drained.check()

    result = drained.run()

    assert {entry["how"] for entry in predicted.values()} == {"live", "cold"}
    assert compare(predicted, result) == [] and result["empty"], result["msg"]
    drained.have_moved(*hosted)

    back = drained.run(state="returned", move_back=True)

    assert not back["failed"], back["msg"]
    for server, status in drained.statuses.items():
        assert locate(world, server) == ([] if status == "SHUTOFF" else [HOST])


def test_nova_compute_is_killed_in_the_middle_of_a_copy(
    drained: Drained, world: StackWorld, measured: Measured
) -> None:
    """libvirt ends the migration, and Nova never hears of it."""
    server = drained.boot("web")
    world.set_speed(HOST, server, SLOW)
    run = drained.start(retries=0)
    to = begin_copy(drained, world, server)

    world.host(HOST).tell(COMPUTE, "killed")
    result = told(run)

    measured["outcome"] = outcomes(result)["web"]
    assert outcomes(result) == {"web": "under_way"}, result["msg"]
    entry = by_name(result)["web"]
    assert f"nova-compute on {HOST} is down" in entry["reason"]
    assert entry["may_be_on"] == [HOST, to]

    world.set_speed(HOST, server, FAST)
    wait_for(f"the guest to be on {to}", lambda: locate(world, server) == [to])
    world.host(HOST).tell(COMPUTE, "on")
    world.await_service(HOST, "up")
    servers.settle(world.cloud, server, HOST, "ACTIVE", "SHUTOFF", "ERROR")
    again = drained.run()

    measured["after_restart"] = outcomes(again)["web"]
    assert outcomes(again)["web"] in ("failed", "left"), again["msg"]
    assert again["failed"] and not again["empty"]
    assert len(servers.migrations(world.cloud, server)) == 1
    assert locate(world, server) == [to]
    world.discard(to, server)


def test_power_of_the_destination_is_cut_in_the_middle_of_a_copy(
    drained: Drained, world: StackWorld, placement: Placement, measured: Measured
) -> None:
    server = drained.boot("web")
    world.set_speed(HOST, server, SLOW)
    run = drained.start(retries=1)
    to = begin_copy(drained, world, server)

    world.crash(to)
    world.set_speed(HOST, server, FAST)
    result = told(run)

    outcome = outcomes(result)["web"]
    found = servers.get(world.cloud, server)
    running = locate(world, server)
    measured.update(outcome=outcome, status=found["status"])
    assert len(running) == 1, running
    assert (outcome == "moved") == (running != [HOST]), result["msg"]
    if outcome == "moved":
        assert found["OS-EXT-SRV-ATTR:host"] == running[0] and found["status"] == "ACTIVE"
        assert list(placement.held(server)) == [world.provider(running[0])]


def test_rabbitmq_is_away_in_the_middle_of_a_move(
    drained: Drained, stack: Stack, world: StackWorld, measured: Measured
) -> None:
    """It stays away until the drain has given up."""
    server = drained.boot("web")
    world.set_speed(HOST, server, SLOW)
    run = drained.start(retries=0)
    to = begin_copy(drained, world, server)

    stack.stop("rabbitmq", now=True)
    world.set_speed(HOST, server, FAST)
    wait_for(f"the guest to be on {to}", lambda: locate(world, server) == [to])
    for host in stack.hosts:
        world.await_service(host, "down")
    # If it came back now, the drain would wait for ten minutes whether Nova goes on with the move.
    result = told(run)
    stack.start("rabbitmq")

    measured["outcome"] = outcomes(result)["web"]
    assert locate(world, server) == [to]
    for host in stack.hosts:
        world.await_service(host, "up")
    # What nova-compute has waited for when it lost RabbitMQ may never end.
    again = drained.run(move_timeout="60")

    measured["afterwards"] = outcomes(again).get("web")
    found = servers.get(world.cloud, server)
    measured["status"] = found["status"]
    claims_moved = "moved" in (outcomes(result)["web"], outcomes(again).get("web"))
    assert not claims_moved or found["OS-EXT-SRV-ATTR:host"] == to
    assert locate(world, server) == [to]
