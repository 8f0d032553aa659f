"""A network that fails around the one write.

Its outcome is read back, and reported in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..integration.interposer import Fault, Wires
from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed
from ..integration.world import World

pytestmark = pytest.mark.long

FORGOTTEN = {"orphan_cleanup_remediate_kinds": ["unknown_consumer"]}


@pytest.fixture
def stray(minicloud: Minicloud, world: World) -> Iterator[str]:
    """A consumer on compute-1 that Nova does not know."""
    minicloud.scenario("healthy")
    consumer = world.claim("compute-1")
    yield consumer
    world.hold(consumer, {})


def test_run_counts_a_write_whose_answer_is_lost(
    ansible: Ansible, placement: Placement, wires: Wires, stray: str
) -> None:
    before = placement.everything()
    write = wires.placement.on(
        "POST", "^/allocations$", nth=0, body=stray, after=lambda: Fault.NO_ANSWER
    )

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert write.ran == 1 and run.status == 0
    assert run.outcome(stray)["outcome"] == "removed"
    del before[stray]
    assert_nothing_changed(run, before, placement)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.NO_ANSWER, "cannot be reached"),
        (Fault.UNAVAILABLE, "answered 503 when asked to change the allocation of"),
    ],
)
def test_run_does_not_count_a_write_that_does_not_arrive(
    ansible: Ansible, placement: Placement, wires: Wires, stray: str, fault: Fault, said: str
) -> None:
    before = placement.everything()
    write = wires.placement.on("POST", "^/allocations$", nth=0, body=stray, before=lambda: fault)

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert write.ran > 1 and run.status != 0
    assert run.outcome(stray)["outcome"] == "failed"
    assert said in run.outcome(stray)["reason"] and "\n" not in run.outcome(stray)["reason"]
    assert_nothing_changed(run, before, placement)


def test_run_changes_nothing_when_nova_fails_during_the_renewed_proof(
    ansible: Ansible, placement: Placement, wires: Wires, stray: str
) -> None:
    before = placement.everything()
    # It is looked up once by detection, then by the renewed proof.
    look_up = wires.nova.on(
        "GET",
        f"/servers/{stray}$",
        nth=0,
        before=lambda: Fault.UNAVAILABLE if look_up.seen > 1 else None,
    )

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert look_up.ran > 2
    outcome = run.outcome(stray)
    assert (outcome["outcome"], outcome["reason_id"]) == ("skipped", "server_lookup_failed")
    assert_nothing_changed(run, before, placement)


def test_run_repeats_one_request_whose_answer_is_lost(
    ansible: Ansible, placement: Placement, wires: Wires, stray: str
) -> None:
    before = placement.everything()
    wires.nova.on("GET", "/os-hypervisors/detail", before=lambda: Fault.UNAVAILABLE)
    wires.nova.on("GET", f"/servers/{stray}$", before=lambda: Fault.NO_ANSWER)

    run = ansible.playbook("cleanup_orphans", variables=FORGOTTEN)

    assert run.status == 0
    assert run.outcome(stray)["outcome"] == "removed"
    del before[stray]
    assert_nothing_changed(run, before, placement)
