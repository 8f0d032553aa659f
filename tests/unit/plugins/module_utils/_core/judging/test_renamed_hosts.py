"""Operators rename hosts in Nova's databases, and what is older keeps the old names.

Where nothing stronger than a name links two records, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, NOW, World

POLICY: Policy = NO_MINIMUM_AGE


def replace_by_new_machine(world: World, root: str) -> None:
    """Give the name of a host to a new machine, which is in another place."""
    name = world.nodes[root].name
    world.rename_host(root, "compute-9", "compute-9", provider=True)
    world.host(name)


RENAMINGS: dict[str, Callable[[World, str], None]] = {
    "host and node": lambda world, root: world.rename_host(root, "compute-9", "compute-9"),
    "with the provider": lambda world, root: world.rename_host(
        root, "compute-9", "compute-9", provider=True
    ),
    "only the host": lambda world, root: world.rename_host(root, host="compute-9"),
    "only the node": lambda world, root: world.rename_host(root, node="compute-9"),
    "a domain is added": lambda world, root: world.rename_host(
        root, "compute-2.example.org", "compute-2.example.org", provider=True
    ),
    "another case": lambda world, root: world.rename_host(
        root, "Compute-2", "Compute-2", provider=True
    ),
    "taken over by a new machine": replace_by_new_machine,
}
ANY_RENAMING = pytest.mark.parametrize("renaming", RENAMINGS.values(), ids=list(RENAMINGS))


class Cloud(World):
    """Two hosts with a server on the first, which also has an allocation on the second."""

    def __init__(self) -> None:
        super().__init__()
        self.home, self.other = self.host("compute-1"), self.host("compute-2")

    def find(self, consumer: str) -> Finding:
        return next(
            finding for finding in judge(self.snapshot(), POLICY) if finding.consumer == consumer
        )

    def verdict(self, consumer: str) -> tuple[str, str]:
        finding = self.find(consumer)
        assert finding.verdict != "undecided" or finding.change is None
        return finding.kind, finding.verdict


@ANY_RENAMING
@pytest.mark.parametrize(
    ("kind", "status"), [("live-migration", "error"), ("evacuation", "failed")]
)
def test_guest_of_a_failed_move_may_run_on_its_renamed_destination(
    renaming: Callable[[World, str], None], kind: str, status: str
) -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.home, cloud.other, status, type=kind)
    cloud.set_service(cloud.home, "up")
    renaming(cloud, cloud.other)

    assert cloud.verdict(server) == ("extra_host", "undecided")


@ANY_RENAMING
def test_cold_migration_took_over_what_a_failed_move_left_on_a_renamed_host(
    renaming: Callable[[World, str], None],
) -> None:
    cloud = Cloud()
    third = cloud.host("compute-3")
    server = cloud.server(third, third)
    cloud.did(server, "live-migration", NOW)
    cloud.migration(server, cloud.home, cloud.other, "error", type="live-migration")
    moved = cloud.migration(server, cloud.home, third, "confirmed", cloud.home, cloud.other)
    renaming(cloud, cloud.other)

    assert cloud.verdict(moved) == ("ended_migration", "undecided")


@ANY_RENAMING
def test_guest_may_still_run_on_the_renamed_source_of_its_evacuation(
    renaming: Callable[[World, str], None],
) -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.other, cloud.home, "done", type="evacuation")
    cloud.set_service(cloud.other, "up")
    renaming(cloud, cloud.other)

    assert cloud.verdict(server) == ("extra_host", "undecided")


def test_evacuation_was_completed_by_a_new_machine_with_the_name_of_its_source() -> None:
    """nova-compute completes the evacuations from its own name when it starts."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.other, cloud.home, "completed", type="evacuation")
    replace_by_new_machine(cloud, cloud.other)

    assert cloud.verdict(server) == ("extra_host", "undecided")


