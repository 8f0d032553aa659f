"""Lives in which an allocation is needed although everything that Nova shows speaks against it.

Each is as short as possible.
"""

from __future__ import annotations

import pytest

from ... import nova_operations as moves
from ...nova_lives import Life, Operation, booted, changing, do, lost
from ...nova_model import Nova
from ...nova_operations import boot, unshelve


def _lost(life: Life) -> list[str]:
    return [
        finding.kind
        for finding in changing(life.nova)
        if finding.change and lost(life.nova, finding.change)
    ]


@pytest.fixture(name="nova")
def _nova() -> Nova:
    return Nova(strict=True)


def test_build_that_waits_for_a_second_host_keeps_its_allocation(nova: Nova) -> None:
    """The first host has ended its event, so the action looks finished.

    The second starts, finds the allocation of a server that it does not have
    (_error_out_instances_whose_build_was_interrupted) and sets it to ERROR; then it takes the build
    from its queue and runs it.
    """
    first, second, _third = nova.hosts
    life = Life(nova)
    operation = life.start("boot", boot(nova, life.server, (first, second)), life.server)
    life.go(operation, until="building")
    life.fail(operation)
    life.go(operation, until="build cast")
    life.kill(second)
    restart = life.restart(second)
    assert restart
    life.go(restart, until="interrupted build errored")
    lost_meanwhile = _lost(life)
    life.go(restart)
    life.go(operation)

    assert nova.vm[life.server] == "active" and nova.has_guest(life.server, second)
    assert lost_meanwhile == []


@pytest.mark.parametrize("how", ["volumes stay attached", "reset meanwhile"])
def test_halfway_revert_keeps_the_allocation_where_the_last_disk_is(nova: Nova, how: str) -> None:
    """The destination has destroyed the guest, and the migration is in error.

    The cause is an exception after driver.destroy (revert_resize, _terminate_volume_connections),
    or the source no longer finds the task that it expects (finish_revert_resize).
    """
    first, _second, third = nova.hosts
    life = booted(nova)
    life.go(
        life.start("migrate", moves.resize(nova, life.server, (third,), larger=False), life.server)
    )
    revert = life.start("revert", moves.revert(nova, life.server), life.server)
    if how == "reset meanwhile":
        life.go(revert, until="finish_revert cast")
        life.reset("active")
        life.go(revert)
    else:
        life.go(revert, until="guest destroyed")
        life.fail(revert)
        life.go(revert)
    life.reset("active")

    assert list(nova.copies[life.server]) == [("kept for a revert", first)]
    assert _lost(life) == []


def _evacuate_and_fail_late(nova: Nova) -> Life:
    """Evacuate a server to the second host, and fail when its guest runs there.

    An exception comes when the server is ACTIVE, at the end of _do_rebuild_instance; `failed` is
    saved, and Placement's refusal is only logged (delete_allocation_for_evacuated_instance).
    """
    first, second, _third = nova.hosts
    life = booted(nova)
    life.kill(first)
    evacuation = life.start("evacuate", moves.evacuate(nova, life.server, second), life.server)
    life.go(evacuation, until="active")
    nova.placement = "refuses"
    life.fail(evacuation)
    life.go(evacuation)
    return life


def test_evacuation_that_failed_at_its_end_keeps_the_allocation_where_the_guest_runs(
    nova: Nova,
) -> None:
    """The operator then resets the server to ACTIVE."""
    first, second, _third = nova.hosts
    life = _evacuate_and_fail_late(nova)
    life.reset("active")

    assert nova.has_guest(life.server, second) and nova.host(life.server) == first
    assert _lost(life) == []


@pytest.mark.parametrize("end", ["reset", "confirm"])
def test_cold_migration_with_the_host_of_a_failed_evacuation_keeps_its_allocation(
    nova: Nova, end: str
) -> None:
    """The evacuation failed when the guest ran, and Placement kept its allocation there.

    The server is reset where it was, and a cold migration takes over all its allocations. Its
    confirmation fails, or a reset ends it, so the migration keeps them.
    """
    _first, second, third = nova.hosts
    life = _evacuate_and_fail_late(nova)
    nova.placement = "answers"
    do(life, "start", 0)
    life.reset("active")
    resize = moves.resize(nova, life.server, (third,), larger=False)
    life.go(life.start("migrate", resize, life.server))
    _end_in_vain(life, end)

    assert nova.has_guest(life.server, second) and nova.host(life.server) == third
    assert _lost(life) == []


