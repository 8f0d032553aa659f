"""Hosts that were deployed again, with the same or with another UUID for their compute node."""

import json
import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import lifecycle, processes, servers, services
from minicloud_ctl import state as states

from .support import Aggregate, Ansible, Minicloud, Placement, Run
from .world import API, CELL1, CLAIM, World

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("healthy")]

OWN_CLOUD = True
MOVING = ["aggregates", "traits", "allocations"]
RATIO = 3.5


class Redeployment:
    """`redeploy_host`, run on one host."""

    def __init__(self, ansible: Ansible) -> None:
        self._ansible = ansible
        self.folder = ansible.folder

    def __call__(self, host: str, *arguments: str, **variables: t.Any) -> Run:
        given = {"host_decommission_min_age": 0, "host_decommission_target": host, **variables}
        run = self._ansible.playbook("redeploy_host", *arguments, variables=given)
        assert "Traceback" not in run.output, run.output
        return run

    def done(self, host: str, *arguments: str, **variables: t.Any) -> Run:
        run = self(host, *arguments, **variables)
        assert run.status == 0, run.output
        return run

    def refused(self, host: str, *arguments: str, **variables: t.Any) -> Run:
        run = self(host, *arguments, **variables)
        assert run.status != 0, run.output
        return run

    def record(self, host: str, document: dict[str, t.Any]) -> None:
        """Write what the decommissioning of the host would have left."""
        folder = self.folder / "host-decommission" / host
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "host.json").write_text(json.dumps({"format": 1, "hosts": [document]}))


@pytest.fixture
def redeploy(ansible: Ansible) -> Redeployment:
    return Redeployment(ansible)


@pytest.fixture
def _one_nova(world: World) -> Iterator[None]:
    """Where another region has a Nova on the same Placement, no provider is known to be unused."""
    with world.one_region():
        yield


def _new_host(world: World) -> str:
    name = f"redeploy-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    return name


