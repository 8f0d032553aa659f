"""Debian's own packages, downloaded and unpacked into a folder.

Nothing is installed, and no maintainer script runs.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

CODENAME = "bookworm"
PYTHON = "/usr/bin/python3"
NEEDED_ONLY = [
    f"--no-{kind}"
    for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
]


def unpack(paths: Paths, run: Callable[..., None]) -> None:
    """Create a virtual environment of the system's Python that finds the unpacked packages.

    ``run`` runs a command and logs it.
    """
    if not re.search(rf"^VERSION_CODENAME={CODENAME}$", _read("/etc/os-release"), re.MULTILINE):
        raise MinicloudError("It is made of the packages of Debian 12, and this is another system.")
    wanted = [
        line
        for line in paths.release.requirements.read_text().splitlines()
        if not line.startswith("#")
    ]
    root = paths.venv / "debian"
    run([PYTHON, "-m", "venv", "--without-pip", str(paths.venv)])
    with tempfile.TemporaryDirectory() as folder:
        # As root, apt downloads as a user of its own if it can.
        Path(folder).chmod(0o755)
        download = ["apt-get", "download", "--option", "Acquire::Retries=3", "--quiet"]
        run([*download, *sorted({*wanted, *_dependencies(wanted)})], cwd=folder)
        for package in sorted(Path(folder).glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(root)])
    (packages,) = paths.venv.glob("lib/python3*/site-packages")
    (packages / "debian.pth").write_text(f"{root / 'usr/lib/python3/dist-packages'}\n")
    for program in (root / "usr" / "bin").iterdir():
        if program.is_symlink():
            continue
        first, _end, rest = program.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python3" in first:
            (paths.venv / "bin" / program.name).write_bytes(
                f"#!{paths.program('python')}\n".encode() + rest
            )
            (paths.venv / "bin" / program.name).chmod(0o755)
    etc = paths.venv / "etc"
    etc.mkdir()
    for name in ("nova", "glance"):
        (etc / name).symlink_to(root / "usr" / "share" / f"{name}-common")


def _dependencies(names: list[str]) -> set[str]:
    """Return every Python package that is needed.

    Other dependencies, such as the C library, come from the system.
    """
    command = ["apt-cache", "depends", "--recurse", *NEEDED_ONLY, *names]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {line for line in told.splitlines() if re.match(r"python3-|alembic$", line)}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
