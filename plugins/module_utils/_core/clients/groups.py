# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and changes groups of hosts: host aggregates, aggregates and traits of providers.

API reference: https://docs.openstack.org/api-ref/placement/#list-resource-providers

API reference: https://docs.openstack.org/api-ref/compute/#host-aggregates-os-aggregates
"""

from __future__ import annotations

import operator
import typing as t
from collections.abc import Mapping

from ..._common.clock import read_back
from ..._common.errors import CloudError
from ..models.nova import Aggregate
from ..models.placement import ProviderAggregates
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply
from .nova import NovaReader

_PATH = "/resource_providers"
# From 1.18 on providers can be listed by their traits, and from 1.22 on by the traits that they
# lack. From 1.19 on the aggregates of a provider come with its generation.
_TRAITS = (1, 18)
_FORBIDDEN_TRAITS = (1, 22)
_GENERATION = "1.19"


class ProviderGroupReader:
    """Reads Placement: each method sends one request. Any status is an answer."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def query_members(self, aggregate: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the providers in an aggregate."""
        return self._list_uuids(_TRAITS, member_of=aggregate)

    def query_members_without_trait(self, aggregate: str, trait: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the providers in an aggregate that lack a trait."""
        return self._list_uuids(_FORBIDDEN_TRAITS, member_of=aggregate, required=f"!{trait}")

    def query_providers_with_trait(self, trait: str) -> Answer[tuple[str, ...]]:
        """Return the uuids of the providers that have a trait."""
        return self._list_uuids(_TRAITS, required=trait)

    def query_aggregates(self, provider: str) -> Answer[ProviderAggregates]:
        """Return the aggregates of a provider, with its generation."""
        return self._api.ask(f"{_PATH}/{provider}/aggregates", _GENERATION, _parse_aggregates)

    def _list_uuids(self, needed: tuple[int, int], **filters: t.Any) -> Answer[tuple[str, ...]]:
        if self._api.newest < needed:
            return NOT_ASKED
        microversion = f"{needed[0]}.{needed[1]}"
        return self._api.ask(_PATH, microversion, _parse_uuids, **filters)


def _parse_uuids(reply: Reply) -> tuple[str, ...]:
    return tuple(row["uuid"] for row in reply.body["resource_providers"])


def _parse_aggregates(reply: Reply) -> ProviderAggregates:
    return ProviderAggregates(
        reply.body["resource_provider_generation"], tuple(sorted(reply.body["aggregates"]))
    )


# From 2.41 on an aggregate has a uuid.
_MICROVERSION = "2.41"


class AggregateClient:
    """The host aggregates of Nova. What it reports as done it has read back."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = NovaReader(api)

    def list_aggregates_of(self, host: str) -> tuple[Aggregate, ...]:
        """Return the host aggregates that have a host."""
        return tuple(entry for entry in self._reader.list_aggregates() if host in entry.hosts)

    def add_host(self, aggregate: Aggregate, host: str) -> None:
        """Add a host to an aggregate. Raises CloudError if Nova does not list it there then.

        Nova also adds the provider of the host to the aggregate in Placement.
        """
        what = f"to add {host} to aggregate {aggregate.name}"
        # 409: somebody else has added it meanwhile, or Nova refuses. The listing shows which.
        refusal = self._act(aggregate, {"add_host": {"host": host}}, what)
        if not read_back(lambda: self._has_host(aggregate, host), bool, not refusal):
            raise CloudError(refusal or f"Nova was asked {what}, but does not list it there.")

    def remove_host(self, aggregate: Aggregate, host: str) -> None:
        """Remove a host from an aggregate. Raises CloudError if Nova still lists it there."""
        what = f"to remove {host} from aggregate {aggregate.name}"
        refusal = self._act(aggregate, {"remove_host": {"host": host}}, what)
        if read_back(lambda: self._has_host(aggregate, host), operator.not_, not refusal):
            raise CloudError(refusal or f"Nova was asked {what}, but still lists it there.")

    def _act(self, aggregate: Aggregate, body: Mapping[str, t.Any], what: str) -> str:
        """Send an action to an aggregate, and return why Nova refused it; empty if it did not."""
        try:
            path = f"/os-aggregates/{aggregate.id}/action"
            self._api.expect(self._api.write("POST", path, _MICROVERSION, body), what)
        except CloudError as error:
            return str(error)
        return ""

    def _has_host(self, aggregate: Aggregate, host: str) -> bool:
        return any(entry.uuid == aggregate.uuid for entry in self.list_aggregates_of(host))
