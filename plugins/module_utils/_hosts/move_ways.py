# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How one server can leave its host, and what it needs from the next one. Pure.

Nova's own conditions are in nova/compute/api.py: `live_migrate`, `resize` and `evacuate`.

How Nova makes a request of a flavor: nova/scheduler/utils.py, ResourceRequest.from_request_spec;
and what it adds for zones, projects and disabled hosts: nova/scheduler/request_filter.py.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence

from .._common.text import format_count
from .._common.times import format_duration, seconds_between
from .._core.models.nova import Aggregate, Migration, Server
from .._core.models.other_services import ServerPort
from .._core.models.placement import Allocations, Resources, sum_amounts
from .._core.options.policy import Policy
from .._core.resources.candidates import DISABLED_TRAIT
from .draining import (
    AFFINITY,
    ANTI_AFFINITY,
    COLD,
    EVACUATION,
    LIVE,
    STAYS,
    DrainServer,
    DrainSettings,
    MoveNeed,
    ServerGroup,
    Way,
    calculate_resources,
    list_traits,
)

# Statuses of which Nova moves no server, with what the operator can do about it.
_STAYING_STATUSES = {
    "BUILD": "wait until it is built",
    "DELETED": "nothing: it is deleted",
    "ERROR": "look for the cause, then reset its state or delete it",
    "MIGRATING": "wait until its migration has ended",
    "RESIZE": "wait until its resize has ended",
    "RESCUE": "unrescue it",
    "SHELVED": "offload it with `openstack server shelve --offload`, or unshelve it",
    "SOFT_DELETED": "restore or delete it",
    "SUSPENDED": "resume it, or have its owner shut it off",
    "UNKNOWN": "repair the connection to the database of its cell",
    "VERIFY_RESIZE": "have its owner confirm or revert the resize",
}
# The same on a host that is dead and fenced. A request that nova-compute has to carry out leaves a
# task, with which Nova evacuates no server.
_NO_GUEST = "reset its state to active, which loses nothing: its guest is gone"
_FENCED_STATUSES = {
    **dict.fromkeys(("PAUSED", "RESCUE"), _NO_GUEST),
    "SUSPENDED": "start its host, or reset its state to active, which gives up its saved memory",
    "SHELVED": "start its host, or create it again from the image that shelving made of it",
    "VERIFY_RESIZE": "start its host, then revert: to confirm deletes the disk on the source",
}
# Extra specs and image properties with which a server cannot move live, with the reason.
_NOT_LIVE = {
    r"pci_passthrough:.*": "it has a PCI device",
    r"resources\w*:VGPU": "it has a vGPU",
    r"hw[:_]mem_encryption": "its memory is encrypted",
}
_NEVER_MIGRATED = {r"accel:.*": "it has an accelerator"}
# With these it moves live only where Nova, the driver and the destination allow it.
_MAYBE_LIVE = {
    r"hw[:_]cpu_policy": "its CPUs are pinned",
    r"hw[:_]numa_nodes": "it has a NUMA topology",
    r"hw[:_]pmem": "it has persistent memory",
}
# Ironic's driver can neither move nor evacuate a server, and Nova then sets it in ERROR
# (nova/compute/manager.py, _do_rebuild_instance; nova/conductor/manager.py, _live_migrate).
BARE_METAL = Way(
    STAYS,
    "it is a bare metal node, which Nova does not move (its allocation has no CPU and no memory)",
    "start nova-compute if it is down: the node runs without it",
)
# Types of ports that are a device of the host.
_DEVICE_PORTS = frozenset({"direct", "direct-physical", "macvtap", "vdpa", "remote-managed"})


