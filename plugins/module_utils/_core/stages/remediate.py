# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes the changes of a plan, each after its proof was renewed."""

from __future__ import annotations

import contextlib
import dataclasses as d
import os
import typing as t

from ..._common.errors import InvalidInput
from ..._common.folders import require_private_file, require_private_folder
from ..._common.json_files import read_json_option
from ..changes.group_check import GroupCheck
from ..changes.journal import read_journal
from ..changes.outcomes import begin_writing, conclude_run, count_outcomes
from ..changes.provider_trees import TreeRemover
from ..changes.remediation import OUTCOMES, Remediation
from ..clients.allocation_writer import AllocationWriter
from ..clients.session import CloudContext, get_sdk_version
from ..models.change import FAILED, build_diff
from ..options.guest_devices import read_guests
from ..options.policy import parse_policy, warn_ended_exclusions
from ..options.run import FailureOptions
from ..plan.limits import parse_limits
from ..plan.plan import Plan, check_cloud
from ..reading.renewal import RenewingCollector
from ..run.folder import REMEDIATED, find_plan, stage_of_run
from ..run.pack import pack_files, read_packed_plan


@stage_of_run(REMEDIATED)
def remediate(context: CloudContext) -> dict[str, t.Any]:
    """Make the changes of the plan, and return the outcome of each."""
    options = context.options
    policy = d.replace(parse_policy(options), guests=read_guests(options["guests"]))
    require_private_folder(options["output_dir"])
    path = os.path.join(options["output_dir"], "remediation.json")
    # The file of an earlier run must not be taken for that of this one, should this one not get to
    # its end.
    with contextlib.suppress(OSError):
        os.unlink(path)
    max_failures = FailureOptions.max_failures.parse(options["max_failures"])
    # An exclusion that has ended protects nothing any more.
    warn_ended_exclusions(context, policy)
    plan = _read_plan(options["plan"] or find_plan(context))
    session = context.connect()
    # These two need no request about any consumer, so they come before the lock.
    check_cloud(plan, session.cloud)
    plan.check_limits(parse_limits(options))
    with begin_writing(context, REMEDIATED, session.placement.endpoint) as (journal, stopped):
        writer = AllocationWriter(session.placement)
        group_check = GroupCheck.read(session, plan.groups)
        reading = RenewingCollector(session, policy.pci_aliases)
        remediation = Remediation(reading, policy, writer, journal, max_failures, group_check)
        outcomes = remediation.run(plan.steps, stopped) if plan.steps else []
        # A tree can be deleted only after the changes before have emptied it.
        remover = TreeRemover(session, policy, journal, max_failures, group_check)
        outcomes += remover.remove_trees(plan.removals, stopped, count_outcomes(outcomes, FAILED))
        why_stopped = stopped()
    result = conclude_run(outcomes, OUTCOMES, journal, why_stopped, path, "made")
    return {
        **result,
        "remediation": path,
        "versions": {"openstacksdk": get_sdk_version()},
        "packed": _pack_journal(context, result["journal"]),
        "diff": build_diff(outcome.step.change for outcome in outcomes if outcome.changed),
    }


def _read_plan(value: t.Any) -> Plan:
    document = read_packed_plan(value)
    if document is None:
        document = read_json_option("plan", value)
        if isinstance(value, str):
            require_private_file(value)
    return Plan.parse(document)


def _pack_journal(context: CloudContext, path: str | None) -> str:
    """Return the journal as following jobs get it, empty if there is none."""
    if path is None:
        return ""
    try:
        records, _torn = read_journal(path)
    except InvalidInput as error:
        # What the run has changed must be reported all the same.
        context.warn(f"The journal cannot be passed on to other jobs. {error}")
        return ""
    packed = pack_files({"journal": records})
    if not packed:
        context.warn(
            f"The journal is too long to be passed on to other jobs: keep {path}, "
            "because nothing can be restored without it."
        )
    return packed
