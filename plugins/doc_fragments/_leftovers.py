# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - The minimum age of a leftover, and of what Nova last did to its server. A younger one is
        protected, and so is a directory in which something changed since.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description:
      - The same for leftovers of a server that Nova has no record of.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
    version_added: 2.0.0
  exclude_consumers:
    description:
      - The UUIDs of servers whose leftovers are never changed. They are reported as protected.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - The names of hosts on which nothing is ever changed, or the names or UUIDs of their resource
        providers.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
"""
