"""What refused requests, resets of the state and other tools leave, each beside its lookalikes."""

from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.nova import ActionEvent
from ...world import CLAIM, LATER, NOW
from ..scene import Scene

PART = {"CUSTOM_PART": 1}
LIVE = "conductor_live_migrate_instance"


def given_up(scene: Scene, *actions: str, fault: str = "Quota exceeded", **fields: str) -> str:
    """A server whose request conductor gave up, and what Nova recorded of it."""
    server = scene.server(None, scene.here, status="ERROR", fault=fault, **fields)
    for action in actions:
        scene.did(server, action)
    return server


def moved(scene: Scene, server: str) -> str:
    scene.goes(server, "error")
    return server


def offloaded(scene: Scene, status: str = "confirmed", root: str = "") -> str:
    """The migration of a server that was offloaded since from the host to which it went."""
    server = scene.server(None, status="SHELVED_OFFLOADED")
    move = scene.goes(server, status, root or scene.here)
    scene.act(scene.act(server, "create", scene.here), "shelve", scene.there)
    return move


def offloaded_and(
    scene: Scene, action: str, status: str = "SHELVED_OFFLOADED", lost: bool = False
) -> str:
    move = offloaded(scene)
    server = scene.migrations[move].server
    scene.did(scene.alter(server, status=status), action)
    if lost:
        scene.comes(server, "error", type="live-migration")
    return move


def reset(scene: Scene, *actions: str, root: str = "", **fields: str) -> str:
    """The resize of a server, and what was done to it since."""
    server = scene.server(root or scene.there, root or scene.there, **fields)
    move = scene.goes(server, "finished", scene.here, type="resize")
    for action in actions:
        scene.did(server, action)
    return move


def evacuated_since(scene: Scene, *done: str) -> str:
    third = scene.host("compute-7")
    move = reset(scene, "resetState", root=third)
    # The dead host keeps what the server had there.
    server = scene.hold(scene.migrations[move].server, scene.there)
    for status in done:
        scene.migration(server, scene.there, third, status, type="evacuation")
    return move


def with_parts(scene: Scene, status: str = "done", own: bool = True, **left: int) -> str:
    """A server that left `here`, with only an allocation of a child there."""
    children = [scene.provider(f"part-{root}", root) for root in (scene.here, scene.there)]
    server = scene.hold(scene.server(scene.there, scene.there), children[0], amounts=left or PART)
    scene.goes(server, status, type="evacuation")
    return scene.hold(server, *children[own:][:own], amounts=PART)


def live_migrated(
    scene: Scene, swapped: bool, *events: str, result: str | None = "Error", **fields: str | None
) -> str:
    """A server whose live migration failed, with what Nova recorded of it."""
    server = scene.server(scene.here, *((scene.there,) if swapped else (scene.here, scene.there)))
    nodes: dict[str, str | None] = {"source_node": None, "dest_node": None, **fields}
    move = scene.goes(server, "error", *[scene.here][: 1 * swapped], type="live-migration")
    at = scene.migrations[scene.alter(move, **nodes)].created_at
    rows = (ActionEvent(name, at, at if result else None, result, None) for name in (LIVE, *events))
    scene._act(server, "live-migration", at, *rows)
    return server


def beside(scene: Scene, vcpus: int = 1, **fields: str) -> str:
    """A deleted migration beside a server of which another migration has the allocation."""
    server = scene.did(scene.server(scene.here, scene.there, **fields), "migrate", NOW)
    scene.hold(scene.goes(server, "error"), scene.here, amounts={**CLAIM, "VCPU": vcpus})
    return scene.delete_row(scene.hold(scene.uuid(), scene.here))


