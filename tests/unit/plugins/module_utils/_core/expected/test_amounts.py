"""Live servers compared with what Nova would allocate for them, and attempts to falsify them."""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.expected.amounts import (
    AmountCounts,
    compare_listed,
    count_amounts,
)
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Action
from .......plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    DeviceProfile,
    PciAlias,
    PortGroup,
    ServerPort,
)
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED, Evidence, ListedAmounts
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, FLAVOR, NOW, PLENTY, World, answer

Situation = Callable[["Cloud"], str]


BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
NO_DISK = {"VCPU": 1, "MEMORY_MB": 512}
ALIASES = Policy(min_age=0, unknown_min_age=0, pci_aliases={"gpu": PciAlias("gpu", "CUSTOM_GPU")})


class Cloud(World):
    """A host with a vGPU, a PCI device, pinned processors and two shared pools of disk."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.stock[self.here] = dict.fromkeys((*CLAIM, "PCPU"), PLENTY)
        self.gpu = self._child("vgpu", "VGPU")
        self.pci = self._child("pci", "CUSTOM_GPU")
        self.traits[self.pci] = frozenset({"COMPUTE_MANAGED_PCI_DEVICE"})
        self.nic = self._child("nic", BANDWIDTH)
        self.pools = [self.provider(f"pool-{number}", sharing=True) for number in range(2)]
        self.answered: dict[str, dict[str, t.Any]] = {}

    def _child(self, name: str, cls: str) -> str:
        child = self.provider(f"compute-1_{name}", self.here)
        self.stock[child] = {cls: PLENTY}
        return child

    def made(self, *held: tuple[str, dict[str, int]], **fields: t.Any) -> str:
        """Add a server on the host, with amounts on providers."""
        server = self.server(self.here, **fields)
        for provider, amounts in held:
            self.hold(server, provider, amounts=amounts)
        return server

    def finding(self, consumer: str, policy: Policy = NO_MINIMUM_AGE) -> Finding | None:
        found = [row for row in judge(self.read(), policy) if row.consumer == consumer]
        return found[0] if found else None

    def read(self) -> t.Any:
        snapshot = self.snapshot()
        evidence: dict[str, Evidence] = dict(snapshot.evidence)
        for uuid, answers in self.answered.items():
            evidence[uuid] = d.replace(evidence[uuid], **answers)
        return d.replace(snapshot, evidence=evidence)


def _specs(**specs: str) -> dict[str, t.Any]:
    named = {key.replace("__", ":"): value for key, value in specs.items()}
    return {"flavor": d.replace(FLAVOR, extra_specs=named)}


VGPU = _specs(resources__VGPU="1")
PINNED = _specs(hw__cpu_policy="dedicated")
PCI = _specs(pci_passthrough__alias="gpu:1")
BOOTED = {"image": None, "image_properties": None, "volumes": ("v",)}


def without_its_vgpu(cloud: Cloud) -> str:
    return cloud.made((cloud.here, dict(CLAIM)), **VGPU)


def with_too_many_vgpus(cloud: Cloud) -> str:
    return cloud.made((cloud.here, {**CLAIM, "VCPU": 3}), (cloud.gpu, {"VGPU": 2}), **VGPU)


def without_its_pci_device(cloud: Cloud) -> str:
    return cloud.made((cloud.here, dict(CLAIM)), **PCI)


@pytest.mark.parametrize(
    ("situation", "after"),
    [
        (without_its_vgpu, lambda c: {c.here: dict(CLAIM), c.gpu: {"VGPU": 1}}),
        # The vGPU too many may be used: only the host can say.
        (with_too_many_vgpus, lambda c: {c.here: dict(CLAIM), c.gpu: {"VGPU": 2}}),
        (without_its_pci_device, lambda c: {c.here: dict(CLAIM), c.pci: {"CUSTOM_GPU": 1}}),
    ],
)
def test_amounts_on_children_are_corrected(
    situation: Situation, after: Callable[[Cloud], dict[str, t.Any]]
) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud), ALIASES)

    assert finding and finding.kind == "wrong_amount" and finding.change
    written = finding.change.get_side("after")[finding.subject]["allocations"]
    assert {uuid: row["resources"] for uuid, row in written.items()} == after(cloud)


def test_reason_says_where_each_amount_comes_from() -> None:
    cloud = Cloud()
    finding = cloud.finding(without_its_vgpu(cloud))

    assert finding and "1 DISK_GB (the root disk" in finding.reason
    assert "1 VGPU (extra spec resources:VGPU), 1 VCPU (" in finding.reason
    assert finding.reason.id == "amounts_differ"


@pytest.mark.parametrize("situation", [without_its_vgpu, with_too_many_vgpus])
def test_correction_leaves_nothing_to_correct(situation: Situation) -> None:
    cloud = Cloud()
    consumer = situation(cloud)
    finding = cloud.finding(consumer)
    assert finding and finding.change
    cloud.apply(finding.change)
    again = cloud.finding(consumer)

    assert again is None or again.kind == "leaked_child"


def with_its_vgpu(cloud: Cloud) -> str:
    return cloud.made((cloud.here, dict(CLAIM)), (cloud.gpu, {"VGPU": 1}), **VGPU)


def with_its_vgpu_missing(cloud: Cloud) -> str:
    return cloud.made(**VGPU)


def pinned_where_the_host_had_no_dedicated_ones(cloud: Cloud) -> str:
    """Nova requests VCPU where no host has PCPU (select_destinations)."""
    cloud.stock[cloud.here] = dict.fromkeys(CLAIM, PLENTY)
    return cloud.made((cloud.here, dict(CLAIM)), **PINNED)


def pinned(cloud: Cloud) -> str:
    return cloud.made((cloud.here, {"PCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}), **PINNED)


def with_the_disk_in_a_pool(cloud: Cloud) -> str:
    cloud.stock[cloud.here] = dict.fromkeys(NO_DISK, PLENTY)
    return cloud.made((cloud.here, NO_DISK), (cloud.pools[0], {"DISK_GB": 1}))


def with_bandwidth_of_its_port(cloud: Cloud) -> str:
    server = cloud.made((cloud.here, dict(CLAIM)), (cloud.nic, {BANDWIDTH: 5}))
    group = PortGroup("g", {BANDWIDTH: 5})
    cloud.ports[server] = (ServerPort("p", "normal", (group,), {"g": cloud.nic}),)
    return server


def with_an_accelerator(cloud: Cloud) -> str:
    cloud.stock[cloud.gpu] = {"FPGA": PLENTY}
    server = cloud.made(
        (cloud.here, dict(CLAIM)), (cloud.gpu, {"FPGA": 1}), **_specs(accel__device_profile="x")
    )
    profile = DeviceProfile("x", ({"resources:FPGA": "1"},))
    request = AcceleratorRequest("arq", "x", 0, cloud.gpu)
    cloud.answered[server] = {
        "device_profiles": (answer("GET", 200, profile),),
        "accelerators": answer("GET", 200, (request,)),
    }
    return server


def booted_from_a_volume(cloud: Cloud) -> str:
    return cloud.made((cloud.here, NO_DISK), **BOOTED)


def pinned_by_the_image_of_its_volume(cloud: Cloud) -> str:
    cloud.volume_properties["v"] = {"hw_cpu_policy": "dedicated"}
    return cloud.made((cloud.here, {"PCPU": 1, "MEMORY_MB": 512}), **BOOTED)


@pytest.mark.parametrize(
    "situation",
    [
        with_its_vgpu,
        pinned,
        pinned_where_the_host_had_no_dedicated_ones,
        with_the_disk_in_a_pool,
        with_bandwidth_of_its_port,
        with_an_accelerator,
        booted_from_a_volume,
        pinned_by_the_image_of_its_volume,
    ],
)
def test_right_amounts_are_no_finding(situation: Situation) -> None:
    cloud = Cloud()
    consumer = situation(cloud)

    assert cloud.finding(consumer) is None
    assert count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE).by_server == 1


@pytest.mark.parametrize(
    ("inventories", "after"),
    [
        # Its volume may have asked for dedicated CPUs when it was created.
        (("PCPU",), None),
        ((), NO_DISK),
    ],
)
def test_volume_says_what_is_missing_only_where_its_properties_do_not_matter(
    inventories: tuple[str, ...], after: dict[str, int] | None
) -> None:
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys((*CLAIM, *inventories), PLENTY)
    server = cloud.made(**BOOTED)
    finding = cloud.finding(server)

    assert finding and finding.kind == "missing_allocation"
    if after is None:
        assert finding.change is None and finding.reason.id == "volume_may_have_changed"
    else:
        assert finding.change
        assert finding.reason.id == "server_without_allocation"
        assert finding.change.after["allocations"][cloud.here]["resources"] == after


BLANK = {"image": None, "image_properties": None}


@pytest.mark.parametrize("volumes", [(), ("v",)], ids=["alone", "beside a volume of data"])
@pytest.mark.parametrize("amounts", [CLAIM, NO_DISK, {**CLAIM, "VCPU": 5}])
def test_disk_of_a_server_without_a_root_volume_stays(
    amounts: dict[str, int], volumes: tuple[str, ...]
) -> None:
    """Its root disk may be a blank one of the host, which Nova shows to nobody."""
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(CLAIM, PLENTY)
    server = cloud.made((cloud.here, amounts), volumes=volumes, root_device="/dev/sda", **BLANK)
    finding = cloud.finding(server)

    assert (finding is None) is (amounts["VCPU"] == 1)
    assert finding is None or (finding.kind, finding.change) == ("wrong_amount", None)


# A pool that hosts share is not of the tree, and once the root itself had the vGPUs.
@pytest.mark.parametrize(("stock", "is_wrong"), [(NO_DISK, True), ((*NO_DISK, "VGPU"), False)])
def test_class_that_was_moved_to_another_provider_of_the_tree_is_said(
    stock: t.Iterable[str], is_wrong: bool
) -> None:
    cloud = Cloud()
    cloud.stock[cloud.here] = dict.fromkeys(stock, PLENTY)
    cloud.stock[cloud.pools[0]] = {"DISK_GB": PLENTY}
    finding = cloud.finding(cloud.made((cloud.here, {**CLAIM, "VGPU": 1}), **VGPU))

    assert bool(finding) is is_wrong
    assert finding is None or (finding.reason.id, finding.change) == (
        *("class_of_other_provider", None),
    )


def unread_image(cloud: Cloud) -> str:
    """Pinned by its image, which this Nova does not show."""
    server = {"PCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    return cloud.made((cloud.here, server), image_properties=None)


def hidden_ports(cloud: Cloud) -> str:
    server = with_bandwidth_of_its_port(cloud)
    cloud.answered[server] = {"server_ports": answer("GET", 200, ())}
    return server


def hidden_request_of_a_port(cloud: Cloud) -> str:
    server = with_bandwidth_of_its_port(cloud)
    cloud.ports[server] = (ServerPort("p", "normal", None, {"g": cloud.nic}),)
    return server


def swapped_volume(cloud: Cloud) -> str:
    """The volume that it boots from now has other properties."""
    server = cloud.made((cloud.here, {"PCPU": 1, "MEMORY_MB": 512}), **BOOTED)
    cloud.actions[server] = (Action("swap_volume", "req", None, NOW, None),)
    return server


def volume_with_other_properties(cloud: Cloud) -> str:
    """Somebody removed the properties from the volume after the server was created."""
    return cloud.made((cloud.here, {"PCPU": 1, "MEMORY_MB": 512}), **BOOTED)


def unread_volume(cloud: Cloud) -> str:
    server = cloud.made((cloud.here, {"PCPU": 1, "MEMORY_MB": 512}), **BOOTED)
    cloud.answered[server] = {"root_volume": NOT_ASKED}
    return server


def unread_tree(cloud: Cloud) -> str:
    cloud.answers("host_tree", cloud.here, 503)
    return cloud.made((cloud.here, {**CLAIM, "VCPU": 7}))


def unread_profile(cloud: Cloud) -> str:
    server = with_an_accelerator(cloud)
    cloud.answered[server] = {"device_profiles": (answer("GET", 403),)}
    return server


def unnamed_alias(cloud: Cloud) -> str:
    return cloud.made((cloud.here, dict(CLAIM)), (cloud.pci, {"CUSTOM_GPU": 1}), **PCI)


@pytest.mark.parametrize(
    ("attack", "name", "said"),
    [
        (unread_image, "image", "2.98"),
        (hidden_ports, "ports", "Neutron"),
        (hidden_request_of_a_port, "ports", "may not see"),
        (swapped_volume, "volume_image", "swapped"),
        (volume_with_other_properties, "", "may have changed"),
        (unread_volume, "volume_image", "Cinder"),
        (unread_tree, "tree", "503"),
        (unread_profile, "device_profile", "Cyborg answered 403"),
        (unnamed_alias, "pci_alias", "alias gpu"),
    ],
)
def test_nothing_is_taken_while_something_unread_may_explain_it(
    attack: Situation, name: str, said: str
) -> None:
    cloud = Cloud()
    finding = cloud.finding(attack(cloud))

    assert finding and (finding.kind, finding.verdict) == ("wrong_amount", "undecided")
    assert finding.change is None and said in finding.reason
    if name:
        counts = count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE)
        assert counts == AmountCounts(0, 0, {name: 1})


def test_amounts_that_are_right_as_far_as_that_is_known_are_no_finding() -> None:
    cloud = Cloud()

    assert cloud.finding(cloud.made((cloud.here, dict(CLAIM)), image_properties=None)) is None


def two_pools_have_room_for_the_disk(cloud: Cloud) -> str:
    cloud.stock[cloud.here] = dict.fromkeys(NO_DISK, PLENTY)
    for pool in cloud.pools:
        cloud.stock[pool] = {"DISK_GB": PLENTY}
    return cloud.made((cloud.here, NO_DISK))


def vgpu_on_another_child_than_it_should_be(cloud: Cloud) -> str:
    cloud.stock[cloud.nic] = {"CUSTOM_VF": PLENTY}
    return cloud.made((cloud.here, dict(CLAIM)), (cloud.nic, {"CUSTOM_VF": 1}), **VGPU)


def disk_in_a_pool_and_on_the_host(cloud: Cloud) -> str:
    return cloud.made((cloud.here, dict(CLAIM)), (cloud.pools[0], {"DISK_GB": 1}))


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (two_pools_have_room_for_the_disk, "several_placements"),
        (vgpu_on_another_child_than_it_should_be, "has_other_devices"),
    ],
)
def test_finding_without_one_certain_allocation_has_no_change(
    situation: Situation, said: str
) -> None:
    cloud = Cloud()
    finding = cloud.finding(situation(cloud))

    assert finding and (finding.kind, finding.verdict) == ("wrong_amount", "drifted")
    assert finding.change is None and finding.reason.id == said
    assert f"openstack server migrate {finding.consumer}" in finding.reason


def test_sharing_provider_is_never_stripped_from_a_live_server() -> None:
    cloud = Cloud()
    finding = cloud.finding(disk_in_a_pool_and_on_the_host(cloud))

    assert finding
    if finding.change:
        assert cloud.pools[0] in finding.change.get_side("after")[finding.subject]["allocations"]


@pytest.mark.parametrize(
    "fields",
    [{"task_state": "resize_prep"}, {"status": "VERIFY_RESIZE"}, {"status": "ERROR"}],
    ids=str,
)
def test_resized_server_with_its_new_flavor_is_left_alone(fields: dict[str, t.Any]) -> None:
    cloud = Cloud()
    bigger = d.replace(FLAVOR, vcpus=8)
    server = cloud.made((cloud.here, dict(CLAIM)), flavor=bigger, **fields)

    assert cloud.finding(server) is None
    assert count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE).unchecked == {"unsettled": 1}


def test_server_that_is_being_evacuated_is_left_alone() -> None:
    cloud = Cloud()
    server = cloud.made((cloud.here, {**CLAIM, "VCPU": 9}))
    cloud.migration(server, cloud.there, cloud.here, "pre-migrating", type="evacuation")
    finding = cloud.finding(server)

    assert finding is None or finding.verdict == "protected"


def test_wrong_owner_is_found_though_the_amounts_are_unknown() -> None:
    cloud = Cloud()
    server = unnamed_alias(cloud)
    cloud.servers[server] = d.replace(cloud.servers[server], project="another")
    finding = cloud.finding(server)

    assert finding and finding.kind == "wrong_owner" and finding.change
    assert finding.reason.id == "owner_differs"


def test_lost_allocation_with_a_vgpu_is_made_again() -> None:
    cloud = Cloud()
    finding = cloud.finding(with_its_vgpu_missing(cloud))

    assert finding and finding.kind == "missing_allocation" and finding.change
    assert finding.change.allocates == {cloud.here: dict(CLAIM), cloud.gpu: {"VGPU": 1}}


def test_lost_allocation_is_known_although_the_ratio_of_its_host_was_lowered() -> None:
    """Whether Placement accepts it now, and with which ratio, is asked before it is written."""
    cloud = Cloud()
    lowered = d.replace(PLENTY, allocation_ratio=0.5 / PLENTY.total)
    cloud.stock[cloud.here] = {**dict.fromkeys(CLAIM, PLENTY), "VCPU": lowered}
    finding = cloud.finding(cloud.made())

    assert finding and finding.kind == "missing_allocation" and finding.change
    assert finding.change.allocates == {cloud.here: dict(CLAIM)}


def test_what_the_listings_say_is_counted_with_what_was_looked_up() -> None:
    cloud = Cloud()
    looked_up, settled, alias = with_its_vgpu(cloud), pinned(cloud), pinned(cloud)
    snapshot = cloud.read()
    evidence = dict(snapshot.evidence)
    for uuid in (settled, alias):
        evidence[uuid] = d.replace(evidence[uuid], shape=NOT_ASKED)
    listed = ListedAmounts(
        by_server=10,
        by_host=100,
        unchecked={"pci_alias": 3},
        candidates={settled: "", alias: "pci_alias"},
    )
    index = SnapshotIndex(d.replace(snapshot, evidence=evidence, listed_amounts=listed))

    assert looked_up and count_amounts(index, NO_MINIMUM_AGE) == AmountCounts(
        12, 100, {"pci_alias": 4}
    )


def test_server_that_was_not_looked_up_is_not_compared() -> None:
    cloud = Cloud()
    more, lost = cloud.made((cloud.here, {**CLAIM, "VCPU": 7})), cloud.made()
    for server in (more, lost):
        cloud.answered[server] = {"shape": NOT_ASKED}
    finding = cloud.finding(lost)

    assert cloud.finding(more) is None
    assert finding and (finding.kind, finding.change) == ("missing_allocation", None)
    assert finding.reason.id == "needs_not_looked_up"


def test_other_hosts_do_not_keep_amounts_from_being_checked() -> None:
    cloud = Cloud()
    cloud.hold(with_its_vgpu(cloud), cloud.there)

    assert count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE) == AmountCounts(1, 0, {})


def test_amounts_that_contradict_the_host_are_not_checked() -> None:
    cloud = Cloud()
    nothing = {f"resources__{cls}": "0" for cls in CLAIM}
    cloud.made((cloud.here, dict(CLAIM)), **_specs(**nothing))
    counts = count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE)

    assert counts == AmountCounts(0, 0, {"contradictory": 1})


def test_only_servers_with_a_host_are_counted() -> None:
    cloud = Cloud()
    cloud.server(None, cloud.there)
    cloud.stranger(cloud.there)
    earlier = with_its_vgpu(cloud)
    cloud.migration(earlier, cloud.there, cloud.here, "confirmed", cloud.there)
    with_its_vgpu(cloud)

    assert count_amounts(SnapshotIndex(cloud.read()), NO_MINIMUM_AGE) == AmountCounts(2, 0, {})


PLAIN = dict(CLAIM)
GPU = PciAlias("gpu", "CUSTOM_GPU")


PROFILE = _specs(accel__device_profile="fpga")


@pytest.mark.parametrize(
    ("fields", "held", "fits", "missing"),
    [
        ({}, [PLAIN], True, ()),
        ({}, [NO_DISK, {"DISK_GB": 1}], True, ()),
        ({}, [NO_DISK], False, ()),
        ({}, [{**PLAIN, "VCPU": 2}], False, ()),
        ({}, [PLAIN, {"CUSTOM_VF": 1}], False, ()),
        (BOOTED, [NO_DISK], True, ("volume_image",)),
        (BOOTED, [PLAIN], False, ("volume_image",)),
        ({"volumes": ("v",)}, [NO_DISK], True, ("volume",)),
        ({"volumes": ("v",)}, [PLAIN], True, ("volume",)),
        ({"image_properties": None}, [PLAIN], True, ("image",)),
        ({"flavor": None}, [{}], True, ("flavor",)),
        ({"flavor": d.replace(FLAVOR, extra_specs=None)}, [PLAIN], True, ("flavor",)),
        (_specs(resources__VGPU="1"), [PLAIN, {"VGPU": 1}], True, ()),
        # The child is lost.
        (_specs(resources__VGPU="1"), [PLAIN], False, ()),
        (_specs(resources__VCPU="3"), [{**PLAIN, "VCPU": 3}], True, ()),
        (_specs(hw__cpu_policy="dedicated"), [{**NO_DISK, "DISK_GB": 1}], True, ()),
        (
            _specs(hw__cpu_policy="dedicated"),
            [{"PCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}],
            True,
            (),
        ),
        (PCI, [PLAIN], True, ("pci_alias",)),
        (PROFILE, [PLAIN], True, ("device_profile", "accelerators")),
    ],
)
def test_sums_are_those_of_flavor_and_image(
    fields: dict[str, t.Any], held: t.Any, fits: bool, missing: tuple[str, ...]
) -> None:
    compared = compare_listed(_server(fields), _hold(held), {})

    assert (compared.fits, compared.missing) == (fits, missing)


@pytest.mark.parametrize(
    ("fields", "held", "explained"),
    [
        (PCI, [PLAIN, {"CUSTOM_GPU": 1}], True),
        (PROFILE, [PLAIN, {"FPGA": 1}], True),
        # A device explains no other amount of processors.
        (PCI, [{**PLAIN, "VCPU": 2}, {"CUSTOM_GPU": 1}], False),
        ({}, [PLAIN, {"CUSTOM_GPU": 1}], False),
    ],
)
def test_device_may_explain_more_than_the_flavor_says(
    fields: dict[str, t.Any], held: t.Any, explained: bool
) -> None:
    compared = compare_listed(_server(fields), _hold(held), {})

    assert (compared.fits, compared.explained) == (False, explained)


@pytest.mark.parametrize(
    ("held", "fits"),
    [([PLAIN, {"CUSTOM_GPU": 1}], True), ([PLAIN], True), ([PLAIN, {"CUSTOM_GPU": 2}], False)],
)
def test_known_alias_counts_with_or_without_devices_in_placement(held: t.Any, fits: bool) -> None:
    compared = compare_listed(_server(PCI), _hold(held), {"gpu": GPU})

    assert (compared.fits, compared.missing) == (fits, ())


def _server(fields: dict[str, t.Any]) -> t.Any:
    world = World()
    return world.servers[world.server(world.host("compute-1"), **fields)]


def _hold(held: t.Any) -> dict[str, t.Any]:
    return {f"provider-{number}": amounts for number, amounts in enumerate(held)}
