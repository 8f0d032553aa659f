# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a run proceeds: how much it may change, and how it shows its progress."""

from __future__ import annotations

from ..._common.options import Dict, Duration, Fraction, Int, List, Options, Path
from ..models.kind import REMEDIATE
from ..models.kinds import CHANGEABLE_KINDS


class RemediationOptions(Options):
    remediate_kinds = List(
        [kind.name for kind in CHANGEABLE_KINDS if kind.by_default == REMEDIATE],
        choices=[kind.name for kind in CHANGEABLE_KINDS],
    )
    """
    The kinds of findings that may be changed. By default, those that are proven and that need no
    choice of the operator.

    V(unreverted_allocation), V(former_provider), V(misplaced_allocation), V(missing_allocation),
    V(wrong_amount) and V(wrong_owner) are allocations of live servers. They are corrected where the
    right allocation is certain.

    V(leaked_port) and V(leaked_child) are parts of such allocations that the server does not need.
    Only they are removed.

    V(unreverted_allocation) is corrected after a resize or cold migration whose guest is proven to
    be at the source. After a live migration it is only reported.

    V(orphaned_provider) and V(name_conflict) are provider trees. They are deleted when they have no
    allocations any more.

    With an empty list, nothing may be changed.
    """


class LimitOptions(Options):
    max_changes = Int(100)
    """
    The maximum number of changes in one run. If more are planned, none is made.

    The shards of a cloud divide this number among them. With 100 changes and eight shards, the
    first four shards may make 13 changes each and the others 12.
    """

    max_share = Fraction(0.1)
    """
    The maximum number of changes in one run, as a fraction of all consumers that were read, from 0
    to 1. If more are planned, none is made. V(0.1) allows changes to 10% of the consumers.

    In a shard, only the consumers that were read for this shard count. After a detection with
    aggregates, availability zones or cells, only the consumers of their hosts count.

    This limit applies only above 20 changes, and not to findings about hosts or consumers that you
    named one by one.
    """


class FailureOptions(Options):
    max_failures = Int(5, lowest=1)
    """
    The run stops after this many failed changes. Changes that were not tried by then are reported
    as C(skipped), with that reason.

    Several changes are made at the same time, so a few more than this number can fail.

    Since 2.0.0.
    """


class StageOptions(Options):
    run = Dict()
    """
    The run of a role that this is a stage of, as M(osops.placement.validate_variables) returns it.

    The stage is recorded in C(run.json) in the folder of the run. It does nothing if an earlier
    stage failed, and its own failure does not fail the task. M(osops.placement.orphan_report) shows
    it.

    Since 3.0.0.
    """


class MemoryOptions(Options):
    full_every = Duration("1d")
    """
    How long after a full reading O(mode=incremental) makes the next one by itself.

    Since 2.0.0.
    """


class SightingOptions(Options):
    min_sightings = Int(1, lowest=1)
    """
    The number of runs that must have seen a finding before it is changed, each time with the same
    kind and at the same generations. Until then the finding is reported, and is not in the plan. By
    default, the first run may change it.

    Runs of the entry point V(detect) and runs with C(--check) count too. O(state) remembers them,
    or else the C(findings.json) of the previous run in O(output_dir). If neither persists from run
    to run, nothing is ever changed.

    O(plan) is applied as it was reviewed, because its findings had been seen often enough when the
    plan was made.

    Since 2.0.0.
    """


class ProgressOptions(Options):
    progress_every = Int(10)
    """
    The number of seconds between two lines that show the progress. V(0) shows no lines, and neither
    does a run that is shorter.

    The lines go to the standard error, for example C(orphan_detect [localhost]: allocations
    640/1000 providers, about 12 s left). The estimate is for the stage that is named.

    They are shown only with the connection C(local), and neither with C(async) nor with C(no_log).

    Since 2.0.0.
    """


class ProgressFileOptions(ProgressOptions):
    progress_path = Path()
    """
    Path of a file in which the module keeps its progress while it runs. Use it to follow a module
    that runs on another machine or with C(async). No lines are shown then.

    The file is JSON, for example C({"stages": [{"name": "allocations", "done": 640, "total": 1000,
    "unit": "providers", "seconds": 21.3}]}). The total is C(null) if it is not known. The list is
    empty between two stages and at the end.

    Since 2.0.0.
    """


class DetectionOptions(ProgressFileOptions, MemoryOptions, SightingOptions, StageOptions):
    """What of the above a detection has."""


class ChangeOptions(ProgressFileOptions, LimitOptions, FailureOptions, StageOptions):
    """What of the above a module has that changes allocations."""
