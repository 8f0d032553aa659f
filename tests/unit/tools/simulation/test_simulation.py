"""The simulated cloud, and the table that `make simulate` writes."""

import json
from pathlib import Path

import pytest
from simulation import nova, page, placement, results
from simulation import world as w
from simulation.answers import Request
from simulation.results import FULL, Result, Results
from simulation.runs import Runs, serve
from simulation.world import World, build_uuid, parse_uuid


@pytest.mark.parametrize(("kind", "number"), [(w.SERVER, 0), (w.ORPHAN, 1), (w.NODE, 2**32 - 1)])
def test_uuid_says_what_it_is_of(kind: int, number: int) -> None:
    assert parse_uuid(build_uuid(kind, number)) == (kind, number)


@pytest.mark.parametrize(("hosts", "orphans"), [(10, 0), (10, 3), (10, 10), (3, 10)])
def test_every_orphan_is_on_one_host(hosts: int, orphans: int) -> None:
    world = World(hosts, 1, 1, orphans)
    found = [(orphan, host) for host in range(hosts) for orphan in world.list_orphans_on(host)]

    assert found == [(orphan, world.get_host_of_orphan(orphan)) for orphan in range(orphans)]


def test_only_orphans_can_be_removed() -> None:
    world = World(2, 1, 1, 1)
    empty = {"allocations": {}, "consumer_generation": 1}

    removal = Request("POST", "/allocations", {}, {build_uuid(w.ORPHAN, 0): empty})
    assert placement.answer(removal, world).status == 204
    assert world.removed == {0}
    with pytest.raises(ValueError, match="a run changes"):
        placement.answer(
            Request("POST", "/allocations", {}, {build_uuid(w.SERVER, 0): empty}), world
        )


def test_cell_that_is_down_hides_its_servers_and_all_compute_nodes() -> None:
    world = World(4, 1, 2, 0, down=1)
    servers = [f"/servers/{build_uuid(w.SERVER, number)}" for number in (0, 3)]
    paths = ["/os-hypervisors/detail", *servers]

    assert [nova.answer(Request("GET", path, {}), world).status for path in paths] == [
        500,
        200,
        500,
    ]
    services = nova.answer(Request("GET", "/os-services", {}), world).body["services"]
    assert [service["status"] for service in services] == ["enabled"] * 2 + ["UNKNOWN"] * 2


def test_detection_finds_the_orphans_of_a_simulated_cloud(tmp_path: Path) -> None:
    cloud = serve(World(4, 2, 2, 3))
    result = Runs(cloud, tmp_path, shards=2).table[FULL]()

    assert (result.findings, cloud.failures) == (3, [])
    assert result.requests["provider_allocations"] == 4


def test_table_is_written_between_its_marks(tmp_path: Path) -> None:
    measured = Results(50_000, 20, 70, 1000, 16)
    measured.runs[FULL] = Result(FULL, 90.0, 800, {"server": 1200}, {"findings.json": 6.2}, 1000)
    kept, path = tmp_path / "results.json", tmp_path / "page.md"
    measured.save(kept)
    path.write_text("Before\n<!-- begin simulation -->\nold\n<!-- end simulation -->\nAfter\n")
    loaded = results.load(kept)
    assert loaded == measured

    page.write(path, loaded)

    text = path.read_text()
    assert text.startswith("Before\n") and text.endswith("After\n") and "old" not in text
    assert "| detection of everything | 1.5 | 1 200 | 800 MiB | `findings.json` 6.2 MiB |" in text
    assert json.loads(kept.read_text())["hosts"] == 50_000
