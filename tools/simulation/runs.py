# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs whole playbooks against the simulated cloud, and measures each."""

from __future__ import annotations

import asyncio
import dataclasses as d
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import typing as t
from pathlib import Path

from simulation.keystone import REGION
from simulation.server import SimulatedCloud

if t.TYPE_CHECKING:
    from simulation.world import World

_REPOSITORY = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.2
_NO_LIMIT = 1_000_000


@d.dataclass(frozen=True)
class Result:
    """One measured run.

    seconds: of the whole command. memory: the most that all its processes had at once, in MiB.
    requests: how many were answered, by their kind. files: sizes of what it wrote, in MiB.
    """

    name: str
    status: int
    seconds: float
    memory: float
    requests: t.Mapping[str, int]
    files: t.Mapping[str, float]
    summary: t.Mapping[str, t.Any]


def measure_all(world: World, home: Path, shards: int, only: list[str] | None) -> list[Result]:
    """Measure the runs that are asked for, one after the other, and print each."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    cloud = SimulatedCloud(world)
    started = threading.Event()
    loop = asyncio.new_event_loop()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(cloud.start())
        started.set()
        loop.run_forever()

    threading.Thread(target=serve, daemon=True).start()
    started.wait()
    runs = Runs(cloud, home, shards)
    results = []
    for name, measure in runs.table.items():
        if only and name not in only:
            continue
        result = measure()
        results.append(result)
        print(json.dumps(d.asdict(result)), flush=True)
        for failure in cloud.failures[:5]:
            print(f"not simulated: {failure}", file=sys.stderr)
        cloud.failures.clear()
    return results


class Runs:
    """The runs that can be measured, in their order."""

    def __init__(self, cloud: SimulatedCloud, home: Path, shards: int) -> None:
        self._cloud = cloud
        self._home = home
        self._shards = shards
        self.table: dict[str, t.Callable[[], Result]] = {
            "full": self._measure_full,
            "incremental": self._measure_incremental,
            "incremental_changed": self._measure_changed,
            "cell_down": self._measure_cell_down,
            "shard": self._measure_shard,
            "remediate": self._measure_remediation,
        }

    def _measure_full(self) -> Result:
        return self._run("full", "detect_orphans", {})

    def _measure_incremental(self) -> Result:
        variables = {"orphan_cleanup_mode": "incremental", "orphan_cleanup_full_every": "7d"}
        return self._run("incremental", "detect_orphans", variables, folder="full")

    def _measure_changed(self) -> Result:
        self._cloud.world.changed = self._cloud.world.servers // 1000
        try:
            variables = {"orphan_cleanup_mode": "incremental", "orphan_cleanup_full_every": "7d"}
            return self._run("incremental_changed", "detect_orphans", variables, folder="full")
        finally:
            self._cloud.world.changed = 0

    def _measure_cell_down(self) -> Result:
        self._cloud.world.down = self._cloud.world.cells // 2
        try:
            return self._run("cell_down", "detect_orphans", {})
        finally:
            self._cloud.world.down = None

    def _measure_shard(self) -> Result:
        variables = {"orphan_cleanup_shard": f"1/{self._shards}"}
        return self._run("shard", "detect_orphans", variables)

    def _measure_remediation(self) -> Result:
        variables = {"orphan_cleanup_max_changes": _NO_LIMIT, "orphan_cleanup_max_share": 1}
        return self._run("remediate", "cleanup_orphans", variables)

    def _run(
        self, name: str, playbook: str, variables: dict[str, t.Any], folder: str = ""
    ) -> Result:
        output = self._home / (folder or name)
        self._cloud.counts.clear()
        given = {"orphan_cleanup_output_dir": str(output), **variables}
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        command = [program, f"osops.placement.{playbook}", "-e", json.dumps(given)]
        began = time.perf_counter()
        log = self._home / f"{name}.log"
        with (
            log.open("wb") as sink,
            subprocess.Popen(
                command, env=self._build_environment(), stdout=sink, stderr=sink, cwd=self._home
            ) as process,
        ):
            memory = _watch_memory(process)
        return Result(
            name,
            process.returncode,
            round(time.perf_counter() - began, 1),
            round(memory, 1),
            dict(self._cloud.counts),
            _measure_files(output),
            _read_summary(output),
        )

    def _build_environment(self) -> dict[str, str]:
        cloud = {
            "auth": {
                "auth_url": f"{self._cloud.base}/identity/v3",
                "username": "admin",
                "password": "simulated",
                "project_name": "admin",
                "user_domain_name": "Default",
                "project_domain_name": "Default",
            },
            "region_name": REGION,
        }
        clouds = self._home / "clouds.yaml"
        clouds.write_text(json.dumps({"clouds": {"simulated": cloud}}), encoding="utf-8")
        ours = ("OS_", "ANSIBLE_", "PYTHON")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        return {
            **inherited,
            "OS_CLIENT_CONFIG_FILE": str(clouds),
            "OS_CLOUD": "simulated",
            "PWD": str(self._home),
            "ANSIBLE_COLLECTIONS_PATH": str(_REPOSITORY / "collections"),
            "ANSIBLE_HOME": str(self._home / ".ansible"),
            "ANSIBLE_NOCOLOR": "1",
        }


def _watch_memory(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end of a command, and return the most that one of its processes had, in MiB."""
    most = 0.0
    while process.poll() is None:
        most = max(most, _read_largest(process.pid))
        time.sleep(_POLL_SECONDS)
    return most


def _read_largest(root: int) -> float:
    """Return the memory of the largest process below `root`, in MiB (proc(5), VmHWM)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    largest = 0.0
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != root:
            ancestor = parents[ancestor]
        if ancestor == root:
            largest = max(largest, _read_peak(pid))
    return largest


def _read_peak(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _measure_files(folder: Path) -> dict[str, float]:
    if not folder.is_dir():
        return {}
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: round(path.stat().st_size / 2**20, 2) for path in sorted(files)}


def _read_summary(folder: Path) -> dict[str, t.Any]:
    path = folder / "findings.json"
    if not path.exists():
        return {}
    summary = json.loads(path.read_text(encoding="utf-8"))["summary"]
    return {key: summary.get(key) for key in ("by_verdict", "by_kind", "coverage")}
