"""Changes with the names that are known: those of a journal, and what `--diff` shows."""

import json
import typing as t
from pathlib import Path

from ......plugins.action import orphan_restore
from ......plugins.module_utils._core.changes.journal import read_journal
from ......plugins.module_utils._core.changes.restore import find_restore_steps
from ......plugins.plugin_utils._terminal.changes import find_findings, format_journal, name_diff
from ..actions import make_action

JOURNAL = Path(__file__).parents[4] / "fixtures" / "journal" / "1.0.0.jsonl"


def test_every_change_of_a_journal_has_a_line_with_the_names_that_are_known() -> None:
    records, _torn = read_journal(str(JOURNAL))
    steps = find_restore_steps(records, records[0]["placement_endpoint"], [], [])
    first = next(step for step in steps if step.kind == "unknown_consumer")
    (provider,) = next(
        record["frees"] for record in records if record.get("finding") == first.finding
    )
    named: t.Any = {
        "id": first.finding,
        "consumer": first.subject,
        "server": None,
        "providers": [{"uuid": provider, "name": "compute-1", "root_name": "compute-1"}],
    }

    bare = format_journal(steps, None, 160)
    findings: t.Any = {"findings": [named]}
    with_names = format_journal(steps, findings, 160)

    count = len(steps)
    assert bare[1].startswith(f"{count} changes to restore") and len(bare) == count + 4
    assert any(provider[:8] in line for line in bare)
    (row,) = [line for line in with_names if first.subject in line]
    assert row.startswith("unknown_consumer") and "  compute-1  " in row


def _findings(server: str | None, provider: str) -> t.Any:
    named = {"name": server} if server is not None else None
    providers = [{"uuid": "p", "name": provider}]
    return {"findings": [{"consumer": "c", "server": named, "providers": providers}]}


def _side(*providers: str) -> dict[str, t.Any]:
    return {"allocations": {provider: {"resources": {}} for provider in providers}, "user_id": "u"}


def test_names_follow_the_uuids_of_consumers_and_providers() -> None:
    diff = {"before": {"c": _side("p", "q")}, "after": {"c": _side()}}

    assert name_diff(diff, _findings("web\x1b", "compute-1")) == {
        "before": {"c (web\\x1b)": _side("p (compute-1)", "q")},
        "after": {"c (web\\x1b)": _side()},
    }


def test_what_has_no_name_keeps_its_uuid() -> None:
    diff = {"before": {"c": _side("q"), "tree": "its name"}, "after": "text"}

    assert name_diff(diff, _findings(None, "compute-1")) == diff


def test_contents_of_a_tree_get_no_allocations() -> None:
    diff = {"before": {"compute-1": {"traits": []}}, "after": {"compute-1": {"traits": ["A"]}}}

    assert name_diff(diff, _findings("web", "compute-1")) == diff


def test_findings_are_those_in_the_folder_of_the_output(tmp_path: Path) -> None:
    action = make_action(orphan_restore, basedir=str(tmp_path))
    assert find_findings(action) is None
    action._task.args = {"output_dir": str(tmp_path)}
    assert find_findings(action) is None
    (tmp_path / "findings.json").write_text("{}")
    assert find_findings(action) is None
    fixture = Path(__file__).parents[4] / "fixtures" / "report" / "findings.json"
    (tmp_path / "findings.json").write_text(fixture.read_text())
    assert find_findings(action) == json.loads(fixture.read_text())
    # The file of another machine is not read here.
    action._connection.transport = "ssh"
    assert find_findings(action) is None
