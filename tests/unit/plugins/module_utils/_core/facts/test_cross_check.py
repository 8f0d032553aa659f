# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the answers about consumers agree with the listings of their providers."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.gaps import (
    choose_providers,
    explain_contradictions,
    explain_loss,
)
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.judging.engine import judge
from .......plugins.module_utils._core.models.snapshot import Snapshot
from .......plugins.module_utils._core.options.policy import Policy
from ...world import World


class Site(World):
    """A server that has moved from one host to the other, and an orphan beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.moved = self.server(self.there, self.there)
        self.move = self.migration(self.moved, self.here, self.there, "confirmed", self.here)
        self.orphan = self.server(self.here, self.here, self.there)

    def list_truly(self) -> dict[str, dict[str, t.Any]]:
        """Return what all providers list, by consumer."""
        return {uuid: dict(held.resources) for uuid, held in self.allocations.items()}

    def explain(
        self, listed: dict[str, dict[str, t.Any]], snapshot: Snapshot | None = None
    ) -> dict[str, str]:
        snapshot = snapshot or self.snapshot()
        assert {self.moved, self.move, self.orphan} <= snapshot.evidence.keys()
        index = SnapshotIndex(snapshot)
        return explain_contradictions(snapshot, index, choose_providers(snapshot, index), listed)


def test_same_allocations_in_both_answers_are_no_contradiction() -> None:
    site = Site()

    assert site.explain(site.list_truly()) == {}


@pytest.mark.parametrize("change", ["nothing", "less", "other amounts", "more"])
def test_consumer_whose_answer_differs_from_the_listing_is_named(change: str) -> None:
    site = Site()
    listed = site.list_truly()
    held = listed[site.orphan]
    if change == "nothing":
        del listed[site.orphan]
    elif change == "less":
        del held[site.here]
    elif change == "other amounts":
        held[site.here] = {**held[site.here], "VCPU": 99}
    else:
        held[site.host("compute-3")] = held[site.here]

    reasons = site.explain(listed)

    assert list(reasons) == [site.orphan]
    assert site.orphan in reasons[site.orphan] and "cache" in reasons[site.orphan]
    assert reasons[site.orphan].id == "listing_contradicts_answer"


def test_shared_provider_is_listed_only_for_a_consumer_on_no_host() -> None:
    site = Site()
    pool = site.provider("pool")
    site.server(site.here, site.here, pool)
    snapshot = site.snapshot()

    assert choose_providers(snapshot, SnapshotIndex(snapshot)) == sorted([site.here, site.there])
    stray = site.server(None, pool)
    snapshot = site.snapshot()
    assert pool in choose_providers(snapshot, SnapshotIndex(snapshot))
    assert site.explain(site.list_truly()) == {}
    truly = site.list_truly()
    del truly[stray]
    assert list(site.explain(truly)) == [stray]


@pytest.mark.parametrize("is_looked_up", [True, False])
@pytest.mark.parametrize("contradicted", ["moved", "move"])
def test_server_and_its_migration_count_together(contradicted: str, is_looked_up: bool) -> None:
    """A cache has what one of them had before the move.

    The lookup of the server may have reached a worker that does not know its cell.
    """
    site = Site()
    consumer = getattr(site, contradicted)
    listed = {uuid: held for uuid, held in site.list_truly().items() if uuid != consumer}
    snapshot = site.snapshot()
    if not is_looked_up:
        server = snapshot.evidence[site.moved]
        empty = d.replace(server, migrations=d.replace(server.migrations, value=()))
        snapshot = d.replace(snapshot, evidence={**snapshot.evidence, site.moved: empty})

    reasons = site.explain(listed, snapshot)

    assert set(reasons) == {site.moved, site.move}
    assert all(consumer in reason for reason in reasons.values())


def test_old_answer_about_a_host_that_is_gone_is_noticed_by_its_migration() -> None:
    """Of the server only its living host is listed, and of its migration the one that is gone."""
    site = Site()
    truly = site.list_truly()
    site.remove_host(site.here)
    site.hold(site.moved, site.here)

    assert set(site.explain(truly)) == {site.moved, site.move}


def _list_more(snapshot: Snapshot, consumer: str, **more: dict[str, int]) -> Snapshot:
    """Return a snapshot whose listings have more of a consumer than the answer about it."""
    held = {**snapshot.allocations.get(consumer, {}), **more}
    return d.replace(snapshot, allocations={**snapshot.allocations, consumer: held})


def _judge(snapshot: Snapshot) -> dict[str, str]:
    return {
        finding.subject: finding.verdict for finding in judge(SnapshotIndex(snapshot), Policy())
    }


def test_answer_that_lacks_what_a_shared_provider_lists_proves_nothing() -> None:
    site = Site()
    pool = site.provider("pool")
    true = site.snapshot()

    assert _judge(true)[site.orphan] == "orphaned"
    assert _judge(_list_more(true, site.orphan, **{pool: {"DISK_GB": 1}}))[site.orphan] == (
        "undecided"
    )


@pytest.mark.parametrize("contradicted", ["moved", "move"])
def test_what_a_provider_lists_of_a_server_counts_for_its_migration(contradicted: str) -> None:
    site = Site()
    pool = site.provider("pool")
    true = site.snapshot()

    assert _judge(true)[site.move] == "orphaned"
    listed = _list_more(true, getattr(site, contradicted), **{pool: {"DISK_GB": 1}})
    assert _judge(listed)[site.move] == "undecided"
    why = explain_loss(site.move, listed.allocations, listed, SnapshotIndex(listed))
    assert why and getattr(site, contradicted) in why and why.id == "allocation_answers_differ"


def test_answer_with_more_than_is_listed_is_no_loss() -> None:
    """A new allocation, or one on a provider that this reading did not list."""
    site = Site()
    true = site.snapshot()
    listed = d.replace(true, allocations={})

    assert explain_loss(site.orphan, {}, listed, SnapshotIndex(listed)) is None
