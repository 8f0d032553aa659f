"""The progress of a module, as Ansible and AWX show it while the module runs.

The cloud does not answer until the line is shown: a line that comes too late fails the test.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from .automation import job
from .interposer import Wires
from .strays import Strays
from .support import Ansible, long

LISTING = "^/resource_providers/[^/]+/allocations$"
LINE = re.compile(r"^orphan_detect \[localhost\]: .*\ballocations 0/\d+ providers", re.MULTILINE)


def run_until_shown(
    ansible: Ansible, wires: Wires, program: str, *arguments: str
) -> tuple[int, str, str]:
    """Run a program whose detection shows a line, and return its status and both outputs."""
    shown = threading.Event()

    def wait_for_the_line() -> None:
        assert shown.wait(60), "no line of progress was shown"

    wires.placement.on("GET", LISTING, before=wait_for_the_line)
    process = subprocess.Popen(
        [
            ansible.program(program),
            *arguments,
            "-e",
            f"ansible_python_interpreter={sys.executable}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ansible.folder,
        env=ansible.environment,
    )
    assert process.stderr
    errors = ""
    for line in process.stderr:
        errors += line
        if LINE.search(line):
            shown.set()
    output, _rest = process.communicate(timeout=60)
    return process.returncode, output, errors


@pytest.mark.parametrize("flags", [["--one-line"], long(["--check"])])
def test_module_shows_its_progress_on_the_standard_error_only(
    ansible: Ansible, wires: Wires, flags: Sequence[str]
) -> None:
    command = ["localhost", *flags, "-m", "osops.placement.orphan_detect"]
    options = json.dumps({"progress_every": 1})

    status, output, errors = run_until_shown(ansible, wires, "ansible", *command, "-a", options)

    assert status == 0, output + errors
    assert LINE.search(errors)
    assert not LINE.search(output)
    if "--one-line" in flags:
        assert len(output.splitlines()) == 1
    heading, _arrow, result = output.partition("=>")
    assert heading.startswith("localhost | SUCCESS")
    assert json.loads(result)["summary"]["coverage"]["complete"]
    assert not list((ansible.folder / ".ansible" / "tmp").glob("ansible-local-*")), "left behind"


@pytest.mark.long
def test_playbook_shows_the_progress_of_a_detection(ansible: Ansible, wires: Wires) -> None:
    playbook = ["osops.placement.detect_orphans", "-e", "orphan_cleanup_progress_every=1"]

    status, output, errors = run_until_shown(ansible, wires, "ansible-playbook", *playbook)

    assert status == 0, output + errors
    assert LINE.search(errors)
    assert not LINE.search(output)


def test_output_of_a_job_has_the_progress(ansible: Ansible, wires: Wires, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    printed = folder / "artifacts" / "1" / "stdout"

    def wait_for_the_line() -> None:
        deadline = time.monotonic() + 60
        while not LINE.search(printed.read_text()):
            assert time.monotonic() < deadline, "no line of progress was shown"
            time.sleep(0.05)

    wires.placement.on("GET", LISTING, before=wait_for_the_line)

    done = job(ansible, folder, "find_orphans.yml", {"orphan_cleanup_progress_every": 1})

    assert done.status == 0, done.output
    assert LINE.search(done.output)


def test_file_of_progress_is_kept_where_it_is_wanted(ansible: Ansible, wires: Wires) -> None:
    path = ansible.folder / "progress.json"
    read = []

    def read_progress() -> None:
        read.append(json.loads(path.read_text()))

    wires.placement.on("GET", LISTING, before=read_progress)

    ansible.direct("orphan_detect", progress_path=str(path))

    stages = {stage["name"]: stage for stage in read[0]["stages"]}
    assert stages["allocations"].keys() == {"name", "done", "total", "unit", "seconds"}
    assert stages["allocations"]["done"] == 0
    assert json.loads(path.read_text()) == {"stages": [], "lines": []}


@pytest.mark.long
def test_changes_are_counted(ansible: Ansible, wires: Wires, many: Strays) -> None:
    path = ansible.folder / "progress.json"
    read: list[tuple[str, int, int]] = []

    def read_progress() -> None:
        # The lookups for the changes are a part of them.
        (stage,) = json.loads(path.read_text())["stages"]
        read.append((stage["name"], stage["done"], stage["total"]))

    wires.placement.on("POST", "^/allocations$", nth=0, before=read_progress)
    options = {"output_dir": str(ansible.folder), "progress_path": str(path)}

    done = ansible.direct("orphan_remediate", **many.arguments(wires), **options)

    assert done["tally"]["removed"] == 20
    # Eight are made at a time.
    assert read == [("changes", done, 20) for done in (0, 8, 16)]

    read.clear()
    done = ansible.direct("orphan_restore", journal=done["journal"], **options)

    assert done["tally"]["restored"] == 20
    assert read == [("changes", done, 20) for done in range(20)]
