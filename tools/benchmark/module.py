# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module of ours in a process of its own.

Run as `python -m benchmark.module NAME OPTIONS FIGURES [RECORDING]`.

OPTIONS is what the module is given, as JSON. FIGURES is where {"peak_kib": number} goes. With
RECORDING every request is noted there: [{"start", "end": seconds, "lane": thread, "method", "url",
"version": header, "body": text or null, "status"}]; runs that are measured do without.
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
    noted = _note_requests() if recording else []
    # The way in which Ansible itself hands options to a module.
    handed = io.BytesIO(json.dumps({"ANSIBLE_MODULE_ARGS": json.loads(options)}).encode())
    module = f"{_MODULES}.{name}"
    sys.argv, sys.stdin = [module], io.TextIOWrapper(handed)
    status = 0
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as end:
        status = int(end.code or 0)
    if recording:
        Path(recording).write_text(json.dumps(noted), encoding="utf-8")
    Path(figures).write_text(json.dumps({"peak_kib": _peak()}), encoding="utf-8")
    return status


def _note_requests() -> list[dict[str, t.Any]]:
    import requests

    noted: list[dict[str, t.Any]] = []
    send = requests.Session.send

    def noting(
        session: requests.Session, request: requests.PreparedRequest, **options: t.Any
    ) -> requests.Response:
        start = time.perf_counter()
        response = send(session, request, **options)
        noted.append(
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

    requests.Session.send = noting  # type: ignore[method-assign]
    return noted


def _peak() -> int:
    """The most memory this process ever had, in KiB (proc(5)).

    What wait4 reports would also count its parent's.
    """
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
