# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations as the modules return them, and evacuations that nova-compute has not completed.

At its next start, the nova-compute of their source destroys every guest of theirs that its
hypervisor has. That start also completes them if the compute node has the name that they have, but
of several evacuations of one server only one (nova/compute/manager.py,
_destroy_evacuated_instances).
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from .._common.errors import CloudError
from .._common.parallel import map_parallel
from .._common.text import make_printable, require_uuid, summarize_names
from .._common.times import seconds_between
from .._core.clients.nova import NovaReader
from .._core.clients.session import CloudContext
from .._core.facts.services import (
    get_listed_services,
    has_every_cell_answered,
    list_down_cell_hosts,
    require_answer,
)
from .._core.models.codec import convert_to_json
from .._core.models.nova import Migration, Server
from .._core.models.snapshot import Answer


def list_migrations(context: CloudContext) -> dict[str, t.Any]:
    """Return the migrations that the options ask for, newest first."""
    options = context.options
    server = require_uuid(options["server"], "server") if options["server"] else None
    nova = NovaReader(context.connect().compute)
    answer = _ask(nova, server, options["host"])
    if not has_every_cell_answered(nova.list_services()):
        # Nova leaves a dead cell out of its listings without an error.
        context.warn("A cell is not answering: there may be more migrations than Nova lists.")
    if answer.value is None:
        raise CloudError(
            f"Nova answered {answer.status} to {answer.request}, "
            "or with more than it lists at once."
        )
    rows = [row for row in answer.value if _is_chosen(row, options)]
    rows.sort(key=lambda row: row.created_at or "", reverse=True)
    # The age counts to the time of the answer, so that only Nova's clock matters.
    return {"changed": False, "migrations": [describe_migration(row, answer.at) for row in rows]}


def _ask(nova: NovaReader, server: str | None, host: str | None) -> Answer[tuple[Migration, ...]]:
    if server:
        return nova.list_migrations_of_server(server)
    return nova.list_migrations_of_host(host) if host else nova.list_migrations()


def _is_chosen(row: Migration, options: Mapping[str, t.Any]) -> bool:
    """Return whether a migration matches every option that is set."""
    # Nova was asked for the server or for the host, and not for both. Asked for a host, it may
    # take names for the same that differ in case, and does so when nova-compute starts, too.
    hosts = (row.source_compute, row.dest_compute)
    if options["server"] and options["host"] and options["host"] not in hosts:
        return False
    if options["status"] and row.status not in options["status"]:
        return False
    return options["under_way"] in (None, not row.ended)


def describe_migration(migration: Migration, at: str) -> dict[str, t.Any]:
    """Return a migration with its age in seconds and what can be done about it.

    at: the time of Nova's answer, by Nova's own clock.
    """
    return {
        **convert_to_json(migration),
        "age_seconds": seconds_between(migration.changed_at, at),
        "advice": get_advice(migration),
    }


def get_advice(migration: Migration) -> str:
    """Return what to do about a migration that is under way; '' for a migration that has ended."""
    if migration.ended:
        return ""
    # A finished resize holds its source on purpose, until it is confirmed or reverted.
    if migration.status == "finished":
        return "confirm or revert the resize"
    if migration.type == "live-migration":
        return "wait for it, or abort it (openstack server migration abort)"
    return "wait for it; if it makes no progress, check and reset the server's state"


@d.dataclass(frozen=True)
class UnfinishedEvacuations:
    """The evacuations from one host that are not completed, sorted by uuid.

    present: the servers of these that are on the host, or may be.
    stuck: those that no start of nova-compute completes.
    busy: the servers on the host, and on the way from or to it, whose task a restart would break
        off. A build then ends in ERROR (nova/compute/manager.py, _init_instance).
    """

    host: str
    evacuations: tuple[Migration, ...] = ()
    present: tuple[str, ...] = ()
    stuck: tuple[Migration, ...] = ()
    busy: tuple[str, ...] = ()

    @property
    def restart_completes(self) -> bool:
        """Whether a restart of nova-compute is safe, and completes evacuations."""
        return not self.present and not self.busy and len(self.stuck) < len(self.evacuations)

    def explain(self) -> str:
        """Return what is wrong and the way out, empty if nothing is."""
        if not self.evacuations:
            return ""
        if self.present:
            return (
                f"Servers that were evacuated from {self.host} are on it again, or may be "
                f"({summarize_names(self.present)}), and the evacuations are not completed: at its "
                f"next start, nova-compute on {self.host} destroys them. Do not restart it. Move "
                "them to another host first, and run again. While it is down, make sure that they "
                "are there, and set the status of those evacuations from done to completed in the "
                "table migrations of the cell's database instead."
            )
        if len(self.stuck) < len(self.evacuations):
            servers = sorted({migration.server for migration in self.evacuations})
            way_out = f"Restart nova-compute on {self.host} before, which completes them."
            if self.busy:
                way_out = (
                    "A restart completes them, but breaks off what it is doing now "
                    f"({summarize_names(self.busy)}): run again when that has ended."
                )
            return (
                f"Evacuations from {self.host} are not completed (of {summarize_names(servers)}): "
                "if such a server returns, the next start of nova-compute there destroys it. "
                f"{way_out}"
            )
        nodes = sorted({make_printable(str(entry.source_node)) for entry in self.stuck})
        return (
            f"No start of nova-compute on {self.host} completes the evacuations "
            f"{summarize_names(entry.uuid for entry in self.stuck)}, because it has no compute "
            f"node {summarize_names(nodes)}, but it would destroy their servers there. Set their "
            "status to completed in the table migrations of the cell's database, or keep these "
            f"servers off {self.host}."
        )


