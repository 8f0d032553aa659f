# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which a cloud is asked, which is what makes a reading safe.

Placement comes first: Nova has a record of a server or a migration before it asks Placement for the
allocation. So Nova, which is asked later, knew the owner of every allocation that Placement
returned, and nothing that is created during a reading can look orphaned. Each reading asks for:

1. The compute services, which show whether every cell answers (`reading.compute_nodes`).
2. Placement: the providers, then their allocations (`reading.allocations`), and how the hosts are
   grouped (`reading.others`).
3. Nova: the compute nodes, then the migrations. The two long listings, of allocations and of
   compute nodes, are read in parallel, because a listing only names candidates: each candidate is
   looked up later, in the order of step 7.
4. The compute services again, because the listing of migrations leaves out a cell that is down and
   does not say so.
5. Some live servers, which show what these credentials may see, the host aggregates, and the hosts
   that an answer names and a listing lacks (`reading.listings`).
6. What follows from the listings: the candidates (`reading.candidates`), and the inventories and
   traits that a rule has to know (`reading.providers`).
7. The tables below: the allocations of all candidates, then of each the migrations, then the
   server. Nova saves the new host of an evacuated server, and then ends the migration. Read in the
   opposite order, an evacuation that has ended is always seen together with the new host.
8. Once more, the groups of hosts that did not agree, and the compute services, because a cell that
   went down meanwhile may be missing from any answer (`reading.evidence`).

A renewed proof has steps 1 to 5 once in a run, without allocations, and 7 and 8 before each write.

A row of a table has its condition (`reading.servers`, which can send nothing) and how often the
request is sent at most, each time over another connection and at another address: at detection, and
before a write. That is for what one API worker that lacks a cell would answer wrongly;
`docs/safety.md` says how likely it is that all of these answers are wrong. Nothing that is not in a
table can be sent about a consumer.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable, Iterable, Mapping

from ..models import snapshot as q
from ..models.kind import Kind
from ..models.kinds import KINDS
from . import servers as s
from .servers import Condition, Look
from .sources import Sources

# How each request is sent: through the sources of a reading, about a target of its condition.
_SENDERS: Mapping[str, Callable[[Sources, t.Any, t.Any], t.Any]] = {
    q.ALLOCATION: lambda to, _, uuid: to.clients.placement.get_allocation(uuid),
    q.MIGRATIONS: lambda to, _, uuid: to.list_migrations(uuid),
    q.SERVER: lambda to, _, uuid: to.clients.nova.get_server(uuid),
    q.ACTIONS: lambda to, _, uuid: to.clients.nova.list_instance_actions(uuid),
    q.LAST_ACTIONS: lambda to, look, action: _get_action(to, look, action.request_id),
    q.DELETED: lambda to, look, brief: to.clients.nova.find_deleted_server(look.uuid, brief=brief),
    q.MARKER: lambda to, _, uuid: to.clients.nova.probe_migration_marker(uuid),
    q.MARKERS: lambda to, look, attempt: to.clients.nova.probe_migration_marker(look.uuid, attempt),
    q.HOST_MIGRATIONS: lambda to, look, host: to.at_hosts.list_answers(host, look.times),
    q.UNLISTED_MOVES: lambda to, look, _: to.unlisted_moves.get(look.times),
    q.HOST_ALLOCATIONS: lambda to, _, root: to.host_allocations.get(root),
    q.ROWS: lambda to, look, attempt: to.clients.nova.list_server_rows(look.uuid, attempt),
    q.HOST_TOTALS: lambda to, _, root: to.host_totals.get(root),
    q.HOST_TREE: lambda to, _, root: to.host_trees.get(root),
    q.SHAPE: lambda to, _, uuid: to.clients.nova.get_server_with_image_properties(uuid),
    q.INTERFACES: lambda to, _, uuid: to.clients.nova.list_attached_port_uuids(uuid),
    q.PORTS: lambda to, _, uuid: to.clients.neutron.list_ports(uuid),
    q.ATTACHMENTS: lambda to, _, uuid: to.clients.nova.list_attachments(uuid),
    q.ROOT_VOLUME: lambda to, _, volume: to.clients.volumes.get_root_volume(volume),
    q.DEVICE_PROFILES: lambda to, _, name: to.device_profiles.get(name),
    q.ACCELERATORS: lambda to, _, uuid: to.clients.cyborg.list_accelerator_requests(uuid),
    q.PORT_ACTIONS: lambda to, look, action: _get_action(to, look, action.request_id),
    q.FORMER_TREE: lambda to, _, key: to.former_trees.get(key)[q.FORMER_TREE],
    q.OWN_USAGES: lambda to, _, key: to.former_trees.get(key)[q.OWN_USAGES],
    q.HOST_SERVERS: lambda to, _, key: to.former_trees.get(key)[q.HOST_SERVERS],
}


@d.dataclass(frozen=True)
class Row:
    """One request of the table: on which condition, and how often at most about one target."""

    request: q.Request
    condition: Condition
    at_detection: int = 1
    before_a_write: int = 1

    def __post_init__(self) -> None:
        if self.request not in _SENDERS:
            raise LookupError(f"There is no way to send {self.request}.")


