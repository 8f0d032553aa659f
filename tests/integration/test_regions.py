"""Several real clouds in one run.

A failure of one does not stop the cleanup of the others, and the end reports it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from .support import Ansible, Minicloud, Placement

OWN_CLOUD = True
pytestmark = pytest.mark.long
NOWHERE = "http://127.0.0.1:9/v3"


@pytest.fixture(scope="module")
def second_cloud(own_cloud: Minicloud) -> Iterator[Minicloud]:
    """A cloud beside the first, with nothing in common."""
    cloud = Minicloud(
        own_cloud.root, own_cloud.home.with_name(f"{own_cloud.home.name}2"), kept=False
    )
    cloud.forget()
    cloud.run("up", "--computes", "2")
    yield cloud
    cloud.forget()


@pytest.fixture(scope="module")
def orphans(minicloud: Minicloud, second_cloud: Minicloud) -> list[str]:
    """One orphan in each cloud; then a cell of the second fails."""
    found = []
    for cloud in (minicloud, second_cloud):
        cloud.scenario("deleted_server")
        found.append(cloud.truth("deleted_server")["server"])
    second_cloud.scenario("cell_down")
    return found


@pytest.fixture
def inventory(
    ansible: Ansible, minicloud: Minicloud, second_cloud: Minicloud, tmp_path: Path
) -> Path:
    """Both clouds, and one without an answer, as hosts of an inventory."""
    north, south = (
        yaml.safe_load(cloud.clouds_yaml.read_text())["clouds"]["minicloud"]
        for cloud in (minicloud, second_cloud)
    )
    west = {**north, "auth": {**north["auth"], "auth_url": NOWHERE}}
    config = tmp_path / "clouds.yaml"
    config.write_text(yaml.safe_dump({"clouds": {"north": north, "south": south, "west": west}}))
    ansible.environment = {
        name: value for name, value in ansible.environment.items() if not name.startswith("OS_")
    }
    ansible.environment["OS_CLIENT_CONFIG_FILE"] = str(config)
    path = tmp_path / "inventory.json"
    names = {"north": "north", "south": "south", "../west": "west"}
    path.write_text(
        json.dumps(
            {
                "clouds": {
                    "hosts": {
                        name: {"orphan_cleanup_cloud": cloud} for name, cloud in names.items()
                    }
                }
            }
        )
    )
    return path


def _placement(cloud: Minicloud) -> Placement:
    return Placement(
        Connection(
            config=OpenStackConfig(config_files=[str(cloud.clouds_yaml)]).get_one("minicloud")
        ).placement
    )


def test_region_with_a_dead_cell_does_not_block_other_regions(
    ansible: Ansible,
    minicloud: Minicloud,
    second_cloud: Minicloud,
    orphans: list[str],
    inventory: Path,
) -> None:
    north, south = _placement(minicloud), _placement(second_cloud)
    orphan, other = orphans
    resident = second_cloud.truth("cell_down")["server"]
    held = south.held(resident)
    assert north.held(orphan) and south.held(other) and held

    run = ansible.playbook("cleanup_clouds", "--inventory", str(inventory))

    assert not north.held(orphan) and not south.held(other)
    assert south.held(resident) == held
    assert run.status != 0 and "1 of 3" in run.told
    summary = run.read("summary.json")
    rows = {row["name"]: row for row in summary["runs"]}
    assert {name: bool(row["error"]) for name, row in rows.items()} == {
        "north": False,
        "south": False,
        "../west": True,
    }
    assert {name: row["complete"] for name, row in rows.items()} == {
        "north": True,
        "south": False,
        "../west": False,
    }
    assert rows["south"]["unjudged_hosts"] == ["cell2-compute-1"]
    assert NOWHERE.removesuffix("/v3") in rows["../west"]["error"]
    assert (
        rows["north"]["tally"]["removed"] + rows["south"]["tally"]["removed"]
        == summary["totals"]["tally"]["removed"]
    )
    assert rows["south"]["tally"]["removed"] > 0
    assert not summary["complete"]
    # Each has its own folder, and no name leads outside of the common one.
    written = {path.parent.name for path in run.folder.rglob("findings.json")}
    assert written == {"north", "south"}
    assert {path.name for path in run.folder.iterdir()} & {"west", "findings.json"} == set()
    assert rows["north"]["journal"].startswith(str(run.folder / "orphan-cleanup" / "north"))


def test_findings_of_an_earlier_run_are_not_taken_for_this_run(
    ansible: Ansible, orphans: list[str], inventory: Path
) -> None:
    """The folder of the region that fails now has the findings of a run in which it did not."""
    folder = ansible.folder / "orphan-cleanup"
    assert (
        ansible.playbook("detect_clouds", "--inventory", str(inventory), "--limit", "north").status
        == 0
    )
    assert (folder / "north" / "findings.json").exists()
    clouds = yaml.safe_load((ansible.folder / "clouds.yaml").read_text())
    clouds["clouds"]["north"]["auth"]["auth_url"] = NOWHERE
    (ansible.folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))

    run = ansible.playbook("detect_clouds", "--inventory", str(inventory), "--limit", "north")

    assert run.status != 0
    (row,) = run.read("summary.json")["runs"]
    assert (row["findings"], row["verdicts"], row["complete"]) == (None, {}, False)
    assert run.read("summary.json")["totals"]["verdicts"] == {}


def test_fail_on_never_accepts_incomplete_readings(
    ansible: Ansible, orphans: list[str], inventory: Path
) -> None:
    never = {"orphan_cleanup_fail_on": "never"}
    run = ansible.playbook(
        "detect_clouds", "--inventory", str(inventory), "--limit", "south", variables=never
    )

    assert run.status == 0, run.output
    summary = run.read("summary.json")
    assert not summary["complete"] and summary["runs"][0]["partial"]
    assert len(summary["runs"][0]["unjudged_hosts"]) == 1
