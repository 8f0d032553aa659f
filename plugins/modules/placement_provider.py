#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: placement_provider
short_description: Delete a tree of resource providers from the Placement service
version_added: 1.0.0
description:
  - Deletes a root resource provider and everything below it, children before their parents. What
    remains of a host after its compute service was deleted, for one, keeps its name from the host
    that comes next.
  - Refuses while any consumer holds a share of the tree, and while a compute node stands behind it
    or may do so. The provider of a compute node goes with its service, see
    M(osops.placement.compute_service).
  - Placement itself refuses, too, to delete a provider of which somebody holds a share, also if
    that is claimed in the last moment.
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
  name:
    description:
      - Name or UUID of the root of the tree.
      - Only whole trees are deleted. The name of a provider below a root fails the task, which then
        names the root.
    type: str
    required: true
    aliases:
      - resource_provider
  state:
    description:
      - What is to be. Providers are made by the services that they belong to.
    type: str
    choices:
      - absent
    default: absent
  ignore_other_regions:
    description:
      - Delete the tree also when another region of the catalogue has a Nova of its own on the same
        Placement.
      - This module asks one Nova for its compute nodes. Set it after you have made sure that none
        of the other one's is behind the tree.
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
  - It is refused as well when Nova cannot list all of its compute nodes, as with a cell that does
    not answer, and when most of those that it lists are no resource providers here, as with the
    wrong region.
seealso:
  - module: osops.placement.placement_provider_info
  - module: osops.placement.placement_allocation
  - module: osops.placement.compute_service
"""

EXAMPLES = r"""
---
- name: Delete what is left of a host that was removed years ago
  osops.placement.placement_provider:
    cloud: admin
    name: compute-17
    state: absent
"""

RETURN = r"""
providers:
  description:
    - The providers that were deleted, or would be in check mode, in their order, children before
      their parents.
    - When a part of the tree could not be deleted, the providers that were.
  returned: success, or when the deletion of a tree was begun
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
    parent:
      description: UUID of the provider above it in its tree, or V(null) for the root.
      returned: success
      type: str
      sample: null
consumers:
  description:
    - UUIDs of the consumers that hold a share of the tree, for which it is not deleted.
  returned: when there are such
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
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
from ansible_collections.osops.placement.plugins.module_utils._hosts.preconditions import (
    check_no_compute_node,
    describe_consumers,
    find_tree,
    leave_out_consumers,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import (
    list_host_names,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect
    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Provider,
    )


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Delete a tree of resource providers, unless something still needs it."""
    session = connect()
    placement = PlacementReader(session.placement)
    providers = placement.list_providers()
    tree = find_tree(module.params["name"], providers)
    described = _describe_providers(tree)
    result: dict[str, t.Any] = {"changed": bool(tree), "providers": described}
    if module._diff:
        result["diff"] = {"before": {"providers": described}, "after": {"providers": []}}
    if not tree:
        return result
    root = tree[-1]
    consumers = placement.list_allocations_on_providers(provider.uuid for provider in tree)
    if module.check_mode:
        consumers = leave_out_consumers(consumers, module.params["assume_removed"])
    _check_no_compute_node(module, session, root, providers)
    reason = describe_consumers(consumers, f"the tree of {root.name}")
    if reason:
        return {
            "failed": True,
            "msg": f"{reason} Remove what they hold first.",
            "consumers": sorted(consumers),
        }
    if module.check_mode:
        return result
    gone, refusal = ProviderWriter(session.placement).delete_tree(tree)
    if refusal:
        return {
            "failed": True,
            "msg": refusal,
            "changed": bool(gone),
            "providers": _describe_providers(gone),
        }
    return result


def _check_no_compute_node(
    module: AnsibleModule, session: Session, root: Provider, providers: Mapping[str, Provider]
) -> None:
    nova = NovaReader(session.compute)
    other_novas = session.other_novas
    if module.params["ignore_other_regions"]:
        other_novas = ()
    lookups = {name: nova.get_host(name) for name in list_host_names(root.name)}
    check_no_compute_node(
        root,
        providers,
        nova.list_hypervisors(with_servers=False),
        nova.list_services(),
        other_novas,
        lookups,
    )


def _describe_providers(providers: Iterable[Provider]) -> list[dict[str, t.Any]]:
    return [
        {"uuid": provider.uuid, "name": provider.name, "parent": provider.parent}
        for provider in providers
    ]


def main() -> None:
    argument_spec = {
        **connection_options(),
        "name": {"type": "str", "required": True, "aliases": ["resource_provider"]},
        "state": {"type": "str", "choices": ["absent"], "default": "absent"},
        "ignore_other_regions": {"type": "bool", "default": False},
        "assume_removed": {"type": "list", "elements": "str", "default": []},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
