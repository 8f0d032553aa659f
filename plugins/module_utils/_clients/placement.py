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

from ansible_collections.osops.placement.plugins.module_utils._common.parallel import each
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import canonical
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    Allocation,
    Candidates,
    Details,
    Holding,
    Inventory,
    Provider,
    Summary,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api, Reply
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Resources

# 1.20 gives providers their generation in every answer that lists them, after 1.14 (trees) and 1.18 (required traits).
# What one provider has is told alike at every version from 1.6 (traits) and 1.19 (aggregates) on.
_PROVIDERS = "1.20"
# 1.31 lets candidates be asked of one tree, after 1.25 (groups), 1.27 (all classes) and 1.29 (nested providers).
_CANDIDATES = (1, 31)
_NO_TYPE = "unknown"
# Nova takes longer for its own listing, which is read meanwhile: more of these at once only take its time.
_LISTINGS_AT_ONCE = 4
_SHARES = "MISC_SHARES_VIA_AGGREGATE"

# The parts of a provider's details: each is a method of the reader, a field of Details and a request of its own.
PARTS = ("inventories", "usages", "traits", "aggregates")

T = t.TypeVar("T")


class PlacementReader:
    """Placement's side of a reading."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 1.28 on a consumer comes with its generation.
        self._listing = api.at_most(1, 28)
        # 1.38 adds the consumer's type.
        self._allocation = api.at_most(1, 38)

    @property
    def retried(self) -> int:
        """How many broken answers were asked for again."""
        return self._api.retried

    def providers(self) -> dict[str, Provider]:
        """Return every provider by uuid, those that share their inventory through an aggregate marked as `sharing`."""
        sharing = self._sharing()
        return {entry["uuid"]: _provider(entry, sharing) for entry in self._provider_entries()}

    def trees(self, wanted: Iterable[str]) -> dict[str, Provider]:
        """Return the providers of every tree that holds one of the `wanted` names or uuids; unknown ones add nothing."""
        sharing = self._sharing()
        return {entry["uuid"]: _provider(entry, sharing) for tree in each(self._tree_entries, list(wanted)) for entry in tree}

    def details(self, providers: Iterable[str], parts: Sequence[str] = PARTS) -> dict[str, Details]:
        """Return the `parts` of what is known about `providers`, from one request for each, read concurrently.

        A provider that is deleted meanwhile is left out.
        """
        read: dict[str, dict[str, t.Any]] = {provider: {} for provider in providers}
        wanted = [(provider, part) for provider in read for part in parts]
        for (provider, part), value in zip(wanted, each(self._part, wanted), strict=True):
            read[provider][part] = value
        return {provider: Details(**known) for provider, known in read.items() if None not in known.values()}

    def inventories(self, provider: str) -> dict[str, Inventory] | None:
        """Return what `provider` has by resource class, or None when it is gone."""
        return self._of_provider(provider, "inventories", _inventories)

    def stock(self, provider: str) -> Answer[dict[str, Inventory]]:
        """Return the same as evidence."""
        return self._api.ask(f"/resource_providers/{provider}/inventories", _PROVIDERS, lambda reply: _inventories(reply.body))

    def usages(self, provider: str) -> dict[str, int] | None:
        """Return what is in use of `provider` by resource class, or None when it is gone."""
        return self._of_provider(provider, "usages", lambda body: dict(body["usages"]))

    def traits(self, provider: str) -> frozenset[str] | None:
        """Return the traits of `provider`, or None when it is gone."""
        return self._of_provider(provider, "traits", lambda body: frozenset(body["traits"]))

    def aggregates(self, provider: str) -> frozenset[str] | None:
        """Return the uuids of the aggregates that `provider` is in, or None when it is gone."""
        return self._of_provider(provider, "aggregates", lambda body: frozenset(body["aggregates"]))

    def sharing_in(self, aggregates: Iterable[str]) -> dict[str, Provider]:
        """Return the providers that share what they have with every tree in one of `aggregates`."""
        within = ",".join(sorted(aggregates))
        entries = self._provider_entries(required=_SHARES, member_of=f"in:{within}") if within else []
        return {entry["uuid"]: _provider(entry, {entry["uuid"]}) for entry in entries}

    def candidates(self, query: Mapping[str, str]) -> Candidates:
        """Return what Placement offers to such a request for resources. Raises CloudError when it is too old to be asked about trees."""
        path = "/allocation_candidates"
        reply = self._api.expect(self._api.get(path, self._api.at_least(*_CANDIDATES), **query), "for allocation candidates")
        return self._api.parse(lambda reply: _candidates(reply.body), reply, path)

    def usages_of_all(self, providers: Mapping[str, Provider]) -> dict[str, Resources]:
        """Return what is in use of each of `providers`, most of it from one request.

        Placement tells it of all trees that could take a server, beside what they could take; the others are asked one by one.
        """
        old = self._api.newest < _CANDIDATES
        summaries = {} if old else self.candidates({"resources": "VCPU:1"}).summaries
        left = [uuid for uuid, provider in providers.items() if provider.root not in summaries]
        asked = self.details(left, ("usages",))
        return {**{uuid: known.used for uuid, known in summaries.items()}, **{uuid: known.usages for uuid, known in asked.items()}}

    def holdings(self, providers: Iterable[str]) -> dict[str, Holding]:
        """Return what each consumer holds on `providers`, from one listing a provider, read concurrently.

        A provider that is deleted meanwhile holds nothing.
        """
        wanted = list(providers)
        held: dict[str, dict[str, dict[str, int]]] = {}
        for provider, consumers in zip(wanted, each(self._consumers, wanted, _LISTINGS_AT_ONCE), strict=True):
            for consumer, share in consumers.items():
                held.setdefault(consumer, {})[provider] = share["resources"]
        return t.cast("dict[str, Holding]", held)

    def allocation(self, consumer: str) -> Answer[Allocation]:
        """Return everything that `consumer` holds; holding nothing is an answer too."""
        path = f"/allocations/{urllib.parse.quote(consumer, safe='')}"
        reply = self._api.expect(self._api.get(path, self._allocation), f"for the allocation of {consumer}")
        read = self._api.parse(lambda reply: _allocation(consumer, reply), reply, path)
        return self._api.answer(path, self._allocation, {}, reply, read)

    def allocations(self, consumers: Iterable[str]) -> list[Allocation]:
        """Return the allocations of those `consumers` that hold anything, read concurrently."""
        answers = each(self.allocation, list(consumers))
        return [answer.value for answer in answers if answer.value and answer.value.resources]

    def _consumers(self, provider: str) -> Mapping[str, t.Any]:
        return (
            self._of_provider(provider, "allocations", lambda body: t.cast("Mapping[str, t.Any]", body["allocations"]), self._listing) or {}
        )

    def _part(self, wanted: tuple[str, str]) -> t.Any:
        provider, part = wanted
        return getattr(self, part)(provider)

    def _of_provider(self, provider: str, what: str, read: Callable[[t.Any], T], microversion: str = _PROVIDERS) -> T | None:
        path = f"/resource_providers/{provider}/{what}"
        reply = self._api.expect(self._api.get(path, microversion), f"for the {what} of provider {provider}", 200, 404)
        return None if reply.status == 404 else self._api.parse(lambda reply: read(reply.body), reply, path)

    def _sharing(self) -> set[str]:
        return {entry["uuid"] for entry in self._provider_entries(required=_SHARES)}

    def _tree_entries(self, name: str) -> list[dict[str, t.Any]]:
        if not name:
            # For no name at all Placement would list every provider.
            return []
        identity = canonical(name)
        named = self._provider_entries(**({"uuid": identity} if identity else {"name": name}))
        return self._provider_entries(in_tree=named[0]["uuid"]) if named else []

    def _provider_entries(self, **filters: str) -> list[dict[str, t.Any]]:
        reply = self._api.expect(self._api.get("/resource_providers", _PROVIDERS, **filters), "for its resource providers")
        return self._api.parse(
            lambda reply: t.cast("list[dict[str, t.Any]]", reply.body["resource_providers"]), reply, "/resource_providers"
        )


def _provider(entry: Mapping[str, t.Any], sharing: set[str]) -> Provider:
    return Provider(
        uuid=entry["uuid"],
        name=entry["name"],
        generation=entry["generation"],
        root=entry["root_provider_uuid"],
        parent=entry["parent_provider_uuid"],
        sharing=entry["uuid"] in sharing,
    )


def _inventories(body: t.Any) -> dict[str, Inventory]:
    fields = [field.name for field in d.fields(Inventory)]
    return {cls: Inventory(**{field: known[field] for field in fields}) for cls, known in body["inventories"].items()}


def _candidates(body: Mapping[str, t.Any]) -> Candidates:
    return Candidates(
        holdings=tuple(
            {provider: share["resources"] for provider, share in request["allocations"].items()} for request in body["allocation_requests"]
        ),
        summaries={
            provider: Summary(
                root=summary["root_provider_uuid"],
                traits=frozenset(summary["traits"]),
                capacity={cls: known["capacity"] for cls, known in summary["resources"].items()},
                used={cls: known["used"] for cls, known in summary["resources"].items()},
            )
            for provider, summary in body["provider_summaries"].items()
        },
    )


def _allocation(consumer: str, reply: Reply) -> Allocation:
    body = reply.body
    kind = body.get("consumer_type")
    return Allocation(
        consumer=consumer,
        generation=body.get("consumer_generation"),
        project=body.get("project_id"),
        user=body.get("user_id"),
        type=None if kind == _NO_TYPE else kind,
        resources={provider: share["resources"] for provider, share in body["allocations"].items()},
        age_seconds=_age(reply.headers) if body["allocations"] else None,
    )


def _age(headers: Mapping[str, str]) -> int | None:
    # Allocations are only ever inserted anew, so Last-Modified is the newest write; Date is the same server's clock.
    modified, date = headers.get("Last-Modified"), headers.get("Date")
    if not modified or not date:
        return None
    elapsed = email.utils.parsedate_to_datetime(date) - email.utils.parsedate_to_datetime(modified)
    return max(0, int(elapsed.total_seconds()))
