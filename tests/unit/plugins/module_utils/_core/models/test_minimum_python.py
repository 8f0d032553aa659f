"""A module on a host with an old Python ends with a sentence, and not with a traceback."""

import json
import os
import subprocess
from pathlib import Path

import ansible
import pytest

from .......plugins.module_utils._core.models.minimum_python import explain_old_python
from ....test_rooms import MODULES, ON_HYPERVISORS, ROOT

PYTHON = ROOT / ".venv" / "hypervisor" / "bin" / "python"
# Those without Python code of their own: their action plugins do the work.
WITHOUT_CODE = {"orphan_report", "validate_variables"}
NEWER = [
    path.stem
    for path in MODULES
    if path.stem not in ON_HYPERVISORS and path.stem not in WITHOUT_CODE
]


@pytest.mark.parametrize("version", [(3, 11), (3, 14), (4, 0)])
def test_new_python_is_accepted(version: tuple[int, ...]) -> None:
    assert explain_old_python(version, "/usr/bin/python3") == ""


def test_old_python_is_named_with_what_to_set() -> None:
    sentence = explain_old_python((3, 9), "/usr/bin/python3")

    for part in ("3.11", "/usr/bin/python3", "3.9", "ansible_python_interpreter"):
        assert part in sentence


@pytest.mark.parametrize("name", NEWER)
def test_module_ends_with_the_sentence_on_a_real_python_3_9(name: str, tmp_path: Path) -> None:
    if not PYTHON.exists():
        pytest.skip(
            "there is no Python 3.9 in .venv/hypervisor: install it, then run make venv-hypervisor"
        )
    # Without what else is installed beside Ansible, for a newer Python.
    (tmp_path / "ansible").symlink_to(Path(ansible.__file__).parent)
    paths = [str(ROOT / "collections"), str(tmp_path)]
    done = subprocess.run(
        [PYTHON, "-m", f"ansible_collections.osops.placement.plugins.modules.{name}"],
        input='{"ANSIBLE_MODULE_ARGS": {}}',
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["msg"].startswith("This module needs")
