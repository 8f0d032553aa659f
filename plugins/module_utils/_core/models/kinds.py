# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of kinds: what each means, and whether it is changed by default.

The proof of each kind is the function of its name in `kinds`.
"""

from __future__ import annotations

import dataclasses as d

from .minimum_python import require_python

# Every module that does not run on hypervisors imports this file, also those without a snapshot.
require_python()

REMEDIATE = "remediate"
OPT_IN = "opt-in"
REPORT = "report"


@d.dataclass(frozen=True)
class Kind:
    """A kind of finding.

    meaning: what it is, as a sentence without its full stop; the README has the same words.
    by_default: `remediate`, `opt-in` (changed only if the user chooses the kind) or `report` (never
        changed).
    needs_every_cell: whether its proof is incomplete while any cell does not answer; otherwise only
        the cells of the consumer's hosts must answer (`facts.gaps`).
    """

    name: str
    meaning: str
    by_default: str
    needs_every_cell: bool = False


# Allocations that nothing needs.
ORPHAN_KINDS = (
    Kind("deleted_server", "Nova deleted the server, but its allocation remains", REMEDIATE),
    Kind(
        "ended_migration",
        "the migration has ended, and its server does not need its allocation",
        REMEDIATE,
    ),
    Kind(
        "deleted_migration",
        "the migration was deleted with its server, but its allocation remains",
        REMEDIATE,
        needs_every_cell=True,
    ),
    Kind(
        "evacuated_source",
        "the server was evacuated, but still has an allocation on the host that it left",
        REMEDIATE,
    ),
    Kind(
        "extra_host",
        "the server has an allocation on its own host and on another one as well",
        REMEDIATE,
    ),
    Kind(
        "unhosted_server",
        "the server failed to boot or was offloaded, but still has an allocation",
        REMEDIATE,
    ),
    Kind(
        "unknown_consumer",
        "Nova has no record of the consumer; this rests on absence of evidence alone",
        # Zun and operators who block capacity by hand make allocations that look the same.
        OPT_IN,
        needs_every_cell=True,
    ),
)
# Allocations of live servers that are not as they should be.
DRIFT_KINDS = (
    Kind(
        "unreverted_allocation",
        "an ended migration still has the allocation that its server needs",
        REMEDIATE,
    ),
    # What needs every cell is written onto a compute node, which only the whole listing identifies.
    Kind(
        "former_provider",
        "the server's allocation is on the former provider of its host, whose compute node has "
        "another UUID now",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "misplaced_allocation",
        "the server has allocations only on hosts where it is not",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "missing_allocation",
        "the server is on a host, but has no allocation",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "leaked_port",
        "the server has bandwidth that none of its ports requests, left by a deleted or detached "
        "port (LP 1820588)",
        OPT_IN,
    ),
    Kind(
        "wrong_amount",
        "the amounts of the server's allocation differ from its flavor",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "wrong_owner",
        "the project or user that Placement records for the allocation is not the one that Nova "
        "has for the server",
        OPT_IN,
    ),
    Kind(
        "leaked_child",
        "nothing explains why the server has an allocation on a child provider",
        OPT_IN,
    ),
)
# Conditions that are not about one consumer.
CONDITION_KINDS = (
    Kind(
        "orphaned_provider",
        "a provider of a compute node that no longer exists",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "name_conflict",
        "a provider with another UUID has the name of a compute node (LP 1817833)",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "capacity_mismatch",
        "more is allocated than the capacity, or the inventory differs from the hypervisor",
        REPORT,
    ),
    Kind(
        "uneven_capacity",
        "the inventory differs from those of all other hosts of the same aggregate",
        REPORT,
    ),
    Kind(
        "aggregate_mismatch",
        "a host aggregate does not have the same hosts in Nova and in Placement",
        REPORT,
    ),
    Kind(
        "trait_mismatch",
        "a host lacks a trait that its aggregate requires, or shows another status than its "
        "service has",
        REPORT,
    ),
    Kind(
        "zone_mismatch",
        "a host is in two availability zones, or a server is not in the zone that it is bound to",
        REPORT,
    ),
    Kind(
        "unconfirmed_resize",
        "a resize that has waited very long to be confirmed or reverted",
        REPORT,
    ),
    Kind(
        "stuck_migration",
        "a migration that is under way but has not changed for very long",
        REPORT,
    ),
    Kind(
        "unfinished_evacuation",
        "a server is on the host that it was evacuated from, and nova-compute there destroys it at "
        "its next start",
        REPORT,
    ),
    Kind(
        "stale_service",
        "a compute service that is down, and is disabled, forced down or without a compute node",
        REPORT,
    ),
    Kind(
        "stuck_deletion",
        "a server whose deletion has failed, or began very long ago and has not ended",
        REPORT,
    ),
    Kind(
        "missing_project",
        "a project that Keystone no longer has, with servers that live on",
        REPORT,
    ),
    Kind(
        "bare_metal_mismatch",
        "a bare metal node that Ironic shows in another state than Placement",
        REPORT,
    ),
)
KINDS = (*ORPHAN_KINDS, *DRIFT_KINDS, *CONDITION_KINDS)

CHANGEABLE_KINDS = tuple(kind for kind in KINDS if kind.by_default != REPORT)
CONSUMER_KINDS = tuple(kind for kind in CHANGEABLE_KINDS if kind not in CONDITION_KINDS)

# The names of kinds in version 1.0.0, which its state files and journals contain. Both must go on
# being read, because a journal is what an allocation is restored from.
RENAMED_KINDS = {
    "wrong_host": "extra_host",
    "moved_server": "misplaced_allocation",
    "swapped_claim": "unreverted_allocation",
    "forgotten_consumer": "unknown_consumer",
    "forgotten_migration": "deleted_migration",
    "hostless_server": "unhosted_server",
    "ghost_provider": "orphaned_provider",
    "capacity_drift": "capacity_mismatch",
    "parked_resize": "unconfirmed_resize",
}


def rename_kind(kind: str) -> str:
    """Return today's name of a kind, which may be named as in an older version."""
    return RENAMED_KINDS.get(kind, kind)


def explain_unresolvable(kind: str) -> str:
    """Return why a change cannot resolve a finding of a kind, as the end of a sentence."""
    if kind in RENAMED_KINDS:
        return f"which was renamed to {RENAMED_KINDS[kind]} in version 2.0.0: make the plan again."
    return "which it cannot resolve."


def get_finding_subject(identity: str) -> str:
    """Return the subject in the id (`kind/subject`) of a finding."""
    return identity.partition("/")[2]


def rename_finding(identity: str) -> str:
    """Return today's id (`kind/subject`) of a finding, whose kind may have an older name."""
    kind, slash, subject = identity.partition("/")
    return f"{rename_kind(kind)}{slash}{subject}"
