# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_path
short_description: Make a path absolute, with a part of its own for each host
version_added: 2.0.0
description:
  - Returns the absolute path, with C(~) expanded and symbolic links resolved. A relative path
    starts in the current directory of the user, where filters run and modules do not.
  - A host that is named gets a part of the path for itself, so that hosts do not overwrite each
    other's files. Characters that a file system could misunderstand are replaced, and two hosts
    never share a part.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The path. An empty path stays empty.
    type: str
    required: true
  host:
    description: The name of the host. Without it, the path gets no part for a host.
    type: str
    default: ""
  place:
    description:
      - Where the path names the host.
      - V(folder) appends a folder, V(parent) inserts a folder before the last part of the path, and
        V(name) extends the name of the file.
    type: str
    choices:
      - folder
      - parent
      - name
    default: folder
"""

EXAMPLES = r"""
---
- name: Show where the files of this host are
  ansible.builtin.debug:
    msg: "{{ 'orphan-cleanup' | osops.placement.host_path(inventory_hostname) }}"

- name: Show where the metrics of this host are, beside those of other hosts
  ansible.builtin.debug:
    msg: "{{ '/metrics/placement.prom' | osops.placement.host_path('north', place='name') }}"
"""

RETURN = r"""
_value:
  description: The absolute path.
  type: str
  sample: /metrics/placement-north.prom
"""

import typing as t

from ..plugin_utils._variables.values import build_host_path


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"host_path": build_host_path}
