# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Whether the reading as a whole is sound enough for anything to be changed.

A dead cell, the wrong region, a second Nova on the same Placement, a role that lists everything and may look at nothing:
each makes every allocation look like an orphan.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._offers import without_proof
from ansible_collections.osops.placement.plugins.module_utils._printable import some

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Container

    from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Hypervisor, Service, Snapshot


def closed_gates(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a sentence for each reason why nothing may be changed after this reading; none when it is sound."""
    found = (_cells(snapshot), _listings(snapshot), _region(snapshot), _credentials(snapshot), _moves(snapshot), _filters(snapshot))
    return (*without_proof(snapshot.cloud), *filter(None, found))


def _cells(snapshot: Snapshot) -> str | None:
    """A cell does not answer before the reading or after it: what is in it would look gone."""
    for when, answer in (("before", snapshot.services), ("after", snapshot.services_after)):
        if answer.value is None:
            return f"Nova answered {answer.status} when asked for its services {when} the reading: a cell is not answering."
        if silent := silent_hosts(answer):
            return f"A cell is not answering: {when} the reading Nova could not say anything of {some(silent)}."
    return None


def all_answer(services: Answer[tuple[Service, ...]]) -> bool:
    """Tell whether every cell answered when Nova was asked for its services."""
    return services.value is not None and not silent_hosts(services)


def silent_hosts(answer: Answer[tuple[Service, ...]]) -> list[str]:
    """Return the hosts of unreachable cells (status `UNKNOWN`, compute microversion 2.69 and later)."""
    return sorted({service.host for service in answer.value or () if service.status == "UNKNOWN"})


def _listings(snapshot: Snapshot) -> str | None:
    """Nova cannot list its compute nodes or its migrations."""
    for what, answer in (("compute nodes", snapshot.hypervisors), ("migrations", snapshot.migrations)):
        if answer.value is None:
            return f"Nova answered {answer.status} when asked for its {what}: a cell is not answering."
    return None


def _region(snapshot: Snapshot) -> str | None:
    """Less than half of the compute nodes are providers here: the wrong region, or a Placement that belongs to another Nova."""
    return None if snapshot.hypervisors.value is None else strange_nova(snapshot.hypervisors.value, snapshot.providers)


def strange_nova(nodes: Collection[Hypervisor], providers: Container[str]) -> str | None:
    """Say so when most of the compute nodes of a Nova, or all of none, have no provider in this Placement."""
    here = sum(node.uuid in providers for node in nodes)
    if here and here * 2 >= len(nodes):
        return None
    return f"{here} of {len(nodes)} hypervisors are providers here: is this the right region, and does this Placement belong to this Nova?"


def _credentials(snapshot: Snapshot) -> str | None:
    """These credentials list servers that they may not look at, or see no host: whoever may not look takes everything for deleted."""
    foreign = [sample for sample in snapshot.samples if sample.value is None or sample.value.project != snapshot.cloud.project]
    judged = foreign or snapshot.samples
    if not judged and any(node.servers or node.servers is None for node in snapshot.hypervisors.value or ()):
        return "These credentials see no server together with its host, though there are servers on hosts: use a role that may (admin by default)."
    if not judged or any(sample.value is not None and sample.value.host for sample in judged):
        return None
    refused = judged[0]
    return f"These credentials list servers that they may not look at ({refused.request}: {refused.status}): use a role that sees all projects."


def _moves(snapshot: Snapshot) -> str | None:
    """These credentials see no hosts of migrations: where a failed one may have left a guest is not told."""
    rows = snapshot.migrations.value or ()
    # Each has a source: Nova gives it one when it makes the row.
    if not rows or any(row.source_compute for row in rows):
        return None
    return f"Nova lists migrations without their hosts ({snapshot.migrations.request}): use a role that may see them (admin by default)."


def _filters(snapshot: Snapshot) -> str | None:
    """Nova lists a live server as deleted: these credentials may not filter, or a proxy answers for Nova."""
    if snapshot.control is None or snapshot.control.value == ():
        return None
    return (
        f"Nova lists a live server as deleted ({snapshot.control.request}): these credentials may not filter, or a proxy answers for Nova."
    )
