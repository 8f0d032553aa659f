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
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import (
    list_host_names,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )


def find_gap(view: ConsumerView, needs_every_cell: bool) -> str | None:
    """Say which answer a proof about this consumer lacks because a cell does not answer; None when it lacks none."""
    silent = view.index.unjudged_hosts
    if not silent:
        return None
    if needs_every_cell:
        return f"this rests on absence, and the cell of {summarize_names(sorted(silent))} does not answer"
    touched = sorted(list_touched_hosts(view) & silent)
    if touched:
        return f"it touches {summarize_names(touched)}, whose cell does not answer"
    unknown = sorted(
        view.index.get_name(root)
        for root in list_touched_roots(view)
        if _may_be_of_silent_host(root, view.index)
    )
    if unknown:
        return f"a cell does not answer, and {summarize_names(unknown)} may be of a host there"
    return None


def _may_be_of_silent_host(root: str, index: SnapshotIndex) -> bool:
    """Tell whether a root provider may be of a host whose cell does not answer: where a direct look-up does not say that it has no host."""
    return root not in index.nodes and bool(index.find_doubtful_lookup(root))


def list_touched_hosts(view: ConsumerView) -> set[str]:
    """Return the hosts on which the consumer or its server may be: where they hold, where the server is said to be, and where it moved."""
    hosts = {
        view.index.nodes[root].host for root in list_touched_roots(view) if root in view.index.nodes
    }
    for root in list_touched_roots(view) - set(view.index.nodes):
        hosts.update(list_host_names(view.index.get_name(root)))
    if view.server is not None and view.server.host:
        hosts.add(view.server.host)
    for migration in view.server_migrations:
        hosts |= {host for host in (migration.source_compute, migration.dest_compute) if host}
    return hosts


def list_touched_roots(view: ConsumerView) -> set[str]:
    """Return the root providers of what the consumer and its server hold, sharing providers left out."""
    of_subject = view.subject.allocation.value
    held = {*view.allocation.resources, *(of_subject.resources if of_subject else ())}
    roots = {
        view.index.get_root(provider) or provider
        for provider in held
        if not view.index.is_sharing(provider)
    }
    return roots | ({view.own_tree} if view.own_tree else set())
