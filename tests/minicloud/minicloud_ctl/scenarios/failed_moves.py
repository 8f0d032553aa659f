"""Cold migrations that really fail.

In the driver of the source, with Placement out of reach, or with a nova-compute that dies.
"""

from minicloud_ctl import lifecycle, servers, steering
from minicloud_ctl.scenarios.registry import Context, scenario


def _copying(context: Context) -> tuple[str, str, str, str]:
    """Begin a cold migration whose source, a host of its own, pauses the copy.

    Returns (server, migration, source, destination).
    """
    source = context.own_host("copying", driver=steering.DRIVER)
    (destination,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, context.name, source)
    migration = steering.migrate_until_copy(
        context.paths, context.cloud, server, source, destination
    )
    context.record.describe(server, migration, source=source, destination=destination)
    return server, migration, source, destination


@scenario(
    (
        "a cold migration whose copy failed while Placement was down, its server reset to active: "
        "the allocation is on the destination"
    ),
    alone=True,
)
def failed_cold_migration(context: Context) -> None:
    server, migration, source, destination = _copying(context)
    with lifecycle.without_placement(context.paths):
        steering.fail_copy(context.paths, context.cloud, server, source)
    servers.act(context.cloud, server, "os-resetState", {"state": "active"})
    servers.settle(context.cloud, server, source)
    context.record.orphaned(server, context.provider(destination), "unreverted_allocation")
    context.record.needed(
        migration,
        context.provider(source),
        "the guest is here; its server must get this allocation back",
    )


@scenario(
    "a cold migration whose copy failed while Placement was down, its server still in ERROR",
    alone=True,
)
def failed_cold_migration_error(context: Context) -> None:
    server, migration, source, destination = _copying(context)
    with lifecycle.without_placement(context.paths):
        steering.fail_copy(context.paths, context.cloud, server, source)
    servers.settle(context.cloud, server, source, "ERROR")
    for consumer, host in ((server, destination), (migration, source)):
        why = "ERROR: where the guest is has not been looked at"
        context.record.needed(consumer, context.provider(host), why)


@scenario(
    "a cold migration whose source died during the copy and is back: for Nova the server is "
    "there, and the migration never ends"
)
def killed_while_copying(context: Context) -> None:
    server, migration, source, destination = _copying(context)
    context.kill(source)
    steering.release(context.paths, source, steering.COPY)
    lifecycle.start_computes(context.paths, [source])
    servers.settle(context.cloud, server, source)
    context.record.needed(
        server,
        context.provider(destination),
        "destination of a migration that Nova calls under way",
    )
    context.record.needed(
        migration,
        context.provider(source),
        "source of a migration that Nova calls under way; the guest is here",
    )
