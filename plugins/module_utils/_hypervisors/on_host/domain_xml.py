# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The XML of domains, saved so that they can be defined again.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import os
import re

from ..._common.errors import HostError, InvalidInput
from ..._common.folders import belongs_to_others
from .timestamps import TIMESTAMP_PATTERN, describe_os_error, find_free_name
from .virsh import MAX_XML_BYTES

DEFAULT_BACKUP_PATH = "/var/lib/osops-placement"


def save_xml(folder: str, uuid: str, xml: bytes) -> str:
    """Write the XML of a domain to a new file, flush it to disk, and return its path.

    The XML contains secrets: only its owner may read the file.

    Raises HostError when the file cannot be written, or when others can change the folder.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            name = _write_new_file(directory, folder, uuid, xml)
        finally:
            os.close(directory)
    except OSError as error:
        raise HostError(
            f"backup_path {folder} cannot be written: {describe_os_error(error)}. "
            "Nothing was changed: choose another directory."
        ) from error
    return os.path.join(folder, name)


def _write_new_file(directory: int, folder: str, uuid: str, xml: bytes) -> str:
    """Write the file in the open `directory`, whose path is `folder`, and return its name."""
    if belongs_to_others(directory):
        raise HostError(
            f"backup_path {folder} can be changed by other users: make root its owner, with mode "
            "0700."
        )
    name = find_free_name(uuid, ".xml", directory)
    # A new file only: the XML must not be written through a link that somebody has prepared.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=directory)
    with os.fdopen(file, "wb") as stream:
        stream.write(xml)
        stream.flush()
        os.fsync(file)
    # Without this the entry of the file in the folder could be lost in a crash.
    os.fsync(directory)
    return name


def find_newest_xml(folder: str, uuid: str) -> str:
    """Return the path of the XML that was saved last of a domain.

    Raises InvalidInput when there is none, or when the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InvalidInput(
            f"backup_path {folder} cannot be read: {describe_os_error(error)}. "
            "Set xml_path, or another backup_path."
        ) from error
    pattern = re.compile(rf"{uuid}\.{TIMESTAMP_PATTERN}\.xml")
    saved = sorted(filter(pattern.fullmatch, names))
    if not saved:
        raise InvalidInput(
            f"backup_path {folder} has no XML of {uuid}: set xml_path, or another backup_path."
        )
    return os.path.join(folder, saved[-1])


def read_xml(path: str) -> bytes:
    """Return the XML in a file, or of one that is too long the beginning that shows this.

    Raises InvalidInput when the file cannot be read.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(MAX_XML_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {describe_os_error(error)}.") from error
