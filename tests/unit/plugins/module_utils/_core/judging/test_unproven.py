"""Consumers to which no kind applies: which of the possible reasons the finding has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.models.nova import Service
from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, World

Situation = Callable[[World, str, str], str]


def with_a_task_that_is_not_shown(world: World, here: str, there: str) -> str:
    return world.server(there, here, there, task_known=False)


def without_a_host(world: World, here: str, there: str) -> str:
    return world.server(None, here, world.provider("fpga-farm"), status="ERROR")


def moved_in_an_unknown_way(world: World, here: str, there: str) -> str:
    server = world.server(there, here, there)
    world.migration(server, here, there, "completed", type="teleport")
    return server


def on_a_node_that_nova_does_not_list(world: World, here: str, there: str) -> str:
    return world.server(here, here, there, node="compute-1.example.org")


def on_a_provider_of_somebody_else(world: World, here: str, there: str) -> str:
    return world.server(here, world.provider("fpga-farm"))


def not_where_it_was_moved_and_without_an_allocation(world: World, here: str, there: str) -> str:
    server = world.server(here)
    world.migration(server, here, there, "completed")
    return server


def not_where_it_was_moved(world: World, here: str, there: str) -> str:
    server = world.server(here, here, there)
    world.migration(server, here, there, "done", type="evacuation")
    return server


def with_only_a_part_of_its_own_host(world: World, here: str, there: str) -> str:
    nic = world.provider("compute-2_nic", there)
    return world.hold(world.server(there, here), nic, amounts={"CUSTOM_VF": 1})


def of_a_cell_that_answers_with_an_error(world: World, here: str, there: str) -> str:
    server = world.server(here, here, there)
    world.answers("server", server, 500)
    return server


def without_a_mapping(world: World, here: str, there: str) -> str:
    server = world.server(here, here)
    world.unmapped.add(server)
    return server


def without_a_mapping_and_named_by_a_migration(world: World, here: str, there: str) -> str:
    server = world.server(None, here)
    world.unmapped.add(server)
    world.migration(server, here, there, "completed")
    return server


def unknown_to_a_nova_that_did_not_answer_once(world: World, here: str, there: str) -> str:
    consumer = world.stranger(here)
    world.answers("marker", consumer, 503)
    return consumer


def unknown_on_a_host_that_is_gone(world: World, here: str, there: str) -> str:
    consumer = unknown_to_a_nova_that_did_not_answer_once(world, here, there)
    world.remove_host(here)
    return consumer


def without_a_host_that_may_be_hidden(world: World, here: str, there: str) -> str:
    return world.server(None, here, host_known=False)


def without_a_host_and_with_a_task_that_is_not_shown(world: World, here: str, there: str) -> str:
    return world.server(None, here, task_known=False)


def with_a_node_alone(world: World, here: str, there: str) -> str:
    server = world.server(None, here, status="ERROR", node="compute-1")
    world.did(server, "create", NOW)
    return server


def soft_deleted_without_a_mapping(world: World, here: str, there: str) -> str:
    server = world.server(None, here, status="SOFT_DELETED")
    world.unmapped.add(server)
    world.deleted[server] = world.servers[server]
    return server


def on_a_foreign_provider_beside_a_dead_cell(world: World, here: str, there: str) -> str:
    world.services.append(Service("nova-compute", "compute-9", "UNKNOWN", None))
    return world.stranger(world.provider("fpga-farm"))


REASONS = {
    with_a_task_that_is_not_shown: "server_unsettled",
    without_a_host: "server_unsettled",
    moved_in_an_unknown_way: "unknown_move_type",
    on_a_node_that_nova_does_not_list: "compute_node_ambiguous",
    on_a_provider_of_somebody_else: "settled_elsewhere",
    not_where_it_was_moved_and_without_an_allocation: "settled_elsewhere",
    not_where_it_was_moved: "newest_move_unfinished",
    with_only_a_part_of_its_own_host: "own_allocation_incomplete",
    of_a_cell_that_answers_with_an_error: "server_lookup_failed",
    without_a_mapping: "listed_on_host",
    without_a_mapping_and_named_by_a_migration: "migrations_left",
    unknown_to_a_nova_that_did_not_answer_once: "other_lookup_failed",
    unknown_on_a_host_that_is_gone: "other_lookup_failed",
    without_a_host_that_may_be_hidden: "server_unsettled",
    without_a_host_and_with_a_task_that_is_not_shown: "server_unsettled",
    with_a_node_alone: "server_unsettled",
    soft_deleted_without_a_mapping: "deletion_not_proven",
    on_a_foreign_provider_beside_a_dead_cell: "may_belong_to_down_cell",
}


def test_foreign_provider_is_named_beside_hosts_that_are_or_were_novas(
    world: World, here: str, there: str
) -> None:
    world.remove_host(there)
    consumer = world.stranger(here, there, world.provider("fpga-farm"))
    found = judge(world.snapshot(), NO_MINIMUM_AGE)
    finding = next(finding for finding in found if finding.consumer == consumer)

    assert (finding.verdict, finding.kind) == ("protected", "foreign_provider")
    assert finding.reason.id == "of_other_nova" and "fpga-farm" in finding.reason


@pytest.mark.parametrize("situation", REASONS, ids=lambda situation: situation.__name__)
def test_undecided_consumer_has_the_reason(
    world: World, here: str, there: str, situation: Situation
) -> None:
    consumer = situation(world, here, there)
    found = judge(world.snapshot(), NO_MINIMUM_AGE)
    finding = next(finding for finding in found if finding.consumer == consumer)

    assert (finding.verdict, finding.kind, finding.change) == ("undecided", "unproven", None)
    assert finding.reason.id == REASONS[situation]
