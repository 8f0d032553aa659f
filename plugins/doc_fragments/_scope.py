# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  hosts:
    description:
      - Read only the allocations on these hosts, and the servers on them. If it is empty, all hosts
        are read.
      - Each entry is the name or UUID of a hypervisor, the name of the host of a compute service,
        or the name or UUID of a provider whose compute node no longer exists. These are not hosts
        of an inventory.
      - All consumers with allocations on these hosts are looked up directly, whether or not
        something seems wrong with them.
    type: list
    elements: str
    default: []
  consumers:
    description:
      - Read only these consumers, by UUID. The UUID of a server includes its migrations. If it is
        empty, all consumers are read.
      - These consumers are looked up directly, whether or not something seems wrong with them.
    type: list
    elements: str
    default: []
  projects:
    description:
      - Read only consumers whose allocations are recorded for these projects, each by its name or
        UUID. If it is empty, the consumers of all projects are read.
      - Names are looked up in Keystone, which needs the permission to list projects. It is an error
        if there is no project of that name, or more than one in different domains.
      - A UUID that neither Keystone nor Placement knows is an error too. If the credentials cannot
        read projects, a UUID is used unchecked, and a warning says so.
    type: list
    elements: str
    default: []
  aggregates:
    description:
      - Read only the hosts of these host aggregates, each by its name, UUID or id. If it is empty,
        the hosts of all aggregates and of none are read.
      - Several aggregates add up. O(aggregates), O(availability_zones), O(cells) and O(hosts)
        narrow each other. A host must be in one of each that is not empty.
      - Nova is asked once which hosts these are, before anything else is read. It is an error if an
        aggregate does not exist or has no hosts, and if no host is left.
      - These hosts are read like the whole cloud, and only they. Consumers are looked up directly
        only if the listings do not show them to be in order.
      - An allocation that a server of these hosts has on another host is found when that host is
        read.
      - This option cannot be combined with O(consumers), O(shard) and O(mode=incremental).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  availability_zones:
    description:
      - Read only the hosts in these availability zones, by name. Also the default zone has a name,
        V(nova) unless Nova is configured otherwise.
      - While a cell does not answer, Nova does not say the zone of its hosts. Such a host is read
        only if an aggregate shows its zone, and a warning names the others.
      - Otherwise it is like O(aggregates).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  cells:
    description:
      - Read only the hosts of these cells, each by its key in O(cell_hosts).
      - No API of Nova says which hosts a cell has, so O(cell_hosts) is required with it.
      - Otherwise it is like O(aggregates).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  cell_hosts:
    description:
      - The hosts of each cell, as lists of names by the name or UUID of the cell, as C(nova-manage
        cell_v2 list_hosts) lists them.
      - It has an effect only with O(cells), and decides only what is read. A wrong host is still
        judged by what Nova says about it.
      - A host in two cells is an error. A warning names the hosts of the named cells of which Nova
        lists no compute service.
    type: dict
    default: {}
    version_added: 2.0.0
  kinds:
    description:
      - Report only findings of these kinds. If it is empty, all kinds are reported. Protected and
        undecided consumers are always reported.
      - Three kinds are searched for everywhere only if you name them here, because they take a
        request for each consumer or provider of the cloud. Otherwise, V(wrong_owner) is found only
        among consumers that are looked up directly, V(capacity_mismatch) only on the named O(hosts)
        and on the providers of other findings, and V(uneven_capacity) nowhere.
      - For V(missing_project), the projects of all servers are read only if you name it here, and
        otherwise those of the consumers that are looked up directly. For V(stuck_deletion), servers
        in C(ERROR) are read only if you name it here, and for named O(hosts) and O(consumers).
      - With V(wrong_amount), every server is compared by itself with what Nova would allocate for
        it. Otherwise only those are compared whose hosts report other sums than Placement, or have
        child providers in use.
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
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
      - orphaned_provider
      - name_conflict
      - capacity_mismatch
      - uneven_capacity
      - aggregate_mismatch
      - trait_mismatch
      - zone_mismatch
      - unconfirmed_resize
      - stuck_migration
      - unfinished_evacuation
      - stale_service
      - stuck_deletion
      - missing_project
      - bare_metal_mismatch
    default: []
  mode:
    description:
      - With V(full), Nova is asked for all servers of all hosts, and every consumer is compared
        with them.
      - With V(incremental), only what changed since the last reading is read, and what had a
        finding then, see O(memory). It finds what V(full) finds, except for what was changed in a
        database by hand and for servers that were deleted and archived in between. After
        O(full_every), everything is read.
      - Named O(hosts), O(consumers), O(aggregates), O(availability_zones) and O(cells) are always
        read in full, and not with V(incremental).
    type: str
    choices:
      - full
      - incremental
    default: full
  shard:
    description:
      - Read one part of a very large cloud, for example V(2/8) for the second of eight parts. All
        parts together find the same as one run on the whole cloud, and exactly one part reports
        each finding.
      - The hosts are divided by a hash of the UUID of their root provider. Only allocations on the
        hosts of this part are listed, but each candidate is judged by all its allocations.
      - This option cannot be combined with O(hosts), O(consumers), O(aggregates),
        O(availability_zones) or O(cells).
    type: str
"""
