# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A reading that is not sound as a whole: findings are shown, nothing becomes removable, and the cause is named."""

from __future__ import annotations

import typing as t

import pytest

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.support import Ansible, Minicloud, Placement

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


@pytest.mark.parametrize("cloud", ["minicloud-demo", "minicloud-reader"])
def test_credentials_that_see_too_little(ansible: Ansible, placement: Placement, cloud: str) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_cloud": cloud})

    assert run.status != 0
    assert "403" in run.output
    assert "Traceback" not in run.output
    assert placement.everything() == before
