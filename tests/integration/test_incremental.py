"""Readings of what changed, on a real cloud: they find what full readings find, and read little."""

import typing as t
from pathlib import Path

import pytest

from .interposer import interposed
from .support import Ansible, Minicloud, Placement

OWN_CLOUD = True
pytestmark = pytest.mark.long
YOUNG = {"min_age": "0", "unknown_min_age": "0"}
# Each changes the cloud in another way since the last reading: servers, allocations or both.
CHANGES = (
    "extra_host",
    "unconfirmed_resize",
    "healthy",
    "misplaced_allocation",
    "ended_migration",
    "shelved_offloaded",
    "soft_deleted",
    "foreign_consumer",
)


class Reader:
    """Detections that share one memory."""

    def __init__(self, ansible: Ansible, folder: Path) -> None:
        self._ansible = ansible
        self.memory = folder / "findings.memory.json"

    def read(self, mode: str = "incremental", **options: t.Any) -> dict[str, t.Any]:
        result = self._ansible.module(
            "orphan_detect", mode=mode, memory=str(self.memory), **YOUNG, **options
        )
        assert not result["failed"], result.get("msg")
        return result


@pytest.fixture(name="reader")
def _reader(ansible: Ansible, minicloud: Minicloud, tmp_path: Path) -> Reader:
    minicloud.scenario("healthy")
    reader = Reader(ansible, tmp_path)
    reader.read()
    return reader


def _outline(result: dict[str, t.Any]) -> set[tuple[str, str, str]]:
    """Return the id, verdict and reason of each entry."""
    entries = [*result["findings"], *result["protected"], *result["undecided"]]
    return {(entry["id"], entry["verdict"], entry["reason"]) for entry in entries}


def test_first_reading_is_full_and_says_why(ansible: Ansible, tmp_path: Path) -> None:
    reader = Reader(ansible, tmp_path)
    first = reader.read()["summary"]["coverage"]
    second = reader.read()["summary"]["coverage"]

    assert (first["reading"], second["reading"]) == ("full", "incremental")
    assert "no file" in first["why_full"] and second["why_full"] == ""
    assert second["full_at"] == first["full_at"]
    assert reader.memory.stat().st_mode & 0o777 == 0o600


def test_nothing_changed_costs_few_requests(
    reader: Reader, ansible: Ansible, minicloud: Minicloud
) -> None:
    with interposed(ansible, minicloud) as wires:
        # Another endpoint is another cloud to the memory.
        reader.read()
        wires.nova.clear()
        wires.placement.clear()
        coverage = reader.read()["summary"]["coverage"]
        requests = [*wires.nova.requests, *wires.placement.requests]

    assert coverage["reading"] == "incremental"
    # Without the token of Keystone.
    assert len(requests) <= 24, requests
    assert not any("with_servers" in request for request in requests)


@pytest.mark.parametrize("scenario", CHANGES)
def test_change_is_found_as_by_a_full_reading(
    reader: Reader, minicloud: Minicloud, scenario: str
) -> None:
    minicloud.run("scenario", "--again", scenario)
    changed = reader.read()
    full = reader.read(mode="full")

    assert changed["summary"]["coverage"]["why_full"] == ""
    assert _outline(changed) == _outline(full)


def test_orphan_of_a_deleted_server_is_found(
    reader: Reader, minicloud: Minicloud, connection: t.Any, placement: Placement
) -> None:
    """Nova deletes the allocation, and another client puts it back."""
    minicloud.run("scenario", "--again", "extra_host")
    server = minicloud.truth("extra_host")["server"]
    reader.read()
    allocation = placement.allocation(server)
    body = {
        "allocations": {
            provider: {"resources": amounts} for provider, amounts in placement.held(server).items()
        },
        "project_id": allocation["project_id"],
        "user_id": allocation["user_id"],
        "consumer_generation": None,
    }
    connection.compute.delete_server(server)
    connection.compute.wait_for_delete(connection.compute.get_server(server))
    gone = reader.read()
    placement.put(server, body)
    back = reader.read()

    assert gone["summary"]["coverage"]["reading"] == back["summary"]["coverage"]["reading"]
    assert server not in {entry["consumer"] for entry in gone["findings"]}
    assert (f"deleted_server/{server}", "orphaned") in {
        (entry["id"], entry["verdict"]) for entry in back["findings"]
    }
    assert _outline(back) == _outline(reader.read(mode="full"))
    placement.put(server, {**body, "allocations": {}, "consumer_generation": 1})


def test_new_host_is_read_with_everything_else(reader: Reader, minicloud: Minicloud) -> None:
    minicloud.run("scenario", "--again", "deleted_server")
    result = reader.read()

    assert "were" in result["summary"]["coverage"]["why_full"]
    assert minicloud.truth("deleted_server")["server"] in {
        entry["consumer"] for entry in result["findings"]
    }


def test_removed_orphan_is_forgotten(
    ansible: Ansible, minicloud: Minicloud, placement: Placement
) -> None:
    variables = ("-e", "orphan_cleanup_mode=incremental")
    ansible.playbook("detect_orphans", *variables)
    minicloud.run("scenario", "--again", "extra_host")
    server = minicloud.truth("extra_host")["server"]
    cleanup = ansible.playbook("cleanup_orphans", *variables)
    watched = cleanup.read("findings.memory.json")["watched"]
    again = ansible.playbook("detect_orphans", *variables)

    assert cleanup.read("findings.json")["summary"]["coverage"]["reading"] == "incremental"
    assert cleanup.changed == 1 and len(placement.held(server)) == 1
    assert server in watched
    assert server not in again.read("findings.memory.json")["watched"]


def test_memory_that_cannot_be_used_is_replaced(reader: Reader) -> None:
    reader.memory.write_text("{}")
    result = reader.read()
    first, second = result["summary"]["coverage"], reader.read()["summary"]["coverage"]

    assert first["reading"] == "full" and first["why_full"]
    # The newest Ansible returns a warning as a dictionary.
    assert "cut short" in str(result["warnings"])
    assert Path(f"{reader.memory}.broken").read_text() == "{}"
    assert second["reading"] == "incremental"


def test_full_reading_is_due_after_full_every(reader: Reader) -> None:
    assert "is due every" in reader.read(full_every="0")["summary"]["coverage"]["why_full"]


def test_shards_find_changes_together(
    ansible: Ansible, minicloud: Minicloud, tmp_path: Path
) -> None:
    minicloud.scenario("healthy")
    readers = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        reader = Reader(ansible, folder)
        reader.read(shard=f"{number}/2")
        readers.append((reader, f"{number}/2"))
    minicloud.run("scenario", "--again", "extra_host")
    found: list[tuple[str, str, str]] = []
    for reader, shard in readers:
        result = reader.read(shard=shard)
        assert result["summary"]["coverage"]["reading"] == "incremental"
        found += _outline(result)
    whole = _outline(ansible.module("orphan_detect", **YOUNG))

    assert sorted(found) == sorted(whole)


def test_memory_needs_a_file(ansible: Ansible) -> None:
    result = ansible.module("orphan_detect", mode="incremental")
    assert result["reason_id"] == "invalid_input" and "memory" in result["msg"]
