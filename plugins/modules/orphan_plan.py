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

from ..module_utils._common.context import Task
from ..module_utils._core.options.run import LimitOptions, RemediationOptions, StageOptions
from ..module_utils._core.plan.plan import SCOPE_NAMES
from ..module_utils._core.stages.plan import make_plan

TASK = Task(
    make_plan,
    {
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
    },
    required_one_of=[("findings", "plan")],
)


if __name__ == "__main__":
    TASK.run_module()
