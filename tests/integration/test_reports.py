"""The reports of runs against a real cloud: what is new, what failed, and who is notified."""

import contextlib
import csv
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import typing as t
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .local_server import Webhook
from .support import Ansible, Minicloud, Placement, Run, assert_nothing_changed, long
from .world import World

ALL = ["json", "markdown", "csv", "prometheus"]
FILES = {"findings.json", "report.md", "findings.csv", "placement_orphans.prom"}
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
FORGOTTEN = {"orphan_cleanup_remediate_kinds": ["unknown_consumer"]}


@pytest.fixture
def orphan(minicloud: Minicloud, world: World) -> str:
    """A consumer on compute-1 that Nova does not know."""
    minicloud.scenario("healthy")
    return world.claim("compute-1")


def _text(run: Run, name: str) -> str:
    return (run.folder / "orphan-cleanup" / name).read_bytes().decode("utf-8")


def _metric(text: str, name: str, **labels: str) -> float | None:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if (
                sample.name == f"placement_orphan_{name}"
                and labels.items() <= sample.labels.items()
            ):
                return sample.value
    return None


def _new(run: Run) -> set[str]:
    return {entry["id"] for entry in run.entries if entry["new"]}


def _seen(run: Run) -> dict[str, str]:
    return {entry["id"]: entry["first_seen"] for entry in run.entries}


def test_check_mode_writes_only_reports_and_the_next_run_finds_nothing_new(
    ansible: Ansible, minicloud: Minicloud, placement: Placement, world: World, orphan: str
) -> None:
    minicloud.scenario("hostile_names")
    before = placement.everything()
    variables = {**FORGOTTEN, "orphan_cleanup_report_formats": ALL}

    run = ansible.playbook("cleanup_orphans", "--check", variables=variables)

    assert run.status == 0, run.output
    assert_nothing_changed(run, before, placement)
    folder = run.folder / "orphan-cleanup"
    assert {path.name for path in folder.iterdir()} == {
        *FILES,
        "plan.json",
        "remediation.json",
        "run.json",
    }
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    found = run.read("findings.json")
    rows = list(csv.DictReader(_text(run, "findings.csv").splitlines(), strict=True))
    assert sorted(row["subject"] for row in rows) == sorted(
        entry["consumer"] or entry["id"].partition("/")[2] for entry in run.entries
    )
    assert {row["outcome"] for row in rows if row["subject"] == orphan} == {"would be removed"}
    assert "Without check mode:" in _text(run, "report.md")
    metrics = _text(run, "placement_orphans.prom")
    assert (
        _metric(metrics, "findings", kind="unknown_consumer")
        == found["summary"]["kinds"]["unknown_consumer"]
    )
    assert (
        _metric(metrics, "new_findings", kind="deleted_server")
        == found["summary"]["new"]["deleted_server"]
    )
    assert _metric(metrics, "planned_changes") == len(run.read("plan.json")["changes"])
    assert _new(run) == set(_seen(run)) and f"unknown_consumer/{orphan}" in _new(run)

    known, added = _seen(run), world.claim("compute-2")
    again = ansible.playbook("detect_orphans", variables=variables)

    assert (again.status, again.changed) == (0, 0), again.output
    assert _new(again) == {f"unknown_consumer/{added}"}
    assert {identity: seen for identity, seen in _seen(again).items() if identity in known} == known
    assert (
        _metric(_text(again, "placement_orphans.prom"), "new_findings", kind="unknown_consumer")
        == 1
    )
    assert f"known since {known[f'unknown_consumer/{orphan}']}" in again.told


