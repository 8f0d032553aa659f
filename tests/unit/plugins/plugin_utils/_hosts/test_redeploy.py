"""Whether a host is complete, and when allocations of its servers are to be moved."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.plugin_utils._hosts.redeploy import RedeployOutcome, determine_redeploy_outcome

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
        "orphaned": 0,
        "drifted": len(findings) + more,
        "undecided": len(undecided),
        "protected": len(protected),
    }
    summary = {"verdicts": verdicts, "coverage": {"failed_checks": list(failed)}}
    return {
        "summary": summary,
        "findings": list(findings),
        "undecided": list(undecided),
        "protected": list(protected),
    }


def _determine(
    found: dict[str, t.Any],
    rewrite: bool = True,
    outcome: str = "ok",
    discovered: t.Mapping[str, t.Any] | None = None,
) -> RedeployOutcome:
    checks = [{"name": "service", "outcome": outcome, "detail": "up"}]
    restored = {"checks": checks, "recorded": True, "node": NEW, "former_node": OLD}
    return determine_redeploy_outcome(restored, found, discovered or SKIPPED, rewrite)


def _outcome_of(outcome: RedeployOutcome, subject: str) -> str:
    (line,) = [line for line in outcome.results if line["subject"] == subject]
    return line["outcome"]


@pytest.mark.parametrize("rewrite", [True, False])
def test_host_without_stranded_servers_is_whole(rewrite: bool) -> None:
    outcome = _determine(_found([OTHER]), rewrite)

    assert (outcome.complete, outcome.rewriting, outcome.former_roots) == (True, False, [])
    assert _outcome_of(outcome, "allocations") == "ok"


def test_proven_allocations_move_only_when_wanted() -> None:
    wanted = _determine(_found([PROVEN, OTHER]))
    unwanted = _determine(_found([PROVEN, OTHER]), rewrite=False)

    assert (wanted.complete, wanted.rewriting, wanted.former_roots) == (True, True, [OLD])
    assert (unwanted.complete, unwanted.rewriting, unwanted.former_roots) == (False, False, [])
    assert "host_decommission_restore" in unwanted.results[-1]["reason"]


@pytest.mark.parametrize(
    "found",
    [
        _found([PROVEN], [DOUBTFUL]),
        _found([PROVEN, DOUBTFUL]),
        _found([PROVEN], more=1),
        _found([PROVEN], failed=["Nova does not list its services."]),
        _found([PROVEN], protected=[BUSY]),
        _found(protected=[BUSY]),
    ],
    ids=[
        "one is undecided",
        "one has no change",
        "not all are shown",
        "unsound",
        "one is protected",
        "all are protected",
    ],
)
def test_one_doubt_keeps_all_allocations(found: dict[str, t.Any]) -> None:
    outcome = _determine(found)

    assert (outcome.complete, outcome.rewriting, outcome.former_roots) == (False, False, [])


def test_protected_server_on_the_host_itself_is_no_doubt() -> None:
    outcome = _determine(_found([PROVEN], protected=[BUSY_HERE]))

    assert (outcome.complete, outcome.rewriting) == (True, True)


@pytest.mark.parametrize("outcome", ["missing", "failed"])
def test_bad_check_makes_the_host_not_whole(outcome: str) -> None:
    assert not _determine(_found(), outcome=outcome).complete


@pytest.mark.parametrize("outcome", ["ok", "restored", "differs"])
def test_other_checks_do_not(outcome: str) -> None:
    assert _determine(_found(), outcome=outcome).complete


def test_failed_detection_is_a_line() -> None:
    outcome = _determine({"failed": True, "msg": "Nova does not answer."})

    assert not outcome.complete and not outcome.rewriting
    assert outcome.results[-1]["reason"] == "Nova does not answer."


def test_host_without_a_provider_has_no_line_about_allocations() -> None:
    outcome = _determine(dict(SKIPPED), outcome="missing")

    assert [line["subject"] for line in outcome.results] == ["service"]


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

    assert _outcome_of(outcome, "nova-manage") == "failed" and not outcome.complete
    assert reason in [line["reason"] for line in outcome.results]


@pytest.mark.parametrize("discovered", [SKIPPED, {"rc": 0}])
def test_nova_manage_that_succeeded_has_no_line(discovered: dict[str, t.Any]) -> None:
    assert len(_determine(_found(), discovered=discovered).results) == 2


def test_missing_record_is_a_line_and_no_fault() -> None:
    restored: dict[str, t.Any] = {"checks": [], "recorded": False}
    outcome = determine_redeploy_outcome(restored, _found(), SKIPPED, False)

    assert outcome.complete and _outcome_of(outcome, "record") == "skipped"
