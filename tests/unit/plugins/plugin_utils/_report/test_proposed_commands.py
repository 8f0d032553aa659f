"""The last lines of a run, with commands for a shell, whatever the names in them are."""

import itertools
import json
import shlex
import typing as t
from pathlib import Path

import pytest
from ansible import constants, context
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.splitter import parse_kv

from ......plugins.plugin_utils._report.proposed_commands import (
    ENVIRONMENT,
    LEFT_OUT,
    Context,
    Ending,
    build_cleanup,
    format_commands,
    format_ending,
    format_journals,
    format_undo,
    keep_safe,
    list_safe_hosts,
)
from ..hostile import HOSTILE

ROOT = Path(__file__).parents[5]
UNDO = "Undo:    ansible"
CLEANUP = "ansible-playbook osops.placement.cleanup_orphans"
RESTORE = "ansible-playbook osops.placement.restore_allocations"
PLAN, JOURNAL = "/out/plan.json", "/out/journal-1.jsonl"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., None]:
    """Set the command line of Ansible; without a call, it is that of a playbook by its name."""
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)

    def start(playbook: str, extra_vars: tuple[str, ...] = (), **others: t.Any) -> None:
        options = ImmutableDict(args=(playbook,), extra_vars=extra_vars, **others)
        monkeypatch.setattr(context, "CLIARGS", options)

    start("osops.placement.cleanup_orphans")
    return start


def _next(**parts: t.Any) -> str:
    lines = format_ending(Ending({}, **parts))
    return next((line for line in lines if line.startswith("Next:")), "").partition(":")[2].strip()


def test_check_leads_to_exactly_the_plan_that_was_written() -> None:
    reports = {"csv": "/c", "html": "/r.html"}

    assert format_ending(Ending(reports, findings="/f", plan=PLAN, check_mode=True)) == [
        "Report:  /r.html",
        f"Next:    {CLEANUP} -e orphan_cleanup_plan=/out/plan.json",
    ]
    assert format_ending(Ending({}, findings="/f", check_mode=True)) == ["Report:  /f"]


def test_detection_leads_to_a_check_and_a_failure_to_its_cause() -> None:
    assert _next(plan=PLAN, detects_only=True) == f"{CLEANUP} --check"
    assert _next(plan=PLAN, failed=True, check_mode=True).startswith("solve ")


def test_changes_can_be_undone() -> None:
    assert format_ending(Ending({"markdown": "/r.md"}, journal=JOURNAL)) == [
        "Report:  /r.md",
        f"Journal: {JOURNAL}",
        f"Undo:    {RESTORE} -e orphan_cleanup_journal={JOURNAL}",
    ]


@pytest.mark.parametrize(
    ("playbook", "command"),
    [
        ("playbooks/cleanup_orphans.yml", "playbooks/cleanup_orphans.yml"),
        ("/a b/cleanup_orphans.yml", "'/a b/cleanup_orphans.yml'"),
        ("site.yml", "site.yml"),
        ("osops.placement.cleanup_clouds", "osops.placement.cleanup_clouds"),
    ],
)
def test_command_names_the_playbook_as_the_user_does(
    started: t.Callable[..., None], playbook: str, command: str
) -> None:
    started(playbook)

    assert _next(plan=PLAN, check_mode=True) == (
        f"ansible-playbook {command} -e orphan_cleanup_plan=/out/plan.json"
    )


@pytest.mark.parametrize(
    ("playbook", "command"),
    [
        ("osops.placement.detect_orphans", "osops.placement.cleanup_orphans"),
        ("osops.placement.detect_clouds", "osops.placement.cleanup_clouds"),
        (f"{ROOT}/playbooks/detect_clouds.yml", f"{ROOT}/playbooks/cleanup_clouds.yml"),
        # A wrapper with the name of ours, and a playbook with variables of its own.
        ("/elsewhere/detect_orphans.yml", ""),
        ("site.yml", ""),
    ],
)
def test_detection_leads_to_the_playbook_beside_its_own(
    started: t.Callable[..., None], playbook: str, command: str
) -> None:
    started(playbook)
    shown = _next(plan=PLAN, detects_only=True)

    assert (shown == f"ansible-playbook {command} --check") == bool(command)
    assert shown.startswith("run osops.placement.cleanup_") == (not command)


