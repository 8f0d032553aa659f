"""What real nova-computes log in real situations, and what detection finds there."""

import dataclasses as d
import re
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import holdings, lifecycle, servers
from minicloud_ctl.scenarios import deleted, leftovers
from minicloud_ctl.scenarios.registry import Context

from ...plugins.plugin_utils._report.log_correlation import correlate_records
from .support import Ansible, Minicloud, Placement, Run
from .world import CELL1, World

STAMP = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@d.dataclass
class Stage:
    """Hosts and consumers by situation, and one detection of them all."""

    world: World
    ansible: Ansible
    hosts: dict[str, str] = d.field(default_factory=dict)
    consumers: dict[str, str] = d.field(default_factory=dict)

    def log(self, situation: str) -> Path:
        return self.world.paths.logs / f"nova-compute-{self.hosts[situation]}.log"

    def complains(self, situation: str, sentence: str) -> None:
        """Wait until nova-compute logs this."""
        host = self.hosts[situation]
        self.world.wait(f"{host} to say {sentence}", lambda: sentence in self.world.log(host))

    def records(self, situation: str, **options: t.Any) -> list[dict[str, t.Any]]:
        """Return the complaints of a host, as our module reads them."""
        result = self.ansible.module(
            "nova_log_info", paths=[str(self.log(situation))], host=self.hosts[situation], **options
        )
        assert (result["failed"], result["changed"], result["truncated"]) == (
            False,
            False,
            False,
        ), result
        return result["records"]

    def record(self, situation: str, kind: str) -> dict[str, t.Any]:
        """Return the only record of this kind."""
        (record,) = (record for record in self.records(situation) if record["kind"] == kind)
        return record


def _new_host(stage: Stage, situation: str) -> str:
    name = f"log-{uuid.uuid4().hex[:8]}"
    stage.world.own_host(name)
    stage.hosts[situation] = name
    return name


def _purged(stage: Stage) -> None:
    """A server whose rows are purged and whose allocation still exists."""
    host, world = _new_host(stage, "purged"), stage.world
    context = Context(world.paths, "purged_server")
    server, held = leftovers.delete_on(context, host, "log of a purged server")
    deleted.purge(context, server, keep_mapping=False)
    holdings.write_back(world.cloud, server, held)
    stage.consumers["purged"] = server
    world.restart(host)
    stage.complains("purged", f"Instance {server} has allocations against this compute host")


def _deleted_by_sql(stage: Stage) -> None:
    """A server that the database marks as deleted, in the way that is often recommended.

    Its neighbour lives.
    """
    host, world = _new_host(stage, "by SQL"), stage.world
    stage.consumers["neighbour"] = world.boot(host)
    server = stage.consumers["by SQL"] = world.boot(host)
    world.sql(
        CELL1,
        (
            "UPDATE instances SET deleted = id + 1, deleted_at = datetime('now'), "
            "vm_state = 'deleted' WHERE uuid = ?"
        ),
        server,
    )
    world.restart(host)
    stage.complains(
        "by SQL", f"Instance {server} is not being actively managed by this compute host"
    )
    # The fake hypervisor forgets its domains when nova-compute ends.
    stage.complains(
        "by SQL",
        (
            "While synchronizing instance power states, found 1 instances in the database and 0 "
            "instances on the hypervisor"
        ),
    )


def _moved(stage: Stage) -> None:
    """A server that was evacuated, moved on while its source was down, and moved back.

    Its allocation on the source stays for ever.
    """
    host, world = _new_host(stage, "moved"), stage.world
    server = stage.consumers["moved"] = world.boot(host)
    world.kill(host)
    servers.evacuate(world.cloud, server, "compute-1")
    servers.migrate(world.cloud, server, "compute-2")
    lifecycle.start_computes(world.paths, [host])
    servers.revert(world.cloud, server)
    holdings.await_providers(world.cloud, server, world.provider("compute-1"), world.provider(host))
    world.restart(host)
    stage.complains(
        "moved", f"Instance {server} has been moved to another host compute-1(compute-1)"
    )


