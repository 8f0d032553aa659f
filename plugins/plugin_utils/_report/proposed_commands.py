# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that a run proposes, and the last lines with them: each has the scope of the run.

Where that is not possible, words say what to run.
A command that leaves out an option of the run would do the same to more hosts, or to another cloud.
Names from a cloud get into a command only where they mean nothing to a shell, to Ansible's parser
and to its templates. Anything else is left out.
"""

from __future__ import annotations

import dataclasses as d
import itertools
import json
import os
import re
import shlex
import typing as t
from collections.abc import Collection, Iterable, Mapping

import yaml
from ansible import constants, context
from ansible.parsing.splitter import parse_kv

from ...module_utils._common.options import Names
from ...module_utils._common.text import make_printable, normalize_uuid
from ...module_utils._core.findings.entries import Entry
from ...module_utils._core.models.codec import Json
from ...module_utils._core.options.orphan_cleanup import ORPHAN_CLEANUP
from .._variables.play_hosts import COLLECTION, get_started_name, get_started_playbook
from .phrases import choose_providers

# AWX sets it in its jobs, where nobody types a command.
_AWX = "AWX_PRIVATE_DATA_DIR"
# The labels of commands.
_COMMANDS = ("Undo", "Next")

# They can be set for one command only. Those of OpenStack choose the cloud; where it is one without
# a name, the password stays in the shell of the user.
_OF_CLOUD = ("OS_CLIENT_CONFIG_FILE", "OS_CLOUD", "OS_REGION_NAME", "OS_AUTH_URL")
ENVIRONMENT = ("ANSIBLE_CONFIG", *_OF_CLOUD)

# It takes these from its configuration.
_ANSIBLE: t.Any = constants
# The options of ansible-playbook and ansible that decide where a run works, and as whom; and the
# values that each has if nobody gives one.
_OPTIONS: Mapping[str, tuple[str, Collection[str]]] = {
    # Its configuration may name others, and may be that of the current folder or of the shell.
    "inventory": ("-i", ["/etc/ansible/hosts"]),
    "subset": ("--limit", ()),
    "vault_ids": ("--vault-id", ()),
    "vault_password_files": ("--vault-password-file", ()),
    "ask_vault_pass": ("--ask-vault-pass", ()),
    "remote_user": ("--user", ()),
    "private_key_file": ("--private-key", ()),
    "connection": ("--connection", [_ANSIBLE.DEFAULT_TRANSPORT]),
    "ask_pass": ("--ask-pass", ()),
    "become": ("--become", ()),
    "become_method": ("--become-method", [_ANSIBLE.DEFAULT_BECOME_METHOD]),
    "become_user": ("--become-user", ()),
    "become_ask_pass": ("--ask-become-pass", ()),
    "tags": ("--tags", ["all"]),
    "skip_tags": ("--skip-tags", ()),
}

# Nothing that might be a password is repeated.
_SECRET = re.compile(
    r"pass|pw|secret|token|auth|credential|notify_url|(?<!client_)key\b", re.IGNORECASE
)
_PASSWORD_IN_URL = re.compile(r"://\S*@")

# What Ansible reads as one value after `NAME=`; anything else is written as JSON.
_PLAIN_VALUE = re.compile(r"[^\s'\"{}\\=]+")

# Stands for a value that must not be in a command: no host and no file has this name.
LEFT_OUT = "…"
# A name that needs no quotes in `-e variable=value`.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9/._][A-Za-z0-9/._:@+-]*")

# What plans and journals decide themselves: with it, a run would be refused.
OF_PLANS = (
    *(name for name, option in ORPHAN_CLEANUP.options.items() if isinstance(option, Names)),
    *(f"{ORPHAN_CLEANUP.prefix}{name}" for name in ("shard", "plan", "select")),
)
# The end of a sentence about such a run.
_WITHOUT_SCOPE = ", but without its hosts, consumers, projects and kinds"


@d.dataclass(frozen=True)
class Context:
    """What the command line does not say of a run.

    scope: the variables that limit it, wherever they are set.
    connection: the options of its connection; None if they are not known.
    host: the inventory host, where a play runs for several.
    """

    scope: Collection[str] = ()
    connection: Mapping[str, t.Any] | None = None
    host: str = ""


def read_context(task_vars: Mapping[str, t.Any] | None, role: str, templar: t.Any) -> Context:
    """Return the context of a run of a role."""
    variables = task_vars or {}
    # Only on the command line is a selection refused.
    scope = [name for name in OF_PLANS[:-1] if variables.get(name)]
    name = f"_{role}_connection"
    connection = templar.template(variables[name]) if name in variables else None
    # Every role that can run for several inventory hosts has it.
    host = templar.template(variables.get(f"_{role}_own_host", ""))
    return Context(scope, connection, host)


def format_fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each label and its text; nothing for an empty text, or a command in AWX."""
    hidden = _COMMANDS if _AWX in os.environ else ()
    shown = [(f"{label}:", text) for label, text in fields if text and label not in hidden]
    # Neither a path nor a command is broken: they are there to be copied.
    return [f"{label:8} {make_printable(text)}" for label, text in shown]


