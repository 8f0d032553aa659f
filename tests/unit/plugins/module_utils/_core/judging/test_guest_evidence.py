"""Domains that a run was shown on hosts: they can keep an allocation, and never convict one."""

import dataclasses as d

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.other_services import HostGuests
from ...judging import NO_MINIMUM_AGE
from ...situations import (
    Situation,
    deleted_migration,
    deleted_server,
    ended_migration,
    evacuated_source,
    extra_host,
    unknown_consumer,
)
from ..scene import PooledScene

LONG_AGO = "2020-01-01T00:00:00Z"


def unhosted_server(cloud: PooledScene) -> str:
    return cloud.server(None, cloud.here, status="SHELVED_OFFLOADED")


def misplaced_allocation(cloud: PooledScene) -> str:
    return cloud.server(cloud.there, cloud.here)


def unreverted_allocation(cloud: PooledScene) -> str:
    server = cloud.server(cloud.there, cloud.here)
    cloud.comes(server, "reverted", cloud.there)
    return server


# Each has an allocation on the host `here`, which is not where Nova has the server.
SITUATIONS = (
    deleted_server,
    deleted_migration,
    unknown_consumer,
    evacuated_source,
    extra_host,
    ended_migration,
    unhosted_server,
    misplaced_allocation,
    unreverted_allocation,
)
situations = pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.__name__)


def _find(cloud: PooledScene, consumer: str, *guests: HostGuests) -> Finding:
    return cloud.found(consumer, d.replace(NO_MINIMUM_AGE, guests=guests))


def _seen(
    cloud: PooledScene,
    consumer: str,
    host: str = "compute-1",
    node: str | None = None,
    state: str = "running",
    read_at: str = LONG_AGO,
) -> HostGuests:
    return HostGuests(host, node, read_at, {}, {_server_of(cloud, consumer): state})


def _server_of(cloud: PooledScene, consumer: str) -> str:
    return cloud.migrations[consumer].server if consumer in cloud.migrations else consumer


@situations
@pytest.mark.parametrize("state", ["running", "paused", "shut off"])
def test_domain_on_another_host_keeps_every_allocation(situation: Situation, state: str) -> None:
    cloud = PooledScene()
    consumer = situation(cloud)
    assert _find(cloud, consumer).kind == situation.__name__

    for node in (None, cloud.here):
        finding = _find(cloud, consumer, _seen(cloud, consumer, node=node, state=state))
        assert (finding.kind, finding.verdict) == ("guest_elsewhere", "protected")
        assert not finding.change and not finding.freed_providers
        assert "compute-1" in finding.reason and LONG_AGO in finding.reason
        known = cloud.servers.get(_server_of(cloud, consumer))
        host = known and known.host
        assert finding.reason.id == "domain_elsewhere"
        assert f"on {host or 'no host'}:" in finding.reason


@situations
@pytest.mark.parametrize("place", ["former name", "unknown node", "another host's node"])
def test_domain_on_a_host_that_is_not_identified_keeps_every_allocation(
    situation: Situation, place: str
) -> None:
    cloud = PooledScene()
    consumer = situation(cloud)
    node = {"unknown node": cloud.uuid(), "another host's node": cloud.host("compute-3")}
    seen = _seen(cloud, consumer, "renamed-since", node.get(place))

    assert _find(cloud, consumer, seen).kind == "guest_elsewhere"


@situations
def test_results_without_a_domain_of_the_server_elsewhere_decide_nothing(
    situation: Situation,
) -> None:
    cloud = PooledScene()
    consumer = situation(cloud)
    expected = _find(cloud, consumer)
    others = [HostGuests("compute-1", cloud.here, LONG_AGO, {}, {cloud.uuid(): "running"})]
    if consumer in cloud.servers and cloud.servers[consumer].host:
        # By its UUID, the host is the server's own, whatever it is called now.
        others.append(_seen(cloud, consumer, "renamed-since", cloud.there))
        others.append(_seen(cloud, consumer, "compute-2"))

    for seen in others:
        assert _find(cloud, consumer, seen) == expected
