"""A compute node that came back with another UUID, under live servers.

First everything that must not take the allocation of a live server, then what may.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Hypervisor, Service
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, PLENTY, World

Attack = Callable[["Cloud"], None]


HOST = "compute-1"
BIG = d.replace(PLENTY, total=10_000, max_unit=10_000)


class Cloud(World):
    """A host with two servers, which comes back with another UUID for its compute node.

    old: its former provider, renamed so that nova-compute could create the new one.
    new: its provider now.
    """

    def __init__(self, renamed: bool = True) -> None:
        super().__init__()
        self.old, self.there = self.host(HOST), self.host("compute-2")
        self.first = self.server(self.old, self.old)
        self.second = self.server(self.old, self.old)
        self.server(self.there, self.there)
        self.reinstall(renamed)

    def reinstall(self, renamed: bool) -> None:
        old = self.nodes.pop(self.old)
        self.were_novas.add(self.old)
        new = self.uuid()
        if renamed:
            self.providers[self.old] = d.replace(self.providers[self.old], name=f"{HOST}-former")
            new = self.provider(HOST)
        self.new = new
        self.stock[new] = dict.fromkeys(CLAIM, BIG)
        self.nodes[new] = d.replace(old, uuid=new)
        if not renamed:
            # Placement knows no such provider.
            self.statuses["stock", self.first] = 404
            self.statuses["own_usages", self.first] = 404

    def find(self, consumer: str | None = None, **changes: t.Any) -> Finding | None:
        wanted = consumer or self.first
        for finding in judge(self.snapshot(**changes), NO_MINIMUM_AGE):
            if finding.consumer == wanted:
                return finding
        return None


def evacuated_meanwhile(cloud: Cloud) -> None:
    there = cloud.nodes[cloud.there]
    cloud.migration(cloud.first, cloud.new, cloud.there, "done", type="evacuation")
    cloud.servers[cloud.first] = d.replace(
        cloud.servers[cloud.first], host=there.host, node=there.name
    )


def being_evacuated(cloud: Cloud) -> None:
    cloud.migration(cloud.first, cloud.new, cloud.there, "pre-migrating", type="evacuation")


def on_another_node(cloud: Cloud) -> None:
    cloud.servers[cloud.first] = d.replace(cloud.servers[cloud.first], node="compute-1.other")


def unconfirmed_resize(cloud: Cloud) -> None:
    cloud.servers[cloud.first] = d.replace(cloud.servers[cloud.first], status="VERIFY_RESIZE")


def neighbour_with_an_unconfirmed_resize(cloud: Cloud) -> None:
    cloud.migration(cloud.second, cloud.new, cloud.there, "finished", cloud.old, type="resize")


def migration_to_the_host_under_way(cloud: Cloud) -> None:
    mover = cloud.server(cloud.there, cloud.new)
    cloud.migration(mover, cloud.there, cloud.new, "migrating", cloud.there)


def namesake_in_another_cell(cloud: Cloud) -> None:
    twin = cloud.uuid()
    cloud.nodes[twin] = Hypervisor(twin, HOST, HOST, "up", "enabled", ())
    cloud.services.append(Service("nova-compute", HOST, "enabled", "up"))


def node_of_the_same_name_on_another_host(cloud: Cloud) -> None:
    twin = cloud.uuid()
    cloud.nodes[twin] = Hypervisor(twin, HOST, "compute-9", "up", "enabled", ())
    cloud.services.append(Service("nova-compute", "compute-9", "enabled", "up"))


def second_node_on_the_host(cloud: Cloud) -> None:
    other = cloud.provider("compute-1-b")
    cloud.nodes[other] = Hypervisor(other, "compute-1-b", HOST, "up", "enabled", ())


def second_service_of_the_host(cloud: Cloud) -> None:
    cloud.services.append(Service("nova-compute", HOST, "enabled", "up"))


def service_not_up(cloud: Cloud) -> None:
    cloud.services = [
        d.replace(service, state="down") if service.host == HOST else service
        for service in cloud.services
    ]


def service_without_node_elsewhere(cloud: Cloud) -> None:
    cloud.services.append(Service("nova-compute", "compute-7", "enabled", "up"))


def host_of_the_former_provider_exists(cloud: Cloud) -> None:
    cloud.unlisted_hosts.add(f"{HOST}-former")


def stranger_on_the_former_provider(cloud: Cloud) -> None:
    cloud.stranger(cloud.old)


def server_elsewhere_on_the_former_provider(cloud: Cloud) -> None:
    cloud.server(cloud.there, cloud.old)


def child_with_an_allocation(cloud: Cloud) -> None:
    child = cloud.provider("compute-1_nic", cloud.old)
    cloud.hold(cloud.first, child, amounts={"CUSTOM_VF": 1})


def neighbour_on_a_child(cloud: Cloud) -> None:
    child = cloud.provider("compute-1_nic", cloud.old)
    cloud.hold(cloud.second, child, amounts={"CUSTOM_VF": 1})


def sharing_provider(cloud: Cloud) -> None:
    cloud.hold(cloud.first, cloud.provider("pool", sharing=True), amounts={"DISK_GB": 1})


def without_trait(cloud: Cloud) -> None:
    cloud.were_novas.clear()


def no_inventory_yet(cloud: Cloud) -> None:
    cloud.stock[cloud.new] = {}


def no_disk(cloud: Cloud) -> None:
    cloud.stock[cloud.new] = {"VCPU": BIG, "MEMORY_MB": BIG}


def room_for_one_only(cloud: Cloud) -> None:
    scarce = d.replace(BIG, total=1)
    cloud.stock[cloud.new] = {"VCPU": scarce, "MEMORY_MB": BIG, "DISK_GB": BIG}


def full_of_others(cloud: Cloud) -> None:
    cloud.hold(cloud.server(cloud.new, cloud.new), cloud.new, amounts={**CLAIM, "VCPU": 9_999})


def amount_too_large_for_one(cloud: Cloud) -> None:
    small = d.replace(BIG, max_unit=256)
    cloud.stock[cloud.new] = {"VCPU": BIG, "MEMORY_MB": small, "DISK_GB": BIG}


def amount_too_small_for_one(cloud: Cloud) -> None:
    cloud.stock[cloud.new] = {**cloud.stock[cloud.new], "MEMORY_MB": d.replace(BIG, min_unit=1024)}


def amount_between_two_steps(cloud: Cloud) -> None:
    cloud.stock[cloud.new] = {**cloud.stock[cloud.new], "MEMORY_MB": d.replace(BIG, step_size=100)}


def neighbour_with_a_class_that_the_host_lacks(cloud: Cloud) -> None:
    cloud.hold(cloud.second, cloud.old, amounts={**CLAIM, "CUSTOM_GOLD": 1})


def tree_without_this_allocation(cloud: Cloud) -> None:
    whole = cloud.allocations_of_tree(cloud.old)
    del whole[cloud.first]
    cloud.allocations_of_tree = lambda _root: whole  # type: ignore[method-assign]


def guest_may_be_on_a_host_that_is_gone(cloud: Cloud) -> None:
    gone = cloud.provider("compute-8")
    move = cloud.migration(cloud.first, cloud.new, gone, "error", type="live-migration")
    cloud.migrations[move] = d.replace(
        cloud.migrations[move], dest_compute="compute-8", dest_node="compute-8"
    )


def guest_may_be_on_a_host_that_is_gone_behind_a_resize(cloud: Cloud) -> None:
    guest_may_be_on_a_host_that_is_gone(cloud)
    cloud.migration(cloud.first, cloud.new, cloud.new, "confirmed", type="resize")


def guest_may_be_on_a_host_that_is_gone_with_the_node_of_another(cloud: Cloud) -> None:
    move = cloud.migration(cloud.first, cloud.new, cloud.there, "error", type="live-migration")
    cloud.migrations[move] = d.replace(cloud.migrations[move], dest_compute="compute-8")


def task_not_shown(cloud: Cloud) -> None:
    cloud.servers[cloud.first] = d.replace(cloud.servers[cloud.first], task_known=False)


def unread_tree(cloud: Cloud) -> None:
    cloud.answers("former_tree", cloud.first, 503)


def unread_servers(cloud: Cloud) -> None:
    cloud.answers("host_servers", cloud.first, 503)


def unread_usages(cloud: Cloud) -> None:
    cloud.answers("own_usages", cloud.first, 503)


def unread_inventory(cloud: Cloud) -> None:
    cloud.answers("host_tree", cloud.new, 503)


ATTACKS: dict[Attack, str] = {
    evacuated_meanwhile: "allocation_on_other_hosts_only",
    being_evacuated: "migration_under_way",
    on_another_node: "compute_node_ambiguous",
    unconfirmed_resize: "resize_to_confirm",
    neighbour_with_an_unconfirmed_resize: "allocation_on_other_hosts_only",
    migration_to_the_host_under_way: "host_has_migration",
    namesake_in_another_cell: "compute_node_ambiguous",
    node_of_the_same_name_on_another_host: "node_name_taken",
    second_node_on_the_host: "several_nodes_of_host",
    second_service_of_the_host: "several_compute_services",
    service_not_up: "compute_service_not_up",
    service_without_node_elsewhere: "settled_elsewhere",
    host_of_the_former_provider_exists: "settled_elsewhere",
    stranger_on_the_former_provider: "allocation_on_other_hosts_only",
    server_elsewhere_on_the_former_provider: "allocation_on_other_hosts_only",
    child_with_an_allocation: "needed_other_classes",
    neighbour_on_a_child: "allocation_on_other_hosts_only",
    sharing_provider: "allocation_on_other_hosts_only",
    without_trait: "settled_elsewhere",
    no_inventory_yet: "new_provider_lacks_class",
    no_disk: "new_provider_lacks_class",
    room_for_one_only: "new_provider_lacks_room",
    full_of_others: "new_provider_lacks_room",
    amount_too_large_for_one: "new_provider_refuses_amount",
    amount_too_small_for_one: "new_provider_refuses_amount",
    amount_between_two_steps: "new_provider_refuses_amount",
    neighbour_with_a_class_that_the_host_lacks: "new_provider_lacks_room",
    tree_without_this_allocation: "allocation_on_other_hosts_only",
    guest_may_be_on_a_host_that_is_gone: "move_may_have_ended",
    guest_may_be_on_a_host_that_is_gone_behind_a_resize: "move_may_have_ended",
    guest_may_be_on_a_host_that_is_gone_with_the_node_of_another: "move_may_have_ended",
    task_not_shown: "server_unsettled",
    unread_tree: "former_provider_unread",
    unread_servers: "former_provider_unread",
    unread_usages: "new_provider_unread",
    unread_inventory: "new_provider_unread",
}


def _rewrites(finding: Finding | None) -> bool:
    """Return whether the finding is of this kind and would write anything."""
    return finding is not None and finding.kind == "former_provider" and finding.change is not None


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_doubt_keeps_the_allocation(attack: Attack) -> None:
    cloud = Cloud()
    attack(cloud)
    finding = cloud.find()

    assert not _rewrites(finding)
    assert (finding.reason.id if finding else "") == ATTACKS[attack]


@given(st.sets(st.sampled_from([*ATTACKS]), min_size=1, max_size=4))
def test_doubts_together_keep_the_allocation(attacks: set[Attack]) -> None:
    cloud = Cloud()
    for attack in sorted(attacks, key=[*ATTACKS].index):
        attack(cloud)

    assert not _rewrites(cloud.find())


def test_another_region_may_use_the_former_provider() -> None:
    cloud = Cloud()
    other = d.replace(cloud.snapshot().cloud, other_novas=("RegionTwo",))

    assert not _rewrites(cloud.find(cloud=other))


def test_unsound_reading_proves_nothing() -> None:
    cloud = Cloud()
    listing = cloud.snapshot().services
    other = d.replace(listing, status=503, value=None)

    assert not _rewrites(cloud.find(services_after=other))


def test_allocation_moves_to_the_provider_of_the_compute_node() -> None:
    cloud = Cloud()
    finding = cloud.find()

    assert finding is not None
    assert finding.reason.id == "on_former_provider"
    assert (finding.kind, finding.verdict) == ("former_provider", "drifted")
    assert finding.change is not None and finding.change.action == "rewrite"
    assert finding.change.after["allocations"] == {cloud.new: {"resources": dict(CLAIM)}}
    assert finding.change.generation == 1
    assert (finding.change.frees, finding.change.allocates) == (
        {cloud.old: CLAIM},
        {cloud.new: CLAIM},
    )


@pytest.mark.parametrize(
    ("total", "used", "fits"), [(2, 0, True), (1, 0, False), (3, 1, True), (2, 1, False)]
)
def test_room_is_needed_for_exactly_what_the_former_provider_has(
    total: int, used: int, fits: bool
) -> None:
    cloud = Cloud()
    scarce = d.replace(BIG, total=total, max_unit=total)
    cloud.stock[cloud.new] = {**cloud.stock[cloud.new], "VCPU": scarce}
    if used:
        other = cloud.server(cloud.new)
        cloud.hold(other, cloud.new, amounts={"VCPU": used, "MEMORY_MB": 1, "DISK_GB": 1})

    assert _rewrites(cloud.find()) is fits


def test_moves_that_are_over_or_of_other_hosts_keep_nothing() -> None:
    cloud = Cloud()
    third = cloud.host("compute-3")
    mover = cloud.server(cloud.there, cloud.there)
    cloud.migration(mover, cloud.new, cloud.there, "completed", type="live-migration")
    cloud.migration(mover, cloud.there, third, "migrating")

    assert _rewrites(cloud.find())


def test_server_on_a_host_without_a_compute_node_is_of_no_kind() -> None:
    cloud = Cloud(renamed=False)
    del cloud.nodes[cloud.new]
    cloud.services = [service for service in cloud.services if service.host != HOST]
    finding = cloud.find()

    assert finding and (finding.kind, finding.verdict) == ("unproven", "undecided")
    assert finding.reason.id == "compute_node_ambiguous"


def test_provider_of_another_compute_node_is_not_the_former_one() -> None:
    """It has kept the name that the server's host has now."""
    cloud = World()
    here, there = cloud.host("compute-1"), cloud.host("compute-2")
    server = cloud.server(here, there)
    cloud.rename_host(here, node="compute-3")
    cloud.rename_host(there, node="compute-4")
    cloud.rename_host(here, node="compute-2")
    findings = {found.consumer: found for found in judge(cloud.snapshot(), NO_MINIMUM_AGE)}

    assert findings[server].kind == "misplaced_allocation"


