"""What blocks the decommissioning of a host besides its occupants, and what remains of it."""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.models.codec import convert_to_json
from ......plugins.module_utils._core.models.nova import Aggregate, Hypervisor, Service
from ......plugins.module_utils._core.models.other_services import OtherService
from ......plugins.module_utils._core.models.placement import Provider
from ......plugins.module_utils._hosts.emptiness import Blocker, Contents
from ......plugins.module_utils._hosts.host import Host
from ......plugins.module_utils._hosts.host_record import HostRecords
from ......plugins.module_utils._hosts.host_report import (
    HostReport,
    PartPolicy,
    describe_removal,
    explain_refusal,
    find_part_blockers,
)
from ......plugins.module_utils._hosts.parts import (
    Agent,
    AgentResource,
    BoundPort,
    HostParts,
    NetworkParts,
)
from ..host_site import Site

DEAD = Agent("a-1", "neutron-l3-agent", "L3 agent", "compute-17", alive=False)
ALIVE = d.replace(DEAD, uuid="a-2", alive=True)
ROUTERS = d.replace(DEAD, resources=(AgentResource("router", "r-1", "edge"),))
NETWORKS = d.replace(
    DEAD, type="DHCP agent", resources=(AgentResource("network", "n-1", "web\x1b[31m"),) * 2
)
UNKNOWN = d.replace(DEAD, resources=None)
PORT = BoundPort("p-1", "compute:nova", "s-1")


@pytest.mark.parametrize("name", ["old", "{old}", "old port", "{port}"])
def test_empty_host_with_an_excluded_part_is_blocked(name: str) -> None:
    site = Site()
    port = site.provider("old port", parent=site.old)
    excluded = [name.format(old=site.old, port=port), "nonesuch", "new"]

    (blocker,) = site.blockers(excluded=excluded)

    assert (blocker.kind, blocker.subject, blocker.stops) == ("excluded", excluded[0], "disable")
    assert site.blockers(excluded=["new"]) == []


def test_running_service_blocks_only_its_deletion() -> None:
    site = Site()
    site.services[0] = d.replace(site.services[0], state="up")
    (blocker,) = site.blockers()

    assert (blocker.kind, blocker.stops) == ("service_up", "delete")


def test_a_refusal_counts_all_blockers_and_has_the_first_reasons() -> None:
    blockers = [Blocker("server", str(number), "", f"Reason {number}.") for number in range(12)]

    assert explain_refusal("compute-1", [], "deleted") == ""
    told = explain_refusal("compute-1", blockers, "deleted", "see /out/host.json")
    assert "(blockers: 12, see /out/host.json)" in told
    assert told.endswith("Reason 9.")


def _block(parts: HostParts, **policy: bool) -> list[tuple[str, str, str]]:
    blockers = find_part_blockers("old", parts, PartPolicy(**policy))
    return [(entry.kind, entry.subject, entry.stops) for entry in blockers]


@pytest.mark.parametrize(
    ("agents", "ports", "kinds"),
    [
        ((), (), []),
        ((DEAD,), (), []),
        ((ALIVE,), (), ["agent_up"]),
        ((ROUTERS,), (), ["agent_in_use"]),
        ((NETWORKS,), (), ["agent_in_use"]),
        # What could not be listed may be there.
        ((UNKNOWN,), (), ["agent_in_use"]),
        ((DEAD,), (PORT,), ["port"]),
        ((d.replace(ROUTERS, alive=True),), (PORT,), ["agent_up", "agent_in_use", "port"]),
        # Without an agent, nothing is deleted under a port.
        ((), (PORT,), []),
    ],
)
def test_agents_that_block_the_deletion(
    agents: tuple[Agent, ...], ports: tuple[BoundPort, ...], kinds: list[str]
) -> None:
    parts = HostParts(NetworkParts(agents, ports))
    found = _block(parts)

    assert [kind for kind, _subject, _stops in found] == kinds
    assert {stops for _kind, _subject, stops in found} <= {"delete"}
    assert _block(parts, delete_agents=False) == []
    # Only that an agent is alive may be overruled.
    allowed = [kind for kind, _subject, _stops in _block(parts, delete_running_agents=True)]
    assert allowed == [kind for kind in kinds if kind != "agent_up"]


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        (ROUTERS, "openstack network agent remove router --l3 a-1 r-1"),
        (NETWORKS, "openstack network agent add network --dhcp OTHER_AGENT n-1"),
    ],
)
def test_the_command_that_moves_what_an_agent_serves(agent: Agent, command: str) -> None:
    (blocker,) = find_part_blockers("old", HostParts(NetworkParts((agent,))), PartPolicy())

    assert command in blocker.reason and blocker.reason.isprintable()


@pytest.mark.parametrize(
    ("zone_hosts", "kinds"), [((), ["empty_zone"]), (("new",), []), (None, [])]
)
def test_the_last_host_of_a_zone(zone_hosts: tuple[str, ...] | None, kinds: list[str]) -> None:
    parts = HostParts(zone="az1", zone_hosts=zone_hosts)

    assert [kind for kind, _subject, _stops in _block(parts)] == kinds
    assert _block(parts, allow_empty_zone=True) == []


def test_resources_that_are_not_known_are_not_an_empty_list() -> None:
    assert convert_to_json(UNKNOWN)["resources"] is None
    assert convert_to_json(DEAD)["resources"] == []
    described: t.Any = convert_to_json(ROUTERS)["resources"]
    assert described == [{"kind": "router", "uuid": "r-1", "name": "edge"}]


SERVICE = Service("nova-compute", "compute-17", "disabled", "down", id="s-1")
NODE = Hypervisor("n-1", "compute-17.example.org", "compute-17", "down", "disabled", 0)
CHILD = Provider("c-1", "compute-17 port", 1, "n-1", "n-1")
ROOT = Provider("n-1", NODE.name, 1, "n-1", None)
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
