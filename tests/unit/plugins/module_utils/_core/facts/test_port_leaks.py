# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bandwidth that a port has left on its server, and everything that only looks like it."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.devices import MAX_PORT_ACTIONS
from .......plugins.module_utils._core.models.nova import Action, ActionEvent
from .......plugins.module_utils._core.models.resource_request import PortGroup, ServerPort
from .......plugins.module_utils._core.models.snapshot import Snapshot
from .......plugins.module_utils._core.models.verdict import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, judge
from ...world import CLAIM, FLAVOR, NOW, World, answer

EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
ONE = {EGRESS: 1000, INGRESS: 1000}
TWO = {EGRESS: 2000, INGRESS: 2000}


class Cloud(World):
    """A server with the bandwidth of two ports, of which one is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
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

    def has_ports(self, *ports: ServerPort) -> None:
        self.ports[self.leaker] = ports

    def changes(self, **fields: t.Any) -> None:
        self.servers[self.leaker] = d.replace(self.servers[self.leaker], **fields)

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
        for finding in judge(self.snapshot(), policy):
            if finding.consumer == self.leaker:
                return finding
        return None

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


def test_part_that_no_port_requests_is_removed_alone() -> None:
    cloud = Cloud()
    assert cloud.left() == {cloud.bridge: ONE}


def test_reason_names_what_is_left_over_and_what_stays() -> None:
    cloud = Cloud()
    finding = cloud.finding()

    assert (
        finding
        and finding.reason.id == "unrequested_bandwidth"
        and EGRESS in finding.reason
        and INGRESS in finding.reason
    )


def test_everything_is_removed_from_a_server_without_ports() -> None:
    cloud = Cloud()
    cloud.has_ports()
    finding = cloud.finding()

    assert finding and finding.reason.id == "unrequested_bandwidth"
    assert cloud.left() == {}


def test_ports_without_a_minimum_bandwidth_explain_nothing() -> None:
    cloud = Cloud()
    cloud.has_ports(cloud.port("plain", groups=(), providers={}))
    assert cloud.left() == {}


def test_only_the_provider_of_the_lost_port_loses_anything() -> None:
    cloud = Cloud()
    cloud.hold(cloud.leaker, cloud.other_bridge, amounts=ONE)
    cloud.has_ports(
        cloud.port("one"), cloud.port("two"), cloud.port("three", groups=(), providers={})
    )
    assert cloud.left() == {cloud.bridge: TWO}


def test_packet_rates_of_the_agent_are_removed_with_the_bandwidth_of_the_bridge() -> None:
    cloud = Cloud()
    cloud.hold(cloud.leaker, cloud.agent, amounts={PACKETS: 30})
    groups = (PortGroup("bandwidth", ONE), PortGroup("packets", {PACKETS: 10}))
    providers = {"bandwidth": cloud.bridge, "packets": cloud.agent}
    cloud.has_ports(cloud.port("kept", groups=groups, providers=providers))
    assert cloud.left() == {cloud.bridge: ONE, cloud.agent: {PACKETS: 10}}


def test_neutron_without_groups_names_one_provider() -> None:
    cloud = Cloud()
    cloud.has_ports(cloud.port("kept", providers={"": cloud.bridge}))
    assert cloud.left() == {cloud.bridge: ONE}


def test_other_resources_of_the_same_provider_stay() -> None:
    cloud = Cloud()
    cloud.hold(cloud.leaker, cloud.bridge, amounts={**TWO, "CUSTOM_X": 1})
    cloud.has_ports()
    assert cloud.left() == {cloud.bridge: {"CUSTOM_X": 1}}


def test_actions_on_ports_that_have_ended_do_not_matter() -> None:
    cloud = Cloud()
    cloud.acts("attach_interface", NOW)
    cloud.acts("reboot")
    cloud.acts("detach_interface", NOW)
    assert cloud.left() == {cloud.bridge: ONE}


def the_ports_request_all_of_it(cloud: Cloud) -> None:
    cloud.has_ports(cloud.port("one"), cloud.port("two"))


def two_providers_with_a_port_each(cloud: Cloud) -> None:
    cloud.hold(cloud.leaker, cloud.bridge, cloud.other_bridge, amounts=ONE)
    cloud.has_ports(cloud.port("one"), cloud.port("two", cloud.other_bridge))


def explained_though_a_port_has_a_trunk(cloud: Cloud) -> None:
    cloud.has_ports(cloud.port("one", has_trunk=True), cloud.port("two"))


def it_has_less_than_its_ports_request(cloud: Cloud) -> None:
    cloud.has_ports(cloud.port("one"), cloud.port("two"), cloud.port("three"))


def it_has_nothing_of_the_network(cloud: Cloud) -> None:
    del cloud.allocations[cloud.leaker]
    cloud.hold(cloud.leaker, cloud.here)
    cloud.has_ports()


def it_is_suspended_with_a_task(cloud: Cloud) -> None:
    cloud.changes(task_state="resuming")


def it_is_in_error(cloud: Cloud) -> None:
    cloud.changes(status="ERROR")


def it_is_being_migrated(cloud: Cloud) -> None:
    """Its source keeps the bandwidth for the migration, and its ports name the destination."""
    cloud.migration(cloud.leaker, cloud.here, cloud.there, "running", type="live-migration")


def it_waits_for_a_confirmation(cloud: Cloud) -> None:
    cloud.changes(status="VERIFY_RESIZE")


def its_task_is_not_shown(cloud: Cloud) -> None:
    cloud.changes(task_known=False)


def it_has_another_host_as_well(cloud: Cloud) -> None:
    cloud.hold(cloud.leaker, cloud.there, cloud.far_bridge, amounts=ONE)


@pytest.mark.parametrize(
    "situation",
    [
        the_ports_request_all_of_it,
        two_providers_with_a_port_each,
        explained_though_a_port_has_a_trunk,
        it_has_less_than_its_ports_request,
        it_has_nothing_of_the_network,
        it_is_suspended_with_a_task,
        it_is_in_error,
        it_is_being_migrated,
        it_waits_for_a_confirmation,
        its_task_is_not_shown,
        it_has_another_host_as_well,
    ],
)
def test_it_is_no_leak(situation: Callable[[Cloud], None]) -> None:
    cloud = Cloud()
    situation(cloud)
    finding = cloud.finding()

    assert finding is None or finding.kind != "leaked_port"


def the_answer(question: str, status: int) -> Callable[[Cloud], None]:
    def situation(cloud: Cloud) -> None:
        cloud.answers(question, cloud.leaker, status)

    return situation


def a_port_was_attached_while_the_server_was_read(cloud: Cloud) -> None:
    """Nova allocates before it gives the port to the server."""
    cloud.acts("attach_interface", None)


def a_detach_waits_in_the_queue(cloud: Cloud) -> None:
    """Its host is down. It may be carried out at any time, with the port already unbound."""
    cloud.acts("detach_interface")


def a_detach_has_unbound_the_port_and_not_freed_it(cloud: Cloud) -> None:
    """Nova would subtract the same amount again, from what the other port needs."""
    cloud.acts("detach_interface", None)


def an_older_detach_has_not_ended(cloud: Cloud) -> None:
    cloud.acts("detach_interface", None)
    cloud.acts("attach_interface", NOW)


def too_many_actions_to_read(cloud: Cloud) -> None:
    for _number in range(MAX_PORT_ACTIONS + 1):
        cloud.acts("attach_interface", NOW)


def an_action_is_not_shown(cloud: Cloud) -> None:
    cloud.acts("detach_interface", NOW)
    cloud.read_actions = lambda: ()  # type: ignore[method-assign]


def written_just_now(cloud: Cloud) -> None:
    """Neutron changes the allocation of a bound port before the port."""
    held = cloud.allocations[cloud.leaker]
    cloud.allocations[cloud.leaker] = d.replace(held, age_seconds=59)


def written_at_an_unknown_time(cloud: Cloud) -> None:
    held = cloud.allocations[cloud.leaker]
    cloud.allocations[cloud.leaker] = d.replace(held, age_seconds=None)


def the_port(**fields: t.Any) -> Callable[[Cloud], None]:
    def situation(cloud: Cloud) -> None:
        cloud.has_ports(cloud.port("kept", **fields))

    return situation


def a_port_requests_more_of_another_provider(cloud: Cloud) -> None:
    """Its profile may name the wrong provider, and then the surplus is its own."""
    cloud.has_ports(cloud.port("kept", cloud.other_bridge))


def a_port_is_still_bound_to_another_host(cloud: Cloud) -> None:
    cloud.has_ports(cloud.port("kept", cloud.far_bridge))


def the_flavor(**specs: str) -> Callable[[Cloud], None]:
    def situation(cloud: Cloud) -> None:
        extra = {name.replace("__", ":"): value for name, value in specs.items()}
        cloud.changes(flavor=d.replace(FLAVOR, extra_specs=extra))

    return situation


def the_flavor_is_not_shown(cloud: Cloud) -> None:
    cloud.changes(flavor=None)


def the_extra_specs_are_not_shown(cloud: Cloud) -> None:
    cloud.changes(flavor=d.replace(FLAVOR, extra_specs=None))


def it_is_on_the_root_provider(cloud: Cloud) -> None:
    cloud.hold(cloud.leaker, cloud.here, amounts={**CLAIM, EGRESS: 5})


def the_provider_is_shared(cloud: Cloud) -> None:
    cloud.providers[cloud.bridge] = d.replace(cloud.providers[cloud.bridge], sharing=True)


DOUBTS: dict[str, tuple[Callable[[Cloud], None], str]] = {
    "a port is being attached": (
        a_port_was_attached_while_the_server_was_read,
        "port_action_unfinished",
    ),
    "a detach is queued": (a_detach_waits_in_the_queue, "port_action_unfinished"),
    "a detach is half done": (
        a_detach_has_unbound_the_port_and_not_freed_it,
        "port_action_unfinished",
    ),
    "an older detach is open": (an_older_detach_has_not_ended, "port_action_unfinished"),
    "too many actions": (too_many_actions_to_read, "too_many_port_actions"),
    "an action is not shown": (an_action_is_not_shown, "port_action_unfinished"),
    "written just now": (written_just_now, "allocation_just_written"),
    "written at an unknown time": (written_at_an_unknown_time, "allocation_age_unknown"),
    "the request is left out": (
        the_port(groups=(), providers={}, shows_request=False),
        "port_request_not_shown",
    ),
    "the port names no provider": (the_port(providers={}), "port_provider_not_named"),
    "the port names a provider for another group": (
        the_port(providers={"another": "x"}),
        "port_provider_not_named",
    ),
    "the port has a trunk": (the_port(has_trunk=True), "port_has_trunk"),
    "the port is a subport": (the_port(device_owner="trunk:subport"), "port_of_other_owner"),
    "the port is nobody's": (the_port(device_owner=""), "port_of_other_owner"),
    "the owner is hidden": (the_port(device_owner=None), "port_of_other_owner"),
    "the port is bound elsewhere": (the_port(host="compute-2"), "port_bound_elsewhere"),
    "the port is not bound": (the_port(host=None), "port_bound_elsewhere"),
    "the port has a device": (the_port(device_profile="nic"), "port_has_device_profile"),
    "the port is on another provider": (
        a_port_requests_more_of_another_provider,
        "ports_request_more",
    ),
    "the port is on another host": (a_port_is_still_bound_to_another_host, "ports_request_more"),
    "the flavor requests bandwidth": (
        the_flavor(**{f"resources__{EGRESS}": "1000"}),
        "flavor_requests_network",
    ),
    "the flavor requests bandwidth in a group": (
        the_flavor(**{f"resources_N__{EGRESS}": "1"}),
        "flavor_requests_network",
    ),
    "the flavor has a device profile": (
        the_flavor(accel__device_profile="nic"),
        "flavor_requests_network",
    ),
    "the flavor is hidden": (the_flavor_is_not_shown, "flavor_not_shown"),
    "the extra specs are hidden": (the_extra_specs_are_not_shown, "flavor_not_shown"),
    "it is on the root": (it_is_on_the_root_provider, "not_a_child_provider"),
    "the provider is shared": (the_provider_is_shared, "not_a_child_provider"),
}


@pytest.mark.parametrize(("situation", "reason"), DOUBTS.values(), ids=DOUBTS)
def test_leak_is_undecided(situation: Callable[[Cloud], None], reason: str) -> None:
    cloud = Cloud()
    situation(cloud)
    finding = cloud.finding()

    assert finding and (finding.kind, finding.verdict) == ("leaked_port", "undecided")
    assert finding.change is None and finding.reason.id == reason


@pytest.mark.parametrize(
    ("age", "verdict", "reason"),
    [(59, "undecided", "allocation_just_written"), (60, "drifted", "unrequested_bandwidth")],
)
def test_leak_counts_once_neutron_has_had_a_minute_for_the_port(
    age: int, verdict: str, reason: str
) -> None:
    cloud = Cloud()
    cloud.allocations[cloud.leaker] = d.replace(cloud.allocations[cloud.leaker], age_seconds=age)
    finding = cloud.finding()

    assert finding and (finding.kind, finding.verdict) == ("leaked_port", verdict)
    assert finding.reason.id == reason


def a_port_is_only_in_nova(cloud: Cloud) -> None:
    """A role that is not an administrator of Neutron sees no other projects, and gets 200."""
    cloud.hidden = True


UNREAD: dict[str, Callable[[Cloud], None]] = {
    "Neutron refuses": the_answer("server_ports", 403),
    "Neutron fails": the_answer("server_ports", 503),
    "Nova does not list its ports": the_answer("interfaces", 500),
    "the request is hidden": the_port(groups=None),
    "a port is hidden": a_port_is_only_in_nova,
}


@pytest.mark.parametrize("situation", UNREAD.values(), ids=UNREAD)
def test_amounts_are_undecided_where_the_ports_could_not_be_read(
    situation: Callable[[Cloud], None],
) -> None:
    cloud = Cloud()
    situation(cloud)
    finding = cloud.finding()

    assert finding and (finding.verdict, finding.change) == ("undecided", None), finding
    assert "port" in finding.reason


def test_young_allocation_is_protected() -> None:
    cloud = Cloud()
    held = cloud.allocations[cloud.leaker]
    cloud.allocations[cloud.leaker] = d.replace(held, age_seconds=600)

    assert cloud.finding(Policy(min_age=3600)) is None


def test_doubt_about_its_ports_does_not_hide_a_wrong_owner() -> None:
    cloud = Cloud()
    cloud.acts("detach_interface")
    cloud.changes(project="another")
    finding = cloud.finding()

    assert finding and finding.kind == "wrong_owner"
