"""A finding waits until enough runs have seen it unchanged.

The count restarts when anything about it changes.
"""

import dataclasses as d
import datetime
import json
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._common.times import format_time
from .......plugins.module_utils._core.findings.sightings import (
    History,
    extract_history,
    parse_history,
    parse_min_sightings,
)
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.models.snapshot import Scope
from .......plugins.module_utils._core.plan.limits import Limits
from .......plugins.module_utils._core.plan.plan import HEALED_KIND, Plan, list_servers_to_heal
from .......plugins.plugin_utils._report import csv_file, html_page, markdown
from .......plugins.plugin_utils._report.view import Report
from .......plugins.plugin_utils._terminal import terminal
from ...judging import NO_MINIMUM_AGE, build_findings
from ...situations import Cloud, deleted_server, ended_migration, extra_host, unknown_consumer
from ...world import answer

KINDS = [kind.name for kind in CHANGEABLE_KINDS]
WAITING = "it was seen 1 of 2 times"
BEGINNING = datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC)


class Runs:
    """Runs over a cloud, an hour apart.

    Each reads the memory that the previous one wrote.
    """

    def __init__(self, cloud: Cloud, min_sightings: int = 2) -> None:
        self.cloud = cloud
        self.min_sightings = min_sightings
        self.memory = History()
        self.hour = 0

    def run(self, **changes: t.Any) -> t.Any:
        self.hour += 1
        at = format_time(BEGINNING + datetime.timedelta(hours=self.hour))
        found = build_findings(
            self.cloud.snapshot(**{"finished_at": at, **changes}),
            NO_MINIMUM_AGE,
            history=self.memory,
            min_sightings=self.min_sightings,
        )
        kept = json.loads(json.dumps(extract_history(found)))
        self.memory = parse_history(kept, "state.json")
        return json.loads(json.dumps(found))

    def planned(self, **changes: t.Any) -> list[str]:
        return [step.subject for step in Plan.from_findings(self.run(**changes), KINDS).steps]


def _see_once() -> tuple[Runs, str]:
    """Return runs of which one has seen a deleted server, and its UUID."""
    cloud = Cloud()
    orphan = deleted_server(cloud)
    runs = Runs(cloud)
    runs.run()
    return runs, orphan


def test_finding_is_planned_at_the_second_sighting() -> None:
    cloud = Cloud()
    orphan = deleted_server(cloud)
    runs = Runs(cloud)

    first = runs.run()
    second = runs.run()

    assert [(entry["sightings"], entry["waiting"]) for entry in first["findings"]] == [(1, WAITING)]
    assert Plan.from_findings(first, KINDS).steps == ()
    assert [(entry["sightings"], entry["waiting"]) for entry in second["findings"]] == [(2, "")]
    assert [step.subject for step in Plan.from_findings(second, KINDS).steps] == [orphan]


def test_one_sighting_is_enough_by_default() -> None:
    cloud = Cloud()
    orphan = deleted_server(cloud)

    assert Runs(cloud, 1).planned() == [orphan]


def test_each_finding_is_counted_separately() -> None:
    runs, old = _see_once()
    deleted_server(runs.cloud)

    assert runs.planned() == [old]


def test_another_generation_restarts_the_count() -> None:
    runs, orphan = _see_once()
    held = runs.cloud.allocations[orphan]
    assert held.generation is not None
    runs.cloud.allocations[orphan] = d.replace(held, generation=held.generation + 1)

    assert [runs.planned(), runs.planned()] == [[], [orphan]]


def test_another_kind_restarts_the_count() -> None:
    cloud = Cloud()
    server = extra_host(cloud)
    runs = Runs(cloud)
    runs.run()
    cloud.delete(server)

    assert [entry["kind"] for entry in runs.run()["findings"]] == ["deleted_server"]
    assert runs.planned() == [server]


@pytest.mark.parametrize("question", ["server", "migrations"])
def test_undecided_reading_restarts_the_count(question: str) -> None:
    cloud = Cloud()
    orphan = unknown_consumer(cloud)
    runs = Runs(cloud)
    runs.run()
    cloud.answers(question, orphan, 503)
    runs.run()
    cloud.statuses.clear()

    assert [runs.planned() for _run in range(2)] == [[], [orphan]]


