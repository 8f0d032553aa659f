# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocations and providers as the modules take and return them.

Allocations from the module options to the whole allocation of a consumer that is to be written,
providers tree by tree, each with its details.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.errors import AllocationConflict, InvalidInput
from ..._common.text import normalize_uuid
from ..models.placement import Allocation, Provider, ProviderDetails, Resources


def describe_allocation(
    allocation: Allocation, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    """Return `allocation` as the modules return it, its providers sorted by uuid."""
    described = [
        {
            "uuid": uuid,
            # A provider that was deleted meanwhile is not listed.
            "name": providers[uuid].name if uuid in providers else None,
            "root": providers[uuid].root if uuid in providers else None,
            "resources": dict(amounts),
        }
        for uuid, amounts in sorted(allocation.resources.items())
    ]
    return {
        "consumer": allocation.consumer,
        "generation": allocation.generation,
        "type": allocation.type,
        "project": allocation.project,
        "user": allocation.user,
        "age": allocation.age_seconds,
        "providers": described,
    }


def set_resources(
    current: Allocation, params: Mapping[str, t.Any], providers: Mapping[str, Provider]
) -> Allocation:
    """Return `current` with exactly the resources of `params`.

    Raises InvalidInput if the options contradict each other, or name a provider that Placement does
    not have.
    """
    if not params["resources"]:
        raise InvalidInput(
            f"state=present for consumer {current.consumer} requires resources: set resources, "
            "or use state=absent to remove its allocations."
        )
    if params["resource_provider"] is not None or params["resource_classes"] is not None:
        raise InvalidInput(
            "resource_provider and resource_classes are only for state=absent: "
            "use resources with state=present."
        )
    changed = d.replace(
        current,
        project=params["project"] or current.project,
        user=params["user"] or current.user,
        type=params["consumer_type"] or current.type,
        resources=_parse_resources(current.consumer, params["resources"], providers),
    )
    # Only the record of a consumer that has allocations names a project and a user.
    if not changed.project or not changed.user:
        raise InvalidInput(
            f"Consumer {current.consumer} has no allocation yet: set project and user, which "
            "Placement requires for a new consumer."
        )
    return changed


def _parse_resources(
    consumer: str, resources: Mapping[str, t.Any], providers: Mapping[str, Provider]
) -> dict[str, Resources]:
    """Return the amounts of the option by the UUID of each provider, which the user may name."""
    uuids = {name: find_provider_uuid(name, providers) for name in resources}
    if len(set(uuids.values())) < len(uuids):
        raise InvalidInput(
            f"resources of consumer {consumer} names a provider twice, by its name and by its "
            "UUID: name it once."
        )
    missing = sorted(set(uuids.values()) - set(providers))
    if missing:
        # Placement would refuse it, but keep an empty record of a new consumer, which blocks every
        # later allocation.
        raise InvalidInput(
            f"Placement has no resource provider with the UUID {', '.join(missing)}: check "
            "resources and the region."
        )
    return {
        uuids[name]: parse_amounts(f"resources of {name}", amounts)
        for name, amounts in resources.items()
    }


def remove_resources(
    current: Allocation, params: Mapping[str, t.Any], providers: Mapping[str, Provider]
) -> Allocation:
    """Return `current` without the allocations that the options `params` name.

    The options name providers, resource classes, or both. Without either, nothing remains.
    """
    providers_named, classes = params["resource_provider"], params["resource_classes"]
    affected = set(current.resources)
    if providers_named is not None:
        affected = {find_provider_uuid(name, providers) for name in providers_named}
    remaining: dict[str, Resources] = {}
    for provider, amounts in current.resources.items():
        if provider not in affected:
            remaining[provider] = amounts
        elif classes is not None:
            kept = {cls: amount for cls, amount in amounts.items() if cls not in classes}
            # Placement refuses a provider without any amount.
            if kept:
                remaining[provider] = kept
    return d.replace(current, resources=remaining)


def check_generation(current: Allocation, generation: int | None) -> None:
    """Raise AllocationConflict unless the consumer has the `generation` that the user expects.

    None stands for any generation.
    """
    if generation is None or generation == current.generation:
        return
    now = "none, because it has no allocation"
    if current.generation is not None:
        now = str(current.generation)
    raise AllocationConflict(
        f"Consumer {current.consumer} has changed: generation {generation} was expected, but it "
        f"has {now}. Read the consumer again and check whether the change is still right."
    )


def find_provider_uuid(name: str, providers: Mapping[str, Provider]) -> str:
    """Return the UUID of the provider with that name or UUID.

    It does not check whether Placement has a provider with a UUID. Raises InvalidInput for a name
    that no provider has.
    """
    uuid = normalize_uuid(name)
    if uuid is not None:
        return uuid
    for provider in providers.values():
        if provider.name == name:
            return provider.uuid
    raise InvalidInput(f"Placement has no resource provider with the name {name!r}.")


def parse_amounts(what: str, resources: Mapping[str, t.Any]) -> Resources:
    """Return the amounts of a user's option by resource class, as whole numbers.

    what: the name of the option in the message of InvalidInput, which is raised for anything else.
    """
    try:
        # A template turns a number into text, which is accepted. Without str(), int() would also
        # accept 1.5 and cut it.
        amounts = {cls: int(str(amount)) for cls, amount in resources.items()}
    except (AttributeError, ValueError) as error:
        raise InvalidInput(
            f"{what} must be whole numbers by resource class, such as VCPU: 2."
        ) from error
    for cls, amount in amounts.items():
        if amount < 1:
            raise InvalidInput(
                f"{what} has {amount} {cls}: an amount must be 1 or more, so leave the class out."
            )
    return amounts


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
    return [
        {**d.asdict(provider), **_describe_details(details[provider.uuid], parts)}
        for provider in detailed
    ]


def find_unknown_names(names: Iterable[str], providers: Mapping[str, Provider]) -> list[str]:
    """Return those of the requested `names` and UUIDs that no provider has."""
    existing = {*providers, *(provider.name for provider in providers.values())}
    return [name for name in names if (normalize_uuid(name) or name) not in existing]


def _build_path(provider: Provider, providers: Mapping[str, Provider]) -> tuple[str, ...]:
    """Return the names from the root down to `provider`; no two providers have the same name."""
    path_of_parent: tuple[str, ...] = ()
    # A parent that is not listed ends the path, as a root does.
    if provider.parent and provider.parent in providers:
        path_of_parent = _build_path(providers[provider.parent], providers)
    return (*path_of_parent, provider.name)


def _describe_details(details: ProviderDetails, parts: Collection[str]) -> dict[str, t.Any]:
    described: dict[str, t.Any] = {
        "inventories": {
            cls: {**d.asdict(inventory), "capacity": inventory.capacity}
            for cls, inventory in sorted(details.inventories.items())
        },
        "usages": dict(sorted(details.usages.items())),
        "traits": sorted(details.traits),
        "aggregates": sorted(details.aggregates),
    }
    shown = {part: value for part, value in described.items() if part in parts}
    # The free amounts follow from inventories and usages together.
    if "inventories" in parts and "usages" in parts:
        shown["free"] = dict(sorted(details.free.items()))
    return shown
