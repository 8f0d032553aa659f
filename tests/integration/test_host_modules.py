"""`compute_host` and the services of `compute_host_info` against the real services."""

import json
import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers

from .interposer import Answered, Asked, Fault, Wires
from .support import Aggregate, Ansible, Minicloud, Placement, long
from .world import World

STOCK = {"VCPU": {"total": 8}}
UP = {"status": "enabled", "forced_down": False}
RUSTY = {"status": "disabled", "disabled_reason": "rusty"}
# The listings of hosts, and what a row calls its host.
HOST_LISTINGS = {
    "services": "host",
    "hypervisors": "hypervisor_hostname",
    "resource_providers": "name",
}
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


def _uuids(entries: list[dict[str, str]]) -> list[str]:
    return [entry["uuid"] for entry in entries]


@pytest.mark.parametrize("named_by", ["name", long("root")])
def test_the_tree_of_a_former_host_is_deleted_once_children_first(
    ansible: Ansible, placement: Placement, tree: dict[str, str], named_by: str
) -> None:
    before = placement.providers()
    wish = {"host": tree[named_by], **ABSENT}

    foretold = ansible.module("compute_host", "--check", "--diff", **wish)
    assert placement.providers() == before
    done = ansible.module("compute_host", **wish)
    again = ansible.module("compute_host", **wish)

    order = [tree["leaf"], tree["child"], tree["root"]]
    assert _uuids(done["deleted"]["providers"]) == order
    assert foretold["deleted"] == done["deleted"]
    assert f'-            "name": "{tree["name"]} port"' in foretold["printed_diff"]
    assert (foretold["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert again["deleted"]["providers"] == []
    assert set(before.items()) - set(placement.providers().items()) == {
        (tree["name"], tree["root"]),
        (f"{tree['name']} agent", tree["child"]),
        (f"{tree['name']} port", tree["leaf"]),
    }


def test_a_provider_allocated_at_the_last_moment_is_kept(
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

    result = ansible.module("compute_host", host=tree["root"], **ABSENT)

    assert hook.ran and result["failed"] and result["changed"]
    assert "has allocations" in result["msg"]
    assert _uuids(result["deleted"]["providers"]) == [tree["leaf"], tree["child"]]
    assert list(placement.held(consumer[0])) == [tree["root"]]


def test_lost_answer_to_a_provider_deletion_is_no_failure(
    ansible: Ansible, placement: Placement, wires: Wires, tree: dict[str, str]
) -> None:
    lost = wires.placement.on("DELETE", tree["root"], after=lambda: Fault.NO_ANSWER)

    result = ansible.module("compute_host", host=tree["root"], **ABSENT)

    assert lost.ran and not result["failed"]
    assert tree["root"] not in placement.providers().values()


@pytest.fixture
def dead_cell(minicloud: Minicloud) -> Iterator[str]:
    """A host in a cell that does not answer."""
    minicloud.scenario("cell_down")
    yield minicloud.truth("cell_down")["hosts"]["host"]
    minicloud.run("scenario", "--undo", "cell_down")


@pytest.mark.long
def test_nothing_is_deleted_while_a_cell_is_down(
    ansible: Ansible, placement: Placement, tree: dict[str, str], dead_cell: str
) -> None:
    before = placement.providers()

    shown = ansible.module("compute_host_info", hosts=dead_cell, services_only=True)["hosts"]
    refused = [
        ansible.module("compute_host", host=host, **ABSENT)
        for host in (dead_cell, "compute-1", "nonesuch", tree["root"])
    ]
    disabled = ansible.module("compute_host", host=dead_cell, state="disabled")

    (service,) = [host["service"] for host in shown]
    assert (service["id"], service["status"], service["state"]) == (None, "UNKNOWN", None)
    for result in refused:
        assert "answered 500" in result["msg"]
    assert f"about {dead_cell}" in disabled["msg"]
    assert all(result["failed"] for result in (*refused, disabled))
    assert placement.providers() == before


@pytest.mark.long
def test_a_tree_beside_another_nova_is_deleted_only_when_allowed(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, tree: dict[str, str]
) -> None:
    minicloud.scenario("second_nova")
    node = minicloud.truth("second_nova")["allocations"][0]["provider"]

    unsure = ansible.module("compute_host", host=tree["root"], state="absent")
    others = ansible.module("compute_host", host=node, **ABSENT)
    told = ansible.module("compute_host", host=tree["root"], **ABSENT)

    assert [blocker["kind"] for blocker in unsure["blockers"]] == ["provider_in_use"]
    assert "RegionTwo" in unsure["msg"]
    server = minicloud.truth("second_nova")["server"]
    assert others["failed"] and server in [one["subject"] for one in others["blockers"]]
    assert told["changed"]
    assert node in placement.providers().values()


@pytest.mark.parametrize("role", ["child", "leaf"])
def test_a_provider_below_a_root_is_no_absent_host(
    ansible: Ansible, placement: Placement, tree: dict[str, str], role: str
) -> None:
    result = ansible.module("compute_host", host=tree[role], **ABSENT)

    assert result["failed"] and tree["name"] in result["msg"]
    assert tree[role] in placement.providers().values()


@pytest.mark.parametrize("name", ["nonesuch", "11111111-2222-4333-8444-555555555555"])
def test_a_host_of_which_there_is_nothing_is_absent(ansible: Ansible, name: str) -> None:
    result = ansible.module("compute_host", host=name, **ABSENT)

    assert (result["failed"], result["changed"]) == (False, False)
    assert not any(result["deleted"].values())


def test_info_shows_compute_services_as_nova_has_them(
    ansible: Ansible, world: World, host: str
) -> None:
    raw = {
        service["id"]: service
        for service in world.cloud.nova("GET", "/os-services")["services"]
        if service["binary"] == "nova-compute"
    }

    every = ansible.module("compute_host_info", services_only=True)["hosts"]
    some = ansible.module("compute_host_info", hosts=[host, "nonesuch"], services_only=True)

    assert {entry["service"]["id"] for entry in every} == set(raw)
    steady = ("id", "host", "binary", "zone", "status", "forced_down", "disabled_reason")
    assert [{key: entry["service"][key] for key in steady} for entry in every] == [
        {key: raw[entry["service"]["id"]][key] for key in steady} for entry in every
    ]
    assert [(entry["name"], entry["service"]["state"]) for entry in some["hosts"]] == [(host, "up")]


@pytest.mark.parametrize(
    ("given", "wish", "becomes"),
    [
        (
            UP,
            {"state": "disabled", "disabled_reason": "rusty: 1"},
            {"status": "disabled", "disabled_reason": "rusty: 1"},
        ),
        long(
            RUSTY,
            {"state": "disabled", "forced_down": True},
            {
                "forced_down": True,
                "state": "down",
                "status": "disabled",
                "disabled_reason": "rusty",
            },
        ),
        (
            {**RUSTY, "forced_down": True},
            {"state": "enabled", "forced_down": False},
            {"forced_down": False, "status": "enabled", "disabled_reason": None},
        ),
    ],
)
def test_a_service_is_changed_once(
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

    foretold = ansible.module("compute_host", "--check", "--diff", host=host, **wish)
    assert {**_service(world, host), "updated_at": before["updated_at"]} == before
    done = ansible.module("compute_host", host=host, **wish)
    again = ansible.module("compute_host", host=host, **wish)

    assert (foretold["changed"], done["changed"], again["changed"]) == (True, True, False)
    for shown in (foretold["service"], done["service"], again["service"], _service(world, host)):
        assert shown.items() >= becomes.items()
    for key in {key for key, value in becomes.items() if before[key] != value}:
        assert f'+    "{key}": ' in foretold["printed_diff"]
    servers.update_service(world.cloud, host, UP)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"host": "nonesuch", "state": "enabled"}, "Nova has no compute service on 'nonesuch'"),
        ({"state": "enabled", "disabled_reason": "rusty"}, "disabled_reason requires"),
        ({"state": "absent", "forced_down": True}, "forced_down is for"),
        ({"host": " ", "state": "absent"}, "host must not be empty"),
    ],
)
def test_module_fails_with_the_reason_for_an_impossible_state(
    ansible: Ansible, arguments: dict[str, t.Any], said: str
) -> None:
    result = ansible.module("compute_host", **{"host": "compute-1", **arguments})

    assert result["failed"]
    assert said in result["msg"]


