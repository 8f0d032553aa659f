"""Servers that Nova has booted with all sorts of flavors, and whose amounts were then disturbed.

What Nova had allocated is what is found to be right, and what is written where one allocation is
certain.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
import uuid

import pytest

from .support import Ansible, Placement, Run
from .world import World

pytestmark = pytest.mark.long

OWN_CLOUD = True
INVENTORY = {
    "total": 100,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 100,
    "step_size": 1,
    "allocation_ratio": 1.0,
}
Held = dict[str, dict[str, int]]


@d.dataclass
class Site:
    """Servers by name, with what Nova has allocated for each.

    compute-3 has two children with CUSTOM_THING, compute-4 has one. A pool shares its disk with
    compute-2.
    """

    servers: dict[str, str]
    held: dict[str, Held]
    hosts: dict[str, str]
    pool: str


@pytest.fixture(scope="module", name="site")
def _site(placement: Placement, world: World) -> Site:
    hosts = {name: world.provider(name) for name in ("compute-2", "compute-3", "compute-4")}
    aggregate = str(uuid.uuid4())
    for host, names in {"compute-3": ("a", "b"), "compute-4": ("c",)}.items():
        for name in names:
            things = {"CUSTOM_THING": INVENTORY}
            placement.change("PUT", "/resource_classes/CUSTOM_THING")
            placement.create_provider(f"{host}_{name}", things, parent=hosts[host])
    pool = placement.create_provider(
        "pool",
        {"DISK_GB": INVENTORY},
        traits=["MISC_SHARES_VIA_AGGREGATE"],
        aggregate=aggregate,
    )
    thing = {"resources:CUSTOM_THING": "1"}
    servers = {
        "override": world.boot("compute-3", _flavor(world, {"resources:VCPU": "1"}, vcpus=2)),
        "disks": world.boot("compute-3", world.flavor(1, 512, 1, ephemeral=3)),
        "thing": world.boot("compute-4", _flavor(world, thing)),
        "lost": world.boot("compute-4", _flavor(world, thing)),
        "either": world.boot("compute-3", _flavor(world, thing)),
        "too many": world.boot("compute-4", _flavor(world, thing)),
        "plain": world.boot("compute-4"),
        "shared": world.boot("compute-2"),
    }
    _join(placement, hosts["compute-2"], aggregate)
    own, amounts = next(iter(placement.held(servers["shared"]).items()))
    on_host = {cls: amount for cls, amount in amounts.items() if cls != "DISK_GB"}
    world.hold(servers["shared"], {own: on_host, pool: {"DISK_GB": amounts["DISK_GB"]}})
    held = {name: placement.held(server) for name, server in servers.items()}
    return Site(servers, held, hosts, pool)


def _flavor(world: World, specs: dict[str, str], vcpus: int = 1) -> str:
    return world.flavor(vcpus, 512, 1, extra_specs=specs)


def _join(placement: Placement, provider: str, aggregate: str) -> None:
    path = f"/resource_providers/{provider}/aggregates"
    answer = placement.get(path)
    body = {
        "aggregates": [*answer["aggregates"], aggregate],
        "resource_provider_generation": answer["resource_provider_generation"],
    }
    placement.change("PUT", path, body)


def _run(ansible: Ansible, site: Site, **variables: t.Any) -> Run:
    chosen = {
        "orphan_cleanup_kinds": ["wrong_amount", "missing_allocation", "leaked_child"],
        "orphan_cleanup_remediate_kinds": ["wrong_amount", "missing_allocation"],
        "orphan_cleanup_hosts": ["compute-2", "compute-3", "compute-4"],
        "orphan_cleanup_min_age": 0,
    }
    return ansible.playbook("cleanup_orphans", variables={**chosen, **variables})


def test_what_nova_has_allocated_is_right(ansible: Ansible, site: Site) -> None:
    run = _run(ansible, site)
    findings = run.read("findings.json")
    amounts = findings["summary"]["coverage"]["amounts"]

    assert run.status == 0 and run.changed == 0
    reported = [*findings["findings"], *findings["undecided"]]
    assert {entry["consumer"] for entry in reported}.isdisjoint(site.servers.values()), reported
    assert amounts["checked"] == amounts["servers"] >= len(site.servers)
    assert amounts["unchecked"] == {}


def test_disturbed_servers_get_what_nova_had_allocated(
    ansible: Ansible, placement: Placement, world: World, site: Site
) -> None:
    compute_3, compute_4 = site.hosts["compute-3"], site.hosts["compute-4"]
    more = {**site.held["disks"][compute_3], "DISK_GB": 9, "VCPU": 3}
    compute_2 = site.hosts["compute-2"]
    bigger = {compute_2: site.held["shared"][compute_2], site.pool: {"DISK_GB": 7}}
    extra = {
        uuid: {cls: 2 * amount for cls, amount in amounts.items()}
        for uuid, amounts in site.held["too many"].items()
    }
    for name, disturbed in {
        "override": {},
        "disks": {compute_3: more},
        "thing": {},
        "lost": {compute_4: site.held["lost"][compute_4]},
        "either": {compute_3: site.held["either"][compute_3]},
        "too many": extra,
        "shared": bigger,
    }.items():
        world.hold(site.servers[name], disturbed)
    run = _run(ansible, site)

    assert run.status == 0
    certain = ("override", "disks", "thing", "lost", "plain", "shared")
    now = {name: placement.held(server) for name, server in site.servers.items()}
    assert {name: now[name] for name in certain} == {name: site.held[name] for name in certain}
    # Two children could have it.
    either = run.entry(site.servers["either"])
    assert (either["kind"], either["change"]) == ("wrong_amount", None)
    assert "compute-3_a" in either["reason"] and "heal_allocations" in either["reason"]
    # The guest may use what it has too much of a child.
    (child,) = set(extra) - {compute_4}
    assert now["too many"] == {compute_4: site.held["too many"][compute_4], child: extra[child]}


def test_lost_child_is_found_by_a_default_run(ansible: Ansible, world: World, site: Site) -> None:
    host = site.hosts["compute-4"]
    world.hold(site.servers["lost"], {host: site.held["lost"][host]})
    try:
        run = ansible.playbook("detect_orphans", variables={"orphan_cleanup_min_age": 0})
    finally:
        world.hold(site.servers["lost"], site.held["lost"])

    entry = run.entry(site.servers["lost"])
    assert entry["kind"] == "wrong_amount" and entry["change"]
    assert "1 CUSTOM_THING (extra spec resources:CUSTOM_THING)" in entry["reason"]


def test_terminal_says_of_how_many_servers_the_amounts_were_checked(
    ansible: Ansible, site: Site
) -> None:
    assert site.servers and "Amounts checked for" in ansible.playbook("detect_orphans").output
