# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A named consumer of which there is nothing at all is most likely misspelt."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    Allocation,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    NOT_ASKED,
    Answer,
    Evidence,
    Scope,
    Snapshot,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    check_named_consumers,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World

UUID = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
THERE = t.cast("t.Any", object())


def answer(status: int, value: t.Any = None) -> Answer[t.Any]:
    return Answer("GET …", "2.68", status, "2026-01-01T00:00:00Z", value)


NOTHING = Evidence(
    UUID,
    answer(200, Allocation(UUID, None, None, None, None, {}, None)),
    migrations=answer(200, ()),
    server=answer(404),
    deleted_listing=answer(200, ()),
    actions=answer(404),
    marker=answer(400),
)


def read(evidence: Evidence, **parts: t.Any) -> Snapshot:
    snapshot = World().snapshot()
    scope = Scope(consumers=(UUID,))
    return d.replace(snapshot, scope=scope, evidence={UUID: evidence}, **parts)


def test_unknown_consumer_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"neither Placement nor Nova knows {UUID}"):
        check_named_consumers(read(NOTHING), ())


def test_consumer_of_an_earlier_run_is_accepted() -> None:
    check_named_consumers(read(NOTHING), {UUID})


@pytest.mark.parametrize(
    "known",
    [
        {"allocation": answer(200, Allocation(UUID, 1, "p", "u", None, {"host": {"VCPU": 1}}, 5))},
        {"allocation": answer(500)},
        {"server": answer(200, THERE)},
        # A cell that is down.
        {"server": answer(500)},
        {"server": answer(403)},
        {"server": NOT_ASKED},
        {"deleted_listing": answer(200, (THERE,))},
        {"deleted_listing": answer(500)},
        {"deleted_listing": NOT_ASKED},
        {"actions": answer(200, (THERE,))},
        {"migrations": answer(200, (THERE,))},
        {"migrations": answer(500)},
        {"marker": answer(200, True)},
        {"marker": NOT_ASKED},
        {"rows": (answer(200, ()), answer(200, (UUID,)))},
        {"rows": (answer(500),)},
    ],
    ids=lambda known: next(iter(known)),
)
def test_any_other_answer_is_enough(known: dict[str, t.Any]) -> None:
    check_named_consumers(read(d.replace(NOTHING, **known)), ())


def test_allocation_of_the_listing_is_enough() -> None:
    check_named_consumers(read(NOTHING, allocations={UUID: {"host": {"VCPU": 1}}}), ())


def test_consumer_that_was_not_looked_up_is_not_judged() -> None:
    check_named_consumers(d.replace(read(NOTHING), evidence={}), ())
