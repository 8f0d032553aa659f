"""A renewed proof reads the compute nodes that it touches, and all of them where it must."""

import dataclasses as d
import typing as t
from unittest import mock

import pytest

from .......plugins.module_utils._core.changes.remediation import list_providers
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.snapshot import READ_ONE_BY_ONE, Scope, Snapshot
from .......plugins.module_utils._core.plan.plan import Step
from ...judging import NO_MINIMUM_AGE, judge
from ...nova_lives import boot, read_lives
from ..changes.test_nova_races import Cloud, open_collector


class CountingCloud(Cloud):
    """A cloud that records which compute nodes were read, and whether all were listed."""

    def __init__(self) -> None:
        super().__init__([boot(0)[0]])
        self.read: list[str] = []
        self.listed = 0
        self.here, self.there, *_others = self.world.nodes
        self.orphan = self.world.server(self.here, self.here, self.there)

    def get_hypervisor(self, uuid: str) -> t.Any:
        self.read.append(uuid)
        return super().get_hypervisor(uuid)

    def list_hypervisors(self, with_servers: bool, roots: t.Iterable[str]) -> t.Any:
        self.listed += 1
        return super().list_hypervisors(with_servers, roots)

    def renew(self, *providers: str) -> Snapshot:
        with open_collector(self) as reading:
            reading.begin_renewal({self.orphan}, set(providers))
            return reading.renew([self.orphan])


@pytest.fixture(name="cloud")
def _cloud() -> CountingCloud:
    return CountingCloud()


def _verdicts(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(finding.kind, finding.verdict) for finding in judge(snapshot, NO_MINIMUM_AGE)]


@pytest.mark.parametrize("names_both", [True, False])
def test_only_touched_compute_nodes_are_read(cloud: CountingCloud, names_both: bool) -> None:
    """A plan that names only the provider that is freed leaves the other one to a lookup."""
    snapshot = cloud.renew(*[cloud.here] * names_both, cloud.there)

    both = [cloud.there, cloud.here]
    assert cloud.read == (sorted(both) if names_both else both)
    assert cloud.listed == 0
    assert snapshot.hypervisors.request == READ_ONE_BY_ONE
    assert _verdicts(snapshot) == [("extra_host", "orphaned")]


def test_swap_is_proven_by_the_compute_nodes_of_both_consumers() -> None:
    cloud = Cloud(next(read_lives("swap resize")))
    with open_collector(cloud) as reading:
        found = judge(reading.collect(Scope()), NO_MINIMUM_AGE)
        [swap] = [finding for finding in found if finding.kind == "unreverted_allocation"]
        assert isinstance(swap.change, Change)
        providers = list_providers([Step(swap.id, swap.kind, swap.change)])
        with mock.patch.object(cloud, "list_hypervisors", side_effect=AssertionError("listed")):
            reading.begin_renewal({swap.change.consumer}, providers)
            snapshot = reading.renew([swap.change.consumer])
        again = judge(snapshot, NO_MINIMUM_AGE)

    assert [finding.change for finding in again] == [swap.change]


def _remove_the_other_host(cloud: CountingCloud) -> None:
    cloud.world.remove_host(cloud.there)


def _rename_the_provider(cloud: CountingCloud) -> None:
    """The server names a host whose compute node has another name than its provider."""
    world = cloud.world
    world.providers[cloud.here] = d.replace(world.providers[cloud.here], name="renamed")


def _add_a_service(cloud: CountingCloud) -> None:
    """Another cell may have a compute node of the same host and name."""
    host = cloud.world.nodes[cloud.here].host
    services = cloud.world.services
    services += [service for service in services if service.host == host]


@pytest.mark.parametrize(
    ("change", "names_both"),
    [(_remove_the_other_host, True), (_rename_the_provider, False), (_add_a_service, True)],
)
def test_compute_node_that_cannot_be_read_for_certain_makes_all_be_listed(
    cloud: CountingCloud, change: t.Callable[[CountingCloud], None], names_both: bool
) -> None:
    change(cloud)
    snapshot = cloud.renew(*[cloud.here] * names_both, cloud.there)

    assert cloud.listed == 1
    assert snapshot.every_node_listed


def test_many_compute_nodes_are_listed(cloud: CountingCloud) -> None:
    with open_collector(cloud) as reading:
        reading.begin_renewal({cloud.orphan}, {str(number) for number in range(101)})

    assert (cloud.listed, cloud.read) == (1, [])


def test_hosts_of_a_migration_are_read_before_the_lookups(cloud: CountingCloud) -> None:
    elsewhere = next(iter(set(cloud.world.nodes) - {cloud.here, cloud.there}))
    cloud.world.migration(cloud.orphan, elsewhere, cloud.here, "confirmed")
    with open_collector(cloud) as reading:
        reading.begin_renewal({cloud.orphan}, {cloud.here, cloud.there})
        assert elsewhere in cloud.read
        before = list(cloud.read)
        reading.renew([cloud.orphan])

    assert (cloud.read, cloud.listed) == (before, 0)


# Answers that lack what a shared provider lists


class PoolCloud(CountingCloud):
    """The orphan's disk is on a provider that hosts share."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = self.world.provider("pool", sharing=True)
        held = self.world.allocations[self.orphan].resources
        self.world.hold(self.orphan, *held, self.pool)
        self.lost: dict[str, t.Any] = {}
        self.pools_listed = 0

    def get_allocation(self, consumer: str) -> t.Any:
        answer = super().get_allocation(consumer)
        left = {key: held for key, held in answer.value.resources.items() if key not in self.lost}
        return d.replace(answer, value=d.replace(answer.value, resources=left))

    def list_allocations_on_providers(self, providers: t.Iterable[str]) -> t.Any:
        wanted = list(providers)
        self.pools_listed += self.pool in wanted
        return super().list_allocations_on_providers(wanted)

    def explain(self, reading: t.Any) -> dict[str, str]:
        return reading.explain_contradictions(reading.renew([self.orphan]))


def test_answer_that_lacks_a_shared_provider_is_no_proof() -> None:
    cloud = PoolCloud()
    with open_collector(cloud) as reading:
        reading.begin_renewal({cloud.orphan}, {cloud.here, cloud.there})
        assert cloud.explain(reading) == {}
        cloud.lost = {cloud.pool: None}
        reasons = cloud.explain(reading)

    assert list(reasons) == [cloud.orphan] and reasons[cloud.orphan].startswith("pool lists")


def test_shared_provider_is_listed_once_unless_something_has_changed() -> None:
    cloud = PoolCloud()
    with open_collector(cloud) as reading:
        reading.begin_renewal({cloud.orphan}, {cloud.here, cloud.there})
        for _proof in range(3):
            assert cloud.explain(reading) == {}
        assert cloud.pools_listed == 1

        held = dict(cloud.world.allocations[cloud.orphan].resources)
        del held[cloud.pool]
        allocations = cloud.world.allocations
        allocations[cloud.orphan] = d.replace(allocations[cloud.orphan], resources=held)
        assert cloud.explain(reading) == {}
        assert cloud.pools_listed == 2
