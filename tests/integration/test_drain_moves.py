"""Whose move it is, how it ended, and where the guest is: on a real Nova that is cut off halfway.

A request to move is lost and somebody else moves the server; nova-compute dies in the middle of a
live migration; a server has allocations on a host where it is not.
"""

import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest
from minicloud_ctl import lifecycle, processes, servers, services

from .interposer import Answered, Asked, Fault, Wires
from .support import Ansible, told
from .test_drain import ACTION, Drained, by_name, is_migrated, outcomes
from .world import CLAIM, World

# What is held for ever leaves allocations behind.
OWN_CLOUD = True
pytestmark = pytest.mark.long

HOST = "drain-5"
REQUEST_IDS = ("x-openstack-request-id", "x-compute-request-id")


@pytest.fixture(scope="module")
def own_host(world: World) -> str:
    world.own_host(HOST, driver="minicloud.HeldLiveMigration")
    return HOST


@pytest.fixture
def drained(world: World, ansible: Ansible, own_host: str) -> Iterator[Drained]:
    """A host without servers, which is enabled and up."""
    drained = Drained(world, ansible, own_host)
    yield drained
    hold(world, held=False)
    lifecycle.start_computes(world.paths, [own_host])
    drained.reopen()


def hold(world: World, held: bool = True) -> None:
    """Let live migrations from the host wait, or go on."""
    path = world.paths.compute(HOST) / "hold-live-migrations"
    path.unlink(missing_ok=True)
    if held:
        path.touch()


def is_moved_live(world: World, server: str) -> None:
    servers.act(world.cloud, server, "os-migrateLive", {"host": None, "block_migration": "auto"})
    servers.await_migration(world.cloud, server, "completed")
    servers.settle(world.cloud, server, None)


BY_HAND: dict[str, tuple[Callable[[World, str], None], str, str]] = {
    "SHUTOFF": (is_migrated, "left", "VERIFY_RESIZE"),
    "ACTIVE": (is_moved_live, "gone", "ACTIVE"),
}


def confirmations(wires: Wires, server: str) -> int:
    """Return how many requests this collection has sent to change a server."""
    return wires.nova.requests.count(f"POST /v2.1/servers/{server}/action")


@pytest.mark.parametrize("status", ["SHUTOFF", "ACTIVE"])
def test_what_somebody_moves_while_the_own_request_is_lost_stays_theirs(
    drained: Drained, wires: Wires, status: str
) -> None:
    """The same administrator moves the server by hand at that moment."""
    move, outcome, after = BY_HAND[status]
    server = drained.boot("web", status)

    def move_by_hand() -> Fault:
        move(drained.world, server)
        return Fault.NO_ANSWER

    wires.nova.on("POST", ACTION, before=move_by_hand)

    result = drained.run(cloud="minicloud")

    assert outcomes(result) == {"web": outcome}, result["msg"]
    assert servers.get(drained.world.cloud, server)["status"] == after
    assert confirmations(wires, server) == 1
    # Nothing that somebody else has moved is moved back.
    assert drained.run(state="returned", move_back=True)["departures"] == []


def test_what_somebody_moves_after_the_run_was_killed_stays_theirs(
    drained: Drained, wires: Wires
) -> None:
    """The journal has the move, and its request was never sent."""
    server = drained.boot("web", "SHUTOFF")
    running: list[subprocess.Popen[str]] = []

    def kill() -> Fault:
        running[-1].kill()
        return Fault.NO_ANSWER

    wires.nova.on("POST", ACTION, before=kill)
    running.append(drained.start(cloud="minicloud"))
    told(running[-1])
    assert running[-1].returncode == -signal.SIGKILL
    is_migrated(drained.world, server)

    result = drained.run(cloud="minicloud")

    assert outcomes(result) == {"web": "left"}, result["msg"]
    assert servers.get(drained.world.cloud, server)["status"] == "VERIFY_RESIZE"


def test_nothing_is_confirmed_where_a_proxy_drops_the_id_of_the_request(
    drained: Drained, wires: Wires
) -> None:
    hosted = {status: drained.boot(status, status) for status in BY_HAND}

    def drop_ids(asked: Asked, ask: Callable[[Asked], Answered]) -> Answered:
        answer = ask(asked)
        for name in REQUEST_IDS:
            answer = answer.replace_header(name, None)
        return answer

    wires.nova.middlebox = drop_ids

    result = drained.run(cloud="minicloud")

    assert outcomes(result) == {status: BY_HAND[status][1] for status in hosted}, result["msg"]
    assert servers.get(drained.world.cloud, hosted["SHUTOFF"])["status"] == "VERIFY_RESIZE"
    for entry in result["outcomes"]:
        assert REQUEST_IDS[0] in entry["reason"]


def await_copy(drained: Drained, server: str) -> str:
    """Wait until a live migration waits in the driver, and return the host where it goes."""
    migration = servers.await_migration(drained.world.cloud, server, "running")
    (found,) = servers.migrations(drained.world.cloud, server)
    assert found["uuid"] == migration
    return str(found["dest_compute"])


def come_back(world: World, *hosted: str) -> None:
    """Start nova-compute after libvirt has moved the guests: the driver has none of them."""
    hold(world, held=False)
    lifecycle.start_computes(world.paths, [HOST])
    for server in hosted:
        servers.settle(world.cloud, server, HOST)


