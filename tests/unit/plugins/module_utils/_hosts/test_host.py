"""How a host is found."""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._hosts.host import (
    Host,
    find_host,
    list_host_providers,
    list_other_spellings,
)
from ..host_site import Site
from ..world import World


def _find(world: World, name: str, services: t.Any = None) -> Host:
    nodes = tuple(world.nodes.values())
    return find_host(name, services or world.services, nodes, world.providers, ())


def _list_uuids(entries: t.Iterable[t.Any]) -> list[str]:
    return [entry.uuid for entry in entries]


def test_host_is_found_by_its_service_and_by_its_compute_node() -> None:
    world = World()
    root = world.host("old.example.org", service="old")

    for name in ("old", "old.example.org", root):
        host = _find(world, name)
        assert (host.name, _list_uuids(host.nodes), _list_uuids(host.roots)) == (
            "old",
            [root],
            [root],
        )


def test_a_deleted_host_is_not_the_one_whose_node_has_its_name() -> None:
    """A decommissioning that is repeated must not go on with the host that took its place."""
    world = World()
    world.host("short")
    nodes = [d.replace(node, host="short.example.org") for node in world.nodes.values()]

    def find(was_service: bool) -> Host:
        return find_host("short", (), nodes, world.providers, (), was_service)

    assert find(was_service=False).name == "short.example.org"
    assert not find(was_service=True).exists


def test_nodes_of_one_service_are_decommissioned_together() -> None:
    world = World()
    roots = [world.host(f"node-{number}", service="ironic") for number in (1, 2, 3)]

    assert _list_uuids(_find(world, "ironic").roots) == roots
    with pytest.raises(InvalidInput, match=r"one of 3 .*ironic"):
        _find(world, "node-2")


@pytest.mark.parametrize("ids", [("one", "other"), ("one", None), (None, "other")])
def test_host_with_services_in_two_cells_is_refused(ids: tuple[str | None, ...]) -> None:
    """The host of one may live while the other is what is left of it in another cell."""
    world = World()
    world.host("compute-17")
    (service,) = [one for one in world.services if one.host == "compute-17"]
    services = [d.replace(service, id=one) for one in ids]

    with pytest.raises(InvalidInput, match="compute-17 has 2 services nova-compute"):
        _find(world, "compute-17", services)


def test_leftovers_of_a_deleted_service_are_found_by_name_and_by_nova_records() -> None:
    site = Site()
    child = site.provider("old_gpu", site.old)
    del site.nodes[site.old]
    del site.services[0]
    by_name = site.found()

    assert (by_name.service, by_name.nodes) == (None, ())
    assert _list_uuids(list_host_providers(by_name, site.providers)) == [child, site.old]
    assert _list_uuids(site.found("anything", [site.old]).roots) == [site.old]


@pytest.mark.parametrize("name", ["old", "old.example.org"])
def test_tree_that_blocks_the_name_of_a_reinstalled_host_is_included(name: str) -> None:
    world = World()
    new = world.host("old.example.org", service="old")
    kept = world.provider("old.example.org")
    del world.providers[new]

    assert _list_uuids(_find(world, name).roots) == [kept]


def test_provider_with_a_compute_node_is_never_taken_for_a_leftover() -> None:
    site = Site()

    assert site.found("gone", [site.new]).roots == ()


@pytest.mark.parametrize(
    ("name", "is_spelling"),
    [
        ("Compute-1", True),
        ("compute-1.example.org", True),
        ("COMPUTE-1.Example.org", True),
        ("compute-11", False),
        ("compute-2.example.org", False),
    ],
)
def test_a_host_in_another_spelling_is_not_gone(name: str, is_spelling: bool) -> None:
    labels = ["compute-1"] if is_spelling else []

    assert list_other_spellings(name, ["compute-1", "compute-3.example.org"]) == labels
    assert list_other_spellings("Compute-3", ["compute-3.example.org"]) == ["compute-3.example.org"]
    # The same name in two sites.
    assert list_other_spellings("compute-3.example.com", ["compute-3.example.org"]) == []


def test_unknown_host_is_reported_as_unknown() -> None:
    assert not Site().found("odl").exists
