"""Leaves the allocations of deleted servers behind, for several themes."""

from minicloud_ctl import holdings, servers
from minicloud_ctl.holdings import Holding
from minicloud_ctl.scenarios.registry import Context


def delete_on(
    context: Context, host: str, name: str, flavor: str = "m1.tiny", node: str = ""
) -> tuple[str, Holding]:
    """Boot and delete a server, and return its uuid and its earlier allocation."""
    server = servers.boot(context.cloud, name, host, flavor, node)
    context.record.add_server(server, name)
    held = holdings.of(context.cloud, server)
    servers.delete(context.cloud, server)
    holdings.await_providers(context.cloud, server)
    return server, held


def leave_allocation(context: Context, host: str, name: str, flavor: str = "m1.tiny") -> str:
    """Leave a deleted server's allocation on ``host``, which dies here.

    A living nova-compute would remove it within a minute.
    """
    server, held = delete_on(context, host, name, flavor)
    provider = context.provider(host)
    context.kill(host)
    holdings.write_back(context.cloud, server, held)
    context.record.hosts["dead"] = host
    context.record.orphaned(server, provider, "deleted_server")
    return server
