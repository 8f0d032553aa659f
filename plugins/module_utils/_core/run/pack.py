# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a run as one text, for the next job or an operator who has lost the folder.

AWX writes the artifacts of a job into the variables of the next one as YAML. From ansible-core 2.19
on, such a text is read as if it had no quotes: a time becomes a timestamp, and a region NO becomes
False. No YAML reader takes a pack for anything but a text. A pack has nothing that a template would
evaluate, no spaces where YAML breaks lines, and no path of any file. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import typing as t
import zlib
from collections.abc import Iterable, Mapping
from itertools import chain

from ..._common.errors import InvalidInput

File = t.Literal["plan", "journal", "moves"]
"""What a pack can have: a plan, the records of its changes, and those of a drain."""

# A plan is an object, and a journal the list of its records.
_TYPES: Mapping[str, type] = {"plan": dict, "journal": list, "moves": list}

# In characters: about 3 000 changes. AWX drops the result of a task from the log of a job above
# 700 000 characters.
MAX_LENGTH = 400_000
# Far more than so many changes have: a short text can unpack to more than the memory has room for.
_MAX_BYTES = 32 << 20

_PREFIX = "osops.placement.run:"
# The version of this form; the files inside have formats of their own.
_VERSION = "1"
# A pack, or a text of version 2.0, among other things. It is not the end of a path.
_TEXT = re.compile(r"(?<![/\w.])osops\.placement\.(?:run|plan|journal):[\w:/+=-]*", re.ASCII)
_FORM = re.compile(rf"{re.escape(_PREFIX)}{_VERSION}:([0-9a-f]{{64}}):([A-Za-z0-9_-]+)")

_DAMAGED = "The pack was edited or cut short: nothing was changed. Only a complete pack is used."


def pack_files(files: Mapping[File, t.Any]) -> str:
    """Return files as one text, empty if that is too long to be handed on."""
    contents = json.dumps(files, sort_keys=True, separators=(",", ":")).encode()
    if len(contents) > _MAX_BYTES:
        return ""
    data = _encode(zlib.compress(contents, 9))
    text = f"{_PREFIX}{_VERSION}:{_hash(data)}:{data}"
    return text if len(text) <= MAX_LENGTH else ""


def find_packs(value: t.Any) -> list[str]:
    """Return the packs in a value: one text, a list, or all artifacts of a job as AWX shows them.

    None are in a path, and in the contents of a file.
    """
    if isinstance(value, str):
        return _TEXT.findall(value)
    # With ansible-core 2.18, a text with the JSON of a mapping arrives as a mapping.
    parts = value.values() if isinstance(value, Mapping) else value
    return list(chain(*map(find_packs, parts))) if isinstance(value, (Mapping, list)) else []


def read_packed(value: t.Any, *names: File) -> tuple[File, list[t.Any]] | None:
    """Return what the packs in a value have of a file, and its name; None if there is no pack.

    names: which file. The first that any of them has counts, because all artifacts of a job have
    its plan beside its journal.
    Raises InvalidInput unless each pack is complete and unchanged, and one of them has the file.
    """
    packs = find_packs(value)
    texts = [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
    # What is not recognized may be a part of a pack that must not be left out.
    if 0 < len(packs) < len(texts):
        raise InvalidInput(_DAMAGED)
    if not packs:
        return None
    unpacked = unpack_files(packs)
    for name in names:
        if found := [files[name] for files in unpacked if name in files]:
            return name, found
    raise InvalidInput(
        f"There is no {names[0]} in the pack, but {' and '.join(sorted({*chain(*unpacked)}))}: use "
        "that of the job that exported one."
    )


def unpack_files(packs: Iterable[str]) -> list[dict[File, t.Any]]:
    """Return the files of which `pack_files` made each text.

    Raises InvalidInput for any other text, even if only one character differs.
    """
    unpacked = []
    left = _MAX_BYTES
    for text in packs:
        _check_version(text)
        match = _FORM.fullmatch(text)
        if match is None or len(text) > MAX_LENGTH or _hash(match[2]) != match[1]:
            raise InvalidInput(_DAMAGED)
        try:
            contents = _decompress(_decode(match[2]), left)
            unpacked.append(_parse_files(contents))
        except (ValueError, RecursionError, zlib.error) as error:
            raise InvalidInput(_DAMAGED) from error
        left -= len(contents)
    return unpacked


def _parse_files(contents: bytes) -> dict[File, t.Any]:
    files: dict[File, t.Any] = json.loads(contents)
    is_known = isinstance(files, dict) and files.keys() <= _TYPES.keys()
    if not is_known or not all(isinstance(files[name], _TYPES[name]) for name in files):
        raise ValueError("it has something else than the files of a run")
    return files


def read_packed_plan(value: t.Any) -> t.Any:
    """Return the document of the plan in a pack, None for the path of a plan and a plan itself."""
    packed = read_packed(value, "plan")
    if packed is None:
        return None
    _file, documents = packed
    if len(documents) > 1:
        raise InvalidInput(f"There are {len(documents)} packs with a plan: choose one.")
    return documents[0]


def _check_version(text: str) -> None:
    """Raise InvalidInput for a text of another version, with what to do instead."""
    if text.startswith(("osops.placement.plan:", "osops.placement.journal:")):
        raise InvalidInput(
            "This text was exported by version 2.0, and version 3.0.0 reads those that begin with "
            "osops.placement.run:1. Nothing was changed: plan again, or restore with the file of "
            "the journal."
        )
    version = text.removeprefix(_PREFIX).partition(":")[0]
    if text.startswith(_PREFIX) and version != _VERSION:
        raise InvalidInput(
            f"The pack has version {version[:20]!r}; this version of the collection reads version "
            f"{_VERSION}."
        )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    # Python ignores what is no letter of Base64, more padding than is needed, bits without a
    # meaning, and before 3.13 also what follows the padding.
    decoded = base64.b64decode(f"{text}==", altchars=b"-_")
    if _encode(decoded) != text:
        raise ValueError("it is not in its canonical form")
    return decoded


def _decompress(packed: bytes, max_bytes: int) -> bytes:
    reader = zlib.decompressobj()
    # To zlib, 0 is no limit.
    unpacked = reader.decompress(packed, max(max_bytes, 1))
    if not reader.eof or reader.unused_data:
        raise ValueError("it is not complete, is too long, or has more than one part")
    return unpacked


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
