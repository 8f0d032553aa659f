#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_remediate
short_description: Carry out a plan of changes in the Placement service
version_added: 1.0.0
description:
  - Takes a plan that M(osops.placement.orphan_plan) made and makes exactly its changes, after
    proving each of them anew. One task is enough for any number of changes.
  - In order for a few changes at a time, the consumers and all that Nova says of them are read
    again; a change of which anything differs from detection is skipped, with the reason. Then the
    consumers are read once more, the journal is written and flushed to disk, then Placement, in one
    atomic request under the generations of detection, and then all is read back.
  - A request that Placement refuses is taken apart, so that only those that moved are skipped.
  - In check mode everything happens but the journal and the write.
  - When it is stopped (SIGTERM, SIGINT, or because Ansible is gone) it ends between two requests,
    and tells what it did so far.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._policy
  - osops.placement._limits
  - osops.placement._failures
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
      - The plan; its path, or the plan itself.
      - One for another cloud, of another format, or with anything in it that does not agree with
        the rest is refused before the first write.
    type: raw
    required: true
  output_dir:
    description:
      - Folder for C(remediation.json) and the journal. It is made if need be; files have mode 0600.
    type: path
    required: true
  lock_timeout:
    description:
      - For how many seconds to wait for another run on this machine that changes the same
        Placement. If it is not over by then, this one fails and nothing is changed.
    type: int
    default: 300
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

- name: Plan to remove what deleted servers and ended migrations left behind
  osops.placement.orphan_plan:
    findings: /var/lib/placement/findings.json
    kinds:
      - deleted_server
      - ended_migration
    dest: /var/lib/placement/plan.json

- name: Remove it
  osops.placement.orphan_remediate:
    cloud: admin
    plan: /var/lib/placement/plan.json
    output_dir: /var/lib/placement
"""

RETURN = r"""
tally:
  description:
    - Number of changes by outcome. In check mode, of those that would be made.
    - V(removed), V(reduced), V(rewritten) and V(created) count only what was read back from
      Placement.
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
  description: What became of each planned change, in the order of the plan. At most 200 are
    returned here; C(remediation.json) has all.
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
      description: >-
        V(remove) for the whole consumer, V(reduce) when some of its shares stay, V(rewrite),
        V(create) where it held nothing, or V(delete_providers), which has C(providers), each with
        C(uuid), C(name), C(generation) and C(parent), instead of what follows up to
        RV(outcomes[].claims).
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
      description: The consumer's document as it was, in the shape that C(PUT /allocations) takes.
      returned: success
      type: dict
      sample:
        consumer_generation: 2
    after:
      description: The document that was written.
      returned: success
      type: dict
      sample:
        consumer_generation: 2
        allocations: {}
    partner:
      description: The change of another consumer that is made together with this one, in the same
        shape; else V(null).
      returned: success
      type: dict
      sample: null
    frees:
      description: The amounts given back, by provider and resource class.
      returned: success
      type: dict
      sample:
        f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
          VCPU: 2
    claims:
      description: The amounts taken anew, by provider and resource class.
      returned: success
      type: dict
      sample: {}
    outcome:
      description: V(removed), V(reduced), V(rewritten), V(created), V(skipped) or V(failed).
      returned: success
      type: str
      sample: removed
    reason:
      description: Why it was skipped or failed, else empty.
      returned: success
      type: str
      sample: ""
stopped:
  description: Why the run ended before its end, empty when it did not.
  returned: success or when a change failed
  type: str
  sample: ""
remediation:
  description: Path of the file with the tally and all outcomes.
  returned: success or when a change failed
  type: str
  sample: /var/lib/placement/remediation.json
journal:
  description: Path of the journal, or V(null) when nothing was written to Placement.
  returned: success or when a change failed
  type: str
  sample: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
"""

import contextlib
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.allocation_writer import (
    AllocationWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.collector import Collector
from ansible_collections.osops.placement.plugins.module_utils._collector.policy import (
    parse_policy,
    policy_options,
    warn_ended_exclusions,
)
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import (
    read_json_option,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    FAILED,
    build_diff,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    failures_option,
    limits_options,
    parse_limits,
    parse_max_failures,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.plan import Plan, check_cloud
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import Journal
from ansible_collections.osops.placement.plugins.module_utils._remediation.lock import acquire_lock
from ansible_collections.osops.placement.plugins.module_utils._remediation.outcomes import (
    conclude_run,
    count_outcomes,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.provider_trees import (
    TreeRemover,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.remediation import (
    OUTCOMES,
    Remediation,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.signals import (
    watch_for_stop,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Make the changes of the plan, and return the outcome of each."""
    params, policy = module.params, parse_policy(module.params)
    path = os.path.join(params["output_dir"], "remediation.json")
    # The file of an earlier run must not be taken for that of this one, should this one not get to
    # its end.
    with contextlib.suppress(OSError):
        os.unlink(path)
    max_failures = parse_max_failures(params)
    # An exclusion that has ended protects nothing any more.
    warn_ended_exclusions(module, policy)
    plan = Plan.parse(read_json_option("plan", params["plan"]))
    session = connect()
    # These two need no request about any consumer, so they come before the lock.
    check_cloud(plan, session.cloud)
    plan.check_limits(parse_limits(params))
    endpoint = session.placement.endpoint
    # Without a journal nothing below can write.
    journal = None if module.check_mode else Journal(params["output_dir"], endpoint)
    with (
        watch_for_stop() as stopped,
        acquire_lock(endpoint, params["lock_timeout"], stopped, journal is not None),
    ):
        writer = AllocationWriter(session.placement)
        remediation = Remediation(Collector(session), policy, writer, journal, max_failures)
        outcomes = remediation.run(plan.steps, stopped) if plan.steps else []
        # A tree can be deleted only after the changes before have emptied it.
        remover = TreeRemover(session, policy, journal, max_failures)
        outcomes += remover.remove_trees(plan.removals, stopped, count_outcomes(outcomes, FAILED))
        why_stopped = stopped()

    result = conclude_run(outcomes, OUTCOMES, journal, why_stopped, path, "made")
    result["remediation"] = path
    if module._diff:
        result["diff"] = build_diff(outcome.step.change for outcome in outcomes if outcome.changed)
    return result


def main() -> None:
    argument_spec = {
        **connection_options(),
        **policy_options(),
        **limits_options(),
        **failures_option(),
        "plan": {"type": "raw", "required": True},
        "output_dir": {"type": "path", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
