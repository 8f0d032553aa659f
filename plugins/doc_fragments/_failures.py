# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  max_failures:
    description:
      - The run stops after this many failed changes. Changes that were not tried by then are
        reported as C(skipped), with that reason.
      - Several changes are made at the same time, so a few more than this number can fail.
    type: int
    default: 5
    version_added: 2.0.0
"""
