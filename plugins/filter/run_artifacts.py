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
  - The artifacts contain numbers, kinds, UUIDs, versions and paths, and no text that a user of the
    cloud chose.
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
      description: The run in numbers, with C(versions), C(check_mode), C(complete), C(verdicts),
        C(kinds), C(stranded), C(planned), C(changes), C(outcomes), C(output_dir), C(output_lost)
        and C(journal). C(changes) lists the ids of the findings that the plan resolves.
        C(versions) has the texts C(collection), C(ansible_core) and C(openstacksdk), each empty if
        it is not known.
      returned: always
      type: dict
      sample:
        check_mode: true
        planned: 3
    orphan_cleanup_plan:
      description:
        - The compact plan, which M(osops.placement.orphan_plan) returns in
          RV(osops.placement.orphan_plan#module:compact), as one text. Its
          O(osops.placement.orphan_plan#module:plan) takes this text. An empty text if there is no
          plan.
        - It is the same text in the job that receives it, where ansible-core 2.19 and newer take
          other texts for times, numbers or truth values.
        - For one of several hosts, a dictionary with C(by_host), in which C(host) and a space
          precede the name of the host.
      returned: always
      type: raw
      sample: osops.placement.plan:1:eNqrVkrOzy1ITC5RsiopKk3VAXJL84Ac41oAfrQJJA==
  sample:
    orphan_cleanup_run:
      check_mode: true
      planned: 3
    orphan_cleanup_plan: osops.placement.plan:1:eNqrVkrOzy1ITC5RsiopKk3VAXJL84Ac41oAfrQJJA==
"""

import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._run import build_artifacts


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"run_artifacts": build_artifacts}
