# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the variables that playbooks, roles and an inventory use, by their templates."""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping

from jinja2 import Environment, TemplateError, meta

# The keywords and options whose values are expressions without braces.
_EXPRESSIONS = ("changed_when", "failed_when", "that", "until", "var", "when")

# Ansible's variables that hold all others.
_HOLDERS = frozenset({"ansible.builtin.vars", "hostvars", "vars"})


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
