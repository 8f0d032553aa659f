"""A run is stopped by a signal, and by nothing else.

Or by the end of the process that receives its result.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import typing as t

import pytest

from .......plugins.module_utils._core.run.signals import _runs_tasks, watch_for_stop
from ...children import LONG, child

GONE = ["ansible_gone", "running."]

WATCH = """
import sys, time
from ansible_collections.osops.placement.plugins.module_utils._core.run.signals \
import watch_for_stop
with watch_for_stop() as stopped:
"""

# It checks between changes without end.
RUNNING = f"""{WATCH}
    print(f"runs{{stopped().id}}", file=sys.stderr, flush=True)
    while not (why := stopped()):
        time.sleep(0.01)
    print(why.id, why.split()[-1], file=sys.stderr, flush=True)
"""

# It checks twice between changes, and ends.
ENDING = f"""{WATCH}
    print(repr(stopped().id + stopped().id), file=sys.stderr, flush=True)
"""

# In place of ansible-playbook: it forks a worker, which runs the module through a shell and waits
# for it.
PLAYBOOK = """
import os, subprocess, sys
if not os.fork():
    subprocess.run(["sh", "-c", '"$0" -c "$1" && sleep 0', sys.executable, os.environ["MODULE"]])
    os._exit(0)
os.wait()
"""

# It checks between changes, once a line tells it to check its parent.
WAITING = (
    "import os, sys\nprint(os.getppid(), file=sys.stderr, flush=True)\nsys.stdin.readline()"
    + RUNNING
)


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return process.stderr.readline().rstrip("\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("count", [1, 5])
def test_signal_stops_the_run_at_its_next_check_and_kills_it_never(
    number: signal.Signals, count: int
) -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        for _number in range(count):
            run.send_signal(number)

        assert _said(run).split() == ["stopped_by_signal", f"{number.name}."]
        assert run.wait(LONG) == 0


def test_run_under_nohup_survives_the_end_of_the_terminal() -> None:
    with child(RUNNING, hangup="ignore") as run:
        assert _said(run) == "runs"
        run.send_signal(signal.SIGHUP)
        run.terminate()

        assert _said(run).split() == ["stopped_by_signal", "SIGTERM."]


def _pair() -> list[int]:
    return [end.detach() for end in socket.socketpair()]


CONNECTIONS: dict[str, t.Callable[[], t.Sequence[int]]] = {
    "pipe": os.pipe,
    "socket": _pair,
    "terminal": os.openpty,
}


@pytest.mark.parametrize("output", CONNECTIONS)
def test_run_stops_when_its_output_has_no_reader(output: str) -> None:
    ours, theirs = CONNECTIONS[output]()
    with child(RUNNING, stdout=theirs) as run:
        os.close(theirs)
        assert _said(run) == "runs"
        os.close(ours)

        assert _said(run).split() == GONE


def test_run_without_an_output_stops() -> None:
    with child(ENDING, preexec_fn=lambda: os.close(1)) as run:
        assert _said(run) == repr("ansible_gone" * 2)


@pytest.mark.parametrize("output", [*CONNECTIONS, "full pipe", "file", "null"])
def test_run_continues_while_its_output_has_a_reader(output: str, tmp_path: pathlib.Path) -> None:
    if output in ("file", "null"):
        path = tmp_path / "output" if output == "file" else os.devnull
        ends: t.Sequence[int] = [os.open(path, os.O_WRONLY | os.O_CREAT)]
    else:
        ends = CONNECTIONS[output.removeprefix("full ")]()
    if output == "full pipe":
        os.set_blocking(ends[-1], False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(ends[-1], bytes(4096))
    try:
        with child(ENDING, stdout=ends[-1]) as run:
            assert _said(run) == "''"
    finally:
        for end in ends:
            os.close(end)


def test_signal_handlers_are_restored_afterwards() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(KeyError), watch_for_stop():
        assert [signal.getsignal(number) for number in numbers] != before
        raise KeyError

    assert [signal.getsignal(number) for number in numbers] == before


def _playbook(
    folder: pathlib.Path, *before: str
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Start the replacement of ansible-playbook from another process.

    That process runs `before` and then waits.
    """
    script = folder / "ansible-playbook"
    script.write_text(PLAYBOOK)
    starter = f"""
import os, subprocess, sys
playbook = subprocess.Popen([sys.executable, {str(script)!r}])
print(playbook.pid, file=sys.stderr, flush=True)
{chr(10).join(before) or "playbook.wait()"}
"""
    return child(starter, env={"MODULE": WAITING})


def _check_parent(run: subprocess.Popen[str]) -> str:
    """Let the module check its parent, and return what it says."""
    print(file=run.stdin, flush=True)
    return _said(run)


def test_run_stops_when_ansible_ended_before_the_first_check(tmp_path: pathlib.Path) -> None:
    with _playbook(tmp_path) as run:
        playbook = int(_said(run))
        assert _said(run).isdigit()
        os.kill(playbook, signal.SIGKILL)
        run.wait(LONG)

        assert _check_parent(run) == "runsansible_gone"
        assert _said(run).split() == GONE


def test_run_stops_when_ansible_ends_later(tmp_path: pathlib.Path) -> None:
    with _playbook(tmp_path) as run:
        playbook = int(_said(run))
        assert _said(run).isdigit()
        assert _check_parent(run) == "runs"
        os.kill(playbook, signal.SIGKILL)

        assert _said(run).split() == GONE


def test_run_continues_when_only_the_shell_that_started_ansible_ended(
    tmp_path: pathlib.Path,
) -> None:
    with _playbook(tmp_path, "sys.exit()") as run:
        # Both ansible-playbook and its module run.
        assert all(_said(run).isdigit() for _process in range(2))
        assert run.wait(LONG) == 0

        assert _check_parent(run) == "runs"


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("/usr/bin/python3.12 /usr/bin/ansible-playbook site.yml", True),
        ("python3 -sP /usr/bin/ansible localhost -m ping", True),
        ("python -m ansible playbook site.yml", True),
        ("/opt/bin/python3 -I -s /opt/bin/ansible-console", True),
        ("python3 /usr/bin/ansible-runner worker --private-data-dir=/runner", False),
        ("python3 /usr/bin/ansible-rulebook --rulebook r.yml", False),
        ("python3 /tmp/a/async_wrapper.py j1 60 /tmp/a/AnsiballZ_x.py", False),
        ("python3 /home/operator/.ansible/tmp/ansible-tmp-1/AnsiballZ_x.py", False),
        ("sudo -u ansible ansible-playbook site.yml", False),
        ("su ansible -c x", False),
        ("sh -c ansible-playbook", False),
        ("python3 deploy.py ansible-playbook", False),
        ("python3", False),
        ("", False),
    ],
)
def test_forking_process_is_recognized_by_its_command(command: str, runs: bool) -> None:
    assert _runs_tasks([text.encode() for text in command.split()]) is runs


def test_parent_process_is_not_checked_across_pid_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: sys.maxsize)
    with watch_for_stop() as stopped:
        assert stopped() == ""