@pytest.mark.long
def test_metrics_after_a_failed_run_keep_the_time_of_the_last_success(
    ansible: Ansible, placement: Placement, world: World, orphan: str, webhook: Webhook
) -> None:
    """The limit is exceeded: nothing is new, and still a notification is sent."""
    metrics = ansible.folder / "textfile" / "placement_orphans.prom"
    orphans = sorted([orphan, world.claim("compute-1")])
    variables = {
        **FORGOTTEN,
        "orphan_cleanup_consumers": orphans,
        "orphan_cleanup_metrics_path": "textfile/placement_orphans.prom",
    }
    metrics.parent.mkdir()
    first = ansible.playbook("detect_orphans", variables=variables)
    good = metrics.read_text()
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={
            **variables,
            "orphan_cleanup_max_changes": 1,
            "orphan_cleanup_notify_url": webhook.url,
        },
    )

    assert first.status == 0 and run.status == 2, run.output
    assert_nothing_changed(run, before, placement)
    told = metrics.read_text()
    succeeded, last = (
        _metric(told, "last_success_timestamp_seconds"),
        _metric(told, "last_run_timestamp_seconds"),
    )
    assert (
        succeeded
        == _metric(good, "last_success_timestamp_seconds")
        == _metric(good, "last_run_timestamp_seconds")
    )
    assert succeeded is not None and last is not None and succeeded < last
    assert (_metric(good, "failed"), _metric(told, "failed")) == (0, 1)
    assert [path.name for path in metrics.parent.iterdir()] == [metrics.name]
    assert (
        metrics.stat().st_mode & 0o777 == 0o644 and metrics.parent.stat().st_mode & 0o777 == 0o755
    )
    (body,) = webhook.bodies
    assert body["new_count"] == 0 and run.failed_stages == {"planned"}
    assert run.read("run.json")["planned"]["msg"] in " ".join(body["troubles"])


@pytest.mark.long
def test_unreadable_cloud_is_notified_and_keeps_the_last_reports(
    ansible: Ansible, orphan: str, webhook: Webhook
) -> None:
    variables = {"orphan_cleanup_consumers": [orphan], "orphan_cleanup_report_formats": ALL}
    run = ansible.playbook("detect_orphans", variables=variables)
    reports = {name: _text(run, name) for name in FILES}
    ansible.environment.update(
        OS_CLOUD="nonesuch", OS_CLIENT_CONFIG_FILE=str(ansible.folder / "nonesuch.yaml")
    )

    run = ansible.playbook(
        "detect_orphans", variables={**variables, "orphan_cleanup_notify_url": webhook.url}
    )

    assert run.status == 2, run.output
    assert {name: _text(run, name) for name in FILES} == reports
    (body,) = webhook.bodies
    assert body["summary"] is None and "nonesuch" in " ".join(body["troubles"])


@pytest.mark.parametrize("sent_as", ["text", long("json")])
def test_new_finding_is_notified_once_even_in_check_mode(
    ansible: Ansible, orphan: str, webhook: Webhook, sent_as: str
) -> None:
    variables = {
        **{
            "orphan_cleanup_consumers": [orphan],
            "orphan_cleanup_state": "kept/state.json",
            "orphan_cleanup_report_formats": ["markdown"],
        },
        **{"orphan_cleanup_notify_url": webhook.url, "orphan_cleanup_notify_format": sent_as},
    }

    run = ansible.playbook("detect_orphans", "--check", variables=variables)

    assert run.status == 0, run.output
    (body,) = webhook.bodies
    text = body["text"] if sent_as == "text" else json.dumps([body["new"], body["reports"]])
    assert orphan in text and "report.md" in text
    assert "SECRET-of-the-hook" not in run.output
    assert (run.folder / "kept" / "state.json").stat().st_mode & 0o777 == 0o600
    if sent_as == "json":
        (run.folder / "orphan-cleanup" / "findings.json").unlink()
        ansible.playbook("detect_orphans", variables=variables)
        assert len(webhook.bodies) == 1, "it is known from the state file"


