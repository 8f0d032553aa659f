"""Remediations that are killed, stopped, run twice at once, or have no disk space.

Their results are known, and the rest can be done later.
"""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ...plugins.module_utils._core.run.lock import acquire_lock, list_lock_paths
from ..integration.interposer import Fault, Wires
from ..integration.strays import Strays, records
from ..integration.support import Ansible, Minicloud, long, told
from ..integration.world import World

WRITE = ("POST", "^/allocations$")


def start_cleanup(ansible: Ansible, plan: t.Any, folder: Path) -> subprocess.Popen[str]:
    """Start the playbook that applies a reviewed plan, in a session of its own."""
    path = folder / "reviewed.json"
    path.write_text(json.dumps(plan))
    variables = {
        "orphan_cleanup_plan": str(path),
        "orphan_cleanup_min_age": 0,
        "orphan_cleanup_unknown_min_age": 0,
    }
    return ansible.launch("cleanup_orphans", variables)


@pytest.mark.long
def test_runs_killed_at_each_step_of_a_write_can_be_continued_and_restored(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """Each run continues where the previous one was killed.

    All their journals together restore everything.
    """
    many.claim()
    running: list[subprocess.Popen[str]] = []

    def kill() -> Fault:
        running[-1].kill()
        return Fault.NO_ANSWER

    # A consumer is read by the renewed proof, after it, after the journal, and to verify the write.
    first, ninth = (f"^/allocations/{many.consumers[index]}$" for index in (0, 8))
    steps: list[tuple[dict[str, t.Any], int, int]] = [
        ({"method": "GET", "path": first, "nth": 2, "before": kill}, 0, 0),
        ({"method": WRITE[0], "path": WRITE[1], "before": kill}, 0, 8),
        ({"method": WRITE[0], "path": WRITE[1], "after": kill}, 8, 16),
        ({"method": "GET", "path": ninth, "nth": 4, "before": kill}, 16, 24),
    ]
    for step, gone, recorded in steps:
        wires.placement.clear()
        hook = wires.placement.on(**step)
        running.append(
            ansible.started("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))
        )
        assert told(running[-1]) == {} and running[-1].returncode == -signal.SIGKILL and hook.ran
        assert many.held == many.consumers[gone:]
        assert len(many.recorded(tmp_path)) == recorded
        assert set(many.consumers) - set(many.held) <= set(many.recorded(tmp_path))

    wires.placement.clear()
    last = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))
    assert many.held == []
    assert (
        last["tally"]["removed"] == 4 and last["tally"]["skipped"] == 16 and not last.get("failed")
    )

    restored = [
        ansible.direct(
            "orphan_restore", journal=str(journal), output_dir=str(tmp_path / "restored")
        )["tally"]
        for journal in sorted(tmp_path.glob("journal-*.jsonl"))
    ]
    assert many.held == many.consumers
    assert sum(tally["restored"] for tally in restored) == len(many.consumers)
    assert not any(tally["failed"] for tally in restored)
    many.others_are_unchanged()


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int, used: int = 0) -> t.Iterator[tuple[str, ...]]:
    """Yield a command prefix that gives `folder` a disk of its own.

    At the end the disk is copied beside it.
    """
    folder.mkdir()
    mount = (
        f"mount -t tmpfs -o size={kilobytes}k,mode=0700 tmpfs {folder} && "
        f"head -c {used}k /dev/zero > {folder}/used"
    )
    script = f'{mount} && {{ "$@"; cp -r {folder} {folder}-copy; }}'
    isolated = ("unshare", "--map-root-user", "--mount", "sh", "-c")
    if (
        not shutil.which("unshare")
        or subprocess.run([*isolated, f"mount -t tmpfs tmpfs {folder}"], check=False).returncode
    ):
        pytest.skip("nothing can be mounted here, not even in a namespace of its own")
    yield (*isolated, script, "sh")