def build_command(
    playbook: str,
    variables: Mapping[str, t.Any],
    run: Context,
    *,
    without: Collection[str] = (),
    check: bool = False,
) -> str:
    """Return the command that runs a playbook of the collection with the options of this run.

    If an option cannot be repeated, words say what to run. An empty name stands for the playbook of
    the run.

    variables: what is added to its variables. without: the variables that it must not have.
    """
    words = _describe(playbook, variables, without, check)
    named = _name_playbook(playbook)
    repeated = _repeat_variables((*without, *variables))
    # Still set in a file or in the inventory. An empty list of the command line wins over both.
    given = {name for text in _list_texts() for name in _parse(text)}
    emptied = [name for name in run.scope if name in without and name not in given]
    if not named or repeated is None or "orphan_cleanup_shard" in emptied:
        return words
    options = [*_list_options(["subset"]), "--limit", run.host] if run.host else _list_options()
    added = _give({**{name: [] for name in emptied}, **variables})
    parts = [*options, named, *repeated, *added, *(["--check"] if check else [])]
    return _join_command(["ansible-playbook", *parts]) or words


def build_cleanup(variables: Mapping[str, t.Any], run: Context) -> str:
    """Return the command that shows what a cleanup with the options of this run would change.

    With a plan, it is the command that applies it.
    """
    several = get_started_name().endswith("_clouds")
    playbook = "cleanup_clouds" if several else "cleanup_orphans"
    if "orphan_cleanup_plan" in variables:
        return build_command(playbook, variables, run, without=OF_PLANS)
    return build_command(playbook, variables, run, check=True)


def build_restore(journal: str, run: Context) -> str:
    """Return the command that restores what a journal has, empty if there is no journal."""
    if not journal:
        return ""
    playbook, variables = "restore_allocations", {"orphan_cleanup_journal": journal}
    if get_started_name().endswith("_orphans") and not run.host:
        return build_command(playbook, variables, run, without=OF_PLANS)
    # A run for one of several clouds, or of another role, or with variables of its own: only what
    # chooses the cloud can be repeated, and only where that is a name.
    connection = dict(run.connection if run.connection is not None else {"auth": None})
    connection.pop("api_timeout", None)
    words = _describe(playbook, variables, OF_PLANS, check=False)
    if not set(connection) <= {"cloud", "region_name"} or isinstance(connection.get("cloud"), dict):
        return words
    chosen = {f"{ORPHAN_CLEANUP.prefix}{name}": value for name, value in connection.items()}
    named = _name_playbook(playbook) or f"{COLLECTION}.{playbook}"
    return _join_command(["ansible-playbook", named, *_give({**chosen, **variables})]) or words


def _give(variables: Mapping[str, t.Any]) -> list[str]:
    """Return variables as parts of a command."""
    pairs = variables.items()
    return [part for name, value in pairs for part in ("-e", _format_variable(name, value))]


