"""The version of the collection that runs, and copies of another version."""

import json
import typing as t
from pathlib import Path

import pytest
import yaml

from ......plugins.plugin_utils._stage import controller as _versions
from ......plugins.plugin_utils._stage.controller import (
    explain_other_copy,
    read_running_version,
    read_version,
)

ROOT = Path(__file__).parents[5]


def _manifest(namespace: str, name: str, version: t.Any) -> str:
    return json.dumps(
        {"collection_info": {"namespace": namespace, "name": name, "version": version}}
    )


def _galaxy(namespace: str, name: str, version: str) -> str:
    return f"namespace: {namespace}\nname: {name}\nversion: {version}\n"


FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "installed": ({"MANIFEST.json": _manifest("osops", "placement", "2.1.0")}, "2.1.0"),
    "a clone": ({"galaxy.yml": _galaxy("osops", "placement", "2.1.0-dev1")}, "2.1.0-dev1"),
    "a clone with quotes": (
        {"galaxy.yml": "# x\nname: 'placement'\nversion: \"2.1.0\" # next\nnamespace: osops\n"},
        "2.1.0",
    ),
    "both": (
        {
            "MANIFEST.json": _manifest("osops", "placement", "2.1.0"),
            "galaxy.yml": _galaxy("osops", "placement", "3.0.0"),
        },
        "2.1.0",
    ),
    "another collection": ({"galaxy.yml": _galaxy("osops", "other", "2.1.0")}, ""),
    "another namespace": ({"MANIFEST.json": _manifest("ours", "placement", "2.1.0")}, ""),
    "no version": ({"MANIFEST.json": _manifest("osops", "placement", None)}, ""),
    "a manifest of something else": ({"MANIFEST.json": "[1]"}, ""),
    "a manifest of an app": ({"MANIFEST.json": '{"collection_info": 1}'}, ""),
    "no JSON": ({"MANIFEST.json": "{"}, ""),
    "no text": ({"galaxy.yml": "\udcff"}, ""),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_version_is_that_of_the_collection_in_a_folder(name: str, tmp_path: Path) -> None:
    files, version = FOLDERS[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8", errors="surrogateescape")

    assert read_version(tmp_path) == version


def test_running_version_is_that_of_galaxy_yml_in_a_clone() -> None:
    assert (
        read_running_version()
        == yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    )


@pytest.fixture(name="copy")
def _copy(tmp_path: Path) -> Path:
    """A copy of the collection with another version."""
    (tmp_path / "copy" / "a" / "b").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "copy" / "galaxy.yml").write_text(_galaxy("osops", "placement", "0.1.0"))
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("playbook_folder", "current"),
    [("copy/a/b", "elsewhere"), ("elsewhere", "copy/a"), ("copy", "copy")],
)
def test_job_in_a_copy_of_another_version_is_explained(
    copy: Path, monkeypatch: pytest.MonkeyPatch, playbook_folder: str, current: str
) -> None:
    monkeypatch.chdir(copy.parent / current)

    explained = explain_other_copy(str(copy.parent / playbook_folder))

    for part in (read_running_version(), ROOT.resolve(), "0.1.0", copy):
        assert f" {part}" in explained


def test_job_in_the_running_copy_or_in_none_needs_no_explanation(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent / "elsewhere")
    assert explain_other_copy(str(copy.parent / "elsewhere")) == ""
    assert explain_other_copy(str(ROOT / "playbooks")) == ""
    (copy / "galaxy.yml").write_text(_galaxy("osops", "placement", read_running_version()))
    assert explain_other_copy(str(copy / "a")) == ""


def test_without_a_version_of_its_own_nothing_is_said(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_versions, "read_running_version", lambda: "")

    assert explain_other_copy(str(copy)) == ""


def test_removed_current_directory_is_no_failure(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent / "elsewhere")
    (copy.parent / "elsewhere").rmdir()

    assert "0.1.0" in explain_other_copy(str(copy))
