"""`decommission_host` and its role on real hosts.

What blocks a host, and that nothing of it remains.
"""

import typing as t
import uuid

import pytest
from minicloud_ctl import holdings, servers

from .interposer import Fault, Wires
from .support import Ansible, Placement, Run
from .world import CELL1, CLAIM, World

pytestmark = pytest.mark.usefixtures("healthy")

OWN_CLOUD = True
YOUNG = {"host_decommission_min_age": 0, "host_decommission_unknown_min_age": 0}
# The catalogue of the minicloud always has a second region.
KNOWN = {**YOUNG, "host_decommission_ignore_other_regions": True}


class Decommissioning:
    """`decommission_host`, run on one host."""

    def __init__(self, ansible: Ansible) -> None:
        self._ansible = ansible

    def __call__(self, target: t.Any, *arguments: str, **variables: t.Any) -> Run:
        return self._ansible.playbook(
            "decommission_host",
            *arguments,
            variables={**KNOWN, "host_decommission_target": target, **variables},
        )

    def done(self, target: t.Any, *arguments: str, **variables: t.Any) -> Run:
        run = self(target, *arguments, **variables)
        assert run.status == 0, run.output
        return run

    def refused(self, target: t.Any, *arguments: str, **variables: t.Any) -> Run:
        run = self(target, *arguments, **variables)
        assert run.status != 0 and "Traceback" not in run.output, run.output
        return run


@pytest.fixture
def decommission(ansible: Ansible) -> Decommissioning:
    return Decommissioning(ansible)


def _new_host(world: World, **kind: str) -> str:
    name = f"retire-{uuid.uuid4().hex[:8]}"
    world.own_host(name, **kind)
    return name


def _dead_host(world: World) -> str:
    name = _new_host(world)
    world.kill(name)
    return name


def _is_gone(world: World, placement: Placement, *hosts: str) -> None:
    names = set(hosts)
    assert not names & set(world.cloud.compute_services())
    assert not names & set(world.cloud.hypervisors())
    assert not names & world.mapped_hosts()
    assert not [name for name in placement.providers() if name.startswith(hosts)]


def _is_free(world: World, placement: Placement, host: str) -> None:
    """Start a new host under the name, and boot a server on it."""
    (world.paths.compute(host) / "compute_id").unlink(missing_ok=True)
    world.own_host(host)
    assert placement.held(world.boot(host)) == {world.cloud.hypervisors()[host]: CLAIM}


