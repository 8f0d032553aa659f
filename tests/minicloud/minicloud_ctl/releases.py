"""The releases of OpenStack that a minicloud can run, and their differences for the command line.

``minicloud_venv`` handles the differences inside the processes of the services.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from minicloud_ctl.errors import MinicloudError

SOURCE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Release:
    """``pythons``: its versions, the first one found is used.

    None stands for the one that runs the command line.

    ``compute`` and ``placement`` are the newest microversions that scenarios and tests use.
    ``green``: Nova's services need eventlet.
    ``debian``: it is made of packages, not of wheels. ``title``: its usual name, where that differs
    from its name. ``nested``: its hosts can have devices (``minicloud_ctl.nested``).
    """

    name: str
    pythons: tuple[str, ...] = ()
    compute: tuple[int, int] = (2, 91)
    placement: tuple[int, int] = (1, 38)
    green: bool = False
    compute_driver: str = "fake.FakeDriverWithoutFakeNodes"
    debian: bool = False
    title: str = ""
    nested: bool = False

    @property
    def folder(self) -> Path:
        return SOURCE / "releases" / self.name

    @property
    def venv(self) -> str:
        """The folder of its virtual environment, beside those of the others."""
        return f"venv-{self.name}" if self.pythons or self.debian else "venv"

    @property
    def requirements(self) -> Path:
        return self.folder / ("packages.txt" if self.debian else "requirements.txt")

    @property
    def constraints(self) -> Path:
        return self.folder / "constraints.txt"

    def part(self, name: str) -> Path:
        """The packages of a real part, such as Neutron; a release may have none."""
        return self.folder / f"{name}.txt"

    def python(self) -> str:
        """Return the interpreter for the virtual environment."""
        if not self.pythons:
            return sys.executable
        finder = SOURCE.parent / "tools" / "find-python"
        done = subprocess.run(
            [finder, " ".join(self.pythons)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise MinicloudError(
                f"Release {self.name} needs a Python that was not found.", done.stderr.strip()
            )
        return done.stdout.strip()


NEWEST = Release("2026.2", nested=True)
RELEASES = {
    release.name: release
    for release in (
        NEWEST,
        Release("2024.2", pythons=("3.11", "3.12"), green=True),
        Release(
            "bookworm",
            green=True,
            compute_driver="fake.FakeDriver",
            debian=True,
            title="Zed, packages of Debian 12",
        ),
        Release(
            "train",
            pythons=("3.7",),
            compute=(2, 79),
            placement=(1, 36),
            green=True,
            compute_driver="fake.FakeDriver",
            title="Train (2019)",
        ),
    )
}


def choose(name: str | None = None) -> Release:
    """Choose by name, else by $MINICLOUD_RELEASE, else the newest."""
    name = name or os.environ.get("MINICLOUD_RELEASE") or NEWEST.name
    if name not in RELEASES:
        raise MinicloudError(f"There is no release {name}; there are: {', '.join(RELEASES)}.")
    return RELEASES[name]


def at_most(wanted: str, newest: tuple[int, int]) -> str:
    """Return the requested microversion, or the newest available one."""
    major, minor = wanted.split(".")
    return "{}.{}".format(*min((int(major), int(minor)), newest))
