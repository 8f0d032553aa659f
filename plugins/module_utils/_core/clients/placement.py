# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads Placement. Nothing here writes, and nothing here knows about orphans.

API reference: https://docs.openstack.org/api-ref/placement/
"""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
import typing as t
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter

from ..._common.parallel import Pace, map_parallel
from ..._common.text import normalize_uuid
from ..._common.times import read_http_clock
from ..models.other_services import HostTree, TreeProvider
from ..models.placement import (
    Allocation,
    AllocationCandidates,
    Allocations,
    Provider,
    ProviderDetails,
    ProviderSummary,
    Resources,
    Totals,
    parse_inventories,
    sum_amounts,
)
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply, parse_rows

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
# So often a provider is read until nothing changes meanwhile.
_MAX_READINGS = 3

# The parts of a provider's details: each is a field of ProviderDetails and a request of its own.
PARTS = ("inventories", "usages", "traits", "aggregates")

# The type of a consumer that has none (from 1.38 on).
_NO_TYPE = "unknown"
# The year of the first release of Placement, in seconds since the epoch: no allocation is older.
_FIRST_RELEASE = 1451606400
_PROVIDER_KEYS = frozenset(
    {"uuid", "name", "generation", "root_provider_uuid", "parent_provider_uuid"}
)


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
        return _parse_providers(self._list_provider_entries(), sharing)

    def list_providers_in_trees(self, wanted: Iterable[str]) -> dict[str, Provider]:
        """Return by uuid the providers of every tree that has one of the `wanted` names or uuids.

        Names and uuids that Placement does not know add nothing.
        """
        sharing = self._list_sharing_uuids()
        trees = map_parallel(self._list_tree_entries, list(wanted), self.workers)
        return _parse_providers(itertools.chain.from_iterable(trees), sharing)

    def get_details(
        self, providers: Iterable[str], parts: Sequence[str] = PARTS
    ) -> dict[str, ProviderDetails]:
        """Return the `parts` of `providers`, from one request for each, read concurrently.

        A provider that is deleted meanwhile is left out.
        """
        uuids = list(dict.fromkeys(providers))
        requests = list(itertools.product(uuids, parts))
        answers = map_parallel(
            lambda request: self.get_part(*request), requests, self.workers, "provider details"
        )
        values = dict(zip(requests, answers, strict=True))
        details = {}
        for uuid in uuids:
            fields = {part: values[uuid, part] for part in parts}
            if None not in fields.values():
                details[uuid] = ProviderDetails(**fields)
        return details

    def get_part(self, provider: str, part: str, microversion: str = "") -> t.Any:
        """Return a part of `provider`, such as its traits, or None if it no longer exists."""
        reply, value = self._api.read(
            f"/resource_providers/{provider}/{part}",
            microversion or _PROVIDER_MICROVERSION,
            lambda reply: _PARSERS[part](reply.body[part]),
        )
        self._api.expect(reply, f"for the {part} of provider {provider}", 200, 404)
        return value

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
        entries = self._api.parse(_read_provider_entries, reply, path)
        providers = _parse_providers(entries, set())
        if root not in providers or len(entries) > MAX_TREE_PROVIDERS:
            return answer
        details: dict[str, ProviderDetails] = {}
        failed = self._add_tree_details(providers, details)
        if failed is not None:
            return failed
        aggregates = {uuid for parts in details.values() for uuid in parts.aggregates}
        sharing = self.list_sharing_providers(aggregates)
        shared = {uuid: sharing[uuid] for uuid in sharing if uuid not in providers}
        if len(shared) > MAX_TREE_PROVIDERS:
            return answer
        failed = self._add_tree_details(shared, details)
        if failed is not None:
            return failed
        tree = {
            uuid: TreeProvider(
                uuid=uuid,
                name=provider.name,
                parent=provider.parent,
                sharing=_SHARING_TRAIT in details[uuid].traits,
                inventories=details[uuid].inventories,
                traits=details[uuid].traits,
            )
            for uuid, provider in {**providers, **shared}.items()
        }
        return d.replace(answer, value=HostTree(root, tree))

    def _add_tree_details(
        self, providers: Iterable[str], details: dict[str, ProviderDetails]
    ) -> Answer[HostTree] | None:
        """Add what the providers have to `details`, and return the first answer that fails."""
        for uuid in providers:
            parts: dict[str, t.Any] = {}
            for part in ("inventories", "traits", "aggregates"):
                answer = self._query_part(uuid, part)
                if answer.value is None:
                    return answer
                parts[part] = answer.value
            details[uuid] = ProviderDetails(**parts)
        return None

    def query_usages(self, provider: str) -> Answer[Resources]:
        """Return the usages of `provider` as evidence; any status is an answer."""
        return self._query_part(provider, "usages")

    def query_totals(self, provider: str) -> Answer[Totals]:
        """Return what is in use on `provider`, and the sum of the allocations that it lists.

        A new allocation gives the provider another generation, and the deletion of one gives it
        other usages: where neither changed between the answers, they are of one moment. The answer
        has no `value` for a provider that is gone, and where something changed each time.
        """
        answer: Answer[t.Any] = NOT_ASKED
        for _reading in range(_MAX_READINGS):
            states = []
            for part in ("usages", "allocations", "usages"):
                answer = self._api.ask(
                    f"/resource_providers/{provider}/{part}",
                    self._listing,
                    functools.partial(_parse_part_with_generation, part),
                )
                if answer.value is None:
                    return answer
                states.append(answer.value)
            (used, before), (listing, meanwhile), last = states
            if last == (used, before) and meanwhile == before:
                return d.replace(answer, value=Totals(used, sum_amounts(listing.values())))
        return d.replace(answer, value=None)

    def _query_part(self, provider: str, part: str, microversion: str = "") -> Answer[t.Any]:
        return self._api.ask(
            f"/resource_providers/{provider}/{part}",
            microversion or _PROVIDER_MICROVERSION,
            lambda reply: _PARSERS[part](reply.body[part]),
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
            answer = self._query_part(provider, "allocations", self._listing)
            if answer.value is None:
                return answer
            for consumer, amounts in answer.value.items():
                allocations.setdefault(consumer, {})[provider] = amounts
        return d.replace(answer, value=allocations)

    def list_sharing_providers(self, aggregates: Iterable[str]) -> dict[str, Provider]:
        """Return the providers that share their inventory with all trees in one of `aggregates`."""
        uuids = ",".join(sorted(aggregates))
        if not uuids:
            return {}
        entries = self._list_provider_entries(required=_SHARING_TRAIT, member_of=f"in:{uuids}")
        return _parse_providers(entries, {entry["uuid"] for entry in entries})

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
            parse_rows("resource_providers", itemgetter("uuid")),
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
        return self._api.parse(_parse_candidates, reply, path)

    def list_allocations_on_providers(self, providers: Iterable[str]) -> dict[str, Allocations]:
        """Return the allocations of each consumer on `providers`.

        There is one listing for each provider, read concurrently. A provider that is deleted
        meanwhile has no allocations.
        """
        uuids = list(providers)
        listings = self._pace.map(
            lambda provider: self.get_part(provider, "allocations", self._listing) or {},
            uuids,
            stage="allocations",
            unit="providers",
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
            lambda reply: _parse_allocation(consumer, reply, now, has_generation), reply, path
        )
        return self._api.build_answer(path, self._allocation, {}, reply, allocation)

    def get_allocations(self, consumers: Iterable[str]) -> list[Allocation]:
        """Return the allocations of `consumers` that are not empty, read concurrently."""
        answers = map_parallel(self.get_allocation, list(consumers), self.workers)
        return [answer.value for answer in answers if answer.value and answer.value.resources]

    def get_usages(self, project: str) -> Resources:
        """Return what is allocated for a project. Raises CloudError if it cannot be read."""
        path = "/usages"
        reply = self._api.get(path, _USAGES_MICROVERSION, project_id=project)
        self._api.expect(reply, f"for the usages of project {project}")
        return self._api.parse(lambda reply: dict(reply.body["usages"]), reply, path)

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
            entries = _read_provider_entries(reply)
            if is_answer is not None and not is_answer(entries):
                raise ValueError("the answer is about other providers")
            return entries

        path = "/resource_providers"
        reply = self._api.get(path, _PROVIDER_MICROVERSION, **filters)
        self._api.expect(reply, "for its resource providers")
        return self._api.parse(read, reply, path)


def _read_provider_entries(reply: Reply) -> list[dict[str, t.Any]]:
    """Return the entries of a listing of providers; ValueError if one is not a provider's."""
    entries: list[dict[str, t.Any]] = reply.body["resource_providers"]
    for entry in entries:
        if _PROVIDER_KEYS - entry.keys() or normalize_uuid(entry["uuid"]) is None:
            raise ValueError("an entry is not that of a provider")
    return entries


