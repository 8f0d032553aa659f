# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All kinds, in the order in which they are tried. Pure.

Ansible ships to a host what is imported by name, so each kind is named here. What proves nothing
imports `models.kinds` instead: it takes a fifth of a second to import all proofs.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping

from ..facts.consumer import ConsumerView
from ..facts.index import SnapshotIndex
from ..models.finding import Decision, Finding
from ..models.kind import CONDITION, Kind
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
    hidden_allocation,
    leaked_child,
    leaked_port,
    misplaced_allocation,
    missing_allocation,
    missing_project,
    missing_provider,
    name_conflict,
    orphaned_provider,
    stale_service,
    stuck_migration,
    stuck_server,
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
    missing_provider,
    hidden_allocation,
    capacity_mismatch,
    uneven_capacity,
    aggregate_mismatch,
    trait_mismatch,
    zone_mismatch,
    unconfirmed_resize,
    stuck_migration,
    unfinished_evacuation,
    stale_service,
    stuck_server,
    missing_project,
    bare_metal_mismatch,
)
KINDS: tuple[Kind, ...] = tuple(file.KIND for file in _FILES)

# The proof about one consumer of each orphan and drift, and the check of a whole snapshot of each
# condition, which yields a finding for everything that is of its kind.
PROOFS: Mapping[str, Callable[[ConsumerView, Policy], Decision | None]] = {
    file.KIND.name: file.prove for file in _FILES if file.KIND.group != CONDITION
}
CHECKS: Mapping[str, Callable[[SnapshotIndex, Policy], Iterator[Finding]]] = {
    file.KIND.name: file.check for file in _FILES if file.KIND.group == CONDITION
}
