"""A host that exists has a new compute node, and its former provider still has allocations."""

import dataclasses as d

import pytest

from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW
from ..scene import Scene

# The name that a provider keeps, and the one that a finding advises.
NAMES = ["compute-2", "compute-2-former"]


def replace_host(scene: Scene, root: str, name: str) -> str:
    """Give the host of a provider a new compute node, and return its provider."""
    host = scene.nodes[root].host
    scene.remove_host(root)
    new = scene.host(host)
    scene.providers[root] = d.replace(scene.providers[root], name=name)
    return new


def list_changed(scene: Scene) -> dict[str, str]:
    """Return the kinds of the findings with a change, by consumer."""
    found = judge(scene.snapshot(), NO_MINIMUM_AGE)
    return {one.consumer: one.kind for one in found if one.change and one.consumer}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("has_own", [True, False])
def test_a_guest_may_run_on_a_host_whose_provider_was_renamed(
    scene: Scene, name: str, has_own: bool
) -> None:
    """The hypervisors can have gone on with a live migration to the host that Nova gave up."""
    own, other = scene.here, scene.there
    server = scene.server(own, *([own] if has_own else []), other, launched_at=NOW)
    scene.did(server, "live-migration", NOW)
    scene.migration(server, own, other, "error", type="live-migration")
    replace_host(scene, other, name)

    assert list_changed(scene) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_host_that_is_up_may_run_the_guest_that_was_evacuated(scene: Scene, name: str) -> None:
    """It has not started since, and got its new compute node before the evacuation."""
    own, source = scene.here, scene.there
    new = replace_host(scene, source, name)
    server = scene.server(own, own, source, launched_at=NOW)
    scene.did(server, "evacuate", NOW)
    scene.migration(server, new, own, "done", type="evacuation")
    scene.set_service(new, "up")

    assert list_changed(scene) == {}


@pytest.mark.parametrize("name", [*NAMES, "Compute-2", "compute-2.example.org-former"])
def test_a_server_may_need_what_a_migration_without_a_record_has_on_a_former_provider(
    scene: Scene, name: str
) -> None:
    """An operator deleted the record of the migration, and the server has lost its allocation."""
    own, former = scene.here, scene.there
    new = replace_host(scene, former, name)
    server = scene.server(new, own, launched_at=NOW)
    scene.did(server, "migrate", NOW)
    migration = scene.uuid()
    scene.unlisted_migrations.add(migration)
    scene.hold(migration, former)

    assert list_changed(scene) == {}


def test_what_a_server_left_on_a_host_that_is_gone_is_still_found(scene: Scene) -> None:
    """The migrations of the server explain the name of that provider."""
    own, other, third = scene.here, scene.there, scene.host("compute-4")
    server = scene.server(own, own, other, launched_at=NOW)
    scene.did(server, "live-migration", NOW)
    scene.migration(server, own, third, "error", type="live-migration")
    scene.did(server, "migrate", NOW)
    scene.migration(server, other, own, "confirmed")
    scene.remove_host(other)

    assert list_changed(scene) == {server: "extra_host"}
