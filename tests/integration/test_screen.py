"""What a user sees of a whole run: how long it is, and what its last lines hold."""

import html
import json
import os
import shlex
import typing as t
import uuid
from pathlib import Path

import pytest

from .interposer import Fault, Wires
from .support import Ansible, Minicloud, Placement, Run
from .world import World

MAX_LINES = 60
FORGOTTEN = {
    "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    "orphan_cleanup_max_share": 1.0,
}


@pytest.fixture
def nine(minicloud: Minicloud, world: World) -> list[str]:
    """Nine consumers on two hosts that Nova does not know."""
    minicloud.scenario("healthy")
    return [world.claim(f"compute-{number % 2 + 1}") for number in range(9)]


def _variables(consumers: list[str], **others: t.Any) -> dict[str, t.Any]:
    return {**FORGOTTEN, "orphan_cleanup_consumers": consumers, **others}


def _get_lines(run: Run) -> list[str]:
    """Return the lines of the standard output, which end with the figures of the host."""
    told, recap, rest = run.output.partition("\nPLAY RECAP ")
    figures = rest.split("\n", 2)[:2]
    return [*told.split("\n"), recap.strip() + figures[0], figures[1]]


def test_detection_of_nine_findings_fits_on_one_screen(ansible: Ansible, nine: list[str]) -> None:
    run = ansible.playbook("detect_orphans", variables=_variables(nine))
    lines = _get_lines(run)

    assert run.status == 0 and len(lines) <= MAX_LINES, run.output
    assert run.output.count("\nTASK [") <= 6
    following = _get_command(run.output, "Next")
    assert " ansible-playbook osops.placement.cleanup_orphans -e " in following
    assert all(uuid in following for uuid in nine) and following.endswith(" --check")
    # Which hosts the cells have is read only for a scope of cells.
    assert run.output.count("skipping:") == 1


@pytest.mark.long
def test_changes_are_listed_with_the_command_that_undoes_them(
    ansible: Ansible, placement: Placement, nine: list[str]
) -> None:
    run = ansible.playbook("cleanup_orphans", variables=_variables(nine))
    lines = _get_lines(run)

    assert run.status == 0 and not any(map(placement.held, nine)), run.output
    assert sum(line.startswith("removed  unknown_consumer  compute-") for line in lines) == 9
    last = "\n".join(lines[-10:])
    (journal,) = (run.folder / "orphan-cleanup").glob("journal-*")
    assert "Outcome: 9 removed." in last and f"Journal: {journal}" in last
    assert _get_command(run.output, "Undo").endswith(f" -e orphan_cleanup_journal={journal}")

    back = ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(journal)}
    )

    assert back.status == 0 and all(map(placement.held, nine)), back.output
    assert "Outcome: 9 restored." in "\n".join(_get_lines(back)[-10:])
    restored = [line for line in _get_lines(back) if line.startswith("restored ")]
    assert len(restored) == 9
    assert all(line.startswith("restored  unknown_consumer  compute-") for line in restored)
    shown, _task, _rest = back.output.partition(": Show the result]")
    assert shown.count("unknown_consumer  compute-") == 9


def _type(ansible: Ansible, command: str) -> tuple[int, str]:
    """Return the exit status and the output of a command, typed as it was printed."""
    programs = os.path.dirname(ansible.program("ansible-playbook"))
    done = ansible.command("/bin/bash", "-c", command, PATH=f"{programs}:{os.environ['PATH']}")
    return done.status, done.output


def _get_command(output: str, label: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith(f"{label}:")]
    return line.partition(":")[2].strip()


@pytest.mark.long
def test_printed_commands_have_the_scope_of_the_run(
    ansible: Ansible, placement: Placement, nine: list[str]
) -> None:
    """The hosts are limited by -e, and a consumer and a host are excluded by a file and -i."""
    before = placement.everything()
    # Those on compute-1.
    kept, *removed = nine[::2]
    inventory = ansible.folder / "site 1"
    (inventory / "group_vars").mkdir(parents=True)
    (inventory / "hosts").write_text("localhost ansible_connection=local", encoding="utf-8")
    (inventory / "group_vars" / "all.yml").write_text(json.dumps(FORGOTTEN), encoding="utf-8")
    more = ansible.folder / "more.yml"
    more.write_text(json.dumps({"orphan_cleanup_exclude_consumers": [kept]}), encoding="utf-8")
    command = (
        "ansible-playbook osops.placement.detect_orphans -i 'site 1' -e @more.yml "
        "-e orphan_cleanup_hosts=compute-1 "
        "-e '{orphan_cleanup_min_age: 0, orphan_cleanup_unknown_min_age: 0}'"
    )

    for _detection_and_check in range(2):
        status, output = _type(ansible, command)
        assert status == 0 and placement.everything() == before, output
        command = _get_command(output, "Next")
        assert "ansible-playbook -i " in command and "more.yml" in command, command
        report = Path(_get_command(output, "Report")).read_text(encoding="utf-8")
        assert command in html.unescape(report)
    status, output = _type(ansible, command)

    assert status == 0, output
    assert [uuid for uuid in nine if not placement.held(uuid)] == removed, output
    status, output = _type(ansible, _get_command(output, "Undo"))
    assert status == 0 and all(map(placement.held, nine)), output


