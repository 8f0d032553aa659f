"""Judges a mutant by the unit tests: first those of its module, then those of the other rooms."""

from __future__ import annotations

import collections
import dataclasses as d
import itertools
import json
import os
import shutil
import subprocess
import typing as t
import xml.etree.ElementTree as ET
from pathlib import Path

from .sampling import ROOM, Mutant

TESTS = "tests/unit/plugins"
SERVER = "tests/judges/mutants/fork_server.py"
# The helpers of tests that bring these rooms with them.
HELPERS = dict.fromkeys(
    ("_core/expected", "_core/facts", "_core/judging", "_core/kinds"),
    (".judging import", ".scene import"),
)
# They take longer than all others together: large logs, and the same tests on other Pythons.
LEFT_OUT = ("test_nova_log_info.py", "test_oldest_python.py", "test_hypervisor_python.py")

# The tests in the order in which they are tried.
MIRRORED, OWN_ROOM, OTHER_ROOMS = "mirrored", "room", "other rooms"
TIMED_OUT, SURVIVED = "time-out", "survived"
OUTCOMES = (MIRRORED, OWN_ROOM, OTHER_ROOMS, TIMED_OUT, SURVIVED)

# A mutant may take so many times as long as the code itself, and so many seconds more.
_PATIENCE, _MORE_SECONDS = 4, 30
_LONGEST_BASELINE = 1800

# The statuses of pytest that are a result: passed, failed, and interrupted by an error while the
# tests are collected, as it is by a mutant that cannot be imported.
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2


class JudgingError(Exception):
    """Nothing can be judged."""


@d.dataclass
class Judge:
    """A copy of the working tree, in which the tests of one mutant run at a time.

    seconds: how long each test file takes without a mutant.
    """

    tree: Path
    python: Path
    seconds: t.Mapping[str, float] = d.field(default_factory=dict)
    _server: subprocess.Popen[str] | None = None
    _times: t.Iterator[int] = d.field(default_factory=lambda: itertools.count(1_000_000_000))

    @classmethod
    def in_copy(cls, root: Path, tree: Path) -> Judge:
        """Return a judge with a new copy of what git knows of the working tree `root`."""
        shutil.rmtree(tree, ignore_errors=True)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (root / name).is_symlink() or (root / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name, follow_symlinks=False)
        return cls(tree, root / ".venv" / "controller" / "bin" / "python")

    def close(self) -> None:
        """End the tests that run."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()

    def measure(self) -> dict[str, float]:
        """Return how many seconds each test file takes without a mutant.

        Raises JudgingError if a test fails: it would kill every mutant.
        """
        files = self._list_files()
        report = self.tree / "baseline.xml"
        status = self._run([f"--junitxml={report}", *files], _LONGEST_BASELINE)
        if status != _PASSED:
            raise JudgingError(f"The unit tests do not pass without a mutant: see {report}.")
        seconds: dict[str, float] = collections.Counter()
        names = {file.removesuffix(".py").replace("/", "."): file for file in files}
        for case in ET.parse(report).iter("testcase"):
            seconds[names[case.attrib["classname"]]] += float(case.attrib["time"])
        return dict(seconds)

    def judge(self, mutant: Mutant) -> str:
        """Return which tests kill the mutant, or that it survived all of them."""
        path = self.tree / ROOM / mutant.module
        original = path.read_text(encoding="utf-8")
        self._write(path, mutant.code)
        try:
            for stage, files in self._list_stages(mutant.module).items():
                expected = sum(self.seconds.get(file, 0) for file in files)
                status = self._run(files, int(_PATIENCE * expected) + _MORE_SECONDS)
                if status is None:
                    return TIMED_OUT
                if status in (_FAILED, _INTERRUPTED):
                    return stage
                if status != _PASSED:
                    raise JudgingError(f"pytest ended with status {status} for {mutant.id}.")
        finally:
            self._write(path, original)
        return SURVIVED

    def _list_files(self) -> list[str]:
        files = []
        for path in sorted((self.tree / TESTS).rglob("test_*.py")):
            if path.name not in LEFT_OUT:
                files.append(str(path.relative_to(self.tree)))
        return files

    def _list_stages(self, module: str) -> dict[str, list[str]]:
        """Return the test files of each stage, the fastest first and none of them twice."""
        room, _, name = module.removesuffix(".py").rpartition("/")
        dotted = room.replace("/", ".")
        stages: dict[str, list[str]] = {MIRRORED: [], OWN_ROOM: [], OTHER_ROOMS: []}
        for file in sorted(self._list_files(), key=lambda file: self.seconds.get(file, 0)):
            code = (self.tree / file).read_text(encoding="utf-8")
            is_helped = any(helper in code for helper in HELPERS.get(room, ()))
            if Path(file).parent == Path(TESTS, "module_utils", room):
                # Some tests of a module are not in the file of its name, and import it.
                is_mirrored = f"test_{name}.py" in file or f"{dotted}.{name} import" in code
                stages[MIRRORED if is_mirrored else OWN_ROOM].append(file)
            elif f"module_utils.{dotted}." in code or is_helped:
                stages[OTHER_ROOMS].append(file)
        return {stage: files for stage, files in stages.items() if files}

    def _write(self, path: Path, code: str) -> None:
        """Write a module with a time of its own: by that, Python knows its bytecode is stale."""
        path.write_text(code, encoding="utf-8")
        changed_at = next(self._times)
        os.utime(path, (changed_at, changed_at))

    def _run(self, arguments: list[str], patience: int) -> int | None:
        """Return the status of pytest, None if it took too long."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--tb=no"]
        if self._server is None:
            self._server = self._start_server()
        server_in, server_out = self._server.stdin, self._server.stdout
        assert server_in is not None and server_out is not None
        server_in.write(f"{json.dumps([patience, [*options, *arguments]])}\n")
        server_in.flush()
        line = server_out.readline()
        if not line:
            raise JudgingError("The process that runs the tests has ended.")
        status: int | None = json.loads(line)
        return status

    def _start_server(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "EXAMPLES": "few", "PYTEST_ADDOPTS": ""}
        environment.pop("PYTHONPATH", None)
        return subprocess.Popen(
            [str(self.python), str(self.tree / SERVER)],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
