# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every plugin can be imported by the oldest Python of a controller, 3.11.

The tests themselves run on the newest one, which accepts more: a default of a dataclass that only
Python 3.12 can hash let each decommissioning fail on ansible-core 2.18 and 2.19.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
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
    assert {"modules.orphan_detect", "plugin_utils._host_results"} <= set(names)
