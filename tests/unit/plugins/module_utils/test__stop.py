# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run is stopped by a signal, or by the end of whoever would be told of its result; and by nothing else."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._stop import stopping
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.children import LONG, child

GONE = "The run was stopped: Ansible, which started it, is gone."

# What it would do between two changes, without end.
RUNNING = """
import sys, time
from ansible_collections.osops.placement.plugins.module_utils._stop import stopping
with stopping() as stopped:
    print(f"runs{stopped()}", file=sys.stderr, flush=True)
    while not (why := stopped()):
        time.sleep(0.01)
    print(why, file=sys.stderr, flush=True)
"""

# Twice between two changes, and to its end.
ENDING = """
import sys
from ansible_collections.osops.placement.plugins.module_utils._stop import stopping
with stopping() as stopped:
    print(repr(stopped() + stopped()), file=sys.stderr, flush=True)
"""


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return process.stderr.readline().rstrip("\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_at_its_next_question(number: signal.Signals) -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        run.send_signal(number)

        assert _said(run) == f"The run was stopped by {number.name}."
        assert run.wait(LONG) == 0


def test_the_first_of_several_signals_is_told_and_none_ends_it() -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        for _number in range(5):
            run.send_signal(signal.SIGTERM)

        assert _said(run) == "The run was stopped by SIGTERM."
        assert run.wait(LONG) == 0


def test_under_nohup_the_end_of_the_terminal_is_survived() -> None:
    with child(RUNNING, hangup="ignore") as run:
        assert _said(run) == "runs"
        run.send_signal(signal.SIGHUP)
        run.terminate()

        assert _said(run) == "The run was stopped by SIGTERM."


def test_it_stops_when_nobody_reads_its_output_any_more() -> None:
    with child(RUNNING) as run:
        assert _said(run) == "runs"
        assert run.stdout
        run.stdout.close()

        assert _said(run) == GONE


def test_it_stops_when_the_other_end_of_its_connection_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with ours, child(RUNNING, stdout=theirs) as run:
        theirs.close()
        assert _said(run) == "runs"
        ours.close()

        assert _said(run) == GONE


def test_it_stops_when_its_terminal_is_gone() -> None:
    ours, theirs = os.openpty()
    with child(RUNNING, stdout=theirs) as run:
        os.close(theirs)
        assert _said(run) == "runs"
        os.close(ours)

        assert _said(run) == GONE


def test_without_an_output_nobody_is_told_anything() -> None:
    with child(ENDING, preexec_fn=lambda: os.close(1)) as run:
        assert _said(run) == repr(GONE * 2)


@pytest.mark.parametrize("output", ["pipe", "full pipe", "file", "null", "socket", "terminal"])
def test_as_long_as_somebody_reads_it_goes_on(output: str, tmp_path: pathlib.Path) -> None:
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


def test_afterwards_signals_mean_what_they_meant_before() -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with pytest.raises(KeyError), stopping():
        assert [signal.getsignal(number) for number in numbers] != before
        raise KeyError

    assert [signal.getsignal(number) for number in numbers] == before
