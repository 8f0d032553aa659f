"""The state of a run, and what follows from it: failures, reports, artifacts and summaries."""

import random
import typing as t

import ansible.release
import pytest

from ......plugins.module_utils._core.run.folder import STAGES
from ......plugins.module_utils._core.run.pack import pack_files
from ......plugins.plugin_utils._report.status import (
    build_artifacts,
    build_journal_artifact,
    determine_status,
    explain_early_end,
    name_outcome,
)
from ......plugins.plugin_utils._stage.controller import read_running_version

VERSIONS = {
    "collection": read_running_version(),
    "ansible_core": ansible.release.__version__,
    "openstacksdk": "4.22.0",
}
FAIL_ON = ("never", "error", "partial", "undecided", "findings")
CHANGES = [{"finding": "deleted_server/a"}, {"finding": "extra_host/b"}]
PACKED = pack_files({"plan": {"changes": CHANGES}})
PLANNED = {"failed": False, "plan": "/p", "changes": 3}
LOST = "The journal is lost."
TALLY = {"removed": 2, "reduced": 0, "skipped": 1, "failed": 1}


def _detected(coverage: t.Mapping[str, t.Any] | None = None, **verdicts: int) -> dict[str, t.Any]:
    return {
        "failed": False,
        "dest": "/out/findings.json",
        "summary": {
            "coverage": {"complete": True, "failed_checks": [], **(coverage or {})},
            "verdicts": {"orphaned": 0, "drifted": 0, "undecided": 0, "protected": 0, **verdicts},
            "kinds": {"deleted_server": 2},
            "stranded": {"resource_classes": {"VCPU": 3}, "providers": {}},
        },
        "versions": VERSIONS,
    }


def _status(
    run: t.Mapping[str, t.Any],
    fail_on: str = "error",
    check_mode: bool = False,
    findings_exist: bool = False,
) -> t.Any:
    return determine_status({"detects": True, **run}, fail_on, check_mode, findings_exist)


# What is known of a stage that was killed, and what the run says of it.
KILLED: dict[str, tuple[dict[str, t.Any], str]] = {
    "detected": ({}, "The run ended while it read the cloud: nothing was changed."),
    "planned": ({}, "The run ended while it planned: nothing was changed."),
    "remediated": (
        {"journal": "/out/j"},
        "The run ended while it made the changes: what it has changed is in /out/j.",
    ),
    "restored": ({"journal": None}, "The run ended while it restored: nothing was changed."),
}


@pytest.mark.parametrize("remediates", [True, False])
@pytest.mark.parametrize("stage", KILLED)
def test_a_stage_without_an_end_has_failed(stage: str, remediates: bool) -> None:
    """As after a module that prints nothing but an empty answer: no file is that of this run."""
    known, message = KILLED[stage]
    state = {"detected": _detected(), "remediates": remediates, stage: {"begun": "…", **known}}

    status = _status(state, "never")

    assert (status.failure, status.message, status.outcome) == (message, message, "failed")
    assert stage != "detected" or not status.has_findings
    assert explain_early_end(state) == ""


DONE = {"failed": False}
EARLY_ENDS: dict[str, tuple[dict[str, t.Any], str]] = {
    "detected": ({"detected": DONE}, "before it planned: nothing was changed"),
    "planned": (
        {"detected": DONE, "planned": {**DONE, "plan": "/p"}},
        "before it made the changes: nothing was changed",
    ),
    "planned nothing": (
        {"detected": DONE, "planned": {**DONE, "plan": None}},
        "before its report: nothing was changed",
    ),
    "only detects": (
        {"remediates": False, "detected": DONE, "planned": {**DONE, "plan": "/p"}},
        "before its report: nothing was changed",
    ),
    "remediated": ({"planned": {**DONE, "plan": "/p"}, "remediated": DONE}, "before its report"),
    "restored": ({"restored": DONE}, "before its report"),
}


@pytest.mark.parametrize("name", EARLY_ENDS)
def test_a_run_that_was_killed_between_two_stages_says_where(name: str) -> None:
    stages, where = EARLY_ENDS[name]
    run = {"remediates": True, **stages}

    assert explain_early_end(run) == f"The run ended {where}."
    assert explain_early_end({**run, "reported": DONE}) == ""
    assert explain_early_end({**run, "interrupted": {"failed": True, "msg": "No."}}) == ""


@pytest.mark.parametrize("detects", [True, False])
def test_changes_that_were_not_made_are_no_success(detects: bool) -> None:
    """A module can end before it records that it began, for example without openstacksdk."""
    run = {"detects": detects, "remediates": True, "detected": DONE, "planned": PLANNED}

    assert name_outcome(run, check_mode=False) == "failed"
    assert name_outcome({**run, "remediates": False}, check_mode=False) != "failed"


