"""The terminal on which the commands of a page are typed."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...integration.console_shell import COLUMNS, Shell


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Iterator[Shell]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    with contextlib.closing(Shell(str(tmp_path), environment)) as shell:
        yield shell


def test_folder_and_variables_stay_from_command_to_command(shell: Shell) -> None:
    assert shell.run("mkdir ~/clean && cd ~/clean && only='one two'") == (0, "")
    assert shell.run('echo "$only"; basename "$PWD"') == (0, "one two\nclean\n")


def test_status_and_both_streams_are_returned(shell: Shell) -> None:
    assert shell.run("echo out; echo err >&2; (exit 2)") == (2, "out\nerr\n")


def test_continued_command_is_one_command(shell: Shell) -> None:
    assert shell.run("echo one \\\n      two") == (0, "one two\n")


def test_output_is_a_terminal_of_a_fixed_width_and_input_is_none(shell: Shell) -> None:
    status, size = shell.run("test -t 1 && stty size <&1")
    assert (status, size.split()[1]) == (0, str(COLUMNS))
    assert shell.run("cat") == (0, "")


def test_long_output_with_wide_characters_is_complete(shell: Shell) -> None:
    watched: list[str] = []
    status, output = shell.run("for n in $(seq 20000); do echo …ü; done", watched.append)

    assert (status, output) == (0, "…ü\n" * 20000)
    assert "".join(watched) == output
