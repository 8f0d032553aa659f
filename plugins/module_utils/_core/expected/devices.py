# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices that a flavor requests: PCI devices and accelerators. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..models.resource_request import AcceleratorRequest, PciAlias
from .groups import Group, RefusedByNovaError
from .specs import parse_group_spec

# A flavor cannot have more devices than that.
_MOST_DEVICES = 1_000


def parse_pci_request(value: str) -> list[tuple[str, int]]:
    """Return the name of each alias and how many devices of it `pci_passthrough:alias` requests.

    Raises RefusedByNovaError for another form than `name:count,…`.
    """
    requests = []
    for part in value.split(","):
        name, colon, count = part.partition(":")
        try:
            number = int(count)
        except ValueError:
            colon = ""
        if not colon or number > _MOST_DEVICES:
            raise RefusedByNovaError("pci_passthrough:alias of the flavor is not valid")
        requests.append((name.strip(), number))
    return requests


def list_pci_groups(
    requests: Iterable[tuple[str, int]], aliases: Mapping[str, PciAlias]
) -> Iterator[tuple[str, Group]]:
    """Yield a group for each device of the known aliases, with its name.

    The source is nova/objects/request_spec.py, generate_request_groups_from_pci_requests.
    """
    for position, (name, count) in enumerate(requests):
        alias = aliases.get(name)
        if alias is None:
            continue
        for number in range(count):
            group = Group()
            group.add_resource(alias.resource_class, 1, f"PCI alias {name}")
            group.required |= alias.traits
            group.pci = True
            # In Nova the name begins with a random uuid.
            yield f"pci_{position}-{number}", group


def list_profile_groups(
    profile: str,
    groups: Iterable[Mapping[str, str]],
    port: str = "",
    accelerators: Iterable[AcceleratorRequest] = (),
) -> Iterator[tuple[str, Group]]:
    """Yield the groups of a Cyborg device profile, with their names.

    port: the uuid of the port that names the profile; empty for the flavor.

    The source is nova/accelerator/cyborg.py, get_device_request_groups.
    """
    for number, specs in enumerate(groups):
        group = Group()
        for key, value in specs.items():
            spec = parse_group_spec(key)
            if spec is None:
                continue
            if spec.kind == "resources":
                group.add_resource(spec.name, value, f"device profile {profile}")
            else:
                group.add_trait(spec.name, value)
        group.provider = _find_provider(profile, number, accelerators)
        yield f"device_profile_{number}{port}", group


def count_devices(groups: Iterable[Mapping[str, str]]) -> int:
    """Return the sum of all amounts of a device profile.

    Raises RefusedByNovaError for an amount that is not a number.
    """
    total = 0
    for specs in groups:
        for key, value in specs.items():
            spec = parse_group_spec(key)
            if spec is None or spec.kind != "resources":
                continue
            try:
                total += int(value)
            except ValueError:
                raise RefusedByNovaError("a device profile has an invalid amount") from None
    return total


def _find_provider(
    profile: str, number: int, accelerators: Iterable[AcceleratorRequest]
) -> str | None:
    """Return the provider that Cyborg names for a group, if it is one."""
    providers = set()
    for accelerator in accelerators:
        if accelerator.device_profile == profile and accelerator.group == number:
            providers.add(accelerator.provider)
    return providers.pop() if len(providers) == 1 else None
