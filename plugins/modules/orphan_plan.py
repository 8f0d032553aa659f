#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_plan
short_description: Plan the changes to the Placement service
version_added: 1.0.0
description:
  - Makes a plan from the findings of M(osops.placement.orphan_detect), or checks a plan that was
    made before. M(osops.placement.orphan_remediate) makes the changes of the plan, immediately or
    after a review.
  - For each change, the plan has the consumer, its generation, the exact documents before and
    after, the finding that the change resolves, and the capacity that it frees or allocates.
    Changes that free capacity come first.
  - This module sends no request to any cloud. Everything in the plan is proven again before
    anything is written.
  - The plan is also returned as one text (RV(packed)), for a job that cannot read the files of
    this job.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.limits
  - osops.placement._options.run
  - osops.placement._attributes
attributes:
  check_mode:
    support: full
    details: The plan is written in check mode too.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
      - Set exactly one of O(findings) and O(plan).
    type: path
  plan:
    description:
      - 'A plan that was made before: its path, or the plan itself. The module checks it and
        returns its contents.'
      - It can also be a pack (RV(packed)), which a run of the role
        P(osops.placement.orphan_cleanup#role) exports as the artifact C(orphan_cleanup_plan).
      - A plan that was edited, or whose parts contradict each other, is an error.
    type: raw
  kinds:
    description:
      - The kinds of findings that may be changed. They are used with O(findings) and with a pack,
        whose plan may have no other kinds.
      - V(unreverted_allocation), V(former_provider), V(misplaced_allocation),
        V(missing_allocation), V(wrong_amount) and V(wrong_owner) correct allocations of live
        servers. They have a change only if the correct allocation is certain. Otherwise the
        finding says what to do. V(leaked_port) and V(leaked_child) remove the part of such an
        allocation that the server does not need. V(unreverted_allocation) has a change only after
        a resize or cold migration whose guest is proven to be on the source; after a live migration
        it is only reported.
      - V(orphaned_provider) and V(name_conflict) delete provider trees once they have no
        allocations.
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
      - orphaned_provider
      - name_conflict
    default:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unreverted_allocation
  scope:
    description:
      - What the findings may be about. The task fails if O(findings) were detected for anything
        else as well, because a plan of them would change more than is named here.
      - An empty list limits nothing. Use it only with O(findings).
    type: dict
    version_added: 2.0.0
    suboptions:
      hosts:
        description: The O(osops.placement.orphan_detect#module:hosts) of the detection.
        type: list
        elements: str
      consumers:
        description: The O(osops.placement.orphan_detect#module:consumers) of the detection.
        type: list
        elements: str
      projects:
        description: The O(osops.placement.orphan_detect#module:projects) of the detection.
        type: list
        elements: str
      kinds:
        description: The O(osops.placement.orphan_detect#module:kinds) of the detection.
        type: list
        elements: str
      aggregates:
        description: The O(osops.placement.orphan_detect#module:aggregates) of the detection.
        type: list
        elements: str
      availability_zones:
        description: The O(osops.placement.orphan_detect#module:availability_zones) of the
          detection.
        type: list
        elements: str
      cells:
        description: The O(osops.placement.orphan_detect#module:cells) of the detection.
        type: list
        elements: str
  heal:
    description:
      - Plan which servers C(nova-manage placement heal_allocations) should heal, instead of
        changes by this collection. These are the servers of all selected findings
        V(missing_allocation), including those without a change because the correct allocation is
        not certain.
      - The same limits apply. Use this option only with O(findings). O(kinds) and O(dest) are
        ignored, and no file is written.
    type: bool
    default: false
  dest:
    description:
      - Path of the file to which the plan is written, with mode 0600. It is not needed if O(plan)
        is a path.
    type: path
  output_dir:
    description:
      - Directory in which M(osops.placement.orphan_remediate) will write the journal of these
        changes. If it does not outlive this job, for example because it is inside the container
        of the job, a warning says so, and RV(output_lost) has its text.
    type: path
    version_added: 2.0.0
  show:
    description:
      - Whether to show each change of the plan on the terminal, in one line. Names come from
        O(findings), or from C(findings.json) in O(output_dir) if the plan was made of it.
    type: bool
    default: false
    version_added: 2.0.0
notes:
  - With a local connection, this module runs in the process of Ansible itself, which saves the time
    to start another one. It is sent to the host as any module is if O(plan) is the plan itself, or
    the task has C(become), C(async) or C(environment).
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_remediate
  - module: osops.placement.orphan_restore
"""

EXAMPLES = r"""
---
- name: Find orphaned allocations
  osops.placement.orphan_detect:
    cloud: admin
    dest: /var/lib/placement/findings.json

- name: Plan to remove the allocations of deleted servers and ended migrations
  osops.placement.orphan_plan:
    findings: /var/lib/placement/findings.json
    kinds:
      - deleted_server
      - ended_migration
    dest: /var/lib/placement/plan.json

- name: Plan which servers nova-manage should heal
  osops.placement.orphan_plan:
    findings: /var/lib/placement/findings.json
    heal: true
  register: planned

- name: Check a reviewed plan
  osops.placement.orphan_plan:
    plan: /var/lib/placement/plan.json
"""

RETURN = r"""
plan:
  description: Path of the plan; V(null) if the plan was not written to a file.
  returned: success
  type: str
  sample: /var/lib/placement/plan.json
changes:
  description: Number of planned changes, or with O(heal) the number of servers to heal.
  returned: success, or when a limit is exceeded
  type: int
  sample: 4
servers:
  description: UUIDs of the servers that C(nova-manage placement heal_allocations) should heal.
  returned: success, when O(heal) is true
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
check_mode:
  description: Whether the task ran in check mode, so that the following tasks must not change
    anything either.
  returned: success or when a limit is exceeded, when O(heal) is true
  type: bool
  sample: false
packed:
  description:
    - A pack, which is the whole plan as one text without spaces. It begins with
      C(osops.placement.run), and has a SHA-256. Another job takes it as O(plan).
    - M(osops.placement.orphan_restore) takes it as its
      O(osops.placement.orphan_restore#module:journal) if the machine is lost during the changes.
      Such a restoration does not know what a deleted tree had.
    - Empty for a plan of about 3000 changes or more, whose pack would have more than 400 000
      characters. Then a warning says so.
  returned: success or when a limit is exceeded, when O(heal) is false
  type: str
  sample: osops.placement.run:1:9f86d081…:eNrT0yMAAGTvBe8
  version_added: 3.0.0
actions:
  description:
    - 'Number of planned changes by action: V(remove), V(reduce), V(rewrite), V(create) or
      V(delete_providers).'
  returned: success, when O(heal) is false
  type: dict
  sample:
    remove: 3
    reduce: 1
frees:
  description: The amounts that all changes together free, by resource class.
  returned: success, when O(heal) is false
  type: dict
  sample:
    VCPU: 12
    MEMORY_MB: 24576
claims:
  description: The amounts that all changes together allocate, by resource class.
  returned: success, when O(heal) is false
  type: dict
  sample: {}
output_lost:
  description: A sentence that says why O(output_dir) does not outlive this job, and what to do.
    Empty if it does, and if there is nothing to change.
  returned: when O(output_dir) is set
  type: str
  sample: ''
  version_added: 2.0.0
"""

import collections
import typing as t
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import BreakerTripped, InvalidInput
from ..module_utils._common.folders import require_private_folder
from ..module_utils._common.json_files import read_json, read_json_option, write_json
from ..module_utils._common.runner import run_offline
from ..module_utils._core.changes.durability import describe_loss, find_loss
from ..module_utils._core.models.change import build_diff
from ..module_utils._core.models.placement import sum_amounts
from ..module_utils._core.options.run import LimitOptions, RemediationOptions, StageOptions
from ..module_utils._core.plan.limits import parse_limits
from ..module_utils._core.plan.plan import SCOPE_NAMES, Plan, check_scope, list_servers_to_heal
from ..module_utils._core.run.folder import PLANNED, require_detection, stage_of_run
from ..module_utils._core.run.pack import pack_files, read_packed_plan


@stage_of_run(PLANNED)
def work(module: AnsibleModule) -> dict[str, t.Any]:
    folder = module.params["output_dir"]
    if folder is not None:
        require_private_folder(folder)
    result = _make_plan(module)
    if folder is None:
        return result
    result["output_lost"] = ""
    # Without changes there is no journal, and after a failure none of them is made.
    if result["changes"] == 0 or result.get("failed"):
        return result
    return _check_output_dir(module, result)


def _check_output_dir(module: AnsibleModule, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the result with what it has to say about a folder that does not outlive the job."""
    path = module.params["output_dir"]
    reason = find_loss(path)
    if not reason:
        return result
    sentence = describe_loss(path, reason, result["changes"])
    # In check mode nothing is changed, and so there is no journal.
    if not module.check_mode:
        module.warn(sentence)
    return {**result, "output_lost": sentence}


def _make_plan(module: AnsibleModule) -> dict[str, t.Any]:
    options = module.params
    # Nova makes these changes itself: there is no plan of ours for them.
    if options["heal"]:
        return _plan_healing(module)
    if options["plan"] is None:
        findings = read_json(options["findings"])
        require_detection(module, findings)
        check_scope(findings, options["scope"] or {})
        plan = Plan.from_findings(findings, options["kinds"])
        return _return_plan(module, plan, options["dest"])
    if options["findings"]:
        raise InvalidInput(
            "findings and plan are both set, and the plan contains its documents: set one of them."
        )
    path = options["dest"]
    packed = read_packed_plan(options["plan"])
    if packed is not None:
        plan = Plan.parse(packed)
        # The job that made it may have been allowed to change other kinds than this one.
        plan.check_kinds(options["kinds"])
        return _return_plan(module, plan, path)
    plan = Plan.parse(read_json_option("plan", options["plan"]))
    # The plan stays where it is unless dest asks for a copy.
    if path is None and isinstance(options["plan"], str):
        path = options["plan"]
    return _return_plan(module, plan, path)


def _plan_healing(module: AnsibleModule) -> dict[str, t.Any]:
    """Return the servers that Nova is to heal."""
    if module.params["plan"] is not None:
        raise InvalidInput(
            "heal needs findings and no plan, because nova-manage decides what to write."
        )
    findings = read_json(module.params["findings"])
    result: dict[str, t.Any] = {
        "changed": False,
        "plan": None,
        "check_mode": module.check_mode,
    }
    try:
        servers = list_servers_to_heal(findings, parse_limits(module.params))
    except BreakerTripped as error:
        # The servers are not named, so that nothing can heal them.
        return {**result, "changes": error.count, "failed": True, "msg": str(error)}
    return {**result, "changes": len(servers), "servers": servers}


def _return_plan(module: AnsibleModule, plan: Plan, path: str | None) -> dict[str, t.Any]:
    """Write the plan, check its limits and return what the module returns."""
    document = plan.as_dict()
    # Written before the limits are checked, so that a plan that exceeds them can be read.
    if module.params["dest"]:
        write_json(module.params["dest"], document)
    changes = [step.change for step in plan.all_steps]
    result: dict[str, t.Any] = {
        "changed": False,
        "plan": path,
        "changes": len(changes),
        "packed": pack_files({"plan": document}),
    }
    if not result["packed"]:
        module.warn(
            f"The plan is too long to be passed to other jobs: apply {path or 'it in one job'}, or "
            "lower orphan_cleanup_max_changes."
        )
    try:
        plan.check_limits(parse_limits(module.params))
    except BreakerTripped as error:
        # The plan is returned as well: it shows what exceeds the limit.
        return {**result, "failed": True, "msg": str(error)}
    # Added up over all consumers, for a reader who asks what the whole plan is worth.
    freed: list[Mapping[str, int]] = []
    taken: list[Mapping[str, int]] = []
    for change in changes:
        freed += change.frees.values()
        taken += change.allocates.values()
    result["actions"] = dict(collections.Counter(change.action for change in changes))
    result["frees"] = sum_amounts(freed)
    result["claims"] = sum_amounts(taken)
    if module._diff:
        result["diff"] = build_diff(changes)
    return result


REQUIRED_ONE_OF = [("findings", "plan")]


def build_argument_spec() -> dict[str, dict[str, t.Any]]:
    return {
        **LimitOptions.build_spec(),
        **StageOptions.build_spec(),
        "findings": {"type": "path"},
        "plan": {"type": "raw"},
        "kinds": RemediationOptions.remediate_kinds.build_spec(),
        "scope": {
            "type": "dict",
            "options": {name: {"type": "list", "elements": "str"} for name in SCOPE_NAMES},
        },
        "heal": {"type": "bool", "default": False},
        "dest": {"type": "path"},
        "output_dir": {"type": "path"},
        # The action plugin shows it.
        "show": {"type": "bool", "default": False},
    }


def main() -> None:
    module = AnsibleModule(
        build_argument_spec(), supports_check_mode=True, required_one_of=REQUIRED_ONE_OF
    )
    run_offline(module, work)


if __name__ == "__main__":
    main()
