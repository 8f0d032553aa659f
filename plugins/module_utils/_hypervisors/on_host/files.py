# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files and folders of this host: what is in them, and who may use them.

The names of saved files have the time at which they were made. This runs on hypervisors, with any
Python from 3.9 on.
"""

from __future__ import annotations

import calendar
import contextlib
import dataclasses as d
import glob
import os
import re
import stat
import time
import typing as t

from ..._common.errors import HostError

TIMESTAMP_PATTERN = r"\d{8}T\d{6}Z"
_FORMAT = "%Y%m%dT%H%M%SZ"
_MAX_TRIES = 60

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
# File systems that only one host can use; other hosts may use one of any other type, too.
_LOCAL_FILE_SYSTEM = re.compile(
    "bcachefs|btrfs|ext[234]|f2fs|fuseblk|jfs|overlay|ramfs|reiserfs|tmpfs|xfs|zfs"
)

# A folder with more entries is not read to its end, and its size stays unknown.
MAX_ENTRIES = 100_000


class Mount(t.NamedTuple):
    """A folder on which a part of a file system is mounted, or one that this host exports.

    type: that of the file system; `export` for an export, and empty where it is unknown.
    device, root: which file system it is, and the path of the folder in it.
    """

    path: str
    type: str
    device: str = ""
    root: str = "/"


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
    while scan.folders and not scan.is_too_large():
        try:
            scan.read_next_folder()
        except FileNotFoundError:
            continue  # it was deleted during the scan
        except OSError:
            scan.complete = False
    if not scan.complete or scan.is_too_large():
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
    return not _LOCAL_FILE_SYSTEM.fullmatch(place.type)


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
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), path)


def find_free_name(before: str, after: str, folder: int, earliest: int = 0) -> str:
    """Return a name that is not used in the open `folder`: `before`, the time and `after`.

    earliest: a time that another machine knows to have come, in seconds since the epoch.

    When the name with the current second is used, that with the next second is returned.

    Raises HostError when the names of a whole minute are used.
    """
    start = max(int(time.time()), earliest)
    for moment in range(start, start + _MAX_TRIES):
        name = f"{before}.{time.strftime(_FORMAT, time.gmtime(moment))}{after}"
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return name
    raise HostError(f"{_MAX_TRIES} names such as {name} already exist: find out what creates them.")


def parse_timestamp(stamp: str) -> int | None:
    """Return the time that `stamp` stands for, in seconds since the epoch.

    None when there is no such time, such as that of a 13th month.
    """
    try:
        return calendar.timegm(time.strptime(stamp, _FORMAT))
    except ValueError:
        return None


def calculate_age(seconds: float) -> int:
    """Return the seconds that have passed since a time; 0 for a time in the future.

    seconds: the time, in seconds since the epoch.
    """
    return max(0, int(time.time() - seconds))


def describe_os_error(error: OSError) -> str:
    """Return the system's words for an error, for the middle of a sentence."""
    # An OSError that Python itself raises may have no words.
    return t.cast("str", error.strerror) or type(error).__name__