def test_tree_that_was_not_read_is_not_taken_for_the_former_one() -> None:
    cloud = Cloud()
    evidence = cloud.snapshot().evidence
    unread = d.replace(evidence[cloud.first], former_tree=NOT_ASKED)
    finding = cloud.find(evidence={**evidence, cloud.first: unread})

    assert finding and finding.kind == "misplaced_allocation"
    assert finding.reason.id == "allocation_on_other_hosts_only"


def test_amounts_need_not_be_those_of_the_flavor() -> None:
    """A server that was booted from a volume has no disk, and Nova does not show its image."""
    cloud = Cloud()
    amounts = {"VCPU": 4, "MEMORY_MB": 100}
    for server in (cloud.first, cloud.second):
        held = d.replace(cloud.allocations[server], resources={cloud.old: amounts})
        cloud.allocations[server] = held
        cloud.servers[server] = d.replace(cloud.servers[server], image=None, image_properties=None)
    finding = cloud.find()

    assert finding is not None and finding.change is not None
    assert finding.change.after["allocations"] == {cloud.new: {"resources": amounts}}


def test_changes_settle_all_servers_one_after_the_other() -> None:
    cloud = Cloud()
    for server in (cloud.first, cloud.second):
        finding = cloud.find(server)
        assert finding is not None and finding.change is not None
        cloud.apply(finding.change)

    assert cloud.find(cloud.first) is None and cloud.find(cloud.second) is None
    kinds = {finding.kind for finding in judge(cloud.snapshot(), NO_MINIMUM_AGE)}
    assert kinds == {"orphaned_provider"}


