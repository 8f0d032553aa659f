# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the texts of a run: what has no effect after `-e`, and which variables templates use."""

from __future__ import annotations

import itertools
import re
import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import yaml
from ansible.parsing.splitter import split_args
from jinja2 import Environment, TemplateError, meta

from ...module_utils._common.text import make_printable
from .unknown import Roles

# In this variable Ansible keeps what it does not understand after -e.
_LEFTOVER = "_raw_params"
_ASSIGNMENT = re.compile(r"[\"']?(\w+)[\"']?\s*[:=]+\s*(.*?)\s*", re.DOTALL)
_FILE = re.compile(r"@?(\S+\.(?:ya?ml|json))")
_NO_NAME = re.compile(r"[^\w.-]")
_WORDS = (
    "-e has words that belong to no variable, and Ansible leaves them out: put commas without "
    "spaces between the values of a list, as in -e orphan_cleanup_hosts=ONE,TWO, and quotes around "
    "a value with spaces."
)

# The keywords and options whose values are expressions without braces.
_EXPRESSIONS = ("changed_when", "failed_when", "that", "until", "var", "when")

# Ansible's variables that hold all others.
_HOLDERS = frozenset({"ansible.builtin.vars", "hostvars", "vars"})


def find_lost_texts(
    texts: Iterable[str], read_file: Callable[[str], str], roles: Roles
) -> list[str]:
    """Return a sentence for each text after `-e` that has no effect.

    texts: what follows each `-e` of the command line.
    read_file: returns the text of a file.
    """
    given = list(texts)
    sentences = []
    if any(not text.strip() for text in given):
        sentences.append("-e is empty: write -e NAME=VALUE, or leave it out.")
    lost: dict[str, None] = {}
    earlier: set[str] = set()
    for text in given:
        is_file = text.startswith("@")
        names = _list_names(read_file(text[1:]), True) if is_file else _list_names(text)
        lost |= dict.fromkeys(name for name in names if name in earlier or names.count(name) > 1)
        # What follows a file is there to replace something in it.
        earlier |= set() if is_file else set(names)
    return sentences + [
        f"{name} is given more than once, and only the last one would count: give it once, and "
        f"several values as {name}=ONE,TWO."
        for name in lost
        if name.startswith(tuple(role.prefix for role in roles.values()))
    ]


def _list_names(text: str, is_yaml: bool = False) -> list[str]:
    """Return the names of the variables in a text, also those that come twice."""
    if not is_yaml and not text.startswith(("{", "[")):
        return [part.partition("=")[0] for part in split_args(text)]
    try:
        # Not loaded: that would keep only the last one, and needs to know the tags of Ansible.
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError:
        return []
    parts = node.value if isinstance(node, yaml.MappingNode) else []
    return [str(key.value) for key, _value in parts]


def explain_broken_text(names: Iterable[t.Any], extra: Mapping[t.Any, t.Any], roles: Roles) -> str:
    """Return how to write what Ansible did not understand after `-e`; empty if it did.

    names: those of the extra variables that are not for another tool.
    """
    if _LEFTOVER not in extra:
        is_odd = any(isinstance(name, str) and _NO_NAME.search(name) for name in names)
        return _WORDS if is_odd else ""
    text = str(extra[_LEFTOVER])
    start = "Ansible does not understand what follows -e, and leaves it out: write"
    file, assignment = _FILE.fullmatch(text), _ASSIGNMENT.fullmatch(text)
    if file:
        return f"{start} -e @{make_printable(file[1])} for a file."
    if not assignment:
        return _WORDS
    name, value = assignment.groups()
    public = {
        name
        for role in roles.values()
        for name, option in role.options.items()
        if not option.secret
    }
    if name not in public or not re.fullmatch(r"\[?[\w.,: -]+\]?", value):
        value = "VALUE"
    value = re.sub(r"\s*,\s*", ",", value.strip("[] "))
    quote = "'" if " " in value else ""
    return f"{start} -e {name}={quote}{value}{quote}."


class _Anything(dict[str, t.Any]):
    """Filters and tests of any name: Jinja2 asks whether there is one."""

    def get(self, _key: str, _default: t.Any = None) -> t.Any:
        return str


def find_mentioned(names: Collection[str], documents: Iterable[t.Any]) -> set[str]:
    """Return those of the names that a template or a condition in the documents uses.

    documents: contents of YAML files, or variables with their templates. A variable of a role
    counts as used, too, where a document names the role.
    """
    environment = Environment()
    environment.filters = environment.tests = _Anything()
    found: set[str] = set()
    for key, value in itertools.chain.from_iterable(map(_list_values, documents)):
        if found.issuperset(names):
            break
        if key == "vars_prompt" and isinstance(value, Mapping):
            # An extra variable answers the question.
            found.add(str(value.get("name")))
        elif isinstance(value, str):
            if value.startswith("osops.placement."):
                role = value.removeprefix("osops.placement.")
                found |= {name for name in names if name.startswith(f"{role}_")}
            if any(name in value for name in names):
                is_template = key not in _EXPRESSIONS or "{{" in value
                text = value if is_template else "{{ " + value + " }}"
                found |= _list_variables(environment, text)
    return found.intersection(names)


def list_tags(documents: Iterable[t.Any]) -> set[str]:
    """Return the tags of all plays, roles, blocks and tasks in the documents."""
    tags: set[str] = set()
    for key, value in _list_values(list(documents)):
        if key == "tags" and not isinstance(value, list):
            tags |= {tag.strip() for tag in str(value).split(",")}
    return tags


def is_import(entry: t.Any) -> bool:
    """Return whether an entry of a playbook stands for another playbook."""
    return isinstance(entry, Mapping) and any("import_playbook" in str(name) for name in entry)


def _list_values(value: t.Any, key: t.Any = None) -> Iterator[tuple[t.Any, t.Any]]:
    """Return a value and all values in it, each with the key that it, or its list, stands at."""
    yield key, value
    if isinstance(value, Mapping):
        for name, part in value.items():
            # A key can be a template too.
            yield None, name
            if name not in _HOLDERS or isinstance(part, dict):
                yield from _list_values(part, name)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _list_values(part, key)


def _list_variables(environment: Environment, text: str) -> set[str]:
    try:
        variables = set(meta.find_undeclared_variables(environment.parse(text)))
    except (TemplateError, RecursionError):
        return set()
    words = {word.strip("\"'") for _line, kind, word in environment.lex(text) if kind != "data"}
    # The name of a variable can be a text: vars.x, hostvars['a'].x, lookup('vars', 'x').
    return variables | words if words & _HOLDERS else variables
