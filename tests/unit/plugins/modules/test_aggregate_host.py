# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `aggregate_host` says of Placement after Nova has removed a host from its aggregates."""

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import Aggregate
from ansible_collections.osops.placement.plugins.modules.aggregate_host import (
    _list_left_mirrors,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.service import (
    Response,
    Service,
    build_compute_node,
)

NODE = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
SSD = Aggregate("33333333-3333-4333-8333-333333333333", "ssd", None, (), id=7)
HDD = Aggregate("44444444-4444-4444-8444-444444444444", "hdd", None, (), id=8)
MIRRORS = {f"/resource_providers/{NODE}/aggregates": {"aggregates": [SSD.uuid]}}


class Nova(Service):
    """Nova, with all of its compute nodes on the first page."""

    def request(self, url: str, method: str, **options: t.Any) -> t.Any:
        if "marker" in (options.get("params") or {}):
            return Response(200, {"hypervisors": []})
        return super().request(url, method, **options)


NODES = {
    "hypervisors": [build_compute_node(NODE, "compute-1"), build_compute_node(OTHER, "compute-2")]
}


@pytest.mark.parametrize(
    ("nodes", "host", "mirrors", "left"),
    [
        (NODES, "compute-1", MIRRORS, [SSD.uuid]),
        # Its provider is gone, or is in another aggregate.
        (NODES, "compute-1", {}, []),
        (NODES, "compute-2", {f"/resource_providers/{OTHER}/aggregates": {"aggregates": []}}, []),
        # Without the compute nodes, nobody knows which providers are those of the host.
        (400, "compute-1", MIRRORS, None),
    ],
)
def test_aggregates_that_placement_has_left_are_named_or_unknown(
    nodes: t.Any, host: str, mirrors: dict[str, t.Any], left: list[str] | None
) -> None:
    session: t.Any = types.SimpleNamespace(
        compute=Nova({"/os-hypervisors/detail": nodes}, (2, 96)).open("compute", (2, 69)),
        placement=Service(mirrors).open("placement", (1, 28)),
    )

    assert _list_left_mirrors(session, host, [SSD, HDD]) == left
