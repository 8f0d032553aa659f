# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_document
short_description: Choose what a host uses of a document
version_added: 2.0.0
description:
  - A module takes a plan or a journal as a path or as its contents. This filter makes a relative
    path absolute, starting in the current directory of the user, and leaves contents as they are.
  - Of a dictionary with C(by_host), which a job over several inventory hosts exports, it returns
    the document of one host. Its key is the name of the host, or C(host) and a space and the name.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The path of the document, its contents, or a dictionary with C(by_host).
    type: raw
    required: true
  host:
    description: The name of the inventory host.
    type: str
    required: true
"""

EXAMPLES = r"""
---
- name: Check a reviewed plan, wherever it comes from
  osops.placement.orphan_plan:
    plan: "{{ orphan_cleanup_plan | osops.placement.host_document(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description:
    - The absolute path or the contents of the document.
    - An empty text if C(by_host) has none for this host. Modules refuse an empty text, and a role
      that was given a plan never continues without one.
  type: raw
  sample: /home/operator/orphan-cleanup/plan.json
"""

import typing as t

from ..plugin_utils._variables.values import choose_document


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"host_document": choose_document}
