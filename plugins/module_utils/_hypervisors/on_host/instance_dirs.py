# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folders of instances on a hypervisor, and the quarantine for those that are left over.

A folder is moved by its name, from one open folder to another, and never through a symbolic link.
This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import errno
import os
import re
import shutil
import stat
import typing as t

from ..._common.errors import HostError
from ..._common.json_files import belongs_to_others
from ..._common.text import normalize_uuid
from ..._common.times import format_timestamp
from .files import (
    MAX_ENTRIES,
    TIMESTAMP_PATTERN,
    DirScan,
    Inode,
    Mount,
    calculate_age,
    describe_os_error,
    find_free_name,
    find_open_files,
    get_inode,
    is_open,
    is_shared,
    list_mounts,
    parse_timestamp,
    scan_dir,
)

SUFFIX_BY_KIND = {"instance": "", "resize": "_resize", "del": "_del"}

_KIND_BY_SUFFIX = {suffix: kind for kind, suffix in SUFFIX_BY_KIND.items()}
# Nova names a directory by the UUID alone (nova/virt/libvirt/utils.py, get_instance_path), and adds
# `_resize` or `_del` when it moves the directory aside (nova/virt/libvirt/driver.py).
_DIRECTORY_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(|_resize|_del)")
_QUARANTINED_NAME = re.compile(rf"({_DIRECTORY_NAME.pattern})\.({TIMESTAMP_PATTERN})")


@d.dataclass(frozen=True)
class InstanceDirectory:
    """The folder of an instance. What is unknown about it is None."""

    name: str
    path: str
    uuid: str
    kind: str
    size_bytes: int | None
    changed_at: str | None
    age_seconds: int | None
    open: bool | None
    link: bool
    device: int
    shared: bool | None
    inode: Inode

    def as_dict(self) -> dict[str, t.Any]:
        """Return the folder as the modules return it."""
        # No other host knows its devices, so what it can compare is the number alone.
        return {**d.asdict(self), "inode": self.inode[1]}


@d.dataclass(frozen=True)
class QuarantinedDirectory:
    """A folder that was moved into the quarantine."""

    name: str
    uuid: str
    kind: str
    path: str
    moved_at: str
    age_seconds: int
    size_bytes: int | None
    shared: bool | None


