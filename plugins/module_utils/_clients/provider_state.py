# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What one resource provider has, all of it read at the same generation; as a journal keeps it, and back."""

from __future__ import annotations

import dataclasses as d
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.placement import Inventory

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api

# From 1.19 on the answer about aggregates has the generation of the provider; 1.20 is the oldest that the collection asks for.
_PROVIDER_MICROVERSION = "1.20"
_PARTS = ("inventories", "traits", "aggregates")
_GENERATION = "resource_provider_generation"
# A nova-compute that has just started writes several times in a second.
_ATTEMPTS = 5

_TRAIT = re.compile("[A-Z0-9_]{1,255}")


@d.dataclass(frozen=True)
class ProviderState:
    """The inventories, traits and aggregates of a provider at one generation, which journals of version 1.0 do not have here."""

    inventories: t.Mapping[str, Inventory] = d.field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    generation: int | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "generation": self.generation,
            "inventories": {
                cls: d.asdict(inventory) for cls, inventory in sorted(self.inventories.items())
            },
            "traits": sorted(self.traits),
            "aggregates": sorted(self.aggregates),
        }


class ProviderStateReader:
    """Reads providers whole."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def read(self, provider: str) -> ProviderState | None:
        """Return the state of `provider`, or None when it does not exist. Raises CloudError when it changes all the time."""
        for _attempt in range(_ATTEMPTS):
            bodies = [self._read_part(provider, part) for part in _PARTS]
            if None in bodies:
                return None
            generations = {body[_GENERATION] for body in bodies if body}
            if len(generations) == 1:
                inventories, traits, aggregates = (
                    body[part] for part, body in zip(_PARTS, bodies, strict=True) if body
                )
                return ProviderState(inventories, traits, aggregates, generations.pop())
        raise CloudError(
            f"Provider {provider} changed {_ATTEMPTS} times while it was read: run again."
        )

    def _read_part(self, provider: str, part: str) -> dict[str, t.Any] | None:
        path = f"/resource_providers/{provider}/{part}"
        reply = self._api.expect(
            self._api.get(path, _PROVIDER_MICROVERSION),
            f"for the {part} of provider {provider}",
            200,
            404,
        )
        if reply.status == 404:
            return None
        return self._api.parse(
            lambda reply: {
                part: _PARSERS[part](reply.body[part]),
                _GENERATION: int(reply.body[_GENERATION]),
            },
            reply,
            path,
        )


def parse_provider_state(entry: Mapping[str, t.Any]) -> ProviderState:
    """Return the state that `ProviderState.as_dict` wrote.

    Raises ValueError for names that cannot be right, or what Python raises (KeyError, TypeError, AttributeError) for another shape.
    """
    traits, aggregates = frozenset(entry["traits"]), frozenset(entry["aggregates"])
    for trait in traits:
        if not _TRAIT.fullmatch(trait):
            raise ValueError(f"{trait!r} is not the name of a trait")
    for aggregate in aggregates:
        if normalize_uuid(aggregate) != aggregate:
            raise ValueError(f"{aggregate!r} is not the UUID of an aggregate")
    generation = entry.get("generation")
    return ProviderState(
        _parse_inventories(entry["inventories"]),
        traits,
        aggregates,
        None if generation is None else int(generation),
    )


def _parse_inventories(entries: Mapping[str, Mapping[str, t.Any]]) -> dict[str, Inventory]:
    fields = [field.name for field in d.fields(Inventory)]
    return {
        cls: Inventory(**{field: known[field] for field in fields})
        for cls, known in entries.items()
    }


_PARSERS: dict[str, t.Callable[[t.Any], t.Any]] = {
    "inventories": _parse_inventories,
    "traits": frozenset,
    "aggregates": frozenset,
}
