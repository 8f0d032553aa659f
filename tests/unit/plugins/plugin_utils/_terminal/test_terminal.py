"""The output on a terminal: everything important, and nothing that the terminal would interpret.

`test_screens.py` has what it says.
"""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.models.placement import ProviderDetails
from ......plugins.plugin_utils._terminal import lines as lines_module
from ......plugins.plugin_utils._terminal.changes import (
    format_plan,
    format_remediation,
    format_results,
)
from ......plugins.plugin_utils._terminal.lines import (
    MAX_IN_FULL,
    Line,
    group_by_tone,
    measure_width,
)
from ......plugins.plugin_utils._terminal.terminal import format_findings
from ...module_utils.world import PLENTY, World
from ..hostile import HOSTILE, hostile, plan_of, remediation_of, told

PATH = "/var/lib/placement/findings.json"
CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
AMOUNTS = "1 VCPU, 512 MiB, 1 GiB disk"


@pytest.fixture(name="wide_prose")
def _wide_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sentence be as wide as the terminal, so that a test can keep it in one line."""
    monkeypatch.setattr(lines_module, "MAX_PROSE", 100_000)


def _lines(found: t.Any, width: int = 100, **options: t.Any) -> list[str]:
    return format_findings(found, PATH, options.pop("kinds", None), width, **options)


def _count_more(lines: list[str]) -> list[int]:
    """Return the numbers of what is not shown, such as `… and 3 more in findings.json`."""
    return [int(line.split()[2]) for line in lines if line.startswith("… and ")]


def _orphans(count: int) -> World:
    world = World()
    here = world.host("compute-1")
    for _number in range(count):
        world.delete(world.server(here, here))
    return world


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
    return told(world)


@pytest.mark.usefixtures("wide_prose")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_adds_no_escapes_and_no_lines(name: str) -> None:
    """Wrapping adds lines: with enough room the table is that of a harmless name."""
    narrow, wide = (_lines(told(hostile(HOSTILE[name])), width) for width in (100, 10_000))

    assert len(wide) == len(_lines(told(hostile("x")), 10_000))
    for line in (*narrow, *wide):
        assert line.isprintable()
        line.encode("utf-8")


def test_title_names_the_version_that_detected() -> None:
    found = told(_orphans(1))

    # A file of version 1.0, and one of a module that Ansible did not start.
    for versions in ({}, {"versions": {"collection": ""}}):
        title = _lines({**found, **versions}, 200)[1]
        assert title.endswith(found["finished_at"])
    title = _lines({**found, "versions": {"collection": "2.0.0\x1b"}}, 200)[1]
    assert title.endswith(f"{found['finished_at']}, by osops.placement 2.0.0\\x1b")


@pytest.mark.parametrize("name", ["template", "quotes", "script", "formula"])
def test_harmless_characters_are_shown_unchanged(name: str) -> None:
    assert sum(HOSTILE[name] in line for line in _lines(told(hostile(HOSTILE[name])))) >= 4


def test_path_is_never_cut() -> None:
    path = f"/{'deep/' * 30}findings.json"
    lines = format_findings(told(_orphans(101)), path, None, 80)
    changed = format_remediation(_remediation(("removed", "")), path, 80)

    assert any(path in line for line in lines) and path in changed


@pytest.mark.usefixtures("wide_prose")
def test_lines_have_the_colour_of_their_meaning() -> None:
    found = told(hostile("x"))
    found["summary"]["coverage"]["failed_checks"] = ["Wrong region."]
    lines = _lines(found, 10_000)
    tones = {str(line).split()[0]: line.tone for line in lines if isinstance(line, Line)}

    assert tones == {
        "deleted_server": "changed",
        "extra_host": "changed",
        "unproven": "warning",
        "booting": "skipped",
        "NOTHING": "error",
    }


@pytest.mark.parametrize(
    ("outcome", "tones"),
    [("removed", ["ok", "ok"]), ("skipped", ["skipped", "ok"]), ("failed", ["error", "error"])],
)
def test_outcome_has_its_colour(outcome: str, tones: list[str]) -> None:
    lines = format_remediation(
        _remediation((outcome, "" if outcome == "removed" else "It is gone.")), None, 80
    )

    assert [line.tone for line in lines if isinstance(line, Line)] == tones


def test_tree_to_restore_is_named_by_its_root() -> None:
    remediation = _remediation(("skipped", "It does not exist."))
    provider = {"uuid": CONSUMER, "name": "compute-9"}
    remediation["outcomes"][0] |= {"consumer": None, "provider": provider}

    assert format_remediation(remediation, None, 80)[2].split()[2] == "compute-9"
    for provider["name"] in HOSTILE.values():
        assert all(map(str.isprintable, format_remediation(remediation, None, 80)))


def test_lines_of_one_colour_are_printed_together() -> None:
    lines = ["a", Line("b", "error"), Line("c", "error"), Line("d", "ok"), "", "e"]

    assert group_by_tone(lines) == [(None, "a"), ("error", "b\nc"), ("ok", "d"), (None, "\ne")]


def test_several_hosts_are_shown_in_order() -> None:
    world = World()
    third, second, here = (world.host(f"compute-{number}") for number in (3, 2, 1))
    world.server(here, here, third, second)

    assert "    host     compute-2, compute-3" in _lines(told(world))


@pytest.mark.parametrize(("count", "more"), [(100, []), (101, [1])])
def test_hundred_of_many_orphans_are_shown_and_the_others_counted(
    count: int, more: list[int]
) -> None:
    lines = _lines(told(_orphans(count)))

    assert sum(getattr(line, "tone", None) == "changed" for line in lines) == 100
    assert _count_more(lines) == more


@pytest.mark.usefixtures("wide_prose")
@pytest.mark.parametrize("verdict", ["protected", "undecided"])
@pytest.mark.parametrize(("verbose", "shown"), [(False, 1), (True, 20)])
def test_kept_consumers_are_grouped_by_their_reason_unless_all_is_asked_for(
    verdict: str, verbose: bool, shown: int
) -> None:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    status = "ACTIVE" if verdict == "undecided" else "SOFT_DELETED"
    for _number in range(23):
        world.server(here, there, node="elsewhere", status=status)
    lines = _lines(told(world), 10_000, verbose=verbose)

    kept = [line for line in lines if line.startswith(("unproven ", "soft_deleted "))]
    assert len(kept) == shown
    assert _count_more(lines) == ([3] if verbose else [])
    assert verbose or " and 20 more): " in kept[0]


def _remediation(*outcomes: tuple[str, str], check_mode: bool = False) -> dict[str, t.Any]:
    names = [outcome for outcome, _reason in outcomes]
    return {
        "check_mode": check_mode,
        "tally": {name: names.count(name) for name in ("removed", "reduced", "skipped", "failed")},
        "outcomes": [
            {
                "outcome": outcome,
                "consumer": CONSUMER,
                "finding": f"deleted_server/{CONSUMER}",
                "kind": "deleted_server",
                "reason": reason,
            }
            for outcome, reason in outcomes
        ],
    }


def test_hundred_of_many_failed_changes_are_explained() -> None:
    lines = format_remediation(_remediation(*[("skipped", "It is healthy now.")] * 103), None, 100)

    assert sum(line.startswith("skipped") for line in lines) == 100
    assert _count_more(lines) == [3]


def _complaint(
    instance: str | None, kind: str = "not_managed", host: str = "compute-1", **facts: t.Any
) -> dict[str, t.Any]:
    return {
        "kind": kind,
        "host": host,
        "instance": instance,
        "count": 12,
        "last_seen": "2026-11-02T07:48:00Z",
        **dict.fromkeys(("amounts", "other_host", "counts", "versions", "provider", "port")),
        **facts,
    }


def _with_complaints(world: World, *complaints: dict[str, t.Any], width: int = 1000) -> list[str]:
    return _lines(told(world), width, complaints=complaints)


@pytest.mark.usefixtures("wide_prose")
def test_complaints_are_shown_with_what_explains_them() -> None:
    found = told(hostile("x"))
    entries = [entry for key in ("findings", "protected", "undecided") for entry in found[key]]
    complaints = [
        _complaint(entry["consumer"], host=entry["providers"][0]["root_name"]) for entry in entries
    ]

    lines, without = _with_complaints(hostile("x"), *complaints), _lines(found, 1000)

    assert len(entries) >= 4
    logged = [number for number, line in enumerate(lines) if line.startswith("    log ")]
    assert len(logged) == len(entries)
    assert lines[logged[0] - 1].startswith("    write ")
    assert [line for line in lines if not line.startswith("    log ")] == without


@pytest.mark.usefixtures("wide_prose")
def test_some_of_many_complaints_are_shown_and_the_others_counted() -> None:
    world = _orphans(1)
    (entry,) = told(world)["findings"]
    many = [
        _complaint(entry["consumer"], other_host=f"compute-{number}", kind="moved_away")
        for number in range(9)
    ]
    stray = [_complaint(CONSUMER, host=f"compute-{number}") for number in range(130)]

    lines = _with_complaints(world, *many, *stray)
    first, *others = [line for line in lines if line.startswith("    log ")]

    assert first.count(" says: ") == 3 and first.endswith("; and 6 more")
    assert len(others) == 100
    assert _count_more(lines) == [30]


@pytest.mark.usefixtures("wide_prose")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_complaints_are_escaped_on_their_own_lines(name: str) -> None:
    hostile = HOSTILE[name]
    complaints = [
        _complaint(
            hostile,
            hostile,
            hostile,
            other_host=hostile,
            last_seen=hostile,
            amounts={hostile: hostile},
        ),
        _complaint(None, "provider_conflict", provider={"name": hostile}),
        _complaint(None, "power_state_counts", counts={"database": hostile}),
    ]

    lines = _with_complaints(_orphans(1), *complaints, width=10_000)

    assert len(lines) == len(
        _with_complaints(_orphans(1), *[_complaint(CONSUMER)] * 3, width=10_000)
    )
    for line in lines:
        assert line.isprintable()
        line.encode("utf-8")


def test_a_wide_name_is_cut_to_the_columns_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(text: str) -> int:
        return sum(2 if ord(character) > 0x2E80 else 1 for character in text)

    monkeypatch.setattr(lines_module, "get_text_width", measure)
    name = "\u6771\u4eac" * 15

    assert lines_module.cut_to_width(name, 60) == name
    assert lines_module.cut_to_width(name, 10) == "\u6771\u4eac\u6771\u4eac…"
    row = lines_module.format_row("stale_service", name, "x", 100)
    assert measure(row) == lines_module.KIND_COLUMN + lines_module.SUBJECT_COLUMN + 1


def test_without_a_locale_each_character_counts_as_one_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(text: str) -> int:
        raise OSError("get_text_width could not calculate text width")

    monkeypatch.setattr(lines_module, "get_text_width", measure)

    assert lines_module.measure_width("\u6771\u4eac") == 2


def test_command_that_mends_a_finding_is_on_one_line_to_be_copied() -> None:
    """A host has more allocated than it has, and a command fixes that."""
    world = World()
    host = world.host("compute-1")
    world.server(host, host)
    found = told(world, details={host: ProviderDetails({"VCPU": d.replace(PLENTY, total=0)})})
    command = f"openstack {' '.join(['--aggregate uuid'] * 20)}"
    found["findings"][0]["commands"] = [command]

    assert f"    fix      {command}" in _lines(found, 60)


# --- many findings at one glance


@pytest.mark.parametrize("width", [80, 120, 160])
def test_each_finding_has_one_line(width: int) -> None:
    found = _nine()
    lines = _lines(found, width)
    rows = [line for line in lines if line.startswith(("deleted_server  c", "extra_host      c"))]

    assert len(rows) == 9
    whole = [entry["consumer"] for entry in found["findings"] if entry["consumer"]]
    assert all(any(uuid[:8] in row for row in rows) for uuid in whole)
    # Where not all fits, ids are shortened before hosts and amounts.
    assert all(any(uuid in row for row in rows) for uuid in whole) is (width == 160)
    assert any(line.startswith("Whole ids: ") for line in lines) is (width < 160)
    assert all(AMOUNTS in row for row in rows) is (width > 80)


@pytest.mark.parametrize("name", [*HOSTILE, "wide"])
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    hostile = HOSTILE.get(name, "\u6771\u4eac" * 20)
    found = _nine(hostile)
    found["summary"]["coverage"] |= {"unread": [hostile], "unjudged_hosts": [hostile]}
    for entry in found["findings"]:
        for provider in entry["providers"]:
            provider["name"] = provider["root_name"] = hostile
    for width in range(79, 200, 11):
        lines = [*_lines(found, width), *_lines(found, width, verbose=True)]
        lines += format_remediation(remediation_of(found, "removed"), None, width, found)
        lines += format_plan(plan_of(found), found, width)

        assert len(lines) > 60
        for line in lines:
            assert line.isprintable()
            assert measure_width(line) <= width, line


def test_first_line_says_that_part_of_the_cloud_was_not_judged() -> None:
    found = _nine()
    whole = _lines(found, 120)
    found["summary"]["coverage"]["unjudged_hosts"] = ["compute-9"]

    partly = _lines(found, 120)

    assert whole[1].startswith("Orphaned allocations in ")
    assert (partly[1], partly[2]) == ("PART OF THE CLOUD WAS NOT JUDGED", whole[1])


def test_few_findings_and_a_verbose_run_are_shown_in_full() -> None:
    found = _nine()
    few = {**found, "findings": found["findings"][:MAX_IN_FULL]}

    assert sum("    write    " in line for line in _lines(found, 120)) == 0
    assert sum("    write    " in line for line in _lines(few, 120)) == MAX_IN_FULL
    assert sum("    write    " in line for line in _lines(found, 120, verbose=True)) == 9


def test_what_is_not_changed_says_why_once() -> None:
    found = _nine()
    found["findings"][0]["selected"] = False
    lines = _lines(found, 160, kinds=["deleted_server"])

    assert sum(line.endswith("  not now") for line in lines) == 4
    counts = [int(line.split()[2].rstrip(",")) for line in lines if line.startswith("Not now: ")]
    assert counts == [1, 3]


def test_ten_hosts_are_listed_that_lose_most() -> None:
    world = World()
    for number in range(13):
        host = world.host(f"compute-{number:02}")
        for _server in range(number + 1):
            world.delete(world.server(host, host))
    lines = _lines(told(world), 160)
    start = [line.split() for line in lines].index(["HOST", "FREES"])

    assert lines[start + 1].split()[:2] == ["compute-12", "13"]
    assert lines[start + 10].split()[:2] == ["compute-03", "4"]
    assert lines[start + 11].split()[1] == "3"


def test_a_plan_without_its_findings_is_shown_with_uuids() -> None:
    found = _nine()
    lines = format_plan(plan_of(found), None, 200)

    provider = next(iter(found["findings"][0]["change"]["frees"]))
    assert any(provider in line for line in lines)


def test_results_are_lines_with_failures_first() -> None:
    outcomes = ("healed", "failed", "skipped")
    lines = format_results([{"outcome": each, "subject": "b\x1b"} for each in outcomes], 80)

    assert [line.split()[0] for line in lines[1:-1]] == ["failed", "skipped", "healed"]
    assert lines[1].split()[1] == "b\\x1b"
    assert format_results([], 80) == []
