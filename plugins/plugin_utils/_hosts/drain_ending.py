# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines of a drain: its journal, how to undo it, and what to type next."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._report.proposed_commands import Context, build_command, format_fields
from .._variables.play_hosts import get_started_name

_DRAIN, _DECOMMISSION = "drain_host", "decommission_host"
_PREFIX = "host_decommission_"


def format_drain_ending(result: Mapping[str, t.Any], host: str, check_mode: bool) -> list[str]:
    """Return the last lines of a drain, or of its prediction.

    result: as host_drain returned it. check_mode: whether the user wanted a prediction only.
    """
    journal = result.get("journal") or ""
    fields = [("Journal", journal)]
    # A return needs no undoing: the host can be drained again.
    is_return = "departures" in result
    if journal and not is_return:
        back = {f"{_PREFIX}return": "true", f"{_PREFIX}move_back": "true"}
        fields.append(("Undo", _build_command(_DRAIN, host, back)))
    # As a stage of another playbook, it is followed by others.
    if not is_return and get_started_name() != _DECOMMISSION:
        fields.append(("Next", _suggest_next(result, host, check_mode)))
    lines = format_fields(fields)
    if check_mode:
        lines.insert(0, "Check mode: nothing was changed.")
    return ["", *lines] if lines else []


def _suggest_next(result: Mapping[str, t.Any], host: str, check_mode: bool) -> str:
    if result["empty"]:
        return _build_command(_DECOMMISSION, host, {}, check=True)
    # A prediction without a change would be followed by the same run again.
    if not check_mode or result["changed"]:
        return _build_command(_DRAIN, host, {})
    return ""


def _build_command(
    playbook: str, host: str, variables: Mapping[str, str], check: bool = False
) -> str:
    """Return the command that runs a playbook of the collection for a host."""
    named = {f"{_PREFIX}target": host, **variables}
    # Only the playbook decommission_host has stages.
    stages = [f"{_PREFIX}stages"]
    return build_command(playbook, named, Context(), without=stages, check=check)
