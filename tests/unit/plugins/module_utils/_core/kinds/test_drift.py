"""Live servers whose allocation is wrong.

What is found, what would be written, and healthy lookalikes.
"""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.consumer import build_views
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.kinds import leaked_child as leaked_child_of
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, list_cases
from ...world import CLAIM, FLAVOR, PLENTY
from ..scene import Scene

Situation = Callable[["Cloud"], str]

BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
DOUBLE = {cls: 2 * amount for cls, amount in CLAIM.items()}
WITHOUT_DISK = {"VCPU": 1, "MEMORY_MB": 512}
DISK = {"DISK_GB": 1}
VOLUME: dict[str, t.Any] = {"image": None, "volumes": ("volume",)}


class Cloud(Scene):
    """Two hosts, a device of the first, and a pool of disks."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = self.provider("pool", sharing=True)
        self.child = self.provider("compute-1_nic", self.here)

    def on_here(self, amounts: t.Mapping[str, int], **fields: t.Any) -> str:
        """Add a server on the host `here` with an allocation of these amounts there."""
        return self.hold(self.server(self.here, **fields), self.here, amounts=amounts)

    def offers(self, provider: str, *classes: str) -> None:
        self.stock[provider] = dict.fromkeys(classes, PLENTY)


@pytest.fixture(name="cloud")
def _cloud() -> Cloud:
    return Cloud()


def flavor(**specs: str) -> dict[str, t.Any]:
    """Return the flavor of a server with these extra specs; __ in a name stands for a colon."""
    named = {name.replace("__", ":"): value for name, value in specs.items()}
    return {"flavor": d.replace(FLAVOR, extra_specs=named)}


def failed_copy(cloud: Cloud, server: str, *holds: str) -> str:
    """Record a cold migration that the source's driver gave up, as its host does."""
    cloud.recorded(
        cloud.goes(server, "error", *holds),
        ("compute_prep_resize", cloud.there, "Success"),
        ("compute_resize_instance", cloud.here, "Error"),
        in_copy=True,
    )
    return server


def unreverted_allocation(cloud: Cloud, **fields: t.Any) -> str:
    return failed_copy(cloud, cloud.server(cloud.here, cloud.there, **fields), cloud.here)


def unreverted_allocation_of_a_live_migration(cloud: Cloud) -> str:
    server = cloud.server(cloud.here, cloud.there)
    cloud.goes(server, "error", cloud.here, type="live-migration")
    return server


def unreverted_allocation_with_a_shared_disk(cloud: Cloud) -> str:
    cloud.offers(cloud.here, *WITHOUT_DISK)
    server = cloud.hold(cloud.server(cloud.here), cloud.there, amounts=WITHOUT_DISK)
    failed_copy(cloud, cloud.hold(server, cloud.pool, amounts=DISK))
    (move,) = cloud.migrations
    cloud.hold(cloud.hold(move, cloud.here, amounts=WITHOUT_DISK), cloud.pool, amounts=DISK)
    return server


