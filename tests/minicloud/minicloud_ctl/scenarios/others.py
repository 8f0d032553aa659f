"""Servers without a host, deleted services, and a cell that cannot be reached."""

import uuid

from minicloud_ctl import cells, databases, holdings, lifecycle, processes, servers, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.scenarios.registry import Context, read_record, scenario
from minicloud_ctl.waiting import wait_for

CELL = "cell2"
CELL_HOST = "cell2-compute-1"


@scenario("a shelved and offloaded server that still has an allocation on its last host")
def shelved_offloaded(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, "shelved_offloaded", host)
    _leave_shelved(context, server, host)
    context.record.hosts["host"] = host


@scenario(
    "a shelved and offloaded server with an allocation on its last host, and many actions "
    "since it was placed"
)
def shelved_after_long_life(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    server = servers.boot(context.cloud, "shelved_after_long_life", host)
    for _time in range(6):
        servers.act(context.cloud, server, "lock")
        servers.act(context.cloud, server, "unlock")
    _leave_shelved(context, server, host)
    context.record.hosts["host"] = host


@scenario(
    "a shelved and offloaded server with an allocation on its last host, of which only the "
    "provider is left"
)
def shelved_from_gone_host(context: Context) -> None:
    host = context.own_host("gone")
    server = servers.boot(context.cloud, "shelved_from_gone_host", host)
    _leave_shelved(context, server, host)
    context.kill(host)
    servers.force_down(context.cloud, host)
    # Its provider stays, because somebody has an allocation on it.
    servers.delete_service(context.cloud, host)


def _leave_shelved(context: Context, server: str, host: str) -> None:
    """Shelve and offload a server, and give it its earlier allocation again."""
    provider, held = context.provider(host), holdings.of(context.cloud, server)
    servers.shelve(context.cloud, server)
    holdings.await_providers(context.cloud, server)
    holdings.write_back(context.cloud, server, held)
    context.record.describe(server)
    context.record.orphaned(server, provider, "unhosted_server")


def _failed_boot(context: Context) -> str:
    """Create a server that no host could take, with an allocation left on one.

    Returns the server, and records no allocation.
    """
    flavor = {"name": f"impossible-{uuid.uuid4()}", "vcpus": 100000, "ram": 512, "disk": 1}
    reference = context.cloud.nova("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
    document = {
        "name": context.name,
        "imageRef": context.cloud.image(),
        "flavorRef": reference,
        "networks": "none",
    }
    server = context.cloud.nova("POST", "/servers", {"server": document})["server"]["id"]
    found = servers.settle(context.cloud, server, None, "ERROR")
    context.cloud.nova("DELETE", f"/flavors/{reference}")
    (host,) = context.steady_hosts(1)
    owner = holdings.Holding({}, found["tenant_id"], found["user_id"])
    claim = {context.provider(host): {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
    holdings.put(context.cloud, server, claim, owner)
    context.record.describe(server, claimed=host)
    return server


@scenario("a server whose boot failed (ERROR, no host) and left an allocation")
def error_without_host(context: Context) -> None:
    server = _failed_boot(context)
    context.record.orphaned(
        server, context.provider(context.record.hosts["claimed"]), "unhosted_server"
    )


@scenario(
    "a server that exceeded the quota when conductor checked it again (ERROR, no host)", alone=True
)
def over_quota(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    with processes.paused(context.paths, "nova-conductor-cell1"):
        server = servers.request_boot(context.cloud, context.name, host)
        project = servers.get(context.cloud, server)["tenant_id"]
        quota = {"quota_set": {"instances": 0, "force": True}}
        context.cloud.nova("PUT", f"/os-quota-sets/{project}", quota)
    servers.settle(context.cloud, server, None, "ERROR")
    context.cloud.nova("DELETE", f"/os-quota-sets/{project}")
    context.record.describe(server, claimed=host)
    context.record.orphaned(server, context.provider(host), "unhosted_server")


@scenario("a server without a host that was reset to ACTIVE, with an allocation")
def reset_without_host(context: Context) -> None:
    server = _failed_boot(context)
    servers.act(context.cloud, server, "os-resetState", {"state": "active"})
    servers.settle(context.cloud, server, None)
    context.record.needed(
        server,
        context.provider(context.record.hosts["claimed"]),
        "no host and no task: nothing proves that it is over",
    )


@scenario("a compute service that was disabled and died")
def stale_service(context: Context) -> None:
    host = context.own_host()
    servers.update_service(
        context.cloud, host, {"status": "disabled", "disabled_reason": "minicloud: stale_service"}
    )
    context.kill(host)
    wait_for(
        f"Nova to see that {host} is down",
        lambda: context.cloud.compute_services()[host]["state"] == "down",
    )
    context.record.hosts["dead"] = host


def _open_cell(context: Context) -> None:
    """Let nova-api reach the cell's database again."""
    _point_cell(context, f"first_{CELL}", closed=False)


@scenario(
    "a second cell with a live server whose database nova-api cannot reach",
    in_all=False,
    undo=_open_cell,
)
def cell_down(context: Context) -> None:
    before = read_record(context.paths, "cell_down")
    server = before["server"] if before else _second_cell(context)
    provider = context.provider(CELL_HOST)
    _point_cell(context, f"missing/first_{CELL}", closed=True)
    wait_for(
        "Nova to call the cell unknown",
        lambda: any(
            service["status"] == "UNKNOWN"
            for service in context.cloud.nova("GET", "/os-services")["services"]
        ),
    )
    context.record.describe(server, host=CELL_HOST)
    context.record.needed(server, provider, "live server in a cell that cannot be reached")


def _point_cell(context: Context, database: str, closed: bool) -> None:
    """Nova-api reads the mapping when it starts.

    Every other service keeps the database that it has open.
    """
    with states.changing(context.paths) as state:
        state.closed_cells = [CELL] if closed else []
    databases.point_cell(
        context.paths, "first_nova_api", CELL, context.paths.database_url(database)
    )
    lifecycle.restart(context.paths, [services.nova_api(context.paths, state, "first")])


def _second_cell(context: Context) -> str:
    """Create a cell of its own with one host and one live server, and return its uuid."""
    cells.add(context.paths, CELL, [CELL_HOST])
    return servers.boot(Cloud(states.load(context.paths), project="demo"), "cell_down", CELL_HOST)
