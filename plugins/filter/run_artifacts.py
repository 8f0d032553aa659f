# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: run_artifacts
short_description: Build the artifacts that a cleanup run exports
version_added: 2.0.0
description:
  - Returns what a run of the role P(osops.placement.orphan_cleanup#role) hands to the jobs that
    follow it in a workflow, in the form that M(ansible.builtin.set_stats) takes.
  - The artifacts contain numbers, kinds, UUIDs and paths, and no text that a user of the cloud
    chose.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The state of the run, as P(osops.placement.record_stage#filter) returns it.
    type: dict
    required: true
  output_dir:
    description: The folder with the files of the run.
    type: str
    required: true
  check_mode:
    description: Whether the run only predicted its changes.
    type: bool
    required: true
  host:
    description: The inventory host of the run, if the play has several. Then each artifact has its
      contents under C(by_host) and this name.
    type: str
    default: ""
seealso:
  - plugin: osops.placement.record_stage
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Export artifacts for following jobs
  ansible.builtin.set_stats:
    data: "{{ run | osops.placement.run_artifacts(folder, check_mode=ansible_check_mode) }}"
"""

RETURN = r"""
_value:
  description: The artifacts.
  type: dict
  contains:
    orphan_cleanup_run:
      description: The run in numbers, with C(check_mode), C(complete), C(verdicts), C(kinds),
        C(stranded), C(planned), C(outcomes), C(output_dir) and C(journal).
      returned: always
      type: dict
      sample:
        check_mode: true
        planned: 3
    orphan_cleanup_plan:
      description: The compact plan, as M(osops.placement.orphan_plan) returns it in
        RV(osops.placement.orphan_plan#module:compact). An empty text if there is none.
      returned: always
      type: raw
      sample:
        compact: true
        count: 3
  sample:
    orphan_cleanup_run:
      check_mode: true
      planned: 3
    orphan_cleanup_plan:
      compact: true
      count: 3
"""

import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._run import build_artifacts


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"run_artifacts": build_artifacts}
