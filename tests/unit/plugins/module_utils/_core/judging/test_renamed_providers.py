"""A host that exists has a new compute node, and its former provider still has allocations."""

from __future__ import annotations

import dataclasses as d

import pytest

from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, World

# The name that a provider keeps, and the one that a finding advises.
NAMES = ["compute-2", "compute-2-former"]


def replace_host(world: World, root: str, name: str) -> str:
    """Give the host of a provider a new compute node, and return its provider."""
    host = world.nodes[root].host
    world.remove_host(root)
    new = world.host(host)
    world.providers[root] = d.replace(world.providers[root], name=name)
    return new


def list_changes(world: World) -> dict[str, str]:
    """Return the kinds of the findings with a change, by consumer."""
    return {
        finding.consumer: finding.kind
        for finding in judge(world.snapshot(), NO_MINIMUM_AGE)
        if finding.change is not None and finding.consumer
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("has_own", [True, False])
def test_a_guest_may_run_on_a_host_whose_provider_was_renamed(
    world: World, name: str, has_own: bool
) -> None:
    """The hypervisors can have gone on with a live migration to the host that Nova gave up."""
    own, other = world.host("compute-1"), world.host("compute-2")
    server = world.server(own, *([own] if has_own else []), other, launched_at=NOW)
    world.did(server, "live-migration", NOW)
    world.migration(server, own, other, "error", type="live-migration")
    replace_host(world, other, name)

    assert list_changes(world) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_host_that_is_up_may_run_the_guest_that_was_evacuated(world: World, name: str) -> None:
    """It has not started since, and got its new compute node before the evacuation."""
    own, source = world.host("compute-1"), world.host("compute-2")
    new = replace_host(world, source, name)
    server = world.server(own, own, source, launched_at=NOW)
    world.did(server, "evacuate", NOW)
    world.migration(server, new, own, "done", type="evacuation")
    world.set_service(new, "up")

    assert list_changes(world) == {}


@pytest.mark.parametrize("name", [*NAMES, "Compute-2", "compute-2.example.org-former"])
def test_a_server_may_need_what_a_migration_without_a_record_has_on_a_former_provider(
    world: World, name: str
) -> None:
    """An operator deleted the record of the migration, and the server has lost its allocation."""
    own, former = world.host("compute-1"), world.host("compute-2")
    new = replace_host(world, former, name)
    server = world.server(new, own, launched_at=NOW)
    world.did(server, "migrate", NOW)
    migration = world.uuid()
    world.unlisted_migrations.add(migration)
    world.hold(migration, former)

    assert list_changes(world) == {}


def test_what_a_server_left_on_a_host_that_is_gone_is_still_found(world: World) -> None:
    """The migrations of the server explain the name of that provider."""
    own, other, third = (world.host(f"compute-{number}") for number in (1, 2, 4))
    server = world.server(own, own, other, launched_at=NOW)
    world.did(server, "live-migration", NOW)
    world.migration(server, own, third, "error", type="live-migration")
    world.did(server, "migrate", NOW)
    world.migration(server, other, own, "confirmed")
    world.remove_host(other)

    assert list_changes(world) == {server: "extra_host"}
