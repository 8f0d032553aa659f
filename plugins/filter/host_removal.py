# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_removal
short_description: Say whether anything remains of a decommissioned host
version_added: 2.0.0
description:
  - Checks that a host has no compute service, no compute node, no resource provider, no host
    aggregate and no network agent any more, and that no other provider has its name.
  - The role P(osops.placement.host_decommission#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The host as M(osops.placement.compute_host_info) returns it now.
    type: dict
    required: true
  before:
    description: The host as M(osops.placement.compute_host_info) returned it before the removal.
    type: dict
    required: true
  providers:
    description: The resource providers that have one of the host's names, as
      M(osops.placement.placement_provider_info) returns them.
    type: list
    elements: dict
    required: true
  agents:
    description: Which network agents of the host must be gone too. With V(dead), those that are
      alive may have registered themselves again.
    type: str
    choices:
      - all
      - dead
      - none
    default: all
"""

EXAMPLES = r"""
---
- name: Verify that nothing remains of the host
  vars:
    removal: >-
      {{ now.hosts[0] | osops.placement.host_removal(before.hosts[0], named.providers) }}
  ansible.builtin.assert:
    that: removal.complete
    fail_msg: "{{ removal.message }}"
"""

RETURN = r"""
_value:
  description: The outcome of the removal.
  type: dict
  contains:
    complete:
      description: Whether nothing remains of the host.
      returned: always
      type: bool
      sample: true
    message:
      description: A sentence that names everything that remains, or says that nothing remains.
      returned: always
      type: str
      sample: "compute-17 is gone: no service, no compute node, no provider, and its name is free."
  sample:
    complete: true
    message: "compute-17 is gone: no service, no compute node, no provider, and its name is free."
"""

import dataclasses as d
import typing as t


def host_removal(
    after: t.Mapping[str, t.Any],
    before: t.Mapping[str, t.Any],
    providers: t.Iterable[t.Mapping[str, t.Any]],
    agents: str = "all",
) -> dict[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._hosts.host_tasks import describe_host_removal

    return d.asdict(describe_host_removal(before, after, providers, agents))


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"host_removal": host_removal}
