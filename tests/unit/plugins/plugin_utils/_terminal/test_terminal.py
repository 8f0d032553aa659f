"""The output on a terminal: everything important, and nothing that the terminal would interpret."""

from __future__ import annotations

import dataclasses as d
import json
import typing as t

import pytest

from ......plugins.module_utils._core.models.placement import Inventory, ProviderDetails
from ......plugins.module_utils._core.options.policy import Policy
from ......plugins.plugin_utils._terminal import lines as lines_module
from ......plugins.plugin_utils._terminal.changes import format_remediation
from ......plugins.plugin_utils._terminal.lines import Line, group_by_tone
from ......plugins.plugin_utils._terminal.terminal import format_findings
from ...module_utils.judging import build_findings
from ...module_utils.world import PLENTY, World
from ..hostile import HOSTILE, hostile, remediation_of


@pytest.fixture(autouse=True)
def _wide_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sentence be as wide as the terminal, so that a test can keep it in one line."""
    monkeypatch.setattr(lines_module, "MAX_PROSE", 100_000)


PATH = "/var/lib/placement/findings.json"
CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _found(world: World, **changes: t.Any) -> t.Any:
    return json.loads(json.dumps(build_findings(world.snapshot(**changes), Policy())))


def _grown_old(world: World) -> t.Any:
    return json.loads(json.dumps(build_findings(world.snapshot(), Policy(min_age=0))))


def _lines(found: t.Any, kinds: list[str] | None = None, width: int = 100) -> list[str]:
    return format_findings(found, PATH, kinds, width)


def _words(lines: list[str]) -> str:
    """Return the lines as one, without the line breaks of wrapping."""
    return " ".join(" ".join(lines).split())


def _orphans(count: int) -> World:
    world = World()
    here = world.host("compute-1")
    for _number in range(count):
        world.delete(world.server(here, here))
    return world


@pytest.mark.parametrize("name", HOSTILE)
def test_output_has_no_terminal_escapes(name: str) -> None:
    lines = _lines(_found(hostile(HOSTILE[name])))

    assert lines
    for line in lines:
        assert line.isprintable()
        line.encode("utf-8")


def test_title_names_the_version_that_detected() -> None:
    found = _found(_orphans(1))

    # A file of version 1.0, and one of a module that Ansible did not start.
    for versions in ({}, {"versions": {"collection": ""}}):
        title = _lines({**found, **versions}, width=200)[1]
        assert title.endswith(found["finished_at"])
    title = _lines({**found, "versions": {"collection": "2.0.0\x1b"}}, width=200)[1]
    assert title.endswith(f"{found['finished_at']}, by osops.placement 2.0.0\\x1b")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_adds_no_lines(name: str) -> None:
    """Wrapping adds lines: with enough room the table is that of a harmless name."""
    assert len(_lines(_found(hostile(HOSTILE[name])), width=10_000)) == len(
        _lines(_found(hostile("x")), width=10_000)
    )


@pytest.mark.parametrize("name", ["template", "quotes", "script", "formula"])
def test_harmless_characters_are_shown_unchanged(name: str) -> None:
    assert sum(HOSTILE[name] in line for line in _lines(_found(hostile(HOSTILE[name])))) >= 4


def test_path_is_never_cut() -> None:
    path = f"/{'deep/' * 30}findings.json"
    lines = format_findings(_found(_orphans(101)), path, None, 80)
    told = format_remediation(_remediation(("removed", "")), path, 80)

    assert any(path in line for line in lines) and path in told


def test_known_finding_shows_since_when() -> None:
    found = _found(_orphans(2))
    found["findings"][0] |= {"new": False, "first_seen": "2026-01-02T03:04:05Z"}
    found["summary"]["new"] = {"deleted_server": 1}
    lines = _lines(found)

    assert lines.count("    known    since 2026-01-02T03:04:05Z") == 1
    assert "2 orphaned, 0 drifted (1 of them new);" in _words(lines)


def test_lines_have_the_colour_of_their_meaning() -> None:
    found = _found(hostile("x"))
    found["summary"]["coverage"]["failed_checks"] = ["Wrong region."]
    lines = _lines(found, width=10_000)
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
    told = _remediation(("skipped", "It does not exist."))
    told["outcomes"][0] |= {
        "consumer": None,
        "kind": "orphaned_provider",
        "provider": {"uuid": CONSUMER, "name": "compute-9"},
    }

    assert "skipped orphaned_provider compute-9 - - 6f7a1f5c" in _words(
        format_remediation(told, None, 80)
    )
    for name in HOSTILE.values():
        told["outcomes"][0]["provider"]["name"] = name
        assert all(line.isprintable() for line in map(str, format_remediation(told, None, 80)))


def test_lines_of_one_colour_are_printed_together() -> None:
    lines = ["a", Line("b", "error"), Line("c", "error"), Line("d", "ok"), "", "e"]

    assert group_by_tone(lines) == [(None, "a"), ("error", "b\nc"), ("ok", "d"), (None, "\ne")]


def test_orphan_is_shown_with_host_amounts_reason_and_write() -> None:
    world = _orphans(1)
    (entry,) = _found(world)["findings"]
    lines = _lines(_found(world), width=1000)
    start = lines.index("KIND                   CONSUMER                              SERVER")

    assert lines[start : start + 7] == [
        "KIND                   CONSUMER                              SERVER",
        "",
        f"deleted_server         {entry['consumer']}  server-2",
        "    host     compute-1",
        "    frees    1 VCPU, 512 MiB, 1 GiB disk on compute-1",
        f"    why      {entry['reason']}",
        f"    write    POST /allocations for {entry['consumer']} (generation 1): removes all of it",
    ]


def test_partial_removal_shows_the_dropped_host_and_the_kept_provider() -> None:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.server(there, here, there)
    told = _words(_lines(_found(world)))

    assert "host compute-1 frees 1 VCPU, 512 MiB, 1 GiB disk on compute-1 why" in told
    assert "(generation 1): keeps compute-2" in told


def test_several_hosts_and_allocations_are_shown_in_order() -> None:
    world = World()
    third, second, here = world.host("compute-3"), world.host("compute-2"), world.host("compute-1")
    world.server(here, here, third, second)

    assert "host compute-2, compute-3 frees" in _words(_lines(_found(world)))


def test_forbidden_kind_is_shown_as_a_possible_change() -> None:
    told = _words(_lines(_found(_orphans(1)), kinds=["extra_host"]))

    assert " write " not in told
    assert "removes all of it; not now: deleted_server is not among the kinds to remediate" in told


def test_allowed_kind_is_shown_as_a_planned_change() -> None:
    assert " write POST " in _words(_lines(_found(_orphans(1)), kinds=["deleted_server"]))


def test_chosen_drift_is_shown_with_both_consumers_of_its_write() -> None:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    server = world.server(here, there)
    move = world.migration(server, here, there, "reverted", here)
    told = _words(_lines(_found(world), kinds=["unreverted_allocation"]))

    assert "frees 1 VCPU, 512 MiB, 1 GiB disk on compute-2 why" in told
    assert (
        f"write POST /allocations for {server} (generation 1) and {move} (generation 1): "
        "gives it compute-1"
    ) in told


def test_allocation_to_create_is_shown_as_new() -> None:
    world = World()
    here = world.host("compute-1")
    server = world.server(here)
    told = _words(_lines(_grown_old(world), kinds=["missing_allocation"]))

    assert "adds 1 VCPU, 512 MiB, 1 GiB disk on compute-1 why" in told
    assert f"write POST /allocations for {server} (new): gives it compute-1" in told


def test_unchosen_drift_is_shown_as_a_possible_change() -> None:
    world = World()
    world.server(world.host("compute-1"))
    told = _words(_lines(_grown_old(world), kinds=["deleted_server"]))

    assert " write " not in told
    assert (
        "could be corrected; not now: missing_allocation is not among the kinds to remediate"
        in told
    )


@pytest.mark.parametrize("chosen", [True, False])
def test_deletable_tree_is_shown_children_first(chosen: bool) -> None:
    world = World()
    orphaned = world.provider("gone-1")
    child = world.provider("gone-1_port", orphaned)
    here = world.host("compute-1")
    world.server(here, here)
    stock = Inventory(8, 0, 1, 8, 1, 1.0)
    details = {
        orphaned: ProviderDetails(
            {"VCPU": stock, "MEMORY_MB": stock}, traits=frozenset({"COMPUTE_NODE"})
        )
    }
    told = _words(
        _lines(
            _found(world, details=details),
            kinds=["orphaned_provider" if chosen else "deleted_server"],
        )
    )

    assert (
        f"write DELETE /resource_providers for gone-1_port ({child}), gone-1 ({orphaned})" in told
    ) == chosen
    assert ("could be corrected; not now: orphaned_provider is not among" in told) != chosen


def test_orphans_are_ordered_by_kind_host_and_consumer() -> None:
    world = World()
    second, first = world.host("compute-2"), world.host("compute-1")
    late, early = world.server(second, second), world.server(first, first)
    wrong = world.server(first, first, second)
    for server in (late, early):
        world.delete(server)
    told = "\n".join(_lines(_found(world)))

    assert sorted((wrong, late, early), key=told.index) == [early, late, wrong]


def test_protected_and_undecided_consumers_are_shown_with_their_reasons() -> None:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    building, astray = (
        world.server(None, here, status="BUILD", task_state="scheduling"),
        world.server(here, there, node="elsewhere"),
    )
    told = _words(_lines(_found(world)))

    assert (
        f"Undecided, not changed: unproven (server-4 {astray}): Server {astray} is on "
        "compute-1 (elsewhere)"
    ) in told
    assert (
        f"Protected, not changed: booting (server-3 {building}): Server {building} is being built"
    ) in told


def test_no_findings_give_no_table() -> None:
    told = _words(_lines(_found(_orphans(0))))

    assert "CONSUMER" not in told
    assert "left alone" not in told
    assert (
        "Total: 0 orphaned, 0 drifted; 0 protected; 0 undecided; of 0 consumers "
        "on 1 provider and 1 hypervisor."
    ) in told


def test_totals_are_the_last_line() -> None:
    assert _lines(_found(_orphans(2)), width=1000)[-1] == (
        "Total: 2 orphaned, 0 drifted (2 of them new); "
        "stranded: 2 VCPU (100.0%), 1 GiB (100.0%), 2 GiB disk (100.0%) "
        "of all allocations in the whole cloud; "
        "0 protected; 0 undecided; "
        "of 2 consumers on 1 provider and 1 hypervisor."
    )


def test_failed_checks_follow_the_totals() -> None:
    found = _found(_orphans(1))
    found["summary"]["coverage"]["failed_checks"] = [
        "A cell is not\x1b answering.",
        "Wrong region.",
    ]

    assert _lines(found)[-2:] == [
        "NOTHING MAY BE CHANGED: A cell is not\\x1b answering.",
        "NOTHING MAY BE CHANGED: Wrong region.",
    ]


@pytest.mark.parametrize(
    ("count", "shown", "more"), [(100, 100, []), (101, 100, [f"… and 1 more in {PATH}"])]
)
def test_hundred_of_many_orphans_are_shown_and_the_others_counted(
    count: int, shown: int, more: list[str]
) -> None:
    lines = _lines(_found(_orphans(count)))

    assert sum("removes all of it" in line for line in lines) == shown
    assert [line for line in lines if line.startswith("…")] == more


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
    lines = format_findings(_found(world), PATH, None, 10_000, verbose=verbose)

    kept = [line for line in lines if line.startswith(("unproven ", "soft_deleted "))]
    assert len(kept) == shown
    if verbose:
        assert f"… and 3 more in {PATH}" in lines
    else:
        assert " and 20 more): " in kept[0]


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


def test_every_change_has_a_line_and_what_was_not_made_comes_first() -> None:
    lines = format_remediation(
        _remediation(
            ("removed", ""), ("skipped", "It is healthy\x1b now."), ("failed", "It moved.")
        ),
        "/j\x07.jsonl",
        100,
    )

    assert [" ".join(line.split()) for line in lines] == [
        "",
        "OUTCOME KIND HOST AMOUNT SERVER CONSUMER",
        f"failed deleted_server - - - {CONSUMER}",
        "why It moved.",
        f"skipped deleted_server - - - {CONSUMER}",
        "why It is healthy\\x1b now.",
        f"removed deleted_server - - - {CONSUMER}",
        "Outcome: 1 removed, 1 skipped, 1 failed.",
        "Journal: /j\\x07.jsonl",
    ]


def test_a_change_is_shown_with_the_names_of_its_finding() -> None:
    found = _found(_orphans(1))
    remediation = remediation_of(found, "removed")

    lines = format_remediation(remediation, None, 200, found)

    assert " ".join(lines[2].split()) == (
        "removed deleted_server compute-1 1 VCPU, 512 MiB, 1 GiB disk server-2 "
        f"{found['findings'][0]['consumer']}"
    )


def test_check_mode_says_that_nothing_was_written() -> None:
    lines = format_remediation(_remediation(("reduced", ""), check_mode=True), None, 100)

    assert lines == ["", "Check mode: nothing was written. Without check mode: 1 reduced."]


@pytest.mark.parametrize("check_mode", [True, False])
def test_empty_remediation_says_so(check_mode: bool) -> None:
    assert format_remediation(_remediation(check_mode=check_mode), None, 100) == [
        "",
        "Nothing to remediate.",
    ]


def test_hundred_of_many_failed_changes_are_explained() -> None:
    lines = format_remediation(_remediation(*[("skipped", "It is healthy now.")] * 103), None, 100)

    assert sum(line.startswith("skipped") for line in lines) == 100
    assert "… and 3 more in remediation.json" in lines


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
    return format_findings(_found(world), PATH, None, width, complaints)


def test_complaints_are_shown_with_their_finding() -> None:
    world = _orphans(1)
    (entry,) = _found(world)["findings"]
    lines = _with_complaints(
        world, _complaint(entry["consumer"], amounts={"MEMORY_MB": 512, "VCPU": 1})
    )
    without = _lines(_found(world), width=1000)

    (told,) = [line for line in lines if line not in without]
    assert told == (
        "    log      compute-1 says: it is not managed here, "
        "with an allocation of 1 VCPU, 512 MEMORY_MB (12 times, last at 2026-11-02T07:48:00Z)"
    )
    assert lines[lines.index(told) - 1].startswith("    write ")
    assert [line for line in lines if line != told] == without


def test_complaints_about_kept_consumers_are_shown_too() -> None:
    world = hostile("x")
    found = _found(world)
    spared = [entry for key in ("protected", "undecided") for entry in found[key]]
    complaints = [
        _complaint(entry["consumer"], host=entry["providers"][0]["root_name"]) for entry in spared
    ]

    assert len(spared) >= 2
    assert sum(
        "says: it is not managed here" in line for line in _with_complaints(world, *complaints)
    ) == len(spared)


def test_complaints_without_a_finding_follow_all_findings() -> None:
    complaints = [
        _complaint(CONSUMER, "not_in_database", last_seen=None, count=1),
        _complaint(CONSUMER, "moved_away", other_host="compute-2"),
        _complaint(CONSUMER, "moved_away"),
        _complaint(None, "power_state_counts", counts={"database": 1, "hypervisor": 2}),
        _complaint(None, "rpc_version_cap", versions={"requested": "5.0", "cap": "4.17"}),
        _complaint(None, "provider_conflict", provider={"uuid": CONSUMER, "name": "compute-9"}),
        _complaint(None, "of_a_newer_version"),
    ]
    lines = _with_complaints(_orphans(1), *complaints)
    start = lines.index("Complaints of hosts that no finding explains:")
    often = "(12 times, last at 2026-11-02T07:48:00Z)"

    assert lines[start + 1 : -2] == [
        f"not_in_database        {CONSUMER}",
        "    log      compute-1 says: it is not found in the database (once)",
        f"moved_away             {CONSUMER}",
        f"    log      compute-1 says: it has moved to compute-2 {often}",
        f"moved_away             {CONSUMER}",
        f"    log      compute-1 says: it has moved to no host {often}",
        "power_state_counts",
        f"    log      compute-1 says: servers in the database: 1, on the hypervisor: 2 {often}",
        "rpc_version_cap",
        f"    log      compute-1 says: version 5.0 was requested, and the cap is 4.17 {often}",
        "provider_conflict      compute-9",
        f"    log      compute-1 says: another resource provider has this name {often}",
        "of_a_newer_version",
        f"    log      compute-1 says: of_a_newer_version {often}",
    ]
    assert lines[-1].startswith("Total: ")


def test_some_of_many_complaints_are_shown_and_the_others_counted() -> None:
    world = _orphans(1)
    (entry,) = _found(world)["findings"]
    many = [
        _complaint(entry["consumer"], other_host=f"compute-{number}", kind="moved_away")
        for number in range(9)
    ]
    stray = [_complaint(CONSUMER, host=f"compute-{number}") for number in range(130)]

    lines = _with_complaints(world, *many, *stray)

    assert sum(line.count("says: it has moved to") for line in lines) == 3
    assert any(line.endswith("; and 6 more") for line in lines)
    assert sum("says: it is not managed here" in line for line in lines) == 100
    assert "… and 30 more" in lines


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
    row = lines_module.format_row("stale_service", lines_module.format_second_column(name), "x")
    assert measure(row) == lines_module.KIND_COLUMN + lines_module.SUBJECT_COLUMN + 1


def test_without_a_locale_each_character_counts_as_one_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(text: str) -> int:
        raise OSError("get_text_width could not calculate text width")

    monkeypatch.setattr(lines_module, "get_text_width", measure)

    assert lines_module.measure_width("\u6771\u4eac") == 2


def _found_with_command(command: str) -> t.Any:
    """A host that has more allocated than it has, with a command that fixes it."""
    world = World()
    host = world.host("compute-1")
    world.server(host, host)
    found = _found(world, details={host: ProviderDetails({"VCPU": d.replace(PLENTY, total=0)})})
    found["findings"][0]["commands"] = [command]
    return found


def test_command_that_mends_a_finding_is_on_one_line_to_be_copied() -> None:
    command = f"openstack {' '.join(['--aggregate uuid'] * 20)}"
    lines = _lines(_found_with_command(command), width=60)

    assert f"    fix      {command}" in [str(line) for line in lines]


def test_overview_says_where_the_commands_are() -> None:
    found = _found(_orphans(6))
    assert not any(line.startswith("Commands that fix") for line in _lines(found))
    for entry in found["findings"][:2]:
        entry["commands"] = ["nova-manage placement sync_aggregates"]

    assert f"Commands that fix 2 findings: {PATH}, or -v." in map(str, _lines(found))


def test_what_was_not_searched_and_what_projects_get_back_is_said() -> None:
    found = _found(_orphans(2))
    found["summary"]["coverage"]["unread"] = ["Ironic answered 403\x1b."]
    quota = found["summary"]["stranded"]["quota"]
    (project,) = quota
    quota[project].update({"name": "web\x1b", "exists": True})
    lines = _lines(found, width=1000)

    assert f"Quota to get back where Nova counts it in Placement: web\\x1b ({project}): " in _words(
        lines
    )
    assert "2 cores, 1 GiB of RAM." in _words(lines)
    assert lines[-1] == "Ironic answered 403\\x1b."


def test_only_the_first_projects_are_said() -> None:
    found = _found(_orphans(1))
    quota = found["summary"]["stranded"]["quota"]
    (fields,) = quota.values()
    for number in range(7):
        quota[f"p{number}"] = {**fields, "exists": True}

    assert "p4: 1 core, 512 MiB of RAM; and 2 more." in _words(_lines(found))
