"""Runs whole playbooks against the simulated cloud, and measures each."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
import time
import typing as t
from pathlib import Path

from running import build_playbook_command, build_playbook_environment, inherit

from simulation.keystone import REGION
from simulation.results import (
    CELL_DOWN,
    CHANGED,
    FULL,
    INCREMENTAL,
    REMEDIATION,
    SHARD,
    SHARDS,
    Result,
)
from simulation.server import SimulatedCloud

if t.TYPE_CHECKING:
    from simulation.world import World

_POLL_SECONDS = 0.2
_NO_LIMIT = 1_000_000
_INCREMENTAL = {"orphan_cleanup_mode": "incremental", "orphan_cleanup_full_every": "7d"}
_SERVERS_PER_CHANGE = 1000
# How many shards run at once.
_FORKS = 4


class Failed(Exception):
    """A run failed, or asked for something that is not simulated."""

    def __init__(self, name: str, log: Path, failures: t.Sequence[str]) -> None:
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        super().__init__("\n".join([f"The run {name} failed:", tail, *failures[:5]]))


def serve(world: World) -> SimulatedCloud:
    """Return the cloud, which answers until this process ends."""
    cloud = SimulatedCloud(world)
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()

    def run_loop() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(cloud.start())
        is_ready.set()
        loop.run_forever()

    threading.Thread(target=run_loop, daemon=True).start()
    is_ready.wait()
    return cloud


class Runs:
    """The runs that can be measured; `table` has them in their order."""

    def __init__(self, cloud: SimulatedCloud, home: Path, shards: int) -> None:
        self._cloud = cloud
        self._home = home
        self._shards = shards
        self.table: dict[str, t.Callable[[], Result]] = {
            FULL: self._measure_full,
            INCREMENTAL: self._measure_incremental,
            CHANGED: self._measure_changed,
            REMEDIATION: self._measure_remediation,
            SHARD: self._measure_shard,
            SHARDS: self._measure_shards,
            CELL_DOWN: self._measure_cell_down,
        }

    def _measure_full(self) -> Result:
        # With this mode the reading is kept for the next one.
        return self._run(FULL, "detect_orphans", _INCREMENTAL)

    def _measure_incremental(self) -> Result:
        return self._run(INCREMENTAL, "detect_orphans", _INCREMENTAL, folder=FULL)

    def _measure_changed(self) -> Result:
        world = self._cloud.world
        world.changed = world.servers // _SERVERS_PER_CHANGE
        try:
            return self._run(CHANGED, "detect_orphans", _INCREMENTAL, folder=FULL)
        finally:
            world.changed = 0

    def _measure_remediation(self) -> Result:
        variables = {"orphan_cleanup_max_changes": _NO_LIMIT, "orphan_cleanup_max_share": 1}
        return self._run(REMEDIATION, "cleanup_orphans", variables)

    def _measure_shard(self) -> Result:
        variables = {"orphan_cleanup_shard": f"1/{self._shards}"}
        return self._run(SHARD, "detect_orphans", variables)

    def _measure_shards(self) -> Result:
        hosts = {}
        for number in range(1, self._shards + 1):
            hosts[f"shard{number:02d}"] = {"orphan_cleanup_shard": f"{number}/{self._shards}"}
        inventory = self._home / "shards.json"
        inventory.write_text(json.dumps({"clouds": {"hosts": hosts}}), encoding="utf-8")
        flags = ("--inventory", str(inventory), "--forks", str(_FORKS))
        return self._run(SHARDS, "detect_clouds", {}, *flags)

    def _measure_cell_down(self) -> Result:
        world = self._cloud.world
        world.down = world.cells // 2
        try:
            return self._run(CELL_DOWN, "detect_orphans", {})
        finally:
            world.down = None

    def _run(
        self, name: str, playbook: str, variables: dict[str, t.Any], *flags: str, folder: str = ""
    ) -> Result:
        output = self._home / (folder or name)
        self._cloud.counts.clear()
        given = {"orphan_cleanup_output_dir": str(output), **variables}
        command = build_playbook_command(playbook, given, *flags)
        began = time.perf_counter()
        log = self._home / f"{name}.log"
        with (
            log.open("wb") as sink,
            subprocess.Popen(
                command, env=self._build_environment(), stdout=sink, stderr=sink, cwd=self._home
            ) as process,
        ):
            memory = _watch_memory(process)
        seconds = time.perf_counter() - began
        if process.returncode or self._cloud.failures:
            raise Failed(name, log, self._cloud.failures)
        return Result(
            name,
            round(seconds, 1),
            round(memory),
            dict(self._cloud.counts),
            _measure_files(output),
            _count_findings(output),
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
        return {
            **inherit(),
            **build_playbook_environment(self._home),
            "OS_CLIENT_CONFIG_FILE": str(clouds),
            "OS_CLOUD": "simulated",
            "PWD": str(self._home),
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
    """Return the sizes of the files in a folder and below in MiB, those of one kind together."""
    sizes: dict[str, float] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            # The name of a journal has its time.
            name = re.sub(r"^journal-.*\.jsonl$", "journal", path.name)
            sizes[name] = sizes.get(name, 0) + path.stat().st_size / 2**20
    return {name: round(size, 2) for name, size in sizes.items()}


def _count_findings(folder: Path) -> int:
    """Return how many findings all files of findings in a folder and below have."""
    count = 0
    for path in folder.rglob("findings.json"):
        count += len(json.loads(path.read_text(encoding="utf-8"))["findings"])
    return count
