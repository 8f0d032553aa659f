"""Writes that Placement refuses: foreseen, counted apart, and never the end of a run."""

import re
import typing as t
import uuid
from collections.abc import Iterator

import pytest

from .strays import NO_AGE
from .support import Ansible, Placement
from .world import CLAIM, World

pytestmark = pytest.mark.long

BLOCKED = ("blocked", "blocked_by_capacity")
HOST, OTHER = "compute-1", "compute-2"
ON_HOST, ON_POOL = {"VCPU": 1, "MEMORY_MB": 512}, {"DISK_GB": 2}


@pytest.fixture(scope="module")
def server(world: World) -> str:
    """A live server on HOST."""
    return world.boot(HOST)


@pytest.fixture
def pool(placement: Placement, world: World, server: str) -> Iterator[str]:
    """A shared provider: nova-compute would write the inventory of a host again."""
    sharing = ["MISC_SHARES_VIA_AGGREGATE"]
    pool = placement.create_provider(f"pool-{server}", {"DISK_GB": {"total": 10}}, traits=sharing)
    yield pool
    world.hold(server, {world.provider(HOST): CLAIM})
    placement.change("DELETE", f"/resource_providers/{pool}")


def set_inventory(placement: Placement, provider: str, cls: str, **fields: float) -> None:
    path = f"/resource_providers/{provider}/inventories"
    now = placement.get(path)
    held = {**now["inventories"], cls: {**now["inventories"].get(cls, {}), **fields}}
    placement.change("PUT", path, {**now, "inventories": held})


def clean(ansible: Ansible, consumers: list[str], check_mode: bool = False) -> dict[str, t.Any]:
    """Detect, plan and remediate, and return the result with the outcomes by consumer."""
    findings, plan = (str(ansible.folder / name) for name in ("findings.json", "plan.json"))
    ansible.direct("orphan_detect", dest=findings, consumers=consumers, **NO_AGE)
    kinds = ["extra_host", "missing_allocation", "unknown_consumer"]
    ansible.direct("orphan_plan", findings=findings, kinds=kinds, dest=plan)
    told = ansible.direct(
        "orphan_remediate",
        plan=plan,
        output_dir=str(ansible.folder),
        max_failures=1,
        _ansible_check_mode=check_mode,
        **NO_AGE,
    )
    assert not told.get("failed"), told
    return {**told, **{outcome["consumer"]: outcome for outcome in told["outcomes"]}}


def get_outcome(told: dict[str, t.Any], consumer: str) -> tuple[str, str]:
    return told[consumer]["outcome"], told[consumer]["reason_id"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"max_unit": 1}, "max_unit 1"),
        ({"min_unit": 3}, "min_unit 3"),
        ({"step_size": 3}, "step_size 3"),
        ({}, "no inventory of DISK_GB"),
        # From Placement 14.0 on, what adds nothing to an overuse is made.
        ({"allocation_ratio": 0.1}, "before 14.0"),
    ],
)
def test_reduction_that_placement_always_refuses_keeps_nothing_else_from_being_made(
    ansible: Ansible,
    placement: Placement,
    world: World,
    server: str,
    pool: str,
    fields: dict[str, float],
    told: str,
) -> None:
    kept, other, stray = {world.provider(HOST): ON_HOST, pool: ON_POOL}, world.provider(OTHER), ""
    world.hold(server, {**kept, other: CLAIM})
    if fields:
        set_inventory(placement, pool, "DISK_GB", **fields)
    else:
        left = "(SELECT id FROM resource_providers WHERE uuid = ?)"
        deletion = f"DELETE FROM inventories WHERE resource_provider_id = {left}"
        world.sql("placement", deletion, pool)

    for check_mode in (True, False):
        stray = stray or str(uuid.uuid4())
        world.hold(stray, {other: CLAIM})
        run = clean(ansible, [server, stray], check_mode)
        assert get_outcome(run, stray) == ("removed", "")
        if "allocation_ratio" in fields and get_outcome(run, server) == ("reduced", ""):
            continue
        assert get_outcome(run, server) == BLOCKED and run["tally"]["blocked"] == 1
        assert told in run[server]["reason"] and f"pool-{server}" in run[server]["reason"]
        assert set(placement.held(server)) == {*kept, other}
    assert placement.held(stray) == {}

    usual = {"total": 10, "max_unit": 10, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    set_inventory(placement, pool, "DISK_GB", **usual)
    if set(placement.held(server)) != set(kept):
        assert get_outcome(clean(ansible, [server]), server) == ("reduced", "")
    assert placement.held(server) == kept


@pytest.mark.parametrize("deleted_by_hand", [True, False])
def test_missing_allocation_is_created_once_the_printed_ratio_is_set(
    ansible: Ansible, placement: Placement, world: World, server: str, deleted_by_hand: bool
) -> None:
    """Also where Placement has kept the record of the consumer, which every write has to name."""
    host = world.provider(HOST)
    world.hold(server, {host: CLAIM})
    if deleted_by_hand:
        world.sql("placement", "DELETE FROM allocations WHERE consumer_id = ?", server)
    else:
        world.hold(server, {})
    world.fill(HOST, {"VCPU": 1})
    usual = placement.get(f"/resource_providers/{host}/inventories")["inventories"]["VCPU"]
    used = placement.get(f"/resource_providers/{host}/usages")["usages"]["VCPU"]
    set_inventory(placement, host, "VCPU", allocation_ratio=(used + 0.5) / usual["total"])

    blocked = clean(ansible, [server])

    assert get_outcome(blocked, server) == BLOCKED
    ratio = re.search(r"allocation_ratio of (\S+) is enough", blocked[server]["reason"])
    assert ratio and placement.held(server) == {}
    set_inventory(placement, host, "VCPU", allocation_ratio=float(ratio[1]))

    assert get_outcome(clean(ansible, [server]), server) == ("created", "")
    assert placement.held(server) == {host: CLAIM}
    set_inventory(placement, host, "VCPU", **usual)
