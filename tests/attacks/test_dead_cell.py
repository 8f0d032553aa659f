"""One of two cells does not answer.

Proven orphans of the other cell are removed, and nothing is removed that the dead cell may need.

`test_race_cells` has everything that a cell can do between two requests, and checks that nothing is
lost. This module also checks what must still be done. The tests depend on each other's cloud, in
their order.
"""

import dataclasses as d
import re
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import holdings

from ..integration import cells
from ..integration.cells import DOOMED, FIRST, SECOND
from ..integration.forks import Schedule, schedule
from ..integration.interposer import Wires
from ..integration.support import (
    EVERY_KIND,
    Ansible,
    Minicloud,
    Placement,
    Run,
    assert_nothing_changed,
    long,
)
from ..integration.world import World

OWN_CLOUD = True
# Every model of a cloud in the unit tests has cells that die.
pytestmark = pytest.mark.long

# Scenarios of cell1: each kind that is proven by what Nova says about the consumer itself, and each
# that rests on absence.
PROVABLE = (
    "deleted_server",
    "ended_migration",
    "evacuated_source",
    "extra_host",
    "shelved_offloaded",
    "error_without_host",
)
BY_ABSENCE = ("deleted_migration", "purged_server", "orphaned_provider", "name_conflict")
# These need hosts of their own, or several moves.
VARIANTS = frozenset(
    {"ended_migration", "extra_host", "error_without_host", "orphaned_provider", "name_conflict"}
)
# What the consumers of those scenarios are found as, if they are found at all.
KINDS_BY_ABSENCE = ("deleted_migration", "unknown_consumer")
HOSTS = sorted([FIRST, SECOND, DOOMED])
NEVER = {"orphan_cleanup_fail_on": "never"}
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}

# Across both cells: a server of the living cell that also has an allocation on a host of the dead
# one, and the other way round.
INTO, OUT_OF = "into the dead cell", "out of the dead cell"
# All of these are orphans that cannot be proven while the cell is dead; the others of the dead cell
# are live.
UNPROVABLE = ("deleted server", "ended migration", "forgotten migration", INTO, OUT_OF)


def _mark_variants(names: t.Iterable[str]) -> list[t.Any]:
    return [long(name) if name in VARIANTS else name for name in names]


@d.dataclass(frozen=True)
class Cast:
    """The live consumers related to the dead cell, and the allocations of the orphans.

    Some orphans are provable now, and the others are not.
    """

    dead: dict[str, str]
    live: dict[str, str]
    provable: dict[str, holdings.Allocations]
    unprovable: dict[str, holdings.Allocations]


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest) -> frozenset[str]:
    """The scenarios of the living cell; with variants where a long test is selected."""
    here = [item for item in request.session.items if item.path == request.path]
    if any(item.get_closest_marker("long") for item in here):
        return frozenset((*PROVABLE, *BY_ABSENCE))
    return frozenset((*PROVABLE, *BY_ABSENCE)) - VARIANTS


@pytest.fixture(scope="module")
def cast(minicloud: Minicloud, world: World, made: frozenset[str]) -> Iterator[Cast]:
    minicloud.scenario("healthy", *sorted(made))
    with world.one_region():
        cells.add_inhabited_cell(world)
        guests = cells.settle(world)
        dead = {
            **guests.live,
            **guests.orphans,
            INTO: world.boot("compute-1"),
            OUT_OF: world.boot(SECOND),
        }
        world.claim_also(dead[INTO], SECOND)
        world.claim_also(dead[OUT_OF], "compute-1")
        allocations = [
            allocation
            for name in sorted(made)
            for allocation in minicloud.truth(name)["allocations"]
            if allocation["kind"]
        ]
        by_absence = {
            allocation["consumer"]
            for allocation in allocations
            if allocation["kind"] in KINDS_BY_ABSENCE
        }
        assert len(by_absence) >= len(KINDS_BY_ABSENCE)
        provable = {allocation["consumer"] for allocation in allocations} - by_absence
        unprovable = by_absence | {dead[name] for name in UNPROVABLE}
        yield Cast(
            dead,
            guests.live,
            *(
                {one: holdings.of(world.cloud, one).allocations for one in some}
                for some in (provable, unprovable)
            ),
        )
        cells.release(world)


@d.dataclass(frozen=True)
class Story:
    """The run with the dead cell, and all allocations before and after it."""

    run: Run
    before: dict[str, t.Any]
    after: dict[str, t.Any]


