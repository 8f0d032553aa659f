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
  - Deletes a root resource provider with all providers below it, children before their parents.
    Use it, for example, for a provider that was left behind when a compute service was deleted,
    and that blocks the name of its host.
  - The module refuses to delete a tree while any consumer has an allocation on it, and while a
    compute node is or may be behind it. The provider of a compute node is deleted together with
    its service, see M(osops.placement.compute_service).
  - Placement itself also refuses to delete a provider with allocations, even if an allocation was
    made at the last moment.
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
      - Only whole trees are deleted. If you name a provider below a root, the task fails and
        names the root.
    type: str
    required: true
    aliases:
      - resource_provider
  state:
    description:
      - 'The only state is V(absent): resource providers are created by the services to which they
        belong.'
    type: str
    choices:
      - absent
    default: absent
  ignore_other_regions:
    description:
      - Delete the tree even if another region in the service catalogue has its own Nova on the
        same Placement.
      - This module asks only one Nova for its compute nodes. Before you set this option, make
        sure that no compute node of the other Nova is behind the tree.
    type: bool
    default: false
  assume_removed:
    description:
      - UUIDs of consumers that an earlier task would have removed. In check mode, their
        allocations are not counted. Outside check mode, this option has no effect.
    type: list
    elements: str
    default: []
notes:
  - The module also refuses if Nova cannot list all of its compute nodes, for example because a
    cell does not answer, and if most of the compute nodes that Nova lists are not resource
    providers here, for example in the wrong region.
seealso:
  - module: osops.placement.placement_provider_info
  - module: osops.placement.placement_allocation
  - module: osops.placement.compute_service
"""

EXAMPLES = r"""
---
- name: Delete the provider of a host that was removed long ago
  osops.placement.placement_provider:
    cloud: admin
    name: compute-17
    state: absent
"""

RETURN = r"""
providers:
  description:
    - The deleted providers, or in check mode those that would be deleted, children before their
      parents.
    - If a part of the tree could not be deleted, only the deleted providers.
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
      description: UUID of its parent provider; V(null) for the root.
      returned: success
      type: str
      sample: null
consumers:
  description: UUIDs of the consumers with allocations on the tree, because of which it is not
    deleted.
  returned: when there are such
  type: list
  elements: str
  sample:
    - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
"""

import typing as t
from collections.abc import Iterable, Mapping

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.clients.argspec import connection_options, run
from ..module_utils._core.clients.nova import NovaReader
from ..module_utils._core.clients.placement import PlacementReader
from ..module_utils._core.clients.provider_writer import ProviderWriter
from ..module_utils._core.clients.session import Session
from ..module_utils._core.facts.agreement import list_host_names
from ..module_utils._core.facts.trees import (
    check_no_compute_node,
    describe_consumers,
    find_tree,
    leave_out_consumers,
)
from ..module_utils._core.models.placement import Provider

if t.TYPE_CHECKING:  # pragma: no cover
    from ..module_utils._core.clients.argspec import Connect


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
    # Children come first, as Placement deletes no parent of a provider.
    root = tree[-1]
    consumers = placement.list_allocations_on_providers(provider.uuid for provider in tree)
    if module.check_mode:
        consumers = leave_out_consumers(consumers, module.params["assume_removed"])
    _check_no_compute_node(module, session, root, providers)
    reason = describe_consumers(consumers, f"the tree of {root.name}")
    if reason:
        return {
            "failed": True,
            "msg": f"{reason} Remove these allocations first.",
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
    # The Novas of other regions cannot be asked from here: with this option the user vouches.
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
