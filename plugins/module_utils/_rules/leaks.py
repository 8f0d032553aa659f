# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The proofs of the leaks: parts of the allocation of a live server that it does not need.

Only such a part is removed, and only where it is certain; all the rest of the allocation stays as
it is.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    build_reduction,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import drifted
from ansible_collections.osops.placement.plugins.module_utils._snapshot.flavor import (
    may_explain_children,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.guest_devices import (
    find_unused_providers,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer
    from ansible_collections.osops.placement.plugins.module_utils._models.verdict import Decision
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.consumer import (
        ConsumerView,
    )


def leaked_child(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has an unexplained allocation on a child provider of its host.

    Proof: The server is settled on its host and has an allocation on a child provider there, but
    nothing in its flavor, image or ports asks for such a resource. It may be removed only if
    `hypervisor_guest_info` has also looked at the host: the guest of the server, active, paused or
    shut off, is defined there and uses no device of that provider, whose name says which device it
    is. The look is not older than an hour, and since a minute before it neither the server nor its
    allocation was changed and no action was requested.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The server is read from its own cell.

    Change: With that proof, the allocation on that child provider is removed, and all else stays.
    Without it there is none: check on the host whether its guest uses such a device.
    """
    own = view.own_tree
    if not _is_settled_and_healthy(view) or own is None or view.server is None:
        return None
    if may_explain_children(view.server, view):
        return None
    children = view.trees[own] - {own}
    if not children:
        return None
    names = ", ".join(sorted(map(view.index.get_name, children)))
    reason = (
        f"Server {view.consumer} has an allocation on {names} of its host {view.node_name}, "
        "but nothing in its flavor, image or ports asks for one."
    )
    evidence = _list_evidence(view)
    unused = find_unused_providers(view, children, policy.guests)
    if unused.providers:
        change = build_reduction(view.allocation, unused.providers)
        return drifted(f"{reason} {unused.explanation}", *evidence, change=change)
    # Only the host can say whether the guest uses the device.
    advice = "Check on the host whether its guest uses such a device before you remove anything."
    reason = " ".join(filter(None, (reason, unused.explanation, advice)))
    return drifted(reason, *evidence)


def _is_settled_and_healthy(view: ConsumerView) -> bool:
    return view.is_settled_in_place and view.healthy


def _list_evidence(view: ConsumerView) -> tuple[Answer[t.Any], ...]:
    subject = view.subject
    return (*view.server_answers, subject.shape, subject.interfaces, subject.ports)
