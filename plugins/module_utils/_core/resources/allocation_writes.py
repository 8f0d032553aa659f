# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes the allocations of consumers what options say."""

from __future__ import annotations

import typing as t

from ..._common.errors import CapacityRefused, CloudError, InvalidInput, RecordWithoutAllocations
from ..._common.text import require_uuid
from ..clients.allocation_writer import AllocationWriter
from ..clients.placement import PlacementReader
from ..clients.session import CloudContext
from ..models.change import Change, build_body, build_diff
from ..models.placement import Allocation
from .allocations import check_generation, describe_allocation, remove_resources, set_resources

_TARGETS = {"present": set_resources, "absent": remove_resources}


def write_allocations(context: CloudContext) -> dict[str, t.Any]:
    """Write the allocations that differ from the options, and return all of them."""
    entries = context.options["allocations"]
    if entries is None:
        entries = [context.options]
    consumers = [require_uuid(entry["consumer"], "consumer") for entry in entries]
    repeated = {consumer for consumer in consumers if consumers.count(consumer) > 1}
    # The second entry of a consumer would be checked against what the first has not written yet.
    if repeated:
        raise InvalidInput(
            f"allocations has consumer {', '.join(sorted(repeated))} more than once: combine its "
            "entries into one."
        )
    api = context.connect().placement
    # Placement would refuse it only at the write, after those of earlier entries.
    if any(entry["consumer_type"] for entry in entries) and api.newest < (1, 38):
        raise InvalidInput(
            f"consumer_type needs Placement 1.38 or newer, and {api.endpoint} is older."
        )
    placement, writer = PlacementReader(api), AllocationWriter(api)
    providers = placement.list_providers()
    # Nothing is written before all consumers have been read and checked.
    steps = []
    for consumer, entry in zip(consumers, entries, strict=True):
        current = t.cast(Allocation, placement.get_allocation(consumer).value)
        target = _TARGETS[entry["state"]](current, entry, providers)
        # A consumer that has its target already is right, whatever its generation.
        change = Change(consumer, current.generation, build_body(current), build_body(target))
        if change.before != change.after:
            check_generation(current, entry["consumer_generation"])
        steps.append((target, change))

    result: dict[str, t.Any] = {"changed": False, "allocations": []}
    for target, change in steps:
        changed = change.before != change.after
        if changed:
            try:
                _write(writer, change, context.check_mode)
            except CloudError as error:
                # The consumers before this one are written, and must be reported.
                return {**result, "failed": True, "msg": str(error)}
        result["changed"] |= changed
        result["allocations"].append({**describe_allocation(target, providers), "changed": changed})
    return {**result, "diff": build_diff(change for _target, change in steps)}


def _write(writer: AllocationWriter, change: Change, check_mode: bool) -> None:
    """Make a change. Raises CloudError, in check mode too where Placement lacks the capacity."""
    if refusal := writer.foresee([change], check_mode)[0]:
        raise CapacityRefused(refusal)
    if check_mode:
        return
    try:
        writer.replace(change)
    except RecordWithoutAllocations:
        # The consumer is read again, and the write then has the generation of the record.
        writer.replace(change)
