# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: guest_results
short_description: Describe what a cleanup of hypervisors did
version_added: 2.0.0
description:
  - Returns a line for each domain and directory that was undefined or quarantined on any
    hypervisor, or one line about all of them if nothing was changed.
  - The role P(osops.placement.hypervisor_cleanup#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The result of M(osops.placement.hypervisor_guest_detect).
    type: dict
    required: true
  rounds:
    description: By inventory host, the results of the loop of M(osops.placement.hypervisor_guest)
      over the findings on it. The task of the loop must not fail itself.
    type: dict
    required: true
  kinds:
    description: The kinds of leftovers that may be changed.
    type: list
    elements: str
    required: true
  check_mode:
    description: Whether the run is in check mode.
    type: bool
    required: true
  options:
    description: C(virsh), C(uri) and C(become), with which the leftovers were changed.
    type: dict
    required: true
seealso:
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Show what was quarantined on compute-17
  vars:
    options: {virsh: virsh, uri: "qemu:///system", become: true}
    done: >-
      {{ left | osops.placement.guest_results({'compute-17': loop.results}, kinds,
         ansible_check_mode, options) }}
  osops.placement.orphan_report:
    results: "{{ done.results }}"
    undo: "{{ done.undo or omit }}"
"""

RETURN = r"""
_value:
  description: What became of the leftovers.
  type: dict
  contains:
    results:
      description: The O(osops.placement.orphan_report#module:results) for
        M(osops.placement.orphan_report), failures included.
      returned: always
      type: list
      elements: dict
      sample:
        - outcome: undefined
          subject: compute-17
          reason: domain 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 (web-1), its XML is in
            /var/lib/osops-placement
    undo:
      description: The O(osops.placement.orphan_report#module:undo) for
        M(osops.placement.orphan_report), which restores the first of them. V(null) if nothing was
        changed.
      returned: always
      type: dict
      sample:
    failures:
      description: By inventory host on which changes failed, the C(message) of the failures, and
        the C(results) and the C(undo) of the other changes.
      returned: always
      type: dict
      sample: {}
    kinds:
      description: The kinds of leftovers that were found.
      returned: always
      type: list
      elements: str
      sample:
        - leftover_domain
  sample:
    results:
      - outcome: clean
        subject: 1 hypervisor
        reason: no leftovers.
    undo:
    failures: {}
    kinds: []
"""

import typing as t
from collections.abc import Collection, Iterable, Mapping


def guest_results(
    detected: Mapping[str, t.Any],
    rounds: Mapping[str, Iterable[Mapping[str, t.Any]]],
    kinds: Collection[str],
    check_mode: bool,
    options: Mapping[str, t.Any],
) -> dict[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._hypervisors.guest_results import describe_guest_results

    return describe_guest_results(detected, rounds, kinds, check_mode, options)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"guest_results": guest_results}
