# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a role reads and writes: paths with a name of their own for each host."""

from __future__ import annotations

import hashlib
import os
import re
import typing as t
from collections.abc import Mapping

from ...module_utils._core.run.pack import find_packs

FOLDER, PARENT, NAME = "folder", "parent", "name"

# In which part of a path the host is named.
PLACES = (FOLDER, PARENT, NAME)

# What precedes the name of a host in a plan for several hosts.
_HOST = "host "

_MAX_FOLDER_NAME = 80
_DIGEST_LENGTH = 8


def make_folder_name(host: str) -> str:
    """Return a host's name as the name of a folder.

    Two hosts whose names differ only in characters that are replaced still get one folder each.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", host)
    plain = re.sub(r"^\.", "_", plain)[:_MAX_FOLDER_NAME]
    if plain == host:
        return plain
    digest = hashlib.sha256(host.encode()).hexdigest()
    return f"{plain}-{digest[:_DIGEST_LENGTH]}"


def build_host_path(path: str, host: str = "", place: str = FOLDER) -> str:
    """Return an absolute path, with a part for the host; empty for an empty path.

    A relative path starts in the current directory of the user, which filters have and modules do
    not have.

    place: where the host is named. FOLDER appends a folder to the path, PARENT inserts a folder
    before the last part of the path, and NAME extends the name of the file.
    """
    if not path:
        return ""
    path = os.path.expanduser(path)
    if host:
        path = _insert_folder_name(path, make_folder_name(host), place)
    if place == FOLDER:
        return os.path.realpath(path)
    # A file that is written is not written through a link.
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _insert_folder_name(path: str, folder_name: str, place: str) -> str:
    if place == FOLDER:
        return os.path.join(path, folder_name)
    if place == PARENT:
        parent, name = os.path.split(path)
        return os.path.join(parent, folder_name, name)
    stem, extension = os.path.splitext(path)
    return f"{stem}-{folder_name}{extension}"


def make_host_key(host: str) -> str:
    """Return the key of a host in a plan for several hosts.

    A YAML reader that takes texts for other types would take the plain names NO and 1 for False and
    a number, but never this text.
    """
    return f"{_HOST}{host}"


def choose_document(document: t.Any, host: str) -> t.Any:
    """Return what a host uses of a document: the absolute path of a file, or its contents.

    A document with the key `by_host` has one document for each host. For a host that is missing
    there it is an empty text, which no module accepts. The same holds for null, of which some YAML
    readers make an empty text.
    """
    if document is None:
        return ""
    if isinstance(document, Mapping) and "by_host" in document:
        return _choose_document_of(document["by_host"], host)
    if not isinstance(document, str) or find_packs(document):
        return document
    # An answer in several lines often ends with a line break.
    return build_host_path(document.strip())


def _choose_document_of(by_host: t.Any, host: str) -> t.Any:
    if not isinstance(by_host, Mapping):
        return ""
    document = by_host.get(make_host_key(host))
    # Version 1.0 had the plain names, and never both.
    if document is None and not any(str(key).startswith(_HOST) for key in by_host):
        document = by_host.get(host)
    return "" if document is None else document
