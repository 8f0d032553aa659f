"""`make test-nova`: runs Nova's own tests, and judges every change of the collection by the truth.

It runs in an environment with a Nova and everything that the tests of that Nova need.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses as d
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
import typing as t

import yaml

from ....tools.json_text import format_json
from .results import count_tests, find_problems, summarize

_HERE = pathlib.Path(__file__).resolve().parent
_REPOSITORY = _HERE.parents[2]
_KEPT = _HERE.parent / "results"
_PREFIX = "nova.tests.functional."
_WORKER = "ansible_collections.osops.placement.tests.judges.nova.worker"
# A process runs so many tests, because its start takes as long as a test.
_TESTS_OF_A_PROCESS = 8


@d.dataclass(frozen=True)
class Choice:
    """Which tests run in which mode, and what is known of them: the file `tests.yml`."""

    tests: dict[str, str]
    planted: dict[str, dict[str, str]]
    left_out: dict[str, str]
    excused: dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-nova NOVA_ARGS='...'", description=__doc__)
    parser.add_argument("--all", action="store_true", help="everything that boots or moves servers")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at the same time")
    parser.add_argument("--missing", action="store_true", help="go on after an interruption")
    parser.add_argument("tests", nargs="*", help=f"only these, below {_PREFIX}; keeps no figures")
    arguments = parser.parse_args()
    nova = importlib.metadata.version("nova")
    folder = _REPOSITORY / "tests" / "output" / f"nova-{nova}"
    if not arguments.missing:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    _link_configuration()
    known = yaml.safe_load((_HERE / "tests.yml").read_text())
    choice = _choose(known, nova, arguments.all, arguments.tests)
    # First, because without them the rest proves nothing.
    jobs = [*_plant(choice, folder), *_divide(choice, folder)]
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.processes) as pool:
        list(pool.map(_run, jobs))
    summary = _summarize(choice, folder)
    summary["about"] = {
        "nova": nova,
        "placement": importlib.metadata.version("openstack-placement"),
        "python": platform.python_version(),
        "date": str(datetime.datetime.now(datetime.UTC).date()),
        "minutes": round((time.monotonic() - started) / 60),
        "all": arguments.all,
    }
    if not arguments.tests:
        kept = _KEPT / f"nova-{nova}{'-all' if arguments.all else ''}.json"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(format_json(summary))
    problems = find_problems(summary)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(count_tests(summary), f"One result a test is in {folder.relative_to(_REPOSITORY)}/.")
    return 1 if problems else 0


def _link_configuration() -> None:
    """Let Nova find its configuration, which wheels put beside the libraries."""
    packages = pathlib.Path(importlib.metadata.distribution("nova").locate_file(""))
    link = packages / "etc"
    # It leads nowhere after the repository was moved.
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(pathlib.Path(sys.prefix) / "etc")


def _choose(known: t.Mapping[str, t.Any], nova: str, everything: bool, named: list[str]) -> Choice:
    selection = known["selection"]
    if named:
        tests = {name: selection.get(name, "steps") for name in named}
    elif everything:
        found = _list_tests([f"{_PREFIX}{name}" for name in known["modules"]])
        tests = dict.fromkeys((name.removeprefix(_PREFIX) for name in found), "steps")
    else:
        tests = selection
    left_out = {**known["left_out"]["any"], **known["left_out"].get(nova, {})}
    return Choice(
        tests={f"{_PREFIX}{name}": tests[name] for name in tests if name not in left_out},
        planted={} if named else known["planted"],
        left_out={name: reason for name, reason in left_out.items() if name in tests},
        excused=known["excused"],
    )


def _list_tests(modules: list[str]) -> list[str]:
    done = _call_worker({"list": modules}, stdout=subprocess.PIPE, check=True)
    tests: list[str] = json.loads(done.stdout.splitlines()[-1])
    return tests


@d.dataclass(frozen=True)
class _Job:
    """Some tests with their modes, for one process."""

    tests: dict[str, str]
    folder: pathlib.Path
    fault: str = ""


def _divide(choice: Choice, folder: pathlib.Path) -> t.Iterator[_Job]:
    """Yield the tests in groups, with about as many in each mode in every group."""
    ordered = sorted(choice.tests, key=lambda name: choice.tests[name])
    count = -(-len(ordered) // _TESTS_OF_A_PROCESS)
    for number in range(count):
        yield _Job({name: choice.tests[name] for name in ordered[number::count]}, folder)


def _plant(choice: Choice, folder: pathlib.Path) -> t.Iterator[_Job]:
    for fault, tests in choice.planted.items():
        (folder / fault).mkdir(exist_ok=True)
        named = {f"{_PREFIX}{name}": mode for name, mode in tests.items()}
        yield _Job(named, folder / fault, fault)


def _run(job: _Job) -> None:
    """Run a group. After a test that ends its process, another process goes on with the next."""
    left = _find_missing(job)
    while left:
        order = {"tests": left, "folder": str(job.folder), "fault": job.fault}
        first = next(iter(left))
        log = job.folder / f"{first}.log"
        with log.open("w") as output:
            _call_worker(order, stdout=output, stderr=subprocess.STDOUT)
        left = _find_missing(job)
        if left:
            name = next(iter(left))
            text = log.read_text(errors="replace")[-4000:]
            ended = {"outcome": "ended its process", "text": text}
            result = {"test": name, "mode": left[name], "alone": ended}
            _get_path(job.folder, name).write_text(json.dumps(result))
            left.pop(name)


def _find_missing(job: _Job) -> dict[str, str]:
    """Return the tests of a group that have no result yet."""
    tests = job.tests.items()
    return {name: mode for name, mode in tests if not _get_path(job.folder, name).exists()}


def _get_path(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f"{name}.json"


def _call_worker(order: t.Mapping[str, t.Any], **options: t.Any) -> t.Any:
    patched = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "0", "PYTHONWARNINGS": "ignore"}
    environment = {**os.environ, **patched}
    command = [sys.executable, "-m", _WORKER]
    return subprocess.run(command, input=json.dumps(order), text=True, env=environment, **options)


def _summarize(choice: Choice, folder: pathlib.Path) -> dict[str, t.Any]:
    tests = [_read(folder, name, mode) for name, mode in choice.tests.items()]
    planted = {}
    for fault, named in choice.planted.items():
        for name, mode in named.items():
            planted[fault] = _read(folder / fault, _PREFIX + name, mode)
    return summarize(tests, planted, choice.left_out, choice.excused)


def _read(folder: pathlib.Path, name: str, mode: str) -> dict[str, t.Any]:
    path = _get_path(folder, name)
    result = {"mode": mode, "alone": {"outcome": "did not run"}}
    if path.exists():
        result = json.loads(path.read_bytes())
    return {**result, "test": name.removeprefix(_PREFIX)}


if __name__ == "__main__":
    sys.exit(main())