def _describe(
    playbook: str, variables: Mapping[str, t.Any], without: Collection[str], check: bool
) -> str:
    """Return in words what to run."""
    name = f"{COLLECTION}.{playbook}" if playbook else "the same playbook"
    added = [_format_variable(variable, value) for variable, value in variables.items()]
    added += ["--check"] if check else []
    words = (
        f"run {name} with {' and '.join(added)}, and with the inventory, the cloud and the other "
    )
    words += "options of this run"
    return words + (_WITHOUT_SCOPE if without == OF_PLANS else "")


def _name_playbook(playbook: str) -> str:
    """Return the name of a playbook as the user would type it, empty if nobody knows it."""
    started, name = get_started_playbook(), get_started_name()
    if _AWX in os.environ:
        return ""
    if not playbook or name == playbook:
        return started
    if started.startswith(f"{COLLECTION}."):
        return f"{COLLECTION}.{playbook}"
    # A wrapper of the user with the same name has no siblings of ours.
    folder, file = os.path.split(started)
    sibling = os.path.join(folder, playbook + os.path.splitext(file)[1])
    return sibling if name and os.path.exists(sibling) else ""


def _list_options(without: Collection[str] = ()) -> list[str]:
    """Return the options of this run, other than its variables, as parts of a command."""
    parts: list[str] = []
    for name, (option, unsaid) in _OPTIONS.items():
        value = None if name in without else context.CLIARGS.get(name)
        if value is True:
            parts.append(option)
        elif value:
            values = [value] if isinstance(value, str) else value
            parts += [part for one in values if one not in unsaid for part in (option, str(one))]
    return parts


def _join_command(parts: list[str]) -> str:
    """Return a command for the shell.

    It is empty if it has a password, or a character that is not shown as it is.
    """
    # A module on a hypervisor reads no cloud.
    names = ENVIRONMENT if parts[0] == "ansible-playbook" else ENVIRONMENT[:1]
    # With a name, openstacksdk takes the address from its file.
    last = "OS_AUTH_URL" if os.environ.get("OS_CLOUD") else ""
    chosen = [name for name in names if os.environ.get(name) and name != last]
    if any(_PASSWORD_IN_URL.search(os.environ[name]) for name in chosen):
        return ""
    words = [f"{name}={shlex.quote(os.environ[name])}" for name in chosen]
    command = " ".join([*words, shlex.join(parts)])
    return command if command.isprintable() else ""


def _list_texts() -> list[str]:
    return [str(text) for text in context.CLIARGS.get("extra_vars") or ()]


def _repeat_variables(without: Collection[str]) -> list[str] | None:
    """Return each `-e` of this run as parts of a command, None if any of them may be a secret."""
    repeated = []
    for text in _list_texts():
        variables = _parse(text)
        if any(_may_be_secret(name, value) for name, value in variables.items()):
            return None
        kept = {name: value for name, value in variables.items() if name not in without}
        repeated += ["-e", text] if len(kept) == len(variables) else _give(kept)
    return repeated


def _parse(text: str) -> dict[str, t.Any]:
    """Return the variables in a text after `-e`; none for a file."""
    if text.startswith("@"):
        return {}
    if not text.startswith("{"):
        return dict(parse_kv(text))
    try:
        return dict(yaml.safe_load(text))
    except (yaml.YAMLError, TypeError, ValueError):
        # It has a tag of Ansible, such as !vault.
        return {"secret": text}


def _may_be_secret(name: str, value: t.Any) -> bool:
    # A list can have names in it, and so can a text.
    text = f"{name} {value}" if "{" in str(value) else str(name)
    is_named = _SECRET.search(text) or _PASSWORD_IN_URL.search(str(value))
    return bool(is_named) or isinstance(value, Mapping)


def _format_variable(name: str, value: t.Any) -> str:
    """Return a variable as `-e` takes it."""
    return f"{name}={value}" if _is_plain(value) else json.dumps({name: value})


def _is_plain(value: t.Any) -> bool:
    """Return whether Ansible reads a value after `NAME=` as it is written."""
    return isinstance(value, str) and bool(_PLAIN_VALUE.fullmatch(value))


