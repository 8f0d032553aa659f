# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks Nova about the guests on hypervisors, and builds the document about them."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Collection

from .._common.errors import InvalidInput, describe_form_error
from .._common.json_files import read_json, read_json_option, write_json
from .._common.parallel import map_parallel
from .._core.clients.nova import NovaReader
from .._core.clients.session import CloudContext, Session
from .._core.facts.index import ListingsIndex, SnapshotIndex
from .._core.facts.trees import require_compute_nodes
from .._core.findings.document import describe_answer
from .._core.findings.entries import FORMAT, MAX_RETURNED, validate_document
from .._core.models.codec import convert_to_json
from .._core.models.finding import ORPHANED, PROTECTED, UNDECIDED
from .._core.models.snapshot import Snapshot
from .._core.options.policy import Policy, parse_policy, warn_ended_exclusions
from .._core.reading.reading import Collector
from .guest_rules import GuestFinding, check_compute_hosts, judge_guests, list_servers_to_look_up
from .guests import LEFTOVER_DIRECTORY, LEFTOVER_DOMAIN, RUNNING_LEFTOVER, Guest, parse_guests

if t.TYPE_CHECKING:  # pragma: no cover
    from .._core.models.codec import Json


def detect_guests(context: CloudContext) -> dict[str, t.Any]:
    """Judge the guests of all hosts as the options say."""
    options = context.options
    answers = [read_json_option("guests", value) for value in options["guests"]]
    if not all(isinstance(answer, dict) for answer in answers):
        raise InvalidInput(
            "guests must be what hypervisor_guest_info returned, a dictionary for each host."
        )
    guests = [each for answer in answers for each in parse_guests(answer, options["quarantined"])]
    hosts = [answer["host"] for answer in answers]
    # Which compute service the guests belong to would be a guess.
    if len(set(hosts)) < len(hosts):
        raise InvalidInput(
            "guests has two results for one host: each needs the name of its own compute service."
        )
    # Read before the cloud is: a wrong path should fail at once.
    earlier, earlier_ids = options["findings"], None
    if earlier is not None:
        earlier_ids = parse_leftover_ids(validate_document("guests", read_json(earlier), earlier))
    policy = parse_policy(options)
    warn_ended_exclusions(context, policy)
    detector = GuestDetector(context.connect(), policy)
    document = detector.detect(guests, hosts, earlier_ids, options["quarantined"])
    if options["dest"]:
        write_json(options["dest"], document)
    return {
        "changed": False,
        "summary": document["summary"],
        "findings": document["findings"][:MAX_RETURNED],
        "dest": options["dest"],
    }


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
            # Guests to which nothing is done are always reported.
            findings = [
                each for each in findings if each.guest.id in among or not each.is_removable
            ]
        return _build_document(findings, index, guests, hosts)

    def _add_host_migrations(self, snapshot: Snapshot, guests: Collection[Guest]) -> Snapshot:
        """Add the migrations of the hosts whose guests Nova does not find.

        The listing of all migrations does not prove that none of them names such a host.
        """
        # For a server that exists, its own migrations were read.
        gone = {uuid for uuid, one in snapshot.evidence.items() if one.server.status == 404}
        hosts = sorted({guest.host for guest in guests if guest.uuid in gone})
        answers = map_parallel(self._nova.list_migrations_of_host, hosts)
        completed = {}
        for uuid, evidence in snapshot.evidence.items():
            own = {guest.host for guest in guests if guest.uuid == evidence.uuid}
            added = [answer for host, answer in zip(hosts, answers, strict=True) if host in own]
            migrations = (*evidence.host_migrations, *added)
            completed[uuid] = d.replace(evidence, host_migrations=migrations)
        return d.replace(snapshot, evidence=completed)


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
