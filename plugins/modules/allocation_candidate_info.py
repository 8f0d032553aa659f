#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation_candidate_info
short_description: Show which hosts have room for an allocation, and why another host has none
version_added: 1.0.0
description:
  - Returns where Placement would make an allocation of the given amounts, as Placement answers
    Nova when a server is created or moved.
  - If you ask about one host that does not fit, the module also returns why not. Use it to find
    the cause of C(No valid host was found).
  - Placement decides whether an allocation fits. The module works out why it does not fit, from
    the present inventories and usages of the providers of the host.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  resources:
    description:
      - 'The requested amounts by resource class, for example V({"VCPU": 2, "MEMORY_MB": 2048}).'
    type: dict
    required: true
  resource_provider:
    description:
      - Name or UUID of a host, or of any resource provider in its tree. Only this host is
        considered.
      - If Placement does not know it, the task fails.
      - Without it, all hosts are considered.
    type: str
  required:
    description:
      - 'Traits that the providers of the allocation must have together. A trait with V(!) before
        it is forbidden: none of the providers may have it.'
      - All requests of Nova forbid V(COMPUTE_STATUS_DISABLED), the trait of a host with a
        disabled compute service. This module forbids it only if you name it here, but see
        RV(disabled) and RV(candidates[].disabled).
    type: list
    elements: str
  member_of:
    description:
      - UUIDs of Placement's aggregates. Each provider of the allocation, or the root of its tree,
        must be in at least one of them.
    type: list
    elements: str
  limit:
    description:
      - The maximum number of candidates to return. Placement decides which ones, and can be
        configured to choose them at random.
      - Without it, all candidates are returned.
    type: int
notes:
  - Requires Placement 1.31 (Stein) or newer.
  - Nova does not necessarily use a host that Placement offers. After Placement's answer, Nova
    applies its own filters, such as those for services that are down, host aggregates,
    availability zones, affinity and NUMA.
  - 'Nova requests everything that a server needs, which can be more than the amounts of its
    flavor: traits, ports and devices, in several request groups. This module sends only one
    request group.'
  - A host may use a resource class of a sharing provider, such as a storage pool. Nova does not
    find such a host if it is named in the request, as with C(openstack server migrate --host);
    RV(reason) says so then. With O(resource_provider), at least one resource class must come from
    the host itself.
seealso:
  - module: osops.placement.placement_provider_info
  - module: osops.placement.placement_allocation_info
  - name: Allocation candidates
    description: The request of Placement's API behind this module.
    link: https://docs.openstack.org/api-ref/placement/#allocation-candidates
"""

EXAMPLES = r"""
---
- name: Find out whether a host has room for a server
  osops.placement.allocation_candidate_info:
    cloud: admin
    resource_provider: compute-17
    resources:
      VCPU: 30
      MEMORY_MB: 741376
      DISK_GB: 1638
  register: room

- name: Show why it has not
  ansible.builtin.debug:
    msg: "{{ room.reason }}"
  when: not room.fits

- name: List the hosts that have room and an enabled compute service
  osops.placement.allocation_candidate_info:
    cloud: admin
    resources:
      VCPU: 2
      MEMORY_MB: 2048
    required:
      - "!COMPUTE_STATUS_DISABLED"
  register: hosts

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ hosts.candidates | map(attribute='root_name') | unique }}"
"""

RETURN = r"""
fits:
  description: Whether Placement offers at least one candidate.
  returned: success
  type: bool
  sample: false
reason:
  description: The answer in one sentence. For a host that does not fit, it says why.
  returned: success
  type: str
  sample: 'compute-17 cannot take 30 VCPU, 741376 MEMORY_MB, 1638 DISK_GB: 0 of 30 VCPU are free.'
