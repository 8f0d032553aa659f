"""Servers that move, have moved, or were stopped on the way: boots, resizes, cold migrations."""

from minicloud_ctl import holdings, servers
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.scenarios import deleted
from minicloud_ctl.scenarios.live import LIVE, create_pool, with_disk_on
from minicloud_ctl.scenarios.registry import Context, scenario
from minicloud_ctl.waiting import wait_for


def _leave_unconfirmed(
    context: Context, source: str, destination: str
) -> tuple[str, str, str, str]:
    """Leave a cold migration in VERIFY_RESIZE.

    Returns (server, migration, source's provider, destination's provider).
    """
    server = servers.boot(context.cloud, context.name, source)
    migration = servers.migrate(context.cloud, server, destination)
    context.record.describe(server, migration, source=source, destination=destination)
    return server, migration, context.provider(source), context.provider(destination)


def _mark_migration(context: Context, migration: str, status: str) -> None:
    context.sql("UPDATE migrations SET status = ? WHERE uuid = ?", status, migration)


@scenario("a live server that also has an allocation on another host")
def extra_host(context: Context) -> None:
    own, other = context.steady_hosts(2)
    server = servers.boot(context.cloud, "extra_host", own)
    _allocate_also(context, server, own, other)
    context.record.orphaned(server, context.provider(other), "extra_host")


@scenario("a confirmed migration that still has an allocation on the source")
def ended_migration(context: Context) -> None:
    source, destination = context.steady_hosts(2)
    server = _leave_confirmed_migration(context, source, destination)
    context.record.needed(server, context.provider(destination), LIVE)


@scenario(
    "a confirmed migration with an allocation on the source, its server deleted by SQL while "
    "its host was down"
)
def ended_migration_deleted(context: Context) -> None:
    (source,) = context.steady_hosts(1)
    destination = context.own_host()
    server = _leave_confirmed_migration(context, source, destination)
    context.kill(destination)
    deleted.soft_delete(context, server)
    context.record.orphaned(server, context.provider(destination), "deleted_server")


@scenario(
    "a confirmed migration with allocations on the source and on the pool where its server's "
    "disk is"
)
def ended_migration_pool(context: Context) -> None:
    server, migration, source, destination = _leave_unconfirmed(context, *context.steady_hosts(2))
    pool = create_pool(context, server)
    for consumer in (server, migration):
        claim = holdings.of(context.cloud, consumer)
        holdings.put(context.cloud, consumer, with_disk_on(pool, claim.allocations), claim)
    held = holdings.of(context.cloud, migration)
    servers.confirm(context.cloud, server)
    holdings.await_providers(context.cloud, migration)
    holdings.write_back(context.cloud, migration, held)
    context.record.needed(server, destination, LIVE)
    context.record.needed(server, pool, "disk of a live server on shared storage")
    context.record.orphaned(migration, source, "ended_migration")
    context.record.orphaned(migration, pool, "ended_migration")


def _leave_confirmed_migration(context: Context, source: str, destination: str) -> str:
    server, migration, source_tree, _destination_tree = _leave_unconfirmed(
        context, source, destination
    )
    held = holdings.of(context.cloud, migration)
    servers.confirm(context.cloud, server)
    holdings.await_providers(context.cloud, migration)
    holdings.write_back(context.cloud, migration, held)
    context.record.orphaned(migration, source_tree, "ended_migration")
    return server


@scenario(
    (
        "a confirmed migration with an allocation on the source, its server shelved and unshelved "
        "since, which no migration shows"
    ),
    alone=True,
)
def ended_migration_unshelved(context: Context) -> None:
    (source,) = context.steady_hosts(1)
    destination = context.own_host()
    server = _leave_confirmed_migration(context, source, destination)
    servers.shelve(context.cloud, server)
    # The scheduler chooses the destination; it must be neither where its newest migration ended,
    # nor a host that another scenario has killed.
    context.kill(destination)
    servers.force_down(context.cloud, destination)
    context.await_deaths()
    servers.act(context.cloud, server, "unshelve")
    found = servers.settle(context.cloud, server, None)
    context.record.needed(server, context.provider(found["OS-EXT-SRV-ATTR:host"]), LIVE)


