"""Boots servers of the shapes of `shapes.py` on hosts with devices."""

import typing as t
import uuid
from collections.abc import Iterable

from minicloud_ctl import cinder, configs, cyborg, lifecycle, nested, neutron, servers

from .shapes import NESTED, POOLED, Shape
from .support import Placement
from .world import World

# Since then a server can be requested on a host in such a way that all filters still run.
BOOT_VERSION = "2.74"
POOL = "shared-disks"
POOLED_TRAIT = "CUSTOM_POOLED"


def start_hosts(world: World, placement: Placement) -> None:
    """Start a host with devices, and one of which the disks are in a pool.

    Nova itself corrects what servers have of PCI devices whenever a host reports. Here it reports
    only when it starts and when it does something.
    """
    local = configs.nova_folder(world.paths, "first") / "local.conf"
    configs.ini(local, {"DEFAULT": {"update_resources_interval": -1}})
    lifecycle.start_computes(world.paths, [NESTED], driver=nested.DRIVER)
    lifecycle.start_computes(world.paths, [POOLED], driver=nested.POOLED_DRIVER)
    aggregate = str(uuid.uuid4())
    traits = ["MISC_SHARES_VIA_AGGREGATE"]
    placement.create_provider(
        POOL, {"DISK_GB": {"total": 1000}}, traits=traits, aggregate=aggregate
    )
    path = f"/resource_providers/{world.provider(POOLED)}"
    generation = placement.get(path)["generation"]
    body = {"resource_provider_generation": generation, "aggregates": [aggregate]}
    placement.change("PUT", f"{path}/aggregates", body)
    world.give_trait(POOLED_TRAIT, [POOLED])


def boot_all(world: World, shapes: Iterable[Shape]) -> dict[str, str]:
    """Boot a server of each shape, and return their uuids by the name of the shape."""
    booted = {shape.name: _request(world, shape) for shape in shapes}
    for server in booted.values():
        servers.settle(world.cloud, server, None)
    return booted


def _request(world: World, shape: Shape) -> str:
    document: dict[str, t.Any] = {
        "name": shape.name,
        "flavorRef": _create_flavor(world, shape),
        "networks": _create_ports(world, shape) or "none",
    }
    # A request for a host is one for its tree alone, without the pool.
    if shape.host != POOLED:
        document["host"] = shape.host
    if shape.volume is None:
        document["imageRef"] = _create_image(world, shape)
    else:
        disk = {"boot_index": 0, "source_type": "volume", "destination_type": "volume"}
        volume = cinder.create_volume(world.cloud, shape.volume)
        document["block_device_mapping_v2"] = [{**disk, "uuid": volume}]
    created = world.cloud.nova("POST", "/servers", {"server": document}, BOOT_VERSION)
    return created["server"]["id"]


def _create_flavor(world: World, shape: Shape) -> str:
    flavor = {
        "name": shape.name,
        "vcpus": shape.vcpus,
        "ram": shape.ram,
        "disk": shape.disk,
        "swap": shape.swap,
        "OS-FLV-EXT-DATA:ephemeral": shape.ephemeral,
    }
    reference = world.cloud.nova("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
    extra_specs = dict(shape.extra_specs)
    if shape.host == POOLED:
        extra_specs[f"trait:{POOLED_TRAIT}"] = "required"
    if shape.profile:
        profile = shape.name.replace(" ", "-")
        cyborg.create_profile(world.cloud, profile, shape.profile)
        extra_specs["accel:device_profile"] = profile
    if extra_specs:
        path = f"/flavors/{reference}/os-extra_specs"
        world.cloud.nova("POST", path, {"extra_specs": extra_specs})
    return reference


def _create_image(world: World, shape: Shape) -> str:
    if not shape.image:
        image = world.cloud.image()
        assert image is not None
        return image
    document = {"name": shape.name, "disk_format": "raw", "container_format": "bare", **shape.image}
    must = world.cloud.session.must
    image = must("glance", "POST", "/v2/images", document)["id"]
    must("glance", "PUT", f"/v2/images/{image}/file", b"minicloud\n" * 64)
    return image


def _create_ports(world: World, shape: Shape) -> list[dict[str, str]]:
    ports = []
    for kilobits in shape.bandwidth:
        policy = neutron.create_policy(world.cloud, kilobits)
        if shape.packets:
            neutron.add_packet_rate(world.cloud, policy, shape.packets)
        ports.append({"port": neutron.create_port(world.cloud, policy)})
    return ports