def decide_way(
    server: DrainServer,
    host: str,
    host_is_up: bool,
    settings: DrainSettings,
    migrations: Sequence[Migration] = (),
    ports: Sequence[ServerPort] = (),
    at: str | None = None,
) -> Way:
    """Return how a server leaves `host`.

    migrations: those of the server that have not ended. at: when they were listed.
    """
    if server.uuid in settings.excluded:
        return Way(
            STAYS,
            f"it is excluded by name{settings.excluded[server.uuid]}",
            "remove it from exclude_consumers if it may move",
        )
    # These hold however the server would move, so they come first.
    fenced = settings.fenced and not host_is_up
    reason, advice = _find_obstacle(server, host, fenced, migrations)
    kind, still = _find_standstill(server.server, migrations, at)
    # Of a dead host, the advice is already how to end it.
    if reason and still and not fenced:
        options = f"-e orphan_cleanup_consumers={server.uuid} -e orphan_cleanup_stuck_min_age=0"
        reason = f"{reason}, {still} ({kind})"
        advice = f"see the finding (detect_orphans {options}) first"
    if reason:
        return Way(STAYS, reason, advice)
    warnings = list(_find_warnings(server, ports))
    if not host_is_up:
        return _decide_for_dead_host(server, host, settings, warnings)
    # Nova migrates no server with an accelerator, neither live nor cold.
    if _match_specs(server, _NEVER_MIGRATED):
        return Way(STAYS, "it has an accelerator, and Nova migrates no such server", "shelve it")
    if server.server.status == "SHUTOFF":
        return Way(COLD, "it is shut off", warnings=tuple(warnings))
    return _decide_for_running_server(server, settings, warnings)


def describe_standstill(changed_at: str | None, at: str | None) -> str:
    """Return how long something has not changed that nobody waits for; empty if it may go on."""
    age = seconds_between(changed_at, at)
    is_hanging = age is not None and age >= Policy.stuck_min_age
    return f"unchanged for {format_duration(age or 0)}" if is_hanging else ""


def _find_standstill(
    found: Server, migrations: Sequence[Migration], at: str | None
) -> tuple[str, str]:
    """Return the kind that names what a server hangs in, and for how long; empty if it does not."""
    for migration in migrations:
        if migration.status != "finished":
            return "stuck_migration", describe_standstill(migration.changed_at, at)
        if found.status != "VERIFY_RESIZE":
            return "stuck_server", "which Nova neither confirms nor reverts any more"
    return "stuck_server", describe_standstill(found.updated, at) if found.task_state else ""


def _find_obstacle(
    server: DrainServer, host: str, fenced: bool, migrations: Sequence[Migration]
) -> tuple[str, str]:
    """Return why a server must not be touched, and what to do; two empty texts if it may be."""
    found = server.server
    if not found.host_known or found.host != host:
        return f"it is on {found.host or 'no host that Nova shows'}", "run again"
    if not found.task_known:
        return "Nova does not show its task", "use credentials with the admin role"
    if found.task_state is not None:
        advice = "wait until the task has ended, and run again"
        # Without a migration, only its dead host would end it.
        if fenced and not migrations:
            advice = "reset its state to active, which ends the task, or delete it"
        return f"its task is {found.task_state}", advice
    if fenced and found.status in _FENCED_STATUSES:
        return f"it is {found.status}", _FENCED_STATUSES[found.status]
    if found.status in _STAYING_STATUSES:
        return f"it is {found.status}", _STAYING_STATUSES[found.status]
    for migration in migrations:
        return (
            f"migration {migration.uuid} ({migration.type}) is {migration.status}",
            "wait until the migration has ended, and run again",
        )
    if found.status not in ("ACTIVE", "PAUSED", "SHUTOFF"):
        return f"it is {found.status or 'in no status that Nova shows'}", "move it by hand"
    return "", ""


