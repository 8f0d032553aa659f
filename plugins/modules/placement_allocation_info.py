#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: placement_allocation_info
short_description: Show allocations in the Placement service
version_added: 1.0.0
description:
  - Returns the allocations of consumers on resource providers.
  - A consumer is a server or a migration of Nova, or a consumer of another service that makes
    allocations in Placement.
  - Consumers without allocations are left out of the result and are not an error. A resource
    provider that Placement does not know is an error.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  consumer:
    description:
      - UUIDs of the consumers to show. Anything else is refused.
      - With O(resource_provider), show only those of them that have an allocation there.
    type: list
    elements: str
    aliases:
      - consumer_uuid
  resource_provider:
    description:
      - Names or UUIDs of resource providers. Show every consumer that has an allocation on one of
        them or on another provider of their trees.
    type: list
    elements: str
notes:
  - Without O(consumer) and O(resource_provider), all allocations of the cloud are returned. This
    takes one request for each provider and one for each consumer, because only that request
    returns its project, user, type and age.
seealso:
  - module: osops.placement.placement_allocation
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: Show the allocations of one server
  osops.placement.placement_allocation_info:
    cloud: admin
    consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11

- name: Show all allocations on two hosts
  osops.placement.placement_allocation_info:
    cloud: admin
    resource_provider:
      - compute-17
      - compute-18
  register: claimed
"""

RETURN = r"""
allocations:
  description: The allocations, sorted by the UUID of their consumer.
  returned: success
  type: list
  elements: dict
  contains:
    consumer:
      description: UUID of the consumer.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    generation:
      description: Generation of the consumer, which every write to Placement must contain;
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
      description: Seconds since the allocation was last written, by the clock of Placement;
        V(null) if unknown.
      returned: success
      type: int
      sample: 86400
    providers:
      description: The allocations by provider.
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
            VCPU: 2
            MEMORY_MB: 2048
            DISK_GB: 20
"""

import typing as t

from ..module_utils._common.errors import InvalidInput
from ..module_utils._common.text import require_uuid, suggest_names, summarize_names
from ..module_utils._core.clients.placement import PlacementReader
from ..module_utils._core.clients.session import CloudContext, CloudTask
from ..module_utils._core.resources.allocations import describe_allocation, find_unknown_names


def read(context: CloudContext) -> dict[str, t.Any]:
    """Return the allocations that the options select."""
    uuids, names = context.options["consumer"], context.options["resource_provider"]
    consumers = {require_uuid(uuid, "consumer") for uuid in uuids or ()}
    placement = PlacementReader(context.connect().placement)
    providers = placement.list_providers()
    unknown = find_unknown_names(names or (), providers)
    if unknown:
        labels = [provider.name for provider in providers.values()]
        raise InvalidInput(
            f"resource_provider: Placement has no resource provider {summarize_names(unknown)}. "
            f"{suggest_names(unknown[0], labels)}".rstrip()
        )
    if uuids is None or names is not None:
        searched = providers if names is None else placement.list_providers_in_trees(names)
        there = set(placement.list_allocations_on_providers(searched))
        # With both options, the consumer must be on one of these trees.
        consumers = there if uuids is None else consumers & there
    allocations = placement.get_allocations(sorted(consumers))
    return {
        "changed": False,
        "allocations": [describe_allocation(allocation, providers) for allocation in allocations],
    }


TASK = CloudTask(
    read,
    {
        "consumer": {"type": "list", "elements": "str", "aliases": ["consumer_uuid"]},
        "resource_provider": {"type": "list", "elements": "str"},
    },
)


if __name__ == "__main__":
    TASK.run_module()
