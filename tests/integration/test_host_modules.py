# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`placement_provider`, `compute_service` and `compute_service_info` against the real services."""

from __future__ import annotations

import typing as t
import uuid

import pytest
from minicloud_ctl import servers

from ansible_collections.osops.placement.tests.integration.interposer import Fault
from ansible_collections.osops.placement.tests.integration.support import long

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.interposer import Wires
    from ansible_collections.osops.placement.tests.integration.support import (
        Ansible,
        Minicloud,
        Placement,
    )
    from ansible_collections.osops.placement.tests.integration.world import World

NOBODY = "11111111-2222-4333-8444-555555555555"
STOCK = {"VCPU": {"total": 8}}
UP = {"status": "enabled", "forced_down": False}
RUSTY = {"status": "disabled", "disabled_reason": "rusty"}
# Another test may have created a second Nova on this Placement.
ABSENT: dict[str, t.Any] = {"state": "absent", "ignore_other_regions": True}


@pytest.fixture
def tree(placement: Placement) -> Iterator[dict[str, str]]:
    """The uuids by role of a tree without a compute node, deleted by the test or after it."""
    name = f"left-{uuid.uuid4()}"
    root = placement.create_provider(name, STOCK)
    child = placement.create_provider(f"{name} agent", {}, parent=root)
    leaf = placement.create_provider(f"{name} port", STOCK, parent=child)
    yield {"name": name, "root": root, "child": child, "leaf": leaf}
    for provider in (leaf, child, root):
        if provider in placement.providers().values():
            placement.change("DELETE", f"/resource_providers/{provider}")


@pytest.fixture
def claim(world: World) -> Iterator[t.Callable[[str], str]]:
    """Allocate a processor of a provider to an unknown consumer, until the end of the test."""
    consumers: list[str] = []

    def make(provider: str) -> str:
        consumers.append(str(uuid.uuid4()))
        world.hold(consumers[-1], {provider: {"VCPU": 1}})
        return consumers[-1]

    yield make
    for consumer in consumers:
        world.hold(consumer, {})


@pytest.fixture(scope="module")
def host(world: World) -> str:
    """A host that is up."""
    return _new_host(world)


@pytest.fixture
def dead(world: World) -> str:
    """A host that died, and that Nova knows to be down."""
    name = _new_host(world)
    world.kill(name)
    return name


def _new_host(world: World) -> str:
    name = f"retire-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    return name


def _service(world: World, host: str) -> dict[str, t.Any]:
    return world.cloud.compute_services()[host]


@pytest.mark.parametrize("named_by", ["name", long("root")])
def test_module_deletes_a_tree_once_children_first(
    ansible: Ansible, placement: Placement, tree: dict[str, str], named_by: str
) -> None:
    before = placement.providers()
    wish = {"name": tree[named_by], **ABSENT}

    foretold = ansible.module("placement_provider", "--check", "--diff", **wish)
    assert placement.providers() == before
    done = ansible.module("placement_provider", **wish)
    again = ansible.module("placement_provider", **wish)

    assert [provider["uuid"] for provider in done["providers"]] == [
        tree["leaf"],
        tree["child"],
        tree["root"],
    ]
    assert foretold["providers"] == done["providers"]
    assert f'-            "name": "{tree["name"]} port"' in foretold["printed_diff"]
    assert (foretold["changed"], done["changed"], again["changed"], again["providers"]) == (
        True,
        True,
        False,
        [],
    )
    assert set(before.items()) - set(placement.providers().items()) == {
        (tree["name"], tree["root"]),
        (f"{tree['name']} agent", tree["child"]),
        (f"{tree['name']} port", tree["leaf"]),
    }


@pytest.mark.long
def test_module_keeps_a_tree_with_allocations(
    ansible: Ansible, placement: Placement, tree: dict[str, str], claim: t.Callable[[str], str]
) -> None:
    consumers = sorted(
        [claim(tree["leaf"]), claim(tree["leaf"]), claim(tree["root"]), claim(tree["root"])]
    )
    before = placement.providers()

    result = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert result["failed"]
    assert result["consumers"] == consumers
    assert (
        f"4 consumers still have allocations on the tree of {tree['name']}: "
        f"{', '.join(consumers[:3])} and 1 more."
    ) in result["msg"]
    assert placement.providers() == before


