"""One compute service with several nodes, as with ironic.

A host's name alone does not identify the provider.
"""

from minicloud_ctl import holdings, servers
from minicloud_ctl.scenarios import leftovers
from minicloud_ctl.scenarios.live import LIVE
from minicloud_ctl.scenarios.registry import Context, scenario


@scenario(
    "a dead service with two nodes, as with ironic: each has a live server and an allocation "
    "of a deleted server"
)
def ironic_nodes(context: Context) -> None:
    host = context.own_host("ironic", driver="minicloud_ironic.TwoNodes")
    nodes = (host, f"{host}-2")
    trees = {
        name: provider for provider, name in context.cloud.providers().items() if name in nodes
    }
    graveyard = []
    for node in nodes:
        server = servers.boot(context.cloud, f"ironic_nodes on {node}", host, node=node)
        context.record.add_server(server, f"ironic_nodes on {node}")
        context.record.needed(server, trees[node], LIVE)
        graveyard.append(
            (node, *leftovers.delete_on(context, host, f"ironic_nodes once on {node}", node=node))
        )
    both = servers.boot(context.cloud, "ironic_nodes on both", host, node=nodes[0])
    context.kill(host)
    for node, deleted, held in graveyard:
        holdings.write_back(context.cloud, deleted, held)
        context.record.orphaned(deleted, trees[node], "deleted_server")
    held = holdings.of(context.cloud, both)
    holdings.add(context.cloud, both, {trees[nodes[1]]: held.allocations[trees[nodes[0]]]})
    context.record.add_server(both, "ironic_nodes on both")
    context.record.hosts["dead"] = host
    context.record.needed(both, trees[nodes[0]], LIVE)
    context.record.orphaned(both, trees[nodes[1]], "extra_host")
