"""`cleanup_hypervisor` on hosts with real domains and directories of real servers."""

import dataclasses as d
import json
import os
import shlex
import subprocess
import sys
import typing as t
import uuid
from pathlib import Path

import pytest
from minicloud_ctl import holdings, servers

from . import libvirt as real
from .conftest import ROOT
from .libvirt import Libvirt
from .support import Ansible, Minicloud, Run
from .world import API, CELL1, World

pytestmark = pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())
BOTH = ("leftover_domain", "leftover_directory")
CELL_DOWN = "cell is not answering"


@d.dataclass
class Hypervisor:
    """A compute host of the cloud with libvirt domains.

    Its instances are in a folder of their own.
    """

    name: str
    libvirt: Libvirt
    instances: Path
    world: World

    def guest(self, server: str, *, running: bool = False, folder: str = "") -> None:
        """Give a server its domain and its directory, as its nova-compute would."""
        self.libvirt.domain(of=server)
        if running:
            self.libvirt("start", server)
        self.directory(folder or server)

    def directory(self, name: str) -> Path:
        path = self.instances / name
        path.mkdir()
        (path / "disk").write_text("its disk")
        return path

    def state(self) -> tuple[dict[str, t.Any], set[str]]:
        files = {
            str(path.relative_to(self.instances))
            for path in self.instances.rglob("*")
            if ".quarantine" not in path.parts
        }
        return self.libvirt.everything(), files

    def has(self, server: str) -> tuple[bool, bool]:
        """Return whether its domain and its directory are here."""
        return server in self.libvirt.everything(), os.path.lexists(self.instances / server)


@pytest.fixture(name="host")
def _host(world: World, libvirt: Libvirt, tmp_path: Path) -> Hypervisor:
    libvirt.forget()
    name = f"guests-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    instances = tmp_path / "instances"
    instances.mkdir()
    host = Hypervisor(name, libvirt, instances, world)
    # One server that really is here: a host without any of Nova's servers is taken for another
    # host.
    host.guest(world.boot(name), running=True)
    return host


@pytest.fixture(name="ansible")
def _ansible(minicloud: Minicloud, keeper: subprocess.Popen[t.Any], tmp_path: Path) -> real.Inside:
    return real.Inside(keeper, tmp_path, minicloud.environment)


class Cleaning:
    """`cleanup_hypervisor`, run on one host, or also on those that are `beside` it."""

    def __init__(self, ansible: Ansible, host: Hypervisor) -> None:
        self._ansible = ansible
        self._folder = ansible.folder
        self._inventory = ansible.folder / "inventory.json"
        log = host.world.paths.logs / f"nova-compute-{host.name}.log"
        self.hosts: dict[str, dict[str, t.Any]] = {
            host.name: {
                "uri": host.libvirt.uri,
                "instances_path": str(host.instances),
                "log_paths": [str(log)],
            }
        }

    def beside(self, name: str, *servers: str) -> None:
        """Clean up another host as well, which has directories of these servers."""
        instances = self._folder / f"instances-{name}"
        instances.mkdir()
        for server in servers:
            (instances / server).mkdir()
        # A command that lists no domains.
        self.hosts[name] = {"virsh": "true", "instances_path": str(instances)}

    def arguments(self, **variables: t.Any) -> list[str]:
        """Return the inventory, and the variables without the prefix of the role."""
        hosts = {}
        for name, own in self.hosts.items():
            known = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
            for key, value in own.items():
                known[key if key.startswith("ansible_") else f"hypervisor_cleanup_{key}"] = value
            hosts[name] = known
        self._inventory.write_text(json.dumps({"compute": {"hosts": hosts}}))
        given = {
            "become": False,
            "backup_path": str(self._folder / "backup"),
            "min_age": 0,
            "unknown_min_age": 0,
            **variables,
        }
        named = {f"hypervisor_cleanup_{name}": value for name, value in given.items()}
        return ["-i", str(self._inventory), "-e", json.dumps(named)]

    def __call__(self, *arguments: str, kinds: t.Sequence[str] = BOTH, **variables: t.Any) -> Run:
        given = self.arguments(remediate_kinds=list(kinds), **variables)
        run = self._ansible.playbook("cleanup_hypervisor", *given, *arguments)
        assert "Traceback" not in run.output, run.output
        return run

    def done(self, *arguments: str, **variables: t.Any) -> Run:
        run = self(*arguments, **variables)
        assert run.status == 0, run.output
        return run


