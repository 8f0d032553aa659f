# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server should have on its host, by the answers about it, compared with what it has. Pure.

`expected` has Nova's own rules; here are the answers that they are given.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..facts.consumer import ConsumerView, build_views
from ..facts.index import SnapshotIndex
from ..models.placement import Allocations
from ..models.resource_request import HostTree, MissingInput, ResourceRequest
from ..models.snapshot import NOT_ASKED, Answer
from ..options.policy import Policy
from .doubts import PCI_TRAIT
from .inputs import build_inputs, describe_unread
from .listed import name_missing
from .placing import Expectation, compare
from .request import build_requests

# Why the amounts of a server were not checked, beside the names of `MissingInput`.
NOT_COMPARED = "not_compared"
UNSETTLED = "unsettled"
CONTRADICTORY = "contradictory"


@d.dataclass(frozen=True)
class AmountCounts:
    """Of how many servers the amounts were checked.

    by_server: by themselves. by_host: by the sums of all allocations on their hosts.
    unchecked: how many were not, by what is missing.
    """

    by_server: int
    by_host: int
    unchecked: t.Mapping[str, int]


def find_host_tree(view: ConsumerView) -> Answer[HostTree]:
    """Return the answer about the tree of the server's host, `NOT_ASKED` where it was not read."""
    return view.index.snapshot.host_trees.get(view.own_tree or "", NOT_ASKED)


def compare_amounts(view: ConsumerView, policy: Policy, present: Allocations) -> Expectation | None:
    """Compare what a server has on its host with what it should have.

    present: what it has, or keeps, on the providers of its host and on those that share with it.
    The result is None for a server that was not looked up, because the listings show that it is in
    order.
    """
    if view.server is None or view.subject.shape == NOT_ASKED:
        return None
    doubt = _find_doubt(view, present)
    if doubt is not None:
        return Expectation(
            matches=None, allocations=None, why=doubt.reason, rules=(), missing=(doubt,)
        )
    return compare(_build_requests(view, policy), _get_tree(view), present)


def find_device_doubt(view: ConsumerView, policy: Policy) -> str:
    """Return why a server may have had a PCI device that nothing shows; empty if it cannot.

    What it has says whether it has one, and so this matters where it has nothing.
    """
    tree = find_host_tree(view).value
    if tree is None or not any(PCI_TRAIT in row.traits for row in tree.providers.values()):
        return ""
    for request in _build_requests(view, policy):
        for missing in request.missing:
            if missing.pci:
                return missing.reason
    return ""


def fits_all_that_is_known(view: ConsumerView, policy: Policy, present: Allocations) -> bool:
    """Return whether what a server has is what it should have, as far as that could be read.

    Then there is no difference that something unread would have to explain.
    """
    if _find_doubt(view, present) is not None:
        return False
    requests = [d.replace(request, missing=()) for request in _build_requests(view, policy)]
    return compare(requests, _get_tree(view), present).matches is True


def count_amounts(index: SnapshotIndex, policy: Policy) -> AmountCounts:
    """Return of how many servers of the scope the amounts were checked."""
    listed = index.snapshot.listed_amounts
    unchecked = dict(listed.unchecked)
    by_server = listed.by_server
    for view in build_views(index):
        # Without a host it should have nothing.
        if view.migration is not None or view.server is None or not view.server.host:
            continue
        reason = _explain_unchecked(view, policy)
        if reason:
            unchecked[reason] = unchecked.get(reason, 0) + 1
        else:
            by_server += 1
    return AmountCounts(by_server, listed.by_host, dict(sorted(unchecked.items())))


def _explain_unchecked(view: ConsumerView, policy: Policy) -> str:
    """Return why the amounts of a candidate were not checked, empty if they were."""
    listed = view.index.snapshot.listed_amounts.candidates
    if not view.is_settled_in_place or view.server is None:
        return UNSETTLED
    if view.subject.shape == NOT_ASKED:
        return listed.get(view.consumer, NOT_COMPARED)
    present = view.allocation.resources
    # Of a server that also has something on other hosts, that is to be removed first.
    if set(view.trees) - {view.own_tree}:
        present = {}
    expectation = compare_amounts(view, policy, present)
    if expectation is None:
        return NOT_COMPARED
    if expectation.missing:
        return name_missing(expectation.missing[0], view.server)
    if expectation.matches is None:
        return CONTRADICTORY
    return ""


def _find_doubt(view: ConsumerView, present: Allocations) -> MissingInput | None:
    """Return what is missing before anything can be compared, None if nothing is."""
    if view.server is None or view.server.flavor is None:
        return MissingInput("flavor", "Nova does not show its flavor")
    answer = find_host_tree(view)
    if answer.value is None:
        return MissingInput("tree", describe_unread(answer, "Placement", "the tree of its host"))
    unlisted = sorted(set(present) - set(answer.value.providers))
    if unlisted:
        names = ", ".join(map(view.index.get_name, unlisted))
        return MissingInput(
            "tree",
            f"it has an allocation on {names}, which is not in the tree of its host and does not "
            "share with it",
        )
    return None


def _build_requests(view: ConsumerView, policy: Policy) -> tuple[ResourceRequest, ...]:
    server = view.server
    if server is None or server.flavor is None:
        raise ValueError(f"{view.consumer} has no flavor")
    return build_requests(build_inputs(server.flavor, view.subject, policy.pci_aliases))


def _get_tree(view: ConsumerView) -> HostTree:
    tree = find_host_tree(view).value
    if tree is None:
        raise ValueError(f"the tree of {view.own_tree} was not read")
    return tree
