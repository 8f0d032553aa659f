# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The table of kinds: what each means, and whether it is changed by default.

Their proofs are in `_rules`, under the same names.
"""

from __future__ import annotations

import dataclasses as d

REMEDIATE = "remediate"
OPT_IN = "opt-in"
REPORT = "report"


@d.dataclass(frozen=True)
class Kind:
    """A kind of finding.

    meaning: what it is, in the words of the table in the README.
    by_default: `remediate`, `opt-in` (changed when the user chooses it) or `report` (never
        changed).
    needs_every_cell: whether its proof is incomplete while any cell does not answer; otherwise only
        the cells of the consumer's hosts must answer (`_snapshot.gaps`).
    """

    name: str
    meaning: str
    by_default: str
    needs_every_cell: bool = False


# Allocations that nothing needs.
ORPHAN_KINDS = (
    Kind(
        "deleted_server",
        "Nova has a record of the server and of its deletion; the allocation stayed",
        REMEDIATE,
    ),
    Kind(
        "ended_migration",
        "the migration has ended and its server does not need its allocation",
        REMEDIATE,
    ),
    Kind(
        "deleted_migration",
        "a migration whose server is deleted; only its allocation is left",
        REMEDIATE,
        needs_every_cell=True,
    ),
    Kind(
        "evacuated_source",
        "the server was evacuated and still has an allocation on the host it left",
        REMEDIATE,
    ),
    Kind(
        "extra_host",
        "the server is settled on its host and has an allocation on another one as well",
        REMEDIATE,
    ),
    Kind(
        "unhosted_server",
        "the server failed to boot or is shelved and offloaded: it has no host",
        REMEDIATE,
    ),
    Kind(
        "unknown_consumer",
        "Nova has no record of it at all; the proof rests on absence alone",
        OPT_IN,
        needs_every_cell=True,
    ),
)
# Allocations of live servers that are not as they should be.
DRIFT_KINDS = (
    Kind(
        "unreverted_allocation",
        "an ended migration has the allocation that its server needs",
        REMEDIATE,
    ),
    Kind(
        "misplaced_allocation",
        "the server is settled on its host and has an allocation on another one only",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "missing_allocation",
        "the server is settled on its host and has no allocation",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "wrong_amount",
        "the allocation of the server is not what its flavor says",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "wrong_owner", "the allocation belongs to another project or user than the server", OPT_IN
    ),
    Kind(
        "leaked_child",
        "the server has an allocation on a child provider that nothing explains",
        REPORT,
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
        "another provider has the name of a compute node (LP 1817833)",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "capacity_mismatch",
        "more is allocated than there is, or the inventory is not what the host reports",
        REPORT,
    ),
    Kind(
        "unconfirmed_resize",
        "a resize that has waited very long to be confirmed or reverted",
        REPORT,
    ),
    Kind("stuck_migration", "a migration under way that has not changed for a long time", REPORT),
    Kind("stale_service", "a compute service that is down, and disabled or without a node", REPORT),
)
KINDS = (*ORPHAN_KINDS, *DRIFT_KINDS, *CONDITION_KINDS)

CHANGEABLE_KINDS = tuple(kind for kind in KINDS if kind.by_default != REPORT)
CONSUMER_KINDS = tuple(kind for kind in CHANGEABLE_KINDS if kind not in CONDITION_KINDS)

# The names of kinds in version 1.0.0, which its state files and journals contain.
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


def get_finding_subject(identity: str) -> str:
    """Return the subject in the id (`kind/subject`) of a finding."""
    return identity.partition("/")[2]


def rename_finding(identity: str) -> str:
    """Return today's id (`kind/subject`) of a finding, whose kind may have an older name."""
    kind, slash, subject = identity.partition("/")
    return f"{rename_kind(kind)}{slash}{subject}"
