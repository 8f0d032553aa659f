"""Every plugin can be imported by the oldest Python of a controller, 3.11, and passes its tests.

The tests themselves run on the newest one. It accepts more: a default of a dataclass that only
Python 3.12 can hash let each decommissioning fail on ansible-core 2.18 and 2.19. And it refuses
more: up to 3.12, two texts of base64 can stand for one plan.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = Path(__file__).parent
# The environment of the controller, with the oldest Python.
OLDEST = ROOT / ".venv" / "oldest" / "bin" / "python"
# The rooms whose code reads and writes files, where Pythons differ most. `make test-all` has all.
FILES = ("_common", "run")
# A folder that Python left behind has no tests.
ROOMS = {path.parent for path in (UNIT / "module_utils").rglob("test_*.py")}
PYTHON = ROOT / ".venv" / "automation-2.18" / "bin" / "python"
IMPORT_ALL = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for path in sorted(root.rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    importlib.import_module("ansible_collections.osops.placement.plugins." + name)
    print(name)
print("python%d.%d" % sys.version_info[:2])
"""


def test_every_plugin_can_be_imported() -> None:
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is not there: run make venv-automation-2.18")
    done = subprocess.run(
        [str(PYTHON), "-c", IMPORT_ALL, str(ROOT / "plugins")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "collections")},
    )

    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
    names = done.stdout.split()
    assert names[-1] == "python3.11"
    assert {"modules.orphan_detect", "plugin_utils._hosts.host_results"} <= set(names)


@pytest.mark.parametrize(
    "room",
    [
        pytest.param(folder, marks=() if folder.name in FILES else pytest.mark.long)
        for folder in sorted({*ROOMS, UNIT / "plugin_utils", UNIT / "modules"})
        if folder.parent not in ROOMS
    ],
    ids=lambda folder: folder.name,
)
def test_the_unit_tests_of_a_room_pass(room: Path) -> None:
    if not OLDEST.exists():
        pytest.skip(f"{OLDEST} is not there: install Python 3.11, then run make venv-oldest")
    done = subprocess.run(
        [OLDEST, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", room],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "", "EXAMPLES": "few"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
