# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only code that writes to resource providers.

Everything that it reports as done it has read back.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import operator
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..._common.clock import read_back
from ..._common.errors import CloudError, ProviderConflict, Reason
from ..models.nova import Hypervisor
from ..models.placement import Provider, ProviderState
from .api import Api
from .placement import PlacementReader
from .provider_state import ProviderStateReader

_PROVIDER_MICROVERSION = "1.20"
_GENERATION = "resource_provider_generation"

# A nova-compute that has just started changes its providers several times; in seconds, the pause
# between two attempts.
_ATTEMPTS = 4
_PAUSE = 0.5


class ProviderWriter:
    """Deletes trees of resource providers, and adds traits and aggregates to providers.

    It also sets allocation ratios.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = PlacementReader(api)
        self._states = ProviderStateReader(api)

    def delete_tree(self, tree: Sequence[Provider]) -> tuple[list[Provider], Reason | None]:
        """Delete the providers of a whole tree in their order, the root last.

        Return those that are gone, and why the others are not. Raises CloudError when the tree
        cannot be read back.

        Placement itself refuses to delete a provider on which a consumer has an allocation.
        """
        root = tree[-1]
        refusal = None
        for provider in tree:
            refusal = self._delete(provider.uuid, provider.name)
            if refusal:
                break
        try:
            left = read_back(
                lambda: self._reader.list_providers_in_trees([root.uuid]),
                operator.not_,
                refusal is None,
            )
        except CloudError as error:
            unknown = (
                f"It is unknown what is left of {root.name}, because it could not be read back: "
                f"{error}"
            )
            raise CloudError(f"{refusal or ''} {unknown}".strip()) from error
        gone = [provider for provider in tree if provider.uuid not in left]
        if not left:
            return gone, None
        return gone, refusal or Reason(
            "deletion_not_shown",
            f"Placement accepted the deletion of {root.name}, but still lists it.",
        )

    def add_traits_and_aggregates(
        self, provider: Provider, traits: Collection[str], aggregates: Collection[str]
    ) -> tuple[set[str], CloudError | None]:
        """Add `traits` and `aggregates` to those that `provider` has, and read it back.

        Return what it still lacks, and why. Raises CloudError when the provider cannot be read.

        Placement accepts only whole lists. Each is sent with the generation at which it was read.
        If another client has added something meanwhile, Placement answers 409, and the provider is
        read again, so nothing is lost.
        """
        refusal: CloudError | None = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE)
            state = self._read_state(provider)
            if not _find_missing(state, traits, aggregates):
                break
            try:
                self._put(provider, state, traits, aggregates)
            except ProviderConflict as error:
                refusal = error
                continue
            except CloudError as error:
                refusal = error
            break
        missing = read_back(
            lambda: _find_missing(self._read_state(provider), traits, aggregates),
            operator.not_,
            refusal is None,
        )
        return missing, refusal

    def set_allocation_ratio(self, provider: Provider, resource_class: str, ratio: float) -> None:
        """Set the allocation ratio of one resource class of `provider`, and read it back.

        The rest of its inventory stays as it is. Raises CloudError if it was not set.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE)
            state = self._read_state(provider)
            inventory = state.inventories.get(resource_class)
            if inventory is None:
                raise CloudError(f"Provider {provider.name} no longer has {resource_class}.")
            if inventory.allocation_ratio == ratio:
                return
            body = {**d.asdict(inventory), "allocation_ratio": ratio, _GENERATION: state.generation}
            path = f"/resource_providers/{provider.uuid}/inventories/{resource_class}"
            reply = self._api.write("PUT", path, _PROVIDER_MICROVERSION, body)
            # 409: another client has changed the provider since it was read.
            what = f"to change the inventory of provider {provider.name}"
            self._api.expect(reply, what, 200, 409)
        raise CloudError(
            f"The allocation ratio of {resource_class} is still not {ratio}: another client "
            "changes the provider all the time."
        )

    def _read_state(self, provider: Provider) -> ProviderState:
        state = self._states.read(provider.uuid)
        if state is None:
            raise CloudError(f"Provider {provider.name} ({provider.uuid}) no longer exists.")
        return state

    def _put(
        self,
        provider: Provider,
        state: ProviderState,
        traits: Collection[str],
        aggregates: Collection[str],
    ) -> None:
        generation = state.generation
        missing_traits = set(traits) - state.traits
        if missing_traits:
            for trait in sorted(missing_traits):
                self._ensure_trait(trait)
            names = state.traits | missing_traits
            # The first write increases the generation, which the second write has to contain.
            generation = self._put_part(provider, generation, "traits", names)
        missing_aggregates = set(aggregates) - state.aggregates
        if missing_aggregates:
            names = state.aggregates | missing_aggregates
            self._put_part(provider, generation, "aggregates", names)

    def _ensure_trait(self, trait: str) -> None:
        """Create a custom trait if Placement no longer has it.

        Custom traits that no provider has can be deleted.
        """
        if trait.startswith("CUSTOM_"):
            reply = self._api.write("PUT", f"/traits/{trait}", _PROVIDER_MICROVERSION)
            self._api.expect(reply, f"to create trait {trait}", 201, 204)

    def _put_part(
        self, provider: Provider, generation: int | None, part: str, names: Iterable[str]
    ) -> int:
        body = {_GENERATION: generation, part: sorted(names)}
        path = f"/resource_providers/{provider.uuid}/{part}"
        reply = self._api.write("PUT", path, _PROVIDER_MICROVERSION, body)
        what = f"to change the {part} of provider {provider.name}"
        if reply.status == 409:
            raise ProviderConflict(f"Placement refused {what}: {reply.detail}")
        self._api.expect(reply, what)
        return self._api.parse(lambda reply: int(reply.body[_GENERATION]), reply, path)

    @contextlib.contextmanager
    def create_placeholders(self, nodes: Iterable[Hypervisor]) -> Iterator[None]:
        """Create an empty provider for compute `nodes` without one, while their service is deleted.

        Nova answers 500 to the deletion of a service with such a node, as a conflict of names
        leaves it (nova/scheduler/client/report.py, delete_resource_provider). Nova deletes the
        placeholder with the service.
        """
        made = []
        try:
            for node in nodes:
                body = {"uuid": node.uuid, "name": node.uuid}
                reply = self._api.write("POST", "/resource_providers", _PROVIDER_MICROVERSION, body)
                self._api.expect(reply, f"to create an empty provider for {node.name}")
                made.append(node)
            yield
        finally:
            # If Nova did not delete the service, the placeholders still exist.
            for node in made:
                self._delete(node.uuid, node.name)

    def _delete(self, uuid: str, name: str) -> Reason | None:
        try:
            reply = self._api.write("DELETE", f"/resource_providers/{uuid}", _PROVIDER_MICROVERSION)
            self._api.expect(reply, f"to delete provider {name}", 204, 404)
        except CloudError as error:
            return error.reason
        return None


def _find_missing(
    state: ProviderState, traits: Iterable[str], aggregates: Iterable[str]
) -> set[str]:
    return (set(traits) - state.traits) | (set(aggregates) - state.aggregates)
