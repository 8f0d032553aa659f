# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: heal_outcome
short_description: Determine the outcome for a server that Nova was asked to heal
version_added: 1.0.0
description:
  - Uses the results of the tasks that ran C(nova-manage placement heal_allocations --instance) for
    one server without allocations. Whatever nova-manage reported, the server is healed only if it
    has its allocation on its own host afterwards, and no allocation that it should not have.
  - The entry point C(heal) of the role P(osops.placement.orphan_cleanup#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description:
      - The result of the task that ran nova-manage, also if the task failed or the host could not
        be reached.
      - If the task was skipped, the server was not proven to be without allocations.
    type: dict
    required: true
  before:
    description: The result of M(osops.placement.orphan_detect) for the server before the call.
    type: dict
    required: true
  read:
    description: The result of M(osops.placement.placement_allocation_info) after the call.
    type: dict
    required: true
  after:
    description: The result of M(osops.placement.orphan_detect) after the call.
    type: dict
    required: true
  dry:
    description: Whether nova-manage ran with C(--dry-run). If so, O(read) and O(after) are not
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
  description: The outcome for the server.
  type: dict
  contains:
    outcome:
      description: One of V(healed), V(would be healed), V(skipped) and V(failed).
      returned: always
      type: str
      sample: failed
    changed:
      description: Whether something was changed, or would be with C(--dry-run).
      returned: always
      type: bool
      sample: false
    reason:
      description: The reason, with advice and the output of nova-manage.
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

if t.TYPE_CHECKING:  # pragma: no cover
    from ..plugin_utils._stage.nova_manage import TaskResult


def heal_outcome(
    called: TaskResult,
    before: TaskResult,
    read: TaskResult,
    after: TaskResult,
    dry: bool,
) -> dict[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._stage.nova_manage import determine_heal_outcome

    return d.asdict(determine_heal_outcome(before, called, read, after, dry))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"heal_outcome": heal_outcome}
