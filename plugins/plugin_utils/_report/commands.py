# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values in the commands that a reader of a report copies into a shell.

Names from a cloud get into a command only where they mean nothing to a shell, to Ansible's parser
and to its templates. Anything else is left out.
"""

from __future__ import annotations

import re

from ...module_utils._common.uuids import normalize_uuid
from ...module_utils._core.findings.entries import Entry

# Stands for a value that must not be in a command: no host and no file has this name.
LEFT_OUT = "…"

# What needs no quotes in `-e variable=value`.
_PLAIN = re.compile(r"[A-Za-z0-9/._][A-Za-z0-9/._:@+-]*")


def keep_safe(text: str) -> str:
    """Return a text that may be in a command, or what stands for one that may not.

    Ansible reads a template in the value of a variable, and a terminal what does not print.
    """
    if text and text.isprintable() and "{" not in text and not text.startswith("-"):
        return text
    return LEFT_OUT


def list_safe_hosts(entry: Entry) -> list[str]:
    """Return the hosts of an entry by names that may be in a command, or else by their UUIDs."""
    dropped = [provider for provider in entry["providers"] if provider["dropped"]]
    hosts = set()
    for provider in dropped or entry["providers"]:
        name, uuid = provider["root_name"], normalize_uuid(provider["root"] or "")
        if not _PLAIN.fullmatch(name) and uuid:
            name = uuid
        hosts.add(keep_safe(name))
    return sorted(hosts)
