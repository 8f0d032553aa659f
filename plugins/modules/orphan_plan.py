#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_plan
short_description: Plan what would be changed in the Placement service
version_added: 1.0.0
description:
  - Makes of what M(osops.placement.orphan_detect) found a plan, which
    M(osops.placement.orphan_remediate) carries out, now or after it was reviewed. Or checks a plan
    that was made before.
  - The plan has for each change the consumer, its generation, the exact document before and after,
    the finding that it settles and the capacity that it frees or takes. Changes that free capacity
    come first.
  - No cloud is asked. What the plan says is proven anew before anything is written.
  - A plan is also told without its documents (RV(compact)), small enough to be handed to a job that
    does not see the files of this one. There its changes are found again.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._limits
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
      - Exactly one of O(findings) and O(plan) is needed, but with a compact O(plan) both.
    type: path
  plan:
    description:
      - A plan that was made before, to be checked and told; its path, or the plan itself.
      - Anything in it that does not agree with the rest is an error.
      - The compact form of a plan (RV(compact)) is checked, and RV(scope) tells what to detect
        anew. With O(findings) of that detection it becomes a plan of exactly the same changes. If
        one of them is found with another document, another generation or under another kind, is
        protected or undecided, or if its consumer holds something and is healthy, the task fails,
        and says so of each. Only what holds nothing any more is left out, and not even that beside
        a tree of providers.
    type: raw
  kinds:
    description:
      - The kinds of findings that may be changed. Only used with O(findings) and with a compact
        O(plan), which may have no other.
      - V(unreverted_allocation), V(misplaced_allocation), V(missing_allocation), V(wrong_amount)
        and V(wrong_owner) are claims of live servers that are put right. They have a change only
        where the right claim is known for certain; anything else is left to C(nova-manage placement
        heal_allocations), and the finding says so. Of V(unreverted_allocation) that is after a
        resize or cold migration whose guest is proven to be at the source; after a live migration
        it is only reported.
      - V(orphaned_provider) and V(name_conflict) are trees of providers that are deleted, once
        nobody holds a share of them any more.
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
      - misplaced_allocation
      - missing_allocation
      - wrong_amount
      - wrong_owner
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
  heal:
    description:
      - Plan no changes of our own, but whom C(nova-manage placement heal_allocations) is to give
        its claim. These are the servers of all selected findings V(missing_allocation), also of
        those that have no change because the right claim cannot be told from here.
      - The same limits hold. Only used with O(findings); O(kinds) and O(dest) are not used then,
        and nothing is written.
    type: bool
    default: false
  dest:
    description:
      - Where to write the plan, with mode 0600. Not needed for a O(plan) that is given by its path.
    type: path
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

- name: Plan to remove what deleted servers and ended migrations left behind
  osops.placement.orphan_plan:
    findings: /var/lib/placement/findings.json
    kinds:
      - deleted_server
      - ended_migration
    dest: /var/lib/placement/plan.json

- name: Plan whom nova-manage is to heal
  osops.placement.orphan_plan:
    findings: /var/lib/placement/findings.json
    heal: true
  register: planned

- name: Check a plan that somebody reviewed
  osops.placement.orphan_plan:
    plan: /var/lib/placement/plan.json
"""

RETURN = r"""
plan:
  description: Path of the plan, or V(null) when it was written nowhere.
  returned: success
  type: str
  sample: /var/lib/placement/plan.json
changes:
  description: Number of planned changes.
  returned: success, or when a limit is exceeded and O(heal) is false
  type: int
  sample: 4
servers:
  description: UUIDs of the servers that are to be healed.
  returned: when O(heal) is true
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
check_mode:
  description: Whether this is only a prediction, and what follows may change nothing either.
  returned: when O(heal) is true
  type: bool
  sample: false
