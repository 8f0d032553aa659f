"""Nova's operations on a server, step by step in the order of its code.

Each operation is a generator that pauses after each step.

A test may let it continue, let it fail there (throw `Failed`: the handlers are Nova's), or drop it,
as when a service is killed. What waits in another service's queue (`Step.queued`) is not lost when
that service restarts.
"""

from __future__ import annotations

from .nova_model import (
    API,
    CONDUCTOR,
    EVACUATED,
    Aborted,
    Failed,
    Gone,
    Nova,
    Preempted,
    RolledBack,
    Step,
    Steps,
)

# The decorators and context managers of nova/compute/manager.py and nova/compute/utils.py.


def event(nova: Nova, server: str, name: str, steps: Steps, host: str | None = None) -> Steps:
    """EventReporter."""
    request = nova.event_begins(server, name, host)
    try:
        result = yield from steps
    except Failed as failure:
        nova.event_ends(server, request, name, "Error", failure.in_copy)
        raise
    nova.event_ends(server, request, name, "Success")
    return result


def errors_out_migration(nova: Nova, migration: str, at: str, steps: Steps) -> Steps:
    try:
        return (yield from steps)
    except Failed:
        if migration in nova.world.migrations:
            nova.set(migration, status="error")
        yield Step(at, "migration errored")
        raise


def error_out_instance(
    nova: Nova, server: str, at: str, steps: Steps, state: str = "active"
) -> Steps:
    """_error_out_instance_on_exception."""
    try:
        return (yield from steps)
    except RolledBack:
        nova.stays(server)
        nova.save(server, vm=state, task=None)
        nova.forget_revert(server)
        yield Step(at, "instance rolled back")
        raise
    except Gone:
        raise
    except Failed:
        nova.stays(server)
        nova.save(server, vm="error")
        yield Step(at, "instance errored")
        raise


def reverts_task_state(nova: Nova, server: str, at: str, steps: Steps) -> Steps:
    try:
        return (yield from steps)
    except (Preempted, Gone):
        raise
    except Failed:
        nova.save(server, task=None)
        yield Step(at, "task reverted")
        raise


def revert_allocation(nova: Nova, server: str, migration: str) -> None:
    """nova/compute/manager.py, _revert_allocation.

    Nova does not check whether the allocation was moved back.
    """
    if nova.held(migration):
        nova.move(migration, server)


# Boot, shelve, delete: nova/compute/api.py, nova/conductor/manager.py, nova/compute/manager.py.


def boot(nova: Nova, server: str, hosts: tuple[str, ...], device: int = 0) -> Steps:
    """schedule_and_build_instances.

    Then _do_build_and_run_instance on each of `hosts` until one builds it (build_instances).
    """
    yield Step(API, "build requested")
    for attempt, host in enumerate(hosts):
        try:
            nova.claim(server, host, nova.large(server), device)
        except Failed:
            nova.save(server, vm="error", task=None)
            return
        if not attempt:
            yield Step(CONDUCTOR, "claimed")
            nova.act(server, "create")
        yield Step(host, "build cast", queued=True)
        if (yield from _built(nova, server, host, last=host == hosts[-1])):
            return
        yield Step(CONDUCTOR, "rescheduled", queued=True)


def _built(nova: Nova, server: str, host: str, last: bool) -> Steps:
    """_do_build_and_run_instance.

    A RescheduledException on all hosts but the last, where the build is aborted and keeps its
    allocation.
    """
    request, name = nova.world.actions[server][0].request_id, "compute__do_build_and_run_instance"
    nova.event_begins(server, name, host)
    try:
        nova.save(server, vm="building", task=None, expected=("scheduling", None))
        yield Step(host, "building")
        nova.save(server, host=host)
        yield Step(host, "host set")
        nova.save(server, task="spawning")
        yield Step(host, "spawning")
        nova.arrive(server, host)
        yield Step(host, "spawned")
        nova.save(server, vm="active", task=None, expected=("spawning",))
    except (Preempted, Gone):
        nova.leave(server, host)
        nova.event_ends(server, request, name, "Success")
        return True
    except Failed:
        nova.leave(server, host)
        nova.save(server, host=None)
        yield Step(host, "claim aborted")
        if last:
            nova.save(server, vm="error", task=None, host=None)
        else:
            nova.save(server, task="scheduling", host=None)
            yield Step(host, "host unset")
            nova.remove(server)
        nova.event_ends(server, request, name, "Success")
        return last
    nova.event_ends(server, request, name, "Success")
    return True


