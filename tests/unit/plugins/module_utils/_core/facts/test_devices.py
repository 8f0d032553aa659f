"""What a guest does not use: devices of child providers, and bandwidth of ports."""

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.devices import MAX_PORT_ACTIONS, find_device_address
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Action, ActionEvent
from .......plugins.module_utils._core.models.other_services import (
    GuestDevices,
    HostGuests,
    PortGroup,
    ServerPort,
)
from .......plugins.module_utils._core.models.snapshot import Snapshot
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, list_cases
from ...world import CLAIM, FLAVOR, NOW, answer
from ..scene import Scene

# Nova answers at 15:00:00 (`world.ASKED_AT`).
LONG_AGO, SEEN_AT = "2026-11-20T08:00:00Z", "2026-11-20T14:50:00Z"
PCI, GPU = "0000:84:00.0", "0000:3b:00.0"


class DeviceCloud(Scene):
    """A server with an allocation of a PCI device, which its guest does not use."""

    def __init__(self, status: str = "ACTIVE") -> None:
        super().__init__()
        self.pci = self.provider(f"compute-1_{PCI.upper()}", self.here)
        self.gpu = self.provider("compute-1_pci_0000_3b_00_0", self.here)
        self.leaker = self.server(self.here, self.here, status=status, updated=LONG_AGO)
        self.hold(self.leaker, self.pci, amounts={"CUSTOM_PCI_8086_1521": 1})
        self.guest = GuestDevices("running", True, False, frozenset())
        self.seen = HostGuests("compute-1", self.here, SEEN_AT, {})

    def finding(self) -> Finding | None:
        """Judge the server after its host was read."""
        seen = self.seen
        if not seen.guests:
            seen = d.replace(seen, guests={self.leaker: self.guest})
        return self.find(self.leaker, d.replace(NO_MINIMUM_AGE, guests=(seen,)))

    def sees(self, **fields: t.Any) -> None:
        self.seen = d.replace(self.seen, **fields)

    def shows(self, **fields: t.Any) -> None:
        self.guest = d.replace(self.guest, **fields)

    def changes(self, **fields: t.Any) -> None:
        self.alter(self.leaker, **fields)

    def is_in(self, status: str, **guest: t.Any) -> None:
        """Nova shows a status, and the host a guest."""
        self.changes(status=status)
        self.shows(**guest)

    def allocated(self, age_seconds: int | None) -> None:
        held = self.allocations[self.leaker]
        self.allocations[self.leaker] = d.replace(held, age_seconds=age_seconds)

    def changes_child(self, **fields: t.Any) -> None:
        self.providers[self.pci] = d.replace(self.providers[self.pci], **fields)

    def requested(self, action: str, at: str, **fields: t.Any) -> None:
        self.did(self.leaker, action, at)
        newest, *older = self.actions[self.leaker]
        self.actions[self.leaker] = (d.replace(newest, start_time=at, **fields), *older)


@pytest.fixture(name="devices")
def _devices() -> DeviceCloud:
    return DeviceCloud()


DeviceSituation = Callable[[DeviceCloud], object]


def was_changed_before_the_look(cloud: DeviceCloud) -> None:
    cloud.changes(updated="2026-11-20T14:48:59Z")
    cloud.requested("reboot", "2026-11-20T14:48:50.000000")


UNUSED: dict[str, DeviceSituation] = {
    "uses nothing": lambda cloud: None,
    "uses a device of another provider": lambda cloud: cloud.shows(
        addresses=frozenset({GPU, "0000:85:00.0"})
    ),
    "is paused": lambda cloud: cloud.is_in("PAUSED", state="paused"),
    "is shut off": lambda cloud: cloud.is_in("SHUTOFF", state="shut off"),
    # What a guest uses while it runs is what libvirt shows of it.
    "runs without a definition": lambda cloud: cloud.shows(persistent=False),
    "host has no file of its compute node": lambda cloud: cloud.sees(node=None),
    "host is known to Ansible by another name": lambda cloud: cloud.sees(
        host="compute-1.example.org"
    ),
    "was changed before the look": was_changed_before_the_look,
    "clock of the host is a little fast": lambda cloud: cloud.sees(read_at="2026-11-20T15:00:59Z"),
}