def test_what_is_left_on_the_renamed_source_that_is_down_is_found() -> None:
    """As with any other evacuation: the operator has said that the host is dead."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.other, cloud.home, "done", type="evacuation")
    cloud.rename_host(cloud.other, "compute-9", "compute-9")

    assert cloud.verdict(server) == ("extra_host", "orphaned")


@pytest.mark.parametrize("renaming", [RENAMINGS["host and node"], replace_by_new_machine])
def test_disk_of_a_half_reverted_resize_is_kept_when_its_destination_is_renamed(
    renaming: Callable[[World, str], None],
) -> None:
    cloud = Cloud()
    server = cloud.server(cloud.other, cloud.other)
    moved = cloud.migration(server, cloud.home, cloud.other, "error", cloud.home, type="resize")
    cloud.recorded_later(server, "revertResize", "compute_revert_resize", cloud.other, "Error")
    renaming(cloud, cloud.other)

    assert cloud.verdict(moved) == ("ended_migration", "undecided")


@ANY_RENAMING
def test_allocation_only_on_a_renamed_host_where_the_guest_may_run_is_not_moved(
    renaming: Callable[[World, str], None],
) -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.other)
    cloud.migration(server, cloud.home, cloud.other, "error", type="live-migration")
    renaming(cloud, cloud.other)

    assert cloud.find(server).change is None


def test_host_that_also_began_an_unshelve_is_known_by_no_name() -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.did(server, "create", NOW, host="compute-1")
    cloud.did(server, "shelve", NOW, host="compute-1")
    cloud.did(server, "unshelve", NOW, host="compute-2")
    cloud.did(server, "unshelve", NOW, host="compute-1")
    cloud.rename_host(cloud.other, "compute-9", "compute-9", provider=True)

    assert cloud.verdict(server) == ("extra_host", "undecided")


def test_amounts_are_not_reduced_after_a_late_resize_failure_on_a_renamed_host() -> None:
    cloud = Cloud()
    server = cloud.server(cloud.other)
    cloud.hold(server, cloud.other, amounts={**CLAIM, "VCPU": 4})
    cloud.did(server, "resize", NOW)
    cloud.migration(server, cloud.home, cloud.other, "error", type="resize")
    cloud.rename_host(cloud.other, "compute-9", "compute-9")

    assert (cloud.find(server).kind, cloud.find(server).change) == ("wrong_amount", None)


# What looks like it and is still found.


def test_failed_move_to_a_listed_host_does_not_protect_a_source_that_was_evacuated() -> None:
    cloud = Cloud()
    third = cloud.host("compute-3")
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.other, cloud.home, "done", type="evacuation")
    cloud.did(server, "live-migration", NOW)
    cloud.migration(server, cloud.home, third, "error", type="live-migration")

    assert cloud.verdict(server) == ("evacuated_source", "orphaned")


@pytest.mark.parametrize("kind", ["evacuation", "live-migration"])
def test_migration_that_took_a_server_from_its_source_frees_it_whatever_was_renamed_before(
    kind: str,
) -> None:
    """Its own allocation is on the tree that it names, so the name is the present one."""
    cloud = Cloud()
    third = cloud.host("compute-3")
    server = cloud.server(third, third)
    if kind == "evacuation":
        cloud.migration(server, cloud.other, cloud.home, "done", type=kind)
    else:
        cloud.migration(server, cloud.home, cloud.other, "error", type=kind)
    cloud.remove_host(cloud.other)
    moved = cloud.migration(server, cloud.home, third, "confirmed", cloud.home)

    assert cloud.verdict(moved) == ("ended_migration", "orphaned")


def test_failed_move_to_a_host_that_is_gone_may_have_been_to_any_other() -> None:
    cloud = Cloud()
    third = cloud.host("compute-3")
    server = cloud.server(cloud.home, cloud.home, third)
    cloud.migration(server, cloud.home, cloud.other, "error", type="live-migration")
    cloud.remove_host(cloud.other)

    assert cloud.verdict(server) == ("extra_host", "undecided")
    assert "no host compute-2" in cloud.find(server).reason


@pytest.mark.parametrize(("status", "kind"), [("error", "migration"), ("confirmed", "resize")])
def test_another_move_that_has_the_new_name_of_the_destination_explains_nothing(
    status: str, kind: str
) -> None:
    """A new machine has the old name, and no allocation of the server."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    third = cloud.host("compute-9")
    cloud.migration(server, third, cloud.home, status, type=kind)
    cloud.migration(server, cloud.home, cloud.other, "failed", type="evacuation")
    cloud.set_service(cloud.home, "up")
    cloud.remove_host(third)
    del cloud.providers[third]
    replace_by_new_machine(cloud, cloud.other)

    assert cloud.verdict(server) == ("extra_host", "undecided")


