# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several workers begin without an installation, and the network is not always available."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import typing as t

import pytest
from minicloud_ctl import files, install
from minicloud_ctl.paths import REPOSITORY, Paths

if t.TYPE_CHECKING:
    from pathlib import Path

MINICLOUD = REPOSITORY / "tests" / "minicloud" / "minicloud"
MAKE_VENV = REPOSITORY / "tests" / "tools" / "make-venv"


@pytest.fixture
def python(tmp_path: Path) -> t.Callable[[int], Path]:
    """A Python that creates a virtual environment only after a given number of failures."""

    def make(failures: int) -> Path:
        calls = tmp_path / "calls"
        script = tmp_path / "python"
        script.write_text(
            f'#!/bin/sh\necho "$*" >> "{calls}"\n'
            f'[ "$(wc -l < "{calls}")" -gt {failures} ] && exec "{sys.executable}" "$@"\n'
        )
        script.chmod(0o755)
        return script

    return make


def test_second_installer_waits_and_uses_the_result_of_the_first(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "home", tmp_path / "venv")
    environment = {
        **os.environ,
        "MINICLOUD_VENV": str(paths.venv),
        "MINICLOUD_RELEASE": paths.release.name,
    }
    with contextlib.ExitStack() as cleanup:
        with files.locked(paths.install_lock):
            command = [MINICLOUD, "--home", paths.home, "install"]
            second = cleanup.enter_context(
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            )
            cleanup.callback(second.kill)
            assert second.stdout is not None
            assert (
                second.stdout.readline()
                == f"waiting: somebody else is installing into {paths.venv}\n"
            )
            files.write(paths.venv / "minicloud-installed", install.fingerprint(paths.release))
        told, _nothing = second.communicate()
    assert (second.returncode, told) == (0, f"{paths.venv} is up to date\n")


def test_installation_is_retried_after_two_failures(
    tmp_path: Path, python: t.Callable[[int], Path]
) -> None:
    made = tmp_path / "made"
    (tmp_path / "wanted.txt").touch()
    done = subprocess.run(
        [MAKE_VENV, python(2), made, "-r", tmp_path / "wanted.txt"],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert f"{made} could not be made at attempt 2" in done.stderr
    assert subprocess.run([made / "bin" / "python", "-c", ""], check=False).returncode == 0


def test_installation_fails_after_three_failures(
    tmp_path: Path, python: t.Callable[[int], Path]
) -> None:
    done = subprocess.run(
        [MAKE_VENV, python(99), tmp_path / "made"], stderr=subprocess.DEVNULL, check=False
    )
    assert done.returncode != 0
    assert len((tmp_path / "calls").read_text().splitlines()) == 3


def test_installation_shows_its_progress_and_keeps_what_pip_prints(tmp_path: Path) -> None:
    """A Python whose pip prints what pip prints for thirty packages."""
    pip = tmp_path / "python"
    pip.write_text(
        "#!/bin/sh\n"
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; exit; fi\n'
        "for number in $(seq 30); do echo Collecting package-$number==1; done\n"
        "echo Installing collected packages: package-1\n"
    )
    pip.chmod(0o755)
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("".join(f"package-{number}==1\n" for number in range(1, 31)))
    folders = os.environ["PATH"].split(os.pathsep)
    without_uv = [folder for folder in folders if not os.path.exists(f"{folder}/uv")]
    done = subprocess.run(
        [MAKE_VENV, pip, tmp_path / "made", "-r", wanted],
        env={**os.environ, "PATH": os.pathsep.join(without_uv)},
        capture_output=True,
        text=True,
        check=True,
    )

    progress = [line.strip() for line in done.stderr.splitlines()]
    assert progress == ["25 of at most 30 packages downloaded", "installing 30 packages"]
    assert "Collecting package-30==1" in done.stdout
