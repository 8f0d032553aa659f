# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision on a consumer that is not healthy and to which no kind applies.

It is protected, or undecided with the reason.
"""

from __future__ import annotations

import typing as t

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView
from ..models.finding import Decision, protected, undecided
from ..models.nova import Server
from ..models.snapshot import Answer, Evidence

UNPROVEN = "unproven"
FOREIGN_PROVIDER = "foreign_provider"


def decide_unproven(view: ConsumerView) -> tuple[str, Decision]:
    """Return the name and the decision for a consumer to which no kind applies."""
    if view.server is not None:
        return UNPROVEN, undecided(_explain_server_state(view, view.server), *view.state_evidence)
    foreign = _list_foreign_providers(view)
    # While a cell is down, its compute nodes are missing from the listing too.
    if foreign and view.index.unjudged_hosts:
        return UNPROVEN, undecided(
            Reason(
                "may_belong_to_down_cell",
                f"A cell does not answer, and {', '.join(foreign)} may belong to a host in that "
                "cell.",
            ),
            *view.state_evidence,
        )
    if foreign and view.subject.server.status == 404:
        reason = Reason(
            "of_other_nova",
            "Nova has no server with this UUID, and no compute node of this Nova is behind "
            f"{', '.join(foreign)}: the consumer does not belong to this Nova.",
        )
        return FOREIGN_PROVIDER, protected(reason, *view.state_evidence)
    return UNPROVEN, undecided(_explain_missing_server(view), *view.state_evidence)


def _list_foreign_providers(view: ConsumerView) -> list[str]:
    """Return the names of its providers that neither belong nor belonged to a compute node."""
    names: list[str] = []
    for root, providers in view.trees.items():
        if root in view.index.nodes:
            continue
        if root and view.index.is_gone(root):
            continue
        names.extend(map(view.index.get_name, providers))
    return sorted(names)


def _explain_server_state(view: ConsumerView, server: Server) -> Reason:
    """Return why a live server that is not healthy could not be judged."""
    if view.unlisted_move:
        return view.unlisted_move.reword(
            f"Server {server.uuid} is on {server.host}, but {view.unlisted_move}."
        )
    if not view.settled:
        where = f"on {server.host}" if server.host else "without a host"
        return Reason(
            "server_unsettled",
            f"Server {server.uuid} is {server.status} {where}, and it is certain only for a "
            "settled server which allocation it needs.",
        )
    if view.unknown_move is not None:
        return Reason(
            "unknown_move_type",
            f"Server {server.uuid} has migration {view.unknown_move.uuid} of the type "
            f"{view.unknown_move.type}, which this version does not know, so it is not certain "
            "which allocation it needs.",
        )
    if view.own_tree is None:
        return Reason(
            "compute_node_ambiguous",
            f"Server {server.uuid} is on {server.host} ({server.node}), "
            "but Nova does not list exactly one compute node of that name.",
        )
    return _explain_server_allocation(view, server)


def _explain_server_allocation(view: ConsumerView, server: Server) -> Reason:
    """Return where a settled server has allocations besides its host, or instead of it."""
    if view.own_tree not in view.trees:
        providers = ", ".join(sorted(map(view.index.get_name, view.allocation.resources)))
        return Reason(
            "settled_elsewhere",
            f"Server {server.uuid} is settled on {server.node} but has no allocation there; it has "
            f"allocations on {providers or 'no provider'}.",
        )
    other_roots = (*view.other_trees, *view.doubtful_trees)
    others = ", ".join(sorted(map(view.index.get_name, other_roots)))
    # Its guest may still be on the host where its newest migration ended.
    if not view.arrived:
        return Reason(
            "newest_move_unfinished",
            f"Nova has server {server.uuid} on {server.host}, where its newest migration did not "
            "end and nothing shows that the server was unshelved since; the server also has "
            f"allocations on {others}.",
        )
    return Reason(
        "own_allocation_incomplete",
        f"Server {server.uuid} is settled on {server.node} with an incomplete allocation there, "
        f"and also has allocations on {others}.",
    )


def _explain_missing_server(view: ConsumerView) -> Reason:
    """Return why a consumer without a live server could not be judged."""
    subject = view.subject
    if subject.server.status != 404:
        return Reason(
            "server_lookup_failed",
            f"Nova answered {subject.server.status} when asked for {subject.uuid}, "
            "and only 200 or 404 would prove anything.",
        )
    if view.contradiction:
        return view.contradiction.reword(
            f"Nova answers 404 for {subject.uuid}, but {view.contradiction}."
        )
    if view.server_migrations:
        return Reason(
            "migrations_left",
            f"Nova answers 404 for server {subject.uuid}, but still lists migrations of it.",
        )
    if status := _find_failed_status(subject):
        return Reason(
            "other_lookup_failed",
            f"Nova answers 404 for {subject.uuid}, but {status} to another request about it: "
            "nothing proves that it was deleted.",
        )
    return Reason(
        "deletion_not_proven",
        f"Nova answers 404 for {subject.uuid}, but no other answer proves that it was deleted.",
    )


def _find_failed_status(subject: Evidence) -> int:
    """Return the status of the first request that Nova could not answer; 0 if there is none."""
    answers: list[Answer[t.Any]] = [subject.deleted_listing, subject.actions, subject.marker]
    answers += [*subject.markers, *subject.rows, *subject.host_migrations]
    for answer in answers:
        # 0 was not asked, and 400 and 404 are answers of Nova.
        if answer.status not in (0, 200, 400, 404):
            return answer.status
    return 0
