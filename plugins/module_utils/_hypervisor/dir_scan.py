# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What a folder holds, and whether it is in use. Runs on hypervisors: any Python from 3.9 on reads this."""

from __future__ import annotations

import contextlib
import dataclasses as d
import os
import stat

from ansible_collections.osops.placement.plugins.module_utils._hypervisor.open_files import (
    Inode,
    get_inode,
    has_mount_inside,
)

# Of a folder with more entries than these no size is told.
MAX_ENTRIES = 100_000


@d.dataclass(frozen=True)
class DirScan:
    """What a folder holds. size, newest: None when not all of it could be read."""

    size: int | None
    newest: float | None
    inodes: set[Inode]


def is_open(
    path: str, inside: DirScan, in_use: tuple[set[Inode], bool], around: list[tuple[str, str]]
) -> bool | None:
    """Tell whether anything in a folder is open or mounted; None when that is not known.

    in_use: as `find_open_files` returns it; around: as `list_mounts` does.
    """
    busy, complete = in_use
    if inside.inodes & busy or has_mount_inside(path, around):
        return True
    return False if complete and around and inside.size is not None else None


def scan_dir(path: str) -> DirScan:
    """Return what a folder holds, without following links or going on to other file systems."""
    try:
        top = os.stat(path, follow_symlinks=False)
    except OSError:
        return DirScan(None, None, set())
    seen, size, newest, whole, folders = {get_inode(top)}, top.st_blocks, top.st_mtime, True, [path]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # deleted while it is looked at
                        status = entry.stat(follow_symlinks=False)
                        newest = max(newest, status.st_mtime)
                        if get_inode(status) not in seen:
                            seen.add(get_inode(status))
                            size += status.st_blocks
                        if stat.S_ISDIR(status.st_mode) and status.st_dev == top.st_dev:
                            folders.append(entry.path)
                    if len(seen) > MAX_ENTRIES:
                        return DirScan(None, None, seen)
        except FileNotFoundError:
            continue
        except OSError:
            whole = False
    return DirScan(size * 512 if whole else None, newest if whole else None, seen)
