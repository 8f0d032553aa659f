"""Domains and directories that real servers have left on a real hypervisor."""

from __future__ import annotations

import json
import shlex
import typing as t
from pathlib import Path

import pytest

from ...integration.support import Ansible, Run
from .hosts import COMPUTE
from .world import Measured, StackWorld

HOST = "compute-3"
BOTH = ["leftover_domain", "leftover_directory"]


class Cleaning:
    """`cleanup_hypervisor` over ssh on all hosts."""

    def __init__(self, ansible: Ansible, world: StackWorld) -> None:
        self._ansible = ansible
        self._inventory = ansible.folder / "inventory.json"
        hosts = {name: host.variables for name, host in world.stack.hosts.items()}
        self._inventory.write_text(json.dumps({"compute": {"hosts": hosts}}))

    def arguments(self, **variables: t.Any) -> list[str]:
        given = {"min_age": 0, "unknown_min_age": 0, "remediate_kinds": BOTH, **variables}
        named = {f"hypervisor_cleanup_{name}": value for name, value in given.items()}
        return ["-i", str(self._inventory), "-e", json.dumps(named)]

    def __call__(self, *arguments: str, **variables: t.Any) -> Run:
        # Other tests may have left something on the other hosts.
        given = [*self.arguments(**variables), "--limit", HOST, *arguments]
        run = self._ansible.playbook("cleanup_hypervisor", *given)
        assert run.status == 0 and "Traceback" not in run.output, run.output
        return run

    def purge(self, **variables: t.Any) -> Run:
        role = {"name": "osops.placement.hypervisor_cleanup", "tasks_from": "purge"}
        play = {"hosts": "compute", "gather_facts": False}
        tasks = [{"ansible.builtin.include_role": role}]
        path = self._ansible.folder / "purge.json"
        path.write_text(json.dumps([{**play, "tasks": tasks}]))
        run = self._ansible.command("ansible-playbook", str(path), *self.arguments(**variables))
        assert run.status == 0 and "Traceback" not in run.output, run.output
        return run

    def undo(self, run: Run) -> None:
        """Type the command that a run has printed."""
        (line,) = [line for line in run.output.splitlines() if line.startswith("Undo:")]
        printed = line.partition(":")[2].partition("  # ")[0]
        program, *arguments = shlex.split(printed)
        undone = self._ansible.command(program, *arguments)
        assert undone.status == 0, undone.output


@pytest.fixture
def clean(ansible: Ansible, world: StackWorld) -> Cleaning:
    return Cleaning(ansible, world)


def leave_behind(world: StackWorld) -> str:
    """Delete a server while its host is without power, and purge it.

    Its domain and its directory stay: those of a server that Nova still knows to be deleted, Nova
    itself removes when nova-compute starts.
    """
    server = world.boot(HOST)
    world.purge(server, HOST)
    world.revive(HOST)
    return server


def read_state(world: StackWorld, server: str) -> tuple[bool, set[str]]:
    """Return whether a host has the domain, and the names of the files of the server."""
    host = world.host(HOST)
    folder: Path = host.instances / server
    domains = host.guests("list", "--all", "--uuid").split()
    return server in domains, {path.name for path in folder.glob("*")}


def read_numbers(world: StackWorld) -> dict[str, str]:
    """Return the process of each nova-compute."""
    return {name: host.find_pid(COMPUTE) for name, host in world.stack.hosts.items()}


def test_what_a_deleted_server_left_is_quarantined_restored_and_purged(
    world: StackWorld, clean: Cleaning, measured: Measured
) -> None:
    server = leave_behind(world)
    living = world.boot(HOST)
    before = read_state(world, server)
    assert before[0] and "disk" in before[1]

    foretold = clean("--check")
    assert read_state(world, server) == before
    assert "1 domain undefined, 1 directory quarantined" in foretold.told
    numbers = read_numbers(world)
    done = clean(restart_container="nova_compute", container_engine="/etc/nova/engine", quiet="1s")

    assert read_state(world, server) == (False, set())
    restarted = {name for name, number in read_numbers(world).items() if numbers[name] != number}
    assert restarted <= {HOST}
    assert "Outcome: 1 undefined, 1 quarantined." in done.told
    clean.undo(done)
    assert read_state(world, server) == before
    world.host(HOST).guests("start", server)
    world.host(HOST).guests("destroy", server)

    clean()
    store = world.host(HOST).instances / ".quarantine"
    kept = clean.purge(purge_age="30d")
    assert [path.name.partition(".")[0] for path in store.iterdir()] == [server]
    purged = clean.purge(purge_age="0d")
    assert list(store.iterdir()) == []
    assert "Traceback" not in kept.output + purged.output
    assert read_state(world, living)[0] and living in world.find_guests(HOST)
    measured["restarted"] = sorted(restarted)
    measured["files"] = sorted(before[1])
