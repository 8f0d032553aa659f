# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which folders outlive a job, by the mounts of real machines and containers."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.changes import durability
from ansible_collections.osops.placement.plugins.module_utils._core.changes.durability import (
    Surroundings,
    describe_loss,
    describe_refusal,
    explain_loss,
    find_loss,
    read_surroundings,
)

if t.TYPE_CHECKING:
    from pathlib import Path

# A server with Debian: one disk, a second one for /srv, and /tmp in memory.
HOST = """\
22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
23 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
24 28 0:5 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=8137900k,nr_inodes=2034475,mode=755
26 28 0:23 / /run rw,nosuid,nodev,noexec,relatime shared:5 - tmpfs tmpfs rw,size=1634204k,mode=755
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
31 24 0:27 / /dev/shm rw,nosuid,nodev shared:3 - tmpfs tmpfs rw
41 28 0:36 / /tmp rw,nosuid,nodev shared:21 - tmpfs tmpfs rw,size=8171000k
44 28 254:17 / /srv rw,relatime shared:25 - xfs /dev/vdb1 rw,attr2,inode64,noquota
47 28 0:41 / /mnt/shared\\040data rw,relatime shared:27 - nfs4 nas:/placement rw,vers=4.2
"""  # noqa: E501

# The container of an AWX job, as ansible-runner starts it with podman, with a path that is exposed
# to isolated jobs, a named volume, an anonymous one and a volume with an overlay of its own.
PODMAN = """\
1029 935 0:98 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/QZ7,upperdir=/var/lib/containers/storage/overlay/3f1/diff,workdir=/var/lib/containers/storage/overlay/3f1/work
1031 1029 0:101 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1032 1029 0:102 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
1040 1029 0:24 /containers/storage/overlay-containers/5b1/userdata/resolv.conf /etc/resolv.conf rw,nosuid,nodev,noexec - tmpfs tmpfs rw,size=1634204k,mode=755
1042 1029 0:24 /containers/storage/overlay-containers/5b1/userdata/.containerenv /run/.containerenv rw,nosuid,nodev,noexec - tmpfs tmpfs rw,mode=755
1044 1032 0:99 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs shm rw,size=64000k
1047 1029 253:0 /tmp/awx_4711_8h2k_x0q /runner rw,relatime - xfs /dev/mapper/rhel-root rw,attr2,inode64
1049 1029 253:0 /srv/placement /placement rw,relatime - xfs /dev/mapper/rhel-root rw,attr2,inode64
1050 1047 253:0 /srv/kept /runner/kept rw,relatime - xfs /dev/mapper/rhel-root rw,attr2,inode64
1052 1029 253:0 /var/lib/containers/storage/volumes/journals/_data /named rw,relatime - xfs /dev/mapper/rhel-root rw
1054 1029 253:0 /var/lib/containers/storage/volumes/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/_data /anonymous rw,relatime - xfs /dev/mapper/rhel-root rw
1056 1029 0:97 / /copied rw,relatime - overlay overlay rw,lowerdir=/srv/copied,upperdir=/var/lib/containers/storage/overlay-containers/5b1/userdata/overlay/7/upper
"""  # noqa: E501

# Rootless podman on a kernel without overlay for users.
ROOTLESS = """\
745 700 0:60 / / rw,nodev,noatime - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0,group_id=0,default_permissions,allow_other
760 745 8:2 /home/operator/out /out rw,relatime - ext4 /dev/sda2 rw
"""  # noqa: E501

# /tmp of the node is a file system of its own, so the private folder has no /tmp in its name.
TMP_ON_NODE = """\
900 880 0:70 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
905 900 253:5 /awx_12_ab1cd2ef /runner rw,relatime - xfs /dev/mapper/rhel-tmp rw
906 900 253:5 /awx_12_ab1cd2ef/project /jobs rw,relatime - xfs /dev/mapper/rhel-tmp rw
"""

# docker run -v out:/out -v /srv/placement:/placement --tmpfs /scratch
DOCKER = """\
562 482 0:52 / / rw,relatime master:210 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/6Y,upperdir=/var/lib/docker/overlay2/a1/diff,workdir=/var/lib/docker/overlay2/a1/work
563 562 0:55 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
564 562 0:56 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755,inode64
569 562 0:60 / /scratch rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,inode64
570 562 259:2 /var/lib/docker/containers/a1/hosts /etc/hosts rw,relatime - ext4 /dev/nvme0n1p2 rw
571 562 259:2 /var/lib/docker/volumes/out/_data /out rw,relatime master:1 - ext4 /dev/nvme0n1p2 rw
572 562 259:2 /srv/placement /placement rw,relatime - ext4 /dev/nvme0n1p2 rw
"""  # noqa: E501

