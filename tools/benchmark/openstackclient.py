"""The command that removes allocations by hand.

It has its own virtual environment in the folder of the benchmark's cloud.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from minicloud_ctl.paths import Paths

REQUIREMENTS = Path(__file__).with_name("openstackclient.txt")


def install(paths: Paths) -> str:
    """Install the client unless it is up to date, and return the path of `openstack`."""
    folder = paths.home / "openstackclient"
    program, stamp = folder / "bin" / "openstack", folder / "installed"
    requirements = REQUIREMENTS.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != requirements:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        python = str(folder / "bin" / "python")
        installer = ["uv", "pip", "install", "--quiet", "--python", python]
        if not shutil.which("uv"):
            installer = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*installer, "-r", str(REQUIREMENTS)], stdout=sys.stderr, check=True)
        stamp.write_text(requirements, encoding="utf-8")
    return str(program)


def build_unset_command(program: str, change: Mapping[str, t.Any]) -> list[str]:
    """Return the command that makes one change of a plan."""
    dropped = []
    if change["action"] != "remove":
        dropped = [f"--provider={provider}" for provider in change["frees"]]
    unset = ["resource", "provider", "allocation", "unset"]
    return [program, "--os-placement-api-version=1.28", *unset, *dropped, change["consumer"]]
