"""Servers that Nova does not delete, on real services.

Each is reported with what blocks it, and the next step of the finding deletes it.
"""

import itertools
import json
import typing as t

import pytest
from minicloud_ctl import lifecycle, servers, steering

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


def is_gone(world: World, server: str) -> bool:
    return world.cloud.nova_call("GET", f"/servers/{server}").status == 404


def test_deletion_that_waits_for_its_host_ends_when_nova_compute_starts(
    ansible: Ansible, world: World, host: str
) -> None:
    server = world.boot(host)
    steering.hold(world.paths, host, "destroy")
    delete(world, server)
    servers.await_task(world.cloud, server, "deleting")
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
    server = world.boot(host)
    steering.hold(world.paths, host, "destroy")
    delete(world, server)
    servers.await_task(world.cloud, server, "deleting")
    world.kill(host)

    ((reason, _words),) = find_stuck(ansible).values()
    assert reason == "deletion_on_down_host"
    delete(world, server)
    world.wait("the deletion to end", lambda: is_gone(world, server))
    steering.release(world.paths, host, "destroy")
    lifecycle.start_computes(world.paths, [host])


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
    assert list(found) == [server] and "ended half-way" in found[server]
    world.restart(host)
    world.wait("the deletion to end", lambda: is_gone(world, server))
    assert find_stuck(ansible) == {}
