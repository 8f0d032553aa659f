# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drains a host or returns it to service, with what the journals of moves say about it."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Mapping

from .._common.errors import InvalidInput
from .._common.json_files import require_private_folder
from .._core.clients.session import CloudContext
from .._core.options.policy import ExclusionOptions, parse_policy
from .._core.run.lock import acquire_lock
from .._core.run.signals import watch_for_stop
from .drain import DrainOptions, HostDrain, HostReturn
from .draining import DrainSettings
from .host_decommission import MoveOptions
from .move_journal import MoveHistory, MoveJournal, find_move_journals, read_history
from .move_run import RunLimits


def drain_or_return(context: CloudContext) -> dict[str, t.Any]:
    """Drain the host or return it, or say what that would do."""
    given, folder = context.options, context.options["output_dir"]
    options = parse_options(given)
    require_private_folder(folder)
    session = context.connect()
    endpoint = session.compute.endpoint
    journal = MoveJournal(folder, endpoint, options.host)
    runner: HostDrain | HostReturn = HostDrain(session, options)
    if given["state"] == "returned":
        runner = HostReturn(session, options)
    if context.check_mode:
        history = _read_history(endpoint, given)
        return {**runner.predict(journal, history), "journal": None, "packed": ""}
    # A drain can take hours, so it keeps no run waiting that changes allocations.
    subject = f"{endpoint} (host {options.host})"
    with watch_for_stop() as stopped, acquire_lock(subject, given["lock_timeout"], stopped):
        # Read under the lock: another run may have begun moves meanwhile.
        result = runner.run(journal, _read_history(endpoint, given), stopped)
    path = os.path.abspath(journal.path) if journal.written else None
    return {**result, "journal": path, "packed": _pack_history(context, endpoint)}


def parse_options(given: Mapping[str, t.Any]) -> DrainOptions:
    """Return what the options ask for. Raises InvalidInput for numbers that make no sense."""
    moves = MoveOptions.parse(given)
    if given["journal"] and given["state"] != "returned":
        raise InvalidInput("journal is only for state=returned: state=drained reads output_dir.")
    policy = parse_policy({name: given[name] for name in ExclusionOptions.list_options()})
    notes = policy.exclusion_notes
    return DrainOptions(
        host=given["host"],
        reason=given["disabled_reason"],
        settings=DrainSettings(
            given["fenced"],
            moves["cold"] == "active",
            {name: notes.get(name, "") for name in sorted(policy.exclude_consumers)},
        ),
        limits=RunLimits(
            parallel=moves["parallel"],
            retries=moves["retries"],
            max_failures=moves["max_failures"],
            timeout=moves["move_timeout"],
        ),
        excluded_hosts={name: notes.get(name, "") for name in sorted(policy.exclude_providers)},
        move_back=given["move_back"],
    )


def _read_history(endpoint: str, given: Mapping[str, t.Any]) -> MoveHistory:
    journal, host = given["journal"], given["host"]
    journals = [journal] if journal else find_move_journals(given["output_dir"])
    history = read_history(journals, endpoint, host)
    needs_records = given["state"] == "returned" and (journal or given["move_back"])
    if needs_records and not history.records:
        raise InvalidInput(
            f"The journals have nothing about {host}, and without the journal of its drain "
            "nobody knows which servers to move back: nothing was changed. Set journal "
            "(host_decommission_journal) to that of the drain."
        )
    return history


def _pack_history(context: CloudContext, endpoint: str) -> str:
    """Return what the journals say about the host, as following jobs get it."""
    folder, host = context.options["output_dir"], context.options["host"]
    try:
        history = read_history(find_move_journals(folder), endpoint, host)
    except InvalidInput as error:
        # What became of the servers must be reported all the same.
        context.warn(f"The journals of moves cannot be passed on to other jobs. {error}")
        return ""
    packed = history.pack() if history.records else ""
    if history.records and not packed:
        context.warn(
            f"The journals of moves in {folder} are too long to be passed on to other jobs: keep "
            "them, because no server is moved back without them."
        )
    return packed