@pytest.mark.parametrize(
    ("detects", "message"),
    [(True, "The cloud was not read."), (False, "Nothing was planned, and nothing was changed.")],
)
@pytest.mark.parametrize("fail_on", FAIL_ON)
def test_a_run_without_its_first_stage_has_failed(
    detects: bool, message: str, fail_on: str
) -> None:
    """As with --step, or with --start-at-task."""
    status = _status({"detects": detects}, fail_on)

    assert (status.message, status.outcome) == (message, "failed")


@pytest.mark.parametrize("failed", [(), *((stage,) for stage in STAGES), STAGES], ids=len)
def test_the_failure_has_the_messages_of_all_stages_that_failed(failed: tuple[str, ...]) -> None:
    run = {stage: {"failed": False} for stage in STAGES}
    run |= {stage: {"failed": True, "msg": f"{stage} broke."} for stage in failed}

    assert _status(run).failure == " ".join(f"{stage} broke." for stage in failed)


@pytest.mark.parametrize(
    ("run", "findings_exist", "expected"),
    [
        ({}, False, False),
        ({}, True, False),
        ({"detected": _detected()}, False, True),
        ({"detected": {"failed": True, "msg": "No."}}, True, False),
        ({"detected": _detected(), "planned": {"failed": True, "msg": "No."}}, False, True),
        ({"detects": False}, True, False),
        ({"detects": False, "planned": {"failed": True, "msg": "No."}}, True, False),
        ({"detects": False, "planned": {"failed": False, "plan": None}}, True, False),
        ({"detects": False, "planned": {"failed": False, "plan": "/p"}}, True, True),
        ({"detects": False, "planned": {"failed": False, "plan": "/p"}}, False, False),
        # An earlier run detected, and this one only remediates.
        ({"detects": False, "detected": _detected()}, True, False),
        ({"detects": False, "detected": _detected(), "planned": PLANNED}, True, True),
    ],
)
def test_findings_of_another_run_are_not_reported(
    run: dict[str, t.Any], findings_exist: bool, expected: bool
) -> None:
    assert _status(run, findings_exist=findings_exist).has_findings is expected


ONE = "1 host was not judged, because its cell does not answer: a."
FOUR = "4 hosts were not judged, because their cell does not answer: a, b, c and 1 more."
PART = "Part of the cloud was not judged, because a cell does not answer."
NOTHING = "Nothing may be changed"
UNSOUND = f"{NOTHING}: Wrong region. No cells."

SEE = "see /out/findings.json."

# What a detection found, what the run fails with, and from which value of fail_on.
SHORTFALLS: dict[str, tuple[dict[str, t.Any], str, str]] = {
    "unsound": (_detected({"failed_checks": ["Wrong region.", "No cells."]}), UNSOUND, "error"),
    "a host": (_detected({"unjudged_hosts": ["a"], "partial": True}), ONE, "partial"),
    "hosts": (_detected({"unjudged_hosts": ["d", "b", "c", "a"]}), FOUR, "partial"),
    "a part": (_detected({"unjudged_hosts": [], "partial": True}), PART, "partial"),
    "an old file": (_detected({"partial": True}), PART, "partial"),
    "undecided": (_detected(undecided=2), f"2 consumers are undecided, {SEE}", "undecided"),
    "one undecided": (_detected(undecided=1), f"1 consumer is undecided, {SEE}", "undecided"),
    "orphans": (_detected(orphaned=3), f"3 findings are left, {SEE}", "findings"),
    "drift": (_detected(drifted=1), f"1 finding is left, {SEE}", "findings"),
    "protected": (_detected(protected=9), "", "none"),
    "nothing": (_detected({"unjudged_hosts": [], "partial": False}), "", "none"),
    "no words about hosts": (_detected(), "", "none"),
}


@pytest.mark.parametrize("fail_on", FAIL_ON)
@pytest.mark.parametrize("name", SHORTFALLS)
def test_a_run_fails_for_what_it_is_to_fail_for(name: str, fail_on: str) -> None:
    detected, message, least = SHORTFALLS[name]
    fails = least in FAIL_ON and FAIL_ON.index(fail_on) >= FAIL_ON.index(least)

    assert _status({"detected": detected}, fail_on).message == (message if fails else "")


def test_the_worst_comes_first() -> None:
    worst = _detected({"failed_checks": ["No."], "unjudged_hosts": ["a"]}, undecided=1, orphaned=1)

    assert _status({"detected": worst}, "findings").message.endswith(": No.")


