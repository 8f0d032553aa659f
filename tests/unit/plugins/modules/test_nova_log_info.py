"""`nova_log_info` as the process that Ansible starts on a hypervisor.

It has an old Python, and only ansible-core's module_utils.
"""

import datetime
import gzip
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import ansible
import pytest

from .returned import find_undocumented

ROOT = Path(__file__).parents[4]
U = "b32e5792-427c-43b1-83dc-2d3e3c8d74c4"
MISSING = (
    f"Instance {U} has allocations against this compute host but is not found in the database."
)


@pytest.fixture(params=["3.9", "the tests' own"])
def python(request: pytest.FixtureRequest) -> str:
    if request.param != "3.9":
        return sys.executable
    command = [ROOT / "tests" / "tools" / "find-python", "3.9"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("there is no Python 3.9 on this machine")
    return found.stdout.strip()


def run(python: str, folder: Path, **options: t.Any) -> dict[str, t.Any]:
    arguments = folder / "arguments.json"
    arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": options}))
    path = os.pathsep.join([str(ROOT / "collections"), str(Path(ansible.__file__).parents[1])])
    module = "ansible_collections.osops.placement.plugins.modules.nova_log_info"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "TZ": "UTC"}
    done = subprocess.run(
        [python, "-m", module, arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert find_undocumented("nova_log_info", result) == []
    return result


def line(ago: datetime.timedelta) -> str:
    moment = datetime.datetime.now(datetime.UTC) - ago
    return (
        f"{moment:%Y-%m-%d %H:%M:%S}.123 7 INFO nova.compute.resource_tracker "
        f"[None req-1 - - - - - -] {MISSING}\n"
    )


def test_complaints_are_returned_with_the_files_read(python: str, tmp_path: Path) -> None:
    (tmp_path / "nova-compute.log").write_text(line(datetime.timedelta(hours=1)))
    (tmp_path / "nova-compute.log.1.gz").write_bytes(
        gzip.compress(line(datetime.timedelta(days=3)).encode())
    )
    paths = [str(tmp_path / "nova-compute.log*"), str(tmp_path / "kolla*")]

    everything = run(python, tmp_path, paths=paths, host="compute-17")
    lately = run(python, tmp_path, paths=paths, since="1d")

    assert (everything["changed"], everything["truncated"]) == (False, False)
    assert "warnings" not in everything
    (record,) = everything["records"]
    assert (record["kind"], record["instance"]) == ("not_in_database", U)
    assert (record["host"], record["count"]) == ("compute-17", 2)
    lines = {Path(source["name"]).name: source["lines"] for source in everything["sources"]}
    assert lines == {"nova-compute.log": 1, "nova-compute.log.1.gz": 1}
    assert [record["count"] for record in lately["records"]] == [1]


def test_missing_and_broken_files_give_a_warning(python: str, tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(99))[:-50])

    nothing = run(python, tmp_path, paths=[str(tmp_path / "nonesuch*")])
    broken = run(python, tmp_path, paths=[str(tmp_path / "cut*")])

    assert (nothing["records"], nothing["sources"]) == ([], [])
    assert "nonesuch*" in str(nothing["warnings"])
    assert "cut.gz" in str(broken["warnings"])


def test_complaints_above_the_limit_are_reported(python: str, tmp_path: Path) -> None:
    lines = [line(datetime.timedelta()).replace(U[:4], f"{number:04}") for number in range(9)]
    (tmp_path / "log").write_text("".join(lines))

    result = run(python, tmp_path, paths=[str(tmp_path / "log")], max_records=5)

    assert (len(result["records"]), result["truncated"]) == (5, True)
    assert "max_records (5)" in str(result["warnings"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"since": "yesterday"}, "yesterday"),
        ({"since": f"{10**20}d"}, "longer ago"),
        ({"max_records": 0}, "max_records"),
    ],
)
def test_invalid_options_are_refused(
    python: str, tmp_path: Path, options: dict[str, t.Any], said: str
) -> None:
    result = run(python, tmp_path, **options)

    assert result["failed"]
    assert said in result["msg"]