compact:
  description:
    - The plan without its documents, to be handed to another job and given there as O(plan).
    - It has C(format), C(compact), C(placement_endpoint), C(region), C(detected_at), C(consumers),
      C(count), C(changes) and C(digest), the SHA-256 of all the rest. Each of C(changes) has
      C(finding), C(kind), C(consumer), C(generation) (both V(null) for a tree of providers) and
      C(digest), the SHA-256 of the change with its documents.
    - Of a plan with more than 1000 changes, C(changes) is V(null), and it cannot be given as
      O(plan).
  returned: success or when a limit is exceeded, when O(heal) is false
  type: dict
  sample:
    format: 1
    compact: true
    count: 4
scope:
  description: What has to be detected to find the changes of a compact plan again, as options of
    M(osops.placement.orphan_detect).
  returned: when O(plan) is a compact plan
  type: dict
  sample:
    consumers:
      - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kinds: []
gone:
  description: The findings of a compact plan that are left out because their consumers hold nothing
    any more.
  returned: when O(plan) is a compact plan
  type: list
  elements: str
  sample: []
actions:
  description:
    - Number of planned changes by what they do (V(remove), V(reduce), V(rewrite), V(create) or
      V(delete_providers)).
    - Empty for a compact plan without O(findings).
  returned: success, when O(heal) is false
  type: dict
  sample:
    remove: 3
    reduce: 1
frees:
  description: The amounts that all changes together give back, by resource class.
  returned: success, when O(heal) is false; not of a compact O(plan) without O(findings)
  type: dict
  sample:
    VCPU: 12
    MEMORY_MB: 24576
claims:
  description: The amounts that all changes together take anew, by resource class.
  returned: success, when O(heal) is false; not of a compact O(plan) without O(findings)
  type: dict
  sample: {}
records:
  description:
    - What is needed to take each change back, in the shape of the journal's records, so that also
      the log of a job whose machine is lost has it. M(osops.placement.orphan_restore) takes them as
      its O(osops.placement.orphan_restore#module:journal).
    - As many as there are changes, which are at most O(max_changes). None of a compact plan without
      O(findings).
  returned: success, when O(heal) is false
  type: list
  elements: dict
  contains:
    format:
      description: Version of the format of a record.
      returned: success
      type: int
      sample: 1
    at:
      description: When the record was made.
      returned: success
      type: str
      sample: '2026-11-20T03:04:05Z'
    event:
      description: V(planned).
      returned: success
      type: str
      sample: planned
    placement_endpoint:
      description: The Placement service that the change is for.
      returned: success
      type: str
      sample: http://203.0.113.10/placement
    finding:
      description: Id of the finding.
      returned: success
      type: str
      sample: deleted_server/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: Kind of the finding.
      returned: success
      type: str
      sample: deleted_server
    action:
      description: >-
        V(remove) for the whole consumer, V(reduce) when some of its shares stay, V(rewrite),
        V(create) where it held nothing, or V(delete_providers), which has C(providers) instead of
        what follows.
      returned: success
      type: str
      sample: remove
    consumer:
      description: UUID of the consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    generation:
      description: Generation of the consumer at detection, V(null) for one that held nothing.
      returned: success
      type: int
      sample: 2
    before:
      description: The consumer's document as it is, in the shape that C(PUT
        /allocations/{consumer}) takes.
      returned: success
      type: dict
      sample:
        consumer_generation: 2
    after:
      description: The document as it will be.
      returned: success
      type: dict
      sample:
        consumer_generation: 2
        allocations: {}
    partner:
      description: The change of another consumer that is right only together with this one, in the
        same shape; else V(null).
      returned: success
      type: dict
      sample: null
    frees:
      description: The amounts that the change gives back, by provider and resource class.
      returned: success
      type: dict
      sample:
        f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
          VCPU: 2
    claims:
      description: The amounts that the change takes anew, by provider and resource class.
      returned: success
      type: dict
      sample: {}
