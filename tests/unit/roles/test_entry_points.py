"""Every file of a role that a play can use has a specification, and nothing else is used."""

import re
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment, nodes

from ..docs import porting

ROOT = Path(__file__).parents[3]
ENTRY_POINTS = {
    "orphan_cleanup": {"main", "detect", "report", "remediate", "restore", "heal"},
    "host_decommission": {
        "main",
        "check",
        "disable",
        "drain",
        "clean",
        "delete",
        "verify",
        "return",
        "redeploy",
    },
    "hypervisor_cleanup": {"main", "detect", "purge"},
}
# Those of host_decommission that are not stages of a decommissioning.
OTHER_RUNS = {"redeploy"}
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
ROLE_INCLUDES = ("ansible.builtin.include_role", "ansible.builtin.import_role")
# What stops a role before it changes anything.
REFUSALS = {"osops.placement.validate_variables", "ansible.builtin.assert", "ansible.builtin.fail"}
# What follows each of these goes by its result.
STAGES = {
    f"osops.placement.{name}"
    for name in ("compute_host", "orphan_detect", "orphan_remediate", "orphan_restore")
}
TASKS_FROM = re.compile(r"tasks_from[\"']?: *[\"']?(\w+)")


def _specs(role: str) -> t.Any:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]


def _task_files(role: str) -> dict[str, Path]:
    return {path.stem: path for path in (ROOT / "roles" / role / "tasks").glob("*.yml")}


def _walk(tasks: t.Any) -> Iterator[dict[str, t.Any]]:
    """Yield every task in a list of tasks, blocks and plays."""
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
            yield from _walk(task.get(part) or ())


