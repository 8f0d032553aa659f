# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the proof about one consumer is complete, and Placement agrees with itself. Pure.

A direct lookup of a server goes through its own mapping to its own cell. This lookup, the actions
of the server, its migrations and the listing of its host do not depend on any other cell. So a
proof by presence holds when every host that the consumer touches is in a cell that answers. A proof
by absence holds only when every cell answers.

The answer about a consumer (`GET /allocations/{consumer_uuid}`) does not name the consumer, so that
it may be an old one, or the one about another consumer. The listing of a provider names all
consumers there (`GET /resource_providers/{uuid}/allocations`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ..._common.errors import Reason
from ..._common.text import summarize_names
from ..models.kind import EVERY
from ..models.placement import Allocations
from ..models.snapshot import Snapshot
from .agreement import list_host_names
from .consumer import ConsumerView
from .index import ListingsIndex


def find_gap(view: ConsumerView, cells: str) -> Reason | None:
    """Return which answer a proof about this consumer lacks because hosts are not listed.

    The result is None when the proof lacks none. cells: as `Kind.cells`.
    """
    silent = view.index.unjudged_hosts
    if not silent:
        return None
    if cells == EVERY:
        return Reason(
            "every_cell_needed",
            f"this rests on absence, and Nova lists nothing of {summarize_names(sorted(silent))}",
        )
    if touched := sorted(list_touched_hosts(view) & silent):
        return Reason(
            "cell_of_host_down",
            f"it involves {summarize_names(touched)}, of which Nova lists nothing",
        )
    roots = [root for root in list_touched_roots(view) if _may_be_of_silent_host(root, view)]
    if not roots:
        return None
    names = summarize_names(sorted(map(view.index.get_name, roots)))
    return Reason(
        "may_be_of_down_cell",
        f"Nova lists nothing of {summarize_names(sorted(silent))}, and {names} may belong there",
    )


def _may_be_of_silent_host(root: str, view: ConsumerView) -> bool:
    """Return whether a root provider may be of a host whose cell does not answer.

    That is so where a direct lookup does not say that the provider has no host. If the server
    lives, that is no proof: the host may have another name now.
    """
    if root in view.index.nodes:
        return False
    return view.server is not None or bool(view.index.find_doubtful_lookup(root))


def list_touched_hosts(view: ConsumerView) -> set[str]:
    """Return the hosts on which the consumer or its server may be.

    These are the hosts of their allocations, the host where Nova says that the server is, and the
    sources and destinations of its migrations.
    """
    hosts = {view.server.host if view.server else None}
    for root in list_touched_roots(view):
        if root in view.index.nodes:
            hosts.add(view.index.nodes[root].host)
        else:
            # Nova does not list the compute node, so the provider's name has to stand for the host.
            hosts.update(list_host_names(view.index.get_name(root)))
    for migration in view.server_migrations:
        hosts |= {migration.source_compute, migration.dest_compute}
    # No destination is set before one is chosen.
    return set(filter(None, hosts))


def list_touched_roots(view: ConsumerView) -> set[str]:
    """Return the root providers of the allocations of the consumer and its server.

    Sharing providers are left out. The root of the server's own host is always included.
    """
    trees = [*view.trees.items(), *view.server_trees.items()]
    # A provider that Placement did not list stands for its own root.
    roots = {one for root, tree in trees for one in ([root] if root else tree)}
    return roots | {view.own_tree} if view.own_tree else roots


def choose_providers(snapshot: Snapshot, index: ListingsIndex) -> list[str]:
    """Return the providers whose listings are to be compared with the evidence.

    Of a consumer on a host these are the ones in the trees of hosts: a provider that hosts share
    may have all consumers of the cloud, and is listed once in a run (`explain_loss`).
    """
    providers: set[str] = set()
    for evidence in snapshot.evidence.values():
        allocation = evidence.allocation.value
        if allocation is None:
            continue
        on_hosts = [uuid for uuid in allocation.resources if index.get_root(uuid) in index.nodes]
        providers.update(on_hosts or allocation.resources)
    return sorted(providers)


def explain_contradictions(
    snapshot: Snapshot,
    index: ListingsIndex,
    providers: Container[str],
    listed: Mapping[str, Allocations],
) -> dict[str, Reason]:
    """Return by consumer why the answers about its allocations cannot be relied on.

    An answer about the server of a migration, or about a migration of a server, counts for both.

    providers, listed: those of `choose_providers`, and what they list, by consumer.
    """
    contradicted = set()
    for uuid, evidence in snapshot.evidence.items():
        if evidence.allocation.value is None:
            continue
        answered = evidence.allocation.value.resources
        listed_here = {one: answered[one] for one in answered if one in providers}
        if listed_here != listed.get(uuid, {}):
            contradicted.add(uuid)
    reasons = {}
    for uuid in snapshot.evidence:
        related = (uuid, *_list_related(uuid, snapshot, index))
        if wrong := next((one for one in related if one in contradicted), None):
            reasons[uuid] = Reason(
                "listing_contradicts_answer",
                f"Placement's answer about the allocations of {wrong} is not what it lists on the "
                "providers: they are changing right now, or a cache has an old answer.",
            )
    return reasons


def explain_loss(
    consumer: str, listed: Mapping[str, Allocations], snapshot: Snapshot, index: ListingsIndex
) -> Reason | None:
    """Return why an answer about `consumer` cannot be relied on: it lacks what a provider lists.

    What has changed since the providers were listed counts too.

    listed: what some providers list, by consumer.
    """
    related = (consumer, *_list_related(consumer, snapshot, index))
    for uuid in (one for one in related if one in snapshot.evidence):
        allocation = snapshot.evidence[uuid].allocation.value
        answered = allocation.resources if allocation else {}
        for provider, amounts in listed.get(uuid, {}).items():
            if answered.get(provider) != amounts:
                return Reason(
                    "allocation_answers_differ",
                    f"{index.get_name(provider)} lists another allocation of {uuid} than Placement "
                    "answered when asked for it: it is changing right now, or a cache has an old "
                    "answer.",
                )
    return None


def _list_related(uuid: str, snapshot: Snapshot, index: ListingsIndex) -> list[str]:
    """Return the server of a migration, or the migrations of a server."""
    if uuid in index.migrations:
        return [index.migrations[uuid].server]
    # An API worker that does not know the cell of a server lists no migration of it.
    listed = index.get_listed_migrations(uuid).value or ()
    looked_up = snapshot.evidence[uuid].migrations.value or ()
    return sorted({migration.uuid for migration in (*listed, *looked_up)})
