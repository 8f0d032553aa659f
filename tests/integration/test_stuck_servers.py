"""Servers that hang, on real services.

Each is reported with what blocks it, and the next step of the finding ends it.
"""

import itertools
import json
import re
import time
import typing as t

import pytest
from minicloud_ctl import holdings, lifecycle, processes, servers, services, steering

from .support import Ansible
from .world import CELL1, World

OWN_CLOUD = True
pytestmark = pytest.mark.long

NUMBERS = itertools.count(1)


@pytest.fixture(name="host")
def _host(world: World) -> str:
    """A host of its own, because one that has just started again may not yet take servers."""
    name = f"deletes-{next(NUMBERS)}"
    world.own_host(name, steering.DRIVER)
    return name


def find_stuck(ansible: Ansible, **options: t.Any) -> dict[str, tuple[str, str]]:
    """Return the ID and the words of the reasons of the findings of this kind, by server."""
    dest = ansible.folder / "findings.json"
    result = ansible.direct(
        "orphan_detect", dest=str(dest), **{"min_age": "0", "stuck_min_age": "0", **options}
    )
    assert result["summary"]["coverage"]["unread"] == []
    found = json.loads(dest.read_text(encoding="utf-8"))["findings"]
    return {
        entry["id"].partition("/")[2]: (entry["reason_id"], entry["reason"])
        for entry in found
        if entry["kind"] == "stuck_server"
    }


def delete(world: World, server: str) -> None:
    world.cloud.nova("DELETE", f"/servers/{server}")


def begin_deletion(world: World, host: str) -> str:
    """Return a server whose deletion waits for its hypervisor."""
    server = world.boot(host)
    steering.hold(world.paths, host, "destroy")
    delete(world, server)
    servers.await_task(world.cloud, server, "deleting")
    return server


def is_gone(world: World, server: str) -> bool:
    return world.cloud.nova_call("GET", f"/servers/{server}").status == 404


@pytest.mark.follows("deletion_to_begin_again", "deletion_on_down_host")
def test_deletion_that_waits_for_its_host_ends_when_nova_compute_starts(
    ansible: Ansible, world: World, host: str
) -> None:
    server = begin_deletion(world, host)
    # It has only begun.
    assert find_stuck(ansible, stuck_min_age="1h") == {}

    ((reason, words),) = find_stuck(ansible).values()
    assert reason == "deletion_to_begin_again" and f"server {server} on {host}" in words
    delete(world, server)
    assert not is_gone(world, server)

    world.kill(host)
    ((reason, _words),) = find_stuck(ansible).values()
    assert reason == "deletion_on_down_host"
    steering.release(world.paths, host, "destroy")
    lifecycle.start_computes(world.paths, [host])
    world.wait("the deletion to end", lambda: is_gone(world, server))
    assert find_stuck(ansible) == {}


def test_deletion_of_a_server_on_a_dead_host_ends_in_the_databases(
    ansible: Ansible, world: World, host: str
) -> None:
    server = begin_deletion(world, host)
    world.kill(host)

    ((reason, _words),) = find_stuck(ansible).values()
    assert reason == "deletion_on_down_host"
    delete(world, server)
    world.wait("the deletion to end", lambda: is_gone(world, server))
    steering.release(world.paths, host, "destroy")
    lifecycle.start_computes(world.paths, [host])


@pytest.mark.follows("deletion_cause_to_mend")
def test_failed_deletion_is_found_when_it_is_asked_for(
    ansible: Ansible, world: World, host: str
) -> None:
    server = world.boot(host)
    broken = world.boot(host)
    servers.act(world.cloud, broken, "os-resetState", {"state": "error"})
    steering.fail(world.paths, host, "destroy")
    delete(world, server)
    servers.settle(world.cloud, server, host, "ERROR")

    # A default run does not read the actions of each server in ERROR.
    assert find_stuck(ansible) == {}
    for scope in ({"kinds": ["stuck_server"]}, {"hosts": [host]}, {"consumers": [server]}):
        found = find_stuck(ansible, **scope)
        assert list(found) == [server]
        reason, words = found[server]
        assert reason == "deletion_cause_to_mend" and "on purpose" in words
    assert find_stuck(ansible, hosts=["compute-1"]) == {}
    assert find_stuck(ansible, kinds=["stale_service"]) == {}

    steering.fix(world.paths, host, "destroy")
    delete(world, server)
    world.wait("the deletion to end", lambda: is_gone(world, server))
    assert find_stuck(ansible, kinds=["stuck_server"]) == {}


@pytest.mark.follows("deletion_without_host")
def test_server_without_a_host_is_deleted_from_the_databases(
    ansible: Ansible, world: World, host: str
) -> None:
    server = world.boot(host)
    world.sql(CELL1, "UPDATE instances SET task_state = 'deleting' WHERE uuid = ?", server)
    world.sql(CELL1, "UPDATE instances SET host = NULL, node = NULL WHERE uuid = ?", server)

    ((reason, _words),) = find_stuck(ansible).values()
    assert reason == "deletion_without_host"
    delete(world, server)
    world.wait("the deletion to end", lambda: is_gone(world, server))


