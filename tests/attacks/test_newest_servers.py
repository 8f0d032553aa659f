"""The credentials are tested on live servers.

Whatever the newest servers of a cloud are, an administrator's credentials pass.
"""

import json
import typing as t
import uuid

import pytest
from minicloud_ctl import servers
from minicloud_ctl.cloud import Cloud

from ..integration.strays import NO_AGE
from ..integration.support import Ansible, Minicloud, Placement
from ..integration.world import World

# More than the number of newest servers on which credentials are tested.
FAILED, OWN = 25, 21


@pytest.fixture(scope="module", autouse=True)
def orphan(minicloud: Minicloud) -> str:
    """An orphan that may be removed while all soundness checks pass."""
    minicloud.scenario("healthy", "deleted_server")
    return minicloud.truth("deleted_server")["server"]


@pytest.fixture(scope="module")
def failed_boots(world: World) -> list[str]:
    """The newest servers, none of which has a host."""
    flavor = world.cloud.flavor(world.flavor(100000, 512, 1))
    document = {"imageRef": world.cloud.image(), "flavorRef": flavor, "networks": "none"}
    made = []
    for _number in range(FAILED):
        body = {"server": {**document, "name": f"failed-{uuid.uuid4()}"}}
        made.append(world.cloud.nova("POST", "/servers", body)["server"]["id"])
    world.forget(*made)
    for server in made:
        servers.settle(world.cloud, server, None, "ERROR")
    return made


@pytest.fixture(scope="module")
def own(world: World) -> list[str]:
    """The newest servers, all in the project of the credentials.

    The last one is the newest of all.
    """
    cloud = Cloud(world.state, project="admin")
    made = [
        servers.request_boot(cloud, f"own-{uuid.uuid4()}", f"compute-{number % 4 + 1}")
        for number in range(OWN)
    ]
    world.forget(*made)
    for server in made:
        servers.settle(cloud, server, None)
    made.append(world.boot("compute-1", project="admin"))
    return made


def detected(ansible: Ansible) -> dict[str, t.Any]:
    """Return the findings of a detection by consumer, and its summary under an empty key."""
    dest = ansible.folder / "findings.json"
    told = ansible.direct("orphan_detect", dest=str(dest), **NO_AGE)
    assert not told["failed"], told.get("msg")
    found = json.loads(dest.read_text())
    entries = (entry for key in ("findings", "protected", "undecided") for entry in found[key])
    return {**{entry["consumer"]: entry for entry in entries}, "": found["summary"]}


def newest(world: World, count: int) -> list[str]:
    listed = world.cloud.nova("GET", f"/servers/detail?all_tenants=1&limit={count}")["servers"]
    return [server["id"] for server in listed]


@pytest.mark.long
def test_newest_servers_without_a_host_pass_the_soundness_check(
    ansible: Ansible, world: World, failed_boots: list[str], orphan: str
) -> None:
    assert set(newest(world, FAILED)) == set(failed_boots)

    found = detected(ansible)

    assert found[""]["coverage"]["complete"] and found[""]["coverage"]["failed_checks"] == []
    assert found[orphan]["verdict"] == "orphaned" and found[orphan]["change"]


@pytest.mark.long
def test_own_newest_servers_pass_the_soundness_check_with_one_lost_mapping(
    ansible: Ansible, placement: Placement, world: World, own: list[str], orphan: str
) -> None:
    """Its neighbours, of the same project, are shown.

    Credentials that get a 404 for it do not hide anything.
    """
    lost = own[-1]
    assert newest(world, OWN + 1)[0] == lost and set(newest(world, OWN + 1)) == set(own)
    world.claim_also(lost, "compute-2")
    before = placement.held(lost)

    with world.lost_mapping(lost):
        found = detected(ansible)

    assert found[""]["coverage"]["complete"] and found[""]["coverage"]["failed_checks"] == []
    assert found[orphan]["verdict"] == "orphaned" and found[orphan]["change"]
    assert found[lost]["verdict"] == "undecided" and found[lost]["change"] is None
    assert placement.held(lost) == before
