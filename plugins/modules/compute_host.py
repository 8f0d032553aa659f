#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_host
short_description: Enable, disable and delete compute hosts
version_added: 3.0.0
description:
  - Enables or disables the compute service of a host, and forces it down.
  - Deletes a host without leaving anything of it behind. This takes the host out of its host
    aggregates, and deletes its compute service with its compute nodes, all of its resource
    providers, and its network agents, in this order.
  - Nothing is deleted if anything blocks the deletion, see
    RV(osops.placement.compute_host_info#module:hosts[].blockers), or if allocations are left over
    on the host.
  - When Nova deletes a compute service, it also deletes the resource providers of its compute
    nodes, but only those without allocations; it leaves the others behind without an error.
  - If a compute node has no resource provider, because another provider has its name, Nova
    answers the deletion of its service with 500. In this case the module creates an empty
    provider, which Nova then deletes together with the service.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.policy
  - osops.placement._options.retirement
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Only Nova knows whether it would refuse a change or a deletion, and check mode does not
        ask it.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  host:
    description:
      - The host, by the name of its compute service.
      - With O(state=absent), also by the name or UUID of its only compute node, or of a resource
        provider that remains of a former host.
    type: str
    required: true
  state:
    description:
      - With V(enabled) and V(disabled), the scheduler may select the host, or not. If Nova has no
        such service, the task fails, because only nova-compute can create it.
      - With V(absent), the host is deleted.
    type: str
    choices:
      - enabled
      - disabled
      - absent
    required: true
  disabled_reason:
    description:
      - Why the service is disabled, with O(state=disabled). Without it, the present reason stays.
        Nova removes the reason when the service is enabled.
    type: str
  forced_down:
    description:
      - Whether Nova considers the service down whatever it reports. Without it, this stays as it
        is. Not for O(state=absent).
      - Set it to V(true) only for a fenced host, on which no guest can still run.
    type: bool
  record:
    description:
      - Path of the file that M(osops.placement.compute_host_info) wrote about the host, for
        O(state=absent). It is written again right before the deletion, with what the host has, so
        that M(osops.placement.compute_host_restore) can give it back to a host of that name. A path
        without a file is accepted.
      - From the file, a deletion that was interrupted knows what an earlier task has removed.
    type: path
  assume_cleaned:
    description:
      - Whether to assume in check mode that an earlier task removed what is left over.
    type: bool
    default: false
  assume_stopped:
    description:
      - Whether to assume in check mode that an earlier task stopped nova-compute.
    type: bool
    default: false
notes:
  - Stop nova-compute before you delete its host. While it runs, it creates its service, and a part
    of its host, again.
  - The module also refuses a deletion if Nova cannot list all of its compute nodes, for example
    because a cell is down, and if most of these are not resource providers here, for example in the
    wrong region.
seealso:
  - module: osops.placement.compute_host_info
  - module: osops.placement.compute_host_restore
  - module: osops.placement.host_drain
"""

EXAMPLES = r"""
---
- name: Disable the compute service of a host
  osops.placement.compute_host:
    cloud: admin
    host: compute-17
    state: disabled
    disabled_reason: memory errors

- name: Force the compute service of a fenced host down, so that its servers can be evacuated
  osops.placement.compute_host:
    cloud: admin
    host: compute-17
    state: disabled
    forced_down: true

- name: Delete a host that is ready to decommission, or what remains of a former one
  osops.placement.compute_host:
    cloud: admin
    host: compute-17
    state: absent
    record: host-decommission/compute-17/host.json
"""

RETURN = r"""
service:
  description: The compute service after the task, or as it would be in check mode; V(null) if it is
    absent.
  returned: success
  type: dict
  contains:
    id:
      description: ID of the service; V(null) while its cell does not answer.
      returned: success
      type: str
      sample: e3c18c2d-9488-4863-b728-f3f292ec5da8
    host:
      description: Name of the host on which the service runs.
      returned: success
      type: str
      sample: compute-17
    binary:
      description: Binary of the service.
      returned: success
      type: str
      sample: nova-compute
    zone:
      description: Availability zone of the host; V(null) while its cell does not answer.
      returned: success
      type: str
      sample: nova
    status:
      description: V(enabled) or V(disabled); V(UNKNOWN) while its cell does not answer.
      returned: success
      type: str
      sample: disabled
    state:
      description: V(up) or V(down) by its last report, and V(down) if it is forced down; V(null)
        while its cell does not answer.
      returned: success
      type: str
      sample: down
    forced_down:
      description: Whether an operator has forced the service down.
      returned: success
      type: bool
      sample: false
    disabled_reason:
      description: Why the service is disabled, or V(null).
      returned: success
      type: str
      sample: replaced by compute-41
    updated_at:
      description: When the service last reported, in UTC, or V(null).
      returned: success
      type: str
      sample: '2026-10-25T20:13:51.000000'
deleted:
  description: What was deleted of the host, or would be in check mode; if the deletion failed, what
    was deleted until then.
  returned: when O(state) is V(absent)
  type: dict
  contains:
    aggregates:
      description: The host aggregates from which the host was removed.
      returned: success
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the aggregate.
          returned: success
          type: str
          sample: 0d2a9c1e-6f0b-4c83-9b1f-2f5c8d1e7a64
        name:
          description: Name of the aggregate.
          returned: success
          type: str
          sample: ssd
    service:
      description: ID of its compute service; V(null) if it had none.
      returned: success
      type: str
      sample: e3c18c2d-9488-4863-b728-f3f292ec5da8
    providers:
      description: Its resource providers, children before their parents.
      returned: success
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the provider.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name of the provider.
          returned: success
          type: str
          sample: compute-17
    agents:
      description: Its network agents.
      returned: success
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the agent.
          returned: success
          type: str
          sample: 5a4b5a0e-5e3d-4f43-b3f4-57d0e2f0bb0c
        type:
          description: Type of the agent.
          returned: success
          type: str
          sample: L3 agent
blockers:
  description: What blocks the deletion, as
    RV(osops.placement.compute_host_info#module:hosts[].blockers).
  returned: when the deletion is refused
  type: list
  elements: raw
left_over:
  description: What is left over on the host, as
    RV(osops.placement.compute_host_info#module:hosts[].left_over).
  returned: when the deletion is refused
  type: list
  elements: raw
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.policy import PolicyOptions
from ..module_utils._hosts.host_decommission import RetirementOptions
from ..module_utils._hosts.stages import change_host

TASK = CloudTask(
    change_host,
    {
        **PolicyOptions.build_spec(),
        **RetirementOptions.build_spec(),
        "host": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["enabled", "disabled", "absent"], "required": True},
        "disabled_reason": {"type": "str"},
        "forced_down": {"type": "bool"},
        "record": {"type": "path"},
        "assume_cleaned": {"type": "bool", "default": False},
        "assume_stopped": {"type": "bool", "default": False},
    },
)


if __name__ == "__main__":
    TASK.run_module()
