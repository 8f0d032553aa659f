# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans the changes that the findings propose, within the limits of a run."""

from __future__ import annotations

import collections
import typing as t

from ..._common.context import Context
from ..._common.errors import BreakerTripped, InvalidInput
from ..._common.json_files import read_json, read_json_option, require_private_folder, write_json
from ..models.change import build_diff
from ..models.placement import sum_amounts
from ..plan.limits import parse_limits
from ..plan.plan import Plan, check_scope, list_servers_to_heal
from ..run.durability import describe_loss, find_loss
from ..run.folder import PLANNED, require_detection, stage_of_run
from ..run.pack import pack_files, read_packed_plan


@stage_of_run(PLANNED)
def make_plan(context: Context) -> dict[str, t.Any]:
    """Return the plan that the options ask for, and whether its journal would be kept."""
    folder = context.options["output_dir"]
    if folder is not None:
        require_private_folder(folder)
    # Nova heals itself: there is no plan of ours for that.
    result = _plan_healing(context) if context.options["heal"] else _plan_changes(context)
    if folder is None:
        return result
    result["output_lost"] = ""
    # Without changes there is no journal, and after a failure none of them is made.
    reason = find_loss(folder) if result["changes"] and not result.get("failed") else ""
    if reason:
        result["output_lost"] = describe_loss(folder, reason, result["changes"])
        # In check mode nothing is changed, and so there is no journal.
        if not context.check_mode:
            context.warn(result["output_lost"])
    return result


def _plan_healing(context: Context) -> dict[str, t.Any]:
    """Return the servers that Nova is to heal."""
    options = context.options
    if options["plan"] is not None:
        raise InvalidInput(
            "heal needs findings and no plan, because nova-manage decides what to write."
        )
    findings = read_json(options["findings"])
    result: dict[str, t.Any] = {"changed": False, "plan": None, "check_mode": context.check_mode}
    try:
        servers = list_servers_to_heal(findings, parse_limits(options))
    except BreakerTripped as error:
        # The servers are not named, so that nothing can heal them.
        return {**result, "changes": error.count, "failed": True, "msg": str(error)}
    return {**result, "changes": len(servers), "servers": servers}


def _plan_changes(context: Context) -> dict[str, t.Any]:
    """Return the plan after its limits were checked."""
    options = context.options
    plan, path = _read_plan(context)
    document = plan.as_dict()
    # Written before the limits are checked, so that a plan that exceeds them can be read.
    if options["dest"]:
        write_json(options["dest"], document)
    changes = [step.change for step in plan.all_steps]
    result: dict[str, t.Any] = {
        "changed": False,
        "plan": path,
        "changes": len(changes),
        "packed": pack_files({"plan": document}),
    }
    if not result["packed"]:
        context.warn(
            f"The plan is too long to be passed to other jobs: apply {path or 'it in one job'}, or "
            "lower orphan_cleanup_max_changes."
        )
    try:
        plan.check_limits(parse_limits(options))
    except BreakerTripped as error:
        # The plan is returned as well: it shows what exceeds the limit.
        return {**result, "failed": True, "msg": str(error)}
    # Added up over all consumers, for a reader who asks what the whole plan is worth.
    return {
        **result,
        "actions": dict(collections.Counter(change.action for change in changes)),
        "frees": sum_amounts([part for each in changes for part in each.frees.values()]),
        "claims": sum_amounts([part for each in changes for part in each.allocates.values()]),
        "diff": build_diff(changes),
    }


def _read_plan(context: Context) -> tuple[Plan, str | None]:
    """Return the plan that was given or is made of findings, and the path of its file."""
    options = context.options
    given, dest = options["plan"], options["dest"]
    if given is None:
        findings = read_json(options["findings"])
        require_detection(context, findings)
        check_scope(findings, options["scope"] or {})
        return Plan.from_findings(findings, options["kinds"]), dest
    if options["findings"]:
        raise InvalidInput(
            "findings and plan are both set, and the plan contains its documents: set one of them."
        )
    packed = read_packed_plan(given)
    if packed is not None:
        plan = Plan.parse(packed)
        # The job that made it may have been allowed to change other kinds than this one.
        plan.check_kinds(options["kinds"])
        return plan, dest
    plan = Plan.parse(read_json_option("plan", given))
    # The plan stays where it is unless dest asks for a copy.
    return plan, given if dest is None and isinstance(given, str) else dest
