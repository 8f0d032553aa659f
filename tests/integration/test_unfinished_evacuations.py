"""A host that was evacuated, decommissioned and deployed again, on a real Nova.

Its nova-compute has not completed the evacuations, and its next start destroys every server that
has returned by then.
"""

import sys
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import lifecycle, servers

from .support import Ansible, Minicloud, Placement
from .test_drain_host import Drained
from .world import World


class Risen(Drained):
    """The host that was deployed again, with servers on another one that were evacuated from it."""

    def __init__(self, world: World, ansible: Ansible, count: int) -> None:
        name = f"rising-{uuid.uuid4().hex[:8]}"
        super().__init__(world, ansible, name)
        self.elsewhere = f"{name}-elsewhere"
        for host in (self.host, self.elsewhere):
            world.own_host(host)
        self.servers = [world.boot(name, name=f"evacuated-{number}") for number in range(count)]
        world.kill(name)
        for server in self.servers:
            servers.evacuate(world.cloud, server, self.elsewhere)
        world.delete_service(name)
        (world.paths.compute(name) / "compute_id").unlink(missing_ok=True)
        world._providers.clear()
        lifecycle.start_computes(world.paths, [name])

    @property
    def advice(self) -> str:
        return f"Restart nova-compute on {self.host} before, which completes them."

    @property
    def statuses_of_evacuations(self) -> set[str]:
        rows = self.world.cloud.nova("GET", "/os-migrations?migration_type=evacuation")
        return {row["status"] for row in rows["migrations"] if row["instance_uuid"] in self.servers}

    def redeploy(self, *arguments: str, succeeds: bool, **variables: t.Any) -> str:
        run = self.play(*arguments, playbook="redeploy_host", min_age=0, **variables)
        assert (run.status == 0) is succeeds, run.output
        return run.told


@pytest.fixture
def risen(world: World, ansible: Ansible) -> Iterator[Risen]:
    risen = Risen(world, ansible, 2)
    yield risen
    risen.reopen()


@pytest.fixture
def restart(risen: Risen, minicloud: Minicloud, tmp_path: Path) -> dict[str, t.Any]:
    """A container engine that can restart nova-compute, and what makes a run use it."""
    command = f"{minicloud.root}/tests/minicloud/minicloud --home {minicloud.home}"
    engine = tmp_path / "engine"
    engine.write_text(
        f"#!/bin/sh\nPATH={sys.exec_prefix}/bin:$PATH\n"
        f'echo "$@" >> {tmp_path}/engine.log\n'
        f'[ "$1" != restart ] || {{ {command} kill "$2" && {command} start "$2"; }}\n'
    )
    engine.chmod(0o755)
    return {
        "stop_container": risen.host,
        "container_engine": str(engine),
        "stop_host": "localhost",
        "become": False,
    }


@pytest.mark.follows("migrations.explain", "unfinished_evacuation._advise_on_return")
@pytest.mark.long
def test_a_redeployed_host_is_restarted_before_servers_return(
    risen: Risen, restart: dict[str, t.Any], placement: Placement, tmp_path: Path
) -> None:
    server = risen.servers[0]
    assert risen.statuses_of_evacuations == {"done"}

    assert risen.advice in risen.redeploy(succeeds=False)
    refused = risen.refused(**{"return": True})
    assert "Nothing was changed" in refused.told and risen.advice in refused.told
    risen.redeploy(succeeds=True, **restart)
    assert (tmp_path / "engine.log").read_text().count("restart") == 1
    assert risen.statuses_of_evacuations == {"completed"}

    # Another start destroys nothing now.
    risen.world.live_migrate(server, risen.host)
    held = placement.held(server)
    risen.world.restart(risen.host)
    assert placement.held(server) == held and set(held) == {risen.world.provider(risen.host)}


@pytest.mark.follows("on_source_of_evacuation")
@pytest.mark.long
def test_nothing_moves_to_a_host_that_would_destroy_it(
    risen: Risen, restart: dict[str, t.Any], tmp_path: Path
) -> None:
    first = risen.servers[0]
    world = risen.world
    log = tmp_path / "engine.log"

    # Not by a scheduler that may choose it, and not by a check that says so.
    drained = Drained(world, risen.ansible, risen.elsewhere).refused()
    assert f"evacuated from {risen.host}" in drained.told
    assert {risen.find_host(server) for server in risen.servers} == {risen.elsewhere}
    servers.update_service(world.cloud, risen.elsewhere, {"status": "enabled"})
    assert risen.advice in risen.refused("--check", **{"return": True}).told

    # A person moves one back by hand: then nobody may restart nova-compute.
    world.live_migrate(first, risen.host)
    found = risen.ansible.module("orphan_detect", min_age="0", kinds=["unfinished_evacuation"])
    named = {entry["server"]["uuid"] for entry in found["findings"]}
    assert named & set(risen.servers) == {first}
    assert "not restart it" in risen.redeploy(succeeds=False, **restart)
    assert not log.exists()

    # Once that server is away again, a check says that the run would restart it, and does not.
    world.live_migrate(first, risen.elsewhere)
    risen.redeploy("--check", succeeds=True, **restart)
    assert "restart" not in log.read_text() and risen.statuses_of_evacuations == {"done"}


@pytest.mark.long
def test_nova_destroys_what_has_returned_before(risen: Risen, placement: Placement) -> None:
    """What all of this is about: the next start of nova-compute takes the server's allocation."""
    server = risen.servers[0]
    risen.world.live_migrate(server, risen.host)
    assert placement.held(server)

    risen.world.restart(risen.host)

    assert not placement.held(server)