def test_module_keeps_a_provider_allocated_at_the_last_moment(
    ansible: Ansible,
    placement: Placement,
    wires: Wires,
    tree: dict[str, str],
    claim: t.Callable[[str], str],
) -> None:
    consumer: list[str] = []
    hook = wires.placement.on(
        "DELETE", tree["leaf"], after=lambda: consumer.append(claim(tree["root"]))
    )

    result = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert hook.ran and result["failed"] and result["changed"]
    assert "has allocations" in result["msg"]
    assert [provider["uuid"] for provider in result["providers"]] == [tree["leaf"], tree["child"]]
    assert list(placement.held(consumer[0])) == [tree["root"]]


def test_lost_answer_to_a_provider_deletion_is_no_failure(
    ansible: Ansible, placement: Placement, wires: Wires, tree: dict[str, str]
) -> None:
    lost = wires.placement.on("DELETE", tree["root"], after=lambda: Fault.NO_ANSWER)

    result = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert lost.ran and not result["failed"]
    assert tree["root"] not in placement.providers().values()


@pytest.mark.long
def test_module_refuses_to_delete_part_of_a_tree(
    ansible: Ansible, placement: Placement, tree: dict[str, str]
) -> None:
    result = ansible.module("placement_provider", name=tree["child"], **ABSENT)

    assert result["failed"]
    assert f"is in the tree of {tree['name']} ({tree['root']})" in result["msg"]
    assert tree["child"] in placement.providers().values()


def test_module_never_deletes_the_tree_of_a_compute_node(
    ansible: Ansible, placement: Placement, dead: str
) -> None:
    result = ansible.module("placement_provider", name=dead, **ABSENT)

    assert result["failed"]
    assert f"is a compute node of {dead} that Nova lists" in result["msg"]
    assert dead in placement.providers()


@pytest.mark.long
def test_module_deletes_nothing_without_the_list_of_compute_nodes(
    ansible: Ansible, placement: Placement, wires: Wires, tree: dict[str, str]
) -> None:
    wires.nova.on("GET", "/os-hypervisors", nth=0, before=lambda: Fault.UNAVAILABLE)

    result = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert result["failed"]
    assert "Nova answered 503 when asked for its compute nodes" in result["msg"]
    assert tree["root"] in placement.providers().values()


@pytest.fixture
def dead_cell(minicloud: Minicloud) -> Iterator[str]:
    """A host in a cell that does not answer."""
    minicloud.scenario("cell_down")
    yield minicloud.truth("cell_down")["hosts"]["host"]
    minicloud.run("scenario", "--undo", "cell_down")


@pytest.mark.long
def test_module_deletes_nothing_while_a_cell_is_down(
    ansible: Ansible, placement: Placement, tree: dict[str, str], dead_cell: str
) -> None:
    before = placement.providers()

    shown = ansible.module("compute_service_info", host=dead_cell)["services"]
    theirs = ansible.module("compute_service", host=dead_cell, state="absent")
    nobodys = ansible.module("compute_service", id=NOBODY, state="absent")
    others = ansible.module(
        "compute_service", host="compute-1", state="absent", force_residual=True
    )
    empty = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert [(service["id"], service["status"], service["state"]) for service in shown] == [
        (None, "UNKNOWN", None)
    ]
    assert all(result["failed"] for result in (theirs, nobodys, others, empty))
    assert f"Nova returned nothing about {dead_cell}" in theirs["msg"]
    assert f"Nova returned nothing about {dead_cell}" in nobodys["msg"]
    assert "Nova answered 500 when asked for its compute nodes" in others["msg"]
    assert "Nova answered 500 when asked for its compute nodes" in empty["msg"]
    assert placement.providers() == before


