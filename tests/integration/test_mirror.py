"""Aggregates, traits, zones and capacities that Nova and Placement do not agree about.

Each is planted on the real services, found, fixed by the commands that the finding prints, and
then no longer found.
"""

import contextlib
import json
import re
import shlex
import subprocess
import sys
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import servers

from . import openstack_client
from .interposer import Wires
from .support import Aggregate, Ansible, Minicloud, Placement
from .world import World

pytestmark = pytest.mark.long

OWN_CLOUD = True
KINDS = ["aggregate_mismatch", "trait_mismatch", "zone_mismatch"]
OTHER = "0ffce000-0000-4000-8000-000000000000"
LICENSED = "CUSTOM_LICENSED"
HOSTS = ("compute-1", "compute-2")


@pytest.fixture(name="rack")
def _rack(world: World) -> Iterator[Aggregate]:
    with Aggregate(world.cloud, "rack'; touch pwned #", *HOSTS) as rack:
        yield rack


class Fixer:
    """An operator who pastes the commands of a finding into a shell."""

    def __init__(self, minicloud: Minicloud, folder: Path) -> None:
        self._minicloud = minicloud
        self._folder = folder
        program = folder / "openstack"
        program.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {openstack_client.__file__} "$@"\n'
        )
        program.chmod(0o755)

    def paste(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**self._minicloud.environment, "PATH": f"{self._folder}:/usr/bin:/bin"}
        return subprocess.run(
            ["sh", "-c", command],
            env=environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def fix(self, entry: t.Mapping[str, t.Any]) -> None:
        assert entry["commands"], entry
        for command in entry["commands"]:
            if command.startswith("nova-manage "):
                self._minicloud.run(*shlex.split(command))
                continue
            done = self.paste(command)
            assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture(name="fixer")
def _fixer(minicloud: Minicloud, tmp_path: Path) -> Fixer:
    return Fixer(minicloud, tmp_path)


def _detect(ansible: Ansible, *kinds: str, **arguments: t.Any) -> list[dict[str, t.Any]]:
    result = ansible.direct("orphan_detect", kinds=list(kinds or KINDS), **arguments)
    assert result["undecided"] == [] and result["summary"]["coverage"]["failed_checks"] == []
    findings: list[dict[str, t.Any]] = result["findings"]
    return findings


def _find(ansible: Ansible, *kinds: str, **arguments: t.Any) -> dict[str, t.Any]:
    (entry,) = _detect(ansible, *kinds, **arguments)
    return entry


def _set_part(placement: Placement, provider: str, part: str, values: set[str]) -> None:
    path = f"/resource_providers/{provider}"
    generation = placement.get(path)["generation"]
    body = {"resource_provider_generation": generation, part: sorted(values)}
    placement.change("PUT", f"{path}/{part}", body)


def _get_part(placement: Placement, provider: str, part: str) -> set[str]:
    return set(placement.get(f"/resource_providers/{provider}/{part}")[part])


def test_hosts_whose_groups_agree_have_no_finding(
    ansible: Ansible, world: World, rack: Aggregate
) -> None:
    world.give_trait(LICENSED, HOSTS)
    rack.do("set_metadata", {"metadata": {f"trait:{LICENSED}": "required"}})

    assert _detect(ansible) == []
    assert ansible.direct("orphan_detect")["findings"] == []


def test_host_that_placement_lacks_in_an_aggregate_is_added_by_novas_command(
    ansible: Ansible, world: World, placement: Placement, rack: Aggregate, fixer: Fixer
) -> None:
    """Nova only logs a failure to add the host in Placement."""
    node = world.provider("compute-2")
    _set_part(placement, node, "aggregates", {OTHER})

    entry = _find(ansible)

    assert entry["id"] == f"aggregate_mismatch/{rack.uuid}"
    assert [provider["uuid"] for provider in entry["providers"]] == [node]
    assert entry["reason_id"] == "hosts_missing_in_placement"
    assert entry["commands"] == ["nova-manage placement sync_aggregates"]
    fixer.fix(entry)
    assert _get_part(placement, node, "aggregates") == {OTHER, rack.uuid}
    assert _detect(ansible) == []


def test_host_that_nova_lacks_in_an_aggregate_is_taken_out(
    ansible: Ansible, world: World, placement: Placement, rack: Aggregate, fixer: Fixer
) -> None:
    """`nova-manage placement sync_aggregates` adds, and never removes."""
    node = world.provider("compute-3")
    _set_part(placement, node, "aggregates", {OTHER, rack.uuid})

    entry = _find(ansible)

    assert entry["id"] == f"aggregate_mismatch/{rack.uuid}"
    assert entry["reason_id"] == "hosts_missing_in_nova"
    (command,) = entry["commands"]
    _set_part(placement, node, "aggregates", {OTHER, rack.uuid})
    # Something else has changed the provider meanwhile: Placement refuses the command.
    assert "HTTP 409" in fixer.paste(command).stderr
    fixer.fix(_find(ansible))
    assert _get_part(placement, node, "aggregates") == {OTHER}
    assert _detect(ansible) == []


def test_host_without_the_trait_of_its_aggregate_gets_it(
    ansible: Ansible, world: World, placement: Placement, rack: Aggregate, fixer: Fixer
) -> None:
    placement.change("PUT", f"/traits/{LICENSED}")
    node, other = world.provider("compute-2"), world.provider("compute-1")
    before = _get_part(placement, node, "traits") - {LICENSED}
    _set_part(placement, node, "traits", before)
    _set_part(placement, other, "traits", _get_part(placement, other, "traits") | {LICENSED})
    rack.do("set_metadata", {"metadata": {f"trait:{LICENSED}": "required"}})

    entry = _find(ansible)

    assert entry["id"] == f"trait_mismatch/{rack.uuid}"
    assert [provider["uuid"] for provider in entry["providers"]] == [node]
    fixer.fix(entry)
    assert _get_part(placement, node, "traits") == before | {LICENSED}
    assert _detect(ansible) == []
    _set_part(placement, node, "traits", before)


def test_enabled_host_that_placement_shows_as_disabled_is_enabled(
    ansible: Ansible, world: World, placement: Placement, fixer: Fixer
) -> None:
    node = world.provider("compute-2")
    before = _get_part(placement, node, "traits")
    _set_part(placement, node, "traits", before | {"COMPUTE_STATUS_DISABLED"})

    entry = _find(ansible)

    assert entry["id"] == f"trait_mismatch/{node}"
    assert entry["reason_id"] == "disabled_trait_left"
    fixer.fix(entry)
    assert _get_part(placement, node, "traits") == before
    assert _detect(ansible) == []


def test_disabled_host_that_placement_shows_as_enabled_gets_the_trait(
    ansible: Ansible, world: World, placement: Placement, fixer: Fixer
) -> None:
    node = world.provider("compute-2")
    before = _get_part(placement, node, "traits")
    disabled = {*before, "COMPUTE_STATUS_DISABLED"}
    servers.update_service(world.cloud, "compute-2", {"status": "disabled"})
    world.wait(
        "nova-compute to set the trait", lambda: _get_part(placement, node, "traits") == disabled
    )
    assert _detect(ansible) == []
    _set_part(placement, node, "traits", before)

    entry = _find(ansible)

    assert entry["reason_id"] == "disabled_trait_missing"
    fixer.fix(entry)
    assert _get_part(placement, node, "traits") == disabled
    assert _detect(ansible) == []
    servers.update_service(world.cloud, "compute-2", {"status": "enabled"})
    world.wait(
        "nova-compute to remove the trait", lambda: _get_part(placement, node, "traits") == before
    )


@pytest.fixture(name="zones")
def _zones(world: World) -> Iterator[tuple[Aggregate, Aggregate]]:
    with (
        Aggregate(world.cloud, "a", zone="zone-a") as one,
        Aggregate(world.cloud, "b", zone="zone-b") as other,
    ):
        yield one, other


@contextlib.contextmanager
def _in_second_zone(world: World, zone: Aggregate, host: str) -> Iterator[None]:
    """Add a host by SQL, because Nova refuses it."""
    statement = "INSERT INTO aggregate_hosts (aggregate_id, host) VALUES (?, ?)"
    world.sql("first_nova_api", statement, zone.id, host)
    yield
    statement = "DELETE FROM aggregate_hosts WHERE aggregate_id = ? AND host = ?"
    world.sql("first_nova_api", statement, zone.id, host)


@pytest.mark.follows("host_in_two_zones")
def test_host_in_two_zones_is_reported(
    ansible: Ansible, world: World, zones: tuple[Aggregate, Aggregate]
) -> None:
    first, second = zones
    first.add("compute-1")
    second.add("compute-2")
    assert _detect(ansible) == []

    with _in_second_zone(world, second, "compute-1"):
        entry = _find(ansible, "zone_mismatch")
        second.remove("compute-1")
        assert _detect(ansible) == []

    assert entry["id"] == "zone_mismatch/compute-1"
    assert f"aggregate a ({first.id})" in entry["reason"] and "zone-b" in entry["reason"]
    assert _detect(ansible) == []


@pytest.mark.follows("uneven_capacity._advise")
def test_allocation_ratio_unlike_that_of_all_neighbors_is_set(
    ansible: Ansible,
    minicloud: Minicloud,
    world: World,
    placement: Placement,
    rack: Aggregate,
    fixer: Fixer,
) -> None:
    minicloud.run("up", "--computes", "4")
    rack.add("compute-3", "compute-4")
    assert _detect(ansible, "uneven_capacity") == []
    path = f"/resource_providers/{world.provider('compute-4')}/inventories/VCPU"
    stock = placement.get(path)
    placement.change("PUT", path, {**stock, "allocation_ratio": 1.5})

    entry = _find(ansible, "uneven_capacity")

    assert entry["id"] == f"uneven_capacity/{world.provider('compute-4')}"
    assert "VCPU is 1.5" in entry["reason"] and str(stock["allocation_ratio"]) in entry["reason"]
    fixer.fix(entry)
    assert placement.get(path)["allocation_ratio"] == stock["allocation_ratio"]
    assert _detect(ansible, "uneven_capacity") == []


def test_groups_cost_a_request_for_each_aggregate(
    ansible: Ansible, wires: Wires, rack: Aggregate, world: World
) -> None:
    """However many hosts there are, and none at all for named consumers."""
    ansible.direct("orphan_detect", kinds=["deleted_server"])
    without = len(wires.placement.requests) + len(wires.nova.requests)
    wires.placement.clear()
    wires.nova.clear()
    ansible.direct("orphan_detect")
    asked = [*wires.placement.requests, *wires.nova.requests]
    about_groups = [request for request in asked if re.search("member_of|COMPUTE_STATUS", request)]

    assert len(about_groups) == 2
    assert asked.count("GET /v2.1/os-aggregates") == 2
    assert json.dumps(about_groups).count("member_of=") == 1
    assert without > 0
