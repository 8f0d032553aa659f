# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a folder contains, and whether it is in use.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import os
import stat

from .open_files import Inode, Mount, get_inode, has_mount_inside

# A folder with more entries is not read to its end, and its size stays unknown.
MAX_ENTRIES = 100_000


@d.dataclass(frozen=True)
class DirScan:
    """What a folder contains.

    size: bytes on disk. newest: the last change, in seconds since the epoch. Both are None when not
        all of the folder could be read.
    """

    size: int | None
    newest: float | None
    inodes: set[Inode]


def is_open(
    path: str, inside: DirScan, in_use: tuple[set[Inode], bool], around: list[Mount]
) -> bool | None:
    """Return whether anything in a folder is open or mounted; None when that is unknown.

    inside: as `scan_dir` returns it. in_use: as `find_open_files` does. around: as `list_mounts`
        does.
    """
    open_inodes, complete = in_use
    if inside.inodes & open_inodes or has_mount_inside(path, around):
        return True
    # Without mounts, their list could not be read: each host has at least that of its root.
    if not complete or not around or inside.size is None:
        return None
    return False


def scan_dir(path: str) -> DirScan:
    """Return what a folder contains, without following links or entering other file systems."""
    try:
        top = os.stat(path, follow_symlinks=False)
    except OSError:
        return DirScan(None, None, set())
    scan = _Scan(path, top)
    while scan.folders:
        try:
            scan.read_next_folder()
        except FileNotFoundError:
            continue  # it was deleted during the scan
        except OSError:
            scan.complete = False
        if scan.is_too_large():
            return DirScan(None, None, scan.inodes)
    if not scan.complete:
        return DirScan(None, None, scan.inodes)
    # st_blocks counts blocks of 512 bytes, whatever the file system uses.
    return DirScan(scan.blocks * 512, scan.newest, scan.inodes)


class _Scan:
    """A scan that is under way: what was read, and the folders that are yet to be read."""

    def __init__(self, path: str, top: os.stat_result) -> None:
        self._device = top.st_dev
        self.folders = [path]
        self.inodes = {get_inode(top)}
        self.blocks = top.st_blocks
        self.newest = top.st_mtime
        self.complete = True

    def is_too_large(self) -> bool:
        return len(self.inodes) > MAX_ENTRIES

    def read_next_folder(self) -> None:
        """Read one folder, or as much of it as the limit allows. Raises OSError."""
        with os.scandir(self.folders.pop()) as entries:
            for entry in entries:
                # An entry may have been deleted since the folder was opened.
                with contextlib.suppress(FileNotFoundError):
                    self._add(entry.path, entry.stat(follow_symlinks=False))
                if self.is_too_large():
                    return

    def _add(self, path: str, status: os.stat_result) -> None:
        self.newest = max(self.newest, status.st_mtime)
        inode = get_inode(status)
        # A file with several links takes up its blocks once.
        if inode not in self.inodes:
            self.inodes.add(inode)
            self.blocks += status.st_blocks
        # Another file system in it does not move with the folder.
        if stat.S_ISDIR(status.st_mode) and status.st_dev == self._device:
            self.folders.append(path)