def test_hosts_that_exchange_their_names_explain_nothing() -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    third = cloud.host("compute-3")
    cloud.migration(server, third, cloud.home, "confirmed")
    cloud.migration(server, cloud.home, cloud.other, "failed", type="evacuation")
    cloud.set_service(cloud.home, "up")
    cloud.rename_host(cloud.other, "compute-9", "compute-9", provider=True)
    cloud.rename_host(third, "compute-2", "compute-2", provider=True)
    cloud.rename_host(cloud.other, "compute-3", "compute-3", provider=True)

    assert cloud.verdict(server) == ("extra_host", "undecided")


@pytest.mark.parametrize("status", ["done", "completed"])
def test_guest_of_an_evacuation_may_run_on_a_source_that_has_a_name_of_before(status: str) -> None:
    cloud = Cloud()
    gone = cloud.host("compute-9")
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, gone, cloud.other, "completed", type="live-migration")
    cloud.migration(server, cloud.other, cloud.home, status, type="evacuation")
    cloud.set_service(cloud.other, "up")
    cloud.remove_host(gone)
    del cloud.providers[gone]
    replace_by_new_machine(cloud, cloud.other)

    assert cloud.verdict(server)[1] == "undecided"


def test_the_source_of_an_evacuation_is_still_found_beside_a_failed_move_to_a_third_host() -> None:
    """Nova rolled that one back, and nothing was renamed."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    third = cloud.host("compute-3")
    cloud.migration(server, cloud.other, third, "error", type="live-migration")
    cloud.pass_time()
    cloud.migration(server, cloud.other, cloud.home, "done", type="evacuation")
    cloud.set_service(cloud.other, "down")

    assert cloud.verdict(server) == ("evacuated_source", "orphaned")


def test_a_later_evacuation_from_the_new_machine_explains_nothing() -> None:
    """It has the old name of the destination, and an allocation that the evacuation left."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.migration(server, cloud.home, cloud.other, "failed", type="evacuation")
    cloud.set_service(cloud.home, "up")
    replace_by_new_machine(cloud, cloud.other)
    (new,) = (root for root, node in cloud.nodes.items() if node.name == "compute-2")
    cloud.pass_time()
    cloud.migration(server, cloud.home, new, "completed", type="live-migration")
    cloud.pass_time()
    cloud.migration(server, new, cloud.home, "done", type="evacuation")
    cloud.hold(server, new)

    assert cloud.verdict(server) == ("extra_host", "undecided")


FAILED_LATE = pytest.mark.parametrize(
    ("kind", "status"), [("evacuation", "failed"), ("live-migration", "error")]
)


def move(
    cloud: Cloud, server: str, ends: tuple[str, str], status: str, *holds: str, type: str
) -> str:
    """Move the server later than everything before, with the action that requested it."""
    source, dest = ends
    cloud.pass_time()
    cloud.did(server, {"evacuation": "evacuate", "migration": "migrate"}.get(type, type), NOW)
    uuid = cloud.migration(server, source, dest, status, *holds, type=type)
    if source in cloud.nodes:
        cloud.set_service(source, "up")
    return uuid


