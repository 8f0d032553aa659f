# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads Placement. Nothing here writes, and nothing here knows about orphans.

API reference: https://docs.openstack.org/api-ref/placement/
"""

from __future__ import annotations

import dataclasses as d
import itertools
import typing as t
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..._common.parallel import Pace, map_parallel
from ..._common.uuids import normalize_uuid
from ..models.placement import (
    Allocation,
    AllocationCandidates,
    Allocations,
    Inventory,
    Provider,
    ProviderDetails,
    Resources,
)
from ..models.resource_request import HostTree, TreeProvider
from ..models.snapshot import Answer
from .api import Api, Reply
from .placement_parsing import (
    parse_allocation,
    parse_candidates,
    parse_inventories,
    parse_providers,
    parse_resources,
    read_provider_entries,
)

# 1.20 gives providers their generation in every answer that lists them, after 1.14 (trees) and 1.18
# (required traits). The parts of one provider are the same at every version from 1.6 (traits) and
# 1.19 (aggregates) on.
_PROVIDER_MICROVERSION = "1.20"
# 1.31 lets candidates be asked of one tree, after 1.25 (groups), 1.27 (all classes) and 1.29
# (nested providers).
_CANDIDATES_MICROVERSION = (1, 31)
# 1.9 has the usages of a project; from 1.38 on they are divided by the type of the consumer.
_USAGES_MICROVERSION = "1.9"
# How many requests to send at once. Nova's own listing, which is read at the same time, takes
# longer, and more would only slow it down.
_FEW, _MANY = 2, 4
_SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"

# A host has a provider for each of its devices and NUMA cells.
MAX_TREE_PROVIDERS = 200

# The parts of a provider's details: each is a method of the reader, a field of ProviderDetails and
# a request of its own.
PARTS = ("inventories", "usages", "traits", "aggregates")

T = t.TypeVar("T")


class PlacementReader:
    """Reads Placement: each method sends one request, or one for each provider or consumer."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 1.28 on a consumer comes with its generation.
        self._listing = api.choose_microversion(1, 28)
        # 1.38 adds the consumer's type.
        self._allocation = api.choose_microversion(1, 38)
        self._pace = Pace(_FEW, _MANY, sample=2 * _MANY, default=_MANY)

    @property
    def workers(self) -> int:
        """How many requests to send at once, as far as Placement has shown what is best."""
        return self._pace.workers

    @property
    def retried(self) -> int:
        """How many requests were sent again because of a broken answer."""
        return self._api.retried

    def list_providers(self) -> dict[str, Provider]:
        """Return every provider by uuid.

        Those that share their inventory through an aggregate are marked as `sharing`.
        """
        sharing = self._list_sharing_uuids()
        return parse_providers(self._list_provider_entries(), sharing)

    def list_providers_in_trees(self, wanted: Iterable[str]) -> dict[str, Provider]:
        """Return by uuid the providers of every tree that has one of the `wanted` names or uuids.

        Names and uuids that Placement does not know add nothing.
        """
        sharing = self._list_sharing_uuids()
        trees = map_parallel(self._list_tree_entries, list(wanted), self.workers)
        return parse_providers(itertools.chain.from_iterable(trees), sharing)

    def get_details(
        self, providers: Iterable[str], parts: Sequence[str] = PARTS
    ) -> dict[str, ProviderDetails]:
        """Return the `parts` of `providers`, from one request for each, read concurrently.

        A provider that is deleted meanwhile is left out.
        """
        uuids = list(dict.fromkeys(providers))
        requests = list(itertools.product(uuids, parts))
        answers = map_parallel(self._read_part, requests, self.workers, stage="provider details")
        values = dict(zip(requests, answers, strict=True))
        details = {}
        for uuid in uuids:
            fields = {part: values[uuid, part] for part in parts}
            if None not in fields.values():
                details[uuid] = ProviderDetails(**fields)
        return details

    def inventories(self, provider: str) -> dict[str, Inventory] | None:
        """Return the inventories of `provider` by class, or None if it no longer exists."""
        return self._get_from_provider(provider, "inventories", parse_inventories)

    def query_host_tree(self, root: str) -> Answer[HostTree]:
        """Return the tree of a host as evidence, with the providers that share with it.

        A provider shares its inventory with every tree that has a provider in one of its aggregates
        (placement/objects/research_context.py, anchors_for_sharing_providers).

        The answer has no `value` for a tree that is gone, for another tree, for one that lost a
        provider while it was read, and for one of more than `MAX_TREE_PROVIDERS` providers, which
        would take too long.
        """
        path, query = "/resource_providers", {"in_tree": root}
        reply = self._api.get(path, _PROVIDER_MICROVERSION, **query)
        answer = self._api.build_answer(path, _PROVIDER_MICROVERSION, query, reply, None)
        if reply.status != 200:
            return answer
        entries = self._api.parse(read_provider_entries, reply, path)
        providers = parse_providers(entries, set())
        if root not in providers or len(entries) > MAX_TREE_PROVIDERS:
            return answer
        details: dict[str, ProviderDetails] = {}
        failed = self._add_tree_details(providers, details)
        if failed is not None:
            return failed
        aggregates: set[str] = set()
        for parts in details.values():
            aggregates |= parts.aggregates
        shared = {}
        for uuid, provider in self.list_sharing_providers(aggregates).items():
            if uuid not in providers:
                shared[uuid] = provider
        if len(shared) > MAX_TREE_PROVIDERS:
            return answer
        failed = self._add_tree_details(shared, details)
        if failed is not None:
            return failed
        tree = {}
        for uuid, provider in {**providers, **shared}.items():
            tree[uuid] = TreeProvider(
                uuid=uuid,
                name=provider.name,
                parent=provider.parent,
                sharing=_SHARING_TRAIT in details[uuid].traits,
                inventories=details[uuid].inventories,
                traits=details[uuid].traits,
            )
        return d.replace(answer, value=HostTree(root, tree))

    def _add_tree_details(
        self, providers: Iterable[str], details: dict[str, ProviderDetails]
    ) -> Answer[HostTree] | None:
        """Add what the providers have to `details`, and return the first answer that fails."""
        for uuid in providers:
            parts: dict[str, t.Any] = {}
            for part, parse in _TREE_PARTS.items():
                path = f"/resource_providers/{uuid}/{part}"
                reply, value = self._api.read(path, _PROVIDER_MICROVERSION, parse)
                if value is None:
                    return self._api.build_answer(path, _PROVIDER_MICROVERSION, {}, reply, None)
                parts[part] = value
            details[uuid] = ProviderDetails(**parts)
        return None

    def query_usages(self, provider: str) -> Answer[Resources]:
        """Return the usages of `provider` as evidence; any status is an answer."""
        return self._api.ask(
            f"/resource_providers/{provider}/usages",
            _PROVIDER_MICROVERSION,
            lambda reply: dict(reply.body["usages"]),
        )

    def query_tree_allocations(
        self, root: str, providers: Iterable[str]
    ) -> Answer[dict[str, Allocations]]:
        """Return the allocations on the `providers` of one tree as evidence, by consumer.

        The answer is that of the first request that fails, or else of the last one.
        """
        allocations: dict[str, dict[str, Resources]] = {}
        ordered = [*(provider for provider in sorted(providers) if provider != root), root]
        for provider in ordered:
            answer: Answer[t.Any] = self._api.ask(
                f"/resource_providers/{provider}/allocations",
                self._listing,
                lambda reply: parse_resources(reply.body["allocations"]),
            )
            if answer.value is None:
                return answer
            for consumer, amounts in answer.value.items():
                allocations.setdefault(consumer, {})[provider] = amounts
        return d.replace(answer, value=allocations)

    def usages(self, provider: str) -> dict[str, int] | None:
        """Return the usages of `provider` by resource class, or None if it no longer exists."""
        return self._get_from_provider(provider, "usages", dict)

    def traits(self, provider: str) -> frozenset[str] | None:
        """Return the traits of `provider`, or None if it no longer exists."""
        return self._get_from_provider(provider, "traits", frozenset)

    def aggregates(self, provider: str) -> frozenset[str] | None:
        """Return the UUIDs of the aggregates of `provider`, or None if it no longer exists."""
        return self._get_from_provider(provider, "aggregates", frozenset)

    def list_sharing_providers(self, aggregates: Iterable[str]) -> dict[str, Provider]:
        """Return the providers that share their inventory with all trees in one of `aggregates`."""
        uuids = ",".join(sorted(aggregates))
        if not uuids:
            return {}
        entries = self._list_provider_entries(required=_SHARING_TRAIT, member_of=f"in:{uuids}")
        return parse_providers(entries, {entry["uuid"] for entry in entries})

    def list_roots_with_trait(self, trait: str) -> set[str]:
        """Return the UUIDs of the roots of all providers with a trait."""
        entries = self._list_provider_entries(required=trait)
        return {entry["root_provider_uuid"] for entry in entries}

    def query_free_providers(self, resource_class: str) -> Answer[tuple[str, ...]]:
        """Return the UUIDs of the providers that can still take one unit of a resource class.

        A class that Placement does not know is a 400.
        """
        return self._api.ask(
            "/resource_providers",
            _PROVIDER_MICROVERSION,
            lambda reply: tuple(row["uuid"] for row in reply.body["resource_providers"]),
            resources=f"{resource_class}:1",
        )

    def list_allocation_candidates(self, query: Mapping[str, t.Any]) -> AllocationCandidates:
        """Return the allocation candidates that Placement offers for a query.

        Raises CloudError when Placement is too old to be asked about trees.
        """
        path = "/allocation_candidates"
        microversion = self._api.require_microversion(*_CANDIDATES_MICROVERSION)
        reply = self._api.get(path, microversion, **query)
        self._api.expect(reply, "for allocation candidates")
        return self._api.parse(lambda reply: parse_candidates(reply.body), reply, path)

    def list_allocations_on_providers(self, providers: Iterable[str]) -> dict[str, Allocations]:
        """Return the allocations of each consumer on `providers`.

        There is one listing for each provider, read concurrently. A provider that is deleted
        meanwhile has no allocations.
        """
        uuids = list(providers)
        listings = self._pace.map(
            self._list_allocations_on_provider, uuids, stage="allocations", unit="providers"
        )
        allocations: dict[str, dict[str, Resources]] = {}
        # Most servers of a cloud have one of a few flavors: equal amounts are kept once.
        kept: dict[tuple[tuple[str, int], ...], Resources] = {}
        for provider, listing in zip(uuids, listings, strict=True):
            for consumer, amounts in listing.items():
                amounts = kept.setdefault(tuple(amounts.items()), amounts)
                allocations.setdefault(consumer, {})[provider] = amounts
        return t.cast("dict[str, Allocations]", allocations)

    def count_consumers(self, others: Iterable[str]) -> int:
        """Return how many consumers there are that have an allocation, or are among `others`.

        It reads one listing for each provider.
        """
        return len({*self.list_allocations_on_providers(self.list_providers()), *others})

    def get_allocation(self, consumer: str) -> Answer[Allocation]:
        """Return the whole allocation of `consumer`; an empty one is an answer too."""
        path = f"/allocations/{urllib.parse.quote(consumer, safe='')}"
        reply = self._api.get(path, self._allocation)
        self._api.expect(reply, f"for the allocation of {consumer}")
        has_generation = self._api.newest >= (1, 28)
        now = self._api.tell_time(reply)
        allocation = self._api.parse(
            lambda reply: parse_allocation(consumer, reply, now, has_generation), reply, path
        )
        return self._api.build_answer(path, self._allocation, {}, reply, allocation)

    def get_allocations(self, consumers: Iterable[str]) -> list[Allocation]:
        """Return the allocations of `consumers` that are not empty, read concurrently."""
        answers = map_parallel(self.get_allocation, list(consumers), self.workers)
        return [answer.value for answer in answers if answer.value and answer.value.resources]

    def has_usages(self, project: str) -> bool:
        """Return whether anything is allocated for a project."""
        path = "/usages"
        reply = self._api.get(path, _USAGES_MICROVERSION, project_id=project)
        self._api.expect(reply, f"for the usages of project {project}")
        usages = self._api.parse(lambda reply: dict(reply.body["usages"]), reply, path)
        return any(usages.values())

    def _list_allocations_on_provider(self, provider: str) -> dict[str, Resources]:
        return (
            self._get_from_provider(provider, "allocations", parse_resources, self._listing) or {}
        )

    def _read_part(self, request: tuple[str, str]) -> t.Any:
        provider, part = request
        return getattr(self, part)(provider)

    def _get_from_provider(
        self,
        provider: str,
        part: str,
        read: Callable[[t.Any], T],
        microversion: str = _PROVIDER_MICROVERSION,
    ) -> T | None:
        """Return what `read` makes of a part of `provider`, or None when the provider is gone."""
        path = f"/resource_providers/{provider}/{part}"
        reply, value = self._api.read(path, microversion, lambda reply: read(reply.body[part]))
        self._api.expect(reply, f"for the {part} of provider {provider}", 200, 404)
        return value

    def _list_sharing_uuids(self) -> set[str]:
        return {entry["uuid"] for entry in self._list_provider_entries(required=_SHARING_TRAIT)}

    def _list_tree_entries(self, name: str) -> list[dict[str, t.Any]]:
        if not name:
            # For no name at all Placement would list every provider.
            return []
        uuid = normalize_uuid(name)
        # The database may compare names without their case.
        wanted = uuid or name.casefold()
        key = "uuid" if uuid else "name"
        matches = self._list_provider_entries(
            lambda entries: all(entry[key].casefold() == wanted for entry in entries),
            **{key: uuid or name},
        )
        if not matches:
            return []
        root = matches[0]["uuid"]
        return self._list_provider_entries(
            lambda entries: not entries or any(entry["uuid"] == root for entry in entries),
            in_tree=root,
        )

    def _list_provider_entries(
        self, is_answer: Callable[[list[dict[str, t.Any]]], bool] | None = None, **filters: str
    ) -> list[dict[str, t.Any]]:
        """Return the entries of a listing of providers.

        Raises MalformedResponse when `is_answer` says that they answer another request.
        """

        def read(reply: Reply) -> list[dict[str, t.Any]]:
            entries = read_provider_entries(reply)
            if is_answer is not None and not is_answer(entries):
                raise ValueError("the answer is about other providers")
            return entries

        path = "/resource_providers"
        reply = self._api.get(path, _PROVIDER_MICROVERSION, **filters)
        self._api.expect(reply, "for its resource providers")
        return self._api.parse(read, reply, path)


# What is read of each provider of a host's tree.
_TREE_PARTS: dict[str, Callable[[Reply], t.Any]] = {
    "inventories": lambda reply: parse_inventories(reply.body["inventories"]),
    "traits": lambda reply: frozenset(reply.body["traits"]),
    "aggregates": lambda reply: frozenset(reply.body["aggregates"]),
}
