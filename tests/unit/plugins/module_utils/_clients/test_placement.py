# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The allocations on a tree as evidence: all providers, or the first answer that is not one."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

ROOT, CHILD = "aaaaaaa0-0000-4000-8000-000000000000", "aaaaaaa1-0000-4000-8000-000000000000"
CPU, VF = {"resources": {"VCPU": 1}}, {"resources": {"CUSTOM_VF": 1}}


class _Reply(t.NamedTuple):
    body: t.Any


class Placement:
    """Allocations by provider; a number stands for the status of an answer without a value."""

    newest = (1, 39)
    workers = 1

    def __init__(self, **answers: t.Any) -> None:
        self._answers = {ROOT: answers["root"], CHILD: answers["child"]}

    def choose_microversion(self, major: int, minor: int) -> str:
        return f"{major}.{minor}"

    def ask(self, path: str, microversion: str, parse: t.Any) -> Answer[t.Any]:
        found = self._answers[path.split("/")[2]]
        if isinstance(found, int):
            return Answer(path, microversion, found, "", None)
        return Answer(path, microversion, 200, "", parse(_Reply({"allocations": found})))


def _query(**answers: t.Any) -> Answer[t.Any]:
    reader = PlacementReader(t.cast("t.Any", Placement(**answers)))
    return reader.query_tree_allocations(ROOT, [ROOT, CHILD])


def test_consumers_have_what_they_have_on_each_provider() -> None:
    answer = _query(root={"a": CPU, "b": CPU}, child={"b": VF})

    assert answer.status == 200
    assert answer.value == {
        "a": {ROOT: {"VCPU": 1}},
        "b": {ROOT: {"VCPU": 1}, CHILD: {"CUSTOM_VF": 1}},
    }


def test_one_provider_that_cannot_be_read_leaves_the_tree_unread() -> None:
    assert _query(root=503, child={}).value is None
    assert _query(root={"a": CPU}, child=404).value is None
