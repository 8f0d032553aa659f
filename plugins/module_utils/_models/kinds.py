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
        "deleted_server", "Nova remembers the server and its deletion; the claim stayed", REMEDIATE
    ),
    Kind(
        "ended_migration",
        "the migration is over and its server needs nothing of its claim",
        REMEDIATE,
    ),
    Kind(
        "deleted_migration",
        "a migration whose server is deleted; only its claim is left",
        REMEDIATE,
        needs_every_cell=True,
    ),
    Kind(
        "evacuated_source", "the server was evacuated and still holds the host it left", REMEDIATE
    ),
    Kind("extra_host", "the server rests on its host and holds another one as well", REMEDIATE),
    Kind(
        "unhosted_server", "the server failed to boot or is shelved away: it has no host", REMEDIATE
    ),
    Kind(
        "unknown_consumer",
        "Nova has no memory of it at all; a conclusion from absence",
        OPT_IN,
        needs_every_cell=True,
    ),
)
# Allocations of live servers that are not as they should be.
DRIFT_KINDS = (
    Kind(
        "unreverted_allocation",
        "an ended migration holds the claim that its server needs",
        REMEDIATE,
    ),
    Kind(
        "misplaced_allocation",
        "the server rests on its host and holds only another one",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "missing_allocation",
        "the server rests on its host and holds nothing",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind(
        "wrong_amount",
        "the server holds more or less than its flavor says",
        OPT_IN,
        needs_every_cell=True,
    ),
    Kind("wrong_owner", "the claim counts for another project or user than the server's", OPT_IN),
    Kind("leaked_child", "the server holds a child provider that nothing of it explains", REPORT),
)
# Conditions that are not about one consumer.
CONDITION_KINDS = (
    Kind(
        "orphaned_provider",
        "a provider that was a compute node's, with no compute node behind it",
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
        "more is claimed than there is, or the inventory is not the host's",
        REPORT,
    ),
    Kind(
        "unconfirmed_resize",
        "a resize that waits to be confirmed or reverted for very long",
        REPORT,
    ),
    Kind("stuck_migration", "a migration under way that has not changed for very long", REPORT),
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
