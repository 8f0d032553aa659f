# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fenced_hosts
short_description: Choose the hosts that the operator has fenced
version_added: 2.0.0
description:
  - Returns which of the hosts of a run are fenced, by the operator's word alone.
  - The role P(osops.placement.host_decommission#role) uses it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description:
      - V(true) for all hosts of the run, V(false) for none, or the names of those that are fenced,
        as a list or as a text with commas.
    type: raw
    required: true
  targets:
    description: The hosts of the run.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
---
- name: Drain a host that may be down
  osops.placement.host_drain:
    host: compute-17
    fenced: "{{ 'compute-17' in (fenced | osops.placement.fenced_hosts(['compute-17'])) }}"
    output_dir: /var/lib/drain
"""

RETURN = r"""
_value:
  description: The names of the hosts that are fenced.
  type: list
  elements: str
  sample:
    - compute-17
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._common.errors import InvalidInput


def fenced_hosts(value: t.Any, targets: t.Iterable[str]) -> list[str]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._variables.values import select_fenced_hosts

    try:
        return select_fenced_hosts(value, targets)
    except InvalidInput as error:
        raise AnsibleFilterError(f"host_decommission_fenced {error}") from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"fenced_hosts": fenced_hosts}
