# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which consumers are looked up after a few changes."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.models.memory import (
    Memory,
    RememberedNode,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import (
    Flavor,
    Migration,
    Server,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import Provider
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    Scope,
    Shard,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.incremental import (
    Changes,
    choose_consumers,
    explain_changed_hosts,
    list_changed_providers,
    merge_allocations,
)

HERE, THERE, POOL, CHILD = "root-1", "root-2", "pool", "child-1"
SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
WITHOUT_DISK = {"VCPU": 1, "MEMORY_MB": 512}
PROVIDERS = {
    HERE: Provider(HERE, "compute-1", 5, HERE, None),
    THERE: Provider(THERE, "compute-2", 5, THERE, None),
    CHILD: Provider(CHILD, "compute-1_pci", 5, HERE, HERE),
    POOL: Provider(POOL, "pool", 5, POOL, None, sharing=True),
}
FLAVOR = Flavor(vcpus=1, ram=512, disk=1, ephemeral=0, swap=0, extra_specs={})


def make_memory(**fields: t.Any) -> Memory:
    nodes = (
        RememberedNode(HERE, "compute-1", "node-1", 1),
        RememberedNode(THERE, "compute-2", "node-2", 0),
    )
    memory = Memory(
        source="cloud",
        full_at="2026-11-22T03:00:00Z",
        read_at="2026-11-22T03:45:00Z",
        changes_since="2026-11-22T03:00:00Z",
        generations=dict.fromkeys(PROVIDERS, 5),
        allocations={"server": {HERE: SMALL}},
        hosts=frozenset({"compute-1", "compute-2"}),
        nodes=nodes,
        watched=frozenset(),
        has_open_migrations=False,
    )
    return d.replace(memory, **fields)


def make_server(**fields: t.Any) -> Server:
    server = Server(
        uuid="server",
        name="web",
        status="ACTIVE",
        project="project",
        user="user",
        host="compute-1",
        node="node-1",
        task_state=None,
        task_known=True,
        host_known=True,
        created=None,
        updated=None,
        terminated_at=None,
        image="image",
        flavor=FLAVOR,
        image_properties={},
    )
    return d.replace(server, **fields)


def make_migration(status: str) -> Migration:
    return Migration(
        uuid="migration",
        server="server",
        type="migration",
        status=status,
        source_compute="compute-1",
        source_node="node-1",
        dest_compute="compute-2",
        dest_node="node-2",
        created_at=None,
        updated_at=None,
    )


def choose(
    memory: Memory,
    *servers: Server,
    migrations: tuple[Migration, ...] = (),
    changed: t.Collection[str] = (),
    allocations: t.Any = None,
    shard: Shard | None = None,
) -> list[str]:
    """Choose the consumers after changes; the providers in `changed` have new generations."""
    providers = dict(PROVIDERS)
    for uuid in changed:
        providers[uuid] = d.replace(providers[uuid], generation=6)
    changes = Changes(providers, servers, migrations)
    read = list_changed_providers(memory, providers)
    merged = merge_allocations(memory, read, allocations or {})
    return choose_consumers(memory, changes, merged, Scope(shard=shard))


def test_nothing_is_looked_up_without_a_change() -> None:
    assert choose(make_memory()) == []


def test_consumers_that_were_not_in_order_are_looked_up_again() -> None:
    assert choose(make_memory(watched=frozenset({"stray"}))) == ["stray"]


@pytest.mark.parametrize(
    "allocations",
    [
        {"server": {HERE: {**SMALL, "VCPU": 2}}},
        {"server": {HERE: SMALL, CHILD: {"CUSTOM_VF": 1}}},
        {"server": {HERE: SMALL, THERE: SMALL}},
        # It has none any more.
        {},
    ],
)
def test_consumer_with_another_allocation_is_looked_up(allocations: t.Any) -> None:
    changed = [HERE, CHILD, THERE]
    assert choose(make_memory(), changed=changed, allocations=allocations) == ["server"]


def test_new_consumer_is_looked_up() -> None:
    allocations = {"server": {HERE: SMALL}, "stray": {HERE: SMALL}}
    assert choose(make_memory(), changed=[HERE], allocations=allocations) == ["stray"]


def test_new_generation_alone_changes_nothing() -> None:
    assert choose(make_memory(), changed=[HERE], allocations={"server": {HERE: SMALL}}) == []


@pytest.mark.parametrize(
    ("fields", "allocations"),
    [
        ({}, {HERE: SMALL}),
        # It boots from a volume.
        ({"image": None, "volumes": ("volume",)}, {HERE: WITHOUT_DISK}),
        # It may boot from a volume.
        ({"volumes": ("volume",)}, {HERE: WITHOUT_DISK}),
        ({}, {HERE: WITHOUT_DISK, POOL: {"DISK_GB": 1}}),
        ({"host": None, "node": None, "status": "SHELVED_OFFLOADED"}, {}),
        ({"host": None, "node": None, "status": "DELETED"}, {}),
        ({"host": "compute-2", "node": "node-2"}, {THERE: SMALL}),
    ],
)
def test_changed_server_in_order_is_not_looked_up(
    fields: dict[str, t.Any], allocations: t.Any
) -> None:
    memory = make_memory(allocations={"server": allocations} if allocations else {})
    assert choose(memory, make_server(**fields)) == []


@pytest.mark.parametrize(
    ("fields", "allocations"),
    [
        # Its allocation was removed with DELETE, or is an orphan: a lookup shows which.
        ({"status": "DELETED"}, {HERE: SMALL}),
        ({"host": None, "node": None, "status": "SHELVED_OFFLOADED"}, {HERE: SMALL}),
        ({"host": "compute-2", "node": "node-2"}, {HERE: SMALL}),
        ({"host": "compute-2", "node": "node-2"}, {HERE: SMALL, THERE: SMALL}),
        ({"host": "compute-3", "node": "node-3"}, {HERE: SMALL}),
        ({"node": None}, {HERE: SMALL}),
        ({}, {}),
        ({}, {HERE: {**SMALL, "VCPU": 2}}),
        ({}, {HERE: SMALL, CHILD: {"CUSTOM_VF": 1}}),
        ({}, {CHILD: {"CUSTOM_VF": 1}}),
        ({"flavor": None}, {HERE: SMALL}),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, {HERE: SMALL}),
        ({"flavor": d.replace(FLAVOR, extra_specs={"resources:VGPU": "1"})}, {HERE: SMALL}),
    ],
)
def test_changed_server_that_may_not_be_in_order_is_looked_up(
    fields: dict[str, t.Any], allocations: t.Any
) -> None:
    memory = make_memory(allocations={"server": allocations} if allocations else {})
    assert choose(memory, make_server(**fields)) == ["server"]


