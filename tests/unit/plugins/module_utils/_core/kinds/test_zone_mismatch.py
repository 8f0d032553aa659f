"""Which hosts and servers are in a wrong availability zone."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Aggregate
from .......plugins.module_utils._core.models.snapshot import Scope
from ...world import answer
from ..scene import Scene

RACK, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
TWO_ZONES = (
    Aggregate(RACK, "first", "a", ("compute-1", "compute-2"), id=7),
    Aggregate(OTHER, "second", "b", ("compute-1",), id=8),
    Aggregate("c", "third", None, ("compute-2",), id=9),
    Aggregate("d", "fourth", "a", ("compute-2",), id=10),
)


class Site(Scene):
    """Two hosts, and a server on the first."""

    def __init__(self) -> None:
        super().__init__()
        self.server(self.here, self.here)

    def findings(self, **changes: t.Any) -> list[Finding]:
        return self.find_kind("zone_mismatch", **changes)


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_host_in_two_zones_is_reported_with_their_aggregates(site: Site) -> None:
    (finding,) = site.findings(aggregates=TWO_ZONES)

    assert finding.id == "zone_mismatch/compute-1"
    assert finding.reason.id == "host_in_two_zones"
    assert "zone a by aggregate first (7), zone b by aggregate second (8)" in finding.reason


def test_zones_are_named_in_their_order(site: Site) -> None:
    first, second = TWO_ZONES[:2]
    aggregates = (d.replace(first, zone="b"), d.replace(second, zone="a"))
    (finding,) = site.findings(aggregates=aggregates)

    assert "zone a by aggregate second (8), zone b by aggregate first (7)" in finding.reason


def test_aggregates_without_a_zone_are_in_none(site: Site) -> None:
    aggregates = (*TWO_ZONES, d.replace(TWO_ZONES[0], uuid="e", zone=None, name="zoneless"))
    (finding,) = site.findings(aggregates=aggregates)

    assert "in 2 availability zones" in finding.reason and "zoneless" not in finding.reason


def test_hosts_that_are_right_or_unknown_do_not_hide_a_later_one(site: Site) -> None:
    aggregates = [
        Aggregate(RACK, "first", "a", ("absent", "compute-1", "compute-2"), id=7),
        Aggregate(OTHER, "second", "b", ("absent", "compute-2"), id=8),
    ]
    found = site.findings(aggregates=tuple(aggregates))

    assert [finding.subject for finding in found] == ["compute-2"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aggregates": TWO_ZONES[2:]},
        {"aggregates": TWO_ZONES, "services": answer("GET /os-services", 500)},
        {"aggregates": TWO_ZONES, "scope": Scope(hosts=("compute-2",)), "trees": ()},
    ],
    ids=["no aggregates", "one zone", "unsound", "out of scope"],
)
def test_host_in_one_zone_or_none_is_no_finding(site: Site, changes: dict[str, t.Any]) -> None:
    assert site.findings(**changes) == []


def test_servers_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    servers = [site.server(site.there, site.there, pinned_zone=zone) for zone in (None, "a", "b")]
    services = answer(
        "GET /os-services", 200, tuple(d.replace(row, zone="a") for row in site.services)
    )
    found = site.findings(services=services, services_after=services)

    assert [finding.subject for finding in found] == servers[-1:]
    assert found[0].reason.id == "server_outside_its_zone"


@pytest.mark.parametrize(
    ("server", "zone", "zone_after", "command"),
    [
        ({"pinned_zone": "b"}, "a", "a", "openstack server migrate --live-migration"),
        ({"pinned_zone": "b", "status": "SHUTOFF"}, "a", "a", "openstack server migrate"),
        ({"pinned_zone": "a"}, "a", "a", None),
        ({"pinned_zone": None}, "a", "a", None),
        ({"pinned_zone": "b", "task_state": "migrating"}, "a", "a", None),
        ({"pinned_zone": "b", "host": None}, "a", "a", None),
        ({"pinned_zone": "b"}, "a", "b", None),
        ({"pinned_zone": "b"}, "a,b", "a,b", None),
        ({"pinned_zone": "b"}, None, None, None),
    ],
)
def test_server_outside_of_its_zone_is_to_be_moved(
    site: Site,
    server: dict[str, t.Any],
    zone: str | None,
    zone_after: str | None,
    command: str | None,
) -> None:
    uuid = site.server(site.there, site.there)
    shape = answer(f"GET /servers/{uuid}", 200, d.replace(site.servers[uuid], **server))
    evidence = site.evidence(uuid, shape=shape)
    services = [
        answer("GET /os-services", 200, tuple(d.replace(row, zone=name) for row in site.services))
        for name in (zone, zone_after)
    ]
    found = site.findings(evidence=evidence, services=services[0], services_after=services[1])

    assert [(finding.subject, *finding.commands) for finding in found] == (
        [(uuid, f"{command} {uuid}")] if command else []
    )
