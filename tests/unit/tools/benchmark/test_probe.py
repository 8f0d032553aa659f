# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe records what a module sends, and how much memory it needs."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

import pytest

if t.TYPE_CHECKING:
    from collections.abc import Iterator

PROBE = Path(__file__).parents[4] / "tools" / "benchmark" / "probe"
MODULE = """\
import sys
import requests

requests.get(sys.argv[1], headers={"OpenStack-API-Version": "placement 1.36"})
sys.exit(3)
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/allocations"
        server.shutdown()
        thread.join()


def _run(folder: Path, name: str, url: str) -> list[dict[str, t.Any]]:
    """Run a process as Ansible starts a module, and return the records of the probe."""
    script, records = folder / name, folder / "records"
    script.write_text(MODULE, encoding="utf-8")
    records.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(PROBE), "BENCHMARK_PROBE": str(records)}
    done = subprocess.run([sys.executable, str(script), url], env=environment, check=False)
    assert done.returncode == 3
    return [json.loads(path.read_text(encoding="utf-8")) for path in records.iterdir()]


def test_module_is_recorded_with_its_requests(tmp_path: Path, url: str) -> None:
    (record,) = _run(tmp_path, "AnsiballZ_orphan_detect.py", url)

    assert record["module"] == "orphan_detect"
    assert record["seconds"] > 0
    assert record["peak_kib"] > 0
    (request,) = record["requests"]
    assert request["start"] < request["end"]
    assert (request["method"], request["url"], request["status"]) == ("GET", url, 204)
    assert (request["version"], request["body"]) == ("placement 1.36", None)


def test_other_processes_are_left_alone(tmp_path: Path, url: str) -> None:
    assert _run(tmp_path, "AnsiballZ_setup.py", url) == []