@pytest.mark.parametrize("situation", UNUSED.values(), ids=UNUSED)
def test_unused_child_is_removed_alone(devices: DeviceCloud, situation: DeviceSituation) -> None:
    situation(devices)
    finding = devices.finding()

    assert finding and finding.change and finding.kind == "leaked_child"
    assert finding.change.action == "reduce"
    assert finding.change.after["allocations"] == {devices.here: {"resources": dict(CLAIM)}}
    assert finding.reason.id == "devices_unused"
    devices.apply(finding.change)
    assert devices.finding() is None


def test_only_the_unused_of_two_children_is_removed(devices: DeviceCloud) -> None:
    devices.hold(devices.leaker, devices.gpu, amounts={"VGPU": 1})
    devices.shows(addresses=frozenset({GPU}))
    finding = devices.finding()

    assert finding and finding.change
    assert set(finding.change.after["allocations"]) == {devices.here, devices.gpu}


UNPROVEN: dict[str, dict[str, DeviceSituation]] = {
    "device_in_use": {"uses a device": lambda cloud: cloud.shows(addresses=frozenset({PCI}))},
    "unidentified_device": {
        "has a device that is not identified": lambda cloud: cloud.shows(
            unidentified=("interface direct",)
        )
    },
    "no_domain_on_host": {
        "is not defined there": lambda cloud: cloud.sees(guests={"another": cloud.guest})
    },
    "domain_not_defined": {
        "is shut off and not defined": lambda cloud: cloud.is_in(
            "SHUTOFF", state="shut off", persistent=False
        ),
        "is shut off with a saved memory": lambda cloud: cloud.is_in(
            "SHUTOFF", state="shut off", managed_save=True
        ),
    },
    "domain_in_other_state": {
        # Nova takes the devices of a guest away when it suspends it, and gives them back.
        "is suspended": lambda cloud: cloud.is_in("SUSPENDED", state="shut off"),
        "is in rescue": lambda cloud: cloud.is_in("RESCUE"),
        "runs though Nova says shut off": lambda cloud: cloud.is_in("SHUTOFF"),
        "is shut off though Nova says active": lambda cloud: cloud.shows(state="shut off"),
    },
    "host_not_in_guests": {
        "another host was read": lambda cloud: cloud.sees(host="compute-2", node=cloud.there),
        "another host of the same name was read": lambda cloud: cloud.sees(node=cloud.there),
    },
    "host_read_long_ago": {
        "read too long ago": lambda cloud: cloud.sees(read_at="2026-11-20T13:59:59Z")
    },
    "host_clock_ahead": {
        "read in the future": lambda cloud: cloud.sees(read_at="2026-11-20T15:01:01Z")
    },
    "changed_since_host_was_read": {
        "allocated since": lambda cloud: cloud.allocated(660),
        "changed since": lambda cloud: cloud.changes(updated="2026-11-20T14:49:00Z"),
        "changed at an unknown time": lambda cloud: cloud.changes(updated=None),
    },
    "allocation_age_unknown": {"allocated at an unknown time": lambda cloud: cloud.allocated(None)},
    "action_since_host_was_read": {
        "action requested since": lambda cloud: cloud.requested(
            "attach_interface", "2026-11-20T14:49:30.000000"
        ),
        "action requested at an unknown time": lambda cloud: cloud.requested("reboot", ""),
    },
    "port_action_unfinished": {
        # The port that is attached may come with the device.
        "an older attach has not ended": lambda cloud: cloud.requested(
            "attach_interface", "2026-11-20T09:00:00.000000", events=()
        )
    },
    "device_not_named": {
        "a child of another name": lambda cloud: cloud.changes_child(name="compute-1_fpga"),
        "a child named after another host": lambda cloud: cloud.changes_child(
            name=f"compute-2_{PCI}"
        ),
    },
    "not_a_direct_child": {"a grandchild": lambda cloud: cloud.changes_child(parent=cloud.gpu)},
    "not_a_device": {
        "not only devices": lambda cloud: cloud.hold(
            cloud.leaker, cloud.pci, amounts={"CUSTOM_PCI_8086_1521": 1, "PCPU": 2}
        )
    },
}


