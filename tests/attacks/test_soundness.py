"""A reading that is not sound as a whole.

Findings are shown, nothing becomes removable, and the cause is named.
"""

import pytest

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from ..integration.interposer import Wires
from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed, long
from ..integration.world import World

pytestmark = pytest.mark.usefixtures("orphan")


@pytest.fixture(scope="module")
def orphan(minicloud: Minicloud) -> None:
    minicloud.scenario("healthy", "deleted_server", "second_nova")


def test_wrong_region_fails_the_soundness_check(ansible: Ansible, placement: Placement) -> None:
    """Another Nova's region has the same Placement: no host with allocations is its own."""
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_cloud": "minicloud-second"}
    )

    assert placement.everything() == before
    assert run.read("findings.json")["findings"] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "restore", "said"),
    [
        (
            "uuid = '11111111-2222-4333-8444-555555555555'",
            "uuid = ?",
            "0 of 1 hypervisors have a resource provider in this Placement",
        ),
        (
            "deleted = id",
            "deleted = 0 WHERE uuid = ?",
            "0 of 0 hypervisors have a resource provider in this Placement",
        ),
    ],
    ids=["hosts unknown to Placement", "no hosts"],
)
def test_wrong_nova_fails_the_soundness_check(
    ansible: Ansible,
    placement: Placement,
    minicloud: Minicloud,
    world: World,
    change: str,
    restore: str,
    said: str,
) -> None:
    before = placement.everything()
    node = minicloud.truth("second_nova")["allocations"][0]["provider"]
    variables = {
        "orphan_cleanup_cloud": "minicloud-second",
        "orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHAN_KINDS],
    }
    with world.paused("nova-compute-second-compute-1"):
        world.sql("second_cell1", f"UPDATE compute_nodes SET {change}")
        run = ansible.playbook("cleanup_orphans", variables=variables)
        world.sql("second_cell1", f"UPDATE compute_nodes SET {restore}", node)

    assert run.status != 0
    assert said in run.told
    assert_nothing_changed(run, before, placement)


@pytest.mark.parametrize("cloud", [long("minicloud-demo"), "minicloud-reader"])
def test_insufficient_permissions_fail_the_soundness_check(
    ansible: Ansible, placement: Placement, cloud: str
) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_cloud": cloud})

    assert run.status != 0
    assert "403" in run.output
    assert "Traceback" not in run.output
    assert placement.everything() == before


@pytest.mark.parametrize(
    ("service", "newest", "needed"),
    [("nova", "2.68", "2.69"), long("nova", "2.58", "2.59"), long("placement", "1.27", "1.28")],
)
def test_too_old_services_leave_unprovable_consumers_alone(
    ansible: Ansible,
    placement: Placement,
    minicloud: Minicloud,
    wires: Wires,
    service: str,
    newest: str,
    needed: str,
) -> None:
    """Requests that they do not offer are not sent.

    What they cannot prove is reported and left alone.
    """
    before = placement.everything()
    server = minicloud.truth("deleted_server")["allocations"][0]["consumer"]
    getattr(wires, service).offer(newest)

    run = ansible.playbook("cleanup_orphans")

    coverage = run.read("findings.json")["summary"]["coverage"]
    assert run.status != 0 and "microversion_too_old" in coverage["failed_check_ids"]
    said = next(text for text in coverage["failed_checks"] if newest in text)
    assert needed in said and said.lower().startswith(service)
    assert run.entry(server)["verdict"] == "undecided"
    if service == "placement":
        by_module = ansible.module("placement_allocation", consumer=server, state="absent")
        assert by_module["reason_id"] == "cloud_error" and "1.28" in by_module["msg"]
    assert_nothing_changed(run, before, placement)


@pytest.mark.long
def test_placement_without_consumer_types_leaves_unknown_consumers_undecided(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, wires: Wires
) -> None:
    """The owner of a consumer is not visible.

    An unknown consumer is undecided, and other proofs still hold.
    """
    wires.placement.offer("1.37")
    server = minicloud.truth("deleted_server")["allocations"][0]["consumer"]

    run = ansible.playbook(
        "cleanup_orphans", "--check", variables={"orphan_cleanup_consumers": [server]}
    )

    assert run.status == 0, run.output
    assert "unknown_consumer is undecided." in run.told
    assert run.outcome(server)["outcome"] == "removed"
