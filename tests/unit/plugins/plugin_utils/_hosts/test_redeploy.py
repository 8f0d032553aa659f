"""Whether a host is complete, and when allocations of its servers are to be moved."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.plugin_utils._hosts.host_results import determine_redeploy_outcome

OLD = "11111111-1111-4111-8111-111111111111"
SKIPPED = {"skipped": True}
CHANGE = {"before": {"allocations": {OLD: {"resources": {"VCPU": 1}}}}}
PROVEN = {"kind": "former_provider", "reason": "Server a …", "change": CHANGE}
DOUBTFUL = {"kind": "former_provider", "reason": "But a stranger …", "change": None}
NEW = "22222222-2222-4222-8222-222222222222"
BUSY = {
    "kind": "task",
    "verdict": "protected",
    "reason": "Its server has the task image_uploading.",
    "change": None,
    "providers": [{"root": OLD}],
}
BUSY_HERE = {**BUSY, "providers": [{"root": NEW}]}
OTHER = {"kind": "deleted_server", "reason": "…", "change": CHANGE}


def _found(
    findings: t.Sequence[t.Any] = (),
    undecided: t.Sequence[t.Any] = (),
    failed: t.Sequence[str] = (),
    more: int = 0,
    protected: t.Sequence[t.Any] = (),
) -> dict[str, t.Any]:
    verdicts = {
        "drifted": len(findings) + more,
        "undecided": len(undecided),
        "protected": len(protected),
    }
    return {
        "summary": {"verdicts": verdicts, "coverage": {"failed_checks": list(failed)}},
        "findings": findings,
        "undecided": undecided,
        "protected": protected,
    }


def _determine(
    found: dict[str, t.Any],
    rewrite: bool = True,
    outcome: str = "ok",
    discovered: t.Mapping[str, t.Any] = SKIPPED,
) -> dict[str, t.Any]:
    checks = [{"name": "service", "outcome": outcome, "detail": "up"}]
    restored = {"checks": checks, "recorded": True, "node": NEW, "former_node": OLD}
    return determine_redeploy_outcome(restored, found, discovered, rewrite)


def _outcome_of(outcome: dict[str, t.Any], subject: str) -> str:
    (line,) = [line for line in outcome["results"] if line["subject"] == subject]
    return str(line["outcome"])


# What was found: whether the host is complete, what moves, and the outcome of its allocations.
FOUND: dict[str, tuple[dict[str, t.Any], bool, list[str], str]] = {
    "nothing stranded": (_found([OTHER]), True, [], "ok"),
    "proven": (_found([PROVEN, OTHER]), True, [OLD], "moving"),
    "busy on the host itself": (
        _found([PROVEN], protected=[BUSY_HERE]),
        True,
        [OLD],
        "moving",
    ),
    "one is undecided": (_found([PROVEN], [DOUBTFUL]), False, [], "missing"),
    "one has no change": (_found([PROVEN, DOUBTFUL]), False, [], "missing"),
    "not all are shown": (_found([PROVEN], more=1), False, [], "missing"),
    "unsound": (_found([PROVEN], failed=["No list of services."]), False, [], "failed"),
    "one is protected": (_found([PROVEN], protected=[BUSY]), False, [], "missing"),
    "all are protected": (_found(protected=[BUSY]), False, [], "missing"),
    "detection failed": ({"failed": True, "msg": "No answer."}, False, [], "failed"),
}


@pytest.mark.parametrize(("found", "complete", "moving", "expected"), FOUND.values(), ids=FOUND)
def test_one_doubt_keeps_all_allocations(
    found: dict[str, t.Any], complete: bool, moving: list[str], expected: str
) -> None:
    outcome = _determine(found)

    assert (outcome["complete"], outcome["rewriting"]) == (complete, bool(moving))
    assert outcome["former_roots"] == moving
    assert _outcome_of(outcome, "allocations") == expected


@pytest.mark.parametrize(("findings", "complete"), [([OTHER], True), ([PROVEN], False)])
def test_nothing_moves_unless_it_is_wanted(findings: list[t.Any], complete: bool) -> None:
    outcome = _determine(_found(findings), rewrite=False)

    assert (outcome["complete"], outcome["rewriting"]) == (complete, False)
    assert outcome["former_roots"] == []
    assert ("host_decommission_restore" in outcome["results"][-1]["reason"]) != complete


@pytest.mark.parametrize("outcome", ["missing", "failed", "ok", "restored", "differs"])
def test_bad_check_makes_the_host_not_whole(outcome: str) -> None:
    is_complete = outcome not in ("missing", "failed")

    assert _determine(_found(), outcome=outcome)["complete"] == is_complete


def test_host_without_a_provider_has_no_line_about_allocations() -> None:
    outcome = _determine(dict(SKIPPED), outcome="missing")

    assert [line["subject"] for line in outcome["results"]] == ["service"]


@pytest.mark.parametrize(
    ("discovered", "reason"),
    [
        ({"rc": 127, "stdout": "", "stderr": "nova-manage: not found"}, "nova-manage: not found"),
        ({"rc": 1, "stdout": "No cells", "stderr": " "}, "No cells"),
        ({"unreachable": True, "msg": "ssh failed"}, "ssh failed"),
        ({"rc": 2}, "It did not say why."),
    ],
)
def test_failed_nova_manage_is_a_line(discovered: dict[str, t.Any], reason: str) -> None:
    outcome = _determine(_found(), discovered=discovered)

    assert _outcome_of(outcome, "nova-manage") == "failed" and not outcome["complete"]
    assert reason in [line["reason"] for line in outcome["results"]]


@pytest.mark.parametrize("discovered", [SKIPPED, {"rc": 0}])
def test_nova_manage_that_succeeded_has_no_line(discovered: dict[str, t.Any]) -> None:
    assert len(_determine(_found(), discovered=discovered)["results"]) == 2


def test_missing_record_is_a_line_and_no_fault() -> None:
    restored: dict[str, t.Any] = {"checks": [], "recorded": False}
    outcome = determine_redeploy_outcome(restored, _found(), SKIPPED, False)

    assert outcome["complete"] and _outcome_of(outcome, "record") == "skipped"