@pytest.mark.parametrize(
    ("status", "holds", "chosen"),
    [
        ("confirmed", False, []),
        ("confirmed", True, ["migration", "server"]),
        ("finished", True, ["migration", "server"]),
        ("running", False, ["server"]),
        ("error", True, ["migration", "server"]),
    ],
)
def test_changed_migration_is_looked_up_with_its_server(
    status: str, holds: bool, chosen: list[str]
) -> None:
    allocations: dict[str, t.Any] = {"server": {HERE: SMALL}}
    if holds:
        allocations["migration"] = {THERE: SMALL}
    memory = make_memory(allocations=allocations)
    assert choose(memory, migrations=(make_migration(status),)) == chosen


def test_server_on_a_host_of_another_shard_is_left_to_it() -> None:
    shards = [Shard(1, 2), Shard(2, 2)]
    mine = next(shard for shard in shards if shard.contains(HERE))
    other = next(shard for shard in shards if not shard.contains(HERE))
    memory = make_memory(allocations={})

    assert choose(memory, make_server(), shard=mine) == ["server"]
    assert choose(memory, make_server(), shard=other) == []


def test_tree_without_a_compute_node_is_always_read() -> None:
    memory = make_memory(nodes=())

    assert list_changed_providers(memory, PROVIDERS) == [CHILD, HERE, THERE]


def test_remembered_allocations_elsewhere_stay() -> None:
    memory = make_memory(allocations={"server": {HERE: SMALL, POOL: {"DISK_GB": 1}}})
    providers = {**PROVIDERS, HERE: d.replace(PROVIDERS[HERE], generation=6)}

    assert list_changed_providers(memory, providers) == [HERE]
    assert merge_allocations(memory, [HERE], {"server": {HERE: WITHOUT_DISK}}) == {
        "server": {HERE: WITHOUT_DISK, POOL: {"DISK_GB": 1}}
    }


@pytest.mark.parametrize(
    ("providers", "hosts", "why"),
    [
        (set(PROVIDERS), {"compute-1", "compute-2"}, ""),
        (set(PROVIDERS) - {CHILD}, {"compute-1", "compute-2"}, "Resource providers"),
        ({*PROVIDERS, "new"}, {"compute-1", "compute-2"}, "Resource providers"),
        (set(PROVIDERS), {"compute-1"}, "Hosts"),
        (set(PROVIDERS), {"compute-1", "compute-2", "compute-3"}, "Hosts"),
    ],
)
def test_other_hosts_need_a_full_reading(providers: set[str], hosts: set[str], why: str) -> None:
    explanation = explain_changed_hosts(make_memory(), providers, hosts)
    assert explanation.startswith(why) and bool(explanation) == bool(why)