def _renewed(stage: Stage) -> None:
    """A host that lost its identity, while an orphan keeps the provider that has its name."""
    host, world = _new_host(stage, "renewed"), stage.world
    stage.consumers["renewed"] = world.claim(host)
    world.kill(host)
    world.delete_service(host)
    (world.paths.compute(host) / "compute_id").unlink()
    lifecycle.start_computes(world.paths, [host])
    stage.complains("renewed", f"Conflicting resource provider name: {host} already exists")


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def stage(
    minicloud: Minicloud,
    world: World,
    placement: Placement,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    minicloud.scenario("healthy")
    stage = Stage(
        world, Ansible(minicloud.root, tmp_path_factory.mktemp("log"), minicloud.environment)
    )
    for make in (_purged, _deleted_by_sql, _moved, _renewed):
        make(stage)
    yield stage
    for situation in ("purged", "by SQL", "renewed"):
        world.hold(stage.consumers[situation], {})
    placement.change(
        "DELETE", f"/resource_providers/{placement.providers()[stage.hosts['renewed']]}"
    )
    # Only now can it create the provider without which Nova cannot delete its service.
    world.restart(stage.hosts["renewed"])


@pytest.fixture(scope="module")
def found(stage: Stage) -> Run:
    run = stage.ansible.playbook("detect_orphans")
    assert run.status == 0, run.output
    return run


@pytest.fixture(scope="module")
def every(stage: Stage) -> list[dict[str, t.Any]]:
    """The complaints of all hosts."""
    return [record for situation in stage.hosts for record in stage.records(situation)]


def _explained(run: Run, records: list[dict[str, t.Any]], **facts: t.Any) -> set[str]:
    """Return the findings that explain the records with these facts."""
    told = correlate_records(
        run.read("findings.json"), [record for record in records if facts.items() <= record.items()]
    )
    return set(told["explained"])


def test_complaints_are_recognized_with_what_they_name(stage: Stage) -> None:
    purged = stage.record("purged", "not_in_database")
    assert (purged["host"], purged["amounts"]) == (stage.hosts["purged"], None)
    assert purged["source"] == str(stage.log("purged"))
    unmanaged, moved = stage.record("by SQL", "not_managed"), stage.record("moved", "moved_away")
    for situation, record in (("purged", purged), ("by SQL", unmanaged), ("moved", moved)):
        assert record["instance"] == stage.consumers[situation]
    assert unmanaged["amounts"] == moved["amounts"] == {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    assert moved["other_host"] == "compute-1"
    counted = stage.record("by SQL", "power_state_counts")
    assert (counted["counts"], counted["instance"]) == ({"database": 1, "hypervisor": 0}, None)


def test_complaint_about_a_taken_name_has_the_refused_uuid(
    stage: Stage, placement: Placement
) -> None:
    record = stage.record("renewed", "provider_conflict")

    assert record["provider"]["name"] == stage.hosts["renewed"]
    assert record["provider"]["uuid"] == stage.world.cloud.hypervisors()[stage.hosts["renewed"]]
    assert record["provider"]["uuid"] not in placement.providers().values()


def test_complaint_logged_just_now_is_within_the_last_hour(stage: Stage) -> None:
    since = stage.records("purged", since="1h")

    assert [record["kind"] for record in since if record["instance"]] == ["not_in_database"]


def test_findings_are_joined_with_complaints_of_the_hosts(
    stage: Stage, found: Run, every: list[dict[str, t.Any]]
) -> None:
    def ids(consumer: str) -> set[str]:
        return {found.entry(stage.consumers[consumer])["id"]}

    assert _explained(found, every, kind="not_in_database", host=stage.hosts["purged"]) == ids(
        "purged"
    )
    assert _explained(found, every, kind="not_managed", host=stage.hosts["by SQL"]) == ids("by SQL")
    assert _explained(found, every, kind="moved_away", host=stage.hosts["moved"]) == ids("moved")
    assert {
        known.partition("/")[0] for known in _explained(found, every, kind="provider_conflict")
    } == {"name_conflict"}
    assert found.entry(stage.consumers["moved"])["kind"] == "evacuated_source"


def test_report_reads_complaints_from_a_file(stage: Stage, found: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    read = {
        "osops.placement.nova_log_info": {
            "paths": [str(stage.log("purged"))],
            "host": stage.hosts["purged"],
        },
        "register": "log",
    }
    keep = {
        "ansible.builtin.copy": {"content": "{{ log | to_json }}", "dest": str(log), "mode": "0600"}
    }
    report = {
        "findings": str(found.folder / "orphan-cleanup" / "findings.json"),
        "complaints": str(log),
    }

    run = stage.ansible.play({"tasks": [read, keep, {"osops.placement.orphan_report": report}]})

    assert f"log {stage.hosts['purged']} says: " in run.told, run.output