def own_allocation(world: World, server: str) -> None:
    """Give a server, and not its migration, the allocation on its host, as a cleanup would."""
    for migration in servers.migrations(world.cloud, server):
        world.hold(migration["uuid"], {})
    world.hold(server, {world.provider(HOST): CLAIM})


@pytest.mark.follows("server_move.end_open")
def test_a_server_whose_guest_may_be_elsewhere_is_not_moved_again(
    drained: Drained, wires: Wires
) -> None:
    """The drain and nova-compute die in the middle of a live migration, and both are started."""
    world, cloud = drained.world, drained.world.cloud
    server = drained.boot("web")
    hold(world)
    run = drained.start(cloud="minicloud")
    to = await_copy(drained, server)
    run.kill()
    told(run)
    world.crash(HOST)
    come_back(world, server)
    own_allocation(world, server)
    wires.nova.clear()

    predicted = drained.check()
    result = drained.run(cloud="minicloud")

    assert predicted["web"]["how"] == "stays" and "earlier run" in predicted["web"]["reason"]
    assert outcomes(result) == {"web": "failed"} and result["failed"]
    assert by_name(result)["web"]["may_be_on"] == [HOST, to]
    assert confirmations(wires, server) == 0

    # The guest is found to be on the source, where a hard reboot starts it.
    servers.act(cloud, server, "reboot", {"type": "HARD"})
    servers.settle(cloud, server, HOST)
    again = drained.run(cloud="minicloud")
    assert outcomes(again) == {"web": "moved"}, again["msg"]
    drained.have_moved(server)


def test_a_live_migration_that_breaks_says_where_the_guest_may_be(drained: Drained) -> None:
    """Nova puts the server into ERROR, and leaves its allocation on the destination."""
    world = drained.world
    server = drained.boot("web")
    failing = world.paths.compute(HOST) / "fail-live-migrations"
    failing.touch()
    try:
        result = drained.run()
    finally:
        failing.unlink()

    (move,) = servers.migrations(world.cloud, server)
    (entry,) = result["outcomes"]
    assert servers.get(world.cloud, server)["status"] == "ERROR"
    assert entry["outcome"] == "failed" and entry["may_be_on"] == [HOST, move["dest_compute"]]

    # Its state is reset by hand: the guest is on the source, and the allocation is not.
    servers.act(world.cloud, server, "os-resetState", {"state": "active"})
    again = drained.run()

    assert outcomes(again) == {"web": "left"}
    assert "unreverted_allocation" in again["outcomes"][0]["reason"]
    assert len(servers.migrations(world.cloud, server)) == 1


def test_a_drain_does_not_wait_for_a_nova_compute_that_is_dead(
    drained: Drained, wires: Wires
) -> None:
    """Of two live migrations one is copied and one is queued; after its restart, none goes on."""
    world = drained.world
    hosted = [drained.boot(f"web-{number}") for number in (1, 2)]
    hold(world)
    run = drained.start(retries=0)
    for server in hosted:
        servers.await_migration(world.cloud, server, "running", "queued")
    world.crash(HOST)

    result = told(run)

    assert set(outcomes(result).values()) == {"under_way"}, result["msg"]
    for entry in result["outcomes"]:
        assert f"nova-compute on {HOST} is down" in entry["reason"]
    come_back(world, *hosted)
    wires.nova.clear()

    again = drained.run(cloud="minicloud")

    assert sorted(outcomes(again).values()) == ["failed", "under_way"], again["msg"]
    assert again["failed"]
    for entry in again["outcomes"]:
        assert servers.migrations(world.cloud, entry["uuid"])[0]["uuid"] in entry["reason"]
        assert confirmations(wires, entry["uuid"]) == 0
        assert (entry["may_be_on"] == []) == (entry["outcome"] == "under_way")


def test_a_drain_does_not_wait_for_a_broker_that_is_dead(drained: Drained) -> None:
    world = drained.world
    server = drained.boot("web")
    hold(world)
    run = drained.start(retries=0)
    to = await_copy(drained, server)
    broker = services.broker(world.paths, world.state)
    processes.stop(world.paths, [broker.name], now=True)
    try:
        hold(world, held=False)
        result = told(run)
    finally:
        lifecycle.start(world.paths, [broker])

    (entry,) = result["outcomes"]
    assert entry["outcome"] == "under_way" and entry["may_be_on"] == [HOST, to]
    assert "RabbitMQ" in entry["reason"]
    servers.settle(world.cloud, server, to)
    world.wait("the host to be up", lambda: world.cloud.compute_services()[HOST]["state"] == "up")
    # The journal has the id of its request.
    assert outcomes(drained.run()) == {"web": "moved"}


def test_a_server_with_an_allocation_elsewhere_stays(drained: Drained) -> None:
    world = drained.world
    both, other, none, fine = (drained.boot(name) for name in ("both", "other", "none", "fine"))
    world.claim_also(both, "compute-1")
    world.hold(other, {world.provider("compute-1"): CLAIM})
    world.hold(none, {})

    predicted = drained.check()
    result = drained.run()

    stays = {name for name, entry in predicted.items() if entry["how"] == "stays"}
    assert stays == {"both", "other", "none"}
    assert outcomes(result) == {**dict.fromkeys(stays, "left"), "fine": "moved"}
    reasons = [entry["reason"] for entry in result["outcomes"]]
    for server in (both, other, none):
        assert f"orphan_cleanup_consumers={server}" in str(reasons)
        assert drained.find_host(server) == HOST
    drained.have_moved(fine)
    for server in (both, other, none):
        world.hold(server, {world.provider(HOST): CLAIM})
