# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules run in forked processes that need not import anything.

For tests that run the same few modules hundreds of times.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import json
import subprocess
import sys
import typing as t

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.osops.placement.tests.integration.support import Ansible

# Imports the modules once. Then it forks for each line that it reads: the module, the file of its
# arguments, and the file for its result. Of a module that raises an error or does not end in time,
# the file has the traceback instead.
_PARENT = """
import faulthandler, importlib, json, os, sys, time, traceback
limit, pauses = float(sys.argv[1]), float(sys.argv[2])
package = "ansible_collections.osops.placement.plugins.modules."
modules = {name: importlib.import_module(package + name) for name in sys.argv[3:]}
if pauses != 1:
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds * pauses)
for line in sys.stdin:
    name, arguments, result = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        faulthandler.dump_traceback_later(limit, exit=True, file=1)
        sys.argv = [name, arguments]
        try:
            modules[name].main()
        except SystemExit:
            pass
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(child, 0)
    print("done", flush=True)
"""


class Crash(AssertionError):
    """A module ended without a result, or did not end in time; the message is its traceback."""


class Forks:
    """Runs some modules in the environment of `ansible`, within a `with` block."""

    def __init__(
        self, ansible: Ansible, *names: str, limit: float = 3600.0, pauses: float = 1.0
    ) -> None:
        """Import the modules.

        limit: after how many seconds a module is ended.
        pauses: by how much the pauses of the modules between their attempts are longer.
        """
        self._folder: Path = ansible.folder
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT, str(limit), str(pauses), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ansible.folder,
            env=ansible.module_environment,
        )

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            t.cast("t.IO[str]", self._parent.stdin).close()
        self._parent.wait(timeout=60)

    def run(self, name: str, **arguments: t.Any) -> dict[str, t.Any]:
        """Return the result of a module, as `Ansible.direct` does. Raises Crash without one."""
        given, result = self._folder / f"{name}.arguments", self._folder / f"{name}.result"
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        assert self._parent.stdin and self._parent.stdout
        self._parent.stdin.write(json.dumps([name, str(given), str(result)]) + "\n")
        self._parent.stdin.flush()
        assert self._parent.stdout.readline() == "done\n", "the process that forks has ended"
        written = result.read_text()
        try:
            return {"failed": False, **json.loads(written)}
        except ValueError:
            raise Crash(f"{name}: {written}") from None


@d.dataclass
class Schedule:
    """Complete runs of detection, plan and remediation, as a schedule makes them.

    policy: options of the modules that detect and remediate; by default the ages are the default
    ones.
    kinds: what may be changed; by default the default kinds.
    found, done: the results of the last detection and of the last remediation.
    """

    forks: Forks
    folder: Path
    policy: dict[str, t.Any] = d.field(default_factory=dict)
    kinds: t.Sequence[str] = ()
    found: dict[str, t.Any] = d.field(default_factory=dict)
    done: dict[str, t.Any] = d.field(default_factory=dict)
    told: collections.Counter[str] = d.field(default_factory=collections.Counter)

    def run(self) -> dict[str, t.Any]:
        """Detect, plan and remediate once.

        Returns the summary of the detection, or None when it failed.
        """
        findings, plan = str(self.folder / "findings.json"), str(self.folder / "plan.json")
        self.done = {}
        found = self.found = self.forks.run("orphan_detect", dest=findings, **self.policy)
        if found["failed"]:
            self.told[found["msg"]] += 1
            return {}
        self.told[f"complete: {found['summary']['coverage']['complete']}"] += 1
        kinds = {"kinds": list(self.kinds)} if self.kinds else {}
        planned = self.forks.run("orphan_plan", findings=findings, dest=plan, **kinds)
        if planned["failed"]:
            self.told[planned["msg"]] += 1
        elif planned["changes"]:
            self._remediate(plan)
        return found["summary"]

    def _remediate(self, plan: str) -> None:
        done = self.done = self.forks.run(
            "orphan_remediate", plan=plan, output_dir=str(self.folder), **self.policy
        )
        self.told[done["msg"] if done["failed"] else "remediated"] += 1
        for outcome in done.get("outcomes", ()):
            self.told[f"{outcome['kind']} {outcome['outcome']}"] += 1


@contextlib.contextmanager
def schedule(ansible: Ansible, **policy: t.Any) -> t.Iterator[Schedule]:
    """Return a schedule in the current environment of `ansible`, with its interposers."""
    with Forks(ansible, "orphan_detect", "orphan_plan", "orphan_remediate") as forks:
        yield Schedule(forks, ansible.folder, policy)
