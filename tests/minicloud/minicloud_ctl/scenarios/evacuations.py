"""Evacuated servers, and their remaining allocations on the host that they left."""

from minicloud_ctl import holdings, lifecycle, servers
from minicloud_ctl.scenarios.live import LIVE
from minicloud_ctl.scenarios.registry import Context, scenario
from minicloud_ctl.waiting import wait_for


@scenario("an evacuated server that still has an allocation on its dead source")
def evacuated_source(context: Context) -> None:
    (destination,) = context.steady_hosts(1)
    server, migration, source = _evacuate(context, context.own_host(), destination)
    _describe(context, server, migration, source, destination)


@scenario(
    "a server that was evacuated, moved on while its source was down and moved back: its "
    "allocation on the source stays for ever, though all hosts are up"
)
def evacuated_source_stale(context: Context) -> None:
    destination, third = context.steady_hosts(2)
    server, migration, source = _evacuate(context, context.own_host("revived"), destination)
    servers.migrate(context.cloud, server, third)
    lifecycle.start_computes(context.paths, [source])
    # Older releases call a host up before it has cleaned up what was evacuated from it, and then
    # it would clean up what the revert brings back.
    wait_for(
        f"{source} to have processed the evacuation",
        lambda: any(
            found["uuid"] == migration and found["status"] == "completed"
            for found in servers.migrations(context.cloud, server)
        ),
    )
    servers.revert(context.cloud, server)
    holdings.await_providers(
        context.cloud, server, context.provider(destination), context.provider(source)
    )
    _describe(context, server, migration, source, destination)


@scenario(
    "a server that was evacuated, whose source was decommissioned and deployed again, and that was "
    "moved back: nova-compute of its host treats it as evacuated at its next start"
)
def unfinished_evacuation(context: Context) -> None:
    (destination,) = context.steady_hosts(1)
    server, migration, source = _evacuate(context, context.own_host("redeployed"), destination)
    servers.delete_service(context.cloud, source)
    (context.paths.compute(source) / "compute_id").unlink(missing_ok=True)
    lifecycle.start_computes(context.paths, [source])
    servers.migrate(context.cloud, server, source)
    servers.confirm(context.cloud, server)
    holdings.await_providers(context.cloud, server, context.provider(source))
    context.record.describe(server, migration, source=source, destination=destination)
    context.record.needed(server, context.provider(source), LIVE)


@scenario("an evacuated server of which another tool left only what is on a child of the source")
def evacuated_child(context: Context) -> None:
    source, (destination,) = context.own_host(), context.steady_hosts(1)
    child, _other = (
        holdings.create_provider(
            context.cloud, f"{host}_part", {"CUSTOM_PART": 4}, context.provider(host)
        )
        for host in (source, destination)
    )
    cloud, flavor = context.cloud, {"name": "m1.part", "vcpus": 1, "ram": 512, "disk": 1}
    part = cloud.nova("POST", "/flavors", {"flavor": flavor})["flavor"]["id"]
    specs = {"extra_specs": {"resources:CUSTOM_PART": "1"}}
    cloud.nova("POST", f"/flavors/{part}/os-extra_specs", specs)
    server, migration, source = _evacuate(context, source, destination, "m1.part")
    cloud.nova("DELETE", f"/flavors/{part}")
    held = holdings.of(cloud, server)
    # nova-manage placement audit --delete does this, and knows only Nova's own classes.
    del held.allocations[context.provider(source)]
    holdings.write_back(cloud, server, held)
    context.record.describe(server, migration, source=source, destination=destination)
    for provider in held.allocations.keys() - {child}:
        context.record.needed(server, provider, LIVE)
    context.record.orphaned(server, child, "evacuated_source")


def _evacuate(
    context: Context, source: str, destination: str, flavor: str = "m1.tiny"
) -> tuple[str, str, str]:
    """Boot on the source, kill it, evacuate, and return (server, migration, source)."""
    server = servers.boot(context.cloud, context.name, source, flavor)
    context.kill(source)
    servers.force_down(context.cloud, source)
    migration = servers.evacuate(context.cloud, server, destination)
    return server, migration, source


def _describe(context: Context, server: str, migration: str, source: str, destination: str) -> None:
    context.record.describe(server, migration, source=source, destination=destination)
    context.record.needed(server, context.provider(destination), LIVE)
    context.record.orphaned(server, context.provider(source), "evacuated_source")
