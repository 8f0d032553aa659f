"""`heal_allocations`: Nova gives servers their missing allocations, and no others.

Every exit status is reported.
"""

import dataclasses as d
import re
import shlex
import sys
import typing as t
import uuid
from pathlib import Path

import pytest
from minicloud_ctl import servers

from .support import Ansible, Minicloud, Placement, Run
from .world import CELL1, CLAIM, World

pytestmark = pytest.mark.usefixtures("healthy")

# The words between the command of a controller and nova-manage, which no shell may interpret.
CONTAINER = ["exec", "nova api", "$HOME;reboot"]
CALL = [*CONTAINER, "placement", "heal_allocations", "--verbose", "--instance"]


class Controller:
    """A program in place of `podman` that records how it is called.

    It then runs the real nova-manage, or ends with a given status.
    """

    def __init__(self, folder: Path, minicloud: Minicloud) -> None:
        self._log = folder / "calls"
        self._log.touch()
        self._program = folder / "a container's runtime"
        self._real = shlex.join(minicloud.nova_manage)
        self.write({})

    def write(self, does: t.Mapping[str, str]) -> None:
        """Create the program.

        `does` is what it does for some servers, as lines of a shell in which `nova_manage SERVER`
        heals one.
        """
        cases = "".join(f"{server}) {lines};;\n" for server, lines in does.items())
        self._program.write_text(
            f"""#!/bin/sh
            (for word; do printf '%s|' "$word"; done; echo) >> {shlex.quote(str(self._log))}
            nova_manage() {{ {self._real} placement heal_allocations --instance "$1"; }}
            case $8 in
            {cases}
            esac
            shift {len(CONTAINER)}
            exec {self._real} "$@"
            """
        )
        self._program.chmod(0o755)

    @property
    def command(self) -> str:
        return shlex.join([str(self._program), *CONTAINER])

    @property
    def calls(self) -> list[list[str]]:
        """Return the arguments of each call."""
        return [line.split("|")[:-1] for line in self._log.read_text().splitlines()]


@pytest.fixture
def controller(tmp_path: Path, minicloud: Minicloud) -> Controller:
    return Controller(tmp_path, minicloud)


@pytest.fixture
def heal(ansible: Ansible, controller: Controller) -> t.Callable[..., Run]:
    """Run `heal_allocations` for some servers, with the command of the controller."""

    def run(consumers: t.Collection[str], *arguments: str, **variables: t.Any) -> Run:
        given = {
            "orphan_cleanup_consumers": list(consumers),
            "orphan_cleanup_nova_manage": controller.command,
            **variables,
        }
        return ansible.playbook("heal_allocations", *arguments, variables=given)

    return run


@pytest.fixture(scope="module")
def bare(world: World) -> t.Callable[[int], list[str]]:
    """Create so many live servers without allocations, in the order of their uuids."""
    made: list[str] = []

    def boot(count: int) -> list[str]:
        while len(made) < count:
            asked = [
                servers.request_boot(world.cloud, f"heal-{uuid.uuid4()}", "compute-2")
                for _more in range(count - len(made))
            ]
            made.extend(asked)
            world.forget(*asked)
            for server in asked:
                servers.settle(world.cloud, server, "compute-2")
        chosen = sorted(made[:count])
        for server in chosen:
            world.hold(server, {})
        return chosen

    return boot


def outcomes(run: Run) -> dict[str, tuple[bool, str, str]]:
    """Return by server whether something was changed, the outcome and its reason."""
    servers = re.findall(r"=> \(item=([0-9a-f-]{36})\)", run.output)
    states = re.findall(r"Record the outcome\] \*+\n(ok|changed): \[localhost\]", run.output)
    changed = dict(zip(servers, states, strict=True))
    # A sentence that is too long for one line continues in lines that begin with spaces.
    said = re.findall(
        r"^(failed|skipped|healed|would be healed) +([0-9a-f-]{36})  (.*(?:\n    .*)*)",
        run.output,
        re.MULTILINE,
    )
    return {
        server: (changed[server] == "changed", outcome, " ".join(reason.split()))
        for outcome, server, reason in said
    }


