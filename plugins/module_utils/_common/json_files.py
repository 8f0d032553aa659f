# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON files that one task hands to the next, and whether other users can replace a file.

They have mode 0600, because they name projects and users.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import pathlib
import pwd
import stat
import tempfile
import typing as t
from collections.abc import Callable, Mapping

from .errors import InvalidInput

T = t.TypeVar("T")

# Far more than the findings of a large cloud have.
_MAX_SIZE = 512 << 20


def write_json(path: str, contents: Mapping[str, t.Any], compact: bool = False) -> None:
    """Write `contents` to `path`, and create its directory if it does not exist.

    A reader sees the old file or the whole new one.

    compact: whether the file is for programs alone, without spaces and line breaks.

    Raises InvalidInput when the file cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        form: t.Any = {"separators": (",", ":")} if compact else {"indent": 2, "sort_keys": True}
        replace_file(path, f"{json.dumps(contents, **form)}\n")
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror or error}. {_advise_on_write(error)}"
        ) from error


def _advise_on_write(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space there, or choose another directory."
    return "Choose another directory, or make this one writable."


def replace_file(path: str, text: str, mode: int = 0o600) -> None:
    """Write a text to the file `path`, whose folder exists. Raises OSError when that fails.

    A reader sees the old file or the whole new one.
    """
    folder, name = os.path.split(path)
    # In the same folder, because a file cannot be renamed to another file system.
    file, unfinished = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}-")
    try:
        # A lone surrogate, which a name from the cloud can have, is not UTF-8.
        with open(file, "w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            stream.write(text)
        os.chmod(unfinished, mode)
        os.replace(unfinished, path)
    except BaseException:
        # Also when the run is stopped: the file names projects and users.
        os.unlink(unfinished)
        raise


def read_json(path: str) -> t.Any:
    """Return the contents of the JSON file `path`.

    Raises InvalidInput when the file cannot be read or is not JSON.
    """
    contents = read_bytes(path)
    if not contents.strip():
        raise InvalidInput(f"{path} is not JSON (it is empty): check that it is the right file.")
    try:
        return json.loads(contents)
    except (ValueError, RecursionError) as error:
        place = ""
        if isinstance(error, json.JSONDecodeError):
            place = f" (line {error.lineno}, column {error.colno})"
        raise InvalidInput(
            f"{path} is not JSON{place}: check that it is the right file and complete."
        ) from error


def read_or_put_aside(
    path: str | None, read: Callable[[t.Any, str], T], lost: str, warn: Callable[[str], None]
) -> T | None:
    """Return what `read` makes of the JSON in `path`; None without such a file.

    A file that `read` refuses is renamed, so that the next one can be written in its place;
    the warning says what is `lost`.
    """
    if not path or not os.path.isfile(path):
        return None
    try:
        return read(read_json(path), path)
    except InvalidInput as error:
        warn(f"{error} {lost} {_put_aside(path)}")
        return None


def _put_aside(path: str) -> str:
    aside = f"{path}.broken"
    try:
        os.replace(path, aside)
    except OSError as reason:
        return f"It cannot be renamed: {reason.strerror}."
    return f"It is kept as {aside}."


def read_bytes(path: str) -> bytes:
    """Return the contents of the file `path`. Raises InvalidInput when it cannot be read."""
    try:
        # A pipe without a writer would be waited for without end.
        with open(os.path.expanduser(path), "rb", opener=_open_at_once) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput(f"{path} is no regular file: copy its contents to one.")
            if status.st_size > _MAX_SIZE:
                raise InvalidInput(
                    f"{path} has {status.st_size >> 20} MiB, and more than {_MAX_SIZE >> 20} are "
                    "not read: check that it is the right file."
                )
            return stream.read()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            # Probably the contents of a file, and not its path.
            raise InvalidInput(f"{path[:60]}… is too long to be a path.") from error
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror or error}. Check the path and its permissions."
        ) from error
    except ValueError as error:
        # A path with a null character.
        raise InvalidInput(f"{path!r} is not a valid path.") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_json_option(option: str, value: t.Any) -> t.Any:
    """Return the contents of an option that takes either those or the path of a JSON file.

    Raises InvalidInput when the option is empty, or a path without a JSON file.
    """
    if not value:
        raise InvalidInput(f"{option} is empty: set it to the path of a file, or to its contents.")
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except InvalidInput as error:
        raise InvalidInput(f"{option}: {error}") from error


# --- who can replace a file, or what is in a folder


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
