# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

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


def list_mounts() -> list[tuple[str, str]]:
    """Return the folders on which something is mounted, each with the type of the file system.

    The list is empty when the mounts are unknown.
    """
    mounts = []
    with (
        contextlib.suppress(OSError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream,
    ):
        for line in stream:
            # proc(5): the mount point is the fifth field, and the type follows the dash.
            before, _dash, after = line.partition(" - ")
            mount_point = before.split(" ")[4]
            file_system = after.split(" ")[0]
            mounts.append((_decode_escapes(mount_point), file_system))
    return mounts


def has_mount_inside(folder: str, mount_table: t.Iterable[tuple[str, str]]) -> bool:
    """Return whether one of the mounts is on `folder` or in it."""
    real = os.path.realpath(folder)
    return any(path == real or path.startswith(f"{real}/") for path, _type in mount_table)


def is_shared(folder: str, mount_table: t.Iterable[tuple[str, str]]) -> bool | None:
    """Return whether other hosts may use the file system of `folder` too; None when unknown."""
    real = os.path.realpath(folder)
    longest = 0
    file_system = None
    for path, kind in mount_table:
        if path != "/" and not f"{real}/".startswith(f"{path}/"):
            continue
        # Of several mounts on the same folder, the last one hides the others.
        if len(path) >= longest:
            longest = len(path)
            file_system = kind
    if file_system is None:
        return None
    return file_system not in _LOCAL_FILE_SYSTEMS


def _decode_escapes(path: str) -> str:
    """Return a path without the octal escapes of the kernel, such as `\\040` for a space."""
    return re.sub(r"\\([0-7]{3})", _decode_escape, path)


def _decode_escape(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 8))
