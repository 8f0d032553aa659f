# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - Younger allocations are protected. The age is the time since the newest write of the allocation, by Placement's own clock.
      - Seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  forgotten_min_age:
    description:
      - The same for V(forgotten_consumer), which is convicted by absence.
    type: str
    default: 24h
  exclude_consumers:
    description:
      - UUIDs of consumers that are never touched. They are reported as protected.
    type: list
    elements: str
    default: []
  exclude_providers:
    description:
      - Names or UUIDs of resource providers that are never touched, with everything that holds a share of them or of their tree.
    type: list
    elements: str
    default: []
"""
