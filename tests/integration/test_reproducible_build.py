"""`make build` gives the same bytes for the same commit, wherever it is run."""

import os
import subprocess
import typing as t
from pathlib import Path

import pytest

from .support import ROOT

if not (ROOT / ".git").exists():
    pytest.skip("This is no clone of the repository.", allow_module_level=True)

# 2001 and 2033.
YEARS = (1_000_000_000, 2_000_000_000)


def build(folder: Path, umask: int, timezone: str, mtime: int) -> bytes:
    """Clone this commit into a folder, make the clone as different as can be, and build there."""

    def run(*command: str, **options: t.Any) -> None:
        environment = {**os.environ, "TZ": timezone, "LC_ALL": "C.UTF-8"}
        subprocess.run(command, check=True, umask=umask, env=environment, **options)

    run("git", "clone", "--quiet", "--no-hardlinks", str(ROOT.resolve()), str(folder))
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    for path in folder.rglob("*"):
        if ".git" not in path.parts and not path.is_symlink():
            os.utime(path, (mtime, mtime))
    run("tests/tools/build", cwd=folder)
    (tarball,) = (folder / "dist").glob("*.tar.gz")
    return tarball.read_bytes()


def test_two_clones_give_the_same_tarball(tmp_path: Path) -> None:
    one = build(tmp_path / "one", 0o077, "America/New_York", YEARS[0])
    two = build(tmp_path / "a folder" / "two", 0o002, "Asia/Kathmandu", YEARS[1])

    assert one == two


@pytest.mark.long
def test_tarball_can_be_installed(tmp_path: Path) -> None:
    """`ansible-galaxy` verifies its checksums."""
    build(tmp_path / "clone", 0o022, "UTC", YEARS[0])
    (tarball,) = (tmp_path / "clone" / "dist").glob("*.tar.gz")
    galaxy = ROOT / ".venv" / "controller" / "bin" / "ansible-galaxy"
    command = [
        str(galaxy),
        "collection",
        "install",
        str(tarball),
        "-p",
        str(tmp_path / "installed"),
    ]
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "ansible")}

    subprocess.run([*command, "--offline"], check=True, env=environment)

    folder = tmp_path / "installed" / "ansible_collections" / "osops" / "placement"
    assert (folder / "plugins" / "modules" / "orphan_detect.py").exists()
