"""Short ways to write the inputs of a resource request, and hosts with their providers."""

import typing as t
from collections.abc import Iterable, Mapping

import pytest

from .....plugins.module_utils._core.models.other_services import (
    HostTree,
    PortGroup,
    ServerInputs,
    ServerPort,
    TreeProvider,
)
from .....plugins.module_utils._core.models.placement import Inventory

ROOT = "root"
PCI = "COMPUTE_MANAGED_PCI_DEVICE"
PLAIN_AMOUNTS = {"VCPU": 4, "MEMORY_MB": 1024, "DISK_GB": 20}


def name_cases(table: Mapping[str, tuple[t.Any, ...]]) -> list[t.Any]:
    """Return the rows of a table by the name of the case, for `parametrize`."""
    return [pytest.param(*row, id=name) for name, row in table.items()]


def make_inputs(specs: Mapping[str, str] | None = None, **changes: t.Any) -> ServerInputs:
    """Return a server with 4 VCPUs, 1024 MiB and 20 GiB, with these extra specs."""
    given: dict[str, t.Any] = {
        "vcpus": 4,
        "ram": 1024,
        "disk": 20,
        "ephemeral": 0,
        "swap": 0,
        "extra_specs": specs or {},
        "volume_backed": False,
        "image_properties": {},
        "ports": (),
        "accelerators": (),
        **changes,
    }
    return ServerInputs(**given)


def make_port(uuid: str, *amounts: Mapping[str, int], **changes: t.Any) -> ServerPort:
    """Return a port with a group of each of the amounts, named `{uuid}-{number}`."""
    groups = tuple(
        PortGroup(f"{uuid}-{number}", resources) for number, resources in enumerate(amounts)
    )
    return ServerPort(**{"uuid": uuid, "vnic_type": "normal", "groups": groups, **changes})


def make_inventory(total: int, **changes: t.Any) -> Inventory:
    given: dict[str, t.Any] = {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": 1.0,
        **changes,
    }
    return Inventory(**given)


def make_provider(
    name: str,
    amounts: Mapping[str, int],
    traits: Iterable[str] = (),
    parent: str | None = ROOT,
    sharing: bool = False,
) -> TreeProvider:
    """Return a provider of these total amounts whose uuid is its name."""
    inventories = {cls: make_inventory(total) for cls, total in amounts.items()}
    return TreeProvider(name, name, parent, sharing, inventories, frozenset(traits))


def make_tree(*children: TreeProvider, root: Mapping[str, int] | None = None) -> HostTree:
    """Return a host with 16 VCPU, 65536 MiB and 500 GiB, or with `root`, and these providers."""
    amounts = {"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 500} if root is None else root
    providers = [make_provider(ROOT, amounts, parent=None), *children]
    return HostTree(ROOT, {provider.uuid: provider for provider in providers})


def make_pool(name: str, amounts: Mapping[str, int]) -> TreeProvider:
    """Return a provider that shares its inventory with the host."""
    return make_provider(name, amounts, parent=None, sharing=True)