class InstanceDirectories:
    """The folder with those of all instances (`path`), and the quarantine (`store`)."""

    def __init__(self, path: str, quarantine: str | None) -> None:
        self.path = os.path.abspath(path)
        self.store = os.path.abspath(quarantine or os.path.join(path, ".quarantine"))

    @classmethod
    def from_options(cls, options: t.Mapping[str, t.Any]) -> InstanceDirectories:
        """Return the folders that the options of `InstanceOptions` name."""
        return cls(options["instances_path"], options["quarantine_path"])

    def compute_id(self) -> str | None:
        """Return the uuid of the compute node that nova-compute is on this host.

        None where nova-compute does not keep it beside the folder of instances.
        """
        # nova-compute writes it to its state_path (nova/virt/node.py), where the instances are too
        # by default.
        path = os.path.join(os.path.dirname(self.path), "compute_id")
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            return normalize_uuid(file.read(100).strip())
        return None

    def list_directories(self, uuids: t.Collection[str] | None = None) -> list[InstanceDirectory]:
        """Return the folders of all instances, or of those with these `uuids`, by name.

        Folders that Nova does not name so are not among them.
        """
        directories = []
        with self._open_instances_dir() as folder:
            names = sorted(os.listdir(folder))
            # Once for all directories, because it takes a look at every process.
            in_use, around = find_open_files(), list_mounts()
            for name in names:
                match = _DIRECTORY_NAME.fullmatch(name)
                if match and (uuids is None or match.group(1) in uuids):
                    directories.append(self._read_directory(folder, match, in_use, around))
        return [directory for directory in directories if directory]

    def get_directory(self, name: str) -> InstanceDirectory | None:
        """Return the folder with that name; None when there is none.

        Raises HostError when Nova does not name folders of instances so.
        """
        match = _DIRECTORY_NAME.fullmatch(name)
        if match is None:
            raise HostError(f"{name!r} is not the name of an instance directory.")
        with self._open_instances_dir() as folder:
            return self._read_directory(folder, match, find_open_files(), list_mounts())

    def list_quarantined(
        self, uuids: t.Collection[str] | None = None
    ) -> list[QuarantinedDirectory]:
        """Return the folders in the quarantine, all or those of `uuids`, by name and time.

        Only what has a name as `quarantine` gives it is among them.
        """
        entries = []
        with self._open_store() as store:
            if store is None:
                return []
            shared = is_shared(self.store, list_mounts())
            for name in sorted(os.listdir(store)):
                match = _QUARANTINED_NAME.fullmatch(name)
                if match and (uuids is None or match.group(2) in uuids):
                    entries.append(self._read_quarantined(store, match, shared))
        return [entry for entry in entries if entry]

    def check_move_allowed(
        self, directory: InstanceDirectory, *, allow_shared: bool, to_be_closed: bool = False
    ) -> None:
        """Raise HostError when the folder must not be moved.

        to_be_closed: whether the process that has a file in it open will have ended by then.
        """
        if directory.link:
            raise HostError(
                f"{directory.path} is a symbolic link and not a directory: remove it by hand, "
                "because something else may use its target."
            )
        # None means unknown, which is as dangerous as a file system that is shared.
        if directory.shared is not False and not allow_shared:
            raise HostError(
                f"{directory.path} {_describe_shared(directory)}, and this host cannot see "
                "whether another one has a file in it open: check the other hosts, then set "
                "allow_shared."
            )
        if directory.open is None:
            raise HostError(
                f"It is unknown whether a file in {directory.path} is open: "
                "run the task as root, with become."
            )
        if directory.open and not to_be_closed:
            raise HostError(_describe_in_use(directory.path))
        self._check_store(directory.device)

    def quarantine(
        self, directory: InstanceDirectory, *, allow_shared: bool, earliest: int = 0
    ) -> str:
        """Move a folder into the quarantine, and return its new path.

        earliest: as for `find_free_name`.
        Raises HostError if the folder has changed since `directory` was read, or must not be moved.
        """
        current = self.get_directory(directory.name)
        if current is None or not _is_unchanged(current, directory):
            raise HostError(
                f"{directory.path} has changed since it was read: check again what uses it."
            )
        self.check_move_allowed(current, allow_shared=allow_shared)
        self._make_store()
        with self._open_instances_dir() as folder, self._open_store() as store:
            if store is None:
                raise HostError(f"quarantine_path {self.store} was removed meanwhile: run again.")
            target = find_free_name(directory.name, "", store, earliest)
            self._rename(directory.name, folder, target, store)
            if not _is_unused(store, target, directory.inode):
                # A process opened a file between the check and the move. It does not notice either
                # move.
                self._rename(target, store, directory.name, folder)
                raise HostError(
                    f"{directory.path} was opened while it was moved, and was moved back: "
                    "find out what uses it (fuser, lsof)."
                )
        return os.path.join(self.store, target)

    def restore(self, entry: QuarantinedDirectory) -> str:
        """Move a folder back to its original path, and return that path.

        Raises HostError when something is there already.
        """
        target = self.get_original_path(entry)
        name = os.path.basename(target)
        with self._open_instances_dir() as folder, self._open_store() as store:
            if store is None:
                raise HostError(f"quarantine_path {self.store} no longer exists.")
            # A rename would replace an empty directory without an error.
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
                raise HostError(f"{target} already exists: the directory stays in quarantine.")
            self._rename(entry.name, store, name, folder)
        return target

    def get_original_path(self, entry: QuarantinedDirectory) -> str:
        """Return the path that a folder had before it was moved into the quarantine."""
        return os.path.join(self.path, entry.uuid + SUFFIX_BY_KIND[entry.kind])

    def check_purge_allowed(self, entries: t.Iterable[QuarantinedDirectory]) -> None:
        """Raise HostError when one of the entries must not be deleted."""
        if not shutil.rmtree.avoids_symlink_attacks:
            raise HostError(
                "Python cannot delete a directory safely on this system: "
                "delete the directories in quarantine by hand."
            )
        in_use, around = find_open_files(), list_mounts()
        for entry in entries:
            busy = is_open(entry.path, scan_dir(entry.path), in_use, around)
            if busy:
                raise HostError(_describe_in_use(entry.path))
            # For an entry that was deleted meanwhile it is unknown too, and does not matter.
            if busy is None and os.path.lexists(entry.path):
                raise HostError(
                    f"It is unknown whether a file in {entry.path} is open: run the task as root, "
                    f"with become. Delete a directory with more than {MAX_ENTRIES} files by hand."
                )

    def purge(self, entry: QuarantinedDirectory) -> None:
        """Delete a folder from the quarantine, but never the target of a link in it.

        Raises HostError when the folder must not or cannot be deleted.
        """
        self.check_purge_allowed([entry])
        with self._open_store() as store:
            try:
                # Through the open folder, because its path may lead somewhere else by now.
                shutil.rmtree(f"/proc/self/fd/{store}/{entry.name}")
            except FileNotFoundError:
                return
            except OSError as error:
                raise HostError(
                    f"{entry.path} could not be deleted completely: {describe_os_error(error)}."
                ) from error

    def _read_directory(
        self,
        folder: int,
        match: re.Match[str],
        in_use: tuple[set[Inode], bool],
        around: list[Mount],
    ) -> InstanceDirectory | None:
        """Return one folder; None when there is none, or when it is something else."""
        name = match.group()
        uuid, suffix = match.groups()
        path = os.path.join(self.path, name)
        status = _stat_directory_or_link(name, folder)
        if status is None:
            return None
        # A link is never followed, so it stays unknown whether a file behind it is open.
        link = stat.S_ISLNK(status.st_mode)
        inside = DirScan(None, status.st_mtime, set()) if link else scan_dir(path)
        newest = inside.newest
        return InstanceDirectory(
            name=name,
            path=path,
            uuid=uuid,
            kind=_KIND_BY_SUFFIX[suffix],
            size_bytes=inside.size,
            changed_at=None if newest is None else format_timestamp(newest),
            age_seconds=None if newest is None else calculate_age(newest),
            open=None if link else is_open(path, inside, in_use, around),
            link=link,
            device=status.st_dev,
            shared=is_shared(self.path if link else path, around),
            inode=get_inode(status),
        )

    def _read_quarantined(
        self, store: int, match: re.Match[str], shared: bool | None
    ) -> QuarantinedDirectory | None:
        """Return one folder of the quarantine; None when there is none, or something else."""
        _name, uuid, suffix, stamp = match.groups()
        moved = parse_timestamp(stamp)
        try:
            status = os.stat(match.group(), dir_fd=store, follow_symlinks=False)
        except FileNotFoundError:
            return None
        # `quarantine` creates neither links nor invalid times, so somebody else created this.
        if moved is None or not stat.S_ISDIR(status.st_mode):
            return None
        path = os.path.join(self.store, match.group())
        return QuarantinedDirectory(
            match.group(),
            uuid,
            _KIND_BY_SUFFIX[suffix],
            path,
            format_timestamp(moved),
            calculate_age(moved),
            scan_dir(path).size,
            shared,
        )

    @contextlib.contextmanager
    def _open_instances_dir(self) -> t.Iterator[int]:
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise HostError(
                f"instances_path {self.path} cannot be read: {describe_os_error(error)}. "
                "Set it to the instances_path in nova.conf, and use become."
            ) from error
        try:
            yield folder
        finally:
            os.close(folder)

    def _make_store(self) -> None:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.store, 0o700)
        except OSError as error:
            raise HostError(
                f"quarantine_path {self.store} cannot be created: {describe_os_error(error)}."
            ) from error

    @contextlib.contextmanager
    def _open_store(self) -> t.Iterator[int | None]:
        """Open the quarantine; None when there is none."""
        try:
            store = os.open(self.store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            reason = describe_os_error(error)
            if os.path.islink(self.store):
                reason = "it is a symbolic link"
            raise HostError(
                f"quarantine_path {self.store} cannot be used: {reason}. "
                "Set it to a real directory, and use become."
            ) from error
        try:
            # Another user could replace a directory in it, and have that one restored or deleted.
            if belongs_to_others(store):
                raise HostError(
                    f"quarantine_path {self.store} can be changed by other users: "
                    "make root its owner, with mode 0700."
                )
            yield store
        finally:
            os.close(store)

    def _check_store(self, device: int) -> None:
        """Raise HostError when the quarantine cannot be made, or is not on the file system."""
        parent = os.path.dirname(self.store)
        with self._open_store() as store:
            if store is None and not os.path.isdir(parent):
                raise HostError(
                    f"quarantine_path {self.store} cannot be created: its parent directory does "
                    "not exist."
                )
            # Within one file system a move is atomic, and open files stay valid.
            if os.stat(parent if store is None else store).st_dev != device:
                raise HostError(
                    f"quarantine_path {self.store} is on another file system than {self.path}: "
                    "choose a directory on the same one."
                )

    def _rename(self, name: str, folder: int, target: str, other: int) -> None:
        try:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=other)
        except OSError as error:
            reason = describe_os_error(error)
            if error.errno == errno.EXDEV:
                reason = "they are on different file systems"
            raise HostError(
                f"{name} could not be moved between {self.path} and {self.store}: {reason}."
            ) from error


def _stat_directory_or_link(name: str, folder: int) -> os.stat_result | None:
    """Return the status of `name` in the open `folder`; None when there is no such thing."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status if stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode) else None


def _is_unchanged(current: InstanceDirectory, earlier: InstanceDirectory) -> bool:
    # The inode shows a new directory of the same name, and the time a change in the same directory.
    return current.inode == earlier.inode and current.changed_at == earlier.changed_at


def _is_unused(store: int, name: str, inode: Inode) -> bool:
    """Return whether a folder in the open `store` is the one with `inode`, and surely not open."""
    inside = scan_dir(os.path.join(f"/proc/self/fd/{store}", name))
    open_inodes, complete = find_open_files()
    status = os.stat(name, dir_fd=store, follow_symlinks=False)
    return get_inode(status) == inode and not inside.inodes & open_inodes and complete


def _describe_shared(directory: InstanceDirectory) -> str:
    if directory.shared:
        return "is exported, or on a file system that other hosts may use too"
    return "may be shared, because its file system or the exports of this host are unknown"


def _describe_in_use(path: str) -> str:
    return (
        f"{path} is in use, because a file in it is open or something is mounted there: "
        "find out what uses it (fuser, lsof)."
    )
