# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed
      status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly
      needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description:
      - When run twice in a row outside check mode, with the same
        arguments, the second invocation indicates no change.
      - This assumes that the cloud or host has not changed in a relevant way.
"""

    # Should be used together with the standard fragment
    READ_ONLY = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This action changes neither the cloud nor a host.
  diff_mode:
    support: N/A
    details:
      - This action changes neither the cloud nor a host.
  idempotent:
    support: full
    details:
      - This action changes neither the cloud nor a host.
"""

    ACTION_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/osops.placement.placement) in
      C(module_defaults) to set defaults for this module.
    support: full
    membership:
      - osops.placement.placement
"""