@pytest.fixture(scope="module")
def story(
    cast: Cast,
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    before = placement.everything()
    world.close_cell()
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("dead"), minicloud.environment)
    run = ansible.playbook(
        "cleanup_orphans",
        variables={**NEVER, "orphan_cleanup_report_formats": ["json", "prometheus"]},
    )
    yield Story(run, before, placement.everything())
    world.open_cell()


@pytest.fixture
def dead_cell(story: Story, world: World) -> Iterator[Story]:
    """The cell is dead, and everything that could be proven without it has been removed."""
    world.close_cell()
    yield story
    world.open_cell()


@pytest.fixture
def planted(cast: Cast, story: Story, world: World) -> Cast:
    """The cell answers, and all orphans have their allocations again."""
    world.open_cell()
    for consumer, allocations in (*cast.provable.items(), *cast.unprovable.items()):
        world.hold(consumer, allocations)
    return cast


def test_run_succeeds_with_a_dead_cell(story: Story) -> None:
    assert story.run.status == 0 and "Traceback" not in story.run.output, story.run.output


@pytest.mark.parametrize("name", _mark_variants(PROVABLE))
def test_run_removes_proven_orphans_of_the_living_cell(
    story: Story, minicloud: Minicloud, name: str
) -> None:
    allocations = minicloud.truth(name)["allocations"]
    left = {
        allocation["truth"]
        for allocation in allocations
        if allocation["provider"] in story.after.get(allocation["consumer"], {})
    }

    assert left == {allocation["truth"] for allocation in allocations} - {"orphaned"}


def test_run_changes_no_consumer_of_the_dead_cell(cast: Cast, story: Story) -> None:
    for name, consumer in cast.dead.items():
        assert story.after[consumer] == story.before[consumer], name


@pytest.mark.parametrize("name", UNPROVABLE)
def test_run_reports_consumers_that_the_dead_cell_may_need(
    cast: Cast, story: Story, name: str
) -> None:
    entry = story.run.entry(cast.dead[name])

    assert entry["verdict"] in ("protected", "undecided") and entry["change"] is None


@pytest.mark.parametrize("name", _mark_variants(BY_ABSENCE))
def test_run_keeps_consumers_whose_proof_rests_on_absence(
    story: Story, minicloud: Minicloud, placement: Placement, name: str
) -> None:
    by_proof = {"deleted_server"}
    for allocation in minicloud.truth(name)["allocations"]:
        if allocation["kind"] not in by_proof:
            assert (
                story.after[allocation["consumer"]][allocation["provider"]]
                == story.before[allocation["consumer"]][allocation["provider"]]
            )
    if name in ("orphaned_provider", "name_conflict"):
        assert any(
            provider.startswith(("ghost-", "renewed-")) for provider in placement.providers()
        )
        found = story.run.read("findings.json")
        assert not [
            entry for entry in found["findings"] if entry["kind"] == name and entry["change"]
        ]


def test_summary_lists_what_was_not_judged(story: Story) -> None:
    coverage = story.run.read("findings.json")["summary"]["coverage"]

    assert coverage["complete"] is False and coverage["partial"] is True
    assert sorted(coverage["unjudged_hosts"]) == HOSTS


def test_metrics_count_what_was_not_judged(story: Story) -> None:
    metrics = (story.run.folder / "orphan-cleanup" / "placement_orphans.prom").read_text()

    (value,) = re.findall(r"^placement_orphan_unjudged_hosts\{.*\} (\S+)$", metrics, re.MULTILINE)
    assert float(value) == len(HOSTS)


@pytest.mark.long
def test_run_stays_safe_with_every_kind_opted_in(
    ansible: Ansible, dead_cell: Story, placement: Placement, wires: Wires
) -> None:
    """The first run has emptied the tree of an orphaned provider.

    It must not be reported as orphaned while a cell could have its host.
    """
    before, providers = placement.everything(), placement.providers()

    run = ansible.playbook("cleanup_orphans", variables={**EVERY_KIND, **NEVER})

    assert run.status == 0, run.output
    assert_nothing_changed(run, before, placement)
    assert placement.providers() == providers
    assert not [request for request in wires.placement.requests if not request.startswith("GET ")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("fail_on", "fails"),
    [("error", False), ("partial", True), ("undecided", True), ("findings", True)],
)
def test_fail_on_decides_whether_the_play_fails(
    ansible: Ansible, dead_cell: Story, placement: Placement, fail_on: str, fails: bool
) -> None:
    before = placement.everything()

    run = ansible.playbook("detect_orphans", variables={"orphan_cleanup_fail_on": fail_on})

    assert "orphan_cleanup_fail_on is" not in run.told
    assert (run.status != 0) is fails, run.output
    assert "\nPART OF THE CLOUD WAS NOT JUDGED\nOrphaned allocations in " in run.output
    if fail_on == "partial":
        assert all(host in run.told for host in HOSTS)
    assert_nothing_changed(run, before, placement)


