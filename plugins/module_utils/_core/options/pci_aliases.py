# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The aliases of PCI devices, as nova.conf has them: no API shows them.

How Nova reads `[pci]alias`: nova/pci/request.py, _get_alias_from_config. Which resource class and
traits it requests for one: nova/compute/pci_placement_translator.py, get_resource_class and
get_traits.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping

from ..._common.errors import InvalidInput
from ..._common.text import make_printable
from ..models.other_services import PciAlias
from ..models.placement import STANDARD_CLASSES

_KEYS = (
    "name",
    "vendor_id",
    "product_id",
    "resource_class",
    "traits",
    "device_type",
    "numa_policy",
    "live_migratable",
)
_ID = re.compile(r"[0-9a-fA-F]{4}")
_DEVICE_TYPES = ("type-PCI", "type-PF", "type-VF")
_NUMA_POLICIES = ("required", "legacy", "preferred", "socket")

# All traits that are not custom begin with one of these (os_traits). Of another trait that begins
# so, no provider has the name that it gets here, and so nothing is certain.
_STANDARD_TRAITS = ("COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_")

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


def parse_pci_aliases(entries: Iterable[t.Any]) -> dict[str, PciAlias]:
    """Return the aliases by name.

    Raises InvalidInput for anything that Nova would not accept where PCI devices are in Placement.
    """
    aliases: dict[str, PciAlias] = {}
    for entry in entries:
        alias = _parse_alias(entry)
        # Nova takes several entries of a name for alternatives, and refuses them for Placement.
        if alias.name in aliases:
            raise InvalidInput(
                f"pci_aliases: {_show(alias.name)} is there twice, and Nova accepts only one entry "
                "for each name where PCI devices are in Placement."
            )
        aliases[alias.name] = alias
    return aliases


def _parse_alias(entry: t.Any) -> PciAlias:
    if not isinstance(entry, dict):
        raise InvalidInput("pci_aliases: each entry is a dictionary as in [pci]alias of nova.conf.")
    # Ansible makes a number of an id such as 1572.
    fields = {str(key): str(value) for key, value in entry.items()}
    unknown = sorted(set(fields) - set(_KEYS))
    if unknown:
        raise InvalidInput(
            f"pci_aliases: {_show(unknown[0])} is not a key of [pci]alias. Known keys are "
            f"{', '.join(_KEYS)}."
        )
    name = fields.get("name", "").strip()
    if not name or len(name) > 256:
        raise InvalidInput("pci_aliases: each entry needs a name of at most 256 characters.")
    _check_values(name, fields)
    return PciAlias(name, _choose_class(name, fields), _parse_traits(fields.get("traits", "")))


def _check_values(name: str, fields: Mapping[str, str]) -> None:
    for key in ("vendor_id", "product_id"):
        if key in fields and not _ID.fullmatch(fields[key]):
            raise InvalidInput(
                f"pci_aliases: {key} of {_show(name)} is not four hexadecimal digits. Put them in "
                "quotes."
            )
    for key, choices in (("device_type", _DEVICE_TYPES), ("numa_policy", _NUMA_POLICIES)):
        if key in fields and fields[key] not in choices:
            raise InvalidInput(
                f"pci_aliases: {key} of {_show(name)} is none of {', '.join(choices)}."
            )


def _choose_class(name: str, fields: Mapping[str, str]) -> str:
    requested = fields.get("resource_class", "").upper()
    if requested in STANDARD_CLASSES or _CUSTOM.fullmatch(requested):
        return requested
    if requested:
        return _name_custom(requested)
    if "vendor_id" in fields and "product_id" in fields:
        return f"CUSTOM_PCI_{fields['vendor_id']}_{fields['product_id']}".upper()
    raise InvalidInput(
        f"pci_aliases: {_show(name)} has neither a resource_class nor both vendor_id and "
        "product_id, one of which Nova needs where PCI devices are in Placement."
    )


def _parse_traits(text: str) -> frozenset[str]:
    def is_known(trait: str) -> bool:
        return trait.startswith(_STANDARD_TRAITS) or bool(_CUSTOM.fullmatch(trait))

    named = filter(None, text.upper().split(","))
    return frozenset(name if is_known(name) else _name_custom(name) for name in named)


def _name_custom(name: str) -> str:
    return f"CUSTOM_{re.sub('[^0-9A-Z]+', '_', name)}"


def _show(text: str) -> str:
    return repr(make_printable(text, 100))
