# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server should have on its host, by lookups and by the listings alone. Pure.

`expected` has Nova's own rules; here are the answers that they are given.

A listing shows flavors and images, and neither ports nor the tree of a host. It is therefore the
sums over all providers that are compared.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Mapping

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, build_views
from ..facts.index import SnapshotIndex
from ..models.nova import Server
from ..models.other_services import HostTree, MissingInput, PciAlias, ResourceRequest
from ..models.placement import Allocations, sum_amounts
from ..models.snapshot import NOT_ASKED, Answer
from ..options.policy import Policy
from .inputs import build_inputs, build_listed_inputs, describe_unread
from .placing import PCI_TRAIT, Expectation, compare, explain_missing
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
    if view.subject.shape == NOT_ASKED:
        return None
    doubt = _find_doubt(view, present)
    if doubt is not None:
        return Expectation(None, None, explain_missing([doubt]), (), (doubt,))
    return compare(_build_requests(view, policy), get_host_tree(view), present)


def find_device_doubt(view: ConsumerView, policy: Policy) -> Reason | None:
    """Return why a server may have had a PCI device that nothing shows; None if it cannot.

    What it has says whether it has one, and so this matters where it has nothing.
    """
    if not any(PCI_TRAIT in row.traits for row in get_host_tree(view).providers.values()):
        return None
    parts = [part for request in _build_requests(view, policy) for part in request.missing]
    missing = next((part for part in parts if part.pci), None)
    return explain_missing([missing]) if missing else None


def fits_all_that_is_known(view: ConsumerView, policy: Policy, present: Allocations) -> bool:
    """Return whether what a server has is what it should have, as far as that could be read.

    Then there is no difference that something unread would have to explain.
    """
    if _find_doubt(view, present) is not None:
        return False
    requests = _build_requests(view, policy)
    # Either amount of disk may be right while it is unknown whether the root disk is a volume.
    if any(part.name == "volume" for request in requests for part in request.missing):
        requests += _build_requests(view, policy, volume_backed=True)
    known = [d.replace(request, missing=()) for request in requests]
    return compare(known, get_host_tree(view), present).matches is True


def count_amounts(index: SnapshotIndex, policy: Policy) -> AmountCounts:
    """Return of how many servers of the scope the amounts were checked."""
    listed = index.snapshot.listed_amounts
    unchecked = collections.Counter(listed.unchecked)
    # Without a host it should have nothing.
    views = [one for one in build_views(index) if one.migration is None]
    placed = [one for one in views if one.server is not None and one.server.host]
    unchecked.update(_explain_unchecked(view, policy) for view in placed)
    by_server = listed.by_server + unchecked.pop("", 0)
    return AmountCounts(by_server, listed.by_host, dict(sorted(unchecked.items())))


def _explain_unchecked(view: ConsumerView, policy: Policy) -> str:
    """Return why the amounts of a candidate were not checked, empty if they were."""
    if not view.is_settled_in_place or view.server is None:
        return UNSETTLED
    # Of a server that also has something on other hosts, that is to be removed first.
    is_elsewhere = bool(view.trees.keys() - {view.own_tree})
    present = {} if is_elsewhere else view.allocation.resources
    expectation = compare_amounts(view, policy, present)
    if expectation is None:
        listed = view.index.snapshot.listed_amounts.candidates
        return listed.get(view.consumer, NOT_COMPARED)
    if expectation.missing:
        return name_missing(expectation.missing[0], view.server)
    return CONTRADICTORY if expectation.matches is None else ""


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


def _build_requests(
    view: ConsumerView, policy: Policy, **assumed: t.Any
) -> tuple[ResourceRequest, ...]:
    """Return the requests that Nova may have made. assumed: inputs that count for known."""
    server = view.server
    if server is None or server.flavor is None:
        raise ValueError(f"{view.consumer} has no flavor")
    inputs = build_inputs(server.flavor, view.subject, policy.pci_aliases)
    return build_requests(d.replace(inputs, **assumed))


def get_host_tree(view: ConsumerView) -> HostTree:
    """Return the tree of a server's host, without which nothing is compared."""
    tree = find_host_tree(view).value
    if tree is None:
        raise ValueError(f"the tree of {view.own_tree} was not read")
    return tree


# What is missing, by the name of the input, of a server whose flavor is not known at all.
NO_FLAVOR = "flavor"
# The properties of the image of a volume, which Cinder shows and not Nova.
VOLUME_IMAGE = "volume_image"
# What could explain that a server has more than its flavor and image request.
_EXPLAINING = frozenset({"pci_alias", "device_profile", "accelerators"})


@d.dataclass(frozen=True)
class ListedComparison:
    """What a listing says of the amounts of one server.

    fits: whether their sums are what its flavor and image request.
    missing: what would have to be read to know that, as names of `MissingInput`.
    explained: whether something that is missing may explain that they do not fit.
    """

    fits: bool
    missing: tuple[str, ...]
    explained: bool = False


def compare_listed(
    server: Server, allocations: Allocations, pci_aliases: Mapping[str, PciAlias]
) -> ListedComparison:
    """Compare the sums of the allocations of a server with its flavor and image.

    allocations: all that the server has, on whatever provider.
    """
    if server.flavor is None:
        return ListedComparison(fits=True, missing=(NO_FLAVOR,))
    inputs = build_listed_inputs(server.flavor, server, pci_aliases)
    totals = sum_amounts(allocations.values())
    requests = list(build_requests(inputs))
    # Either amount of disk may be right while it is unknown whether the root disk is a volume.
    if inputs.volume_backed is None:
        requests.extend(build_requests(d.replace(inputs, volume_backed=True)))
    missing = tuple(dict.fromkeys(name_missing(row, server) for row in requests[0].missing))
    sums = [_sum_request(request) for request in requests]
    # PCI devices are in Placement only where Nova is configured so.
    sums.extend(_sum_request(request, with_pci=False) for request in requests)
    explained = not _EXPLAINING.isdisjoint(missing) and any(
        amounts.items() <= totals.items() for amounts in sums
    )
    return ListedComparison(fits=totals in sums, missing=missing, explained=explained)


def name_missing(missing: MissingInput, server: Server) -> str:
    """Return the name under which the summary counts the servers of which something is missing."""
    return VOLUME_IMAGE if missing.name == "image" and not server.image else missing.name


def _sum_request(request: ResourceRequest, with_pci: bool = True) -> dict[str, int]:
    groups = request.groups.values()
    return sum_amounts(group.resources for group in groups if with_pci or not group.pci)
