# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds wrong values of the variables of a role: one sentence for each variable.

Ansible's own validator decides which values have the right type. Before that, values are refused
that it would convert to something else than was meant, such as true to the number 1. Then the
option itself says what is wrong, and last the checks that know the run and its files.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import difflib
import functools
import json
import os
import re
import typing as t
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.json_files import explain_shared_folder
from ...module_utils._common.options import Age, Duration, LongAge, Names, Option
from ...module_utils._common.text import make_printable, show_value
from ...module_utils._core.models.kind import REPORT
from ...module_utils._core.models.kinds import KINDS, RENAMED_IN, rename_kind
from ...module_utils._core.options.policy import Exclusions
from ...module_utils._core.run.pack import find_packs
from .values import build_host_path, choose_document, read_host_names


@d.dataclass(frozen=True)
class Run:
    """What the checks may know of a run.

    entry_point: the entry point of the role.
    host: the inventory host.
    has_files: whether the files of the host are those of this machine.
    is_one_cloud: whether the hosts of the play are not clouds.
    is_play: whether the variables are those of a playbook, before a role runs on each of its hosts.
    play_hosts: the number of hosts of the play.
    limit: what follows `--limit`.
    """

    entry_point: str = "main"
    host: str = "localhost"
    has_files: bool = False
    is_one_cloud: bool = False
    is_play: bool = False
    play_hosts: int = 1
    limit: str = ""


_TYPES = {
    "bool": "neither true nor false",
    "dict": "not a dictionary",
    "float": "not a number",
    "int": "not a whole number",
    "list": "not a list",
    "path": "not a path",
    "str": "not a text",
}

_COLLECTIONS = (list, tuple, Mapping)
# What the validator would take for a text.
_NO_ELEMENTS = (bool, *_COLLECTIONS, datetime.date, type(None))

_EMPTIED = (
    "comes out empty, and would limit nothing: if that is meant, write [], or end the template "
    "with default(omit, true)."
)

# The kinds of findings without a change.
_REPORTED_KINDS = frozenset(kind.name for kind in KINDS if kind.by_default == REPORT)

# AWX writes it before each answer of a survey.
_UNSAFE = "!unsafe"
_LEADING_ZERO = re.compile(r"\s*[+-]?0[0-9]+\s*")
_PERCENT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]+)?)\s*%\s*")

# A survey and the command line give a truth value as a text.
_YES = frozenset({"true", "yes"})
_NO = frozenset({"false", "no", ""})
# Ansible takes these for truth values too. They are refused, because such a word must be clear.
_UNCLEAR = frozenset({"0", "1", "off", "on", "t", "f", "y", "n"})

# Values that version 3.0.0 no longer has, and what to write instead.
# `docs/porting-to-3.0.md` lists them all.
REMOVED_VALUES = {
    "junit": "json",
    "mattermost": "text",
    "slack": "text",
    "teams": "text",
    "triage": "incremental",
}


def find_wrong_values(
    options: Mapping[str, Option], values: Mapping[str, t.Any], run: Run
) -> Iterator[str]:
    """Yield a sentence for each variable with a wrong value.

    options: the options of a role by the names of their variables.
    values: the variables that are defined, without templates.
    """
    for name, option in options.items():
        if name in values:
            fault = _find_fault(name, option, values[name], run)
        else:
            fault = "is required, and is not defined: set it." if option.required else ""
        if fault:
            yield f"{name} {fault}"


def find_misread_numbers(
    options: Mapping[str, Option], values: Mapping[str, t.Any], read_texts: Callable[[], list[str]]
) -> Iterator[str]:
    """Yield a sentence for each number that YAML has read as another one: 1:00 as 60, 010 as 8.

    A duration that nobody has written as this number may be another one: through an alias, say.

    read_texts: returns the texts in which variables are set.
    """
    read_once = functools.cache(read_texts)
    for name, option in options.items():
        value = values.get(name, option.default)
        if not isinstance(value, int) or isinstance(value, bool) or value == option.default:
            continue
        words = {word for text in read_once() for word in _find_written(name, text)}
        misread = sorted(word for word in words - {str(value)} if _read_number(word) == value)
        has_unit = isinstance(option, Duration) and not isinstance(option, LongAge)
        if misread:
            yield (
                f"{name} is {misread[0]}, which YAML reads as {value}: put a name in quotes, in a "
                "survey too, and write a number without a zero in front and without colons."
            )
        elif value and has_unit and str(value) not in words:
            yield f"{name} is {value}, which has no unit: write {value}s for seconds."