# A pod of a container group of AWX: containerd, an emptyDir on the disk of the node and one in
# memory, a claim on a block device, one on NFS, and a folder of the node.
KUBERNETES = """\
3201 3100 0:310 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/91/fs,upperdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/97/fs,workdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/97/work
3202 3201 0:312 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
3203 3201 0:313 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
3214 3201 259:1 /var/lib/kubelet/pods/0b8f4c0e-7a51-4c8a-9f0f-0f1f5ce6c6a1/volumes/kubernetes.io~empty-dir/scratch /scratch rw,noatime - ext4 /dev/nvme0n1p1 rw
3215 3201 0:305 / /memory rw,relatime - tmpfs tmpfs rw,size=32614964k
3216 3201 259:4 / /placement rw,relatime - ext4 /dev/nvme2n1 rw
3217 3201 0:307 /exports/placement /nfs rw,relatime - nfs4 10.0.0.5:/exports/placement rw,vers=4.1
3218 3201 259:1 /srv/placement /host rw,noatime - ext4 /dev/nvme0n1p1 rw
3219 3201 259:1 /pods/0b8f4c0e-7a51-4c8a-9f0f-0f1f5ce6c6a1/volumes/kubernetes.io~empty-dir/runner /runner rw,noatime - ext4 /dev/nvme0n1p1 rw
3230 3201 0:303 / /run/secrets/kubernetes.io/serviceaccount ro,relatime - tmpfs tmpfs rw,size=32614964k
"""  # noqa: E501

ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
DISK = "2 1 8:2 / /o rw - ext4 /dev/sdb1 rw\n"
IN_MEMORY = "3 1 0:9 / /o rw - tmpfs tmpfs rw\n"

INSIDE = "it is inside the container"
MEMORY = "it is in memory (tmpfs)"
PRIVATE = "it is in the private folder of the job, which AWX deletes"
POD = "it is on an emptyDir volume, which Kubernetes deletes with the pod"
ANONYMOUS = "it is on a volume without a name, which is deleted with the container"
LAYER = "it is on an overlay mount, whose changes go with the container"
UNKNOWN = "the mounts of this container cannot be read"

ADVICE = (
    "mount a folder that is kept, and set orphan_cleanup_output_dir to it "
    "(https://github.com/osops/ansible-placement/blob/main/docs/awx.md#keep-the-journals)."
)

OUTSIDE_CASES = [
    (HOST, "/home/operator/orphan-cleanup", ""),
    (HOST, "/srv/placement", ""),
    (HOST, "/srv", ""),
    (HOST, "/srvother/placement", ""),
    (HOST, "/mnt/shared data/x", ""),
    (HOST, "/tmp/orphan-cleanup", MEMORY),
    (HOST, "/tmp", MEMORY),
    (HOST, "/tmpother", ""),
    (HOST, "/run/placement", MEMORY),
    (HOST, "/dev/shm/x", MEMORY),
    (HOST, "/var/tmp/awx_4711_8h2k_x0q/project/out", PRIVATE),
    (HOST, "/srv/awx_4711/out", ""),
    # A stick whose changes go with the next start, and a machine without /proc.
    ("1 1 0:1 / / rw - overlay overlay rw", "/home/operator/out", ""),
    ("", "/home/operator/out", ""),
    ("not a mount\n\n1 2 - -", "/home/operator/out", ""),
]
INSIDE_CASES = [
    (PODMAN, "/home/runner/orphan-cleanup", INSIDE),
    (PODMAN, "/", INSIDE),
    (PODMAN, "/runner", PRIVATE),
    (PODMAN, "/runner/project/orphan-cleanup", PRIVATE),
    (PODMAN, "/runner/kept/out", ""),
    (PODMAN, "/placement", ""),
    (PODMAN, "/placement/north", ""),
    (PODMAN, "/placements", INSIDE),
    (PODMAN, "/named/out", ""),
    (PODMAN, "/anonymous/out", ANONYMOUS),
    (PODMAN, "/copied", LAYER),
    (PODMAN, "/dev/shm/out", MEMORY),
    (ROOTLESS, "/home/runner/out", INSIDE),
    (ROOTLESS, "/out", ""),
    (TMP_ON_NODE, "/runner/project/out", PRIVATE),
    (TMP_ON_NODE, "/jobs/out", PRIVATE),
    (DOCKER, "/orphan-cleanup", INSIDE),
    (DOCKER, "/out", ""),
    (DOCKER, "/placement/out", ""),
    (DOCKER, "/scratch/out", MEMORY),
    (KUBERNETES, "/home/runner/out", INSIDE),
    (KUBERNETES, "/scratch/out", POD),
    (KUBERNETES, "/runner/project/out", POD),
    (KUBERNETES, "/memory", MEMORY),
    (KUBERNETES, "/placement", ""),
    (KUBERNETES, "/nfs/out", ""),
    (KUBERNETES, "/host/out", ""),
    (ROOT + "2 1 8:2 / /a\\040b\\134c rw - ext4 /dev/sda2 rw\n", "/a b\\c/out", ""),
    # What cannot be read proves nothing.
    ("", "/placement", UNKNOWN),
    ("not a mount", "/placement", UNKNOWN),
    # The newest of two mounts on one folder is the one that is seen.
    (ROOT + DISK + IN_MEMORY, "/o", MEMORY),
    (ROOT + IN_MEMORY + DISK, "/o", ""),
]


