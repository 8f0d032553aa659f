# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Resource providers as the modules return them: tree by tree, each with what it has."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Inventory,
        Provider,
        ProviderDetails,
    )


def describe_providers(
    providers: Mapping[str, Provider],
    details: Mapping[str, ProviderDetails],
    parts: Collection[str],
) -> list[dict[str, t.Any]]:
    """Return the `providers` that have details, with these `parts` of them; roots by name, each before the providers below it."""
    known = sorted(
        (provider for uuid, provider in providers.items() if uuid in details),
        key=lambda provider: _build_path(provider, providers),
    )
    return [
        {**d.asdict(provider), **_describe_details(details[provider.uuid], parts)}
        for provider in known
    ]


def find_unknown_names(wanted: Iterable[str], providers: Mapping[str, Provider]) -> list[str]:
    """Return those of the `wanted` names and uuids that none of the `providers` has."""
    known = {*providers, *(provider.name for provider in providers.values())}
    return [name for name in wanted if (normalize_uuid(name) or name) not in known]


def _build_path(provider: Provider, providers: Mapping[str, Provider]) -> tuple[str, ...]:
    """Return the names from the root down to `provider`; no two providers have the same name."""
    parent = providers.get(provider.parent) if provider.parent else None
    return (*(_build_path(parent, providers) if parent else ()), provider.name)


def _describe_details(details: ProviderDetails, parts: Collection[str]) -> dict[str, t.Any]:
    described: dict[str, t.Any] = {
        "inventories": {
            cls: _describe_inventory(inventory)
            for cls, inventory in sorted(details.inventories.items())
        },
        "usages": dict(sorted(details.usages.items())),
        "traits": sorted(details.traits),
        "aggregates": sorted(details.aggregates),
    }
    shown = {part: value for part, value in described.items() if part in parts}
    return (
        {**shown, "free": dict(sorted(details.free.items()))}
        if {"inventories", "usages"} <= {*parts}
        else shown
    )


def _describe_inventory(inventory: Inventory) -> dict[str, t.Any]:
    return {**d.asdict(inventory), "capacity": inventory.capacity}