def test_a_host_is_deleted_once_and_its_record_says_what_it_had(
    ansible: Ansible, world: World, placement: Placement, dead: str
) -> None:
    service, provider = _service(world, dead), world.provider(dead)
    path = ansible.folder / "host.json"
    wish = {"host": dead, "record": str(path), **ABSENT}

    foretold = ansible.module("compute_host", "--check", "--diff", **wish)
    assert _service(world, dead)["id"] == service["id"] and not path.exists()
    done = ansible.module("compute_host", **wish)
    again = ansible.module("compute_host", **wish)

    assert (foretold["changed"], done["changed"], again["changed"]) == (True, True, False)
    assert f'-    "service": "{service["id"]}"' in foretold["printed_diff"]
    assert foretold["deleted"] == done["deleted"]
    assert done["deleted"]["service"] == service["id"]
    assert _uuids(done["deleted"]["providers"]) == [provider]
    assert dead not in world.cloud.compute_services()
    assert dead not in world.cloud.hypervisors()
    assert dead not in placement.providers()
    record = json.loads(path.read_text())["hosts"][0]["record"]
    assert record["begun"] and record["service"]["id"] == service["id"]
    assert _uuids(record["providers"]) == [provider]


def test_a_host_whose_nova_compute_is_up_is_kept(ansible: Ansible, world: World, host: str) -> None:
    refused = ansible.module("compute_host", host=host, **ABSENT)
    foretold = ansible.module("compute_host", "--check", host=host, assume_stopped=True, **ABSENT)
    again = ansible.module("compute_host", host=host, assume_stopped=True, **ABSENT)

    for result in (refused, again):
        assert result["failed"] and "service_up" in [one["kind"] for one in result["blockers"]]
    assert foretold["changed"] and host in world.cloud.compute_services()


