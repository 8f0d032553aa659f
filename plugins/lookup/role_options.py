# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: role_options
short_description: Collect the variables of a role as options of modules
version_added: 2.0.0
description:
  - Returns a dictionary with the options of a group of modules, each with the value of the role's
    variable of that name. Options whose variable is not defined are left out.
  - The roles of this collection use it for their C(module_defaults).
author:
  - osops.placement contributors (@osops)
options:
  _terms:
    description: The name of the role, with which the names of its variables begin.
    type: list
    elements: str
    required: true
  group:
    description:
      - The options to return.
      - V(connection) are the options that all modules of the action group
        C(osops.placement.placement) have, such as O(osops.placement.orphan_detect#module:cloud).
      - V(policy) are the minimum ages, the exclusions and the ignored allocators, such as
        O(osops.placement.orphan_detect#module:min_age).
    type: str
    choices:
      - connection
      - policy
    required: true
seealso:
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: Read the cloud that the variables of the role name
  module_defaults:
    group/osops.placement.placement: >-
      {{ lookup('osops.placement.role_options', 'orphan_cleanup', group='connection') }}
  osops.placement.migration_info:
"""

RETURN = r"""
_raw:
  description: A dictionary of options for each role.
  type: list
  elements: dict
  sample:
    - cloud: admin
      api_timeout: 120
"""

import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..module_utils._common.options import Age
from ..module_utils._core.options.connection import ConnectionOptions
from ..module_utils._core.options.policy import Exclusions, PolicyOptions, convert_exclusions
from ..plugin_utils._variables.play_hosts import LEFT_OUT

_GROUPS = {"connection": ConnectionOptions, "policy": PolicyOptions}


class LookupModule(LookupBase):
    def run(
        self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any
    ) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        group = self.get_option("group")
        return [self._collect_options(role, group, variables or {}) for role in terms]

    def _collect_options(
        self, role: str, group: str, variables: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        # Who starts at a later task, or skips the tag always, leaves out the checks.
        if f"_{role}_validated" not in variables:
            raise AnsibleLookupError(LEFT_OUT)
        defined = {}
        listed = _GROUPS[group].list_options()
        for option in listed:
            if f"{role}_{option}" in variables:
                defined[option] = variables[f"{role}_{option}"]
        # Templated together, an option that is to be omitted is left out.
        templar: t.Any = self._templar
        options = {}
        for option, value in templar.template(defined).items():
            if isinstance(listed[option], Exclusions):
                options[option] = convert_exclusions(value)
            elif not (isinstance(listed[option], Age) and value in (None, "")):
                options[option] = value
        return options
