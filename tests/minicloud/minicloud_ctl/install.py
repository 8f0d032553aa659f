"""The virtual environment.

It has exact versions, and is installed once for each content of the requirement files.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from minicloud_ctl import configs, debian, files, processes, services
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY, Paths
from minicloud_ctl.releases import Release

# Template database: configuration section, and the command that brings an empty file to the newest
# schema.
MIGRATIONS = {
    "keystone": ("database", ["keystone-manage", "db_sync"]),
    "placement": ("placement_database", ["placement-manage", "db", "sync"]),
    "glance": ("database", ["glance-manage", "db", "sync"]),
    "nova_api": ("api_database", ["nova-manage", "api_db", "sync"]),
    "nova_cell": ("database", ["nova-manage", "db", "sync", "--local_cell"]),
}


def fingerprint(release: Release) -> str:
    """Return a digest of everything that the environment is made from.

    The Python that runs the command line is not part of it.
    """
    constraints = b"" if release.debian else release.constraints.read_bytes()
    return hashlib.sha256(
        release.requirements.read_bytes() + constraints + f"{release.pythons}".encode()
    ).hexdigest()


def install(paths: Paths) -> bool:
    """Create the environment and the template databases; return False when they already exist."""

    def make() -> None:
        _refuse_while_it_runs(paths, processes.names(paths))
        _make(paths)

    return _make_once(paths, paths.venv, fingerprint(paths.release), make)


def install_part(paths: Paths, part: str) -> bool:
    """Create the folder of a part's packages; return False when it already exists."""
    requirements = paths.release.part(part)
    if not requirements.exists():
        raise MinicloudError(
            f"The minicloud has no real {part.capitalize()} for release {paths.release.name}."
        )
    known = f"{fingerprint(paths.release)}\n".encode() + requirements.read_bytes()

    def make() -> None:
        _refuse_while_it_runs(paths, services.PROCESSES.get(part, []))
        _install_packages(paths, paths.part(part), requirements)
        if part in services.PROCESSES:
            _make_part_template(paths, part)

    return _make_once(paths, paths.part(part), hashlib.sha256(known).hexdigest(), make)


def _install_packages(paths: Paths, folder: Path, requirements: Path) -> None:
    """Install packages into a folder of their own.

    Their dependencies are those of the environment, which stays unchanged, plus the few in the
    file.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pip = [paths.program("python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    _run(paths.install_log, [*pip, "--target", str(folder), "-r", str(requirements)])


def install_beside(paths: Paths, folder: Path, requirements: Path) -> bool:
    """Create a folder of packages of no part; return False when it already exists."""
    wanted = f"{fingerprint(paths.release)}\n{requirements.read_text(encoding='utf-8').strip()}"
    make = functools.partial(_install_packages, paths, folder, requirements)
    return _make_once(paths, folder, wanted, make)


def _make_once(paths: Paths, folder: Path, wanted: str, make: Callable[[], None]) -> bool:
    """Make a folder, unless it was made of what is wanted; the stamp in it says of what."""
    stamp = folder / "minicloud-installed"

    def is_made() -> bool:
        return stamp.exists() and stamp.read_text(encoding="utf-8").strip() == wanted

    if is_made():
        return False
    # Beside the folder, because that is deleted and created again.
    lock = folder.with_name(f".{folder.name}.lock")
    with files.locked(lock, f"waiting: somebody else is installing into {folder}"):
        if is_made():
            return False
        began = time.monotonic()
        print(f"installing into {folder} (once; log: {paths.install_log})", flush=True)
        make()
        files.write(stamp, f"{wanted}\n", 0o644)
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
    argv = [paths.program("python"), "-m", "minicloud_venv.schema", part, f"sqlite:///{template}"]
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
        program = str(REPOSITORY / "tests" / "tools" / "make-venv")
        command = [program, paths.release.python(), str(paths.venv), *wanted]
        _run(log, command, shows_progress=True)
    make_templates(paths)


def make_templates(paths: Paths) -> None:
    """Run every migration on an empty database, all in parallel.

    A plain SQLite URL is sufficient: each file has one writer.
    """
    paths.templates.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        running = {}
        for name, (section, command) in MIGRATIONS.items():
            config = Path(folder, f"{name}.conf")
            files.write(
                config, f"[{section}]\nconnection = sqlite:///{paths.templates / name}.db\n"
            )
            program, *arguments = command
            argv = [paths.program(program), "--config-file", str(config), *arguments]
            log = Path(folder, f"{name}.log")
            with open(log, "wb") as stream:
                process = subprocess.Popen(argv, stdout=stream, stderr=stream, env=_environment())
            running[name] = (process, log)
        for name, (process, log) in running.items():
            if process.wait() != 0:
                raise MinicloudError(f"The database migration of {name} failed.", files.tail(log))


def _environment() -> dict[str, str]:
    return {**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}


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
