"""Whether the answers of a reading contradict each other.

Each contradiction by itself, and lookalikes.
"""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import Reason
from .......plugins.module_utils._core.facts.agreement import (
    list_disagreements,
    list_doubtful_hosts,
    list_host_names,
    list_hosts_to_look_up,
)
from .......plugins.module_utils._core.facts.services import (
    list_hosts_without_service,
    list_unjudged_hosts,
)
from .......plugins.module_utils._core.facts.soundness import (
    list_failed_absence_checks,
    list_failed_checks,
)
from .......plugins.module_utils._core.models.nova import Aggregate, Service
from ...world import answer
from ..scene import Scene

HERE, THERE, NEW = "compute-1", "compute-2", "new-cell-1"


class Site(Scene):
    """Two hosts, with a live server on the first that has an ended migration."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.server(self.here, self.here)
        self.move = self.comes(self.live, "confirmed")

    def services_with(self, *hosts: str) -> t.Any:
        rows = tuple(Service("nova-compute", host, "enabled", "up") for host in hosts)
        return answer("GET /os-services", 200, rows)

    def contradiction(self, **changes: t.Any) -> Reason:
        """Return the only contradiction in a snapshot with some changes."""
        snapshot = self.snapshot(**changes)
        (sentence,) = list_disagreements(snapshot)
        assert list_failed_checks(snapshot) == (sentence,)
        return sentence


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


FOUND = {NEW: answer(f"GET /os-hosts/{NEW}", 200, True)}


def test_complete_answers_agree(site: Site) -> None:
    assert list_disagreements(site.snapshot()) == ()


def test_services_that_differ_before_and_after_are_named(site: Site) -> None:
    told = site.contradiction(services_after=site.services_with(HERE, THERE, NEW))

    assert told.id == "service_listings_differ" and NEW in told


def test_cell_that_goes_down_meanwhile_is_not_a_contradiction(site: Site) -> None:
    silent = site.silence(HERE)["services_after"]

    assert list_disagreements(site.snapshot(services_after=silent)) == ()


def test_compute_nodes_without_a_service_are_named(site: Site) -> None:
    """One of a worker's two lists of cells is newer than the other."""
    services = site.services_with(HERE)

    told = site.contradiction(services=services, services_after=services)

    assert told.id == "nodes_without_service" and THERE in told


def test_advice_that_contradictions_share_is_given_once(site: Site) -> None:
    services = site.services_with(HERE)
    told = list_disagreements(
        site.snapshot(services=services, services_after=site.services_with(), host_lookups=FOUND)
    )

    assert len(told) == 3
    assert " ".join(told).count("restart every nova-api") == 1
    assert "restart every nova-api" in told[-1]


def test_host_found_directly_and_never_listed_is_named(site: Site) -> None:
    told = site.contradiction(host_lookups=FOUND)

    assert told.id == "hosts_left_out_of_listings" and NEW in told
    assert "nova-manage cell_v2 delete_host" in told


@pytest.mark.parametrize(
    ("nodes", "failed"),
    [
        ((), [False, True]),
        # Another compute node is found, or the worker that was asked does not know the cell.
        ((f"{NEW}0",), [True, True]),
        (None, [True, True]),
    ],
)
def test_host_whose_service_was_deleted_by_hand_is_left_out_alone(
    site: Site, nodes: tuple[str, ...] | None, failed: list[bool]
) -> None:
    search = answer("GET /os-hypervisors?…", 404 if nodes is None else 200, nodes)
    snapshot = site.snapshot(host_lookups=FOUND, node_searches={NEW: search})
    checks = (list_failed_checks(snapshot), list_failed_absence_checks(snapshot))

    assert list(map(bool, checks)) == failed
    assert list_hosts_without_service(snapshot) == ([] if failed[0] else [NEW])
    assert list_unjudged_hosts(snapshot) == list_hosts_without_service(snapshot)


def test_provider_that_was_searched_for_need_not_be_a_host(site: Site) -> None:
    """In an unsound reading no host is looked up, and a host may not be discovered yet."""
    search = answer("GET /os-hypervisors?…", 200, ())

    assert not list_unjudged_hosts(site.snapshot(node_searches={NEW: search}))


