"""Live servers whose allocation is wrong.

What is found, what would be written, and healthy lookalikes.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.consumer import build_views
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.kinds import leaked_child as leaked_child_of
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, FLAVOR, NOW, PLENTY, World

Situation = Callable[["Cloud"], str]


BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
DOUBLE = {cls: 2 * amount for cls, amount in CLAIM.items()}


REALTIME = {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes"}


class Cloud(World):
    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.pool = self.provider("pool", sharing=True)
        self.child = self.provider("compute-1_nic", self.here)

    def finding(self, consumer: str, policy: Policy = NO_MINIMUM_AGE) -> Finding | None:
        return next(
            (found for found in judge(self.snapshot(), policy) if found.consumer == consumer), None
        )


def failed_copy(cloud: Cloud, server: str, *holds: str) -> None:
    """Record a cold migration that the source's driver gave up, as its host does."""
    move = cloud.migration(server, cloud.here, cloud.there, "error", *holds)
    cloud.recorded(
        move,
        ("compute_prep_resize", cloud.there, "Success"),
        ("compute_resize_instance", cloud.here, "Error"),
        in_copy=True,
    )


def unreverted_allocation(cloud: Cloud, **fields: t.Any) -> str:
    server = cloud.server(cloud.here, cloud.there, **fields)
    failed_copy(cloud, server, cloud.here)
    return server


