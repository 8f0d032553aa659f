"""Only exactly the seeded orphans are a right result."""

import typing as t

import pytest
from benchmark.scoring import Score, add_scores, score_audit, score_outcomes, score_report

TRUTH = {
    "orphans": {
        "server-1": {"kind": "deleted_server", "providers": ["host-1"]},
        "server-2": {"kind": "extra_host", "providers": ["host-2"]},
    },
    "partners": ["migration-3"],
}


def _make_finding(consumer: str, kind: str, *freed: str) -> dict[str, t.Any]:
    return {
        "consumer": consumer,
        "kind": kind,
        "providers": [{"uuid": provider} for provider in ("host-1", "host-2", "host-3")],
        "change": {"frees": {provider: {"VCPU": 1} for provider in freed}},
    }


RIGHT = (
    _make_finding("server-1", "deleted_server", "host-1"),
    _make_finding("server-2", "extra_host", "host-2"),
)


def _make_report(*findings: dict[str, t.Any], undecided: str = "", failed: str = "") -> t.Any:
    entries = [{"consumer": undecided, "kind": "ended_migration"}] if undecided else []
    coverage = {"failed_checks": [failed] if failed else []}
    return {"findings": findings, "undecided": entries, "summary": {"coverage": coverage}}


def test_exactly_the_orphans_are_perfect() -> None:
    score = score_report(_make_report(*RIGHT), TRUTH)

    assert score == Score(2, 2, 0)
    assert score.perfect


@pytest.mark.parametrize(
    ("findings", "found", "wrong"),
    [
        (RIGHT[:1], 1, 0),
        ((RIGHT[0], _make_finding("server-2", "evacuated_source", "host-2")), 1, 1),
        ((RIGHT[0], _make_finding("server-2", "extra_host", "host-2", "host-3")), 2, 1),
        ((*RIGHT, {**_make_finding("server-3", "extra_host"), "change": None}), 2, 0),
        ((*RIGHT, {**_make_finding("", "orphaned_provider"), "change": {"providers": []}}), 2, 3),
    ],
    ids=[
        "a missed orphan",
        "an orphan under a wrong kind",
        "a needed allocation of an orphan",
        "a finding without a change",
        "the deletion of a provider",
    ],
)
def test_report_is_compared_with_the_orphans(
    findings: tuple[dict[str, t.Any], ...], found: int, wrong: int
) -> None:
    score = score_report(_make_report(*findings), TRUTH)

    assert (score.found, score.wrong) == (found, wrong)
    assert score.perfect == ((found, wrong) == (2, 0))


def test_undecided_consumer_and_failed_check_are_complaints() -> None:
    undecided = score_report(_make_report(*RIGHT, undecided="server-4"), TRUTH)
    failed = score_report(_make_report(*RIGHT, failed="dead_cell"), TRUTH)

    assert "ended_migration of server-4" in undecided.complaint
    assert failed.complaint == "dead_cell"
    assert not undecided.perfect and not failed.perfect


def test_partner_of_an_orphan_may_be_undecided() -> None:
    assert score_report(_make_report(*RIGHT, undecided="migration-3"), TRUTH).perfect


def test_change_that_was_not_verified_is_not_found() -> None:
    outcomes = []
    for finding, outcome in zip(RIGHT, ("removed", "skipped"), strict=True):
        frees = finding["change"]["frees"]
        outcomes.append({**finding, "outcome": outcome, "frees": frees})

    score = score_outcomes({"outcomes": outcomes}, TRUTH)

    assert (score.found, score.wrong) == (1, 0)


def test_worse_of_two_scores_counts() -> None:
    assert add_scores(Score(2, 2, 1), Score(2, 1, 0, "why")) == Score(2, 1, 1, "why")


def test_audit_is_scored_by_its_output() -> None:
    line = "Allocations for consumer UUID {} on Resource Provider {} can be deleted\n"

    score = score_audit(line.format("server-1", "host-1") + line.format("x", "host-2"), TRUTH)

    assert score == Score(2, 1, 1)
