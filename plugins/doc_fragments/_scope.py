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
  hosts:
    description:
      - Look only at what is claimed of these hosts, and at the servers on them.
        Names or UUIDs of hypervisors, hosts of compute services,
        or of providers that no hypervisor stands behind any more.
        Empty for all.
      - Everything about them is looked at closely, whether it looks right or not.
    type: list
    elements: str
    default: []
  consumers:
    description:
      - Look only at these consumers, by UUID. That of a server stands for its migrations' too.
        Empty for all.
      - They are looked at closely, whether they look right or not.
    type: list
    elements: str
    default: []
  projects:
    description:
      - Look only at consumers that count for these projects, by UUID. Empty for all.
    type: list
    elements: str
    default: []
  kinds:
    description:
      - Report only findings of these kinds.
        Empty for all.
        What is protected or undecided is told in any case.
      - Two kinds are looked for everywhere only when they are named here,
        for they take a request for each consumer or provider of the cloud.
        V(wrong_owner) is otherwise found among consumers that are
        looked at closely, and V(capacity_mismatch) on named O(hosts).
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - misplaced_allocation
      - missing_allocation
      - wrong_amount
      - wrong_owner
      - leaked_child
      - orphaned_provider
      - name_conflict
      - capacity_mismatch
      - unconfirmed_resize
      - stuck_migration
      - stale_service
    default: []
  mode:
    description:
      - With V(full), Nova is asked for all servers of all
        hosts, and every consumer is compared with that.
      - With V(triage), consumers and servers are read only of hosts whose figures
        of used processors and memory are not what is claimed of them in Placement,
        of hosts that are not up, and of providers that no hypervisor stands behind.
        It takes a fraction of the time.
        It cannot see claims that leave both sums as they are (an orphan beside a
        missing claim of the same size, claims of disk, child or custom classes
        alone, a wrong project or user), and it never decides on V(unknown_consumer).
      - Named O(hosts) and O(consumers) are always looked at in full.
    type: str
    choices:
      - full
      - triage
    default: full
  shard:
    description:
      - Read one part of a very large cloud, such as V(2/8) for the second of eight.
        All parts together find what one run over the whole cloud
        does, and each finding is told by exactly one of them.
      - Hosts are dealt out by a hash of the UUID of their root provider.
        Claims are listed only of the hosts of this part; whoever is
        looked at closely is judged over everything that it holds.
      - Cannot go with O(hosts), O(consumers) or O(mode=triage).
    type: str
"""
