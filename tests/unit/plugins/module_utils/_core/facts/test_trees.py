"""What may be deleted of a host, and what prevents it."""

import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError, InvalidInput, UnsoundReading
from .......plugins.module_utils._core.facts.trees import (
    check_no_compute_node,
    describe_consumers,
    find_tree,
    require_compute_nodes,
)
from .......plugins.module_utils._core.models.nova import Hypervisor, Service
from .......plugins.module_utils._core.models.placement import Provider
from .....reasons import has_id
from ...world import answer

GHOST = "0a000000-0000-4000-8000-000000000001"
CHILD = "0b000000-0000-4000-8000-000000000002"
GRANDCHILD = "0c000000-0000-4000-8000-000000000003"
HOST = "0d000000-0000-4000-8000-000000000004"
TWIN = "0e000000-0000-4000-8000-000000000005"
PROVIDERS = {
    GHOST: Provider(GHOST, "ghost.example.org", 7, GHOST, None),
    GRANDCHILD: Provider(GRANDCHILD, "a port", 3, GHOST, CHILD),
    CHILD: Provider(CHILD, "an agent", 2, GHOST, GHOST),
    HOST: Provider(HOST, "compute-1", 1, HOST, None),
    TWIN: Provider(TWIN, "compute-1-twin", 1, TWIN, None),
}
NODES = (
    Hypervisor(HOST, "compute-1", "compute-1", "down", "enabled", None),
    Hypervisor(TWIN, "compute-1-twin", "compute-1", "up", "enabled", None),
)
SERVICE = Service("nova-compute", "compute-1", "enabled", "down", id=HOST)


@pytest.mark.parametrize("name", ["ghost.example.org", GHOST, GHOST.upper()])
def test_tree_is_ordered_children_first(name: str) -> None:
    assert [provider.uuid for provider in find_tree(name, PROVIDERS)] == [GRANDCHILD, CHILD, GHOST]


def test_provider_named_after_the_uuid_of_another_is_not_confused_with_it() -> None:
    posing = {TWIN: Provider(TWIN, GHOST, 1, TWIN, None)}
    others = {uuid: provider for uuid, provider in PROVIDERS.items() if uuid != TWIN}

    assert [provider.uuid for provider in find_tree(GHOST, {**posing, **others})] == [
        GRANDCHILD,
        CHILD,
        GHOST,
    ]
    assert [provider.uuid for provider in find_tree(GHOST, posing)] == [TWIN]


@pytest.mark.parametrize("name", ["a port", CHILD])
@pytest.mark.parametrize("is_root_listed", [True, False])
def test_part_of_a_tree_is_not_deleted(name: str, is_root_listed: bool) -> None:
    providers = dict(PROVIDERS)
    if not is_root_listed:
        del providers[GHOST]

    with pytest.raises(InvalidInput, check=has_id("not_a_root")):
        find_tree(name, providers)


@pytest.mark.parametrize(
    "name", ["nonesuch", "Ghost.example.org", "ghost", "0f000000-0000-4000-8000-000000000000"]
)
def test_unknown_name_has_no_tree(name: str) -> None:
    assert find_tree(name, PROVIDERS) == ()


@pytest.mark.parametrize(
    ("consumers", "said"),
    [
        ([], ""),
        (["a"], "1 consumer still has an allocation on it: a."),
        (["b", "a"], "2 consumers still have allocations on it: a, b."),
        (
            ["e", "d", "c", "b", "a"],
            "5 consumers still have allocations on it: a, b, c and 2 more.",
        ),
    ],
)
def test_only_a_few_consumers_are_named(consumers: list[str], said: str) -> None:
    assert describe_consumers({consumer: {} for consumer in consumers}, "it") == said


def _judge(root: str = GHOST, **other: t.Any) -> None:
    given = {
        "providers": PROVIDERS,
        "nodes": answer("GET /os-hypervisors/detail", 200, NODES),
        "services": answer("GET /os-services", 200, (SERVICE,)),
        "other_novas": (),
        "lookups": {"ghost": answer("GET /os-hosts/ghost", 404)},
        "search": answer("GET /os-hypervisors?ghost", 404),
        **other,
    }
    check_no_compute_node(PROVIDERS[root], **given)


def _beside(host: str, state: str | None, status: str = "enabled") -> dict[str, t.Any]:
    """Let Nova list another service than that of the host."""
    service = Service("nova-compute", host, status, state)
    return {"services": answer("GET /os-services", 200, (SERVICE, service))}


def test_tree_without_a_compute_node_belongs_to_no_host() -> None:
    _judge()


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"root": HOST}, "is_a_listed_node"),
        ({"nodes": answer("GET /os-hypervisors/detail", 500)}, "compute_nodes_unread"),
        ({"nodes": answer("GET /os-hypervisors/detail", 200, ())}, "nodes_not_in_placement"),
        ({"providers": {GHOST: PROVIDERS[GHOST]}}, "nodes_not_in_placement"),
        (_beside("compute-9", None, "UNKNOWN"), "root_may_be_in_down_cell"),
        (_beside("ghost", "down"), "root_may_be_of_service"),
        (_beside("GHOST.example", "down"), "root_may_be_of_service"),
        (_beside("ghost", "up"), "root_may_be_of_service"),
        ({"other_novas": ("north",)}, "root_may_be_of_other_nova"),
        ({"search": answer("GET /os-hypervisors?ghost", 200, ())}, "root_is_of_unlisted_node"),
        ({"lookups": {"ghost": answer("GET /os-hosts/ghost", 200, True)}}, "root_lookup_failed"),
        ({"lookups": {"ghost": answer("GET /os-hosts/ghost", 403)}}, "root_lookup_failed"),
    ],
)
def test_tree_possibly_of_a_host_is_kept(other: dict[str, t.Any], reason: str) -> None:
    with pytest.raises(UnsoundReading, check=has_id(reason)):
        _judge(**other)


def test_listed_and_found_host_keeps_no_other_tree() -> None:
    """Its compute node has another provider: this one occupies its name."""
    _judge(lookups={"compute-1": answer("GET /os-hosts/compute-1", 200, True)})


def test_missing_listing_of_services_keeps_the_tree() -> None:
    with pytest.raises(CloudError, match="services"):
        _judge(services=answer("GET /os-services", 500))


@pytest.mark.parametrize(
    "service",
    [
        Service("nova-compute", "ghost-2", "enabled", "down"),
        Service("nova-conductor", "ghost", "enabled", "up"),
        Service("nova-compute", "compute-2", "enabled", "up"),
        Service("nova-compute", "compute-1", "enabled", "up"),
    ],
)
def test_other_services_do_not_keep_a_tree(service: Service) -> None:
    _judge(services=answer("GET /os-services", 200, (service,)))


def test_failed_listing_of_nodes_is_not_an_empty_one() -> None:
    with pytest.raises(UnsoundReading, check=has_id("compute_nodes_unread")):
        require_compute_nodes(answer("GET /os-hypervisors/detail", 500))
