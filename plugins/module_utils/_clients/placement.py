# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What Placement says. Reads only; knows nothing of orphans.

API reference: https://docs.openstack.org/api-ref/placement/
"""

from __future__ import annotations

import dataclasses as d
import email.utils
import typing as t
import urllib.parse

from ansible_collections.osops.placement.plugins.module_utils._common.parallel import map_parallel
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    Allocation,
    AllocationCandidates,
    Allocations,
    Inventory,
    Provider,
    ProviderDetails,
    ProviderSummary,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Resources

# 1.20 gives providers their generation in every answer that lists them, after 1.14 (trees) and 1.18 (required traits).
# What one provider has is told alike at every version from 1.6 (traits) and 1.19 (aggregates) on.
_PROVIDER_MICROVERSION = "1.20"
# 1.31 lets candidates be asked of one tree, after 1.25 (groups), 1.27 (all classes) and 1.29 (nested providers).
_CANDIDATES_MICROVERSION = (1, 31)
_NO_TYPE = "unknown"
# Nova takes longer for its own listing, which is read meanwhile: more of these at once only take its time.
_LISTINGS_AT_ONCE = 4
_SHARING_TRAIT = "MISC_SHARES_VIA_AGGREGATE"

# The parts of a provider's details: each is a method of the reader, a field of Details and a request of its own.
PARTS = ("inventories", "usages", "traits", "aggregates")

T = t.TypeVar("T")


class PlacementReader:
    """Placement's side of a reading."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 1.28 on a consumer comes with its generation.
        self._listing = api.choose_microversion(1, 28)
        # 1.38 adds the consumer's type.
        self._allocation = api.choose_microversion(1, 38)

    @property
    def retried(self) -> int:
        """How many broken answers were asked for again."""
        return self._api.retried

    def list_providers(self) -> dict[str, Provider]:
        """Return every provider by uuid, those that share their inventory through an aggregate marked as `sharing`."""
        sharing = self._list_sharing_uuids()
        return {
            entry["uuid"]: _parse_provider(entry, sharing)
            for entry in self._list_provider_entries()
        }

    def list_providers_in_trees(self, wanted: Iterable[str]) -> dict[str, Provider]:
        """Return the providers of every tree that holds one of the `wanted` names or uuids; unknown ones add nothing."""
        sharing = self._list_sharing_uuids()
        return {
            entry["uuid"]: _parse_provider(entry, sharing)
            for tree in map_parallel(self._list_tree_entries, list(wanted))
            for entry in tree
        }

    def get_details(
        self, providers: Iterable[str], parts: Sequence[str] = PARTS
    ) -> dict[str, ProviderDetails]:
        """Return the `parts` of what is known about `providers`, from one request for each, read concurrently.

        A provider that is deleted meanwhile is left out.
        """
        read: dict[str, dict[str, t.Any]] = {provider: {} for provider in providers}
        wanted = [(provider, part) for provider in read for part in parts]
        for (provider, part), value in zip(
            wanted, map_parallel(self._read_part, wanted), strict=True
        ):
            read[provider][part] = value
        return {
            provider: ProviderDetails(**known)
            for provider, known in read.items()
            if None not in known.values()
        }

    def inventories(self, provider: str) -> dict[str, Inventory] | None:
        """Return what `provider` has by resource class, or None when it is gone."""
        return self._get_from_provider(provider, "inventories", _parse_inventories)

    def query_inventories(self, provider: str) -> Answer[dict[str, Inventory]]:
        """Return the same as evidence."""
        return self._api.ask(
            f"/resource_providers/{provider}/inventories",
            _PROVIDER_MICROVERSION,
            lambda reply: _parse_inventories(reply.body),
        )

    def usages(self, provider: str) -> dict[str, int] | None:
        """Return what is in use of `provider` by resource class, or None when it is gone."""
        return self._get_from_provider(provider, "usages", lambda body: dict(body["usages"]))

    def traits(self, provider: str) -> frozenset[str] | None:
        """Return the traits of `provider`, or None when it is gone."""
        return self._get_from_provider(provider, "traits", lambda body: frozenset(body["traits"]))

    def aggregates(self, provider: str) -> frozenset[str] | None:
        """Return the uuids of the aggregates that `provider` is in, or None when it is gone."""
        return self._get_from_provider(
            provider, "aggregates", lambda body: frozenset(body["aggregates"])
        )

    def list_sharing_providers(self, aggregates: Iterable[str]) -> dict[str, Provider]:
        """Return the providers that share what they have with every tree in one of `aggregates`."""
        within = ",".join(sorted(aggregates))
        entries = (
            self._list_provider_entries(required=_SHARING_TRAIT, member_of=f"in:{within}")
            if within
            else []
        )
        return {entry["uuid"]: _parse_provider(entry, {entry["uuid"]}) for entry in entries}

    def list_allocation_candidates(self, query: Mapping[str, str]) -> AllocationCandidates:
        """Return what Placement offers to such a request for resources. Raises CloudError when it is too old to be asked about trees."""
        path = "/allocation_candidates"
        reply = self._api.expect(
            self._api.get(path, self._api.require_microversion(*_CANDIDATES_MICROVERSION), **query),
            "for allocation candidates",
        )
        return self._api.parse(lambda reply: _parse_candidates(reply.body), reply, path)

    def list_usages(self, providers: Mapping[str, Provider]) -> dict[str, Resources]:
        """Return what is in use of each of `providers`, most of it from one request.

        Placement tells it of all trees that could take a server, beside what they could take; the others are asked one by one.
        """
        old = self._api.newest < _CANDIDATES_MICROVERSION
        summaries = (
            {} if old else self.list_allocation_candidates({"resources": "VCPU:1"}).summaries
        )
        left = [uuid for uuid, provider in providers.items() if provider.root not in summaries]
        asked = self.get_details(left, ("usages",))
        return {
            **{uuid: known.used for uuid, known in summaries.items()},
            **{uuid: known.usages for uuid, known in asked.items()},
        }

    def list_allocations_on_providers(self, providers: Iterable[str]) -> dict[str, Allocations]:
        """Return what each consumer holds on `providers`, from one listing a provider, read concurrently.

        A provider that is deleted meanwhile holds nothing.
        """
        wanted = list(providers)
        held: dict[str, dict[str, dict[str, int]]] = {}
        for provider, consumers in zip(
            wanted,
            map_parallel(self._list_allocations_on_provider, wanted, _LISTINGS_AT_ONCE),
            strict=True,
        ):
            for consumer, share in consumers.items():
                held.setdefault(consumer, {})[provider] = share["resources"]
        return t.cast("dict[str, Allocations]", held)

    def get_allocation(self, consumer: str) -> Answer[Allocation]:
        """Return everything that `consumer` holds; holding nothing is an answer too."""
        path = f"/allocations/{urllib.parse.quote(consumer, safe='')}"
        reply = self._api.expect(
            self._api.get(path, self._allocation), f"for the allocation of {consumer}"
        )
        read = self._api.parse(lambda reply: _parse_allocation(consumer, reply), reply, path)
        return self._api.build_answer(path, self._allocation, {}, reply, read)

    def get_allocations(self, consumers: Iterable[str]) -> list[Allocation]:
        """Return the allocations of those `consumers` that hold anything, read concurrently."""
        answers = map_parallel(self.get_allocation, list(consumers))
        return [answer.value for answer in answers if answer.value and answer.value.resources]

    def _list_allocations_on_provider(self, provider: str) -> Mapping[str, t.Any]:
        return (
            self._get_from_provider(
                provider,
                "allocations",
                lambda body: t.cast("Mapping[str, t.Any]", body["allocations"]),
                self._listing,
            )
            or {}
        )

    def _read_part(self, wanted: tuple[str, str]) -> t.Any:
        provider, part = wanted
        return getattr(self, part)(provider)

    def _get_from_provider(
        self,
        provider: str,
        what: str,
        read: Callable[[t.Any], T],
        microversion: str = _PROVIDER_MICROVERSION,
    ) -> T | None:
        path = f"/resource_providers/{provider}/{what}"
        reply = self._api.expect(
            self._api.get(path, microversion), f"for the {what} of provider {provider}", 200, 404
        )
        return (
            None
            if reply.status == 404
            else self._api.parse(lambda reply: read(reply.body), reply, path)
        )

    def _list_sharing_uuids(self) -> set[str]:
        return {entry["uuid"] for entry in self._list_provider_entries(required=_SHARING_TRAIT)}

    def _list_tree_entries(self, name: str) -> list[dict[str, t.Any]]:
        if not name:
            # For no name at all Placement would list every provider.
            return []
        identity = normalize_uuid(name)
        named = self._list_provider_entries(**({"uuid": identity} if identity else {"name": name}))
        return self._list_provider_entries(in_tree=named[0]["uuid"]) if named else []

    def _list_provider_entries(self, **filters: str) -> list[dict[str, t.Any]]:
        reply = self._api.expect(
            self._api.get("/resource_providers", _PROVIDER_MICROVERSION, **filters),
            "for its resource providers",
        )
        return self._api.parse(
            lambda reply: t.cast("list[dict[str, t.Any]]", reply.body["resource_providers"]),
            reply,
            "/resource_providers",
        )