@pytest.mark.long
def test_each_of_several_clouds_notifies_separately(
    ansible: Ansible, orphan: str, webhook: Webhook
) -> None:
    inventory = ansible.folder / "clouds.json"
    inventory.write_text(
        json.dumps({"clouds": {"hosts": {"north": {"orphan_cleanup_notify_url": webhook.url}}}})
    )
    variables = {
        "orphan_cleanup_consumers": [orphan],
        "orphan_cleanup_report_formats": ["prometheus"],
    }

    run = ansible.playbook("detect_clouds", "--inventory", str(inventory), variables=variables)

    assert run.status == 0, run.output
    (body,) = webhook.bodies
    assert [entry["consumer"] for entry in body["new"]] == [orphan]
    assert _metric(_text(run, "north/placement_orphans.prom"), "failed") == 0


@pytest.mark.long
def test_detect_job_notifies_even_when_given_a_plan(
    ansible: Ansible, orphan: str, webhook: Webhook
) -> None:
    variables = {
        "orphan_cleanup_consumers": [orphan],
        "orphan_cleanup_report_formats": ["prometheus"],
    }
    handed = {
        "orphan_cleanup_plan": "of-the-job-before.json",
        "orphan_cleanup_notify_url": webhook.url,
    }

    run = ansible.playbook("detect_orphans", variables={**variables, **handed})

    assert run.status == 0, run.output
    (body,) = webhook.bodies
    assert [entry["consumer"] for entry in body["new"]] == [orphan]
    assert _metric(_text(run, "placement_orphans.prom"), "failed") == 0


@pytest.mark.long
def test_two_plans_in_one_play_are_notified_separately(
    ansible: Ansible, orphan: str, webhook: Webhook
) -> None:
    young = {
        "orphan_cleanup_min_age": 0,
        "orphan_cleanup_unknown_min_age": 0,
        "orphan_cleanup_notify_url": webhook.url,
    }
    ansible.playbook(
        "cleanup_orphans", "--check", variables={**FORGOTTEN, "orphan_cleanup_consumers": [orphan]}
    )
    plans = [
        str(ansible.folder / "orphan-cleanup" / "plan.json"),
        str(ansible.folder / "nonesuch.json"),
    ]
    apply = {"ansible.builtin.include_role": {"name": "osops.placement.orphan_cleanup"}}
    tasks = [{**apply, "vars": {"orphan_cleanup_plan": plan}} for plan in plans]

    run = ansible.play({"vars": {**young, **FORGOTTEN}, "tasks": tasks})

    assert run.status == 2 and "nonesuch.json" in run.told
    (body,) = webhook.bodies
    assert "nonesuch.json" in " ".join(body["troubles"])
    assert body["tally"] in (None, {})


@pytest.mark.long
@pytest.mark.parametrize("required", [False, True])
def test_refused_notification_fails_the_run_only_if_required(
    ansible: Ansible, orphan: str, webhook: Webhook, required: bool
) -> None:
    webhook.status = 500
    variables = {
        "orphan_cleanup_consumers": [orphan],
        "orphan_cleanup_notify_url": webhook.url,
        "orphan_cleanup_notify_required": required,
    }

    run = ansible.playbook("detect_orphans", variables=variables)

    assert run.status == (2 if required else 0), run.output
    assert "answer was 500." in run.told
    assert "SECRET-of-the-hook" not in run.output
    assert len(webhook.bodies) == 3


@pytest.mark.long
@pytest.mark.parametrize("theirs", [True, False])
def test_reviewed_plan_is_reported_with_its_findings(
    ansible: Ansible, placement: Placement, orphan: str, theirs: bool
) -> None:
    variables = {
        **FORGOTTEN,
        "orphan_cleanup_consumers": [orphan],
        "orphan_cleanup_report_formats": ["csv"],
    }
    run = ansible.playbook("cleanup_orphans", "--check", variables=variables)
    plan = ansible.folder / "reviewed.json"
    plan.write_text((run.folder / "orphan-cleanup" / "plan.json").read_text())
    if not theirs:
        ansible.playbook("detect_orphans", variables=variables)
    before = _text(run, "findings.csv")

    # A plan is applied as a whole.
    del variables["orphan_cleanup_consumers"]
    run = ansible.playbook(
        "cleanup_orphans", variables={**variables, "orphan_cleanup_plan": plan.name}
    )

    assert run.status == 0, run.output
    assert placement.held(orphan) == {}
    (row,) = csv.DictReader(_text(run, "findings.csv").splitlines(), strict=True)
    assert row["outcome"] == ("removed" if theirs else "")
    assert (_text(run, "findings.csv") == before) is not theirs


