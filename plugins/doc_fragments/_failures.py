# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  max_failures:
    description:
      - After how many failed changes the run gives up.
        What it has not tried by then is C(skipped), with that reason.
      - Changes are made a few at a time, so that a few more can fail than are given here.
    type: int
    default: 5
    version_added: 2.0.0
"""