@pytest.mark.parametrize(("reason", "situation"), list_cases(UNPROVEN))
def test_nothing_is_removed_without_the_proof(
    devices: DeviceCloud, reason: str, situation: DeviceSituation
) -> None:
    situation(devices)
    finding = devices.finding()

    assert finding and (finding.kind, finding.change) == ("leaked_child", None)
    assert finding.reason.id == reason
    assert "is not proven" in finding.reason


def test_server_whose_actions_are_not_shown_may_be_moving(devices: DeviceCloud) -> None:
    devices.answers("actions", devices.leaker, 403)

    assert devices.finding() is None


@pytest.mark.parametrize(
    ("name", "address"),
    [
        (f"compute-1_{PCI}", PCI),
        ("compute-1_0000:AF:00.1", "0000:af:00.1"),
        ("compute-1_pci_0000_84_00_0", PCI),
        ("compute-1_pci_10000_84_00_0", "10000:84:00.0"),
        ("compute-1_mtty_mtty", None),
        ("compute-1_card_0000_84_00_0", None),
        ("compute-1_0000:84:00.0_0", None),
        ("compute-10_0000:84:00.0", None),
        ("compute-1", None),
        (PCI, None),
        ("compute-1:NIC Switch agent:ens5", None),
    ],
)
def test_name_of_a_provider_says_which_device_it_is(name: str, address: str | None) -> None:
    assert find_device_address(name, "compute-1") == address


EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
ONE = {EGRESS: 1000, INGRESS: 1000}
TWO = {EGRESS: 2000, INGRESS: 2000}


