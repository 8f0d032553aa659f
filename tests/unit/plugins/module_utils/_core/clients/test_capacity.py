"""What is foreseen of a write is what Placement then answers, with the inventory that decides."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.clients.allocation_writer import AllocationWriter
from .......plugins.module_utils._core.clients.placement import PlacementReader
from .......plugins.module_utils._core.models.change import Change, build_change
from ...placement import HERE, THERE, Placement
from ...trees import inventory

BLOCKED = "blocked_by_capacity"


def _change(placement: Placement, number: int = 0, **after: t.Any) -> Change:
    """Return the change of a consumer, which has 4 VCPU here, to what it has `after`, there too."""
    held = PlacementReader(placement.api()).get_allocation(placement.give(number, VCPU=4)).value
    assert held
    shares = {HERE: after.get("here"), THERE: after.get("there")}
    return build_change(held, resources={uuid: one for uuid, one in shares.items() if one})


@pytest.mark.parametrize(
    ("stock", "after", "others", "told"),
    [
        pytest.param(inventory(8), {"VCPU": 8}, 0, "", id="just fits"),
        pytest.param(inventory(8), {"VCPU": 5}, 4, "allocation_ratio of 1.13 is", id="no room"),
        pytest.param(inventory(8, 4), {"VCPU": 5}, 0, "ratio of 1.25 is enough", id="reserved"),
        pytest.param(inventory(8, 8), {"VCPU": 5}, 0, "capacity of 0", id="all reserved"),
        pytest.param(inventory(8, 0, 0.5), {"VCPU": 3}, 4, "", id="less of an overuse"),
        pytest.param(inventory(8, 0, 0.5), {"VCPU": 4}, 4, "", id="the same overuse"),
        pytest.param({**inventory(8), "max_unit": 3}, {"VCPU": 4}, 0, "max_unit 3", id="max_unit"),
        pytest.param({**inventory(8), "min_unit": 5}, {"VCPU": 4}, 0, "min_unit 5", id="min_unit"),
        pytest.param({**inventory(8), "step_size": 3}, {"VCPU": 4}, 0, "step_size 3", id="step"),
        pytest.param(None, {"VCPU": 4}, 0, "no inventory of VCPU", id="class left the inventory"),
        pytest.param(inventory(8, 0, 0.5), None, 8, "", id="removal of an overuse"),
        pytest.param({**inventory(8), "max_unit": 3}, None, 0, "", id="removal above max_unit"),
        pytest.param(None, None, 0, "no inventory of VCPU", id="removal without an inventory"),
    ],
)
def test_what_is_foreseen_is_what_placement_answers(
    stock: t.Any, after: t.Any, others: int, told: str
) -> None:
    placement = Placement()
    change = _change(placement, here=after)
    if others:
        placement.give(1, VCPU=others)
    placement.stock[HERE] = {"VCPU": stock} if stock else {"MEMORY_MB": inventory()}
    writer = AllocationWriter(placement.api())

    (foreseen,), (error,) = writer.foresee([change], False), writer.write([change])

    assert bool(error) == bool(told)
    # A removal is not foreseen: nothing is read for it.
    assert foreseen == (error.reason if error and after else None)
    if error:
        assert error.reason.id == BLOCKED and told in str(error) and HERE in str(error)


def test_placement_that_refuses_every_overuse_is_known_after_its_first_refusal() -> None:
    placement = Placement()
    placement.is_strict = True
    changes = [_change(placement, number, here={"VCPU": 4}, there={}) for number in range(3)]
    placement.stock[HERE] = {"VCPU": inventory(8)}
    writer = AllocationWriter(placement.api())

    assert writer.foresee(changes, False) == [None] * 3
    errors = writer.write(changes)
    assert [error and error.reason.id for error in errors] == [BLOCKED] * 3
    removal = d.replace(changes[2], after={**changes[2].after, "allocations": {}})
    foreseen = writer.foresee([changes[0], removal, changes[1]], False)
    assert "before 14.0" in str(foreseen[0]) and "ratio of 1.5 is" in str(foreseen[0])
    # What frees enough is made before it.
    assert foreseen[1:] == [None, None]
