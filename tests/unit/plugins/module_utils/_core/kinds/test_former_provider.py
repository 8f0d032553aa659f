"""A compute node that came back with another UUID, under live servers.

First everything that must not take the allocation of a live server, then what may.
"""

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
from ...judging import NO_MINIMUM_AGE, judge, list_cases
from ...world import CLAIM, PLENTY
from ..scene import Scene

Attack = Callable[["Cloud"], object]


HOST = "compute-1"
BIG = d.replace(PLENTY, total=10_000, max_unit=10_000)


class Cloud(Scene):
    """A host with two servers, which comes back with another UUID for its compute node.

    here: its former provider, renamed so that nova-compute could create the new one.
    new: its provider now.
    """

    def __init__(self, renamed: bool = True) -> None:
        super().__init__()
        self.first, self.second = (self.server(self.here, self.here) for _number in range(2))
        self.server(self.there, self.there)
        old = self.nodes.pop(self.here)
        self.were_novas.add(self.here)
        self.new = self.uuid()
        if renamed:
            self.rename_provider(f"{HOST}-former")
            self.new = self.provider(HOST)
        self.stock[self.new] = dict.fromkeys(CLAIM, BIG)
        self.nodes[self.new] = d.replace(old, uuid=self.new)
        if not renamed:
            # Placement knows no such provider.
            self.statuses["stock", self.first] = 404
            self.statuses["own_usages", self.first] = 404

    def rename_provider(self, name: str) -> None:
        self.providers[self.here] = d.replace(self.providers[self.here], name=name)

    def leave(self, status: str, dest: str = "", type: str = "migration", **fields: t.Any) -> None:
        """Add a migration of the first server from the host, with some other fields."""
        move = self.migration(self.first, self.new, dest or self.there, status, type=type)
        self.alter(move, **fields)

    def add_node(self, name: str, host: str, provider: str | None = None) -> None:
        """Add a compute node without a provider, or with this one."""
        uuid = provider or self.uuid()
        self.nodes[uuid] = Hypervisor(uuid, name, host, "up", "enabled", ())

    def add_service(self, host: str) -> None:
        self.services.append(Service("nova-compute", host, "enabled", "up"))

    def offer(self, cls: str, **fields: int) -> None:
        """Change the inventory of the new provider for one class."""
        self.stock[self.new] = {**self.stock[self.new], cls: d.replace(BIG, **fields)}


def evacuated_meanwhile(cloud: Cloud) -> None:
    there = cloud.nodes[cloud.there]
    cloud.leave("done", type="evacuation")
    cloud.alter(cloud.first, host=there.host, node=there.name)


def namesake_in_another_cell(cloud: Cloud) -> None:
    cloud.add_node(HOST, HOST)
    cloud.add_service(HOST)


def node_of_the_same_name_on_another_host(cloud: Cloud) -> None:
    cloud.add_node(HOST, "compute-9")
    cloud.add_service("compute-9")


def service_not_up(cloud: Cloud) -> None:
    cloud.set_service(cloud.new, "down")


def with_child(cloud: Cloud, consumer: str) -> None:
    """Give a server an allocation of a device of the former provider."""
    child = cloud.provider("compute-1_nic", cloud.here)
    cloud.hold(consumer, child, amounts={"CUSTOM_VF": 1})


def with_shared_disk(cloud: Cloud) -> None:
    cloud.hold(cloud.first, cloud.provider("pool", sharing=True), amounts={"DISK_GB": 1})


def no_disk(cloud: Cloud) -> None:
    cloud.stock[cloud.new].pop("DISK_GB", None)


def full_of_others(cloud: Cloud) -> None:
    cloud.hold(cloud.server(cloud.new, cloud.new), cloud.new, amounts={**CLAIM, "VCPU": 9_999})


def not_in_the_tree(cloud: Cloud) -> None:
    """The allocation is not among those of the tree."""
    whole = cloud.allocations_of_tree(cloud.here)
    del whole[cloud.first]
    cloud.allocations_of_tree = lambda _root: whole  # type: ignore[method-assign]


def moved_in_vain_to_a_host_that_is_gone(cloud: Cloud) -> None:
    """The guest may be there."""
    to = {"dest_compute": "compute-8", "dest_node": "compute-8"}
    cloud.leave("error", cloud.provider("compute-8"), type="live-migration", **to)


def moved_in_vain_before_a_resize(cloud: Cloud) -> None:
    moved_in_vain_to_a_host_that_is_gone(cloud)
    cloud.leave("confirmed", cloud.new, type="resize")


