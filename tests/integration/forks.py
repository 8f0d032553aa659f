"""Modules run in forked processes that need not import anything.

The second that this saves is most of the time that a module takes on the minicloud.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses as d
import json
import subprocess
import sys
import threading
import typing as t
import uuid
from collections.abc import Mapping
from pathlib import Path

if t.TYPE_CHECKING:
    from .support import Ansible


# Imports a module when it is first asked for. It forks for each line that it reads: the module, the
# file of its arguments, the file for its result, its folder and its environment. Of a module that
# raises an error or does not end in time, the file has the traceback instead.
_PARENT = """
import faulthandler, importlib, json, os, sys, time, traceback
import openstack.connection, openstack.compute.compute_service
limit, pauses = float(sys.argv[1]), float(sys.argv[2])
package = "ansible_collections.osops.placement.plugins.modules."
if pauses != 1:
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds * pauses)
for line in sys.stdin:
    name, arguments, result, folder, environment = json.loads(line)
    module = importlib.import_module(package + name)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        faulthandler.dump_traceback_later(limit, exit=True, file=1)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [name, arguments]
        try:
            module.TASK.run_module()
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


class ForkServer:
    """A process that runs modules in forks of itself, one after the other."""

    def __init__(
        self, environment: Mapping[str, str], limit: float = 120.0, pauses: float = 1.0
    ) -> None:
        """Start it.

        environment: where it finds the collection.
        limit: after how many seconds a module is ended.
        pauses: by how much the pauses of the modules between their attempts are longer.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PARENT, str(limit), str(pauses)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=dict(environment),
        )

    def close(self) -> None:
        with contextlib.suppress(OSError):
            t.cast("t.IO[str]", self._process.stdin).close()
        self._process.wait(timeout=60)

    def run(
        self,
        name: str,
        arguments: Mapping[str, t.Any],
        folder: Path,
        environment: Mapping[str, str],
    ) -> dict[str, t.Any]:
        """Return the result of a module in this folder and environment. Raises Crash without it."""
        given, result = (folder / f"{name}-{uuid.uuid4()}.{end}" for end in ("arguments", "result"))
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        assert self._process.stdin and self._process.stdout
        line = [name, str(given), str(result), str(folder), dict(environment)]
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n", "the process that forks has ended"
        written = result.read_text()
        given.unlink()
        result.unlink()
        try:
            return {"failed": False, **json.loads(written)}
        except ValueError:
            raise Crash(f"{name}: {written}") from None


class _Servers(threading.local):
    """The processes of one thread by the path of the collection: modules can run side by side."""

    def __init__(self) -> None:
        self.by_path: dict[str, ForkServer] = {}


_SERVERS = _Servers()


def run_forked(
    name: str, arguments: Mapping[str, t.Any], folder: Path, environment: Mapping[str, str]
) -> dict[str, t.Any]:
    """Return the result of a module, as `ForkServer.run` does, from a process that stays."""
    path = environment["PYTHONPATH"]
    servers = _SERVERS.by_path
    if path not in servers:
        servers[path] = ForkServer(environment)
        atexit.register(servers[path].close)
    return servers[path].run(name, arguments, folder, environment)


class Forks:
    """Runs modules in the environment that `ansible` has now, within a `with` block."""

    def __init__(self, ansible: Ansible, limit: float = 3600.0, pauses: float = 1.0) -> None:
        """Start a process of its own; `limit` and `pauses` are those of `ForkServer`."""
        self._folder = ansible.folder
        self._environment = ansible.module_environment
        self._server = ForkServer(self._environment, limit, pauses)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()

    def run(self, name: str, **arguments: t.Any) -> dict[str, t.Any]:
        return self._server.run(name, arguments, self._folder, self._environment)


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
    with Forks(ansible) as forks:
        yield Schedule(forks, ansible.folder, policy)
