# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in use on this host: open files, mounts and their file systems.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import typing as t

Inode = tuple[int, int]

# What other hosts may use over NFS: the path begins a line of exportfs and of the kernel, which
# also exports the folders above an export, to look it up only (v4root). With Ganesha it is an
# option.
_EXPORT_LINE = re.compile(r'^\s*(?:"(/[^"]*)"|(/\S*))(?!.*\bv4root\b)', re.MULTILINE)
_GANESHA_PATH = re.compile(r'\bPath\s*=\s*(?:"([^"]*)"|([^\s;"]+))', re.IGNORECASE)
_EXPORT_FILES = {
    "/proc/fs/nfsd/exports": _EXPORT_LINE,
    "/var/lib/nfs/etab": _EXPORT_LINE,
    "/etc/exports": _EXPORT_LINE,
    "/etc/exports.d/*.exports": _EXPORT_LINE,
    "/etc/ganesha/**": _GANESHA_PATH,
}
_EXPORT = "export"


class Mount(t.NamedTuple):
    """A folder on which a part of a file system is mounted, or one that this host exports.

    type: that of the file system; `export` for an export, and empty where it is unknown.
    device, root: which file system it is, and the path of the folder in it.
    """

    path: str
    type: str
    device: str = ""
    root: str = "/"


# File systems that only one host can use; other hosts may use one of any other type, too.
_LOCAL_FILE_SYSTEMS = frozenset(
    (
        "bcachefs",
        "btrfs",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "fuseblk",
        "jfs",
        "overlay",
        "ramfs",
        "reiserfs",
        "tmpfs",
        "xfs",
        "zfs",
    )
)


def find_open_files() -> tuple[set[Inode], bool]:
    """Return the inodes that are open in processes and loop devices, and whether that is complete.

    By inode, not by name: a process in a container has other names for the same files.
    """
    inodes: set[Inode] = set()
    complete = os.path.isdir("/proc/self/fd")
    for process in glob.iglob("/proc/[0-9]*"):
        # This process itself has opened the directories that it checks.
        if process == f"/proc/{os.getpid()}":
            continue
        try:
            _add_files_of_process(process, inodes)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            # Without root permissions the files of other users' processes stay unknown.
            complete = False
    for path in glob.iglob("/sys/block/loop*/loop/backing_file"):
        with (
            contextlib.suppress(OSError),
            open(path, encoding="utf-8", errors="surrogateescape") as stream,
        ):
            inodes.add(get_inode(os.stat(stream.read().rstrip("\n"))))
    return inodes, complete


def _add_files_of_process(process: str, inodes: set[Inode]) -> None:
    for number in os.listdir(f"{process}/fd"):
        # It may have been closed since.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            inodes.add(get_inode(os.stat(f"{process}/fd/{number}")))


def get_inode(status: os.stat_result) -> Inode:
    """Return what identifies a file on this host: its device and the number of its inode."""
    return status.st_dev, status.st_ino


def list_mounts() -> list[Mount]:
    """Return all mounts, and then all exports. The list is empty when either is unknown."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            mounts = [_parse_mount(line) for line in stream]
        exports = [_locate(path, mounts) for path in list_exports()]
    except OSError:
        return []
    return mounts + [export._replace(type=_EXPORT) for export in exports]


def _parse_mount(line: str) -> Mount:
    # proc(5): device, root and mount point are the third to fifth field, and the type follows the
    # dash.
    before, _dash, after = line.partition(" - ")
    device, root, path = before.split(" ")[2:5]
    return Mount(_decode_escapes(path), after.split(" ")[0], device, _decode_escapes(root))


def list_exports(top: str = "") -> list[str]:
    """Return the folders that this host exports over NFS. Raises OSError when that is unknown.

    top: the folder that stands for the root of the file system, empty for the root itself.
    """
    exports = []
    for pattern, expression in _EXPORT_FILES.items():
        for path in glob.iglob(f"{top}{pattern}", recursive=True):
            with (
                contextlib.suppress(FileNotFoundError, IsADirectoryError),
                open(path, encoding="utf-8", errors="surrogateescape") as stream,
            ):
                for quoted, bare in expression.findall(stream.read()):
                    exports.append(_decode_escapes(quoted or bare))
    return exports


def has_mount_inside(folder: str, mounts: t.Iterable[Mount]) -> bool:
    """Return whether one of the mounts is on `folder` or in it."""
    real = os.path.realpath(folder)
    return any(_is_below(mount.path, real) for mount in mounts)


def is_shared(folder: str, mounts: t.Sequence[Mount]) -> bool | None:
    """Return whether other hosts may use `folder` too; None when unknown.

    mounts: as `list_mounts` returns them.
    """
    place = _locate(folder, mounts)
    if not place.type:
        return None
    if any(_overlaps(place, mount) for mount in mounts if mount.type == _EXPORT):
        return True
    return place.type not in _LOCAL_FILE_SYSTEMS


def _locate(folder: str, mounts: t.Iterable[Mount]) -> Mount:
    """Return `folder` as if only this part of its file system were mounted there."""
    real = os.path.realpath(folder)
    nearest = Mount("", "")
    for mount in mounts:
        if mount.type == _EXPORT or not _is_below(real, mount.path):
            continue
        # Of several mounts on the same folder, the last one hides the others.
        if len(mount.path) >= len(nearest.path):
            nearest = mount
    inside = os.path.relpath(real, nearest.path or "/")
    return nearest._replace(path=real, root=os.path.normpath(os.path.join(nearest.root, inside)))


def _overlaps(one: Mount, other: Mount) -> bool:
    """Return whether one folder is the other, or in it, also under another path."""
    if _is_below(one.path, other.path) or _is_below(other.path, one.path):
        return True
    same = one.device == other.device
    return same and (_is_below(one.root, other.root) or _is_below(other.root, one.root))


def _is_below(path: str, other: str) -> bool:
    """Return whether a path is `other`, or in it."""
    return f"{path}/".startswith(f"{other.rstrip('/')}/")


def _decode_escapes(path: str) -> str:
    """Return a path without the octal escapes of the kernel, such as `\\040` for a space."""
    return re.sub(r"\\([0-7]{3})", _decode_escape, path)


def _decode_escape(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 8))