@scenario("a confirmed migration with an allocation on the source, its server offloaded since")
def ended_migration_offloaded(context: Context) -> None:
    server = _leave_confirmed_migration(context, *context.steady_hosts(2))
    servers.shelve(context.cloud, server)
    holdings.await_providers(context.cloud, server)


@scenario("a resize that nobody can confirm or revert, because the state of its server was reset")
def reset_resize(context: Context) -> None:
    server, migration, source, destination = _leave_unconfirmed(context, *context.steady_hosts(2))
    servers.act(context.cloud, server, "os-resetState", {"state": "active"})
    servers.settle(context.cloud, server, None)
    context.record.needed(server, destination, LIVE)
    context.record.orphaned(migration, source, "ended_migration")


def _live_migrate(context: Context, server: str, host: str) -> str:
    servers.act(context.cloud, server, "os-migrateLive", {"host": host, "block_migration": "auto"})
    migration = servers.await_migration(context.cloud, server, "completed")
    servers.settle(context.cloud, server, host)
    holdings.await_providers(context.cloud, server, context.provider(host))
    # The fake driver of older releases does not know a guest that has arrived, and Nova moves only
    # a server whose guest runs (nova.virt.power_state.RUNNING).
    context.sql("UPDATE instances SET power_state = 1 WHERE uuid = ?", server)
    return migration


def _allocate_also(context: Context, server: str, home: str, other: str) -> None:
    held, tree = holdings.of(context.cloud, server), context.provider(home)
    holdings.add(context.cloud, server, {context.provider(other): held.allocations[tree]})
    context.record.describe(server, host=home, other=other)
    context.record.needed(server, tree, LIVE)


@scenario(
    "a live server with an allocation on the destination of a failed live migration, which a "
    "later one left"
)
def extra_host_left_since(context: Context) -> None:
    home, other = context.steady_hosts(2)
    server = servers.boot(context.cloud, "extra_host_left_since", home)
    failed = _live_migrate(context, server, other)
    _live_migrate(context, server, home)
    _mark_migration(context, failed, "error")
    _allocate_also(context, server, home, other)
    context.record.orphaned(server, context.provider(other), "extra_host")


@scenario(
    "a live server with an allocation on the destination of a failed live migration, where "
    "its guest may run"
)
def extra_host_left_before(context: Context) -> None:
    home, other = context.steady_hosts(2)
    server = servers.boot(context.cloud, "extra_host_left_before", home)
    _live_migrate(context, server, other)
    _live_migrate(context, server, home)
    failed = servers.migrate(context.cloud, server, other)
    servers.revert(context.cloud, server)
    holdings.await_providers(context.cloud, server, context.provider(home))
    marked = "status = 'error', migration_type = 'live-migration'"
    context.sql(f"UPDATE migrations SET {marked} WHERE uuid = ?", failed)
    _allocate_also(context, server, home, other)
    context.record.needed(
        server,
        context.provider(other),
        "a live migration to there failed, and its guest may run there",
    )


@scenario(
    "a server with an allocation on a host that died before it could build it: BUILD, no host"
)
def booting(context: Context) -> None:
    host = context.own_host()
    provider = context.provider(host)
    context.kill(host)
    server = servers.request_boot(context.cloud, "booting", host)
    # The action exists once the server has moved from the build request to its cell, and the
    # allocation comes before that.
    actions = f"/servers/{server}/os-instance-actions"
    wait_for(
        "the server to be handed to its host",
        lambda: (context.cloud.nova_call("GET", actions).body or {}).get("instanceActions"),
    )
    context.record.describe(server, dead=host)
    context.record.needed(server, provider, "claimed for a server that is being built")


