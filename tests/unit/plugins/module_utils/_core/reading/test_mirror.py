# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the groups of hosts are read: few requests, and what does not agree once more."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.facts.listings_index import (
    ListingsIndex,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import Aggregate
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    ProviderAggregates,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    Mirror,
    Scope,
    Shard,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.others import (
    MirrorReader,
    is_wanted,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    World,
    answer,
)

RACK, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"


class Site(World):
    """Two hosts, and the two services as far as the reader asks them; it notes each request."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = self.host("compute-1"), self.host("compute-2")
        metadata = {"trait:CUSTOM_X": "required"}
        self.aggregates = (
            Aggregate(RACK, "rack", None, ("compute-1", "compute-2"), metadata, 7),
            Aggregate(OTHER, "other", None, (), {}, 8),
        )
        self.members = {RACK: (self.one, self.two), OTHER: ()}
        self.lacking: tuple[str, ...] = ()
        self.disabled: tuple[str, ...] = ()
        self.asked: list[tuple[str, ...]] = []

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        self.asked.append(("nova",))
        return self.aggregates

    def query_members(self, aggregate: str) -> t.Any:
        self.asked.append(("members", aggregate))
        return answer("GET", 200, self.members[aggregate])

    def query_members_without_trait(self, aggregate: str, trait: str) -> t.Any:
        self.asked.append(("lacking", aggregate, trait))
        return answer("GET", 200, self.lacking)

    def query_providers_with_trait(self, trait: str) -> t.Any:
        self.asked.append(("trait", trait))
        return answer("GET", 200, self.disabled)

    def query_aggregates(self, provider: str) -> t.Any:
        self.asked.append(("aggregates", provider))
        return answer("GET", 200, ProviderAggregates(1, ()))

    def read(self, **scope: t.Any) -> Mirror:
        reader = MirrorReader(t.cast("t.Any", self), t.cast("t.Any", self))
        return reader.read(Scope(**scope))

    def read_again(self) -> Mirror | None:
        """Read twice, and forget the requests of the first time."""
        groups = self.read()
        self.asked.clear()
        index = ListingsIndex(self.listings(mirror=groups))
        reader = MirrorReader(t.cast("t.Any", self), t.cast("t.Any", self))
        return reader.read_again(index)


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


@pytest.mark.parametrize(
    ("scope", "asked"),
    [
        (
            {},
            {
                ("nova",),
                ("members", RACK),
                ("members", OTHER),
                ("lacking", RACK, "CUSTOM_X"),
                ("trait", "COMPUTE_STATUS_DISABLED"),
            },
        ),
        (
            {"kinds": ("aggregate_mismatch",)},
            {("nova",), ("members", RACK), ("members", OTHER)},
        ),
        (
            {"kinds": ("trait_mismatch",)},
            {("nova",), ("lacking", RACK, "CUSTOM_X"), ("trait", "COMPUTE_STATUS_DISABLED")},
        ),
    ],
)
def test_only_the_kinds_that_are_asked_for_cost_requests(
    site: Site, scope: dict[str, t.Any], asked: set[tuple[str, ...]]
) -> None:
    site.read(**scope)

    assert set(site.asked) == asked and len(site.asked) == len(asked)


def test_each_aggregate_belongs_to_one_shard(site: Site) -> None:
    parts = [set(site.read(shard=Shard(number, 3)).members) for number in (1, 2, 3)]

    assert set.union(*parts) == {RACK, OTHER}
    assert sum(map(len, parts)) == 2


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        (Scope(), True),
        (Scope(hosts=("compute-1",)), True),
        (Scope(consumers=(RACK,)), False),
        (Scope(kinds=("zone_mismatch", "deleted_server")), False),
        (Scope(kinds=("trait_mismatch",)), True),
        (None, False),
    ],
)
def test_groups_are_read_only_for_findings_about_them(scope: Scope | None, wanted: bool) -> None:
    assert is_wanted(scope) is wanted


def test_what_agrees_is_not_read_again(site: Site) -> None:
    assert site.read_again() is None
    assert site.asked == []


def test_only_what_does_not_agree_is_read_again(site: Site) -> None:
    site.members[RACK] = (site.one,)
    again = site.read_again()

    assert again is not None and set(again.members) == {RACK}
    # Nova is read last: while it adds a host, its own record comes first.
    assert site.asked == [("members", RACK), ("aggregates", site.two), ("nova",)]


def test_lacking_traits_and_wrong_statuses_are_read_again(site: Site) -> None:
    site.lacking, site.disabled = (site.two,), (site.two,)
    again = site.read_again()

    assert again is not None
    assert site.asked == [
        ("trait", "COMPUTE_STATUS_DISABLED"),
        ("lacking", RACK, "CUSTOM_X"),
        ("nova",),
    ]


def test_the_aggregates_of_at_most_twenty_providers_are_read(site: Site) -> None:
    hosts = [f"compute-{number}" for number in range(3, 40)]
    for host in hosts:
        site.host(host)
    rack = site.aggregates[0]
    site.aggregates = (d.replace(rack, hosts=(*rack.hosts, *hosts)), site.aggregates[1])
    again = site.read_again()

    assert again is not None and len(again.provider_aggregates) == 20
