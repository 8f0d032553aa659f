# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cell_hosts
short_description: Read the hosts of cells from the output of nova-manage
version_added: 2.0.0
description:
  - Reads the table of C(nova-manage cell_v2 list_hosts), and returns the hosts of some cells for
    the option O(osops.placement.orphan_detect#module:cell_hosts).
  - The role P(osops.placement.orphan_cleanup#role) uses it for C(orphan_cleanup_cells).
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The result of the task that ran the command, also if the task failed or the host
      could not be reached.
    type: dict
    required: true
  cells:
    description: The names or UUIDs of the cells.
    type: list
    elements: str
    required: true
seealso:
  - plugin: osops.placement.orphan_cleanup
    plugin_type: role
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: List the hosts of all cells
  ansible.builtin.command: nova-manage cell_v2 list_hosts
  register: listing
  changed_when: false

- name: Find the orphans of one cell
  osops.placement.orphan_detect:
    cloud: mycloud
    cells:
      - cell1
    cell_hosts: "{{ (listing | osops.placement.cell_hosts(['cell1'])).hosts }}"
"""

RETURN = r"""
_value:
  description: The hosts of the cells.
  type: dict
  contains:
    hosts:
      description: The names of the hosts, by the name or UUID with which each cell was named. It
        is empty if there is a fault.
      returned: always
      type: dict
      sample:
        cell1:
          - compute-1
          - compute-2
    fault:
      description: Why the hosts are not certain; otherwise empty.
      returned: always
      type: str
      sample: ''
  sample:
    hosts:
      cell1:
        - compute-1
        - compute-2
    fault: ''
"""

import typing as t
from collections.abc import Mapping

if t.TYPE_CHECKING:  # pragma: no cover
    from ..plugin_utils._stage.nova_manage import TaskResult


def cell_hosts(listing: TaskResult, cells: t.Any) -> Mapping[str, t.Any]:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ..plugin_utils._stage.nova_manage import describe_cell_hosts

    return describe_cell_hosts(listing, cells)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"cell_hosts": cell_hosts}
