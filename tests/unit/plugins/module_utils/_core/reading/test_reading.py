"""Which consumers and hosts are looked up, and no more than a proof needs."""

import dataclasses as d
import threading
import types
import typing as t
from unittest import mock

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.placement import ProviderDetails
from .......plugins.module_utils._core.models.snapshot import Scope, Snapshot
from .......plugins.module_utils._core.reading import reading as reading_module
from .......plugins.module_utils._core.reading.reading import Collector
from ...judging import NO_MINIMUM_AGE, judge
from ...world import NOW, PROJECT, World, answer


class Site(World):
    """Some hosts, and readers that answer according to the world.

    Requests for the servers of a host are counted.
    """

    def __init__(self, hosts: int = 2) -> None:
        super().__init__()
        self.roots = [self.host(f"compute-{number}") for number in range(hosts)]
        self.asked_for_servers: list[str] = []
        self.asked_for_details: list[tuple[str, ...]] = []
        self.searched: list[int] = []

    def reading(self) -> Collector:
        known = self.snapshot().evidence
        placement = types.SimpleNamespace(
            workers=8,
            retried=0,
            get_allocation=lambda uuid: known[uuid].allocation,
            get_details=self._details,
            query_host_tree=lambda root: answer("GET tree", 200, self.host_tree(root)),
        )
        nova = types.SimpleNamespace(
            workers=8,
            undisturbed=threading.Event(),
            list_services=lambda: self.snapshot().services,
            list_migrations=lambda: self.snapshot().migrations,
            list_migrations_of_server=lambda uuid: known[uuid].migrations,
            list_migrations_of_host=lambda host, attempt: answer(f"GET …?host={host}", 200, ()),
            get_server=lambda uuid: known[uuid].server,
            list_hypervisor_servers=self._servers_on,
            find_deleted_server=lambda uuid, brief=False: known[uuid].deleted_listing,
            list_instance_actions=lambda uuid: known[uuid].actions,
            probe_migration_marker=lambda uuid, attempt=0: known[uuid].marker,
            list_server_rows=self._rows_of,
            list_server_uuids_in_status=lambda status, attempt: answer("GET …?status", 200, ()),
            get_host=lambda name: answer(f"GET /os-hosts/{name}", 404),
            search_nodes=lambda name: answer(f"GET /os-hypervisors?{name}", 404),
            believe_errors=lambda believe: None,
            retried=0,
            list_server_uuids=lambda project: {
                uuid for uuid, server in self.servers.items() if server.project == project
            },
            get_server_with_image_properties=lambda uuid: known[uuid].shape,
            list_attached_port_uuids=lambda uuid: known[uuid].interfaces,
        )
        neutron = types.SimpleNamespace(list_ports=lambda uuid: known[uuid].server_ports)
        session = types.SimpleNamespace(
            require_one_clock=lambda: None,
            cloud=self.snapshot().cloud,
            placement=None,
            compute=None,
            network=None,
            project=None,
            roles=frozenset(),
            block_storage=None,
            accelerator=None,
            query_other_novas=lambda: answer("GET /endpoints", 200, ()),
        )
        with (
            mock.patch.object(reading_module, "PlacementReader", lambda api: placement),
            mock.patch.object(reading_module, "NovaReader", lambda api: nova),
            mock.patch.object(reading_module, "NeutronReader", lambda *_: neutron),
        ):
            return Collector(t.cast("t.Any", session))

    def looked_at(self, *consumers: str, **scope: t.Any) -> Snapshot:
        index = ListingsIndex(self.listings(scope=Scope(**scope)))
        reader = self.reading()._make_evidence_reader(index, NOW, index.listings.scope, fresh=False)
        return reader.finish(consumers)

    def refresh(self, consumers: list[str], **changes: t.Any) -> Snapshot:
        """A renewed proof about some consumers."""
        return self.reading().refresh_evidence(ListingsIndex(self.listings(**changes)), consumers)

    def _details(
        self, providers: t.Sequence[str], parts: t.Sequence[str]
    ) -> dict[str, ProviderDetails]:
        self.asked_for_details += [(provider, *parts) for provider in providers]
        traits = {root: "COMPUTE_NODE" if root in self.were_novas else "X" for root in providers}
        return {root: ProviderDetails(traits=frozenset([one])) for root, one in traits.items()}

    def _rows_of(self, uuid: str, attempt: int) -> t.Any:
        self.searched.append(attempt)
        rows = (uuid,) if uuid in self.servers else ()
        return answer(f"GET /servers?uuid={uuid}", 200, rows)

    def _servers_on(self, node: str) -> tuple[str, ...]:
        self.asked_for_servers.append(node)
        return ()


@pytest.fixture(name="site")
def _site() -> Site:
    return Site(3)


