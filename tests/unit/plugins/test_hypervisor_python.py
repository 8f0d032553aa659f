"""The code for hypervisors runs on their Python 3.9: the linter and a real 3.9 check it."""

import fnmatch
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from .test_rooms import MODULES, ON_HYPERVISORS, ROOT, find_shipped

PYTHON = ROOT / ".venv" / "hypervisor" / "bin" / "python"
ROOMS = ("_common", "_hypervisors/on_host")
TESTS = [ROOT / "tests" / "unit" / "plugins" / "module_utils" / room for room in ROOMS]


def find_files() -> set[Path]:
    """Return the modules for hypervisors with what they ship, both rooms, and their tests."""
    files: set[Path] = set()
    for module in MODULES:
        if module.stem in ON_HYPERVISORS:
            files |= {module, *find_shipped(module)}
    for folder in (*(ROOT / "plugins" / "module_utils" / room for room in ROOMS), *TESTS):
        files |= set(folder.glob("*.py"))
    return files


@pytest.mark.parametrize("path", sorted(find_files()), ids=lambda path: path.name)
def test_the_linter_checks_code_for_hypervisors_against_their_python(path: Path) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = settings["tool"]["ruff"]["per-file-target-version"]
    name = str(path.relative_to(ROOT))

    matching = [
        version for pattern, version in targets.items() if fnmatch.fnmatchcase(name, pattern)
    ]
    assert matching == ["py39"]


@pytest.mark.parametrize("tests", TESTS, ids=lambda path: path.name)
def test_the_unit_tests_of_a_room_pass_on_the_python_of_hypervisors(tests: Path) -> None:
    if not PYTHON.exists():
        pytest.skip(
            "there is no Python 3.9 in .venv/hypervisor: install it, then run make venv-hypervisor"
        )
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
