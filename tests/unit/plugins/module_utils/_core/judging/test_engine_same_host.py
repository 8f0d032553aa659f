"""A resize within one host: both allocations are on the server's own tree.

The question is which of them the guest uses.

While it lasts the migration has the old allocation and the server the new one. Once it is
confirmed, the new one is needed. When it fails and is rolled back ("Unable to resize disk down."),
Nova first saves the migration as `error`, then the server as ACTIVE without a task, and only then
moves the old allocation back, without checking that it worked (nova/compute/manager.py,
resize_instance, prep_resize and _revert_allocation). If it did not, the server has the old flavor
and the new allocation, and the one that it needs is the migration's. Amounts, and the providers
within the tree, show which is which.
"""

import typing as t

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ..scene import Scene

SMALL = {"VCPU": 1, "MEMORY_MB": 512}
LARGE = {"VCPU": 8, "MEMORY_MB": 16384}


def _of_a_resize(
    status: str, old: t.Mapping[str, t.Mapping[str, int]], new: t.Mapping[str, t.Mapping[str, int]]
) -> Finding:
    """Return the finding about the migration; `old` and `new` are by provider name."""
    scene = Scene()
    here = scene.here
    named = {
        "compute-1": here,
        "gpu-1": scene.provider("gpu-1", here),
        "gpu-2": scene.provider("gpu-2", here),
        "pool": scene.provider("pool", sharing=True),
    }
    server = scene.server(here)
    migration = scene.migration(server, here, here, status, type="resize")
    for consumer, claim in ((server, new), (migration, old)):
        for name, share in claim.items():
            scene.hold(consumer, named[name], amounts=share)
    return scene.found(migration, Policy())


@pytest.mark.parametrize(
    ("old", "new"),
    [(SMALL, LARGE), (LARGE, SMALL), (SMALL, SMALL)],
    ids=["larger", "smaller", "equal"],
)
def test_confirmed_resize_loses_the_old_allocation(
    old: dict[str, int], new: dict[str, int]
) -> None:
    finding = _of_a_resize("confirmed", {"compute-1": old}, {"compute-1": new})

    assert (finding.verdict, finding.kind) == ("orphaned", "ended_migration")


def test_confirmed_resize_loses_the_old_device() -> None:
    old, new = (
        {"compute-1": SMALL, "gpu-1": {"VGPU": 1}},
        {"compute-1": SMALL, "gpu-2": {"VGPU": 1}},
    )

    assert _of_a_resize("confirmed", old, new).verdict == "orphaned"


@pytest.mark.parametrize(
    ("held", "verdict"), [({}, "undecided"), ({"pool": {"DISK_GB": 10}}, "orphaned")]
)
def test_confirmed_resize_loses_the_old_pool_allocation_if_the_server_has_one(
    held: dict[str, t.Any], verdict: str
) -> None:
    finding = _of_a_resize(
        "confirmed", {"compute-1": SMALL, "pool": {"DISK_GB": 80}}, {"compute-1": SMALL, **held}
    )

    assert finding.verdict == verdict


@pytest.mark.parametrize("status", ["error", "failed", "reverted", "cancelled"])
def test_failed_resize_loses_the_old_allocation_if_the_server_has_as_much(status: str) -> None:
    finding = _of_a_resize(status, {"compute-1": SMALL}, {"compute-1": LARGE})

    assert (finding.verdict, finding.kind) == ("orphaned", "ended_migration")


@pytest.mark.parametrize("status", ["error", "reverted"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"compute-1": LARGE}, {"compute-1": SMALL}),
        ({"compute-1": SMALL, "gpu-1": {"VGPU": 1}}, {"compute-1": LARGE, "gpu-2": {"VGPU": 1}}),
        (
            {"compute-1": SMALL, "pool": {"DISK_GB": 80}},
            {"compute-1": SMALL, "pool": {"DISK_GB": 10}},
        ),
    ],
    ids=["less of the host", "another device", "less of the pool"],
)
def test_failed_resize_keeps_the_old_allocation_if_the_server_has_less(
    status: str, old: dict[str, dict[str, int]], new: dict[str, dict[str, int]]
) -> None:
    finding = _of_a_resize(status, old, new)

    assert (finding.verdict, finding.change) == ("undecided", None), finding.reason