@d.dataclass(frozen=True)
class Others:
    """Servers that must not be changed, each for its own reason."""

    unconfirmed: str
    busy: str
    elsewhere: str
    excluded: str
    unselected: str


@pytest.fixture
def others(world: World) -> Others:
    made = Others(*(world.boot("compute-3") for _field in d.fields(Others)))
    servers.migrate(world.cloud, made.unconfirmed, "compute-4")
    world.sql(CELL1, "UPDATE instances SET task_state = 'rebooting' WHERE uuid = ?", made.busy)
    for server in d.astuple(made):
        world.hold(server, {})
    world.hold(made.elsewhere, {world.provider("compute-4"): CLAIM})
    return made


@pytest.mark.long
def test_heal_predicts_heals_and_verifies_only_servers_without_allocation(
    heal: t.Callable[..., Run],
    controller: Controller,
    world: World,
    placement: Placement,
    others: Others,
) -> None:
    plain, special = (
        world.boot("compute-3"),
        world.boot("compute-3", world.flavor(2, 512, 1, extra_specs={"resources:VCPU": "1"})),
    )
    for server in (plain, special):
        world.hold(server, {})
    everybody = [plain, special, *d.astuple(others)]
    chosen = {
        "orphan_cleanup_exclude_consumers": [others.excluded],
        "orphan_cleanup_select": f"[?consumer != '{others.unselected}']",
        "orphan_cleanup_max_changes": 2,
    }
    before = world.picture()

    foretold = heal(everybody, "--check", **chosen)

    assert world.picture() == before
    assert (foretold.status, foretold.changed) == (0, 2), foretold.output
    assert {
        server: outcome for server, (_changed, outcome, _reason) in outcomes(foretold).items()
    } == dict.fromkeys((plain, special), "would be healed")
    assert all(
        "[dry-run] Create allocations" in reason
        for _changed, _outcome, reason in outcomes(foretold).values()
    )
    for server in (plain, special):
        assert foretold.entry(server)["change"] is not None
    assert controller.calls == [[*CALL, server, "--dry-run"] for server in sorted([plain, special])]

    healed = heal(everybody, **chosen)

    after = world.picture()
    assert (healed.status, healed.changed) == (0, 2), healed.output
    assert controller.calls[2:] == [[*CALL, server] for server in sorted([plain, special])]
    assert {server: told[:2] for server, told in outcomes(healed).items()} == dict.fromkeys(
        (plain, special), (True, "healed")
    )
    home = world.provider("compute-3")
    assert placement.held(plain) == placement.held(special) == {home: CLAIM}
    owner = placement.allocation(plain)
    server = servers.get(world.cloud, plain)
    assert (owner["project_id"], owner["user_id"]) == (server["tenant_id"], server["user_id"])
    for claimed in (plain, special):
        del after["claims"][home][claimed]
    assert after == before

    again = heal(everybody, **chosen)

    assert (again.status, again.changed, outcomes(again)) == (0, 0, {})
    assert len(controller.calls) == 4
    world.sql(CELL1, "UPDATE instances SET task_state = NULL WHERE uuid = ?", others.busy)


@pytest.mark.long
def test_heal_reports_every_exit_code_and_continues(
    heal: t.Callable[..., Run],
    controller: Controller,
    placement: Placement,
    bare: t.Callable[[int], list[str]],
) -> None:
    said = {
        "0": "Nova wrote the allocation.",
        "3": "raise the allocation ratio",
        "4": "Nova found nothing to write",
        "7": "openstack port unset PORT --binding-profile allocation",
        "137": "nova-manage was stopped",
    }
    overtaking, overtaken, lost, theirs, *coded = bare(len(said) + 5)
    *coded, last = coded
    code = dict(zip(coded, said, strict=True))
    controller.write(
        {
            **{server: f"echo out of {number}; exit {number}" for server, number in code.items()},
            # The second one gets its allocation between detection and its turn.
            overtaking: f"nova_manage {overtaken}",
            lost: f"nova_manage {lost}; exit 255",
            theirs: f"nova_manage {theirs}; exit 4",
        }
    )

    run = heal([overtaking, overtaken, lost, theirs, *coded, last])

    told = outcomes(run)
    assert run.status != 0 and "Traceback" not in run.output, run.output
    for server, number in code.items():
        changed, outcome, reason = told[server]
        assert (changed, outcome) == (number == "7", "failed"), (number, told[server])
        left = (
            "1 DISK_GB (the root disk of the flavor)."
            if number == "4"
            else "It has no allocations."
        )
        assert said[number] in reason and placement.held(server) == {}
        assert left in reason and reason.count(f"out of {number}") == 1, reason
    assert told[overtaken][:2] == (False, "skipped")
    assert "changed since detection" in told[overtaken][2]
    assert {server: told[server][:2] for server in (overtaking, lost, theirs, last)} == {
        overtaking: (True, "healed"),
        lost: (True, "healed"),
        theirs: (False, "skipped"),
        last: (True, "healed"),
    }
    assert all(placement.held(server) for server in (overtaking, overtaken, lost, theirs, last))
    assert [call[len(CALL) :] for call in controller.calls] == [
        [server] for server in sorted(told) if server != overtaken
    ]
    assert f"{len(coded)} of {len(told)}" in run.told and f": {', '.join(coded)}." in run.told


