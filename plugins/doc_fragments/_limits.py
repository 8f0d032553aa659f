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
  max_changes:
    description:
      - How many changes one run may make. With more than that planned, none is made.
      - It is shared out among the shards of a cloud.
        Of 100 changes and eight shards, the first four may make 13 each and the others 12.
    type: int
    default: 100
  max_share:
    description:
      - Which share of all consumers one run may change, as a fraction.
        With more than that planned, none is made.
      - Of a shard, those consumers count that were read for it.
      - Counts only above 20 changes, and not for findings of named hosts or consumers.
    type: float
    default: 0.1
"""