def _judge(snapshot: Snapshot) -> dict[str, Finding]:
    """Return the findings by consumer."""
    return {finding.consumer: finding for finding in judge(snapshot, NO_MINIMUM_AGE)}


def test_lookup_of_a_server_is_kept_beside_that_of_its_migration(site: Site) -> None:
    """Its migration is looked up as well, with fewer requests about it."""
    here, there, other = site.roots
    server = site.server(here, there)
    migration = site.migration(server, other, here, "confirmed", other)
    found = _judge(site.looked_at(server, migration))

    assert found[server].kind == "misplaced_allocation" and found[server].change
    assert found == _judge(site.looked_at(migration, server))


def test_project_filter_uses_the_project_of_the_server(site: Site) -> None:
    here, *_others = site.roots
    foreign_claim = site.server(here, here)
    site.allocations[foreign_claim] = d.replace(site.allocations[foreign_claim], project="theirs")
    foreign_server = site.server(here, here, project="theirs")
    snapshot = site.looked_at(foreign_claim, foreign_server, projects=(PROJECT,))

    assert snapshot.candidates == (foreign_claim,)
    assert [finding.kind for finding in judge(snapshot, NO_MINIMUM_AGE)] == ["wrong_owner"]


def test_server_out_of_scope_is_not_judged_because_of_its_migration(site: Site) -> None:
    here, there, _other = site.roots
    server = site.server(here, here, there, project="theirs")
    emptied = site.migration(server, there, here, "confirmed")
    held = site.migration(server, there, here, "confirmed", there)

    assert site.looked_at(server, emptied, held, projects=(PROJECT,)).candidates == ()


def _without_servers(site: Site) -> t.Any:
    """Return the listing of compute nodes as Nova returns it without their servers."""
    listed = site.listings().hypervisors
    nodes = tuple(d.replace(node, servers=None) for node in listed.value or ())
    return d.replace(listed, value=nodes)


def test_every_cell_is_searched_for_an_unknown_server_before_a_write() -> None:
    """Its row was archived since detection, and so Nova does not know it."""
    site = Site(30)
    site.server(site.roots[1], site.roots[1])
    server = site.server(site.roots[0], site.roots[0])
    site.delete(server, remembered=False)
    again = site.refresh([server], hypervisors=_without_servers(site))

    assert site.searched == list(range(10))
    # And the host on which it has its allocation: it fails where a search leaves its cell out.
    assert site.asked_for_servers == [site.roots[0]]
    assert _judge(again)[server].verdict == "orphaned"


def test_live_server_without_an_instance_mapping_keeps_its_allocation() -> None:
    """Every direct lookup of it is a 404, and only a search of its cell shows its row."""
    site = Site(30)
    site.server(site.roots[1], site.roots[1])
    server = site.server(site.roots[0], site.roots[0])
    site.unmapped.add(server)
    site.answers("actions", server, 404)
    again = site.refresh([server], hypervisors=_without_servers(site))

    assert site.searched == [0]
    found = _judge(again)[server]
    assert found.verdict == "undecided" and "mapping is lost" in found.reason


def test_search_that_is_not_answered_proves_nothing() -> None:
    site = Site(30)
    site.server(site.roots[1], site.roots[1])
    stranger = site.stranger(site.roots[0])
    reader = site.reading()
    reader._nova.list_server_rows = lambda uuid, attempt: answer("GET /servers?uuid", 503)
    listings = site.listings(hypervisors=_without_servers(site))
    again = reader.refresh_evidence(ListingsIndex(listings), [stranger])

    assert _judge(again)[stranger].verdict == "undecided"


@pytest.mark.parametrize("together", [True, False])
def test_lookup_of_a_server_keeps_the_evidence_of_its_migration(together: bool) -> None:
    site = Site()
    here, there = site.roots
    server = site.server(there, there, here)
    migration = site.migration(server, here, there, "error", here)
    again = site.refresh([migration, server] if together else [migration])

    assert again.evidence[server].actions.status == 200


@pytest.mark.parametrize("servers", [True, False])
def test_migration_host_is_asked_for_the_server_before_its_removal(servers: bool) -> None:
    """The guest runs where only the ended migration has an allocation.

    Nova has lost its mapping, and remembers another row of it as deleted.
    """
    site = Site()
    here, there = site.roots
    server = site.server(here, there)
    migration = site.migration(server, here, there, "error", here)
    site.unmapped.add(server)
    site.deleted[server] = d.replace(site.servers[server], status="DELETED")
    listed = site.listings()
    shown = {node.uuid: node.servers for node in listed.hypervisors.value or ()}
    reading = site.reading()
    reading._nova.list_hypervisor_servers = lambda node: shown[node]
    if not servers:
        listed = d.replace(listed, hypervisors=_without_servers(site))
    again = reading.refresh_evidence(ListingsIndex(listed), [migration])

    assert _judge(again)[migration].verdict == "undecided"


