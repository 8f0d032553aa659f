"""Servers that were placed again after a placement that did not end well.

Nova knows one host of each. A guest, or the last disk, may be where the earlier placement was.
"""

import pytest

from ...world import NOW
from ..scene import Scene


def _act(scene: Scene, server: str, action: str, root: str) -> str:
    """Record that the host of `root` did an action, after all that was recorded before."""
    scene.pass_time()
    return scene.act(server, action, root)


@pytest.fixture(name="third")
def _third(scene: Scene) -> str:
    return scene.host("compute-4")


@pytest.mark.parametrize("fails", [True, False])
def test_server_keeps_the_host_that_began_an_earlier_unshelve(
    scene: Scene, third: str, fails: bool
) -> None:
    """The last write of an unshelve is outside of what Nova cleans up after.

    The source is nova/compute/manager.py, _unshelve_instance. One that a host does late ends well.
    """
    server = scene.spread(launched_at=NOW)
    _act(scene, _act(scene, server, "shelve", third), "unshelve", scene.there)
    if fails:
        scene.fail_newest_action(server)
    _act(scene, server, "unshelve", scene.here)

    assert scene.told(server) == ("extra_host", "undecided", "unshelve_may_have_begun")


def test_server_loses_the_host_that_a_shelve_left(scene: Scene) -> None:
    server = _act(scene, scene.spread(launched_at=NOW), "unshelve", scene.there)
    _act(scene, _act(scene, server, "shelve", scene.there), "unshelve", scene.here)

    assert scene.found(server).change


def test_server_loses_the_host_that_did_not_begin_the_failed_unshelve(scene: Scene) -> None:
    server = scene.spread(launched_at=NOW)
    scene.did(server, "unshelve", NOW, event="schedule_instances", host="conductor")
    _act(scene, scene.fail_newest_action(server), "unshelve", scene.here)

    assert scene.found(server).change


@pytest.mark.parametrize("status", ["done", "completed"])
def test_server_keeps_where_it_was_placed_if_it_was_evacuated_from_elsewhere(
    scene: Scene, third: str, status: str
) -> None:
    """A host that did an earlier unshelve late became the server's host, and then died."""
    server = scene.hold(scene.spread(launched_at=NOW), *[third] * (status == "done"))
    _act(scene, _act(scene, server, "unshelve", third), "unshelve", scene.there)
    _act(scene, server, "evacuate", scene.here)
    scene.migration(server, third, scene.here, status, type="evacuation")
    finding = scene.found(server)

    assert not finding.change
    assert status == "done" or finding.reason.id == "guest_may_run_under_other_name"


def test_server_keeps_the_destination_of_an_evacuation_that_only_its_source_completed(
    scene: Scene, third: str
) -> None:
    """It was unshelved elsewhere since, without a migration that would show where it was."""
    server = scene.did(scene.server(scene.here, scene.here, third), "evacuate", NOW)
    scene.migration(server, scene.there, third, "completed", type="evacuation")
    _act(scene, _act(scene, server, "shelve", scene.there), "unshelve", scene.here)

    assert not scene.found(server).change


@pytest.mark.parametrize("status", ["reverted", "error"])
@pytest.mark.parametrize(("requested", "frees"), [("revertResize", False), ("resetState", True)])
def test_migration_keeps_the_source_if_its_server_was_evacuated_after_half_a_revert(
    scene: Scene, third: str, status: str, requested: str, frees: bool
) -> None:
    """The destination has destroyed the guest, and the evacuation began with the image."""
    server = scene.did(scene.server(scene.here, scene.here, third), "resize", NOW)
    migration = scene.migration(server, scene.there, third, status, scene.there, type="resize")
    scene.pass_time()
    _act(scene, scene.did(server, requested, NOW), "evacuate", scene.here)
    scene.migration(server, third, scene.here, "done", type="evacuation")
    finding = scene.found(migration)

    assert bool(finding.change) is frees
    assert frees or finding.reason.id == "evacuated_after_revert"


def test_server_keeps_the_host_that_it_was_evacuated_from_after_half_a_revert(scene: Scene) -> None:
    """The source of the resize may have another name now."""
    server = scene.did(scene.spread(), "resize", NOW)
    scene.goes(server, "error", type="resize")
    scene.pass_time()
    _act(scene, scene.did(server, "revertResize", NOW), "evacuate", scene.here)
    scene.comes(server, "done", type="evacuation")

    assert not scene.found(server).change


@pytest.mark.parametrize(
    ("is_on_third_first", "status", "reason"),
    [
        (True, 200, "guest_may_be_at_unshelved_host"),
        (True, 403, "unshelve_actions_unread"),
        (False, 200, "migration_ended"),
    ],
)
def test_migration_keeps_a_host_that_it_took_over_from_a_server_that_was_placed_again(
    scene: Scene, third: str, is_on_third_first: bool, status: int, reason: str
) -> None:
    """It did not leave that host itself, and so does not show where the guest was."""
    server = scene.server(scene.here, scene.here)
    for root in (third, scene.here)[not is_on_third_first :]:
        _act(scene, server, "unshelve", root)
    scene.pass_time()
    migration = scene.comes(server, "confirmed", third)
    scene.answers("actions", server, status)
    finding = scene.found(migration)

    assert (finding.kind, finding.reason.id) == ("ended_migration", reason)
    assert bool(finding.change) is (reason == "migration_ended")
