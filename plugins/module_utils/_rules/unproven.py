# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What to say of a case that is not healthy and that no kind could be proven of: it is protected, or undecided and why."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.verdict import protected, undecided

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Server
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Ruling
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import Case

UNPROVEN = "unproven"
FOREIGN_PROVIDER = "foreign_provider"


def decide_unproven(case: Case) -> tuple[str, Ruling]:
    """Return the name of what was found and the ruling."""
    if case.server is not None:
        return UNPROVEN, undecided(_explain_server_state(case, case.server), *case.state_evidence)
    land = case.land
    strange = {root: held for root, held in case.trees.items() if root not in land.nodes and not (root and land.is_gone(root))}
    foreign = sorted(land.get_name(provider) for held in strange.values() for provider in held)
    if foreign and land.unjudged_hosts:
        return UNPROVEN, undecided(f"A cell does not answer, and {', '.join(foreign)} may be of a host there.", *case.state_evidence)
    if foreign and case.subject.server.status == 404:
        reason = f"Nova does not know it, and no compute node of this Nova stands behind {', '.join(foreign)}: it is somebody else's."
        return FOREIGN_PROVIDER, protected(reason, *case.state_evidence)
    return UNPROVEN, undecided(_explain_missing_server(case), *case.state_evidence)


def _explain_server_state(case: Case, server: Server) -> str:
    if case.unlisted_move:
        return f"Server {server.uuid} is on {server.host}, but {case.unlisted_move}."
    if not case.settled:
        where = f"on {server.host}" if server.host else "on no host"
        return f"Server {server.uuid} is {server.status} {where}, which is no state of rest on a host."
    if case.own_tree is None:
        return f"Server {server.uuid} is on {server.host} ({server.node}), which is not exactly one compute node that Nova lists."
    if case.own_tree not in case.trees:
        held = ", ".join(sorted(map(case.land.get_name, case.allocation.resources))) or "nothing at all"
        return f"Server {server.uuid} rests on {server.node} and holds nothing of it, but {held}."
    others = ", ".join(sorted(map(case.land.get_name, (*case.other_trees, *case.doubtful_trees))))
    if not case.arrived:
        where = f"on {server.host}, where its newest migration did not end, and nothing shows that it was unshelved there since"
        return f"Server {server.uuid} is said to be {where}, and also holds {others}."
    return f"Server {server.uuid} rests on {server.node} without a whole claim on it, and also holds {others}."


def _explain_missing_server(case: Case) -> str:
    if case.subject.server.status != 404:
        return f"Nova answered {case.subject.server.status} when asked for {case.subject.uuid}, where only 200 or 404 says something."
    if case.contradiction:
        return f"Nova answers 404 for {case.subject.uuid}, but {case.contradiction}."
    named = [migration.uuid for migration in case.land.migrations.values() if migration.server == case.consumer]
    if named or case.server_migrations:
        return f"Nova answers 404 for {case.subject.uuid}, but still lists migrations of it."
    return f"Nova answers 404 for {case.subject.uuid}, and nothing else that it says proves what became of it."
