"""One small OpenStack of each release, with every situation in it.

Its allocations are restored for each controller.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import io
import json
import os
import subprocess
import typing as t
import urllib.request

from minicloud_ctl import databases, releases
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths

if t.TYPE_CHECKING:
    from pathlib import Path


SERVICES = ("nova", "openstack-placement", "keystone", "glance")
# For Pythons from 3.7 on.
_VERSIONS = """
import platform, sys
try:
    from importlib.metadata import version
except ImportError:
    from pkg_resources import get_distribution
    version = lambda name: get_distribution(name).version
print(platform.python_version(), *map(version, sys.argv[1:]))
"""


@d.dataclass(frozen=True)
class Release:
    """The versions of the services of a release."""

    name: str
    versions: dict[str, str]
    python: str
    compute: str
    placement: str


class Cloud:
    """The cloud of one release, controlled with the command line of the minicloud."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.environment = {
            **os.environ,
            "MINICLOUD_HOME": str(home / name),
            "MINICLOUD_RELEASE": name,
        }
        if name != releases.NEWEST.name:
            # MINICLOUD_VENV names the environment of the newest release.
            self.environment.pop("MINICLOUD_VENV", None)
        venv = (
            self.environment.get("MINICLOUD_VENV")
            or REPOSITORY / ".minicloud" / releases.RELEASES[name].venv
        )
        self.paths = Paths(home / name, REPOSITORY / venv, releases.RELEASES[name])

    def start(self) -> None:
        self.run("down", "--purge")
        self.run("up")

    def create_situations(self) -> None:
        """Create every situation, which each controller detects, cleans up and restores."""
        self.run("scenario", "all")
        databases.keep_allocations(self.paths)

    def restore(self) -> None:
        databases.restore_allocations(self.paths)

    def stop(self) -> None:
        self.run("down", "--purge")

    def read_versions(self) -> Release:
        command = [self.paths.program("python"), "-W", "ignore", "-c", _VERSIONS, *SERVICES]
        python, *found = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.split()
        ports = json.loads(self.paths.state.read_text())["ports"]
        known = {each["id"]: each for each in _get(ports["nova-api"])["versions"]}
        compute = known["v2.1"]["version"]
        placement = _get(ports["placement"])["versions"][0]["max_version"]
        versions = dict(zip(SERVICES, found, strict=True))
        return Release(self.name, versions, python, compute, placement)

    def run(self, *arguments: str) -> None:
        command = [str(REPOSITORY / "tests" / "minicloud" / "minicloud"), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=self.environment
        )
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).splitlines()
            failed = [each for each in lines if "FAILED" in each or each.startswith("minicloud: ")]
            raise MinicloudError(f"minicloud {' '.join(arguments)}: {' '.join(failed)[:500]}")


def _get(port: int) -> t.Any:
    with contextlib.closing(urllib.request.urlopen(f"http://127.0.0.1:{port}/")) as answer:
        return json.load(io.TextIOWrapper(answer))
