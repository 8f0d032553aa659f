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
  - Enables and disables a compute service, and tells Nova that its host is down.
  - Deletes a service so that nothing of its host stays behind. When Nova deletes a compute service,
    it deletes the resource providers of its compute nodes, too, but only those of which nobody
    holds a share. The others it leaves behind without a word. This module refuses instead, and says
    who it is that holds them.
  - A compute node that has no resource provider, as a conflict of names leaves it, makes Nova fail
    with 500. This module lets an empty provider stand in for it, which Nova then deletes with the
    service.
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
      - Whether Nova would refuse a change or a deletion is known to Nova alone, which is not asked
        in check mode.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  host:
    description:
      - Name of the host that the service is on.
      - Exactly one of O(host) and O(id) must be given.
    type: str
  binary:
    description:
      - What the service is, for O(host).
      - Nova changes none but V(nova-compute), and deletes all.
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
        O(forced_down). A service that Nova does not know fails the task, for it is made by its own
        process.
      - With V(absent), it is deleted, and with it go the compute nodes of a compute service, their
        resource providers and the place of the host in its aggregates.
    type: str
    choices:
      - present
      - absent
    default: present
  enabled:
    description:
      - Whether the scheduler may choose the host. Left as it is when not given.
    type: bool
  disabled_reason:
    description:
      - Why it is disabled, for O(enabled=false). Left as it is when not given, and gone when the
        service is enabled.
    type: str
  forced_down:
    description:
      - Whether Nova is to call the host down whatever its service reports. Left as it is when not
        given.
      - Set it only for a host that is fenced, so that no guest of it can still run.
    type: bool
  force_residual:
    description:
      - Ask Nova to delete the service also while a consumer holds a share of what its compute nodes
        have, or while it is up.
      - What Nova then leaves behind is in RV(left_providers). It is deleted with
        M(osops.placement.placement_provider) as soon as nobody holds a share of it.
      - Nova refuses in any case while servers are on the host, or migrations from it or to it are
        under way or wait to be confirmed.
    type: bool
    default: false
  assume_removed:
    description:
      - In check mode only, UUIDs of consumers that something before this task would have removed,
        so that they are not counted.
    type: list
    elements: str
    default: []
notes:
  - Stop the process of the service before you delete it. One that runs on makes itself, and a part
    of its host, known again.
seealso:
  - module: osops.placement.compute_service_info
  - module: osops.placement.placement_provider
  - module: osops.placement.placement_allocation_info
"""

EXAMPLES = r"""
---
- name: Take no more servers on a host
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    enabled: false
    disabled_reason: memory errors

- name: Tell Nova that a fenced host is down, so that its servers can be evacuated
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    forced_down: true

- name: Delete the service when nothing holds the host back any more
  osops.placement.compute_service:
    cloud: admin
    host: compute-17
    state: absent
"""

RETURN = r"""
service:
  description:
    - The service after the task, or as it would be in check mode. V(null) for one that is absent.
  returned: success
  type: dict
  contains:
    id:
      description: ID of the service. V(null) while its cell does not answer.
      returned: success
      type: str
      sample: e3c18c2d-9488-4863-b728-f3f292ec5da8
    host:
      description: Name of the host that it is on.
      returned: success
      type: str
      sample: compute-17
    binary:
      description: What it is.
      returned: success
      type: str
      sample: nova-compute
    zone:
      description: Availability zone of the host. V(null) while its cell does not answer.
      returned: success
      type: str
      sample: nova
    status:
      description: V(enabled) or V(disabled), or V(UNKNOWN) while its cell does not answer.
      returned: success
      type: str
      sample: disabled
    state:
      description: V(up) or V(down) by its last report, V(down) when it is forced down. V(null)
        while its cell does not answer.
      returned: success
      type: str
      sample: down
    forced_down:
      description: Whether Nova was told that it is down.
      returned: success
      type: bool
      sample: false
    disabled_reason:
      description: Why it is disabled, or V(null).
      returned: success
      type: str
      sample: replaced by compute-41
    updated_at:
      description: When it reported last, in UTC, or V(null).
      returned: success
      type: str
      sample: '2026-10-25T20:13:51.000000'
consumers:
  description:
    - UUIDs of the consumers that hold a share of what the compute nodes of the service have,
      servers and migrations for the most part.
  returned: when state is absent and there are such
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
left_providers:
  description:
    - UUIDs of the roots of those trees of resource providers that Nova left behind. Empty when all
      is gone, as it should be.
  returned: when the service was deleted
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
from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.provider_writer import (
    ProviderWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.service_writer import (
    ServiceWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._hosts.preconditions import (
    describe_service_blocker,
    find_service_providers,
    leave_out_consumers,
    require_compute_nodes,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import (
    COMPUTE,
    apply_update,
    build_update,
    describe_services,
    find_service,
    get_listed_services,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect
    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Service
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Provider,
    )


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
        raise InvalidInput(f"Nova has no service {name}, and only its own process can make one.")
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
    if not module.params["force_residual"]:
        reason = describe_service_blocker(service, consumers)
        if reason:
            return {**result, "failed": True, "changed": False, "msg": reason}
    if module.check_mode:
        return result
    own_nodes = [node for node in nodes if node.host == service.host]
    without_provider = [node for node in own_nodes if node.uuid not in providers]
    with ProviderWriter(session.placement).create_placeholders(without_provider):
        ServiceWriter(session.compute).delete_service(service, own_nodes)
    left = _list_left_roots(placement, trees)
    if left:
        module.warn(f"Nova left resource providers of {service.host} behind: {', '.join(left)}.")
    return {**result, "left_providers": left}


def _list_left_roots(placement: PlacementReader, trees: Mapping[str, Provider]) -> list[str]:
    """Return the roots of those trees that Placement still lists."""
    roots = {provider.root for provider in trees.values()}
    left = placement.list_providers_in_trees(roots)
    return sorted({provider.root for provider in left.values()})


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
