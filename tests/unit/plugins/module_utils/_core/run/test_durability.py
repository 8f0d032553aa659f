"""Which folders outlive a job, by what findmnt shows on machines and in containers."""

import json
import os
from pathlib import Path

import pytest

from .......plugins.module_utils._core.run import durability
from .......plugins.module_utils._core.run.durability import (
    Mount,
    describe_loss,
    explain_loss,
    find_loss,
)

DISK = Mount("/", "/", "ext4")
TMP = Mount("/", "/tmp", "tmpfs")
DEVICES = Mount("/", "/dev", "devtmpfs")
# The root of a container of podman, of a rootless one, and of an old Docker.
INNER = Mount("/", "/", "overlay")
ROOTLESS = Mount("/", "/", "fuse.fuse-overlayfs")
OLD_DOCKER = Mount("/", "/", "aufs")
# What AWX mounts at /runner, from /tmp of the node and from a file system of its own for it.
RUNNER = Mount("/tmp/awx_4711_8h2k_x0q", "/runner", "xfs")
RUNNER_ON_TMP = Mount("/awx_12_ab1cd2ef", "/runner", "xfs")
PROJECT = Mount("/awx_12_ab1cd2ef/project", "/jobs", "xfs")
EXPOSED = Mount("/srv/placement", "/placement", "xfs")
KEPT = Mount("/srv/kept", "/runner/kept", "xfs")
NAMED = Mount("/var/lib/containers/storage/volumes/journals/_data", "/named", "xfs")
UNNAMED = Mount(
    "/var/lib/containers/storage/volumes/"
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/_data",
    "/unnamed",
    "xfs",
)
COPIED = Mount("/", "/copied", "overlay")
SCRATCH = Mount("/", "/scratch", "tmpfs")
# Volumes of a pod: two emptyDirs, a claim on a block device, and one on NFS.
_PODS = "/var/lib/kubelet/pods/0b8f4c0e-7a51-4c8a-9f0f-0f1f5ce6c6a1/volumes"
EMPTY = Mount(f"{_PODS}/kubernetes.io~empty-dir/scratch", "/scratch", "ext4")
EMPTY_RUNNER = Mount(f"{_PODS}/kubernetes.io~empty-dir/runner", "/runner", "ext4")
CLAIMED = Mount("/", "/placement", "ext4")
NFS = Mount("/exports/placement", "/nfs", "nfs4")

INSIDE = "it is inside the container"
MEMORY = "it is in memory (tmpfs)"
PRIVATE = "it is in the private folder of the job, which AWX deletes"
POD = "it is on an emptyDir volume, which Kubernetes deletes with the pod"
ANONYMOUS = "it is on a volume without a name, which is deleted with the container"
LAYER = "it is on an overlay mount, whose changes go with the container"
UNKNOWN = "the mounts of this container cannot be read"


@pytest.mark.parametrize(
    ("mount", "path", "expected"),
    [
        (DISK, "/home/operator/orphan-cleanup", ""),
        (NFS, "/nfs/out", ""),
        (TMP, "/tmp/orphan-cleanup", MEMORY),
        (DEVICES, "/dev/out", "it is in memory (devtmpfs)"),
        (DISK, "/var/tmp/awx_4711_8h2k_x0q/project/out", PRIVATE),
        (DISK, "/srv/awx_4711/out", ""),
        # A stick whose changes go with the next start, and a machine without findmnt.
        (INNER, "/home/operator/out", ""),
        (None, "/home/operator/out", ""),
    ],
)
def test_folder_of_a_machine_is_lost_only_in_memory(
    mount: Mount | None, path: str, expected: str
) -> None:
    assert explain_loss(path, mount, is_container=False) == expected


@pytest.mark.parametrize(
    ("mount", "path", "expected"),
    [
        (INNER, "/home/runner/orphan-cleanup", INSIDE),
        (ROOTLESS, "/home/runner/out", INSIDE),
        (OLD_DOCKER, "/out", INSIDE),
        (RUNNER, "/runner/project/orphan-cleanup", PRIVATE),
        (RUNNER_ON_TMP, "/runner/project/out", PRIVATE),
        (PROJECT, "/jobs/out", PRIVATE),
        (KEPT, "/runner/kept/out", ""),
        (EXPOSED, "/placement/north", ""),
        (NAMED, "/named/out", ""),
        (UNNAMED, "/unnamed/out", ANONYMOUS),
        (COPIED, "/copied", LAYER),
        (SCRATCH, "/scratch/out", MEMORY),
        (EMPTY, "/scratch/out", POD),
        (EMPTY_RUNNER, "/runner/project/out", POD),
        (CLAIMED, "/placement", ""),
        (NFS, "/nfs/out", ""),
        # What cannot be read proves nothing.
        (None, "/placement", UNKNOWN),
    ],
)
def test_folder_in_a_container_is_kept_only_on_a_mount_of_its_own(
    mount: Mount | None, path: str, expected: str
) -> None:
    assert explain_loss(path, mount, is_container=True) == expected


