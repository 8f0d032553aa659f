# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs the collection.

An ansible-core, a Python and an openstacksdk, each in a virtual environment of its own.
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

# ansible-core and the Pythons that it is run with.
PYTHONS = {"2.18": ("3.11",), "2.19": ("3.11",), "2.20": ("3.12", "3.13"), "2.21": ("3.12", "3.13")}
_VENVS = REPOSITORY / ".cache" / "matrix"
_PINS = REPOSITORY / "tests" / "requirements" / "controller.txt"
_TOOLS = REPOSITORY / "tests" / "tools"
# What the tests import, besides what is to be tested.
_TESTS = ("jmespath", "pytest", "hypothesis", "pytest-xdist")
# What must be free for old versions of those to be tested.
_FREE = frozenset({"ansible-core", "openstacksdk", "resolvelib"})


class NotRun(Exception):
    """Why something cannot be run on this machine."""


@d.dataclass(frozen=True)
class Controller:
    """Versions: of ansible-core and Python the first two numbers, of openstacksdk all of them."""

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
        """The version of ansible-core that was installed, or nothing."""
        found = self.venv.glob("lib/python*/site-packages/ansible_core-*.dist-info")
        return next((path.name.removesuffix(".dist-info").partition("-")[2] for path in found), "")

    def install(self) -> None:
        """Make the environment, unless it is there."""
        wanted = [
            f"ansible-core=={self.ansible_core}.*",
            f"openstacksdk=={self.sdk}",
            "setuptools",
            *_TESTS,
        ]
        constraints = "".join(
            f"{line}\n" for line in _PINS.read_text().splitlines() if _name(line) not in _FREE
        )
        stamp = hashlib.sha256(f"{wanted}{constraints}".encode()).hexdigest()
        if (self.venv / "stamp").exists() and (self.venv / "stamp").read_text() == stamp:
            return
        print(f"making {self.venv.relative_to(REPOSITORY)}", flush=True)
        base = _find_python(self.python)
        with tempfile.NamedTemporaryFile("w") as pins:
            pins.write(constraints)
            pins.flush()
            _run(str(_TOOLS / "make-venv"), base, str(self.venv), "-c", pins.name, *wanted)
        (self.venv / "stamp").write_text(stamp)


def controllers() -> list[Controller]:
    """All of them, the oldest first."""
    return [
        Controller(ansible_core, python, sdk)
        for ansible_core, pythons in PYTHONS.items()
        for python in pythons
        for sdk in (oldest_sdk(), _newest_sdk())
    ]


def oldest_sdk() -> str:
    """What the collection says that it needs."""
    return _version(REPOSITORY / "requirements.txt", r"openstacksdk>=(.*)")


def _newest_sdk() -> str:
    return _version(_PINS, r"openstacksdk==(.*)")


def _version(path: Path, pattern: str) -> str:
    found = re.search(f"^{pattern}$", path.read_text(), re.MULTILINE)
    assert found, f"{path} does not tell {pattern}"
    return found[1].strip()


def _name(line: str) -> str:
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
        errors = [
            line.strip()
            for line in (done.stdout + done.stderr).splitlines()
            if "error" in line.lower()
        ]
        raise NotRun(
            "it cannot be installed: "
            f"{'; '.join(errors[:2]) or 'exit status ' + str(done.returncode)}"
        )