def _tasks(path: Path) -> list[dict[str, t.Any]]:
    return list(_walk(yaml.safe_load(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("role", ENTRY_POINTS)
def test_every_public_file_has_a_specification_and_every_other_is_private(role: str) -> None:
    public = {name for name in _task_files(role) if not name.startswith("_")}

    assert public == set(_specs(role)) == ENTRY_POINTS[role]


@pytest.mark.parametrize("role", ENTRY_POINTS)
def test_no_play_can_ignore_a_refusal(role: str) -> None:
    """With ignore_errors, a misspelt orphan_cleanup_hosts would mean the whole cloud.

    A host with blockers would be deleted, and a limit would be none.
    """
    found = 0
    for path in _task_files(role).values():
        for task in _tasks(path):
            # The last one only says what remains.
            if REFUSALS & set(task) and task["name"] != "Verify that nothing remains of the host":
                assert task["ignore_errors"] is False, path
                found += 1

    assert found > 0


@pytest.mark.parametrize("role", ["host_decommission", "orphan_cleanup"])
def test_no_play_can_go_on_after_a_stage_that_failed(role: str) -> None:
    """With ignore_errors, nova-compute would be stopped although its host is not deleted.

    And Nova would heal the servers of an older detection.
    """
    found = 0
    for path in _task_files(role).values():
        for task in _tasks(path):
            if STAGES & set(task):
                state = task.get("osops.placement.compute_host", {}).get("state", "absent")
                goes_on = task.get("ignore_errors") is not False and "failed_when" not in task
                assert state != "absent" or not goes_on, path
                found += 1

    assert found > 1


@pytest.mark.parametrize("role", ENTRY_POINTS)
def test_an_option_is_described_once(role: str) -> None:
    """Every entry point takes all of them, and ansible-doc shows each once."""
    described: list[str] = []
    for name, spec in _specs(role).items():
        described += spec["options"]
        assert spec["short_description"] and spec["description"], name
        if name != "main":
            assert "V(main)" in spec["description"][-1], name

    assert len(described) == len(set(described))


@pytest.mark.parametrize("role", ENTRY_POINTS)
def test_every_entry_point_first_validates_the_variables(role: str) -> None:
    for name in ENTRY_POINTS[role]:
        task = _tasks(_task_files(role)[name])[0]
        if role == "host_decommission":
            task = _tasks(_task_files(role)["_targets"])[0]

        assert task["name"] == "Validate the variables", name
        validated = task["osops.placement.validate_variables"]
        assert validated["role"] == role
        if role != "host_decommission":
            assert validated.get("entry_point", "main") == name


def test_playbooks_leave_the_validation_to_the_roles() -> None:
    """Ansible's own validation prints the whole specification."""
    for path in (*ROOT.glob("playbooks/*.yml"), *ROOT.glob("extensions/**/*.yml")):
        documents = yaml.safe_load(path.read_text(encoding="utf-8"))
        for task in _walk(documents) if isinstance(documents, list) else ():
            for include in ROLE_INCLUDES:
                assert include not in task or task[include]["rolespec_validate"] is False, path


@pytest.mark.parametrize("role", ENTRY_POINTS)
def test_every_private_file_is_used_by_its_role(role: str) -> None:
    included = set()
    for path in _task_files(role).values():
        for task in _tasks(path):
            for include in INCLUDES:
                if include in task:
                    included.add(Path(task[include]).stem)

    private = {name for name in _task_files(role) if name.startswith("_")}
    assert private <= included <= set(_task_files(role))


def test_playbooks_use_entry_points_only() -> None:
    used = set()
    for path in (*ROOT.glob("playbooks/*.yml"), *ROOT.glob("extensions/**/*.yml")):
        documents = yaml.safe_load(path.read_text(encoding="utf-8"))
        for task in _walk(documents) if isinstance(documents, list) else ():
            for include in ROLE_INCLUDES:
                if include in task:
                    role = task[include]["name"].removeprefix("osops.placement.")
                    entry_point = task[include].get("tasks_from", "main")
                    assert entry_point in ENTRY_POINTS[role], path
                    used.add((role, entry_point))

    assert {role for role, _entry_point in used} == set(ENTRY_POINTS)


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name
)
def test_pages_name_entry_points_only(path: Path) -> None:
    named = set(TASKS_FROM.findall(path.read_text(encoding="utf-8")))
    if path.name == porting.GUIDE.name:
        # It also has those of 1.0.0, which `test_porting.py` compares.
        for row in porting.read_rows("Entry points, tags and tasks"):
            named -= set(TASKS_FROM.findall(row[0]))

    assert named <= set().union(*ENTRY_POINTS.values())


def test_a_stage_is_no_tag() -> None:
    """A tag could leave out the check of a change; the one that refuses tags is always run."""
    tagged = {}
    for path in _task_files("host_decommission").values():
        for task in _tasks(path):
            if "tags" in task:
                tagged[task["name"]] = task["tags"]

    assert tagged == {"Validate the variables": "always"}


def test_the_stages_of_decommissioning_are_its_entry_points() -> None:
    option = _specs("host_decommission")["main"]["options"]["host_decommission_stages"]

    runs = ENTRY_POINTS["host_decommission"] - OTHER_RUNS
    assert {"main", "return", *option["choices"]} == runs
    # Nothing is moved unless somebody asks for it.
    assert {"check", "drain", *option["default"]} == set(option["choices"])


@pytest.mark.parametrize("stage", sorted(ENTRY_POINTS["host_decommission"] - OTHER_RUNS - {"main"}))
def test_an_entry_point_of_decommissioning_runs_its_own_stage(stage: str) -> None:
    (task,) = _tasks(_task_files("host_decommission")[stage])

    expected = "_move_hosts.yml" if stage in ("drain", "return") else "_hosts.yml"
    assert task["ansible.builtin.import_tasks"] == expected
    assert task["vars"] == {"_host_decommission_stages": [stage]}
    # Whatever a run does, the variables and the hosts are validated first.
    first = yaml.safe_load(_task_files("host_decommission")[expected[:-4]].read_text("utf-8"))[0]
    assert first["ansible.builtin.import_tasks"] == "_targets.yml"


def test_the_role_passes_everything_that_its_result_is_made_of() -> None:
    """With the default of an option, a host that is gone could be shown as failed."""
    role = ROOT / "roles" / "host_decommission"
    variables = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))
    options = yaml.safe_load((ROOT / "plugins" / "filter" / "host_result.yml").read_text("utf-8"))[
        "DOCUMENTATION"
    ]["options"]
    parsed = Environment(autoescape=True).parse(variables["_host_decommission_result"])

    (used,) = (
        part for part in parsed.find_all(nodes.Filter) if part.name == "osops.placement.host_result"
    )

    optional = {name for name, option in options.items() if not option.get("required")}
    assert {argument.key for argument in used.kwargs} == optional
