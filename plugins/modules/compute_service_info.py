#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_service_info
short_description: Show the services of Nova
version_added: 1.0.0
description:
  - Returns the services of Nova, such as its compute services, and whether they are enabled and
    up.
  - Disabled services count too, for example when Nova chooses the oldest RPC version that all its
    services support. Delete the services of hosts that no longer exist, see
    M(osops.placement.compute_service).
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  host:
    description:
      - Names of hosts. Show only the services on these hosts.
    type: list
    elements: str
  binary:
    description:
      - Show only the services with these binaries, for example V(nova-compute).
    type: list
    elements: str
notes:
  - Services of a cell that does not answer are returned with RV(services[].status=UNKNOWN) and
    without most other values.
seealso:
  - module: osops.placement.compute_service
"""

EXAMPLES = r"""
---
- name: List the compute services
  osops.placement.compute_service_info:
    cloud: admin
    binary: nova-compute
  register: compute

- name: Show the hosts whose service is disabled and down
  ansible.builtin.debug:
    msg: >-
      {{ compute.services | selectattr('status', '==', 'disabled')
      | selectattr('state', '==', 'down') | map(attribute='host') }}
"""

RETURN = r"""
services:
  description: The services, sorted by host and binary.
  returned: success
  type: list
  elements: dict
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
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.clients.argspec import connection_options, run
from ..module_utils._core.clients.nova import NovaReader
from ..module_utils._core.facts.services import (
    describe_services,
    filter_services,
    get_listed_services,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ..module_utils._core.clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Return the services of Nova that the options select."""
    services = get_listed_services(NovaReader(connect().compute).list_services())
    selected = filter_services(services, module.params["host"], module.params["binary"])
    return {"changed": False, "services": describe_services(selected)}


def main() -> None:
    argument_spec = {
        **connection_options(),
        "host": {"type": "list", "elements": "str"},
        "binary": {"type": "list", "elements": "str"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
