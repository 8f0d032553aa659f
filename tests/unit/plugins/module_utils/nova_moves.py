# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's moves of a server; `nova_operations` has the rest.

These are resize, live migration, evacuation and rebuild.
"""

from __future__ import annotations

from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_model import (
    API,
    CONDUCTOR,
    Aborted,
    Failed,
    Gone,
    Nova,
    RolledBack,
    Step,
    Steps,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_operations import (
    error_out_instance,
    errors_out_migration,
    event,
    revert_allocation,
    reverts_task_state,
)

# Resize and cold migration: nova/conductor/tasks/migrate.py, nova/compute/manager.py.


def resize(nova: Nova, server: str, hosts: tuple[str, ...], larger: bool, device: int = 0) -> Steps:
    """resize, then MigrationTask and prep_resize on each of `hosts` until one accepts it."""
    nova.save(server, task="resize_prep")
    kind = "resize" if larger != nova.large(server) else "migration"
    nova.act(server, "resize" if kind == "resize" else "migrate")
    yield Step(CONDUCTOR, "resize asked", queued=True)
    was = nova.vm[server]
    for number, host in enumerate(hosts):
        task = event(
            nova, server, "cold_migrate", _migration_task(nova, server, kind, host, larger, device)
        )
        moved = yield from event(nova, server, "conductor_migrate_server", task)
        if moved is None:
            return
        yield Step(host, "prep_resize cast", queued=True)
        last = number == len(hosts) - 1
        steps = error_out_instance(
            nova,
            server,
            host,
            errors_out_migration(nova, moved, host, _prepared(nova, server, moved, host, last)),
            was,
        )
        if (
            yield from reverts_task_state(
                nova, server, host, event(nova, server, "compute_prep_resize", steps, host)
            )
        ):
            yield from _resized(nova, server, moved, host, larger, was)
            return
        yield Step(CONDUCTOR, "resize rescheduled", queued=True)


def _migration_task(
    nova: Nova, server: str, kind: str, host: str, larger: bool, device: int
) -> Steps:
    """MigrationTask.execute, with its rollback.

    The row of the migration comes first, then the allocation, whose return is only logged.
    """
    known = nova.with_status(server, "pre-migrating", kind=kind)
    migration = known or nova.migration(server, kind, "pre-migrating")
    nova.flavors[migration] = (nova.large(server), larger)
    yield Step(CONDUCTOR, "migration made")
    held = False
    try:
        if (nova.host(server) or "") in nova.held(server):
            if not nova.move(server, migration):
                raise Failed("the claim was not moved")
            held = True
        yield Step(CONDUCTOR, "claim moved")
        nova.claim(server, host, larger, device)
        yield Step(CONDUCTOR, "claimed")
    except Failed:
        try:
            nova.set(migration, status="error")
            yield Step(CONDUCTOR, "task rolled back")
            if held:
                nova.move(migration, server)
                yield Step(CONDUCTOR, "claim back")
        except Failed:
            yield Step(CONDUCTOR, "rollback failed")
        nova.save(server, task=None)
        return None
    return migration


def _prepared(nova: Nova, server: str, migration: str, host: str, last: bool) -> Steps:
    """_do_prep_resize.

    Returns whether it succeeded; else another host is tried (_reschedule_resize_or_reraise).
    """
    try:
        nova.set(migration, dest=host, status="pre-migrating")
        yield Step(host, "claim of the host made")
    except Failed:
        revert_allocation(nova, server, migration)
        yield Step(host, "claim reverted")
        if last:
            raise
        nova.save(server, task="resize_prep")
        return False
    return True


def _resized(nova: Nova, server: str, migration: str, host: str, larger: bool, was: str) -> Steps:
    """resize_instance on the source, finish_resize on the destination."""
    source = nova.place(migration, "source") or ""
    yield Step(source, "resize_instance cast", queued=True)

    def left() -> Steps:
        nova.set(migration, status="migrating")
        yield Step(source, "migrating")
        nova.save(server, task="resize_migrating", expected=("resize_prep",))
        try:
            yield Step(source, "task migrating")
            nova.keep_for_revert(server, source)
        except Failed as failure:
            failure.in_copy = True
            raise
        yield Step(source, "powered off")
        nova.set(migration, status="post-migrating")
        yield Step(source, "post-migrating")
        nova.save(server, host=host, task="resize_migrated", expected=("resize_migrating",))
        nova.arrive(server, host)

    def resized() -> Steps:
        try:
            yield from error_out_instance(
                nova, server, source, errors_out_migration(nova, migration, source, left()), was
            )
        except Failed:
            # The driver has restored the guest before it reported the failure.
            nova.restore_kept_disk(server, source)
            revert_allocation(nova, server, migration)
            yield Step(source, "claim reverted")
            raise

    yield from reverts_task_state(
        nova, server, source, event(nova, server, "compute_resize_instance", resized(), source)
    )
    yield Step(host, "finish_resize cast", queued=True)

    def finished() -> Steps:
        nova.save(server, task="resize_finish", expected=("resize_migrated",))
        yield Step(host, "finishing")
        nova.flavors[server] = larger
        yield Step(host, "guest made")
        nova.set(migration, status="finished")
        yield Step(host, "finished")
        nova.save(server, vm="resized", task=None, expected=("resize_finish",))

    def finish() -> Steps:
        try:
            yield from error_out_instance(nova, server, host, finished())
        except Failed:
            nova.leave(server, ("kept for a revert", source))
            nova.remove(migration)
            yield Step(host, "source dropped")
            raise

    steps = errors_out_migration(
        nova, migration, host, event(nova, server, "compute_finish_resize", finish(), host)
    )
    yield from reverts_task_state(nova, server, host, steps)


def revert(nova: Nova, server: str) -> Steps:
    """revert_resize on the destination, _finish_revert_resize on the source.

    `reverted` and the old host come before the allocation.
    """
    migration = nova.with_status(server, "finished") or ""
    nova.save(server, task="resize_reverting")
    yield Step(API, "reverting")
    nova.set(migration, status="reverting")
    nova.act(server, "revertResize")
    source, dest = nova.place(migration, "source") or "", nova.place(migration, "dest") or ""
    yield Step(dest, "revert cast", queued=True)

    def dropped() -> Steps:
        yield Step(dest, "networks gone")
        nova.leave(server, dest)
        yield Step(dest, "guest destroyed")
        nova.set(migration, status="reverted")
        yield Step(dest, "reverted")
        nova.save(server, expected=("resize_reverting",))

    def or_lost(steps: Steps) -> Steps:
        try:
            yield from steps
        except Failed:
            # The last disk is on the source, and only a repair of the database recovers it.
            if (
                not nova.strict
                and not nova.has_guest(server, dest)
                and nova.host(server) == dest != source
            ):
                nova.leave(server, ("kept for a revert", source))
            raise

    inner = error_out_instance(nova, server, dest, or_lost(dropped()))
    steps = errors_out_migration(
        nova, migration, dest, event(nova, server, "compute_revert_resize", inner, dest)
    )
    yield from reverts_task_state(nova, server, dest, steps)
    yield Step(source, "finish_revert cast", queued=True)

    def back() -> Steps:
        nova.flavors[server] = nova.flavors[migration][0]
        nova.save(server, host=source, expected=("resize_reverting",))
        yield Step(source, "host back")
        revert_allocation(nova, server, migration)
        yield Step(source, "claim back")
        nova.restore_kept_disk(server, source)
        yield Step(source, "guest back")
        nova.save(server, vm="active", task=None)

    steps = errors_out_migration(
        nova,
        migration,
        source,
        event(
            nova,
            server,
            "compute_finish_revert_resize",
            error_out_instance(nova, server, source, or_lost(back())),
        ),
    )
    yield from reverts_task_state(nova, server, source, steps)


# Live migration: nova/conductor/tasks/live_migrate.py, nova/compute/manager.py.


def live_migrate(nova: Nova, server: str, host: str, device: int = 0) -> Steps:
    """_live_migrate with LiveMigrationTask, live_migration, _do_live_migration."""
    source = nova.host(server) or ""
    nova.save(server, task="migrating")
    nova.act(server, "live-migration")
    yield Step(CONDUCTOR, "live migration asked", queued=True)
    migration = nova.migration(server, "live-migration", "accepted", source_node=None)
    yield Step(CONDUCTOR, "migration made")
    held = False
    try:
        if source in nova.held(server):
            if not nova.move(server, migration):
                raise RolledBack("the claim was not moved")
            held = True
        yield Step(CONDUCTOR, "claim moved")
        nova.claim(server, host, nova.large(server), device)
        yield Step(CONDUCTOR, "claimed")
        nova.set(migration, dest=host, source_node=nova.world.nodes[source].name)
        yield Step(CONDUCTOR, "hosts saved")
    except Failed as error:
        nova.stays(server)
        if held:
            nova.move(migration, server)
            yield Step(CONDUCTOR, "claim back")
        nova.save(
            server,
            vm=None if isinstance(error, RolledBack) else "error",
            task=None,
            expected=("migrating",),
        )
        yield Step(CONDUCTOR, "task reverted")
        nova.set(migration, status="error")
        return
    yield Step(source, "live migration cast", queued=True)

    def queued() -> Steps:
        nova.set(migration, status="queued")
        yield Step(source, "in the pool")

    try:
        yield from errors_out_migration(
            nova, migration, source, event(nova, server, "compute_live_migration", queued())
        )
        nova.set(migration, status="preparing")
        yield Step(source, "preparing")
    except Aborted:
        yield from _rolled_back(nova, server, migration, source, "cancelled")
        return
    except Failed:
        # _cleanup_pre_live_migration
        nova.stays(server)
        nova.set(migration, status="error")
        yield Step(source, "pre failed")
        yield from _rolled_back(nova, server, migration, source, "failed")
        return
    nova.set(migration, status="running")
    try:
        try:
            yield Step(source, "running")
        except Aborted:
            yield from _rolled_back(nova, server, migration, source, "failed")
            return
        yield from _post_live_migration(nova, server, migration, source, host)
    except Failed:
        nova.stays(server)
        nova.set(migration, status="error")
        yield Step(source, "migration errored")
        nova.save(server, vm="error", task=None)


def _rolled_back(nova: Nova, server: str, migration: str, source: str, status: str) -> Steps:
    """_rollback_live_migration."""
    nova.stays(server)
    revert_allocation(nova, server, migration)
    yield Step(source, "claim reverted")
    nova.save(server, task=None, expected=("migrating",))
    yield Step(source, "task reverted")
    nova.set(migration, status=status)


def _post_live_migration(nova: Nova, server: str, migration: str, source: str, host: str) -> Steps:
    """The three last steps of a live migration.

    _post_live_migration_update_host, _post_live_migration, post_live_migration_at_destination.
    """
    switch(nova, server, source, host)
    try:
        yield Step(source, "guest switched")
        if host not in nova.up:
            raise Failed("no reply from the destination")
        nova.save(server, host=host, task=None, expected=("migrating",))
        yield Step(source, "host saved")
        nova.set(migration, status="completed")
        yield Step(source, "completed")
        nova.remove(migration)
    except Failed:
        if nova.host(server) != host:
            nova.save(server, host=host, task=None)
            yield Step(source, "host saved")
        raise


def switch(nova: Nova, server: str, source: str, host: str) -> None:
    """Do what libvirt does in a live migration, with or without Nova."""
    if not nova.has_guest(server, source):
        raise Failed(f"no guest on {source}")
    nova.arrive(server, host)
    nova.leave(server, source)


# Evacuation and rebuild: nova/compute/api.py, rebuild_instance of nova/conductor/manager.py and of
# nova/compute/manager.py.


def _rebuild_instance(nova: Nova, server: str, host: str, steps: Steps, was: str) -> Steps:
    """The decorators of rebuild_instance, which evacuates too."""
    errors_out = error_out_instance(nova, server, host, steps, was)
    recorded = event(nova, server, "compute_rebuild_instance", errors_out, host)
    yield from reverts_task_state(nova, server, host, recorded)


def evacuate(nova: Nova, server: str, host: str, targeted: bool = False, device: int = 0) -> Steps:
    nova.save(server, task="rebuilding")
    yield Step(API, "task set")
    nova.act(server, "evacuate")
    nova.migration(server, "evacuation", "accepted", dest=host if targeted else None)
    yield Step(CONDUCTOR, "evacuation asked", queued=True)
    migration = nova.with_status(server, "accepted")
    was = nova.vm[server]

    def scheduled() -> Steps:
        try:
            nova.claim(server, host, nova.large(server), device)
            yield Step(CONDUCTOR, "claimed")
        except Failed:
            if migration:
                nova.set(migration, status="error")
            yield Step(CONDUCTOR, "migration errored")
            nova.save(server, vm="error", task=None)
            raise

    yield from event(nova, server, "rebuild_server", scheduled())
    yield Step(host, "rebuild cast", queued=True)
    moved = migration or nova.migration(server, "evacuation", "pre-migrating", dest=host)

    def rebuilt() -> Steps:
        try:
            nova.set(moved, dest=host, status="pre-migrating")
            yield Step(host, "claim of the host made")
            if nova.has_guest(server, host):
                raise Failed("the guest exists")
            nova.save(server, task="rebuilding", expected=("rebuilding",))
            nova.save(server, task="rebuild_spawning", expected=("rebuilding",))
            yield Step(host, "spawning")
            nova.arrive(server, host)
            yield Step(host, "spawned")
            nova.save(server, vm="active", task=None, expected=("rebuild_spawning",))
            yield Step(host, "active")
        except Gone:
            if moved in nova.world.migrations:
                nova.set(moved, status="failed")
            return
        except Failed:
            # Nova gives up the guest that it may have created there: its next step is to drop that
            # allocation itself.
            if not nova.strict:
                nova.leave(server, host)
            nova.stays(server)
            nova.set(moved, status="failed")
            yield Step(host, "failed")
            nova.remove_tree(server, host)
            yield Step(host, "destination dropped")
            raise
        # finish_evacuation of the resource tracker: from now on Nova takes no other guest for this
        # server's.
        nova.save(server, host=host)
        nova.give_up(server, host)
        nova.stays(server)
        yield Step(host, "host saved")
        nova.set(moved, status="done")

    yield from _rebuild_instance(nova, server, host, rebuilt(), was)


def rebuild(nova: Nova, server: str) -> Steps:
    """Rebuild in place.

    A failure drops the server's own allocation (`scheduled_node is not None`).
    """
    host, was = nova.host(server) or "", nova.vm[server]
    nova.save(server, task="rebuilding")
    nova.act(server, "rebuild")
    yield Step(CONDUCTOR, "rebuild asked", queued=True)
    if nova.task(server) != "rebuilding":
        return
    yield Step(host, "rebuild cast", queued=True)

    def rebuilt() -> Steps:
        try:
            nova.save(server, task="rebuild_spawning", expected=("rebuilding",))
            yield Step(host, "spawning")
            nova.remake(server, host)
            nova.save(server, vm="active", task=None, expected=("rebuild_spawning",))
        except Gone:
            return
        except Failed:
            nova.remove_tree(server, host)
            yield Step(host, "claim dropped")
            raise

    yield from _rebuild_instance(nova, server, host, rebuilt(), was)