class Engine:
    """A container engine that only writes down what it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._calls, program = folder / "engine.calls", folder / "engine"
        program.write_text(f'#!/bin/sh\necho "$*" >> "{self._calls}"\n')
        program.chmod(0o700)
        self.options = {"container_engine": str(program), "quiet": "1s", "retries": 60}

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture(name="engine")
def _engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


@pytest.fixture(name="clean")
def _clean(ansible: Ansible, host: Hypervisor) -> Cleaning:
    return Cleaning(ansible, host)


def _deleted(world: World, host: str) -> str:
    server = world.boot(host)
    servers.delete(world.cloud, server)
    holdings.await_providers(world.cloud, server)
    return server


def _moved(world: World, host: str) -> str:
    server = world.boot(host)
    servers.migrate(world.cloud, server, "compute-1")
    servers.confirm(world.cloud, server)
    return server


def _verdicts(run: Run) -> dict[str, str]:
    found = json.loads((run.folder / "hypervisor-cleanup" / "guests.json").read_text())
    entries = (entry for key in ("findings", "protected", "undecided") for entry in found[key])
    return {
        (
            f"{entry['kind'].partition('_')[2]} "
            f"{entry['name' if entry['kind'] == BOTH[1] else 'uuid']}"
        ): entry["verdict"]
        for entry in entries
    }


@pytest.mark.long
def test_cleanup_quarantines_a_leftover_and_prints_the_command_that_restores_it(
    ansible: real.Inside, host: Hypervisor, clean: Cleaning, engine: Engine
) -> None:
    forgotten = str(uuid.uuid4())
    host.guest(forgotten)
    before = host.state()

    done = clean.done(restart_container=host.name, **engine.options)

    assert engine.calls == [f"restart {host.name}"]
    assert host.has(forgotten) == (False, False)
    assert "1 undefined, 1 quarantined." in done.told
    _undo(ansible, _get_command(done, "Undo"))
    assert host.state() == before


@pytest.mark.long
def test_cleanup_shows_quarantines_and_restores_leftovers(
    ansible: real.Inside, host: Hypervisor, world: World, clean: Cleaning
) -> None:
    deleted, moved, forgotten = (
        _deleted(world, host.name),
        _moved(world, host.name),
        str(uuid.uuid4()),
    )
    for server in (deleted, moved, forgotten):
        host.guest(server)
    clean.beside("compute-1", moved)
    before = host.state()

    shown = clean.done(kinds=[])
    foretold = clean.done("--check", "--diff")
    assert host.state() == before
    done = clean.done()
    again = clean.done()

    for server in (deleted, moved, forgotten):
        # More than five are one line each.
        rows = [line for line in shown.output.splitlines() if server[:8] in line]
        for kind in BOTH:
            assert any(row.startswith(f"{kind} ") and "not now" in row for row in rows), rows
        assert host.has(server) == (False, False)
    assert _changes(foretold) == _changes(done) == 1 and _changes(shown) == _changes(again) == 0
    quarantined = [
        path.name.partition(".")[0] for path in (host.instances / ".quarantine").iterdir()
    ]
    assert sorted(quarantined) == sorted([deleted, moved, forgotten])

    for run, line in (
        (shown, "found     2 hypervisors  3 domains and 3 directories left over. "),
        (foretold, "ready     2 hypervisors  nothing was changed. Without --check: 3 domains "),
        (done, "Outcome: 3 undefined, 3 quarantined."),
        (again, "clean     2 hypervisors  no leftovers."),
    ):
        last = _get_last_lines(run)
        assert any(each.startswith(line) for each in last[-6:]), run.output
    assert _get_command(shown, "Next").endswith(" --check")
    assert "ansible-playbook -i " in _get_command(foretold, "Next")
    assert "Next:" not in done.output + again.output
    assert all("Undo:" not in run.output for run in (shown, foretold, again))

    undo = _undo(ansible, _get_command(done, "Undo").partition("  # and 2 more")[0])
    back = next(server for server in (deleted, moved, forgotten) if server in undo)
    assert host.libvirt.everything()[back] == before[0][back]
    assert (host.instances / back / "disk").read_text() == "its disk"


def _get_last_lines(run: Run) -> list[str]:
    """Return what was printed before the figures of the hosts, without empty lines."""
    return [line for line in run.output.partition("\nPLAY RECAP ")[0].split("\n") if line]


def _get_command(run: Run, label: str) -> str:
    (line,) = [line for line in _get_last_lines(run)[-6:] if line.startswith(f"{label}:")]
    return line.partition(":")[2].strip()


def _undo(ansible: real.Inside, printed: str) -> str:
    """Run the command that a run printed, and return it."""
    program, *arguments = shlex.split(printed)
    done = ansible.command(program, *arguments)
    assert done.status == 0, done.output
    return arguments[-1]


def _changes(run: Run) -> int:
    recap = next(
        line
        for line in run.output.splitlines()
        if line.startswith("guests-") and "changed=" in line
    )
    return int(recap.partition("changed=")[2].split()[0])


@pytest.mark.long
def test_cleanup_keeps_what_a_live_server_may_need(
    ansible: real.Inside, host: Hypervisor, world: World, clean: Cleaning
) -> None:
    unconfirmed = world.boot(host.name)
    servers.migrate(world.cloud, unconfirmed, "compute-1")
    evacuee = world.boot("compute-2")
    stopped = world.boot(host.name)
    servers.act(world.cloud, stopped, "os-stop")
    servers.settle(world.cloud, stopped, host.name, "SHUTOFF")
    running, linked, open_here = (_deleted(world, host.name) for _count in range(3))
    host.guest(unconfirmed, folder=f"{unconfirmed}_resize")
    host.guest(evacuee)
    host.guest(stopped)
    host.guest(running, running=True)
    (host.instances / linked).symlink_to(host.instances / stopped)
    disk = host.directory(open_here) / "disk"
    foreign = host.libvirt.domain(nova="")
    before = host.state()

    with ansible.opening(disk):
        run = clean.done()

    assert host.state() == before
    assert _verdicts(run) == {
        f"domain {unconfirmed}": "protected",
        f"directory {unconfirmed}_resize": "protected",
        f"domain {evacuee}": "undecided",
        f"directory {evacuee}": "undecided",
        f"domain {running}": "protected",
        f"directory {running}": "protected",
        f"directory {linked}": "protected",
        f"directory {open_here}": "protected",
        f"domain {foreign}": "protected",
    }
    assert _changes(run) == 0
    servers.confirm(world.cloud, unconfirmed)


@pytest.mark.long
def test_cleanup_quarantines_leftovers_of_a_server_deleted_by_sql(
    host: Hypervisor, world: World, clean: Cleaning
) -> None:
    """These are the last steps of source document 002.

    The domain is shut off, and Nova's database has `deleted` = 1 where Nova writes the row's id.

    A server that lost its instance mapping is not found either, and lives.
    """
    server, unmapped = world.boot(host.name), world.boot(host.name)
    host.guest(server)
    host.guest(unmapped)
    world.sql(
        CELL1,
        (
            "UPDATE instances SET deleted = 1, deleted_at = datetime('now'), vm_state = 'deleted' "
            "WHERE uuid = ?"
        ),
        server,
    )
    mapping, away = (
        "UPDATE instance_mappings SET instance_uuid = ? WHERE instance_uuid = ?",
        str(uuid.uuid4()),
    )
    world.sql(API, mapping, away, unmapped)

    clean.done()
    world.sql(API, mapping, unmapped, away)
    # Its remaining allocation is for cleanup_orphans.
    world.hold(server, {})

    assert host.has(server) == (False, False)
    assert host.has(unmapped) == (True, True)


@pytest.mark.long
def test_cleanup_leaves_an_evacuated_guest_to_nova_until_its_host_is_back(
    host: Hypervisor, world: World, clean: Cleaning
) -> None:
    server = world.boot(host.name)
    host.guest(server)
    world.kill(host.name)
    servers.evacuate(world.cloud, server, "compute-3")
    dead = clean.done()
    assert host.has(server) == (True, True)
    assert _verdicts(dead)[f"domain {server}"] == "protected"
    world.restart(host.name)
    world.wait(
        "Nova to tidy up",
        lambda: servers.migrations(world.cloud, server)[0]["status"] == "completed",
    )

    back = clean.done()

    # The server lives, and its present host has not shown that its directory is another one.
    assert host.has(server) == (False, True)
    assert _verdicts(back)[f"directory {server}"] == "protected"


@pytest.mark.long
def test_cleanup_changes_nothing_under_a_wrong_host_name(
    host: Hypervisor, world: World, clean: Cleaning
) -> None:
    """Compared with another host, everything here looks like a leftover."""
    gone = _deleted(world, host.name)
    host.guest(gone)
    world.boot("compute-4")
    empty = f"{host.name}-empty"
    world.own_host(empty)
    before = host.state()

    unknown = clean(host="nonesuch")
    mistaken = [_verdicts(clean(host=name)) for name in ("compute-4", empty)]

    assert unknown.status != 0 and "nonesuch" in unknown.told
    assert host.state() == before
    # If nothing runs, only the file of nova-compute says which compute node it is.
    host.libvirt("destroy", host.libvirt("list", "--uuid"))
    (host.instances.parent / "compute_id").write_text(world.provider(host.name))
    stopped = host.state()
    mistaken.append(_verdicts(clean(host=empty)))
    assert host.state() == stopped
    assert {verdict for verdicts in mistaken for verdict in verdicts.values()} == {"undecided"}
    clean.done()
    assert host.has(gone) == (False, False)


@pytest.mark.long
def test_cleanup_changes_nothing_with_a_cell_down_or_above_the_limit(
    host: Hypervisor, world: World, minicloud: Minicloud, clean: Cleaning
) -> None:
    for _count in range(2):
        host.guest(_deleted(world, host.name))
    before = host.state()

    many = clean(max_changes=3)
    minicloud.scenario("cell_down")
    try:
        dark = clean()
    finally:
        minicloud.run("scenario", "--undo", "cell_down")

    assert many.status != 0 and "max_changes" in many.told
    assert dark.status != 0 and CELL_DOWN in dark.told
    assert host.state() == before
    # Each is one sentence, at the end.
    for run in (many, dark):
        (fatal,) = [line for line in run.output.splitlines() if line.startswith("fatal:")]
        assert _get_last_lines(run)[-1] == fatal and len(fatal) < 600
    # Newer versions of Ansible say each error themselves before that.
    assert CELL_DOWN not in dark.output.partition("[ERROR]")[0].partition("fatal:")[0]


@pytest.mark.long
def test_change_that_fails_is_one_sentence_after_what_was_changed(
    host: Hypervisor, world: World, clean: Cleaning
) -> None:
    gone = _deleted(world, host.name)
    host.guest(gone)
    nowhere = str(host.instances.parent / "nonesuch" / "quarantine")

    run = clean(quarantine_path=nowhere)

    assert run.status == 2 and host.has(gone) == (False, True), run.output
    last = _get_last_lines(run)
    (fatal,) = [line for line in last if line.startswith(("fatal:", "failed:"))]
    assert last[-1] == fatal and len(fatal) < 500, run.output
    assert host.name in fatal and f"leftover_directory {gone}: " in fatal
    assert any(line.startswith(f"undefined {host.name}") for line in last), run.output
    (undo,) = [line for line in last if line.startswith("Undo:")]
    assert gone in undo and "defined" in undo and "present" not in undo


@pytest.mark.long
def test_cleanup_defers_leftovers_found_after_the_count_to_the_next_run(
    host: Hypervisor, world: World, clean: Cleaning, tmp_path: Path
) -> None:
    counted, later = _deleted(world, host.name), _deleted(world, host.name)
    host.guest(counted)
    host.libvirt.domain(of=later)
    definition, virsh = tmp_path / "later.xml", tmp_path / "virsh"
    definition.write_text(host.libvirt.xml(later))
    host.libvirt("undefine", later)
    guests = tmp_path / "hypervisor-cleanup" / "guests.json"
    make = (
        f'mkdir "{host.instances / later}" && virsh -q -c "{host.libvirt.uri}" '
        f'define "{definition}"'
    )
    virsh.write_text(
        f'#!/bin/sh\n[ -e "{guests}" ] && [ ! -e "{host.instances / later}" ] && {make} >&2\n'
        'exec virsh "$@"\n'
    )
    virsh.chmod(0o755)

    clean.done(virsh=str(virsh), max_changes=2)

    assert host.has(counted) == (False, False)
    assert host.has(later) == (True, True)
    clean.done()
    assert host.has(later) == (False, False)


@pytest.mark.long
def test_second_guest_of_an_evacuated_server_is_the_worst_finding(
    ansible: real.Inside, host: Hypervisor, world: World, clean: Cleaning, engine: Engine
) -> None:
    """Its host was cut off and never fenced. A leftover beside it is cleaned up all the same."""
    evacuee, forgotten = world.boot(host.name), str(uuid.uuid4())
    host.guest(evacuee, running=True)
    host.guest(forgotten)
    world.kill(host.name)
    servers.evacuate(world.cloud, evacuee, "compute-3")
    held = holdings.of(world.cloud, evacuee)
    assert len(held.allocations) == 2
    counted = (
        "2026-11-20 10:00:00.123 7 WARNING nova.compute.manager [-] While synchronizing instance "
        "power states, found 1 instances in the database and 3 instances on the hypervisor.\n"
    )
    log = host.instances.parent / "nova-compute.log"
    log.write_text(counted)

    run = clean.done(
        restart_container=host.name, log_paths=[str(log)], log_since="9999d", **engine.options
    )

    assert _verdicts(run)[f"leftover {evacuee}"] == "orphaned"
    first = json.loads((run.folder / "hypervisor-cleanup" / "guests.json").read_text())["findings"]
    assert first[0]["kind"] == "running_leftover"
    last = _get_last_lines(run)
    assert any(line.split()[:2] == ["running", host.name] for line in last), run.output
    assert "clean  " not in run.output and "no leftovers" not in run.output
    # What is proven to be left over goes, and the guest stays.
    assert host.has(forgotten) == (False, False) and host.has(evacuee) == (True, True)
    # nova-compute there is down, and would destroy the guest with its disk when it starts.
    assert engine.calls == []
    # Three domains, of which Nova has one there.
    assert "no finding explains" not in run.output

    guests = [str(run.folder / "hypervisor-cleanup" / host.name / "guests.json")]
    scope = {"orphan_cleanup_consumers": [evacuee]}
    for given, kind in (({}, "evacuated_source"), ({"guests": guests}, "guest_elsewhere")):
        named = {f"orphan_cleanup_{name}": value for name, value in given.items()}
        found = ansible.playbook("detect_orphans", variables={**scope, **named})
        assert found.entry(evacuee)["kind"] == kind, found.output
    cleaned = ansible.playbook(
        "cleanup_orphans", variables={**scope, "orphan_cleanup_guests": guests}
    )
    assert cleaned.status == 0, cleaned.output
    assert holdings.of(world.cloud, evacuee).allocations == held.allocations


@pytest.mark.long
def test_disks_of_a_move_that_was_cut_off_are_named_with_the_way_back(
    host: Hypervisor, world: World, clean: Cleaning
) -> None:
    server = world.boot(host.name)
    host.guest(server, folder=f"{server}_resize")
    before = host.state()

    run = clean.done()

    assert host.state() == before
    assert _verdicts(run) == {f"directory {server}_resize": "undecided"}
    assert f"rename {server}_resize to {server}" in run.told
    assert "no leftovers" not in run.output


@pytest.mark.long
def test_purge_asks_nova_and_two_clocks(
    ansible: real.Inside, host: Hypervisor, clean: Cleaning, tmp_path: Path
) -> None:
    gone, fresh = str(uuid.uuid4()), str(uuid.uuid4())
    (alive,) = (path.name for path in host.instances.iterdir())
    store = host.instances / ".quarantine"
    store.mkdir(mode=0o700)
    for server in (gone, alive):
        (store / f"{server}.20200101T000000Z").mkdir()
    host.directory(fresh)
    clean.done()
    (quarantined,) = store.glob(f"{fresh}.*")
    # A year ahead: its clock alone would call everything old.
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    (ahead / "sitecustomize.py").write_text(
        "import time\nreal = time.time\ntime.time = lambda: real() + 366 * 86400\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{ahead}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    clean.hosts[host.name]["ansible_python_interpreter"] = str(python)
    role = {"name": "osops.placement.hypervisor_cleanup", "tasks_from": "purge"}
    play = {"hosts": "compute", "tasks": [{"ansible.builtin.include_role": role}]}

    run = ansible.play(play, arguments=clean.arguments(purge_age="30d"))

    assert run.status == 0, run.output
    assert not (store / f"{gone}.20200101T000000Z").exists()
    assert (store / f"{alive}.20200101T000000Z").exists()
    assert quarantined.exists()


@pytest.mark.long
def test_cleanup_restarts_only_a_nova_compute_that_it_cleaned_up_after(
    host: Hypervisor, world: World, minicloud: Minicloud, tmp_path: Path
) -> None:
    """It complains about an allocation of a server that has moved, as it does in normal life."""
    server = world.boot(host.name)
    servers.migrate(world.cloud, server, "compute-1")
    servers.confirm(world.cloud, server)
    world.claim_also(server, host.name)
    world.wait(
        "a complaint",
        lambda: f"Instance {server} has been moved to another host" in world.log(host.name),
    )
    began = world.log(host.name).count("Starting compute node")
    outside = Ansible(ROOT, tmp_path, minicloud.environment)
    clean = Cleaning(outside, host)
    command = f"{ROOT}/tests/minicloud/minicloud --home {minicloud.home}"
    engine = tmp_path / "engine"
    engine.write_text(
        f'#!/bin/sh\n[ "$1" = restart ] && {command} kill "$2" && {command} start "$2"\n'
    )
    engine.chmod(0o700)
    restart = {
        "restart_container": host.name,
        "container_engine": str(engine),
        "quiet": "1s",
        "retries": 60,
    }

    def leave_and_clean() -> Run:
        host.libvirt.domain(of=str(uuid.uuid4()))
        return clean.done(**restart)

    def is_kept(run: Run, why: str) -> bool:
        assert world.log(host.name).count("Starting compute node") == began
        return "not restarted, because" in run.told and why in run.told

    complaining = clean.done(kinds=[], **restart)
    assert f"extra_host {server}" in complaining.told
    assert "moved to compute-1" in complaining.told
    assert not is_kept(complaining, "")
    row = "UPDATE migrations SET status = ?, migration_type = ? WHERE instance_uuid = ?"
    world.sql(CELL1, row, "done", "evacuation", server)
    assert is_kept(leave_and_clean(), "it would destroy")
    world.sql(CELL1, row, "confirmed", "migration", server)
    world.crash(host.name)
    # Nova still calls it up.
    assert is_kept(leave_and_clean(), "up and enabled")
    world.restart(host.name)
    began = world.log(host.name).count("Starting compute node")

    leave_and_clean()

    assert world.log(host.name).count("Starting compute node") == began + 1
