# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each kind says of itself in its file in `kinds`, in their order. Written by `make pages`."""

from __future__ import annotations

from .kind import CONDITION, DRIFT, OPT_IN, ORPHAN, REMEDIATE, REPORT, Kind

# fmt: off
KINDS = (
    Kind("deleted_server", "Nova deleted the server, but its allocation remains",
         ORPHAN, REMEDIATE),
    Kind("ended_migration", "The migration has ended, and its server does not need its allocation",
         ORPHAN, REMEDIATE),
    Kind("deleted_migration",
         "The migration was deleted with its server, but its allocation remains",
         ORPHAN, REMEDIATE, needs_every_cell=True, was="forgotten_migration"),
    Kind("evacuated_source",
         "The server was evacuated, but still has an allocation on the host that it left",
         ORPHAN, REMEDIATE),
    Kind("extra_host", "The server has an allocation on its own host and on another one as well",
         ORPHAN, REMEDIATE, was="wrong_host"),
    Kind("unhosted_server",
         "The server failed to boot or was offloaded, but still has an allocation",
         ORPHAN, REMEDIATE, was="hostless_server"),
    Kind("unknown_consumer",
         "Nova has no record of the consumer; this rests on absence of evidence alone",
         ORPHAN, OPT_IN, needs_every_cell=True, was="forgotten_consumer"),
    Kind("unreverted_allocation",
         "An ended migration still has the allocation that its server needs",
         DRIFT, REMEDIATE, was="swapped_claim"),
    Kind("former_provider",
         "The server's allocation is on the former provider of its host, whose compute node has "
         "another UUID now",
         DRIFT, OPT_IN, needs_every_cell=True),
    Kind("misplaced_allocation", "The server has allocations only on hosts where it is not",
         DRIFT, OPT_IN, needs_every_cell=True, was="moved_server"),
    Kind("missing_allocation", "The server is on a host, but has no allocation",
         DRIFT, OPT_IN, needs_every_cell=True),
    Kind("leaked_port",
         "The server has bandwidth that none of its ports requests, left by a deleted or detached "
         "port (LP 1820588)",
         DRIFT, OPT_IN),
    Kind("wrong_amount", "The amounts of the server's allocation differ from its flavor",
         DRIFT, OPT_IN, needs_every_cell=True),
    Kind("wrong_owner",
         "The project or user that Placement records for the allocation is not the one that Nova "
         "has for the server",
         DRIFT, OPT_IN),
    Kind("leaked_child", "Nothing explains why the server has an allocation on a child provider",
         DRIFT, OPT_IN),
    Kind("orphaned_provider", "A provider of a compute node that no longer exists",
         CONDITION, OPT_IN, needs_every_cell=True, was="ghost_provider"),
    Kind("name_conflict",
         "A provider with another UUID has the name of a compute node (LP 1817833)",
         CONDITION, OPT_IN, needs_every_cell=True),
    Kind("capacity_mismatch",
         "More is allocated than the capacity, or the inventory differs from the hypervisor",
         CONDITION, REPORT, was="capacity_drift"),
    Kind("uneven_capacity",
         "The inventory differs from those of all other hosts of the same aggregate",
         CONDITION, REPORT),
    Kind("aggregate_mismatch",
         "A host aggregate does not have the same hosts in Nova and in Placement",
         CONDITION, REPORT),
    Kind("trait_mismatch",
         "A host lacks a trait that its aggregate requires, or shows another status than its "
         "service has",
         CONDITION, REPORT),
    Kind("zone_mismatch",
         "A host is in two availability zones, or a server is not in the zone that it is bound to",
         CONDITION, REPORT),
    Kind("unconfirmed_resize", "A resize that has waited very long to be confirmed or reverted",
         CONDITION, REPORT, was="parked_resize"),
    Kind("stuck_migration", "A migration that is under way but has not changed for very long",
         CONDITION, REPORT),
    Kind("unfinished_evacuation",
         "A server is on the host that it was evacuated from, and nova-compute there destroys it "
         "at its next start",
         CONDITION, REPORT),
    Kind("stale_service",
         "A compute service that is down, and is disabled, forced down or without a compute node",
         CONDITION, REPORT),
    Kind("stuck_deletion",
         "A server whose deletion has failed, or began very long ago and has not ended",
         CONDITION, REPORT),
    Kind("missing_project", "A project that Keystone no longer has, with servers that live on",
         CONDITION, REPORT),
    Kind("bare_metal_mismatch",
         "A bare metal node that Ironic shows in another state than Placement",
         CONDITION, REPORT),
)