def test_tree_is_removed_only_when_it_is_empty() -> None:
    cloud = Cloud()
    before = [one for one in judge(cloud.snapshot(), NO_MINIMUM_AGE) if one.subject == cloud.old]

    assert [(one.kind, one.change) for one in before] == [("orphaned_provider", None)]


def test_missing_provider_is_not_a_conflict_where_the_former_one_has_another_name() -> None:
    cloud = Cloud()
    del cloud.providers[cloud.new]
    cloud.answers("host_tree", cloud.new, 404)
    finding = cloud.find()

    assert finding and (finding.kind, finding.verdict) == ("former_provider", "undecided")
    assert finding.reason.id == "new_provider_unread"


def test_name_conflict_says_what_to_do_and_changes_nothing() -> None:
    cloud = Cloud(renamed=False)
    # Neither failure left a guest where the former provider was.
    cloud.migration(cloud.first, cloud.new, cloud.there, "error", type="live-migration")
    move = cloud.migration(cloud.first, cloud.new, cloud.there, "error", type="resize")
    cloud.migrations[move] = d.replace(cloud.migrations[move], dest_compute="compute-8")
    finding = cloud.find()

    assert finding is not None
    assert (finding.kind, finding.verdict, finding.change) == ("former_provider", "drifted", None)
    assert finding.reason.id == "former_provider_has_name"
    assert f"--name {HOST}-former {cloud.old}" in finding.reason


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (stranger_on_the_former_provider, "former_provider_has_other_consumers"),
        (service_not_up, "compute_service_not_up"),
        (without_trait, "without_nova_trait"),
        (sharing_provider, "on_other_providers_too"),
        (neighbour_on_a_child, "former_provider_has_children"),
        (tree_without_this_allocation, "not_listed_by_provider"),
        (second_service_of_the_host, "several_compute_services"),
        (guest_may_be_on_a_host_that_is_gone, "move_to_gone_host_failed"),
        (guest_may_be_on_a_host_that_is_gone_behind_a_resize, "move_to_gone_host_failed"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_name_conflict_in_doubt_is_undecided_and_suggests_no_renaming(
    attack: Attack, reason: str
) -> None:
    cloud = Cloud(renamed=False)
    attack(cloud)
    finding = cloud.find()

    assert finding is not None
    assert (finding.verdict, finding.change) == ("undecided", None)
    assert "--name" not in finding.reason
    assert finding.reason.id == reason


@pytest.mark.parametrize(
    ("attack", "kind", "reason"),
    [
        (stranger_on_the_former_provider, "misplaced_allocation", "allocation_on_other_hosts_only"),
        (unread_servers, "former_provider", "former_provider_unread"),
        (unread_tree, "former_provider", "former_provider_unread"),
    ],
)
def test_tree_with_consumers_of_others_is_no_former_provider_of_the_host(
    attack: Attack, kind: str, reason: str
) -> None:
    """An answer that could not be read leaves it open."""
    cloud = Cloud()
    attack(cloud)
    finding = cloud.find()

    assert finding is not None
    assert finding.kind == kind and not _rewrites(finding)
    assert finding.reason.id == reason


def test_name_of_another_region_is_not_advised_to_be_changed() -> None:
    """The provider of that name may be that of a host there."""
    cloud = Cloud(renamed=False)
    other = d.replace(cloud.snapshot().cloud, other_novas=("RegionTwo",))
    finding = cloud.find(cloud=other)

    assert finding is not None
    assert (finding.kind, finding.verdict) == ("former_provider", "undecided")
    assert finding.reason.id == "other_nova_on_placement"
    assert "--name" not in finding.reason


def test_host_that_is_gone_is_another_kind() -> None:
    """The server has left a host that was decommissioned since."""
    cloud = World()
    here, there = cloud.host("compute-1"), cloud.host("compute-2")
    server = cloud.server(here, there)
    cloud.migration(server, there, here, "done", type="evacuation")
    cloud.remove_host(there)
    findings = {found.consumer: found for found in judge(cloud.snapshot(), NO_MINIMUM_AGE)}

    assert findings[server].kind == "misplaced_allocation"


@st.composite
def _clouds(draw: st.DrawFn) -> Cloud:
    """Return a cloud whose host came back, where anything may have happened to its servers."""
    cloud = Cloud(renamed=draw(st.sampled_from([True, True, True, False])))
    for _number in range(draw(st.integers(0, 2))):
        amounts = {cls: draw(st.integers(1, 3)) * amount for cls, amount in CLAIM.items()}
        server = cloud.server(cloud.new)
        cloud.hold(server, cloud.old, amounts=amounts)
    if draw(st.booleans()):
        total = draw(st.integers(1, 6))
        scarce = d.replace(PLENTY, total=total, max_unit=total)
        cloud.stock[cloud.new] = {"VCPU": scarce, "MEMORY_MB": BIG, "DISK_GB": BIG}
    for attack in draw(st.lists(st.sampled_from([*ATTACKS]), max_size=1)):
        attack(cloud)
    return cloud


@given(_clouds())
def test_every_change_leaves_each_server_what_it_needs_on_its_own_host(cloud: Cloud) -> None:
    """What must hold is said here in other words than in the rule."""
    changes = [
        finding.change
        for finding in judge(cloud.snapshot(), NO_MINIMUM_AGE)
        if finding.kind == "former_provider" and isinstance(finding.change, Change)
    ]
    on_host = {uuid for uuid, server in cloud.servers.items() if server.host == HOST}
    # An attack may have removed a provider, with its allocations left.
    former_tree = {uuid for uuid, provider in cloud.providers.items() if provider.root == cloud.old}
    on_former = {
        consumer
        for consumer, allocation in cloud.allocations.items()
        if not former_tree.isdisjoint(allocation.resources)
    }
    taken: dict[str, int] = {}
    for change in changes:
        server = cloud.servers[change.consumer]
        (before,), (after,) = change.before["allocations"], change.after["allocations"]
        assert (server.host, server.node, server.status) == (HOST, HOST, "ACTIVE")
        assert (before, after) == (cloud.old, cloud.new)
        assert change.before["allocations"][before] == change.after["allocations"][after]
        for cls, amount in change.after["allocations"][after]["resources"].items():
            taken[cls] = taken.get(cls, 0) + amount
    if not changes:
        return
    # The tree has only servers of this host, and there is room for all of them together.
    assert {change.consumer for change in changes} <= on_former <= on_host
    assert all(move.ended for move in cloud.migrations.values())
    for cls, amount in taken.items():
        assert amount <= cloud.stock[cloud.new][cls].capacity
