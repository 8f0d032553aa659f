# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  run:
    description:
      - The run of a role that this is a stage of, as M(osops.placement.validate_variables) returns
        it.
      - The stage is recorded in C(run.json) in the folder of the run. It does nothing if an earlier
        stage failed, and its own failure does not fail the task. M(osops.placement.orphan_report)
        shows it.
    type: dict
    version_added: 3.0.0
"""
