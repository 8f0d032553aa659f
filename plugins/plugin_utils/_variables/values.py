# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the values of variables stand for: names of hosts, paths and documents.

From ansible-core 2.19 on, an answer to a survey of AWX is read as if it had no quotes: `12345` is a
number, `no` is False, and an empty answer is null. A name cannot be recovered from what it became:
5349 was typed as 5349, as 012345 or as 0x14e5, and each of them can be a host.
"""

from __future__ import annotations

import hashlib
import os
import re
import typing as t
from collections.abc import Mapping

from ...module_utils._common.errors import InvalidInput
from ...module_utils._core.run.pack import find_packs

# In which part of a path the host is named.
FOLDER, PARENT, NAME = PLACES = ("folder", "parent", "name")

# What precedes the name of a host in a plan for several hosts.
_HOST = "host "

_MAX_FOLDER_NAME = 80
_DIGEST_LENGTH = 8


def read_host_names(answer: t.Any, variable: str, split: bool = True) -> list[str]:
    """Return the names in an answer: a text, a list of texts, or nothing at all.

    Quotes around a name are left out. Raises InvalidInput for anything that is not a text.

    variable: the name of the variable with the answer, for the message.
    split: whether a text has several names, with commas between them.
    """
    if answer is None:
        return []
    names = []
    for text in answer if isinstance(answer, (list, tuple)) else [answer]:
        if not isinstance(text, str):
            raise InvalidInput(
                f"{variable} is {text!r}, which is not a name: put a name that YAML takes for a "
                "number, a date or a truth value (12345, no, on) in quotes, in a survey too."
            )
        parts = text.split(",") if split else [text]
        named = list(filter(None, map(_remove_quotes, parts)))
        # Without names all hosts are meant, and only an empty answer may say that.
        if text.strip() and not named:
            raise InvalidInput(f"{variable} is {text!r}, which does not name a host.")
        names += named
    return names


def _remove_quotes(text: str) -> str:
    # In a survey all that is typed is a part of the answer, and no name of a host has a quote.
    quoted = re.fullmatch(r"(['\"])(.*)\1", text.strip(), re.DOTALL)
    return quoted[2] if quoted else text.strip()


def make_folder_name(host: str) -> str:
    """Return a host's name as the name of a folder.

    Two hosts whose names differ only in characters that are replaced still get one folder each.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]|^\.", "_", host)[:_MAX_FOLDER_NAME]
    if plain == host:
        return plain
    return f"{plain}-{hashlib.sha256(host.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def build_host_path(path: str, host: str = "", place: str = FOLDER) -> str:
    """Return an absolute path, with a part for the host; empty for an empty path.

    A relative path starts in the current directory of the user, which filters have and modules do
    not have.

    place: where the host is named. FOLDER appends a folder to the path, PARENT inserts a folder
    before the last part of the path, and NAME extends the name of the file.
    """
    if not path:
        return ""
    path, part = os.path.expanduser(path), make_folder_name(host)
    if place == FOLDER:
        return os.path.realpath(os.path.join(path, part))
    # A file that is written is not written through a link.
    folder, name = os.path.split(os.path.abspath(path))
    stem, extension = os.path.splitext(name)
    if place == PARENT:
        folder = os.path.join(folder, part)
    elif host:
        name = f"{stem}-{part}{extension}"
    return os.path.join(os.path.realpath(folder), name)


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
    if isinstance(document, Mapping) and "by_host" in document:
        by_host = document["by_host"] if isinstance(document["by_host"], Mapping) else {}
        chosen = by_host.get(make_host_key(host))
        # Version 1.0 had the plain names, and never both.
        if chosen is None and not any(str(key).startswith(_HOST) for key in by_host):
            chosen = by_host.get(host)
        return "" if chosen is None else chosen
    if not isinstance(document, str) or find_packs(document):
        return "" if document is None else document
    # An answer in several lines often ends with a line break.
    return build_host_path(document.strip())
