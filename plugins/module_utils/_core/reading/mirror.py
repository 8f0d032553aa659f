# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Placement groups the hosts, read beside the host aggregates of Nova.

It costs one request for each host aggregate, one for each trait that an aggregate requires, and two
more, however many hosts there are. What does not agree is read once more at the end of the reading.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from ..._common.parallel import map_parallel
from ..clients.groups import ProviderGroupReader
from ..clients.nova import NovaReader
from ..facts.listings_index import ListingsIndex
from ..facts.mirror import (
    DISABLED_TRAIT,
    find_aggregate_mismatches,
    find_lacking_traits,
    find_status_mismatches,
    list_required_traits,
)
from ..models.nova import Aggregate
from ..models.placement import ProviderAggregates
from ..models.snapshot import NOT_ASKED, Answer, Mirror, Scope

# Of at most so many providers all aggregates are read, which the commands for them have to name.
MAX_COMMANDS = 20
# How many requests are sent at once, beside those for the allocations.
_WORKERS = 2


class MirrorReader:
    """Reads `Mirror`, and those that did not agree once more."""

    def __init__(self, placement: ProviderGroupReader, nova: NovaReader) -> None:
        self._placement = placement
        self._nova = nova

    def read(self, scope: Scope) -> Mirror:
        """Read the host aggregates, and what Placement says of them and of disabled hosts."""
        aggregates = self._nova.list_aggregates()
        listed = []
        for aggregate in aggregates:
            if scope.shard is None or scope.shard.contains(aggregate.uuid):
                listed.append(aggregate)
        members: Mapping[str, Answer[tuple[str, ...]]] = {}
        lacking: Mapping[str, Mapping[str, Answer[tuple[str, ...]]]] = {}
        disabled: Answer[tuple[str, ...]] = NOT_ASKED
        if scope.includes_any("aggregate_mismatch"):
            members = self._read_members(aggregate.uuid for aggregate in listed)
        if scope.includes_any("trait_mismatch"):
            lacking = self._read_lacking(_list_required_pairs(listed))
            disabled = self._placement.query_providers_with_trait(DISABLED_TRAIT)
        return Mirror(aggregates, members, lacking, disabled)

    def read_again(self, index: ListingsIndex) -> Mirror | None:
        """Read what did not agree once more; None where everything did."""
        mirror = index.listings.mirror
        if mirror is None:
            return None
        mismatches = find_aggregate_mismatches(index, mirror)
        lacking = find_lacking_traits(index, mirror)
        has_status_mismatch = bool(find_status_mismatches(index, mirror))
        if not mismatches and not lacking and not has_status_mismatch:
            return None
        members = self._read_members(mismatches)
        pairs = []
        for uuid, traits in lacking.items():
            pairs += [(uuid, trait) for trait in traits]
        disabled: Answer[tuple[str, ...]] = NOT_ASKED
        if has_status_mismatch:
            disabled = self._placement.query_providers_with_trait(DISABLED_TRAIT)
        nodes: set[str] = set()
        for mismatch in mismatches.values():
            nodes |= mismatch.extra | mismatch.missing
        # Nova after Placement: while it adds a host to an aggregate, its own record comes first.
        return Mirror(
            members=members,
            lacking=self._read_lacking(pairs),
            disabled=disabled,
            provider_aggregates=self._read_aggregates(sorted(nodes)[:MAX_COMMANDS]),
            aggregates=self._nova.list_aggregates(),
        )

    def _read_members(self, aggregates: Iterable[str]) -> dict[str, Answer[tuple[str, ...]]]:
        uuids = list(aggregates)
        answers = map_parallel(self._placement.query_members, uuids, _WORKERS)
        return dict(zip(uuids, answers, strict=True))

    def _read_lacking(
        self, pairs: Sequence[tuple[str, str]]
    ) -> dict[str, dict[str, Answer[tuple[str, ...]]]]:
        """Return which members of an aggregate lack a trait, for pairs of these two."""
        answers = map_parallel(
            lambda pair: self._placement.query_members_without_trait(*pair), pairs, _WORKERS
        )
        lacking: dict[str, dict[str, Answer[tuple[str, ...]]]] = {}
        for (aggregate, trait), answer in zip(pairs, answers, strict=True):
            lacking.setdefault(aggregate, {})[trait] = answer
        return lacking

    def _read_aggregates(self, providers: Sequence[str]) -> dict[str, Answer[ProviderAggregates]]:
        answers = map_parallel(self._placement.query_aggregates, providers, _WORKERS)
        return dict(zip(providers, answers, strict=True))


def is_wanted(scope: Scope | None) -> bool:
    """Return whether findings about the groups of hosts are asked for."""
    if scope is None or (scope.is_narrow and not scope.hosts):
        return False
    return scope.includes_any("aggregate_mismatch", "trait_mismatch")


def _list_required_pairs(aggregates: Iterable[Aggregate]) -> list[tuple[str, str]]:
    """Return the uuid of an aggregate with each trait that it requires, for all aggregates."""
    pairs: list[tuple[str, str]] = []
    for aggregate in aggregates:
        pairs += itertools.product([aggregate.uuid], list_required_traits(aggregate))
    return pairs
