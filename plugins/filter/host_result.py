# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_result
short_description: Describe in one line what a decommissioning did
version_added: 2.0.0
description:
  - Returns the outcome for one host, with a sentence about what was done, or what would be done
    without check mode.
  - The role P(osops.placement.host_decommission#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The host as M(osops.placement.compute_host_info) returned it at first.
    type: dict
    required: true
  stages:
    description: The stages of the run.
    type: list
    elements: str
    required: true
  check_mode:
    description: Whether the run is in check mode.
    type: bool
    required: true
  now:
    description: The host as it was checked immediately before the changes.
    type: dict
  disabling:
    description: The result of M(osops.placement.compute_host) that disabled its service.
    type: dict
  remediation:
    description: The result of M(osops.placement.orphan_remediate) on the host.
    type: dict
  deletion:
    description: The result of M(osops.placement.compute_host) that deleted it.
    type: dict
  after:
    description: The result of M(osops.placement.compute_host_info) after the changes.
    type: dict
seealso:
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Show what the check found
  osops.placement.orphan_report:
    results:
      - "{{ checked.hosts[0] | osops.placement.host_result(['check'], ansible_check_mode) }}"
"""

RETURN = r"""
_value:
  description: One of the O(osops.placement.orphan_report#module:results) of
    M(osops.placement.orphan_report).
  type: dict
  contains:
    outcome:
      description: One of V(gone), V(deleted), V(cleaned), V(drained), V(disabled),
        V(ready), V(blocked), V(done) and V(failed).
      returned: always
      type: str
      sample: gone
    subject:
      description: The name of the host.
      returned: always
      type: str
      sample: compute-17
    reason:
      description: What was done, or would be done without check mode.
      returned: always
      type: str
      sample: service disabled, 2 leftovers removed, service and 1 provider deleted.
    journal:
      description: The path of the journal that restores the leftovers, or an empty text if there
        is none, or nothing to restore them to.
      returned: always
      type: str
      sample: ""
  sample:
    outcome: ready
    subject: compute-17
    reason: no blockers, 2 removable leftovers; nothing was changed.
    journal: ""
"""

import typing as t
from collections.abc import Collection, Mapping


def host_result(
    before: Mapping[str, t.Any],
    stages: Collection[str],
    check_mode: bool,
    **tasks: Mapping[str, t.Any],
) -> dict[str, str]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._hosts.host_results import describe_host_result

    return describe_host_result(before, tasks, stages, check_mode)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"host_result": host_result}
