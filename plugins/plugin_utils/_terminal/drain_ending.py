# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The last lines of a drain: its journal, how to undo it, and what to type next."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.plugin_utils._play_hosts import get_started_name
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.commands import (
    Context,
    build_command,
    format_fields,
    is_awx_job,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Mapping

_DRAIN, _DECOMMISSION = "drain_host", "decommission_host"
_PREFIX = "host_decommission_"
# Only the playbook decommission_host has stages.
_STAGES = f"{_PREFIX}stages"


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
        back = {f"{_PREFIX}return": "true", f"{_PREFIX}move_back": "true"}
        yield "Undo", _build_command(_DRAIN, host, back)
    # As a stage of another playbook, it is followed by others.
    if get_started_name() != _DECOMMISSION:
        yield "Next", _suggest_next(result, host, check_mode)


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
    return build_command(playbook, named, Context(), without=(_STAGES,), check=check)
