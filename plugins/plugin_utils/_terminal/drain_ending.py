# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The last lines of a drain: its journal, how to undo it, and what to type next."""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.commands import (
    SAME_OPTIONS,
    format_fields,
    get_started_playbook,
    has_other_variables,
    is_awx_job,
    name_playbook,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Mapping

_DRAIN, _DECOMMISSION = "drain_host", "decommission_host"
_TARGET = "host_decommission_target"
_RETURN = ("host_decommission_return=true", "host_decommission_move_back=true")


def format_drain_ending(result: Mapping[str, t.Any], host: str, check_mode: bool) -> list[str]:
    """Return the last lines of a drain, or of its prediction.

    result: as host_drain returned it. check_mode: whether the user wanted a prediction only.
    """
    lines = format_fields(_list_fields(result, host, check_mode))
    if check_mode:
        lines.insert(0, "Check mode: nothing was changed.")
    if lines:
        return ["", *lines]
    return []


def _list_fields(
    result: Mapping[str, t.Any], host: str, check_mode: bool
) -> Iterator[tuple[str, str]]:
    journal = result.get("journal") or ""
    yield "Journal", journal
    # A return needs no undoing: the host can be drained again.
    if is_awx_job() or "departures" in result:
        return
    if journal:
        yield "Undo", _build_command(_DRAIN, host, variables=_RETURN)
    # As a stage of another playbook, it is followed by others.
    if _DECOMMISSION not in get_started_playbook():
        yield "Next", _suggest_next(result, host, check_mode)


def _suggest_next(result: Mapping[str, t.Any], host: str, check_mode: bool) -> str:
    if result["empty"]:
        return _build_command(_DECOMMISSION, host, flag="--check")
    # A prediction without a change would be followed by the same run again.
    if not check_mode or result["changed"]:
        return _build_command(_DRAIN, host)
    return ""


def _build_command(
    playbook: str, host: str, variables: tuple[str, ...] = (), flag: str = ""
) -> str:
    """Return the command that runs a playbook of the collection for a host."""
    parts = ["ansible-playbook", name_playbook(playbook, (_DRAIN, _DECOMMISSION))]
    for variable in (f"{_TARGET}={host}", *variables):
        parts += ["-e", variable]
    if flag:
        parts.append(flag)
    command = shlex.join(parts)
    if has_other_variables((_TARGET,)):
        return f"{command}  # {SAME_OPTIONS}"
    return command
