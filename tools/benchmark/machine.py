"""Describes the machine and the versions of a run."""

import importlib.metadata
import os
import platform
import re
from pathlib import Path

from minicloud_ctl.releases import NEWEST


def describe_machine() -> str:
    return (
        f"{os.cpu_count()} cores and {_read_memory():.0f} GiB of memory, "
        f"Nova {_read_version('nova')}, Placement {_read_version('openstack-placement')}, "
        f"ansible-core {importlib.metadata.version('ansible-core')}, "
        f"Python {platform.python_version()}"
    )


def _read_memory() -> float:
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.findall(r"MemTotal:\s+(\d+)", text)[0]) / 2**20


def _read_version(package: str) -> str:
    """Return the version of a package of the cloud, as it is pinned."""
    text = NEWEST.requirements.read_text(encoding="utf-8")
    found = re.search(rf"^{package}==(\S+)$", text, re.M)
    return found[1] if found else "of unknown version"
