"""What remains of a host that was decommissioned."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._core.models.nova import Aggregate, Hypervisor, Service
from ......plugins.module_utils._core.models.other_services import OtherService
from ......plugins.module_utils._core.models.placement import Provider
from ......plugins.module_utils._hosts.emptiness import Contents
from ......plugins.module_utils._hosts.host import Host
from ......plugins.module_utils._hosts.host_record import HostRecords
from ......plugins.module_utils._hosts.host_report import HostReport, PartPolicy, describe_removal
from ......plugins.module_utils._hosts.parts import Agent, HostParts, NetworkParts

SERVICE = Service("nova-compute", "compute-17", "disabled", "down", id="s-1")
NODE = Hypervisor("n-1", "compute-17.example.org", "compute-17", "down", "disabled", 0)
CHILD = Provider("c-1", "compute-17 port", 1, "n-1", "n-1")
ROOT = Provider("n-1", NODE.name, 1, "n-1", None)
DEAD = Agent("a-1", "neutron-l3-agent", "L3 agent", "compute-17", alive=False)
ALIVE = Agent("a-2", "neutron-dhcp-agent", "DHCP agent", "compute-17", alive=True)
SEEN = HostRecords(existed=True)


def _judge(
    service: Service | None = None,
    nodes: tuple[Hypervisor, ...] = (),
    parts: HostParts | None = None,
    policy: PartPolicy | None = None,
    records: HostRecords = SEEN,
    **found: t.Any,
) -> dict[str, t.Any]:
    host = Host("compute-17", service, nodes)
    report = HostReport("compute-17", Contents(host), parts or HostParts(), records, **found)
    return describe_removal(report, policy or PartPolicy())


@pytest.mark.parametrize(
    ("after", "remains"),
    [
        ({"service": SERVICE}, ["compute service s-1 remains (disabled, down)"]),
        ({"nodes": (NODE,)}, ["compute node compute-17.example.org (n-1) remains"]),
        ({"providers": (CHILD,)}, ["provider compute-17 port (c-1) remains"]),
        (
            {"namesakes": (ROOT,)},
            ["provider compute-17.example.org (n-1) has the name of the host"],
        ),
        (
            {"parts": HostParts(aggregates=(Aggregate("u-1", "a\x1b[31m", None, ()),))},
            ["aggregate a\\x1b[31m (u-1) still has the host"],
        ),
        (
            {"service": SERVICE, "nodes": (NODE,), "providers": (CHILD, ROOT)},
            [
                "compute service s-1 remains (disabled, down)",
                "compute node compute-17.example.org (n-1) remains",
                "provider compute-17 port (c-1) remains",
                "provider compute-17.example.org (n-1) remains",
            ],
        ),
    ],
)
@pytest.mark.parametrize("existed", [True, False])
def test_everything_that_remains_is_named(
    after: dict[str, t.Any], remains: list[str], existed: bool
) -> None:
    removal = _judge(**after, records=HostRecords(existed=existed))

    assert not removal["complete"]
    assert removal["message"].endswith(f" not removed completely: {', '.join(remains)}.")


def test_a_host_that_no_look_has_found_may_be_misspelt() -> None:
    gone, unknown = _judge(), _judge(records=HostRecords())

    assert gone["complete"] and gone["message"].startswith("compute-17 is gone")
    assert unknown["complete"] and "misspelt" in unknown["message"]


@pytest.mark.parametrize(
    ("policy", "remains", "notes"),
    [
        (PartPolicy(), [DEAD, ALIVE], []),
        (PartPolicy(delete_running_agents=True), [DEAD], [ALIVE]),
        (PartPolicy(delete_agents=False), [], []),
    ],
)
def test_agents_that_must_be_gone(
    policy: PartPolicy, remains: list[Agent], notes: list[Agent]
) -> None:
    removal = _judge(parts=HostParts(NetworkParts((DEAD, ALIVE))), policy=policy)

    assert removal["complete"] is not bool(remains)
    named = [agent for agent in (DEAD, ALIVE) if f"{agent.type} {agent.uuid}" in removal["message"]]
    assert named == [*remains, *notes]
    assert removal["message"].count(": stop it.") == len(notes)
    gone = _judge(records=HostRecords(had_agents=True), policy=policy)
    assert gone["complete"] and ("no network agent" in gone["message"]) is (policy == PartPolicy())


def test_what_was_left_alone_is_named_at_the_end() -> None:
    cinder = OtherService(
        "block-storage", None, "cinder-volume", "compute-17@\x1b", "enabled", "up"
    )
    removal = _judge(parts=HostParts(services=(cinder,), unread=("Neutron is down.",)))

    assert removal["complete"]
    assert " Neutron is down. The cinder-volume of compute-17@\\x1b " in removal["message"]
    assert removal["message"].endswith(" remove cinder-volume compute-17@\\x1b")