def read_unfinished_evacuations(
    nova: NovaReader, host: str, names: Collection[str], nodes: Collection[str]
) -> UnfinishedEvacuations:
    """Return the evacuations from a host that are not completed.

    names: all names of the host and its compute nodes, also former ones. nodes: the names that its
        compute nodes have now.
    Raises CloudError when Nova does not list them, or may not list all.
    """
    evacuations, moves = list_evacuations(nova, host)
    unfinished = {entry for entry in evacuations if entry.is_unfinished_evacuation}
    found = sorted((one for one in unfinished if one.has_source(names)), key=lambda one: one.uuid)
    moves = tuple(move for move in moves if move not in found)
    hosted = require_answer(nova.query_servers_on_host(host), f"the servers of {host}")
    busy = {entry.uuid for entry in hosted if entry.task_state or entry.status == "BUILD"}
    # One that waits to be confirmed waits for a person.
    busy.update(move.server for move in moves if not move.ended and move.status != "finished")
    servers = sorted({entry.server for entry in found})
    lookups = dict(zip(servers, map_parallel(nova.get_server, servers), strict=True))
    present = {entry.server for entry in found if _may_be_there(entry, lookups, moves, names)}
    stuck = [entry for entry in found if not entry.is_completed_at(host, nodes)]
    return UnfinishedEvacuations(
        host, tuple(found), tuple(sorted(present)), tuple(stuck), tuple(sorted(busy))
    )


def list_evacuations(
    nova: NovaReader, host: str
) -> tuple[tuple[Migration, ...], tuple[Migration, ...]]:
    """Return all evacuations, and all migrations from and to a host.

    Raises CloudError when Nova does not list them, or when the cell of the host may not answer:
    Nova leaves its migrations out without an error.
    """
    before = nova.list_services()
    listed = require_answer(nova.list_evacuations(), "its evacuations")
    # Asked in another way, in case that the cell fell silent for one listing only.
    moves = require_answer(nova.list_migrations_of_host(host), f"the migrations of {host}")
    for services in (before, nova.list_services()):
        known = {service.host for service in get_listed_services(services)}
        silent = list_down_cell_hosts(services)
        if host in silent or (silent and host not in known):
            raise CloudError(
                f"The cell of {host} does not answer, or may not, so it is not known whether "
                f"evacuations from {host} are completed: run again when it answers."
            )
    evacuations = {*listed, *(move for move in moves if move.type == "evacuation")}
    return tuple(evacuations), moves


def _may_be_there(
    evacuation: Migration,
    lookups: Mapping[str, Answer[Server]],
    moves: Iterable[Migration],
    names: Collection[str],
) -> bool:
    """Return whether the server of an evacuation, or a guest of it, may be on its source.

    moves: the other migrations from and to the source.
    """
    lookup = lookups[evacuation.server]
    # Nova lists no evacuation of a deleted server, so a 404 proves nothing.
    # With a task it may be on its way, before Nova has a record of that.
    if lookup.value is None or not lookup.value.host_known or lookup.value.task_state is not None:
        return True
    place = {(lookup.value.host or "").casefold(), (lookup.value.node or "").casefold()}
    if not place.isdisjoint(name.casefold() for name in names):
        return True
    # A later move that has not ended, or that failed, can have a guest at either end.
    began = evacuation.created_at or ""
    own = [move for move in moves if move.server == evacuation.server]
    later = [move for move in own if (move.created_at or "") >= began]
    return any(not move.ended or move.is_inconclusive for move in later)


def find_returning_hosts(
    migrations: Iterable[Migration], names: Mapping[str, Collection[str]]
) -> list[str]:
    """Return the hosts on which Nova would destroy the server of these migrations, sorted.

    names: by host, its names.
    """
    left = [migration for migration in migrations if migration.is_unfinished_evacuation]
    return sorted(host for host, own in names.items() if any(one.has_source(own) for one in left))


def list_evacuation_sources(migrations: Iterable[Migration]) -> set[tuple[str | None, str | None]]:
    """Return the hosts and compute nodes from which a server was evacuated for good.

    A later move to such a host, whatever became of it, can have an allocation and a guest there.

    migrations: all of the server, newest first.
    """
    sources = set()
    entered: set[str | None] = set()
    for migration in migrations:
        is_evacuation = migration.type == "evacuation" and migration.has_arrived
        if is_evacuation and migration.source_compute not in entered:
            sources.add((migration.source_compute, migration.source_node))
        entered.add(migration.dest_compute)
    return sources


def explain_returning(hosts: Collection[str]) -> tuple[str, str]:
    """Return why a server must not move to where it was evacuated from, and what to do first."""
    names = summarize_names(hosts)
    return (
        f"it was evacuated from {names}, where Nova may send it, and where the next start of "
        "nova-compute would destroy it, because the evacuation is not completed",
        f"complete it before: redeploy_host -e host_decommission_target={min(hosts)} says whether "
        "a restart of nova-compute does so, or would destroy servers that are back already",
    )
