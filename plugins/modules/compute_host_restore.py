#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_host_restore
short_description: Verify a compute host that was deployed again, and restore what it had
version_added: 2.0.0
description:
  - Checks whether a host that was deployed again is complete. Its compute service is up, it is
    assigned to a cell, it has a compute node, the compute node has a resource provider with its
    UUID and its name, and the provider has inventory, traits and the aggregates of the host.
    Its nova-compute has completed the evacuations from it. Otherwise its next start would destroy
    the servers that returned by then.
  - With O(record), it also names what the host had before it was decommissioned and lacks now.
  - With O(restore), it restores what belongs to the API. Everything else is nova-compute's or
    the operator's, and is only named.
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
      - Only Nova knows whether it would refuse to add the host to an aggregate, for example
        because its servers would change their availability zone. Check mode does not ask it.
  diff_mode:
    support: none
    details:
      - The checks in RV(checks) say what would be restored.
  idempotent:
    support: full
options:
  host:
    description:
      - The host, by the name of its compute service.
    type: str
    required: true
  record:
    description:
      - Path of the file that M(osops.placement.compute_host_info) wrote when the host was
        decommissioned. If it does not exist, or does not have a record of an earlier life of the
        host, only the present state is checked.
    type: path
  assume_restarted:
    description:
      - Whether to assume in check mode that nova-compute was restarted by an earlier task, where
        RV(restart_completes) is V(true).
    type: bool
    default: false
    version_added: 3.0.0
  restore:
    description:
      - What to restore of O(record). Without it, everything is only named.
      - V(aggregates) adds the host to the host aggregates of Nova in which it was, and its
        provider to the aggregates that only Placement has.
      - V(traits) adds the traits that an operator had set, such as V(CUSTOM_SSD). Nova itself
        reports all others.
      - V(ratios) sets the allocation ratios that differ. Choose it only if C(nova.conf) leaves
        them to the API (C(initial_cpu_allocation_ratio) and the like), because otherwise
        nova-compute overwrites them within a minute. The API does not show which of the two
        applies.
    type: list
    elements: str
    choices:
      - aggregates
      - traits
      - ratios
    default: []
seealso:
  - module: osops.placement.compute_host_info
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: Put back what a reinstalled host had
  osops.placement.compute_host_restore:
    cloud: admin
    host: compute-17
    record: host-decommission/compute-17/host.json
    restore:
      - aggregates
      - traits
  register: restored

- name: Require that the host is complete
  ansible.builtin.assert:
    that: restored.complete
"""

RETURN = r"""
host:
  description: The name of the host.
  returned: success
  type: str
  sample: compute-17
checks:
  description: The checks, in their order.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: What was checked.
      returned: success
      type: str
      sample: host mapping
    outcome:
      description: V(ok); V(missing) if the host is not complete; V(differs) if it is not what it
        was; V(restored), also in check mode for what would be restored; or V(failed).
      returned: success
      type: str
      sample: ok
    detail:
      description: What was found, and what to do about it.
      returned: success
      type: str
      sample: assigned to a cell
complete:
  description: Whether nothing is missing, and nothing failed.
  returned: success
  type: bool
  sample: true
evacuations:
  description: The UUIDs of the servers whose evacuation from the host its nova-compute has not
    completed, one for each evacuation.
  returned: success
  type: list
  elements: str
  sample: []
  version_added: 3.0.0
busy:
  description: The UUIDs of the servers that nova-compute on the host is building, moving or doing
    something else with, which a restart would break off.
  returned: success
  type: list
  elements: str
  sample: []
  version_added: 3.0.0
restart_completes:
  description: Whether a restart of nova-compute on the host destroys nothing, breaks off nothing,
    and completes RV(evacuations).
  returned: success
  type: bool
  sample: false
  version_added: 3.0.0
mapped:
  description: Whether the host is assigned to a cell; V(null) if Nova did not say.
  returned: success
  type: bool
  sample: true
node:
  description: The UUID of its only compute node; V(null) without one, or with several.
  returned: success
  type: str
  sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
former_node:
  description: The UUID of the compute node that the host had according to O(record), or V(null).
  returned: success
  type: str
  sample: 0d2a9c1e-6f0b-4c83-9b1f-2f5c8d1e7a64
namesake:
  description: The UUID of another provider with the name of the compute node, or V(null).
    Placement refuses a second provider of that name.
  returned: success
  type: str
recorded:
  description: Whether O(record) says what the host had.
  returned: success
  type: bool
  sample: true
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._hosts.redeploy import RESTORABLE, restore_host

_PARTS = list(RESTORABLE)
TASK = CloudTask(
    restore_host,
    {
        "host": {"type": "str", "required": True},
        "record": {"type": "path"},
        "assume_restarted": {"type": "bool", "default": False},
        "restore": {"type": "list", "elements": "str", "choices": _PARTS, "default": []},
    },
)


if __name__ == "__main__":
    TASK.run_module()
