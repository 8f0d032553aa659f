# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's operations on a server, step by step in the order of its code.

Each operation is a generator that pauses after each step.

A test may let it continue, let it fail there (throw `Failed`: the handlers are Nova's), or drop it,
as when a service is killed. What waits in another service's queue (`Step.queued`) is not lost when
that service restarts.
"""

from __future__ import annotations

from ansible_collections.osops.placement.tests.unit.plugins.module_utils.nova_model import (
    API,
    CONDUCTOR,
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
