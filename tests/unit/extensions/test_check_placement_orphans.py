"""The check for Nagios and NRPE, run as they run it: one line, and an exit status of 0 to 3."""

from __future__ import annotations

import ast
import copy
import dataclasses as d
import datetime
import json
import os
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ....plugins.module_utils._core.models.kinds import KINDS

ROOT = Path(__file__).parents[3]
CHECK = ROOT / "extensions" / "monitoring" / "check_placement_orphans.py"
FIXTURES = ROOT / "tests" / "fixtures" / "report"

OK, WARNING, CRITICAL, UNKNOWN = range(4)
NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
PERFORMANCE = re.compile(r"\w+=\d+s?;\d*;\d*;0")


@d.dataclass(frozen=True)
class Line:
    """What the check printed, in its two parts, and its exit status."""

    status: int
    text: str
    figures: dict[str, str]


class Folder:
    """The output directory of a run that has just ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings = json.loads((FIXTURES / "findings.json").read_text())
        self.findings["finished_at"] = _format_time(0)

    def remove_findings(self) -> None:
        self.findings["findings"] = []
        self.findings["summary"]["verdicts"].update(orphaned=0, drifted=0)

    def write(self, name: str = "findings.json", contents: t.Any = None) -> Path:
        path = self.path / name
        path.write_text(json.dumps(self.findings if contents is None else contents))
        return path

    def check(self, *options: str) -> Line:
        return _run(*options, str(self.write()))


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _format_time(seconds_ago: int) -> str:
    moment = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds_ago)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _run(*arguments: str, python: str = sys.executable) -> Line:
    done = subprocess.run(
        [python, "-I", "-W", "error", str(CHECK), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    # An exit status alone is not enough: Nagios takes 1 and 2 of a crash for WARNING and CRITICAL.
    assert done.stderr == "" and done.stdout.count("\n") == 1, done.stdout + done.stderr
    text, _bar, performance = done.stdout.rstrip("\n").partition("|")
    name, _dash, text = text.partition(" - ")
    assert name == NAMES[done.returncode]
    for part in performance.split():
        assert PERFORMANCE.fullmatch(part), part
    figures = dict(part.split("=") for part in performance.split())
    return Line(done.returncode, text, figures)


def test_cloud_without_orphans_is_ok(folder: Folder) -> None:
    folder.remove_findings()

    line = folder.check()

    assert line.status == OK
    assert "2 undecided, 7 protected" in line.text and line.text.startswith("0 orphaned, 0 ")
    assert line.figures["orphans"] == "0;0;;0" and line.figures["undecided"] == "2;;;0"


@pytest.mark.parametrize(
    ("options", "status", "limits"),
    [
        (["--undecided", "ok"], OK, ";;0"),
        (["--undecided", "warning"], WARNING, ";0;;0"),
        (["--undecided", "critical"], CRITICAL, ";;0;0"),
        # A threshold of the user's own holds.
        (["--undecided", "warning", "-w", "undecided=2"], OK, ";2;;0"),
        (["--undecided", "never"], UNKNOWN, ""),
    ],
)
def test_undecided_consumers_are_what_the_option_says(
    folder: Folder, options: list[str], status: int, limits: str
) -> None:
    folder.remove_findings()

    line = folder.check(*options)

    assert line.status == status
    assert line.figures.get("undecided", "").endswith(limits)


def test_undecided_consumers_do_not_replace_the_threshold_for_orphans(folder: Folder) -> None:
    line = folder.check("--undecided", "warning")

    assert line.text.endswith("[orphans 9 > 0, undecided 2 > 0]")


def test_orphans_are_a_warning_with_kinds_and_amounts(folder: Folder) -> None:
    line = folder.check()

    assert line.status == WARNING
    assert line.text.startswith("9 orphaned, 3 drifted (1 deleted_migration, 4 deleted_server, ")
    assert all(f" {amount}" in line.text for amount in ("20 GiB disk,", "7 GiB,", "12 VCPU;"))
    assert line.text.endswith("[orphans 9 > 0]")
    assert line.figures["stranded_MEMORY_MB"] == "7168;;;0"
    assert line.figures["deleted_server"] == "4;;;0"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["-w", "8"], WARNING),
        (["-w", "9"], OK),
        (["--warning", "orphans=9"], OK),
        (["-c", "8"], CRITICAL),
        (["-c", "9"], WARNING),
        (["-w", "9", "-c", "9"], OK),
        (["-w", "deleted_server=3"], WARNING),
        (["-w", "deleted_server=4"], OK),
        (["-w", "stale_service=0"], OK),
        (["-w", "VCPU=11"], WARNING),
        (["-w", "VCPU=12"], OK),
        (["-w", "100", "-c", "MEMORY_MB=7167"], CRITICAL),
        (["-w", "100", "-c", "CUSTOM_NONE=0"], OK),
        (["-w", "drifted=2"], WARNING),
        (["-w", "undecided=1"], WARNING),
        (["-w", "undecided=2", "-w", "protected=7"], OK),
        (["-w", "100", "-w", "new=0"], OK),
    ],
)
def test_threshold_is_exceeded_by_a_greater_figure(
    folder: Folder, options: list[str], status: int
) -> None:
    line = folder.check(*options)

    assert line.status == status
    assert ("[" in line.text) is (status != OK)


@pytest.mark.parametrize(
    ("age", "options", "status"),
    [
        (25 * 3600, [], OK),
        (27 * 3600, [], UNKNOWN),
        (27 * 3600, ["--max-age", "2d"], OK),
        (120, ["--max-age", "90"], UNKNOWN),
        (120, ["--max-age", "90s"], UNKNOWN),
        (120, ["--max-age", "15m"], OK),
        (-120, [], OK),
        (-3600, [], UNKNOWN),
    ],
)
def test_old_file_is_unknown(folder: Folder, age: int, options: list[str], status: int) -> None:
    folder.remove_findings()
    folder.findings["finished_at"] = _format_time(age)

    assert folder.check(*options).status == status


SOME = "FILE is only about some of the cloud"
NO_FINDINGS = "FILE is not a findings.json that a run of osops.placement wrote"
# What is changed in the file: the part, the key, its value, or nothing in its place.
EDITS: dict[str, tuple[str, str, t.Any, str]] = {
    "a check failed": (
        "summary coverage",
        "failed_checks",
        ["Use another|role.\n"],
        "the reading in FILE is not sound: Use another/role. ",
    ),
    "incomplete": ("summary coverage", "complete", False, "the reading in FILE is not complete"),
    "of a host": ("scope", "hosts", ["compute-1"], f"{SOME} (hosts): "),
    "of a kind": ("scope", "kinds", ["deleted_server"], f"{SOME} (kinds): "),
    "a triage": ("scope", "mode", "triage", f"{SOME} (mode triage): "),
    "newer": ("", "format", 2, "FILE has format 2, and this check reads 1"),
    "an entry is lost": (
        "",
        "protected",
        [],
        "the figures in FILE contradict its entries: it was edited",
    ),
    "no time": ("", "finished_at", "yesterday", NO_FINDINGS),
    "no coverage": ("summary", "coverage", None, NO_FINDINGS),
    "texts as entries": ("", "findings", ["x"] * 12, NO_FINDINGS),
}


@pytest.mark.parametrize(("part", "key", "value", "sentence"), EDITS.values(), ids=EDITS)
def test_file_that_proves_nothing_is_unknown(
    folder: Folder, part: str, key: str, value: t.Any, sentence: str
) -> None:
    found = folder.findings
    for name in part.split():
        found = found[name]
    found[key] = value

    line = folder.check()

    assert line.status == UNKNOWN and line.figures == {}
    assert line.text.replace(str(folder.path / "findings.json"), "FILE").startswith(sentence)


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (None, "cannot be read: No such file or directory"),
        *(
            (contents, "is not JSON, or was cut short")
            for contents in (b"", b'{"format": 1, "summ', b"\xff\xfe", b"[" * 100_000)
        ),
        *(
            (contents, NO_FINDINGS.removeprefix("FILE "))
            for contents in (b"[]", b"null", b'{"format": 1}')
        ),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_unreadable_file_is_unknown(tmp_path: Path, contents: bytes | None, sentence: str) -> None:
    path = tmp_path / "findings.json"
    if contents is not None:
        path.write_bytes(contents)

    line = _run(str(path))

    assert (line.status, line.text) == (UNKNOWN, f"{path} {sentence}")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "the following arguments are required: FILE"),
        (["--no-such-option"], "required"),
        (["-w", "many", "f"], "'many' is not a threshold such as 10 or VCPU=64"),
        (["-w", "-1", "f"], "'-1' is not a threshold such as 10 or VCPU=64"),
        (["-c", "delted_server=1", "f"], "'delted_server' is neither one of orphans, "),
        (["--max-age", "soon", "f"], "--max-age 'soon' is not a duration"),
    ],
)
def test_wrong_option_is_unknown_and_not_critical(options: list[str], sentence: str) -> None:
    line = _run(*options)

    assert line.status == UNKNOWN and sentence in line.text


def test_hosts_that_were_not_judged_make_ok_unknown_and_leave_an_alarm(folder: Folder) -> None:
    folder.findings["summary"]["coverage"].update(
        complete=False, partial=True, silent_hosts=2, unjudged_hosts=["compute-8", "compute-9"]
    )
    sentence = "2 hosts were not judged because their cell does not answer"

    alarm = folder.check()
    assert alarm.status == WARNING and sentence in alarm.text
    calm = folder.check("-w", "100")
    assert calm.status == UNKNOWN and sentence in calm.text


def test_reading_of_a_part_can_be_accepted(folder: Folder) -> None:
    folder.findings["scope"]["hosts"] = ["compute-1"]

    assert folder.check("--any-scope").status == WARNING


def _outcomes_of(findings: t.Any, outcome: str) -> dict[str, t.Any]:
    outcomes = [
        {**entry["change"], "finding": entry["id"], "kind": entry["kind"], "outcome": outcome}
        for entry in findings["findings"]
        if entry["change"] and entry["verdict"] == "orphaned"
    ]
    return {"format": 1, "check_mode": False, "outcomes": outcomes}


def _check_remediated(folder: Folder, remediation: t.Any, seconds_later: int = 1) -> Line:
    path, beside = folder.write(), folder.write("remediation.json", remediation)
    at = path.stat().st_mtime + seconds_later
    os.utime(beside, (at, at))
    return _run(str(path))


def test_what_the_run_removed_is_no_longer_counted(folder: Folder) -> None:
    line = _check_remediated(folder, _outcomes_of(folder.findings, "removed"))

    assert line.status == OK
    assert line.text.startswith("0 orphaned, 3 drifted")
    # What the drifted findings strand is left.
    assert line.figures["stranded_VCPU"] == "2;;;0"


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_change_that_was_not_made_is_counted(folder: Folder, outcome: str) -> None:
    line = _check_remediated(folder, _outcomes_of(folder.findings, outcome))

    assert line.status == (CRITICAL if outcome == "failed" else WARNING)
    assert line.text.startswith("9 orphaned")


def test_outcomes_of_an_earlier_run_or_of_check_mode_do_not_count(folder: Folder) -> None:
    remediation = _outcomes_of(folder.findings, "removed")

    assert _check_remediated(folder, remediation, seconds_later=-1).status == WARNING
    assert _check_remediated(folder, {**remediation, "check_mode": True}).status == WARNING


def test_outcome_of_another_change_of_the_same_consumer_does_not_count(folder: Folder) -> None:
    remediation = _outcomes_of(folder.findings, "removed")
    for outcome in remediation["outcomes"]:
        outcome["generation"] = 99

    assert _check_remediated(folder, remediation).text.startswith("9 orphaned")


@pytest.mark.parametrize(
    ("outcome", "check_mode", "seconds_later", "left"),
    [
        ("restored", False, 1, 9),
        ("restored", True, 1, 0),
        ("restored", False, -1, 0),
        ("skipped", False, 1, 0),
        ("failed", False, 1, 0),
    ],
)
def test_what_was_restored_since_is_counted_again(
    folder: Folder, outcome: str, check_mode: bool, seconds_later: int, left: int
) -> None:
    remediation = _outcomes_of(folder.findings, "removed")
    restoration = {**_outcomes_of(folder.findings, outcome), "check_mode": check_mode}
    beside = folder.write("restoration.json", restoration)
    # The remediation is a second later than the findings.
    at = folder.write().stat().st_mtime + 1 + seconds_later
    os.utime(beside, (at, at))

    assert _check_remediated(folder, remediation).text.startswith(f"{left} orphaned")


@pytest.mark.parametrize("broken", [[], {}, {"check_mode": False, "outcomes": [1]}])
@pytest.mark.parametrize("name", ["remediation.json", "restoration.json"])
def test_broken_outcomes_are_unknown(folder: Folder, name: str, broken: t.Any) -> None:
    remediation = _outcomes_of(folder.findings, "removed")
    if name == "restoration.json":
        beside = folder.write(name, broken)
        at = beside.stat().st_mtime + 100
        os.utime(beside, (at, at))
    else:
        remediation = broken

    line = _check_remediated(folder, remediation)

    assert line.status == UNKNOWN and name in line.text


def _write_shards(folder: Folder, numbers: tuple[int, ...], count: int) -> list[str]:
    paths = []
    for number in numbers:
        part = copy.deepcopy(folder.findings)
        part["scope"]["shard"] = {"number": number, "count": count}
        paths.append(str(folder.write(f"{number}.json", part)))
    return paths


def test_files_of_several_clouds_and_shards_are_added_up(folder: Folder) -> None:
    line = _run("-w", "17", *_write_shards(folder, (1, 2), 2))

    assert line.status == WARNING and line.text.startswith("18 orphaned")
    assert line.figures["stranded_VCPU"] == "24;;;0"


def test_missing_shard_is_unknown(folder: Folder) -> None:
    line = _run(*_write_shards(folder, (1, 3), 4))

    assert line.status == UNKNOWN and " 2/4, 4/4 " in line.text


def test_names_from_the_cloud_cannot_add_figures_or_lines(folder: Folder) -> None:
    folder.findings["findings"][0]["kind"] = "x|y=1;2;3\n\x1b[2J"
    amounts = next(iter(folder.findings["findings"][0]["change"]["frees"].values()))
    amounts["A|b\n= ;"] = 3

    line = folder.check()

    assert line.status == WARNING
    assert set(line.figures) >= {"x_y_1_2_3___2J"}


def test_check_runs_with_the_oldest_python(folder: Folder) -> None:
    command = [str(ROOT / "tests" / "tools" / "find-python"), "3.9"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("Python 3.9 is missing")

    assert _run(str(folder.write()), python=found.stdout.strip()).status == WARNING


def test_help_lists_the_options() -> None:
    command = [sys.executable, "-I", str(CHECK), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    for option in ("--warning", "--critical", "--max-age", "--any-scope"):
        assert option in done.stdout


def test_check_knows_all_kinds_and_needs_the_standard_library_only() -> None:
    tree = ast.parse(CHECK.read_text())
    [kinds] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_KINDS"
    ]
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    }

    assert kinds == tuple(kind.name for kind in KINDS)
    assert imported <= sys.stdlib_module_names
