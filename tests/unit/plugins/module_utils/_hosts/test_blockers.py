# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What blocks the decommissioning of a host, and which leftovers it has."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._core.facts.index import SnapshotIndex
from ......plugins.module_utils._core.models.kind import REMEDIATE
from ......plugins.module_utils._core.models.kinds import KINDS
from ......plugins.module_utils._core.models.placement import Provider
from ......plugins.module_utils._core.models.snapshot import Snapshot
from ......plugins.module_utils._core.options.policy import Policy
from ......plugins.module_utils._hosts.blockers import (
    Blocker,
    Host,
    HostDetails,
    explain_refusal,
    find_blockers,
    find_hidden_usages,
    find_host,
    find_leftovers,
    list_host_providers,
    list_other_spellings,
)
from ......plugins.module_utils._hosts.migrations import describe_migration
from ..world import NOW, World, answer

BY_DEFAULT = [kind.name for kind in KINDS if kind.by_default == REMEDIATE]


class Site(World):
    """A host to decommission, and one that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.old, self.new = self.host("old"), self.host("new")
        self.services[0] = d.replace(self.services[0], state="down", id="service-of-old")

    def found(self, name: str = "old", remembered: Collection[str] = ()) -> Host:
        return find_host(
            name,
            self.services,
            tuple(map(self._with_servers, self.nodes.values())),
            self.providers,
            remembered,
        )

    def seen(self) -> HostDetails:
        here = tuple(server for server in self.servers.values() if server.host == "old")
        return HostDetails(
            here, answer("GET /os-migrations?host=old", 200, self._migrations_at("old"))
        )

    def blockers(
        self,
        kinds: Collection[str] = tuple(BY_DEFAULT),
        snapshot: Snapshot | None = None,
        excluded: Collection[str] = (),
        **seen: t.Any,
    ) -> list[Blocker]:
        about = d.replace(self.seen(), **seen)
        spare = Policy(exclude_providers=frozenset(excluded))
        return list(
            find_blockers(
                self.found(), about, SnapshotIndex(snapshot or self.snapshot()), spare, kinds
            )
        )

    def left_over(self, kinds: Collection[str] = tuple(BY_DEFAULT)) -> list[str]:
        return [
            finding.kind
            for finding in find_leftovers(
                self.found(), SnapshotIndex(self.snapshot()), Policy(), kinds
            )
        ]


def _kinds(found: list[Blocker]) -> list[str]:
    return [blocker.kind for blocker in found]


def test_empty_host_has_no_blockers() -> None:
    assert Site().blockers() == []


@pytest.mark.parametrize("name", ["old", "{old}", "old port", "{port}"])
def test_empty_host_with_an_excluded_part_is_blocked(name: str) -> None:
    site = Site()
    port = site.provider("old port", parent=site.old)
    excluded = [name.format(old=site.old, port=port), "nonesuch", "new"]

    (blocker,) = site.blockers(excluded=excluded)

    assert (blocker.kind, blocker.subject, blocker.stops) == ("excluded", excluded[0], "disable")
    assert site.blockers(excluded=["new"]) == []


def test_server_on_the_host_blocks_it() -> None:
    site = Site()
    server = site.server(site.old, site.old, name="web-7")
    (blocker,) = site.blockers()

    assert (blocker.kind, blocker.subject, blocker.name, blocker.stops) == (
        "server",
        server,
        "web-7",
        "disable",
    )
    assert site.left_over() == []


def test_server_without_allocation_blocks_the_host() -> None:
    site = Site()
    site.server(site.old)

    assert _kinds(site.blockers()) == ["server"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"status": "SOFT_DELETED"},
            "(SOFT_DELETED) is on old: restore it, or delete it for good.",
        ),
        # Its cell was silent for the listing of servers, or it has moved since.
        ({}, "(ACTIVE) is on old: move, evacuate or delete it."),
        ({"task_state": "migrating"}, "(ACTIVE, migrating) is on old: move, "),
        ({"host": "new"}, "(ACTIVE) was on old and is on new now: run again."),
        (None, "Nova showed no such server"),
    ],
)
def test_server_only_in_the_hypervisor_listing_blocks_the_host(
    changes: dict[str, t.Any] | None, said: str
) -> None:
    """A live server must not be called deleted, or be deleted for good."""
    site = Site()
    server = site.server(site.old, site.old)
    unlisted = ()
    if changes is not None:
        unlisted = (d.replace(site.servers[server], **changes),)
    (blocker,) = site.blockers(servers=(), unlisted=unlisted)

    assert (blocker.kind, blocker.subject) == ("server", server)
    assert said in blocker.reason


@pytest.mark.parametrize(("source", "dest"), [("old", "new"), ("new", "old")])
@pytest.mark.parametrize(("status", "kind"), [("running", "migration"), ("finished", "resize")])
def test_move_from_or_to_the_host_blocks_it(source: str, dest: str, status: str, kind: str) -> None:
    site = Site()
    by_name = {"old": site.old, "new": site.new}
    server = site.server(site.new, site.new)
    move = site.migration(server, by_name[source], by_name[dest], status)

    assert [(blocker.kind, blocker.subject) for blocker in site.blockers()] == [(kind, move)]


@pytest.mark.parametrize("state", ["up", "down"])
@pytest.mark.parametrize(("source", "dest"), [("old", "new"), ("new", "old")])
def test_a_resize_to_a_dead_host_is_not_to_be_confirmed(state: str, source: str, dest: str) -> None:
    """That deletes the disk on its source, which may be the last one."""
    site = Site()
    site.services[0] = d.replace(site.services[0], state=state)
    by_name = {"old": site.old, "new": site.new}
    site.migration(site.server(site.new, site.new), by_name[source], by_name[dest], "finished")

    (blocker,) = (each for each in site.blockers() if each.kind == "resize")
    assert ("confirm or revert" in blocker.reason) is (state == "up" or dest == "new")


def test_allocation_of_a_move_is_listed_once_with_the_move() -> None:
    site = Site()
    server = site.server(site.new, site.new)
    move = site.migration(server, site.old, site.new, "running", site.old)

    assert [(blocker.kind, blocker.subject) for blocker in site.blockers()] == [("migration", move)]


def test_move_only_in_the_listing_of_all_blocks_the_host() -> None:
    site = Site()
    site.migration(site.server(site.new, site.new), site.old, site.new, "running")

    assert _kinds(site.blockers(migrations=answer("GET /os-migrations?host=old", 200, ()))) == [
        "migration"
    ]


def test_missing_answer_about_migrations_blocks_the_host() -> None:
    assert _kinds(Site().blockers(migrations=answer("GET /os-migrations?host=old", 500, None))) == [
        "unsound_reading"
    ]


def test_unsound_reading_blocks_the_host() -> None:
    site = Site()
    dead = answer(
        "GET /os-services",
        200,
        tuple(d.replace(service, status="UNKNOWN") for service in site.services),
    )

    assert "unsound_reading" in _kinds(site.blockers(snapshot=site.snapshot(services_after=dead)))


def test_proven_leftovers_do_not_block_the_host() -> None:
    site = Site()
    site.delete(site.server(site.old, site.old))
    evacuated = site.server(site.new, site.new, site.old)
    site.migration(evacuated, site.old, site.new, "done", type="evacuation")

    assert site.blockers() == []
    assert sorted(site.left_over()) == ["deleted_server", "evacuated_source"]


def test_leftovers_of_unchosen_kinds_block_the_host() -> None:
    site = Site()
    site.delete(site.server(site.old, site.old))
    (blocker,) = site.blockers(kinds=["extra_host"])

    assert blocker.kind == "claim"
    assert "deleted_server is not in kinds" in blocker.reason
    assert site.left_over(kinds=["extra_host"]) == []


def test_allocation_needed_by_its_own_server_is_not_a_leftover() -> None:
    """Its other allocation is removed, but this one stays."""
    site = Site()
    server = site.server(site.old, site.old, site.new)

    assert [(blocker.kind, blocker.subject) for blocker in site.blockers()] == [("server", server)]
    assert site.left_over() == []


@pytest.mark.parametrize("type", ["CONTAINER", "MY_THING"])
def test_foreign_consumer_blocks_the_host(type: str) -> None:
    site = Site()
    site.stranger(site.old, type=type)
    (blocker,) = site.blockers(kinds=[kind.name for kind in KINDS])

    assert (blocker.kind, blocker.stops) == ("claim", "disable")
    assert blocker.reason.startswith(f"Consumer {blocker.subject} is protected (foreign_type): ")
    assert type in blocker.reason


def test_unknown_consumer_blocks_the_host_unless_its_kind_is_chosen() -> None:
    site = Site()
    site.server(site.new, site.new)
    site.stranger(site.old)

    assert _kinds(site.blockers()) == ["claim"]
    assert site.blockers(kinds=["unknown_consumer"]) == []


def test_allocation_on_a_child_of_the_host_counts() -> None:
    site = Site()
    site.stranger(site.provider("old_gpu", site.old), type="CYBORG")

    assert _kinds(site.blockers()) == ["claim"]


def test_allocation_on_another_host_does_not_count() -> None:
    site = Site()
    site.stranger(site.new, type="CONTAINER")
    site.server(site.new, site.new)

    assert site.blockers() == []


def test_running_service_blocks_only_its_deletion() -> None:
    site = Site()
    site.services[0] = d.replace(site.services[0], state="up")

    assert [(blocker.kind, blocker.stops) for blocker in site.blockers()] == [
        ("service_up", "delete")
    ]


def test_host_is_found_by_its_service_and_by_its_compute_node() -> None:
    world = World()
    root = world.host("old.example.org", service="old")
    nodes = tuple(world.nodes.values())

    for name in ("old", "old.example.org", root):
        host = find_host(name, world.services, nodes, world.providers, ())
        assert (
            host.name,
            [node.uuid for node in host.nodes],
            [known.uuid for known in host.roots],
        ) == ("old", [root], [root])


def test_nodes_of_one_service_are_decommissioned_together() -> None:
    world = World()
    roots = [world.host(f"node-{number}", service="ironic") for number in (1, 2, 3)]
    nodes = tuple(world.nodes.values())

    assert [
        known.uuid
        for known in find_host("ironic", world.services, nodes, world.providers, ()).roots
    ] == roots
    with pytest.raises(InvalidInput, match="one of 3 compute nodes of service ironic"):
        find_host("node-2", world.services, nodes, world.providers, ())


@pytest.mark.parametrize("ids", [("one", "other"), ("one", None), (None, "other")])
def test_host_with_services_in_two_cells_is_refused(ids: tuple[str | None, ...]) -> None:
    """The host of one may live while the other is what is left of it in another cell."""
    world = World()
    world.host("compute-17")
    (service,) = [one for one in world.services if one.host == "compute-17"]
    services = [d.replace(service, id=one) for one in ids]
    nodes = tuple(world.nodes.values())

    with pytest.raises(InvalidInput, match="compute-17 has 2 services nova-compute"):
        find_host("compute-17", services, nodes, world.providers, ())


def test_leftovers_of_a_deleted_service_are_found_by_name_and_by_nova_records() -> None:
    site = Site()
    child = site.provider("old_gpu", site.old)
    del site.nodes[site.old]
    del site.services[0]
    by_name = site.found()

    assert (
        by_name.service,
        by_name.nodes,
        [known.uuid for known in list_host_providers(by_name, site.providers)],
    ) == (
        None,
        (),
        [child, site.old],
    )
    assert [known.uuid for known in site.found("anything", [site.old]).roots] == [site.old]


@pytest.mark.parametrize("name", ["old", "old.example.org"])
def test_tree_that_blocks_the_name_of_a_reinstalled_host_is_included(
    name: str,
) -> None:
    world = World()
    new = world.host("old.example.org", service="old")
    kept = world.provider("old.example.org")
    del world.providers[new]

    assert [
        known.uuid
        for known in find_host(
            name, world.services, tuple(world.nodes.values()), world.providers, ()
        ).roots
    ] == [kept]


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


@pytest.mark.parametrize(
    ("status", "type", "advice"),
    [
        ("finished", "resize", "confirm"),
        ("running", "live-migration", "abort"),
        ("accepted", "evacuation", "wait"),
        ("done", "evacuation", ""),
    ],
)
def test_move_has_its_age_and_advice(status: str, type: str, advice: str) -> None:
    site = Site()
    move = site.migration(site.server(site.new, site.new), site.old, site.new, status, type=type)
    told = describe_migration(site.migrations[move], NOW)

    assert told["age_seconds"] == 0
    assert advice in told["advice"] and bool(told["advice"]) == bool(advice)


ROOT = Provider("11111111-1111-4111-8111-111111111111", "old", 1, "root", None)


@pytest.mark.parametrize(
    ("used", "listed", "is_hidden"),
    [
        ({"VCPU": 3, "DISK_GB": 0}, {"a": {"VCPU": 1}, "b": {"VCPU": 2}}, False),
        ({"VCPU": 0}, {}, False),
        # Placement lists no consumer that has no record.
        ({"VCPU": 4}, {"a": {"VCPU": 1}}, True),
        ({"VCPU": 1, "CUSTOM_FPGA": 1}, {"a": {"VCPU": 1}}, True),
        ({"VCPU": 1}, {}, True),
        ({"VCPU": 0}, {"a": {"VCPU": 1}}, True),
        # The provider is gone meanwhile.
        (None, {}, False),
    ],
)
def test_usages_that_no_listed_allocation_explains(
    used: dict[str, int] | None, listed: dict[str, dict[str, int]], is_hidden: bool
) -> None:
    allocations = {consumer: {ROOT.uuid: amounts} for consumer, amounts in listed.items()}
    found = list(find_hidden_usages([ROOT], {ROOT.uuid: used}, allocations))

    assert [blocker.kind for blocker in found] == (["hidden_allocation"] if is_hidden else [])


def test_a_refusal_counts_all_blockers_and_has_the_first_reasons() -> None:
    blockers = [Blocker("server", str(number), "", f"Reason {number}.") for number in range(12)]

    assert explain_refusal("compute-1", [], "deleted") == ""
    told = explain_refusal("compute-1", blockers, "deleted", "see /out/host.json")
    assert told.startswith("compute-1 cannot be deleted (blockers: 12, see /out/host.json). ")
    assert told.endswith("Reason 9.")