def test_full_disk_stops_the_run_before_any_write(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    with small_disk(tmp_path / "disk", 4, used=4) as wrapper:
        result = told(
            ansible.started(
                "orphan_remediate",
                wrapper=wrapper,
                output_dir=str(tmp_path / "disk"),
                **few.arguments(wires),
            )
        )

    assert result["failed"] and os.strerror(errno.ENOSPC) in result["msg"]
    assert set(few.truth(result).values()) == {"failed"}
    assert "POST /allocations" not in wires.placement.requests


@pytest.mark.long
def test_disk_that_fills_up_stops_the_run_and_keeps_the_journal_usable(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """Changes in the journal are made, the rest is not.

    The truncated journal restores all of them.
    """
    many.claim()
    with small_disk(tmp_path / "disk", 16) as wrapper:
        result = told(
            ansible.started(
                "orphan_remediate",
                wrapper=wrapper,
                output_dir=str(tmp_path / "disk"),
                **many.arguments(wires),
            )
        )

    outcomes = many.truth(result)
    removed = [consumer for consumer in many.consumers if outcomes[consumer] == "removed"]
    assert removed and set(outcomes.values()) == {"removed", "failed"}
    assert result["failed"]
    assert not (tmp_path / "disk-copy" / "remediation.json").exists()
    assert wires.placement.requests.count("POST /allocations") == len(removed) // 8

    (journal,) = (tmp_path / "disk-copy").glob("journal-*.jsonl")
    restored = ansible.direct("orphan_restore", journal=str(journal), output_dir=str(tmp_path))
    assert restored["torn"] and restored["tally"]["restored"] == len(removed)
    assert many.held == many.consumers


@pytest.mark.long
def test_two_runs_on_one_machine_change_each_consumer_once(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    many.claim()
    folders = [tmp_path / "one", tmp_path / "other"]

    runs = [
        ansible.started("orphan_remediate", output_dir=str(folder), **many.arguments(wires))
        for folder in folders
    ]
    results = [told(run) for run in runs]

    assert sorted(result["tally"]["removed"] for result in results) == [0, 20]
    assert sorted(result["tally"]["skipped"] for result in results) == [0, 20]
    assert many.held == [] and not any(result.get("failed") for result in results)
    assert wires.placement.requests.count("POST /allocations") == 3


def test_run_gives_up_waiting_for_another_run(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    with acquire_lock(f"{wires.placement.url}/", 0, str):
        result = ansible.direct(
            "orphan_remediate", output_dir=str(tmp_path), lock_timeout=1, **few.arguments(wires)
        )

    assert result["failed"] and result["reason_id"] == "invalid_input"
    assert few.held == few.consumers


@pytest.mark.long
def test_two_runs_on_two_machines_change_each_consumer_once(
    ansible: Ansible, minicloud: Minicloud, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """The other run happens between proof and write of this run's second request.

    They share no lock.
    """
    many.claim()
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    other = Ansible(minicloud.root, folders[1], {**minicloud.environment, "HOME": str(folders[1])})
    results: list[dict[str, t.Any]] = []

    def meanwhile() -> None:
        results.append(
            other.direct("orphan_remediate", output_dir=str(folders[1]), **many.arguments())
        )

    wires.placement.on(*WRITE, nth=2, before=meanwhile)
    results.append(
        ansible.direct("orphan_remediate", output_dir=str(folders[0]), **many.arguments(wires))
    )

    made = [
        [outcome["consumer"] for outcome in result["outcomes"] if outcome["outcome"] == "removed"]
        for result in results
    ]
    # What both write at the same time counts for both, as if a proxy had sent the request twice:
    # the journal of either restores it.
    assert made == [many.consumers[8:], many.consumers[:16]]
    assert many.held == [] and not any(
        result["tally"]["failed"] or result.get("failed") for result in results
    )


@pytest.mark.parametrize(
    "how", [long("SIGTERM"), long("SIGINT"), long("SIGHUP"), "SIGKILL", long("SIGINT to the group")]
)
def test_stopped_ansible_lets_the_current_write_finish(
    ansible: Ansible, wires: Wires, world: World, many: Strays, tmp_path: Path, how: str
) -> None:
    """Ctrl-C, a cancelled job or a closed terminal does this.

    The current write is finished and reported, and nothing else starts.
    """
    many.claim()
    name, _space, group = how.partition(" ")
    modules: list[int] = []
    playbook = start_cleanup(ansible, many.arguments(wires)["plan"], tmp_path)

    def stop() -> None:
        modules.extend(
            known for known in descendants(playbook.pid) if b"orphan_remediate" in command(known)
        )
        number = signal.Signals[name]
        os.killpg(playbook.pid, number) if group else playbook.send_signal(number)
        playbook.wait(timeout=180)

    stopped = wires.placement.on(*WRITE, nth=2, before=stop)
    playbook.wait(timeout=120)
    world.wait("the second write to be under way", lambda: stopped.ran)
    world.wait("the module to end", lambda: not any(command(known) for known in modules))

    assert modules and wires.placement.requests.count("POST /allocations") == 2
    kept = json.loads((ansible.folder / "orphan-cleanup" / "remediation.json").read_text())
    assert (
        list(many.truth({**kept, "changed": True, "stopped": True, "failed": True}).values())
        == ["removed"] * 16 + ["skipped"] * 4
    )
    stopped_by = {outcome["reason_id"] for outcome in kept["outcomes"][16:]}
    assert stopped_by <= {"stopped_by_signal", "ansible_gone"} and len(stopped_by) == 1
    journal = records(ansible.folder / "orphan-cleanup")
    assert [record["event"] for record in journal] == (["before"] * 8 + ["after"] * 8) * 2


@pytest.mark.parametrize("part", [b"AnsiballZ_orphan_remediate", long(b"-c")])
def test_module_notices_that_ansible_was_killed_before_it_started(
    ansible: Ansible, wires: Wires, world: World, many: Strays, tmp_path: Path, part: bytes
) -> None:
    """The worker that waits for the module outlives `ansible-playbook`: its pipe shows nothing."""
    many.claim()
    playbook = start_cleanup(ansible, many.arguments(wires)["plan"], tmp_path)
    modules: list[int] = []

    def begun() -> bool:
        modules[:] = [
            known
            for known in descendants(playbook.pid)
            if b"AnsiballZ_orphan_remediate" in command(known)
        ]
        return any(part in command(known).split(b"\0")[:2][-1] for known in modules)

    world.wait("the writing module to be there", begun)
    playbook.kill()
    playbook.wait(timeout=180)
    world.wait(
        "the module to end",
        lambda: not any(b"AnsiballZ_orphan_remediate" in command(known) for known in modules),
    )

    assert "POST /allocations" not in wires.placement.requests
    kept = json.loads((ansible.folder / "orphan-cleanup" / "remediation.json").read_text())
    assert {(outcome["outcome"], outcome["reason_id"]) for outcome in kept["outcomes"]} == {
        ("skipped", "ansible_gone")
    }
    assert records(ansible.folder / "orphan-cleanup") == [] and many.held == many.consumers
    with acquire_lock(f"{wires.placement.url}/", 0, str):
        pass


@pytest.mark.long
def test_run_continues_when_a_process_that_may_exit_has_exited(
    ansible: Ansible, wires: Wires, world: World, few: Strays, tmp_path: Path
) -> None:
    """A task in the background outlives its `ansible-playbook`.

    A task under nohup outlives the shell that started it.
    """
    few.claim()
    options = {**few.arguments(wires), "output_dir": str(tmp_path), "cloud": "minicloud"}
    detached: list[int] = []

    def outlived() -> None:
        world.wait("ansible-playbook to end", lambda: not any(map(command, detached)))

    ended = wires.placement.on(*WRITE, before=outlived)
    task = {"osops.placement.orphan_remediate": options, "async": 120, "poll": 0}
    play = tmp_path / "play.json"
    here = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
    }
    play.write_text(json.dumps([{**here, "tasks": [task]}]))

    def started(script: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", script, "sh", ansible.program("ansible-playbook"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ansible.folder,
            env=ansible.environment,
        )

    with started('exec "$@"', str(play)) as playbook:
        detached.append(playbook.pid)
    world.wait("the task in the background to have written", (tmp_path / "remediation.json").exists)
    assert ended.ran and set(
        few.truth({**_kept(tmp_path), "changed": True, "stopped": ""}).values()
    ) == {"removed"}

    few.claim()
    wires.placement.clear()
    (tmp_path / "remediation.json").unlink()
    del task["async"], task["poll"]
    play.write_text(json.dumps([{**here, "tasks": [task]}]))
    with started('nohup "$@" >/dev/null & echo', str(play)) as shell:
        shell.communicate(timeout=60)
    world.wait("the run to have written", (tmp_path / "remediation.json").exists)
    assert set(few.truth({**_kept(tmp_path), "changed": True, "stopped": ""}).values()) == {
        "removed"
    }


def _kept(folder: Path) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads((folder / "remediation.json").read_text()))


def test_stopped_module_reports_what_it_did(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    many.claim()
    running: list[subprocess.Popen[str]] = []
    wires.placement.on(*WRITE, nth=1, before=lambda: running[0].send_signal(signal.SIGTERM))
    running.append(
        ansible.started("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))
    )

    result = told(running[0])

    assert result["failed"] and "SIGTERM" in result["stopped"] and "8 of 20" in result["msg"]
    assert list(many.truth(result).values()) == ["removed"] * 8 + ["skipped"] * 12


def test_module_stopped_during_a_proof_writes_nothing_more(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    running: list[subprocess.Popen[str]] = []
    wires.nova.on(
        "GET",
        f"/servers/{few.consumers[0]}$",
        before=lambda: running[0].send_signal(signal.SIGTERM),
    )
    running.append(
        ansible.started("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))
    )

    assert set(few.truth(told(running[0])).values()) == {"skipped"}
    assert "POST /allocations" not in wires.placement.requests


def test_module_waiting_for_another_run_can_be_stopped(
    ansible: Ansible, wires: Wires, world: World, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    with acquire_lock(f"{wires.placement.url}/", 0, str):
        running = ansible.started(
            "orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires)
        )
        (lock, _spare) = list_lock_paths(f"{wires.placement.url}/")
        world.wait("the run to wait", lambda: lock in open_files(running.pid))
        running.terminate()
        result = told(running)

    assert result["reason_id"] == "invalid_input" and "SIGTERM" in result["msg"]
    assert few.held == few.consumers


def descendants(root: int) -> list[int]:
    """Return the processes that `root` started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for known in found:
        found.extend(parents.get(known, []))
    return found[1:]


def open_files(number: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{number}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(file))
    return found


def command(number: int) -> bytes:
    """Return the command line of a process, empty when it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{number}/cmdline").read_bytes()
    return b""