def shelve(nova: Nova, server: str, offload: bool = True) -> Steps:
    """shelve, _shelve_instance and, without shelved_offload_time, _shelve_offload_instance."""
    host = nova.host(server) or ""
    nova.save(server, task="shelving")
    nova.act(server, "shelve")
    yield Step(host, "shelve cast", queued=True)

    def shelved() -> Steps:
        nova.save(
            server,
            vm="shelved",
            task="shelving_offloading" if offload else None,
            expected=("shelving",),
        )
        yield Step(host, "shelved")
        if offload:
            yield from _offloaded(nova, server, host)

    yield from reverts_task_state(
        nova, server, host, event(nova, server, "compute_shelve_instance", shelved(), host)
    )


def shelve_offload(nova: Nova, server: str) -> Steps:
    host = nova.host(server) or ""
    nova.save(server, task="shelving_offloading")
    nova.act(server, "shelveOffload")
    yield Step(host, "offload cast", queued=True)
    steps = event(
        nova, server, "compute_shelve_offload_instance", _offloaded(nova, server, host), host
    )
    yield from reverts_task_state(nova, server, host, steps)


def _offloaded(nova: Nova, server: str, host: str) -> Steps:
    """_shelve_offload_instance: the snapshot is in the image service.

    So the allocation is not needed any more once Nova itself drops it.

    Nor is a disk that was kept for a revert: it is not the last one, and here the driver destroys
    it as well (delete_instance_files).
    """
    yield Step(host, "destroyed")
    nova.leave(
        server, host, *(place for place in nova.copies.get(server, {}) if isinstance(place, tuple))
    )
    nova.remove(server)
    yield Step(host, "claim dropped")
    nova.save(
        server, vm="shelved_offloaded", task=None, expected=("shelving", "shelving_offloading")
    )
    yield Step(host, "offloaded")
    nova.save(server, host=None)


def unshelve(nova: Nova, server: str, host: str, device: int = 0) -> Steps:
    """unshelve, then unshelve_instance of the conductor and of the host."""
    was = nova.vm[server]
    nova.save(server, task="unshelving")
    nova.act(server, "unshelve")
    yield Step(CONDUCTOR, "unshelve asked", queued=True)
    if was == "shelved":
        nova.save(server, task="powering-on", expected=("unshelving",))
        yield Step(nova.host(server) or "", "start cast", queued=True)
        nova.save(server, vm="active", task=None, expected=("powering-on",))
        return

    def scheduled() -> Steps:
        nova.claim(server, host, nova.large(server), device)
        yield Step(CONDUCTOR, "claimed")

    try:
        yield from event(nova, server, "schedule_instances", scheduled())
    except Failed:
        nova.save(server, task=None)
        raise
    yield Step(host, "unshelve cast", queued=True)

    def unshelved() -> Steps:
        nova.save(server, task="spawning")
        yield Step(host, "spawning")
        try:
            nova.save(server, host=host)
            yield Step(host, "host set")
            nova.arrive(server, host)
            yield Step(host, "spawned")
        except Failed:
            nova.leave(server, host)
            nova.save(server, host=None)
            yield Step(host, "claim aborted")
            nova.remove(server)
            raise
        nova.save(server, vm="active", task=None, expected=("spawning",))

    yield from reverts_task_state(
        nova, server, host, event(nova, server, "compute_unshelve_instance", unshelved(), host)
    )


