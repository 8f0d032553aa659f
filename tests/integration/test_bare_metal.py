"""Nodes of a real Ironic, which Nova's own driver gives to Placement.

There is no conductor: what it would do to a node is written into Ironic's database.
"""

import json
import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import holdings, ironic, lifecycle
from minicloud_ctl.errors import MinicloudError

from .support import Ansible
from .world import CELL1, World

OWN_CLOUD = True
pytestmark = pytest.mark.long

HOST = "metal"
CLASS = "CUSTOM_GOLD_X"
CLAIM = {CLASS: 1}
LONG_AGO = "2026-01-01 00:00:00"
MOVE = "UPDATE instances SET host = ?, node = ? WHERE uuid = ?"


class Metal:
    """An Ironic with nodes, and the nova-compute that offers them."""

    def __init__(self, world: World) -> None:
        self.world = world
        names = ("free", "claimed", "used", "cleaning", "gone")
        self.nodes = {name: str(uuid.uuid4()) for name in names}
        self._values: dict[str, dict[str, object]] = {}
        for name, node in self.nodes.items():
            self._values[name] = {
                "uuid": node,
                "name": name,
                "provision_state": "available",
                "power_state": "power off",
                "resource_class": "gold-x",
                "provision_updated_at": LONG_AGO,
                "updated_at": LONG_AGO,
            }
        ironic.create_nodes(world.paths, self._values.values())
        self.offer()

    def change(self, name: str, **values: object) -> None:
        ironic.change_node(self.world.paths, self.nodes[name], **values)
        self._values[name].update(values)

    def delete(self, name: str) -> None:
        ironic.delete_node(self.world.paths, self.nodes[name])
        del self._values[name]

    def offer(self) -> None:
        """Have nova-compute write the inventories of all nodes as they are now."""
        if HOST in self.world.state.computes:
            lifecycle.kill_compute(self.world.paths, HOST)
        ironic.start_compute(self.world.paths, HOST)
        self.world.wait("the nodes to be in Placement as they are", self._are_offered)

    def _are_offered(self) -> bool:
        providers = self.world.cloud.providers()
        for name, values in self._values.items():
            if self.nodes[name] not in providers:
                return False
            path = f"/resource_providers/{self.nodes[name]}/inventories"
            stock = self.world.cloud.placement("GET", path)["inventories"]
            is_free = values["provision_state"] == "available" and not values.get("maintenance")
            if stock.get(CLASS, {}).get("reserved") != int(not is_free):
                return False
        return True


@pytest.fixture(scope="module")
def metal(world: World) -> Iterator[Metal]:
    if not ironic.get_requirements(world.paths).exists():
        pytest.skip("the minicloud has no real Ironic for this release")
    url = ironic.start(world.paths)
    # By Ironic's policy, not even an administrator of a project sees more than its own nodes.
    world.assign("operator", "service", "admin", "service")
    with world.service("baremetal", url):
        yield Metal(world)
        lifecycle.kill_compute(world.paths, HOST)
    ironic.stop(world.paths)


Finding = dict[str, t.Any]


def detect(ansible: Ansible, **options: t.Any) -> tuple[dict[str, Finding], list[str]]:
    """Return the findings of this kind by node, and what was not searched."""
    dest = ansible.folder / "findings.json"
    ansible.direct("orphan_detect", dest=str(dest), **{"min_age": "0", **options})
    document = json.loads(dest.read_text(encoding="utf-8"))
    entries = [*document["findings"], *document["undecided"]]
    found = {
        entry["id"].partition("/")[2]: entry
        for entry in entries
        if entry["kind"] == "bare_metal_mismatch"
    }
    return found, document["summary"]["coverage"]["unread"]


OPERATOR = {"username": "operator", "password": "operator", "project_name": "service"}