def unread(question: str) -> Attack:
    return lambda cloud: cloud.answers(
        question, cloud.new if question == "host_tree" else cloud.first, 503
    )


ATTACKS: dict[str, dict[str, Attack]] = {
    "allocation_on_other_hosts_only": {
        "evacuated meanwhile": evacuated_meanwhile,
        "neighbour with an unconfirmed resize": lambda cloud: cloud.migration(
            cloud.second, cloud.new, cloud.there, "finished", cloud.here, type="resize"
        ),
        "stranger on the former provider": lambda cloud: cloud.stranger(cloud.here),
        "server from elsewhere on it": lambda cloud: cloud.server(cloud.there, cloud.here),
        "neighbour on a child": lambda cloud: with_child(cloud, cloud.second),
        "shared disk": with_shared_disk,
        "not in the tree": not_in_the_tree,
    },
    "migration_under_way": {
        "being evacuated": lambda cloud: cloud.leave("pre-migrating", type="evacuation")
    },
    "resize_to_confirm": {
        "unconfirmed resize": lambda cloud: cloud.alter(cloud.first, status="VERIFY_RESIZE")
    },
    "host_has_migration": {
        "migration to the host": lambda cloud: cloud.migration(
            cloud.server(cloud.there, cloud.new),
            *(cloud.there, cloud.new, "migrating", cloud.there),
        )
    },
    "compute_node_ambiguous": {
        "on another node": lambda cloud: cloud.alter(cloud.first, node="compute-1.other"),
        "namesake in another cell": namesake_in_another_cell,
    },
    "node_name_taken": {"by another host": node_of_the_same_name_on_another_host},
    "several_nodes_of_host": {
        "two": lambda cloud: cloud.add_node("compute-1-b", HOST, cloud.provider("compute-1-b"))
    },
    "several_compute_services": {"two": lambda cloud: cloud.add_service(HOST)},
    "compute_service_not_up": {"down": service_not_up},
    "settled_elsewhere": {
        "service without a node": lambda cloud: cloud.add_service("compute-7"),
        "host of the former provider exists": lambda cloud: cloud.unlisted_hosts.add(
            f"{HOST}-former"
        ),
        "without trait": lambda cloud: cloud.were_novas.clear(),
    },
    "needed_other_classes": {"on a child": lambda cloud: with_child(cloud, cloud.first)},
    "new_provider_lacks_class": {
        "no inventory yet": lambda cloud: cloud.stock[cloud.new].clear(),
        "no disk": no_disk,
    },
    "new_provider_lacks_room": {
        "room for one only": lambda cloud: cloud.offer("VCPU", total=1),
        "full of others": full_of_others,
        "neighbour with a class that the host lacks": lambda cloud: cloud.hold(
            cloud.second, cloud.here, amounts={**CLAIM, "CUSTOM_GOLD": 1}
        ),
    },
    "new_provider_refuses_amount": {
        "too large for one": lambda cloud: cloud.offer("MEMORY_MB", max_unit=256),
        "too small for one": lambda cloud: cloud.offer("MEMORY_MB", min_unit=1024),
        "between two steps": lambda cloud: cloud.offer("MEMORY_MB", step_size=100),
    },
    "move_may_have_ended": {
        "host that is gone": moved_in_vain_to_a_host_that_is_gone,
        "host that is gone, behind a resize": moved_in_vain_before_a_resize,
        "host that is gone, with the node of another": lambda cloud: cloud.leave(
            "error", type="live-migration", dest_compute="compute-8"
        ),
    },
    "server_unsettled": {
        "task not shown": lambda cloud: cloud.alter(cloud.first, task_known=False)
    },
    "former_provider_unread": {"tree": unread("former_tree"), "servers": unread("host_servers")},
    "new_provider_unread": {"usages": unread("own_usages"), "inventory": unread("host_tree")},
}
EACH = [attack for attacks in ATTACKS.values() for attack in attacks.values()]


@pytest.fixture(name="cloud")
def _cloud() -> Cloud:
    return Cloud()


def _rewrites(finding: Finding | None) -> bool:
    """Return whether the finding is of this kind and would write anything."""
    return finding is not None and finding.kind == "former_provider" and bool(finding.change)


@pytest.mark.parametrize(("reason", "attack"), list_cases(ATTACKS))
def test_doubt_keeps_the_allocation(cloud: Cloud, reason: str, attack: Attack) -> None:
    attack(cloud)
    finding = cloud.found(cloud.first)

    assert not _rewrites(finding)
    assert finding.reason.id == reason