CASES: dict[str, list[Callable[[Scene], str]]] = {
    "unhosted_server server_without_host": [given_up],
    "unhosted_server last_host_unknown": [
        lambda scene: given_up(scene, fault=""),
        lambda scene: given_up(scene, launched_at=NOW),
        lambda scene: moved(scene, given_up(scene)),
        lambda scene: scene.answers("actions", given_up(scene), 403),
    ],
    # Of two servers of one request, one may have been handed to its host.
    "unhosted_server last_actions_unfinished": [lambda scene: given_up(scene, "create")],
    "ended_migration server_offloaded_since": [
        offloaded,
        lambda scene: scene.lose_host(offloaded(scene)),
    ],
    "ended_migration server_not_settled": [
        lambda scene: offloaded(scene, "error"),
        lambda scene: offloaded(scene, "reverted"),
        lambda scene: offloaded(scene, root=scene.host("compute-7")),
        lambda scene: reset(scene, "resetState", root=scene.host("compute-7")),
        evacuated_since,
        lambda scene: offloaded_and(scene, "resetState", status="ERROR"),
    ],
    "ended_migration last_actions_unfinished": [
        lambda scene: offloaded_and(scene, "unshelve"),
        lambda scene: offloaded_and(scene, "resetState"),
    ],
    "ended_migration move_may_have_ended": [lambda scene: offloaded_and(scene, "lock", lost=True)],
    "ended_migration migration_ended": [
        lambda scene: reset(scene, "resetState"),
        lambda scene: evacuated_since(scene, "done"),
    ],
    "moving migration_under_way": [
        reset,
        lambda scene: scene.alter(reset(scene, "resetState"), updated_at=LATER),
        lambda scene: reset(scene, "resetState", "confirmResize"),
        lambda scene: reset(scene, "revertResize", "resetState"),
        lambda scene: reset(scene, "resetState", status="ERROR"),
        lambda scene: reset(scene, "resetState", task_state="powering-off"),
    ],
    "verify_resize resize_to_confirm": [
        lambda scene: reset(scene, status="VERIFY_RESIZE"),
        # The second resize after a reset, or a state that was put back by hand.
        lambda scene: reset(scene, "resetState", status="VERIFY_RESIZE"),
    ],
    "evacuated_source left_by_evacuation": [with_parts],
    "extra_host may_share_resources": [
        lambda scene: with_parts(scene, "failed"),
        lambda scene: with_parts(scene, own=False),
        lambda scene: with_parts(scene, CUSTOM_PART=1, DISK_GB=1),
        lambda scene: with_parts(scene, CUSTOM_PART=1, CUSTOM_OTHER=1),
    ],
    "extra_host extra_allocation": [
        lambda scene: live_migrated(scene, False),
        lambda scene: live_migrated(scene, False, "compute_check_can_live_migrate_destination"),
    ],
    "extra_host move_may_have_ended": [
        lambda scene: live_migrated(scene, False, "compute_live_migration"),
        lambda scene: live_migrated(scene, False, result="Success"),
        lambda scene: live_migrated(scene, False, source_node="compute-1"),
        lambda scene: live_migrated(scene, False, result=None),
    ],
    "unreverted_allocation migration_has_needed_allocation": [
        lambda scene: live_migrated(scene, True)
    ],
    "unreverted_allocation guest_may_have_moved": [
        lambda scene: live_migrated(scene, True, "compute_live_migration"),
        lambda scene: live_migrated(scene, True, dest_node="compute-2"),
    ],
    "deleted_migration migration_deleted_with_server": [beside],
    "deleted_migration moved_server_without_allocation": [
        lambda scene: beside(scene, 2),
        lambda scene: beside(scene, status="ERROR"),
        lambda scene: beside(scene, task_state="migrating"),
        lambda scene: beside(scene, node="compute-9"),
    ],
}
PROVEN = {
    *("server_without_host", "server_offloaded_since", "migration_ended", "left_by_evacuation"),
    *("extra_allocation", "migration_has_needed_allocation", "migration_deleted_with_server"),
}


@pytest.mark.parametrize(
    ("expected", "situation"), [(name, one) for name, group in CASES.items() for one in group]
)
def test_only_what_nobody_can_need_is_freed(
    scene: Scene, expected: str, situation: Callable[[Scene], str]
) -> None:
    finding = scene.found(situation(scene))

    assert f"{finding.kind} {finding.reason.id}" == expected
    assert bool(finding.change) is (finding.reason.id in PROVEN)
