"""Operators rename hosts in Nova's databases, and what is older keeps the old names.

Where nothing stronger than a name links two records, nothing is changed.
"""

from collections.abc import Callable

import pytest

from ...world import CLAIM, NOW
from ..scene import Scene

Renaming = Callable[[Scene, str], object]


def replace_by_new_machine(scene: Scene, root: str) -> str:
    """Give the name of a host to a new machine, which is in another place."""
    name = scene.nodes[root].name
    scene.rename_host(root, "compute-9", "compute-9", provider=True)
    return scene.host(name)


def forget_host(scene: Scene, root: str) -> None:
    """Remove a host with its provider."""
    scene.remove_host(root)
    del scene.providers[root]


def unshelve_twice(scene: Scene, server: str) -> None:
    """Let it be unshelved on the other host first, which began to."""
    scene.act(scene.act(server, "create", scene.here), "shelve", scene.here)
    scene.act(scene.act(server, "unshelve", scene.there), "unshelve", scene.here)


RENAMINGS: dict[str, Renaming] = {
    "host and node": lambda scene, root: scene.rename_host(root, "compute-9", "compute-9"),
    "with the provider": lambda scene, root: scene.rename_host(
        root, "compute-9", "compute-9", provider=True
    ),
    "only the host": lambda scene, root: scene.rename_host(root, host="compute-9"),
    "only the node": lambda scene, root: scene.rename_host(root, node="compute-9"),
    "a domain is added": lambda scene, root: scene.rename_host(
        root, "compute-2.example.org", "compute-2.example.org", provider=True
    ),
    "another case": lambda scene, root: scene.rename_host(
        root, "Compute-2", "Compute-2", provider=True
    ),
    "taken over by a new machine": replace_by_new_machine,
}
FAILED_LATE = pytest.mark.parametrize(
    ("kind", "status"), [("evacuation", "failed"), ("live-migration", "error")]
)
ANY_RENAMING = pytest.mark.parametrize("renaming", RENAMINGS.values(), ids=list(RENAMINGS))


@pytest.fixture(name="scene")
def _scene() -> Scene:
    return Scene()


@ANY_RENAMING
@FAILED_LATE
def test_guest_of_a_failed_move_may_run_on_its_renamed_destination(
    scene: Scene, renaming: Renaming, kind: str, status: str
) -> None:
    server = scene.spread()
    scene.goes(server, status, type=kind)
    scene.set_service(scene.here, "up")
    renaming(scene, scene.there)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


@ANY_RENAMING
def test_cold_migration_took_over_what_a_failed_move_left_on_a_renamed_host(
    scene: Scene, renaming: Renaming
) -> None:
    third = scene.host("compute-3")
    server = scene.did(scene.server(third, third), "live-migration", NOW)
    scene.goes(server, "error", type="live-migration")
    moved = scene.migration(server, scene.here, third, "confirmed", scene.here, scene.there)
    renaming(scene, scene.there)

    assert scene.told(moved)[:2] == ("ended_migration", "undecided")


@ANY_RENAMING
def test_guest_may_still_run_on_the_renamed_source_of_its_evacuation(
    scene: Scene, renaming: Renaming
) -> None:
    server = scene.spread()
    scene.comes(server, "done", type="evacuation")
    scene.set_service(scene.there, "up")
    renaming(scene, scene.there)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


def test_evacuation_was_completed_by_a_new_machine_with_the_name_of_its_source(
    scene: Scene,
) -> None:
    """nova-compute completes the evacuations from its own name when it starts."""
    server = scene.spread()
    scene.comes(server, "completed", type="evacuation")
    replace_by_new_machine(scene, scene.there)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


def test_what_is_left_on_the_renamed_source_that_is_down_is_found(scene: Scene) -> None:
    """As with any other evacuation: the operator has said that the host is dead."""
    server = scene.spread()
    scene.comes(server, "done", type="evacuation")
    scene.rename_host(scene.there, "compute-9", "compute-9")

    assert scene.told(server)[:2] == ("extra_host", "orphaned")


@pytest.mark.parametrize("renaming", [RENAMINGS["host and node"], replace_by_new_machine])
def test_disk_of_a_half_reverted_resize_is_kept_when_its_destination_is_renamed(
    scene: Scene, renaming: Renaming
) -> None:
    server = scene.server(scene.there, scene.there)
    moved = scene.goes(server, "error", scene.here, type="resize")
    scene.recorded_later(server, "revertResize", "compute_revert_resize", scene.there, "Error")
    renaming(scene, scene.there)

    assert scene.told(moved)[:2] == ("ended_migration", "undecided")


