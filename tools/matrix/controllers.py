"""The controllers that run the collection.

A controller is an ansible-core, a Python and an openstacksdk, in its own virtual environment.
"""

from __future__ import annotations

import dataclasses as d
import hashlib
import re
import subprocess
import tempfile
import typing as t

from minicloud_ctl.paths import REPOSITORY

if t.TYPE_CHECKING:
    from pathlib import Path

# Each ansible-core with its Pythons.
PYTHONS = {"2.18": ("3.11",), "2.19": ("3.11",), "2.20": ("3.12", "3.13"), "2.21": ("3.12", "3.13")}
_VENVS = REPOSITORY / ".cache" / "matrix"
_PINS = REPOSITORY / "tests" / "requirements" / "controller.txt"
_TOOLS = REPOSITORY / "tests" / "tools"
# The other packages that the tests import.
_TESTS = ("jmespath", "pytest", "hypothesis", "pytest-xdist")
# The pins that are ignored, so that other versions can be tested.
_NOT_PINNED = frozenset({"ansible-core", "openstacksdk", "resolvelib"})


class NotRun(Exception):
    """The reason why something cannot run on this machine."""


@d.dataclass(frozen=True)
class Controller:
    """The version of openstacksdk is complete; the others are their first two numbers."""

    ansible_core: str
    python: str
    sdk: str

    def __str__(self) -> str:
        return f"ansible-core {self.ansible_core}, Python {self.python}, openstacksdk {self.sdk}"

    @property
    def venv(self) -> Path:
        return _VENVS / f"ansible-{self.ansible_core}-python-{self.python}-sdk-{self.sdk}"

    @property
    def exactly(self) -> str:
        """Return the installed version of ansible-core; empty if it is not installed."""
        found = self.venv.glob("lib/python*/site-packages/ansible_core-*.dist-info")
        return next((path.name.removesuffix(".dist-info").partition("-")[2] for path in found), "")

    def install(self) -> None:
        """Create the environment unless it is up to date."""
        versions = f"ansible-core=={self.ansible_core}.*", f"openstacksdk=={self.sdk}"
        packages = [*versions, "setuptools", *_TESTS]
        pins = _PINS.read_text().splitlines()
        kept = [f"{line}\n" for line in pins if _parse_name(line) not in _NOT_PINNED]
        constraints = "".join(kept)
        stamp = hashlib.sha256(f"{packages}{constraints}".encode()).hexdigest()
        if (self.venv / "stamp").exists() and (self.venv / "stamp").read_text() == stamp:
            return
        print(f"creating {self.venv.relative_to(REPOSITORY)}", flush=True)
        base = _find_python(self.python)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(constraints)
            file.flush()
            _run(str(_TOOLS / "make-venv"), base, str(self.venv), "-c", file.name, *packages)
        (self.venv / "stamp").write_text(stamp)


def list_controllers() -> list[Controller]:
    """Return all controllers, the oldest first."""
    return [
        Controller(ansible_core, python, sdk)
        for ansible_core, pythons in PYTHONS.items()
        for python in pythons
        for sdk in (read_oldest_sdk(), _read_newest_sdk())
    ]


def read_oldest_sdk() -> str:
    """Return the minimum version that the collection declares."""
    return _find_version(REPOSITORY / "requirements.txt", r"openstacksdk>=(.*)")


def _read_newest_sdk() -> str:
    return _find_version(_PINS, r"openstacksdk==(.*)")


def _find_version(path: Path, pattern: str) -> str:
    found = re.search(f"^{pattern}$", path.read_text(), re.MULTILINE)
    assert found, f"{path} has no line {pattern}"
    return found[1].strip()


def _parse_name(line: str) -> str:
    return re.split(r"[=<>!; ]", line, maxsplit=1)[0].lower()


def _find_python(version: str) -> str:
    done = subprocess.run(
        [_TOOLS / "find-python", version], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotRun(f"no Python {version} was found")
    return done.stdout.strip()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line.strip() for line in lines if "error" in line.lower()]
        why = "; ".join(errors[:2]) or f"exit status {done.returncode}"
        raise NotRun(f"the installation failed: {why}")
