# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the values of variables must be, beyond their types: one table for all roles.

Each check gets a value that has its type, and what is known of the run. It returns the end of a
sentence about the variable, empty if nothing is wrong.
"""

from __future__ import annotations

import dataclasses as d
import functools
import os
import re
import typing as t
from collections.abc import Mapping

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.folders import explain_shared_folder
from ...module_utils._common.text import make_printable
from ...module_utils._common.times import parse_duration
from ...module_utils._core.run.pack import find_packs
from .fencing import read_fenced
from .paths import build_host_path, choose_document
from .variable_text import show_value

# Lists that say what is examined, changed or restored. An empty one means everything.
SCOPE_LISTS = (
    "aggregates",
    "availability_zones",
    "cells",
    "consumers",
    "hosts",
    "kinds",
    "projects",
    "restore_consumers",
    "restore_providers",
)

_DAY = 86_400
_CENTURY = 36_525 * _DAY
_SHARD = re.compile(r"\s*([0-9]{1,4})/([0-9]{1,4})\s*")


@d.dataclass(frozen=True)
class Run:
    """What the checks may know of a run.

    entry_point: the entry point of the role.
    host: the inventory host.
    has_files: whether the files of the host are those of this machine.
    is_check: whether it changes nothing, as in check mode.
    is_one_cloud: whether the hosts of the play are not clouds.
    is_play: whether the variables are those of a playbook, before a role runs on each of its hosts.
    play_hosts: the number of hosts of the play.
    limit: what follows `--limit`.
    """

    entry_point: str = "main"
    host: str = "localhost"
    has_files: bool = False
    is_check: bool = False
    is_one_cloud: bool = False
    is_play: bool = False
    play_hosts: int = 1
    limit: str = ""


Check = t.Callable[[t.Any, Run], str]


def _check_number(value: float, _run: Run, lowest: float, highest: float | None = None) -> str:
    if value >= lowest and (highest is None or value <= highest):
        return ""
    if highest is None:
        return f"is {value}, and must be {lowest} or more."
    return f"is {value}, and must be from {lowest} to {highest}."


def _check_fraction(value: float, _run: Run) -> str:
    if 0 <= value <= 1:
        return ""
    fault = f"is {value:g}, and must be a fraction from 0 to 1"
    if 1 < value <= 100:
        return f"{fault}: if {value:g} % is meant, write {value / 100:g}."
    return f"{fault}: write 0.1 for 10 %."


def _check_duration(value: str, _run: Run) -> str:
    try:
        seconds = parse_duration(value)
    except InvalidInput:
        return (
            f"is {show_value(value)}, which is not a duration: "
            "write seconds or a number with s, m, h or d, such as 90s, 15m, 24h or 7d."
        )
    if seconds > _CENTURY:
        return f"is {show_value(value)}, which is more than 100 years."
    return ""


def _check_duration_with_unit(value: str, run: Run) -> str:
    """Return why a duration is refused; a number alone is, where days taken for seconds delete."""
    if value.strip().isdigit():
        return f"is {show_value(value)}, which has no unit: write {value.strip()}d for days."
    return _check_duration(value, run)


def _require_text(value: str, _run: Run) -> str:
    return "" if value.strip() else "is empty: leave it out for its default."


def _require_name(value: t.Any, _run: Run) -> str:
    # After -e it is a variable of the shell that is not set.
    is_empty = isinstance(value, str) and not value.strip()
    return "is empty: leave it out for that of the environment." if is_empty else ""


def _require_names(value: list[str], _run: Run) -> str:
    """Refuse names that are empty. An empty list means everything, and only it may say that."""
    for name in value:
        if not name.strip():
            return "has an empty name. Leave the variable out, or write [], if you mean all."
        if name != name.strip():
            return f"has {show_value(name)}: leave out the spaces around the name."
    return ""


def _check_cell_hosts(value: Mapping[t.Any, t.Any], _run: Run) -> str:
    for cell, hosts in value.items():
        if not isinstance(cell, str) or not cell.strip():
            return f"has {show_value(cell)} for the name of a cell: put a name in quotes."
        of_cell = f"for cell {show_value(cell)}"
        if not isinstance(hosts, list):
            return f"has {show_value(hosts)} {of_cell}, which is not a list of hosts."
        if not hosts:
            return f"has no hosts {of_cell}: leave the cell out."
        for host in hosts:
            if not isinstance(host, str) or not host.strip() or host != host.strip():
                return (
                    f"has {show_value(host)} {of_cell}, which is not the name of a host: put it in "
                    "quotes, without spaces."
                )
    return ""


def _check_shard(value: str, _run: Run) -> str:
    match = _SHARD.fullmatch(value)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return ""
    return (
        f"is {show_value(value)}, which is not a shard: write its number and how many shards there "
        "are, such as 2/8, or leave it out to read the whole cloud."
    )


def _check_output_dir(value: str, run: Run) -> str:
    if not run.has_files:
        return ""
    # The folder is created with all its parents.
    path = build_host_path(value)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return f"is {show_value(value)}, but {path} is a file and not a folder."
    if not os.access(path, os.W_OK | os.X_OK):
        return f"is {show_value(value)}, but you may not write in {path}."
    problem = explain_shared_folder(os.path.expanduser(value))
    if problem:
        return (
            f"is {show_value(value)}, and {problem}: make yourself its owner, with mode 0700, or "
            "name another folder."
        )
    return ""


def _check_metrics_path(value: str, run: Run) -> str:
    if not value:
        return ""
    if not value.endswith(".prom"):
        return (
            f"is {show_value(value)}, and must end in .prom, because node_exporter reads no other "
            "files."
        )
    folder = os.path.dirname(build_host_path(value))
    if run.has_files and not os.path.isdir(folder):
        return f"is {show_value(value)}, but the folder {folder} does not exist: create it."
    return _check_link(value, run)


def _check_file_to_write(value: str, run: Run) -> str:
    if value and run.has_files and os.path.isdir(build_host_path(value)):
        return f"is {show_value(value)}, which is a folder and not a file."
    return _check_link(value, run)


def _check_link(value: str, run: Run) -> str:
    # Another user may have put it there, to have another file overwritten.
    if value and run.has_files and os.path.islink(os.path.expanduser(value)):
        return f"is {show_value(value)}, which is a symbolic link: name the file itself."
    return ""


def _check_file_to_read(value: str, run: Run) -> str:
    # A relative path starts in another folder for a module.
    path = os.path.expanduser(value)
    if run.has_files and os.path.isabs(path) and not os.path.isfile(path):
        return f"is {show_value(value)}, and there is no such file."
    return ""


def _check_url(value: str, _run: Run) -> str:
    # Its value is not shown: the address of a webhook is a password.
    if not value or re.match(r"https?://[^/]", value):
        return ""
    return "is not an address: it must begin with https:// or http://."


def _is_path(value: t.Any) -> bool:
    """Return whether a journal is certainly meant as a path, and not as all artifacts of a job."""
    if not isinstance(value, str) or find_packs(value):
        return False
    path = value.strip()
    return not path.startswith(("[", "{")) and "\n" not in path


def _check_guests(value: list[t.Any], run: Run) -> str:
    for entry in value:
        # Any other entry is a result itself.
        if not isinstance(entry, str) or not run.has_files:
            continue
        if not os.path.isfile(build_host_path(entry.strip())):
            return f"names {show_value(entry)}, and there is no such file."
    return ""


def _check_moves_journal(value: t.Any, run: Run) -> str:
    if value and run.has_files and _is_path(value) and not os.path.isfile(build_host_path(value)):
        return f"is {show_value(value)}, and there is no such file."
    return ""


def _check_fenced(value: t.Any, _run: Run) -> str:
    try:
        read_fenced(value)
    except InvalidInput as error:
        return str(error)
    return ""


def _check_journal(value: t.Any, run: Run) -> str:
    if run.entry_point != "restore":
        return ""
    journal = choose_document(value, run.host)
    if not journal:
        if isinstance(value, Mapping):
            return f"has no journal for the host {run.host}."
        return "is empty: set it to the path of the journal to restore from, or to its records."
    if run.has_files and _is_path(value) and not os.path.exists(journal):
        return (
            f"is {show_value(value)}, and there is no file {make_printable(journal)}: name the "
            "journal of the run that you want to undo."
        )
    return ""


def _at_least(lowest: float, highest: float | None = None) -> Check:
    return functools.partial(_check_number, lowest=lowest, highest=highest)


# The checks of the variables, by their names without the prefix of the role.
BOUNDS: Mapping[str, Check] = {
    # Numbers
    "api_timeout": _at_least(1, _DAY),
    "delay": _at_least(0, _DAY),
    "lock_timeout": _at_least(0, _DAY),
    "max_changes": _at_least(0),
    "max_failures": _at_least(1),
    "max_hosts": _at_least(1),
    "max_share": _check_fraction,
    "min_sightings": _at_least(1),
    # Nova itself moves only a few servers of a host at a time.
    "parallel": _at_least(1, 100),
    "progress_every": _at_least(0),
    "retries": _at_least(0),
    "stop_timeout": _at_least(1, _DAY),
    # Durations
    "full_every": _check_duration,
    "log_since": _check_duration,
    "min_age": _check_duration,
    "move_timeout": _check_duration,
    "purge_age": _check_duration_with_unit,
    "quiet": _check_duration,
    "stale_min_age": _check_duration,
    "stuck_min_age": _check_duration,
    "unconfirmed_min_age": _check_duration,
    "unknown_min_age": _check_duration,
    # What is examined, changed or restored. An empty name would mean everything.
    **dict.fromkeys(SCOPE_LISTS, _require_names),
    "cell_hosts": _check_cell_hosts,
    "fenced": _check_fenced,
    "shard": _check_shard,
    # Files
    "ca_cert": _check_file_to_read,
    "client_cert": _check_file_to_read,
    "client_key": _check_file_to_read,
    "guests": _check_guests,
    "journal": _check_journal,
    "metrics_path": _check_metrics_path,
    "moves_journal": _check_moves_journal,
    "output_dir": _check_output_dir,
    "state": _check_file_to_write,
    # Names
    **dict.fromkeys(("cloud", "region_name"), _require_name),
    "notify_url": _check_url,
    "quarantine_path": _require_text,
}

# What has a unit when it is written without doubt.
DURATIONS = tuple(f"_{short}" for short, check in BOUNDS.items() if check is _check_duration)