def _unshelve_while_one_waits(nova: Nova) -> tuple[Life, Operation]:
    """Shelve a server, and unshelve it to the second host, which is down, and to the first.

    The broker took the first unshelve, and conductor recorded an error.
    """
    first, second, _third = nova.hosts
    life = booted(nova)
    do(life, "shelve", 0)
    do(life, "finish", 0)
    life.kill(second)
    nova.world.set_service(second, "down")
    waiting = life.start("unshelve", unshelve(nova, life.server, second), life.server)
    life.go(waiting)
    nova.save(life.server, task=None)
    life.go(life.start("unshelve", unshelve(nova, life.server, first), life.server))
    return life, waiting


def _do_late(life: Life, waiting: Operation, host: str) -> None:
    """Start nova-compute on the host again, which then does what waits in its queue."""
    do(life, "start", 0)
    life.nova.world.set_service(host, "up")
    life.go(waiting)


def test_unshelve_that_a_host_does_late_keeps_the_allocation_of_the_later_one(nova: Nova) -> None:
    first, second, _third = nova.hosts
    life, waiting = _unshelve_while_one_waits(nova)
    lost_meanwhile = _lost(life)
    _do_late(life, waiting, second)

    assert nova.has_guest(life.server, first) and nova.host(life.server) == second
    assert (lost_meanwhile, _lost(life)) == ([], [])


def test_unshelve_that_a_host_does_late_moves_no_allocation_to_it(nova: Nova) -> None:
    """The server was shelved once more, so it has an allocation only where its guest runs."""
    first, second, _third = nova.hosts
    life, waiting = _unshelve_while_one_waits(nova)
    life.go(life.start("shelve", life.possible()["shelve"]("", True), life.server))
    life.go(life.start("unshelve", unshelve(nova, life.server, first), life.server))
    allocated = set(nova.held(life.server))
    _do_late(life, waiting, second)

    assert allocated == {first}
    assert nova.has_guest(life.server, first) and nova.host(life.server) == second
    assert _lost(life) == []


@pytest.mark.parametrize("end", ["reset", "confirm"])
def test_cold_migration_after_a_late_unshelve_keeps_the_allocation_of_the_guest(
    nova: Nova, end: str
) -> None:
    """It takes over the allocations on both hosts, and does not end as it should."""
    first, second, third = nova.hosts
    life, waiting = _unshelve_while_one_waits(nova)
    _do_late(life, waiting, second)
    resize = moves.resize(nova, life.server, (third,), larger=False)
    life.go(life.start("migrate", resize, life.server))
    _end_in_vain(life, end)

    assert nova.has_guest(life.server, first) and nova.host(life.server) == third
    assert _lost(life) == []


def test_failed_cold_migration_before_a_late_unshelve_gives_its_allocation_to_nobody(
    nova: Nova,
) -> None:
    """It failed in conductor, and kept the allocation because Placement refused the rollback."""
    first, second, third = nova.hosts
    life = booted(nova)
    resize = moves.resize(nova, life.server, (second,), larger=False)
    migrate = life.start("migrate", resize, life.server)
    life.go(migrate, until="claim moved")
    nova.placement = "refuses"
    life.go(migrate)
    nova.placement = "answers"
    do(life, "shelve", 0)
    do(life, "finish", 0)
    life.kill(first)
    nova.world.set_service(first, "down")
    waiting = life.start("unshelve", unshelve(nova, life.server, first), life.server)
    life.go(waiting)
    nova.save(life.server, task=None)
    life.go(life.start("unshelve", unshelve(nova, life.server, third), life.server))
    life.go(life.start("shelve", life.possible()["shelve"]("", True), life.server))
    life.go(life.start("unshelve", unshelve(nova, life.server, third), life.server))
    allocated = set(nova.held(life.server))
    _do_late(life, waiting, first)

    assert allocated == {third}
    assert nova.has_guest(life.server, third) and nova.host(life.server) == first
    assert _lost(life) == []


def _end_in_vain(life: Life, end: str) -> None:
    """Let a cold migration end with its allocation."""
    if end == "reset":
        life.reset("active")
        life.poll_all()
    else:
        life.nova.placement = "refuses"
        life.go(life.start("confirm", life.possible()["confirm"]("", True), life.server))
        life.reset("active")