"""

import collections
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    BreakerTripped,
    InvalidInput,
)
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import (
    read_json,
    read_json_option,
    write_json,
)
from ansible_collections.osops.placement.plugins.module_utils._common.runner import run_offline
from ansible_collections.osops.placement.plugins.module_utils._models.change import build_diff
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CHANGEABLE_KINDS,
    REMEDIATE,
)
from ansible_collections.osops.placement.plugins.module_utils._models.placement import sum_amounts
from ansible_collections.osops.placement.plugins.module_utils._plan.approval import Approval
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    limits_options,
    parse_limits,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.plan import (
    Plan,
    is_compact,
    list_servers_to_heal,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
    PLANNED,
    build_record,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.documents import Unchecked
    from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, TreeStep


def work(module: AnsibleModule) -> dict[str, t.Any]:
    options = module.params
    document = None
    if options["plan"] is not None:
        document = read_json_option("plan", options["plan"])
    # Nova makes these changes itself: there is no plan of ours for them.
    if options["heal"]:
        return _plan_healing(module, document)
    if is_compact(document):
        return _use_compact_plan(module, document)
    if document is None:
        plan = Plan.from_findings(read_json(options["findings"]), options["kinds"])
        return _return_plan(module, plan, options["dest"])
    if options["findings"]:
        raise InvalidInput(
            "findings and plan are both set, and the plan contains its documents: set one of them."
        )
    plan = Plan.parse(document)
    # The plan stays where it is unless dest asks for a copy.
    path = options["dest"]
    if path is None and isinstance(options["plan"], str):
        path = options["plan"]
    return _return_plan(module, plan, path)


def _plan_healing(module: AnsibleModule, document: t.Any) -> dict[str, t.Any]:
    """Return the servers that Nova is to heal."""
    if document is not None:
        raise InvalidInput("heal takes findings and no plan: Nova plans the change itself.")
    findings = read_json(module.params["findings"])
    servers = list_servers_to_heal(findings, parse_limits(module.params))
    return {
        "changed": False,
        "plan": None,
        "changes": len(servers),
        "servers": servers,
        "check_mode": module.check_mode,
    }


def _use_compact_plan(module: AnsibleModule, document: Unchecked) -> dict[str, t.Any]:
    """Check a compact plan, and rebuild the whole plan where there are findings for it."""
    options = module.params
    # Refused before any detection: a second job may have other options than the first.
    approval = Approval.parse(document)
    approval.check_kinds(options["kinds"])
    if options["findings"]:
        plan, gone = approval.rebuild_plan(read_json(options["findings"]))
        return _return_plan(module, plan, options["dest"], scope=approval.scope, gone=gone)
    return {
        "changed": False,
        "plan": None,
        "changes": approval.count,
        "actions": {},
        "records": [],
        "compact": document,
        "scope": approval.scope,
        "gone": [],
    }


def _return_plan(
    module: AnsibleModule, plan: Plan, path: str | None, **extra: t.Any
) -> dict[str, t.Any]:
    """Write the plan, check its limits and return what the module returns.

    extra: what only a compact plan returns.
    """
    # Written before the limits are checked, so that a plan that exceeds them can be read.
    if module.params["dest"]:
        write_json(module.params["dest"], plan.as_dict())
    steps: list[Step | TreeStep] = [*plan.steps, *plan.removals]
    changes = [step.change for step in steps]
    result = {
        "changed": False,
        "plan": path,
        "changes": len(changes),
        "compact": Approval.from_plan(plan).as_dict(),
        **extra,
    }
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
    result["records"] = [build_record(PLANNED, step, plan.placement_endpoint) for step in steps]
    result["frees"] = sum_amounts(freed)
    result["claims"] = sum_amounts(taken)
    if module._diff:
        result["diff"] = build_diff(changes)
    return result


def main() -> None:
    argument_spec = {
        **limits_options(),
        "findings": {"type": "path"},
        "plan": {"type": "raw"},
        "kinds": {
            "type": "list",
            "elements": "str",
            "choices": [kind.name for kind in CHANGEABLE_KINDS],
            "default": [kind.name for kind in CHANGEABLE_KINDS if kind.by_default == REMEDIATE],
        },
        "heal": {"type": "bool", "default": False},
        "dest": {"type": "path"},
    }
    module = AnsibleModule(
        argument_spec,
        supports_check_mode=True,
        required_one_of=[("findings", "plan")],
    )
    run_offline(module, work)


if __name__ == "__main__":
    main()
