# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the roles: Ansible reads all filters of a collection for one of them.

So each imports what it uses only when it is called.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError

from ..module_utils._common.errors import InvalidInput
from ..plugin_utils._variables.values import build_host_path, choose_document, read_host_names

if t.TYPE_CHECKING:  # pragma: no cover
    from ..plugin_utils._stage.nova_manage import TaskResult


def host_names(answer: t.Any, variable: str, split: bool = True) -> list[str]:
    try:
        return read_host_names(answer, variable, split)
    except InvalidInput as error:
        raise AnsibleFilterError(str(error)) from None


def cell_hosts(listing: TaskResult, cells: t.Any) -> Mapping[str, t.Any]:
    from ..plugin_utils._stage.nova_manage import describe_cell_hosts

    return describe_cell_hosts(listing, cells)


def heal_outcome(called: TaskResult, **tasks: t.Any) -> dict[str, t.Any]:
    from ..plugin_utils._stage.nova_manage import determine_heal_outcome

    return d.asdict(determine_heal_outcome(called=called, **tasks))


def host_result(
    before: Mapping[str, t.Any], stages: t.Any, check_mode: bool, **tasks: t.Any
) -> dict[str, str]:
    from ..plugin_utils._hosts.host_results import describe_host_result

    return describe_host_result(before, tasks, stages, check_mode)


def redeploy_outcome(restored: TaskResult, *tasks: t.Any) -> dict[str, t.Any]:
    from ..plugin_utils._hosts.host_results import determine_redeploy_outcome

    return determine_redeploy_outcome(restored, *tasks)


def guest_results(detected: TaskResult, *tasks: t.Any) -> dict[str, t.Any]:
    from ..plugin_utils._hypervisors.guest_results import describe_guest_results

    return describe_guest_results(detected, *tasks)


def leftover_changes(detected: TaskResult, kinds: t.Any, host: str) -> dict[str, t.Any]:
    from ..plugin_utils._hypervisors.guest_results import select_leftover_changes

    return select_leftover_changes(detected, kinds, host)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "cell_hosts": cell_hosts,
            "guest_results": guest_results,
            "heal_outcome": heal_outcome,
            "host_document": choose_document,
            "host_names": host_names,
            "host_path": build_host_path,
            "host_result": host_result,
            "leftover_changes": leftover_changes,
            "redeploy_outcome": redeploy_outcome,
        }
