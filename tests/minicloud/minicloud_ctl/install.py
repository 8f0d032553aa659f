# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The virtual environment: exact versions, installed once for each content of the requirement files."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from minicloud_ctl import debian, files, processes
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.releases import Release

# Template database: configuration section, and the commands that bring an empty file to the newest schema.
MIGRATIONS = {
    "keystone": ("database", [["keystone-manage", "db_sync"]]),
    "placement": ("placement_database", [["placement-manage", "db", "sync"]]),
    "glance": ("database", [["glance-manage", "db", "sync"]]),
    "nova_api": ("api_database", [["nova-manage", "api_db", "sync"]]),
    "nova_cell": ("database", [["nova-manage", "db", "sync", "--local_cell"]]),
}


def fingerprint(release: Release) -> str:
    """What the installed environment must have been made from: the requirement files and the Python versions that may be."""
    versions = release.pythons or sys.version_info[:2]
    constraints = b"" if release.debian else release.constraints.read_bytes()
    content = release.requirements.read_bytes() + constraints + f"{versions}".encode()
    return hashlib.sha256(content).hexdigest()


def is_installed(paths: Paths) -> bool:
    try:
        return _stamp(paths).read_text(encoding="ascii").strip() == fingerprint(paths.release)
    except FileNotFoundError:
        return False


def install(paths: Paths) -> bool:
    """Create the environment and the template databases; False when they are there already."""
    if is_installed(paths):
        return False
    if any(processes.alive(paths, name) for name in processes.names(paths)):
        raise MinicloudError("The requirements have changed since this minicloud was started: run 'minicloud down' first.")
    began = time.monotonic()
    log = paths.install_log
    files.write(log, "")
    uv = shutil.which("uv")
    print(f"installing into {paths.venv} with {'apt' if paths.release.debian else 'uv' if uv else 'pip'} (once; log: {log})", flush=True)
    shutil.rmtree(paths.venv, ignore_errors=True)
    python = paths.program("python")
    base = paths.release.python()
    wanted = ["-r", str(paths.release.requirements), "-c", str(paths.release.constraints)]
    if paths.release.debian:
        debian.unpack(paths, functools.partial(_run, log))
    elif uv:
        _run(log, [uv, "venv", "--python", base, str(paths.venv)])
        _run(log, [uv, "pip", "install", "--python", python, "--compile-bytecode", *wanted])
    else:
        _run(log, [base, "-m", "venv", str(paths.venv)])
        _run(log, [python, "-m", "pip", "install", "--disable-pip-version-check", *wanted])
    make_templates(paths)
    files.write(_stamp(paths), fingerprint(paths.release) + "\n", 0o644)
    print(f"installed in {time.monotonic() - began:.0f} s", flush=True)
    return True


def make_templates(paths: Paths) -> None:
    """Run every migration on an empty database, all side by side. A plain SQLite URL will do: each file has one writer."""
    paths.templates.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for name, (section, commands) in MIGRATIONS.items():
            config = Path(folder, f"{name}.conf")
            files.write(config, f"[{section}]\nconnection = sqlite:///{paths.templates / name}.db\n")
            script = "\n".join(
                f'"{paths.program(command)}" --config-file "{config}" {" ".join(arguments)} || exit 1' for command, *arguments in commands
            )
            log = Path(folder, f"{name}.log")
            with open(log, "wb") as stream:
                running[name] = (subprocess.Popen(["sh", "-c", script], stdout=stream, stderr=stream, env=_environment()), log)
        for name, (process, log) in running.items():
            if process.wait() != 0:
                raise MinicloudError(f"The database migration of {name} failed.", files.tail(log))


def _environment() -> dict[str, str]:
    return {**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}


def _stamp(paths: Paths) -> Path:
    return paths.venv / "minicloud-installed"


def _run(log: Path, argv: list[str], cwd: str | None = None) -> None:
    with open(log, "ab") as stream:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=cwd, check=False).returncode
    if code != 0:
        raise MinicloudError(f"'{' '.join(argv[:3])} ...' failed with exit status {code}; the whole log is {log}.", files.tail(log))
