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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import look_up_each
from ..._common.text import format_count
from ..clients.groups import ProviderGroupReader
from ..clients.nova import NovaReader
from ..clients.other_services import BareMetalReader, ProjectReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.groups import (
    DISABLED_TRAIT,
    NodeView,
    build_node_views,
    find_aggregate_mismatches,
    find_lacking_traits,
    find_node_roots,
    find_status_mismatches,
    list_required_traits,
    sees_every_node,
)
from ..facts.index import ListingsIndex, SnapshotIndex
from ..facts.services import COMPUTE
from ..models import snapshot as q
from ..models.nova import (
    API_ACTIONS,
    DELETING_ACTIONS,
    DELETING_TASKS,
    HIDDEN_TASKS,
    RESET_ACTION,
    TASK_STATUSES,
    Migration,
    Server,
)
from ..models.other_services import DeletedServer, Deletion
from ..models.placement import Resources, Totals, sum_amounts_by_key
from ..models.snapshot import (
    NOT_ASKED,
    Answer,
    BareMetal,
    Deletions,
    Mirror,
    Projects,
    Scope,
    Snapshot,
    Surroundings,
)
from ..options.scope import is_needed

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
        totals=reader.read_totals(),
        unread=(*snapshot.surroundings.unread, *reader.unread),
    )
    return d.replace(snapshot, surroundings=surroundings, finished_at=get_utc_now())


