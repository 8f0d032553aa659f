# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cloud_runs
short_description: Collect the cleanup runs over several clouds
version_added: 2.0.0
description:
  - Returns what M(osops.placement.orphan_summary) takes as
    O(osops.placement.orphan_summary#module:runs), from the variables that the role
    P(osops.placement.orphan_cleanup#role) left on each inventory host.
  - The playbooks C(osops.placement.cleanup_clouds) and C(osops.placement.detect_clouds) use it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The variables of each inventory host, in the order of the summary.
    type: list
    elements: dict
    required: true
seealso:
  - module: osops.placement.orphan_summary
"""

EXAMPLES = r"""
---
- name: Summarize all clouds
  osops.placement.orphan_summary:
    runs: >-
      {{ ansible_play_hosts_all | map('extract', hostvars) | osops.placement.cloud_runs }}
"""

RETURN = r"""
_value:
  description: One run for each host. A host whose run did not end has an C(error).
  type: list
  elements: dict
  sample:
    - name: north
      region: RegionOne
      shard: ""
      error: ""
      findings: /var/lib/placement/north/findings.json
      remediation: /var/lib/placement/north/remediation.json
"""

import typing as t

from ..plugin_utils._report.run import collect_cloud_runs


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"cloud_runs": collect_cloud_runs}
