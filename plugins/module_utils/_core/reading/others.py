# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read last, and is about no allocation in doubt.

This comes after everything else of a reading. No service but Nova and Placement is necessary: what
another one does not answer is said in the coverage, and is not searched.
"""

from __future__ import annotations

import dataclasses as d
import itertools
import typing as t
from collections.abc import Callable, Iterable, Sequence

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import map_parallel
from ..._common.text import format_count
from ..clients.nova import NovaReader
from ..clients.other_services import BareMetalReader, ProjectReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.index import SnapshotIndex
from ..models.nova import API_ACTIONS, DELETING_ACTIONS, RESET_ACTION, Hypervisor, Migration, Server
from ..models.snapshot import Answer, BareMetal, Deletions, Projects, Scope, Snapshot, Surroundings
from ..models.surroundings import DeletedServer, Deletion
from .bare_metal import read_bare_metal
from .projects import MISSING_PROJECT, read_projects

BARE_METAL_MISMATCH = "bare_metal_mismatch"
UNFINISHED_EVACUATION = "unfinished_evacuation"
T = t.TypeVar("T")


def add_surroundings(session: Session, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its surroundings, as far as kinds that are asked for need them."""
    index = SnapshotIndex(snapshot)
    # In a reading that is not sound, the candidates stand for a cloud that may not be this one.
    if index.failed_checks:
        return snapshot
    reader = _SurroundingsReader(session, index)
    surroundings = Surroundings(
        bare_metal=reader.read_bare_metal(),
        projects=reader.read_projects(),
        deletions=reader.read_deletions(),
        evacuated=reader.read_evacuated(),
        unread=tuple(reader.unread),
    )
    return d.replace(snapshot, surroundings=surroundings, finished_at=get_utc_now())


class _SurroundingsReader:
    def __init__(self, session: Session, index: SnapshotIndex) -> None:
        self._session = session
        self._index = index
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self.unread: list[str] = []

    def read_bare_metal(self) -> BareMetal:
        api = self._session.bare_metal
        if api is None or not self._is_asked_for(BARE_METAL_MISMATCH):
            return BareMetal()
        reader = BareMetalReader(api)
        reading = self._try(
            "Bare metal nodes were not compared with their providers",
            lambda: read_bare_metal(reader, self._placement, self._nova, self._index),
            BareMetal(),
        )
        if reading.nodes.status not in (0, 200):
            self.unread.append(
                "Bare metal nodes were not compared with their providers: Ironic answered "
                f"{reading.nodes.status} when asked for its nodes."
            )
        if reading.unseen:
            self.unread.append(
                f"{format_count(reading.unseen, 'bare metal node was', 'bare metal nodes were')} "
                "not compared with their providers, because Ironic does not show these credentials "
                "the nodes of all projects: use a role that may list all of them "
                "(baremetal:node:list_all)."
            )
        if reading.left_out:
            self.unread.append(
                f"{reading.left_out} bare metal nodes that may not match their providers were not "
                "looked up, because there are too many: fix those that are reported first."
            )
        return reading

    def read_projects(self) -> Projects:
        # Their names are for all findings.
        keystone = ProjectReader(self._session.identity)
        reading = self._try(
            "It was not searched for owners whose project no longer exists",
            lambda: read_projects(keystone, self._nova, self._index.snapshot),
            Projects(),
        )
        refused = [answer for answer in reading.lookups.values() if answer.status not in (200, 404)]
        if refused and self._is_asked_for(MISSING_PROJECT):
            self.unread.append(
                "It was not searched for owners whose project no longer exists: Keystone answered "
                f"{refused[0].status} when asked for a project."
            )
        return reading

    def read_deletions(self) -> Deletions:
        if not self._is_asked_for(STUCK_DELETION):
            return Deletions()
        reading = self._try(
            "It was not searched for servers that cannot be deleted",
            lambda: read_deletions(self._nova, self._index),
            Deletions(),
        )
        if reading.left_out:
            self.unread.append(
                f"{reading.left_out} servers that may be stuck in their deletion were not looked "
                "up, because there are too many: fix those that are reported first."
            )
        return reading

    def read_evacuated(self) -> dict[str, Answer[Server]]:
        """Look up the servers with an unfinished evacuation that the listings do not show away.

        After the listing of migrations: a server is still on the source for a moment after its
        evacuation is done.
        """
        if not self._is_asked_for(UNFINISHED_EVACUATION):
            return {}
        servers = set()
        for migration in self._index.migrations.values():
            if migration.is_unfinished_evacuation and self._may_be_on_source(migration):
                servers.add(migration.server)
        chosen = sorted(servers)
        return self._try(
            "It was not searched for servers on the source of their own evacuation",
            lambda: dict(zip(chosen, map_parallel(self._nova.get_server, chosen), strict=True)),
            {},
        )

    def _may_be_on_source(self, migration: Migration) -> bool:
        nodes = self._index.nodes.values()
        sources = [node for node in nodes if migration.has_source((node.host, node.name))]
        # Not every host was asked for its servers.
        return any(node.servers is None or migration.server in node.servers for node in sources)

    def _is_asked_for(self, kind: str) -> bool:
        return self._index.snapshot.scope.includes_any(kind)

    def _try(self, what: str, read: Callable[[], T], nothing: T) -> T:
        """Return what `read` returns, or `nothing` with a sentence where a service fails."""
        try:
            return read()
        except CloudError as error:
            self.unread.append(f"{what}: {error}")
            return nothing


