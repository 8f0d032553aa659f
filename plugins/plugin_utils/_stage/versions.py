# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which version of the collection runs, and whether a job has another copy of it."""

from __future__ import annotations

import contextlib
import functools
import re
from pathlib import Path

# Without links: in a clone, Ansible reads the collection through one.
ROOT = Path(__file__).resolve().parents[3]
NAME = "osops.placement"

# In the manifest of an installed collection, and in the YAML file of a clone.
_FIELD = re.compile(
    r"(?:^|[{,])\s*\"?(namespace|name|version)\"?:\s*['\"]?(?!null)([\w.+-]+)", re.MULTILINE
)


@functools.cache
def read_running_version() -> str:
    """Return the version of the collection that this file belongs to, empty if no file has it."""
    return read_version(ROOT)


def read_version(folder: Path) -> str:
    """Return the version of the copy of this collection in `folder`, empty if there is none."""
    for file in ("MANIFEST.json", "galaxy.yml"):
        fields: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            # A YAML parser would take longer than everything else here.
            for name, value in _FIELD.findall((folder / file).read_text(encoding="utf-8")):
                fields.setdefault(name, value)
        if f"{fields.get('namespace')}.{fields.get('name')}" == NAME:
            return fields.get("version", "")
    return ""


def explain_other_copy(playbook_folder: str) -> str:
    """Return a sentence if the job is in a copy of another version, else an empty text.

    AWX runs the playbooks of a checkout with the collection of the image.

    playbook_folder: the folder of the playbook that was started.
    """
    running = read_running_version()
    for folder in _list_parents(playbook_folder):
        version = read_version(folder)
        if version and running and version != running:
            return (
                f"Version {running} of {NAME} runs, from {ROOT}, and not version {version}, which "
                f"is in {folder}."
            )
    return ""


def _list_parents(playbook_folder: str) -> list[Path]:
    """Return the folders that the playbook and the current directory are in."""
    folders = [Path(playbook_folder)]
    # The current directory may have been removed.
    with contextlib.suppress(OSError):
        folders.append(Path.cwd())
    return [parent for folder in folders for parent in (folder, *folder.parents)]
