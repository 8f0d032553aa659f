"""The truth about allocations: what is needed, what is left, and which changes are wrong."""

import json
import typing as t

import pytest

from ....judges.nova.truth import FOREIGN, KEPT, LEFT, NEEDED, ONLY, State, judge_change

SERVER, MOVE = "server", "move"
AMOUNTS = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}


def make_state(
    server: t.Mapping[str, t.Any] | None = None,
    move: t.Mapping[str, t.Any] | None = None,
    allocations: t.Iterable[tuple[str, str, t.Mapping[str, int]]] = (),
    ports: t.Mapping[str, int] | None = None,
) -> State:
    """Return a cloud with two hosts and a server on the first; `rp-1` is a child of `node-1`."""
    sizes = {"vcpus": 2, "memory_mb": 1024, "root_gb": 10, "ephemeral_gb": 0, "swap": 0}
    flavor = {**sizes, "extra_specs": {"resources:VGPU": "1"}}
    place = {"host": "host-1", "node": "host-1", "deleted": 0, "hidden": 0}
    state = {"vm_state": "active", "task_state": None}
    row = {"uuid": SERVER, "project_id": "project", "image_ref": "image", **place, **state}
    row["flavor"] = json.dumps({"cur": {"nova_object.data": flavor}})
    migration = {"uuid": MOVE, "instance_uuid": SERVER, "source_compute": "host-2", "deleted": 0}
    migration |= {"status": "confirmed", "migration_type": "migration"}
    nodes = [
        {"uuid": f"node-{n}", "host": f"host-{n}", "hypervisor_hostname": f"host-{n}", "deleted": 0}
        for n in (1, 2)
    ]
    return State(
        instances=[{**row, **(server or {})}],
        migrations=[] if move is None else [{**migration, **move}],
        nodes=nodes,
        providers={
            uuid: {"uuid": uuid, "root": root}
            for uuid, root in (("node-1", "node-1"), ("rp-1", "node-1"), ("node-2", "node-2"))
        },
        allocations=[
            {"consumer": consumer, "provider": provider, "class": name, "used": used}
            for consumer, provider, amounts in allocations
            for name, used in amounts.items()
        ],
        port_requests={SERVER: dict(ports or {})},
    )


