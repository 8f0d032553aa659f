#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_remediate
short_description: Make the planned changes in the Placement service
version_added: 1.0.0
description:
  - Makes exactly the changes of a plan that M(osops.placement.orphan_plan) made, after proving
    each of them again. One task is enough for any number of changes.
  - The changes are made a few at a time. First, the consumers and everything that Nova knows
    about them are read again, and a change for which anything differs from detection is skipped,
    with the reason. Then the consumers are read once more, the journal is flushed to disk, one
    atomic request with the generations seen at detection is sent to Placement, and the result is
    read back.
  - If Placement refuses a request, its changes are sent separately, so that only the changes of
    consumers that have changed are skipped.
  - Placement checks the capacity of everything that a consumer has after a change. A change that
    it would refuse for that is not sent, and is C(blocked); the reason names provider, inventory
    and allocation ratio. It counts neither as a failure nor for O(max_failures).
  - In check mode, everything is done except writing the journal and Placement.
  - If the run is stopped (by SIGTERM or SIGINT, or because Ansible has ended), it ends between
    two requests and returns what it has done so far.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.progress
  - osops.placement._options.policy
  - osops.placement._options.guests
  - osops.placement._options.limits
  - osops.placement._options.failures
  - osops.placement._options.run
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  plan:
    description:
      - 'The plan: its path, the plan itself, or the pack that M(osops.placement.orphan_plan)
        returned. It is required without O(run), which has one.'
      - A plan that was edited, a plan for another cloud or in another format, and one whose parts
        contradict each other are refused before the first write.
    type: raw
  output_dir:
    description:
      - Directory for C(remediation.json) and the journal. The module creates it if it does not
        exist; the files have mode 0600.
    type: path
    required: true
  lock_timeout:
    description:
      - How many seconds to wait for another run on this machine that changes the same Placement.
        If that run has not ended by then, this task fails and changes nothing.
    type: int
    default: 300
  export_journal:
    description:
      - Whether to export the journal to the jobs that follow, as M(ansible.builtin.set_stats)
        would, as the artifact C(orphan_cleanup_journal). Then RV(packed) is empty.
      - A failed task exports nothing, so set C(failed_when) to V(false) and fail later.
    type: bool
    default: false
    version_added: 2.0.0
  export_host:
    description:
      - The inventory host for which to export the journal, if the play has several.
    type: str
    default: ''
    version_added: 2.0.0
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_plan
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

- name: Make the planned changes
  osops.placement.orphan_remediate:
    cloud: admin
    plan: /var/lib/placement/plan.json
    output_dir: /var/lib/placement
"""

RETURN = r"""
tally:
  description:
    - Number of changes by outcome; in check mode, of the changes that would be made.
    - V(removed), V(reduced), V(rewritten) and V(created) count only changes that were
      read back from Placement.
    - V(blocked) is there only if it is not zero.
  returned: success or when a change failed
  type: dict
  sample:
    removed: 3
    reduced: 1
    rewritten: 0
    created: 0
    skipped: 0
    failed: 0
