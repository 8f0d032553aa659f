# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each kind has a file of its name, whose docstrings are published."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.kinds import registry
from ansible_collections.osops.placement.plugins.module_utils._core.kinds.registry import (
    CHECKS,
    KINDS,
    PROOFS,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models import kinds
from ansible_collections.osops.placement.plugins.module_utils._core.models.kind import Kind
from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import (
    RENAMED_KINDS,
)

FUNCTIONS = {**PROOFS, **CHECKS}


def test_every_file_is_a_kind_that_the_registry_lists() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")}

    assert files - {"registry"} == {kind.name for kind in KINDS}


def test_table_of_the_kinds_has_what_their_files_say() -> None:
    assert kinds.KINDS == KINDS


def test_no_name_of_an_earlier_version_is_given_twice() -> None:
    assert len(RENAMED_KINDS) == sum(bool(kind.was) for kind in KINDS)
    assert not RENAMED_KINDS.keys() & {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_what_is_proven_and_what_follows(kind: Kind) -> None:
    _head, *paragraphs = (inspect.getdoc(FUNCTIONS[kind.name]) or "").split("\n\n")

    assert [text.partition(": ")[0] for text in paragraphs] == ["Proof", "Needs", "Change"]
    assert all(text.endswith(".") for text in paragraphs)
