"""Workers of nova-api that do not know a cell.

They answer as if nothing of it had ever existed, and nothing of it may be changed.

Such a cell differs from a dead one: nothing is `UNKNOWN` and nothing is a 500. Only contradictions
between answers, or with Placement and Nova's API database, reveal it. The tests depend on each
other's cloud, in their order.
"""

import random
import typing as t
from collections.abc import Iterator

import pytest

from ..integration import cells
from ..integration.cells import CELL, EMPTY, NEW, OLD, PRIMED, TWIN, Guests, Workers
from ..integration.forks import Schedule, schedule
from ..integration.interposer import Fault, Hook, Wires
from ..integration.support import EVERY_KIND, Ansible, Minicloud, Placement, assert_nothing_changed
from ..integration.world import World

OWN_CLOUD = True
pytestmark = pytest.mark.long

RUNS = 250
TREES = {"orphan_cleanup_remediate_kinds": ["orphaned_provider", "name_conflict"]}
# The real default ages, which `Ansible.playbook` would override.
DEFAULT_AGES = {"orphan_cleanup_min_age": "1h", "orphan_cleanup_unknown_min_age": "24h"}
FORGOTTEN = {"orphan_cleanup_remediate_kinds": ["unknown_consumer"], **DEFAULT_AGES}

# The orphans of cell1, by the names of their scenarios.
PLANTED = ("deleted_server", "ended_migration", "deleted_migration")

# A probe for one migration is answered by a worker that knows the cell, and every listing by one
# that does not.
MARKER = (r"^GET .*/os-migrations\?.*limit=1&", NEW)
LISTINGS = (r"^GET .*/(os-migrations|os-services|servers/detail|servers\?)", OLD)
HYPERVISORS = r"^GET .*/os-hypervisors"


@pytest.fixture(scope="module")
def workers(minicloud: Minicloud, world: World) -> Iterator[Workers]:
    minicloud.scenario("healthy")
    # A second Nova in the catalogue could have the hosts that this one does not list, and protects
    # them.
    with world.one_region():
        yield cells.add_cell(world)


@pytest.fixture(scope="module")
def guests(minicloud: Minicloud, world: World, workers: Workers) -> Iterator[Guests]:
    """The consumers in the new cell; and in the other cell what any run may remove."""
    minicloud.scenario(*PLANTED)
    guests = cells.settle(world)
    cells.set_back(world, days=2)
    yield guests
    cells.release(world)


@pytest.fixture
def deletions(wires: Wires) -> Hook:
    """Attempts to delete a tree, none of which succeeds.

    A failure in one test must not make the next one fail.
    """
    return wires.placement.on("DELETE", "", nth=0, before=lambda: Fault.CONFLICT)


@pytest.fixture
def before(guests: Guests, placement: Placement, world: World) -> Iterator[dict[str, t.Any]]:
    """The allocations of the live consumers, which are restored after each test."""
    before = held_by(guests.live.values(), placement)
    assert all(allocations for allocations, _generation in before.values()), before
    yield before
    if held_by(guests.live.values(), placement) != before:
        for consumer, (allocations, _generation) in before.items():
            world.hold(consumer, allocations)
        cells.set_back(world, days=2)


@pytest.fixture
def scheduled(ansible: Ansible, wires: Wires) -> Iterator[Schedule]:
    """Through the interposers, with default kinds and default ages."""
    assert wires
    with schedule(ansible) as scheduled:
        yield scheduled


def held_by(consumers: t.Iterable[str], placement: Placement) -> dict[str, t.Any]:
    """Return the allocation of each consumer with its generation.

    Both are equal before and after if and only if nobody wrote.
    """
    told = {consumer: placement.allocation(consumer) for consumer in consumers}
    return {
        consumer: (placement.held(consumer), answer.get("consumer_generation"))
        for consumer, answer in told.items()
    }


# Before the new cell has servers ------------------------------------------------------------------


@pytest.mark.parametrize("answering", [(OLD,), (PRIMED,), (OLD, NEW)], ids=" and ".join)
def test_empty_trees_of_running_hosts_are_kept(
    ansible: Ansible,
    deletions: Hook,
    placement: Placement,
    wires: Wires,
    workers: Workers,
    answering: tuple[str, ...],
) -> None:
    """Each of these hosts has the name of its node.

    TWIN has a second node whose name is not that of a host.
    """
    assert {EMPTY, TWIN, f"{TWIN}-2"} <= set(placement.providers())
    workers.answer(wires, *answering)

    run = ansible.playbook("cleanup_orphans", variables=TREES)

    assert "Traceback" not in run.output, run.output
    assert not deletions.seen, run.told