def _parse_providers(
    entries: Iterable[Mapping[str, t.Any]], sharing: set[str]
) -> dict[str, Provider]:
    """Return providers by uuid; `sharing` are the uuids of those that share their inventory."""
    return {
        entry["uuid"]: Provider(
            uuid=entry["uuid"],
            name=entry["name"],
            generation=entry["generation"],
            root=entry["root_provider_uuid"],
            parent=entry["parent_provider_uuid"],
            sharing=entry["uuid"] in sharing,
        )
        for entry in entries
    }


def _parse_candidates(reply: Reply) -> AllocationCandidates:
    """Return the allocation candidates in a reply, with the providers that they name."""
    requests = reply.body["allocation_requests"]
    summaries = reply.body["provider_summaries"]
    return AllocationCandidates(
        allocations=tuple(_parse_resources(request["allocations"]) for request in requests),
        summaries={uuid: _parse_summary(summary) for uuid, summary in summaries.items()},
    )


def _parse_summary(summary: Mapping[str, t.Any]) -> ProviderSummary:
    resources = summary["resources"]
    return ProviderSummary(
        root=summary["root_provider_uuid"],
        traits=frozenset(summary["traits"]),
        capacity={cls: amounts["capacity"] for cls, amounts in resources.items()},
        used={cls: amounts["used"] for cls, amounts in resources.items()},
    )