def _read_record(world: World, host: str, aggregates: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return the record of a host as a check before its decommissioning writes it."""
    root = world.provider(host)
    service = world.cloud.compute_services()[host]
    path = f"/resource_providers/{root}"
    read = {
        part: world.cloud.placement("GET", f"{path}/{part}")[part]
        for part in ("inventories", "traits", "aggregates")
    }
    provider = {"uuid": root, "name": host, "root": root, "parent": None, "generation": 1, **read}
    record = {
        "taken_at": "2026-11-23T03:30:00Z",
        "host": host,
        "service": {"id": service["id"], "zone": service["zone"], "disabled_reason": None},
        "nodes": [{"uuid": root, "name": host}],
        "aggregates": aggregates,
        "providers": [provider],
    }
    return {"name": host, "host": host, "known": True, "record": record, "former_record": None}


def _reinstall(world: World, host: str) -> None:
    """Let a machine come back after its service was deleted, without anything of the old one."""
    world.kill(host)
    world.delete_service(host)
    (world.paths.compute(host) / "compute_id").unlink(missing_ok=True)
    world._providers.clear()
    lifecycle.start_computes(world.paths, [host])


def _put_ratio(world: World, root: str, ratio: float) -> None:
    path = f"/resource_providers/{root}/inventories"
    document = world.cloud.placement("GET", path)
    document["inventories"]["VCPU"]["allocation_ratio"] = ratio
    world.cloud.placement("PUT", path, document)


def test_host_gets_back_what_it_had(
    redeploy: Redeployment, world: World, placement: Placement
) -> None:
    host = _new_host(world)
    old = world.provider(host)
    aggregate = Aggregate(world.cloud, f"ssd-{host}", host, zone=host)
    world._undo.callback(aggregate.delete)
    shared = str(uuid.uuid4())
    read = world.cloud.placement("GET", f"/resource_providers/{old}/aggregates")
    world.cloud.placement(
        "PUT",
        f"/resource_providers/{old}/aggregates",
        {**read, "aggregates": [*read["aggregates"], shared]},
    )
    world.cloud.placement("PUT", "/traits/CUSTOM_SSD")
    traits = world.cloud.placement("GET", f"/resource_providers/{old}/traits")
    world.cloud.placement(
        "PUT",
        f"/resource_providers/{old}/traits",
        {**traits, "traits": [*traits["traits"], "CUSTOM_SSD"]},
    )
    _put_ratio(world, old, RATIO)
    known = {"id": aggregate.id, "uuid": aggregate.uuid, "name": aggregate.name}
    redeploy.record(host, _read_record(world, host, [{**known, "zone": host, "metadata": {}}]))
    _reinstall(world, host)
    new = world.provider(host)
    assert new != old
    before = world.picture()

    foretold = redeploy.done(host, "--check")
    assert world.picture() == before and "CUSTOM_SSD" not in _read_traits(world, new)
    done = redeploy.done(host)
    again = redeploy.done(host)

    for run in (foretold, done):
        assert run.changed == 1
        for back in (f"aggregate ssd-{host}", "had CUSTOM_SSD.", f"in {shared}.", f"was {RATIO}"):
            assert back in run.told, run.output
    assert f"{host} is complete." in done.told
    assert again.changed == 0 and "restored host" not in again.told
    assert "CUSTOM_SSD" in _read_traits(world, new)
    aggregates = world.cloud.placement("GET", f"/resource_providers/{new}/aggregates")["aggregates"]
    assert set(aggregates) == {shared, aggregate.uuid}
    assert world.cloud.compute_services()[host]["zone"] == host

    ratio = redeploy.done(host, host_decommission_restore=["ratios"])
    assert ratio.changed == 1
    stock = world.cloud.placement("GET", f"/resource_providers/{new}/inventories")["inventories"]
    assert stock["VCPU"]["allocation_ratio"] == RATIO


def _read_traits(world: World, root: str) -> list[str]:
    traits: list[str] = world.cloud.placement("GET", f"/resource_providers/{root}/traits")["traits"]
    return traits


@pytest.mark.follows("redeploy._check_mapping")
def test_host_without_mapping_is_named_and_discovered(
    redeploy: Redeployment, world: World, minicloud: Minicloud
) -> None:
    host = _new_host(world)
    # Its scheduler would discover the host within two seconds.
    with world.paused("nova-scheduler"):
        world.sql(API, "DELETE FROM host_mappings WHERE host = ?", host)
        world.sql(CELL1, "UPDATE compute_nodes SET mapped = 0 WHERE host = ?", host)
        lacking = redeploy.refused(host)
        foretold = redeploy.refused(
            host,
            "--check",
            host_decommission_nova_manage_host="localhost",
            host_decommission_nova_manage=" ".join(minicloud.nova_manage),
        )
        assert host not in world.mapped_hosts()
        done = redeploy.done(
            host,
            host_decommission_nova_manage_host="localhost",
            host_decommission_nova_manage=" ".join(minicloud.nova_manage),
        )
        assert host in world.mapped_hosts()

    assert "missing host mapping" in lacking.told
    assert "run nova-manage cell_v2 discover_hosts." in lacking.told
    assert "missing compute node" in lacking.told
    assert "missing host mapping" in foretold.told
    assert "ok host mapping" in done.told and f"{host} is complete." in done.told


class Changed:
    """A host whose compute node came back with another UUID while servers were on it.

    Nova itself prevents that: without its file nova-compute does not start, and with another UUID
    it does not start while the old compute node is in the database. Here somebody deleted the row.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = _new_host(world)
        self.servers = [world.boot(self.host), world.boot(self.host)]
        self.old = world.provider(self.host)
        lifecycle.kill_compute(world.paths, self.host)
        (world.paths.compute(self.host) / "compute_id").write_text(str(uuid.uuid4()))
        world.sql(CELL1, "UPDATE compute_nodes SET deleted = id WHERE host = ?", self.host)
        self.start()
        world.wait("the new compute node", lambda: self.new != self.old)

    @property
    def new(self) -> str:
        return self.world.cloud.hypervisors().get(self.host, self.old)

    def start(self) -> None:
        """Start nova-compute, without waiting for a provider, which it may be unable to create."""
        state = states.load(self.world.paths)
        for service in services.all_services(self.world.paths, state):
            if service.name == f"nova-compute-{self.host}":
                environment = services.environment(self.world.paths, service.environment)
                processes.start(self.world.paths, service.name, service.argv, environment)

    def rename(self) -> None:
        """Do what the finding says."""
        path = f"/resource_providers/{self.old}"
        self.world.cloud.placement("PUT", path, {"name": f"{self.host}-former"})
        self.world.restart(self.host)
        self.world._providers.clear()

    def close(self) -> None:
        """Give the servers what they need, so that the host can be removed."""
        for server in self.servers:
            for move in servers.migrations(self.world.cloud, server):
                self.world.hold(move["uuid"], {})
            self.world.hold(server, {})


@pytest.fixture
def changed(world: World) -> Iterator[Changed]:
    site = Changed(world)
    yield site
    site.close()
    for name, provider in {p["name"]: p["uuid"] for p in _list_providers(world)}.items():
        if name == f"{site.host}-former":
            world.cloud.placement("DELETE", f"/resource_providers/{provider}")


def _list_providers(world: World) -> list[dict[str, t.Any]]:
    listed: list[dict[str, t.Any]] = world.cloud.placement("GET", "/resource_providers")[
        "resource_providers"
    ]
    return listed


@pytest.mark.follows("former_provider_has_name", "host_results._ADVICE")
@pytest.mark.usefixtures("_one_nova")
def test_changed_uuid_is_recognised_and_its_allocations_move_when_chosen(
    redeploy: Redeployment, world: World, placement: Placement, changed: Changed
) -> None:
    before = world.picture()
    conflict = redeploy.refused(changed.host, host_decommission_restore=MOVING)
    assert world.picture() == before
    assert "missing provider" in conflict.told
    assert f"set --name {changed.host}-former {changed.old}" in conflict.told

    changed.rename()
    before = world.picture()
    named = redeploy.refused(changed.host)
    foretold = redeploy.done(changed.host, "--check", host_decommission_restore=MOVING)
    assert world.picture() == before
    assert "to host_decommission_restore" in named.told
    assert foretold.changed == 1
    done = redeploy.done(changed.host, host_decommission_restore=MOVING)
    again = redeploy.done(changed.host, host_decommission_restore=MOVING)

    for server in changed.servers:
        assert placement.held(server) == {changed.new: CLAIM}
    assert changed.old not in placement.providers().values()
    assert f"{changed.host} is complete." in done.told
    assert again.changed == 0
    untouched = {
        provider: held
        for provider, held in before["claims"].items()
        if provider not in (changed.old, changed.new)
    }
    after = world.picture()["claims"]
    assert {provider: after[provider] for provider in untouched} == untouched


@pytest.mark.usefixtures("_one_nova")
def test_restoration_takes_nothing_from_the_servers_that_moved(
    ansible: Ansible, placement: Placement, changed: Changed
) -> None:
    changed.rename()
    chosen = {
        "orphan_cleanup_hosts": [changed.host],
        "orphan_cleanup_remediate_kinds": ["former_provider"],
    }
    moved = ansible.playbook("cleanup_orphans", variables=chosen)
    assert moved.status == 0, moved.output
    journal = max((moved.folder / "orphan-cleanup").glob("journal-*.jsonl"))
    before = [record for record in moved.records(journal) if record["event"] == "before"]
    restored = ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(journal)}
    )

    assert {tuple(record["before"]["allocations"]) for record in before} == {(changed.old,)}
    assert (restored.status, restored.changed) == (0, 0), restored.output
    outcomes = restored.read("restoration.json")["outcomes"]
    assert {outcome["reason_id"] for outcome in outcomes} == {"would_take_allocation"}
    assert {tuple(placement.held(server)) for server in changed.servers} == {(changed.new,)}