def unreverted_allocation_of_a_live_migration(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    cloud.migration(server, cloud.here, cloud.there, "error", cloud.here, type="live-migration")
    return server


def unreverted_allocation_of_one_who_holds_nothing(cloud: Cloud) -> str:
    server = cloud.server(cloud.here)
    failed_copy(cloud, server, cloud.here)
    return server


def unreverted_allocation_with_a_shared_disk(cloud: Cloud) -> str:
    on_host, shared = {"VCPU": 1, "MEMORY_MB": 512}, {"DISK_GB": 1}
    cloud.stock[cloud.here] = dict.fromkeys(on_host, PLENTY)
    server = cloud.hold(cloud.server(cloud.here), cloud.there, amounts=on_host)
    cloud.hold(server, cloud.pool, amounts=shared)
    failed_copy(cloud, server)
    (move,) = cloud.migrations
    cloud.hold(cloud.hold(move, cloud.here, amounts=on_host), cloud.pool, amounts=shared)
    return server


def misplaced_allocation(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.server(cloud.here, cloud.there, **fields)


def missing_allocation(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.server(cloud.here, **fields)


def too_much(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.hold(cloud.server(cloud.here, **fields), cloud.here, amounts=DOUBLE)


def too_little(cloud: Cloud) -> str:
    return cloud.hold(cloud.server(cloud.here), cloud.here, amounts={"VCPU": 1, "MEMORY_MB": 512})


def wrong_project(cloud: Cloud) -> str:
    return cloud.server(cloud.here, cloud.here, project="another")


def wrong_user(cloud: Cloud) -> str:
    return cloud.server(cloud.here, cloud.here, user="another")


def leaked_child(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.hold(
        cloud.server(cloud.here, cloud.here, **fields), cloud.child, amounts={"CUSTOM_VF": 1}
    )


DRIFTED: dict[Situation, tuple[str, str | None]] = {
    unreverted_allocation: ("unreverted_allocation", "rewrite"),
    unreverted_allocation_of_a_live_migration: ("unreverted_allocation", None),
    unreverted_allocation_of_one_who_holds_nothing: ("unreverted_allocation", "create"),
    unreverted_allocation_with_a_shared_disk: ("unreverted_allocation", "rewrite"),
    misplaced_allocation: ("misplaced_allocation", "rewrite"),
    missing_allocation: ("missing_allocation", "create"),
    too_much: ("wrong_amount", "reduce"),
    too_little: ("wrong_amount", "rewrite"),
    wrong_project: ("wrong_owner", "rewrite"),
    wrong_user: ("wrong_owner", "rewrite"),
    leaked_child: ("leaked_child", None),
}


@pytest.mark.parametrize("situation", DRIFTED, ids=lambda situation: situation.__name__)
def test_drift_is_found(situation: Situation) -> None:
    kind, action = DRIFTED[situation]
    cloud = Cloud()
    finding = cloud.finding(situation(cloud))

    assert finding is not None
    assert (finding.verdict, finding.kind, finding.change and finding.change.action) == (
        "drifted",
        kind,
        action,
    )
    assert finding.reason.endswith(".") and finding.evidence and not finding.freed_providers


@pytest.mark.parametrize(
    "situation",
    [situation for situation, (_kind, action) in DRIFTED.items() if action],
    ids=lambda one: one.__name__,
)
def test_change_settles_the_drift(situation: Situation) -> None:
    cloud = Cloud()
    consumer = situation(cloud)
    finding = cloud.finding(consumer)
    assert finding and finding.change
    cloud.apply(finding.change)

    assert cloud.finding(consumer) is None
    assert set(cloud.allocations[consumer].resources) - {cloud.pool} == {cloud.here}


@pytest.mark.parametrize("situation", [missing_allocation, misplaced_allocation, too_much])
def test_what_the_server_needs_is_told(situation: Situation) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud))

    assert finding and "1 VCPU (" in finding.reason


def test_server_on_an_excluded_host_gets_no_allocation_there() -> None:
    cloud = Cloud()
    policy = d.replace(NO_MINIMUM_AGE, exclude_providers=frozenset({cloud.here}))
    finding = cloud.finding(misplaced_allocation(cloud), policy)

    assert finding and (finding.kind, finding.change) == ("excluded", None)
    assert finding.reason.id == "provider_excluded"


def test_change_of_an_unreverted_allocation_is_one_request_and_frees_nothing_on_the_host() -> None:
    cloud = Cloud()
    finding = cloud.finding(unreverted_allocation(cloud))

    assert finding and finding.change and finding.change.partner and finding.migration
    assert finding.reason.id == "migration_has_needed_allocation"
    assert finding.change.partner.consumer == finding.migration.uuid
    assert finding.change.partner.after["allocations"] == {}
    assert (finding.change.frees, finding.change.allocates) == ({cloud.there: CLAIM}, {})


def the_migration_holds_another_host_too(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    failed_copy(cloud, server, cloud.here, cloud.there)
    return server


def the_migration_holds_a_device_of_its_host_alone(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    failed_copy(cloud, server, cloud.child)
    return server


def the_allocation_of_the_migration_has_no_generation(cloud: Cloud) -> str:
    server = unreverted_allocation(cloud)
    (move,) = cloud.migrations
    cloud.allocations[move] = d.replace(cloud.allocations[move], generation=None)
    return server


def nothing_is_allocated_and_a_task_may_run(cloud: Cloud) -> str:
    return missing_allocation(cloud, task_known=False)


def unreverted_allocation_while_a_task_may_run(cloud: Cloud) -> str:
    return unreverted_allocation(cloud, task_known=False)


def two_migrations_hold_its_host(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    cloud.migration(server, cloud.here, cloud.there, "error", cloud.here)
    failed_copy(cloud, server, cloud.here)
    return server


def on_a_provider_of_somebody_else(cloud: Cloud) -> str:
    return cloud.server(cloud.here, cloud.provider("elsewhere"))


def a_confirmed_migration_holds_its_host(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    cloud.migration(server, cloud.here, cloud.there, "confirmed", cloud.here)
    cloud.migration(server, cloud.there, cloud.here, "confirmed")
    return server


@pytest.mark.parametrize(
    ("situation", "reason"),
    [
        (the_migration_holds_another_host_too, "migration_allocated_elsewhere_too"),
        (the_migration_holds_a_device_of_its_host_alone, "migration_allocated_elsewhere_too"),
        (the_allocation_of_the_migration_has_no_generation, "migration_allocated_elsewhere_too"),
        (nothing_is_allocated_and_a_task_may_run, "server_unsettled"),
        (unreverted_allocation_while_a_task_may_run, "server_unsettled"),
        (two_migrations_hold_its_host, "several_migrations_allocated"),
        (on_a_provider_of_somebody_else, "settled_elsewhere"),
        (a_confirmed_migration_holds_its_host, "flavor_may_be_older"),
    ],
)
def test_drift_is_undecided(situation: Situation, reason: str) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud))

    assert finding and (finding.verdict, finding.change) == ("undecided", None)
    assert finding.reason.id == reason


def test_allocation_of_a_confirmed_migration_may_be_of_an_older_flavor() -> None:
    cloud = Cloud()
    finding = cloud.finding(a_confirmed_migration_holds_its_host(cloud))

    assert finding and finding.kind == "unreverted_allocation"
    assert finding.reason.id == "flavor_may_be_older"


@pytest.mark.parametrize(
    "situation", [unreverted_allocation, misplaced_allocation, missing_allocation, too_much]
)
@pytest.mark.parametrize(
    ("fields", "kind", "reason"),
    [
        ({"task_state": "migrating"}, "task", "task_under_way"),
        ({"status": "VERIFY_RESIZE"}, "verify_resize", "resize_to_confirm"),
        ({"status": "ERROR"}, "error_with_host", "error_on_host"),
        ({"status": "SOFT_DELETED"}, "soft_deleted", "soft_deleted"),
    ],
)
def test_unsettled_server_is_protected(
    situation: Callable[..., str], fields: dict[str, t.Any], kind: str, reason: str
) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud, **fields))

    # A server with an allocation only on its own host is healthy, whatever the amounts.
    if situation is too_much:
        assert finding is None
        return
    assert finding and (finding.verdict, finding.kind) == ("protected", kind)
    assert finding.reason.id == reason and finding.change is None


@pytest.mark.parametrize(
    ("spared", "policy", "reason"),
    [
        (
            {},
            lambda move, here: Policy(min_age=0, exclude_consumers=frozenset({move})),
            "excluded_by_name",
        ),
        (
            {},
            lambda move, here: Policy(min_age=0, exclude_providers=frozenset({here})),
            "provider_excluded",
        ),
        ({"type": "CONTAINER"}, lambda move, here: Policy(min_age=0), "of_other_service"),
        ({"age_seconds": 60}, lambda move, here: Policy(min_age=3600), "younger_than_min_age"),
    ],
    ids=["excluded", "its provider excluded", "somebody else's", "young"],
)
def test_protected_migration_is_not_emptied_for_its_server(
    spared: dict[str, t.Any], policy: Callable[[str, str], Policy], reason: str
) -> None:
    cloud = Cloud()
    server = unreverted_allocation(cloud)
    move = next(iter(cloud.migrations))
    cloud.allocations[move] = d.replace(cloud.allocations[move], **spared)
    finding = cloud.finding(server, policy(move, cloud.here))

    assert finding and (finding.verdict, finding.change) == ("protected", None)
    assert finding.reason.id == reason


@pytest.mark.parametrize(
    ("status", "writes"), [("error", False), ("failed", False), ("confirmed", True)]
)
def test_allocation_is_not_reduced_after_a_late_resize_failure(status: str, writes: bool) -> None:
    """Nova returns the server to its old flavor.

    The guest may have the new size (nova/compute/manager.py, _finish_resize).
    """
    cloud = Cloud()
    server = too_much(cloud)
    cloud.migration(server, cloud.there, cloud.here, status, type="resize")
    finding = cloud.finding(server)

    assert finding and (finding.kind, bool(finding.change)) == ("wrong_amount", writes)


@pytest.mark.parametrize(
    ("type", "status", "writes"),
    [
        ("live-migration", "completed", False),
        ("live-migration", "error", True),
        ("migration", "confirmed", True),
        ("resize", "confirmed", True),
    ],
)
def test_live_migration_takes_the_guest_of_a_late_resize_failure_along(
    type: str, status: str, writes: bool
) -> None:
    """Only a live migration does not start the guest again (nova/compute/manager.py)."""
    cloud = Cloud()
    server = too_much(cloud)
    cloud.migration(server, cloud.here, cloud.there, "error", type="resize")
    cloud.migration(server, cloud.there, cloud.here, status, type=type)
    finding = cloud.finding(server)

    assert finding and (finding.kind, bool(finding.change)) == ("wrong_amount", writes)


@pytest.mark.parametrize(
    ("dest", "writes"), [("compute-1-former", False), (None, True), ("compute-2", True)]
)
def test_host_that_is_not_listed_may_be_that_of_a_late_resize_failure(
    dest: str | None, writes: bool
) -> None:
    """It may have another name now. A resize that found no host has reached none."""
    cloud = Cloud()
    server = too_much(cloud)
    move = cloud.migration(server, cloud.here, cloud.there, "error", type="resize")
    cloud.migrations[move] = d.replace(cloud.migrations[move], dest_compute=dest)
    finding = cloud.finding(server)

    assert finding and (finding.kind, bool(finding.change)) == ("wrong_amount", writes)


def test_later_moves_do_not_hide_a_late_resize_failure() -> None:
    cloud = Cloud()
    server = too_much(cloud)
    cloud.migration(server, cloud.there, cloud.here, "error", type="resize")
    cloud.migration(server, cloud.here, cloud.there, "reverted")
    finding = cloud.finding(server)

    assert finding and (finding.kind, finding.change) == ("wrong_amount", None)
    assert finding.reason.id == "resize_failed_at_host"


@pytest.mark.parametrize("move", ["live-migration", "evacuation"])
def test_allocation_is_kept_where_a_failed_move_may_have_left_the_guest(move: str) -> None:
    cloud = Cloud()
    server = misplaced_allocation(cloud)
    cloud.migration(server, cloud.here, cloud.there, "error", type=move)
    finding = cloud.finding(server)

    assert finding and (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "move_may_have_ended"


@pytest.mark.parametrize(("began", "writes"), [("there", False), ("here", True)])
def test_allocation_is_kept_where_an_earlier_unshelve_may_have_left_the_guest(
    began: str, writes: bool
) -> None:
    """It failed at its last write, which is outside of what Nova cleans up after."""
    cloud = Cloud()
    server = misplaced_allocation(cloud)
    cloud.did(server, "unshelve", NOW, host=cloud.nodes[getattr(cloud, began)].host)
    cloud.fail_newest_action(server)
    cloud.pass_time()
    cloud.did(server, "unshelve", NOW, host=cloud.nodes[cloud.here].host)
    finding = cloud.finding(server)

    assert finding and (finding.kind, bool(finding.change)) == ("misplaced_allocation", writes)


def test_allocation_is_kept_where_an_evacuation_may_have_left_the_guest() -> None:
    """The host was only cut off, and nova-compute has not started since."""
    cloud = Cloud()
    server = misplaced_allocation(cloud)
    cloud.migration(server, cloud.there, cloud.here, "done", type="evacuation")
    cloud.set_service(cloud.there, "up")
    finding = cloud.finding(server)

    assert finding and (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "guest_not_cleaned_up"


@pytest.mark.parametrize("situation", [misplaced_allocation, missing_allocation])
def test_young_allocation_is_protected(situation: Situation) -> None:
    cloud = Cloud()
    consumer = situation(cloud)
    cloud.servers[consumer] = d.replace(cloud.servers[consumer], updated="2026-11-20T14:59:00Z")
    if consumer in cloud.allocations:
        cloud.hold(consumer, cloud.there, age=60)
        cloud.allocations[consumer] = d.replace(cloud.allocations[consumer], age_seconds=60)
    finding = cloud.finding(consumer, Policy(min_age=3600))

    assert finding and finding.kind == "too_young"


def _with_all_sorts_of_devices(cloud: Cloud) -> Cloud:
    """Give the host what flavors, images and ports may request."""
    cloud.stock[cloud.here] = dict.fromkeys((*CLAIM, "PCPU", "MEM_ENCRYPTION_CONTEXT"), PLENTY)
    cloud.stock[cloud.child] = dict.fromkeys(("CUSTOM_VF", "FPGA", BANDWIDTH), PLENTY)
    cloud.traits[cloud.child] = frozenset({"COMPUTE_MANAGED_PCI_DEVICE"})
    return cloud


@pytest.mark.parametrize(
    ("fields", "writes", "wrong"),
    [
        ({"flavor": None}, False, "undecided"),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, False, "undecided"),
        ({"image_properties": None}, False, "drifted"),
        ({"flavor": d.replace(FLAVOR, extra_specs={"pci_passthrough:alias": "gpu:1"})}, False, "d"),
        ({"flavor": d.replace(FLAVOR, extra_specs={"resources:VGPU": "1"})}, False, "undecided"),
        ({"flavor": d.replace(FLAVOR, extra_specs={"accel:device_profile": "x"})}, False, "d"),
        ({"flavor": d.replace(FLAVOR, extra_specs={"hw:numa_nodes": "2"})}, True, "drifted"),
        ({"flavor": d.replace(FLAVOR, extra_specs={"hw:cpu_policy": "dedicated"})}, True, "d"),
        ({"image_properties": {"hw_cpu_policy": "dedicated"}}, True, "drifted"),
    ],
    ids=str,
)
def test_change_needs_all_that_decides_on_the_request(
    fields: dict[str, t.Any], writes: bool, wrong: str
) -> None:
    cloud = _with_all_sorts_of_devices(Cloud())
    lost, more = (
        cloud.finding(situation(cloud, **fields)) for situation in (missing_allocation, too_much)
    )

    assert lost and bool(lost.change) is writes
    assert writes or "heal_allocations" in lost.reason
    assert more and more.kind == "wrong_amount" and more.verdict.startswith(wrong)


def _port(vnic_type: str | None = "normal", asks: bool | None = False, bound: str = "") -> t.Any:
    groups: t.Any = (PortGroup("port", {BANDWIDTH: 1}),) if asks else ()
    if asks is None:
        groups = None
    return ServerPort("port", vnic_type, groups, {"": bound} if bound else {})


@pytest.mark.parametrize(
    ("ports", "plain", "reason"),
    [
        ((), True, "unrequested_child_allocation"),
        ((_port(),), True, "unrequested_child_allocation"),
        ((_port("macvtap"),), False, "input_missing"),
        # It may have a device of the host, which Nova then allocates by itself.
        ((_port(None),), False, "input_missing"),
        ((_port("direct"),), False, "input_missing"),
        ((_port(asks=None),), False, "input_missing"),
        ((_port(asks=True),), False, "input_missing"),
    ],
    ids=str,
)
def test_port_may_request_more(ports: tuple[ServerPort, ...], plain: bool, reason: str) -> None:
    cloud = _with_all_sorts_of_devices(Cloud())
    server = missing_allocation(cloud)
    cloud.ports[server] = ports
    leaker = leaked_child(cloud)
    cloud.ports[leaker] = ports
    missing, leaked = cloud.finding(server), cloud.finding(leaker)

    assert missing and bool(missing.change) is plain
    assert leaked and leaked.kind == ("leaked_child" if plain else "wrong_amount")
    assert leaked.verdict == ("drifted" if plain else "undecided")
    assert leaked.reason.id == reason


def test_port_requests_no_device_where_placement_tracks_none() -> None:
    cloud = Cloud()
    server = missing_allocation(cloud)
    cloud.ports[server] = (_port("direct"),)
    finding = cloud.finding(server)

    assert finding and finding.kind == "missing_allocation" and finding.change


def test_port_hidden_by_neutron_may_request_more() -> None:
    """A role that is not an administrator of Neutron sees no other projects, and gets 200."""
    cloud = _with_all_sorts_of_devices(Cloud())
    server = missing_allocation(cloud)
    leaker = leaked_child(cloud)
    snapshot = cloud.snapshot()
    attached = {
        uuid: d.replace(evidence, interfaces=d.replace(evidence.interfaces, value=("port",)))
        for uuid, evidence in snapshot.evidence.items()
        if uuid in (server, leaker)
    }
    found = {
        finding.consumer: finding
        for finding in judge(
            d.replace(snapshot, evidence={**snapshot.evidence, **attached}), NO_MINIMUM_AGE
        )
    }

    assert found[server].change is None and "Neutron" in found[server].reason
    assert found[leaker].verdict == "undecided" and "Neutron" in found[leaker].reason


def booted_from_a_pinned_volume(cloud: Cloud) -> str:
    """The properties of the volume's image are Cinder's.

    Nova allocates by them and does not show them.
    """
    server = cloud.server(cloud.here, image=None, image_properties=None, volumes=("volume",))
    return cloud.hold(server, cloud.there, amounts={"PCPU": 1, "MEMORY_MB": 512})


def with_a_class_that_no_plain_server_has(cloud: Cloud) -> str:
    return cloud.hold(cloud.server(cloud.here), cloud.there, amounts={"PCPU": 1, "MEMORY_MB": 512})


@pytest.mark.parametrize(
    "situation", [booted_from_a_pinned_volume, with_a_class_that_no_plain_server_has]
)
def test_allocation_larger_than_its_flavor_shows_is_not_rewritten(situation: Situation) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud))

    assert finding and (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "needed_other_classes"


@pytest.mark.parametrize("question", ["shape", "interfaces", "server_ports", "host_tree"])
def test_nothing_is_written_without_an_answer(question: str) -> None:
    cloud = _with_all_sorts_of_devices(Cloud())
    server, more = missing_allocation(cloud), too_much(cloud)
    for uuid in (server, more, cloud.here):
        cloud.answers(question, uuid, 503)
    missing, wrong = cloud.finding(server), cloud.finding(more)

    assert missing and missing.change is None and "answered 503" in missing.reason
    assert wrong.reason.id == "input_missing"
    assert wrong and wrong.change is None and "answered 503" in wrong.reason


def test_host_with_a_shared_disk_leaves_allocations_to_nova() -> None:
    cloud = Cloud()
    server = missing_allocation(cloud)
    cloud.stock[cloud.here] = {"VCPU": PLENTY, "MEMORY_MB": PLENTY}
    finding = cloud.finding(server)

    assert finding and finding.change is None and "DISK_GB" in finding.reason
    assert finding.reason.id == "no_provider_fits"
    assert "It needs" not in finding.reason


def booted_from_a_volume(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, image=None, volumes=("volume",))
    return cloud.hold(server, cloud.here, amounts={"VCPU": 1, "MEMORY_MB": 512})


def with_swap_and_ephemeral_disk(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, flavor=d.replace(FLAVOR, ephemeral=3, swap=1025))
    return cloud.hold(server, cloud.here, amounts={"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 6})


def with_a_shared_disk(cloud: Cloud) -> str:
    server = cloud.hold(cloud.server(cloud.here), cloud.here, amounts={"VCPU": 1, "MEMORY_MB": 512})
    return cloud.hold(server, cloud.pool, amounts={"DISK_GB": 1})


def with_a_child_that_its_flavor_asks_for(cloud: Cloud) -> str:
    return leaked_child(cloud, flavor=d.replace(FLAVOR, extra_specs={"resources:CUSTOM_VF": "1"}))


def with_an_allocation_of_a_failed_move_beside_its_own(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.here)
    failed_copy(cloud, server, cloud.here)
    return server


@pytest.mark.parametrize(
    "situation",
    [
        with_an_allocation_of_a_failed_move_beside_its_own,
        booted_from_a_volume,
        with_swap_and_ephemeral_disk,
        with_a_shared_disk,
        with_a_child_that_its_flavor_asks_for,
    ],
)
def test_situation_without_drift_has_no_finding(situation: Situation) -> None:
    cloud = Cloud()

    assert cloud.finding(situation(cloud)) is None


def test_wrong_amounts_of_the_host_itself_are_no_leaked_child() -> None:
    cloud = Cloud()
    server = too_much(cloud)
    views = build_views(SnapshotIndex(cloud.snapshot()))
    (view,) = [view for view in views if view.consumer == server]

    assert leaked_child_of.prove(view, NO_MINIMUM_AGE) is None


def test_finding_has_its_requests_as_evidence() -> None:
    cloud = Cloud()
    finding = cloud.finding(missing_allocation(cloud))

    assert finding and "It needs 1 VCPU (the VCPUs of the flavor)" in finding.reason
    assert finding and NOT_ASKED not in finding.evidence
    asked = {answer.request.split()[0] for answer in finding.evidence}
    assert asked == {
        "GET",
        "migrations",
        "server",
        "actions",
        "shape",
        "interfaces",
        "server_ports",
        "host_tree",
    }


@pytest.mark.parametrize(
    ("specs", "at_boot", "now"),
    [
        pytest.param(
            REALTIME, {"VCPU": 1, "PCPU": 3}, {"hw_cpu_realtime_mask": "^0-1"}, id="other-mask"
        ),
        pytest.param(
            {"hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
            {"VCPU": 1, "PCPU": 3},
            {"hw_cpu_policy": "dedicated"},
            id="other-policy",
        ),
    ],
)
def test_cpus_are_not_rewritten_by_properties_that_a_volume_got_later(
    specs: dict[str, str], at_boot: dict[str, int], now: dict[str, str]
) -> None:
    """Any user may change them (Cinder, os-set_image_metadata); Nova keeps those of the boot."""
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(("VCPU", "PCPU", "MEMORY_MB", "DISK_GB"), PLENTY)
    flavor = d.replace(FLAVOR, vcpus=4, disk=0, extra_specs=specs)
    server = cloud.server(cloud.here, flavor=flavor, image=None, volumes=("volume",))
    cloud.hold(server, cloud.here, amounts={**at_boot, "MEMORY_MB": 512})
    cloud.volume_properties["volume"] = now
    finding = cloud.finding(server)

    assert finding is None or finding.change is None, finding


def test_cpus_of_a_volume_are_rewritten_where_the_flavor_alone_decides() -> None:
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(("PCPU", "MEMORY_MB"), PLENTY)
    flavor = d.replace(FLAVOR, extra_specs={"hw:cpu_policy": "dedicated"})
    server = cloud.server(cloud.here, flavor=flavor, image=None, volumes=("volume",))
    cloud.hold(server, cloud.here, amounts={"PCPU": 2, "MEMORY_MB": 512})
    finding = cloud.finding(server)

    assert finding and finding.kind == "wrong_amount" and finding.change
    assert finding.change.frees == {cloud.here: {"PCPU": 1}}


NOTHING = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}


@pytest.mark.parametrize("held", [{}, {"CUSTOM_GOLD": 1}], ids=["nothing", "node"])
def test_server_whose_flavor_requests_nothing_loses_nothing(held: dict[str, int]) -> None:
    """The flavor of a bare metal server that is older than the resource classes of Ironic."""
    cloud = Cloud()
    cloud.stock[cloud.here] = {"CUSTOM_GOLD": PLENTY}
    server = cloud.server(cloud.here, flavor=d.replace(FLAVOR, extra_specs=NOTHING))
    if held:
        cloud.hold(server, cloud.here, amounts=held)
    finding = cloud.finding(server)

    assert finding and finding.change is None and finding.reason.id == "flavor_requests_nothing"


def test_sharing_provider_keeps_each_class_of_a_live_server() -> None:
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(("VCPU", "MEMORY_MB"), PLENTY)
    cloud.stock[cloud.pool] = dict.fromkeys(("DISK_GB", "CUSTOM_IOPS"), PLENTY)
    server = cloud.hold(cloud.server(cloud.here), cloud.here, amounts={"VCPU": 2, "MEMORY_MB": 512})
    cloud.hold(server, cloud.pool, amounts={"DISK_GB": 1, "CUSTOM_IOPS": 5})
    finding = cloud.finding(server)

    assert finding and finding.change is None and "CUSTOM_IOPS on pool" in finding.reason
    assert finding.reason.id == "unneeded_on_shared_provider"


def test_shared_disk_that_a_server_would_not_get_keeps_its_allocation() -> None:
    cloud = Cloud()
    server = misplaced_allocation(cloud, flavor=d.replace(FLAVOR, disk=2))
    cloud.hold(server, cloud.provider("first-pool", sharing=True), amounts={"DISK_GB": 2})
    cloud.hold(server, cloud.pool, amounts={"DISK_GB": 1})
    finding = cloud.finding(server)

    assert finding and (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "unneeded_shared_provider"


def test_device_of_the_root_provider_that_nothing_requests_stays() -> None:
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(("VCPU", "MEMORY_MB", "DISK_GB", "VGPU"), PLENTY)
    server = cloud.hold(
        cloud.server(cloud.here),
        cloud.here,
        amounts={"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1, "VGPU": 1},
    )
    finding = cloud.finding(server)

    assert finding and finding.change is None and finding.reason.id == "unrequested_device_in_use"
