# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resource providers as the modules return them: tree by tree, each with its details."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.uuids import normalize_uuid
from ..models.placement import Inventory, Provider, ProviderDetails


def describe_providers(
    providers: Mapping[str, Provider],
    details: Mapping[str, ProviderDetails],
    parts: Collection[str],
) -> list[dict[str, t.Any]]:
    """Return the `providers` that have details, as the modules return them.

    Roots are sorted by name, and each provider comes before the providers below it. parts: which
    details to return: `inventories`, `usages`, `traits`, `aggregates`.
    """
    detailed = [provider for uuid, provider in providers.items() if uuid in details]
    detailed.sort(key=lambda provider: _build_path(provider, providers))
    described = []
    for provider in detailed:
        shown_details = _describe_details(details[provider.uuid], parts)
        described.append({**d.asdict(provider), **shown_details})
    return described


def find_unknown_names(names: Iterable[str], providers: Mapping[str, Provider]) -> list[str]:
    """Return those of the requested `names` and UUIDs that no provider has."""
    existing = set(providers)
    for provider in providers.values():
        existing.add(provider.name)
    return [name for name in names if (normalize_uuid(name) or name) not in existing]


def _build_path(provider: Provider, providers: Mapping[str, Provider]) -> tuple[str, ...]:
    """Return the names from the root down to `provider`; no two providers have the same name."""
    path_of_parent: tuple[str, ...] = ()
    # A parent that is not listed ends the path, as a root does.
    if provider.parent and provider.parent in providers:
        path_of_parent = _build_path(providers[provider.parent], providers)
    return (*path_of_parent, provider.name)


def _describe_details(details: ProviderDetails, parts: Collection[str]) -> dict[str, t.Any]:
    inventories = {
        cls: _describe_inventory(inventory)
        for cls, inventory in sorted(details.inventories.items())
    }
    described: dict[str, t.Any] = {
        "inventories": inventories,
        "usages": dict(sorted(details.usages.items())),
        "traits": sorted(details.traits),
        "aggregates": sorted(details.aggregates),
    }
    shown: dict[str, t.Any] = {}
    for part, value in described.items():
        if part in parts:
            shown[part] = value
    # The free amounts follow from inventories and usages together.
    if "inventories" in parts and "usages" in parts:
        shown["free"] = dict(sorted(details.free.items()))
    return shown


def _describe_inventory(inventory: Inventory) -> dict[str, t.Any]:
    return {**d.asdict(inventory), "capacity": inventory.capacity}
