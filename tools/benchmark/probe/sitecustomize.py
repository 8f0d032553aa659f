"""Watches the modules of the collection while a playbook is measured.

Python imports this file when it starts, in every process that `ansible-playbook` starts and in its
own. It does nothing but where a module runs: in a process of its own, or in that of its task. At
the end of each module it writes a JSON file into the folder BENCHMARK_PROBE:

{"module": name, "seconds": from the start to the end of the module, "peak_kib": number,
 "requests": [{"start", "end": seconds, "lane": process and thread, "method", "url",
               "version": header, "body": text or null, "status"}]}
"""

import atexit
import builtins
import json
import os
import re
import sys
import threading
import time
import typing as t
from pathlib import Path

_STARTED = time.perf_counter()

# Has the function that runs a module in the process of its task.
_IN_PROCESS = "ansible_collections.osops.placement.plugins.plugin_utils._stage.controller"


def _watch(module: str, folder: Path, started: float) -> t.Callable[[], None]:
    """Record the requests of this process from now on, and return what writes the file."""
    # The module imports it anyway, so this costs nothing.
    import requests

    sent: list[dict[str, t.Any]] = []
    send = requests.Session.send

    def send_and_record(
        session: requests.Session, request: requests.PreparedRequest, **options: t.Any
    ) -> requests.Response:
        start = time.perf_counter()
        response = send(session, request, **options)
        body = request.body
        sent.append(
            {
                "start": start,
                "end": time.perf_counter(),
                "lane": f"{os.getpid()} {threading.get_ident()}",
                "method": request.method,
                "url": request.url,
                "version": request.headers.get("OpenStack-API-Version"),
                "body": body.decode() if isinstance(body, bytes) else body,
                "status": response.status_code,
            }
        )
        return response

    def write() -> None:
        record = {
            "module": module,
            "seconds": time.perf_counter() - started,
            "peak_kib": _read_peak(),
            "requests": sent,
        }
        # The names of the files are in the order of the modules.
        path = folder / f"{time.monotonic_ns():020}.json"
        path.write_text(json.dumps(record), encoding="utf-8")

    requests.Session.send = send_and_record  # type: ignore[assignment,method-assign]
    return write


def _watch_in_process(folder: Path) -> None:
    """Watch each module that a task of this process, or of one that it forks, runs itself."""
    plain_import = builtins.__import__

    def import_and_watch(name: str, *arguments: t.Any, **options: t.Any) -> t.Any:
        found = plain_import(name, *arguments, **options)
        # The name of a relative import says nothing.
        runner = sys.modules.get(_IN_PROCESS)
        if hasattr(runner, "run_here"):
            builtins.__import__ = plain_import
            _replace_runner(runner, folder)
        return found

    builtins.__import__ = import_and_watch


def _replace_runner(runner: t.Any, folder: Path) -> None:
    run_here = runner.run_here

    def run_and_watch(action: t.Any) -> t.Any:
        name = runner.get_module_name(action)
        # What needs no cloud sends no request, and does not import what sends them.
        if not runner.READERS[name]:
            return run_here(action)
        write = _watch(name, folder, time.perf_counter())
        try:
            return run_here(action)
        finally:
            write()

    runner.run_here = run_and_watch


def _read_peak() -> int:
    """Return the peak memory of this process in KiB (proc(5)).

    wait4 would also count the memory of its parent.
    """
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) if found else 0


def _find_module() -> str | None:
    """Return the name of the module that this process is, as Ansible starts it."""
    for argument in sys.orig_argv:
        found = re.search(r"AnsiballZ_((?:orphan|placement)_\w+)\.py$", argument)
        if found:
            return found[1]
    return None


if "BENCHMARK_PROBE" in os.environ:
    _folder = Path(os.environ["BENCHMARK_PROBE"])
    _module = _find_module()
    if _module:
        atexit.register(_watch(_module, _folder, _STARTED))
    elif any(Path(argument).name == "ansible-playbook" for argument in sys.orig_argv):
        _watch_in_process(_folder)