def _stuck_in_flight(context: Context) -> tuple[str, str, str, str]:
    """Leave a cold migration whose destination died before it could take part.

    Returns the same as ``_leave_unconfirmed``.
    """
    (source,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, context.name, source)
    source_tree = context.provider(source)
    destination = context.own_host()
    destination_tree = context.provider(destination)
    # The scheduler considers the dead host alive until service_down_time has passed, which is long
    # enough.
    context.kill(destination)
    servers.act(context.cloud, server, "migrate", {"host": destination})

    def in_flight() -> str | None:
        found = servers.migrations(context.cloud, server)
        if found and found[0]["status"] in servers.ENDED:
            raise MinicloudError(
                f"The migration to {destination} ended as {found[0]['status']} before it could get "
                "stuck."
            )
        wanted = {server: destination_tree, **{each["uuid"]: source_tree for each in found[:1]}}
        for consumer, tree in wanted.items():
            if set(holdings.of(context.cloud, consumer).allocations) != {tree}:
                return None
        return found[0]["uuid"] if found else None

    migration = wait_for("the claims of the move", in_flight)
    context.record.describe(server, migration, source=source, destination=destination)
    return server, migration, source_tree, destination_tree


@scenario(
    "a cold migration to a host that died: the server has the destination, the migration the source"
)
def move_in_flight(context: Context) -> None:
    server, migration, source, destination = _stuck_in_flight(context)
    context.record.needed(server, destination, "destination of a move in flight")
    context.record.needed(migration, source, "source of a move in flight, where the guest is")


@scenario("a migration whose row was deleted with its server, so that no listing shows it")
def deleted_migration(context: Context) -> None:
    server, migration, source, _destination = _stuck_in_flight(context)
    servers.act(context.cloud, server, "os-resetState", {"state": "active"})
    servers.delete(context.cloud, server)
    holdings.await_providers(context.cloud, server)
    context.record.orphaned(migration, source, "deleted_migration")


@scenario("the same beside a server whose allocation another migration has")
def deleted_migration_beside(context: Context) -> None:
    deleted_migration(context)
    _leave_unreverted(context, context.record.hosts["source"], context.steady_hosts(2)[1])


@scenario("a resize that waits for confirmation", alone=True)
def unconfirmed_resize(context: Context) -> None:
    (source,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, "unconfirmed_resize", source)
    # The scheduler chooses the destination; it must not choose a host that another scenario has
    # just killed.
    context.await_deaths()
    servers.act(context.cloud, server, "resize", {"flavorRef": context.cloud.flavor("m1.small")})
    found = servers.settle(context.cloud, server, None, "VERIFY_RESIZE")
    destination = found["OS-EXT-SRV-ATTR:host"]
    migration = servers.await_migration(context.cloud, server, "finished")
    context.record.describe(server, migration, source=source, destination=destination)
    context.record.needed(
        server, context.provider(destination), "VERIFY_RESIZE: the guest runs here"
    )
    context.record.needed(
        migration, context.provider(source), "VERIFY_RESIZE: a revert needs the source"
    )


@scenario(
    "a resize that waits for confirmation with its migration marked as error: a revert still "
    "needs the source"
)
def unconfirmed_resize_error(context: Context) -> None:
    server, migration, source, destination = _leave_unconfirmed(context, *context.steady_hosts(2))
    _mark_migration(context, migration, "error")
    context.record.needed(server, destination, "VERIFY_RESIZE: the guest runs here")
    context.record.needed(
        migration, source, "VERIFY_RESIZE: a revert needs the source, whatever the migration says"
    )


@scenario(
    "an interrupted move: the ended migration has the allocation on the host where the guest "
    "runs, the server that on the other host"
)
def unreverted_allocation(context: Context) -> None:
    _leave_unreverted(context, *context.steady_hosts(2))


def _leave_unreverted(context: Context, *hosts: str) -> None:
    server, migration, source, destination = _leave_unconfirmed(context, *hosts)
    servers.revert(context.cloud, server)
    holdings.await_providers(context.cloud, migration)
    holdings.await_providers(context.cloud, server, source)
    _mark_migration(context, migration, "error")
    held = holdings.of(context.cloud, server)
    resources = held.allocations[source]
    nothing = holdings.Holding({}, held.project, held.user)
    swapped = {
        server: holdings.document(held, {destination: resources}),
        migration: holdings.document(nothing, {source: resources}),
    }
    context.cloud.placement("POST", "/allocations", swapped, holdings.UNTYPED)
    context.record.orphaned(server, destination, "unreverted_allocation")
    context.record.needed(
        migration, source, "the guest runs here; its server must get this claim back"
    )
