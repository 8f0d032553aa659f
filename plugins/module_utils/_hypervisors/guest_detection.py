# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks Nova about the guests on hypervisors, and builds the document about them."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable

from .._common.errors import InvalidInput, describe_form_error
from .._common.parallel import map_parallel
from .._core.clients.nova import NovaReader
from .._core.clients.session import Session
from .._core.facts.index import ListingsIndex, SnapshotIndex
from .._core.facts.trees import require_compute_nodes
from .._core.findings.document import describe_answer
from .._core.findings.entries import FORMAT
from .._core.models.codec import convert_to_json
from .._core.models.snapshot import Snapshot
from .._core.models.verdict import ORPHANED, PROTECTED, UNDECIDED
from .._core.options.policy import Policy
from .._core.reading.reading import Collector
from .guest_rules import GuestFinding, check_compute_hosts, judge_guests, list_servers_to_look_up
from .guests import LEFTOVER_DIRECTORY, LEFTOVER_DOMAIN, RUNNING_LEFTOVER, Guest

if t.TYPE_CHECKING:  # pragma: no cover
    from .._core.models.codec import Json


class GuestDetector:
    """Judges guests over one session."""

    def __init__(self, session: Session, policy: Policy) -> None:
        self._reading = Collector(session, policy.pci_aliases)
        self._nova = NovaReader(session.compute)
        self._policy = policy

    def detect(
        self,
        guests: Collection[Guest],
        hosts: Collection[str],
        among: Collection[str] | None = None,
        quarantined: bool = False,
    ) -> Json:
        """Return what `hypervisor_guest_detect` writes about `guests`.

        hosts: the hosts of the guests, by the names of the hosts of their compute services.
        among: the ids of the guests that may be reported as left over; None for all.
        quarantined: whether the directories in the quarantine are reported instead of the others.
        Raises InvalidInput for a host without exactly one compute node.
        """
        listings = self._reading.collect_listings(with_servers=False)
        nodes = require_compute_nodes(listings.hypervisors)
        # A wrong name of a host would make all its guests look left over, so it comes first.
        check_compute_hosts(hosts, nodes)
        node_uuids = [node.uuid for node in nodes if node.host in hosts]
        # The servers of these hosts are enough: any other server is looked up directly.
        listings = self._reading.add_servers(listings, node_uuids)
        listings_index = ListingsIndex(listings)
        servers = list_servers_to_look_up(guests, listings_index)
        snapshot = self._reading.refresh_evidence(listings_index, servers)
        snapshot = self._add_host_migrations(snapshot, guests)
        index = SnapshotIndex(snapshot)
        findings = judge_guests(guests, index, self._policy)
        findings = [each for each in findings if each.guest.quarantined == quarantined]
        if among is not None:
            findings = _drop_other_leftovers(findings, among)
        return _build_document(findings, index, guests, hosts)

    def _add_host_migrations(self, snapshot: Snapshot, guests: Collection[Guest]) -> Snapshot:
        """Add the migrations of the hosts whose guests Nova does not find.

        The listing of all migrations does not prove that none of them names such a host.
        """
        # For a server that exists, its own migrations were read.
        gone = {uuid for uuid, one in snapshot.evidence.items() if one.server.status == 404}
        hosts = {guest.host for guest in guests if guest.uuid in gone}
        names = sorted(hosts)
        answers = map_parallel(self._nova.list_migrations_of_host, names)
        migrations_by_host = dict(zip(names, answers, strict=True))
        completed = {}
        for uuid, evidence in snapshot.evidence.items():
            asked = {guest.host for guest in guests if guest.uuid == evidence.uuid} & hosts
            added = [migrations_by_host[host] for host in sorted(asked)]
            migrations = (*evidence.host_migrations, *added)
            completed[uuid] = d.replace(evidence, host_migrations=migrations)
        return d.replace(snapshot, evidence=completed)


def _drop_other_leftovers(
    findings: Iterable[GuestFinding], among: Collection[str]
) -> list[GuestFinding]:
    """Return the findings without the leftover guests that are not in `among`."""
    # Guests to which nothing is done are always reported.
    return [
        finding
        for finding in findings
        if finding.kind == RUNNING_LEFTOVER
        or finding.decision.verdict != ORPHANED
        or finding.guest.id in among
    ]


def parse_leftover_ids(document: t.Any) -> frozenset[str]:
    """Return the ids of the leftover guests in a file of `hypervisor_guest_detect`.

    Raises InvalidInput for any other file.
    """
    try:
        return frozenset(entry["id"] for entry in document["findings"])
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            "findings must be a file that hypervisor_guest_detect wrote, but it is not one "
            f"({describe_form_error(error)})."
        ) from error


def _build_document(
    findings: Collection[GuestFinding],
    index: SnapshotIndex,
    guests: Collection[Guest],
    hosts: Collection[str],
) -> Json:
    snapshot = index.snapshot
    failed_checks = list(map(str, index.failed_absence_checks))
    by_verdict: dict[str, list[Json]] = {ORPHANED: [], PROTECTED: [], UNDECIDED: []}
    for finding in findings:
        by_verdict[finding.decision.verdict].append(_build_entry(finding))
    # The worst comes first, also where only the first findings are returned.
    by_verdict[ORPHANED].sort(key=lambda entry: entry["kind"] != RUNNING_LEFTOVER)
    leftover_kinds = collections.Counter(entry["kind"] for entry in by_verdict[ORPHANED])
    guest_kinds = collections.Counter(guest.kind for guest in guests)
    return {
        "format": FORMAT,
        "cloud": convert_to_json(snapshot.cloud),
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "summary": {
            "verdicts": {verdict: len(entries) for verdict, entries in by_verdict.items()},
            "kinds": dict(sorted(leftover_kinds.items())),
            "coverage": {
                "complete": not failed_checks,
                "failed_checks": failed_checks,
                "hosts": len(hosts),
                "domains": guest_kinds[LEFTOVER_DOMAIN],
                "directories": guest_kinds[LEFTOVER_DIRECTORY],
                "looked_at_closely": len(snapshot.evidence),
            },
        },
        "findings": by_verdict[ORPHANED],
        "protected": by_verdict[PROTECTED],
        "undecided": by_verdict[UNDECIDED],
    }


def _build_entry(finding: GuestFinding) -> Json:
    guest, decision = finding.guest, finding.decision
    return {
        "id": guest.id.replace(guest.kind, finding.kind, 1),
        "kind": finding.kind,
        "verdict": decision.verdict,
        "host": guest.host,
        "uuid": guest.uuid,
        "name": guest.name,
        "reason": str(decision.reason),
        "reason_id": decision.reason.id,
        "server": convert_to_json(finding.server),
        "guest": dict(guest.facts),
        "evidence": [describe_answer(answer) for answer in decision.evidence],
    }