@ANY_RENAMING
def test_allocation_only_on_a_renamed_host_where_the_guest_may_run_is_not_moved(
    scene: Scene, renaming: Renaming
) -> None:
    server = scene.server(scene.here, scene.there)
    scene.goes(server, "error", type="live-migration")
    renaming(scene, scene.there)

    assert not scene.found(server).change


def test_host_that_also_began_an_unshelve_is_known_by_no_name(scene: Scene) -> None:
    server = scene.spread()
    unshelve_twice(scene, server)
    scene.rename_host(scene.there, "compute-9", "compute-9", provider=True)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


def test_amounts_are_not_reduced_after_a_late_resize_failure_on_a_renamed_host(
    scene: Scene,
) -> None:
    server = scene.server(scene.there)
    scene.hold(server, scene.there, amounts={**CLAIM, "VCPU": 4})
    scene.did(server, "resize", NOW)
    scene.goes(server, "error", type="resize")
    scene.rename_host(scene.there, "compute-9", "compute-9")

    assert (scene.found(server).kind, scene.found(server).change) == ("wrong_amount", None)


# What looks like it and is still found.


def test_failed_move_to_a_listed_host_does_not_protect_a_source_that_was_evacuated(
    scene: Scene,
) -> None:
    third = scene.host("compute-3")
    server = scene.spread()
    scene.comes(server, "done", type="evacuation")
    scene.did(server, "live-migration", NOW)
    scene.migration(server, scene.here, third, "error", type="live-migration")

    assert scene.told(server)[:2] == ("evacuated_source", "orphaned")


@pytest.mark.parametrize("kind", ["evacuation", "live-migration"])
def test_migration_that_took_a_server_from_its_source_frees_it_whatever_was_renamed_before(
    scene: Scene, kind: str
) -> None:
    """Its own allocation is on the tree that it names, so the name is the present one."""
    third = scene.host("compute-3")
    server = scene.server(third, third)
    if kind == "evacuation":
        scene.comes(server, "done", type=kind)
    else:
        scene.goes(server, "error", type=kind)
    scene.remove_host(scene.there)
    moved = scene.migration(server, scene.here, third, "confirmed", scene.here)

    assert scene.told(moved)[:2] == ("ended_migration", "orphaned")


def test_failed_move_to_a_host_that_is_gone_may_have_been_to_any_other(scene: Scene) -> None:
    third = scene.host("compute-3")
    server = scene.server(scene.here, scene.here, third)
    scene.goes(server, "error", type="live-migration")
    scene.remove_host(scene.there)

    assert scene.told(server)[:2] == ("extra_host", "undecided")
    assert "no host compute-2" in scene.found(server).reason


@pytest.mark.parametrize(("status", "kind"), [("error", "migration"), ("confirmed", "resize")])
def test_another_move_that_has_the_new_name_of_the_destination_explains_nothing(
    scene: Scene, status: str, kind: str
) -> None:
    """A new machine has the old name, and no allocation of the server."""
    server = scene.spread()
    third = scene.host("compute-9")
    scene.migration(server, third, scene.here, status, type=kind)
    scene.goes(server, "failed", type="evacuation")
    scene.set_service(scene.here, "up")
    forget_host(scene, third)
    replace_by_new_machine(scene, scene.there)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


def test_hosts_that_exchange_their_names_explain_nothing(scene: Scene) -> None:
    server = scene.spread()
    third = scene.host("compute-3")
    scene.migration(server, third, scene.here, "confirmed")
    scene.goes(server, "failed", type="evacuation")
    scene.set_service(scene.here, "up")
    exchange_names(scene, scene.there, third)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


@pytest.mark.parametrize("status", ["done", "completed"])
def test_guest_of_an_evacuation_may_run_on_a_source_that_has_a_name_of_before(
    scene: Scene, status: str
) -> None:
    gone = scene.host("compute-9")
    server = scene.spread()
    scene.migration(server, gone, scene.there, "completed", type="live-migration")
    scene.comes(server, status, type="evacuation")
    scene.set_service(scene.there, "up")
    forget_host(scene, gone)
    replace_by_new_machine(scene, scene.there)

    assert scene.told(server)[1] == "undecided"


def test_the_source_of_an_evacuation_is_still_found_beside_a_failed_move_to_a_third_host(
    scene: Scene,
) -> None:
    """Nova rolled that one back, and nothing was renamed."""
    server = scene.spread()
    third = scene.host("compute-3")
    scene.migration(server, scene.there, third, "error", type="live-migration")
    scene.pass_time()
    scene.comes(server, "done", type="evacuation")
    scene.set_service(scene.there, "down")

    assert scene.told(server)[:2] == ("evacuated_source", "orphaned")


