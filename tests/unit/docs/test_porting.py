"""The porting guide has every name that version 1.0.0 had and this one has not, and true messages.

The guide of 3.0.0 has every variable and value that was removed since.

`tests/integration/test_porting.py` tries the rows that need Ansible or the files of 1.0.0.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from ....plugins.action.validate_variables import ROLES
from ....plugins.module_utils._common.errors import InvalidInput
from ....plugins.module_utils._core.models.kinds import RENAMED_IN, RENAMED_KINDS
from ....plugins.module_utils._core.plan.plan import Plan
from ....plugins.module_utils._core.run.pack import read_packed_plan
from ....plugins.plugin_utils._variables.checks import REMOVED_VALUES
from ....plugins.plugin_utils._variables.unknown import REMOVED
from ..plugins.plugin_utils._variables.test_roles import validate
from .interface import Interface, read_interface
from .porting import NEXT_GUIDE, find_message, find_names, read_rows

ROOT = Path(__file__).parents[3]
VARIABLES, VALUES = read_rows("Variables", NEXT_GUIDE), read_rows("Values", NEXT_GUIDE)
RENAMED_LATER = {old: RENAMED_KINDS[old] for old in RENAMED_IN if RENAMED_IN[old] != "2.0.0"}
PLUGINS = {find_names(row[0])[0] for row in read_rows("Modules and filters", NEXT_GUIDE)}
FORMER = json.loads(
    (ROOT / "tests" / "fixtures" / "porting" / "interface-1.0.0.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def present() -> Interface:
    return read_interface(ROOT)


def _list_qualified(heading: str) -> set[str]:
    """Return the old names of a table whose first column has their modules."""
    return {
        f"{module}: {name}"
        for row in read_rows(heading)
        for module in find_names(row[0])
        for name in find_names(row[1])
    }


def _list_old(heading: str) -> set[str]:
    return {name for row in read_rows(heading) for name in find_names(row[0])}


def _find_lost(part: str, present: Interface) -> set[str]:
    """Return what version 1.0.0 had, except for plugins that were removed as a whole."""
    lost = set(FORMER[part]) - set(present[part])
    return {name for name in lost if name.partition(":")[0] not in PLUGINS}


@pytest.mark.parametrize(
    ("part", "heading"),
    [("kinds", "Kinds"), ("variables", "Variables"), ("metrics", "Metrics and alerts")],
)
def test_tables_have_all_lost_names(part: str, heading: str, present: Interface) -> None:
    assert _list_old(heading) == _find_lost(part, present)


@pytest.mark.parametrize("part", ["playbooks", "modules", "filters"])
def test_nothing_else_was_lost(part: str, present: Interface) -> None:
    assert _find_lost(part, present) == set()


def test_a_removed_plugin_is_refused_with_what_replaces_it(present: Interface) -> None:
    routing = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    removed = {
        name: entry["tombstone"]["warning_text"]
        for plugins in routing["plugin_routing"].values()
        for name, entry in plugins.items()
    }

    assert removed.keys() == PLUGINS
    for name, sentence in removed.items():
        assert name not in (*present["modules"], *present["filters"])
        assert set(re.findall(r"osops\.placement\.(\w+)", sentence)) & set(present["modules"])


def test_options_table_has_all_lost_options(present: Interface) -> None:
    assert _list_qualified("Options of modules") == _find_lost("options", present)


def test_returned_table_has_all_lost_values(present: Interface) -> None:
    lost = _find_lost("return values", present)
    # What is within a lost value is lost with it.
    outermost = {name for name in lost if name.rpartition(".")[0] not in lost}

    assert _list_qualified("Return values") == outermost


def test_entry_points_table_has_all_lost_entry_points(present: Interface) -> None:
    listed = _list_old("Entry points, tags and tasks")

    lost = {name.partition(": ")[2] for name in _find_lost("entry points", present)}
    assert lost <= {name.removeprefix("tasks_from: ") for name in listed}


def test_kinds_table_has_all_renamed_kinds() -> None:
    table = {find_message(row[0]): find_message(row[1]) for row in read_rows("Kinds")}

    assert {**table, **RENAMED_LATER} == RENAMED_KINDS


def test_plan_of_an_earlier_job_is_refused_as_the_guides_say() -> None:
    (first,) = (row[2] for row in read_rows("Files of 1.0.0") if "artifact" in row[0])
    compact = {"format": 1, "compact": True, "count": 0, "changes": [], "digest": "0"}
    given = {find_message(first): compact}
    for row in read_rows("Artifacts", NEXT_GUIDE):
        given[find_message(row[3])] = f"{find_names(row[1])[0]}1/1:00:ab"

    assert len(given) == 3 - 1
    for message, plan in given.items():
        with pytest.raises(InvalidInput, match=f"^{re.escape(message)}$"):
            Plan.parse(read_packed_plan(plan) or plan)


@pytest.mark.parametrize("row", read_rows("Kinds"), ids=lambda row: find_message(row[0]))
def test_role_says_how_a_kind_is_named_now(row: list[str]) -> None:
    faults = validate("orphan_cleanup", {"orphan_cleanup_kinds": [find_message(row[0])]})

    assert faults == [find_message(row[2])]


def test_variables_table_has_all_removed_variables() -> None:
    removed = {name for name, sentence in REMOVED.items() if sentence.startswith("3.0.0")}

    assert {find_message(row[0]) for row in VARIABLES} == removed


@pytest.mark.parametrize(
    "row", [*read_rows("Variables"), *VARIABLES], ids=lambda row: find_message(row[0])
)
def test_role_says_what_became_of_a_variable(row: list[str], present: Interface) -> None:
    name = find_message(row[0])
    role = next(role for role in ROLES if name.startswith(role))
    required = {"host_decommission_target": "compute-1"} if role == "host_decommission" else {}

    assert validate(role, {name: "24h", **required}) == [find_message(row[2])]
    assert set(find_names(row[1])) <= set(present["variables"])


@pytest.mark.parametrize("row", read_rows("Options of modules", NEXT_GUIDE), ids=str)
def test_removed_option_has_a_replacement(row: list[str], present: Interface) -> None:
    module, former, now = map(find_message, row[:3])

    assert f"{module}: {former}" not in present["options"]
    # One of another module is written with its name.
    assert (now if ":" in now else f"{module}: {now}") in present["options"]


def test_values_table_has_all_removed_values() -> None:
    table = {find_message(row[1]): find_message(row[2]) for row in VALUES}
    assert table == {**REMOVED_VALUES, **RENAMED_LATER}


@pytest.mark.parametrize("row", VALUES, ids=lambda row: find_message(row[1]))
def test_role_says_what_replaces_a_removed_value_and_accepts_it(row: list[str]) -> None:
    name, removed, replacement, fault = map(find_message, row[:4])

    assert validate("orphan_cleanup", {name: removed}) == [fault]
    assert validate("orphan_cleanup", {name: replacement}) == []


def test_new_names_exist(present: Interface) -> None:
    """What the guide recommends is there."""
    options = {
        f"{find_message(row[0])}: {name}"
        for row in read_rows("Options of modules")
        for name in find_names(row[2])
        if not name.startswith("orphan_")
    }
    metrics = {name for row in read_rows("Metrics and alerts") for name in find_names(row[1])}

    assert options <= set(present["options"])
    assert metrics <= set(present["metrics"])


@pytest.mark.parametrize("role", ROLES)
def test_new_variables_say_since_when_they_exist(role: str) -> None:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
    wrong = []
    for entry_point, spec in specs.items():
        is_former = f"{role}: {entry_point}" in FORMER["entry points"]
        if spec["version_added"] != ("1.0.0" if is_former else "2.0.0"):
            wrong.append(entry_point)
        for name, option in spec.get("options", {}).items():
            since = option.get("version_added", spec["version_added"])
            expected = ("1.0.0",) if name in FORMER["variables"] else ("2.0.0", "3.0.0")
            if since not in expected:
                wrong.append(name)

    assert wrong == []
