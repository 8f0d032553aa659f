# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Journals that somebody has made by hand, without any fault in their form."""

from __future__ import annotations

import json
import typing as t
import uuid

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.clock import get_utc_now
from ansible_collections.osops.placement.plugins.module_utils._models.change import build_change
from ansible_collections.osops.placement.plugins.module_utils._models.placement import Allocation
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
    AFTER,
    BEFORE,
    build_record,
    format_records,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal_parts import (
    split_journal,
)

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.tests.integration.support import (
        Ansible,
        Minicloud,
        Placement,
    )


class Forger:
    """Writes the journal of a run that never was: it says how a live server got what it has."""

    def __init__(self, minicloud: Minicloud, placement: Placement) -> None:
        minicloud.scenario("healthy")
        self.server = minicloud.truth("healthy")["server"]
        self.held = placement.held(self.server)
        shown = placement.allocation(self.server)
        self._generation = shown["consumer_generation"]
        self._owner = (shown["project_id"], shown["user_id"])
        self.endpoint = f"http://127.0.0.1:{minicloud.ports['placement']}/"

    def forge(self, partner: str, before: dict[str, t.Any]) -> list[str]:
        """Return a journal with the right generation and time, and with a fitting digest.

        before: what the server is said to have had before.
        """
        # A consumer that had nothing begins with this generation.
        had = self._make(self.server, before, self._generation - 1)
        of_partner = self._make(partner, self.held, 1)
        change = build_change(
            had, partner=build_change(of_partner, resources={}), resources=self.held
        )
        step = Step(f"unreverted_allocation/{self.server}", "unreverted_allocation", change)
        after = {
            "format": 1,
            "at": get_utc_now(),
            "event": AFTER,
            "finding": step.finding,
            "consumer": self.server,
            "outcome": "rewritten",
            "reason": "",
        }
        return split_journal(format_records([build_record(BEFORE, step, self.endpoint), after]))

    def _make(self, consumer: str, resources: dict[str, t.Any], generation: int) -> Allocation:
        return Allocation(
            consumer,
            generation if resources else None,
            *self._owner,
            None,
            resources,
            0,
        )


@pytest.fixture
def forger(minicloud: Minicloud, placement: Placement) -> Forger:
    return Forger(minicloud, placement)


@pytest.mark.parametrize("leaves", ["nothing", "another host"])
def test_live_server_gives_nothing_to_a_consumer_that_nova_does_not_know(
    ansible: Ansible, placement: Placement, forger: Forger, leaves: str
) -> None:
    stranger = str(uuid.uuid4())
    before: dict[str, t.Any] = {}
    if leaves != "nothing":
        (own,) = forger.held
        other = next(
            found
            for name, found in placement.providers().items()
            if name.startswith("compute-") and found != own
        )
        before = {other: forger.held[own]}
    told = ansible.direct(
        "orphan_restore", journal=forger.forge(stranger, before), output_dir=str(ansible.folder)
    )

    assert told["tally"]["restored"] == 0, json.dumps(told)
    assert placement.held(forger.server) == forger.held
    assert placement.held(stranger) == {}
