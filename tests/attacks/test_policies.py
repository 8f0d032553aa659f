"""Policies that hide something from the credentials: one rule after another, denied or narrowed."""

import pytest

from ..integration.interposer import Middlebox
from .bed import Siege
from .liars import UUID, deny, edit, empty, hide

pytestmark = pytest.mark.long

NOVA: dict[str, Middlebox] = {
    "servers:detail": deny(r"GET .*/servers/detail"),
    "servers:index": deny(r"GET .*/servers\?"),
    "servers:show": deny(rf"GET .*/servers/{UUID}$"),
    "os-migrations:index": deny(r"GET .*/os-migrations"),
    "os-hypervisors:list-detail": deny(r"GET .*/os-hypervisors"),
    "os-services:list": deny(r"GET .*/os-services"),
    "os-instance-actions:list": deny(r"GET .*/os-instance-actions$"),
    "os-instance-actions:show": deny(r"GET .*/os-instance-actions/req"),
    "os-aggregates:index": deny(r"GET .*/os-aggregates"),
}
PLACEMENT: dict[str, Middlebox] = {
    "allocations:list": deny(rf"GET /allocations/{UUID}"),
    "resource_providers:allocations:list": deny(rf"GET /resource_providers/{UUID}/allocations"),
    "resource_providers:list": deny(r"GET /resource_providers(\?|$)"),
    "resource_providers:inventories:list": deny(rf"GET /resource_providers/{UUID}/inventories"),
    "resource_providers:traits:list": deny(rf"GET /resource_providers/{UUID}/traits"),
}
# A 200 that shows less than there is.
NARROWED: dict[str, Middlebox] = {
    "hosts of servers": edit(
        "/servers", hide("OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:hypervisor_hostname")
    ),
    "nodes of servers": edit("/servers", hide("OS-EXT-SRV-ATTR:hypervisor_hostname")),
    "tasks of servers": edit("/servers", hide("OS-EXT-STS:task_state")),
    "all status of servers": edit(
        "/servers", hide("OS-EXT-STS:task_state", "OS-EXT-STS:vm_state", "OS-EXT-STS:power_state")
    ),
    "servers of others": edit(r"/servers(/detail)?\?", empty("servers")),
    "servers on hosts": edit("/os-hypervisors", hide("servers")),
    "migrations of others": edit("/os-migrations", empty("migrations")),
    "events of actions": edit("/os-instance-actions/", hide("events")),
    "hosts of events": edit("/os-instance-actions/", hide("host", "hostId")),
    "actions": edit("/os-instance-actions$", empty("instanceActions")),
    "extra specs": edit("/servers", hide("extra_specs")),
    "deleted servers": edit("deleted=True", empty("servers")),
    "aggregates": edit("/os-aggregates", empty("aggregates")),
}


def test_run_without_an_attack_removes_every_orphan_and_nothing_else(siege: Siege) -> None:
    """Without this, no attack would show anything."""
    summary = siege.run()

    assert summary["coverage"]["complete"], siege.scheduled.told
    assert siege.bed.remaining() == [], siege.scheduled.told
    assert len(siege.bed.placement.held(siege.bed.doubled)) == 1


@pytest.mark.parametrize("rule", NOVA)
def test_denied_rule_of_nova_convicts_nobody(siege: Siege, rule: str) -> None:
    siege.wires.nova.middlebox = NOVA[rule]

    siege.run()


@pytest.mark.parametrize("rule", PLACEMENT)
def test_denied_rule_of_placement_convicts_nobody(siege: Siege, rule: str) -> None:
    siege.wires.placement.middlebox = PLACEMENT[rule]

    siege.run()


@pytest.mark.parametrize("hidden", NARROWED)
def test_narrowed_rule_convicts_nobody(siege: Siege, hidden: str) -> None:
    siege.wires.nova.middlebox = NARROWED[hidden]

    siege.run()
