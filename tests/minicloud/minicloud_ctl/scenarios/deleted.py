"""Deleted servers, and what they left behind."""

from minicloud_ctl import databases, holdings, servers
from minicloud_ctl.scenarios import leftovers
from minicloud_ctl.scenarios.registry import API, CELL, Context, scenario


@scenario("a deleted server that Nova remembers, with an allocation on a host that is down")
def deleted_server(context: Context) -> None:
    leftovers.leave_allocation(context, context.own_host(), "deleted_server", "m1.small")


@scenario("a server whose row was soft-deleted by SQL while its host was down")
def deleted_by_sql(context: Context) -> None:
    host = context.own_host()
    server = servers.boot(context.cloud, "deleted_by_sql", host)
    provider = context.provider(host)
    context.kill(host)
    soft_delete(context, server)
    context.record.describe(server, dead=host)
    context.record.orphaned(server, provider, "deleted_server")


@scenario("a server marked as deleted by SQL in a way that Nova does not use, on a live host")
def deleted_by_hand(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, "deleted_by_hand", host)
    provider = context.provider(host)
    mark_deleted(context, server)
    context.record.describe(server, host=host)
    context.record.orphaned(server, provider, "deleted_server")


@scenario(
    "a deleted server whose row and instance mapping were purged, so that Nova does not know it"
)
def purged_server(context: Context) -> None:
    _purged(context, keep_mapping=False)


@scenario("a deleted server whose row was purged while its instance mapping stayed")
def purged_server_mapped(context: Context) -> None:
    _purged(context, keep_mapping=True)


def _purged(context: Context, keep_mapping: bool) -> None:
    """The host stays alive: nova-compute keeps the allocation of a server without a row."""
    (host,) = context.steady_hosts(1)
    server, held = leftovers.delete_on(context, host, context.name)
    purge(context, server, keep_mapping)
    holdings.write_back(context.cloud, server, held)
    context.record.hosts["host"] = host
    context.record.orphaned(server, context.provider(host), "unknown_consumer")


@scenario(
    "a deleted server's allocation on a dead host and on its child provider with a custom class"
)
def nested_child(context: Context) -> None:
    host = context.own_host()
    server, held = leftovers.delete_on(context, host, "nested_child")
    root = context.provider(host)
    context.kill(host)
    child = holdings.create_provider(
        context.cloud, f"{host}_0000:81:00.0", {"CUSTOM_PCI_X": 4}, parent=root
    )
    holdings.put(context.cloud, server, {**held.allocations, child: {"CUSTOM_PCI_X": 1}}, held)
    context.record.hosts["dead"] = host
    context.record.orphaned(server, root, "deleted_server")
    context.record.orphaned(server, child, "deleted_server")


def soft_delete(context: Context, server: str) -> None:
    """Leave what a repair of the database leaves: the row is deleted, nothing else is."""
    context.sql(
        "UPDATE instances SET deleted = id, deleted_at = datetime('now') WHERE uuid = ?", server
    )


def mark_deleted(context: Context, server: str) -> None:
    """Do the same as common instructions for operators.

    `deleted` becomes 1, where Nova itself writes the row's own id.
    """
    marked = "deleted = 1, deleted_at = datetime('now'), vm_state = 'deleted'"
    context.sql(f"UPDATE instances SET {marked} WHERE uuid = ?", server)


def purge(context: Context, server: str, keep_mapping: bool) -> None:
    """Do what ``nova-manage db archive_deleted_rows --purge`` does, for one server.

    Delete every row of every table that names it.
    """
    for database in (CELL, API):
        with databases.writing(context.paths, database) as connection:
            tables = {
                row["name"]
                for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            if keep_mapping:
                tables.discard("instance_mappings")
            if "instance_actions_events" in tables:
                actions = "SELECT id FROM instance_actions WHERE instance_uuid = ?"
                connection.execute(
                    f"DELETE FROM instance_actions_events WHERE action_id IN ({actions})", [server]
                )
            for table in sorted(tables):
                columns = {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")}
                if "instance_uuid" in columns:
                    connection.execute(f"DELETE FROM {table} WHERE instance_uuid = ?", [server])
            if "instances" in tables:
                connection.execute("DELETE FROM instances WHERE uuid = ?", [server])
