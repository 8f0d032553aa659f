"""The commands that are measured."""

from __future__ import annotations

import dataclasses as d
import json
import os
import re
import shutil
import sys
import types
import typing as t

from minicloud_ctl import configs, processes, services
from minicloud_ctl import state as states
from minicloud_ctl.paths import REPOSITORY
from running import build_playbook_command, build_playbook_environment, inherit

from benchmark import measuring
from benchmark.layout import ORPHAN_KINDS

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minicloud_ctl.paths import Paths

    from benchmark.measuring import Run

NOTHING: Mapping[str, t.Any] = types.MappingProxyType({})

# nova-manage placement audit: 0 without orphans, 3 with.
_AUDIT_STATUS = (0, 3)
_PROBE = REPOSITORY / "tools" / "benchmark" / "probe"
# More than any stage has: the limits of a run are not what is measured.
_NO_LIMIT = 1_000_000

FULL, INCREMENTAL = "full", "incremental"
# The output directories of the playbooks.
DETECTED, CLEANED, REMEDIATED = "detected", "cleaned", "remediated"


@d.dataclass(frozen=True)
class Measurement:
    """A finished run of a command.

    modules: what the probe recorded about each module of the collection, in their order.
    """

    run: Run
    modules: tuple[dict[str, t.Any], ...] = ()

    @property
    def requests(self) -> list[dict[str, t.Any]]:
        sent: list[dict[str, t.Any]] = []
        for module in self.modules:
            sent += module["requests"]
        return sent


class Commands:
    """The commands for one running cloud.

    Each run is a separate process, as users start it.
    """

    def __init__(self, paths: Paths, variables: Mapping[str, t.Any] = NOTHING) -> None:
        """variables: further variables of all playbooks."""
        self._paths = paths
        self._variables = variables
        self._state = states.load(paths)
        self._folder = paths.home / "measured"
        self._probed = self._folder / "probed"
        self._folder.mkdir(exist_ok=True)
        self._environment = {**inherit(), **configs.cloud_environment(paths, self._state)}

    def forget(self) -> None:
        """Delete what earlier runs wrote, so that the next one has no memory of the cloud."""
        for name in (DETECTED, CLEANED, REMEDIATED):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def detect(self, mode: str) -> Measurement:
        """Run `detect_orphans`."""
        variables = {"orphan_cleanup_mode": mode}
        if mode == INCREMENTAL:
            variables["orphan_cleanup_full_every"] = "1d"
        return self._run_playbook("detect_orphans", DETECTED, variables)

    def clean_up(self) -> Measurement:
        """Run `cleanup_orphans` in check mode, always with a full reading."""
        return self._run_playbook("cleanup_orphans", CLEANED, {}, "--check")

    def clean_up_by_plan(self) -> Measurement:
        """Run `cleanup_orphans` with the plan of `clean_up`, and make its changes."""
        plan = {"orphan_cleanup_plan": str(self._folder / CLEANED / "plan.json")}
        return self._run_playbook("cleanup_orphans", REMEDIATED, plan)

    def audit(self) -> Measurement:
        """Run `nova-manage placement audit`."""
        return self.run_nova_manage("placement", "audit", "--verbose", good=_AUDIT_STATUS)

    def run_nova_manage(
        self, *arguments: str, good: Sequence[int], extra: Mapping[str, str] = NOTHING
    ) -> Measurement:
        """Run nova-manage; `extra` has environment variables, of which PYTHONPATH comes first."""
        config = services.nova_config_arguments(self._paths, "first", ["cell1.conf"])
        command = [self._paths.program("nova-manage"), *config, *arguments]
        environment = services.environment(self._paths, {})
        imports = filter(None, [extra.get("PYTHONPATH"), environment["PYTHONPATH"]])
        environment |= {**extra, "PYTHONPATH": os.pathsep.join(imports)}
        return Measurement(self._run(command, environment, good))

    def list_servers(self, openstack: str) -> Measurement:
        """Run `openstack server list`."""
        return self.run_command(openstack, "server", "list")

    def list_hypervisors(self, strands: str) -> Measurement:
        """List all hypervisors as a module does; only the listing itself is measured."""
        run = self._run_tool("listing", strands, str(self._paths.home))
        seconds = re.search(r" in ([\d.]+) s$", run.output.strip())
        if not seconds:
            raise measuring.Failed(f"The listing did not report its time:\n{run.output}")
        return Measurement(d.replace(run, seconds=float(seconds[1])))

    def replay(self, requests: list[dict[str, t.Any]]) -> Measurement:
        """Send recorded requests again."""
        recording = self._folder / "requests.json"
        recording.write_text(json.dumps(requests), encoding="utf-8")
        return Measurement(self._run_tool("replay", str(recording), str(self._paths.home)))

    def remediate_without_proofs(self) -> Measurement:
        plan = self._folder / CLEANED / "plan.json"
        return Measurement(self._run_tool("unproven", str(plan), str(self._paths.home)))

    def run_command(
        self, *command: str, good: Sequence[int] = (0,), extra: Mapping[str, str] = NOTHING
    ) -> Measurement:
        """Run a command with the cloud, and with further environment variables."""
        return Measurement(self._run(list(command), {**self._environment, **extra}, good))

    def read(self, folder: str, name: str) -> dict[str, t.Any]:
        """Return a JSON file that a playbook wrote."""
        text = (self._folder / folder / f"{name}.json").read_text(encoding="utf-8")
        found: dict[str, t.Any] = json.loads(text)
        return found

    def list_ports(self) -> dict[int, str]:
        return {port: name for name, port in self._state.ports.items()}

    def _run_playbook(
        self, name: str, folder: str, variables: dict[str, t.Any], *flags: str
    ) -> Measurement:
        shutil.rmtree(self._probed, ignore_errors=True)
        self._probed.mkdir()
        given = {
            "orphan_cleanup_output_dir": str(self._folder / folder),
            "orphan_cleanup_remediate_kinds": ORPHAN_KINDS,
            "orphan_cleanup_max_changes": _NO_LIMIT,
            "orphan_cleanup_max_share": 1,
            **self._variables,
            **variables,
        }
        environment = {
            **self._environment,
            **build_playbook_environment(self._folder),
            "PYTHONPATH": str(_PROBE),
            "BENCHMARK_PROBE": str(self._probed),
        }
        run = self._run(build_playbook_command(name, given, *flags), environment)
        records = sorted(self._probed.iterdir())
        modules = [json.loads(record.read_text(encoding="utf-8")) for record in records]
        if not modules:
            raise measuring.Failed(f"The probe saw no module of {name}:\n{run.output[-2000:]}")
        return Measurement(run, tuple(modules))

    def _run_tool(self, name: str, *arguments: str) -> Run:
        imports = [REPOSITORY / folder for folder in ("collections", "tools", "tests/minicloud")]
        environment = {**self._environment, "PYTHONPATH": os.pathsep.join(map(str, imports))}
        return self._run([sys.executable, "-m", f"benchmark.{name}", *arguments], environment)

    def _run(
        self,
        command: list[str],
        environment: dict[str, str] | None = None,
        good: Sequence[int] = (0,),
    ) -> Run:
        recorded = [processes.pid(self._paths, name) for name in processes.names(self._paths)]
        serving = [pid for pid in recorded if pid]
        return measuring.run(command, environment or self._environment, good, serving, self._folder)
