"""Aliases of PCI devices are taken as Nova takes them, and nothing else is."""

import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.other_services import PciAlias
from .......plugins.module_utils._core.options.pci_aliases import parse_pci_aliases


@pytest.mark.parametrize(
    ("entry", "resource_class", "traits"),
    [
        ({"vendor_id": "10de", "product_id": "1db6"}, "CUSTOM_PCI_10DE_1DB6", set()),
        ({"vendor_id": 8086, "product_id": 1572}, "CUSTOM_PCI_8086_1572", set()),
        ({"resource_class": "CUSTOM_GPU"}, "CUSTOM_GPU", set()),
        ({"resource_class": "custom_gpu"}, "CUSTOM_GPU", set()),
        ({"resource_class": "big gpu-2"}, "CUSTOM_BIG_GPU_2", set()),
        ({"resource_class": "PGPU", "vendor_id": "10de"}, "PGPU", set()),
        (
            {"resource_class": "x", "traits": "HW_GPU_API_VULKAN,CUSTOM_A,fast one"},
            "CUSTOM_X",
            {"HW_GPU_API_VULKAN", "CUSTOM_A", "CUSTOM_FAST_ONE"},
        ),
        (
            {"resource_class": "X", "device_type": "type-VF", "numa_policy": "required"},
            "CUSTOM_X",
            set(),
        ),
    ],
)
def test_alias_has_the_class_and_traits_that_nova_requests(
    entry: dict[str, t.Any], resource_class: str, traits: set[str]
) -> None:
    assert parse_pci_aliases([{"name": " gpu ", **entry}]) == {
        "gpu": PciAlias("gpu", resource_class, frozenset(traits))
    }


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (["gpu"], "a dictionary"),
        ([{"resource_class": "X"}], "needs a name"),
        ([{"name": "x" * 257, "resource_class": "X"}], "at most 256"),
        ([{"name": "gpu"}], "neither a resource_class"),
        ([{"name": "gpu", "vendor_id": "10de"}], "neither a resource_class"),
        ([{"name": "gpu", "vendor_id": "10d", "product_id": "1db6"}], "four hexadecimal"),
        ([{"name": "gpu", "vendor_id": "10de\n", "product_id": "1db6"}], "four hexadecimal"),
        ([{"name": "gpu", "class": "X"}], "not a key of"),
        ([{"name": "gpu", "resource_class": "X", "device_type": "VF"}], "none of type-PCI"),
        ([{"name": "gpu", "resource_class": "X", "numa_policy": "no"}], "none of required"),
        ([{"name": "gpu", "resource_class": "X"}] * 2, "there twice"),
    ],
)
def test_alias_that_nova_would_refuse_is_refused(entries: t.Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_pci_aliases(entries)
