# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Nova does not know, or not yet: a container on one of its hosts, and a host that it has still to discover."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.tests.integration.support import spared

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.support import Ansible, Minicloud, Placement
    from ansible_collections.osops.placement.tests.integration.world import World

HOST = "compute-4"


@pytest.fixture(scope="module", autouse=True)
def healthy(minicloud: Minicloud) -> None:
    minicloud.scenario("healthy")


@pytest.fixture
def zun(world: World) -> Iterator[None]:
    """A container service in the catalogue. It claims untyped, and on Nova's own providers where it shares Nova's hosts."""
    with world.service("container", "http://127.0.0.1:9"):
        yield


@pytest.mark.usefixtures("zun")
def test_a_container(ansible: Ansible, placement: Placement, world: World) -> None:
    container = world.claim(HOST)
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", "--check")

    assert run.status == 0
    assert run.entry(container)["kind"] == "forgotten_consumer"
    assert "this cloud has container in its catalogue" in run.entry(container)["reason"]
    assert container not in {outcome["consumer"] for outcome in run.read("remediation.json")["outcomes"]}
    spared(run, before, placement)


@pytest.fixture
def undiscovered(world: World) -> Iterator[None]:
    """A host whose nova-compute runs, and that is in no cell yet: Nova leaves it out of its listing without a word."""
    world.provider(HOST)
    world.sql("first_nova_api", "UPDATE host_mappings SET host = ? WHERE host = ?", f"{HOST}-away", HOST)
    yield
    world.sql("first_nova_api", "UPDATE host_mappings SET host = ? WHERE host = ?", HOST, f"{HOST}-away")


def test_a_host_that_is_not_discovered(ansible: Ansible, placement: Placement, world: World, request: pytest.FixtureRequest) -> None:
    server, stray = world.boot(HOST), world.claim(HOST)
    request.getfixturevalue("undiscovered")
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_remediate_kinds": ["forgotten_consumer", "wrong_host"]})

    assert run.status == 0
    assert run.entry(server)["verdict"] == "undecided"
    assert run.entry(stray)["kind"] == "foreign_provider"
    spared(run, before, placement)