@given(st.sets(st.sampled_from(range(len(EACH))), min_size=1, max_size=4))
def test_doubts_together_keep_the_allocation(numbers: set[int]) -> None:
    cloud = Cloud()
    for number in sorted(numbers):
        EACH[number](cloud)

    assert not _rewrites(cloud.find(cloud.first))


def test_another_region_may_use_the_former_provider(cloud: Cloud) -> None:
    other = d.replace(cloud.snapshot().cloud, other_novas=("RegionTwo",))

    assert not _rewrites(cloud.find(cloud.first, cloud=other))


def test_unsound_reading_proves_nothing(cloud: Cloud) -> None:
    listing = cloud.snapshot().services
    other = d.replace(listing, status=503, value=None)

    assert not _rewrites(cloud.find(cloud.first, services_after=other))


def test_allocation_moves_to_the_provider_of_the_compute_node(cloud: Cloud) -> None:
    finding = cloud.found(cloud.first)

    assert finding.reason.id == "on_former_provider"
    assert (finding.kind, finding.verdict) == ("former_provider", "drifted")
    assert finding.change is not None and finding.change.action == "rewrite"
    assert finding.change.after["allocations"] == {cloud.new: {"resources": dict(CLAIM)}}
    assert finding.change.generation == 1
    moved = finding.change.frees, finding.change.allocates
    assert moved == ({cloud.here: CLAIM}, {cloud.new: CLAIM})


@pytest.mark.parametrize(
    ("total", "used", "fits"), [(2, 0, True), (1, 0, False), (3, 1, True), (2, 1, False)]
)
def test_room_is_needed_for_exactly_what_the_former_provider_has(
    cloud: Cloud, total: int, used: int, fits: bool
) -> None:
    cloud.offer("VCPU", total=total, max_unit=total)
    if used:
        other = cloud.server(cloud.new)
        cloud.hold(other, cloud.new, amounts={"VCPU": used, "MEMORY_MB": 1, "DISK_GB": 1})

    assert _rewrites(cloud.find(cloud.first)) is fits


def test_moves_that_are_over_or_of_other_hosts_keep_nothing(cloud: Cloud) -> None:
    third = cloud.host("compute-3")
    mover = cloud.server(cloud.there, cloud.there)
    cloud.migration(mover, cloud.new, cloud.there, "completed", type="live-migration")
    cloud.migration(mover, cloud.there, third, "migrating")

    assert _rewrites(cloud.find(cloud.first))


def test_server_on_a_host_without_a_compute_node_is_of_no_kind() -> None:
    cloud = Cloud(renamed=False)
    del cloud.nodes[cloud.new]
    cloud.services = [service for service in cloud.services if service.host != HOST]

    assert cloud.told(cloud.first) == ("unproven", "undecided", "compute_node_ambiguous")


def test_provider_of_another_compute_node_is_not_the_former_one() -> None:
    """It has kept the name that the server's host has now."""
    scene = Scene()
    server = scene.server(scene.here, scene.there)
    scene.rename_host(scene.here, node="compute-3")
    scene.rename_host(scene.there, node="compute-4")
    scene.rename_host(scene.here, node="compute-2")

    assert scene.found(server).kind == "misplaced_allocation"


def test_tree_that_was_not_read_is_not_taken_for_the_former_one() -> None:
    cloud = Cloud()
    evidence = cloud.evidence(cloud.first, former_tree=NOT_ASKED)
    finding = cloud.found(cloud.first, evidence=evidence)

    assert finding.kind == "misplaced_allocation"
    assert finding.reason.id == "allocation_on_other_hosts_only"


def test_amounts_need_not_be_those_of_the_flavor(cloud: Cloud) -> None:
    """A server that was booted from a volume has no disk, and Nova does not show its image."""
    amounts = {"VCPU": 4, "MEMORY_MB": 100}
    for server in (cloud.first, cloud.second):
        held = d.replace(cloud.allocations[server], resources={cloud.here: amounts})
        cloud.allocations[server] = held
        cloud.alter(server, image=None, image_properties=None)
    finding = cloud.found(cloud.first)

    assert finding.change is not None
    assert finding.change.after["allocations"] == {cloud.new: {"resources": amounts}}


def test_changes_settle_all_servers_one_after_the_other(cloud: Cloud) -> None:
    for server in (cloud.first, cloud.second):
        finding = cloud.found(server)
        assert finding.change is not None
        cloud.apply(finding.change)

    assert cloud.find(cloud.first) is None and cloud.find(cloud.second) is None
    kinds = {finding.kind for finding in judge(cloud.snapshot(), NO_MINIMUM_AGE)}
    assert kinds == {"orphaned_provider"}


