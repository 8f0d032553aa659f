# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each kind has one function of its name, whose docstring is published."""

from __future__ import annotations

import inspect

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.judging.engine import (
    CHECKS,
    PROOFS,
)
from ansible_collections.osops.placement.plugins.module_utils._core.kinds.registry import (
    CONDITION_KINDS,
    DRIFT_KINDS,
    KINDS,
    ORPHAN_KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import Kind

FUNCTIONS = {**PROOFS, **CHECKS}


def test_the_rules_are_in_the_order_of_the_kinds() -> None:
    assert list(PROOFS) == [kind.name for kind in (*ORPHAN_KINDS, *DRIFT_KINDS)]
    assert list(CHECKS) == [kind.name for kind in CONDITION_KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_bound_to_the_function_of_its_name(kind: Kind) -> None:
    assert getattr(FUNCTIONS[kind.name], "__name__", None) == kind.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_what_is_proven_and_what_follows(kind: Kind) -> None:
    _head, *paragraphs = (inspect.getdoc(FUNCTIONS[kind.name]) or "").split("\n\n")

    assert [text.partition(": ")[0] for text in paragraphs] == ["Proof", "Needs", "Change"]
    assert all(text.endswith(".") for text in paragraphs)