@pytest.mark.long
@pytest.mark.parametrize("fail_on", ["error", "partial"])
def test_play_fails_only_after_its_work(
    ansible: Ansible, planted: Cast, placement: Placement, world: World, fail_on: str
) -> None:
    before = placement.everything()
    world.close_cell()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_fail_on": fail_on})

    world.open_cell()
    assert (run.status == 0) is (fail_on == "error"), run.output
    assert _went(planted, before, placement) == set(planted.provable)


def _went(cast: Cast, before: dict[str, t.Any], placement: Placement) -> set[str]:
    """Return the orphans that have lost something, each in the expected way.

    Nobody else has lost anything.
    """
    after = placement.everything()
    went = {consumer for consumer in before | after if after.get(consumer) != before.get(consumer)}
    assert went <= {*cast.provable, *cast.unprovable}
    assert not [
        consumer for consumer in went if not set(after.get(consumer, ())) < set(before[consumer])
    ]
    return went


@pytest.fixture
def scheduled(ansible: Ansible, wires: Wires) -> Iterator[Schedule]:
    assert wires
    with schedule(ansible, **NO_AGE) as scheduled:
        yield scheduled


@pytest.mark.long
@pytest.mark.parametrize(
    ("service", "path"),
    [
        ("placement", r"^/resource_providers/[^/]*/allocations"),
        ("nova", "/os-hypervisors/detail"),
        ("nova", "/os-migrations"),
        ("nova", "/servers/detail.*all_tenants"),
        ("nova", "/servers/[^/?]*$"),
        ("nova", "/os-services$"),
    ],
)
def test_cell_dies_during_detection(
    planted: Cast,
    placement: Placement,
    scheduled: Schedule,
    wires: Wires,
    world: World,
    service: str,
    path: str,
) -> None:
    """Orphans of the living cell may be removed or not.

    A reading that contradicts itself proves less.

    Nothing else is removed.
    """
    before = placement.everything()
    died = getattr(wires, service).on("GET", path, before=world.close_cell)

    summary = scheduled.run()

    world.open_cell()
    assert died.ran
    assert _went(planted, before, placement) <= set(planted.provable), scheduled.told
    assert not summary or summary["coverage"]["complete"] is False


@pytest.mark.long
def test_cell_dies_between_two_writes(
    ansible: Ansible,
    planted: Cast,
    placement: Placement,
    wires: Wires,
    world: World,
    tmp_path: Path,
) -> None:
    """Nothing of the dead cell is written once its first consumer is looked up again."""
    findings, plan = str(tmp_path / "findings.json"), str(tmp_path / "plan.json")
    ansible.direct("orphan_detect", dest=findings, **NO_AGE)
    planned = ansible.direct("orphan_plan", findings=findings, dest=plan)
    dead = [planted.dead[name] for name in UNPROVABLE]
    assert planned["changes"] >= len(planted.provable) + len(dead), planned
    before = placement.everything()
    died = [
        wires.placement.on("GET", f"^/allocations/{consumer}$", before=world.close_cell)
        for consumer in dead
    ]

    told = ansible.direct("orphan_remediate", plan=plan, output_dir=str(tmp_path), **NO_AGE)

    world.open_cell()
    assert any(hook.ran for hook in died) and "Traceback" not in str(told)
    outcomes = {outcome["consumer"]: outcome["outcome"] for outcome in told["outcomes"]}
    assert {outcomes[consumer] for consumer in dead} <= {"skipped", "failed"}
    after = placement.everything()
    for consumer, outcome in outcomes.items():
        assert (after.get(consumer) != before[consumer]) is (outcome in ("removed", "reduced")), (
            consumer,
            outcome,
        )
    for consumer in planted.dead.values():
        assert after[consumer] == before[consumer]


@pytest.mark.long
def test_remaining_orphans_are_removed_when_the_cell_is_back(
    ansible: Ansible, planted: Cast, placement: Placement
) -> None:
    """This shows that all that were kept were orphans."""
    live = {consumer: placement.held(consumer) for consumer in planted.live.values()}
    across = {planted.dead[name] for name in (INTO, OUT_OF)}
    gone = set(planted.unprovable) - across

    run = ansible.playbook("cleanup_orphans", variables=EVERY_KIND)

    assert run.status == 0, run.output
    assert not [consumer for consumer in gone if placement.held(consumer)]
    assert {len(placement.held(consumer)) for consumer in across} == {1}
    assert {consumer: placement.held(consumer) for consumer in planted.live.values()} == live
