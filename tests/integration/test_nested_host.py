"""A host with dedicated CPUs and children, and what its servers have, compared with both sides."""

import json
import typing as t

import pytest
from minicloud_ctl import holdings, nested, servers

from .shaped_servers import BOOT_VERSION, boot_all
from .shapes import Shape, ask
from .support import Ansible, Placement
from .world import World

pytestmark = pytest.mark.long

HOST = "nested-own"
SHAPES = (
    Shape("pinned", host=HOST, extra_specs=ask(hw__cpu_policy="dedicated")),
    Shape("with a vGPU", host=HOST, extra_specs=ask(resources__VGPU="1")),
)
BLANK = {"boot_index": 0, "source_type": "blank", "destination_type": "local"}


def find(ansible: Ansible, **options: t.Any) -> tuple[list[t.Any], dict[str, t.Any]]:
    dest = ansible.folder / "findings.json"
    ansible.direct("orphan_detect", dest=str(dest), min_age="0", unknown_min_age="0", **options)
    found = json.loads(dest.read_text(encoding="utf-8"))
    return [*found["findings"], *found["undecided"]], found["summary"]


def test_both_sides_agree_on_cpus_and_on_devices(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    world.own_host(HOST, driver=nested.DRIVER)
    pinned, server = boot_all(world, SHAPES).values()
    world.forget(pinned, server)
    root, held = world.provider(HOST), holdings.of(world.cloud, server)

    # The hypervisor reports its shared CPUs, and what guests have of both.
    assert holdings.of(world.cloud, pinned).allocations[root]["PCPU"] == 2
    node = world.cloud.nova("GET", f"/os-hypervisors/{root}", version="2.87")["hypervisor"]
    assert (node["vcpus"], node["vcpus_used"]) == (64, 4)
    found, summary = find(ansible, hosts=[HOST], kinds=["capacity_mismatch"])
    assert (found, summary["overcommit"]["VCPU"]["highest"]) == ([], 0.03)

    # Once the root had the vGPUs. Placement lets no class go of which something is allocated.
    path = f"/resource_providers/{root}/inventories"
    more = placement.get(path)
    more["inventories"]["VGPU"] = {"total": 4}
    placement.change("PUT", path, more)
    holdings.put(world.cloud, server, {root: {**held.allocations[root], "VGPU": 1}}, held)
    row = "SELECT id FROM resource_providers WHERE uuid = ?"
    world.sql(
        *(
            "placement",
            f"DELETE FROM inventories WHERE resource_provider_id = ({row}) AND total = 4",
        ),
        root,
    )
    (entry,), _ = find(ansible, kinds=["wrong_amount"], consumers=[server])
    assert (entry["reason_id"], entry["change"]) == ("class_of_other_provider", None)


def test_blank_root_disk_of_the_host_stays(ansible: Ansible, world: World) -> None:
    """Nova shows neither an image nor a volume of it, and has the disk of its flavor allocated."""
    document = {"name": "blank", "flavorRef": world.cloud.flavor("m1.tiny"), "networks": "none"}
    document |= {"host": "compute-1", "block_device_mapping_v2": [BLANK]}
    server = world.cloud.nova("POST", "/servers", {"server": document}, BOOT_VERSION)["server"]
    world.forget(server["id"])
    servers.settle(world.cloud, server["id"], "compute-1")
    held = holdings.of(world.cloud, server["id"]).allocations[world.provider("compute-1")]

    assert held["DISK_GB"] == 1
    assert find(ansible, consumers=[server["id"]], kinds=["wrong_amount"])[0] == []