def keep_safe(text: str) -> str:
    """Return a text that may be in a command, or what stands for one that may not.

    Ansible reads a template in the value of a variable, and a terminal what does not print.
    """
    if text and text.isprintable() and "{" not in text and not text.startswith("-"):
        return text
    return LEFT_OUT


def list_safe_hosts(entry: Entry) -> list[str]:
    """Return the hosts of an entry by names that may be in a command, or else by their UUIDs."""
    hosts = set()
    for provider in choose_providers(entry):
        name, uuid = provider["root_name"], normalize_uuid(provider["root"] or "")
        if not _PLAIN_NAME.fullmatch(name) and uuid:
            name = uuid
        hosts.add(keep_safe(name))
    return sorted(hosts)


# --- the last lines of a run


@d.dataclass(frozen=True)
class Ending:
    """What the last lines are made of.

    reports: the paths of the written reports, by format.
    findings: the path of findings.json; empty if it is not of this run.
    plan: the path of the plan; empty if there is none, or nothing to change in it.
    journal: the path of the journal; empty if nothing was changed.
    failed: whether the run fails.
    run: what its commands need to know of it.
    """

    reports: Mapping[str, str]
    findings: str = ""
    plan: str = ""
    journal: str = ""
    check_mode: bool = False
    detects_only: bool = False
    failed: bool = False
    run: Context = d.field(default_factory=Context)


def format_ending(ending: Ending) -> list[str]:
    """Return the paths of a run and the command to type next, each on a line of its own."""
    # The one that a person reads first.
    report = ending.reports.get("html") or ending.reports.get("markdown") or ending.findings
    lines = format_fields([("Report", report)])
    lines += format_journals([ending.journal], ending.run)
    return lines + format_fields([("Next", _suggest_next(ending))])


def format_undo(remediation: Json, journal: str, run: Context) -> list[str]:
    """Return the command that restores what a remediation changed; nothing for a restoration."""
    if any("write" in outcome for outcome in remediation["outcomes"]):
        return []
    return format_fields([("Undo", build_restore(journal, run))])


def format_journals(journals: Iterable[str], run: Context) -> list[str]:
    """Return the journals of a run, each with the command that restores what it changed."""
    pairs = [(("Journal", path), ("Undo", build_restore(path, run))) for path in journals]
    return format_fields(itertools.chain.from_iterable(pairs))


def format_commands(
    undo: Mapping[str, t.Any] | None, following: Mapping[str, t.Any] | None, run: Context
) -> list[str]:
    """Return the command that undoes a change on a host, and the playbook to run next.

    That is the same playbook again; there is none after one of the user's own.

    undo, following: the options undo and next of the module orphan_report.
    """
    fields = []
    if undo:
        fields.append(("Undo", _build_module_command(undo)))
    # A variable on the command line would replace what another playbook says for each host.
    if following and get_started_name() == following["playbook"]:
        named, check = following["variables"], following["check"]
        fields.append(("Next", build_command(following["playbook"], named, run, check=check)))
    return format_fields(fields)


def _suggest_next(ending: Ending) -> str:
    if ending.failed:
        return "solve the cause that the message names, and run the same command again"
    if ending.plan and ending.detects_only:
        return build_cleanup({}, ending.run)
    if ending.plan and ending.check_mode:
        plan = {"orphan_cleanup_plan": ending.plan}
        return build_command("", plan, ending.run, without=OF_PLANS)
    return ""


def _build_module_command(undo: Mapping[str, t.Any]) -> str:
    """Return the command that runs one module on one host."""
    parts = ["ansible", *_list_options(["subset", "become", "tags", "skip_tags"]), undo["host"]]
    parts += ["-b"] if undo["become"] else []
    arguments = undo["arguments"]
    given = json.dumps(arguments)
    if all(map(_is_plain, arguments.values())):
        given = " ".join(f"{name}={value}" for name, value in arguments.items())
    command = _join_command([*parts, "-m", f"{COLLECTION}.{undo['module']}", "-a", given])
    if undo["others"]:
        return f"{command}  # and {undo['others']} more, each with its own host and uuid"
    return command