def test_a_host_is_kept_when_something_comes_to_it_at_the_last_moment(
    ansible: Ansible, world: World, wires: Wires, dead: str, claim: t.Callable[[str], str]
) -> None:
    """Nova would delete the service, and leave the provider behind."""
    provider = world.provider(dead)
    consumer: list[str] = []
    with Aggregate(world.cloud, dead, dead) as group:
        path = f"{group.path}/action"
        hook = wires.nova.on("POST", path, after=lambda: consumer.append(claim(provider)))

        result = ansible.module("compute_host", host=dead, **ABSENT)

    assert hook.ran and result["failed"]
    assert consumer[0] in result["msg"]
    # What was changed by then is returned.
    assert result["changed"] and [one["name"] for one in result["deleted"]["aggregates"]] == [dead]
    assert result["deleted"]["service"] is None
    assert dead in world.cloud.compute_services()


def test_a_service_whose_cell_falls_silent_at_the_last_moment_is_kept(
    ansible: Ansible, world: World, wires: Wires, dead: str
) -> None:
    """Nova lists such a service without its ID, as if it were gone."""
    group = Aggregate(world.cloud, dead, dead)
    left = wires.nova.on("POST", f"{group.path}/action")

    def hide(asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        answered = ask(asked)
        if not left.seen or not asked.path.endswith("/os-services"):
            return answered
        services = answered.json["services"]
        for service in services:
            if service["host"] == dead:
                service.update(id=None, status="UNKNOWN", state=None)
        return answered.replace_json({"services": services})

    wires.nova.middlebox = hide

    with group:
        result = ansible.module("compute_host", host=dead, **ABSENT)

    assert result["failed"] and result["deleted"]["service"] is None
    assert dead in world.cloud.compute_services()


@pytest.mark.parametrize("has_provider", [long(True), False])
def test_a_host_that_only_the_listings_lack_stays_in_its_aggregates(
    ansible: Ansible, world: World, wires: Wires, host: str, has_provider: bool
) -> None:
    """As with an API worker that does not know the host's cell; it may have bare metal nodes."""

    def hide(asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        answered = ask(asked)
        for key, name in HOST_LISTINGS.items() if asked.method == "GET" else ():
            rows = answered.json.get(key)
            if isinstance(rows, list):
                shown = [row for row in rows if row.get(name) != host]
                answered = answered.replace_json({**answered.json, key: shown})
        return answered

    wires.nova.middlebox = hide
    if not has_provider:
        wires.placement.middlebox = hide

    with Aggregate(world.cloud, host, host) as group:
        result = ansible.module("compute_host", host=host, **ABSENT)

        assert result["failed"] and group.hosts == [host]


@pytest.mark.long
def test_lost_answer_to_a_service_deletion_is_no_failure(
    ansible: Ansible, world: World, wires: Wires, dead: str
) -> None:
    lost = wires.nova.on("DELETE", "/os-services/", after=lambda: Fault.NO_ANSWER)

    result = ansible.module("compute_host", host=dead, **ABSENT)

    assert lost.ran and not result["failed"]
    assert dead not in world.cloud.compute_services()
