# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Allocations as the allocation modules take and return them: from a user's wish to the whole allocation to be written."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    AllocationConflict,
    InvalidInput,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
        Provider,
        Resources,
    )


def describe_allocation(
    allocation: Allocation, providers: Mapping[str, Provider]
) -> dict[str, t.Any]:
    """Return `allocation` as the modules return it."""
    return {
        "consumer": allocation.consumer,
        "generation": allocation.generation,
        "type": allocation.type,
        "project": allocation.project,
        "user": allocation.user,
        "age": allocation.age_seconds,
        "providers": [
            {
                "uuid": uuid,
                "name": providers[uuid].name if uuid in providers else None,
                "root": providers[uuid].root if uuid in providers else None,
                "resources": dict(share),
            }
            for uuid, share in sorted(allocation.resources.items())
        ],
    }


def set_resources(
    current: Allocation, params: Mapping[str, t.Any], providers: Mapping[str, Provider]
) -> Allocation:
    """Return `current` with the wished resources, and nothing else, in it."""
    if not params["resources"]:
        raise InvalidInput(
            f"state=present of {current.consumer} needs resources; use state=absent to remove what it holds."
        )
    if params["resource_provider"] is not None or params["resource_classes"] is not None:
        raise InvalidInput(
            "resource_provider and resource_classes say what goes with state=absent; state=present takes resources."
        )
    shares = {name: find_provider_uuid(name, providers) for name in params["resources"]}
    if len(set(shares.values())) < len(shares):
        raise InvalidInput(
            f"resources of {current.consumer} names a provider twice, by its name and by its UUID."
        )
    if unknown := sorted(set(shares.values()) - set(providers)):
        # Placement would refuse it and keep an empty record of a new consumer, in the way of every later claim.
        raise InvalidInput(
            f"Placement has no resource provider with the UUID {', '.join(unknown)}."
        )
    wanted = d.replace(
        current,
        project=params["project"] or current.project,
        user=params["user"] or current.user,
        type=params["consumer_type"] or current.type,
        resources={
            shares[name]: parse_amounts(f"resources of {name}", share)
            for name, share in params["resources"].items()
        },
    )
    if not wanted.project or not wanted.user:
        raise InvalidInput(
            f"Consumer {current.consumer} holds nothing yet: give project and user, which Placement asks for a new one."
        )
    return wanted


def remove_resources(
    current: Allocation, params: Mapping[str, t.Any], providers: Mapping[str, Provider]
) -> Allocation:
    """Return `current` without the shares that the wish names: all of them, or those of some providers, some classes, or both."""
    where, what = params["resource_provider"], params["resource_classes"]
    named = (
        set(current.resources)
        if where is None
        else {find_provider_uuid(name, providers) for name in where}
    )
    left = {}
    for provider, share in current.resources.items():
        if provider not in named:
            left[provider] = share
        elif what is not None and (
            kept := {cls: amount for cls, amount in share.items() if cls not in what}
        ):
            left[provider] = kept
    return d.replace(current, resources=left)


def check_generation(current: Allocation, generation: int | None) -> None:
    """Raise AllocationConflict when the caller expects another generation than the consumer has."""
    if generation is not None and generation != current.generation:
        now = "none, for it holds nothing" if current.generation is None else current.generation
        raise AllocationConflict(
            f"Consumer {current.consumer} was expected at generation {generation} and has {now}: it changed. Read it again, then decide anew."
        )


def find_provider_uuid(name: str, providers: Mapping[str, Provider]) -> str:
    """Return the uuid of the provider with that name or uuid; a uuid need not be one that Placement has."""
    uuid = normalize_uuid(name)
    if uuid is not None:
        return uuid
    for provider in providers.values():
        if provider.name == name:
            return provider.uuid
    raise InvalidInput(f"Placement has no resource provider named {name!r}.")


def parse_amounts(what: str, resources: Mapping[str, t.Any]) -> Resources:
    """Return amounts by resource class as a user gave them. Raises InvalidInput, naming `what`, when they are none."""
    try:
        # A template makes text of a number; everything else that int() would take is a mistake.
        return {cls: int(str(amount)) for cls, amount in resources.items()}
    except (AttributeError, ValueError) as error:
        raise InvalidInput(
            f"{what} must be whole amounts by resource class, such as VCPU: 2."
        ) from error
