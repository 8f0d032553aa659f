"""Hosts with devices: the driver, and what Nova's configuration says about them.

``minicloud_venv.nested`` has the driver and its devices.
"""

import json

from minicloud_ctl import releases
from minicloud_ctl.errors import MinicloudError

DRIVER = "minicloud_nested.NestedTree"
# The same without a disk of its own.
POOLED_DRIVER = "minicloud_nested.PooledDisk"
DRIVERS = (DRIVER, POOLED_DRIVER)

# What flavors may ask for with `pci_passthrough:alias`. The second leaves the resource class to
# Nova, which makes it of the two identifiers.
ALIASES = (
    {"name": "accelerator", "resource_class": "CUSTOM_ACCELERATOR", "traits": "CUSTOM_CRYPTO"},
    {"name": "function", "vendor_id": "8086", "product_id": "1520", "device_type": "type-VF"},
    {"name": "key-store", "resource_class": "CUSTOM_KEY_STORE"},
)
FUNCTION_CLASS = "CUSTOM_PCI_8086_1520"

# One accelerator lacks the trait that the alias requires.
CRYPTO = tuple(f"0000:81:0{number}.0" for number in range(6))
DEVICES = (
    *(
        {"address": address, "resource_class": "CUSTOM_ACCELERATOR", "traits": "CUSTOM_CRYPTO"}
        for address in CRYPTO
    ),
    {"address": "0000:82:00.0", "resource_class": "CUSTOM_ACCELERATOR"},
    {"address": "0000:83:00.0", "resource_class": "CUSTOM_KEY_STORE"},
    {"vendor_id": "8086", "product_id": "1520"},
)

# Nova's defaults, and the two that choose devices and pinned CPUs.
FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
)

# An operator's additions: a class of the operator's own on the host, and a trait on one of the two
# GPUs. Nova merges the file into what the driver reports.
PROVIDERS = """\
meta:
  schema_version: '1.0'
providers:
  - identification:
      uuid: $COMPUTE_NODE
    inventories:
      additional:
        - CUSTOM_LICENSE:
            total: 50
            reserved: 0
            min_unit: 1
            max_unit: 50
            step_size: 1
            allocation_ratio: 1.0
  - identification:
      name: {host}_pci_0000_84_00_0
    traits:
      additional:
        - CUSTOM_GPU_FAST
"""

Sections = dict[str, dict[str, object]]


def check(release: releases.Release) -> None:
    if not release.nested:
        raise MinicloudError(f"Release {release.name} has no hosts with devices.")


def of_nova() -> Sections:
    """Return what ``nova.conf`` of all services says."""
    return {
        "filter_scheduler": {"pci_in_placement": "true", "enabled_filters": ",".join(FILTERS)},
        "pci": {"alias": [json.dumps(alias) for alias in ALIASES]},
    }


def of_host(folder: object) -> Sections:
    """Return what the configuration of a host says.

    folder: of its ``provider.yaml``.
    """
    return {
        "pci": {
            "device_spec": [json.dumps(device) for device in DEVICES],
            "report_in_placement": "true",
        },
        "compute": {"provider_config_location": folder},
    }
