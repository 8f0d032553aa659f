"""Old allocations whose server Nova has just changed: it may not have finished with them."""

import contextlib
import json
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import databases, holdings, servers

from ..integration.forks import Forks
from ..integration.interposer import Answered, Asked, Interposer, Wires
from ..integration.support import Ansible, Minicloud, Placement
from ..integration.world import World

SOURCE, DESTINATION = "slow-source", "compute-2"


@pytest.fixture(scope="module")
def wire(minicloud: Minicloud, world: World) -> Iterator[Interposer]:
    """A host whose nova-compute alone reaches Placement through an interposer."""
    local = world.paths.etc / "nova-first" / "local.conf"
    before = local.read_text()
    with contextlib.ExitStack() as stack:
        wire = stack.enter_context(Interposer(f"http://127.0.0.1:{minicloud.ports['placement']}"))
        local.write_text(f"{before}\n[placement]\nendpoint_override = {wire.url}\n")
        stack.callback(local.write_text, before)
        world.own_host(SOURCE)
        local.write_text(before)
        yield wire
        # It ends before the interposer does.
        world.crash(SOURCE)


@pytest.fixture
def forks(ansible: Ansible) -> Iterator[Forks]:
    with Forks(ansible) as forks:
        yield forks


def detect(forks: Forks, ansible: Ansible, consumer: str) -> dict[str, t.Any]:
    """Plan the default changes of one consumer at the default ages, and return its entry."""
    findings, plan = ansible.folder / "findings.json", ansible.folder / "plan.json"
    found = forks.run("orphan_detect", dest=str(findings), consumers=[consumer])
    assert not found["failed"], found
    forks.run("orphan_plan", findings=str(findings), dest=str(plan))
    document = json.loads(findings.read_text())
    (entry,) = (*document["findings"], *document["protected"], *document["undecided"])
    return entry


def remediate(forks: Forks, ansible: Ansible) -> list[str]:
    """Make the planned changes, and return their outcomes."""
    plan = str(ansible.folder / "plan.json")
    done = forks.run("orphan_remediate", plan=plan, output_dir=str(ansible.folder))
    return [outcome["outcome"] for outcome in done["outcomes"]]


def test_confirmed_migration_is_kept_until_nova_has_removed_its_allocation(
    wire: Interposer, world: World, ansible: Ansible, forks: Forks, placement: Placement
) -> None:
    """Nova shows the end of a confirmed resize, then reads and removes the allocation.

    A removal in between gives Nova a 409, and Nova puts the server into ERROR.
    """
    server = world.boot(SOURCE)
    migration = servers.migrate(world.cloud, server, DESTINATION)
    databases.set_back(world.paths, hours=48)
    seen: list[tuple[dict[str, t.Any], list[str]]] = []

    def clean() -> None:
        shown = servers.get(world.cloud, server)
        assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
        servers.await_migration(world.cloud, server, "confirmed")
        seen.append((detect(forks, ansible, migration), remediate(forks, ansible)))

    wire.on("PUT", f"/allocations/{migration}", before=clean)
    servers.act(world.cloud, server, "confirmResize")
    world.wait("a run in the middle of the confirmation", lambda: seen or wire.errors)

    ((entry, outcomes),) = seen
    assert (entry["kind"], outcomes) == ("too_young", [])
    assert entry["age_seconds"] > 86400
    servers.await_event(world.cloud, server, "confirmResize", "compute_confirm_resize")
    holdings.await_providers(world.cloud, migration)
    assert servers.get(world.cloud, server)["status"] == "ACTIVE"
    assert list(placement.held(server)) == [world.provider(DESTINATION)]


def test_change_of_a_server_since_the_plan_keeps_its_allocation(
    world: World, ansible: Ansible, forks: Forks, placement: Placement
) -> None:
    """The renewed proof looks at the events again: the generation does not show them."""
    server = world.boot("compute-1")
    world.claim_also(server, DESTINATION)
    databases.set_back(world.paths, hours=48)
    planned = detect(forks, ansible, server)
    servers.act(world.cloud, server, "reboot", {"type": "HARD"})
    servers.settle(world.cloud, server, "compute-1")

    assert planned["kind"] == "extra_host"
    assert remediate(forks, ansible) == ["skipped"]
    assert len(placement.held(server)) == 2


def test_placement_without_a_time_is_said_once(
    wires: Wires, ansible: Ansible, world: World
) -> None:
    """Nothing is old enough then; without a minimum age nothing has to be."""
    orphans = [world.boot("compute-1") for _count in range(2)]
    for server in orphans:
        world.claim_also(server, DESTINATION)

    def hide_time(asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        return ask(asked).replace_header("Date", None).replace_header("Last-Modified", None)

    wires.placement.middlebox = hide_time
    dest = ansible.folder / "findings.json"
    aged = ansible.module("orphan_detect", consumers=orphans, dest=str(dest))
    found = json.loads(dest.read_text())
    young = ansible.module("orphan_detect", consumers=orphans, min_age="0", unknown_min_age="0")

    assert len(aged["warnings"]) == 1
    assert aged["summary"]["verdicts"]["protected"] == len(orphans)
    assert found["cloud"]["tells_time"] is False
    assert young["summary"]["verdicts"]["orphaned"] == len(orphans)
