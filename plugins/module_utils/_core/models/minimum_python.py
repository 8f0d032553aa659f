# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says which Python is needed, before an older one fails at something that it does not know."""

from __future__ import annotations

import json
import sys

_MINIMUM = (3, 11)


def explain_old_python(version: tuple[int, ...], path: str) -> str:
    """Return what to do about a Python of this version; empty if it is new enough."""
    if version >= _MINIMUM:
        return ""
    runs, needed = ".".join(map(str, version)), ".".join(map(str, _MINIMUM))
    return (
        f"This module needs Python {needed} or newer, and {path} is Python {runs}: set "
        "ansible_python_interpreter of this host to a newer one, or run the task on the controller."
    )


def require_python() -> None:
    """End the module with a sentence if its Python is too old.

    The files that call this cannot even be imported then, so there is no AnsibleModule yet: the
    module itself writes the result that Ansible reads.
    """
    sentence = explain_old_python(sys.version_info[:2], sys.executable)
    if sentence:
        sys.stdout.write(json.dumps({"failed": True, "msg": sentence}))
        raise SystemExit(1)