def _find_written(name: str, text: str) -> list[str]:
    """Return what a text sets a variable to, without quotes."""
    words = re.findall(rf"(?<!\w){name}[\"']?[ \t]*:[ \t]*([^,}}#\n]+)", text)
    return [word.removeprefix(_UNSAFE).strip(" \t\r\"'") for word in words]


def _read_number(word: str) -> t.Any:
    try:
        return yaml.safe_load(word)
    except yaml.YAMLError:
        # A template, or a name of YAML.
        return None


def explain_emptied(option: Option, raw: t.Any, value: t.Any, omitted: t.Any) -> str:
    """Return the end of a sentence about a limit whose templates come to nothing, else empty.

    raw: the value with its templates. omitted: what stands for a value that is to be omitted.
    """
    if not isinstance(option, (Names, Exclusions)) and option.name != "remediate_kinds":
        return ""
    if isinstance(raw, list):
        entries = value if isinstance(value, list) else []
        is_emptied = bool(raw) and all(is_omitted(entry, omitted) for entry in entries)
    else:
        is_emptied = raw != value and value in (None, "", [])
    return _EMPTIED if is_emptied else ""


def is_omitted(value: t.Any, omitted: t.Any) -> bool:
    """Return whether a value is to be omitted."""
    return isinstance(value, str) and value == omitted


def _find_fault(name: str, option: Option, value: t.Any, run: Run) -> str:
    """Return the end of a sentence about a variable, empty if nothing is wrong with it."""
    if isinstance(option, Age) and value in (None, ""):
        return ""
    if option.type != "raw":
        fault = _judge_null(option) if value is None else _judge_type(name, option, value)
        if fault or value is None:
            return fault
    if option.empty and isinstance(value, str) and not value.strip():
        return f"is empty: {option.empty}"
    converted = _validate(option, value).validated_parameters[option.name]
    return option.find_fault(converted) or _judge_in_run(option, converted, run)


def _judge_null(option: Option) -> str:
    """Return what is wrong with null, which an empty answer of a survey can be."""
    # Where nothing is a value too, null means the same. No shard is the whole cloud.
    if option.default in (None, "") and option.name != "shard":
        return ""
    instead = ", or write []" if option.type == "list" else ""
    return f"is null: leave it out for its default{instead}."


def _validate(option: Option, value: t.Any) -> t.Any:
    return ArgumentSpecValidator({option.name: option.build_spec()}).validate({option.name: value})


def _judge_type(name: str, option: Option, value: t.Any) -> str:
    """Return what is wrong with the type of a value, or with its elements."""
    kind, text = option.type, str(value)
    shown = "" if option.secret else f"{show_value(value)}, which is "
    fault = f"is {shown}{_TYPES[kind]}"
    if isinstance(value, bool) and kind != "bool":
        # YAML takes names such as no and on for truth values.
        return f"{fault}{': put a text in quotes' if kind in ('path', 'str') else ''}."
    if kind in ("path", "str") and isinstance(value, _COLLECTIONS):
        return f"{fault}."
    if kind == "path" and any(ord(character) < 32 for character in text):
        return f"{fault}: it has a control character."
    if kind == "list":
        found = _judge_list(name, option, value)
        if found:
            return found
    # YAML takes 010 for 8, and Ansible for 10.
    is_doubtful = kind in ("int", "float") and _LEADING_ZERO.fullmatch(text)
    if not is_doubtful and not _validate(option, value).error_messages:
        return ""
    if option.choices and kind != "list":
        return f"is {show_value(value)}, which is not {_name_choices(value, option.choices)}"
    percent = _PERCENT.fullmatch(text) if kind == "float" else None
    return f"{fault}: write {float(percent[1]) / 100:g}." if percent else f"{fault}."


