# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watches the modules of the collection while a playbook is measured.

Python imports this file when it starts, in every process that `ansible-playbook` starts. It does
nothing but in the processes of modules. At the end of each of those it writes a JSON file into the
folder BENCHMARK_PROBE:

{"module": name, "seconds": from the start to the end of its process, "peak_kib": number,
 "requests": [{"start", "end": seconds, "lane": process and thread, "method", "url",
               "version": header, "body": text or null, "status"}]}
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import threading
import time
import typing as t
from pathlib import Path

_STARTED = time.perf_counter()


def _watch(module: str, folder: Path) -> None:
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
            "seconds": time.perf_counter() - _STARTED,
            "peak_kib": _read_peak(),
            "requests": sent,
        }
        # The names of the files are in the order of the modules.
        path = folder / f"{time.monotonic_ns():020}.json"
        path.write_text(json.dumps(record), encoding="utf-8")

    requests.Session.send = send_and_record  # type: ignore[assignment,method-assign]
    atexit.register(write)


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
    _module = _find_module()
    if _module:
        _watch(_module, Path(os.environ["BENCHMARK_PROBE"]))
