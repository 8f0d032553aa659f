"""A run is stopped by a signal, and by nothing else.

Or by the end of the process that receives its result.
"""

from __future__ import annotations

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

# It checks between changes without end.
RUNNING = """
import sys, time
from ansible_collections.osops.placement.plugins.module_utils._core.run.signals \
import _runs_tasks, watch_for_stop
with watch_for_stop() as stopped:
    print(f"runs{stopped().id}", file=sys.stderr, flush=True)
    while not (why := stopped()):
        time.sleep(0.01)
    print(why.id, why.split()[-1], file=sys.stderr, flush=True)
"""

# It checks twice between changes, and ends.
ENDING = """
import sys
from ansible_collections.osops.placement.plugins.module_utils._core.run.signals \
import _runs_tasks, watch_for_stop
with watch_for_stop() as stopped:
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
def test_signal_stops_the_run_at_its_next_check(number: signal.Signals) -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        run.send_signal(number)

        assert _said(run).split() == ["stopped_by_signal", f"{number.name}."]
        assert run.wait(LONG) == 0


def test_first_of_several_signals_is_reported_and_none_kills_the_run() -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        for _number in range(5):
            run.send_signal(signal.SIGTERM)

        assert _said(run).split() == ["stopped_by_signal", "SIGTERM."]
        assert run.wait(LONG) == 0


def test_run_under_nohup_survives_the_end_of_the_terminal() -> None:
    with child(RUNNING, hangup="ignore") as run:
        assert _said(run) == "runs"
        run.send_signal(signal.SIGHUP)
        run.terminate()

        assert _said(run).split() == ["stopped_by_signal", "SIGTERM."]


def test_run_stops_when_its_output_has_no_reader() -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        assert run.stdout
        run.stdout.close()

        assert _said(run).split() == GONE


def test_run_stops_when_its_connection_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with ours, child(RUNNING, stdout=theirs) as run:
        theirs.close()
        assert _said(run) == "runs"
        ours.close()

        assert _said(run).split() == GONE


def test_run_stops_when_its_terminal_is_gone() -> None:
    ours, theirs = os.openpty()
    with child(RUNNING, stdout=theirs) as run:
        os.close(theirs)
        assert _said(run) == "runs"
        os.close(ours)

        assert _said(run).split() == GONE


def test_run_without_an_output_stops() -> None:
    with child(ENDING, preexec_fn=lambda: os.close(1)) as run:
        assert _said(run) == repr("ansible_gone" * 2)


@pytest.mark.parametrize("output", ["pipe", "full pipe", "file", "null", "socket", "terminal"])
def test_run_continues_while_its_output_has_a_reader(output: str, tmp_path: pathlib.Path) -> None:
    ends: list[t.Any] = []
    match output:
        case "pipe" | "full pipe":
            ends = list(os.pipe())
        case "file":
            ends = [os.open(tmp_path / "output", os.O_WRONLY | os.O_CREAT)]
        case "null":
            ends = [os.open(os.devnull, os.O_WRONLY)]
        case "socket":
            ends = [end.detach() for end in socket.socketpair()]
        case "terminal":
            ends = list(os.openpty())
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


def _two_numbers(run: subprocess.Popen[str]) -> None:
    """Wait until both ansible-playbook and its module have printed that they run."""
    assert all(_said(run).isdigit() for _process in range(2))


def test_run_stops_when_ansible_ended_before_the_first_check(tmp_path: pathlib.Path) -> None:
    with _playbook(tmp_path) as run:
        playbook = int(_said(run))
        assert _said(run).isdigit()
        os.kill(playbook, signal.SIGKILL)
        run.wait(LONG)
        assert run.stdin
        print(file=run.stdin, flush=True)

        assert _said(run) == "runsansible_gone"
        assert _said(run).split() == GONE


def test_run_stops_when_ansible_ends_later(tmp_path: pathlib.Path) -> None:
    with _playbook(tmp_path) as run:
        playbook = int(_said(run))
        assert _said(run).isdigit()
        assert run.stdin
        print(file=run.stdin, flush=True)
        assert _said(run) == "runs"
        os.kill(playbook, signal.SIGKILL)

        assert _said(run).split() == GONE


def test_run_continues_when_only_the_shell_that_started_ansible_ended(
    tmp_path: pathlib.Path,
) -> None:
    with _playbook(tmp_path, "sys.exit()") as run:
        _two_numbers(run)
        assert run.wait(LONG) == 0
        assert run.stdin
        print(file=run.stdin, flush=True)

        assert _said(run) == "runs"


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("/usr/bin/python3.12 /usr/bin/ansible-playbook site.yml", True),
        ("python3 -sP /usr/bin/ansible localhost -m ping", True),
        ("python -m ansible playbook site.yml", True),
        ("/opt/bin/python3 -I -s /opt/bin/ansible-console", True),
        ("python3 /usr/bin/ansible-runner worker --private-data-dir=/runner", False),
        ("python3 /usr/bin/ansible-rulebook --rulebook r.yml", False),
        (
            (
                "python3 /home/operator/.ansible/tmp/ansible-tmp-1/async_wrapper.py j1 60 "
                "/home/operator/.ansible/tmp/ansible-tmp-1/AnsiballZ_x.py"
            ),
            False,
        ),
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
