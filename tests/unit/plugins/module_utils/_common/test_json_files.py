"""The files that pass between tasks: complete or absent, and readable by their owner alone."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.json_files import read_json, read_json_option, write_json


def test_written_data_is_read_back_unchanged(tmp_path: pathlib.Path) -> None:
    contents = {
        "name": 'a "name" of {{ hostile }} \x1b[31m \u202e \n',
        "amounts": {"VCPU": 2},
        "nothing": None,
    }
    for name, written in (("one", contents), ("two", dict(reversed(contents.items())))):
        write_json(str(tmp_path / name), written)

    assert read_json(str(tmp_path / "one")) == contents
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_file_and_created_folders_are_accessible_only_by_their_owner(
    tmp_path: pathlib.Path,
) -> None:
    existing = tmp_path / "file.json"
    existing.write_text("{}")
    existing.chmod(0o644)
    write_json(str(existing), {})
    write_json(str(tmp_path / "new" / "file.json"), {})

    assert stat.S_IMODE(existing.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_bare_name_is_written_to_the_current_directory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json("file.json", {})

    assert (tmp_path / "file.json").exists()


def test_interrupted_write_leaves_only_the_old_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.json"
    write_json(str(path), {"old": True})

    with pytest.raises(TypeError):
        write_json(str(path), {"first": 1, "not JSON": object()})

    assert json.loads(path.read_text()) == {"old": True}
    assert list(tmp_path.iterdir()) == [path]


def test_open_reader_keeps_the_old_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.json"
    write_json(str(path), {"old": True})
    with path.open() as reader:
        write_json(str(path), {"new": True})
        assert json.load(reader) == {"old": True}
    assert read_json(str(path)) == {"new": True}


def test_folder_that_cannot_be_created_is_named_with_its_cause(tmp_path: pathlib.Path) -> None:
    (tmp_path / "occupied").write_text("")
    path = str(tmp_path / "occupied" / "file.json")

    with pytest.raises(InvalidInput, match=f"^{path} .*: File exists"):
        write_json(path, {})


def test_path_of_a_folder_is_refused_without_leftovers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(InvalidInput, match="Is a directory"):
        write_json(str(tmp_path / "folder"), {})
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    "contents",
    [b"", b'{"cut": [1, 2', b"\xff\xfe", b"kind: yaml", b"[" * 200_000],
    ids=lambda part: repr(part[:9]),
)
def test_data_that_is_not_json_is_refused(tmp_path: pathlib.Path, contents: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(contents)

    with pytest.raises(InvalidInput, match=r"file\.json"):
        read_json(str(path))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (" ", "No such file"),
        ("missing.json", "^plan: missing.json .*: No such file"),
        ("/", "Is a directory"),
        ("a\x00b", "valid path"),
        # The contents of a file in place of its path are not repeated.
        ("x" * 5000, "^plan: x{60}… "),
    ],
)
def test_unreadable_path_is_refused(path: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        read_json_option("plan", path)


def test_path_may_begin_with_a_tilde(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_json(str(tmp_path / "plan.json"), {"format": 1})

    assert read_json_option("plan", "~/plan.json") == {"format": 1}


@pytest.mark.parametrize("contents", [{"format": 1}, [1], 7, True], ids=repr)
def test_option_with_data_returns_the_data(contents: t.Any) -> None:
    assert read_json_option("plan", contents) is contents


@pytest.mark.parametrize("nothing", [None, "", {}, [], 0, False], ids=repr)
def test_empty_option_is_refused_by_its_name(nothing: t.Any) -> None:
    with pytest.raises(InvalidInput, match=r"^plan "):
        read_json_option("plan", nothing)


def test_a_pipe_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "plan.json"
    os.mkfifo(pipe)

    with pytest.raises(InvalidInput, match="regular file"):
        read_json(str(pipe))


def test_a_file_of_an_impossible_size_is_not_read(tmp_path: pathlib.Path) -> None:
    """A sparse file takes no space on the disk, and all of the memory."""
    path = tmp_path / "plan.json"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)

    with pytest.raises(InvalidInput, match="1048576 MiB"):
        read_json(str(path))
