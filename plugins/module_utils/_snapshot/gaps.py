# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Whether the answers on which the proof of one consumer rests are complete, though a cell does not answer. Pure.

A direct look-up of a server goes through its own mapping to its own cell. It, the actions of the server, its migrations and the
listing of its host do not depend on any other cell. So a proof by presence holds when every host that the consumer touches is in a
cell that answers. A proof by absence holds only when every cell answers.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import list_host_names

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import Case
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import Landscape


def find_gap(case: Case, needs_every_cell: bool) -> str | None:
    """Say which answer a proof about this consumer lacks because a cell does not answer; None when it lacks none."""
    silent = case.land.unjudged_hosts
    if not silent:
        return None
    if needs_every_cell:
        return f"this rests on absence, and the cell of {summarize_names(sorted(silent))} does not answer"
    touched = sorted(list_touched_hosts(case) & silent)
    if touched:
        return f"it touches {summarize_names(touched)}, whose cell does not answer"
    unknown = sorted(case.land.get_name(root) for root in list_touched_roots(case) if _may_be_of_silent_host(root, case.land))
    if unknown:
        return f"a cell does not answer, and {summarize_names(unknown)} may be of a host there"
    return None


def _may_be_of_silent_host(root: str, land: Landscape) -> bool:
    """Tell whether a root provider may be of a host whose cell does not answer: where a direct look-up does not say that it has no host."""
    return root not in land.nodes and bool(land.find_doubtful_lookup(root))


def list_touched_hosts(case: Case) -> set[str]:
    """Return the hosts on which the consumer or its server may be: where they hold, where the server is said to be, and where it moved."""
    hosts = {case.land.nodes[root].host for root in list_touched_roots(case) if root in case.land.nodes}
    for root in list_touched_roots(case) - set(case.land.nodes):
        hosts.update(list_host_names(case.land.get_name(root)))
    if case.server is not None and case.server.host:
        hosts.add(case.server.host)
    for migration in case.server_migrations:
        hosts |= {host for host in (migration.source_compute, migration.dest_compute) if host}
    return hosts


def list_touched_roots(case: Case) -> set[str]:
    """Return the root providers of what the consumer and its server hold, sharing providers left out."""
    of_subject = case.subject.allocation.value
    held = {*case.allocation.resources, *(of_subject.resources if of_subject else ())}
    roots = {case.land.get_root(provider) or provider for provider in held if not case.land.is_sharing(provider)}
    return roots | ({case.own_tree} if case.own_tree else set())
