# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds wrong values of the variables of a role: one sentence for each variable.

Ansible's own validator decides which values have the right type. Before that, values are refused
that it would convert to something else than was meant, such as true to the number 1.
"""

from __future__ import annotations

import datetime
import difflib
import json
import re
import typing as t
import unicodedata
from collections.abc import Callable, Mapping, Sequence

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ...module_utils._core.models.kind import REPORT
from ...module_utils._core.models.kinds import KINDS, rename_kind
from .role_options import is_answered
from .variable_bounds import BOUNDS, DURATIONS, SCOPE_LISTS, Run
from .variable_text import show_value

if t.TYPE_CHECKING:  # pragma: no cover
    # An option as a role describes it.
    Option = Mapping[str, t.Any]

_TYPES = {
    "bool": "neither true nor false",
    "dict": "not a dictionary",
    "float": "not a number",
    "int": "not a whole number",
    "list": "not a list",
    "path": "not a path",
    "str": "not a text",
}

# What the validator would convert although it is something else.
_WRONG_TYPES: Mapping[str, tuple[type, ...]] = {
    "float": (bool,),
    "int": (bool,),
    "list": (bool, Mapping),
    "path": (bool, list, tuple, Mapping),
    "str": (bool, list, tuple, Mapping),
}
_WRONG_ELEMENTS = (bool, list, tuple, Mapping, datetime.date, type(None))

# Their values are passwords, or have some.
SECRETS = ("auth", "cloud", "notify_url")

# Variables for which a role accepts a list that is written as JSON in a text. The templates of
# these, too, must not come to nothing.
_JSON_LISTS = ("exclude_consumers", "exclude_providers")

_EMPTIED = (
    "comes out empty, and would limit nothing: if that is meant, write [], or end the template "
    "with default(omit, true)."
)

# The categories of characters that no name has: control characters, and marks for the direction of
# text and the like.
_INVISIBLE = ("Cc", "Cf")

# The kinds of findings without a change.
_REPORTED_KINDS = frozenset(kind.name for kind in KINDS if kind.by_default == REPORT)

# AWX writes it before each answer of a survey.
_UNSAFE = "!unsafe"
_LEADING_ZERO = re.compile(r"\s*[+-]?0[0-9]+\s*")

_PERCENT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]+)?)\s*%\s*")

# Values that version 3.0.0 no longer has, and what to write instead.
# `docs/porting-to-3.0.md` lists them all.
REMOVED_VALUES = {
    "junit": "json",
    "mattermost": "text",
    "slack": "text",
    "teams": "text",
    "triage": "incremental",
}

# How similar a value must be to one of the choices that was probably meant.
_SIMILAR = 0.6


def find_wrong_values(
    options: Mapping[str, Option], values: Mapping[str, t.Any], role: str, run: Run
) -> list[str]:
    """Return a sentence for each variable with a wrong value.

    options: the options of the role by the names of their variables.
    values: the variables that are defined, without templates.
    """
    sentences = []
    for name, option in options.items():
        short = name.removeprefix(f"{role}_")
        if name in values:
            fault = _find_fault(short, name, option, values[name], run)
        else:
            fault = "is required, and is not defined: set it." if option.get("required") else ""
        if fault:
            sentences.append(f"{name} {fault}")
    return sentences


def find_misread_numbers(
    options: Mapping[str, Option], values: Mapping[str, t.Any], read_texts: Callable[[], list[str]]
) -> list[str]:
    """Return a sentence for each number that YAML has read as another one: 1:00 as 60, 010 as 8.

    A duration that nobody has written as this number may be another one: through an alias, say.

    read_texts: returns the texts in which variables are set.
    """
    numbers = {}
    for name, option in options.items():
        value = values.get(name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and value != option.get("default"):
            numbers[name] = value
    texts = read_texts() if numbers else []
    sentences = []
    for name, value in numbers.items():
        written = {word for text in texts for word in _find_written(name, text)}
        misread = sorted(word for word in written - {str(value)} if _read_number(word) == value)
        if misread:
            sentences.append(
                f"{name} is {misread[0]}, which YAML reads as {value}: put a name in quotes, in a "
                "survey too, and write a number without a zero in front and without colons."
            )
        elif value and name.endswith(DURATIONS) and str(value) not in written:
            sentences.append(f"{name} is {value}, which has no unit: write {value}s for seconds.")
    return sentences


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


def explain_emptied(name: str, raw: t.Any, value: t.Any, omitted: t.Any) -> str:
    """Return the end of a sentence about a limit whose templates come to nothing, else empty.

    raw: the value with its templates. omitted: what stands for a value that is to be omitted.
    """
    if not name.endswith(tuple(f"_{short}" for short in (*SCOPE_LISTS, *_JSON_LISTS))):
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


def _find_fault(short: str, name: str, option: Option, value: t.Any, run: Run) -> str:
    """Return the end of a sentence about a variable, empty if nothing is wrong with it.

    short: the name of the variable without the prefix of the role.
    """
    if not is_answered(short, value):
        return ""
    check = BOUNDS.get(short)
    if option["type"] == "raw":
        return check(value, run) if check else ""
    if value is None:
        return _judge_null(short, option)
    fault = _judge_type(short, name, option, value)
    if option.get("default") and isinstance(value, str) and not value.strip():
        fault = fault or "is empty: leave it out for its default."
    if fault or not check:
        return fault
    result = ArgumentSpecValidator({name: option}).validate({name: value})
    return check(result.validated_parameters[name], run)


def _judge_null(short: str, option: Option) -> str:
    """Return what is wrong with null, which an empty answer of a survey can be."""
    if short == "shard":
        return "is null: leave it out to read the whole cloud."
    # Where nothing is a value too, null means the same.
    if option.get("default", "") == "":
        return ""
    if option["type"] == "list":
        return "is null, which is not a list. Leave it out for its default, or write []."
    return "is null. Leave it out for its default."


def _judge_type(short: str, name: str, option: Option, value: t.Any) -> str:
    kind = option["type"]
    shown = "" if short in SECRETS else f"{show_value(value)}, which is "
    if isinstance(value, _WRONG_TYPES.get(kind, ())):
        return f"is {shown}{_TYPES[kind]}{_advise_quotes(kind, value)}."
    if kind == "list":
        return _judge_list(short, name, option, value)
    if kind == "path" and _has_control_character(value):
        return f"is {shown}not a path: it has a control character."
    # YAML takes 010 for 8, and Ansible for 10.
    is_doubtful = kind in ("int", "float") and _LEADING_ZERO.fullmatch(str(value))
    if not is_doubtful and _is_accepted(name, option, value):
        return ""
    if "choices" in option:
        return f"is {show_value(value)}, which is not {_name_choices(value, option['choices'])}"
    return f"is {shown}{_TYPES[kind]}{_advise_fraction(kind, value)}."


def _advise_fraction(kind: str, value: t.Any) -> str:
    percent = _PERCENT.fullmatch(str(value))
    return f": write {float(percent[1]) / 100:g}" if kind == "float" and percent else ""


def _advise_quotes(kind: str, value: t.Any) -> str:
    # YAML takes names such as no and on for truth values.
    return ": put a text in quotes" if isinstance(value, bool) and kind in ("path", "str") else ""


def _is_accepted(name: str, option: Option, value: t.Any) -> bool:
    result = ArgumentSpecValidator({name: option}).validate({name: value})
    return not result.error_messages


def _judge_list(short: str, name: str, option: Option, value: t.Any) -> str:
    """Return what is wrong with a list, or with a text that has a list."""
    if isinstance(value, str):
        fault = _judge_list_in_text(short, name, option, value)
        if fault:
            return fault
        elements: Sequence[t.Any] = value.split(",")
    else:
        elements = value if isinstance(value, list) else [value]
    if option["elements"] == "str":
        for element in elements:
            fault = _judge_element(element, option.get("choices", ()))
            if fault:
                return fault
    if not _is_accepted(name, option, value):
        return f"is {show_value(value)}, which is not a list."
    return ""


def _judge_list_in_text(short: str, name: str, option: Option, text: str) -> str:
    if not text and "choices" in option:
        return "is an empty text, which is not a list: write [] for an empty list."
    if not text.lstrip().startswith(("[", "{")):
        return ""
    if short not in _JSON_LISTS:
        return (
            f"is the text {show_value(text)}, which is not a list. On the command line, write "
            f'-e {name}=ONE,TWO or -e \'{{"{name}": ["ONE", "TWO"]}}\'.'
        )
    try:
        is_list = isinstance(json.loads(text), list)
    except ValueError:
        is_list = False
    return "" if is_list else f"is the text {show_value(text)}, which is not a JSON list."


def _judge_element(element: t.Any, choices: Sequence[str]) -> str:
    if isinstance(element, _WRONG_ELEMENTS):
        return f"has {show_value(element)}, which is not a text: put a text in quotes."
    text = str(element)
    if any(unicodedata.category(character) in _INVISIBLE for character in text):
        return (
            f"has {show_value(text)}, which has an invisible character. Put commas between names."
        )
    if choices and text not in choices:
        return f"has {show_value(text)}, which is not {_name_choices(text, choices)}"
    return ""


def _name_choices(value: t.Any, choices: Sequence[str]) -> str:
    """Return the end of a sentence with the choice that was probably meant, or with all of them."""
    text = str(value)
    if text.strip() in choices:
        return f"{text.strip()}: leave out the spaces around it."
    renamed = rename_kind(text.strip())
    if renamed in choices:
        return f"a known value: it was renamed in version 2.0.0, write {renamed}."
    instead = REMOVED_VALUES.get(text.strip().lower())
    if instead in choices:
        return f"a known value: it was removed in version 3.0.0, write {instead}."
    if renamed in _REPORTED_KINDS:
        return f"a kind that can be changed: {renamed} is only reported. Leave it out."
    similar = difflib.get_close_matches(text.strip().lower(), choices, 1, _SIMILAR)
    if similar:
        return f"a known value; did you mean {similar[0]}?"
    return f"one of {', '.join(choices)}."


def _has_control_character(value: t.Any) -> bool:
    return any(ord(character) < 32 for character in str(value))
