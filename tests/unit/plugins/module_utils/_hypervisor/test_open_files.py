# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.osops.placement.plugins.module_utils._hypervisor.open_files import (
    has_mount_inside,
    is_shared,
)

HERE = ("/", "ext4")
INSTANCES = "/srv/nova/instances"


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "ceph",
        "fuse.glusterfs",
        "fuse.sshfs",
        "fuse",
        "gpfs",
        "ocfs2",
        "never-heard-of",
    ],
)
def test_file_system_not_known_to_be_local_may_be_shared(kind: str) -> None:
    assert is_shared(INSTANCES, [HERE, (INSTANCES, kind)]) is True
    assert is_shared(f"{INSTANCES}/1", [(INSTANCES, kind), HERE]) is True


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay"])
def test_local_file_systems_are_not_shared(kind: str) -> None:
    assert is_shared(INSTANCES, [("/srv", "nfs4"), HERE, (INSTANCES, kind)]) is False


def test_nearest_and_last_mount_counts() -> None:
    assert is_shared(INSTANCES, [HERE, ("/srv/nova/inst", "nfs4")]) is False
    assert is_shared(INSTANCES, [HERE, ("/srv/nova", "xfs"), ("/srv/nova", "nfs4")]) is True


def test_unknown_mounts_may_be_shared() -> None:
    assert is_shared(INSTANCES, []) is None


def test_mount_inside_a_folder_is_seen_by_any_path(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "instances"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    real = str(folder.resolve())
    assert has_mount_inside(str(tmp_path / "link"), [HERE, (f"{real}/inside", "tmpfs")])
    assert has_mount_inside(real, [(real, "tmpfs")])
    assert not has_mount_inside(
        real, [HERE, (f"{real}-2", "tmpfs"), (str(tmp_path.resolve()), "tmpfs")]
    )
