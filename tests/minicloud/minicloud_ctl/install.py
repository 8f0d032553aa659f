"""The virtual environment.

It has exact versions, and is installed once for each content of the requirement files.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from minicloud_ctl import configs, debian, files, processes, services
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths
from minicloud_ctl.releases import Release

# Template database: configuration section, and the commands that bring an empty file to the newest
# schema.
MIGRATIONS = {
    "keystone": ("database", [["keystone-manage", "db_sync"]]),
    "placement": ("placement_database", [["placement-manage", "db", "sync"]]),
    "glance": ("database", [["glance-manage", "db", "sync"]]),
    "nova_api": ("api_database", [["nova-manage", "api_db", "sync"]]),
    "nova_cell": ("database", [["nova-manage", "db", "sync", "--local_cell"]]),
}


def fingerprint(release: Release) -> str:
    """Return a digest of everything that the environment is made from.

    The Python that runs the command line is not part of it.
    """
    constraints = b"" if release.debian else release.constraints.read_bytes()
    return hashlib.sha256(
        release.requirements.read_bytes() + constraints + f"{release.pythons}".encode()
    ).hexdigest()


def is_installed(paths: Paths) -> bool:
    try:
        return _stamp(paths).read_text(encoding="ascii").strip() == fingerprint(paths.release)
    except FileNotFoundError:
        return False


def install(paths: Paths) -> bool:
    """Create the environment and the template databases; return False when they already exist."""
    if is_installed(paths):
        return False
    with files.locked(
        paths.install_lock, f"waiting: somebody else is installing into {paths.venv}"
    ):
        if is_installed(paths):
            return False
        _refuse_while_it_runs(paths, processes.names(paths))
        began = time.monotonic()
        print(f"installing into {paths.venv} (once; log: {paths.install_log})", flush=True)
        _make(paths)
        files.write(_stamp(paths), fingerprint(paths.release) + "\n", 0o644)
        print(f"installed in {time.monotonic() - began:.0f} s", flush=True)
    return True


def install_part(paths: Paths, part: str) -> bool:
    """Create the folder of a part's packages; return False when it already exists.

    Its dependencies are those of the environment, which stays unchanged, plus the few in the file.
    """
    requirements = paths.release.part(part)
    if not requirements.exists():
        raise MinicloudError(
            f"The minicloud has no real {part.capitalize()} for release {paths.release.name}."
        )
    folder = paths.part(part)
    wanted = hashlib.sha256(
        f"{fingerprint(paths.release)}\n".encode() + requirements.read_bytes()
    ).hexdigest()
    stamp = folder / "minicloud-installed"
    waiting = f"waiting: somebody else is installing into {folder}"
    with files.locked(paths.part_lock(part), waiting):
        if stamp.exists() and stamp.read_text(encoding="ascii").strip() == wanted:
            return False
        _refuse_while_it_runs(paths, services.PROCESSES.get(part, []))
        began = time.monotonic()
        print(f"installing into {folder} (once; log: {paths.install_log})", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip = [paths.program("python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        _run(paths.install_log, [*pip, "--target", str(folder), "-r", str(requirements)])
        if part in services.PROCESSES:
            _make_part_template(paths, part)
        files.write(stamp, wanted + "\n", 0o644)
        print(f"installed in {time.monotonic() - began:.0f} s", flush=True)
    return True


def _refuse_while_it_runs(paths: Paths, names: list[str]) -> None:
    if any(processes.alive(paths, name) for name in names):
        raise MinicloudError(
            "The requirements have changed since this minicloud was started: run 'minicloud down' "
            "first."
        )


def _make_part_template(paths: Paths, part: str) -> None:
    template = paths.template(part, part)
    template.parent.mkdir(parents=True, exist_ok=True)
    argv = [paths.program("python"), "-m", f"minicloud_venv.{part}_schema", f"sqlite:///{template}"]
    path = f"{configs.python_path(paths)}:{paths.part(part)}"
    _run(paths.install_log, argv, environment={"PYTHONPATH": path})


def _make(paths: Paths) -> None:
    log = paths.install_log
    files.write(log, "")
    if paths.release.debian:
        shutil.rmtree(paths.venv, ignore_errors=True)
        debian.unpack(paths, functools.partial(_run, log))
    else:
        wanted = ["-r", str(paths.release.requirements), "-c", str(paths.release.constraints)]
        _run(
            log,
            [
                str(REPOSITORY / "tests" / "tools" / "make-venv"),
                paths.release.python(),
                str(paths.venv),
                *wanted,
            ],
            shows_progress=True,
        )
    make_templates(paths)


def make_templates(paths: Paths) -> None:
    """Run every migration on an empty database, all in parallel.

    A plain SQLite URL is sufficient: each file has one writer.
    """
    paths.templates.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for name, (section, commands) in MIGRATIONS.items():
            config = Path(folder, f"{name}.conf")
            files.write(
                config, f"[{section}]\nconnection = sqlite:///{paths.templates / name}.db\n"
            )
            script = "\n".join(
                (
                    f'"{paths.program(command)}" --config-file "{config}" '
                    f"{' '.join(arguments)} || exit 1"
                )
                for command, *arguments in commands
            )
            log = Path(folder, f"{name}.log")
            with open(log, "wb") as stream:
                running[name] = (
                    subprocess.Popen(
                        ["sh", "-c", script], stdout=stream, stderr=stream, env=_environment()
                    ),
                    log,
                )
        for name, (process, log) in running.items():
            if process.wait() != 0:
                raise MinicloudError(f"The database migration of {name} failed.", files.tail(log))


def _environment() -> dict[str, str]:
    return {**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}


def _stamp(paths: Paths) -> Path:
    return paths.venv / "minicloud-installed"


def _run(
    log: Path,
    argv: list[str],
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
    shows_progress: bool = False,
) -> None:
    """Run a command whose output goes to the log; its progress, on stderr, to the terminal."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as stream:
        code = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=None if shows_progress else stream,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            check=False,
        ).returncode
    if code != 0:
        raise MinicloudError(
            f"'{' '.join(argv[:3])} ...' failed with exit status {code}; the whole log is {log}.",
            files.tail(log),
        )
