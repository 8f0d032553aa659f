# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a judged reading leaves for the next one, and when that is not enough. Pure."""

from __future__ import annotations

import dataclasses as d
import json
from collections.abc import Iterable

from ..._common.times import format_duration, is_earlier, seconds_between, shift_time
from ..facts.index import SnapshotIndex
from ..facts.services import get_compute_hosts
from ..models.finding import Finding
from ..models.memory import Memory, RememberedNode
from ..models.placement import Allocations
from ..models.snapshot import Cloud, Scope, Snapshot

# In seconds. Nova's conductors write the times that its API compares, so changes are asked for from
# as long before the reading as their clocks may differ.
_CLOCK_MARGIN = 300


def describe_source(cloud: Cloud, scope: Scope) -> str:
    """Return the cloud and the part of it that a memory is of, as one text."""
    described = d.asdict(scope)
    # A project that gets another name is the same project.
    del described["project_names"]
    # A memory of a version without them is still one of the same part.
    if not scope.also_kinds:
        del described["also_kinds"]
    if scope.groups.is_empty:
        del described["groups"]
    parts = [cloud.placement_endpoint, cloud.compute_endpoint, cloud.region, described]
    return json.dumps(parts, sort_keys=True)


def explain_full_reading(memory: Memory, source: str, now: str, full_every: int) -> str:
    """Return why the whole cloud has to be read in spite of a memory; "" if it has not.

    source: what is read, as `describe_source` returns it.
    full_every: after how many seconds a full reading is due.
    """
    if memory.source != source:
        return "The last reading was of another cloud, region or part of it."
    age = seconds_between(memory.full_at, now)
    # A time in the future is that of a clock that was wrong.
    if age is None or age >= full_every or is_earlier(now, memory.full_at):
        return (
            f"The last full reading began at {memory.full_at or 'an unknown time'}, "
            f"and one is due every {format_duration(full_every)}."
        )
    return ""


def build_memory(index: SnapshotIndex, findings: Iterable[Finding]) -> Memory | None:
    """Return what the next reading has to know of this one.

    findings: all that was concluded from the snapshot of `index`.
    The result is None for a reading that is not sound, or not of every cell: what changed then has
    to be read once more.
    """
    snapshot = index.snapshot
    if index.failed_absence_checks:
        return None
    return Memory(
        source=describe_source(snapshot.cloud, snapshot.scope),
        full_at=snapshot.reading.full_at or snapshot.started_at,
        read_at=snapshot.services.at,
        changes_since=shift_time(
            snapshot.reading.previous_at or snapshot.services.at, -_CLOCK_MARGIN
        ),
        generations={uuid: row.generation for uuid, row in snapshot.providers.items()},
        allocations=_list_known_allocations(snapshot),
        hosts=get_compute_hosts(snapshot.services),
        nodes=tuple(
            RememberedNode(node.uuid, node.host, node.name, node.running_vms)
            for node in index.nodes.values()
        ),
        watched=_list_watched(snapshot, findings),
        has_open_migrations=any(
            not row.ended or row.is_unfinished_evacuation for row in index.migrations.values()
        ),
    )


def _list_known_allocations(snapshot: Snapshot) -> dict[str, Allocations]:
    """Return the allocations of the providers that Placement listed."""
    known: dict[str, Allocations] = {}
    for consumer, allocations in snapshot.allocations.items():
        # A provider that was made during the reading makes the next one a full one.
        listed = {uuid: row for uuid, row in allocations.items() if uuid in snapshot.providers}
        if listed:
            known[consumer] = listed
    return known


def _list_watched(snapshot: Snapshot, findings: Iterable[Finding]) -> frozenset[str]:
    """Return the consumers that have to be looked up again whatever changes.

    With time a finding may become another one without any change.
    """
    evidence = snapshot.evidence
    unread = [uuid for uuid in snapshot.candidates if evidence[uuid].allocation.value is None]
    return frozenset([*(each.consumer for each in findings if each.consumer), *unread])