@pytest.mark.parametrize(
    ("tally", "check_mode", "left"),
    [
        (None, False, 3),
        ({}, False, 3),
        ({"removed": 2, "skipped": 1, "failed": 0}, False, 1),
        ({"removed": 1, "reduced": 1, "rewritten": 1, "created": 0}, False, 0),
        ({"removed": 0, "skipped": 2, "failed": 1}, False, 3),
        ({"removed": 3}, True, 3),
        # Several changes of one finding.
        ({"removed": 4}, False, 0),
    ],
)
def test_what_was_changed_is_not_left(
    tally: dict[str, int] | None, check_mode: bool, left: int
) -> None:
    run: dict[str, t.Any] = {"detected": _detected(orphaned=2, drifted=1)}
    if tally is not None:
        run["remediated"] = {"failed": False, "tally": tally}

    message = _status(run, "findings", check_mode).message

    assert message.startswith(f"{left} finding" if left else "") and bool(message) is bool(left)


@pytest.mark.parametrize("fail_on", FAIL_ON)
@pytest.mark.parametrize(
    "run", [{}, {"detected": {"failed": True, "msg": "No."}}, {"detects": False}]
)
def test_without_a_reading_nothing_is_concluded(run: dict[str, t.Any], fail_on: str) -> None:
    status = _status(run, fail_on)

    assert status.message == status.failure


def test_a_run_without_any_result_exports_nothing_that_could_be_applied() -> None:
    nothing = {"verdicts": {}, "kinds": {}, "stranded": {}, "planned": 0, "changes": []}
    described = {
        **nothing,
        "versions": {**VERSIONS, "openstacksdk": ""},
        "outcome": "failed",
        "check_mode": False,
        "complete": False,
        "outcomes": {},
        "output_dir": "/out",
        "output_lost": "",
        "journal": "",
    }

    assert build_artifacts({"detects": False}, "/out", check_mode=False) == {
        "orphan_cleanup_run": described,
        "orphan_cleanup_plan": "",
    }


def _whole_run() -> dict[str, t.Any]:
    return {
        "detects": True,
        "detected": _detected(orphaned=2),
        "planned": {
            "failed": False,
            "plan": "/out/plan.json",
            "changes": 2,
            "packed": PACKED,
            "output_lost": LOST,
        },
        "remediated": {"failed": False, "tally": TALLY, "journal": "/out/j", "remediation": "/r"},
    }


def test_a_run_exports_numbers_and_its_plan() -> None:
    artifacts = build_artifacts(_whole_run(), "/out", check_mode=True)

    assert artifacts == {
        "orphan_cleanup_run": {
            "versions": VERSIONS,
            "outcome": "findings",
            "check_mode": True,
            "complete": True,
            "verdicts": {"orphaned": 2, "drifted": 0, "undecided": 0, "protected": 0},
            "kinds": {"deleted_server": 2},
            "stranded": {"VCPU": 3},
            "planned": 2,
            "changes": ["deleted_server/a", "extra_host/b"],
            "outcomes": TALLY,
            "output_dir": "/out",
            "output_lost": LOST,
            "journal": "/out/j",
        },
        "orphan_cleanup_plan": PACKED,
    }


def test_a_run_that_applies_a_plan_exports_the_version_that_made_the_changes() -> None:
    versions = {"openstacksdk": VERSIONS["openstacksdk"]}
    run = {"detects": False, "remediated": {"failed": False, "versions": versions}}

    described = build_artifacts(run, "/out", check_mode=False)["orphan_cleanup_run"]

    assert described["versions"] == VERSIONS


@pytest.mark.parametrize("packed", [None, "", pack_files({"plan": {"changes": CHANGES * 501}})])
def test_changes_that_are_not_passed_on_are_not_listed(packed: str | None) -> None:
    run = {"detects": True, "planned": {"failed": False, "changes": 9, "packed": packed}}

    artifacts = build_artifacts(run, "/out", check_mode=False)

    described = artifacts["orphan_cleanup_run"]
    assert (described["planned"], described["changes"]) == (9, [])
    assert artifacts["orphan_cleanup_plan"] == (packed or "")


def test_plan_makes_room_for_the_journal_without_which_nothing_is_restored() -> None:
    long = random.Random(1).randbytes(130_000).hex()
    run = _whole_run()
    run["planned"]["packed"] = pack_files({"plan": {"changes": [], "region": long}})

    made = build_artifacts(run, "/out", check_mode=False)
    run["remediated"]["journal"] = None
    predicted = build_artifacts(run, "/out", check_mode=True)

    assert made["orphan_cleanup_plan"] == ""
    assert predicted["orphan_cleanup_plan"] == run["planned"]["packed"]


def test_of_several_hosts_each_exports_its_own_part() -> None:
    alone = build_artifacts(_whole_run(), "/out", check_mode=False)

    assert build_artifacts(_whole_run(), "/out", check_mode=False, host="north") == {
        "orphan_cleanup_run": {"by_host": {"north": alone["orphan_cleanup_run"]}},
        "orphan_cleanup_plan": {"by_host": {"host north": alone["orphan_cleanup_plan"]}},
    }


