# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One consumer and all that a snapshot says about it: the questions that the rules ask.

Each question is answered in one place; those about its server are in `facts.server`. Pure: no
request, no clock.
"""

from __future__ import annotations

import dataclasses as d
import functools
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet

from ..._common.errors import Reason
from ..._common.times import seconds_between
from ..models.nova import Migration
from ..models.placement import DISK, Allocation, list_compute_classes
from ..models.snapshot import Answer, Evidence
from .index import SnapshotIndex, group_by_tree
from .server import ServerView


@d.dataclass(frozen=True, kw_only=True)
class ConsumerView(ServerView):
    """A consumer, its allocation, and the server that it is or whose migration it is.

    evidence: about the consumer itself.
    subject: the evidence about that server. Of a consumer that Nova does not list as a migration,
        it is the consumer's own.
    migration: the migration that the consumer is, None for any other consumer.
    """

    index: SnapshotIndex
    allocation: Allocation
    evidence: Evidence
    migration: Migration | None

    @property
    def consumer(self) -> str:
        return self.allocation.consumer

    @property
    def is_settled_in_place(self) -> bool:
        """Whether it is a server, not a migration, and settled where its newest move took it."""
        return self.migration is None and self.settled and self.arrived

    @property
    def healthy(self) -> bool:
        """Whether it is a server with an allocation in its host's tree, and no other host's."""
        return self.migration is None and self.has_only_own_tree(self.index.nova_roots)

    @functools.cached_property
    def migration_allocations(self) -> Mapping[str, Allocation]:
        """The allocations of the server's ended migrations, by their uuid, empty ones left out."""
        read = self.index.snapshot.evidence
        ended = [row.uuid for row in self.server_migrations if row.ended and row.uuid in read]
        allocations = filter(None, (read[uuid].allocation.value for uuid in ended))
        return {one.consumer: one for one in allocations if one.resources}

    @property
    def age_seconds(self) -> int | None:
        """The seconds since the allocation was written.

        Of a server without an allocation, the seconds since Nova last changed the server.
        """
        if self.allocation.resources or self.server is None:
            return self.allocation.age_seconds
        return seconds_between(self.server.updated, self.subject.server.at)

    @functools.cached_property
    def trees(self) -> Mapping[str | None, frozenset[str]]:
        """The providers of the allocation, by their root.

        Sharing providers belong to no tree and are left out.
        """
        return group_by_tree(self.allocation.resources, self.index)

    @functools.cached_property
    def other_trees(self) -> Mapping[str, frozenset[str]]:
        """The trees of the allocation that are another host's.

        Such a tree is that of a compute node that Nova lists, of one that is gone, or of the source
        that a migration names.
        """
        trees = self._foreign_trees.items()
        return {root: providers for root, providers in trees if self._is_of_host(root)}

    @functools.cached_property
    def doubtful_trees(self) -> Mapping[str, frozenset[str]]:
        """The trees of the allocation that were of a compute node which Nova does not list.

        It is not proven that there is no host behind them.
        """
        return {
            root: providers
            for root, providers in self._foreign_trees.items()
            if self.index.has_nova_trait(root) and not self._is_of_host(root)
        }

    @property
    def _foreign_trees(self) -> Mapping[str, frozenset[str]]:
        """The trees of the allocation other than the server's own."""
        # A provider that Placement did not list has no root that would say whose it is.
        trees = self.trees.items()
        return {root: tree for root, tree in trees if root is not None and root != self.own_tree}

    def _is_of_host(self, root: str) -> bool:
        return (
            root in self.index.nodes
            or self.find_migration_from(root) is not None
            or self.index.is_gone(root)
        )

    @property
    def held_roots(self) -> AbstractSet[str | None]:
        return {*super().held_roots, *self.trees}

    def has_own_allocation(self, migration: Migration, root: str) -> bool:
        """Return whether the consumer is that migration, and has an allocation in the tree."""
        is_consumer = self.migration is not None and self.migration.uuid == migration.uuid
        return is_consumer and root in self.trees

    def explain_possible_guest_of_evacuation(self, roots: Collection[str | None]) -> Reason | None:
        """Return why the guest that an evacuation left in one of `roots` may still run, or None.

        nova-compute destroys that guest when it starts, and then saves the evacuation as
        `completed` (nova/compute/manager.py, _destroy_evacuated_instances). A server can be
        evacuated only while nova-compute is down. If nova-compute reports and the evacuation is
        still `done`, it has not started since: the host had only lost its connection, or was forced
        down while it lived. A host that has
        another name now does not find the evacuation, and never destroys that guest.
        """
        evacuations = [row for row in self.server_migrations if row.type == "evacuation"]
        for move in (row for row in evacuations if row.has_arrived):
            for root in filter(None, roots):
                host = self._find_evacuated_host(root, move)
                if host and self.index.is_reporting(host, move.changed_at):
                    return _describe_possible_guest(host, move)
        return None

    def _find_evacuated_host(self, root: str, move: Migration) -> str | None:
        """Return the present name of the host in the tree `root` if an evacuation may have left it.

        The result is None if it did not, or the guest there is known to be destroyed.
        """
        node, source = self.index.nodes.get(root), (move.source_compute, move.source_node)
        if not self.may_be_source(root, move):
            return None
        is_listed = self.index.lists_node(*source)
        if self.is_source(root, move) or node is None:
            # A compute node that is gone can have got another UUID before the evacuation, so then
            # its name is listed.
            may_return = is_listed or not self.index.is_gone(root)
            return move.source_compute if move.status == "done" and may_return else None
        # A new machine that has the name of the host completes the evacuation.
        is_named = self.index.has_name(root, *source)
        if root == self.own_tree or (move.status != "done" and is_named):
            return None
        return None if self.has_left_after(move, root, is_named or is_listed) else node.host

    @property
    def migration_listings(self) -> tuple[Answer[tuple[Migration, ...]], ...]:
        """The listings in which a migration would be, if it were still there."""
        return (self.index.snapshot.migrations, *self.subject.host_migrations)

    @functools.cached_property
    def contradiction(self) -> Reason | None:
        """What contradicts that the server is gone or without a host, or what could not be read."""
        if self.index.snapshot.hypervisors.value is None:
            return Reason(
                "hypervisor_listing_unread",
                "the hypervisor listing, which would show it on its host, could not be read",
            )
        if host := self.index.get_listed_host(self.subject.uuid):
            return Reason("listed_on_host", f"the hypervisor listing shows it on {host}")
        for answer in self.subject.rows:
            if answer.value and self.subject.uuid in answer.value:
                return Reason(
                    "row_left_in_cell",
                    "a cell still has a row of the server, although its instance mapping is lost",
                )
            if answer.value:
                return Reason(
                    "other_servers_answered", f"Nova answered with other servers ({answer.request})"
                )
        if self.active_migration:
            return Reason(
                "server_is_moving",
                f"its migration {self.active_migration.uuid} is {self.active_migration.status}",
            )
        if any(listing.value is None for listing in self.migration_listings):
            return Reason("migrations_unread", "a listing of migrations could not be read")
        listings = [listing.value or () for listing in self.subject.host_migrations]
        is_listed = any(row.uuid == self.consumer for rows in listings for row in rows)
        if self.migration is None and is_listed:
            return Reason(
                "migration_listed_once",
                "Nova lists a migration with this UUID in one answer and not in another",
            )
        return None