@pytest.mark.long
def test_module_deletes_a_tree_beside_another_nova_only_when_allowed(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, tree: dict[str, str]
) -> None:
    minicloud.scenario("second_nova")
    node = minicloud.truth("second_nova")["allocations"][0]["provider"]

    unsure = ansible.module("placement_provider", name=tree["root"], state="absent")
    others = ansible.module("placement_provider", name=node, **ABSENT)
    told = ansible.module("placement_provider", name=tree["root"], **ABSENT)

    assert "Region RegionTwo has its own Nova on the same Placement" in unsure["msg"]
    assert others["failed"] and others["consumers"] == [minicloud.truth("second_nova")["server"]]
    assert told["changed"]
    assert node in placement.providers().values()


@pytest.mark.parametrize("name", ["nonesuch", NOBODY])
def test_missing_tree_is_absent(ansible: Ansible, name: str) -> None:
    result = ansible.module("placement_provider", name=name, **ABSENT)

    assert (result["failed"], result["changed"], result["providers"]) == (False, False, [])


def test_info_shows_services_as_nova_has_them(ansible: Ansible, world: World, host: str) -> None:
    raw = {
        service["id"]: service for service in world.cloud.nova("GET", "/os-services")["services"]
    }

    every = ansible.module("compute_service_info")["services"]
    some = ansible.module("compute_service_info", host=host, binary=["nova-compute"])["services"]

    assert {service["id"] for service in every} == set(raw)
    steady = ("id", "host", "binary", "zone", "status", "forced_down", "disabled_reason")
    assert [{key: service[key] for key in steady} for service in every] == [
        {key: raw[service["id"]][key] for key in steady} for service in every
    ]
    assert [(service["host"], service["binary"], service["state"]) for service in some] == [
        (host, "nova-compute", "up")
    ]


@pytest.mark.long
def test_info_omits_services_that_do_not_exist(ansible: Ansible, host: str) -> None:
    assert ansible.module("compute_service_info", host=["nonesuch"])["services"] == []
    assert (
        ansible.module("compute_service_info", host=[host], binary=["nova-conductor"])["services"]
        == []
    )


@pytest.mark.parametrize(
    ("given", "wish", "becomes"),
    [
        long(UP, {"enabled": False}, {"status": "disabled", "disabled_reason": None}),
        (
            UP,
            {"enabled": False, "disabled_reason": "rusty: 1"},
            {"status": "disabled", "disabled_reason": "rusty: 1"},
        ),
        long(
            RUSTY,
            {"enabled": False, "disabled_reason": "gone"},
            {"status": "disabled", "disabled_reason": "gone"},
        ),
        long(
            RUSTY,
            {"forced_down": True},
            {
                "forced_down": True,
                "state": "down",
                "status": "disabled",
                "disabled_reason": "rusty",
            },
        ),
        (
            {**RUSTY, "forced_down": True},
            {"enabled": True, "forced_down": False},
            {"forced_down": False, "status": "enabled", "disabled_reason": None},
        ),
    ],
)
def test_module_changes_a_service_once(
    ansible: Ansible,
    world: World,
    host: str,
    given: dict[str, t.Any],
    wish: dict[str, t.Any],
    becomes: dict[str, t.Any],
) -> None:
    for body in (UP, given):
        servers.update_service(world.cloud, host, body)
    before = _service(world, host)

    foretold = ansible.module("compute_service", "--check", "--diff", host=host, **wish)
    assert {**_service(world, host), "updated_at": before["updated_at"]} == before
    done = ansible.module("compute_service", host=host, **wish)
    again = ansible.module("compute_service", id=before["id"], **wish)

    assert (foretold["changed"], done["changed"], again["changed"]) == (True, True, False)
    for shown in (foretold["service"], done["service"], again["service"], _service(world, host)):
        assert shown.items() >= becomes.items()
    for key in {key for key, value in becomes.items() if before[key] != value}:
        assert f'+    "{key}": ' in foretold["printed_diff"]
    servers.update_service(world.cloud, host, UP)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"host": "nonesuch"}, "Nova has no service nova-compute on nonesuch"),
        ({"id": NOBODY, "enabled": False}, f"Nova has no service {NOBODY}"),
        ({"host": "compute-1", "disabled_reason": "rusty"}, "enabled=false"),
    ],
)
def test_module_fails_with_the_reason_for_an_impossible_state(
    ansible: Ansible, arguments: dict[str, t.Any], said: str
) -> None:
    result = ansible.module("compute_service", **arguments)

    assert result["failed"]
    assert said in result["msg"]