def test_folder_of_the_runner_is_private_only_in_awx() -> None:
    """Without AWX, an operator has mounted it: docker run -v $PWD:/runner."""
    mount, path = Mount("/home/operator/demo", "/runner", "ext4"), "/runner/project/out"

    assert explain_loss(path, mount, is_container=True) == ""
    assert explain_loss(path, mount, is_container=True, is_awx_job=True) == PRIVATE


class Machine:
    """A machine that is no container, with a findmnt that shows what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.markers = (folder / "a", folder / "b")
        self.shows(DISK)

    def shows(self, *mounts: Mount) -> None:
        found = [
            {"target": mount.point, "fstype": mount.fstype, "fsroot": mount.root}
            for mount in mounts
        ]
        self.prints(json.dumps({"filesystems": found}))

    def prints(self, text: str, status: int = 0) -> None:
        (self.folder / "printed").write_text(text, encoding="utf-8")
        program = self.folder / "findmnt"
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {self.folder}/asked\n"
            f'while IFS= read -r line || [ -n "$line" ]; do printf \'%s\\n\' "$line"; done '
            f"< {self.folder}/printed\nexit {status}\n",
            encoding="utf-8",
        )
        program.chmod(0o700)

    @property
    def asked(self) -> str:
        """The folder that findmnt was asked about."""
        return (self.folder / "asked").read_text(encoding="utf-8").splitlines()[-1]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setattr(durability, "MARKERS", tuple(map(str, found.markers)))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("AWX_PRIVATE_DATA_DIR", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.mark.parametrize(
    ("markers", "environment", "reason"),
    [
        ((), {}, ""),
        # Other schedulers number their jobs too.
        ((), {"JOB_ID": "4711"}, ""),
        ((), {"KUBERNETES_SERVICE_HOST": ""}, ""),
        ((0,), {}, INSIDE),
        ((1,), {}, INSIDE),
        ((), {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, INSIDE),
        ((), {"AWX_PRIVATE_DATA_DIR": "/tmp/awx_4711_8h2k_x0q", "JOB_ID": "4711"}, INSIDE),
    ],
)
def test_container_is_known_by_its_files_and_its_variables(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    markers: tuple[int, ...],
    environment: dict[str, str],
    reason: str,
) -> None:
    for number in markers:
        machine.markers[number].touch()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert find_loss("/srv/out") == reason


def test_runner_of_an_awx_job_is_private(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")
    machine.shows(Mount("/jobs/4711", "/runner", "xfs"))

    assert find_loss("/runner/project/out") == PRIVATE


def test_newest_of_several_mounts_on_a_folder_is_the_one_that_is_seen(machine: Machine) -> None:
    disk = Mount("/", "/scratch", "ext4")
    machine.shows(SCRATCH, disk)
    assert find_loss("/scratch/out") == ""
    machine.shows(disk, SCRATCH)
    assert find_loss("/scratch/out") == MEMORY


@pytest.mark.parametrize(
    ("text", "status"),
    [("", 1), ("", 0), ("not JSON", 0), ("[]", 0), ('{"filesystems": []}', 0), (None, 127)],
)
def test_container_whose_mounts_are_not_shown_keeps_nothing(
    machine: Machine, text: str | None, status: int
) -> None:
    if text is None:
        (machine.folder / "findmnt").unlink()
    else:
        machine.prints(text, status)

    assert find_loss("/srv/out") == ""
    machine.markers[0].touch()
    assert find_loss("/srv/out") == UNKNOWN


def test_folder_that_does_not_exist_yet_is_judged_by_its_links(machine: Machine) -> None:
    kept = machine.folder / "kept"
    kept.mkdir()
    (machine.folder / "link").symlink_to(kept)

    find_loss(str(machine.folder / "link" / "new" / "folder"))

    assert machine.asked == os.path.realpath(kept)


def test_real_findmnt_shows_memory(tmp_path: Path) -> None:
    """No machine and no container keeps /dev/shm."""
    if not os.path.ismount("/dev/shm"):
        pytest.skip("/dev/shm is not there")
    (tmp_path / "link").symlink_to("/dev/shm")

    assert find_loss(str(tmp_path / "link" / "new")) == MEMORY


@pytest.mark.parametrize(("changes", "is_too_long"), [(2000, False), (2001, True)])
def test_loss_is_described_with_its_folder_and_reason(changes: int, is_too_long: bool) -> None:
    described = describe_loss("/runner/x\n", PRIVATE, changes)

    assert r" /runner/x\n " in described and PRIVATE in described
    assert "orphan_cleanup_output_dir" in described and "docs/awx.md#keep-the-journals" in described
    assert (" 2000 " in described) is is_too_long