def test_the_options_of_the_run_are_repeated(
    started: t.Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLOUD", "north 1")
    started(
        "osops.placement.detect_orphans",
        ("orphan_cleanup_hosts=a,b", "@my vars.yml", "{orphan_cleanup_exclude_providers: [c]}"),
        inventory=("/inv",),
        subset="localhost",
        vault_ids=("prod@prompt",),
        become=True,
    )

    assert _next(plan=PLAN, detects_only=True) == (
        "OS_CLOUD='north 1' ansible-playbook -i /inv --limit localhost --vault-id prod@prompt "
        "--become osops.placement.cleanup_orphans -e orphan_cleanup_hosts=a,b -e '@my vars.yml' "
        "-e '{orphan_cleanup_exclude_providers: [c]}' --check"
    )


@pytest.mark.parametrize(
    ("environment", "start"),
    [
        ({"OS_CLIENT_CONFIG_FILE": "/c.yaml", "OS_CLOUD": "n"}, "OS_CLIENT_CONFIG_FILE=/c.yaml OS"),
        ({"OS_CLOUD": "n", "OS_AUTH_URL": "http://k/v3"}, "OS_CLOUD=n ansible-playbook "),
        ({"OS_AUTH_URL": "http://k/v3", "OS_PASSWORD": "secret"}, "OS_AUTH_URL=http://k/v3 ansi"),
        ({"ANSIBLE_CONFIG": "/a b.cfg"}, "ANSIBLE_CONFIG='/a b.cfg' ansible-playbook "),
        ({"OS_AUTH_URL": "http://u:secret@k/v3"}, "run "),
    ],
)
def test_what_the_environment_chooses_is_repeated(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], start: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    for plan in (_next(plan=PLAN, detects_only=True), _next(plan=PLAN, check_mode=True)):
        assert plan.startswith(start) and "secret" not in plan


def test_the_inventory_of_a_configuration_is_repeated(
    started: t.Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DEFAULT_HOST_LIST", ["/inv"])
    started("osops.placement.detect_orphans", inventory=["/inv"])

    assert "ansible-playbook -i /inv osops" in _next(plan=PLAN, detects_only=True)


def test_a_plan_has_no_scope_and_all_other_options(started: t.Callable[..., None]) -> None:
    given = ("orphan_cleanup_hosts=a orphan_cleanup_min_age=2h", "{orphan_cleanup_kinds: [x]}")
    given = (*given, "{orphan_cleanup_select: '[0]'}")
    started("osops.placement.cleanup_orphans", given)
    plan = "-e orphan_cleanup_plan=/out/plan.json"

    assert _next(plan=PLAN, check_mode=True).endswith(f"-e orphan_cleanup_min_age=2h {plan}")
    # Of a file or an inventory.
    run = Context(scope=("orphan_cleanup_hosts", "orphan_cleanup_projects"))
    assert _next(plan=PLAN, check_mode=True, run=run).endswith(
        f"""-e orphan_cleanup_min_age=2h -e '{{"orphan_cleanup_projects": []}}' {plan}"""
    )
    shard = Context(scope=("orphan_cleanup_shard",))
    assert _next(plan=PLAN, check_mode=True, run=shard).startswith("run the same")


def test_one_of_several_clouds_is_its_own_limit(started: t.Callable[..., None]) -> None:
    started("osops.placement.cleanup_clouds", inventory=("/inv",), subset="eu*")
    north = Context(connection={"cloud": "north", "api_timeout": 9}, host="north")

    assert _next(plan=PLAN, check_mode=True, run=north).startswith(
        "ansible-playbook -i /inv --limit north osops.placement.cleanup_clouds -e "
    )
    (*_rest, undo) = format_ending(Ending({}, journal=JOURNAL, run=north))
    given = f"-e orphan_cleanup_cloud=north -e orphan_cleanup_journal={JOURNAL}"
    assert undo == f"Undo:    {RESTORE} {given}"
    secret = Context(connection={"auth": {"password": "secret"}}, host="north")
    (*_rest, undo) = format_ending(Ending({}, journal=JOURNAL, run=secret))
    assert "run osops.placement.restore_allocations with " in undo and "secret" not in undo


@pytest.mark.parametrize(
    "given",
    [
        *("orphan_cleanup_auth={password: secret}", "ansible_become_pass=secret"),
        *("{db: {password: secret}}", "{x: !vault secret}", 'x={"password":"secret"}'),
        *("orphan_cleanup_notify_url=https://secret", "x=https://user:secret@host/"),
        *("api_token=secret", "os_pwd=secret", "apikey=secret", "x=https://user:a/secret@host/"),
        "{clouds: [{name: north, password: secret}]}",
    ],
)
def test_a_secret_is_not_repeated_and_then_there_is_no_command(
    started: t.Callable[..., None], given: str
) -> None:
    started("osops.placement.cleanup_orphans", (given,))
    shown = _next(plan=PLAN, check_mode=True)

    assert shown.startswith("run the same") and " orphan_cleanup_plan=/out/plan.json, " in shown
    assert "secret" not in shown and "without its hosts" in shown


def test_a_path_that_ansible_would_split_is_json_and_a_hostile_one_is_escaped() -> None:
    shown = _next(plan="/a b/p\x1b", check_mode=True)

    assert shown.endswith("""-e '{"orphan_cleanup_plan": "/a b/p\\u001b"}'""")


def test_awx_shows_no_commands(
    started: t.Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", "/runner")
    ending = Ending({"html": "/r"}, plan=PLAN, journal=JOURNAL, check_mode=True)

    assert format_ending(ending) == ["Report:  /r", f"Journal: {JOURNAL}"]
    started("osops.placement.decommission_host")
    assert _follow() == _undo() == ""
    assert format_journals([JOURNAL], Context()) == [f"Journal: {JOURNAL}"]


def test_only_a_remediation_is_undone_with_its_journal() -> None:
    removed: t.Any = {"outcomes": [{"outcome": "removed"}]}
    restored: t.Any = {"outcomes": [{"outcome": "restored", "write": None}]}

    assert len(format_undo(removed, JOURNAL, Context())) == 1
    assert format_undo(restored, JOURNAL, Context()) == format_undo(removed, "", Context()) == []


def _follow(check: bool = False, **variables: t.Any) -> str:
    following = {
        "playbook": "decommission_host",
        "variables": variables or {"host_decommission_target": "compute-17"},
        "check": check,
    }
    return "".join(format_commands(None, following, Context()))


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
    assert _undo().startswith(f"{UNDO} -i '/a b/hosts' -i c, compute-17 -m ")
    started("osops.placement.decommission_host", inventory=("/etc/ansible/hosts",), subset=None)
    assert _follow(a="x") == f"{FOLLOWED}-e a=x"


def _undo(**changes: t.Any) -> str:
    undo = {
        "host": "compute-17",
        "module": "hypervisor_guest",
        "arguments": {"uuid": "u", "directory": "present"},
        "become": False,
        "others": 0,
    }
    undo |= changes
    return "".join(format_commands(undo, None, Context()))


def test_a_module_undoes_a_change_on_a_host() -> None:
    command = f"{UNDO} compute-17 -m osops.placement.hypervisor_guest -a"

    assert _undo() == f"{command} 'uuid=u directory=present'"
    assert _undo(others=2).partition("  # ")[2].startswith("and 2 more")
    assert " compute-17 -b -m " in _undo(become=True)
    assert _undo(arguments={"virsh": "docker exec virsh"}) == (
        command + """ '{"virsh": "docker exec virsh"}'"""
    )


def test_each_journal_has_its_undo() -> None:
    lines = format_journals([JOURNAL, "/out/journal-2.jsonl"], Context())

    assert [line.partition(":")[0] for line in lines] == ["Journal", "Undo"] * 2
    assert lines[3].endswith("-e orphan_cleanup_journal=/out/journal-2.jsonl")


_UUID = "0aa0a0aa-0000-4000-8000-000000000001"


def _read_variables(command: str) -> dict[str, t.Any]:
    """Return the extra variables of a command, as a shell and Ansible read them."""
    words = shlex.split(command)
    variables: dict[str, t.Any] = {}
    for option, value in itertools.pairwise(words):
        if option == "-e":
            variables |= json.loads(value) if value.startswith("{") else parse_kv(value)
    return variables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("/srv/plan.json", "-e orphan_cleanup_plan=/srv/plan.json"),
        ("/srv/a b/plan.json", """-e '{"orphan_cleanup_plan": "/srv/a b/plan.json"}'"""),
        ("it's", """-e '{"orphan_cleanup_plan": "it'"'"'s"}'"""),
        ("{{ lookup('pipe', 'id') }}", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
        ("-e", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
        ("", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
    ],
)
def test_value_is_quoted_for_the_shell_and_for_ansible(value: str, text: str) -> None:
    command = build_cleanup({"orphan_cleanup_plan": keep_safe(value)}, Context())

    assert command == f"{CLEANUP} {text}"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_value_is_the_same_text_or_left_out(name: str) -> None:
    value = HOSTILE[name]
    safe = keep_safe(value)
    command = build_cleanup({"path": safe, "hosts": [safe]}, Context())
    read = _read_variables(command)

    assert command.isprintable()
    assert read["path"] in (value, LEFT_OUT) and read["hosts"] in ([value], [LEFT_OUT])
    # Every template of Jinja begins with a brace.
    assert "{" not in read["path"]
    first, second, *_rest, last = shlex.split(command)
    assert (first, last) == ("ansible-playbook", "--check")
    assert second == "osops.placement.cleanup_orphans"


def _provide(root_name: str, root: str | None = _UUID, dropped: bool = False) -> dict[str, t.Any]:
    return {"root": root, "root_name": root_name, "dropped": dropped}


@pytest.mark.parametrize(
    ("providers", "hosts"),
    [
        ([], []),
        ([_provide("compute-2"), _provide("compute-1")], ["compute-1", "compute-2"]),
        ([_provide("compute-2"), _provide("compute-1", dropped=True)], ["compute-1"]),
        ([_provide("{{ 1 }}")], [_UUID]),
        ([_provide("{{ 1 }}", root=None)], [LEFT_OUT]),
        ([_provide("{{ 1 }}", root="{{ 1 }}")], [LEFT_OUT]),
    ],
)
def test_host_has_its_name_or_its_uuid(providers: t.Any, hosts: list[str]) -> None:
    assert list_safe_hosts(t.cast("t.Any", {"providers": providers})) == hosts
