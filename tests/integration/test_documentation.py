"""Every command in the console blocks of these pages works, and prints what the page shows.

`make console` runs the same commands, and writes their outputs into the pages.

The pages are one after the other in the same cloud, so the order of PAGES is part of the outputs.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .console_blocks import Block, equal_outputs, read_blocks, replace_outputs, select_lines
from .console_shell import Shell
from .support import ROOT, Minicloud

OWN_CLOUD = True
PAGES = ("README.md", "docs/guide.md", "docs/no-valid-host.md", "docs/recipes.md")

# The page shows this folder. The real one has as many characters, so that lines wrap as there.
HOME = "/home/operator"
# A machine without one of these skips the commands that begin with it.
OPTIONAL = ("jq",)
UUID = re.compile(r"[0-9a-f-]{36}")
WRITE = "WRITE_CONSOLE_BLOCKS"


class Reader:
    """Somebody who reads one page and types its commands, in an empty home."""

    def __init__(self, cloud: Minicloud, home: Path) -> None:
        self._cloud = cloud
        self._home = home
        self._shell = Shell(str(home), _make_environment(cloud, home))
        # What the page says, and where to find what it is in this cloud.
        self._names: dict[str, str] = {}

    def close(self) -> None:
        self._shell.close()

    def follow(self, block: Block) -> Block:
        """Run the commands of a block, and return it with the outputs of this run."""
        for key, value in block.setup:
            if key == "before":
                self._run(self._to_real(value), 0)
            else:
                shown, _equals, source = value.partition(" = ")
                self._names[shown] = source
        for command in block.commands:
            program = command.text.split()[0]
            if program in OPTIONAL and not shutil.which(program):
                continue
            is_last = command is block.commands[-1]
            status = block.status if is_last else 0
            output = self._run(self._to_real(command.text), status)
            if block.shows and is_last:
                printed = select_lines(self._to_shown(output), block.shows)
                if not equal_outputs(command.output, printed):
                    command.output = printed
        return block

    def _run(self, command: str, expected: int) -> str:
        status, output = self._shell.run(command)
        assert status == expected, f"{command}\nended with {status}, not {expected}:\n{output}"
        return output

    def _to_real(self, text: str) -> str:
        for shown, real in self._list_names():
            text = text.replace(shown, real)
        return text

    def _to_shown(self, text: str) -> str:
        for shown, real in self._list_names():
            text = text.replace(real, shown)
            if UUID.fullmatch(real):
                # A table shows only the beginning where there is little room.
                text = text.replace(real[:8], shown[:8])
        for service, port in self._cloud.ports.items():
            text = text.replace(f"http://127.0.0.1:{port}", f"https://{service}.example.org")
        return text.replace(str(self._home), HOME)

    def _list_names(self) -> list[tuple[str, str]]:
        """Return what the page says, with what it is now: a command may have made a newer file."""
        names = []
        for shown, source in self._names.items():
            scenario, path = source.split()
            real = self._find_newest(path) if scenario == "newest" else self._read(scenario, path)
            if real:
                names.append((shown, real))
        return names

    def _find_newest(self, pattern: str) -> str:
        files = sorted(self._home.glob(pattern), key=lambda file: file.stat().st_mtime)
        return files[-1].name if files else ""

    def _read(self, scenario: str, path: str) -> str:
        """Return a value of the ground truth of a scenario."""
        value: t.Any = self._cloud.truth(scenario)
        for key in path.split("."):
            value = value[key]
        return str(value)


def _make_environment(cloud: Minicloud, home: Path) -> dict[str, str]:
    """Return the environment of a user who has installed ansible-core and has access to a cloud."""
    folders = [Path(sys.executable).parent, ROOT / "tests" / "minicloud"]
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
        "ANSIBLE_NOCOLOR": "1",
        "OS_CLOUD": "admin",
        "MINICLOUD_HOME": str(cloud.home),
        **{name: value for name, value in os.environ.items() if name == "MINICLOUD_VENV"},
    }


@pytest.fixture(name="tarball", scope="module")
def _tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tarball")
    galaxy = str(Path(sys.executable).with_name("ansible-galaxy"))
    command = [galaxy, "collection", "build", str(ROOT), "--output-path", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.iterdir())


@pytest.fixture(name="reader")
def _reader(minicloud: Minicloud, tarball: Path) -> Iterator[Reader]:
    with tempfile.TemporaryDirectory(prefix="d", dir="/tmp") as folder:
        home = Path(folder)
        shutil.copy(tarball, home)
        _write_clouds_yaml(minicloud, home)
        # The clone of a user, without the files of this one's runs.
        (home / "ansible-placement").symlink_to(ROOT)
        with contextlib.closing(Reader(minicloud, home)) as reader:
            yield reader


def _write_clouds_yaml(cloud: Minicloud, home: Path) -> None:
    clouds = yaml.safe_load(cloud.clouds_yaml.read_text())["clouds"]
    path = home / ".config" / "openstack" / "clouds.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump({"clouds": {"admin": clouds["minicloud"]}}))


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_commands_of_page_work_and_print_what_it_shows(name: str, reader: Reader) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    followed = [reader.follow(block) for block in read_blocks(text) if not block.not_run]
    assert followed, "the page has no command"

    printed = replace_outputs(text, followed)
    if os.environ.get(WRITE) and printed != text:
        page.write_text(printed, encoding="utf-8")
    else:
        assert printed == text, "run make console"
