"""Consumers, providers and whole Novas that belong to somebody else, or to nobody."""

import uuid

from minicloud_ctl import configs, holdings, lifecycle, servers, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.scenarios import leftovers
from minicloud_ctl.scenarios.live import LIVE
from minicloud_ctl.scenarios.registry import Context, scenario


@scenario("a container, with that consumer type, on a provider that Nova owns", placement=(1, 38))
def foreign_consumer(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    provider = context.provider(host)
    consumer = str(uuid.uuid4())
    claim = {provider: {"VCPU": 1, "MEMORY_MB": 256}}
    holdings.put_typed(context.cloud, consumer, "CONTAINER", claim, holdings.somebody())
    context.record.hosts["host"] = host
    context.record.foreign(consumer, provider, "typed CONTAINER")


@scenario("a consumer with an upper-case uuid, which Placement accepts and Nova never writes")
def foreign_uuid(context: Context) -> None:
    (host,) = context.steady_hosts(1)
    provider = context.provider(host)
    # At least one of its digits is a letter.
    consumer = f"A{str(uuid.uuid4())[1:]}".upper()
    document = holdings.document(holdings.somebody(), {provider: {"VCPU": 1, "MEMORY_MB": 256}})
    context.cloud.placement("POST", "/allocations", {consumer: document}, holdings.UNTYPED)
    context.record.hosts["host"] = host
    context.record.foreign(consumer, provider, "its uuid is not written as Nova writes them")


@scenario("an untyped consumer on a provider that is not a compute node")
def foreign_provider(context: Context) -> None:
    consumer = str(uuid.uuid4())
    provider = holdings.create_provider(
        context.cloud, f"foreign-{consumer[:8]}", {"CUSTOM_FOREIGN": 16, "VCPU": 16}
    )
    holdings.put(
        context.cloud, consumer, {provider: {"CUSTOM_FOREIGN": 2, "VCPU": 1}}, holdings.somebody()
    )
    context.record.foreign(consumer, provider, "on a provider that is no compute node of Nova")


@scenario(
    "a provider whose compute service was deleted while a deleted server had an allocation on it"
)
def orphaned_provider(context: Context) -> None:
    (destination,) = context.steady_hosts(1)
    host = context.own_host("ghost")
    rest = servers.boot(context.cloud, "orphaned_provider_evacuated", host)
    leftovers.leave_allocation(context, host, "orphaned_provider")
    servers.force_down(context.cloud, host)
    servers.evacuate(context.cloud, rest, destination)
    # The answer is 204, although Placement refused to delete the provider.
    servers.delete_service(context.cloud, host)
    # Only newer releases remove these together with the service.
    held = holdings.of(context.cloud, rest)
    own = context.provider(destination)
    holdings.put(context.cloud, rest, {own: held.allocations[own]}, held)
    context.record.add_server(rest, "orphaned_provider_evacuated")
    context.record.hosts["destination"] = destination
    context.record.needed(rest, own, LIVE)


@scenario(
    "a host that returned under its name with a new uuid, while a deleted server's allocation "
    "keeps its old provider (LP 1817833)"
)
def name_conflict(context: Context) -> None:
    host = context.own_host("renewed")
    leftovers.leave_allocation(context, host, "name_conflict")
    servers.delete_service(context.cloud, host)
    # A reinstallation loses this file: nova-compute then creates a new uuid, and Placement refuses
    # its name.
    (context.paths.compute(host) / "compute_id").unlink(missing_ok=True)
    lifecycle.start_computes(context.paths, [host])
    context.record.hosts = {"host": host}


@scenario(
    "a second Nova with a live server on the same Keystone and Placement (region RegionTwo, "
    "cloud minicloud-second)"
)
def second_nova(context: Context) -> None:
    with states.changing(context.paths) as state:
        state.novas["second"] = ["cell1"]
    lifecycle.prepare_nova(context.paths, state, "second", ["cell1"])
    configs.write_nova(context.paths, state, "second", ["cell1"])
    control_plane = services.control_plane(context.paths, state, "second", ["cell1"])
    lifecycle.start(context.paths, control_plane)
    lifecycle.await_http(context.paths, [service for service in control_plane if service.port])
    second = Cloud(state, "second", project="demo")
    second.create_flavors()
    host = "second-compute-1"
    lifecycle.start_computes(context.paths, [host], "second")
    server = servers.boot(second, "second_nova", host)
    context.record.describe(server, host=host)
    context.record.needed(
        server, second.hypervisors()[host], "live server of another Nova on the same Placement"
    )
