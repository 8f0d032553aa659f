"""Live servers, healthy ones and some that look odd.

Nothing here may ever be removed, except the orphan with the hostile name.
"""

import uuid

from minicloud_ctl import holdings, servers
from minicloud_ctl.scenarios import leftovers
from minicloud_ctl.scenarios.registry import API, Context, scenario

LIVE = "live server on its own host"

TEMPLATE_NAME = (
    "{{ 7*7 }} {% raw %} ${7*7} \"double\" 'single' `id` $(id) <b>bold</b> &amp; a,b;c|d \\n "
    "\\x1b[31m"
)
ORPHAN_NAME = (
    "{{ lookup('pipe', 'id') }} =HYPERLINK(\"x\") <script>alert(1)</script> ]]> */ -- ; DROP TABLE "
    "\u00e9\u4e2d"
)
CONTROL_NAME = 'evil\nprovider \x1b[31mred\x1b[0m\r\t{{ 7*7 }}"}'


def live_server(
    context: Context, name: str, why: str = LIVE, flavor: str = "m1.tiny"
) -> tuple[str, str]:
    """Create a settled server on a steady host, recorded as needed there.

    Returns it with the host's provider.
    """
    (host,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, name, host, flavor)
    provider = context.provider(host)
    context.record.add_server(server, name)
    context.record.hosts["host"] = host
    context.record.needed(server, provider, why)
    return server, provider


@scenario("a live, settled server")
def healthy(context: Context) -> None:
    live_server(context, "healthy", flavor="m1.small")


@scenario("a live server whose disk is on a sharing provider (MISC_SHARES_VIA_AGGREGATE)")
def shared_disk(context: Context) -> None:
    _server_with_pool(context, "shared_disk")


@scenario("a live server whose disk is on a provider that has lost its sharing trait")
def former_shared_disk(context: Context) -> None:
    pool = _server_with_pool(context, "former_shared_disk")
    traits = f"/resource_providers/{pool}/traits"
    context.cloud.placement("PUT", traits, {**context.cloud.placement("GET", traits), "traits": []})


def _server_with_pool(context: Context, name: str) -> str:
    """Create a live server whose disk is moved to a sharing provider, recorded as needed.

    Returns the provider.
    """
    server, _provider = live_server(context, name)
    pool = create_pool(context, server)
    held = holdings.of(context.cloud, server)
    holdings.put(context.cloud, server, with_disk_on(pool, held.allocations), held)
    context.record.needed(server, pool, "disk of a live server on shared storage")
    return pool


def create_pool(context: Context, server: str) -> str:
    """Create a provider that shares its disks, and return its uuid."""
    name, traits = f"shared-storage-{server[:8]}", ("MISC_SHARES_VIA_AGGREGATE",)
    pool = holdings.create_provider(context.cloud, name, {"DISK_GB": 10000}, traits=traits)
    document = {"aggregates": [str(uuid.uuid4())], "resource_provider_generation": 2}
    context.cloud.placement("PUT", f"/resource_providers/{pool}/aggregates", document)
    return pool


def with_disk_on(pool: str, allocations: holdings.Allocations) -> holdings.Allocations:
    """Return the allocation on one host whose disk comes from a pool."""
    ((host, resources),) = allocations.items()
    return {
        host: {name: amount for name, amount in resources.items() if name != "DISK_GB"},
        pool: {"DISK_GB": resources["DISK_GB"]},
    }


@scenario(
    "live servers, an orphan and a foreign provider with names that attack templates, "
    "terminals and tables"
)
def hostile_names(context: Context) -> None:
    live_server(context, TEMPLATE_NAME)
    live_server(context, "x" * 255)
    leftovers.leave_allocation(context, context.own_host(), ORPHAN_NAME)
    # Nova refuses control characters in names, Placement accepts them.
    provider = holdings.create_provider(
        context.cloud, f"{CONTROL_NAME} {context.record.server}", {"VCPU": 8}
    )
    consumer = str(uuid.uuid4())
    holdings.put(context.cloud, consumer, {provider: {"VCPU": 1}}, holdings.somebody())
    context.record.foreign(consumer, provider, "on a provider that is no compute node")


@scenario("a server on a host, set to ERROR by reset-state")
def error_with_host(context: Context) -> None:
    server, _provider = live_server(
        context, "error_with_host", "ERROR with a host: its guest may well run"
    )
    servers.act(context.cloud, server, "os-resetState", {"state": "error"})
    servers.settle(context.cloud, server, None, "ERROR")


@scenario("a soft-deleted server that can still be restored")
def soft_deleted(context: Context) -> None:
    server, _provider = live_server(context, "soft_deleted", "SOFT_DELETED can be restored")
    # The API does so only with reclaim_instance_interval, which would turn every delete in this
    # cloud into a soft one.
    context.sql(
        "UPDATE instances SET vm_state = 'soft-delete', power_state = 4 WHERE uuid = ?", server
    )
    servers.settle(context.cloud, server, None, "SOFT_DELETED")


@scenario(
    "a live server without an instance mapping: GET answers 404, the hypervisor listing still "
    "shows it"
)
def lost_instance_mapping(context: Context) -> None:
    server, _provider = live_server(
        context, "lost_instance_mapping", "live, Nova has merely lost its instance mapping"
    )
    _lose_mapping(context, server)


@scenario("a live server without an instance mapping that also has an allocation on another host")
def lost_mapping_extra_host(context: Context) -> None:
    server, provider = live_server(
        context, "lost_mapping_extra_host", "live, Nova has merely lost its instance mapping"
    )
    other_host = context.steady_hosts(2)[1]
    other = context.provider(other_host)
    held = holdings.of(context.cloud, server)
    holdings.add(context.cloud, server, {other: held.allocations[provider]})
    context.record.hosts["other"] = other_host
    context.record.needed(
        server, other, "nothing can be proven of a server that Nova does not find"
    )
    _lose_mapping(context, server)


def _lose_mapping(context: Context, server: str) -> None:
    context.sql("DELETE FROM instance_mappings WHERE instance_uuid = ?", server, database=API)