def _get_failure(run: Run) -> str:
    """Return what a run failed with, if that is the last that it printed, and said once."""
    shown = [line for line in _get_lines(run)[:-2] if line]
    (fatal,) = [line for line in run.output.splitlines() if line.startswith("fatal:")]
    assert shown[-1] == fatal and len(fatal) < 500, run.output
    message = json.loads(fatal.partition(" => ")[2])["msg"]
    # Newer versions of Ansible say each error themselves before that.
    before = run.output.partition("[ERROR]")[0].partition("fatal:")[0]
    assert " ".join(message.split())[:60] not in " ".join(before.split()), run.output
    return str(message)


@pytest.mark.long
@pytest.mark.parametrize("cause", ["limit", "unreadable", "unsound", "write"])
def test_failure_is_one_sentence_at_the_end(
    ansible: Ansible, placement: Placement, wires: Wires, nine: list[str], cause: str
) -> None:
    before = placement.everything()
    stages = {"unreadable": {"detected"}, "write": {"remediated"}}
    variables = _variables(nine, orphan_cleanup_max_changes=8 if cause == "limit" else 9)
    if cause == "unreadable":
        variables["orphan_cleanup_cloud"] = "nonesuch"
    elif cause == "unsound":
        wires.placement.offer("1.27")
    elif cause == "write":
        wires.placement.on("POST", "/allocations$", nth=0, before=lambda: Fault.BROKEN)

    run = ansible.playbook("cleanup_orphans", variables=variables)

    assert run.status == 2 and placement.everything() == before, run.output
    assert run.failed_stages == stages.get(cause, {"planned"}) and _get_failure(run)
    # The plan is not a part of it.
    assert "osops.placement.run:" not in run.output and "NOTHING MAY" not in run.output


@pytest.fixture
def old_host(minicloud: Minicloud, world: World) -> tuple[str, str]:
    """A dead host, and a consumer on it that Nova does not know."""
    minicloud.scenario("healthy")
    host = f"screen-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    world.kill(host)
    return host, world.claim(host)


@pytest.mark.long
def test_decommissioning_ends_with_its_result_and_the_commands_to_type(
    ansible: Ansible, placement: Placement, old_host: tuple[str, str]
) -> None:
    host, consumer = old_host
    variables = {
        "host_decommission_target": host,
        "host_decommission_min_age": 0,
        "host_decommission_unknown_min_age": 0,
        "host_decommission_remediate_kinds": ["unknown_consumer"],
        "host_decommission_ignore_other_regions": True,
    }

    def decommission(*arguments: str, **more: t.Any) -> tuple[str, list[str]]:
        run = ansible.playbook("decommission_host", *arguments, variables={**variables, **more})
        assert run.status == 0, run.output
        return run.output, _get_lines(run)[-10:]

    _output, last = decommission("--check")
    assert any(line.startswith(f"ready     {host} ") for line in last), last
    following = f"-e host_decommission_target={host}"
    assert any(line.startswith("Next: ") and line.endswith(following) for line in last), last

    stages = "disable,clean"
    _output, last = decommission("--check", host_decommission_stages=stages)
    assert any(f" -e host_decommission_stages={stages}" in line for line in last), last

    output, last = decommission(host_decommission_stages=stages)
    assert any(line.startswith(f"cleaned   {host} ") for line in last), last
    assert output.count("Journal:") == output.count("Undo:") == 1
    assert not placement.held(consumer)
    (undo,) = [line.partition(":")[2] for line in last if line.startswith("Undo:")]
    journal = shlex.split(undo)[-1].partition("=")[2]
    back = ansible.playbook("restore_allocations", variables={"orphan_cleanup_journal": journal})
    assert back.status == 0 and placement.held(consumer), back.output

    output, last = decommission()
    assert any(line.startswith(f"gone      {host}  service already disabled") for line in last)
    # The provider is gone, and nothing can be restored on it.
    assert "Undo:" not in output.partition("Show the result]")[2]


@pytest.mark.long
def test_blocked_host_is_one_sentence_at_the_end(
    ansible: Ansible, world: World, old_host: tuple[str, str]
) -> None:
    host, consumer = old_host
    variables = {"host_decommission_target": host, "host_decommission_min_age": 0}
    before = world.picture()

    run = ansible.playbook("decommission_host", variables=variables)

    assert run.status == 2 and world.picture() == before, run.output
    failure = _get_failure(run)
    assert failure.startswith(f"{host} cannot be decommissioned") and "(blockers: 1, see" in failure
    assert consumer in run.output