def test_healthy_reading_restarts_the_count() -> None:
    cloud = Cloud()
    migration = ended_migration(cloud)
    runs = Runs(cloud)
    runs.run()
    held = cloud.allocations.pop(migration)
    assert runs.run()["findings"] == []
    cloud.allocations[migration] = held

    assert [runs.planned(), runs.planned()] == [[], [migration]]


def test_same_reading_judged_twice_counts_once() -> None:
    cloud = Cloud()
    deleted_server(cloud)
    runs = Runs(cloud)
    at = "2026-11-20T10:00:00Z"

    assert [runs.planned(finished_at=at) for _time in range(3)] == [[], [], []]


def test_unsound_reading_does_not_affect_the_count() -> None:
    cloud = Cloud()
    orphan = deleted_server(cloud)
    runs = Runs(cloud)
    silent = {"services_after": answer("GET /os-services", 500)}

    first = runs.run(**silent)
    assert first["findings"][0]["sightings"] == 0 and first["findings"][0]["waiting"]
    assert runs.planned() == []
    runs.run(**silent)
    runs.run(**silent, evidence={}, candidates=())

    assert runs.planned() == [orphan]


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"scope": Scope(hosts=("compute-2",))},
        {"scope": Scope(consumers=("6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11",))},
        {"scope": Scope(mode="triage")},
        {"scope": Scope(projects=("6f7a1f5c2a2c4f0c8f070d3a6d6f1c11",))},
    ],
)
def test_reading_of_another_scope_changes_nothing(elsewhere: dict[str, t.Any]) -> None:
    runs, orphan = _see_once()
    runs.run(**elsewhere, candidates=(), allocations={}, evidence={})

    assert runs.planned() == [orphan]


def test_reading_of_other_kinds_changes_nothing() -> None:
    runs, orphan = _see_once()
    assert runs.run(scope=Scope(kinds=("extra_host",)))["findings"] == []

    assert runs.planned() == [orphan]


def test_reading_of_the_host_without_the_finding_restarts_the_count() -> None:
    runs, orphan = _see_once()
    runs.run(scope=Scope(hosts=("compute-1",)), candidates=())

    assert [runs.planned(), runs.planned()] == [[], [orphan]]


def test_reading_of_the_host_with_the_finding_counts() -> None:
    runs, orphan = _see_once()

    assert runs.planned(scope=Scope(hosts=("compute-1",))) == [orphan]


def test_complete_sound_reading_forgets_missing_findings() -> None:
    runs, orphan = _see_once()
    del runs.cloud.allocations[orphan]
    runs.run()

    assert runs.memory.sightings == {}


def test_file_of_version_1_0_has_no_sightings() -> None:
    kept = {"format": 1, "known": {"deleted_server/x": "2026-01-02T03:04:05Z"}}

    assert parse_history(kept, "state.json").sightings == {}


def test_servers_are_not_healed_before_enough_sightings() -> None:
    cloud = Cloud()
    server = cloud.server(cloud.here)
    runs = Runs(cloud)

    heard = [list_servers_to_heal(runs.run(), Limits(100, 1.0)) for _run in range(2)]

    assert heard == [[], [server]] and HEALED_KIND in KINDS


@pytest.mark.parametrize("name", ["terminal", "html", "markdown", "csv"])
def test_reports_say_why_a_finding_is_not_changed_yet(name: str) -> None:
    cloud = Cloud()
    deleted_server(cloud)
    found = Runs(cloud).run()
    shown = {
        "terminal": lambda: " ".join(
            " ".join(terminal.format_findings(found, "findings.json", KINDS, 100)).split()
        ),
        "html": lambda: html_page.render(Report(found, KINDS)),
        "markdown": lambda: markdown.render(Report(found, KINDS)),
        "csv": lambda: csv_file.render(Report(found, KINDS)),
    }[name]()

    assert WAITING in shown
    assert name == "csv" or f"ot now: {WAITING}" in shown


def test_missing_memory_is_refused() -> None:
    with pytest.raises(InvalidInput, match="orphan_cleanup_state"):
        parse_min_sightings({"min_sightings": 2}, None)

    assert parse_min_sightings({"min_sightings": 2}, "findings.json") == 2


@pytest.mark.parametrize("number", [0, -1])
def test_fewer_than_one_sighting_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput, match=f"^min_sightings is {number}, "):
        parse_min_sightings({"min_sightings": number}, "state.json")
