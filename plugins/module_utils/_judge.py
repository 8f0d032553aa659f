# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the snapshot proves about each consumer. Pure: no request, no clock, no Ansible.

`KINDS` is the table of kinds; each has one function in `_kinds` that proves it. `_protections` says what is never
changed. A consumer is judged once, over its whole holding.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils import _kinds
from ansible_collections.osops.placement.plugins.module_utils._case import Case, Landscape, trees
from ansible_collections.osops.placement.plugins.module_utils._document import change_to
from ansible_collections.osops.placement.plugins.module_utils._model import Finding
from ansible_collections.osops.placement.plugins.module_utils._protections import PROTECTIONS
from ansible_collections.osops.placement.plugins.module_utils._ruling import ORPHANED, Ruling, protected
from ansible_collections.osops.placement.plugins.module_utils._unproven import unproven

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Iterable

    from ansible_collections.osops.placement.plugins.module_utils._model import Hypervisor, Policy, Snapshot


@d.dataclass(frozen=True)
class Kind:
    """A kind of finding.

    meaning: what it is, in the words of the table in the README.
    prove: returns the ruling if the case is of this kind, else None.
    by_default: whether it is remediated unless the user chooses otherwise.
    """

    name: str
    meaning: str
    prove: Callable[[Case, Policy], Ruling | None]
    by_default: bool


KINDS = (
    Kind("deleted_server", "Nova remembers the server and its deletion; the claim stayed", _kinds.deleted_server, True),
    Kind("ended_migration", "the migration is over and its server needs nothing of its claim", _kinds.ended_migration, True),
    Kind("forgotten_migration", "a migration whose server is deleted; only its claim is left", _kinds.forgotten_migration, True),
    Kind("evacuated_source", "the server was evacuated and still holds the host it left", _kinds.evacuated_source, True),
    Kind("wrong_host", "the server rests on its host and holds another one as well", _kinds.wrong_host, True),
    Kind("unhosted_server", "the server failed to boot or is shelved away: it has no host", _kinds.unhosted_server, True),
    Kind("forgotten_consumer", "Nova has no memory of it at all; a conclusion from absence", _kinds.forgotten_consumer, False),
)


def judge(snapshot: Snapshot, policy: Policy) -> tuple[Finding, ...]:
    """Return a finding for each consumer that was looked at closely and is not healthy, in the order of their uuids."""
    land = Landscape(snapshot)
    findings = (_finding(case, policy) for case in _cases(land))
    return tuple(finding for finding in findings if finding)


def nominate(snapshot: Snapshot) -> list[str]:
    """Return the consumers that the listings do not already show to be servers that hold the tree of their host and nothing else.

    With nothing known of Nova's compute nodes nobody is nominated: everybody would be.
    """
    land = Landscape(snapshot)
    by_host: dict[str, list[Hypervisor]] = {}
    for node in land.nodes.values():
        by_host.setdefault(node.host, []).append(node)
    if not by_host:
        return []
    # Of a service with many nodes (ironic) the listing does not say which node a server is on.
    homes = {of_host[0].uuid: frozenset(of_host[0].servers) for of_host in by_host.values() if len(of_host) == 1}
    nominated = []
    for consumer, holding in snapshot.holdings.items():
        root, *others = trees(holding, land) or (None,)
        if others or root is None or consumer not in homes.get(root, ()):
            nominated.append(consumer)
    return sorted(nominated)


def _cases(land: Landscape) -> Iterable[Case]:
    dossiers = land.snapshot.dossiers
    for consumer in sorted(land.snapshot.holdings):
        dossier = dossiers.get(consumer)
        allocation = dossier.allocation.value if dossier else None
        if dossier is None or allocation is None or not allocation.resources:
            continue
        migration = land.migrations.get(consumer)
        subject = dossiers.get(migration.server, dossier) if migration else dossier
        yield Case(land, allocation, dossier, subject, migration)


def _finding(case: Case, policy: Policy) -> Finding | None:
    kind, ruling = _decide(case, policy)
    if ruling is None:
        return None
    orphaned = ruling.verdict == ORPHANED
    dropped = frozenset() if not orphaned else ruling.drops or frozenset(case.allocation.resources)
    return Finding(
        kind=kind,
        verdict=ruling.verdict,
        consumer=case.consumer,
        reason=ruling.reason,
        allocation=case.allocation,
        server=ruling.server or case.server,
        migration=ruling.migration or case.migration,
        evidence=(case.dossier.allocation, *ruling.evidence),
        change=change_to(case.allocation, dropped) if dropped else None,
        dropped=dropped,
    )


def _decide(case: Case, policy: Policy) -> tuple[str, Ruling | None]:
    if case.healthy:
        return "healthy", None
    for name, protect in PROTECTIONS.items():
        if reason := protect(case, policy):
            return name, protected(reason, *case.state_evidence)
    for kind in KINDS:
        if ruling := kind.prove(case, policy):
            return kind.name, ruling
    return unproven(case)