def test_module_changes_only_compute_services(ansible: Ansible) -> None:
    scheduler = ansible.module("compute_service_info", binary="nova-scheduler")["services"][0]

    result = ansible.module(
        "compute_service", host=scheduler["host"], binary="nova-scheduler", enabled=False
    )

    assert result["failed"]
    assert "Updating a nova-scheduler service is not supported" in result["msg"]


def test_module_deletes_a_service_with_its_host_once(
    ansible: Ansible, world: World, placement: Placement, dead: str
) -> None:
    service = _service(world, dead)
    assert dead in placement.providers()

    foretold = ansible.module("compute_service", "--check", "--diff", host=dead, state="absent")
    assert _service(world, dead)["id"] == service["id"]
    done = ansible.module("compute_service", host=dead, state="absent")
    again = ansible.module("compute_service", host=dead, state="absent")

    assert (foretold["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert f'-    "id": "{service["id"]}"' in foretold["printed_diff"]
    assert (done["service"], done["left_providers"]) == (None, [])
    assert dead not in world.cloud.compute_services()
    assert dead not in world.cloud.hypervisors()
    assert dead not in placement.providers()


def test_module_keeps_a_service_that_is_up(ansible: Ansible, world: World, host: str) -> None:
    result = ansible.module("compute_service", id=_service(world, host)["id"], state="absent")

    assert result["failed"]
    assert f"The nova-compute of {host} is up" in result["msg"]
    assert host in world.cloud.compute_services()


@pytest.mark.long
def test_module_keeps_a_service_with_servers_even_by_force(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    name = _new_host(world)
    server = world.boot(name)
    world.kill(name)

    asked = ansible.module("compute_service", host=name, state="absent")
    forced = ansible.module("compute_service", host=name, state="absent", force_residual=True)

    assert asked["failed"] and forced["failed"]
    assert asked["consumers"] == [server]
    assert (
        f"1 consumer still has an allocation on the providers of {name}: {server}." in asked["msg"]
    )
    assert "answered 409" in forced["msg"] and "hosting instances" in forced["msg"]
    assert name in world.cloud.compute_services()
    assert name in placement.providers()


def test_module_reports_what_nova_leaves_behind_so_that_it_can_be_deleted(
    ansible: Ansible, world: World, placement: Placement, dead: str, claim: t.Callable[[str], str]
) -> None:
    provider = world.provider(dead)
    consumer = claim(provider)

    asked = ansible.module("compute_service", host=dead, state="absent")
    forced = ansible.module("compute_service", host=dead, state="absent", force_residual=True)
    held = ansible.module("placement_provider", name=dead, **ABSENT)
    world.hold(consumer, {})
    free = ansible.module("placement_provider", name=dead, **ABSENT)

    assert asked["failed"] and asked["consumers"] == [consumer]
    assert forced["changed"] and forced["left_providers"] == [provider]
    assert held["failed"] and held["consumers"] == [consumer]
    assert free["changed"]
    assert dead not in placement.providers()


@pytest.mark.long
def test_lost_answer_to_a_service_deletion_is_no_failure(
    ansible: Ansible, world: World, wires: Wires, dead: str
) -> None:
    lost = wires.nova.on("DELETE", "/os-services/", after=lambda: Fault.NO_ANSWER)

    result = ansible.module("compute_service", host=dead, state="absent")

    assert lost.ran and not result["failed"]
    assert dead not in world.cloud.compute_services()