@pytest.mark.parametrize("unread", ["services", "services_after"])
def test_listing_that_was_not_read_leaves_out_no_host(site: Site, unread: str) -> None:
    lookups = {HERE: answer(f"GET /os-hosts/{HERE}", 200, True)}
    snapshot = site.snapshot(host_lookups=lookups, **{unread: answer("GET /os-services", 503)})

    assert list_disagreements(snapshot) == ()
    assert len(list_failed_checks(snapshot)) == 1


def test_host_found_directly_and_listed_only_as_a_service_is_named(site: Site) -> None:
    services = site.services_with(HERE, THERE, NEW)
    assert NEW in site.contradiction(services=services, services_after=services, host_lookups=FOUND)


@pytest.mark.parametrize(("status", "doubtful"), [(404, []), (403, [NEW]), (500, [NEW])])
def test_failed_lookup_of_an_aggregate_host_closes_proofs_by_absence(
    site: Site, status: int, doubtful: list[str]
) -> None:
    lookups = {NEW: answer(f"GET /os-hosts/{NEW}", status)}
    snapshot = site.snapshot(
        aggregates=(Aggregate("uuid", "racks", None, (HERE, NEW)),), host_lookups=lookups
    )

    assert list_doubtful_hosts(snapshot) == doubtful
    assert list_failed_checks(snapshot) == ()
    failed = [check.id for check in list_failed_absence_checks(snapshot)]
    assert failed == (["listings_leave_out_hosts"] if doubtful else [])


@pytest.mark.parametrize("status", [404, 403, 500])
def test_host_that_is_not_found_is_not_a_contradiction(site: Site, status: int) -> None:
    lookups = {NEW: answer(f"GET /os-hosts/{NEW}", status)}
    assert list_disagreements(site.snapshot(host_lookups=lookups)) == ()


@pytest.mark.parametrize(
    ("status", "agrees"), [(None, False), (403, False), (500, False), (200, False), (404, True)]
)
def test_server_on_an_unlisted_host_is_looked_up(
    site: Site, status: int | None, agrees: bool
) -> None:
    server = site.server(site.here)
    site.servers[server] = d.replace(site.servers[server], host=NEW, node=NEW)
    lookups = {NEW: answer(f"GET /os-hosts/{NEW}", status, status == 200 or None)} if status else {}
    snapshot = site.snapshot(host_lookups=lookups)

    disagreements = [disagreement.id for disagreement in list_disagreements(snapshot)]
    found = "hosts_left_out_of_listings" if status == 200 else "server_host_not_listed"
    assert disagreements == ([] if agrees else [found])
    assert list_hosts_to_look_up(snapshot, snapshot.evidence.values()) == [NEW]


def test_marker_known_and_then_unknown_is_a_contradiction(site: Site) -> None:
    forgotten = site.stranger(site.here)
    known, unknown = (
        answer("GET /os-migrations?marker", 200, True),
        answer("GET /os-migrations?marker", 400),
    )
    evidence_by_uuid = site.evidence(forgotten, marker=known, markers=(known, unknown))

    told = site.contradiction(evidence=evidence_by_uuid)

    assert told.id == "migration_answers_differ" and forgotten in told


def test_migration_listed_and_then_missing_is_a_contradiction(site: Site) -> None:
    evidence_by_uuid = site.evidence(
        site.live, migrations=answer("GET /os-migrations?instance_uuid", 200, ())
    )

    told = site.contradiction(evidence=evidence_by_uuid)

    assert told.id == "migration_listings_differ" and site.move in told and site.live in told


def test_migration_deleted_with_its_server_is_not_a_contradiction(site: Site) -> None:
    gone = {
        "server": answer("GET /servers", 404),
        "migrations": answer("GET /os-migrations?instance_uuid", 200, ()),
    }

    assert list_disagreements(site.snapshot(evidence=site.evidence(site.live, **gone))) == ()


def test_unlisted_hosts_of_aggregates_are_looked_up(site: Site) -> None:
    aggregates = (Aggregate("uuid", "racks", None, (HERE, NEW)),)

    assert list_hosts_to_look_up(site.listings(aggregates=aggregates), ()) == [NEW]


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("compute-1", ("compute-1",)),
        ("compute-1.example.org", ("compute-1.example.org", "compute-1")),
    ],
)
def test_host_names_of_a_provider_include_the_one_without_domain(
    provider: str, names: tuple[str, ...]
) -> None:
    assert list_host_names(provider) == names
