# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: redeploy_outcome
short_description: Say whether a host that was deployed again is complete
version_added: 2.0.0
description:
  - Puts the results of the tasks together that verified a host, and decides whether the allocations
    of its servers are to be moved from its former provider to its present one. They are moved only
    if every server with an allocation on the former provider is proven to be on the host.
  - The role P(osops.placement.host_decommission#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The result of M(osops.placement.compute_host_restore).
    type: dict
    required: true
  found:
    description: The result of M(osops.placement.orphan_detect) for the provider of the host, also
      if the task failed or was skipped.
    type: dict
    required: true
  discovered:
    description: The result of the task that ran C(nova-manage cell_v2 discover_hosts), also if the
      task was skipped.
    type: dict
    required: true
  rewrite:
    description: Whether the user wants allocations to be moved.
    type: bool
    required: true
seealso:
  - plugin: osops.placement.host_decommission
    plugin_type: role
  - module: osops.placement.compute_host_restore
"""

EXAMPLES = r"""
---
- name: Require that the host is complete
  vars:
    outcome: >-
      {{ restored | osops.placement.redeploy_outcome(found, {'skipped': true}, false) }}
  ansible.builtin.assert:
    that: outcome.complete
    fail_msg: "{{ outcome.results }}"
"""

RETURN = r"""
_value:
  description: The outcome for the host.
  type: dict
  contains:
    results:
      description: A line for each check, as M(osops.placement.orphan_report) takes them as
        C(results).
      returned: always
      type: list
      elements: dict
      sample:
        - subject: host mapping
          outcome: ok
          reason: assigned to a cell
    complete:
      description: Whether nothing is missing, and nothing failed.
      returned: always
      type: bool
      sample: true
    rewriting:
      description: Whether allocations are to be moved.
      returned: always
      type: bool
      sample: false
    former_roots:
      description: The UUIDs of the former providers that are to be removed afterwards.
      returned: always
      type: list
      elements: str
      sample: []
  sample:
    results:
      - subject: host mapping
        outcome: ok
        reason: assigned to a cell
    complete: true
    rewriting: false
    former_roots: []
"""

import dataclasses as d
import typing as t


def redeploy_outcome(
    restored: t.Mapping[str, t.Any],
    found: t.Mapping[str, t.Any],
    discovered: t.Mapping[str, t.Any],
    rewrite: bool,
) -> dict[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._hosts.redeploy import determine_redeploy_outcome

    return d.asdict(determine_redeploy_outcome(restored, found, discovered, rewrite))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"redeploy_outcome": redeploy_outcome}