def misplaced_allocation(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.server(cloud.here, cloud.there, **fields)


def missing_allocation(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.server(cloud.here, **fields)


def too_much(cloud: Cloud, **fields: t.Any) -> str:
    return cloud.on_here(DOUBLE, **fields)


def leaked_child(cloud: Cloud, **fields: t.Any) -> str:
    server = cloud.server(cloud.here, cloud.here, **fields)
    return cloud.hold(server, cloud.child, amounts={"CUSTOM_VF": 1})


DRIFTED: dict[tuple[str, str | None], dict[str, Situation]] = {
    ("unreverted_allocation", "rewrite"): {
        "failed copy": unreverted_allocation,
        "with a shared disk": unreverted_allocation_with_a_shared_disk,
    },
    ("unreverted_allocation", None): {
        "of a live migration": unreverted_allocation_of_a_live_migration
    },
    ("unreverted_allocation", "create"): {
        "of one who holds nothing": lambda cloud: failed_copy(
            cloud, cloud.server(cloud.here), cloud.here
        )
    },
    ("misplaced_allocation", "rewrite"): {"misplaced": misplaced_allocation},
    ("missing_allocation", "create"): {"missing": missing_allocation},
    ("wrong_amount", "reduce"): {"too much": too_much},
    ("wrong_amount", "rewrite"): {"too little": lambda cloud: cloud.on_here(WITHOUT_DISK)},
    ("wrong_owner", "rewrite"): {
        "project": lambda cloud: cloud.server(cloud.here, cloud.here, project="another"),
        "user": lambda cloud: cloud.server(cloud.here, cloud.here, user="another"),
    },
    ("leaked_child", None): {"leaked": leaked_child},
}


@pytest.mark.parametrize(("expected", "situation"), list_cases(DRIFTED))
def test_drift_is_found_and_its_change_settles_it(
    cloud: Cloud, expected: tuple[str, str | None], situation: Situation
) -> None:
    kind, action = expected
    consumer = situation(cloud)
    finding = cloud.found(consumer)

    assert (finding.verdict, finding.kind) == ("drifted", kind)
    assert (finding.change.action if finding.change else None) == action
    assert finding.reason.endswith(".") and finding.evidence and not finding.freed_providers
    if finding.change:
        cloud.apply(finding.change)
        assert cloud.find(consumer) is None
        assert set(cloud.allocations[consumer].resources) - {cloud.pool} == {cloud.here}


@pytest.mark.parametrize("situation", [missing_allocation, misplaced_allocation, too_much])
def test_what_the_server_needs_is_told(cloud: Cloud, situation: Situation) -> None:
    assert "1 VCPU (" in cloud.found(situation(cloud)).reason


def test_server_on_an_excluded_host_gets_no_allocation_there(cloud: Cloud) -> None:
    policy = d.replace(NO_MINIMUM_AGE, exclude_providers=frozenset({cloud.here}))
    kind, _verdict, reason = cloud.told(misplaced_allocation(cloud), policy)

    assert (kind, reason) == ("excluded", "provider_excluded")


def test_change_of_an_unreverted_allocation_is_one_request_and_frees_nothing_on_the_host(
    cloud: Cloud,
) -> None:
    finding = cloud.found(unreverted_allocation(cloud))

    assert finding.change and finding.change.partner and finding.migration
    assert finding.reason.id == "migration_has_needed_allocation"
    assert finding.change.partner.consumer == finding.migration.uuid
    assert finding.change.partner.after["allocations"] == {}
    assert (finding.change.frees, finding.change.allocates) == ({cloud.there: CLAIM}, {})


def the_allocation_of_the_migration_has_no_generation(cloud: Cloud) -> str:
    server = unreverted_allocation(cloud)
    (move,) = cloud.migrations
    cloud.allocations[move] = d.replace(cloud.allocations[move], generation=None)
    return server


def two_migrations_hold_its_host(cloud: Cloud) -> str:
    server = misplaced_allocation(cloud)
    cloud.goes(server, "error", cloud.here)
    return failed_copy(cloud, server, cloud.here)


def a_confirmed_migration_holds_its_host(cloud: Cloud) -> str:
    """Its allocation may be of an older flavor."""
    server = misplaced_allocation(cloud)
    cloud.goes(server, "confirmed", cloud.here)
    cloud.comes(server, "confirmed")
    return server


UNDECIDED: dict[tuple[str, str], dict[str, Situation]] = {
    ("unreverted_allocation", "migration_allocated_elsewhere_too"): {
        "another host too": lambda cloud: failed_copy(
            cloud, misplaced_allocation(cloud), cloud.here, cloud.there
        ),
        "a device of its host alone": lambda cloud: failed_copy(
            cloud, misplaced_allocation(cloud), cloud.child
        ),
        "no generation": the_allocation_of_the_migration_has_no_generation,
    },
    ("unreverted_allocation", "several_migrations_allocated"): {
        "two": two_migrations_hold_its_host
    },
    ("unreverted_allocation", "flavor_may_be_older"): {
        "confirmed migration": a_confirmed_migration_holds_its_host
    },
    ("unproven", "server_unsettled"): {
        "nothing allocated": lambda cloud: missing_allocation(cloud, task_known=False),
        "unreverted": lambda cloud: unreverted_allocation(cloud, task_known=False),
    },
    ("unproven", "settled_elsewhere"): {
        "provider of somebody else": lambda cloud: cloud.server(
            cloud.here, cloud.provider("elsewhere")
        )
    },
}


@pytest.mark.parametrize(("expected", "situation"), list_cases(UNDECIDED))
def test_drift_is_undecided(cloud: Cloud, expected: tuple[str, str], situation: Situation) -> None:
    kind, verdict, reason = cloud.told(situation(cloud))

    assert (verdict, kind, reason) == ("undecided", *expected)


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
    cloud: Cloud, situation: Callable[..., str], fields: dict[str, t.Any], kind: str, reason: str
) -> None:
    consumer = situation(cloud, **fields)

    # A server with an allocation only on its own host is healthy, whatever the amounts.
    if situation is too_much:
        assert cloud.find(consumer) is None
    else:
        assert cloud.told(consumer) == (kind, "protected", reason)


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
    cloud: Cloud, spared: dict[str, t.Any], policy: Callable[[str, str], Policy], reason: str
) -> None:
    server = unreverted_allocation(cloud)
    (move,) = cloud.migrations
    cloud.allocations[move] = d.replace(cloud.allocations[move], **spared)

    assert cloud.told(server, policy(move, cloud.here))[1:] == ("protected", reason)