def test_deletion_that_ended_half_way_ends_when_nova_compute_starts(
    ansible: Ansible, world: World, host: str
) -> None:
    """The row is marked as deleted, and is still there: what source document 002 sets by hand."""
    server = world.boot(host)
    world.sql(CELL1, "UPDATE instances SET vm_state = 'deleted' WHERE uuid = ?", server)

    found = find_stuck(ansible)
    assert list(found) == [server] and "ended half-way" in found[server][1]
    world.restart(host)
    world.wait("the deletion to end", lambda: is_gone(world, server))
    assert find_stuck(ansible) == {}


def follow(world: World, server: str, words: str) -> None:
    """Do what the commands of a reason say, in their order."""
    for statement in re.findall(r"UPDATE instances [^.]*'", words):
        world.sql(CELL1, statement)
    requests: dict[str, tuple[str, t.Any]] = {
        "set --state active": ("os-resetState", {"state": "active"}),
        "resize confirm": ("confirmResize", None),
    }
    for command in re.findall(rf"openstack server ([a-z -]+) {server}", words):
        if command == "delete":
            delete(world, server)
        elif command != "event list":
            servers.act(world.cloud, server, *requests[command])


def lose_request(world: World, request: t.Callable[[], str]) -> str:
    """Have the conductor die while the scheduler chooses a host, and return the server."""
    with world.paused("nova-scheduler") as go_on:
        server = request()
        world.wait("the request", lambda: get_task(world, server))
        # Nothing shows that the conductor has asked the scheduler.
        time.sleep(5)
        processes.stop(world.paths, ["nova-conductor-cell1"], now=True)
        go_on()
    world.wait("the allocation", lambda: holdings.of(world.cloud, server).allocations)
    control_plane = services.control_plane(world.paths, world.state, "first", ["cell1"])
    lifecycle.start(world.paths, [one for one in control_plane if "conductor" in one.name])
    return server


def get_task(world: World, server: str) -> str | None:
    return servers.get(world.cloud, server)["OS-EXT-STS:task_state"]


@pytest.mark.follows("stuck_server._explain_task")
def test_build_whose_conductor_died_is_deleted(ansible: Ansible, world: World, host: str) -> None:
    server = lose_request(
        world, lambda: servers.request_boot(world.cloud, "lost", host, networks="none")
    )
    world.forget(server)
    found = find_stuck(ansible)
    assert found.keys() == {server} and found[server][0] == "build_without_host"
    follow(world, server, found[server][1])
    world.wait("the deletion to end", lambda: is_gone(world, server))
    assert holdings.of(world.cloud, server).allocations == {}


def test_unshelve_whose_conductor_died_is_requested_again(
    ansible: Ansible, world: World, host: str
) -> None:
    server = world.boot(host)
    servers.shelve(world.cloud, server)

    def unshelve() -> str:
        servers.act(world.cloud, server, "unshelve")
        return server

    lose_request(world, unshelve)
    ((reason, words),) = find_stuck(ansible).values()
    assert reason == "task_without_host"
    follow(world, server, words)
    unshelve()
    servers.settle(world.cloud, server, None, "ACTIVE")
    assert find_stuck(ansible) == {}


def test_task_ends_when_nova_compute_starts(ansible: Ansible, world: World, host: str) -> None:
    server = world.boot(host)
    world.sql(CELL1, "UPDATE instances SET task_state = 'powering-off' WHERE uuid = ?", server)
    # No status shows this task, and a default run does not search for it on a host that is up.
    assert find_stuck(ansible) == {}
    ((reason, _words),) = find_stuck(ansible, kinds=["stuck_server"]).values()
    assert reason == "task_on_live_host"
    world.kill(host)
    assert find_stuck(ansible, stuck_min_age="1h") == {}
    ((reason, _words),) = find_stuck(ansible).values()
    assert reason == "task_on_down_host"
    lifecycle.start_computes(world.paths, [host])
    world.wait("the task to end", lambda: get_task(world, server) is None)
    assert find_stuck(ansible) == {}


@pytest.mark.follows("task_without_migration")
def test_task_of_a_move_that_ended_names_both_hypervisors(
    ansible: Ansible, world: World, host: str
) -> None:
    server = world.boot("compute-1")
    world.live_migrate(server, host)
    world.sql(CELL1, "UPDATE instances SET task_state = 'migrating' WHERE uuid = ?", server)

    ((reason, words),) = find_stuck(ansible).values()
    assert reason == "task_without_migration" and f"compute-1, {host} (virsh" in words
    follow(world, server, words)
    assert get_task(world, server) is None and find_stuck(ansible) == {}


def test_resize_that_was_reset_is_confirmed(ansible: Ansible, world: World, host: str) -> None:
    server = world.boot("compute-1")
    move = servers.migrate(world.cloud, server, host)
    servers.act(world.cloud, server, "os-resetState", {"state": "active"})
    refused = world.cloud.nova_call("POST", f"/servers/{server}/action", {"confirmResize": None})
    assert refused.status == 409

    found = find_stuck(ansible)
    assert found.keys() == {move} and found[move][0] == "reset_resize_to_confirm"
    drained = ansible.module("host_drain", "--check", host=host, output_dir=str(ansible.folder))
    (entry,) = drained["plan"]["servers"]
    assert entry["how"] == "stays" and "stuck_server" in entry["reason"]
    follow(world, server, found[move][1])
    servers.await_migration(world.cloud, server, "confirmed")
    holdings.await_providers(world.cloud, move)
    assert find_stuck(ansible) == {}
