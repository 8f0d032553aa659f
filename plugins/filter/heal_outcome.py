# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: heal_outcome
short_description: Determine the outcome of healing a server with Nova
version_added: 1.0.0
description:
  - Judges by the results of the tasks that called
    C(nova-manage placement heal_allocations --instance) for one server without an allocation.
    Whatever nova-manage reported, a server is healed only if its allocations afterwards are on its
    own host and nowhere else.
  - The entry point C(heal) of the role P(osops.placement.orphan_cleanup#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description:
      - The result of the task that called nova-manage, also when it failed or the host could not be
        reached.
      - When the task was skipped, the server was not proven to have no allocations.
    type: dict
    required: true
  before:
    description: What M(osops.placement.orphan_detect) returned about the server before the call.
    type: dict
    required: true
  read:
    description: What M(osops.placement.placement_allocation_info) returned about it after the call.
    type: dict
    required: true
  after:
    description: What M(osops.placement.orphan_detect) returned about it after the call.
    type: dict
    required: true
  dry:
    description: Whether nova-manage was called with C(--dry-run). Then O(read) and O(after) are not
      used.
    type: bool
    required: true
seealso:
  - plugin: osops.placement.orphan_cleanup
    plugin_type: role
  - module: osops.placement.orphan_detect
  - module: osops.placement.placement_allocation_info
"""

EXAMPLES = r"""
---
- name: Fail when the server was not healed
  vars:
    healed: >-
      {{ called | osops.placement.heal_outcome(before=before, read=read, after=after, dry=false) }}
  ansible.builtin.assert:
    that: healed.outcome == 'healed'
    fail_msg: "{{ healed.reason }}"
"""

RETURN = r"""
_value:
  description: What became of the server.
  type: dict
  contains:
    outcome:
      description: One of V(healed), V(would be healed), V(skipped) and V(failed).
      returned: always
      type: str
      sample: failed
    changed:
      description: Whether something was changed, or would be.
      returned: always
      type: bool
      sample: false
    reason:
      description: Why, what to do, and what nova-manage said.
      returned: always
      type: str
      sample: The server has a vGPU or a Cyborg device, which Nova cannot heal. Migrate it, which
        allocates again. It has no allocations.
  sample:
    outcome: healed
    changed: true
    reason: Nova wrote the allocation. It now has an allocation on its own host, and no other.
      nova-manage ended with 0 and said nothing.
"""

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._nova_manage import (
    CommandResult,
    DetectionResult,
    ReadResult,
    determine_heal_outcome,
)


def heal_outcome(
    called: CommandResult,
    before: DetectionResult,
    read: ReadResult,
    after: DetectionResult,
    dry: bool,
) -> dict[str, t.Any]:
    return d.asdict(determine_heal_outcome(before, called, read, after, dry))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"heal_outcome": heal_outcome}
