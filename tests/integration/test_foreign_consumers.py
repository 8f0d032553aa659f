"""Consumers that Nova does not know, or not yet.

A container on one of its hosts, and an undiscovered host.
"""

from collections.abc import Iterator

import pytest

from .support import Ansible, Placement, assert_nothing_changed
from .world import World

pytestmark = pytest.mark.usefixtures("healthy")

HOST = "compute-4"
CHOSEN = {"orphan_cleanup_remediate_kinds": ["unknown_consumer"]}


@pytest.fixture
def zun(world: World) -> Iterator[None]:
    """A container service in the catalogue.

    It allocates without a consumer type, on Nova's own providers if it shares Nova's hosts.
    """
    with world.service("container", "http://127.0.0.1:9"):
        yield


@pytest.mark.long
@pytest.mark.usefixtures("zun")
def test_container_is_undecided_and_kept(
    ansible: Ansible, placement: Placement, world: World
) -> None:
    container = world.claim(HOST)
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables=CHOSEN)

    assert run.status == 0
    found = run.entry(container)
    assert (found["kind"], found["verdict"], found["change"]) == (
        "unknown_consumer",
        "undecided",
        None,
    )
    assert found["reason_id"] == "other_service_may_allocate"
    assert container not in {
        outcome["consumer"] for outcome in run.read("remediation.json")["outcomes"]
    }
    assert_nothing_changed(run, before, placement)


@pytest.mark.follows("other_service_may_allocate")
@pytest.mark.usefixtures("zun")
def test_stray_consumer_is_removed_when_other_allocators_are_ignored(
    ansible: Ansible, placement: Placement, world: World
) -> None:
    stray = world.claim(HOST)

    ignored = {
        "orphan_cleanup_ignore_allocators": ["container", "reservation"],
        "orphan_cleanup_consumers": [stray],
    }
    run = ansible.playbook("cleanup_orphans", variables={**CHOSEN, **ignored})

    assert (
        run.status == 0
        and run.outcome(stray)["outcome"] == "removed"
        and placement.held(stray) == {}
    )
    assert "ignore_allocators names container" in run.entry(stray)["reason"]
    assert "ignore_allocators names reservation" in run.told


@pytest.fixture
def undiscovered(world: World) -> Iterator[None]:
    """A host whose nova-compute runs, and that is not in a cell yet.

    Nova silently omits it from its listing.
    """
    world.provider(HOST)
    world.sql(
        "first_nova_api", "UPDATE host_mappings SET host = ? WHERE host = ?", f"{HOST}-away", HOST
    )
    yield
    world.sql(
        "first_nova_api", "UPDATE host_mappings SET host = ? WHERE host = ?", HOST, f"{HOST}-away"
    )


@pytest.mark.long
def test_undiscovered_host_keeps_its_allocations(
    ansible: Ansible, placement: Placement, world: World, request: pytest.FixtureRequest
) -> None:
    server, stray = world.boot(HOST), world.claim(HOST)
    request.getfixturevalue("undiscovered")
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={"orphan_cleanup_remediate_kinds": ["unknown_consumer", "extra_host"]},
    )

    assert run.status == 0
    assert run.entry(server)["verdict"] == "undecided"
    assert run.entry(stray)["kind"] == "foreign_provider"
    assert_nothing_changed(run, before, placement)