class PortCloud(Scene):
    """A server with the bandwidth of two ports, of which one is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = self.provider("compute-1:Open vSwitch agent", self.here)
        self.bridge = self.provider("compute-1:Open vSwitch agent:br-ex", self.agent)
        self.other_bridge = self.provider("compute-1:Open vSwitch agent:br-in", self.agent)
        self.far_bridge = self.provider("compute-2:Open vSwitch agent:br-ex", self.there)
        self.leaker = self.server(self.here, self.here)
        self.hold(self.leaker, self.bridge, amounts=TWO)
        self.ports[self.leaker] = (self.port("kept"),)
        self.hidden = False

    def port(self, uuid: str, provider: str = "", **fields: t.Any) -> ServerPort:
        """A bound port of the server with a minimum bandwidth."""
        port = ServerPort(
            uuid=uuid,
            vnic_type="normal",
            groups=(PortGroup(f"group of {uuid}", ONE),),
            providers={f"group of {uuid}": provider or self.bridge},
            shows_request=True,
            device_owner="compute:nova",
            host="compute-1",
        )
        return d.replace(port, **fields)

    def plain_port(self) -> ServerPort:
        """A port that requests nothing."""
        return self.port("plain", groups=(), providers={})

    def has_ports(self, *ports: ServerPort) -> None:
        self.ports[self.leaker] = ports

    def changes(self, **fields: t.Any) -> None:
        self.alter(self.leaker, **fields)

    def has_flavor(self, **specs: str) -> None:
        self.changes(flavor=d.replace(FLAVOR, extra_specs=specs))

    def has_port(self, provider: str = "", **fields: t.Any) -> None:
        self.has_ports(self.port("kept", provider, **fields))

    def written(self, age_seconds: int | None) -> None:
        held = self.allocations[self.leaker]
        self.allocations[self.leaker] = d.replace(held, age_seconds=age_seconds)

    def acts(self, name: str, *ends: str | None) -> None:
        """Record an action on a port, with one event of the host for each end."""
        number = len(self.actions.get(self.leaker, ()))
        events = tuple(
            ActionEvent(f"compute_{name}", NOW, end, "Success" if end else None, "compute-1")
            for end in ends
        )
        action = Action(name, f"req-{number}", "user", NOW, None, events)
        self.actions[self.leaker] = (action, *self.actions.get(self.leaker, ()))

    def snapshot(self, **changes: t.Any) -> Snapshot:
        snapshot = super().snapshot(**changes)
        evidence = snapshot.evidence[self.leaker]
        details = tuple(answer("action", 200, action) for action in self.read_actions())
        evidence = d.replace(evidence, port_actions=details)
        if self.hidden:
            attached = d.replace(evidence.interfaces, value=("hidden", "kept"))
            evidence = d.replace(evidence, interfaces=attached)
        return d.replace(snapshot, evidence={**snapshot.evidence, self.leaker: evidence})

    def read_actions(self) -> tuple[Action, ...]:
        return self.actions.get(self.leaker, ())[:MAX_PORT_ACTIONS]

    def finding(self, policy: Policy = NO_MINIMUM_AGE) -> Finding | None:
        return self.find(self.leaker, policy)

    def left(self) -> dict[str, dict[str, int]]:
        """Return what the server keeps of its children after the change."""
        finding = self.finding()
        assert finding and finding.change and finding.kind == "leaked_port", finding
        assert finding.change.action == "reduce"
        kept = {
            provider: dict(amounts["resources"])
            for provider, amounts in finding.change.after["allocations"].items()
        }
        assert kept.pop(self.here) == CLAIM
        self.apply(finding.change)
        again = self.finding()
        assert again is None or again.kind != "leaked_port"
        return kept


@pytest.fixture(name="cloud")
def _cloud() -> PortCloud:
    return PortCloud()


def test_reason_names_what_is_left_over_and_what_stays(cloud: PortCloud) -> None:
    finding = cloud.finding()

    assert finding and finding.reason.id == "unrequested_bandwidth"
    assert EGRESS in finding.reason and INGRESS in finding.reason


def test_everything_is_removed_from_a_server_without_ports(cloud: PortCloud) -> None:
    cloud.has_ports()
    finding = cloud.finding()

    assert finding and finding.reason.id == "unrequested_bandwidth"
    assert cloud.left() == {}


def test_ports_that_request_something_are_named(cloud: PortCloud) -> None:
    cloud.has_ports(cloud.port("one"), cloud.plain_port())
    some = cloud.finding()
    cloud.has_ports()
    none = cloud.finding()

    assert some and " ports one request" in some.reason
    assert none and " ports " not in none.reason.partition("of its ports")[2]


PortSituation = Callable[[PortCloud], object]


def one_of_two_bridges_lost_a_port(cloud: PortCloud) -> None:
    cloud.hold(cloud.leaker, cloud.other_bridge, amounts=ONE)
    cloud.has_ports(cloud.port("one"), cloud.port("two"), cloud.plain_port())


def packet_rates_of_the_agent(cloud: PortCloud) -> None:
    cloud.hold(cloud.leaker, cloud.agent, amounts={PACKETS: 30})
    groups = (PortGroup("bandwidth", ONE), PortGroup("packets", {PACKETS: 10}))
    providers = {"bandwidth": cloud.bridge, "packets": cloud.agent}
    cloud.has_ports(cloud.port("kept", groups=groups, providers=providers))


def another_class_on_the_bridge(cloud: PortCloud) -> None:
    cloud.hold(cloud.leaker, cloud.bridge, amounts={**TWO, "CUSTOM_X": 1})
    cloud.has_ports()


def actions_on_ports_that_have_ended(cloud: PortCloud) -> None:
    cloud.acts("attach_interface", NOW)
    cloud.acts("reboot")
    cloud.acts("detach_interface", NOW)


# Each with what the server keeps of the bridge, or of the agent.
LEAKS: dict[str, tuple[PortSituation, dict[str, dict[str, int]]]] = {
    "part that no port requests": (lambda cloud: None, {"bridge": ONE}),
    "ports without a minimum bandwidth": (lambda cloud: cloud.has_ports(cloud.plain_port()), {}),
    "one of two bridges lost a port": (one_of_two_bridges_lost_a_port, {"bridge": TWO}),
    "packet rates": (packet_rates_of_the_agent, {"bridge": ONE, "agent": {PACKETS: 10}}),
    "Neutron without groups names one provider": (
        lambda cloud: cloud.has_port(providers={"": cloud.bridge}),
        {"bridge": ONE},
    ),
    "other resources of the same provider": (
        another_class_on_the_bridge,
        {"bridge": {"CUSTOM_X": 1}},
    ),
    "actions on ports that have ended": (actions_on_ports_that_have_ended, {"bridge": ONE}),
}


@pytest.mark.parametrize("name", LEAKS)
def test_only_what_no_port_requests_is_removed(cloud: PortCloud, name: str) -> None:
    situation, kept = LEAKS[name]
    situation(cloud)

    assert cloud.left() == {getattr(cloud, provider): kept[provider] for provider in kept}


def two_providers_with_a_port_each(cloud: PortCloud) -> None:
    cloud.hold(cloud.leaker, cloud.bridge, cloud.other_bridge, amounts=ONE)
    cloud.has_ports(cloud.port("one"), cloud.port("two", cloud.other_bridge))


def it_has_nothing_of_the_network(cloud: PortCloud) -> None:
    del cloud.allocations[cloud.leaker]
    cloud.hold(cloud.leaker, cloud.here)
    cloud.has_ports()


NO_LEAKS: dict[str, PortSituation] = {
    "the ports request all of it": lambda cloud: cloud.has_ports(
        cloud.port("one"), cloud.port("two")
    ),
    "two providers with a port each": two_providers_with_a_port_each,
    "explained though a port has a trunk": lambda cloud: cloud.has_ports(
        cloud.port("one", has_trunk=True), cloud.port("two")
    ),
    "it has less than its ports request": lambda cloud: cloud.has_ports(
        cloud.port("one"), cloud.port("two"), cloud.port("three")
    ),
    "it has nothing of the network": it_has_nothing_of_the_network,
    "it is suspended with a task": lambda cloud: cloud.changes(task_state="resuming"),
    "it is in error": lambda cloud: cloud.changes(status="ERROR"),
    # Its source keeps the bandwidth for the migration, and its ports name the destination.
    "it is being migrated": lambda cloud: cloud.migration(
        cloud.leaker, cloud.here, cloud.there, "running", type="live-migration"
    ),
    "it waits for a confirmation": lambda cloud: cloud.changes(status="VERIFY_RESIZE"),
    "its task is not shown": lambda cloud: cloud.changes(task_known=False),
    "it has another host as well": lambda cloud: cloud.hold(
        cloud.leaker, cloud.there, cloud.far_bridge, amounts=ONE
    ),
}


@pytest.mark.parametrize("situation", NO_LEAKS.values(), ids=NO_LEAKS)
def test_it_is_no_leak(cloud: PortCloud, situation: PortSituation) -> None:
    situation(cloud)
    finding = cloud.finding()

    assert finding is None or finding.kind != "leaked_port"


def an_older_detach_has_not_ended(cloud: PortCloud) -> None:
    cloud.acts("detach_interface", None)
    cloud.acts("attach_interface", NOW)


def too_many_actions_to_read(cloud: PortCloud) -> None:
    for _number in range(MAX_PORT_ACTIONS + 1):
        cloud.acts("attach_interface", NOW)


def an_action_is_not_shown(cloud: PortCloud) -> None:
    cloud.acts("detach_interface", NOW)
    cloud.read_actions = lambda: ()  # type: ignore[method-assign]


def the_provider_is_shared(cloud: PortCloud) -> None:
    cloud.providers[cloud.bridge] = d.replace(cloud.providers[cloud.bridge], sharing=True)


DOUBTS: dict[str, dict[str, PortSituation]] = {
    "port_action_unfinished": {
        # Nova allocates before it gives the port to the server.
        "a port is being attached": lambda cloud: cloud.acts("attach_interface", None),
        # Its host is down. It may be carried out at any time, with the port already unbound.
        "a detach is queued": lambda cloud: cloud.acts("detach_interface"),
        # Nova would subtract the same amount again, from what the other port needs.
        "a detach is half done": lambda cloud: cloud.acts("detach_interface", None),
        "an older detach is open": an_older_detach_has_not_ended,
        "an action is not shown": an_action_is_not_shown,
    },
    "too_many_port_actions": {"too many actions": too_many_actions_to_read},
    "allocation_just_written": {
        # Neutron changes the allocation of a bound port before the port.
        "written just now": lambda cloud: cloud.written(59)
    },
    "allocation_age_unknown": {"written at an unknown time": lambda cloud: cloud.written(None)},
    "port_request_not_shown": {
        "the request is left out": lambda cloud: cloud.has_port(
            groups=(), providers={}, shows_request=False
        )
    },
    "port_provider_not_named": {
        "the port names no provider": lambda cloud: cloud.has_port(providers={}),
        "the port names a provider for another group": lambda cloud: cloud.has_port(
            providers={"another": "x"}
        ),
    },
    "port_has_trunk": {"the port has a trunk": lambda cloud: cloud.has_port(has_trunk=True)},
    "port_of_other_owner": {
        "the port is a subport": lambda cloud: cloud.has_port(device_owner="trunk:subport"),
        "the port is nobody's": lambda cloud: cloud.has_port(device_owner=""),
        "the owner is hidden": lambda cloud: cloud.has_port(device_owner=None),
    },
    "port_bound_elsewhere": {
        "the port is bound elsewhere": lambda cloud: cloud.has_port(host="compute-2"),
        "the port is not bound": lambda cloud: cloud.has_port(host=None),
    },
    "port_has_device_profile": {
        "the port has a device": lambda cloud: cloud.has_port(device_profile="nic")
    },
    "ports_request_more": {
        # Its profile may name the wrong provider, and then the surplus is its own.
        "the port is on another provider": lambda cloud: cloud.has_port(cloud.other_bridge),
        "the port is on another host": lambda cloud: cloud.has_port(cloud.far_bridge),
    },
    "flavor_requests_network": {
        "the flavor requests bandwidth": lambda cloud: cloud.has_flavor(
            **{f"resources:{EGRESS}": "1000"}
        ),
        "the flavor requests bandwidth in a group": lambda cloud: cloud.has_flavor(
            **{f"resources_N:{EGRESS}": "1"}
        ),
        "the flavor has a device profile": lambda cloud: cloud.has_flavor(
            **{"accel:device_profile": "nic"}
        ),
    },
    "flavor_not_shown": {
        "the flavor is hidden": lambda cloud: cloud.changes(flavor=None),
        "the extra specs are hidden": lambda cloud: cloud.changes(
            flavor=d.replace(FLAVOR, extra_specs=None)
        ),
    },
    "not_a_child_provider": {
        "it is on the root": lambda cloud: cloud.hold(
            cloud.leaker, cloud.here, amounts={**CLAIM, EGRESS: 5}
        ),
        "the provider is shared": the_provider_is_shared,
    },
}


@pytest.mark.parametrize(("reason", "situation"), list_cases(DOUBTS))
def test_leak_is_undecided(cloud: PortCloud, reason: str, situation: PortSituation) -> None:
    situation(cloud)
    finding = cloud.finding()

    assert finding and (finding.kind, finding.verdict) == ("leaked_port", "undecided")
    assert finding.change is None and finding.reason.id == reason


@pytest.mark.parametrize(
    ("age", "verdict", "reason"),
    [(59, "undecided", "allocation_just_written"), (60, "drifted", "unrequested_bandwidth")],
)
def test_leak_counts_once_neutron_has_had_a_minute_for_the_port(
    cloud: PortCloud, age: int, verdict: str, reason: str
) -> None:
    cloud.written(age)
    finding = cloud.finding()

    assert finding and (finding.kind, finding.verdict) == ("leaked_port", verdict)
    assert finding.reason.id == reason


UNREAD: dict[str, PortSituation] = {
    "Neutron refuses": lambda cloud: cloud.answers("server_ports", cloud.leaker, 403),
    "Neutron fails": lambda cloud: cloud.answers("server_ports", cloud.leaker, 503),
    "Nova does not list its ports": lambda cloud: cloud.answers("interfaces", cloud.leaker, 500),
    "the request is hidden": lambda cloud: cloud.has_port(groups=None),
    # A role that is not an administrator of Neutron sees no other projects, and gets 200.
    "a port is hidden": lambda cloud: setattr(cloud, "hidden", True),
}


@pytest.mark.parametrize("situation", UNREAD.values(), ids=UNREAD)
def test_amounts_are_undecided_where_the_ports_could_not_be_read(
    cloud: PortCloud, situation: PortSituation
) -> None:
    situation(cloud)
    finding = cloud.finding()

    assert finding and (finding.verdict, finding.change) == ("undecided", None), finding
    assert "port" in finding.reason


def test_young_allocation_is_protected(cloud: PortCloud) -> None:
    cloud.written(600)

    assert cloud.finding(Policy(min_age=3600)) is None


def test_doubt_about_its_ports_does_not_hide_a_wrong_owner(cloud: PortCloud) -> None:
    cloud.acts("detach_interface")
    cloud.changes(project="another")
    finding = cloud.finding()

    assert finding and finding.kind == "wrong_owner"