# Whether a resize that failed late may have left a guest of the new size
# (nova/compute/manager.py, _finish_resize): Nova returns the server to its old flavor.


def _reduces(cloud: Cloud, server: str) -> bool:
    finding = cloud.found(server)
    assert finding.kind == "wrong_amount"
    return bool(finding.change)


@pytest.mark.parametrize(
    ("status", "writes"), [("error", False), ("failed", False), ("confirmed", True)]
)
def test_allocation_is_not_reduced_after_a_late_resize_failure(
    cloud: Cloud, status: str, writes: bool
) -> None:
    server = too_much(cloud)
    cloud.comes(server, status, type="resize")

    assert _reduces(cloud, server) is writes


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
    cloud: Cloud, type: str, status: str, writes: bool
) -> None:
    """Only a live migration does not start the guest again (nova/compute/manager.py)."""
    server = too_much(cloud)
    cloud.goes(server, "error", type="resize")
    cloud.comes(server, status, type=type)

    assert _reduces(cloud, server) is writes


@pytest.mark.parametrize(
    ("dest", "writes"), [("compute-1-former", False), (None, True), ("compute-2", True)]
)
def test_host_that_is_not_listed_may_be_that_of_a_late_resize_failure(
    cloud: Cloud, dest: str | None, writes: bool
) -> None:
    """It may have another name now. A resize that found no host has reached none."""
    server = too_much(cloud)
    cloud.alter(cloud.goes(server, "error", type="resize"), dest_compute=dest)

    assert _reduces(cloud, server) is writes


def test_later_moves_do_not_hide_a_late_resize_failure(cloud: Cloud) -> None:
    server = too_much(cloud)
    cloud.comes(server, "error", type="resize")
    cloud.goes(server, "reverted")

    assert not _reduces(cloud, server)
    assert cloud.found(server).reason.id == "resize_failed_at_host"


# Where the guest may be on the host that has the allocation.


