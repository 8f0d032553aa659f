# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a nova-compute does by itself, when it starts and periodically.

The code is in nova/compute/manager.py.
"""

from __future__ import annotations

from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_model import (
    EVACUATED,
    Failed,
    Nova,
    Step,
    Steps,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_operations import (
    confirm,
    terminated,
)

BUILDING = ("scheduling", "block_device_mapping", "networking", "spawning")


def init_host(nova: Nova, host: str) -> Steps:
    """init_host; messages are read from the queue only after it."""
    yield Step(host, "starting")
    left = yield from _destroy_evacuated_instances(nova, host)
    here = [
        server
        for server in list(nova.vm)
        if server in nova.world.servers and nova.host(server) == host
    ]
    for server in here:
        if server not in left:
            yield from _init_instance(nova, server, host)
    for server in list(nova.vm):
        # _error_out_instances_whose_build_was_interrupted
        if (
            server in nova.world.servers
            and server not in {*here, *left}
            and nova.vm[server] == "building"
            and host in nova.held(server)
        ):
            nova.save(server, vm="error", task=None)
            if not nova.strict:
                nova.stays(server)
            yield Step(host, "interrupted build errored")
    nova.up.add(host)
    nova.world.set_service(host, "up")
    yield Step(host, "ready")


def _destroy_evacuated_instances(nova: Nova, host: str) -> Steps:
    """Remove the guest, then the allocation, then update the migration's row.

    A failure to remove the allocation is only logged.

    Returns the servers.
    """
    rows = [
        row
        for row in nova.world.migrations.values()
        if row.type == "evacuation"
        and nova.place(row.uuid, "source") == host
        and row.status in ("accepted", "pre-migrating", "done")
    ]
    # By instance uuid: the last of several migrations of one server wins.
    evacuations = {row.server: row.uuid for row in rows}
    for server in evacuations:
        nova.leave(server, host, (EVACUATED, host))
        yield Step(host, "evacuated guest destroyed")
    for server, migration in evacuations.items():
        if server in nova.world.servers:
            nova.remove_tree(server, host)
            yield Step(host, "evacuated claim dropped")
            nova.set(migration, status="completed")
            yield Step(host, "evacuation completed")
    return set(evacuations)


def _init_instance(nova: Nova, server: str, host: str) -> Steps:
    vm, task = nova.vm[server], nova.task(server)
    if vm == "soft-delete" or (vm == "error" and task not in ("resize_migrating", "deleting")):
        return
    if vm == "deleted":
        # _complete_partial_deletion: the row first, then the allocation
        nova.destroy(server)
        yield Step(host, "partial deletion")
        try:
            nova.remove(server)
        except Failed:
            return
    elif (
        vm == "building"
        or task in BUILDING
        or (vm in ("active", "stopped") and (task or "").startswith("rebuild"))
    ):
        nova.save(server, vm="error", task=None)
        yield Step(host, "interrupted errored")
    elif task == "resize_prep":
        nova.save(server, task=None)
        yield Step(host, "resize_prep cleared")
    elif task == "deleting":
        try:
            yield from terminated(nova, server, host)
        except Failed:
            nova.save(server, vm="error")
    elif task == "powering-on":
        nova.save(server, vm="active", task=None)
    elif task == "resize_migrating":
        nova.restore_kept_disk(server, host)
        nova.save(server, task=None)
        yield Step(host, "crashed resize reverted")
    elif task == "migrating":
        # _reset_live_migration: a failure of the abort is ignored
        running = nova.with_status(server, "running")
        if running:
            nova.set(running, status="error")
            yield Step(host, "live migration errored")
        nova.save(server, task=None, expected=("migrating",))
        yield Step(host, "live migration reset")


def poll(nova: Nova, host: str) -> Steps:
    """_poll_unconfirmed_resizes, and what the resource tracker does.

    The latter is its _remove_deleted_instances_allocations.
    """
    yield Step(host, "polling")
    for row in list(nova.world.migrations.values()):
        server = row.server
        if (
            row.status != "finished"
            or nova.place(row.uuid, "dest") != host
            or nova.task(server) in ("deleting", "soft-deleting")
        ):
            continue
        if nova.task(server) == "resize_finish" and nova.vm[server] != "error":
            continue
        if nova.vm[server] != "resized" or nova.task(server) is not None:
            nova.set(row.uuid, status="error")
            yield Step(host, "unconfirmed errored")
        elif nova.place(row.uuid, "source") in nova.up:
            yield from confirm(nova, server)
    for consumer in list(nova.world.allocations):
        if consumer in nova.world.deleted and host in nova.held(consumer):
            nova.remove(consumer)
            yield Step(host, "deleted healed")
