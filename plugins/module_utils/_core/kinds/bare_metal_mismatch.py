# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bare metal node that Ironic shows in another state than Placement."""

from __future__ import annotations

import shlex
import typing as t
from collections.abc import Iterator

from ..._common.errors import Reason
from ..._common.text import make_printable, summarize_names
from ..._common.times import format_duration, seconds_between
from ..facts.groups import NodeView, build_node_views, has_room
from ..facts.index import SnapshotIndex
from ..models.finding import DRIFTED, UNDECIDED, Finding
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.other_services import CLEANING_STATES, BareMetalNode
from ..models.snapshot import NODES, Answer, BareMetal
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(NODES,))

_MAX_MESSAGE = 200


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the nodes of Ironic that are not in the state that their provider shows.

    Proof: The reading is sound. Ironic's node and Placement's provider, whose allocations were read
    once more after it, contradict each other: the server on the node has no allocation, an
    allocation belongs to another server, a node that cannot be used is offered to the scheduler, a
    free node is not offered, or Ironic no longer has the node. Ironic has not changed the node, and
    nobody has written the allocation, for at least `orphan_cleanup_min_age`. A node that is being
    cleaned has been so for at least `orphan_cleanup_stuck_min_age`. A node that Ironic does not
    show is only looked up where these credentials see nodes of other projects; otherwise
    `summary.coverage.unread` says how many could not be compared.

    Needs: Ironic, in the service catalogue. Without a provider of a node, Ironic is not read.

    Change: None. The finding says what to look at, and which command corrects it.
    """
    reading = index.snapshot.surroundings.bare_metal
    # The answer for another region would contradict every provider.
    if reading.nodes.value is None or index.failed_checks:
        return
    for view in build_node_views(index, reading.nodes, reading.lookups):
        node_check = _NodeCheck(index, policy, reading, view)
        verdict, reason = node_check.decide()
        if reason:
            yield Finding(
                "bare_metal_mismatch",
                verdict,
                view.root,
                reason,
                providers=(view.root,),
                evidence=node_check.evidence,
            )


class _NodeCheck:
    """The checks of one node and its provider; the first that finds something counts."""

    def __init__(
        self, index: SnapshotIndex, policy: Policy, reading: BareMetal, view: NodeView
    ) -> None:
        self._index = index
        self._policy = policy
        self._reading = reading
        self._view = view
        self.evidence: tuple[Answer[t.Any], ...] = (reading.nodes,)

    def decide(self) -> tuple[str, Reason | None]:
        """Return a verdict and its reason; no reason where nothing is wrong."""
        node = self._view.node
        if node is None:
            return self._check_absent_node()
        if self._is_settled(node):
            for check in (self._check_consumers, self._check_instance, self._check_inventory):
                if reason := check(node):
                    return DRIFTED, reason
        return DRIFTED, self._check_cleaning(node)

    def _is_settled(self, node: BareMetalNode) -> bool:
        """Return whether nova-compute has had time to see the node as it is."""
        age = seconds_between(node.changed_at, self._reading.nodes.at)
        return age is not None and age >= self._policy.min_age

    def _list_old_consumers(self) -> list[str]:
        """Return the consumers that still have the provider, and have had it for long."""
        old = []
        for consumer in self._view.consumers:
            answer = self._reading.allocations.get(consumer)
            allocation = answer.value if answer else None
            if answer is None or allocation is None or allocation.age_seconds is None:
                continue
            is_there = self._view.root in allocation.resources
            if is_there and allocation.age_seconds >= self._policy.min_age:
                old.append(consumer)
                self.evidence = (*self.evidence, answer)
        return old

    def _check_absent_node(self) -> tuple[str, Reason | None]:
        uuid = self._view.uuid
        lookup = self._reading.lookups.get(uuid)
        if lookup is None:
            return UNDECIDED, None
        self.evidence = (*self.evidence, lookup)
        consumers = self._list_old_consumers()
        details = self._reading.details.get(self._view.root)
        if consumers:
            state = f"{_describe(consumers)} still allocated on its provider"
        elif not self._view.consumers and details is not None and has_room(details):
            state = "Placement still offers its provider to the scheduler"
        else:
            return UNDECIDED, None
        if lookup.status != 404:
            return UNDECIDED, Reason(
                "ironic_lookup_failed",
                f"Ironic does not list node {uuid}, and answered {lookup.status} when asked for "
                f"it, but {state}.",
            )
        return DRIFTED, Reason(
            "node_gone",
            f"Ironic has no node {uuid} any more, but {state}. If a server is still on it, delete "
            "that server with its owner's consent. Once nothing is allocated there, nova-compute "
            f"of {self._get_host()} deletes the provider by itself (openstack resource provider "
            f"delete {self._view.root}, if that service no longer exists).",
        )

    def _check_consumers(self, node: BareMetalNode) -> Reason | None:
        """Check what is allocated: it should be what the node is in use by."""
        if not self._view.has_foreign_consumer:
            return None
        # Of a server that moves, the migration has the allocation.
        if any(consumer in self._index.migrations for consumer in self._view.consumers):
            return None
        consumers = self._list_old_consumers()
        if len(consumers) < len(self._view.consumers):
            return None
        used = make_printable(node.instance, _MAX_MESSAGE) if node.instance else "nothing"
        show = f"openstack server show {shlex.quote(consumers[0])}"
        return Reason(
            "node_has_other_consumer",
            f"{_describe(consumers).capitalize()} still allocated on the provider of node "
            f"{node.uuid}, but in Ironic the node is {_get_state(node)} and in use by {used}. If "
            f"Nova no longer has that server ({show}), its allocation is an orphan, which has a "
            "finding of its own. If it has, the server has lost its machine: compare with "
            f"openstack baremetal node show {node.uuid}, tell its owner, and only then delete the "
            "server.",
        )

    def _check_instance(self, node: BareMetalNode) -> Reason | None:
        """Check what the node is in use by: if it is a server, it should have an allocation."""
        if not node.instance or self._view.consumers or self._has_usage():
            return None
        answer = self._reading.servers.get(node.instance)
        server = answer.value if answer is not None else None
        if answer is None or server is None:
            return None
        # A server that is being built or moved has its allocation elsewhere, or not yet.
        if server.node != node.uuid or not server.task_known or server.task_state is not None:
            return None
        self.evidence = (*self.evidence, answer)
        healing = self._explain_healing(server.uuid)
        return Reason(
            "node_server_without_allocation",
            f"In Ironic node {node.uuid} is {_get_state(node)} and in use by server {server.uuid}, "
            f"but the server has no allocation on its provider. {healing}",
        )

    def _explain_healing(self, server: str) -> str:
        """Return how the allocation of a server can be created."""
        heal = f"nova-manage placement heal_allocations --instance {server}"
        details = self._reading.details.get(self._view.root)
        if details is not None and has_room(details):
            return f"Create it with {heal}."
        # Nova reserves a node as soon as it is in use (nova/virt/ironic/driver.py).
        return (
            "Placement refuses it while the node is reserved, as Nova reserves each node that is "
            "in use: set skip_reserve_in_use_ironic_nodes in [workarounds] of nova-compute on "
            f"{self._get_host()}, restart it, create the allocation with {heal}, and take the "
            "setting back."
        )

    def _check_inventory(self, node: BareMetalNode) -> Reason | None:
        """Check what the scheduler is offered: every free node, and no other."""
        details = self._reading.details.get(self._view.root)
        if details is None or self._view.consumers or self._has_usage():
            return None
        if has_room(details) == node.is_free:
            return None
        host = self._get_host()
        if node.is_free:
            return Reason(
                "free_node_not_offered",
                f"Ironic has node {node.uuid} available, but its provider has no room although "
                "nothing is allocated there, so that nothing is scheduled to the node. "
                f"nova-compute of {host} should offer it within a minute: check that it is up and "
                "what it logs about the node, and restart it.",
            )
        return Reason(
            "unusable_node_offered",
            f"Placement offers node {node.uuid} to the scheduler, but in Ironic it is "
            f"{_get_state(node)}, so that servers fail to build there. nova-compute of {host} "
            "should reserve it within a minute: check that it is up and what it logs about the "
            "node, and restart it.",
        )

    def _check_cleaning(self, node: BareMetalNode) -> Reason | None:
        """Check how long the node has been reserved after its last server."""
        if node.provision_state not in CLEANING_STATES or node.instance:
            return None
        age = seconds_between(node.provisioned_at, self._reading.nodes.at)
        if age is None or age < self._policy.stuck_min_age:
            return None
        reason = Reason(
            "node_cleaning_for_long",
            f"Ironic has had node {node.uuid} in the state {_get_state(node)} for "
            f"{format_duration(age)}, and until it is available no server can be scheduled there.",
        )
        if node.last_error:
            reason = reason.extend(
                f"Its last error: {make_printable(node.last_error, _MAX_MESSAGE)}."
            )
        if node.provision_state in ("clean wait", "clean hold"):
            reason = reason.extend(
                f"End the cleaning with openstack baremetal node abort {node.uuid} first."
            )
        return reason.extend(
            f"Mend the cause, then clean it again: openstack baremetal node maintenance "
            f"unset {node.uuid}, openstack baremetal node manage {node.uuid}, openstack baremetal "
            f"node provide {node.uuid}."
        )

    def _has_usage(self) -> bool:
        """Return whether something has been allocated since the allocations were listed."""
        details = self._reading.details.get(self._view.root)
        return details is None or any(details.usages.values())

    def _get_host(self) -> str:
        compute_node = self._index.nodes.get(self._view.root)
        host = compute_node.host if compute_node else "the host that had it"
        return make_printable(host, _MAX_MESSAGE)


def _get_state(node: BareMetalNode) -> str:
    state = make_printable(node.provision_state or "unknown", _MAX_MESSAGE)
    return f"{state} (in maintenance)" if node.maintenance else state


def _describe(consumers: list[str]) -> str:
    if len(consumers) == 1:
        return f"consumer {consumers[0]} is"
    return f"consumers {summarize_names(consumers)} are"
