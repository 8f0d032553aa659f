"""Claims of a drain about hosts on a real Nova: that one is empty, silent or dead, and returned.

Each test builds a state in which the claim is false, and looks at what the run says.
"""

import contextlib
import typing as t
from collections.abc import Callable, Iterator

import pytest
from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from .interposer import Answered, Asked, Wires
from .support import Ansible, Placement
from .test_drain import Drained as DrainedModule
from .test_drain import by_name, outcomes
from .world import World


class Drained(DrainedModule):
    """A host of a test, and the module on it."""

    def predict(self, **options: t.Any) -> dict[str, t.Any]:
        """Return what the module says in check mode."""
        return self.ansible.module("host_drain", "--check", **self.arguments, **options)


@pytest.fixture(scope="module")
def own_host(world: World) -> str:
    world.own_host("claim-1")
    return "claim-1"


@pytest.fixture
def drained(world: World, ansible: Ansible, own_host: str) -> Iterator[Drained]:
    """A host without servers, which is enabled."""
    drained = Drained(world, ansible, own_host)
    yield drained
    drained.reopen()


@pytest.fixture(scope="module")
def doomed_host(world: World) -> str:
    world.own_host("claim-2")
    return "claim-2"


@pytest.fixture
def doomed(world: World, ansible: Ansible, doomed_host: str) -> Drained:
    """A host to be forced down, which may have servers of other tests."""
    return Drained(world, ansible, doomed_host)


def get_state(world: World, host: str) -> str:
    return str(world.cloud.compute_services()[host]["state"])


def wait_until_down(world: World, host: str) -> None:
    wait_for("the service to be down", lambda: get_state(world, host) == "down")


def set_disabled(world: World, host: str) -> None:
    """Disable a service without a word to its nova-compute, for which Nova would wait."""
    world.sql(
        "first_cell1",
        "UPDATE services SET disabled = 1 WHERE host = ? AND binary = 'nova-compute'",
        host,
    )


@pytest.mark.follows("emptiness._find_consumers")
def test_a_claim_of_an_unknown_consumer_keeps_a_host_from_being_empty(
    drained: Drained, world: World
) -> None:
    """A build is nothing else before it has a host."""
    consumer = world.claim(drained.host)

    predicted = drained.predict()
    result = drained.run()

    for found in (predicted, result):
        assert not found["empty"] and consumer in found["msg"], found["msg"]
        assert [entry["subject"] for entry in found["occupants"]] == [consumer]
    assert "is empty" not in result["msg"]
    world.hold(consumer, {})
    assert drained.run()["empty"]


@pytest.mark.long
def test_a_host_on_which_builds_wait_is_not_empty(
    drained: Drained, world: World, placement: Placement
) -> None:
    """nova-compute stands still, so that the builds have an allocation and no host."""
    with world.paused(f"nova-compute-{drained.host}") as go_on:
        built = [
            servers.request_boot(world.cloud, f"late-{number}", drained.host) for number in range(3)
        ]
        world.forget(*built)
        for server in built:
            wait_for("the claim of a build", lambda server=server: placement.held(server))
        set_disabled(world, drained.host)
        result = drained.run()
        assert not result["empty"] and result["remaining"] == [], result["msg"]
        assert set(built) <= {entry["subject"] for entry in result["occupants"]}
        go_on()
        for server in built:
            servers.settle(world.cloud, server, drained.host)
    drained.statuses.update(dict.fromkeys(built, "ACTIVE"))
    assert drained.run()["empty"]
    drained.have_moved(*built)


@pytest.mark.follows("emptiness._describe_place")
@pytest.mark.long
def test_a_host_with_a_server_that_can_be_restored_is_not_empty(
    drained: Drained, world: World
) -> None:
    with world.nova_setting("[DEFAULT]\nreclaim_instance_interval = 3600"):
        server = drained.boot("deleted")
        world.cloud.nova("DELETE", f"/servers/{server}")
        servers.settle(world.cloud, server, None, "SOFT_DELETED")

        result = drained.run()

        assert not result["empty"] and result["remaining"] == [server], result["msg"]
        servers.act(world.cloud, server, "restore")
        servers.settle(world.cloud, server, drained.host)
        assert drained.run()["empty"]
        drained.have_moved(server)


def hide_after_first(path: str) -> Callable[[Asked, Callable[[Asked], Answered]], Answered]:
    """Return a middlebox by which only the first listing of servers has any."""
    seen = 0

    def answer(asked: Asked, ask: Callable[[Asked], Answered]) -> Answered:
        nonlocal seen
        answered = ask(asked)
        if asked.method == "GET" and asked.path.split("?")[0].endswith(path):
            seen += 1
            if seen > 1:
                return answered.replace_json({"servers": []})
        return answered

    return answer