@pytest.fixture
def operator(ansible: Ansible, metal: Metal) -> dict[str, t.Any]:
    """The credentials of a user who sees all nodes."""
    auth = {
        "auth_url": metal.world.state.url("keystone", "/v3"),
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    for name in [name for name in ansible.environment if name.startswith("OS_")]:
        del ansible.environment[name]
    return {"auth": {**auth, **OPERATOR}, "region_name": "RegionOne"}


def test_nodes_as_nova_offers_them_have_no_finding(
    ansible: Ansible, metal: Metal, operator: dict[str, t.Any]
) -> None:
    assert detect(ansible, **operator) == ({}, [])
    metal.change("cleaning", provision_state="cleaning")
    metal.offer()
    # It has only begun.
    assert detect(ansible, **operator, stuck_min_age="3650d") == ({}, [])


def test_user_who_sees_the_nodes_of_one_project_only_gets_no_false_alarm(
    ansible: Ansible, metal: Metal
) -> None:
    found, (unread,) = detect(ansible)
    assert found == {} and unread.startswith("5 ")
    assert detect(ansible, kinds=["deleted_server"]) == ({}, [])


def test_each_contradiction_is_found_and_mended(
    ansible: Ansible, metal: Metal, operator: dict[str, t.Any]
) -> None:
    world, nodes = metal.world, metal.nodes
    consumer = str(uuid.uuid4())
    world.hold(consumer, {nodes["claimed"]: CLAIM})
    world.hold(gone := str(uuid.uuid4()), {nodes["gone"]: CLAIM})
    metal.delete("gone")
    metal.change("free", maintenance=1)
    metal.change("cleaning", provision_state="cleaning", last_error="the disk is \x1b[31m broken")

    found, unread = detect(ansible, **operator)
    assert unread == []
    assert {node: finding["reason_id"] for node, finding in found.items()} == {
        nodes["claimed"]: "node_has_other_consumer",
        nodes["gone"]: "node_gone",
        nodes["free"]: "unusable_node_offered",
        nodes["cleaning"]: "node_cleaning_for_long",
    }
    assert consumer in found[nodes["claimed"]]["reason"]
    assert "\x1b" not in found[nodes["cleaning"]]["reason"]
    # Young contradictions may be a deletion that is under way.
    assert set(detect(ansible, **operator, min_age="1h")[0]) == {nodes["cleaning"], nodes["free"]}

    holdings.put(world.cloud, consumer, {}, holdings.of(world.cloud, consumer))
    holdings.put(world.cloud, gone, {}, holdings.of(world.cloud, gone))
    metal.change("cleaning", provision_state="available", last_error=None)
    metal.offer()
    world.wait(
        "nova-compute to delete the provider of the node that is gone",
        lambda: nodes["gone"] not in world.cloud.providers(),
    )
    assert detect(ansible, **operator) == ({}, [])


def test_free_node_that_is_not_offered_is_found(
    ansible: Ansible, metal: Metal, operator: dict[str, t.Any]
) -> None:
    # nova-compute has not seen yet that the maintenance is over.
    metal.change("free", maintenance=0)
    found, _unread = detect(ansible, **operator)
    assert list(found) == [metal.nodes["free"]]
    assert found[metal.nodes["free"]]["reason_id"] == "free_node_not_offered"
    metal.offer()
    assert detect(ansible, **operator) == ({}, [])


def test_server_on_a_node_without_an_allocation_is_found(
    ansible: Ansible, metal: Metal, operator: dict[str, t.Any]
) -> None:
    world, node = metal.world, metal.nodes["used"]
    server = world.boot("compute-1")
    holdings.put(world.cloud, server, {}, holdings.of(world.cloud, server))
    metal.change("used", provision_state="active", instance_uuid=server)
    # As if Nova had built it there.
    world.sql(CELL1, MOVE, HOST, node, server)
    metal.offer()
    found, _unread = detect(ansible, **operator)
    assert found[node]["reason_id"] == "node_server_without_allocation"
    assert f"heal_allocations --instance {server}" in found[node]["reason"]

    # Nova reserves a node that is in use, so that the allocation could not be created.
    with pytest.raises(MinicloudError, match="exceed the capacity"):
        world.hold(server, {node: CLAIM})

    world.sql(CELL1, MOVE, "compute-1", "compute-1", server)
    # A node that is in use by a server elsewhere is none of its business.
    assert node not in detect(ansible, **operator)[0]


def test_ironic_that_does_not_answer_is_said_once(
    ansible: Ansible, metal: Metal, operator: dict[str, t.Any]
) -> None:
    ironic.stop(metal.world.paths)
    found, (_unread,) = detect(ansible, **operator)
    assert found == {}
