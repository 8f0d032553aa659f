# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether other users can replace what is in a folder."""

from __future__ import annotations

import contextlib
import grp
import os
import pathlib
import pwd
import stat

from .errors import InvalidInput


def belongs_to_others(path: int | str | os.PathLike[str]) -> bool:
    """Return whether anybody but this user and root owns a folder, or may write in it.

    path: also an open file.
    """
    status = os.stat(path)
    if status.st_uid not in _list_own_ids() or status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    # With an access list, these bits are the most that anybody in it may do.
    with contextlib.suppress(OSError, AttributeError):
        if "system.posix_acl_access" in os.listxattr(path):
            return True
    return not _is_private_group(status)


def _list_own_ids() -> set[int]:
    """Return the ids of root, of this user, and of who became root with sudo."""
    invoker = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *([int(invoker)] if invoker.isdecimal() else [])}


def _is_private_group(status: os.stat_result) -> bool:
    """Return whether a group is that of the owner alone, as with a umask of 0002."""
    try:
        owner, group = pwd.getpwuid(status.st_uid).pw_name, grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner and set(group.gr_mem) <= {owner}


def explain_shared_folder(path: str) -> str:
    """Return who can replace a file, or the files in a folder, which need not exist; or nothing."""
    try:
        return _find_others(path)
    # One that is below a file, or whose parent may not be searched.
    except OSError as error:
        return f"{path} cannot be written ({error.strerror})"


def _find_others(path: str) -> str:
    with contextlib.suppress(FileNotFoundError):
        link = os.lstat(path.rstrip("/") or "/")
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in _list_own_ids():
            return f"{path} is a symbolic link of another user"
    folder = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        if belongs_to_others(folder):
            return f"{folder} can be changed by other users"
    # Whoever can rename a folder on the way, or a link in it, can put another one in its place.
    for start in (folder, os.path.abspath(path)):
        for parent in pathlib.PurePath(start).parents:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(parent)
                # In a folder like /tmp, nobody can rename what belongs to somebody else.
                is_sticky = status.st_mode & stat.S_ISVTX and status.st_uid in _list_own_ids()
                if belongs_to_others(parent) and not is_sticky:
                    who = "all" if status.st_mode & stat.S_IWOTH else "other"
                    return f"{parent} can be changed by {who} users"
    return ""


def require_private_file(path: str) -> None:
    """Raise InvalidInput if other users can replace a file that decides what is written."""
    problem = explain_shared_folder(os.path.expanduser(path))
    if problem:
        raise InvalidInput(
            f"{path} cannot be used, because {problem}: nothing was changed. Have it checked, and "
            "put it in a folder that only you can change."
        )


def require_private_folder(path: str) -> None:
    """Raise InvalidInput if other users can replace the files in a folder."""
    problem = explain_shared_folder(path)
    if problem:
        raise InvalidInput(
            f"output_dir {path} cannot be used, because {problem}: nothing was changed. Make "
            "yourself its owner, with mode 0700, or set another folder."
        )
