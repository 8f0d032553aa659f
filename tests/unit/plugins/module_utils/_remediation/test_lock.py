# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs on one machine: the second waits, and a dead run does not block others."""

from __future__ import annotations

import os
import pathlib
import signal
import stat
import tempfile

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._remediation.lock import (
    acquire_lock,
    get_lock_path,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.children import (
    LONG,
    child,
    said,
)

ENDPOINT = "http://placement"

HOLDING = f"""
import pathlib, sys
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._remediation.lock import acquire_lock
from ansible_collections.osops.placement.plugins.module_utils._remediation.signals \
import watch_for_stop
patience, mark = int(sys.argv[1]), pathlib.Path(sys.argv[2])
try:
    with watch_for_stop() as stopped:
        print("begins", flush=True)
        with acquire_lock("{ENDPOINT}", patience, stopped):
            print("alone, after another" if mark.exists() else "alone", flush=True)
            sys.stdin.readline()
            mark.touch()
except InvalidInput as error:
    print(error, flush=True)
"""


def _nothing() -> str:
    return ""


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The machine's folder for temporary files, for this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert pathlib.Path(get_lock_path(ENDPOINT)).parent == tmp_path
    return tmp_path


def test_second_run_waits_for_the_end_of_the_first(folder: pathlib.Path) -> None:
    mark = str(folder / "ended")
    with child(HOLDING, "0", mark) as first:
        assert (said(first), said(first)) == ("begins", "alone")
        with child(HOLDING, "100000", mark) as second:
            assert said(second) == "begins"
            assert first.stdin
            first.stdin.write("\n")
            first.stdin.flush()

            assert said(second) == "alone, after another"


def test_run_that_waited_too_long_fails_and_says_for_what(folder: pathlib.Path) -> None:
    with child(HOLDING, "0", str(folder / "ended")) as first:
        assert (said(first), said(first)) == ("begins", "alone")
        with pytest.raises(InvalidInput) as refusal, acquire_lock(ENDPOINT, 0, _nothing):
            pytest.fail("both are alone")

    assert (
        f"Another run is changing {ENDPOINT} and did not end within 0 seconds (lock "
        f"{get_lock_path(ENDPOINT)})"
    ) in str(refusal.value)


def test_lock_ends_with_a_killed_process(folder: pathlib.Path) -> None:
    with child(HOLDING, "0", str(folder / "ended")) as first:
        assert (said(first), said(first)) == ("begins", "alone")
        first.kill()
        assert first.wait(LONG) == -signal.SIGKILL

    assert not (folder / "ended").exists()
    with acquire_lock(ENDPOINT, 0, _nothing):
        assert pathlib.Path(get_lock_path(ENDPOINT)).exists()


def test_stopped_run_stops_waiting(folder: pathlib.Path) -> None:
    with (
        acquire_lock(ENDPOINT, 0, _nothing),
        child(HOLDING, "100000", str(folder / "ended")) as second,
    ):
        assert said(second) == "begins"
        second.terminate()

        assert said(second) == (
            "The run was stopped by SIGTERM. It was waiting for another run to end: nothing "
            "was changed."
        )
        assert second.wait(LONG) == 0


def test_failed_run_releases_the_lock() -> None:
    with pytest.raises(KeyError), acquire_lock(ENDPOINT, 0, _nothing):
        raise KeyError
    with acquire_lock(ENDPOINT, 0, _nothing):
        pass


def test_runs_on_two_placements_do_not_wait_for_each_other() -> None:
    with acquire_lock(ENDPOINT, 0, _nothing), acquire_lock("http://elsewhere", 0, _nothing):
        pass


def test_trailing_slash_is_the_same_placement() -> None:
    with (
        acquire_lock(ENDPOINT, 0, _nothing),
        pytest.raises(InvalidInput),
        acquire_lock(f"{ENDPOINT}/", 0, _nothing),
    ):
        pytest.fail("both are alone")


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o777])
def test_every_user_of_the_machine_can_lock_the_file(umask: int) -> None:
    before = os.umask(umask)
    try:
        with acquire_lock(ENDPOINT, 0, _nothing):
            pass
    finally:
        os.umask(before)

    assert stat.S_IMODE(os.stat(get_lock_path(ENDPOINT)).st_mode) == 0o644


def test_file_is_never_deleted_while_others_may_have_it_open() -> None:
    """A new file of the same name would let two runs lock two files."""
    with acquire_lock(ENDPOINT, 0, _nothing):
        first = os.stat(get_lock_path(ENDPOINT)).st_ino
    with acquire_lock(ENDPOINT, 0, _nothing):
        assert os.stat(get_lock_path(ENDPOINT)).st_ino == first


def test_link_in_place_of_the_file_is_not_followed(folder: pathlib.Path) -> None:
    (folder / "theirs").write_text("")
    os.symlink(folder / "theirs", get_lock_path(ENDPOINT))

    with pytest.raises(InvalidInput, match="cannot be opened"), acquire_lock(ENDPOINT, 0, _nothing):
        pytest.fail("it was followed")


def test_pipe_in_place_of_the_file_does_not_block(folder: pathlib.Path) -> None:
    os.mkfifo(get_lock_path(ENDPOINT))
    with child(HOLDING, "0", str(folder / "ended")) as run:
        output, _errors = run.communicate("\n", timeout=LONG)

    assert output.splitlines() == ["begins", "alone"]


def test_missing_folder_is_an_error(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "missing"))

    with (
        pytest.raises(InvalidInput, match="cannot be opened: No such file or directory"),
        acquire_lock(ENDPOINT, 0, _nothing),
    ):
        pytest.fail("nothing is locked")
