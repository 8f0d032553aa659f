# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: journal_artifact
short_description: Build the artifact with the journal of a cleanup run
version_added: 2.0.0
description:
  - Returns the journal of a run of the role P(osops.placement.orphan_cleanup#role) for other jobs,
    in the form that M(ansible.builtin.set_stats) takes. The entry point V(restore) of the role
    restores from it.
author:
  - osops.placement contributors (@osops)
options:
  _input:
    description: The parts of the journal, as M(osops.placement.orphan_remediate) returns them in
      RV(osops.placement.orphan_remediate#module:journal_parts).
    type: list
    elements: str
    required: true
  host:
    description: The inventory host of the run, if the play has several. Then the artifact has the
      parts under C(by_host) and this name.
    type: str
    default: ""
seealso:
  - module: osops.placement.orphan_restore
  - plugin: osops.placement.run_artifacts
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Export the journal
  ansible.builtin.set_stats:
    data: "{{ result.journal_parts | osops.placement.journal_artifact }}"
"""

RETURN = r"""
_value:
  description: The artifact.
  type: dict
  contains:
    orphan_cleanup_journal:
      description: The parts, or a dictionary with C(by_host).
      returned: always
      type: raw
      sample:
        - osops.placement.journal:1:1/1:9f86d081…:eNrT0yMAAGTvBe8
  sample:
    orphan_cleanup_journal:
      - osops.placement.journal:1:1/1:9f86d081…:eNrT0yMAAGTvBe8
"""

import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._run import build_journal_artifact


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"journal_artifact": build_journal_artifact}
