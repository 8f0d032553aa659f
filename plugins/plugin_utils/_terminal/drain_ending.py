# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The last lines of a drain: its journal, how to undo it, and what to type next."""

from __future__ import annotations

import os
import shlex
import typing as t

from ansible import context

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Mapping

_COLLECTION = "osops.placement"
_DRAIN, _DECOMMISSION = "drain_host", "decommission_host"
_TARGET = "host_decommission_target"
_RETURN = ("host_decommission_return=true", "host_decommission_move_back=true")
_SAME_OPTIONS = "and the other options of this run"

# AWX sets it in its jobs, where nobody types a command.
_AWX = "AWX_PRIVATE_DATA_DIR"


def format_drain_ending(result: Mapping[str, t.Any], host: str, check_mode: bool) -> list[str]:
    """Return the last lines of a drain, or of its prediction.

    result: as host_drain returned it. check_mode: whether the user wanted a prediction only.
    """
    lines = []
    if check_mode:
        lines.append("Check mode: nothing was changed.")
    for label, text in _list_fields(result, host, check_mode):
        if text:
            # Neither a path nor a command is broken: they are there to be copied.
            lines.append(f"{label + ':':8} {make_printable(text)}")
    if lines:
        return ["", *lines]
    return []


def _list_fields(
    result: Mapping[str, t.Any], host: str, check_mode: bool
) -> Iterator[tuple[str, str]]:
    journal = result.get("journal") or ""
    yield "Journal", journal
    # A return needs no undoing: the host can be drained again.
    if _AWX in os.environ or "departures" in result:
        return
    if journal:
        yield "Undo", _build_command(_DRAIN, host, variables=_RETURN)
    # As a stage of another playbook, it is followed by others.
    if _DECOMMISSION not in _get_started():
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
    parts = ["ansible-playbook", _name_playbook(playbook)]
    for variable in (f"{_TARGET}={host}", *variables):
        parts += ["-e", variable]
    if flag:
        parts.append(flag)
    command = shlex.join(parts)
    if _has_other_options():
        return f"{command}  # {_SAME_OPTIONS}"
    return command


def _has_other_options() -> bool:
    """Return whether the user has set more variables than the host.

    They can contain passwords, so they are not repeated.
    """
    extra = [str(text) for text in context.CLIARGS.get("extra_vars") or ()]
    # A text can set several variables.
    return any(not text.startswith(f"{_TARGET}=") or len(text.split()) > 1 for text in extra)


def _name_playbook(playbook: str) -> str:
    """Return the name of a playbook, as a path if the user gave this one as a path."""
    started = _get_started()
    for name in (_DRAIN, _DECOMMISSION):
        if name in started:
            return started.replace(name, playbook)
    return f"{_COLLECTION}.{playbook}"


def _get_started() -> str:
    """Return the name of the playbook that the user has started."""
    return str((context.CLIARGS.get("args") or ("",))[0])
