#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation_candidate_info
short_description: Ask Placement who has room for an allocation, and why a host has not
version_added: 1.0.0
description:
  - Returns where Placement would put an allocation of certain amounts, as it tells Nova when a
    server is created or moved.
  - Asked about one host that it would not put it on, the module also returns why not.
    This is for the operator who is told that no valid host was found.
  - Whether something fits is Placement's own answer. Why it does not is worked out by this module,
    from what the host's resource providers have in that moment.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  resources:
    description:
      - The amounts asked for, by resource class.
    type: dict
    required: true
  resource_provider:
    description:
      - Name or UUID of a host, or of any resource provider in its tree. Only this host may be the
        answer.
      - One that Placement does not know fails the task.
      - Without it, every host may be.
    type: str
  required:
    description:
      - Traits that the providers of the allocation must have together, or, with V(!) before them,
        that none of them may have.
      - Nova forbids V(COMPUTE_STATUS_DISABLED) in all that it asks,
        the trait of a host with a disabled compute service.
        This module does so only when told, but see RV(disabled) and RV(candidates[].disabled).
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
      - The most candidates to return. Which ones is up to Placement, which may be configured to
        choose by chance.
      - Without it, all of them are.
    type: int
notes:
  - Placement 1.31 (Stein) or newer is needed.
  - A host that Placement offers need not be one that Nova takes.
    Nova's own filters come after Placement's answer, such as those for services that are down,
    host aggregates, availability zones, affinity and NUMA.
  - Nova asks for all that a server needs, which can be more than the amounts of its flavor,
    such as traits, ports and devices.
    Each request group of such a request is not known to this module,
    which asks for one group of them all.
  - A host may take a resource class from a provider that shares it through an aggregate,
    such as a storage pool.
    Nova does not find this when it is told which host to use,
    as by C(openstack server migrate --host); RV(reason) says so then.
    With O(resource_provider), at least one class must come of the host itself.
seealso:
  - module: osops.placement.placement_provider_info
  - module: osops.placement.placement_allocation_info
  - name: Allocation candidates
    description: The request of Placement's API behind this module.
    link: https://docs.openstack.org/api-ref/placement/#allocation-candidates
"""

EXAMPLES = r"""
---
- name: Ask whether a host has room for a server
  osops.placement.allocation_candidate_info:
    cloud: admin
    resource_provider: compute-17
    resources:
      VCPU: 30
      MEMORY_MB: 741376
      DISK_GB: 1638
  register: room

- name: Say why it has not
  ansible.builtin.debug:
    msg: "{{ room.reason }}"
  when: not room.fits

- name: List the hosts with room whose compute service is enabled
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
  description: Whether Placement offers any candidate.
  returned: success
  type: bool
  sample: false
reason:
  description: The answer in one sentence. For a host without room it says what stands against it.
  returned: success
  type: str
  sample: "compute-17 cannot take 30 VCPU, 741376 MEMORY_MB, 1638 DISK_GB: 0 of 30 VCPU are free."
candidates:
  description:
    - The ways in which Placement would grant the allocation, by name of the root. A host with
      nested providers can have several.
  returned: success
  type: list
  elements: dict
  contains:
    root:
      description: UUID of the root of the tree. That of a compute node is also the ID of its
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
      description: Whether the root has the trait V(COMPUTE_STATUS_DISABLED), so that Nova passes
        over it.
      returned: success
      type: bool
      sample: false
    providers:
      description: What would be claimed, by provider.
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
          description: UUID of the root of the provider's tree, another than RV(candidates[].root)
            for one that shares what it has.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        resources:
          description: The amounts that would be claimed, by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 2
        capacity:
          description: How much of these classes can be claimed in all.
          returned: success
          type: dict
          sample:
            VCPU: 120
        used:
          description: How much of these classes is claimed.
          returned: success
          type: dict
          sample:
            VCPU: 30
disabled:
  description: Whether the host's root has the trait V(COMPUTE_STATUS_DISABLED), so that Nova passes
    over it.
  returned: with O(resource_provider)
  type: bool
  sample: false
lacking:
  description:
    - The resource classes that no provider of the host can give in the amount asked for,
      with each provider that has the class, those that share it with the host included.
    - Empty when the host fits.
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
      description: The amount asked for.
      returned: success
      type: int
      sample: 30
    uuid:
      description: UUID of the resource provider, V(null) when none has the class.
      returned: success
      type: str
      sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
    name:
      description: Name of the resource provider, V(null) when none has the class.
      returned: success
      type: str
      sample: compute-17
    violates:
      description:
        - What the amount asked for runs into.
        - V(inventory) when there is no such inventory, V(free) when less than that is free, else
          the limit of that name.
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
      description: How much there is. This and the following are V(null) without an inventory.
      returned: success
      type: int
      sample: 30
    reserved:
      description: How much of the total is kept from consumers.
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
      sample: 1.0
    capacity:
      description: How much can be claimed in all, (total - reserved) * allocation_ratio, cut to a
        whole number.
      returned: success
      type: int
      sample: 30
    used:
      description: How much is claimed.
      returned: success
      type: int
      sample: 30
    free:
      description: How much can still be claimed. Below zero where more is claimed than there is.
      returned: success
      type: int
      sample: 0
missing_traits:
  description: The traits of O(required) that no provider has which could give any of O(resources).
    Empty when the host fits.
  returned: with O(resource_provider)
  type: list
  elements: str
  sample: []
forbidden_traits:
  description: The traits that O(required) forbids and that stand against a resource class. Empty
    when the host fits.
  returned: with O(resource_provider)
  type: list
  elements: str
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._resources.candidates import (
    find_candidates,
    parse_request,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Return Placement's answer, with the reasons why a host named in the options does not fit."""
    # Options that Placement would not take fail before anything is asked of the cloud.
    wanted = parse_request(module.params)
    placement = PlacementReader(connect().placement)
    name = module.params["resource_provider"]
    return {"changed": False, **find_candidates(placement, wanted, name)}


def main() -> None:
    argument_spec = {
        **connection_options(),
        "resources": {"type": "dict", "required": True},
        "resource_provider": {"type": "str"},
        "required": {"type": "list", "elements": "str"},
        "member_of": {"type": "list", "elements": "str"},
        "limit": {"type": "int"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