def exchange_names(cloud: Cloud, one: str, other: str) -> None:
    first, second = cloud.nodes[one].name, cloud.nodes[other].name
    cloud.rename_host(one, "between", "between", provider=True)
    cloud.rename_host(other, first, first, provider=True)
    cloud.rename_host(one, second, second, provider=True)


@FAILED_LATE
def test_own_host_with_the_name_of_the_destination_explains_nothing(kind: str, status: str) -> None:
    """No failed evacuation leaves its server on the destination."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    move(cloud, server, (cloud.home, cloud.other), status, type=kind)
    exchange_names(cloud, cloud.home, cloud.other)

    assert cloud.find(server).change is None


@pytest.mark.parametrize("holder", ["migration", "server"])
def test_disk_of_a_half_reverted_resize_is_kept_when_both_hosts_exchange_their_names(
    holder: str,
) -> None:
    cloud = Cloud()
    of_server = [cloud.home] if holder == "server" else []
    of_migration = [] if of_server else [cloud.home]
    server = cloud.server(cloud.other, cloud.other, *of_server)
    cloud.did(server, "resize", NOW)
    moved = cloud.migration(server, cloud.home, cloud.other, "error", *of_migration, type="resize")
    cloud.recorded_later(server, "revertResize", "compute_revert_resize", cloud.other, "Error")
    consumer = server if of_server else moved

    assert cloud.find(consumer).change is None
    exchange_names(cloud, cloud.home, cloud.other)
    assert cloud.find(consumer).change is None


def test_host_that_also_began_an_unshelve_has_another_name_than_its_event() -> None:
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    cloud.did(server, "create", NOW, host="compute-1")
    cloud.did(server, "shelve", NOW, host="compute-1")
    cloud.did(server, "unshelve", NOW, host="compute-2")
    cloud.did(server, "unshelve", NOW, host="compute-1")
    replace_by_new_machine(cloud, cloud.other)

    assert cloud.find(server).change is None


@FAILED_LATE
def test_move_from_a_host_that_is_gone_says_nothing_of_one_that_has_its_name(
    kind: str, status: str
) -> None:
    cloud = Cloud()
    gone = cloud.host("compute-9")
    server = cloud.server(cloud.home, cloud.home, cloud.other)
    move(cloud, server, (cloud.home, cloud.other), status, type=kind)
    move(cloud, server, (cloud.home, gone), "completed", type="live-migration")
    move(cloud, server, (gone, cloud.home), "completed", type="live-migration")
    cloud.remove_host(gone)
    del cloud.providers[gone]
    replace_by_new_machine(cloud, cloud.other)

    assert cloud.find(server).change is None


def test_what_a_later_failed_move_left_on_the_new_machine_explains_nothing() -> None:
    cloud = Cloud()
    third = cloud.host("compute-3")
    server = cloud.server(third, third)
    move(cloud, server, (cloud.home, cloud.other), "failed", type="evacuation")
    holds = [cloud.home, cloud.other]
    moved = move(cloud, server, (cloud.home, third), "confirmed", *holds, type="migration")
    replace_by_new_machine(cloud, cloud.other)
    (new,) = (root for root, node in cloud.nodes.items() if node.name == "compute-2")
    move(cloud, server, (third, new), "failed", type="evacuation")
    cloud.hold(server, new)

    assert cloud.find(moved).change is None


def test_server_that_keeps_the_old_name_of_its_host_may_need_a_deleted_migration() -> None:
    """Services and compute nodes have the new name already."""
    cloud = Cloud()
    server = cloud.server(cloud.home, cloud.other)
    moved = move(
        cloud, server, (cloud.home, cloud.other), "error", cloud.home, type="live-migration"
    )
    del cloud.migrations[moved]
    cloud.unlisted_migrations.add(moved)
    servers = dict(cloud.servers)
    cloud.rename_host(cloud.home, "compute-9", "compute-9", provider=True)
    cloud.servers = servers

    assert cloud.find(moved).change is None
