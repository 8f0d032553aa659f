# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Which version of the collection runs, and whether a job has another copy of it."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import typing as t
from pathlib import Path

# Without links: in a clone, Ansible reads the collection through one.
ROOT = Path(__file__).resolve().parents[2]
NAME = "osops.placement"

_FIELD = re.compile(r"^(namespace|name|version):\s*['\"]?([\w.+-]+)", re.MULTILINE)


@functools.cache
def read_running_version() -> str:
    """Return the version of the collection that this file belongs to, empty if no file has it."""
    return read_version(ROOT)


def read_version(folder: Path) -> str:
    """Return the version of the copy of this collection in `folder`, empty if there is none."""
    fields = _read_manifest(folder) or _read_galaxy_file(folder)
    if f"{fields.get('namespace')}.{fields.get('name')}" != NAME:
        return ""
    return str(fields.get("version") or "")


def _read_manifest(folder: Path) -> dict[str, t.Any]:
    """Return the description of an installed collection, empty where there is none."""
    try:
        manifest = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
        fields = manifest["collection_info"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _read_galaxy_file(folder: Path) -> dict[str, t.Any]:
    """Return the description of a collection in a clone, empty where there is none."""
    try:
        # A YAML parser would take longer than everything else here.
        return dict(_FIELD.findall((folder / "galaxy.yml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


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
    parents: list[Path] = []
    for folder in folders:
        parents += [folder, *folder.parents]
    return parents
