"""The execution environment has the versions that the tests of AWX jobs run with."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILE = (
    ROOT / "extensions" / "patterns" / "orphan_cleanup" / "exec_env" / "execution-environment.yml"
)
# The Python of CentOS Stream 10, the base image.
PYTHON = (3, 12)
PIN = re.compile(
    r"^(?P<name>[\w-]+)==(?P<version>\S+)"
    r"(?: ; python_full_version (?P<operator><|>=) '(?P<python>[\d.]+)')?$",
    re.MULTILINE,
)


@pytest.fixture(name="definition")
def _definition() -> t.Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def read_tested_pins() -> dict[str, str]:
    """Return the versions with which the tests of AWX jobs run on the Python of the image."""
    pins = {}
    text = (ROOT / "tests" / "requirements" / "automation.txt").read_text(encoding="utf-8")
    for found in PIN.finditer(text):
        if found["python"]:
            limit = tuple(map(int, found["python"].split(".")))
            if (limit > PYTHON) is not (found["operator"] == "<"):
                continue
        pins[found["name"]] = found["version"]
    return pins


def test_programs_and_packages_are_pinned_to_what_the_tests_ran_with(definition: t.Any) -> None:
    dependencies = definition["dependencies"]
    pinned = [
        dependencies["ansible_core"]["package_pip"],
        dependencies["ansible_runner"]["package_pip"],
        *dependencies["python"],
    ]
    tested = read_tested_pins()

    names = ("ansible-core", "ansible-runner", "jmespath", "openstacksdk")
    assert pinned == [f"{name}=={tested[name]}" for name in names]


def test_all_python_requirements_of_the_collection_are_pinned(definition: t.Any) -> None:
    """An image must not get another version of what our own code calls."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    required = re.findall(r"^([\w-]+)", text, re.MULTILINE)

    pinned = [package.partition("==")[0] for package in definition["dependencies"]["python"]]
    assert sorted(pinned) == sorted(required)


def test_collection_is_that_of_this_version(definition: t.Any) -> None:
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    tarball = f"osops-placement-{version}.tar.gz"

    assert definition["dependencies"]["galaxy"]["collections"] == [
        {"name": tarball, "type": "file"}
    ]
    assert definition["additional_build_files"] == [{"src": tarball, "dest": "."}]


def test_base_image_has_a_tag_other_than_latest(definition: t.Any) -> None:
    _name, _colon, tag = definition["images"]["base_image"]["name"].rpartition(":")

    assert tag == "stream10", "check PYTHON in this file"
