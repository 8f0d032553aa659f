# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server's allocation is on the former provider of its host, whose compute node has another
UUID now.

A host that was installed again, or that lost its file `compute_id`, can come back with another UUID
for its compute node. Its servers then have their allocations on the provider of the old one.
"""

from __future__ import annotations

from ..._common.errors import Reason
from ..._common.text import summarize_names
from ..expected.amounts import find_host_tree
from ..expected.corrections import choose_owner
from ..facts.consumer import ConsumerView
from ..facts.index import FORMER_SUFFIX
from ..facts.services import COMPUTE
from ..models.change import build_change
from ..models.finding import Decision, drifted, undecided
from ..models.kind import DRIFT, EVERY, OPT_IN, define_kind
from ..models.nova import GUEST_LEAVING_MIGRATION_TYPES, Server
from ..models.placement import sum_amounts
from ..models.snapshot import ACTIONS, FORMER_TREE, HOST_SERVERS, HOST_TREE, NOT_ASKED, OWN_USAGES
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    DRIFT,
    OPT_IN,
    needs=(ACTIONS, HOST_TREE, FORMER_TREE, OWN_USAGES, HOST_SERVERS),
    cells=EVERY,
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the allocation is on the provider that the server's host had before.

    Proof: The server is settled on its host and has no allocation there, but has one on a root
    provider without a compute node, and nowhere else. No compute node or compute service is behind
    that provider, which has the trait `COMPUTE_NODE` or `OWNER_NOVA`. It has the name of the
    server's compute node, or all consumers with an allocation on its tree are servers on this host
    and no migration of the server names it. The compute node is the only one of its host and of its
    name, and its service is up. No migration from or to the host is under way or waits to be
    confirmed. No evacuation or live migration of the server failed to a host that is not there any
    more. The provider of the compute node has each resource class, and room for all that is
    allocated on the former provider.

    Needs: Every cell: that no compute node is behind the former provider, and which provider is
    that of the server's compute node, only the complete listing of compute nodes shows.

    Change: The same amounts are allocated on the provider of the compute node instead. While the
    former provider has the name of the compute node, Placement refuses the provider of the compute
    node, and the finding says what to do.
    """
    server, own = view.server, view.own_tree
    if server is None or own is None or not view.is_settled_in_place or own in view.trees:
        return None
    former = _find_former_tree(view, server)
    if former is None:
        return None
    subject = view.subject
    evidence = (
        *(*view.server_answers, subject.former_tree, subject.host_servers),
        *(find_host_tree(view), subject.own_usages),
    )
    name = view.index.get_name(former)
    reason = Reason(
        "on_former_provider",
        f"Server {view.consumer} is settled on {view.node_name}, whose compute node has the UUID "
        f"{own}, but its allocation is on provider {name} ({former}), which the host had before.",
    )
    if doubt := _find_doubt(view, server, former, own):
        return undecided(reason.but(doubt), *evidence)
    if own not in view.index.providers and _has_name_of_node(view, server, former):
        conflict = _describe_conflict(server, former, own)
        return drifted(conflict.reword(f"{reason} {conflict}"), *evidence)
    if shortage := _find_shortage(view, former):
        return undecided(reason.but(shortage), *evidence)
    amounts = view.allocation.resources[former]
    change = build_change(view.allocation, resources={own: amounts}, **choose_owner(view))
    return drifted(reason, *evidence, change=change)


def _find_former_tree(view: ConsumerView, server: Server) -> str | None:
    """Return the root that seems to be the former provider of the server's host; None without one.

    A tree that only belongs to another host which is gone is of the kind misplaced_allocation.
    """
    # With a second tree it is not certain which of the two the guest needs.
    if len(view.trees) != 1:
        return None
    (root,) = view.trees
    if root is None or root in view.index.nodes:
        return None
    if _has_name_of_node(view, server, root):
        return root
    # A host that the server came from is gone: its provider has its own name, not this host's.
    if not view.index.is_gone(root) or view.is_named_by_migration(root):
        return None
    subject = view.subject
    if subject.former_tree == NOT_ASKED:
        return None
    # An answer that could not be read leaves a doubt; one that was read may show another host.
    unread = subject.former_tree.value is None or subject.host_servers.value is None
    if not unread and _explain_other_consumers(view, root):
        return None
    return root


def _has_name_of_node(view: ConsumerView, server: Server, root: str) -> bool:
    return view.index.get_name(root) == server.node


def _find_doubt(view: ConsumerView, server: Server, former: str, own: str) -> Reason | None:
    """Return why the allocation on `former` may be needed where it is; None if it is not."""
    if possible_host := view.index.find_possible_host(former):
        return possible_host
    if not view.index.has_nova_trait(former):
        return Reason(
            "without_nova_trait", "that provider has neither the trait COMPUTE_NODE nor OWNER_NOVA"
        )
    # What a device or a shared disk needs there, only the host knows.
    if set(view.allocation.resources) != {former}:
        return Reason(
            "on_other_providers_too",
            "it also has allocations on child providers or sharing providers",
        )
    return (
        _explain_ambiguous_host(view, server, own)
        or _explain_silent_service(view, server)
        or _explain_migration_of_host(view, server)
        or _explain_failed_move(view, former)
        or _explain_other_consumers(view, former)
    )


