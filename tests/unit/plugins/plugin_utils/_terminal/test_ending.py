# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last lines of a run."""

from __future__ import annotations

import typing as t

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.ending import (
    Ending,
    format_ending,
    format_undo,
)

PLAN, JOURNAL = "/out/plan.json", "/out/journal-1.jsonl"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Set the command line of Ansible; without a call, it is that of a playbook by its name."""
    monkeypatch.delenv("AWX_PRIVATE_DATA_DIR", raising=False)

    def start(playbook: str, extra_vars: tuple[str, ...] = ()) -> None:
        options = ImmutableDict(args=(playbook,), extra_vars=extra_vars)
        monkeypatch.setattr(context, "CLIARGS", options)

    start("osops.placement.cleanup_orphans")
    return start


def _next(**parts: t.Any) -> str:
    lines = format_ending(Ending({}, **parts))
    return next((line for line in lines if line.startswith("Next:")), "").partition(":")[2].strip()


def test_check_leads_to_exactly_the_plan_that_was_written() -> None:
    assert format_ending(
        Ending({"csv": "/c", "html": "/r.html"}, findings="/f", plan=PLAN, check_mode=True)
    ) == [
        "Report:  /r.html",
        "Next:    ansible-playbook osops.placement.cleanup_orphans "
        "-e orphan_cleanup_plan=/out/plan.json",
    ]


def test_detection_leads_to_a_check() -> None:
    assert _next(plan=PLAN, detects_only=True) == (
        "ansible-playbook osops.placement.cleanup_orphans --check"
    )


def test_changes_can_be_undone() -> None:
    assert format_ending(Ending({"markdown": "/r.md"}, journal=JOURNAL)) == [
        "Report:  /r.md",
        f"Journal: {JOURNAL}",
        "Undo:    ansible-playbook osops.placement.restore_allocations "
        f"-e orphan_cleanup_journal={JOURNAL}",
    ]


def test_nothing_to_do_leads_to_nothing() -> None:
    assert format_ending(Ending({}, findings="/f", check_mode=True)) == ["Report:  /f"]


def test_failure_says_what_to_do_instead_of_the_next_command() -> None:
    assert _next(plan=PLAN, failed=True, check_mode=True).startswith("read the message below")


@pytest.mark.parametrize(
    ("playbook", "command"),
    [
        ("playbooks/cleanup_orphans.yml", "playbooks/cleanup_orphans.yml"),
        ("/a b/cleanup_orphans.yml", "'/a b/cleanup_orphans.yml'"),
        ("playbooks/detect_orphans.yml", "playbooks/cleanup_orphans.yml"),
        ("site.yml", "site.yml"),
        ("osops.placement.detect_orphans", "osops.placement.cleanup_orphans"),
    ],
)
def test_command_names_the_playbook_as_the_user_does(
    started: t.Callable[..., None], playbook: str, command: str
) -> None:
    started(playbook)

    assert _next(plan=PLAN, check_mode=True) == (
        f"ansible-playbook {command} -e orphan_cleanup_plan=/out/plan.json"
    )


def test_options_are_not_repeated_because_they_can_be_secret(
    started: t.Callable[..., None],
) -> None:
    started("osops.placement.cleanup_orphans", ("orphan_cleanup_auth={password: secret}",))
    shown = _next(plan=PLAN, check_mode=True)

    assert "secret" not in shown and shown.endswith("  # and the other options of this run")


def test_a_path_is_quoted_and_a_hostile_one_is_escaped() -> None:
    assert "-e 'orphan_cleanup_plan=/a b/p\\x1b'" in _next(plan="/a b/p\x1b", check_mode=True)


def test_awx_shows_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")

    assert format_ending(Ending({"html": "/r"}, plan=PLAN, journal=JOURNAL, check_mode=True)) == [
        "Report:  /r",
        f"Journal: {JOURNAL}",
    ]


def test_only_a_remediation_is_undone_with_its_journal() -> None:
    removed: t.Any = {"outcomes": [{"outcome": "removed"}]}
    restored: t.Any = {"outcomes": [{"outcome": "restored", "write": None}]}

    assert len(format_undo(removed, JOURNAL)) == 1
    assert format_undo(restored, JOURNAL) == format_undo(removed, "") == []
