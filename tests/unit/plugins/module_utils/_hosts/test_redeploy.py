# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a host that was deployed again: one lacking part, one sentence about it."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.clients.provider_state import ProviderState
from ......plugins.module_utils._core.models.nova import Aggregate, Hypervisor, Migration, Service
from ......plugins.module_utils._core.models.placement import Provider
from ......plugins.module_utils._hosts.migrations import UnfinishedEvacuations
from ......plugins.module_utils._hosts.redeploy import MISSING, OK, RedeployedHost, list_checks
from ..world import PLENTY

HOST = "compute-1"
NODE = Hypervisor("11111111-1111-4111-8111-111111111111", HOST, HOST, "up", "enabled", ())
SERVICE = Service("nova-compute", HOST, "enabled", "up", id="s1", zone="nova")
ROOT = Provider(NODE.uuid, HOST, 1, NODE.uuid, None)
OTHER = Provider(
    "22222222-2222-4222-8222-222222222222", HOST, 1, "22222222-2222-4222-8222-222222222222", None
)
SSD = Aggregate("33333333-3333-4333-8333-333333333333", "ssd", "az1", (HOST,), id=1)
STATE = ProviderState(
    {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, frozenset({"COMPUTE_NODE"}), frozenset({SSD.uuid}), 1
)
WHOLE = RedeployedHost(
    HOST, (SERVICE,), (NODE,), True, ROOT, STATE, None, (SSD,), UnfinishedEvacuations(HOST)
)
EVACUATION = Migration(
    uuid="44444444-4444-4444-8444-444444444444",
    server="55555555-5555-4555-8555-555555555555",
    type="evacuation",
    status="done",
    source_compute=HOST,
    source_node=HOST,
    dest_compute="compute-2",
    dest_node="compute-2",
    created_at=None,
    updated_at=None,
)
NAMES = (
    "service",
    "host mapping",
    "compute node",
    "provider",
    "inventory",
    "traits",
    "aggregates",
    "evacuations",
)


def _outcomes(host: RedeployedHost) -> dict[str, str]:
    return {check.name: check.outcome for check in list_checks(host)}


def test_whole_host_has_one_line_for_each_part() -> None:
    checks = list_checks(WHOLE)

    assert tuple(check.name for check in checks) == NAMES
    assert {check.outcome for check in checks} == {OK}
    assert all(check.detail for check in checks)


def test_disabled_service_is_up_and_says_why() -> None:
    disabled = d.replace(SERVICE, status="disabled", disabled_reason="new disks")
    check = list_checks(d.replace(WHOLE, services=(disabled,)))[0]

    assert (check.outcome, check.detail) == (OK, "up, disabled (new disks)")


LACKING: dict[str, tuple[dict[str, t.Any], str, str]] = {
    "no service": ({"services": ()}, "service", "start it"),
    "two services": ({"services": (SERVICE, SERVICE)}, "service", "in different cells"),
    "down": (
        {"services": (d.replace(SERVICE, state="down", updated_at="12:00"),)},
        "service",
        "last reported at 12:00",
    ),
    "forced down": (
        {"services": (d.replace(SERVICE, state="down", forced_down=True),)},
        "service",
        "forced down",
    ),
    "its cell is silent": (
        {"services": (d.replace(SERVICE, status="UNKNOWN", state=None),)},
        "service",
        "does not answer",
    ),
    "no mapping": ({"mapped": False, "nodes": ()}, "host mapping", "discover_hosts"),
    "mapping unknown": ({"mapped": None}, "host mapping", "did not say"),
    "no node": ({"nodes": (), "provider": None, "state": None}, "compute node", "its log"),
    "no provider": ({"provider": None, "state": None}, "provider", "no provider 11111111"),
    "namesake": (
        {"provider": None, "state": None, "namesake": OTHER},
        "provider",
        "because provider 22222222",
    ),
    "another name": ({"provider": d.replace(ROOT, name="x")}, "provider", "has the name x"),
    "no inventory": ({"state": d.replace(STATE, inventories={})}, "inventory", "no VCPU and no"),
    "all reserved": (
        {"state": d.replace(STATE, inventories={"VCPU": d.replace(PLENTY, reserved=1000)})},
        "inventory",
        "no VCPU and no MEMORY_MB",
    ),
    "no traits": ({"state": d.replace(STATE, traits=frozenset())}, "traits", "COMPUTE_NODE"),
    "not mirrored": (
        {"state": d.replace(STATE, aggregates=frozenset())},
        "aggregates",
        "sync_aggregates",
    ),
}

LACKING["an evacuation"] = (
    {"evacuations": UnfinishedEvacuations(HOST, (EVACUATION,))},
    "evacuations",
    "Restart nova-compute on compute-1",
)


@pytest.mark.parametrize("case", LACKING)
def test_lacking_part_is_named(case: str) -> None:
    changes, name, sentence = LACKING[case]
    checks = {check.name: check for check in list_checks(d.replace(WHOLE, **changes))}

    assert checks[name].outcome == MISSING
    assert sentence in checks[name].detail


def test_host_of_ironic_is_not_compared_with_one_provider() -> None:
    second = d.replace(NODE, uuid=OTHER.uuid, name="node-2")
    host = d.replace(WHOLE, nodes=(NODE, second), provider=None, state=None)

    assert set(_outcomes(host).values()) == {OK}
