# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines of a drain: what to type next."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.osops.placement.plugins.plugin_utils._hosts.drain_ending import (
    format_drain_ending,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.proposed_commands import (
    ENVIRONMENT,
)

ROOT = Path(__file__).parents[5]
TARGET = "host_decommission_target=compute-17"
DRAIN = f"ansible-playbook osops.placement.drain_host -e {TARGET}"
BACK = f"{DRAIN} -e host_decommission_return=true -e host_decommission_move_back=true"
DECOMMISSION = f"ansible-playbook osops.placement.decommission_host -e {TARGET} --check"
JOURNAL = "/out/moves-1.jsonl"
FULL = {"empty": False, "changed": True, "journal": JOURNAL}


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Set the command line of Ansible; without a call, only the host was named."""
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)

    def started(playbook: str, extra_vars: tuple[str, ...] = (TARGET,)) -> None:
        options = ImmutableDict(args=(playbook,), extra_vars=extra_vars)
        monkeypatch.setattr(context, "CLIARGS", options)

    started("osops.placement.drain_host")
    return started


def end(result: dict[str, t.Any], check_mode: bool = False) -> list[str]:
    return format_drain_ending(result, "compute-17", check_mode)


def test_servers_that_are_left_are_drained_next() -> None:
    assert end(FULL) == ["", f"Journal: {JOURNAL}", f"Undo:    {BACK}", f"Next:    {DRAIN}"]


def test_empty_host_is_decommissioned_next() -> None:
    assert end({**FULL, "empty": True, "journal": None}) == ["", f"Next:    {DECOMMISSION}"]


def test_prediction_leads_to_the_drain_unless_nothing_would_move() -> None:
    predicted = {**FULL, "journal": None}
    said = "Check mode: nothing was changed."

    assert end(predicted, check_mode=True) == ["", said, f"Next:    {DRAIN}"]
    assert end({**predicted, "changed": False}, check_mode=True) == ["", said]


def test_return_needs_no_command() -> None:
    back = {"departures": [], "changed": True, "journal": JOURNAL}

    assert end(back) == ["", f"Journal: {JOURNAL}"]


def test_other_options_are_repeated(start: t.Callable[..., None]) -> None:
    start("osops.placement.drain_host", (f"{TARGET},b host_decommission_cold=active", "@file"))

    assert end(FULL)[-1] == (
        "Next:    ansible-playbook osops.placement.drain_host -e host_decommission_cold=active "
        f"-e @file -e {TARGET}"
    )
    start("osops.placement.drain_host", (TARGET, "host_decommission_auth=secret"))
    assert end(FULL)[-1].startswith(f"Next:    run osops.placement.drain_host with {TARGET}, and ")


def test_path_of_a_playbook_is_kept(start: t.Callable[..., None]) -> None:
    start(str(ROOT / "playbooks" / "drain_host.yml"))

    (_empty, last) = end({**FULL, "empty": True, "journal": ""})

    assert last.startswith(f"Next:    ansible-playbook {ROOT}/playbooks/decommission_host.yml -e ")


def test_stage_of_a_decommissioning_is_followed_by_the_others(
    start: t.Callable[..., None],
) -> None:
    start("osops.placement.decommission_host", (TARGET, "host_decommission_stages=drain"))

    assert end(FULL) == ["", f"Journal: {JOURNAL}", f"Undo:    {BACK}"]


def test_job_of_awx_shows_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")

    assert end(FULL) == ["", f"Journal: {JOURNAL}"]


def test_name_of_a_host_is_quoted() -> None:
    lines = format_drain_ending(FULL, "a; rm -rf b", check_mode=False)

    assert lines[-1].endswith("""-e '{"host_decommission_target": "a; rm -rf b"}'""")