@pytest.mark.parametrize("move", ["live-migration", "evacuation"])
def test_allocation_is_kept_where_a_failed_move_may_have_left_the_guest(
    cloud: Cloud, move: str
) -> None:
    server = misplaced_allocation(cloud)
    cloud.goes(server, "error", type=move)
    finding = cloud.found(server)

    assert (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "move_may_have_ended"


@pytest.mark.parametrize(("began", "writes"), [("there", False), ("here", True)])
def test_allocation_is_kept_where_an_earlier_unshelve_may_have_left_the_guest(
    cloud: Cloud, began: str, writes: bool
) -> None:
    """It failed at its last write, which is outside of what Nova cleans up after."""
    server = cloud.act(misplaced_allocation(cloud), "unshelve", getattr(cloud, began))
    cloud.fail_newest_action(server)
    cloud.pass_time()
    finding = cloud.found(cloud.act(server, "unshelve", cloud.here))

    assert (finding.kind, bool(finding.change)) == ("misplaced_allocation", writes)


def test_allocation_is_kept_where_an_evacuation_may_have_left_the_guest(cloud: Cloud) -> None:
    """The host was only cut off, and nova-compute has not started since."""
    server = misplaced_allocation(cloud)
    cloud.comes(server, "done", type="evacuation")
    cloud.set_service(cloud.there, "up")
    finding = cloud.found(server)

    assert (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "guest_not_cleaned_up"


@pytest.mark.parametrize("situation", [misplaced_allocation, missing_allocation])
def test_young_allocation_is_protected(cloud: Cloud, situation: Situation) -> None:
    consumer = cloud.alter(situation(cloud), updated="2026-11-20T14:59:00Z")
    if consumer in cloud.allocations:
        cloud.hold(consumer, cloud.there, age=60)

    assert cloud.found(consumer, Policy(min_age=3600)).kind == "too_young"


# What decides on the amounts.


@pytest.fixture(name="devices")
def _devices(cloud: Cloud) -> Cloud:
    """A cloud whose host has what flavors, images and ports may request."""
    cloud.offers(cloud.here, *CLAIM, "PCPU", "MEM_ENCRYPTION_CONTEXT")
    cloud.offers(cloud.child, "CUSTOM_VF", "FPGA", BANDWIDTH)
    cloud.traits[cloud.child] = frozenset({"COMPUTE_MANAGED_PCI_DEVICE"})
    return cloud


@pytest.mark.parametrize(
    ("fields", "writes", "wrong"),
    [
        ({"flavor": None}, False, "undecided"),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, False, "undecided"),
        ({"image_properties": None}, False, "drifted"),
        (flavor(pci_passthrough__alias="gpu:1"), False, "d"),
        (flavor(resources__VGPU="1"), False, "undecided"),
        (flavor(accel__device_profile="x"), False, "d"),
        (flavor(hw__numa_nodes="2"), True, "drifted"),
        (flavor(hw__cpu_policy="dedicated"), True, "d"),
        ({"image_properties": {"hw_cpu_policy": "dedicated"}}, True, "drifted"),
    ],
    ids=str,
)
def test_change_needs_all_that_decides_on_the_request(
    devices: Cloud, fields: dict[str, t.Any], writes: bool, wrong: str
) -> None:
    lost = devices.found(missing_allocation(devices, **fields))
    more = devices.found(too_much(devices, **fields))

    assert bool(lost.change) is writes
    assert writes or "heal_allocations" in lost.reason
    assert more.kind == "wrong_amount" and more.verdict.startswith(wrong)


def _port(vnic_type: str | None = "normal", asks: bool | None = False) -> ServerPort:
    groups: t.Any = (PortGroup("port", {BANDWIDTH: 1}),) if asks else ()
    return ServerPort("port", vnic_type, None if asks is None else groups, {})


@pytest.mark.parametrize(
    ("ports", "is_plain"),
    [
        ((), True),
        ((_port(),), True),
        ((_port("macvtap"),), False),
        # It may have a device of the host, which Nova then allocates by itself.
        ((_port(None),), False),
        ((_port("direct"),), False),
        ((_port(asks=None),), False),
        ((_port(asks=True),), False),
    ],
    ids=str,
)
def test_port_may_request_more(
    devices: Cloud, ports: tuple[ServerPort, ...], is_plain: bool
) -> None:
    server, leaker = missing_allocation(devices), leaked_child(devices)
    devices.ports.update({server: ports, leaker: ports})

    assert bool(devices.found(server).change) is is_plain
    assert devices.told(leaker) == (
        ("leaked_child", "drifted", "unrequested_child_allocation")
        if is_plain
        else ("wrong_amount", "undecided", "input_missing")
    )


@pytest.mark.parametrize("is_read", [True, False])
def test_server_whose_allocation_may_be_hidden_gets_no_second_one(
    cloud: Cloud, is_read: bool
) -> None:
    """Its consumer has no record, so that Placement shows no allocation of it either."""
    server = missing_allocation(cloud)
    cloud.unlisted[cloud.here] = {"VCPU": 1}
    if not is_read:
        cloud.answers("host_totals", cloud.here, 503)

    assert cloud.undecided(server) == "allocation_may_be_hidden"


def test_port_requests_no_device_where_placement_tracks_none(cloud: Cloud) -> None:
    server = missing_allocation(cloud)
    cloud.ports[server] = (_port("direct"),)
    finding = cloud.found(server)

    assert finding.kind == "missing_allocation" and finding.change


def test_port_hidden_by_neutron_may_request_more(devices: Cloud) -> None:
    """A role that is not an administrator of Neutron sees no other projects, and gets 200."""
    for consumer in (missing_allocation(devices), leaked_child(devices)):
        interfaces = devices.snapshot().evidence[consumer].interfaces
        attached = d.replace(interfaces, value=("port",))
        finding = devices.found(consumer, evidence=devices.evidence(consumer, interfaces=attached))

        assert finding.change is None and "Neutron" in finding.reason
        assert finding.verdict == "undecided" or finding.kind == "missing_allocation"


def booted_from_a_pinned_volume(cloud: Cloud) -> str:
    """The properties of the volume's image are Cinder's.

    Nova allocates by them and does not show them.
    """
    server = cloud.server(cloud.here, image_properties=None, **VOLUME)
    return cloud.hold(server, cloud.there, amounts={"PCPU": 1, "MEMORY_MB": 512})


def with_a_class_that_no_plain_server_has(cloud: Cloud) -> str:
    return cloud.hold(cloud.server(cloud.here), cloud.there, amounts={"PCPU": 1, "MEMORY_MB": 512})


@pytest.mark.parametrize(
    "situation", [booted_from_a_pinned_volume, with_a_class_that_no_plain_server_has]
)
def test_allocation_larger_than_its_flavor_shows_is_not_rewritten(
    cloud: Cloud, situation: Situation
) -> None:
    finding = cloud.found(situation(cloud))

    assert (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "needed_other_classes"


@pytest.mark.parametrize("question", ["shape", "interfaces", "server_ports", "host_tree"])
def test_nothing_is_written_without_an_answer(devices: Cloud, question: str) -> None:
    server, more = missing_allocation(devices), too_much(devices)
    for uuid in (server, more, devices.here):
        devices.answers(question, uuid, 503)
    missing, wrong = devices.found(server), devices.found(more)

    assert missing.change is None and "answered 503" in missing.reason
    assert wrong.reason.id == "input_missing"
    assert wrong.change is None and "answered 503" in wrong.reason


def test_host_with_a_shared_disk_leaves_allocations_to_nova(cloud: Cloud) -> None:
    cloud.offers(cloud.here, *WITHOUT_DISK)
    finding = cloud.found(missing_allocation(cloud))

    assert finding.change is None and finding.reason.id == "no_provider_fits"
    assert "DISK_GB" in finding.reason and "It needs" not in finding.reason


HEALTHY: dict[str, Situation] = {
    "an allocation of a failed move beside its own": lambda cloud: failed_copy(
        cloud, cloud.server(cloud.here, cloud.here), cloud.here
    ),
    "booted from a volume": lambda cloud: cloud.on_here(WITHOUT_DISK, **VOLUME),
    "swap and ephemeral disk": lambda cloud: cloud.on_here(
        {**WITHOUT_DISK, "DISK_GB": 6}, flavor=d.replace(FLAVOR, ephemeral=3, swap=1025)
    ),
    "a shared disk": lambda cloud: cloud.hold(
        cloud.on_here(WITHOUT_DISK), cloud.pool, amounts=DISK
    ),
    "a child that its flavor asks for": lambda cloud: leaked_child(
        cloud, **flavor(resources__CUSTOM_VF="1")
    ),
}


@pytest.mark.parametrize("situation", HEALTHY.values(), ids=HEALTHY)
def test_situation_without_drift_has_no_finding(cloud: Cloud, situation: Situation) -> None:
    assert cloud.find(situation(cloud)) is None


def test_wrong_amounts_of_the_host_itself_are_no_leaked_child(cloud: Cloud) -> None:
    server = too_much(cloud)
    (view,) = (
        view for view in build_views(SnapshotIndex(cloud.snapshot())) if view.consumer == server
    )

    assert leaked_child_of.prove(view, NO_MINIMUM_AGE) is None


def test_finding_has_its_requests_as_evidence(cloud: Cloud) -> None:
    finding = cloud.found(missing_allocation(cloud))

    assert "It needs 1 VCPU (the VCPUs of the flavor)" in finding.reason
    assert NOT_ASKED not in finding.evidence
    asked = {answer.request.split()[0] for answer in finding.evidence}
    of_amounts = {"shape", "interfaces", "server_ports", "host_tree"}
    assert asked == {"GET", "migrations", "server", "actions", *of_amounts}


@pytest.mark.parametrize(
    ("specs", "now"),
    [
        ({"hw__cpu_policy": "mixed", "hw__cpu_realtime": "yes"}, {"hw_cpu_realtime_mask": "^0-1"}),
        (
            {"hw__cpu_realtime": "yes", "hw__cpu_realtime_mask": "^0"},
            {"hw_cpu_policy": "dedicated"},
        ),
    ],
    ids=["other-mask", "other-policy"],
)
def test_cpus_are_not_rewritten_by_properties_that_a_volume_got_later(
    cloud: Cloud, specs: dict[str, str], now: dict[str, str]
) -> None:
    """Any user may change them (Cinder, os-set_image_metadata); Nova keeps those of the boot."""
    cloud.offers(cloud.here, *CLAIM, "PCPU")
    large = d.replace(flavor(**specs)["flavor"], vcpus=4, disk=0)
    at_boot = {"VCPU": 1, "PCPU": 3, "MEMORY_MB": 512}
    server = cloud.on_here(at_boot, flavor=large, **VOLUME)
    cloud.volume_properties["volume"] = now
    finding = cloud.find(server)

    assert finding is None or finding.change is None, finding


def test_cpus_of_a_volume_are_rewritten_where_the_flavor_alone_decides(cloud: Cloud) -> None:
    cloud.offers(cloud.here, "PCPU", "MEMORY_MB")
    pinned = {**VOLUME, **flavor(hw__cpu_policy="dedicated")}
    finding = cloud.found(cloud.on_here({"PCPU": 2, "MEMORY_MB": 512}, **pinned))

    assert finding.kind == "wrong_amount" and finding.change
    assert finding.change.frees == {cloud.here: {"PCPU": 1}}


@pytest.mark.parametrize("held", [{}, {"CUSTOM_GOLD": 1}], ids=["nothing", "node"])
def test_server_whose_flavor_requests_nothing_loses_nothing(
    cloud: Cloud, held: dict[str, int]
) -> None:
    """The flavor of a bare metal server that is older than the resource classes of Ironic."""
    cloud.offers(cloud.here, "CUSTOM_GOLD")
    nothing = flavor(resources__VCPU="0", resources__MEMORY_MB="0", resources__DISK_GB="0")
    server = cloud.server(cloud.here, **nothing)
    if held:
        cloud.hold(server, cloud.here, amounts=held)
    finding = cloud.found(server)

    assert finding.change is None and finding.reason.id == "flavor_requests_nothing"


def test_sharing_provider_keeps_each_class_of_a_live_server(cloud: Cloud) -> None:
    cloud.offers(cloud.here, *WITHOUT_DISK)
    cloud.offers(cloud.pool, "DISK_GB", "CUSTOM_IOPS")
    server = cloud.on_here({"VCPU": 2, "MEMORY_MB": 512})
    finding = cloud.found(cloud.hold(server, cloud.pool, amounts={**DISK, "CUSTOM_IOPS": 5}))

    assert finding.change is None and "CUSTOM_IOPS on pool" in finding.reason
    assert finding.reason.id == "unneeded_on_shared_provider"


def test_shared_disk_that_a_server_would_not_get_keeps_its_allocation(cloud: Cloud) -> None:
    server = misplaced_allocation(cloud, flavor=d.replace(FLAVOR, disk=2))
    cloud.hold(server, cloud.provider("first-pool", sharing=True), amounts={"DISK_GB": 2})
    finding = cloud.found(cloud.hold(server, cloud.pool, amounts=DISK))

    assert (finding.kind, finding.change) == ("misplaced_allocation", None)
    assert finding.reason.id == "unneeded_shared_provider"


def test_device_of_the_root_provider_that_nothing_requests_stays(cloud: Cloud) -> None:
    cloud.offers(cloud.here, *CLAIM, "VGPU")
    finding = cloud.found(cloud.on_here({**CLAIM, "VCPU": 2, "VGPU": 1}))

    assert finding.change is None and finding.reason.id == "unrequested_device_in_use"