@pytest.mark.long
def test_heal_stops_above_the_limit(
    heal: t.Callable[..., Run], controller: Controller, bare: t.Callable[[int], list[str]]
) -> None:
    run = heal(bare(2), orphan_cleanup_max_changes=1)

    assert run.status != 0 and run.failed_stages == {"planned"}
    assert controller.calls == []


@pytest.mark.long
def test_heal_reports_a_missing_command_and_runs_only_it_on_the_controller(
    heal: t.Callable[..., Run], tmp_path: Path, bare: t.Callable[[int], list[str]]
) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(
        f"all: {{hosts: {{controller-1: {{ansible_connection: local, ansible_python_interpreter: "
        f"{sys.executable}}}}}}}"
    )
    (server,) = bare(1)
    there = {
        "orphan_cleanup_nova_manage": "/nonesuch/nova-manage",
        "orphan_cleanup_nova_manage_host": "controller-1",
    }

    run = heal([server], "-i", str(inventory), orphan_cleanup_fail_on="never", **there)

    changed, outcome, reason = outcomes(run)[server]
    assert (run.status, changed, outcome) == (0, False, "failed")
    assert "nova-manage ended with 127" in reason and "/nonesuch/nova-manage" in reason
    assert run.output.count("localhost -> controller-1") == 1


@pytest.mark.long
def test_heal_never_uses_this_machine_for_a_controller_without_connection(
    ansible: Ansible, controller: Controller, world: World, bare: t.Callable[[int], list[str]]
) -> None:
    """The play is local, as those of users are.

    It is a prediction by its own parameter, not by `--check`.
    """
    (server,) = bare(1)
    inventory = ansible.folder / "inventory"
    inventory.write_text("nobody ansible_host=127.0.0.1 ansible_port=1\n")
    variables = {
        "orphan_cleanup_consumers": [server],
        "orphan_cleanup_min_age": 0,
        "orphan_cleanup_nova_manage": controller.command,
    }
    include = {
        "ansible.builtin.include_role": {
            "name": "osops.placement.orphan_cleanup",
            "tasks_from": "heal",
        }
    }
    before = world.picture()

    def play(host: str) -> Run:
        given = {**variables, "orphan_cleanup_nova_manage_host": host}
        return ansible.play(
            {"tasks": [include], "vars": given, "check_mode": True},
            arguments=["-i", str(inventory)],
        )

    elsewhere = play("nobody")
    changed, outcome, reason = outcomes(elsewhere)[server]
    assert (changed, outcome, controller.calls) == (False, "failed", [])
    assert "orphan_cleanup_nova_manage_host" in reason and "1 of 1" in elsewhere.told

    here = play("")
    assert (here.status, outcomes(here)[server][:2]) == (0, (True, "would be healed")), here.output
    assert controller.calls == [[*CALL, server, "--dry-run"]]
    assert world.picture() == before


def test_heal_refuses_a_plan(
    heal: t.Callable[..., Run], controller: Controller, bare: t.Callable[[int], list[str]]
) -> None:
    run = heal(bare(1), orphan_cleanup_plan="plan.json")

    assert run.status != 0 and "not accept orphan_cleanup_plan" in run.told
    assert controller.calls == []
