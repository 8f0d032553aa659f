# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether all answers of a reading come from API workers that know the same cells. Pure.

A nova-api worker keeps two lists of cells for its whole life, each as long as it was when it was
first needed: one for services, servers and migrations (nova/context.py, CELLS), one for compute
nodes (nova/compute/api.py, CELLS). A cell that was added later is missing from the listings of such
a worker, without an error and without the status `UNKNOWN`. A direct lookup goes through the
mappings of the API database and always knows every cell: servers and their actions, host
aggregates, and `GET /os-hosts/{host}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..._common.errors import Reason
from ..._common.text import summarize_names
from ..models.snapshot import Evidence, Listings, Snapshot
from .services import COMPUTE, get_compute_hosts, list_hosts_without_service

# A host that comes or goes during a reading makes the listings differ too. Only a restart renews
# what a worker knows of the cells.
_ADVICE = (
    "If a host was added or removed meanwhile, run again. Otherwise Nova's API workers do not all "
    "know the same cells: restart every nova-api, then run again."
)
_STALE_HOST = "If that host is gone for good, remove its mapping: nova-manage cell_v2 delete_host."


def list_disagreements(listings: Listings) -> tuple[Reason, ...]:
    """Return a sentence for each way in which the answers of a reading contradict each other.

    The result is empty when all answers agree. Of a finished reading (`Snapshot`) the evidence is
    checked as well. Only the last sentence has the advice that several share.
    """
    checks = (
        _check_services,
        _check_hypervisors,
        _check_host_lookups,
        _check_servers,
        _check_markers,
        _check_migrations,
    )
    found = list(filter(None, (check(listings) for check in checks)))
    shortened = [one.reword(one.replace(f" {_ADVICE}", "")) for one in found[:-1]]
    return (*shortened, *found[-1:])


def list_hosts_to_look_up(listings: Listings, evidence: Iterable[Evidence]) -> list[str]:
    """Return the hosts that aggregates and servers name and that a listing lacks.

    evidence: about the consumers that were looked up since the listings were read.
    """
    # Aggregates and direct lookups of servers know every cell, whatever the worker knows.
    named = {host for aggregate in listings.aggregates for host in aggregate.hosts}
    named.update(host for host, _uuid in _list_server_hosts(listings, evidence))
    return sorted(named - get_hosts_in_every_listing(listings))


def list_doubtful_hosts(snapshot: Snapshot) -> list[str]:
    """Return the hosts of which a direct lookup did not say whether they exist.

    Only hosts count that aggregates or servers name and that a listing lacks.
    """
    hosts = list_hosts_to_look_up(snapshot, snapshot.evidence.values())
    lookups = snapshot.host_lookups
    # 200 says that the host exists, 404 that it does not; any other status says neither.
    return [name for name in hosts if name in lookups and lookups[name].status not in (200, 404)]


def list_host_names(name: str) -> tuple[str, ...]:
    """Return the names that the host behind a root provider may have.

    These are the provider's own name, and that name without its domain.
    """
    # A dict keeps the order and drops the second name where it is the same.
    return tuple(dict.fromkeys((name, name.partition(".")[0])))


def get_hosts_in_every_listing(listings: Listings) -> frozenset[str]:
    """Return the hosts that each listing has in which a host must be."""
    listed = get_compute_hosts(listings.services) & get_compute_hosts(listings.services_after)
    # A host is not missing where not all compute nodes were asked for.
    if listings.hypervisors.value is None or not listings.every_node_listed:
        return listed
    return listed & {node.host for node in listings.hypervisors.value}


def _check_services(listings: Listings) -> Reason | None:
    """Both listings have the same compute services."""
    if listings.services.value is None or listings.services_after.value is None:
        return None
    differing = get_compute_hosts(listings.services) ^ get_compute_hosts(listings.services_after)
    if not differing:
        return None
    return Reason(
        "service_listings_differ",
        f"Nova listed the compute services of {summarize_names(sorted(differing))} in one answer "
        f"and not in another. {_ADVICE}",
    )


def _check_hypervisors(listings: Listings) -> Reason | None:
    """Each compute node has a compute service."""
    if listings.services.value is None or listings.hypervisors.value is None:
        return None
    node_hosts = {node.host for node in listings.hypervisors.value}
    without_service = node_hosts - get_compute_hosts(listings.services)
    if not without_service:
        return None
    return Reason(
        "nodes_without_service",
        f"Nova lists compute nodes on {summarize_names(sorted(without_service))}, "
        f"but no compute service there. {_ADVICE}",
    )


def _check_host_lookups(listings: Listings) -> Reason | None:
    """A direct lookup finds no host that a listing lacks."""
    if listings.services.value is None or listings.services_after.value is None:
        return None
    found = {name for name, lookup in listings.host_lookups.items() if lookup.status == 200}
    explained = {*get_hosts_in_every_listing(listings), *list_hosts_without_service(listings)}
    unlisted = sorted(found - explained)
    if not unlisted:
        return None
    return Reason(
        "hosts_left_out_of_listings",
        f"Nova has compute nodes on {summarize_names(unlisted)} (GET /os-hosts) "
        f"that its listings leave out. If their rows in its table services were deleted, restart "
        f"{COMPUTE} there. {_ADVICE} {_STALE_HOST}",
    )


def _check_servers(listings: Listings) -> Reason | None:
    """Each server that was looked up is on a host that the listings have, or on one that a direct
    lookup does not find either.
    """
    listed = get_compute_hosts(listings.services)
    if listings.services.value is None:
        return None
    for host, uuid in _list_server_hosts(listings, _get_evidence(listings)):
        lookup = listings.host_lookups.get(host)
        # A host that a lookup finds is not in doubt here: `_check_host_lookups` reports it.
        if host in listed or (lookup is not None and lookup.status in (200, 404)):
            continue
        answer = "and that host was not looked up"
        if lookup is not None:
            answer = f"and Nova answered {lookup.status} when that host was looked up"
        return Reason(
            "server_host_not_listed",
            f"Server {uuid} is on {host}, which has no compute service in Nova's listing, "
            f"{answer}. {_ADVICE}",
        )
    return None


def _get_evidence(listings: Listings) -> Iterable[Evidence]:
    """Return the evidence of a finished reading; listings alone have none."""
    # One function for both, so that no caller can leave the evidence of a snapshot unchecked.
    return listings.evidence.values() if isinstance(listings, Snapshot) else ()


def _list_server_hosts(
    listings: Listings, evidence: Iterable[Evidence]
) -> Iterator[tuple[str, str]]:
    """Yield the host and the uuid of each server that was read directly and has a host."""
    for lookup in (*listings.samples, *(about_one.server for about_one in evidence)):
        if lookup.value is not None and lookup.value.host:
            yield lookup.value.host, lookup.value.uuid


def _check_markers(listings: Listings) -> Reason | None:
    """A UUID that one answer knows as a migration is one in every answer."""
    for evidence in _get_evidence(listings):
        statuses = {answer.status for answer in (evidence.marker, *evidence.markers)}
        # A worker that does not know the cell of a migration answers 400 to its uuid.
        if {200, 400} <= statuses:
            return Reason(
                "migration_answers_differ",
                f"Nova knew {evidence.uuid} as a migration in one answer and not in another. "
                f"{_ADVICE}",
            )
    return None


def _check_migrations(listings: Listings) -> Reason | None:
    """The migrations that Nova lists for a server that still exists include all that it listed
    before.
    """
    listed: dict[str, set[str]] = {}
    for row in listings.migrations.value or ():
        listed.setdefault(row.server, set()).add(row.uuid)
    for evidence in _get_evidence(listings):
        # Nova deletes the migrations of a server together with it, which is not a contradiction.
        rows = evidence.migrations.value
        if evidence.server.status != 200 or rows is None:
            continue
        if missing := listed.get(evidence.uuid, set()) - {row.uuid for row in rows}:
            return Reason(
                "migration_listings_differ",
                f"Nova listed migration {min(missing)} of server {evidence.uuid} in one answer "
                f"and not in another. {_ADVICE}",
            )
    return None
