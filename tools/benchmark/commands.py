# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that are measured."""

from __future__ import annotations

import json
import os
import sys
import typing as t
from pathlib import Path

from minicloud_ctl import configs, processes, services
from minicloud_ctl import state as states
from minicloud_ctl.paths import REPOSITORY

from benchmark import scoring
from benchmark.measuring import Failed, run

if t.TYPE_CHECKING:
    from minicloud_ctl.paths import Paths

    from benchmark.measuring import Run
    from benchmark.scoring import Score

FULL, TRIAGE, AUDIT, FLOOR = "full", "triage", "audit", "floor"
PLAN, REMEDIATION = "plan", "remediation"

# nova-manage placement audit: 0 without orphans, 3 with.
_AUDIT_STATUS = (0, 3)


class Commands:
    """The commands for one running cloud.

    Each run is a separate process, as users start it.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._state = states.load(paths)
        self._folder = paths.home / "measured"
        self._folder.mkdir(exist_ok=True)
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("OS_", "PYTHON"))
        }
        imports = [REPOSITORY / folder for folder in ("collections", "tools", "tests/minicloud")]
        self._environment = {
            **kept,
            **configs.cloud_environment(paths, self._state),
            "PYTHONPATH": os.pathsep.join(map(str, imports)),
        }

    def find_modes(self) -> list[str]:
        """Return the modes of detection that this version of the module has."""
        try:
            self.detect(TRIAGE)
        except Failed as error:
            if "mode" not in str(error):
                raise
            return [FULL]
        return [FULL, TRIAGE]

    def measure(self, name: str) -> Run:
        if name == AUDIT:
            return self._run_audit()
        if name == FLOOR:
            return self.replay(FULL)
        return self.detect(name)

    def detect(self, mode: str, record: bool = False) -> Run:
        options = {
            "cloud": "minicloud",
            "dest": str(self._find_file(mode, "findings")),
            **({"mode": mode} if mode != FULL else {}),
        }
        return self._run_module("orphan_detect", mode, options, record)

    def plan(self, changes: int) -> None:
        """Plan changes for everything that full detection found."""
        limits = {"max_changes": changes, "max_share": 1.0}
        self._run_module(
            "orphan_plan",
            PLAN,
            {
                "findings": str(self._find_file(FULL, "findings")),
                "dest": str(self._find_file(PLAN, "made")),
                **limits,
            },
        )

    def remediate(self, changes: int, record: bool = False) -> Run:
        limits = {"max_changes": changes, "max_share": 1.0}
        options = {
            "cloud": "minicloud",
            "plan": str(self._find_file(PLAN, "made")),
            "output_dir": str(self._folder / REMEDIATION),
            **limits,
        }
        return self._run_module("orphan_remediate", REMEDIATION, options, record)

    def replay(self, name: str) -> Run:
        return self._run(
            [
                sys.executable,
                "-m",
                "benchmark.replay",
                str(self._find_recording(name)),
                str(self._paths.home),
            ]
        )

    def remediate_without_proofs(self) -> Run:
        return self._run(
            [
                sys.executable,
                "-m",
                "benchmark.unproven",
                str(self._find_file(PLAN, "made")),
                str(self._paths.home),
            ]
        )

    def run_command(self, *command: str) -> Run:
        return self._run(list(command))

    def read_planned(self) -> list[dict[str, t.Any]]:
        return self._read(PLAN, "made")["changes"]

    def read_tally(self) -> dict[str, int]:
        return json.loads(
            (self._folder / REMEDIATION / "remediation.json").read_text(encoding="utf-8")
        )["tally"]

    def score(self, name: str, measured: Run, truth: dict[str, t.Any]) -> Score | None:
        if name == FLOOR:
            return None
        return (
            scoring.score_audit(measured.output, truth)
            if name == AUDIT
            else scoring.score_report(self._read(name, "findings"), truth)
        )

    def read_peak_mib(self, mode: str) -> float:
        return self._read(mode, "figures")["peak_kib"] / 1024

    def read_requests(self, mode: str) -> list[dict[str, t.Any]]:
        return json.loads(self._find_recording(mode).read_text(encoding="utf-8"))

    def list_ports(self) -> dict[int, str]:
        return {port: name for name, port in self._state.ports.items()}

    def _run_module(
        self, module: str, name: str, options: dict[str, t.Any], record: bool = False
    ) -> Run:
        recording = [str(self._find_recording(name))] if record else []
        command = [
            sys.executable,
            "-m",
            "benchmark.module",
            module,
            json.dumps(options),
            str(self._find_file(name, "figures")),
        ]
        return self._run([*command, *recording])

    def _run_audit(self) -> Run:
        paths = self._paths
        command = [
            paths.program("nova-manage"),
            *services.nova_config_arguments(paths, "first", ["cell1.conf"]),
        ]
        return self._run(
            [*command, "placement", "audit", "--verbose"],
            services.environment(paths, {}),
            _AUDIT_STATUS,
        )

    def _run(
        self,
        command: list[str],
        environment: dict[str, str] | None = None,
        good: tuple[int, ...] = (0,),
    ) -> Run:
        serving = [
            pid
            for name in processes.names(self._paths)
            if (pid := processes.pid(self._paths, name))
        ]
        return run(command, environment or self._environment, good, serving)

    def _read(self, mode: str, what: str) -> dict[str, t.Any]:
        return json.loads(self._find_file(mode, what).read_text(encoding="utf-8"))

    def _find_recording(self, mode: str) -> Path:
        return self._find_file(mode, "requests")

    def _find_file(self, mode: str, what: str) -> Path:
        return self._folder / f"{mode}-{what}.json"