STUCK_DELETION = "stuck_deletion"
# A server leaves these states within seconds, so the listings are empty as a rule.
_STATES = (("task_state", "deleting"), ("task_state", "soft-deleting"), ("vm_state", "deleted"))
# A server whose deletion has failed. The actions of each server in this state have to be read.
_FAILED_STATE = ("status", "ERROR")
# Each of them costs three requests.
_MAX_LOOKUPS = 100
# These leave the server as the action before them has left it.
_FOLLOWERS = API_ACTIONS | {RESET_ACTION}


def read_deletions(nova: NovaReader, index: SnapshotIndex) -> Deletions:
    """Return the servers in scope that Nova should have deleted, each looked up by itself.

    Servers in ERROR are among them only where the scope names the kind or is narrow.
    Raises CloudError when Nova does not list them.
    """
    scope = index.snapshot.scope
    states = list(_STATES)
    if STUCK_DELETION in scope.kinds or scope.is_narrow:
        states.append(_FAILED_STATE)
    listings = tuple(nova.list_servers_in_state(*state) for state in states)
    found: dict[str, DeletedServer] = {}
    for listing, state in zip(listings, states, strict=True):
        for row in listing.value or ():
            # Nova ignores the filter where its policy does not allow these credentials to use it.
            if state in _list_states(row) and _is_in_scope(row, scope, index):
                found[row.server.uuid] = row
    # The longest first: if there are too many, the others have hardly begun.
    uuids = sorted(found, key=lambda uuid: found[uuid].server.updated or "")
    chosen = uuids[:_MAX_LOOKUPS]
    lookups = map_parallel(nova.get_deleted_server, chosen, nova.workers)
    actions = map_parallel(lambda uuid: _read_deletion(nova, uuid), chosen, nova.workers)
    return Deletions(
        listings=listings,
        lookups=dict(zip(chosen, lookups, strict=True)),
        actions=dict(zip(chosen, actions, strict=True)),
        left_out=len(uuids) - len(chosen),
    )


def _list_states(row: DeletedServer) -> tuple[tuple[str, str | None], ...]:
    """Return the states of a server, each with the name of its filter."""
    server = row.server
    return (
        ("task_state", server.task_state),
        ("vm_state", row.vm_state),
        ("status", server.status),
    )


def _is_in_scope(row: DeletedServer, scope: Scope, index: SnapshotIndex) -> bool:
    server = row.server
    if scope.projects and server.project not in scope.projects:
        return False
    if not index.is_in_shard(server.uuid):
        return False
    if not scope.is_narrow or server.uuid in scope.consumers:
        return True
    nodes = index.list_nodes_at(server.host or "")
    return any(index.is_named(node) for node in nodes)


