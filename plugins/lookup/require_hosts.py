# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: require_hosts
short_description: Fail if a play has no hosts
version_added: 2.0.0
description:
  - Returns the pattern that is given, for C(hosts) of a play. If no host of the inventory matches
    it, or if C(--limit) leaves out all hosts that match, the playbook fails with one sentence.
  - Ansible itself skips a play without hosts, and succeeds.
author:
  - osops.placement contributors (@osops)
options:
  _terms:
    description: The pattern, which is one text or a list of texts.
    type: raw
    required: true
  variable:
    description: The name of the variable that changes the pattern, for the message.
    type: str
    default: ""
  scope:
    description: The name of the variable that says what to examine instead of C(--limit), for the
      message.
    type: str
    default: ""
"""

EXAMPLES = r"""
---
- name: Do something on all clouds, of which there must be some
  hosts: "{{ lookup('osops.placement.require_hosts', 'clouds') }}"
  gather_facts: false
  tasks:
    - name: Show the name of the cloud
      ansible.builtin.debug:
        var: inventory_hostname
"""

RETURN = r"""
_raw:
  description: The pattern.
  type: list
  elements: str
  sample:
    - clouds
"""

import typing as t

from ansible import context
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils._variables.play_hosts import (
    LEFT_OUT,
    explain_no_hosts,
    has_hosts,
    leaves_out_checks,
    list_patterns,
)

# With these options of the command line, no play runs.
_LISTINGS = ("syntax", "listhosts", "listtasks", "listtags")


class LookupModule(LookupBase):
    def run(
        self, terms: list[t.Any], variables: dict[str, t.Any] | None = None, **kwargs: t.Any
    ) -> list[str]:
        self.set_options(var_options=variables, direct=kwargs)
        patterns = list_patterns(terms)
        if any(map(context.CLIARGS.get, _LISTINGS)):
            return [",".join(patterns)]
        if leaves_out_checks():
            raise AnsibleLookupError(LEFT_OUT)
        inventory = variables or {}
        limit = inventory.get("ansible_limit")
        if not has_hosts(patterns, inventory["groups"], limit, self._loader):
            raise AnsibleLookupError(
                explain_no_hosts(
                    patterns,
                    limit,
                    has_inventory=bool(inventory["groups"].get("all")),
                    variable=self.get_option("variable"),
                    scope=self.get_option("scope"),
                )
            )
        return [",".join(patterns)]
