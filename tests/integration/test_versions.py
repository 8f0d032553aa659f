"""Which copy of the collection runs, in a clone and in AWX: seen by the version that it reports."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .automation import NEWEST, OLDEST, compute_collections_path, job
from .support import ROOT, Ansible, installed, long

# Of the clone or checkout, and of the collection that is installed in the image.
CLONED, INSTALLED = "9.9.9", "0.9.0"


@pytest.fixture(name="clone", scope="module")
def _clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that git would clone, with a version of its own."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_symlink() or (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    galaxy = clone / "galaxy.yml"
    galaxy.write_text(
        re.sub("^version: .*$", f"version: {CLONED}", galaxy.read_text(), flags=re.MULTILINE)
    )
    return clone


@pytest.fixture(name="image", scope="module")
def _image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an image with the collections, in another version."""
    _tarball, collections = installed(tmp_path_factory.mktemp("image"))
    (path,) = collections.glob("ansible_collections/osops/placement/MANIFEST.json")
    manifest = json.loads(path.read_text())
    manifest["collection_info"]["version"] = INSTALLED
    path.write_text(json.dumps(manifest))
    return collections


def test_awx_puts_the_path_of_a_project_before_that_of_the_image(tmp_path: Path) -> None:
    """The rule of AWX with a path like that of the first version of this collection."""
    image = tmp_path / "image"
    own = f"collections:~/.ansible/collections:{image}"
    (tmp_path / "ansible.cfg").write_text(f"[defaults]\ncollections_path = {own}\n")
    required = str(tmp_path / "job" / "requirements_collections")

    path = compute_collections_path(tmp_path / "job", tmp_path, image)
    assert path == f"{required}:{own}:~/.ansible/collections:{image}"
    (tmp_path / "ansible.cfg").write_text("[defaults]\nlocalhost_warning = false\n")
    path = compute_collections_path(tmp_path / "job", tmp_path, image)
    assert path == f"{required}:~/.ansible/collections:{image}"


@pytest.mark.long
@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_job_of_awx_runs_the_collection_of_its_image(
    ansible: Ansible, tmp_path: Path, clone: Path, image: Path, core: str
) -> None:
    found = job(
        ansible, tmp_path / "job", "find_orphans.yml", {}, core=core, project=clone, image=image
    )

    assert found.status == 0, found.output
    versions = found.artifacts["orphan_cleanup_run"]["versions"]
    assert versions["collection"] == INSTALLED
    assert versions["ansible_core"].startswith("2.18." if core == OLDEST else "2.")
    assert versions["openstacksdk"].count(".") == 2
    written = json.loads((tmp_path / "job" / "out" / "findings.json").read_text())
    assert written["versions"] == versions
    said = " ".join(found.output.split())
    assert f"by osops.placement {INSTALLED}" in said
    assert f"Version {INSTALLED}" in said and f"not version {CLONED}," in said


@pytest.mark.long
def test_project_with_a_collections_path_would_run_instead_of_the_image(
    ansible: Ansible, tmp_path: Path, clone: Path, image: Path
) -> None:
    """The reason why the clone's ansible.cfg has none."""
    project = tmp_path / "project"
    shutil.copytree(clone, project, symlinks=True)
    (project / "ansible.cfg").write_text("[defaults]\ncollections_path = collections\n")

    found = job(ansible, tmp_path / "job", "find_orphans.yml", {}, project=project, image=image)

    assert found.artifacts["orphan_cleanup_run"]["versions"]["collection"] == CLONED


@pytest.mark.parametrize(
    ("folder", "playbook"),
    [
        ("clone", "playbooks/detect_orphans.yml"),
        long("clone/playbooks", "detect_orphans.yml"),
        long("elsewhere", "{clone}/playbooks/detect_orphans.yml"),
        ("elsewhere", "../clone/playbooks/detect_orphans.yml"),
    ],
)
def test_playbook_in_a_clone_runs_the_code_of_the_clone(
    ansible: Ansible, tmp_path: Path, clone: Path, image: Path, folder: str, playbook: str
) -> None:
    """Another version is installed, where Ansible finds it without the clone."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "clone").symlink_to(clone)
    versions = run_in(ansible, tmp_path / folder, image, playbook.format(clone=clone))

    assert versions["collection"] == CLONED


def test_full_name_runs_the_installed_collection_and_says_so_in_a_clone(
    ansible: Ansible, tmp_path: Path, clone: Path, image: Path
) -> None:
    versions = run_in(ansible, clone, image, "osops.placement.detect_orphans")

    assert versions["collection"] == INSTALLED


@pytest.mark.long
def test_full_name_runs_the_clone_with_the_documented_path(ansible: Ansible, clone: Path) -> None:
    versions = run_in(ansible, clone, clone / "collections", "osops.placement.detect_orphans")

    assert versions["collection"] == CLONED


def run_in(ansible: Ansible, folder: Path, collections: Path, playbook: str) -> dict[str, str]:
    """Return the versions that a detection reports, which is started in a folder."""
    out = ansible.folder / "out"
    done = ansible.command(
        "ansible-playbook",
        playbook,
        "-e",
        f"orphan_cleanup_output_dir={out}",
        folder=folder,
        ANSIBLE_COLLECTIONS_PATH=str(collections),
    )
    assert done.status == 0, done.output
    versions: dict[str, str] = json.loads((out / "findings.json").read_text())["versions"]
    other = versions["collection"] == INSTALLED and folder.name.startswith("clone")
    assert (f"and not version {CLONED}" in done.told) is other
    return versions


def test_documentation_is_found_in_the_root_of_a_clone(ansible: Ansible, clone: Path) -> None:
    environment = dict(ansible.environment)
    del environment["ANSIBLE_COLLECTIONS_PATH"]
    for arguments in (
        ["ansible-doc", "osops.placement.orphan_detect"],
        ["ansible-doc", "-t", "role", "osops.placement.orphan_cleanup"],
        ["ansible", "localhost", "-m", "osops.placement.migration_info"],
    ):
        done = subprocess.run(
            [ansible.program(arguments[0]), *arguments[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd=clone,
            env=environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
