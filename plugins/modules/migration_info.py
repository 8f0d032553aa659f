#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: migration_info
short_description: Show migrations of servers
version_added: 1.0.0
description:
  - Lists the migrations that Nova knows (cold migrations, live migrations, resizes and
    evacuations), with their age and, if they have not ended, with advice.
  - Nova deletes a migration together with its server.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  host:
    description:
      - Show only migrations from or to this host, by the name of the host of its compute service.
    type: str
  server:
    description:
      - Show only migrations of this server, by UUID.
    type: str
    aliases:
      - instance_uuid
  status:
    description:
      - Show only migrations with one of these statuses, for example V(running), V(finished)
        (which waits to be confirmed), V(error) or V(done).
    type: list
    elements: str
  under_way:
    description:
      - With V(true), show only migrations that have not ended; with V(false), only those that
        have ended. Without this option, show both.
    type: bool
seealso:
  - module: osops.placement.compute_host_info
"""

EXAMPLES = r"""
---
- name: Show the migrations from and to a host that have not ended
  osops.placement.migration_info:
    cloud: admin
    host: compute-17
    under_way: true
"""

RETURN = r"""
migrations:
  description: The migrations, newest first.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the migration, which is also the UUID of the consumer of its
        allocation.
      returned: success
      type: str
      sample: 0b0c1a7e-93b5-4d0e-9d57-1f6f0b9b0a55
    server:
      description: UUID of the server.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    type:
      description: V(migration), V(resize), V(live-migration) or V(evacuation).
      returned: success
      type: str
      sample: evacuation
    status:
      description: Status of the migration, as Nova returns it.
      returned: success
      type: str
      sample: done
    source_compute:
      description: Name of the source host.
      returned: success
      type: str
      sample: compute-17
    source_node:
      description: Name of the source compute node.
      returned: success
      type: str
      sample: compute-17.example.org
    dest_compute:
      description: Name of the destination host; V(null) before one is chosen.
      returned: success
      type: str
      sample: compute-18
    dest_node:
      description: Name of the destination compute node; V(null) before one is chosen.
      returned: success
      type: str
      sample: compute-18.example.org
    created_at:
      description: When the migration began, in UTC.
      returned: success
      type: str
      sample: '2026-11-02T03:00:00.000000'
    updated_at:
      description: When the migration last changed, in UTC; V(null) if it has not changed since it
        began.
      returned: success
      type: str
      sample: '2026-11-02T03:04:05.000000'
    age_seconds:
      description: Seconds since the migration last changed, by the clock of Nova.
      returned: success
      type: int
      sample: 86400
    advice:
      description: What to do about the migration; empty if it has ended.
      returned: success
      type: str
      sample: ''
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._hosts.migrations import list_migrations

TASK = CloudTask(
    list_migrations,
    {
        "host": {"type": "str"},
        "server": {"type": "str", "aliases": ["instance_uuid"]},
        "status": {"type": "list", "elements": "str"},
        "under_way": {"type": "bool"},
    },
)


if __name__ == "__main__":
    TASK.run_module()
