# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What of this host is in use: open files, mounts and their file systems. Runs on hypervisors: any Python from 3.9 on reads this."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import typing as t

Inode = tuple[int, int]

# What a hypervisor has of its own; any other type may be in use by other hosts, too.
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
    """Return what processes and loop devices have open, and whether all of them could be asked.

    By inode, not by name: a process in a container has other names for the same files.
    """
    found: set[Inode] = set()
    complete = os.path.isdir("/proc/self/fd")
    for process in glob.iglob("/proc/[0-9]*"):
        if process == f"/proc/{os.getpid()}":
            continue
        try:
            for number in os.listdir(f"{process}/fd"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    found.add(get_inode(os.stat(f"{process}/fd/{number}")))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            complete = False
    for path in glob.iglob("/sys/block/loop*/loop/backing_file"):
        with (
            contextlib.suppress(OSError),
            open(path, encoding="utf-8", errors="surrogateescape") as stream,
        ):
            found.add(get_inode(os.stat(stream.read().rstrip("\n"))))
    return found, complete


def get_inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def list_mounts() -> list[tuple[str, str]]:
    """Return the folders on which something is mounted, each with the type of the file system; nothing when that is not known."""
    found = []
    with (
        contextlib.suppress(OSError),
        open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream,
    ):
        for line in stream:
            before, _dash, after = line.partition(" - ")
            found.append(
                (re.sub(r"\\([0-7]{3})", _unescape, before.split(" ")[4]), after.split(" ")[0])
            )
    return found


def has_mount_inside(folder: str, mount_table: t.Iterable[tuple[str, str]]) -> bool:
    """Tell whether one of the `mount_table` mounts is `folder` or lies in it."""
    real = os.path.realpath(folder)
    return any(path == real or path.startswith(f"{real}/") for path, _type in mount_table)


def is_shared(folder: str, mount_table: t.Iterable[tuple[str, str]]) -> bool | None:
    """Tell whether other hosts may use the file system of `folder` as well; None when that is not known."""
    real = os.path.realpath(folder)
    above = [
        (len(path), number, kind)
        for number, (path, kind) in enumerate(mount_table)
        if path == "/" or f"{real}/".startswith(f"{path}/")
    ]
    if not above:
        return None
    return max(above)[2] not in _LOCAL_FILE_SYSTEMS


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 8))