candidates:
  description: The allocations that Placement offers, sorted by the name of the root. A host with
    child providers can have several.
  returned: success
  type: list
  elements: dict
  contains:
    root:
      description: UUID of the root of the tree. For a compute node, it is also the ID of the
        hypervisor.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    root_name:
      description: Name of the root of the tree.
      returned: success
      type: str
      sample: compute-17
    disabled:
      description: Whether the root has the trait V(COMPUTE_STATUS_DISABLED), so that Nova does
        not select it.
      returned: success
      type: bool
      sample: false
    providers:
      description: The offered allocation, by provider.
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
          description: Name of the resource provider.
          returned: success
          type: str
          sample: compute-17
        root:
          description: UUID of the root of the provider's tree. For a sharing provider, it differs
            from RV(candidates[].root).
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        resources:
          description: The offered amounts, by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 2
        capacity:
          description: The capacities of these resource classes.
          returned: success
          type: dict
          sample:
            VCPU: 120
        used:
          description: The allocated amounts of these resource classes.
          returned: success
          type: dict
          sample:
            VCPU: 30
disabled:
  description: Whether the root of the host has the trait V(COMPUTE_STATUS_DISABLED), so that Nova
    does not select the host.
  returned: with O(resource_provider)
  type: bool
  sample: false
lacking:
  description:
    - The resource classes of which no provider of the host has the requested amount. There is one
      entry for each provider that has the class, including sharing providers.
    - Empty if the host fits.
  returned: with O(resource_provider)
  type: list
  elements: dict
  contains:
    resource_class:
      description: The resource class.
      returned: success
      type: str
      sample: VCPU
    asked:
      description: The requested amount.
      returned: success
      type: int
      sample: 30
    uuid:
      description: UUID of the resource provider; V(null) if no provider has the class.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    name:
      description: Name of the resource provider; V(null) if no provider has the class.
      returned: success
      type: str
      sample: compute-17
    violates:
      description:
        - Why the requested amount does not fit.
        - V(inventory) if there is no inventory of the class, V(free) if less than the amount is
          free, or the name of the limit.
      returned: success
      type: list
      elements: str
      choices:
        - inventory
        - free
        - min_unit
        - max_unit
        - step_size
      sample:
        - free
    total:
      description: Total amount. This field and the following are V(null) without an inventory.
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
      sample: 1.0
    capacity:
      description: 'Amount that can be allocated in all: (total - reserved) * allocation_ratio,
        rounded down.'
      returned: success
      type: int
      sample: 30
    used:
      description: Allocated amount.
      returned: success
      type: int
      sample: 30
    free:
      description: Amount that can still be allocated. It is negative if more is allocated than
        the capacity.
      returned: success
      type: int
      sample: 0
missing_traits:
  description: The traits in O(required) that no provider has which could supply any of
    O(resources). Empty if the host fits.
  returned: with O(resource_provider)
  type: list
  elements: str
  sample: []
forbidden_traits:
  description: The traits that O(required) forbids and that exclude providers of a requested
    resource class. Empty if the host fits.
  returned: with O(resource_provider)
  type: list
  elements: str
  sample: []
"""

import typing as t

from ..module_utils._core.clients.placement import PlacementReader
from ..module_utils._core.clients.session import CloudContext, CloudTask
from ..module_utils._core.resources.candidates import find_candidates, parse_request


def find(context: CloudContext) -> dict[str, t.Any]:
    """Return Placement's answer, with the reasons why a host named in the options does not fit."""
    # Options that Placement would not take fail before anything is asked of the cloud.
    request = parse_request(context.options)
    placement = PlacementReader(context.connect().placement)
    name = context.options["resource_provider"]
    return {"changed": False, **find_candidates(placement, request, name)}


TASK = CloudTask(
    find,
    {
        "resources": {"type": "dict", "required": True},
        "resource_provider": {"type": "str"},
        "required": {"type": "list", "elements": "str"},
        "member_of": {"type": "list", "elements": "str"},
        "limit": {"type": "int"},
    },
)


def main() -> None:
    TASK.run_module()


if __name__ == "__main__":
    main()
