#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: placement_allocation
short_description: Create, change and remove allocations in the Placement service
version_added: 1.0.0
description:
  - Sets the allocations of a consumer on resource providers, or removes all or some of them.
  - Every write contains the generation of the consumer, so that Placement refuses the write if
    the consumer has changed meanwhile. The unguarded C(DELETE /allocations) is never used.
  - This module does not check whether an allocation is needed. Use
    M(osops.placement.orphan_detect) to find out which allocations can be removed.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - It compares the change with the inventories and usages of the providers, and fails if
        Placement would refuse it.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  consumer:
    description:
      - UUID of the consumer.
      - Set exactly one of O(consumer) and O(allocations).
    type: str
    aliases:
      - consumer_uuid
  state:
    description:
      - With V(present), the consumer has exactly the allocations in O(resources) afterwards.
        Amounts are changed and other providers are removed as needed.
      - With V(absent), the allocations on O(resource_provider) of O(resource_classes) are
        removed, or all allocations if neither is set.
    type: str
    choices:
      - present
      - absent
    default: present
  resources:
    description:
      - 'The amounts by resource class, by name or UUID of the provider. Required for
        O(state=present). For example V({"compute-18": {"VCPU": 1, "MEMORY_MB": 1024}}).'
    type: dict
  project:
    description:
      - UUID of the project for which the allocation is recorded. Required for a consumer without
        allocations. Otherwise the default is the present project.
    type: str
    aliases:
      - project_id
  user:
    description:
      - UUID of the user for whom the allocation is recorded. Required for a consumer without
        allocations. Otherwise the default is the present user.
    type: str
    aliases:
      - user_id
  consumer_type:
    description:
      - Type of the consumer, for example V(INSTANCE). The default is the present type; consumers
        of Nova have none.
      - This option requires Placement 1.38 or newer.
    type: str
  resource_provider:
    description:
      - Names or UUIDs of the providers on which allocations are removed with O(state=absent). The
        other allocations of the consumer stay. Without it, allocations on all providers are
        removed.
    type: list
    elements: str
  resource_classes:
    description:
      - Resource classes whose amounts are removed with O(state=absent). Without it, all resource
        classes are removed.
    type: list
    elements: str
  consumer_generation:
    description:
      - Generation that the consumer must have; otherwise nothing is changed and the task fails.
        The default is the generation that the module has just read.
    type: int
  allocations:
    description:
      - Several consumers, each at most once and with the options above. They are changed one
        after the other. The task stops at the first consumer that cannot be changed. An empty
        list changes nothing.
    type: list
    elements: dict
    suboptions:
      consumer:
        description:
          - See O(consumer).
        type: str
        required: true
        aliases:
          - consumer_uuid
      state:
        description:
          - See O(state).
        type: str
        choices:
          - present
          - absent
        default: present
      resources:
        description:
          - See O(resources).
        type: dict
      project:
        description:
          - See O(project).
        type: str
        aliases:
          - project_id
      user:
        description:
          - See O(user).
        type: str
        aliases:
          - user_id
      consumer_type:
        description:
          - See O(consumer_type).
        type: str
      resource_provider:
        description:
          - See O(resource_provider).
        type: list
        elements: str
      resource_classes:
        description:
          - See O(resource_classes).
        type: list
        elements: str
      consumer_generation:
        description:
          - See O(consumer_generation).
        type: int
seealso:
  - module: osops.placement.placement_allocation_info
  - module: osops.placement.orphan_remediate
"""

EXAMPLES = r"""
---
- name: Remove the allocation of a consumer on one host and keep the rest
  osops.placement.placement_allocation:
    cloud: admin
    consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    state: absent
    resource_provider: compute-17

- name: Correct the amounts of an allocation
  osops.placement.placement_allocation:
    cloud: admin
    consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    resources:
      compute-18:
        VCPU: 1
        MEMORY_MB: 1024
        DISK_GB: 10

- name: Remove all allocations of two consumers
  osops.placement.placement_allocation:
    cloud: admin
    allocations:
      - consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        state: absent
      - consumer: 0c9c52f6-8f0a-4a38-a61f-0e5e0a1b2c3d
        state: absent
        consumer_generation: 3
"""

RETURN = r"""
allocations:
  description:
    - The allocations of each consumer after the task, or as they would be in check mode, in the
      order of the task.
    - If a write failed, the consumers before it.
  returned: success, or when a write failed
  type: list
  elements: dict
  contains:
    consumer:
      description: UUID of the consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    changed:
      description: Whether the allocations of this consumer were changed.
      returned: success
      type: bool
      sample: true
    generation:
      description: The generation at which the consumer was read, and which a change contains;
        V(null) for a consumer without allocations.
      returned: success
      type: int
      sample: 2
    type:
      description:
        - Type of the consumer; V(null) if it has none, as consumers of Nova.
        - It is always V(null) before Placement 1.38.
      returned: success
      type: str
      sample: INSTANCE
    project:
      description: UUID of the project for which the allocation is recorded.
      returned: success
      type: str
      sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
    user:
      description: UUID of the user for whom the allocation is recorded.
      returned: success
      type: str
      sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
    age:
      description: Seconds since the write before this task, by the clock of Placement; V(null)
        for a consumer without allocations.
      returned: success
      type: int
      sample: 86400
    providers:
      description: The allocations by provider; empty for a consumer without allocations.
      returned: success
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the resource provider.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name of the resource provider; V(null) if it was deleted meanwhile.
          returned: success
          type: str
          sample: compute-17
        root:
          description: UUID of the root of the provider's tree, which is the provider's own UUID
            for a root; V(null) if it was deleted meanwhile.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        resources:
          description: The allocated amounts, by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 1
            MEMORY_MB: 1024
            DISK_GB: 10
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.resources.allocation_writes import write_allocations

_SINGLE: dict[str, dict[str, object]] = {
    "consumer": {"type": "str", "aliases": ["consumer_uuid"]},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "resources": {"type": "dict"},
    "project": {"type": "str", "aliases": ["project_id"]},
    "user": {"type": "str", "aliases": ["user_id"]},
    "consumer_type": {"type": "str"},
    "resource_provider": {"type": "list", "elements": "str"},
    "resource_classes": {"type": "list", "elements": "str"},
    "consumer_generation": {"type": "int"},
}
_OF_SEVERAL = {**_SINGLE, "consumer": {**_SINGLE["consumer"], "required": True}}
TASK = CloudTask(
    write_allocations,
    {**_SINGLE, "allocations": {"type": "list", "elements": "dict", "options": _OF_SEVERAL}},
    required_one_of=[("consumer", "allocations")],
    # state has a default, so it is always set.
    mutually_exclusive=[("allocations", option) for option in _SINGLE if option != "state"],
)


if __name__ == "__main__":
    TASK.run_module()
