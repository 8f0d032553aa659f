# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All kinds, in the order in which they are tried. Pure.

Ansible ships to a host what is imported by name, so each kind is named here.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping

from ..facts.consumer import ConsumerView
from ..facts.index import SnapshotIndex
from ..models.kinds import CONDITION, DRIFT, ORPHAN, REPORT, Kind
from ..models.verdict import Decision, Finding
from ..options.policy import Policy
from . import (
    aggregate_mismatch,
    bare_metal_mismatch,
    capacity_mismatch,
    deleted_migration,
    deleted_server,
    ended_migration,
    evacuated_source,
    extra_host,
    former_provider,
    leaked_child,
    leaked_port,
    misplaced_allocation,
    missing_allocation,
    missing_project,
    name_conflict,
    orphaned_provider,
    stale_service,
    stuck_deletion,
    stuck_migration,
    trait_mismatch,
    unconfirmed_resize,
    uneven_capacity,
    unfinished_evacuation,
    unhosted_server,
    unknown_consumer,
    unreverted_allocation,
    wrong_amount,
    wrong_owner,
    zone_mismatch,
)

Proof = Callable[[ConsumerView, Policy], Decision | None]
Check = Callable[[SnapshotIndex, Policy], Iterator[Finding]]

_FILES: tuple[t.Any, ...] = (
    deleted_server,
    ended_migration,
    deleted_migration,
    evacuated_source,
    extra_host,
    unhosted_server,
    unknown_consumer,
    unreverted_allocation,
    former_provider,
    misplaced_allocation,
    missing_allocation,
    leaked_port,
    wrong_amount,
    wrong_owner,
    leaked_child,
    orphaned_provider,
    name_conflict,
    capacity_mismatch,
    uneven_capacity,
    aggregate_mismatch,
    trait_mismatch,
    zone_mismatch,
    unconfirmed_resize,
    stuck_migration,
    unfinished_evacuation,
    stale_service,
    stuck_deletion,
    missing_project,
    bare_metal_mismatch,
)
KINDS: tuple[Kind, ...] = tuple(file.KIND for file in _FILES)

ORPHAN_KINDS = tuple(kind for kind in KINDS if kind.group == ORPHAN)
DRIFT_KINDS = tuple(kind for kind in KINDS if kind.group == DRIFT)
CONDITION_KINDS = tuple(kind for kind in KINDS if kind.group == CONDITION)
CHANGEABLE_KINDS = tuple(kind for kind in KINDS if kind.by_default != REPORT)
CONSUMER_KINDS = tuple(kind for kind in CHANGEABLE_KINDS if kind.group != CONDITION)

# The proof about one consumer of each orphan and drift, and the check of a whole snapshot of each
# condition, which yields a finding for everything that is of its kind.
PROOFS: Mapping[str, Proof] = {
    file.KIND.name: file.prove for file in _FILES if file.KIND.group != CONDITION
}
CHECKS: Mapping[str, Check] = {
    file.KIND.name: file.check for file in _FILES if file.KIND.group == CONDITION
}

RENAMED_KINDS = {kind.was: kind.name for kind in KINDS if kind.was}


def rename_kind(kind: str) -> str:
    """Return today's name of a kind, which may be named as in an older version."""
    return RENAMED_KINDS.get(kind, kind)


def explain_unresolvable(kind: str) -> str:
    """Return why a change cannot resolve a finding of a kind, as the end of a sentence."""
    if kind in RENAMED_KINDS:
        return f"which was renamed to {RENAMED_KINDS[kind]} in version 2.0.0: make the plan again."
    return "which it cannot resolve."


def rename_finding(identity: str) -> str:
    """Return today's id (`kind/subject`) of a finding, whose kind may have an older name."""
    kind, slash, subject = identity.partition("/")
    return f"{rename_kind(kind)}{slash}{subject}"
