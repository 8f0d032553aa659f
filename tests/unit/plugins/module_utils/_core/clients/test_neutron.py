# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports as Neutron shows them, with all that decides whether an allocation is theirs."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.clients.neutron import (
    parse_port,
)

PORT = {"id": "port", "binding:profile": {}, "binding:vnic_type": "normal"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, {"shows_request": False, "device_owner": None, "host": None, "has_trunk": False}),
        ({"resource_request": None}, {"shows_request": True, "groups": ()}),
        ({"device_owner": "compute:nova"}, {"device_owner": "compute:nova"}),
        ({"binding:host_id": ""}, {"host": None}),
        ({"binding:host_id": "compute-1"}, {"host": "compute-1"}),
        ({"trunk_details": {"trunk_id": "trunk", "sub_ports": []}}, {"has_trunk": True}),
        ({"trunk_details": None}, {"has_trunk": False}),
    ],
    ids=str,
)
def test_port_has_what_decides_on_a_leak(row: dict[str, t.Any], expected: dict[str, t.Any]) -> None:
    port = parse_port({**PORT, **row})
    assert {name: getattr(port, name) for name in expected} == expected