def _judge_list(name: str, option: Option, value: t.Any) -> str:
    """Return what is wrong with the elements of a list, or with a text that has a list."""
    elements = value if isinstance(value, list) else [value]
    if isinstance(value, str):
        if not value and option.choices:
            return "is an empty text, which is not a list: write [] for an empty list."
        if value.lstrip().startswith(("[", "{")) and not _is_json(option, value):
            kind = "a JSON list" if isinstance(option, Exclusions) else "a list"
            return (
                f"is the text {show_value(value)}, which is not {kind}. On the command line, write "
                f'-e {name}=ONE,TWO or -e \'{{"{name}": ["ONE", "TWO"]}}\'.'
            )
        elements = value.split(",")
    if option.elements != "str" or isinstance(value, Mapping):
        return ""
    faults = (_judge_element(element, option.choices) for element in elements)
    return next(filter(None, faults), "")


def _is_json(option: Option, text: str) -> bool:
    """Return whether a text is a list in JSON, for an option that can be one."""
    try:
        return isinstance(option, Exclusions) and isinstance(json.loads(text), list)
    except ValueError:
        return False


def _judge_element(element: t.Any, choices: Sequence[str]) -> str:
    text, shown = str(element), show_value(element)
    if isinstance(element, _NO_ELEMENTS):
        return f"has {shown}, which is not a text: put a text in quotes."
    # Control characters, and marks for the direction of text and the like: no name has them.
    if any(unicodedata.category(character) in ("Cc", "Cf") for character in text):
        return f"has {shown}, which has an invisible character. Put commas between names."
    if choices and text not in choices:
        return f"has {shown}, which is not {_name_choices(text, choices)}"
    return ""


def _name_choices(value: t.Any, choices: Sequence[str]) -> str:
    """Return the end of a sentence with the choice that was probably meant, or with all of them."""
    text = str(value).strip()
    renamed, instead = rename_kind(text), REMOVED_VALUES.get(text.lower())
    similar = difflib.get_close_matches(text.lower(), choices, 1)
    if text in choices:
        return f"{text}: leave out the spaces around it."
    if renamed in choices:
        return f"a known value: it was renamed in version {RENAMED_IN[text]}, write {renamed}."
    if instead in choices:
        return f"a known value: it was removed in version 3.0.0, write {instead}."
    if renamed in _REPORTED_KINDS:
        return f"a kind that can be changed: {renamed} is only reported. Leave it out."
    return (
        f"a known value; did you mean {similar[0]}?" if similar else f"one of {', '.join(choices)}."
    )


def _judge_in_run(option: Option, value: t.Any, run: Run) -> str:
    """Return what is wrong with a value in this run, and with the files that it names."""
    check, check_files = _CHECKS.get(option.name), _FILE_CHECKS.get(option.name)
    fault = check(value, run) if check else ""
    if fault or not (value and run.has_files and check_files):
        return fault
    problem = check_files(value)
    return f"is {show_value(value)}, {problem}" if problem else ""


def _check_output_dir(value: str) -> str:
    # The folder is created with all its parents.
    path = build_host_path(value)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        return f"but {path} is a file and not a folder."
    if not os.access(path, os.W_OK | os.X_OK):
        return f"but you may not write in {path}."
    problem = explain_shared_folder(os.path.expanduser(value))
    advice = "make yourself its owner, with mode 0700, or name another folder."
    return f"and {problem}: {advice}" if problem else ""


def _check_metrics_folder(value: str) -> str:
    folder = os.path.dirname(build_host_path(value))
    if not os.path.isdir(folder):
        return f"but the folder {folder} does not exist: create it."
    return _check_written_file(value)


def _check_written_file(value: str) -> str:
    if os.path.isdir(build_host_path(value)):
        return "which is a folder and not a file."
    # Another user may have put it there, to have another file overwritten.
    is_link = os.path.islink(os.path.expanduser(value))
    return "which is a symbolic link: name the file itself." if is_link else ""