def _explain_ambiguous_host(view: ConsumerView, server: Server, own: str) -> Reason | None:
    """Return why it is not certain which compute node is that of the server; empty if it is."""
    if view.index.list_nodes_at(server.host or "") != {own}:
        return Reason("several_nodes_of_host", f"host {server.host} has several compute nodes")
    for node in view.index.nodes.values():
        if node.uuid != own and node.name == server.node:
            return Reason(
                "node_name_taken", f"host {node.host} has a compute node of the same name"
            )
    return None


def _explain_silent_service(view: ConsumerView, server: Server) -> Reason | None:
    """Return why nova-compute on the server's host may not be there; empty if it is up."""
    for services in view.index.list_compute_services(server.host):
        if len(services) != 1:
            return Reason(
                "several_compute_services",
                f"Nova lists {len(services)} services {COMPUTE} of {server.host}, and not one",
            )
        if services[0].state != "up":
            return Reason(
                "compute_service_not_up",
                f"{COMPUTE} on {server.host} is not up, so the host may not be back",
            )
    return None


def _explain_migration_of_host(view: ConsumerView, server: Server) -> Reason | None:
    """Return which migration from or to the server's host has not ended; empty without one."""
    for move in view.index.migrations.values():
        # One that waits to be confirmed has not ended either.
        if not move.ended and server.host in (move.source_compute, move.dest_compute):
            return Reason(
                "host_has_migration",
                f"migration {move.uuid} from or to {server.host} is {move.status}",
            )
    return None


def _explain_failed_move(view: ConsumerView, former: str) -> Reason | None:
    """Return why the guest may run on a host that is not there any more; empty if it does not."""
    if failed := view.explain_failed_move_to([former]):
        return failed
    # The former provider may be one of another host that was renamed.
    hosts = {node.host for node in view.index.nodes.values()}
    for move in view.server_migrations:
        if move.type not in GUEST_LEAVING_MIGRATION_TYPES:
            continue
        if move.is_inconclusive and move.dest_compute not in hosts:
            return Reason(
                "move_to_gone_host_failed",
                f"{move.type} {move.uuid} to {move.dest_compute} failed, "
                "and its guest may run there",
            )
    return None


def _explain_other_consumers(view: ConsumerView, former: str) -> Reason | None:
    """Return which consumer of the former tree is not a server on this host; empty without one.

    What could not be read counts as such a consumer.
    """
    allocations, servers = view.subject.former_tree.value, view.subject.host_servers.value
    if allocations is None or servers is None:
        return Reason(
            "former_provider_unread",
            "the consumers of that provider or the servers of the host could not be read",
        )
    # The listing of the tree contradicts what the consumer itself shows.
    if view.consumer not in allocations:
        return Reason("not_listed_by_provider", "that provider does not list this allocation")
    if others := sorted(set(allocations) - set(servers)):
        return Reason(
            "former_provider_has_other_consumers",
            f"{summarize_names(others)} also has an allocation on that provider, "
            "and is not a server on this host",
        )
    # A child with an allocation keeps the tree, which is then not only a name that is left.
    for consumer, held in sorted(allocations.items()):
        if set(held) != {former}:
            return Reason(
                "former_provider_has_children",
                f"{consumer} also has an allocation on a child of that provider",
            )
    return None


def _describe_conflict(server: Server, former: str, own: str) -> Reason:
    return Reason(
        "former_provider_has_name",
        f"Placement refuses to create provider {own} while provider {former} has its name "
        f"(LP 1817833). Disable {COMPUTE} on {server.host}, so that nothing is scheduled there; "
        "rename the former provider (openstack resource provider set --name "
        f"{server.node}{FORMER_SUFFIX} {former}); restart {COMPUTE} on {server.host}, which "
        "creates its provider; and detect again.",
    )


def _find_shortage(view: ConsumerView, former: str) -> Reason | None:
    """Return what the provider of the compute node cannot take; empty if it takes everything.

    It has to take the allocations of all servers, not only that of this one.
    """
    host_tree, used = find_host_tree(view).value, view.subject.own_usages.value
    tree = view.subject.former_tree.value
    if host_tree is None or used is None or tree is None:
        return Reason(
            "new_provider_unread",
            "the inventory or the usage of the compute node's provider could not be read",
        )
    stock = host_tree.providers[host_tree.root].inventories
    for cls, amount in sorted(view.allocation.resources[former].items()):
        inventory = stock.get(cls)
        # nova-compute writes the inventory only after it has created the provider.
        if inventory is None:
            return Reason(
                "new_provider_lacks_class", f"the provider of the compute node has no {cls} yet"
            )
        if not inventory.accepts(amount):
            return Reason(
                "new_provider_refuses_amount",
                f"the provider of the compute node does not accept {amount} {cls} at once",
            )
    # Placement would refuse only the last servers, and the host would be left with two providers.
    for cls, amount in sorted(sum_amounts(held.get(former, {}) for held in tree.values()).items()):
        capacity = stock[cls].capacity if cls in stock else 0
        if used.get(cls, 0) + amount > capacity:
            return Reason(
                "new_provider_lacks_room",
                f"{amount} {cls} are allocated on the former provider, and the provider of the "
                f"compute node has room for {max(capacity - used.get(cls, 0), 0)}",
            )
    return None
