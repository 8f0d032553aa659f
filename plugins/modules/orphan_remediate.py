#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_remediate
short_description: Remove orphaned allocations from the Placement service
version_added: 1.0.0
description:
  - Takes what M(osops.placement.orphan_detect) found and removes exactly that, after proving each finding anew.
  - In order for each finding, the consumer and all that Nova says of it are read again; if anything differs from detection it is skipped.
    Then the journal is written and flushed to disk, then Placement, under the consumer's generation of detection, and then it is read back.
  - In check mode everything happens but the journal and the write.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._policy
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
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
    type: path
    required: true
  kinds:
    description:
      - The kinds of findings that may be changed.
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - forgotten_migration
      - evacuated_source
      - wrong_host
      - unhosted_server
      - forgotten_consumer
    default:
      - deleted_server
      - ended_migration
      - forgotten_migration
      - evacuated_source
      - wrong_host
      - unhosted_server
  max_changes:
    description:
      - How many changes one run may make. With more than that planned, none is made.
    type: int
    default: 100
  max_share:
    description:
      - Which share of all consumers one run may change, as a fraction. With more than that planned, none is made.
      - Counts only above 20 changes, and not for findings of named hosts or consumers.
    type: float
    default: 0.1
  output_dir:
    description:
      - Folder for C(plan.json), C(remediation.json) and the journal. It is made if need be; files have mode 0600.
    type: path
    required: true
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.placement_allocation
"""

EXAMPLES = r"""
---
- name: Find orphaned allocations
  osops.placement.orphan_detect:
    cloud: admin
    dest: /var/lib/placement/findings.json

- name: Remove what deleted servers and ended migrations left behind
  osops.placement.orphan_remediate:
    cloud: admin
    findings: /var/lib/placement/findings.json
    kinds:
      - deleted_server
      - ended_migration
    output_dir: /var/lib/placement
"""

RETURN = r"""
tally:
  description:
    - Number of changes by outcome. In check mode, of those that would be made.
    - V(removed) and V(reduced) count only what was read back from Placement.
  returned: success or when a change failed
  type: dict
  sample:
    removed: 3
    reduced: 1
    skipped: 0
    failed: 0
outcomes:
  description: What became of each planned change, in the order of the plan. At most 200 are returned here; C(remediation.json) has all.
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
      description: V(remove) for the whole consumer, or V(reduce) when some of its shares stay.
      returned: success
      type: str
      sample: remove
    consumer:
      description: UUID of the consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    generation:
      description: Generation of the consumer at detection.
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
    frees:
      description: The amounts given back, by provider and resource class.
      returned: success
      type: dict
      sample:
        f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
          VCPU: 2
    outcome:
      description: V(removed), V(reduced), V(skipped) or V(failed).
      returned: success
      type: str
      sample: removed
    reason:
      description: Why it was skipped or failed, else empty.
      returned: success
      type: str
      sample: ""
plan:
  description: Path of the plan that was followed.
  returned: success or when a change failed
  type: str
  sample: /var/lib/placement/plan.json
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

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._apply import FAILED, OUTCOMES, AllocationWriter, carry_out
from ansible_collections.osops.placement.plugins.module_utils._errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._files import read_json, write_json
from ansible_collections.osops.placement.plugins.module_utils._findings import FORMAT, RETURNED
from ansible_collections.osops.placement.plugins.module_utils._journal import Journal
from ansible_collections.osops.placement.plugins.module_utils._judge import ORPHANS, REMEDIATE
from ansible_collections.osops.placement.plugins.module_utils._module import connection_options, run
from ansible_collections.osops.placement.plugins.module_utils._plan import Limits, check_limits, plan
from ansible_collections.osops.placement.plugins.module_utils._policy import policy, policy_options
from ansible_collections.osops.placement.plugins.module_utils._reading import Reading

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._module import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    options, spare = module.params, policy(module.params)
    findings = read_json(options["findings"])
    session = connect()
    steps, consumers = plan(findings, session.cloud, options["kinds"])
    output = {name: os.path.join(options["output_dir"], f"{name}.json") for name in ("plan", "remediation")}
    write_json(output["plan"], {"format": FORMAT, "cloud": findings["cloud"], "changes": [step.as_dict() for step in steps]})
    check_limits(steps, Limits(options["max_changes"], options["max_share"]), consumers)
    journal = None if module.check_mode else Journal(options["output_dir"])
    outcomes = carry_out(steps, Reading(session), spare, AllocationWriter(session.placement), journal) if steps else []

    tally = {name: sum(outcome.outcome == name for outcome in outcomes) for name in OUTCOMES}
    told = [outcome.as_dict() for outcome in outcomes]
    result = {
        "changed": any(outcome.made for outcome in outcomes),
        "tally": tally,
        "outcomes": told[:RETURNED],
        "journal": journal.path if journal and journal.written else None,
        **output,
    }
    if module._diff:
        made = [outcome.step.change for outcome in outcomes if outcome.made]
        result["diff"] = {side: {change.consumer: getattr(change, side) for change in made} for side in ("before", "after")}
    if tally[FAILED]:
        first = next(outcome.reason for outcome in outcomes if outcome.outcome == FAILED)
        result.update(failed=True, msg=f"{tally[FAILED]} of {len(outcomes)} changes failed. The first: {first}")
    if journal and journal.broken:
        result.update(failed=True, msg=f"{result.get('msg', '')} The journal {journal.path} is not complete.".strip())
    try:
        kept = {"format": FORMAT, "check_mode": module.check_mode, "tally": tally, "journal": result["journal"], "outcomes": told}
        write_json(output["remediation"], kept)
    except InvalidInput as error:
        result.update(failed=True, msg=f"{result.get('msg', '')} The outcomes could not be kept: {error}".strip())
    return result


def main() -> None:
    argument_spec = {
        **connection_options(),
        **policy_options(),
        "findings": {"type": "path", "required": True},
        "kinds": {
            "type": "list",
            "elements": "str",
            "choices": [kind.name for kind in ORPHANS],
            "default": [kind.name for kind in ORPHANS if kind.by_default == REMEDIATE],
        },
        "max_changes": {"type": "int", "default": 100},
        "max_share": {"type": "float", "default": 0.1},
        "output_dir": {"type": "path", "required": True},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
