# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads which providers are in an aggregate or have a trait, one request for all of them.

API reference: https://docs.openstack.org/api-ref/placement/#list-resource-providers
"""

from __future__ import annotations

import typing as t

from ..models.placement import ProviderAggregates
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply

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
