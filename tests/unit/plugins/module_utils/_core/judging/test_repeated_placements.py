"""Servers that were placed again after a placement that did not end well.

Nova knows one host of each. A guest, or the last disk, may be where the earlier placement was.
"""

from __future__ import annotations

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, World


def _find(world: World, consumer: str) -> Finding:
    found = judge(world.snapshot(), NO_MINIMUM_AGE)
    return next(finding for finding in found if finding.consumer == consumer)


def _act(world: World, server: str, action: str, root: str) -> None:
    """Record that the host of `root` did an action, after all that was recorded before."""
    world.pass_time()
    world.did(server, action, NOW, host=world.nodes[root].host)


@pytest.fixture(name="third")
def _third(world: World) -> str:
    return world.host("compute-4")


@pytest.mark.parametrize("fails", [True, False])
def test_server_keeps_the_host_that_began_an_earlier_unshelve(
    world: World, here: str, there: str, third: str, fails: bool
) -> None:
    """The last write of an unshelve is outside of what Nova cleans up after.

    The source is nova/compute/manager.py, _unshelve_instance. One that a host does late ends well.
    """
    server = world.server(here, here, there, launched_at=NOW)
    _act(world, server, "shelve", third)
    _act(world, server, "unshelve", there)
    if fails:
        world.fail_newest_action(server)
    _act(world, server, "unshelve", here)
    finding = _find(world, server)

    assert (finding.kind, finding.verdict, finding.change) == ("extra_host", "undecided", None)
    assert finding.reason.id == "unshelve_may_have_begun"


def test_server_loses_the_host_that_a_shelve_left(world: World, here: str, there: str) -> None:
    server = world.server(here, here, there, launched_at=NOW)
    _act(world, server, "unshelve", there)
    _act(world, server, "shelve", there)
    _act(world, server, "unshelve", here)

    assert _find(world, server).change is not None


def test_server_loses_the_host_that_did_not_begin_the_failed_unshelve(
    world: World, here: str, there: str
) -> None:
    server = world.server(here, here, there, launched_at=NOW)
    world.did(server, "unshelve", NOW, event="schedule_instances", host="conductor")
    world.fail_newest_action(server)
    _act(world, server, "unshelve", here)

    assert _find(world, server).change is not None


@pytest.mark.parametrize("status", ["done", "completed"])
def test_server_keeps_where_it_was_placed_if_it_was_evacuated_from_elsewhere(
    world: World, here: str, there: str, third: str, status: str
) -> None:
    """A host that did an earlier unshelve late became the server's host, and then died."""
    left = [third] if status == "done" else []
    server = world.server(here, here, there, *left, launched_at=NOW)
    _act(world, server, "unshelve", third)
    _act(world, server, "unshelve", there)
    _act(world, server, "evacuate", here)
    world.migration(server, third, here, status, type="evacuation")

    finding = _find(world, server)
    assert finding.change is None
    assert status == "done" or finding.reason.id == "guest_may_run_under_other_name"


def test_server_keeps_the_destination_of_an_evacuation_that_only_its_source_completed(
    world: World, here: str, there: str, third: str
) -> None:
    """It was unshelved elsewhere since, without a migration that would show where it was."""
    server = world.server(here, here, third)
    world.did(server, "evacuate", NOW)
    world.migration(server, there, third, "completed", type="evacuation")
    _act(world, server, "shelve", there)
    _act(world, server, "unshelve", here)

    assert _find(world, server).change is None


@pytest.mark.parametrize("status", ["reverted", "error"])
@pytest.mark.parametrize(("requested", "frees"), [("revertResize", False), ("resetState", True)])
def test_migration_keeps_the_source_if_its_server_was_evacuated_after_half_a_revert(
    world: World, here: str, there: str, third: str, status: str, requested: str, frees: bool
) -> None:
    """The destination has destroyed the guest, and the evacuation began with the image."""
    server = world.server(here, here, third)
    world.did(server, "resize", NOW)
    migration = world.migration(server, there, third, status, there, type="resize")
    world.pass_time()
    world.did(server, requested, NOW)
    _act(world, server, "evacuate", here)
    world.migration(server, third, here, "done", type="evacuation")

    finding = _find(world, migration)
    assert (finding.change is not None) is frees
    assert frees or finding.reason.id == "evacuated_after_revert"


def test_server_keeps_the_host_that_it_was_evacuated_from_after_half_a_revert(
    world: World, here: str, there: str
) -> None:
    """The source of the resize may have another name now."""
    server = world.server(here, here, there)
    world.did(server, "resize", NOW)
    world.migration(server, here, there, "error", type="resize")
    world.pass_time()
    world.did(server, "revertResize", NOW)
    _act(world, server, "evacuate", here)
    world.migration(server, there, here, "done", type="evacuation")

    assert _find(world, server).change is None


@pytest.mark.parametrize(
    ("unshelved_on", "status", "said"),
    [
        (("third", "here"), 200, "guest_may_be_at_unshelved_host"),
        (("third", "here"), 403, "unshelve_actions_unread"),
        (("here",), 200, "migration_ended"),
    ],
)
def test_migration_keeps_a_host_that_it_took_over_from_a_server_that_was_placed_again(
    world: World,
    here: str,
    there: str,
    third: str,
    unshelved_on: tuple[str, ...],
    status: int,
    said: str,
) -> None:
    """It did not leave that host itself, and so does not show where the guest was."""
    server = world.server(here, here)
    for root in unshelved_on:
        _act(world, server, "unshelve", {"here": here, "third": third}[root])
    world.pass_time()
    migration = world.migration(server, there, here, "confirmed", third)
    world.answers("actions", server, status)
    finding = _find(world, migration)

    assert (finding.kind, finding.change is None) == ("ended_migration", said != "migration_ended")
    assert finding.reason.id == said
