"""What the stack needs of the machine, said by name."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PACKAGES = Path(__file__).with_name("packages.txt")
# What root has in its PATH, and some others do not.
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# The modules of a hypervisor run with its system's Python.
PYTHON = "/usr/bin/python3"


def read_packages() -> list[str]:
    lines = PACKAGES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def lacking() -> str:
    """Return one sentence about what is missing, empty when nothing is."""
    if os.geteuid() != 0:
        return "The stack has namespaces with hypervisors: run it as root."
    if shutil.which("dpkg-query") is None:
        return "The stack is made of Debian packages, and there is no dpkg-query."
    if not Path(PYTHON).exists():
        return f"There is no {PYTHON} for the hypervisors: apt-get install python3."
    if Path(__file__).is_relative_to("/var"):
        return "Each hypervisor has a /var of its own: check out the repository elsewhere."
    missing = [package for package in read_packages() if not _is_installed(package)]
    if missing:
        return (
            f"Missing packages: apt-get install --no-install-recommends {' '.join(missing)} "
            "(with a policy-rc.d that starts none of their services)."
        )
    unshared = ["unshare", "--mount", "--uts", "--pid", "--ipc", "--fork", "true"]
    done = subprocess.run(unshared, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"No namespaces can be made here: {done.stderr.strip()}"
    return ""


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}", package]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return done.stdout.startswith("ii")