@pytest.mark.acceptance
def test_dead_host_is_decommissioned_once_and_its_name_is_free(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    host = _dead_host(world)
    before = world.picture()

    foretold = decommission.done(host, "--check")
    excluded = decommission.refused(host, host_decommission_exclude_providers=[host])
    assert f"{host} is excluded" in excluded.told and world.picture() == before
    done = decommission.done(host)
    _is_gone(world, placement, host)
    again = decommission.done(host)

    for step, run in (("ready", foretold), ("gone", done)):
        assert f"{step} {host} " in run.told.partition("Show the result")[2], run.output
    assert "Next:" in foretold.output and "Next:" not in done.output + again.output
    assert f"{host} is gone" in again.told
    assert (foretold.changed, done.changed, again.changed) == (2, 2, 0)
    _is_free(world, placement, host)


@pytest.mark.long
def test_what_only_usages_show_keeps_the_service_too(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    """Placement lists no consumer that has no record, and refuses to delete its provider."""
    host = _dead_host(world)
    stray = world.claim(host)
    world.sql("placement", "DELETE FROM consumers WHERE uuid = ?", stray)
    before = world.picture()
    try:
        refused = decommission.refused(host)

        assert f"On provider {host}," in refused.told and "online_data_migrations" in refused.told
        assert world.picture() == before and refused.changed == 0
    finally:
        world.sql("placement", "DELETE FROM allocations WHERE consumer_id = ?", stray)
    decommission.done(host)
    _is_gone(world, placement, host)


@pytest.mark.long
def test_blocked_hosts_list_every_blocker_and_stay_unchanged(
    ansible: Ansible, decommission: Decommissioning, world: World, placement: Placement
) -> None:
    """Moves go from one host and to the other, and both are dead."""
    here, there = _new_host(world), _new_host(world)
    guest, unconfirmed, moving = world.boot(here), world.boot(here), world.boot(here)
    resize = servers.migrate(world.cloud, unconfirmed, there)
    world.crash(there)
    servers.act(world.cloud, moving, "migrate", {"host": there})
    holdings.await_providers(world.cloud, moving, world.provider(there))
    move = servers.migrations(world.cloud, moving)[0]["uuid"]
    for host in (here, there):
        world.kill(host)
    child = placement.create_provider(
        f"{here} port", {"VCPU": {"total": 8}}, parent=world.provider(here)
    )
    stray = world.claim(here)
    foreign = str(uuid.uuid4())
    zun = {
        "allocations": {child: {"resources": {"VCPU": 1}}},
        "consumer_generation": None,
        "project_id": "p",
        "user_id": "u",
    }
    placement.put(foreign, {**zun, "consumer_type": "CONTAINER"}, "1.38")
    before = world.picture()

    shown = decommission.done(
        [here, there], host_decommission_stages="check", host_decommission_max_hosts=2
    )
    one_by_one = [decommission.refused(host) for host in (here, there)]
    foretold = decommission.refused(here, "--check")
    told = {
        host: ansible.module("compute_host_info", hosts=[host], min_age=0)["hosts"][0]
        for host in (here, there)
    }
    moves = ansible.module("migration_info", host=here, under_way=True)["migrations"]
    placement.put(
        foreign,
        {**zun, "allocations": {}, "consumer_generation": 1, "consumer_type": "CONTAINER"},
        "1.38",
    )

    def kinds(host: str) -> dict[str, str]:
        return {blocker["subject"]: blocker["kind"] for blocker in told[host]["blockers"]}

    assert world.picture()["claims"] == {**before["claims"], child: {}}
    assert {**world.picture(), "claims": before["claims"]} == before
    assert kinds(here) == {
        guest: "server",
        moving: "server",
        resize: "resize",
        move: "migration",
        stray: "claim",
        foreign: "claim",
    }
    # The migration does not yet name the host that never answered.
    assert kinds(there) == {unconfirmed: "server", resize: "resize", moving: "claim"}
    assert {known["uuid"]: known["type"] for known in moves} == {
        resize: "migration",
        move: "migration",
    }
    assert len({known["advice"] for known in moves}) == 2
    assert [provider["name"] for provider in told[here]["providers"]] == [f"{here} port", here]
    for host, run in zip((here, there), one_by_one, strict=True):
        assert f"(blockers: {len(kinds(host))}, see " in run.told
        assert f"blocked {host} {len(kinds(host))} blockers (" in shown.told
        for subject, kind in kinds(host).items():
            # More than five are one line each, with the name before the UUID.
            rows = [line for line in shown.output.splitlines() if subject in line]
            assert any(row.startswith(f"{kind} ") for row in rows) and subject in run.told
    assert "Disable the service" not in one_by_one[0].told + foretold.told
    assert "consumer type CONTAINER" in one_by_one[0].told or "CONTAINER" in one_by_one[0].told
    for run in (*one_by_one, foretold):
        assert run.changed == 0
    # Nova does not delete a service with unfinished moves.
    world.sql(CELL1, "UPDATE migrations SET status = 'error' WHERE uuid IN (?, ?)", move, resize)


def _leave_something(world: World, placement: Placement, host: str) -> dict[str, str]:
    """Kill a host with leftovers of three servers, and a child provider.

    One server was deleted, one evacuated, one migrated. Returns kinds by consumer.
    """
    deleted, evacuated, moved = world.boot(host), world.boot(host), world.boot(host)
    migration = servers.migrate(world.cloud, moved, "compute-1")
    held = holdings.of(world.cloud, migration)
    servers.confirm(world.cloud, moved)
    holdings.await_providers(world.cloud, migration)
    grave = holdings.of(world.cloud, deleted)
    servers.delete(world.cloud, deleted)
    holdings.await_providers(world.cloud, deleted)
    world.kill(host)
    servers.evacuate(world.cloud, evacuated, "compute-2")
    child = placement.create_provider(
        f"{host} agent", {"VCPU": {"total": 8}}, parent=world.provider(host)
    )
    leaf = placement.create_provider(f"{host} port", {"VCPU": {"total": 8}}, parent=child)
    holdings.write_back(world.cloud, migration, held)
    holdings.put(world.cloud, deleted, {**grave.allocations, leaf: {"VCPU": 1}}, grave)
    return {deleted: "deleted_server", evacuated: "evacuated_source", migration: "ended_migration"}


@pytest.mark.long
def test_two_hosts_with_leftovers_and_children_are_decommissioned_as_predicted(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    hosts = [_new_host(world), _new_host(world)]
    left = _leave_something(world, placement, hosts[0])
    world.kill(hosts[1])
    stray = world.claim(hosts[1])
    reading = world.picture()
    chosen = {"host_decommission_remediate_kinds": [*left.values(), "unknown_consumer"]}

    many = decommission.refused(hosts, **chosen)
    foretold = decommission.done(hosts, "--check", host_decommission_max_hosts="2", **chosen)
    assert world.picture() == reading
    done = decommission.done(hosts, host_decommission_max_hosts="2", **chosen)

    assert many.changed == 0 and "host_decommission_max_hosts is 1" in many.told
    _is_gone(world, placement, *hosts)
    for consumer, kind in {**left, stray: "unknown_consumer"}.items():
        assert f"{kind} {consumer}" in foretold.told
        providers = set(placement.held(consumer))
        assert providers == ({world.provider("compute-2")} if kind == "evacuated_source" else set())
    assert _course(foretold) == _course(done) - {
        "Check the host again, right before it is deleted",
        "Check what remains of the host",
        "Look up the providers with its names",
        "Verify that nothing remains of the host",
        # A check writes no journal.
        "Export the journal",
    } - {"Delete the providers that Nova left"}
    journals = sorted((done.folder / "host-decommission").glob("*/journal-*.jsonl"))
    assert [journal.parent.name for journal in journals] == sorted(hosts)
    recorded = {record["consumer"] for journal in journals for record in done.records(journal)}
    assert recorded == {*left, stray}


@pytest.mark.long
def test_one_blocked_host_keeps_both_unchanged(decommission: Decommissioning, world: World) -> None:
    """The host without blockers is named first."""
    free, held = _dead_host(world), _new_host(world)
    name = "{{7 * 7}} <b>=c()|"
    server = world.boot(held, name=name)
    before = world.picture()

    run = decommission.refused([free, held], host_decommission_max_hosts=2)

    assert "Ready to decommission." in run.told
    assert f"{held} cannot be decommissioned" in run.told and server in run.told
    assert name in run.told
    assert world.picture() == before


@pytest.mark.long
def test_orphaned_provider_with_leftovers_is_decommissioned_by_its_name(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    host = _new_host(world)
    left = _leave_something(world, placement, host)
    world.delete_service(host)
    before = world.picture()
    assert host in placement.providers() and host not in before["nodes"]

    foretold = decommission.done(host, "--check")
    assert world.picture() == before
    done = decommission.done(host)

    assert foretold.changed == done.changed
    _is_gone(world, placement, host)
    for consumer, kind in left.items():
        # Nova removes leftovers of evacuated servers together with the service.
        assert (f"{kind} {consumer}" in foretold.told) == (kind != "evacuated_source")


@pytest.mark.long
def test_reinstalled_host_is_decommissioned_with_the_tree_that_held_its_name(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    host = _dead_host(world)
    old, stray = world.provider(host), world.claim(host)
    world.delete_service(host)
    world.hold(stray, {})
    (world.paths.compute(host) / "compute_id").unlink(missing_ok=True)
    world.own_host(host)
    world.kill(host)
    assert world.cloud.hypervisors()[host] != old == placement.providers()[host]

    # Whether the former tree is another region's has to be known before the service goes.
    refused = decommission.refused(host, host_decommission_ignore_other_regions=False)
    assert "its own Nova" in refused.told
    assert host in world.cloud.compute_services() and old in placement.providers().values()
    done = decommission.done(host)

    assert f"{host} ({old})" in done.told
    _is_gone(world, placement, host)


def _course(run: Run) -> set[str]:
    """Return the tasks that were run."""
    found = set()
    for part in run.output.split("\nTASK [")[1:]:
        name, _bracket, rest = part.partition("]")
        if "\nchanged:" in rest or "\nok:" in rest:
            found.add(name.rpartition(" : ")[2])
    return found


@pytest.mark.long
def test_a_host_in_another_spelling_is_not_gone(
    decommission: Decommissioning, world: World
) -> None:
    host = _new_host(world)
    for name in (host.title(), f"{host}.example.org"):
        told = decommission.refused(name, host_decommission_stages=["verify"]).told
        assert f"knows {name}." in told and f"{host}?" in told


@pytest.mark.long
def test_unreadable_files_of_an_earlier_run_are_an_error(
    ansible: Ansible, decommission: Decommissioning, world: World
) -> None:
    host = _new_host(world)
    (ansible.folder / "host-decommission" / host / "host.json").mkdir(parents=True)

    assert "host.json" in decommission.refused(host, host_decommission_stages=["check"]).told


@pytest.mark.long
@pytest.mark.parametrize("name", ["the service's", "its own"])
def test_decommissioning_interrupted_after_the_service_deletion_is_finished(
    decommission: Decommissioning, world: World, placement: Placement, wires: Wires, name: str
) -> None:
    host = _dead_host(world)
    provider = world.provider(host)
    child = placement.create_provider(f"{host} port", {"VCPU": {"total": 8}}, parent=provider)
    if name == "its own":
        full = f"{host}.example.org"
        world.sql(
            CELL1, "UPDATE compute_nodes SET hypervisor_hostname = ? WHERE host = ?", full, host
        )
        placement.change("PUT", f"/resource_providers/{provider}", {"name": full})
    stray = str(uuid.uuid4())

    # Nova leaves behind what is allocated at the last moment.
    wires.nova.on("DELETE", "/os-services/", before=lambda: world.hold(stray, {child: {"VCPU": 1}}))
    stopped = decommission.refused(host)
    assert host not in world.cloud.compute_services() and provider in placement.providers().values()
    still = decommission.refused(host)
    world.hold(stray, {})
    done = decommission.done(host)

    # The service was disabled; its deletion is in the result of the task that failed.
    assert stopped.changed == 1 and '"changed": true' in stopped.output
    for run in (stopped, still):
        assert stray in run.told
    _is_gone(world, placement, host)
    assert f"gone {host} " in done.told


@pytest.mark.long
def test_each_stage_runs_by_tag_and_by_entry_point(
    ansible: Ansible, decommission: Decommissioning, world: World, placement: Placement
) -> None:
    by_variable, by_entry_point = _new_host(world), _new_host(world)
    for host in (by_variable, by_entry_point):
        world.kill(host)
    strays = {host: world.claim(host) for host in (by_variable, by_entry_point)}
    forgotten = {"host_decommission_remediate_kinds": ["unknown_consumer"]}

    def stage(name: str, *arguments: str) -> Run:
        return decommission(by_variable, *arguments, host_decommission_stages=[name], **forgotten)

    before = world.picture()
    assert stage("check").status == 0
    assert world.picture() == before
    early = stage("delete")
    assert early.status != 0 and strays[by_variable] in early.told
    foretold = stage("delete", "--check")
    assert foretold.status != 0, "the clean-up that it would need is not a part of it"
    assert stage("verify").status != 0
    assert world.picture() == before
    assert stage("disable").changed == 1
    service = world.cloud.compute_services()[by_variable]
    assert (service["status"], service["disabled_reason"]) == (
        "disabled",
        "decommissioned with osops.placement",
    )
    assert placement.held(strays[by_variable])
    assert stage("clean").changed == 1
    assert (
        placement.held(strays[by_variable]) == {} and by_variable in world.cloud.compute_services()
    )
    assert stage("delete").status == 0
    _is_gone(world, placement, by_variable)
    assert stage("verify").status == 0

    variables = {**KNOWN, **forgotten, "host_decommission_target": by_entry_point}
    stages = ["check", "disable", "clean", "delete", "verify"]
    role = {"name": "osops.placement.host_decommission"}
    run = ansible.play(
        {
            "vars": variables,
            "tasks": [
                {"ansible.builtin.include_role": {**role, "tasks_from": name}} for name in stages
            ],
        }
    )
    assert run.status == 0, run.output
    _is_gone(world, placement, by_entry_point)


BAD_TARGETS = {
    "missing": {},
    "empty": {"host_decommission_target": ""},
    "blank": {"host_decommission_target": " "},
    "null": {"host_decommission_target": None},
    "no host": {"host_decommission_target": []},
    "an empty one among others": {"host_decommission_target": ["compute-1", ""]},
    "a null among others": {"host_decommission_target": ["compute-1", None]},
    "twice the same": {"host_decommission_target": ["compute-1", "compute-1"]},
    "a list as text": {"host_decommission_target": "compute-1,compute-2"},
    "a mapping": {"host_decommission_target": {"compute-1": None}},
    "a number": {"host_decommission_target": 1},
    "undefined": {"host_decommission_target": "{{ nonesuch }}"},
}


@pytest.mark.long
def test_target_without_a_host_is_an_error(ansible: Ansible, world: World) -> None:
    before = world.picture()
    attempt = {"ansible.builtin.include_role": {"name": "osops.placement.host_decommission"}}

    def tried(what: str) -> dict[str, t.Any]:
        said = {
            "ansible.builtin.debug": {
                "msg": f"refused: {what}: {{{{ ansible_failed_result.msg }}}}"
            }
        }
        return {"vars": {**KNOWN, **BAD_TARGETS[what]}, "block": [attempt], "rescue": [said]}

    run = ansible.play({"tasks": [tried(what) for what in BAD_TARGETS]})

    assert [what for what in BAD_TARGETS if f"refused: {what}: " not in run.told] == []
    assert "Check the host" not in run.told
    assert world.picture() == before


@pytest.mark.long
def test_unset_limit_stops_before_any_change(
    ansible: Ansible, world: World, placement: Placement
) -> None:
    host = _dead_host(world)
    inventory = ansible.folder / "inventory"
    inventory.write_text(f"[computes]\n{host}\ncompute-1\ncompute-2\n")
    tasks = [{"ansible.builtin.include_role": {"name": "osops.placement.host_decommission"}}]
    own = {
        "hosts": "computes",
        "vars": {**KNOWN, "host_decommission_target": "{{ inventory_hostname }}"},
        "tasks": tasks,
    }
    before = world.picture()

    unknown = ansible.play(own, arguments=["-i", str(inventory)])
    serially = ansible.play(
        {**own, "serial": 1},
        arguments=["-i", str(inventory), "-e", "host_decommission_max_hosts=2"],
    )
    assert world.picture() == before
    meant = ansible.play(own, arguments=["-i", str(inventory), "--limit", host])

    for run in (unknown, serially):
        assert run.status != 0
        assert "host_decommission_max_hosts is" in run.told and "--limit" in run.told
        assert "Check the host" not in run.told
    assert meant.status == 0, meant.output
    _is_gone(world, placement, host)


@pytest.mark.long
def test_server_arriving_between_check_and_disable_stops_the_run(
    decommission: Decommissioning, world: World, wires: Wires
) -> None:
    host = _new_host(world)
    landed: list[str] = []
    hook = wires.nova.on("PUT", "/os-services/", before=lambda: landed.append(world.boot(host)))

    run = decommission.refused(host)

    assert hook.ran and landed[0] in run.told
    assert f"{host} cannot be decommissioned" in run.told
    assert "Ready to decommission" not in run.told.partition("Disable the service")[2]
    assert host in world.cloud.compute_services() and host in world.cloud.hypervisors()


@pytest.mark.follows("host_report.find_blockers")
@pytest.mark.long
def test_live_host_is_disabled_but_not_deleted_until_stopped(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    host = _new_host(world)

    foretold = decommission.refused(host, "--check")
    run = decommission.refused(host)

    for told in (foretold.told, run.told):
        assert f"The nova-compute of {host} is up" in told
    assert world.cloud.compute_services()[host]["status"] == "disabled"
    world.kill(host)
    assert decommission.done(host).changed == 1
    _is_gone(world, placement, host)


@pytest.mark.long
def test_host_is_blocked_when_nova_does_not_list_servers(
    decommission: Decommissioning, world: World, wires: Wires
) -> None:
    host = _dead_host(world)
    before = world.picture()
    wires.nova.on("GET", f"/servers/detail.*host={host}", nth=0, before=lambda: Fault.BROKEN)

    decommission.refused(host)

    assert world.picture() == before


@pytest.mark.long
def test_nodes_of_one_service_are_decommissioned_singly_and_together(
    decommission: Decommissioning, world: World, placement: Placement
) -> None:
    host = _new_host(world, driver="minicloud_ironic.TwoNodes")
    nodes = {
        name: provider
        for name, provider in placement.providers().items()
        if name in (host, f"{host}-2")
    }
    server = servers.boot(world.cloud, host, host, node=f"{host}-2")
    world.kill(host)
    for name, provider in nodes.items():
        placement.create_provider(f"{name} port", {"VCPU": {"total": 8}}, parent=provider)

    single = decommission.refused(f"{host}-2")
    held = decommission.refused(host)
    servers.delete(world.cloud, server)
    world.hold(server, {})
    done = decommission.done(host)

    assert f"{host}-2 is one of 2" in single.told and f"name {host}." in single.told
    assert server in held.told
    for name, provider in nodes.items():
        assert f"{name} ({provider})" in done.told
    _is_gone(world, placement, host)


@pytest.mark.long
@pytest.mark.parametrize("first", ["clean-up", "return"])
def test_evacuated_host_that_returns_does_not_collide_with_the_cleanup(
    ansible: Ansible, world: World, placement: Placement, first: str
) -> None:
    host = _new_host(world)
    server = world.boot(host)
    world.kill(host)
    migration = servers.evacuate(world.cloud, server, "compute-3")
    assert set(placement.held(server)) == {world.provider(host), world.provider("compute-3")}
    scope = {"orphan_cleanup_hosts": [host]}

    def clean_up() -> Run:
        run = ansible.playbook("cleanup_orphans", variables=scope)
        assert run.status == 0, run.output
        return run

    if first == "clean-up":
        assert clean_up().outcome(server)["outcome"] == "reduced"
    world.restart(host)
    world.wait(
        "Nova to tidy up",
        lambda: servers.migrations(world.cloud, server)[0]["status"] == "completed",
    )
    holdings.await_providers(world.cloud, server, world.provider("compute-3"))
    if first == "return":
        assert clean_up().changed == 0

    assert servers.migrations(world.cloud, server)[0]["uuid"] == migration
    assert placement.held(server) == {world.provider("compute-3"): CLAIM}
    assert servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"] == "compute-3"
    for complaint in ("Traceback", "Failed to clean"):
        assert complaint not in world.log(host)
    assert placement.held(world.boot(host)) == {world.provider(host): CLAIM}