@pytest.mark.usefixtures("_one_nova")
def test_resize_after_the_plan_keeps_all_allocations(
    ansible: Ansible, world: World, placement: Placement, changed: Changed
) -> None:
    changed.rename()
    no_age = {"min_age": "0", "unknown_min_age": "0"}
    findings, plan = (str(ansible.folder / name) for name in ("findings.json", "plan.json"))
    ansible.direct("orphan_detect", hosts=[changed.host], dest=findings, **no_age)
    planned = ansible.direct("orphan_plan", findings=findings, kinds=["former_provider"], dest=plan)
    assert planned["actions"] == {"rewrite": 2}
    mover, stayer = changed.servers
    servers.migrate(world.cloud, mover, "compute-3")
    before = world.picture()
    result = ansible.direct(
        "orphan_remediate", plan=plan, output_dir=str(ansible.folder / "done"), **no_age
    )

    outcomes = {outcome["consumer"]: outcome["outcome"] for outcome in result["outcomes"]}
    # The parked resize still has an allocation on the former provider, which is a doubt about both.
    assert outcomes == {mover: "skipped", stayer: "skipped"}
    assert world.picture() == before
    # Nova moves to the migration only what a server has on the compute node that it leaves.
    assert placement.held(mover) == {world.provider("compute-3"): CLAIM, changed.old: CLAIM}
