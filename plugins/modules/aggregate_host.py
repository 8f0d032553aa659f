#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: aggregate_host
short_description: Remove compute hosts from host aggregates of Nova
version_added: 2.0.0
description:
  - Removes one host from host aggregates, and leaves their other hosts as they are.
  - Nova mirrors its aggregates to Placement, but only logs it when that fails. The module returns
    the aggregates in which the resource providers of the host still are.
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
      - Only Nova knows whether it would refuse the removal, and check mode does not ask it.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  host:
    description:
      - Name of the compute service of the host.
    type: str
    required: true
  aggregates:
    description:
      - UUIDs of the aggregates from which the host is removed. By default, all that have it.
    type: list
    elements: str
  state:
    description:
      - With V(absent), the host is removed.
    type: str
    choices:
      - absent
    default: absent
notes:
  - Nova does not remove a host with servers from an aggregate with an availability zone.
seealso:
  - module: openstack.cloud.host_aggregate
    description: Create host aggregates, and set all their hosts.
  - module: osops.placement.compute_host_info
"""

EXAMPLES = r"""
---
- name: Remove a host from all its aggregates
  osops.placement.aggregate_host:
    cloud: admin
    host: compute-17
    state: absent
"""

RETURN = r"""
aggregates:
  description: The aggregates from which the host was removed, or would be in check mode.
  returned: success
  type: list
  elements: dict
  sample: []
  contains:
    id:
      description: Number of the aggregate, by which Nova's requests name it.
      returned: success
      type: int
      sample: 3
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
    zone:
      description: Its availability zone; V(null) without one.
      returned: success
      type: str
    metadata:
      description: Its metadata.
      returned: success
      type: dict
      sample:
        ssd: 'true'
left_mirrors:
  description: UUIDs of those aggregates in which a resource provider of the host still is;
    V(null) if Nova did not list its compute nodes.
  returned: when the host was removed
  type: list
  elements: str
  sample: []
"""

import typing as t
from collections.abc import Collection, Iterable

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import InvalidInput
from ..module_utils._common.uuids import require_uuid
from ..module_utils._core.clients.argspec import connection_options, run
from ..module_utils._core.clients.groups import AggregateClient
from ..module_utils._core.clients.nova import NovaReader
from ..module_utils._core.clients.placement import PlacementReader
from ..module_utils._core.clients.session import Session
from ..module_utils._core.models.documents import pick_fields
from ..module_utils._core.models.host_documents import AggregateDocument
from ..module_utils._core.models.nova import Aggregate

if t.TYPE_CHECKING:  # pragma: no cover
    from ..module_utils._core.clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Remove a host from host aggregates."""
    host = module.params["host"]
    if not host.strip():
        raise InvalidInput("host must not be empty.")
    chosen = _parse_aggregates(module.params["aggregates"])
    session = connect()
    client = AggregateClient(session.compute)
    present = client.list_aggregates_of(host)
    if chosen is not None:
        present = tuple(entry for entry in present if entry.uuid in chosen)
    result: dict[str, t.Any] = {
        "changed": bool(present),
        "aggregates": [pick_fields(AggregateDocument, entry) for entry in present],
    }
    if module._diff:
        names = [entry.name for entry in present]
        result["diff"] = {"before": {"aggregates": names}, "after": {"aggregates": []}}
    if not present or module.check_mode:
        return result
    for aggregate in present:
        client.remove_host(aggregate, host)
    left = _list_left_mirrors(session, host, present)
    if left is None:
        module.warn(
            "Nova did not list its compute nodes, so it is unknown whether providers of "
            f"{host} are still in these aggregates."
        )
    elif left:
        module.warn(
            f"Placement still has providers of {host} in aggregates that Nova removed it from: "
            f"{', '.join(left)}."
        )
    return {**result, "left_mirrors": left}


def _parse_aggregates(names: Iterable[str] | None) -> set[str] | None:
    if names is None:
        return None
    return {require_uuid(name, "aggregates") for name in names}


def _list_left_mirrors(
    session: Session, host: str, removed: Collection[Aggregate]
) -> list[str] | None:
    """Return the UUIDs of the aggregates of `removed` that a provider of the host is still in.

    None if Nova did not list its compute nodes, so that the providers of the host are unknown.
    """
    nodes = NovaReader(session.compute).list_hypervisors(with_servers=False).value
    if nodes is None:
        return None
    placement = PlacementReader(session.placement)
    mirrored: set[str] = set()
    for node in nodes:
        if node.host == host:
            mirrored |= placement.aggregates(node.uuid) or frozenset()
    return sorted(mirrored & {entry.uuid for entry in removed})


def main() -> None:
    argument_spec = {
        **connection_options(),
        "host": {"type": "str", "required": True},
        "aggregates": {"type": "list", "elements": "str"},
        "state": {"type": "str", "choices": ["absent"], "default": "absent"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