def delete(nova: Nova, server: str) -> Steps:
    """_delete: without a host, or with its nova-compute down, locally.

    Otherwise terminate_instance. An unconfirmed resize is confirmed first.
    """
    host = nova.host(server)
    was = nova.task(server)
    if not host:
        nova.destroy(server)
        yield Step(API, "row destroyed")
        nova.remove(server)
        return
    nova.save(server, task="deleting")
    yield Step(API, "deleting")
    unconfirmed = nova.with_status(server, "finished", "confirming")
    if nova.vm[server] == "resized" and unconfirmed:
        source = nova.place(unconfirmed, "source") or ""
        if source not in nova.up:
            raise Failed("no reply from the source")
        nova.act(server, "confirmResize")
        yield from _confirmed(nova, server, unconfirmed, source)
    if host in nova.up:
        if was == "deleting":
            return
        nova.act(server, "delete")
        yield Step(host, "delete cast", queued=True)
        yield from reverts_task_state(
            nova,
            server,
            host,
            event(nova, server, "compute_terminate_instance", terminated(nova, server, host)),
        )
        return
    nova.remove(server)
    yield Step(API, "claim dropped")
    nova.save(server, vm="deleted", task=None)
    yield Step(API, "deleted locally")
    nova.destroy(server)


def terminated(nova: Nova, server: str, host: str) -> Steps:
    """_delete_instance."""
    try:
        # Its user has given it up, wherever else a disk of it remains.
        nova.copies.get(server, {}).clear()
        yield Step(host, "destroyed")
        nova.save(server, vm="deleted", task=None)
        yield Step(host, "deleted")
        nova.remove(server)
        yield Step(host, "claim dropped")
        nova.destroy(server)
    except Gone:
        return
    except Failed:
        nova.save(server, vm="error")
        raise


def soft_delete(nova: Nova, server: str) -> Steps:
    """soft_delete_instance; the guest can be restored."""
    host = nova.host(server) or ""
    nova.save(server, task="soft-deleting")
    nova.act(server, "delete")
    yield Step(host, "soft delete cast", queued=True)
    nova.save(server, vm="soft-delete", task=None, expected=("soft-deleting",))


def restore(nova: Nova, server: str) -> Steps:
    """restore_instance."""
    nova.act(server, "restore")
    nova.save(server, task="restoring")
    yield Step(nova.host(server) or "", "restore cast", queued=True)
    nova.save(server, vm="active", task=None, expected=("restoring",))


def confirm(nova: Nova, server: str) -> Steps:
    """confirm_resize."""
    migration = nova.with_status(server, "finished") or ""
    nova.set(migration, status="confirming")
    nova.act(server, "confirmResize")
    source = nova.place(migration, "source") or ""
    yield Step(source, "confirm cast", queued=True)
    yield from _confirmed(nova, server, migration, source)


def _confirmed(nova: Nova, server: str, migration: str, source: str) -> Steps:
    def removed() -> Steps:
        yield Step(source, "instance set up")
        nova.leave(server, ("kept for a revert", source))
        yield Step(source, "source removed")
        nova.set(migration, status="confirmed")
        yield Step(source, "confirmed")
        nova.save(server, vm="active", task=None, expected=(None, "deleting", "soft-deleting"))
        yield Step(source, "settled")

    def confirmed() -> Steps:
        try:
            yield from removed()
        except Failed:
            nova.leave(server, ("kept for a revert", source))
            nova.remove(migration)
            raise
        nova.remove(migration)

    def read() -> Steps:
        yield Step(source, "instance read")
        yield from error_out_instance(nova, server, source, confirmed())

    yield from errors_out_migration(
        nova, migration, source, event(nova, server, "compute_confirm_resize", read())
    )


# Resize and cold migration: nova/conductor/tasks/migrate.py, nova/compute/manager.py.


# Moves: resize, live migration, evacuation and rebuild.


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


# What a nova-compute does by itself, when it starts and periodically (nova/compute/manager.py).

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
