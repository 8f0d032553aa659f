# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module of the collection in this process.

Run as `python -m benchmark.module NAME OPTIONS FIGURES [RECORDING]`.

OPTIONS are the options of the module, as JSON. The file FIGURES receives {"peak_kib": number}. The
file RECORDING receives every request: [{"start", "end": seconds, "lane": thread, "method", "url",
"version": header, "body": text or null, "status"}]. Measured runs record nothing.
"""

from __future__ import annotations

import io
import json
import re
import runpy
import sys
import threading
import time
import typing as t
from pathlib import Path

_MODULES = "ansible_collections.osops.placement.plugins.modules"


def main(name: str, options: str, figures: str, recording: str | None = None) -> int:
    requests_sent = _record_requests() if recording else []
    # Ansible itself passes options to a module in this way.
    options_file = io.BytesIO(json.dumps({"ANSIBLE_MODULE_ARGS": json.loads(options)}).encode())
    module = f"{_MODULES}.{name}"
    sys.argv, sys.stdin = [module], io.TextIOWrapper(options_file)
    status = 0
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        status = int(end.code or 0)
    if recording:
        Path(recording).write_text(json.dumps(requests_sent), encoding="utf-8")
    Path(figures).write_text(json.dumps({"peak_kib": _read_peak()}), encoding="utf-8")
    return status


def _record_requests() -> list[dict[str, t.Any]]:
    import requests

    requests_sent: list[dict[str, t.Any]] = []
    send = requests.Session.send

    def send_and_record(
        session: requests.Session, request: requests.PreparedRequest, **options: t.Any
    ) -> requests.Response:
        start = time.perf_counter()
        response = send(session, request, **options)
        requests_sent.append(
            {
                "start": start,
                "end": time.perf_counter(),
                "lane": threading.get_ident(),
                "method": request.method,
                "url": request.url,
                "version": request.headers.get("OpenStack-API-Version"),
                "body": request.body.decode() if isinstance(request.body, bytes) else request.body,
                "status": response.status_code,
            }
        )
        return response

    requests.Session.send = send_and_record  # type: ignore[method-assign]
    return requests_sent


def _read_peak() -> int:
    """Return the peak memory of this process in KiB (proc(5)).

    wait4 would also count the memory of its parent.
    """
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
