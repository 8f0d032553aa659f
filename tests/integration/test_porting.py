"""What happens with names and files of version 1.0.0 is what docs/porting-to-2.0.md says.

The files in `tests/fixtures/porting/` were written by version 1.0.0. None of these tests needs a
cloud; `tests/unit/docs/test_porting.py` has the rows that need no Ansible.
"""

import json
import typing as t
from pathlib import Path

import pytest

from ..unit.docs.porting import NEXT_GUIDE, find_message, find_names, read_rows
from .support import ROOT, Ansible, long

FIXTURES = ROOT / "tests" / "fixtures" / "porting"

# What a module requires beside the option in question.
_REQUIRED = {
    "compute_host_info": {"hosts": ["compute-1"]},
    "hypervisor_guest_detect": {"guests": []},
    "orphan_remediate": {"plan": {}, "output_dir": "."},
    "orphan_report": {"findings": "findings.json"},
}
# A plan as an artifact is no file: tests/unit/docs/test_porting.py has its row.
_FILES = [row for row in read_rows("Files of 1.0.0") if row[2] and "artifact" not in row[0]]


def choose(rows: t.Sequence[t.Any]) -> list[t.Any]:
    """Return the rows, of which only the first is run in `make test`."""
    return [rows[0], *(long(row) for row in rows[1:])]


@pytest.fixture
def ansible(tmp_path: Path) -> Ansible:
    return Ansible(ROOT, tmp_path, {"OS_CLIENT_CONFIG_FILE": "/nowhere/clouds.yaml"})


def run(ansible: Ansible, program: str, *arguments: str) -> str:
    """Return what Ansible prints. Fails unless Ansible does."""
    done = ansible.command(program, *arguments)
    assert done.status == 2 and "Traceback" not in done.output, done.output
    return done.output


def run_module(ansible: Ansible, name: str, arguments: t.Mapping[str, t.Any]) -> str:
    given = json.dumps(arguments)
    return run(ansible, "ansible", "localhost", "-m", f"osops.placement.{name}", "-a", given)


@pytest.mark.parametrize(
    "row",
    choose(read_rows("Options of modules")),
    ids=lambda row: f"{find_message(row[0])} {find_message(row[1])}",
)
def test_module_refuses_an_old_option(ansible: Ansible, row: list[str]) -> None:
    module, option = find_message(row[0]), find_message(row[1])
    before, _ellipsis, after = find_message(row[3]).partition("…")

    output = run_module(ansible, module, {**_REQUIRED.get(module, {}), option: "1h"})

    assert before in output
    assert after in output


@pytest.mark.parametrize("entry_point", ["finish", long("conclude")])
def test_entry_point_is_gone(ansible: Ansible, entry_point: str) -> None:
    role = {"name": "osops.placement.orphan_cleanup", "tasks_from": entry_point}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.include_role": role}],
    }
    (ansible.folder / "play.json").write_text(json.dumps([play]), encoding="utf-8")
    (message,) = (
        find_message(row[2])
        for row in read_rows("Entry points, tags and tasks")
        if f"tasks_from: {entry_point}" in find_names(row[0])
    )

    assert message in run(ansible, "ansible-playbook", "play.json")


@pytest.mark.long
def test_set_up_of_awx_refuses_its_old_variable(ansible: Ansible) -> None:
    (message,) = (
        find_names(row[0])[-1]
        for row in read_rows("AWX and Automation Platform")
        if "awx_schedule" in find_names(row[0])
    )
    playbook = ROOT / "extensions" / "patterns" / "orphan_cleanup" / "apply.yml"
    variables = {"awx_url": "http://127.0.0.1:9", "awx_token": "x", "awx_schedule": "RRULE:"}

    assert message in run(ansible, "ansible-playbook", str(playbook), "-e", json.dumps(variables))


@pytest.mark.long
def test_set_up_of_awx_refuses_the_formats_of_before(ansible: Ansible) -> None:
    ((variable, formats, _new, message),) = read_rows("AWX and Automation Platform", NEXT_GUIDE)
    playbook = ROOT / "extensions" / "patterns" / "orphan_cleanup" / "apply.yml"
    given = {find_message(variable): find_names(formats)[0]}
    variables = {"awx_url": "http://127.0.0.1:9", "awx_token": "x", **given}

    output = run(ansible, "ansible-playbook", str(playbook), "-e", json.dumps(variables))

    assert find_message(message) in output


def _use_file(ansible: Ansible, use: str) -> str:
    """Return what Ansible prints when a file of 1.0.0 is used as the first cell of a row says."""
    if use.startswith("`findings.json`"):
        module = find_names(use)[-1]
        (ansible.folder / "findings.json").write_bytes(
            (FIXTURES / "findings-1.0.0.json").read_bytes()
        )
        return run_module(ansible, module, {"findings": "findings.json"})
    if use.startswith("`plan.json`"):
        plan = {"orphan_cleanup_plan": str(FIXTURES / "plan-1.0.0.json")}
        return run(
            ansible, "ansible-playbook", "osops.placement.cleanup_orphans", "-e", json.dumps(plan)
        )
    return run_module(
        ansible, "orphan_detect", {"snapshot_src": str(FIXTURES / "snapshot-1.0.0.json")}
    )


@pytest.mark.parametrize("row", choose(_FILES), ids=lambda row: row[0].replace("`", ""))
def test_file_is_refused(ansible: Ansible, row: list[str]) -> None:
    assert find_message(row[2]) in _use_file(ansible, row[0])