def _parse_allocation(
    consumer: str, reply: Reply, now: float | None, has_generation: bool = True
) -> Allocation:
    """Return the allocation of a consumer in a reply, with its age by the clock of the service.

    now: the time in seconds since the epoch; None if it is unknown.
    has_generation: whether Placement shows the generations of consumers, as it does from 1.28 on.
    """
    body = reply.body
    consumer_type = body.get("consumer_type")
    if consumer_type == _NO_TYPE:
        consumer_type = None
    resources = _parse_resources(body["allocations"])
    generation = age_seconds = None
    if resources:
        # The listing of a provider has allocations too, and no generation beside them.
        generation = int(body["consumer_generation"]) if has_generation else None
        age_seconds = _compute_age(reply.headers, now)
    return Allocation(
        consumer=consumer,
        generation=generation,
        project=body.get("project_id"),
        user=body.get("user_id"),
        type=consumer_type,
        resources=resources,
        age_seconds=age_seconds,
    )


def _parse_resources(allocations: Mapping[str, t.Any]) -> dict[str, Resources]:
    """Return amounts by resource class, by the provider or the consumer of the entry."""
    return {provider: entry["resources"] for provider, entry in allocations.items()}


def _compute_age(headers: Mapping[str, str], now: float | None) -> int | None:
    # Each write inserts the allocations as new rows, so Last-Modified is the newest write.
    modified = read_http_clock(headers.get("Last-Modified"))
    # Some proxies write a time of their own, such as that of 1970.
    if modified is None or now is None or modified < _FIRST_RELEASE:
        return None
    return max(0, int(now - modified))


# What belongs to a provider, by the key under which Placement returns it.
_PARSERS: Mapping[str, Callable[[t.Any], t.Any]] = {
    "inventories": parse_inventories,
    "usages": dict,
    "traits": frozenset,
    "aggregates": frozenset,
    "allocations": _parse_resources,
}


def _parse_part_with_generation(part: str, reply: Reply) -> tuple[t.Any, int]:
    return _PARSERS[part](reply.body[part]), reply.body["resource_provider_generation"]