def test_the_journal_is_exported_under_the_variable_that_restores_it() -> None:
    assert build_journal_artifact("packed") == {"orphan_cleanup_journal": ["packed"]}
    assert build_journal_artifact("packed", "north") == {
        "orphan_cleanup_journal": {"by_host": {"host north": ["packed"]}}
    }


def _remediated(**tally: int) -> dict[str, t.Any]:
    return {"failed": False, "tally": tally}


def _judged(coverage: t.Any = None, **verdicts: int) -> dict[str, t.Any]:
    detected = _detected(coverage, **verdicts)
    return {"detects": True, "remediates": True, "detected": detected}


def _fail(message: str, **result: t.Any) -> dict[str, t.Any]:
    return {"failed": True, "msg": message, **result}


REFUSED = _fail("Too many.", changes=3)
FAILED_CHANGE = _fail("1 failed.", tally=TALLY)
NO_REGION = _detected({"failed_checks": ["Wrong region."]})
UNDECIDED = _detected(undecided=1)


@pytest.mark.parametrize(
    ("run", "fail_on", "message"),
    [
        ({"detected": _fail("No cloud.")}, "never", "No cloud."),
        ({"reported": _fail("The disk is full.")}, "never", "The disk is full."),
        ({"interrupted": _fail("No variable.")}, "never", "No variable."),
        ({"planned": REFUSED}, "never", ""),
        ({"planned": REFUSED}, "error", "Too many."),
        ({"remediated": FAILED_CHANGE}, "never", ""),
        ({"remediated": FAILED_CHANGE}, "error", "1 failed."),
        # Without a result nothing was done, and nobody knows what there was to do.
        ({"planned": _fail("No file.")}, "never", "No file."),
        ({"detects": False, "planned": _fail("No file.")}, "never", "No file."),
        ({"detects": False, "planned": PLANNED, "remediated": _fail("No.")}, "never", "No."),
        # The reading has a result: it was not sound.
        ({"detects": False, "restored": _fail("No.")}, "never", "No."),
        ({"detects": False, "restored": FAILED_CHANGE}, "never", ""),
        ({"detects": False, "restored": FAILED_CHANGE}, "error", "1 failed."),
        ({"detects": False, "restored": {"failed": False, "tally": {}}}, "error", ""),
        ({"detects": False, "detected": NO_REGION, "planned": _fail("No.")}, "never", ""),
        ({"detects": False, "detected": NO_REGION, "planned": _fail("No.")}, "error", "No."),
        # Such a plan is for other jobs, and this run does not apply it.
        ({"remediates": False, "planned": REFUSED}, "error", ""),
        ({"detected": NO_REGION, "planned": REFUSED}, "never", ""),
        ({"detected": NO_REGION, "planned": REFUSED}, "error", f"{NOTHING}: Wrong region."),
        # What an earlier run found is not the failure of this one.
        ({"detects": False, "detected": UNDECIDED, "planned": DONE}, "findings", ""),
        ({"detects": False, "planned": REFUSED}, "error", "Too many."),
        ({"detects": False, "remediates": False, "planned": REFUSED}, "error", "Too many."),
    ],
)
def test_a_run_fails_with_one_message(run: dict[str, t.Any], fail_on: str, message: str) -> None:
    assert _status({**_judged(), **run}, fail_on).message == message


def test_the_same_error_is_said_once() -> None:
    broken = {"failed": True, "msg": "It broke."}

    assert _status({**_judged(), "planned": broken, "interrupted": broken}).message == "It broke."


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (_judged(), "clean"),
        (_judged(orphaned=1), "findings"),
        (_judged(undecided=1), "undecided"),
        (_judged(undecided=1, drifted=1), "findings"),
        (_judged({"unjudged_hosts": ["compute-9"]}), "partial"),
        (_judged({"unjudged_hosts": ["compute-9"]}, undecided=1), "undecided"),
        (_judged({"unjudged_hosts": ["compute-9"]}, orphaned=1), "findings"),
        (_judged({"failed_checks": ["Wrong region."]}, orphaned=1), "unsound"),
        ({**_judged(orphaned=2), "remediated": _remediated(removed=2, skipped=0)}, "clean"),
        ({**_judged(orphaned=2), "remediated": _remediated(removed=1, skipped=1)}, "findings"),
        ({**_judged(), "planned": REFUSED}, "failed"),
        ({"detects": True, "detected": {"failed": True, "msg": "No."}}, "failed"),
        ({"detects": False, "planned": {"failed": False}}, "applied"),
    ],
)
def test_a_run_comes_to_one_word(run: dict[str, t.Any], outcome: str) -> None:
    assert _status(run).outcome == outcome
