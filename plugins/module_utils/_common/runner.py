# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one place where errors become `fail_json`.

Modules that run on hypervisors need this file too: it runs with any Python from 3.9 on.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from .errors import PlacementToolsError

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.module_utils.basic import AnsibleModule


def run_offline(
    module: AnsibleModule, work: Callable[[AnsibleModule], dict[str, t.Any]]
) -> t.NoReturn:
    """Do `work`, for which no cloud is needed, and exit with its result.

    A result with `failed` in it fails the task, and still returns what was done.
    """
    try:
        result = work(module)
    except PlacementToolsError as error:
        module.fail_json(msg=str(error), reason_id=error.reason.id)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)
