"""Jinja in `setup.yml`: what can be computed now, and what depends on the variables of the user.

An expression such as `awx_job | combine({'playbook': awx_playbooks ~ '/x.yml'})` only joins data of
`setup.yml`. It is computed here, so that the generated files are plain data. A variable of the user
stays a template.
"""

import json
import re
import typing as t

import jinja2

from .kinds import SetupError

TEMPLATE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
ONE_TEMPLATE = re.compile(r"\s*\{\{((?:(?!\}\}).)*)\}\}\s*", re.DOTALL)
TO_JSON = re.compile(r"\|\s*to_json\s*$")
QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")
# `'LIST/' ~ awx_name if awx_name else ''`: another object, unless the user names none.
OPTIONAL_REF = re.compile(r"\s*'(\w+/)' ~ (awx_\w+) if \2 else ''\s*")
STATEMENT = re.compile(r"\{%(.*?)%\}", re.DOTALL)
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


def omit_empty(text: str) -> str:
    """Return an expression that leaves its option out if its value is empty."""
    found = ONE_TEMPLATE.fullmatch(text)
    if found is None:
        raise SetupError(f"setup.yml: {text!r} is not one expression")
    expression = found[1].strip()
    # The filter would apply to the last part alone.
    if " " in expression:
        expression = f"({expression})"
    return f"{{{{ {expression} | default(omit, true) }}}}"


def name_optional(text: str) -> tuple[str, str]:
    """Return the list of an object that the user may name, and the option with its name."""
    found = ONE_TEMPLATE.fullmatch(text)
    optional = OPTIONAL_REF.fullmatch(found[1]) if found else None
    if optional is None:
        raise SetupError(f"setup.yml: the generator does not know how to name {text!r}")
    return optional[1], omit_empty(f"{{{{ {optional[2]} }}}}")


def build_loop(entry: t.Any, items: str, item: str) -> str:
    """Return a template with one entry for each item of a list of the user."""
    statements = (
        "set entries = []",
        f"for {item} in {items}",
        f"set _ = entries.append({_write_value(entry)})",
        "endfor",
    )
    # Without any text around the list, so that it does not become a text itself.
    return "".join(f"{{%- {statement} -%}} " for statement in statements) + "{{ entries }}"


def _write_value(value: t.Any) -> str:
    """Return a value with templates as an expression."""
    if isinstance(value, dict):
        parts = [f"'{name}': {_write_value(part)}" for name, part in value.items()]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    if isinstance(value, str):
        return to_expression(value)
    if value is None:
        return "none"
    return json.dumps(value)


def find_variables(value: t.Any) -> set[str]:
    """Return the variables in the templates of a value."""
    if isinstance(value, str):
        parts = TEMPLATE.findall(value) + STATEMENT.findall(value)
        return set(VARIABLE.findall(" ".join(parts)))
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return set()
    return set().union(*map(find_variables, value))
