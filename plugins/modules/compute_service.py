#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_service
short_description: Enable, disable and delete services of Nova
version_added: 1.0.0
description:
  - Enables, disables and forces down a compute service.
  - Deletes a service without leaving anything of its host behind. When Nova deletes a compute
    service, it also deletes the resource providers of its compute nodes, but only those without
    allocations; it leaves the others behind without an error. This module refuses instead, and
    names the consumers.
  - If a compute node has no resource provider, because another provider has its name, Nova
    answers the deletion of its service with 500. In this case the module creates an empty
    provider, which Nova then deletes together with the service.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
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
      - Name of the host on which the service runs.
      - Set exactly one of O(host) and O(id).
    type: str
  binary:
    description:
      - Binary of the service on O(host).
      - Nova can change only V(nova-compute), and can delete all of them.
    type: str
    default: nova-compute
  id:
    description:
      - ID of the service.
    type: str
    aliases:
      - service_id
  state:
    description:
      - With V(present), the service has the given O(enabled), O(disabled_reason) and
        O(forced_down). If Nova does not know the service, the task fails, because only the
        process of a service can create it.
      - With V(absent), the service is deleted. If it is a compute service, its compute nodes and
        their resource providers are deleted too, and the host is removed from its aggregates.
    type: str
    choices:
      - present
      - absent
    default: present
  enabled:
    description:
      - Whether the scheduler may select the host. Without it, the service stays as it is.
    type: bool
  disabled_reason:
    description:
      - Why the service is disabled, with O(enabled=false). Without it, the present reason stays.
        Nova removes the reason when the service is enabled.
    type: str
  forced_down:
    description:
      - Whether Nova considers the service down whatever it reports. Without it, this stays as it
        is.
      - Set it to V(true) only for a fenced host, on which no guest can still run.
    type: bool
  force_residual:
    description:
      - Ask Nova to delete the service even if consumers have allocations on its compute nodes, or
        if it is up.
      - Nova then leaves the providers in RV(left_providers) behind. Delete them with
        M(osops.placement.placement_provider) once they have no allocations.
      - Nova always refuses while servers are on the host, and while migrations from or to it are
        under way or wait to be confirmed.
    type: bool
    default: false
  assume_removed:
    description:
      - UUIDs of consumers that an earlier task would have removed. In check mode, their
        allocations are not counted. Outside check mode, this option has no effect.
    type: list
    elements: str
    default: []
  assume_down:
    description:
      - Whether an earlier task would have stopped the service. In check mode, the service counts
        as down. Outside check mode, this option has no effect.
    type: bool
    default: false
    version_added: 2.0.0
notes:
  - Stop the process of the service before you delete the service. A process that still runs
    creates its service, and a part of its host, again.
seealso:
  - module: osops.placement.compute_service_info
  - module: osops.placement.placement_provider
  - module: osops.placement.placement_allocation_info
"""

EXAMPLES = r"""
---
- name: Disable the compute service of a host
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    enabled: false
    disabled_reason: memory errors

- name: Force the compute service of a fenced host down, so that its servers can be evacuated
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    forced_down: true

- name: Delete the compute service of a host that is ready to decommission
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    state: absent
"""

RETURN = r"""
service:
  description: The service after the task, or as it would be in check mode; V(null) if it is
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
consumers:
  description: UUIDs of the consumers with allocations on the compute nodes of the service, mostly
    servers and migrations.
  returned: when state is absent and there are such
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
left_providers:
  description: UUIDs of the roots of the provider trees that Nova left behind; empty if it left
    none.
  returned: when the service was deleted
  type: list
  elements: str
  sample: []
