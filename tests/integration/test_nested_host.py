"""A host with dedicated CPUs and children, and what its servers have, compared with both sides."""

import json
import typing as t
import uuid

import pytest
from minicloud_ctl import holdings, nested, servers

from .support import Ansible, Placement
from .world import World

pytestmark = pytest.mark.long

HOST = "nested-own"
SINCE = "2.74"
DELETE_INVENTORY = (
    "DELETE FROM inventories WHERE resource_provider_id = (SELECT id FROM resource_providers "
    "WHERE uuid = ?) AND resource_class_id = (SELECT id FROM resource_classes WHERE name = 'VGPU')"
)


@pytest.fixture(scope="module", autouse=True)
def _host(world: World) -> None:
    world.own_host(HOST, driver=nested.DRIVER)


def boot(world: World, host: str, *disks: dict[str, t.Any], **specs: str) -> str:
    """Boot a server from an image, or with these disks alone."""
    flavor = {"name": str(uuid.uuid4()), "vcpus": 2, "ram": 256, "disk": 10}
    reference = world.cloud.nova("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
    if specs:
        body = {"extra_specs": {key.replace("__", ":"): value for key, value in specs.items()}}
        world.cloud.nova("POST", f"/flavors/{reference}/os-extra_specs", body)
    root = {"block_device_mapping_v2": disks} if disks else {"imageRef": world.cloud.image()}
    document = {"name": "any", "flavorRef": reference, "networks": "none", "host": host, **root}
    server: str = world.cloud.nova("POST", "/servers", {"server": document}, SINCE)["server"]["id"]
    servers.settle(world.cloud, server, None)
    world.forget(server)
    return server


def find(ansible: Ansible, **options: t.Any) -> tuple[list[dict[str, t.Any]], dict[str, t.Any]]:
    dest = ansible.folder / "findings.json"
    ansible.direct("orphan_detect", dest=str(dest), min_age="0", unknown_min_age="0", **options)
    document: dict[str, t.Any] = json.loads(dest.read_text(encoding="utf-8"))
    return [*document["findings"], *document["undecided"]], document["summary"]


def test_dedicated_cpus_are_not_those_of_the_hypervisor(ansible: Ansible, world: World) -> None:
    pinned = boot(world, HOST, hw__cpu_policy="dedicated")
    root = world.provider(HOST)
    assert holdings.of(world.cloud, pinned).allocations[root]["PCPU"] == 2
    node = world.cloud.nova("GET", f"/os-hypervisors/{root}", version="2.87")["hypervisor"]
    assert (node["vcpus"], node["vcpus_used"]) == (64, 2)

    found, summary = find(ansible, hosts=[HOST], kinds=["capacity_mismatch"])
    assert found == []
    assert summary["overcommit"]["VCPU"]["highest"] == 0.0


def test_blank_root_disk_of_the_host_stays(ansible: Ansible, world: World) -> None:
    """Nova shows neither an image nor a volume of it, and has the disk of its flavor allocated."""
    disk = {"boot_index": 0, "source_type": "blank", "destination_type": "local"}
    server = boot(world, "compute-1", disk)
    assert holdings.of(world.cloud, server).allocations[world.provider("compute-1")] == {
        **{"VCPU": 2, "MEMORY_MB": 256, "DISK_GB": 10}
    }

    found, summary = find(ansible, consumers=[server], kinds=["wrong_amount"])
    assert found == []
    assert summary["coverage"]["amounts"]["checked"] == 0


def test_class_on_the_wrong_provider_of_its_own_tree_is_reported(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    server, root = boot(world, HOST, resources__VGPU="1"), world.provider(HOST)
    held = holdings.of(world.cloud, server)
    # The root once had them. Placement lets no class go of which something is allocated.
    path = f"/resource_providers/{root}/inventories"
    more = placement.get(path)
    more["inventories"]["VGPU"] = {"total": 4}
    placement.change("PUT", path, more)
    mine = {cls: amount for amounts in held.allocations.values() for cls, amount in amounts.items()}
    holdings.put(world.cloud, server, {root: mine}, held)
    world.sql("placement", DELETE_INVENTORY, root)

    (entry,), _summary = find(ansible, kinds=["wrong_amount"], consumers=[server])
    assert (entry["kind"], entry["reason_id"]) == ("wrong_amount", "class_of_other_provider")
    assert (entry["consumer"], entry["change"]) == (server, None)
