"""Two runs on one machine: the second waits, and a dead run does not block others."""

import errno
import fcntl
import os
import pathlib
import re
import signal
import stat
import tempfile
import time

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.run.lock import acquire_lock, list_lock_paths
from ...children import LONG, child, said

ENDPOINT = "http://placement"

HOLDING = f"""
import pathlib, sys
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.run.lock import acquire_lock
from ansible_collections.osops.placement.plugins.module_utils._core.run.signals \
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


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The home folder, for this process and its children, with a folder for temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    _lock_path().parent.mkdir(parents=True)
    assert tmp_path in _lock_path().parents and temporary not in _lock_path().parents
    return tmp_path


def _lock_path() -> pathlib.Path:
    """Return the path of the lock in the home folder."""
    return pathlib.Path(list_lock_paths(ENDPOINT)[0])


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
        with pytest.raises(InvalidInput) as refusal, acquire_lock(ENDPOINT, 0, str):
            pytest.fail("both are alone")

    assert ENDPOINT in str(refusal.value) and str(_lock_path()) in str(refusal.value)


def test_check_mode_neither_waits_nor_keeps_others_waiting(folder: pathlib.Path) -> None:
    with acquire_lock(ENDPOINT, 0, str, writing=False):
        assert not _lock_path().exists()
        with acquire_lock(ENDPOINT, 0, str):
            assert _lock_path().exists()
            with acquire_lock(ENDPOINT, 0, str, writing=False):
                pass


def test_lock_ends_with_a_killed_process(folder: pathlib.Path) -> None:
    with child(HOLDING, "0", str(folder / "ended")) as first:
        assert (said(first), said(first)) == ("begins", "alone")
        first.kill()
        assert first.wait(LONG) == -signal.SIGKILL

    assert not (folder / "ended").exists()
    with acquire_lock(ENDPOINT, 0, str):
        assert _lock_path().exists()


def test_stopped_run_stops_waiting(folder: pathlib.Path) -> None:
    with acquire_lock(ENDPOINT, 0, str), child(HOLDING, "100000", str(folder / "ended")) as second:
        assert said(second) == "begins"
        second.terminate()

        assert "SIGTERM" in said(second)
        assert second.wait(LONG) == 0


def test_waiting_run_looks_several_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """So soon it heeds a signal, and so soon it goes on."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)

    with (
        acquire_lock(ENDPOINT, 0, str),
        pytest.raises(InvalidInput, match=r"^Stopped "),
        acquire_lock(ENDPOINT, LONG, lambda: "Stopped" if len(slept) == 3 else ""),
    ):
        pytest.fail("both are alone")
    assert 0 < max(slept) < 1


def test_failed_run_releases_the_lock() -> None:
    with pytest.raises(KeyError), acquire_lock(ENDPOINT, 0, str):
        raise KeyError
    with acquire_lock(ENDPOINT, 0, str):
        pass


def test_runs_on_two_placements_do_not_wait_for_each_other() -> None:
    with acquire_lock(ENDPOINT, 0, str), acquire_lock("http://elsewhere", 0, str):
        pass


def test_trailing_slash_is_the_same_placement() -> None:
    with (
        acquire_lock(ENDPOINT, 0, str),
        pytest.raises(InvalidInput),
        acquire_lock(f"{ENDPOINT}/", 0, str),
    ):
        pytest.fail("both are alone")


@pytest.mark.parametrize(
    ("umask", "earlier"),
    [(0o022, True), (0o077, True), (0o777, True), (0o777, None), (0o022, False)],
)
def test_lock_and_its_folder_belong_to_their_user_alone(umask: int, earlier: bool | None) -> None:
    """earlier: whether there is a file of an earlier run; False if not even its folder is there."""
    if earlier:
        _lock_path().touch(mode=0o644)
    elif earlier is False:
        _lock_path().parent.rmdir()
    before = os.umask(umask)
    try:
        with acquire_lock(ENDPOINT, 0, str):
            pass
    finally:
        os.umask(before)

    assert stat.S_IMODE(_lock_path().stat().st_mode) == 0o600
    assert earlier is not False or stat.S_IMODE(_lock_path().parent.stat().st_mode) == 0o700


def test_file_is_never_deleted_while_others_may_have_it_open() -> None:
    """A new file of the same name would let two runs lock two files."""
    with acquire_lock(ENDPOINT, 0, str):
        first = os.stat(_lock_path()).st_ino
    with acquire_lock(ENDPOINT, 0, str):
        assert os.stat(_lock_path()).st_ino == first


def test_link_in_place_of_the_file_is_not_followed(folder: pathlib.Path) -> None:
    theirs = folder / "theirs"
    for path in map(pathlib.Path, list_lock_paths(ENDPOINT)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(theirs)

    with pytest.raises(InvalidInput, match="no lock"):
        acquire_lock(ENDPOINT, 0, str).__enter__()
    assert not theirs.exists()


def test_temporary_folder_of_another_user_is_not_used(folder: pathlib.Path) -> None:
    _lock_path().parent.rmdir()
    _lock_path().parent.write_text("")
    temporary = pathlib.Path(list_lock_paths(ENDPOINT)[1]).parent
    temporary.mkdir()
    temporary.chmod(0o777)

    with pytest.raises(InvalidInput, match="by other users"):
        acquire_lock(ENDPOINT, 0, str).__enter__()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_home_folder_without_locks_is_replaced_by_the_temporary_one(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """NFS without a lock service: both runs find the same other folder."""
    lock = fcntl.flock
    home = _lock_path()

    def flock(file: int, how: int) -> None:
        if os.path.samestat(os.fstat(file), home.stat()):
            raise OSError(number, os.strerror(number))
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        acquire_lock(ENDPOINT, 0, str),
        pytest.raises(InvalidInput, match=re.escape(list_lock_paths(ENDPOINT)[1])),
        acquire_lock(ENDPOINT, 0, str),
    ):
        pytest.fail("both are alone")


def test_machine_without_any_locks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_file: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InvalidInput, match="Nothing was changed") as refusal:
        acquire_lock(ENDPOINT, 0, str).__enter__()
    assert len(os.listdir("/proc/self/fd")) == files
    assert str(refusal.value).count("No locks available") == 2


def test_pipe_in_place_of_the_file_does_not_block(folder: pathlib.Path) -> None:
    os.mkfifo(_lock_path())
    with child(HOLDING, "0", str(folder / "ended")) as run:
        output, _errors = run.communicate("\n", timeout=LONG)

    assert output.splitlines() == ["begins", "alone"]


def test_home_folder_that_cannot_be_written_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc/nonexistent")

    with acquire_lock(ENDPOINT, 0, str):
        assert os.path.exists(list_lock_paths(ENDPOINT)[1])
