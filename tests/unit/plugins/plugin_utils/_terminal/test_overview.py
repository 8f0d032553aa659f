"""Many findings at one glance."""

from __future__ import annotations

import json
import typing as t

import pytest

from ......plugins.module_utils._core.options.policy import Policy
from ......plugins.plugin_utils._terminal.changes import (
    format_plan,
    format_remediation,
    format_results,
)
from ......plugins.plugin_utils._terminal.lines import MAX_IN_FULL, measure_width
from ......plugins.plugin_utils._terminal.terminal import format_findings
from ...module_utils.judging import build_findings
from ...module_utils.world import World
from ..hostile import HOSTILE, plan_of, remediation_of

PATH = "/out/findings.json"


def _found(world: World) -> t.Any:
    return json.loads(json.dumps(build_findings(world.snapshot(), Policy())))


def _nine(name: str = "web") -> t.Any:
    """Return nine findings of three kinds on three hosts, and three protected consumers."""
    world = World()
    hosts = [world.host(f"compute-{number}") for number in (1, 2, 3)]
    for number in range(6):
        host = hosts[number % 2]
        world.delete(world.server(host, host, name=f"{name}-{number}"))
    for _number in range(3):
        world.server(hosts[0], hosts[0], hosts[2], name=f"{name}-two")
        world.server(None, hosts[1], status="BUILD", task_state="scheduling", name=f"{name}-new")
    return _found(world)


def _draw(found: t.Any, width: int, **options: t.Any) -> list[str]:
    return format_findings(found, PATH, options.pop("kinds", None), width, **options)


@pytest.mark.parametrize("width", [80, 120, 160])
def test_each_finding_has_one_line(width: int) -> None:
    found = _nine()
    lines = _draw(found, width)
    rows = [line for line in lines if line.startswith(("deleted_server  c", "extra_host      c"))]

    assert len(rows) == 9
    whole = [entry["consumer"] for entry in found["findings"] if entry["consumer"]]
    assert all(any(uuid[:8] in row for row in rows) for uuid in whole)
    # Where not all fits, ids are shortened before hosts and amounts.
    assert all(any(uuid in row for row in rows) for uuid in whole) is (width == 160)
    assert any(line.startswith("Whole ids: /out/findings.json") for line in lines) is (width < 160)
    assert all("1 VCPU, 512 MiB, 1 GiB disk" in row for row in rows) is (width > 80)


@pytest.mark.parametrize("name", [*HOSTILE, "wide"])
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    hostile = HOSTILE.get(name, "\u6771\u4eac" * 20)
    found = _nine(hostile)
    found["summary"]["coverage"] |= {"unread": [hostile], "unjudged_hosts": [hostile]}
    for entry in found["findings"]:
        for provider in entry["providers"]:
            provider["name"] = provider["root_name"] = hostile
    for width in range(79, 200, 11):
        lines = [*_draw(found, width), *_draw(found, width, verbose=True)]
        lines += format_remediation(remediation_of(found, "removed"), None, width, found)
        lines += format_plan(plan_of(found), found, width)

        assert len(lines) > 60
        for line in lines:
            assert line.isprintable()
            assert measure_width(line) <= width, line


def test_few_findings_and_a_verbose_run_are_shown_in_full() -> None:
    found = _nine()
    few = {**found, "findings": found["findings"][:MAX_IN_FULL]}

    assert sum("    write    " in line for line in _draw(found, 120)) == 0
    assert sum("    write    " in line for line in _draw(few, 120)) == MAX_IN_FULL
    assert sum("    write    " in line for line in _draw(found, 120, verbose=True)) == 9


def test_what_is_not_changed_says_why_once() -> None:
    found = _nine()
    found["findings"][0]["selected"] = False
    lines = _draw(found, 160, kinds=["deleted_server"])

    assert sum(line.endswith("  not now") for line in lines) == 4
    assert any(line.startswith("Not now: 1, because it is not selected") for line in lines)
    assert "Not now: 3, because extra_host is not among the kinds to remediate." in lines


def test_ten_hosts_are_listed_that_lose_most() -> None:
    world = World()
    for number in range(13):
        host = world.host(f"compute-{number:02}")
        for _server in range(number + 1):
            world.delete(world.server(host, host))
    lines = _draw(_found(world), 160)
    start = [line.split() for line in lines].index(["HOST", "FREES"])

    assert lines[start + 1].split()[:2] == ["compute-12", "13"]
    assert lines[start + 10].split()[:2] == ["compute-03", "4"]
    assert lines[start + 11] == "and 3 more hosts"


def test_a_plan_is_shown_with_the_change_of_each_consumer() -> None:
    found = _nine()
    lines = format_plan(plan_of(found), found, 160)

    assert lines[1] == f"9 changes of the plan of {found['finished_at']}:"
    assert lines[3].split() == ["KIND", "HOST", "AMOUNT", "SERVER", "CONSUMER", "CHANGE"]
    assert sum(line.endswith("removes all of it") for line in lines) == 6
    assert sum(line.endswith("keeps compute-1") for line in lines) == 3


def test_a_plan_without_its_findings_is_shown_with_uuids() -> None:
    found = _nine()
    lines = format_plan(plan_of(found), None, 200)

    provider = next(iter(found["findings"][0]["change"]["frees"]))
    assert any(provider in line for line in lines)


def test_results_are_lines_with_failures_first() -> None:
    lines = format_results(
        [
            {"outcome": "healed", "subject": "a", "reason": "Nova did it."},
            {"outcome": "failed", "subject": "b\x1b", "reason": "No."},
            {"outcome": "skipped", "subject": "c"},
        ],
        80,
    )

    assert [str(line).rstrip() for line in lines] == [
        "",
        "failed    b\\x1b  No.",
        "skipped   c",
        "healed    a  Nova did it.",
        "Outcome: 1 failed, 1 skipped, 1 healed.",
    ]
    assert format_results([], 80) == []