# The allocations of all candidates are read before anything else is asked about any of them.
PROOF = (
    Row(q.ALLOCATION, s.of_each),
    Row(q.MIGRATIONS, s.of_each),
    Row(q.SERVER, s.of_each),
    # What was done to a server that Nova has.
    Row(q.ACTIONS, s.of_server_that_may_have_moved),
    Row(q.LAST_ACTIONS, s.back_to_its_last_host),
    Row(q.LAST_ACTIONS, s.that_gave_it_its_host),
    Row(q.LAST_ACTIONS, s.newest_unshelve),
    Row(q.LAST_ACTIONS, s.that_conductor_may_have_refused),
    # What was a server that Nova does not find.
    Row(q.ACTIONS, s.of_missing),
    Row(q.DELETED, s.of_missing_in_brief),
    Row(q.SERVER, s.of_row_marked_as_deleted),
    # Whether a uuid that is no server's is a migration's, in every way there is to ask.
    Row(q.MARKER, s.of_unknown),
    Row(q.MARKERS, s.while_workers_agree_on(200), 4, 10),
    Row(q.MARKERS, s.while_workers_agree_on(400), 1, 10),
    Row(q.HOST_MIGRATIONS, s.hosts_if_marker(200), 4, 10),
    Row(q.HOST_MIGRATIONS, s.hosts_if_marker(400), 1, 4),
    Row(q.HOST_MIGRATIONS, s.hosts_if_marker()),
    Row(q.UNLISTED_MOVES, s.of_migration_without_record, 4, 4),
    Row(q.HOST_ALLOCATIONS, s.roots_of_migration_without_record),
    Row(q.ROWS, s.until_a_row_is_found, 4, 10),
)
# Then, of the server of a migration that has an allocation of its own.
PROOF_OF_MIGRATION = (Row(q.ACTIONS, s.of_doubtful_migration),)
# Or of a consumer that is a server itself: what it should have, where it was, where its guest is.
PROOF_OF_SERVER = (
    Row(q.ALLOCATION, s.ended_migrations),
    # Placement is read before Nova, so that a server that was just resized is seen resized.
    Row(q.HOST_TREE, s.host_of_uncertain_amounts),
    Row(q.HOST_TOTALS, s.host_of_server_without_allocation),
    Row(q.SHAPE, s.after(q.HOST_TREE)),
    Row(q.INTERFACES, s.after(q.SHAPE)),
    Row(q.PORTS, s.after(q.SHAPE)),
    Row(q.ATTACHMENTS, s.of_server_with_volumes),
    Row(q.ACTIONS, s.of_volume_server_without_actions),
    Row(q.ROOT_VOLUME, s.its_root_volume),
    Row(q.DEVICE_PROFILES, s.its_device_profiles),
    Row(q.ACCELERATORS, s.after(q.DEVICE_PROFILES)),
    Row(q.ACTIONS, s.of_server_with_too_much_of_a_child),
    Row(q.PORT_ACTIONS, s.actions_on_its_ports),
    Row(q.FORMER_TREE, s.former_tree_of_its_host),
    Row(q.OWN_USAGES, s.former_tree_of_its_host),
    Row(q.HOST_SERVERS, s.former_tree_of_its_host),
    Row(q.ACTIONS, s.of_server_behind_a_failed_move),
    Row(q.LAST_ACTIONS, s.actions_since_a_failed_move),
)

# What else kinds need, and where it is asked for.
_ELSEWHERE = frozenset(
    {
        # The rows from the tree of a host to the devices of a server.
        q.AMOUNTS,
        # `candidates`: which consumers are looked up, and which hosts are asked for flavors.
        *(q.EVERY_CONSUMER, q.UNOWNED, q.USAGE, q.CHILDREN, q.FLAVORS, q.BANDWIDTH),
        # `providers`
        *(q.FORMER_ROOTS, q.INVENTORIES, q.MISSING_PROVIDERS),
        # `others`
        *(q.MEMBERS, q.TRAITS, q.NODES, q.PROJECTS, q.PROJECT_SERVERS),
        *(q.DELETIONS, q.FAILED_DELETIONS, q.EVACUATED, q.TOTALS),
    }
)


def require_known_needs(kinds: Iterable[Kind]) -> None:
    """Raise LookupError if a kind needs what nothing asks for."""
    rows = (*PROOF, *PROOF_OF_MIGRATION, *PROOF_OF_SERVER)
    known = _ELSEWHERE.union(row.request for row in rows)
    for kind in kinds:
        unknown = {*kind.needs, *kind.named_needs} - known
        if unknown:
            raise LookupError(f"Kind {kind.name} needs what nothing asks for: {sorted(unknown)}.")


require_known_needs(KINDS)


def ask(request: str, sources: Sources, look: Look | None, target: t.Any) -> t.Any:
    """Send a request of the table, and return its answer. Raises LookupError for any other."""
    return _SENDERS[request](sources, look, target)


def walk(rows: Iterable[Row], sources: Sources, look: Look) -> None:
    """Send the requests of `rows` about one uuid, in their order, where their conditions hold."""
    for row in rows:
        look.times = row.before_a_write if look.context.fresh else row.at_detection
        for target in row.condition(look):
            look.add(row.request, target, ask(row.request, sources, look, target))


def _get_action(sources: Sources, look: Look, request_id: str) -> t.Any:
    return sources.clients.nova.get_instance_action(look.uuid, request_id)
