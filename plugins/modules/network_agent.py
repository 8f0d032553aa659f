#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_agent
short_description: Delete network agents of Neutron
version_added: 2.0.0
description:
  - Deletes the record of a network agent, such as one of a host that is taken away.
  - An agent that is still in use is never deleted. It is in use if Neutron has scheduled networks
    or routers to it, or if a port of a server, router or DHCP server is bound to its host. The
    module then fails and names them.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  id:
    description:
      - UUID of the agent.
      - Neutron gives the agents of OVN a UUID too. It deletes the chassis together with such an
        agent, and with the chassis all agents on it.
    type: str
    required: true
    aliases:
      - uuid
  state:
    description:
      - With V(absent), the agent is deleted. An agent that does not exist is left so.
    type: str
    choices:
      - absent
    default: absent
  delete_running:
    description:
      - Whether to delete the agent even if it is alive. A running agent registers itself again.
    type: bool
    default: false
notes:
  - Stop the process of an agent before you delete the agent.
  - The ports are read from Neutron, and their servers from Nova.
seealso:
  - module: osops.placement.compute_host_info
  - module: osops.placement.compute_service
"""

EXAMPLES = r"""
---
- name: Delete the L3 agent of a host that was taken away
  osops.placement.network_agent:
    cloud: admin
    id: 5a4b5a0e-5e3d-4f43-b3f4-57d0e2f0bb0c
    state: absent
"""

RETURN = r"""
agent:
  description: The agent before the task; V(null) if it did not exist.
  returned: success
  type: dict
  contains:
    uuid:
      description: UUID of the agent.
      returned: success
      type: str
      sample: 5a4b5a0e-5e3d-4f43-b3f4-57d0e2f0bb0c
    binary:
      description: Binary of the agent.
      returned: success
      type: str
      sample: neutron-l3-agent
    type:
      description: Type of the agent.
      returned: success
      type: str
      sample: L3 agent
    host:
      description: Name of its host.
      returned: success
      type: str
      sample: compute-17
    alive:
      description: Whether the agent has reported lately.
      returned: success
      type: bool
      sample: false
    admin_state_up:
      description: Whether the agent is enabled.
      returned: success
      type: bool
      sample: true
    heartbeat_at:
      description: When the agent last reported, as Neutron writes it; V(null) if it never did.
      returned: success
      type: str
      sample: '2026-11-02 03:04:05'
    description:
      description: Description of the agent; V(null) without one.
      returned: success
      type: str
    resources:
      description: The networks or routers that it serves; V(null) if Neutron did not list them.
      returned: success
      type: list
      elements: dict
      sample: []
      contains:
        kind:
          description: V(network) or V(router).
          returned: success
          type: str
          sample: router
        uuid:
          description: UUID of the network or router.
          returned: success
          type: str
          sample: 9d0a0a0e-3b2f-4a3a-8d4a-0f6a3b7d5c11
        name:
          description: Name of the network or router.
          returned: success
          type: str
          sample: edge
blockers:
  description: Why the agent was not deleted.
  returned: when the agent must not be deleted
  type: list
  elements: dict
  contains:
    kind:
      description: V(agent_up), V(agent_in_use) or V(port).
      returned: success
      type: str
      sample: agent_up
    subject:
      description: UUID of the agent or port.
      returned: success
      type: str
      sample: 5a4b5a0e-5e3d-4f43-b3f4-57d0e2f0bb0c
    name:
      description: Type of the agent, or owner of the port.
      returned: success
      type: str
      sample: L3 agent
    reason:
      description: What blocks the deletion, and what to do about it.
      returned: success
      type: str
      sample: The L3 agent of compute-17 is alive, and would register itself again …
    stops:
      description: V(delete).
      returned: success
      type: str
      sample: delete
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import CloudError
from ..module_utils._common.uuids import require_uuid
from ..module_utils._core.clients.argspec import connection_options, run
from ..module_utils._core.clients.nova import NovaReader
from ..module_utils._core.models.documents import convert_to_json
from ..module_utils._hosts.network_agents import AgentWriter
from ..module_utils._hosts.parts import (
    find_agent_blockers,
    find_used_ports,
    make_agent_reader,
    make_port_blocker,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ..module_utils._core.clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Delete a network agent, unless something still uses it."""
    uuid = require_uuid(module.params["id"], "id")
    session = connect()
    reader = make_agent_reader(session)
    if session.network is None or reader is None:
        raise CloudError(
            "The service catalogue has no network service in this region, so there are no network "
            "agents to delete."
        )
    agent = reader.get_agent(uuid)
    if agent is None:
        return {"changed": False, "agent": None}
    described = convert_to_json(agent)
    result: dict[str, t.Any] = {"changed": True, "agent": described}
    blockers = list(find_agent_blockers(agent, module.params["delete_running"], "delete_running"))
    ports = find_used_ports(agent.host, reader, NovaReader(session.compute))
    blockers += map(make_port_blocker, ports)
    if blockers:
        reasons = " ".join(blocker.reason for blocker in blockers[:10])
        return {
            **result,
            "failed": True,
            "changed": False,
            "msg": f"The agent was not deleted. {reasons}",
            "blockers": list(map(convert_to_json, blockers)),
        }
    if not module.check_mode:
        AgentWriter(session.network).delete_agent(agent)
    if module._diff:
        result["diff"] = {"before": described, "after": {}}
    return result


def main() -> None:
    argument_spec = {
        **connection_options(),
        "id": {"type": "str", "required": True, "aliases": ["uuid"]},
        "state": {"type": "str", "choices": ["absent"], "default": "absent"},
        "delete_running": {"type": "bool", "default": False},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
