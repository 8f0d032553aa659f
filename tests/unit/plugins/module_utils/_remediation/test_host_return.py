# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which changes of its service the return of a host takes back."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._hosts.move_progress import Attempt
from ansible_collections.osops.placement.plugins.module_utils._models.draining import (
    GONE,
    LEFT,
    LIVE,
    MOVED,
    DrainSettings,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.drain import (
    DrainOptions,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.host_return import (
    HostReturn,
    build_return,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.move_journal import (
    DRAIN,
    MoveHistory,
    MoveJournal,
    find_move_journals,
    read_history,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.move_run import (
    RunLimits,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.drain_world import (
    SOURCE,
    build_service,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.moving_nova import (
    MovingNova,
)

if t.TYPE_CHECKING:
    from pathlib import Path

NOVA = "http://nova/"
REASON = "drained with osops.placement"
DISABLED = {"status": "disabled", "disabled_reason": REASON}


def _record(tmp_path: Path, *changes: tuple[dict[str, t.Any], dict[str, t.Any]]) -> MoveHistory:
    """Return the history of drains that found the service like this and changed that."""
    journal = MoveJournal(str(tmp_path), NOVA, SOURCE)
    for before, body in changes:
        journal.record_service(build_service(SOURCE, **before), body)
    return read_history(find_move_journals(str(tmp_path)), NOVA, SOURCE)


@pytest.mark.parametrize(
    ("now", "body"),
    [
        (DISABLED, {"status": "enabled"}),
        ({**DISABLED, "forced_down": True}, {"status": "enabled", "forced_down": False}),
        ({**DISABLED, "disabled_reason": "bad RAM"}, {}),
        ({**DISABLED, "disabled_reason": "bad RAM", "forced_down": True}, {}),
        ({**DISABLED, "id": "the one of the host that was deployed again"}, {}),
        ({}, {}),
        ({"forced_down": True}, {}),
    ],
)
def test_only_what_drains_changed_and_nobody_since_is_taken_back(
    tmp_path: Path, now: dict[str, t.Any], body: dict[str, t.Any]
) -> None:
    history = _record(tmp_path, ({}, DISABLED), (DISABLED, {"forced_down": True}))

    assert build_return(build_service(SOURCE, **now), history, REASON) == body


def test_a_service_that_somebody_else_forced_down_stays_so(tmp_path: Path) -> None:
    """An operator returned the host of an earlier drain, which had forced it down, by hand."""
    fenced = {**DISABLED, "forced_down": True}
    history = _record(tmp_path, ({}, fenced), ({}, DISABLED))

    assert build_return(build_service(SOURCE, **fenced), history, REASON) == {"status": "enabled"}


def test_service_that_was_disabled_before_the_drain_stays_disabled(tmp_path: Path) -> None:
    before = {**DISABLED, "disabled_reason": "bad RAM"}
    history = _record(tmp_path, (before, {"forced_down": True}))
    now = build_service(SOURCE, **before, forced_down=True)

    assert build_return(now, history, REASON) == {"forced_down": False}


@pytest.mark.parametrize(
    ("reason", "body"), [(REASON, {"status": "enabled"}), ("bad RAM", {}), (None, {})]
)
def test_reason_alone_counts_without_a_journal(
    tmp_path: Path, reason: str | None, body: dict[str, t.Any]
) -> None:
    now = build_service(SOURCE, status="disabled", disabled_reason=reason)

    assert build_return(now, _record(tmp_path), REASON) == body


def _return(nova: MovingNova, tmp_path: Path, check: bool) -> dict[str, t.Any]:
    """Return the source of a drain that moved each of its servers to the second host."""
    session = nova.session()
    endpoint = session.compute.endpoint
    journal = MoveJournal(str(tmp_path), endpoint, SOURCE)
    journal.record_service(build_service(SOURCE), {**DISABLED, "forced_down": True})
    for uuid in nova.servers:
        attempt = Attempt(uuid, uuid, LIVE, SOURCE)
        journal.record_request(attempt, DRAIN)
        journal.record_end(attempt, MOVED, "compute-2", "")
    history = read_history(find_move_journals(str(tmp_path)), endpoint, SOURCE)
    options = DrainOptions(SOURCE, REASON, DrainSettings(), RunLimits(1, 0, 5, 600))
    returning = HostReturn(session, options, move_back=True)
    if check:
        return returning.predict(journal, history)
    return returning.run(journal, history, str)


def _place(nova: MovingNova, host: str) -> None:
    nova.servers["uuid-of-web"]["OS-EXT-SRV-ATTR:host"] = host


# By what happened since the drain: how, and what becomes of the server; None if nothing does.
SINCE: dict[str, tuple[t.Callable[[MovingNova], t.Any], str | None]] = {
    "nothing": (lambda nova: None, MOVED),
    "it was moved back": (lambda nova: _place(nova, SOURCE), None),
    "it was moved on": (lambda nova: _place(nova, "compute-3"), GONE),
    "it was suspended": (lambda nova: nova.servers["uuid-of-web"].update(status="SUSPENDED"), LEFT),
    "its host went down": (lambda nova: nova.services["compute-2"].update(state="down"), LEFT),
    "nova-compute was not started": (lambda nova: nova.services[SOURCE].update(state="down"), LEFT),
    "somebody disabled the host": (
        lambda nova: nova.services[SOURCE].update(status="disabled", disabled_reason="bad RAM"),
        LEFT,
    ),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", SINCE)
def test_each_server_is_predicted_and_reported_as_it_is(
    tmp_path: Path, name: str, check: bool
) -> None:
    nova = MovingNova()
    happens, outcome = SINCE[name]
    nova.boot("web", host="compute-2")
    # The host was enabled by hand.
    happens(nova)

    result = _return(nova, tmp_path, check)

    moves = [entry["server"] for entry in result["departures"]]
    ends = {entry["uuid"]: entry["outcome"] for entry in result["outcomes"]}
    assert moves == (["uuid-of-web"] if outcome == MOVED else [])
    if outcome is None or (check and outcome == MOVED):
        assert ends == {}
    else:
        assert ends == {"uuid-of-web": outcome}
    assert bool(nova.writes) == (outcome == MOVED and not check)
    assert "fence" not in str(result)
    assert ("Not moved back: uuid-of-web" in result["msg"]) == (outcome == LEFT and not check)
