from __future__ import annotations

import pathlib

import pytest

from .......plugins.module_utils._hypervisors.on_host.files import (
    Mount,
    has_mount_inside,
    is_shared,
    list_exports,
)

HERE = Mount("/", "ext4")
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
    assert is_shared(INSTANCES, [HERE, Mount(INSTANCES, kind)]) is True
    assert is_shared(f"{INSTANCES}/1", [Mount(INSTANCES, kind), HERE]) is True


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "overlay"])
def test_local_file_systems_are_not_shared(kind: str) -> None:
    assert is_shared(INSTANCES, [Mount("/srv", "nfs4"), HERE, Mount(INSTANCES, kind)]) is False


def test_nearest_and_last_mount_counts() -> None:
    assert is_shared(INSTANCES, [HERE, Mount("/srv/nova/inst", "nfs4")]) is False
    assert (
        is_shared(INSTANCES, [HERE, Mount("/srv/nova", "xfs"), Mount("/srv/nova", "nfs4")]) is True
    )


def test_unknown_mounts_may_be_shared() -> None:
    assert is_shared(INSTANCES, []) is None


def test_mount_inside_a_folder_is_seen_by_any_path(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "instances"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    real = str(folder.resolve())
    assert has_mount_inside(str(tmp_path / "link"), [HERE, Mount(f"{real}/inside", "tmpfs")])
    assert has_mount_inside(real, [Mount(real, "tmpfs")])
    assert not has_mount_inside(
        real, [HERE, Mount(f"{real}-2", "tmpfs"), Mount(str(tmp_path.resolve()), "tmpfs")]
    )


EXPORTED = (
    (
        "proc/fs/nfsd/exports",
        "# Version 1.1\n/srv/my\\040nova\t192.168.0.0/24(rw,no_root_squash)\n"
        "/srv\t*(ro,v4root,fsid=0)\n/\t*(ro,v4root)\n",
        ["/srv/my nova"],
    ),
    ("var/lib/nfs/etab", "/srv/nova\t*(rw,sync)\n", ["/srv/nova"]),
    (
        "etc/exports",
        '# /srv/comment *(rw)\n\n "/srv/my nova" *(rw) \\\n    10.0.0.1(ro)\n/srv/b 10.0.0.2\n',
        ["/srv/my nova", "/srv/b"],
    ),
    ("etc/exports.d/nova.exports", "/srv/nova *(rw)\n", ["/srv/nova"]),
    ("etc/exports.d/notes", "/srv/nova *(rw)\n", []),
    (
        "etc/ganesha/ganesha.conf",
        "EXPORT { Export_Id = 1; Path = /srv/nova; Pseudo = /p; FSAL { Name = VFS; } }\n"
        'EXPORT\n{\n    path="/srv/my nova";\n}\nCACHE { x_path = /no; }\n',
        ["/srv/nova", "/srv/my nova"],
    ),
    ("etc/ganesha/export.d/one", "EXPORT { PATH = /srv/nova; }", ["/srv/nova"]),
)


@pytest.mark.parametrize(("name", "text", "exports"), EXPORTED, ids=[each[0] for each in EXPORTED])
def test_exports_are_found_where_servers_of_nfs_have_them(
    tmp_path: pathlib.Path, name: str, text: str, exports: list[str]
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text)

    assert list_exports(str(tmp_path)) == exports


def test_host_without_exports_shares_nothing_and_one_that_cannot_be_read_may(
    tmp_path: pathlib.Path,
) -> None:
    assert list_exports(str(tmp_path)) == []
    # A link that leads to itself cannot be opened, even by root.
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/exports").symlink_to("exports")
    (tmp_path / "etc/exports.d").mkdir()
    (tmp_path / "etc/exports.d/x.exports").write_text("/srv/nova *(rw)")
    with pytest.raises(OSError, match="symbolic links"):
        list_exports(str(tmp_path))


@pytest.mark.parametrize(
    ("export", "shared"),
    [
        ("/srv/nova/instances", True),
        ("/srv/nova/instances/", True),
        ("/srv", True),
        ("/", True),
        ("/srv/nova/instances/1/disks", True),
        ("/srv/nova/inst", False),
        ("/srv/nova/instances-2", False),
        ("/var/lib/glance", False),
    ],
)
def test_folder_below_or_above_an_export_is_shared(export: str, shared: bool) -> None:
    assert is_shared(INSTANCES, [HERE, Mount(export, "export", root=export)]) is shared


@pytest.mark.parametrize(
    ("export", "shared"),
    [
        # /data/nova is mounted again as the folder of instances.
        (("/data", "export", "8:2", "/"), True),
        (("/data/nova", "export", "8:2", "/nova"), True),
        (("/data/nova/instances/1", "export", "8:2", "/nova/instances/1"), True),
        (("/data/glance", "export", "8:2", "/glance"), False),
        (("/other/nova", "export", "8:3", "/nova"), False),
    ],
)
def test_export_is_recognized_under_another_path(export: tuple[str, ...], shared: bool) -> None:
    mounts = [
        Mount("/", "ext4", "8:1"),
        Mount("/data", "xfs", "8:2"),
        Mount("/other", "xfs", "8:3"),
        Mount("/srv/nova", "xfs", "8:2", "/nova"),
    ]

    assert is_shared(INSTANCES, [*mounts, Mount(*export)]) is shared
