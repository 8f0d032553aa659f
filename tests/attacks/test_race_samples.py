"""The live servers on which the credentials are tested may be deleted meanwhile like any other."""

import pytest
from minicloud_ctl import servers

from ..integration.interposer import Wires
from ..integration.support import Ansible, Minicloud
from ..integration.world import World

pytestmark = pytest.mark.long
OWN_CLOUD = True


def test_only_server_of_a_cloud_deleted_before_its_lookup_blames_nobody(
    ansible: Ansible, wires: Wires, world: World
) -> None:
    server = world.boot("compute-1")
    asked = wires.nova.on(
        "GET", f"/servers/{server}", before=lambda: servers.delete(world.cloud, server)
    )

    result = ansible.module("orphan_detect", min_age="0")

    assert asked.ran
    assert result["summary"]["coverage"]["failed_checks"] == []


def test_server_deleted_before_the_deleted_listing_proves_nothing(
    ansible: Ansible, minicloud: Minicloud, wires: Wires, world: World
) -> None:
    minicloud.scenario("healthy")
    world.boot_samples()

    def is_deleted() -> None:
        servers.delete(world.cloud, wires.nova.requests[-1].rpartition("=")[2])

    asked = wires.nova.on("GET", "deleted=True&uuid=", before=is_deleted)

    result = ansible.module("orphan_detect", min_age="0")

    assert asked.ran
    assert result["summary"]["coverage"]["failed_checks"] == []
