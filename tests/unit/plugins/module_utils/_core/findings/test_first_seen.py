"""The memory of earlier runs: since when each finding is known, and what is forgotten."""

import dataclasses as d
import typing as t
from pathlib import Path

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._common.json_files import read_or_put_aside, write_json
from .......plugins.module_utils._core.findings import sightings
from .......plugins.module_utils._core.findings.selection import Selection
from .......plugins.module_utils._core.findings.sightings import (
    HISTORY_LOST,
    History,
    extract_history,
    parse_history,
)
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.options.policy import Policy
from ....plugin_utils.hostile import told
from ...judging import build_findings
from ...world import NOW, World, answer

THEN = "2026-01-02T03:04:05Z"
LISTS = ("findings", "protected", "undecided")


def _world() -> World:
    """Return a cloud with an orphan, a protected and an undecided consumer."""
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.delete(world.server(here, here))
    world.server(here, here)
    world.server(None, here, status="BUILD", task_state="scheduling")
    world.server(here, there, node="elsewhere")
    return world


def _entries(found: t.Any) -> list[t.Any]:
    return [entry for key in LISTS for entry in found[key]]


def _report(known: dict[str, str] | None = None, **changes: t.Any) -> t.Any:
    return told(_world(), known, **changes)


def test_first_run_marks_everything_as_new() -> None:
    found = _report()

    assert {(entry["first_seen"], entry["new"]) for entry in _entries(found)} == {(NOW, True)}
    assert all(found[key] for key in LISTS)
    assert found["summary"]["new"] == {"deleted_server": 1}


def test_known_finding_keeps_the_time_of_its_first_sighting() -> None:
    known = {entry["id"]: THEN for entry in _entries(_report())}
    found = _report(known)

    assert {(entry["first_seen"], entry["new"]) for entry in _entries(found)} == {(THEN, False)}
    assert found["summary"]["new"] == {}


@pytest.mark.parametrize(
    ("expression", "is_selected"),
    [(f"[?first_seen <= '{THEN}']", True), ("[?!new]", True), ("[?new]", False)],
)
def test_selection_can_use_the_first_sighting(expression: str, is_selected: bool) -> None:
    history = History({entry["id"]: THEN for entry in _report()["findings"]})
    found = build_findings(_world().snapshot(), Policy(), Selection(expression), history)

    assert found["findings"][0]["selected"] is is_selected


def test_complete_sound_reading_forgets_missing_findings() -> None:
    assert _report({"deleted_server/gone": THEN})["known"] == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": Scope(kinds=("extra_host",))},
        {"scope": Scope(hosts=("compute-2",))},
        {"scope": Scope(mode="triage")},
        {"services_after": answer("GET /os-services", 500)},
    ],
)
def test_incomplete_reading_forgets_nothing(changes: dict[str, t.Any]) -> None:
    assert _report({"deleted_server/gone": THEN}, **changes)["known"]["deleted_server/gone"] == THEN


def test_finding_reported_under_another_kind_is_remembered() -> None:
    (undecided,) = _report()["undecided"]
    orphaned = f"extra_host/{undecided['consumer']}"

    assert _report({orphaned: THEN, undecided["id"]: NOW})["known"] == {orphaned: THEN}


def test_full_memory_keeps_the_most_recent_sightings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sightings, "MAX_REMEMBERED", 2)
    known = {f"kind/{number}": f"2026-01-0{number}T00:00:00Z" for number in (2, 4, 1, 3)}
    kept = History(known).retain([], World().snapshot(), complete=False)

    assert sorted(kept.first_seen) == ["kind/3", "kind/4"]


def _read(path: str | None, warnings: list[str]) -> History:
    return read_or_put_aside(path, parse_history, HISTORY_LOST, warnings.append) or History()


def test_findings_file_and_separate_file_hold_the_same_memory(tmp_path: Path) -> None:
    found = _report({"kind/gone": THEN}, scope=Scope(kinds=("deleted_server",)))
    for name, contents in (("findings.json", found), ("state.json", extract_history(found))):
        write_json(str(tmp_path / name), contents)
    warnings: list[str] = []

    both = [
        _read(str(tmp_path / name), warnings).first_seen for name in ("findings.json", "state.json")
    ]

    assert (
        both[0] == both[1] == {"kind/gone": THEN, **{entry["id"]: NOW for entry in _entries(found)}}
    )
    assert not warnings
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", [None, "", "nonesuch/state.json"])
def test_missing_file_is_an_empty_memory_without_a_warning(path: str | None) -> None:
    warnings: list[str] = []

    assert _read(path, warnings) == History()
    assert not warnings


@pytest.mark.parametrize(
    "contents",
    [
        "",
        '{"known": {"a/b": "2026',
        "\x00\x01",
        "[]",
        "null",
        '"known"',
        "{}",
        '{"known": []}',
        '{"known": {"a/b": 1}}',
        '{"known": {}, "sightings": []}',
        '{"known": {}, "sightings": {"a/b": 1}}',
        # One field is missing, or has another type.
        *(
            f'{{"known": {{}}, "sightings": {{"a/b": {{{fields}}}}}}}'
            for fields in (
                '"count": 1, "since": "", "last": ""',
                '"count": "9", "since": "", "last": "", "generations": [1]',
                '"count": true, "since": "", "last": "", "generations": [1]',
                '"count": 1, "since": null, "last": "", "generations": [1]',
                '"count": 1, "since": "", "last": "", "generations": ["1"]',
            )
        ),
        '{"known": {}, "findings": [{}]}',
        '{"known": {}, "findings": 7}',
        '{"known": {}, "findings": [{"id": ["a"], "first_seen": "b"}]}',
        '{"known": {}, "findings": [{"id": "a/b", "first_seen": null}]}',
    ],
)
def test_broken_file_is_set_aside_with_one_warning(tmp_path: Path, contents: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(contents)
    warnings: list[str] = []

    assert _read(str(path), warnings) == History()

    (warning,) = warnings
    assert HISTORY_LOST in warning and f"{path}.broken" in warning
    assert (tmp_path / "state.json.broken").read_text() == contents
    assert not path.exists()


def test_silent_hosts_are_counted_once_each() -> None:
    world = _world()
    silent = answer(
        "GET /os-services",
        200,
        tuple(d.replace(service, status="UNKNOWN") for service in world.services),
    )
    coverage = build_findings(world.snapshot(services=silent, services_after=silent), Policy())[
        "summary"
    ]["coverage"]

    assert coverage["silent_hosts"] == len(world.services) == 2


def test_file_with_other_contents_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"^/there/plan\.json "):
        parse_history({"format": 1, "changes": []}, "/there/plan.json")


def test_ids_of_version_1_0_get_the_current_names_of_their_kinds() -> None:
    contents = {
        "known": {"forgotten_consumer/a": THEN, "wrong_host/b": THEN, "deleted_server/c": THEN}
    }

    assert parse_history(contents, "state.json").first_seen == {
        "unknown_consumer/a": THEN,
        "extra_host/b": THEN,
        "deleted_server/c": THEN,
    }
