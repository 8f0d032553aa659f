# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read all that one resource provider has, at one generation."""

from __future__ import annotations

import typing as t

from ..._common.errors import CloudError
from ..models.placement import ProviderState, parse_inventories

if t.TYPE_CHECKING:  # pragma: no cover
    from .api import Api

# From 1.19 on the answer about aggregates has the generation of the provider; 1.20 is the oldest
# that the collection asks for.
_PROVIDER_MICROVERSION = "1.20"
_GENERATION = "resource_provider_generation"
# A nova-compute that has just started writes several times in a second.
_ATTEMPTS = 5

_PARTS = (("inventories", parse_inventories), ("traits", frozenset), ("aggregates", frozenset))


class ProviderStateReader:
    """Reads providers whole."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def read(self, provider: str) -> ProviderState | None:
        """Return the state of `provider`, or None when it does not exist.

        Raises CloudError when it changes all the time.
        """
        for _attempt in range(_ATTEMPTS):
            read = [self._read_part(provider, *part) for part in _PARTS]
            found = [part for part in read if part is not None]
            if len(found) < len(read):
                return None
            inventories, traits, aggregates = (value for value, _generation in found)
            generations = {generation for _value, generation in found}
            if len(generations) == 1:
                return ProviderState(inventories, traits, aggregates, generations.pop())
        raise CloudError(
            f"Provider {provider} changed {_ATTEMPTS} times while it was read: run again."
        )

    def _read_part(
        self, provider: str, part: str, parse: t.Callable[[t.Any], t.Any]
    ) -> tuple[t.Any, int] | None:
        """Return a part of a provider, and the generation it was read at; None without it."""
        path = f"/resource_providers/{provider}/{part}"
        reply = self._api.get(path, _PROVIDER_MICROVERSION)
        self._api.expect(reply, f"for the {part} of provider {provider}", 200, 404)
        if reply.status == 404:
            return None
        return self._api.parse(
            lambda reply: (parse(reply.body[part]), int(reply.body[_GENERATION])), reply, path
        )
