# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host lacks a trait that its aggregate requires, or shows another status than its service
has.
"""

from __future__ import annotations

import shlex
import typing as t
from collections.abc import Collection, Iterator

from ..._common.errors import Reason
from ..facts.groups import (
    DISABLED_TRAIT,
    OPENSTACK,
    describe_aggregate,
    find_lacking_traits,
    find_status_mismatches,
    get_both_readings,
    list_hosts,
    map_aggregates,
)
from ..facts.index import SnapshotIndex
from ..facts.services import COMPUTE
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Aggregate, Service
from ..models.snapshot import TRAITS, Answer, Mirror
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, REPORT, needs=(TRAITS,))

_TRAIT = f"{OPENSTACK} --os-placement-api-version 1.6 resource provider trait"

# A trait that an operator gives to a host. All others are nova-compute's own, which removes them
# again from a host that does not support them.
_CUSTOM = "CUSTOM_"


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the hosts whose traits are not what their aggregate or their service says.

    Proof: Two readings, at the beginning and at the end, show it. Either a host aggregate requires
    a trait (`trait:NAME=required` in its metadata) that one of its hosts lacks. Or the provider of
    a host has the trait `COMPUTE_STATUS_DISABLED` and the compute service is enabled, or the
    reverse, while the service is up; nova-compute sets this trait itself, when it starts too.

    Needs: All soundness checks, and the cell of the host.

    Change: None. Set the traits of the provider by the command of the finding. If nova-compute
    undoes it, read its log.
    """
    both = get_both_readings(index)
    if both is None:
        return
    yield from _find_lacking_traits(index, *both)
    yield from _find_wrong_statuses(index, *both)


def _find_lacking_traits(index: SnapshotIndex, first: Mirror, again: Mirror) -> Iterator[Finding]:
    """Yield a finding for each host aggregate whose hosts lack a trait that it requires."""
    lacking_again = find_lacking_traits(index, again)
    aggregates = map_aggregates(again)
    for uuid, traits in sorted(find_lacking_traits(index, first).items()):
        sentences: list[Reason] = []
        commands: list[str] = []
        providers: set[str] = set()
        evidence: list[Answer[t.Any]] = []
        for trait, nodes in sorted(traits.items()):
            same = nodes & lacking_again.get(uuid, {}).get(trait, frozenset())
            if not same:
                continue
            sentences.append(_describe_lacking_trait(index, aggregates[uuid], trait, same))
            providers |= same
            evidence.append(again.lacking[uuid][trait])
            if trait.startswith(_CUSTOM):
                commands += [_build_trait_command(trait, node) for node in sorted(same)]
        if not sentences:
            continue
        reason, found = sentences[0].extend(*sentences[1:]), tuple(sorted(providers))
        yield report(KIND, uuid, reason, *evidence, providers=found, commands=tuple(commands))


def _describe_lacking_trait(
    index: SnapshotIndex, aggregate: Aggregate, trait: str, nodes: Collection[str]
) -> Reason:
    reason = Reason(
        "required_trait_missing",
        f"{list_hosts(index, nodes)} in {describe_aggregate(aggregate)}, which requires the "
        f"trait {trait}, but without that trait in Placement, so the scheduler does not find "
        "capacity there for servers that require it.",
    )
    if trait.startswith(_CUSTOM):
        return reason
    return reason.extend(
        f"{COMPUTE} reports this trait itself: find out why it does not, or remove the host from "
        "the aggregate."
    )


def _build_trait_command(trait: str, node: str, present: bool = True) -> str:
    """Return the command that adds a trait to a provider, or removes it.

    The client can only set all traits, so the command reads the others first, and sets none if that
    fails. The names of traits have no characters that mean anything to a shell.
    """
    provider = shlex.quote(node)
    kept, added = ("", f" --trait {trait}") if present else (f" | grep -vx {trait}", "")
    reading = f"{_TRAIT} list -f value -c name {provider}{kept}"
    setting = f"{_TRAIT} set $(echo \"$traits\" | sed 's/^/--trait /'){added} {provider}"
    return f"traits=$({reading}) && {setting}"


def _find_wrong_statuses(index: SnapshotIndex, first: Mirror, again: Mirror) -> Iterator[Finding]:
    """Yield a finding for each host whose provider shows another status than its service has."""
    statuses_again = find_status_mismatches(index, again)
    for node, service in sorted(find_status_mismatches(index, first).items()):
        if node not in statuses_again:
            continue
        yield report(
            KIND,
            node,
            _describe_wrong_status(service),
            *(index.snapshot.services_after, again.disabled),
            service=service,
            providers=(node,),
            # The trait itself, and not the status: to switch that would let servers in for a
            # moment, and nova-compute compares with its own memory of the traits
            # (nova/scheduler/client/report.py, set_traits_for_provider).
            commands=(_build_trait_command(DISABLED_TRAIT, node, service.status == "disabled"),),
        )


def _describe_wrong_status(service: Service) -> Reason:
    if service.status == "disabled":
        return Reason(
            "disabled_trait_missing",
            f"The {COMPUTE} of {service.host} is disabled, but its provider does not have the "
            f"trait {DISABLED_TRAIT}, so Placement still offers its capacity and the scheduler "
            f"has to sort the host out. {COMPUTE} sets the trait every few minutes: if it does "
            "not, read its log and restart it.",
        )
    return Reason(
        "disabled_trait_left",
        f"The {COMPUTE} of {service.host} is enabled, but its provider still has the trait "
        f"{DISABLED_TRAIT}, so no server is scheduled there. {COMPUTE} removes the trait every few "
        "minutes: if it does not, read its log and restart it.",
    )
