# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All kinds, without their proofs, and their names in earlier versions."""

from __future__ import annotations

import functools

from . import kind_table
from .kind import CONDITION, DRIFT, ORPHAN, REPORT
from .minimum_python import require_python

# Every module that does not run on hypervisors imports this file, also those without a snapshot.
require_python()

KINDS = kind_table.KINDS
ORPHAN_KINDS = tuple(kind for kind in KINDS if kind.group == ORPHAN)
DRIFT_KINDS = tuple(kind for kind in KINDS if kind.group == DRIFT)
CONDITION_KINDS = tuple(kind for kind in KINDS if kind.group == CONDITION)
CHANGEABLE_KINDS = tuple(kind for kind in KINDS if kind.by_default != REPORT)
CONSUMER_KINDS = tuple(kind for kind in CHANGEABLE_KINDS if kind.group != CONDITION)

RENAMED_KINDS = {kind.was: kind.name for kind in KINDS if kind.was}
RENAMED_IN = {kind.was: kind.renamed_in for kind in KINDS if kind.was}


@functools.lru_cache
def collect_needs(kinds: tuple[str, ...], also_kinds: tuple[str, ...]) -> frozenset[str]:
    """Return the requests that some kinds need.

    kinds: those that are searched, empty for all. also_kinds: those that are searched with all
    that only they need, unless `kinds` names others.
    """
    needs: set[str] = set()
    for kind in KINDS:
        if not kinds or kind.name in kinds:
            needs.update(kind.needs)
        if kind.name in (kinds or also_kinds):
            needs.update(kind.named_needs)
    return frozenset(needs)


def rename_kind(kind: str) -> str:
    """Return today's name of a kind, which may be named as in an older version."""
    return RENAMED_KINDS.get(kind, kind)


def explain_unresolvable(kind: str) -> str:
    """Return why a change cannot resolve a finding of a kind, as the end of a sentence."""
    if kind in RENAMED_KINDS:
        name, version = RENAMED_KINDS[kind], RENAMED_IN[kind]
        return f"which was renamed to {name} in version {version}: make the plan again."
    return "which it cannot resolve."


def get_finding_subject(identity: str) -> str:
    """Return the subject in the id (`kind/subject`) of a finding."""
    return identity.partition("/")[2]


def rename_finding(identity: str) -> str:
    """Return today's id (`kind/subject`) of a finding, whose kind may have an older name."""
    kind, slash, subject = identity.partition("/")
    return f"{rename_kind(kind)}{slash}{subject}"