def test_a_later_evacuation_from_the_new_machine_explains_nothing(scene: Scene) -> None:
    """It has the old name of the destination, and an allocation that the evacuation left."""
    server = scene.spread()
    scene.goes(server, "failed", type="evacuation")
    scene.set_service(scene.here, "up")
    new = replace_by_new_machine(scene, scene.there)
    scene.pass_time()
    scene.migration(server, scene.here, new, "completed", type="live-migration")
    scene.pass_time()
    scene.migration(server, new, scene.here, "done", type="evacuation")
    scene.hold(server, new)

    assert scene.told(server)[:2] == ("extra_host", "undecided")


def move(
    scene: Scene, server: str, ends: tuple[str, str], status: str, *holds: str, type: str
) -> str:
    """Move the server later than everything before, with the action that requested it."""
    source, dest = ends
    scene.pass_time()
    scene.did(server, {"evacuation": "evacuate", "migration": "migrate"}.get(type, type), NOW)
    uuid = scene.migration(server, source, dest, status, *holds, type=type)
    if source in scene.nodes:
        scene.set_service(source, "up")
    return uuid


def exchange_names(scene: Scene, one: str, other: str) -> None:
    first, second = scene.nodes[one].name, scene.nodes[other].name
    for root, name in ((one, "between"), (other, first), (one, second)):
        scene.rename_host(root, name, name, provider=True)


@FAILED_LATE
def test_own_host_with_the_name_of_the_destination_explains_nothing(
    scene: Scene, kind: str, status: str
) -> None:
    """No failed evacuation leaves its server on the destination."""
    server = scene.spread()
    move(scene, server, (scene.here, scene.there), status, type=kind)
    exchange_names(scene, scene.here, scene.there)

    assert not scene.found(server).change


@pytest.mark.parametrize("holder", ["migration", "server"])
def test_disk_of_a_half_reverted_resize_is_kept_when_both_hosts_exchange_their_names(
    scene: Scene, holder: str
) -> None:
    of_server = [scene.here] if holder == "server" else []
    of_migration = [] if of_server else [scene.here]
    server = scene.server(scene.there, scene.there, *of_server)
    scene.did(server, "resize", NOW)
    moved = scene.goes(server, "error", *of_migration, type="resize")
    scene.recorded_later(server, "revertResize", "compute_revert_resize", scene.there, "Error")
    consumer = server if of_server else moved

    assert not scene.found(consumer).change
    exchange_names(scene, scene.here, scene.there)
    assert not scene.found(consumer).change


def test_host_that_also_began_an_unshelve_has_another_name_than_its_event(scene: Scene) -> None:
    server = scene.spread()
    unshelve_twice(scene, server)
    replace_by_new_machine(scene, scene.there)

    assert not scene.found(server).change


@FAILED_LATE
def test_move_from_a_host_that_is_gone_says_nothing_of_one_that_has_its_name(
    scene: Scene, kind: str, status: str
) -> None:
    gone = scene.host("compute-9")
    server = scene.spread()
    move(scene, server, (scene.here, scene.there), status, type=kind)
    move(scene, server, (scene.here, gone), "completed", type="live-migration")
    move(scene, server, (gone, scene.here), "completed", type="live-migration")
    forget_host(scene, gone)
    replace_by_new_machine(scene, scene.there)

    assert not scene.found(server).change


def test_what_a_later_failed_move_left_on_the_new_machine_explains_nothing(scene: Scene) -> None:
    third = scene.host("compute-3")
    server = scene.server(third, third)
    move(scene, server, (scene.here, scene.there), "failed", type="evacuation")
    holds = [scene.here, scene.there]
    moved = move(scene, server, (scene.here, third), "confirmed", *holds, type="migration")
    new = replace_by_new_machine(scene, scene.there)
    move(scene, server, (third, new), "failed", type="evacuation")
    scene.hold(server, new)

    assert not scene.found(moved).change


def test_server_that_keeps_the_old_name_of_its_host_may_need_a_deleted_migration(
    scene: Scene,
) -> None:
    """Services and compute nodes have the new name already."""
    server = scene.server(scene.here, scene.there)
    ends = (scene.here, scene.there)
    moved = move(scene, server, ends, "error", scene.here, type="live-migration")
    scene.delete_row(moved)
    servers = dict(scene.servers)
    scene.rename_host(scene.here, "compute-9", "compute-9", provider=True)
    scene.servers = servers

    assert not scene.found(moved).change
