# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""What to say of a case that is not healthy and that no kind could be proven of: it is protected,
or undecided and why.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    protected,
    undecided,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Server
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Decision
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )

UNPROVEN = "unproven"
FOREIGN_PROVIDER = "foreign_provider"


def decide_unproven(view: ConsumerView) -> tuple[str, Decision]:
    """Return the name of what was found and the ruling."""
    if view.server is not None:
        return UNPROVEN, undecided(_explain_server_state(view, view.server), *view.state_evidence)
    index = view.index
    strange = {
        root: held
        for root, held in view.trees.items()
        if root not in index.nodes and not (root and index.is_gone(root))
    }
    foreign = sorted(index.get_name(provider) for held in strange.values() for provider in held)
    if foreign and index.unjudged_hosts:
        return UNPROVEN, undecided(
            f"A cell does not answer, and {', '.join(foreign)} may be of a host there.",
            *view.state_evidence,
        )
    if foreign and view.subject.server.status == 404:
        reason = (
            "Nova does not know it, and no compute node of this Nova stands behind "
            f"{', '.join(foreign)}: it is somebody else's."
        )
        return FOREIGN_PROVIDER, protected(reason, *view.state_evidence)
    return UNPROVEN, undecided(_explain_missing_server(view), *view.state_evidence)


def _explain_server_state(view: ConsumerView, server: Server) -> str:
    if view.unlisted_move:
        return f"Server {server.uuid} is on {server.host}, but {view.unlisted_move}."
    if not view.settled:
        where = f"on {server.host}" if server.host else "on no host"
        return (
            f"Server {server.uuid} is {server.status} {where}, which is no state of rest on a host."
        )
    if view.own_tree is None:
        return (
            f"Server {server.uuid} is on {server.host} ({server.node}), which is not exactly one "
            "compute node that Nova lists."
        )
    if view.own_tree not in view.trees:
        held = (
            ", ".join(sorted(map(view.index.get_name, view.allocation.resources)))
            or "nothing at all"
        )
        return f"Server {server.uuid} rests on {server.node} and holds nothing of it, but {held}."
    others = ", ".join(sorted(map(view.index.get_name, (*view.other_trees, *view.doubtful_trees))))
    if not view.arrived:
        where = (
            f"on {server.host}, where its newest migration did not end, and nothing shows that it "
            "was unshelved there since"
        )
        return f"Server {server.uuid} is said to be {where}, and also holds {others}."
    return (
        f"Server {server.uuid} rests on {server.node} without a whole claim on it, and also holds "
        f"{others}."
    )


def _explain_missing_server(view: ConsumerView) -> str:
    if view.subject.server.status != 404:
        return (
            f"Nova answered {view.subject.server.status} when asked for {view.subject.uuid}, "
            "where only 200 or 404 says something."
        )
    if view.contradiction:
        return f"Nova answers 404 for {view.subject.uuid}, but {view.contradiction}."
    named = [
        migration.uuid
        for migration in view.index.migrations.values()
        if migration.server == view.consumer
    ]
    if named or view.server_migrations:
        return f"Nova answers 404 for {view.subject.uuid}, but still lists migrations of it."
    return (
        f"Nova answers 404 for {view.subject.uuid}, and nothing else that it says proves what "
        "became of it."
    )
