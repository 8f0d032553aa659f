"""Only exactly the seeded orphans are a right result."""

from __future__ import annotations

import typing as t

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
    undecided_entries = []
    if undecided:
        undecided_entries = [{"consumer": undecided, "kind": "ended_migration"}]
    coverage = {"failed_checks": [failed] if failed else []}
    return {"findings": findings, "undecided": undecided_entries, "summary": {"coverage": coverage}}


def test_exactly_the_orphans_are_perfect() -> None:
    score = score_report(_make_report(*RIGHT), TRUTH)

    assert score == Score(2, 2, 0)
    assert score.perfect


def test_missed_orphan_is_not_found() -> None:
    score = score_report(_make_report(RIGHT[0]), TRUTH)

    assert (score.found, score.wrong, score.perfect) == (1, 0, False)


def test_right_orphan_under_a_wrong_kind_is_missed_and_wrong() -> None:
    finding = _make_finding("server-2", "evacuated_source", "host-2")

    score = score_report(_make_report(RIGHT[0], finding), TRUTH)

    assert (score.found, score.wrong) == (1, 1)


def test_needed_allocation_of_an_orphan_is_wrong() -> None:
    finding = _make_finding("server-2", "extra_host", "host-2", "host-3")

    score = score_report(_make_report(RIGHT[0], finding), TRUTH)

    assert (score.found, score.wrong, score.perfect) == (2, 1, False)


def test_finding_without_a_change_does_not_count() -> None:
    finding = {**_make_finding("server-3", "extra_host"), "change": None}

    assert score_report(_make_report(*RIGHT, finding), TRUTH).perfect


def test_deletion_of_a_provider_is_wrong() -> None:
    finding = {**_make_finding("", "orphaned_provider"), "change": {"providers": []}}

    assert score_report(_make_report(*RIGHT, finding), TRUTH).wrong == 3


def test_undecided_consumer_and_failed_check_are_complaints() -> None:
    undecided = score_report(_make_report(*RIGHT, undecided="server-4"), TRUTH)
    failed = score_report(_make_report(*RIGHT, failed="a cell is down"), TRUTH)

    assert undecided.complaint == "ended_migration of server-4 is undecided"
    assert failed.complaint == "a cell is down"
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