def test_renewed_proof_reads_traits_only_of_providers_without_a_compute_node(site: Site) -> None:
    here, gone, _other = site.roots
    pool, somebodys = site.provider("pool", sharing=True), site.provider("somebody's")
    server = site.server(here, here, gone, pool)
    stranger = site.stranger(somebodys)
    site.remove_host(gone)
    again = site.refresh([server, stranger])

    assert sorted(site.asked_for_details) == sorted([(gone, "traits"), (somebodys, "traits")])
    found = _judge(again)
    assert (found[server].kind, found[server].freed_providers) == ("extra_host", {gone})
    assert found[stranger].kind == "foreign_provider"


def test_only_a_renewed_proof_treats_its_consumers_as_named(site: Site) -> None:
    """The plan has a consumer that Nova does not know, on a deleted host that the user named."""
    here, gone, _other = site.roots
    site.server(here, here)
    stranger = site.stranger(gone)
    site.remove_host(gone)
    again, otherwise = _judge(site.refresh([stranger])), _judge(site.looked_at(stranger))

    assert (again[stranger].kind, again[stranger].verdict) == ("unknown_consumer", "orphaned")
    assert otherwise[stranger].verdict == "undecided"


@pytest.mark.parametrize("down", [True, False])
def test_servers_of_a_host_are_listed_by_host_name_while_a_cell_is_down(
    site: Site, down: bool
) -> None:
    """For a single compute node Nova fails when a cell is down.

    It reaches that cell before it finds the node.
    """
    server = site.server(site.roots[0], site.roots[0])
    reading = site.reading()
    reading._nova.list_hypervisor_servers = mock.Mock(side_effect=CloudError("Nova answered 500"))
    reading._nova.list_server_uuids_on_host = lambda host: answer(
        "GET /servers?host", 200, (server,) if host == "compute-0" else ()
    )
    listed = d.replace(site.listings(), hypervisors=_without_servers(site))
    if not down:
        with pytest.raises(CloudError):
            reading.add_servers(listed, [site.roots[0]])
        return
    site.services[2] = d.replace(site.services[2], status="UNKNOWN", state=None)
    found = reading.add_servers(listed, [site.roots[0]]).hypervisors.value or ()

    shown = {node.uuid: node.servers for node in found if node.servers is not None}
    assert shown == {site.roots[0]: (server,)}


def test_live_server_is_found_on_a_host_with_an_outdated_server_count(site: Site) -> None:
    """nova-compute writes that number only from time to time.

    The newest servers of the cloud may be failed boots, which have no host.
    """
    live = site.server(site.roots[0], site.roots[0])
    failed = site.server(status="ERROR")
    shown = site.snapshot()
    reading = site.reading()
    reading._listings._session = t.cast(
        "t.Any", types.SimpleNamespace(cloud=shown.cloud, project=PROJECT)
    )
    reading._placement.list_providers = lambda: shown.providers
    reading._nova.list_aggregates = lambda: ()
    at_host = {"compute-0": (site.servers[live],)}
    listed = {True: shown.hypervisors.value, False: ()}
    listed[False] = tuple(
        d.replace(node, servers=None, running_vms=0) for node in listed[True] or ()
    )
    nova = reading._nova
    nova.list_newest_servers = lambda _limit: answer("GET", 200, (site.servers[failed],))
    nova.list_newest_servers_on_host = lambda host, _limit: answer("GET", 200, at_host[host])
    nova.list_hypervisors = lambda with_servers, _roots: answer("GET", 200, listed[with_servers])

    snapshot = reading.collect_listings(with_servers=False)

    assert [sample.value and sample.value.uuid for sample in snapshot.samples] == [live]
    assert snapshot.sampled_projects == (PROJECT,) and snapshot.control is not None


def test_the_cloud_as_a_whole_has_no_candidates(site: Site) -> None:
    reading = site.reading()
    reading._listings = t.cast("t.Any", types.SimpleNamespace(read=lambda *_: site.listings()))
    snapshot = reading.collect_cloud()

    assert (snapshot.candidates, snapshot.evidence) == ((), {})
    assert snapshot.providers == site.providers


def test_a_renewed_proof_makes_no_index_of_its_own(site: Site) -> None:
    """A run with many changes renews many proofs, and the listings stay the same."""
    server = site.server(site.roots[0], site.roots[0])
    index = ListingsIndex(site.listings())
    reading = site.reading()
    with mock.patch.object(ListingsIndex, "__init__", side_effect=AssertionError("made again")):
        again = reading.refresh_evidence(index, [server])

    assert again.candidates == (server,)
    assert again.scope == Scope(consumers=(server,)) and index.listings.scope == Scope()
