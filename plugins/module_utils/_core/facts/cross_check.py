# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether Placement says the same of an allocation in both ways in which it can be asked.

The answer about a consumer (`GET /allocations/{consumer_uuid}`) does not name the consumer, so that
it may be an old one, or the one about another consumer. The listing of a provider names all
consumers there (`GET /resource_providers/{uuid}/allocations`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ..models.placement import Allocations
from ..models.snapshot import Snapshot
from .listings_index import ListingsIndex


def choose_providers(snapshot: Snapshot, index: ListingsIndex) -> list[str]:
    """Return the providers whose listings are to be compared with the evidence.

    Of a consumer on a host these are the ones in the trees of hosts: a provider that hosts share
    may have all consumers of the cloud, and is listed once in a run (`explain_loss`).
    """
    providers: set[str] = set()
    for evidence in snapshot.evidence.values():
        allocation = evidence.allocation.value
        if allocation is None:
            continue
        on_hosts = [uuid for uuid in allocation.resources if _is_on_host(uuid, index)]
        providers.update(on_hosts or allocation.resources)
    return sorted(providers)


def _is_on_host(provider: str, index: ListingsIndex) -> bool:
    known = index.providers.get(provider)
    return known is not None and known.root in index.nodes


def explain_contradictions(
    snapshot: Snapshot,
    index: ListingsIndex,
    providers: Container[str],
    listed: Mapping[str, Allocations],
) -> dict[str, str]:
    """Return by consumer why the answers about its allocations cannot be relied on.

    An answer about the server of a migration, or about a migration of a server, counts for both.

    providers, listed: those of `choose_providers`, and what they list, by consumer.
    """
    contradicted = set()
    for uuid, evidence in snapshot.evidence.items():
        allocation = evidence.allocation.value
        if allocation is None:
            continue
        present = {
            provider: amounts
            for provider, amounts in allocation.resources.items()
            if provider in providers
        }
        if present != listed.get(uuid, {}):
            contradicted.add(uuid)
    reasons = {}
    for uuid in snapshot.evidence:
        for related in (uuid, *_list_related(uuid, snapshot, index)):
            if related in contradicted:
                reasons[uuid] = (
                    f"Placement's answer about the allocations of {related} is not what it lists "
                    "on the providers: they are changing right now, or a cache has an old answer."
                )
                break
    return reasons


def explain_loss(
    consumer: str, listed: Mapping[str, Allocations], snapshot: Snapshot, index: ListingsIndex
) -> str | None:
    """Return why an answer about `consumer` cannot be relied on: it lacks what a provider lists.

    What has changed since the providers were listed counts too.

    listed: what some providers list, by consumer.
    """
    for uuid in (consumer, *_list_related(consumer, snapshot, index)):
        if uuid not in snapshot.evidence:
            continue
        allocation = snapshot.evidence[uuid].allocation.value
        answered = allocation.resources if allocation else {}
        for provider, amounts in listed.get(uuid, {}).items():
            if answered.get(provider) != amounts:
                return (
                    f"{index.get_name(provider)} lists another allocation of {uuid} than Placement "
                    "answered when asked for it: it is changing right now, or a cache has an old "
                    "answer."
                )
    return None


def _list_related(uuid: str, snapshot: Snapshot, index: ListingsIndex) -> list[str]:
    """Return the server of a migration, or the migrations of a server."""
    if uuid in index.migrations:
        return [index.migrations[uuid].server]
    # An API worker that does not know the cell of a server lists no migration of it.
    listed = index.get_listed_migrations(uuid).value or ()
    looked_up = snapshot.evidence[uuid].migrations.value or ()
    return sorted({migration.uuid for migration in (*listed, *looked_up)})
