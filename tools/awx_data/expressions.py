# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jinja in `setup.yml`: what can be computed now, and what depends on the variables of the user.

An expression such as `awx_job | combine({'playbook': awx_playbooks ~ '/x.yml'})` only joins data of
`setup.yml`. It is computed here, so that the generated files are plain data. A variable of the user
stays a template.
"""

from __future__ import annotations

import re
import typing as t

import jinja2

from ansible_collections.osops.placement.tools.awx_data.kinds import SetupError

TEMPLATE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
ONE_TEMPLATE = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.DOTALL)
TO_JSON = re.compile(r"\|\s*to_json\s*$")
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
VARIABLE = re.compile(r"\bawx_\w+")


class UserVariable:
    """A variable of the user in an expression: it can be part of a text, and nothing else."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"{{{{ {self._name} }}}}"

    def _refuse(self, *_args: t.Any) -> t.NoReturn:
        raise SetupError(
            f"setup.yml: the value of {self._name} decides which fields an object has. "
            "Use the variable in the value of a field, or in `when`."
        )

    __bool__ = __len__ = __iter__ = __eq__ = __lt__ = __gt__ = __add__ = __contains__ = _refuse
    __hash__ = object.__hash__


def _combine(first: t.Any, *others: t.Any) -> dict[str, t.Any]:
    """Do what Ansible's filter of this name does without options."""
    combined = dict(first)
    for other in others:
        combined.update(other)
    return combined


def compute_mapping(text: str, known: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the mapping that an expression joins, with the templates in its values."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters = {"combine": _combine}
    found = ONE_TEMPLATE.fullmatch(text)
    if found is None:
        raise SetupError(f"setup.yml: {text!r} is neither a mapping nor one expression")
    try:
        value = environment.compile_expression(found[1], undefined_to_none=False)(**known)
    except jinja2.TemplateError as error:
        raise SetupError(f"setup.yml: cannot compute {text!r}: {error}") from error
    if not isinstance(value, dict):
        raise SetupError(f"setup.yml: {text!r} is no mapping")
    return {name: _write_user_variables(part) for name, part in value.items()}


def _write_user_variables(value: t.Any) -> t.Any:
    if isinstance(value, UserVariable):
        return str(value)
    return value


def join_lines(text: str) -> str:
    """Return a template on one line; the line breaks of an expression mean nothing."""
    if "\n" not in text or ONE_TEMPLATE.fullmatch(text) is None:
        return text
    joined = " ".join(text.split())
    if any(quoted not in joined for quoted in QUOTED.findall(text)):
        raise SetupError(f"setup.yml: a text in {joined!r} has several spaces in a row")
    return joined


def parse_json_text(text: t.Any) -> t.Any:
    """Return a field that the API takes as JSON text as the mapping that it contains."""
    if text == "":
        return {}
    found = ONE_TEMPLATE.fullmatch(text)
    if found is None or TO_JSON.search(found[1].rstrip()) is None:
        raise SetupError(f"setup.yml: {text!r} is not one expression that ends with to_json")
    expression = f"{{{{ {TO_JSON.sub('', found[1].strip()).strip()} }}}}"
    if find_variables(expression):
        return expression
    return compute_mapping(expression, {})


def to_expression(text: str) -> str:
    """Return a text with templates as one expression."""
    parts = []
    # Every second part is an expression.
    for number, part in enumerate(TEMPLATE.split(text)):
        if number % 2:
            parts.append(f"({part.strip()})")
        elif part:
            parts.append("'" + part.replace("\\", "\\\\").replace("'", "\\'") + "'")
    return " ~ ".join(parts) or "''"


def find_variables(value: t.Any) -> set[str]:
    """Return the variables in the templates of a value."""
    if isinstance(value, str):
        named = (VARIABLE.findall(part) for part in TEMPLATE.findall(value))
        return {name for names in named for name in names}
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return set()
    return set().union(*map(find_variables, value))