def judge_allocation(
    server: DrainServer,
    own_roots: set[str],
    held_roots: set[str],
    evacuated_roots: Collection[str] = (),
) -> Way | None:
    """Return why a server stays because of its allocation, None if that is where it belongs.

    A move would take over what is wrong, and hold three hosts. What an evacuation left on its
    source stays there until nova-compute starts, so that a server whose next host dies too has it.

    own_roots: the UUID of the compute node where the server is; empty where Nova lists none.
    held_roots: those of the trees, without sharing providers, where it has an allocation.
    evacuated_roots: those of the compute nodes from which the server was evacuated.
    """
    if own_roots and own_roots <= held_roots and held_roots <= own_roots.union(evacuated_roots):
        return None
    reason = "it has no allocation (missing_allocation)"
    if own_roots & held_roots:
        reason = "its allocation is on another host too (extra_host, evacuated_source)"
    elif held_roots:
        reason = "its allocation is elsewhere (unreverted_allocation, misplaced_allocation)"
    return Way(
        STAYS,
        reason,
        f"see the finding (detect_orphans -e orphan_cleanup_consumers={server.uuid}) first",
    )


def _decide_for_dead_host(
    server: DrainServer, host: str, settings: DrainSettings, warnings: list[str]
) -> Way:
    # Shown before somebody confirms that the host is fenced, which starts the evacuation.
    warnings += _list_losses(server)
    if not settings.fenced:
        return Way(
            STAYS,
            f"the compute service of {host} is down, and nobody has confirmed that no guest can "
            "still run there",
            "start nova-compute there, and unset forced_down if it is set; only if the host is "
            "dead, cut off its power and set fenced (host_decommission_fenced) to true",
            warnings=tuple(warnings),
        )
    return Way(EVACUATION, f"{host} is down and fenced", warnings=tuple(warnings))


def _list_losses(server: DrainServer) -> t.Iterator[str]:
    """Yield what an evacuation loses of a server, unless other hosts can reach it."""
    flavor = server.server.flavor
    if not server.is_volume_backed:
        yield (
            "its disk is lost unless it is on storage that other hosts can reach: Nova then makes "
            "a new one from its image"
        )
    elif flavor is not None and flavor.ephemeral:
        yield "its ephemeral disk is lost unless it is on storage that other hosts can reach"


def _decide_for_running_server(
    server: DrainServer, settings: DrainSettings, warnings: list[str]
) -> Way:
    obstacle = ", ".join(_match_specs(server, _NOT_LIVE))
    if not obstacle:
        if not server.is_volume_backed:
            warnings.append(
                "its disk is copied with it unless it is on storage that other hosts can reach"
            )
        return Way(LIVE, f"it is {server.server.status}", warnings=tuple(warnings))
    reason, advice = f"{obstacle}, so it cannot move live", "have its owner shut it off"
    if server.server.status == "ACTIVE" and settings.cold_active:
        return Way(COLD, reason, warnings=(*warnings, "it is shut down while it moves"))
    if server.server.status == "ACTIVE":
        advice = "shut it off, or set cold=active to have it shut down while it moves"
    return Way(STAYS, reason, advice)


def _find_warnings(server: DrainServer, ports: Sequence[ServerPort]) -> t.Iterator[str]:
    if server.locked:
        # Nova's check of the lock lets administrators pass (nova/compute/api.py,
        # check_instance_lock).
        yield "it is locked, which does not keep an administrator from moving it"
    if server.server.volumes:
        volumes = format_count(len(server.server.volumes), "volume", "volumes")
        yield f"{volumes} attached: the next host must reach its storage"
    for reason in _match_specs(server, _MAYBE_LIVE):
        yield f"{reason}: whether it can move live depends on Nova and on the next host"
    kinds = _DEVICE_PORTS.intersection(str(port.vnic_type) for port in ports)
    if kinds:
        yield f"it has ports that are devices of the host ({', '.join(sorted(kinds))})"


def _match_specs(server: DrainServer, reasons: dict[str, str]) -> list[str]:
    """Return the reasons whose pattern matches an extra spec or an image property."""
    names = [name for specs in server.specs for name in specs]
    return [why for spec, why in reasons.items() if any(re.fullmatch(spec, name) for name in names)]


# Nova asks for at most so many candidates (nova/conf/scheduler.py, max_placement_results).
MAX_CANDIDATES = 1000
# The keys of an aggregate that keep it for some projects (nova/scheduler/request_filter.py).
_PROJECT_KEY = "filter_tenant_id"


