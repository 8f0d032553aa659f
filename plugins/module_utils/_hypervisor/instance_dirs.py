# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The folders of instances on a hypervisor, and the quarantine for those that are left over.

A folder is moved by its name within folders that are held open, and never by way of a symbolic link.
Runs on hypervisors: any Python from 3.9 on reads this.
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

from ansible_collections.osops.placement.plugins.module_utils._common.errors import HostError
from ansible_collections.osops.placement.plugins.module_utils._common.times import format_timestamp
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.dir_scan import (
    MAX_ENTRIES,
    DirScan,
    is_open,
    scan_dir,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.open_files import (
    Inode,
    find_open_files,
    get_inode,
    is_shared,
    list_mounts,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.timestamps import (
    TIMESTAMP_PATTERN,
    calculate_age,
    describe_os_error,
    find_free_name,
    parse_timestamp,
)

DEFAULT_INSTANCES_PATH = "/var/lib/nova/instances"
SUFFIX_BY_KIND = {"instance": "", "resize": "_resize", "del": "_del"}

_KIND_BY_SUFFIX = {suffix: kind for kind, suffix in SUFFIX_BY_KIND.items()}
_DIRECTORY_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(|_resize|_del)")
_QUARANTINED_NAME = re.compile(rf"({_DIRECTORY_NAME.pattern})\.({TIMESTAMP_PATTERN})")


@d.dataclass(frozen=True)
class InstanceDirectory:
    """The folder of an instance. What is not known of it is None."""

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
        told = d.asdict(self)
        del told["inode"]
        return told


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

    def as_dict(self) -> dict[str, t.Any]:
        return d.asdict(self)


def instances_options() -> dict[str, dict[str, t.Any]]:
    """Return the options that say where the folders are."""
    return {
        "instances_path": {"type": "path", "default": DEFAULT_INSTANCES_PATH},
        "quarantine_path": {"type": "path"},
    }


class InstanceDirectories:
    """The folder that holds those of all instances, and the quarantine."""

    def __init__(self, path: str, quarantine: str | None) -> None:
        self.path = os.path.abspath(path)
        self.store = os.path.abspath(quarantine or os.path.join(path, ".quarantine"))

    @classmethod
    def from_options(cls, options: t.Mapping[str, t.Any]) -> InstanceDirectories:
        return cls(options["instances_path"], options["quarantine_path"])

    def compute_id(self) -> str | None:
        """Return the uuid that nova-compute has as a compute node; None where it does not keep that beside this folder."""
        path = os.path.join(os.path.dirname(self.path), "compute_id")
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            return normalize_uuid(file.read(100).strip())
        return None

    def list_directories(self, uuids: t.Collection[str] | None = None) -> list[InstanceDirectory]:
        """Return the folders that are named as Nova names those of instances, or those of `uuids`."""
        with self._open_instances_dir() as folder:
            names = [
                match
                for match in map(_DIRECTORY_NAME.fullmatch, sorted(os.listdir(folder)))
                if match
            ]
            in_use, around = find_open_files(), list_mounts()
            chosen = [match for match in names if uuids is None or match.group(1) in uuids]
            found = [self._read_directory(folder, match, in_use, around) for match in chosen]
        return [directory for directory in found if directory]

    def get_directory(self, name: str) -> InstanceDirectory | None:
        """Return the folder of that name, None when there is none."""
        match = _DIRECTORY_NAME.fullmatch(name)
        if match is None:
            raise HostError(f"{name!r} is no name of the directory of an instance.")
        with self._open_instances_dir() as folder:
            return self._read_directory(folder, match, find_open_files(), list_mounts())

    def list_quarantined(
        self, uuids: t.Collection[str] | None = None
    ) -> list[QuarantinedDirectory]:
        """Return what is in the quarantine, the oldest of each name first; whatever has another name is not ours."""
        with self._open_store() as store:
            if store is None:
                return []
            matches = [
                match
                for match in map(_QUARANTINED_NAME.fullmatch, sorted(os.listdir(store)))
                if match
            ]
            found = [
                self._read_quarantined(store, match)
                for match in matches
                if uuids is None or match.group(2) in uuids
            ]
        return [entry for entry in found if entry]

    def check_move_allowed(
        self, seen: InstanceDirectory, *, allow_shared: bool, to_be_closed: bool = False
    ) -> None:
        """Raise HostError when the folder must not be moved. to_be_closed: whoever has it open will be gone by then."""
        if seen.link:
            raise HostError(
                f"{seen.path} is a symbolic link and not a directory: it is left to you, for nobody knows what else uses its target."
            )
        if seen.shared is not False and not allow_shared:
            known = (
                "is on a file system that other hosts may use, too,"
                if seen.shared
                else "is on a file system of which no type is known,"
            )
            raise HostError(
                f"{seen.path} {known} where an open file cannot be seen from here: look at the others, and set allow_shared."
            )
        if seen.open is None:
            raise HostError(
                f"Whether a file in {seen.path} is open cannot be told: run the task as root, with become."
            )
        if seen.open and not to_be_closed:
            raise HostError(
                f"{seen.path} is in use, for a file in it is open or something is mounted there: find out by whom (fuser, lsof)."
            )
        self._check_store(seen.device)

    def quarantine(self, seen: InstanceDirectory, *, allow_shared: bool) -> str:
        """Move a folder that is as it was `seen`, or raise HostError. Return where it is then."""
        now = self.get_directory(seen.name)
        if now is None or now.inode != seen.inode or now.changed_at != seen.changed_at:
            raise HostError(
                f"{seen.path} has changed since it was looked at: look again what it is used for."
            )
        self.check_move_allowed(now, allow_shared=allow_shared)
        self._make_store()
        with self._open_instances_dir() as folder, self._open_store() as store:
            if store is None:
                raise HostError(f"quarantine_path {self.store} was removed meanwhile.")
            target = find_free_name(seen.name, "", store)
            self._rename(seen.name, folder, target, store)
            inside = scan_dir(os.path.join(f"/proc/self/fd/{store}", target)).inodes
            busy, complete = find_open_files()
            moved = os.stat(target, dir_fd=store, follow_symlinks=False)
            if get_inode(moved) != seen.inode or inside & busy or not complete:
                # Between the look and the move somebody came; those who have it open do not notice either way.
                self._rename(target, store, seen.name, folder)
                raise HostError(
                    f"{seen.path} came into use while it was moved, and is where it was: find out by whom (fuser, lsof)."
                )
        return os.path.join(self.store, target)

    def restore(self, entry: QuarantinedDirectory) -> str:
        """Move a folder back to where it was. Return where that is."""
        target = self.get_original_path(entry)
        with self._open_instances_dir() as folder, self._open_store() as store:
            if store is None:
                raise HostError(f"{self.store} is not there any more.")
            with contextlib.suppress(FileNotFoundError):
                os.stat(os.path.basename(target), dir_fd=folder, follow_symlinks=False)
                raise HostError(f"{target} is there already: what is in quarantine stays there.")
            self._rename(entry.name, store, os.path.basename(target), folder)
        return target

    def get_original_path(self, entry: QuarantinedDirectory) -> str:
        """Return where a folder in quarantine was before."""
        return os.path.join(self.path, entry.uuid + SUFFIX_BY_KIND[entry.kind])

    def check_purge_allowed(self, entries: t.Iterable[QuarantinedDirectory]) -> None:
        """Raise HostError when one of the entries must not be deleted."""
        if not shutil.rmtree.avoids_symlink_attacks:
            raise HostError(
                "Python cannot delete a directory safely on this system: delete by hand what is in quarantine."
            )
        in_use, around = find_open_files(), list_mounts()
        for entry in entries:
            busy = is_open(entry.path, scan_dir(entry.path), in_use, around)
            if busy:
                raise HostError(
                    f"{entry.path} is in use, for a file in it is open or something is mounted there: find out by whom (fuser, lsof)."
                )
            if busy is None and os.path.lexists(entry.path):
                raise HostError(
                    f"Whether a file in {entry.path} is open cannot be told: run the task as root, with become. "
                    f"What holds more than {MAX_ENTRIES} files is left to you."
                )

    def purge(self, entry: QuarantinedDirectory) -> None:
        """Delete a folder from the quarantine, never what a link in it points to."""
        self.check_purge_allowed([entry])
        with self._open_store() as store:
            try:
                # By way of the folder that is open: whatever its path leads to by now is not touched.
                shutil.rmtree(f"/proc/self/fd/{store}/{entry.name}")
            except FileNotFoundError:
                return
            except OSError as error:
                raise HostError(
                    f"{entry.path} could not be deleted altogether: {describe_os_error(error)}."
                ) from error

    def _read_directory(
        self,
        folder: int,
        match: re.Match[str],
        in_use: tuple[set[Inode], bool],
        around: list[tuple[str, str]],
    ) -> InstanceDirectory | None:
        name, (uuid, suffix) = match.group(), match.groups()
        path = os.path.join(self.path, name)
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        link = stat.S_ISLNK(status.st_mode)
        if not link and not stat.S_ISDIR(status.st_mode):
            return None
        inside = DirScan(None, status.st_mtime, set()) if link else scan_dir(path)
        return InstanceDirectory(
            name=name,
            path=path,
            uuid=uuid,
            kind=_KIND_BY_SUFFIX[suffix],
            size_bytes=inside.size,
            changed_at=None if inside.newest is None else format_timestamp(inside.newest),
            age_seconds=None if inside.newest is None else calculate_age(inside.newest),
            open=None if link else is_open(path, inside, in_use, around),
            link=link,
            device=status.st_dev,
            shared=is_shared(self.path if link else path, around),
            inode=get_inode(status),
        )

    def _read_quarantined(self, store: int, match: re.Match[str]) -> QuarantinedDirectory | None:
        _name, uuid, suffix, stamp = match.groups()
        moved = parse_timestamp(stamp)
        try:
            status = os.stat(match.group(), dir_fd=store, follow_symlinks=False)
        except FileNotFoundError:
            return None
        # We put no links here and no times that do not exist: what is so named is left alone.
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
        )

    @contextlib.contextmanager
    def _open_instances_dir(self) -> t.Iterator[int]:
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise HostError(
                f"instances_path {self.path} cannot be read: {describe_os_error(error)}. Set it to Nova's own, and use become."
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
                f"quarantine_path {self.store} cannot be made: {describe_os_error(error)}."
            ) from error

    @contextlib.contextmanager
    def _open_store(self) -> t.Iterator[int | None]:
        """Hold the quarantine open; None when there is none."""
        try:
            store = os.open(self.store, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            link = (
                "it is a symbolic link" if os.path.islink(self.store) else describe_os_error(error)
            )
            raise HostError(
                f"quarantine_path {self.store} cannot be used: {link}. Give a real folder, and use become."
            ) from error
        try:
            status = os.fstat(store)
            if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                raise HostError(
                    f"quarantine_path {self.store} can be changed by others: make it root's own with mode 0700."
                )
            yield store
        finally:
            os.close(store)

    def _check_store(self, device: int) -> None:
        with self._open_store() as store:
            if store is None and not os.path.isdir(os.path.dirname(self.store)):
                raise HostError(
                    f"quarantine_path {self.store} cannot be made: the folder above it is not there."
                )
            status = os.stat(os.path.dirname(self.store)) if store is None else os.fstat(store)
            if status.st_dev != device:
                raise HostError(
                    f"quarantine_path {self.store} is on another file system than {self.path}: choose a folder on the same one."
                )

    def _rename(self, name: str, folder: int, target: str, other: int) -> None:
        try:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=other)
        except OSError as error:
            why = (
                "they are on different file systems"
                if error.errno == errno.EXDEV
                else describe_os_error(error)
            )
            raise HostError(
                f"{name} could not be moved between {self.path} and {self.store}: {why}."
            ) from error