@pytest.mark.long
def test_a_host_is_not_empty_while_a_server_was_left_on_it(drained: Drained, wires: Wires) -> None:
    """The cell is silent when the host is listed at the end: 200, and no server."""
    server = drained.boot("suspended")
    servers.act(drained.world.cloud, server, "suspend")
    servers.settle(drained.world.cloud, server, drained.host, "SUSPENDED")
    wires.nova.middlebox = hide_after_first("/servers/detail")

    result = drained.run(cloud="minicloud")

    assert outcomes(result) == {"suspended": "left"}
    assert not result["empty"] and "is empty" not in result["msg"]


@contextlib.contextmanager
def reporting_every(world: World, host: str, seconds: int) -> Iterator[None]:
    """Let a nova-compute report this seldom, by its own configuration; it may be forced down."""
    local = world.paths.etc / "nova-first" / "local.conf"
    before = local.read_text()
    try:
        local.write_text(f"{before}\n[DEFAULT]\nreport_interval = {seconds}\n")
        world.restart(host)
    finally:
        local.write_text(before)
    try:
        yield
    finally:
        # Later tests boot servers there, and compare how long their hosts have been silent.
        servers.update_service(world.cloud, host, {"forced_down": False})
        world.restart(host)


@pytest.mark.long
@pytest.mark.parametrize("check", [True, False])
def test_a_host_that_reports_seldom_is_not_evacuated(doomed: Drained, check: bool) -> None:
    """It lives, and Nova calls it down between two reports."""
    world = doomed.world
    with reporting_every(world, doomed.host, 60):
        hosted = [doomed.boot(f"web-{number}") for number in (1, 2)]
        servers.force_down(world.cloud, doomed.host)

        result = (doomed.predict if check else doomed.run)(fenced=True)

    assert result["failed"] and "nothing was changed" in result["msg"], result["msg"]
    assert {doomed.find_host(server) for server in hosted} == {doomed.host}
    assert not servers.migrations(world.cloud, hosted[0])


@pytest.mark.long
def test_no_host_is_dead_while_all_are_silent(drained: Drained, world: World) -> None:
    """The message broker stands still."""
    server = drained.boot("web-1")
    with world.paused("broker"):
        wait_until_down(world, drained.host)
        told = [drained.predict(), drained.predict(fenced=True)]
        told += [drained.run(), drained.run(fenced=True)]
    wait_for("the service to be up", lambda: get_state(world, drained.host) == "up")

    for result in told:
        assert result["failed"] and "RabbitMQ" in result["msg"], result["msg"]
        assert "fence" not in result["msg"] and "power" not in result["msg"]
    assert drained.find_host(server) == drained.host
    assert world.cloud.compute_services()[drained.host]["status"] == "enabled"


@pytest.mark.long
def test_fencing_is_not_the_first_advice_about_a_dead_nova_compute(
    world: World, ansible: Ansible
) -> None:
    world.own_host("claim-3")
    doomed = Drained(world, ansible, "claim-3")
    doomed.boot("dead-1")
    world.crash(doomed.host)
    wait_until_down(world, doomed.host)

    refused = doomed.run()
    advice = doomed.check()["dead-1"]["advice"]

    assert refused["failed"]
    for text in (refused["msg"], advice):
        assert 0 <= text.find("start nova-compute") < text.find("fenced"), text


@pytest.mark.long
def test_a_return_predicts_and_reports_each_server_where_it_is(
    drained: Drained, world: World
) -> None:
    """One was moved back by hand, one is suspended, and one can come back."""
    hosted = {name: drained.boot(name) for name in ("back", "suspended", "away")}
    assert drained.run()["empty"]
    servers.update_service(world.cloud, drained.host, {"status": "enabled"})
    servers.act(
        world.cloud,
        hosted["back"],
        "os-migrateLive",
        {"host": drained.host, "block_migration": "auto"},
    )
    servers.settle(world.cloud, hosted["back"], drained.host)
    servers.act(world.cloud, hosted["suspended"], "suspend")
    servers.settle(world.cloud, hosted["suspended"], None, "SUSPENDED")
    suspended_on = drained.find_host(hosted["suspended"])

    predicted = drained.predict(state="returned", move_back=True)

    assert [entry["name"] for entry in predicted["departures"]] == ["away"], predicted
    assert outcomes(predicted) == {"suspended": "left"}

    result = drained.run(state="returned", move_back=True)

    assert outcomes(result) == {"suspended": "left", "away": "moved"}
    assert by_name(result)["suspended"]["source"] == suspended_on
    assert drained.find_host(hosted["away"]) == drained.host
