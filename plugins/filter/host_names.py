# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_names
short_description: Read the names of hosts in an answer of a survey
version_added: 2.0.0
description:
  - Returns the names in an answer of a survey of AWX or Automation Platform, or in any other
    variable that a user sets.
  - From ansible-core 2.19 on, such an answer is read as if it had no quotes, so that V(12345) is a
    number and V(no) is V(false). The name cannot be recovered from that, so it is an error. Quotes
    that are a part of the answer prevent this, and are removed.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The answer, a text or a list of texts. An empty answer is an empty list.
    type: raw
    required: true
  variable:
    description: The name of the variable with the answer, for the message of an error.
    type: str
    required: true
  split:
    description: Whether a text has several names, with commas between them.
    type: bool
    default: true
"""

EXAMPLES = r"""
---
- name: Examine only the hosts that the user named
  ansible.builtin.include_role:
    name: osops.placement.orphan_cleanup
    tasks_from: detect
    rolespec_validate: false
  vars:
    # An empty answer means all hosts.
    orphan_cleanup_hosts: >-
      {{ placement_hosts | osops.placement.host_names('placement_hosts') | default(omit, true) }}
"""

RETURN = r"""
_value:
  description: The names.
  type: list
  elements: str
  sample:
    - compute-1
    - "12345"
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._common.errors import InvalidInput
from ..plugin_utils._variables.values import read_host_names


def host_names(answer: t.Any, variable: str, split: bool = True) -> list[str]:
    try:
        return read_host_names(answer, variable, split)
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"host_names": host_names}
