# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A reading that is not sound as a whole: findings are shown, nothing becomes removable, and the cause is named."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._judge import ORPHANS
from ansible_collections.osops.placement.tests.integration.support import spared

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.support import Ansible, Minicloud, Placement
    from ansible_collections.osops.placement.tests.integration.world import World

pytestmark = pytest.mark.usefixtures("orphan")


@pytest.fixture(scope="module")
def orphan(minicloud: Minicloud) -> None:
    minicloud.scenario("healthy", "deleted_server", "second_nova")


@pytest.fixture
def dead_cell(minicloud: Minicloud) -> Iterator[None]:
    minicloud.scenario("cell_down")
    yield
    minicloud.run("scenario", "--undo", "cell_down")


@pytest.mark.usefixtures("dead_cell")
def test_a_dead_cell(ansible: Ansible, placement: Placement) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans")

    assert run.status != 0
    assert "cell is not answering" in run.output
    assert "Traceback" not in run.output
    assert placement.everything() == before


def test_the_wrong_region(ansible: Ansible, placement: Placement) -> None:
    """Another Nova's region has the same Placement: none of the hosts with claims is its own."""
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_cloud": "minicloud-second"})

    assert placement.everything() == before
    assert run.read("findings.json")["findings"] == []


@pytest.mark.parametrize(
    ("change", "restore", "said"),
    [
        ("uuid = '11111111-2222-4333-8444-555555555555'", "uuid = ?", "0 of 1 hypervisors are providers here: is this the right region"),
        ("deleted = id", "deleted = 0 WHERE uuid = ?", "0 of 0 hypervisors are providers here: is this the right region"),
    ],
    ids=["hosts unknown to Placement", "no hosts"],
)
def test_a_nova_that_is_not_the_one_of_this_placement(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, world: World, change: str, restore: str, said: str
) -> None:
    before = placement.everything()
    node = minicloud.truth("second_nova")["shares"][0]["provider"]
    variables = {"orphan_cleanup_cloud": "minicloud-second", "orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHANS]}
    with world.paused("nova-compute-second-compute-1"):
        world.sql("second_cell1", f"UPDATE compute_nodes SET {change}")
        run = ansible.playbook("cleanup_orphans", variables=variables)
        world.sql("second_cell1", f"UPDATE compute_nodes SET {restore}", node)

    assert run.status != 0
    assert said in run.told
    spared(run, before, placement)


@pytest.mark.parametrize("cloud", ["minicloud-demo", "minicloud-reader"])
def test_credentials_that_see_too_little(ansible: Ansible, placement: Placement, cloud: str) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_cloud": cloud})

    assert run.status != 0
    assert "403" in run.output
    assert "Traceback" not in run.output
    assert placement.everything() == before
