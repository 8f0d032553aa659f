"""Hosts of which only the resource provider is left.

Consumers with allocations on it are found, and removed where that is proven.
"""

import dataclasses as d
import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import holdings, servers
from minicloud_ctl.scenarios import deleted, leftovers
from minicloud_ctl.scenarios.registry import Context

from .support import Ansible, Minicloud, Placement, Run
from .world import CELL1, CLAIM, World

pytestmark = pytest.mark.long
KINDS = ["deleted_server", "unhosted_server", "extra_host", "unknown_consumer"]


@pytest.fixture(scope="module", autouse=True)
def _one_nova(minicloud: Minicloud, world: World) -> Iterator[None]:
    """Where another region has a Nova on the same Placement, a provider may be one of its hosts."""
    minicloud.scenario("healthy")
    with world.one_region():
        yield


@d.dataclass(frozen=True)
class Gone:
    """A deleted host, its provider, and its consumers."""

    host: str
    root: str
    shelved: str
    settled: str
    purged: str
    doubtful: str

    @property
    def holders(self) -> set[str]:
        return {self.shelved, self.settled, self.purged, self.doubtful}


@pytest.fixture(name="gone")
def _gone(world: World, minicloud: Minicloud) -> Iterator[Gone]:
    host = f"gone-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    root = world.provider(host)
    shelved, settled, doubtful = world.boot(host), world.boot("compute-1"), world.boot("compute-2")
    # A failed migration to this host may have left a guest there.
    failed = servers.migrate(world.cloud, doubtful, host)
    servers.revert(world.cloud, doubtful)
    holdings.await_providers(world.cloud, doubtful, world.provider("compute-2"))
    world.sql(
        CELL1,
        "UPDATE migrations SET status = 'error', migration_type = 'live-migration' WHERE uuid = ?",
        failed,
    )
    context = Context(world.paths, "purged_server")
    purged, held = leftovers.delete_on(context, host, "gone_purged")
    deleted.purge(context, purged, keep_mapping=False)
    servers.shelve(world.cloud, shelved)
    holdings.await_providers(world.cloud, shelved)

    world.kill(host)
    holdings.write_back(world.cloud, purged, held)
    world.hold(shelved, {root: CLAIM})
    for server in (settled, doubtful):
        world.claim_also(server, host)
    world.delete_service(host)
    yield Gone(host, root, shelved, settled, purged, doubtful)
    for consumer in (shelved, purged):
        world.hold(consumer, {})
    for server, home in ((settled, "compute-1"), (doubtful, "compute-2")):
        world.hold(server, {world.provider(home): CLAIM})
    world.cloud.placement("DELETE", f"/resource_providers/{root}")


def _verdicts(run: Run, gone: Gone) -> dict[str, tuple[str, str]]:
    entries = {consumer: run.entry(consumer) for consumer in gone.holders}
    return {consumer: (entry["kind"], entry["verdict"]) for consumer, entry in entries.items()}


def _orphaned_provider(run: Run, gone: Gone) -> dict[str, t.Any]:
    entries = run.read("findings.json")["findings"]
    return next(entry for entry in entries if entry["id"] == f"orphaned_provider/{gone.root}")


@pytest.mark.follows("host_to_be_named")
def test_deleted_host_shows_all_its_consumers_and_loses_the_proven_ones(
    ansible: Ansible, world: World, placement: Placement, gone: Gone
) -> None:
    placement.needs("1.38", "unknown consumers can be proven")
    whole = ansible.playbook("detect_orphans", variables={"orphan_cleanup_remediate_kinds": KINDS})
    assert whole.status == 0, whole.output
    assert _verdicts(whole, gone) == {
        gone.shelved: ("unhosted_server", "orphaned"),
        gone.settled: ("extra_host", "orphaned"),
        gone.doubtful: ("extra_host", "undecided"),
        gone.purged: ("unknown_consumer", "undecided"),
    }
    some = ", ".join(sorted(gone.holders)[:3])
    provider = _orphaned_provider(whole, gone)
    assert provider["reason_id"] == "tree_has_allocations"
    assert f"({some} and 1 more)" in provider["reason"]
    assert (
        gone.host in whole.entry(gone.doubtful)["reason"]
        and gone.host in whole.entry(gone.purged)["reason"]
    )

    named = {"orphan_cleanup_hosts": [gone.host], "orphan_cleanup_remediate_kinds": KINDS}
    run = ansible.playbook("cleanup_orphans", variables=named)

    assert run.status == 0, run.output
    outcomes = {
        consumer: run.outcome(consumer)["outcome"] for consumer in gone.holders - {gone.doubtful}
    }
    assert outcomes == {gone.shelved: "removed", gone.settled: "reduced", gone.purged: "removed"}
    assert placement.held(gone.shelved) == placement.held(gone.purged) == {}
    assert placement.held(gone.settled) == {world.provider("compute-1"): CLAIM}
    assert set(placement.held(gone.doubtful)) == {world.provider("compute-2"), gone.root}
    again = ansible.playbook("detect_orphans", variables=named)
    assert gone.doubtful in _orphaned_provider(again, gone)["reason"]


@pytest.mark.parametrize("why", ["not discovered", "no trait"])
def test_provider_that_may_be_a_host_is_not_a_deleted_host(
    ansible: Ansible, world: World, placement: Placement, gone: Gone, why: str
) -> None:
    """One case is a host that Nova does not list, though its nova-compute exists.

    The other is a provider without Nova's trait.
    """
    if why == "not discovered":
        world.sql(
            CELL1, "UPDATE services SET deleted = 0 WHERE host = ? AND deleted = id", gone.host
        )
    else:
        path = f"/resource_providers/{gone.root}/traits"
        placement.change("PUT", path, {**world.cloud.placement("GET", path), "traits": []})
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={
            "orphan_cleanup_hosts": [gone.host],
            "orphan_cleanup_remediate_kinds": KINDS[2:],
        },
    )
    if why == "not discovered":
        world.sql(CELL1, "UPDATE services SET deleted = id WHERE host = ?", gone.host)

    assert run.status == 0, run.output
    assert placement.everything() == before
    found = run.entry(gone.purged)
    assert (found["kind"], found["verdict"]) == ("foreign_provider", "protected")
