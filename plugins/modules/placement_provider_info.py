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
  - Returns resource providers with what they have, what of it is in use and what is free, their
    traits and their aggregates.
  - A provider never comes alone, but with its whole tree.
  - Resource providers that Placement does not know are named in RV(unknown), and are no failure.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  resource_provider:
    description:
      - Names or UUIDs of resource providers. Shows them and every provider in their trees.
      - Without it, all resource providers are shown.
    type: list
    elements: str
  parts:
    description:
      - What to show of each provider besides its place in its tree.
      - Placement is asked once for each provider and part, so name only what is needed in a large
        cloud.
      - V([]) shows the trees alone, for which Placement is asked a few times in all.
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
  - The parts of a provider are read one after the other. What is claimed or released meanwhile can
    be in one and not in another.
  - A provider that is deleted meanwhile is left out.
seealso:
  - module: osops.placement.placement_allocation_info
  - module: osops.placement.allocation_candidate_info
  - module: osops.placement.placement_provider
"""

EXAMPLES = r"""
---
- name: Show what a host and its devices have, and what of it is free
  osops.placement.placement_provider_info:
    cloud: admin
    resource_provider: compute-17
  register: host

- name: Show what is free on the host itself
  ansible.builtin.debug:
    msg: "{{ host.providers[0].free }}"

- name: List every provider that shares what it has through an aggregate
  osops.placement.placement_provider_info:
    cloud: admin
    parts: []
  register: all

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ all.providers | selectattr('sharing') | map(attribute='name') }}"
"""

RETURN = r"""
providers:
  description:
    - The resource providers, tree by tree. Roots come by name, every provider before those below
      it.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the resource provider. That of a compute node's root is also the ID of
        its hypervisor.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    name:
      description: Name of the resource provider.
      returned: success
      type: str
      sample: compute-17
    generation:
      description: The provider's generation, which counts its changes.
      returned: success
      type: int
      sample: 54
    root:
      description: UUID of the root of the provider's tree, which is the provider's own for a root.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    parent:
      description: UUID of the provider above it in its tree, or V(null) for a root.
      returned: success
      type: str
      sample: null
    sharing:
      description: Whether it shares what it has with the trees in its aggregates, by the trait
        V(MISC_SHARES_VIA_AGGREGATE).
      returned: success
      type: bool
      sample: false
    inventories:
      description: What it has, by resource class.
      returned: when O(parts) has V(inventories)
      type: dict
      contains:
        total:
          description: How much there is.
          returned: success
          type: int
          sample: 30
        reserved:
          description: How much of RV(providers[].inventories.total) is kept from consumers.
          returned: success
          type: int
          sample: 0
        min_unit:
          description: The least that one allocation can have.
          returned: success
          type: int
          sample: 1
        max_unit:
          description: The most that one allocation can have.
          returned: success
          type: int
          sample: 30
        step_size:
          description: Allocations have a multiple of this.
          returned: success
          type: int
          sample: 1
        allocation_ratio:
          description: How many times what there is can be claimed.
          returned: success
          type: float
          sample: 4.0
        capacity:
          description: How much can be claimed in all, (total - reserved) * allocation_ratio, cut to
            a whole number.
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
      description: What is claimed, by resource class.
      returned: when O(parts) has V(usages)
      type: dict
      sample:
        VCPU: 30
    free:
      description: What can still be claimed, by resource class. Below zero where more is claimed
        than there is.
      returned: when O(parts) has V(inventories) and V(usages)
      type: dict
      sample:
        VCPU: 90
    traits:
      description: Its traits.
      returned: when O(parts) has V(traits)
      type: list
      elements: str
      sample:
        - COMPUTE_NODE
        - HW_CPU_X86_AVX2
    aggregates:
      description: UUIDs of the aggregates that it is in.
      returned: when O(parts) has V(aggregates)
      type: list
      elements: str
      sample:
        - 0d2a9c1e-6f0b-4c83-9b1f-2f5c8d1e7a64
unknown:
  description: Those of O(resource_provider) that Placement does not know.
  returned: success
  type: list
  elements: str
  sample:
    - compute-71
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PARTS,
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._resources.providers import (
    describe_providers,
    find_unknown_names,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Return the resource providers that the options select, with their parts."""
    names, parts = module.params["resource_provider"], module.params["parts"]
    placement = PlacementReader(connect().placement)
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


def main() -> None:
    argument_spec = {
        **connection_options(),
        "resource_provider": {"type": "list", "elements": "str"},
        "parts": {
            "type": "list",
            "elements": "str",
            "choices": list(PARTS),
            "default": list(PARTS),
        },
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