def _read_deletion(nova: NovaReader, server: str) -> Answer[Deletion]:
    """Return the newest delete action of a server; its `value` is None if it cannot be read."""
    listing = nova.list_instance_actions(server)
    if listing.value is None:
        return t.cast("Answer[Deletion]", listing)
    lasting = [action for action in listing.value if action.action not in _FOLLOWERS]
    for number, action in enumerate(lasting):
        if action.action in DELETING_ACTIONS:
            answer = nova.get_instance_action(server, action.request_id)
            value = None
            if answer.value is not None:
                value = Deletion(answer.value, number == 0)
            return d.replace(t.cast("Answer[Deletion]", answer), value=value)
    return d.replace(t.cast("Answer[Deletion]", listing), value=Deletion(None, False))


# How many servers are looked up to test the credentials, from how many hosts they are taken, and
# from how many servers of each: from more where too few of the first are of other projects.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = (4, 20)


def read_samples(
    nova: NovaReader, hypervisors: Answer[tuple[Hypervisor, ...]], own_project: str | None
) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
    """Read some servers directly, those of other projects first, and return their projects too.

    They are taken from hosts that have servers. The newest servers of the cloud are taken only
    where no host shows one: they may be failed boots, which have no host. Raises CloudError when
    no listing can be read.
    """
    hosts = _choose_hosts_to_sample(hypervisors.value or ())
    placed: list[Server] = []
    for count in _SAMPLED_FROM:
        servers = _list_servers_to_sample(nova, hosts, count)
        placed = [server for server in servers if server.host]
        if sum(server.project != own_project for server in placed) >= _SAMPLES:
            break
    chosen = choose_samples(placed, own_project, _SAMPLES)
    looked_up = map_parallel(lambda server: nova.get_server(server.uuid), chosen)
    return tuple(looked_up), tuple(server.project for server in chosen)


def _choose_hosts_to_sample(nodes: Iterable[Hypervisor]) -> list[str]:
    """Return some hosts that have servers, far apart in the order of their names."""
    with_servers = set()
    for node in nodes:
        # Where the servers were not asked for, what nova-compute last wrote has to do.
        if node.servers or (node.servers is None and node.running_vms):
            with_servers.add(node.host)
    hosts = sorted(with_servers)
    step = max(1, len(hosts) // _SAMPLED_HOSTS)
    return hosts[::step][:_SAMPLED_HOSTS]


def _list_servers_to_sample(nova: NovaReader, hosts: Sequence[str], count: int) -> list[Server]:
    """Return the `count` newest servers of each host or, where these have none, of the cloud."""
    answers = map_parallel(lambda host: nova.list_newest_servers_on_host(host, count), hosts)
    servers: list[Server] = []
    for answer in answers:
        servers.extend(answer.value or ())
    if servers:
        return servers
    newest = nova.list_newest_servers(count)
    if newest.value:
        return list(newest.value)
    unread = [answer for answer in (*answers, newest) if answer.value is None]
    if unread:
        raise CloudError(
            f"Nova answered {unread[0].status} when asked for some servers to test the permissions "
            f"with ({unread[0].request})."
        )
    return []


def choose_samples(servers: Sequence[Server], own_project: str | None, count: int) -> list[Server]:
    """Return `count` of `servers`, of as many projects as possible, our own project last."""
    by_project: dict[str | None, list[Server]] = {}
    for server in servers:
        by_project.setdefault(server.project, []).append(server)
    own = by_project.pop(own_project, [])
    samples: list[Server] = []
    # One server of each project in turn.
    for turn in itertools.zip_longest(*by_project.values()):
        samples.extend(filter(None, turn))
    return [*samples, *own][:count]


def read_control(
    nova: NovaReader, samples: Sequence[Answer[Server]]
) -> Answer[tuple[Server, ...]] | None:
    """Look for a live server in the listing of deleted servers, where it must not be.

    A server that was deleted meanwhile proves nothing, so the next one is taken.
    """
    control = None
    for sample in samples:
        if not sample.value:
            continue
        control = nova.find_deleted_server(sample.value.uuid)
        if not control.value or nova.get_server(sample.value.uuid).status != 404:
            break
    return control
