# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which providers are in an aggregate or have a trait, as Placement answers."""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.clients.api import Api
from ansible_collections.osops.placement.plugins.module_utils._core.clients.groups import (
    ProviderGroupReader,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    ProviderAggregates,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import NOT_ASKED

ROWS = {"resource_providers": [{"uuid": "one"}, {"uuid": "two"}]}
AGGREGATES = {"aggregates": ["b", "a"], "resource_provider_generation": 3}


class Adapter:
    """One answer for every request, which it notes with its microversion."""

    def __init__(self, newest: tuple[int, int], status: int, body: t.Any) -> None:
        self._newest = newest
        self._status = status
        self._body = body
        self.asked: list[tuple[str, str, t.Any]] = []

    def get_endpoint(self) -> str:
        return "http://placement"

    def get_endpoint_data(self) -> t.Any:
        return types.SimpleNamespace(max_microversion=self._newest)

    def request(self, url: str, method: str, microversion: str, **options: t.Any) -> t.Any:
        path = url.removeprefix("http://placement")
        self.asked.append((path, microversion, dict(options["params"])))
        return types.SimpleNamespace(
            status_code=self._status, headers={}, content=b"{}", json=lambda: self._body
        )


@pytest.mark.parametrize(
    ("method", "arguments", "asked"),
    [
        ("query_members", ("rack",), ("1.18", {"member_of": "rack"})),
        (
            "query_members_without_trait",
            ("rack", "CUSTOM_X"),
            ("1.22", {"member_of": "rack", "required": "!CUSTOM_X"}),
        ),
        ("query_providers_with_trait", ("CUSTOM_X",), ("1.18", {"required": "CUSTOM_X"})),
    ],
)
def test_one_request_returns_the_providers(
    method: str, arguments: tuple[str, ...], asked: tuple[str, dict[str, str]]
) -> None:
    adapter = Adapter((1, 39), 200, ROWS)
    reader = ProviderGroupReader(Api("Placement", adapter, (1, 10)))

    assert getattr(reader, method)(*arguments).value == ("one", "two")
    assert adapter.asked == [("/resource_providers", *asked)]


def test_aggregates_come_with_the_generation() -> None:
    reader = ProviderGroupReader(Api("Placement", Adapter((1, 39), 200, AGGREGATES), (1, 10)))

    assert reader.query_aggregates("one").value == ProviderAggregates(3, ("a", "b"))


def test_a_trait_that_placement_does_not_know_is_an_answer() -> None:
    refusal = {"errors": [{"detail": "No such trait(s)", "status": 400}]}
    reader = ProviderGroupReader(Api("Placement", Adapter((1, 39), 400, refusal), (1, 10)))
    reply = reader.query_members_without_trait("rack", "CUSTOM_X")

    assert (reply.status, reply.value) == (400, None)


def test_an_older_placement_is_not_asked_for_what_it_ignores() -> None:
    """Without the filter it would list every provider."""
    adapter = Adapter((1, 21), 200, ROWS)
    reader = ProviderGroupReader(Api("Placement", adapter, (1, 10)))

    assert reader.query_members_without_trait("rack", "CUSTOM_X") == NOT_ASKED
    assert adapter.asked == []
