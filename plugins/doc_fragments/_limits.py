# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  max_changes:
    description:
      - The maximum number of changes in one run. If more are planned, none is made.
      - The shards of a cloud divide this number among them. With 100 changes and eight shards, the
        first four shards may make 13 changes each and the others 12.
    type: int
    default: 100
  max_share:
    description:
      - The maximum number of changes in one run, as a fraction of all consumers that were read,
        from 0 to 1. If more are planned, none is made. V(0.1) allows changes to 10% of the
        consumers.
      - In a shard, only the consumers that were read for this shard count. After a detection with
        aggregates, availability zones or cells, only the consumers of their hosts count.
      - This limit applies only above 20 changes, and not to findings about hosts or consumers that
        you named one by one.
    type: float
    default: 0.1
"""