def make_change(
    consumer: str, before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    def build(amounts: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        entries = {provider: {"resources": used} for provider, used in amounts.items()}
        return {"allocations": entries, "project_id": "project"}

    change = {"consumer": consumer, "action": "reduce" if after else "remove", "partner": None}
    return {**change, "before": build(before), "after": build(after)}


BOTH = ((SERVER, "node-1", AMOUNTS), (SERVER, "node-2", AMOUNTS))


@pytest.mark.parametrize(
    ("server", "move", "root", "expected"),
    [
        ({}, None, "node-1", NEEDED),
        ({}, None, "node-2", LEFT),
        ({"task_state": "deleting"}, None, "node-2", NEEDED),
        ({"vm_state": "resized"}, {}, "node-2", NEEDED),
        ({}, {"status": "migrating"}, "node-2", NEEDED),
        ({}, {"status": "done", "migration_type": "evacuation"}, "node-2", KEPT),
        ({}, {"status": "completed", "migration_type": "evacuation"}, "node-2", LEFT),
        ({"deleted": 1}, None, "node-1", LEFT),
        ({"host": None, "node": None, "vm_state": "error"}, None, "node-1", LEFT),
        ({"host": None, "node": None, "vm_state": "active"}, None, "node-1", NEEDED),
    ],
)
def test_server_needs_its_host_and_everything_under_way(
    server: dict[str, t.Any], move: dict[str, t.Any] | None, root: str, expected: str
) -> None:
    assert make_state(server, move, BOTH).classify(SERVER, root)[0] == expected


@pytest.mark.parametrize(
    ("server", "move", "root", "expected"),
    [
        ({}, {}, "node-2", LEFT),
        ({}, {"status": "finished"}, "node-2", NEEDED),
        ({"task_state": "resize_reverting"}, {}, "node-2", NEEDED),
        # The server itself has nothing on its host, so the migration has what it needs.
        ({}, {"status": "error"}, "node-1", ONLY),
        ({"deleted": 1}, {"status": "finished"}, "node-2", LEFT),
    ],
)
def test_migration_needs_its_allocation_until_it_has_ended(
    server: dict[str, t.Any], move: dict[str, t.Any], root: str, expected: str
) -> None:
    state = make_state(server, move, [(MOVE, root, AMOUNTS)])

    assert state.classify(MOVE, root)[0] == expected


def test_scheduled_server_needs_what_it_has() -> None:
    state = make_state()
    state.build_requests = {"new"}

    assert state.classify("new", "node-2")[0] == NEEDED
    assert state.classify("other", "node-2")[0] == FOREIGN


def test_removal_of_a_needed_allocation_is_wrong() -> None:
    removal = make_change(SERVER, {"node-1": AMOUNTS}, {})

    assert judge_change(make_state(), "deleted_server", removal)
    assert judge_change(make_state({"deleted": 1}), "deleted_server", removal) == []


def test_removal_from_another_host_is_right_only_after_the_move() -> None:
    change = make_change(SERVER, {"node-1": AMOUNTS, "node-2": AMOUNTS}, {"node-1": AMOUNTS})

    assert judge_change(make_state(allocations=BOTH), "extra_host", change) == []
    moving = make_state(move={"status": "migrating"}, allocations=BOTH)
    assert judge_change(moving, "extra_host", change)


def test_only_allocation_of_a_server_must_be_replaced_by_the_same_change() -> None:
    state = make_state(move={"status": "error"}, allocations=[(MOVE, "node-1", AMOUNTS)])
    removal = make_change(MOVE, {"node-1": AMOUNTS}, {})

    assert judge_change(state, "ended_migration", removal)
    partner = make_change(SERVER, {}, {"node-1": AMOUNTS})
    assert judge_change(state, "unreverted_allocation", {**removal, "partner": partner}) == []


@pytest.mark.parametrize(
    ("before", "after", "is_wrong"),
    [
        ({"VCPU": 4}, {"VCPU": 2}, False),
        ({"VCPU": 4}, {"VCPU": 1}, True),
        ({"VGPU": 2}, {"VGPU": 1}, False),
        ({"VGPU": 1}, {}, True),
        # Nothing says how much of it is needed.
        ({"CUSTOM_PCI": 1}, {}, True),
        ({"NET_BW_EGR_KILOBIT_PER_SEC": 9}, {"NET_BW_EGR_KILOBIT_PER_SEC": 5}, False),
        ({"NET_BW_EGR_KILOBIT_PER_SEC": 9}, {"NET_BW_EGR_KILOBIT_PER_SEC": 4}, True),
    ],
)
def test_reduction_must_leave_what_flavor_and_ports_need(
    before: dict[str, int], after: dict[str, int], is_wrong: bool
) -> None:
    state = make_state(ports={"NET_BW_EGR_KILOBIT_PER_SEC": 5})
    change = make_change(SERVER, {"rp-1": before}, {"rp-1": after} if after else {})

    assert bool(judge_change(state, "wrong_amount", change)) == is_wrong


def test_gain_on_a_host_where_the_server_is_not_is_wrong() -> None:
    for node, is_wrong in (("node-2", True), ("node-1", False)):
        gain = make_change(SERVER, {}, {node: AMOUNTS})
        assert bool(judge_change(make_state(), "missing_allocation", gain)) == is_wrong


def test_other_project_is_wrong() -> None:
    change = make_change(SERVER, {"node-1": AMOUNTS}, {"node-1": AMOUNTS})
    change["after"]["project_id"] = "other"

    assert judge_change(make_state(), "wrong_owner", change)


def test_foreign_consumer_is_only_an_unknown_consumer() -> None:
    change = make_change("foreign", {"node-1": AMOUNTS}, {})

    assert judge_change(make_state(), "deleted_server", change)
    assert judge_change(make_state(), "unknown_consumer", change) == []


def test_provider_of_a_compute_node_or_with_an_allocation_is_not_deleted() -> None:
    state = make_state(allocations=[(SERVER, "gone", AMOUNTS)])

    for uuid, is_wrong in (("node-1", True), ("gone", True), ("empty", False)):
        change = {"action": "delete_providers", "providers": [{"uuid": uuid}]}
        assert bool(judge_change(state, "orphaned_provider", change)) == is_wrong