outcomes:
  description: The outcome of each planned change, in the order of the plan. At most 200 are
    returned here; C(remediation.json) has all of them.
  returned: success or when a change failed
  type: list
  elements: dict
  contains:
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
      description: V(remove) if all allocations of the consumer are removed, V(reduce) if some of
        them stay, V(rewrite) if they are replaced, V(create) if the consumer had none, or
        V(delete_providers) for a tree of providers, which has C(providers) and none of the
        following fields.
      returned: success
      type: str
      sample: remove
    consumer:
      description: UUID of the consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    generation:
      description: Generation of the consumer at detection; V(null) for a consumer without
        allocations.
      returned: success
      type: int
      sample: 2
    before:
      description: The allocations of the consumer before the change, in the format of C(PUT
        /allocations/{consumer}).
      returned: success
      type: dict
      sample:
        consumer_generation: 2
        allocations: {}
        project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
        user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
      contains:
        allocations:
          description: The amounts by provider UUID, each as C(resources) with the amounts by
            resource class.
          returned: success
          type: dict
          sample: {}
        consumer_generation:
          description: Generation of the consumer at detection; V(null) for a consumer without
            allocations.
          returned: success
          type: int
          sample: 2
        project_id:
          description: UUID of the project.
          returned: success
          type: str
          sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
        user_id:
          description: UUID of the user.
          returned: success
          type: str
          sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        consumer_type:
          description: Type of the consumer. It is missing for a consumer without a type.
          returned: success
          type: str
          sample: INSTANCE
    after:
      description: The allocations of the consumer after the change, in the same format.
      returned: success
      type: dict
      sample:
        consumer_generation: 2
        allocations: {}
        project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
        user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
      contains:
        allocations:
          description: The amounts by provider UUID, each as C(resources) with the amounts by
            resource class.
          returned: success
          type: dict
          sample: {}
        consumer_generation:
          description: Generation of the consumer at detection; V(null) for a consumer without
            allocations.
          returned: success
          type: int
          sample: 2
        project_id:
          description: UUID of the project.
          returned: success
          type: str
          sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
        user_id:
          description: UUID of the user.
          returned: success
          type: str
          sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        consumer_type:
          description: Type of the consumer. It is missing for a consumer without a type.
          returned: success
          type: str
          sample: INSTANCE
    partner:
      description: The change of another consumer that must be made in the same request, with the
        fields of a change; otherwise V(null).
      returned: success
      type: dict
      sample: null
    frees:
      description: The amounts that the change frees, by provider UUID and resource class.
      returned: success
      type: dict
      sample:
        f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
          VCPU: 2
    claims:
      description: The amounts that the change allocates, by provider UUID and resource class.
      returned: success
      type: dict
      sample: {}
    outcome:
      description: V(removed), V(reduced), V(rewritten), V(created), V(skipped),
        V(blocked) or V(failed).
      returned: success
      type: str
      sample: removed
    reason:
      description: Why the change was skipped, blocked or failed; otherwise empty.
      returned: success
      type: str
      sample: ''
    reason_id:
      description: The ID of the reason, empty without one, from docs/reasons.md of the collection.
      returned: success
      type: str
      sample: ''
      version_added: 3.0.0
    providers:
      description: The providers to delete, children first. Only an action V(delete_providers) has
        them.
      returned: success
      type: list
      elements: dict
      version_added: 2.0.0
      contains:
        uuid:
          description: UUID of the provider.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name of the provider.
          returned: success
          type: str
          sample: compute-17
        generation:
          description: Generation of the provider at detection.
          returned: success
          type: int
          sample: 54
        parent:
          description: UUID of its parent provider; V(null) for the root.
          returned: success
          type: str
      sample: []
stopped:
  description: Why the run ended early; empty if it did not.
  returned: success or when a change failed
  type: str
  sample: ''
remediation:
  description: Path of the file with the tally and all outcomes.
  returned: success or when a change failed
  type: str
  sample: /var/lib/placement/remediation.json
journal:
  description: Path of the journal; V(null) if nothing was written to Placement.
  returned: success or when a change failed
  type: str
  sample: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
packed:
  description:
    - A pack, which is the journal as one text without spaces, for the option
      O(osops.placement.orphan_restore#module:journal) in another job. It begins with
      C(osops.placement.run), and has a SHA-256.
    - Empty if nothing was written to Placement, and if the text would have more than 400 000
      characters. Then a warning says so.
  returned: success or when a change failed
  type: str
  sample: osops.placement.run:1:9f86d081…:eNrT0yMAAGTvBe8
  version_added: 3.0.0
versions:
  description: The version of C(openstacksdk) where the module ran.
  returned: success or when a change failed
  type: dict
  version_added: 3.0.0
  contains:
    openstacksdk:
      description: Its version.
      returned: success or when a change failed
      type: str
      sample: 4.22.0
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.guest_devices import GuestOptions
from ..module_utils._core.options.policy import PolicyOptions
from ..module_utils._core.options.run import ChangeOptions
from ..module_utils._core.stages.remediate import remediate

TASK = CloudTask(
    remediate,
    {
        **ChangeOptions.build_spec(),
        **PolicyOptions.build_spec(),
        **GuestOptions.build_spec(),
        "plan": {"type": "raw"},
        "output_dir": {"type": "path", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
        # The action plugin does what these ask for.
        "export_journal": {"type": "bool", "default": False},
        "export_host": {"type": "str", "default": ""},
    },
    required_one_of=[("plan", "run")],
)


if __name__ == "__main__":
    TASK.run_module()
