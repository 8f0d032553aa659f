"""The comparison with other tools: what each named, how that is scored, and the tables."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from compare import outputs, page, results
from compare.results import AUDIT, DETECT, HEAL, Results, Row
from compare.truth import Named, Score, Truth, read_truth, score

DEAD, LIVE, MOVED = (f"0000000{number}-0000-4000-8000-000000000000" for number in (1, 2, 3))
HOST, OTHER, POOL = (f"1000000{number}-0000-4000-8000-000000000000" for number in (1, 2, 3))


def describe(consumer: str, provider: str, kind: str | None) -> dict[str, str | None]:
    names = {HOST: "compute-1", OTHER: "compute-2", POOL: "pool"}
    return {
        "consumer": consumer,
        "provider": provider,
        "provider_name": names[provider],
        "truth": "orphaned" if kind else "needed",
        "kind": kind,
    }


@pytest.fixture
def truth() -> Truth:
    """A deleted server on a host and a pool, a live one on both, and a misplaced one."""
    situations = {
        "deleted_server": [(DEAD, HOST, "deleted_server"), (DEAD, POOL, "deleted_server")],
        "healthy": [(LIVE, HOST, None), (LIVE, POOL, None)],
        "misplaced_allocation": [(MOVED, OTHER, "misplaced_allocation")],
    }
    records = []
    for scenario, allocations in situations.items():
        described = [describe(*allocation) for allocation in allocations]
        server = allocations[0][0]
        records.append({"scenario": scenario, "server": server, "allocations": described})
    return read_truth(records)


def test_misplaced_allocation_is_neither_orphaned_nor_needed(truth: Truth) -> None:
    assert truth.orphans == {(DEAD, HOST), (DEAD, POOL)}
    assert truth.needed == {(LIVE, HOST): "healthy", (LIVE, POOL): "healthy"}
    assert truth.drifted == {MOVED: "misplaced_allocation"}


def test_score_counts_what_was_found_missed_and_wrong(truth: Truth) -> None:
    named = Named(frozenset({(DEAD, HOST), (LIVE, POOL), (MOVED, OTHER)}), frozenset({MOVED}))

    assert score(named, truth) == Score(1, 1, ("healthy",), ("misplaced_allocation",))


AUDITED = (
    f"Allocations for consumer UUID {DEAD} on Resource Provider {HOST} can be deleted\n"
    f"Allocations for consumer UUID {LIVE} on Resource Provider {POOL} can be deleted\n"
)
NAMES_ALERTS = {
    DEAD: {"placement": ["compute-1", "pool"], "nova": []},
    LIVE: {"placement": ["compute-1", "pool"], "nova": ["compute-1"]},
}
NRPE_ALERTS = (
    f"instance {DEAD} is missing in nova: placement host: ['compute-1', 'pool'], "
    "clean up in placement",
    f"instance {LIVE} is incorrect in placement: "
    "placement host: ['compute-1', 'pool', \"a'b]\\n\"], nova host: ['compute-1']",
)
CONSUMERS = {"orphan_allocations": [{"server_id": DEAD}, {"server_id": LIVE}]}


@pytest.mark.parametrize(
    ("read", "output", "pairs"),
    [
        (outputs.read_audit, AUDITED, {(DEAD, HOST), (LIVE, POOL)}),
        (
            outputs.read_names_check,
            f"a warning\n{json.dumps({'alerts': NAMES_ALERTS})}\n",
            {(DEAD, HOST), (DEAD, POOL), (LIVE, POOL)},
        ),
        (
            outputs.read_nrpe,
            "\n".join(map(json.dumps, NRPE_ALERTS)),
            {(DEAD, HOST), (DEAD, POOL), (LIVE, POOL)},
        ),
        (
            outputs.read_consumers,
            f"WARNING - consumes {{'PGPU': 1}}\n{json.dumps(CONSUMERS, indent=4)}\n",
            {(DEAD, HOST), (DEAD, POOL), (LIVE, HOST), (LIVE, POOL)},
        ),
        (outputs.read_heal, f"[dry-run] Create allocations for instance {LIVE}: {{}}", set()),
    ],
    ids=["audit", "names", "nrpe", "consumers", "heal"],
)
def test_output_names_allocations(
    truth: Truth, read: Callable[[str, Truth], Named], output: str, pairs: set[tuple[str, str]]
) -> None:
    assert read(output, truth).pairs == pairs


def test_heal_names_servers(truth: Truth) -> None:
    output = f"[dry-run] Update allocations for instance {MOVED}: {{}}"

    assert outputs.read_heal(output, truth).servers == {MOVED}


def test_findings_name_what_their_changes_free() -> None:
    orphan = {"kind": "deleted_server", "consumer": DEAD, "change": {"frees": {HOST: {}}}}
    report_only = {"kind": "stale_service", "consumer": None, "change": None}
    drift = {"kind": "misplaced_allocation", "consumer": MOVED, "change": None}

    named = outputs.read_findings({"findings": [orphan, report_only, drift]})

    assert named == Named(frozenset({(DEAD, HOST)}), frozenset({MOVED}))


def test_outcomes_name_only_what_would_be_changed() -> None:
    outcomes = [
        {"outcome": outcome, "kind": "deleted_server", "consumer": consumer, "frees": {HOST: {}}}
        for outcome, consumer in (("removed", DEAD), ("skipped", LIVE))
    ]

    assert outputs.read_outcomes({"outcomes": outcomes}) == Named(frozenset({(DEAD, HOST)}))


@pytest.fixture
def compared() -> Results:
    cloud = (
        Row(AUDIT, 2, 1, ("booting", "healthy", "healthy"), (), 2, 1.25, 7),
        Row(HEAL, 0, 3, (), ("wrong_owner",), 2, 2.0, 8),
        Row(DETECT, 3, 0, (), (), 2, 3.0, 9, foreign=0.3),
    )
    failed = Row(AUDIT, 0, 3, (), (), 2, 1.0, 1, failure="status 255: no")
    return Results("2026-11-23", 3, 40, cloud, (failed, *cloud[1:]))


def test_page_has_both_tables_and_names_what_is_wrong(compared: Results, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- begin compare -->\nold\n<!-- end compare -->\nafter\n")

    page.write(path, compared)

    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| 2 | 1 | **3** | 0 of 2 | 1.2 | 7 |" in text
    assert "| – | – | 0 | 1 of 2 | 2.0 | 8 |" in text
    assert "| fails | – | – | – | 1.0 | 1 |" in text
    assert "`booting`, `healthy` (2)" in text
    assert "Other processes used up to 30% of the machine" in text


def test_kept_results_are_those_of_the_page(compared: Results, tmp_path: Path) -> None:
    compared.save(tmp_path / "results.json")

    assert results.load(tmp_path / "results.json") == compared


def test_comparison_page_has_the_tables_of_the_kept_results() -> None:
    kept = page.render(results.load(results.KEPT))

    assert kept in (results.KEPT.parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
