# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: leftover_changes
short_description: Count the leftovers that would be quarantined
version_added: 2.0.0
description:
  - Counts the domains and directories of the chosen kinds on all hypervisors, and says whether one
    particular hypervisor may have any of them.
  - The role P(osops.placement.hypervisor_cleanup#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The result of M(osops.placement.hypervisor_guest_detect).
    type: dict
    required: true
  kinds:
    description: The kinds of leftovers that may be changed.
    type: list
    elements: str
    required: true
  host:
    description: The name of the hypervisor in Nova.
    type: str
    required: true
"""

EXAMPLES = r"""
---
- name: Stop when there is too much to quarantine
  vars:
    changes: "{{ left | osops.placement.leftover_changes(['leftover_domain'], 'compute-17') }}"
  ansible.builtin.assert:
    that: changes.count <= 100
"""

RETURN = r"""
_value:
  description: The changes that the detection leads to.
  type: dict
  contains:
    count:
      description: The number of changes on all hypervisors together.
      returned: always
      type: int
      sample: 2
    on_host:
      description:
        - Whether any of the changes is, or may be, on this hypervisor.
        - The module returns the first findings only. If there are more, any hypervisor may have
          some.
      returned: always
      type: bool
      sample: true
  sample:
    count: 2
    on_host: true
"""

import typing as t


def leftover_changes(
    detected: t.Mapping[str, t.Any], kinds: t.Collection[str], host: str
) -> dict[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._hypervisors.guest_results import select_leftover_changes

    return select_leftover_changes(detected, kinds, host)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"leftover_changes": leftover_changes}