def _check_file(value: str) -> str:
    # A relative path starts in another folder for a module.
    path = os.path.expanduser(value)
    is_missing = os.path.isabs(path) and not os.path.isfile(path)
    return "and there is no such file." if is_missing else ""


def _check_guests(value: list[t.Any], run: Run) -> str:
    for entry in value if run.has_files else ():
        # Any other entry is a result itself.
        if isinstance(entry, str) and _check_file(build_host_path(entry.strip())):
            return f"names {show_value(entry)}, and there is no such file."
    return ""


def _check_metrics_name(value: str, _run: Run) -> str:
    if not value or value.endswith(".prom"):
        return ""
    return f"is {show_value(value)}, and must end in .prom: node_exporter reads no other files."


def _check_url(value: str, _run: Run) -> str:
    # Its value is not shown: the address of a webhook is a password.
    if not value or re.match(r"https?://[^/]", value):
        return ""
    return "is not an address: it must begin with https:// or http://."


def read_fenced(value: t.Any) -> bool | list[str]:
    """Return whether the named hosts are fenced, or the names of those that are.

    Nothing but the word of the operator makes a host fenced: it is never concluded from the state
    of a service.

    Raises InvalidInput, with the end of a sentence, for anything that is neither.
    """
    if value is None or isinstance(value, bool):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else None
    if word in _YES | _NO:
        return word in _YES
    try:
        names = read_host_names(value, "host_decommission_fenced")
    except InvalidInput:
        names = [""]
    # 1 and 0 are refused too: with this word, nothing is guessed.
    if all(map(_is_host, names)):
        return names
    raise InvalidInput(
        f"is {show_value(value)}, which is neither true nor false nor a list of hosts: write true "
        "if no guest can still run on the hosts of host_decommission_target."
    )


def _is_host(name: str) -> bool:
    """Return whether a name is no truth value, and neither nothing nor a list in a text."""
    is_truth_value = name.lower() in _YES | _NO | _UNCLEAR
    return not is_truth_value and name[0] not in "[{" and len(name.split()) == 1


def _check_fenced(value: t.Any, _run: Run) -> str:
    try:
        read_fenced(value)
    except InvalidInput as error:
        return str(error)
    return ""


def _is_path(value: t.Any) -> bool:
    """Return whether a journal is certainly meant as a path, and not as all artifacts of a job."""
    if not isinstance(value, str) or find_packs(value):
        return False
    path = value.strip()
    return not path.startswith(("[", "{")) and "\n" not in path


def _check_journal(value: t.Any, run: Run) -> str:
    if run.entry_point not in _READS_JOURNALS:
        return ""
    journal = choose_document(value, run.host)
    # Without one, a host returns by all journals in its folder.
    if not journal and run.entry_point == "restore":
        if isinstance(value, Mapping):
            return f"has no journal for the host {run.host}."
        return "is empty: set it to the path of the journal to restore from, or to its records."
    if journal and run.has_files and _is_path(value) and not os.path.exists(journal):
        return (
            f"is {show_value(value)}, and there is no file {make_printable(journal)}: name the "
            "journal of the run that you want to undo."
        )
    return ""


# The entry points that read journals.
_READS_JOURNALS = ("drain", "restore", "return")

# What depends on the run, by the names of the options.
_CHECKS: Mapping[str, Callable[[t.Any, Run], str]] = {
    "fenced": _check_fenced,
    "guests": _check_guests,
    "journal": _check_journal,
    "metrics_path": _check_metrics_name,
    "notify_url": _check_url,
}
# What is wrong with the file of a path, if the files of the host are those of this machine.
_FILE_CHECKS: Mapping[str, Callable[[t.Any], str]] = {
    "ca_cert": _check_file,
    "client_cert": _check_file,
    "client_key": _check_file,
    "metrics_path": _check_metrics_folder,
    "output_dir": _check_output_dir,
    "state": _check_written_file,
}
