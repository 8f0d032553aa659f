"""Live servers whose allocations are not what they should be.

None of them may simply be removed, though.
"""

import uuid

from minicloud_ctl import holdings
from minicloud_ctl.scenarios.live import LIVE, live_server
from minicloud_ctl.scenarios.registry import Context, scenario


@scenario("a live server without an allocation")
def missing_allocation(context: Context) -> None:
    server, _provider = live_server(context, "missing_allocation")
    context.cloud.placement("DELETE", f"/allocations/{server}")
    context.record.allocations.clear()


@scenario("a live server with an allocation only on another host")
def misplaced_allocation(context: Context) -> None:
    server, own = live_server(context, "misplaced_allocation")
    other_host = context.steady_hosts(2)[1]
    other = context.provider(other_host)
    held = holdings.of(context.cloud, server)
    holdings.put(context.cloud, server, {other: held.allocations[own]}, held)
    context.record.hosts["other"] = other_host
    context.record.allocations.clear()
    context.record.orphaned(server, other, "misplaced_allocation")


@scenario("a live server with larger amounts than its flavor")
def wrong_amount(context: Context) -> None:
    server, own = live_server(context, "wrong_amount")
    held = holdings.of(context.cloud, server)
    twice = {name: 2 * amount for name, amount in held.allocations[own].items()}
    holdings.put(context.cloud, server, {own: twice}, held)


@scenario("a live server whose allocation belongs to another project and user")
def wrong_owner(context: Context) -> None:
    server, _own = live_server(context, "wrong_owner")
    held = holdings.of(context.cloud, server)
    holdings.put(context.cloud, server, held.allocations, holdings.somebody())


@scenario("a live server without ports that has the bandwidth of a deleted port")
def leaked_port(context: Context) -> None:
    server, own = live_server(context, "leaked_port")
    bandwidth = {"NET_BW_EGR_KILOBIT_PER_SEC": 1000, "NET_BW_IGR_KILOBIT_PER_SEC": 1000}
    child = holdings.create_provider(
        context.cloud, f"leaked-port-{uuid.uuid4()}", dict.fromkeys(bandwidth, 8000), parent=own
    )
    holdings.add(context.cloud, server, {child: bandwidth})
    context.record.needed(server, child, f"{LIVE}: only who chooses the kind removes the bandwidth")


@scenario("a live server with an unexplained allocation on a child of its own host")
def leaked_child(context: Context) -> None:
    server, own = live_server(context, "leaked_child")
    child = holdings.create_provider(
        context.cloud, f"leaked-child-{uuid.uuid4()}", {"CUSTOM_VF": 8}, parent=own
    )
    holdings.add(context.cloud, server, {child: {"CUSTOM_VF": 1}})
    context.record.needed(server, child, f"{LIVE}: nothing proves that it does not use the child")