def test_tree_is_removed_only_when_it_is_empty(cloud: Cloud) -> None:
    before = [one for one in judge(cloud.snapshot(), NO_MINIMUM_AGE) if one.subject == cloud.here]

    assert [(one.kind, one.change) for one in before] == [("orphaned_provider", None)]


def test_missing_provider_is_not_a_conflict_where_the_former_one_has_another_name(
    cloud: Cloud,
) -> None:
    del cloud.providers[cloud.new]
    cloud.answers("host_tree", cloud.new, 404)

    told = cloud.told(cloud.first)
    assert told == ("former_provider", "undecided", "new_provider_unread")


def test_name_conflict_says_what_to_do_and_changes_nothing() -> None:
    cloud = Cloud(renamed=False)
    # Neither failure left a guest where the former provider was.
    cloud.leave("error", type="live-migration")
    cloud.leave("error", type="resize", dest_compute="compute-8")
    finding = cloud.found(cloud.first)

    assert (finding.kind, finding.verdict, finding.change) == ("former_provider", "drifted", None)
    assert finding.reason.id == "former_provider_has_name"
    assert f"--name {HOST}-former {cloud.here}" in finding.reason


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (lambda cloud: cloud.stranger(cloud.here), "former_provider_has_other_consumers"),
        (service_not_up, "compute_service_not_up"),
        (lambda cloud: cloud.were_novas.clear(), "without_nova_trait"),
        (with_shared_disk, "on_other_providers_too"),
        (lambda cloud: with_child(cloud, cloud.second), "former_provider_has_children"),
        (not_in_the_tree, "not_listed_by_provider"),
        (lambda cloud: cloud.add_service(HOST), "several_compute_services"),
        (moved_in_vain_to_a_host_that_is_gone, "move_to_gone_host_failed"),
        (moved_in_vain_before_a_resize, "move_to_gone_host_failed"),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_name_conflict_in_doubt_is_undecided_and_suggests_no_renaming(
    attack: Attack, reason: str
) -> None:
    cloud = Cloud(renamed=False)
    attack(cloud)

    assert cloud.undecided(cloud.first) == reason
    assert "--name" not in cloud.found(cloud.first).reason


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        (lambda cloud: cloud.stranger(cloud.here), "misplaced_allocation"),
        (unread("host_servers"), "former_provider"),
        (unread("former_tree"), "former_provider"),
    ],
)
def test_tree_with_consumers_of_others_is_no_former_provider_of_the_host(
    cloud: Cloud, attack: Attack, kind: str
) -> None:
    """An answer that could not be read leaves it open."""
    attack(cloud)

    assert cloud.found(cloud.first).kind == kind


def test_name_of_another_region_is_not_advised_to_be_changed() -> None:
    """The provider of that name may be that of a host there."""
    cloud = Cloud(renamed=False)
    other = d.replace(cloud.snapshot().cloud, other_novas=("RegionTwo",))
    finding = cloud.found(cloud.first, cloud=other)

    assert (finding.kind, finding.verdict) == ("former_provider", "undecided")
    assert finding.reason.id == "other_nova_on_placement"
    assert "--name" not in finding.reason


def test_host_that_is_gone_is_another_kind() -> None:
    """The server has left a host that was decommissioned since."""
    scene = Scene()
    server = scene.server(scene.here, scene.there)
    scene.comes(server, "done", type="evacuation")
    scene.remove_host(scene.there)

    assert scene.found(server).kind == "misplaced_allocation"


@st.composite
def _clouds(draw: st.DrawFn) -> Cloud:
    """Return a cloud whose host came back, where anything may have happened to its servers."""
    cloud = Cloud(renamed=draw(st.sampled_from([True, True, True, False])))
    for _number in range(draw(st.integers(0, 2))):
        amounts = {cls: draw(st.integers(1, 3)) * amount for cls, amount in CLAIM.items()}
        server = cloud.server(cloud.new)
        cloud.hold(server, cloud.here, amounts=amounts)
    if draw(st.booleans()):
        total = draw(st.integers(1, 6))
        scarce = d.replace(PLENTY, total=total, max_unit=total)
        cloud.stock[cloud.new] = {"VCPU": scarce, "MEMORY_MB": BIG, "DISK_GB": BIG}
    for attack in draw(st.lists(st.sampled_from(EACH), max_size=1)):
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
    former_tree = {
        uuid for uuid, provider in cloud.providers.items() if provider.root == cloud.here
    }
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
        assert (before, after) == (cloud.here, cloud.new)
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
