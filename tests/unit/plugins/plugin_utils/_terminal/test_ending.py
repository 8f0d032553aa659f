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
    NextDocument,
    UndoDocument,
    format_commands,
    format_ending,
    format_journals,
    format_undo,
)

PLAN, JOURNAL = "/out/plan.json", "/out/journal-1.jsonl"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Set the command line of Ansible; without a call, it is that of a playbook by its name."""
    monkeypatch.delenv("AWX_PRIVATE_DATA_DIR", raising=False)

    def start(playbook: str, extra_vars: tuple[str, ...] = (), **others: t.Any) -> None:
        options = ImmutableDict(args=(playbook,), extra_vars=extra_vars, **others)
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
    assert _next(plan=PLAN, failed=True, check_mode=True).startswith(
        "solve the cause that the message names"
    )


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

    # With the variables of its scope, the run of a plan would be refused.
    options = "and the other options of this run, but not its hosts, consumers, projects or kinds"
    assert "secret" not in shown and shown.endswith(f"  # {options}")


def test_a_path_that_ansible_would_split_is_json_and_a_hostile_one_is_escaped() -> None:
    shown = _next(plan="/a b/p\x1b", check_mode=True)

    assert shown.endswith("""-e '{"orphan_cleanup_plan": "/a b/p\\u001b"}'""")


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


def _follow(check: bool = False, **variables: t.Any) -> str:
    following: NextDocument = {
        "playbook": "decommission_host",
        "variables": variables or {"host_decommission_target": "compute-17"},
        "check": check,
    }
    return "".join(format_commands(None, following))


FOLLOWED = "Next:    ansible-playbook osops.placement.decommission_host "


def test_next_command_is_the_playbook_of_the_run_with_its_variables(
    started: t.Callable[..., None],
) -> None:
    started("osops.placement.decommission_host")

    assert _follow() == f"{FOLLOWED}-e host_decommission_target=compute-17"
    assert _follow(check=True, a="x", b=["y", "z"]) == (
        FOLLOWED + """-e a=x -e '{"b": ["y", "z"]}' --check"""
    )
    # As NAME=VALUE, Ansible would read a template or two variables.
    assert _follow(a="{{ x }}", b="y z") == (
        FOLLOWED + """-e '{"a": "{{ x }}"}' -e '{"b": "y z"}'"""
    )


@pytest.mark.parametrize(
    ("playbook", "command"),
    [
        ("/a b/decommission_host.yml", "'/a b/decommission_host.yml' "),
        ("decommission_host.yaml", "decommission_host.yaml "),
        # A variable on the command line would be the target of all of its hosts.
        ("site.yml", ""),
        ("all_decommission_hosts.yml", ""),
        ("osops.placement.cleanup_orphans", ""),
        ("", ""),
    ],
)
def test_next_command_is_only_for_the_playbook_that_was_started(
    started: t.Callable[..., None], playbook: str, command: str
) -> None:
    started(playbook)

    shown = _follow()

    assert shown.partition("ansible-playbook ")[2].partition("-e ")[0] == command
    assert bool(shown) == bool(command)


@pytest.mark.parametrize(
    ("given", "others"),
    [
        ((), False),
        (("host_decommission_target=compute-17",), False),
        (("host_decommission_target=compute-17 x=1",), True),
        (("host_decommission_target=compute-17", "x=secret"), True),
        (("@secrets.yml",), True),
        (('{"host_decommission_target": "compute-17", "x": "secret"}',), True),
    ],
)
def test_other_options_are_mentioned_only_if_there_are_any(
    started: t.Callable[..., None], given: tuple[str, ...], others: bool
) -> None:
    started("osops.placement.decommission_host", given)

    shown = _follow()

    assert "secret" not in shown
    assert shown.endswith("  # and the other options of this run") == others


def test_commands_have_the_inventories_and_the_limit_of_the_run(
    started: t.Callable[..., None],
) -> None:
    started(
        "osops.placement.decommission_host", inventory=("/a b/hosts", "c,"), subset="compute-1*"
    )

    assert _follow(a="x") == (
        "Next:    ansible-playbook -i '/a b/hosts' -i c, --limit 'compute-1*' "
        "osops.placement.decommission_host -e a=x"
    )
    assert _undo().startswith("Undo:    ansible -i '/a b/hosts' -i c, compute-17 -m ")
    started("osops.placement.decommission_host", inventory=("/etc/ansible/hosts",), subset=None)
    assert _follow(a="x") == f"{FOLLOWED}-e a=x"


def _undo(**changes: t.Any) -> str:
    undo: UndoDocument = {
        "host": "compute-17",
        "module": "hypervisor_guest",
        "arguments": {"uuid": "u", "directory": "present"},
        "become": False,
        "others": 0,
    }
    undo |= t.cast("UndoDocument", changes)
    return "".join(format_commands(undo, None))


def test_a_module_undoes_a_change_on_a_host() -> None:
    command = "Undo:    ansible compute-17 -m osops.placement.hypervisor_guest -a"

    assert _undo() == f"{command} 'uuid=u directory=present'"
    assert _undo(others=2).endswith("  # and 2 more, each with its own host and uuid")
    assert " compute-17 -b -m " in _undo(become=True)
    assert _undo(arguments={"virsh": "docker exec virsh"}) == (
        command + """ '{"virsh": "docker exec virsh"}'"""
    )


def test_each_journal_has_its_undo() -> None:
    lines = format_journals([JOURNAL, "/out/journal-2.jsonl"])

    assert [line.partition(":")[0] for line in lines] == ["Journal", "Undo"] * 2
    assert lines[3].endswith("-e orphan_cleanup_journal=/out/journal-2.jsonl")


def test_awx_shows_no_commands_of_hosts_either(
    started: t.Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    started("osops.placement.decommission_host")
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")

    assert _follow() == _undo() == ""
    assert format_journals([JOURNAL]) == [f"Journal: {JOURNAL}"]