def build_need(
    server: DrainServer, allocations: Allocations | None, aggregates: Iterable[Aggregate]
) -> MoveNeed | None:
    """Return what a server needs; None where neither its flavor nor its allocation shows it.

    allocations: what it has now; None where that is not known.
    """
    resources = calculate_amounts(server, allocations)
    if not resources:
        return None
    return MoveNeed(
        resources=tuple(sorted(resources.items())),
        required=list_traits(server.specs),
        # Nova never selects a host whose compute service is disabled.
        forbidden=list_traits(server.specs, "forbidden") | {DISABLED_TRAIT},
        member_of=_list_memberships(server, tuple(aggregates)),
    )


def calculate_amounts(server: DrainServer, allocations: Allocations | None) -> Resources:
    """Return the amounts by resource class that the next host has to have.

    A plain flavor says them. For any other flavor the present allocation says more.
    """
    flavor = server.server.flavor
    # Devices, pinned CPUs and NUMA topologies change the resource classes, not only the amounts.
    if allocations and not server.is_plain:
        return sum_amounts(allocations.values())
    return calculate_resources(flavor, server.is_volume_backed) if flavor is not None else {}


def _list_memberships(
    server: DrainServer, aggregates: tuple[Aggregate, ...]
) -> tuple[frozenset[str], ...]:
    zone, project = server.pinned_zone, server.server.project
    in_zone = [entry.uuid for entry in aggregates if zone is not None and entry.zone == zone]
    of_project = [entry.uuid for entry in aggregates if project in list_projects(entry)]
    # The zone of hosts without a zone has no aggregate, and Nova then asks for none.
    return tuple(frozenset(uuids) for uuids in (in_zone, of_project) if uuids)


def list_projects(aggregate: Aggregate) -> set[str]:
    """Return the projects for which an aggregate is kept; empty if it is for all of them."""
    kept = [text for key, text in aggregate.metadata.items() if key.startswith(_PROJECT_KEY)]
    return {part.strip() for text in kept for part in text.split(",")}


def find_isolated_hosts(server: DrainServer, aggregates: Iterable[Aggregate]) -> dict[str, str]:
    """Return the hosts that are kept for other servers, each with the name of its aggregate.

    An aggregate is kept for some projects, or for the flavors and images that require its traits.
    Whether Nova enforces that depends on its configuration, which no API shows: a host that may be
    refused is not promised.
    """
    required = list_traits(server.specs)
    isolated: dict[str, str] = {}
    for aggregate in aggregates:
        projects = list_projects(aggregate)
        is_for_others = bool(projects) and server.server.project not in projects
        if is_for_others or list_traits([aggregate.metadata]) - required:
            for host in aggregate.hosts:
                isolated.setdefault(host, aggregate.name)
    return isolated


def allows_group(
    group: ServerGroup, server: str, host: str, places: Mapping[str, str], source: str
) -> bool:
    """Return whether the scheduler would let a member of a group move to a host.

    It refuses only what violates a hard policy (nova/scheduler/filters/affinity_filter.py).

    places: the hosts of the members by uuid, without those that have no host. source: the host that
        the server leaves.
    """
    others = [places[member] for member in group.members if member != server and member in places]
    if group.policy == ANTI_AFFINITY:
        return others.count(host) < group.max_per_host
    # Nova counts the server itself as a member on its present host, so it may only go where another
    # member already is.
    return group.policy != AFFINITY or (host in others and host != source)


def build_candidate_query(need: MoveNeed) -> dict[str, t.Any]:
    """Return the parameters of `GET /allocation_candidates`."""
    required = sorted(need.required) + [f"!{trait}" for trait in sorted(need.forbidden)]
    query: dict[str, t.Any] = {
        "resources": ",".join(f"{cls}:{amount}" for cls, amount in need.resources),
        "limit": str(MAX_CANDIDATES),
    }
    if required:
        query["required"] = ",".join(required)
    if need.member_of:
        # The parameter is repeated: the host must be in one aggregate of each set.
        query["member_of"] = [f"in:{','.join(sorted(uuids))}" for uuids in need.member_of]
    return query
