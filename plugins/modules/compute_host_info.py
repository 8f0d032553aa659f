#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_host_info
short_description: Show what holds compute hosts back from being retired
version_added: 1.0.0
description:
  - Looks at everything that Nova and Placement have of compute hosts, and says what must be gone
    before a host can be retired without anything staying behind.
  - What is provably left over, by the same proofs as in M(osops.placement.orphan_detect), is told
    apart from what is not.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._policy
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  hosts:
    description:
      - The hosts, each by the name of its compute service, or by the name or UUID of its only
        compute node.
      - The several compute nodes of one service, as ironic has them, can only be retired together.
    type: list
    elements: str
    required: true
  kinds:
    description:
      - The kinds of findings that may be counted as left over, see
        O(osops.placement.orphan_plan#module:kinds).
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - misplaced_allocation
      - missing_allocation
      - wrong_amount
      - wrong_owner
    default:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unreverted_allocation
  providers:
    description:
      - UUIDs of root providers that an earlier look found. What is left of them is told with the
        one host, whatever their names are.
    type: list
    elements: str
    default: []
  dest:
    description:
      - Where to write all that was found, with mode 0600.
    type: path
seealso:
  - module: osops.placement.compute_service
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: See what holds a host back
  osops.placement.compute_host_info:
    cloud: admin
    hosts:
      - compute-17
  register: seen

- name: Say it
  ansible.builtin.debug:
    msg: "{{ seen.hosts[0].blockers | map(attribute='reason') }}"
"""

RETURN = r"""
hosts:
  description: The hosts, in the order in which they were named.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The host as it was named.
      returned: success
      type: str
      sample: compute-17.example.org
    host:
      description: The host as its service is named.
      returned: success
      type: str
      sample: compute-17
    known:
      description: Whether Nova or Placement has anything of it.
      returned: success
      type: bool
      sample: true
    service:
      description:
        - Its compute service, with C(id), C(host), C(binary), C(zone), C(status), C(state),
          C(forced_down), C(disabled_reason) and C(updated_at) as
          M(osops.placement.compute_service_info) returns them. V(null) without one.
      returned: success
      type: dict
      sample:
        id: e3c18c2d-9488-4863-b728-f3f292ec5da8
        state: down
    nodes:
      description: Its compute nodes, each with C(uuid), C(name), C(state), C(status) and
        C(running_vms). Several with ironic.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17.example.org
          state: down
          status: disabled
          running_vms: 0
    providers:
      description:
        - Its resource providers, children first, each with C(uuid), C(name), C(root) and C(parent).
          For a host without a compute node, the tree with its name.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17.example.org
          root: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          parent: null
    aggregates:
      description: The aggregates that it is in, each with C(uuid), C(name) and C(zone). Nova takes
        it out of them with its service.
      returned: success
      type: list
      elements: dict
      sample: []
    servers:
      description: The servers on it, each with C(uuid), C(name), C(status) and C(task_state).
      returned: success
      type: list
      elements: dict
      sample: []
    migrations:
      description:
        - The migrations from it or to it that are under way or wait to be confirmed, as
          M(osops.placement.migration_info) returns them.
      returned: success
      type: list
      elements: dict
      sample: []
    left_over:
      description: What is provably left over of others, each with the C(id), C(kind), C(consumer)
        and C(reason) of its finding.
      returned: success
      type: list
      elements: dict
      sample:
        - id: evacuated_source/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          kind: evacuated_source
          consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          reason: Server 6f7a1f5c-… left compute-17 by evacuation …
    blockers:
      description: What holds it back and is not provably left over.
      returned: success
      type: list
      elements: dict
      contains:
        kind:
          description: >-
            V(server), V(migration), V(resize) (waits to be confirmed), V(claim) (any other
            consumer), V(excluded) (the host or one of its providers is named in
            O(exclude_providers)), V(service_up), or V(unsound_reading) when so little could be read
            that nothing is sure.
          returned: success
          type: str
          sample: server
        subject:
          description: UUID of the server, migration, consumer or service, the name of the host, or
            what is excluded.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name:
          description: Name of the server or of what is excluded, or empty.
          returned: success
          type: str
          sample: web-7
        reason:
          description: What it is, and what to do about it.
          returned: success
          type: str
          sample: "Server 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 (ACTIVE) is on compute-17: move,
            evacuate or delete it."
        stops:
          description: >-
            V(disable) for what must be gone before anything is done to the host, V(delete) for what
            must be gone before its service is deleted.
          returned: success
          type: str
          sample: disable
dest:
  description: Path of the file with all that was found, or V(null).
  returned: success
  type: str
  sample: /var/lib/placement/hosts.json
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.policy import (
    parse_policy,
    policy_options,
    warn_ended_exclusions,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import write_json
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._hosts.host_info import HostReader
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CONSUMER_KINDS,
    REMEDIATE,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    options = module.params
    if not options["hosts"] or not all(name.strip() for name in options["hosts"]):
        raise InvalidInput("hosts must name at least one host, and no name may be empty.")
    # Which of several hosts they belonged to would be a guess.
    if options["providers"] and len(options["hosts"]) > 1:
        raise InvalidInput("providers belong to one host: name only that host in hosts.")
    policy = parse_policy(options)
    warn_ended_exclusions(module, policy)
    reader = HostReader(connect(), policy, options["kinds"])
    hosts = reader.read_hosts(options["hosts"], options["providers"])
    if options["dest"]:
        write_json(options["dest"], {"format": FORMAT, "hosts": hosts})
    return {"changed": False, "hosts": hosts, "dest": options["dest"]}


def main() -> None:
    argument_spec = {
        **connection_options(),
        **policy_options(),
        "hosts": {"type": "list", "elements": "str", "required": True},
        "kinds": {
            "type": "list",
            "elements": "str",
            "choices": [kind.name for kind in CONSUMER_KINDS],
            "default": [kind.name for kind in CONSUMER_KINDS if kind.by_default == REMEDIATE],
        },
        "providers": {"type": "list", "elements": "str", "default": []},
        "dest": {"type": "path"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
