#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: placement_provider_info
short_description: Show resource providers in the Placement service
version_added: 1.0.0
description:
  - Returns resource providers with their inventories, usages, free amounts, traits and
    aggregates.
  - A provider is always returned with its whole tree.
  - Resource providers that Placement does not know are returned in RV(unknown) and are not an
    error.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  resource_provider:
    description:
      - Names or UUIDs of resource providers. Show these providers and all other providers of
        their trees.
      - Without it, all resource providers are shown.
    type: list
    elements: str
  parts:
    description:
      - What to return for each provider besides its place in its tree.
      - Each part takes one request for each provider, so in a large cloud name only the parts
        that you need.
      - V([]) returns only the trees, with a few requests in all.
    type: list
    elements: str
    choices:
      - inventories
      - usages
      - traits
      - aggregates
    default:
      - inventories
      - usages
      - traits
      - aggregates
notes:
  - The parts of a provider are read one after the other. An allocation that is made or removed
    meanwhile can show in one part and not in another.
  - A provider that is deleted meanwhile is left out.
seealso:
  - module: osops.placement.placement_allocation_info
  - module: osops.placement.allocation_candidate_info
  - module: osops.placement.compute_host
"""

EXAMPLES = r"""
---
- name: Show the inventories and usages of a host and its child providers
  osops.placement.placement_provider_info:
    cloud: admin
    resource_provider: compute-17
  register: host

- name: Show the free amounts of the host itself
  ansible.builtin.debug:
    msg: "{{ host.providers[0].free }}"

- name: List all providers without their details
  osops.placement.placement_provider_info:
    cloud: admin
    parts: []
  register: all

- name: Show the names of the sharing providers
  ansible.builtin.debug:
    msg: "{{ all.providers | selectattr('sharing') | map(attribute='name') }}"
"""

RETURN = r"""
providers:
  description: 'The resource providers, tree by tree: the trees are sorted by the name of their
    root, and every provider comes before the providers below it.'
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the resource provider. For a compute node, the UUID of the root is also
        the ID of the hypervisor.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    name:
      description: Name of the resource provider.
      returned: success
      type: str
      sample: compute-17
    generation:
      description: Generation of the provider, which increases with each change.
      returned: success
      type: int
      sample: 54
    root:
      description: UUID of the root of the provider's tree, which is the provider's own UUID for a
        root.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    parent:
      description: UUID of its parent provider; V(null) for a root.
      returned: success
      type: str
      sample: null
    sharing:
      description: Whether the provider has the trait V(MISC_SHARES_VIA_AGGREGATE), and so shares
        its inventory with the trees in its aggregates.
      returned: success
      type: bool
      sample: false
    inventories:
      description: The inventories, by resource class.
      returned: when O(parts) has V(inventories)
      type: dict
      contains:
        total:
          description: Total amount.
          returned: success
          type: int
          sample: 30
        reserved:
          description: Amount of the total that is reserved and cannot be allocated.
          returned: success
          type: int
          sample: 0
        min_unit:
          description: Minimum amount of one allocation.
          returned: success
          type: int
          sample: 1
        max_unit:
          description: Maximum amount of one allocation.
          returned: success
          type: int
          sample: 30
        step_size:
          description: The amount of an allocation must be a multiple of this.
          returned: success
          type: int
          sample: 1
        allocation_ratio:
          description: Overcommit ratio.
          returned: success
          type: float
          sample: 4.0
        capacity:
          description: 'Amount that can be allocated in all: (total - reserved) *
            allocation_ratio, rounded down.'
          returned: success
          type: int
          sample: 120
      sample:
        VCPU:
          total: 30
          reserved: 0
          min_unit: 1
          max_unit: 30
          step_size: 1
          allocation_ratio: 4.0
          capacity: 120
    usages:
      description: The allocated amounts, by resource class.
      returned: when O(parts) has V(usages)
      type: dict
      sample:
        VCPU: 30
    free:
      description: The amounts that can still be allocated, by resource class. They are negative
        if more is allocated than the capacity.
      returned: when O(parts) has V(inventories) and V(usages)
      type: dict
      sample:
        VCPU: 90
    traits:
      description: Names of the traits.
      returned: when O(parts) has V(traits)
      type: list
      elements: str
      sample:
        - COMPUTE_NODE
        - HW_CPU_X86_AVX2
    aggregates:
      description: UUIDs of the aggregates of the provider.
      returned: when O(parts) has V(aggregates)
      type: list
      elements: str
      sample:
        - 0d2a9c1e-6f0b-4c83-9b1f-2f5c8d1e7a64
unknown:
  description: The entries of O(resource_provider) that Placement does not know.
  returned: success
  type: list
  elements: str
  sample:
    - compute-71
"""

import typing as t

from ..module_utils._core.clients.placement import PARTS, PlacementReader
from ..module_utils._core.clients.session import CloudContext, CloudTask
from ..module_utils._core.resources.allocations import describe_providers, find_unknown_names


def read(context: CloudContext) -> dict[str, t.Any]:
    """Return the resource providers that the options select, with their parts."""
    names, parts = context.options["resource_provider"], context.options["parts"]
    placement = PlacementReader(context.connect().placement)
    # All providers are one request, and each tree is one.
    if names is None:
        providers = placement.list_providers()
    else:
        providers = placement.list_providers_in_trees(names)
    details = placement.get_details(providers, parts)
    return {
        "changed": False,
        "providers": describe_providers(providers, details, parts),
        "unknown": find_unknown_names(names or (), providers),
    }


_PARTS = list(PARTS)
TASK = CloudTask(
    read,
    {
        "resource_provider": {"type": "list", "elements": "str"},
        "parts": {"type": "list", "elements": "str", "choices": _PARTS, "default": _PARTS},
    },
)


if __name__ == "__main__":
    TASK.run_module()
