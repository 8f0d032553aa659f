# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a host that was deployed again what it had before it was decommissioned.

Only what the API owns is restored: the host aggregates of Nova, the traits that operators set, the
aggregates that only Placement has, and allocation ratios. Everything else is nova-compute's.
"""

from __future__ import annotations

import dataclasses as d
import functools
import os
import typing as t
from collections.abc import Callable, Collection, Iterator

from .._common.errors import CloudError, InvalidInput
from .._common.folders import require_private_file
from .._common.json_files import read_json_option
from .._common.text import summarize_names
from .._core.changes.records import find_lost_aggregates, find_lost_traits
from .._core.clients.groups import AggregateClient
from .._core.clients.provider_state import ProviderState
from .._core.clients.provider_writer import ProviderWriter
from .._core.clients.session import CloudContext
from .._core.models.nova import Aggregate
from .._core.models.placement import Provider
from .evacuations import UnfinishedEvacuations
from .host_record import FormerHost, name_cloud, parse_former_host
from .redeploy import (
    BAD_OUTCOMES,
    DIFFERS,
    FAILED,
    MISSING,
    OK,
    RESTORED,
    Check,
    RedeployedHost,
    RedeployedHostReader,
    list_checks,
)

AGGREGATES, TRAITS, RATIOS = "aggregates", "traits", "ratios"
RESTORABLE = (AGGREGATES, TRAITS, RATIOS)

_UNKNOWN_CLOUD = (
    "The record was written by version 2.0.0 and does not name its cloud: make sure that it is of "
    "this cloud, because a host of the same name in another one has other traits."
)


def restore_host(context: CloudContext) -> dict[str, t.Any]:
    """Check a host that was deployed again, and restore what the options say."""
    options = context.options
    if not options["host"].strip():
        raise InvalidInput("host must not be empty.")
    document, path = None, options["record"]
    if path and os.path.exists(path):
        require_private_file(path)
        document = read_json_option("record", path)
    session = context.connect()
    reader = RedeployedHostReader(session)
    host = reader.read(options["host"])
    record, restored = None, []
    if document is not None:
        service = host.service.id if host.service else None
        record = parse_former_host(document, host.name, service, name_cloud(session.cloud))
    if record is not None:
        restoration = HostRestoration(
            AggregateClient(session.compute),
            ProviderWriter(session.placement),
            options["restore"],
            context.check_mode,
        )
        restored = restoration.restore(host, record)
    changed = any(check.outcome == RESTORED for check in restored)
    # What Nova mirrors to Placement has changed with it.
    if changed and not context.check_mode:
        host = reader.read(options["host"])
    host = reader.add_evacuations(host, record.names if record else ())
    restarts = host.service is not None and host.service.state == "up"
    restarts = restarts and host.evacuations.restart_completes
    if restarts and context.check_mode and options["assume_restarted"]:
        host = d.replace(host, evacuations=UnfinishedEvacuations(host.name))
    checks = [*list_checks(host), *restored]
    if record is not None and not record.names_cloud:
        checks.append(Check("record", DIFFERS, _UNKNOWN_CLOUD))
    return {
        "changed": changed,
        "host": host.name,
        "checks": list(map(d.asdict, checks)),
        "complete": not any(check.outcome in BAD_OUTCOMES for check in checks),
        "evacuations": [entry.server for entry in host.evacuations.evacuations],
        "busy": list(host.evacuations.busy),
        "restart_completes": restarts,
        "mapped": host.mapped,
        "node": host.node.uuid if host.node else None,
        "former_node": record.node if record else None,
        "namesake": host.namesake.uuid if host.namesake else None,
        "recorded": record is not None,
    }


@d.dataclass(frozen=True)
class Losses:
    """What a host had before, can have again by the API, and lacks now.

    host_aggregates: those of Nova. Nova mirrors them to Placement itself.
    aggregates: the uuids of those that only Placement has.
    ratios: the former allocation ratios, by resource class.
    """

    host_aggregates: tuple[Aggregate, ...] = ()
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    ratios: tuple[tuple[str, float], ...] = ()


def find_losses(host: RedeployedHost, record: FormerHost) -> Losses:
    """Return what the host lacks of its `record`. Pure."""
    by_uuid = {aggregate.uuid: aggregate for aggregate in host.aggregates}
    # An aggregate that was deleted and created again has another uuid, and another meaning.
    known = [by_uuid[former.uuid] for former in record.aggregates if former.uuid in by_uuid]
    host_aggregates = [aggregate for aggregate in known if host.name not in aggregate.hosts]
    then, now = record.provider, host.state
    if then is None or now is None:
        return Losses(tuple(host_aggregates))
    traits, _of_nova = find_lost_traits(then, now)
    lost_aggregates, _left = find_lost_aggregates(then, now, host.name, by_uuid)
    # A host aggregate that was deleted meanwhile is not one of Placement alone.
    former_uuids = {former.uuid for former in record.aggregates}
    return Losses(
        host_aggregates=tuple(host_aggregates),
        traits=tuple(sorted(traits)),
        aggregates=tuple(sorted(lost_aggregates - former_uuids)),
        ratios=_find_lost_ratios(then, now),
    )


def _find_lost_ratios(then: ProviderState, now: ProviderState) -> tuple[tuple[str, float], ...]:
    lost = []
    for cls, before in sorted(then.inventories.items()):
        after = now.inventories.get(cls)
        # A class that is gone is nova-compute's to bring back.
        if after is not None and after.allocation_ratio != before.allocation_ratio:
            lost.append((cls, before.allocation_ratio))
    return tuple(lost)


class HostRestoration:
    """Compares one host with its record, and restores what the user wants.

    In check mode it writes nothing, and returns the checks as they would be.
    """

    def __init__(
        self,
        aggregates: AggregateClient,
        providers: ProviderWriter,
        parts: Collection[str],
        check_mode: bool,
    ) -> None:
        self._aggregates = aggregates
        self._providers = providers
        self._parts = parts
        self._check_mode = check_mode

    def restore(self, host: RedeployedHost, record: FormerHost) -> list[Check]:
        """Put back what `host` lacks, and return a check for each part of its record."""
        losses = find_losses(host, record)
        return [
            *self._restore_host_aggregates(host, record, losses),
            *self._restore_provider(host, losses),
            *_compare_service(host, record, losses, AGGREGATES in self._parts),
        ]

    def _restore_host_aggregates(
        self, host: RedeployedHost, record: FormerHost, losses: Losses
    ) -> list[Check]:
        checks = []
        known = {aggregate.uuid for aggregate in host.aggregates}
        for former in record.aggregates:
            if former.uuid not in known:
                detail = f"Aggregate {former.name} ({former.uuid}) was deleted meanwhile."
                checks.append(Check(f"host aggregate {former.name}", DIFFERS, detail))
        for aggregate in losses.host_aggregates:
            checks.append(
                self._restore_part(
                    f"host aggregate {aggregate.name}",
                    AGGREGATES,
                    f"Host {host.name} was in it.",
                    functools.partial(self._aggregates.add_host, aggregate, host.name),
                    "" if host.nodes else "Nova accepts only a host with a compute node.",
                )
            )
        if record.aggregates and not checks:
            names = summarize_names(sorted(former.name for former in record.aggregates))
            checks.append(Check("host aggregates", OK, f"still in {names}"))
        return checks

    def _restore_provider(self, host: RedeployedHost, losses: Losses) -> Iterator[Check]:
        provider, state = host.provider, host.state
        # What a host without a provider has lost is not known.
        if provider is None or state is None:
            return
        if losses.traits:
            yield self._restore_part(
                "operator's traits",
                TRAITS,
                f"The provider had {summarize_names(losses.traits)}.",
                functools.partial(self._add_to_provider, provider, losses.traits, ()),
            )
        if losses.aggregates:
            yield self._restore_part(
                "Placement aggregates",
                AGGREGATES,
                f"The provider was in {summarize_names(losses.aggregates)}.",
                functools.partial(self._add_to_provider, provider, (), losses.aggregates),
            )
        for cls, ratio in losses.ratios:
            yield self._restore_part(
                f"allocation ratio of {cls}",
                RATIOS,
                f"It was {ratio} and is {state.inventories[cls].allocation_ratio}.",
                functools.partial(self._providers.set_allocation_ratio, provider, cls, ratio),
            )

    def _add_to_provider(
        self, provider: Provider, traits: Collection[str], aggregates: Collection[str]
    ) -> None:
        lacking, error = self._providers.add_traits_and_aggregates(provider, traits, aggregates)
        if lacking:
            raise error or CloudError(
                f"The provider still lacks {summarize_names(sorted(lacking))}."
            )

    def _restore_part(
        self,
        name: str,
        part: str,
        detail: str,
        write: Callable[[], object],
        obstacle: str = "",
    ) -> Check:
        """Make one write, if its part is wanted, and return what became of it."""
        if part not in self._parts:
            return Check(name, DIFFERS, f"{detail} {_describe_opt_out(part)}")
        if obstacle:
            return Check(name, MISSING, f"{detail} {obstacle}")
        # Check mode comes last, so that it predicts what the real run would refuse.
        if self._check_mode:
            return Check(name, RESTORED, detail)
        try:
            write()
        except CloudError as error:
            return Check(name, FAILED, f"{detail} {error}")
        return Check(name, RESTORED, detail)


def _describe_opt_out(part: str) -> str:
    if part == RATIOS:
        return (
            "It stays, because nova-compute overwrites it where nova.conf sets it: add ratios to "
            "what is restored if nova.conf has only initial_cpu_allocation_ratio and the like."
        )
    return f"It stays, because {part} is not among what is restored."


def _compare_service(
    host: RedeployedHost, record: FormerHost, losses: Losses, restores_aggregates: bool
) -> Iterator[Check]:
    """Yield checks of what only the operator can decide: the zone and the state of the service."""
    if host.service is None:
        return
    coming_zones = set()
    if restores_aggregates:
        coming_zones = {aggregate.zone for aggregate in losses.host_aggregates}
    # A zone that one of the aggregates brings back is not a difference.
    if record.zone and record.zone != host.service.zone and record.zone not in coming_zones:
        detail = f"It was {record.zone} and is {host.service.zone}: a host aggregate sets it."
        yield Check("availability zone", DIFFERS, detail)
    if record.disabled_reason and host.service.status != "disabled":
        detail = f"The service was disabled before ({record.disabled_reason}), and is enabled now."
        yield Check("disabled reason", DIFFERS, detail)