def _parse_provider(entry: Mapping[str, t.Any], sharing: set[str]) -> Provider:
    return Provider(
        uuid=entry["uuid"],
        name=entry["name"],
        generation=entry["generation"],
        root=entry["root_provider_uuid"],
        parent=entry["parent_provider_uuid"],
        sharing=entry["uuid"] in sharing,
    )


def _parse_inventories(body: t.Any) -> dict[str, Inventory]:
    fields = [field.name for field in d.fields(Inventory)]
    return {
        cls: Inventory(**{field: known[field] for field in fields})
        for cls, known in body["inventories"].items()
    }


def _parse_candidates(body: Mapping[str, t.Any]) -> AllocationCandidates:
    return AllocationCandidates(
        allocations=tuple(
            {provider: share["resources"] for provider, share in request["allocations"].items()}
            for request in body["allocation_requests"]
        ),
        summaries={
            provider: ProviderSummary(
                root=summary["root_provider_uuid"],
                traits=frozenset(summary["traits"]),
                capacity={cls: known["capacity"] for cls, known in summary["resources"].items()},
                used={cls: known["used"] for cls, known in summary["resources"].items()},
            )
            for provider, summary in body["provider_summaries"].items()
        },
    )


def _parse_allocation(consumer: str, reply: Reply) -> Allocation:
    body = reply.body
    kind = body.get("consumer_type")
    return Allocation(
        consumer=consumer,
        generation=body.get("consumer_generation"),
        project=body.get("project_id"),
        user=body.get("user_id"),
        type=None if kind == _NO_TYPE else kind,
        resources={provider: share["resources"] for provider, share in body["allocations"].items()},
        age_seconds=_compute_age(reply.headers) if body["allocations"] else None,
    )


def _compute_age(headers: Mapping[str, str]) -> int | None:
    # Allocations are only ever inserted anew, so Last-Modified is the newest write; Date is the same server's clock.
    modified, date = headers.get("Last-Modified"), headers.get("Date")
    if not modified or not date:
        return None
    elapsed = email.utils.parsedate_to_datetime(date) - email.utils.parsedate_to_datetime(modified)
    return max(0, int(elapsed.total_seconds()))