def _describe_possible_guest(host: str, evacuation: Migration) -> Reason:
    if host != evacuation.source_compute:
        return Reason(
            "guest_may_run_under_other_name",
            f"{host} may be {evacuation.source_compute}, which evacuation {evacuation.uuid} of the "
            "server left, under another name: the guest may still run there, and nova-compute "
            "does not destroy it. Look for it there (virsh list --all).",
        )
    return Reason(
        "guest_not_cleaned_up",
        f"nova-compute on {host} runs, and has not recorded that it cleaned up after evacuation "
        f"{evacuation.uuid} of the server, so the guest may still run there. Restart nova-compute "
        "there: it destroys that guest and removes the allocation.",
    )


def build_views(index: SnapshotIndex) -> Iterator[ConsumerView]:
    """Yield a view of each candidate that was read and that has or should have an allocation."""
    read = index.snapshot.evidence
    for evidence in (read[uuid] for uuid in sorted(index.snapshot.candidates) if uuid in read):
        allocation, migration = evidence.allocation.value, index.migrations.get(evidence.uuid)
        if allocation is None:
            continue
        # Whether a migration's allocation is needed follows from the server that it moves.
        subject = evidence if migration is None else read.get(migration.server, evidence)
        # Without an allocation, only a live server is judged, because it should have one.
        if allocation.resources or (migration is None and subject.server.value is not None):
            yield ConsumerView(
                index=index,
                allocation=allocation,
                evidence=evidence,
                subject=subject,
                migration=migration,
            )


def format_providers(view: ConsumerView) -> str:
    """Return the names of the providers of the allocation as text, or `nothing` without any."""
    return ", ".join(sorted(map(view.index.get_name, view.allocation.resources))) or "nothing"


def is_settled_without_own_tree(view: ConsumerView) -> bool:
    """Return whether the server is settled on a host on which it has no allocation.

    Its allocations, if any, are all on other hosts: any other provider may be another service's.
    """
    return (
        view.is_settled_in_place
        and view.own_tree is not None
        and view.own_tree not in view.trees
        and set(view.trees) == set(view.other_trees)
    )


def is_settled_and_healthy(view: ConsumerView) -> bool:
    """Return whether the server is settled on its host, and has allocations there only."""
    return view.is_settled_in_place and view.healthy


def has_wrong_owner(view: ConsumerView) -> bool:
    """Return whether Placement has another project or user for the allocation than Nova."""
    server, allocation = view.server, view.allocation
    if not is_settled_and_healthy(view) or server is None or not (server.project and server.user):
        return False
    return (allocation.project, allocation.user) != (server.project, server.user)


def has_own_tree_allocated(view: ConsumerView) -> bool:
    """Return whether a settled server has an allocation on its own host, not only of its disk."""
    is_placed = view.is_settled_in_place and view.own_tree is not None
    return is_placed and has_compute_allocation(view, view.own_tree)


def has_own_and_other_trees_allocated(view: ConsumerView) -> bool:
    return has_own_tree_allocated(view) and bool(view.other_trees)


def has_compute_allocation(view: ConsumerView, root: str | None) -> bool:
    """Return whether the server has on `root` a class that it also has on its own host.

    An allocation without such a class is not a leftover of a move. Of a host that a move has left,
    other tools may have removed all but what is on children (nova-manage placement audit --delete
    knows only some classes): there, each class must be one that it has in the tree of its own host.
    """
    resources = view.allocation.resources
    own_classes = list_compute_classes(resources, view.own_tree)
    if list_compute_classes(resources, root) & own_classes:
        return True
    if not root or root == view.own_tree or root in resources:
        return False
    left = view.find_migration_from(root)
    own, children = (
        {cls for provider in view.trees.get(tree, ()) for cls in resources[provider]}
        for tree in (view.own_tree, root)
    )
    return left is not None and left.has_arrived and bool(children) and children <= own - {DISK}
