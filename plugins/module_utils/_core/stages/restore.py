# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restores what a journal says was removed."""

from __future__ import annotations

import os
import typing as t

from ..._common.folders import require_private_folder
from ..._common.text import require_uuid
from ..changes.outcomes import begin_writing, conclude_run
from ..changes.records import find_deleted_providers, read_restorable
from ..changes.restore import OUTCOMES, RestoreCheck, Restorer, find_restore_steps
from ..changes.tree_restore import TreeRestorer
from ..clients.allocation_writer import AllocationWriter
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..clients.session import CloudContext
from ..models.change import build_diff
from ..options.policy import ExclusionOptions, parse_policy, warn_ended_exclusions
from ..options.run import FailureOptions
from ..plan.limits import MAX_SHARE_APPLIES_ABOVE, parse_limits
from ..run.folder import RESTORED, stage_of_run


@stage_of_run(RESTORED)
def restore_journal(context: CloudContext) -> dict[str, t.Any]:
    """Restore what the journal says was removed, and return the outcome of each change."""
    options = context.options
    max_failures = FailureOptions.max_failures.parse(options["max_failures"])
    limits = parse_limits(options)
    policy = parse_policy({name: options[name] for name in ExclusionOptions.list_options()})
    warn_ended_exclusions(context, policy)
    require_private_folder(options["output_dir"])
    # Checked before the journal is read: a wrong option should fail at once.
    consumers = [require_uuid(text, "consumers:") for text in options["consumers"]]
    # A torn last line is normal after a power cut: its write was never sent.
    records, torn = read_restorable(options["journal"])
    session = context.connect()
    placement = session.placement
    reader = PlacementReader(placement)
    steps = find_restore_steps(records, placement.endpoint, consumers, options["providers"])
    # A fraction of those that were named says nothing, and neither does one of few.
    is_exempt = consumers or options["providers"] or len(steps) <= MAX_SHARE_APPLIES_ABOVE
    # What was removed counts too, or the undo of a cleanup would exceed the limit that this had.
    subjects = {step.subject for step in steps}
    limits.check_count(len(steps), None if is_exempt else reader.count_consumers(subjects), None)
    # All of them, also when only consumers are restored: it explains missing providers.
    deleted = find_deleted_providers(records, placement.endpoint)
    with begin_writing(context, RESTORED, placement.endpoint) as (journal, stopped):
        done = Restorer(
            reader,
            AllocationWriter(placement),
            RestoreCheck(NovaReader(session.compute), policy),
            TreeRestorer(placement, session.compute, journal),
            deleted,
            journal,
            max_failures,
        ).restore(steps, stopped)
        why_stopped = stopped()
    if torn:
        context.warn(
            "The last line of the journal is torn. "
            "Its change was not sent to Placement, so the line is ignored."
        )
    path = os.path.join(options["output_dir"], "restoration.json")
    return {
        **conclude_run(done, OUTCOMES, journal, why_stopped, path, "restored"),
        "restoration": path,
        "torn": torn,
        "diff": build_diff(entry.write for entry in done if entry.changed and entry.write),
    }
