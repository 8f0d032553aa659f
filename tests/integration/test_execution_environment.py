"""What ansible-builder makes of a definition that names the collection.

No image is built. The steps that decide what it contains are run: the build context is created, and
the script of the context collects the requirements of the collections in the image.
"""

import dataclasses as d
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
import yaml

from .automation import PATTERN, ROOT, program
from .support import installed

OURS = (PATTERN / "exec_env" / "execution-environment.yml").read_text()
VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]


def read_documented_definition() -> str:
    """Return the definition in docs/awx-reference.md, which only names the collection."""
    page = (ROOT / "docs" / "awx-reference.md").read_text()
    (block,) = re.findall(r"^```yaml\n(version: 3\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(block)


@d.dataclass(frozen=True)
class Galaxy:
    """The collection as a tarball, and installed as in an image."""

    tarball: Path
    collections: Path


@pytest.fixture(name="galaxy", scope="module")
def _galaxy(tmp_path_factory: pytest.TempPathFactory) -> Galaxy:
    program("ansible-builder")
    return Galaxy(*installed(tmp_path_factory.mktemp("galaxy")))


def create(folder: Path, definition: str, *files: Path) -> Path:
    """Return the build context of a definition with these files beside it."""
    (folder / "execution-environment.yml").write_text(definition)
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
    made = subprocess.run(
        [program("ansible-builder"), "create", "--output-filename", "Containerfile"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "context"


def collect_requirements(context: Path, collections: Path) -> list[str]:
    """Return what pip would install into an image, as a step of the build collects it."""
    build, found = context / "_build", context / "requirements.txt"
    own = build / "requirements.txt"
    command = [sys.executable, str(build / "scripts" / "introspect.py"), "introspect"]
    if own.exists():
        command.append(f"--user-pip={own}")
    command += [f"--write-pip={found}", str(collections)]
    subprocess.run(command, check=True, capture_output=True)
    return [line.partition("#")[0].strip() for line in found.read_text().splitlines() if line]


def read_base_image(containerfile: str) -> str:
    """Return the image that the first stage is made from, by its argument."""
    (image,) = re.findall(r'^ARG EE_BASE_IMAGE="(.*)"$', containerfile, re.MULTILINE)
    assert "FROM $EE_BASE_IMAGE AS base" in containerfile
    return str(image)


def read_collections(context: Path) -> t.Any:
    return yaml.safe_load((context / "_build" / "requirements.yml").read_text())["collections"]


def test_our_definition_installs_the_pinned_versions(galaxy: Galaxy, tmp_path: Path) -> None:
    definition = yaml.safe_load(OURS)

    context = create(tmp_path, OURS, galaxy.tarball)

    containerfile = (context / "Containerfile").read_text()
    assert read_base_image(containerfile) == definition["images"]["base_image"]["name"]
    for name in ("ansible_core", "ansible_runner"):
        assert definition["dependencies"][name]["package_pip"] in containerfile
    # The collection asks for any version, and the definition for this one.
    assert sorted(collect_requirements(context, galaxy.collections)) == [
        "jmespath",
        "jmespath==1.1.0",
        "openstacksdk==4.22.0",
        "openstacksdk>=1.0.0",
    ]


def test_our_definition_installs_the_tarball_of_this_version(
    galaxy: Galaxy, tmp_path: Path
) -> None:
    context = create(tmp_path, OURS, galaxy.tarball)

    ((entry,), (copied,)) = read_collections(context), context.rglob(galaxy.tarball.name)
    assert galaxy.tarball.name == f"osops-placement-{VERSION}.tar.gz"
    # The file is expected beside the requirements, where the build copies it.
    assert entry == {"name": copied.name, "type": "file"} and copied.parent == context / "_build"


def test_definition_that_only_names_the_collection_gets_its_requirements(
    galaxy: Galaxy, tmp_path: Path
) -> None:
    text = read_documented_definition()

    context = create(tmp_path, text)

    assert read_collections(context) == [{"name": "osops.placement", "version": VERSION}]
    assert collect_requirements(context, galaxy.collections) == ["openstacksdk>=1.0.0", "jmespath"]
    containerfile = (context / "Containerfile").read_text()
    assert read_base_image(containerfile) == read_base_image(
        (create_ours(tmp_path, galaxy) / "Containerfile").read_text()
    )
    for program_range in ("ansible-core>=2.18,<2.22", "ansible-runner>=2.4.2,<3"):
        assert program_range in containerfile


def create_ours(folder: Path, galaxy: Galaxy) -> Path:
    (folder / "ours").mkdir()
    return create(folder / "ours", OURS, galaxy.tarball)