"""

import dataclasses as d
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import InvalidInput
from ..module_utils._core.clients.argspec import connection_options, run
from ..module_utils._core.clients.nova import NovaReader
from ..module_utils._core.clients.placement import PlacementReader
from ..module_utils._core.clients.provider_writer import ProviderWriter
from ..module_utils._core.clients.session import Session
from ..module_utils._core.facts.services import (
    COMPUTE,
    apply_update,
    build_update,
    describe_services,
    find_service,
    get_listed_services,
)
from ..module_utils._core.facts.trees import (
    describe_service_blocker,
    find_service_providers,
    leave_out_consumers,
    require_compute_nodes,
)
from ..module_utils._core.models.nova import Service
from ..module_utils._hosts.service_writer import ServiceWriter

if t.TYPE_CHECKING:  # pragma: no cover
    from ..module_utils._core.clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Change or delete a service of Nova as the options say."""
    session = connect()
    services = get_listed_services(NovaReader(session.compute).list_services())
    service = find_service(services, module.params)
    if module.params["state"] == "present":
        result = _ensure_present(module, session, service)
    else:
        result = _ensure_absent(module, session, service)
    if module._diff and not result.get("failed"):
        before: dict[str, t.Any] = {}
        if service:
            before = describe_services([service])[0]
        result["diff"] = {"before": before, "after": result["service"] or {}}
    return result


def _ensure_present(
    module: AnsibleModule, session: Session, service: Service | None
) -> dict[str, t.Any]:
    if service is None:
        name = module.params["id"] or f"{module.params['binary']} on {module.params['host']}"
        raise InvalidInput(
            f"Nova has no service {name}: start its process, which creates the service."
        )
    body = build_update(service, module.params)
    if not body:
        updated = service
    elif module.check_mode:
        updated = apply_update(service, body)
    else:
        updated = ServiceWriter(session.compute).update_service(service, body)
    return {"changed": bool(body), "service": describe_services([updated])[0]}


def _ensure_absent(
    module: AnsibleModule, session: Session, service: Service | None
) -> dict[str, t.Any]:
    if service is None:
        return {"changed": False, "service": None}
    # Only a compute service has providers, which must not be left behind.
    if service.binary == COMPUTE:
        return _delete_compute_service(module, session, service)
    # The other services have neither compute nodes nor resource providers.
    if not module.check_mode:
        ServiceWriter(session.compute).delete_service(service, ())
    return {"changed": True, "service": None, "left_providers": []}


def _delete_compute_service(
    module: AnsibleModule, session: Session, service: Service
) -> dict[str, t.Any]:
    placement = PlacementReader(session.placement)
    nodes = require_compute_nodes(NovaReader(session.compute).list_hypervisors(with_servers=False))
    providers = placement.list_providers()
    trees = find_service_providers(service, nodes, providers)
    consumers = placement.list_allocations_on_providers(trees)
    if module.check_mode:
        consumers = leave_out_consumers(consumers, module.params["assume_removed"])
    result: dict[str, t.Any] = {"changed": True, "service": None}
    if consumers:
        result["consumers"] = sorted(consumers)
    # With allocations on it, the provider of the host would be left behind.
    if not module.params["force_residual"]:
        if module.check_mode and module.params["assume_down"]:
            service = d.replace(service, state="down")
        reason = describe_service_blocker(service, consumers)
        if reason:
            return {**result, "failed": True, "changed": False, "msg": reason}
    if module.check_mode:
        return result
    own_nodes = [node for node in nodes if node.host == service.host]
    without_provider = [node for node in own_nodes if node.uuid not in providers]
    # Nova answers 500 to the deletion of a service that has a node without a provider.
    with ProviderWriter(session.placement).create_placeholders(without_provider):
        ServiceWriter(session.compute).delete_service(service, own_nodes)
    # Nova only logs that it could not delete a provider.
    roots = {provider.root for provider in trees.values()}
    listed = placement.list_providers_in_trees(roots).values()
    left = sorted({provider.root for provider in listed})
    if left:
        module.warn(f"Nova left resource providers of {service.host} behind: {', '.join(left)}.")
    return {**result, "left_providers": left}


def main() -> None:
    argument_spec = {
        **connection_options(),
        "host": {"type": "str"},
        "binary": {"type": "str", "default": COMPUTE},
        "id": {"type": "str", "aliases": ["service_id"]},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "enabled": {"type": "bool"},
        "disabled_reason": {"type": "str"},
        "forced_down": {"type": "bool"},
        "force_residual": {"type": "bool", "default": False},
        "assume_removed": {"type": "list", "elements": "str", "default": []},
        "assume_down": {"type": "bool", "default": False},
    }
    run(
        AnsibleModule(
            argument_spec,
            supports_check_mode=True,
            required_one_of=[("host", "id")],
            mutually_exclusive=[("host", "id")],
        ),
        work,
    )


if __name__ == "__main__":
    main()