class _SurroundingsReader:
    def __init__(self, session: Session, index: SnapshotIndex) -> None:
        self._session = session
        self._index = index
        self._scope = index.snapshot.scope
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self.unread: list[str] = []

    def read_bare_metal(self) -> BareMetal:
        api = self._session.bare_metal
        if api is None or not is_needed(q.NODES, self._scope):
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
        if refused and is_needed(q.PROJECTS, self._scope):
            self.unread.append(
                "It was not searched for owners whose project no longer exists: Keystone answered "
                f"{refused[0].status} when asked for a project."
            )
        return reading

    def read_deletions(self) -> Deletions:
        if not is_needed(q.DELETIONS, self._scope):
            return Deletions()
        reading = self._try(
            "It was not searched for servers that hang",
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
        if not is_needed(q.EVACUATED, self._scope):
            return {}
        servers = {
            migration.server
            for migration in self._index.migrations.values()
            if migration.is_unfinished_evacuation and self._may_be_on_source(migration)
        }
        return self._try(
            "It was not searched for servers on the source of their own evacuation",
            lambda: look_up_each(self._nova.get_server, sorted(servers)),
            {},
        )

    def _may_be_on_source(self, migration: Migration) -> bool:
        nodes = self._index.nodes.values()
        sources = [node for node in nodes if migration.has_source((node.host, node.name))]
        # Not every host was asked for its servers.
        return any(node.servers is None or migration.server in node.servers for node in sources)

    def read_totals(self) -> dict[str, Answer[Totals]]:
        if not is_needed(q.TOTALS, self._scope):
            return {}
        nothing: tuple[dict[str, Answer[Totals]], int] = ({}, 0)
        totals, unread = self._try(
            "It was not searched for allocations that Placement does not list",
            lambda: read_totals(self._placement, self._index),
            nothing,
        )
        if unread:
            self.unread.append(
                f"What is in use on {format_count(unread, 'provider', 'providers')} could not be "
                "compared with its listed allocations: Placement did not answer, or there are too "
                "many."
            )
        return totals

    def _try(self, what: str, read: Callable[[], T], nothing: T) -> T:
        """Return what `read` returns, or `nothing` with a sentence where a service fails."""
        try:
            return read()
        except CloudError as error:
            self.unread.append(f"{what}: {error}")
            return nothing


# A server leaves these states soon, so the listings are short as a rule. DELETED is a server that
# Nova has recorded as deleted without deleting it.
_STATES = (
    *(("task_state", (task,)) for task in DELETING_TASKS),
    ("status", ("BUILD", "DELETED")),
    ("status", TASK_STATUSES),
)
# A server whose deletion has failed. The actions of each server in this state have to be read.
_FAILED_STATE = ("status", ("ERROR",))
_HIDDEN_STATES = tuple(("task_state", (task,)) for task in HIDDEN_TASKS)
# So many servers, nodes or projects are looked up at most, each with up to three requests. A cloud
# in which more are wrong has another fault.
_MAX_LOOKUPS = 100
# So few providers are asked one by one, and before that at most so many classes.
_FEW_PROVIDERS = 3
_MAX_CLASSES = 8
# These leave the server as the action before them has left it.
_FOLLOWERS = API_ACTIONS | {RESET_ACTION}


def read_deletions(nova: NovaReader, index: SnapshotIndex) -> Deletions:
    """Return the servers in scope that hang; those to be deleted are looked up by themselves.

    Servers in ERROR are among them only where the scope names the kind or is narrow. Tasks that no
    status shows are searched for on hosts that are down, or everywhere if the kind is named: each
    consumer of a narrow scope is looked up anyway.
    Raises CloudError when Nova does not list them.
    """
    scope = index.snapshot.scope
    states = list(_STATES)
    if is_needed(q.FAILED_DELETIONS, scope) or scope.is_narrow:
        states.append(_FAILED_STATE)
    listings = tuple(nova.list_servers_in_state(*state) for state in states)
    more = [nova.list_servers_in_state(*state) for state in _choose_hidden_states(index)]
    found: dict[str, DeletedServer] = {}
    busy: dict[str, Answer[Server]] = {}
    for listing in (*listings, *more):
        for row in listing.value or ():
            # Nova ignores the filter where its policy does not allow these credentials to use it.
            if not _is_in_scope(row, scope, index):
                continue
            server = row.server
            if row.vm_state == "deleted" or server.task_state in DELETING_TASKS:
                found[server.uuid] = row
            elif server.status == "BUILD" or server.task_state is not None:
                busy[server.uuid] = d.replace(t.cast("Answer[Server]", listing), value=server)
            elif server.status == "ERROR" and _FAILED_STATE in states:
                found[server.uuid] = row
    # The longest first: if there are too many, the others have hardly begun.
    uuids = sorted(found, key=lambda uuid: found[uuid].server.updated or "")
    chosen = uuids[:_MAX_LOOKUPS]
    return Deletions(
        listings=listings,
        lookups=look_up_each(nova.get_deleted_server, chosen, nova.workers),
        actions=look_up_each(lambda uuid: _read_deletion(nova, uuid), chosen, nova.workers),
        left_out=len(uuids) - len(chosen),
        busy=busy,
    )


def _choose_hidden_states(index: SnapshotIndex) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Return the filters by which to search for tasks that no status shows."""
    scope = index.snapshot.scope
    if scope.is_narrow:
        return ()
    services = index.snapshot.services_after.value or ()
    computes = (one for one in services if one.binary == COMPUTE)
    up = {one.host for one in computes if one.state == "up" and not one.forced_down}
    listed = {node.host for root, node in index.nodes.items() if index.covers(root)}
    down = sorted(listed - up - index.unjudged_hosts)
    if is_needed(q.FAILED_DELETIONS, scope) or len(down) > len(_HIDDEN_STATES):
        return _HIDDEN_STATES
    return [("host", (host,)) for host in down]


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


def read_totals(
    placement: PlacementReader, index: ListingsIndex
) -> tuple[dict[str, Answer[Totals]], int]:
    """Return by provider what is in use where that is more than was listed.

    One request for allocation candidates shows what is in use on all providers with something free;
    others are asked one by one. Usages of projects are not read: Placement joins them with the
    records of consumers, as it does the listings, and they lack the same allocations
    (placement/objects/usage.py, _get_all_by_project_user).

    The second value is how many providers could not be compared. Raises CloudError when Placement
    does not answer.
    """
    compared = sorted(_list_compared_providers(index))
    used: dict[str, Resources] = {}
    missing = set(compared)
    for resource_class in _list_likely_classes(index):
        if len(missing) > _FEW_PROVIDERS:
            candidates = placement.list_allocation_candidates({"resources": f"{resource_class}:1"})
            used.update({uuid: one.used for uuid, one in candidates.summaries.items()})
            missing -= set(used)
    chosen = sorted(missing)[:_MAX_LOOKUPS]
    usages = look_up_each(placement.query_usages, chosen, placement.workers)
    used.update({uuid: one.value for uuid, one in usages.items() if one.value is not None})
    more = [uuid for uuid in compared if _is_more_used(used.get(uuid), index.used.get(uuid))]
    # Most have got a server since the first listing: one more request shows that.
    listed = placement.list_allocations_on_providers(more).values()
    sums = sum_amounts_by_key(itertools.chain.from_iterable(held.items() for held in listed))
    suspects = [uuid for uuid in more if _is_more_used(used[uuid], sums.get(uuid))]
    totals = look_up_each(placement.query_totals, suspects[:_MAX_LOOKUPS], placement.workers)
    answers = (
        *(usages.get(uuid, NOT_ASKED) for uuid in missing),
        *(totals.get(uuid, NOT_ASKED) for uuid in suspects),
    )
    # One that is gone has nothing in use.
    return totals, sum(one.value is None and one.status != 404 for one in answers)


def _is_more_used(used: Resources | None, listed: Resources | None) -> bool:
    return bool(Totals(used or {}, listed or {}).hidden)


def _list_likely_classes(index: ListingsIndex) -> list[str]:
    """Return classes of which many providers may have a unit left, the likeliest first."""
    counted = Counter(itertools.chain.from_iterable(index.used.values()))
    return list(dict.fromkeys(("MEMORY_MB", *dict(counted.most_common(_MAX_CLASSES)))))


def _list_compared_providers(index: ListingsIndex) -> Iterator[str]:
    """Yield the providers of which all allocations were listed."""
    for uuid, provider in index.providers.items():
        # A part of the cloud keeps only its own consumers of what is shared with all hosts.
        if provider.sharing and index.listings.trees is not None:
            continue
        if not provider.sharing and not index.covers(provider.root):
            continue
        # Of a bare metal node in use, everything is listed.
        listed = index.used.get(uuid, {})
        if list(listed.values()) == [1] and all(cls.startswith("CUSTOM_") for cls in listed):
            continue
        yield uuid


def read_bare_metal(
    reader: BareMetalReader, placement: PlacementReader, nova: NovaReader, index: ListingsIndex
) -> BareMetal:
    """Return what Ironic says of the nodes that have a provider.

    Nothing is asked where no provider is a node's. Raises CloudError when a service does not
    answer.
    """
    roots = find_node_roots(index)
    if not roots:
        return BareMetal()
    nodes = reader.list_nodes()
    if nodes.value is None:
        return BareMetal(nodes=nodes)
    sees_all = sees_every_node(nodes.value, index.listings.cloud.project)
    all_views = build_node_views(index, nodes, {})
    # The absence of a node proves nothing to those who may not see it.
    views = [view for view in all_views if sees_all or view.node is not None]
    classes = sorted({view.free_class for view in views} - {""})
    free = {name: placement.query_free_providers(name) for name in classes}
    suspects = [view for view in views if _is_suspect(view, free)]
    looked_up = suspects[:_MAX_LOOKUPS]
    return d.replace(
        _look_up_consumers(placement, nova, looked_up),
        nodes=nodes,
        free=free,
        # Last, so that a node that is taken or freed meanwhile shows that it has just changed.
        lookups=look_up_each(reader.get_node, [view.uuid for view in looked_up], _WORKERS),
        left_out=len(suspects) - len(looked_up),
        unseen=len(all_views) - len(views),
    )


def _look_up_consumers(
    placement: PlacementReader, nova: NovaReader, views: Sequence[NodeView]
) -> BareMetal:
    """Read again what is allocated on the providers of nodes, and what the nodes are in use by."""
    consumers: list[str] = []
    servers: list[str] = []
    for view in views:
        consumers += view.consumers
        if view.node is not None and view.node.instance and not view.consumers:
            servers.append(view.node.instance)
    roots = [view.root for view in views]
    return BareMetal(
        allocations=look_up_each(placement.get_allocation, consumers, placement.workers),
        servers=look_up_each(nova.get_server, servers, nova.workers),
        details=placement.get_details(roots, ("inventories", "usages")),
    )


def _is_suspect(view: NodeView, free: dict[str, Answer[tuple[str, ...]]]) -> bool:
    """Return whether the listings alone do not show that a node and its provider go together."""
    if view.node is None or view.has_foreign_consumer:
        return True
    if view.consumers:
        return False
    # Nova reserves a node that is in use by something else than a server.
    if view.node.instance:
        return True
    answer = free.get(view.free_class)
    has_room = answer is not None and view.root in (answer.value or ())
    return has_room != view.node.is_free


# Of at most so many providers all aggregates are read, which the commands for them have to name.
MAX_COMMANDS = 20
# How many requests are sent at once, beside those for the allocations.
_WORKERS = 2


class MirrorReader:
    """Reads `Mirror`, and those that did not agree once more."""

    def __init__(self, placement: ProviderGroupReader, nova: NovaReader) -> None:
        self._placement = placement
        self._nova = nova

    def read(self, scope: Scope) -> Mirror:
        """Read the host aggregates, and what Placement says of them and of disabled hosts."""
        aggregates = self._nova.list_aggregates()
        listed = []
        for aggregate in aggregates:
            if scope.shard is None or scope.shard.contains(aggregate.uuid):
                listed.append(aggregate)
        with_members, with_traits = is_needed(q.MEMBERS, scope), is_needed(q.TRAITS, scope)
        uuids = [aggregate.uuid for aggregate in listed] if with_members else []
        required = {row.uuid: list_required_traits(row) for row in listed} if with_traits else {}
        return Mirror(
            aggregates,
            self._read_members(uuids),
            self._read_lacking(required),
            self._read_disabled(with_traits),
        )

    def read_again(self, index: ListingsIndex) -> Mirror | None:
        """Read what did not agree once more; None where everything did."""
        mirror = index.listings.mirror
        if mirror is None:
            return None
        mismatches = find_aggregate_mismatches(index, mirror)
        lacking = find_lacking_traits(index, mirror)
        has_status_mismatch = bool(find_status_mismatches(index, mirror))
        if not mismatches and not lacking and not has_status_mismatch:
            return None
        nodes = {node for found in mismatches.values() for node in found.extra | found.missing}
        # Nova after Placement: while it adds a host to an aggregate, its own record comes first.
        return Mirror(
            members=self._read_members(mismatches),
            disabled=self._read_disabled(has_status_mismatch),
            lacking=self._read_lacking(lacking),
            provider_aggregates=look_up_each(
                self._placement.query_aggregates, sorted(nodes)[:MAX_COMMANDS], _WORKERS
            ),
            aggregates=self._nova.list_aggregates(),
        )

    def _read_members(self, aggregates: Iterable[str]) -> dict[str, Answer[tuple[str, ...]]]:
        return look_up_each(self._placement.query_members, list(aggregates), _WORKERS)

    def _read_disabled(self, is_wanted: bool) -> Answer[tuple[str, ...]]:
        """Return the providers of hosts whose compute service is disabled."""
        if not is_wanted:
            return NOT_ASKED
        return self._placement.query_providers_with_trait(DISABLED_TRAIT)

    def _read_lacking(
        self, traits_by_aggregate: Mapping[str, Iterable[str]]
    ) -> dict[str, dict[str, Answer[tuple[str, ...]]]]:
        """Return by aggregate and trait which members of the aggregate lack the trait."""
        pairs = [(uuid, trait) for uuid, traits in traits_by_aggregate.items() for trait in traits]
        answers = look_up_each(
            lambda pair: self._placement.query_members_without_trait(*pair), pairs, _WORKERS
        )
        lacking: dict[str, dict[str, Answer[tuple[str, ...]]]] = {}
        for (aggregate, trait), answer in answers.items():
            lacking.setdefault(aggregate, {})[trait] = answer
        return lacking


def is_wanted(scope: Scope | None) -> bool:
    """Return whether findings about the groups of hosts are asked for."""
    if scope is None or (scope.is_narrow and not scope.hosts):
        return False
    return is_needed(q.MEMBERS, scope) or is_needed(q.TRAITS, scope)


# One listing of all projects costs Keystone about as much as so many lookups.
_FEW = 10
_KEYSTONE_WORKERS = 4


def read_projects(keystone: ProjectReader, nova: NovaReader, snapshot: Snapshot) -> Projects:
    """Return what Keystone says of the projects of all candidates.

    Where the scope names the kind, also of the projects of all servers. Nothing is asked where
    there are none. Raises CloudError when a service does not answer.
    """
    servers = _list_servers(nova, snapshot)
    wanted = {*_list_owners(snapshot), *servers} - {""}
    if snapshot.scope.projects:
        wanted &= set(snapshot.scope.projects)
    if not wanted:
        return Projects()
    listing = keystone.query_projects() if len(wanted) > _FEW else NOT_ASKED
    listed = {project.uuid for project in listing.value or ()}
    chosen = sorted(wanted - listed)[:_MAX_LOOKUPS]
    lookups = look_up_each(keystone.query_project, chosen, _KEYSTONE_WORKERS)
    missing = {uuid for uuid, answer in lookups.items() if answer.status == 404}
    if missing and listing == NOT_ASKED:
        listing = keystone.query_projects()
    domains: Answer[tuple[str, ...]] = NOT_ASKED
    if missing and len({project.domain for project in listing.value or ()}) == 1:
        domains = keystone.query_domains()
    kept = {uuid: servers[uuid] for uuid in sorted(missing & set(servers))}
    return Projects(lookups=lookups, listing=listing, domains=domains, servers=kept)


def _list_owners(snapshot: Snapshot) -> set[str]:
    """Return the projects of the candidates' allocations, and those that Nova has for them."""
    owners = set()
    for evidence in snapshot.evidence.values():
        held, server = evidence.allocation.value, evidence.server.value
        if held and held.resources:
            owners |= {held.project or "", (server and server.project) or ""}
    return owners


def _list_servers(nova: NovaReader, snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """Return the servers by project; none unless the scope names the kind."""
    if not is_needed(q.PROJECT_SERVERS, snapshot.scope):
        return {}
    by_project: dict[str, list[str]] = {}
    for server, project in nova.list_server_projects().value or ():
        by_project.setdefault(project, []).append(server)
    return {project: tuple(sorted(servers)) for project, servers in by_project.items()}