# One worker that knows half, or nothing -----------------------------------------------------------


def test_hypervisors_without_a_service_fail_the_soundness_check(
    ansible: Ansible, before: dict[str, t.Any], placement: Placement, wires: Wires, workers: Workers
) -> None:
    """One list has the hosts of the new cell and the other has not.

    The report names the hosts.
    """
    assert before
    everything = placement.everything()
    workers.answer(wires, PRIMED)

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert_nothing_changed(run, everything, placement)
    coverage = run.read("findings.json")["summary"]["coverage"]
    assert coverage["complete"] is False
    assert any(f"{CELL}-" in sentence for sentence in coverage["failed_checks"]), coverage


@pytest.mark.parametrize("answering", [OLD, PRIMED])
def test_run_stays_safe_with_every_kind_opted_in(
    ansible: Ansible,
    before: dict[str, t.Any],
    deletions: Hook,
    guests: Guests,
    placement: Placement,
    wires: Wires,
    workers: Workers,
    answering: str,
) -> None:
    """All answers agree, and all of them are wrong.

    No worker knows the cell, which has live servers and an unconfirmed resize.
    """
    workers.answer(wires, answering)

    run = ansible.playbook("cleanup_orphans", variables=EVERY_KIND)

    assert "Traceback" not in run.output, run.output
    assert held_by(guests.live.values(), placement) == before
    assert not deletions.seen, run.told
    assert run.read("findings.json")["summary"]["coverage"]["complete"] is False


# Workers that disagree ----------------------------------------------------------------------------


@pytest.mark.parametrize("hypervisors", [OLD, NEW])
def test_run_stays_safe_with_the_worst_balancing(
    before: dict[str, t.Any],
    placement: Placement,
    wires: Wires,
    workers: Workers,
    guests: Guests,
    scheduled: Schedule,
    hypervisors: str,
) -> None:
    """A worker that knows the cell answers single requests, and another one the listings.

    This is so in detection and in the renewed proof.
    """
    workers.answer(wires, NEW, pins=[MARKER, LISTINGS, (HYPERVISORS, hypervisors)])

    scheduled.run()

    assert held_by(guests.live.values(), placement) == before, scheduled.told


@pytest.mark.parametrize("seed", [2, 3])
def test_run_stays_safe_when_any_worker_answers_many_times(
    before: dict[str, t.Any],
    placement: Placement,
    wires: Wires,
    workers: Workers,
    guests: Guests,
    scheduled: Schedule,
    seed: int,
) -> None:
    """In half of the runs a request always reaches the same worker, and so does a renewed proof."""
    dice = random.Random(seed)
    for number in range(1, RUNS + 1):
        weights = dice.choice([(1, 1), (1, 3), (3, 1)])
        by_uri = number % 2 == 0
        # Pages from several workers would end most readings at once.
        pins = [(HYPERVISORS, dice.choice([OLD, NEW]))] if by_uri else []
        workers.answer(
            wires, OLD, NEW, seed=dice.randrange(1 << 30), weights=weights, pins=pins, by_uri=by_uri
        )
        scheduled.run()
        assert held_by(guests.live.values(), placement) == before, (number, scheduled.told)


# Every worker knows the cell ----------------------------------------------------------------------


@pytest.mark.follows("agreement._ADVICE")
def test_run_removes_all_orphans_after_every_worker_restarted(
    minicloud: Minicloud,
    before: dict[str, t.Any],
    placement: Placement,
    wires: Wires,
    workers: Workers,
    guests: Guests,
    scheduled: Schedule,
) -> None:
    planted = {
        allocation["consumer"]
        for name in PLANTED
        for allocation in minicloud.truth(name)["allocations"]
        if allocation["truth"] == "orphaned"
    }
    planted |= set(guests.orphans.values())
    workers.restart()
    workers.answer(wires, OLD, PRIMED, NEW, seed=4)

    summaries = [scheduled.run(), scheduled.run()]

    assert all(summary and summary["coverage"]["complete"] for summary in summaries), (
        scheduled.told,
        summaries,
    )
    left = {consumer for consumer in planted if placement.held(consumer)}
    assert not left, scheduled.told
    assert held_by(guests.live.values(), placement) == before
