# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The journal: one JSON line before each write to Placement and one after it, on disk before the write is sent."""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clock import now
from ansible_collections.osops.placement.plugins.module_utils._errors import JournalError

FORMAT = 1


class Journal:
    """An append-only file of mode 0600, made with its first record."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, f"journal-{now().replace(':', '')}-{os.getpid()}.jsonl")
        self._file: int | None = None
        self.broken = False

    @property
    def written(self) -> bool:
        return self._file is not None

    def record(self, event: str, **facts: t.Any) -> None:
        """Append one record and wait until the disk has it. Raises JournalError when that cannot be."""
        line = json.dumps({"format": FORMAT, "at": now(), "event": event, **facts}, sort_keys=True) + "\n"
        if self.broken:
            raise JournalError(f"The journal {self.path} could not be written before, and without it nothing is changed.")
        try:
            if self._file is None:
                self._file = self._create()
            _write_all(self._file, line.encode())
            os.fsync(self._file)
        except OSError as error:
            # A record may now stand there half; one more would be glued to it.
            self.broken = True
            raise JournalError(
                f"The journal {self.path} cannot be written ({error.strerror}), and without it nothing is changed."
            ) from error

    def _create(self) -> int:
        directory = os.path.dirname(self.path)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        created = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        # The new name must survive a power cut as well as what is in the file.
        folder = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return created


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