@pytest.mark.long
def test_files_are_the_same_where_only_modules_can_read_and_write_them(
    ansible: Ansible, orphan: str
) -> None:
    """On the controller the actions open the files, elsewhere modules do."""
    plugins = Path(__file__).with_name("connection_plugins")
    ansible.environment["ANSIBLE_CONNECTION_PLUGINS"] = str(plugins)
    findings = ansible.folder / "findings.json"
    ansible.direct("orphan_detect", consumers=[orphan], dest=str(findings), **NO_AGE)
    written = {}
    for connection in ("local", "elsewhere"):
        folder = ansible.folder / connection
        run = ansible.play({"connection": connection, "tasks": _plan_and_report(findings, folder)})
        assert run.status == 0, run.output
        assert "Orphaned allocations" in run.output
        written[connection] = {
            path.name: (path.read_text(), path.stat().st_mode & 0o777)
            for path in (*folder.iterdir(), *(folder / "textfile").iterdir())
            if path.is_file()
        }

    assert written["local"] == written["elsewhere"]
    assert {name: mode for name, (_text, mode) in written["local"].items()} == {
        "plan.json": 0o600,
        "report.md": 0o600,
        "findings.csv": 0o600,
        "orphans.prom": 0o644,
    }


def _plan_and_report(findings: Path, folder: Path) -> list[dict[str, t.Any]]:
    plan = {
        "findings": str(findings),
        "kinds": ["unknown_consumer"],
        "max_share": 1.0,
        "dest": str(folder / "plan.json"),
    }
    report = {
        "findings": str(findings),
        "formats": ["markdown", "csv", "prometheus"],
        "output_dir": str(folder),
        "metrics_path": str(folder / "textfile" / "orphans.prom"),
    }
    return [{"osops.placement.orphan_plan": plan}, {"osops.placement.orphan_report": report}]


def _on_terminal(ansible: Ansible, columns: int, *command: str) -> str:
    """Return the output of a command on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {
        name: value
        for name, value in ansible.environment.items()
        if name not in ("ANSIBLE_NOCOLOR", "NO_COLOR", "COLUMNS")
    }
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ansible.folder,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    printed = b""
    # At its end a terminal is an error to its reader.
    with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
        while read := terminal.read(65536):
            printed += read
    assert process.wait() == 0, printed
    return printed.decode("utf-8").replace("\r\n", "\n")


@pytest.mark.long
@pytest.mark.parametrize("columns", [80, long(110)])
def test_terminal_output_has_colours_and_safe_lines(
    ansible: Ansible, orphan: str, columns: int
) -> None:
    path = ansible.folder / "findings.json"
    ansible.direct("orphan_detect", consumers=[orphan], dest=str(path), **NO_AGE)
    interpreter = f"ansible_python_interpreter={sys.executable}"
    command = (
        ansible.program("ansible"),
        "localhost",
        "-e",
        interpreter,
        "-m",
        "osops.placement.orphan_report",
        "-a",
        f"findings={path}",
    )

    shown = _on_terminal(ansible, columns, *command)
    piped = ansible.command(*command).output

    (line,) = (line for line in shown.splitlines() if line.startswith("\x1b[0;33munknown_consumer"))
    assert re.fullmatch(rf"\x1b\[0;33munknown_consumer +{orphan}\x1b\[0m", line)
    table = re.sub(
        r"\x1b\[[\d;]*m",
        "",
        shown[shown.index("Orphaned allocations") : shown.index("hypervisors.")],
    )
    assert columns - 20 < max(map(len, table.splitlines())) < columns
    assert "\x1b" not in piped and f"{'unknown_consumer':23}{orphan}" in piped
