# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: record_stage
short_description: Add the result of a stage to the state of a cleanup run
version_added: 2.0.0
description:
  - Returns the state of a run of the role P(osops.placement.orphan_cleanup#role) with the result
    of one more stage.
  - It keeps what later stages use, such as paths and counts, and leaves out the lists that the
    files of the run contain.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The state of the run.
    type: dict
    required: true
  stage:
    description: The name of the stage.
    type: str
    choices:
      - detected
      - planned
      - confirmed
      - remediated
      - interrupted
      - reported
    required: true
  result:
    description: The registered result of the task. A skipped task leaves the state as it is.
    type: dict
    required: true
seealso:
  - module: osops.placement.orphan_result
"""

EXAMPLES = r"""
---
- name: Record the detection
  ansible.builtin.set_fact:
    run: "{{ run | osops.placement.record_stage('detected', result) }}"
"""

RETURN = r"""
_value:
  description: The state of the run, with the kept part of each result under the name of its stage.
  type: dict
  sample:
    by_plan: false
    detects: true
    detected:
      failed: false
      dest: /var/lib/placement/findings.json
"""

import typing as t

from ..plugin_utils._report.run import record_stage


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"record_stage": record_stage}