@pytest.mark.parametrize(("mountinfo", "path", "expected"), OUTSIDE_CASES)
def test_folder_of_a_machine_is_lost_only_in_memory(
    mountinfo: str, path: str, expected: str
) -> None:
    assert explain_loss(path, Surroundings(mountinfo, is_container=False)) == expected


@pytest.mark.parametrize(("mountinfo", "path", "expected"), INSIDE_CASES)
def test_folder_in_a_container_is_kept_only_on_a_mount_of_its_own(
    mountinfo: str, path: str, expected: str
) -> None:
    assert explain_loss(path, Surroundings(mountinfo, is_container=True)) == expected


def test_folder_of_the_runner_is_private_only_in_awx() -> None:
    """Without AWX, an operator has mounted it: docker run -v $PWD:/runner."""
    mountinfo = ROOT + "2 1 8:2 /home/operator/demo /runner rw - ext4 /dev/sda2 rw\n"
    path = "/runner/project/out"

    assert explain_loss(path, Surroundings(mountinfo, is_container=True)) == ""
    assert explain_loss(path, Surroundings(mountinfo, True, is_awx_job=True)) == PRIVATE


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose files are in a folder, and which is not a container."""
    monkeypatch.setattr(durability, "MOUNTINFO", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(durability, "MARKERS", (str(tmp_path / "a"), str(tmp_path / "b")))
    (tmp_path / "mountinfo").write_text(HOST, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("files", "environment", "is_container"),
    [
        ([], {}, False),
        # Other schedulers number their jobs too.
        ([], {"JOB_ID": "4711", "HOME": "/root"}, False),
        ([], {"KUBERNETES_SERVICE_HOST": ""}, False),
        (["a"], {}, True),
        (["b"], {}, True),
        ([], {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, True),
        ([], {"AWX_PRIVATE_DATA_DIR": "/tmp/awx_4711_8h2k_x0q", "JOB_ID": "4711"}, True),
    ],
)
def test_container_is_known_by_its_files_and_its_variables(
    machine: Path, files: list[str], environment: dict[str, str], is_container: bool
) -> None:
    for name in files:
        (machine / name).touch()

    is_awx_job = "AWX_PRIVATE_DATA_DIR" in environment

    assert read_surroundings(environment) == Surroundings(HOST, is_container, is_awx_job)


def test_machine_without_mountinfo_has_unknown_mounts(machine: Path) -> None:
    (machine / "mountinfo").unlink()

    assert read_surroundings({}) == Surroundings("", is_container=False)


def test_mounts_with_any_names_are_read(machine: Path) -> None:
    (machine / "mountinfo").write_bytes(
        b"1 0 8:1 / / rw - ext4 a rw\n2 1 0:9 / /\x0c\xff rw - tmpfs t rw\n"
    )

    surroundings = read_surroundings({})

    assert explain_loss("/x", surroundings) == ""
    assert explain_loss("/\x0c\udcff/x", surroundings) == MEMORY


def test_loss_is_described_in_one_sentence() -> None:
    assert describe_loss("/runner/x\n", PRIVATE, 100) == (
        "The journal in /runner/x\\n is lost after this job, because it is in the private folder "
        f"of the job, which AWX deletes: {ADVICE}"
    )
    assert describe_loss("/x", INSIDE, 2001) == (
        "The journal in /x is lost after this job, because it is inside the container, and above "
        f"2000 changes it may be too long for the artifacts: {ADVICE}"
    )


def test_refusal_is_one_sentence() -> None:
    assert describe_refusal("/x", INSIDE) == (
        "Nothing was changed, because orphan_cleanup_require_durable_output is set and the journal "
        f"in /x would be lost after this job (it is inside the container): {ADVICE}"
    )


def test_folder_that_does_not_exist_yet_is_judged_by_its_links(
    machine: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/dev/shm")

    assert find_loss(str(tmp_path / "link" / "new")) == MEMORY
    assert find_loss("/srv/new/folder") == ""
