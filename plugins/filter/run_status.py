# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: run_status
short_description: Summarize how a cleanup run went
version_added: 2.0.0
description:
  - Says whether a run of the role P(osops.placement.orphan_cleanup#role) failed, and why.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The state of the run, as P(osops.placement.record_stage#filter) returns it.
    type: dict
    required: true
  fail_on:
    description: What counts as a failure, as in the role's variable C(orphan_cleanup_fail_on).
    type: str
    choices:
      - never
      - error
      - partial
      - undecided
      - findings
    required: true
  check_mode:
    description: Whether the run only predicted its changes. Then all findings are left.
    type: bool
    required: true
  findings_exist:
    description: Whether the file of the findings exists. It matters for a run that does not detect
      its findings itself.
    type: bool
    default: false
seealso:
  - plugin: osops.placement.record_stage
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Fail when the run did not achieve what it had to
  vars:
    status: "{{ run | osops.placement.run_status(fail_on='findings', check_mode=false) }}"
  ansible.builtin.assert:
    that: status.shortfall | length == 0
    fail_msg: "{{ status.shortfall }}"
"""

RETURN = r"""
_value:
  description: The status of the run.
  type: dict
  contains:
    failure:
      description: The messages of all stages that failed. Empty if none failed.
      returned: always
      type: str
      sample: Nova cannot be reached.
    has_findings:
      description: Whether the file of the findings belongs to this run. After a failed detection it
        may be that of an earlier run.
      returned: always
      type: bool
      sample: true
    shortfall:
      description: The reason to fail although no stage failed, such as findings that are left.
        Empty if there is none, and for a run with a reviewed plan.
      returned: always
      type: str
      sample: 2 consumers are undecided, see /var/lib/placement/findings.json.
  sample:
    failure: ""
    has_findings: true
    shortfall: ""
"""

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._run import determine_status


def run_status(
    run: t.Mapping[str, t.Any], fail_on: str, check_mode: bool, findings_exist: bool = False
) -> dict[str, t.Any]:
    return d.asdict(determine_status(run, fail_on, check_mode, findings_exist))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"run_status": run_status}
