# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Finds the variables that playbooks, roles and an inventory use, by their templates."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from jinja2 import Environment, TemplateError, meta, nodes

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Iterator

# The keywords and options whose values are expressions without braces.
_EXPRESSIONS = ("changed_when", "failed_when", "that", "until", "var", "when")

_LOOKUPS = ("lookup", "q", "query")

# Ansible's variables that hold all others.
_HOLDERS = frozenset({"hostvars", "vars"})


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
    for document in documents:
        for text, is_expression in _list_texts(document):
            if text.startswith("osops.placement."):
                role = text.removeprefix("osops.placement.")
                found |= {name for name in names if name.startswith(f"{role}_")}
            if any(name in text for name in names):
                found |= _list_variables(environment, text, is_expression).intersection(names)
    return found


def list_tags(documents: Iterable[t.Any]) -> set[str]:
    """Return the tags of all plays, roles, blocks and tasks in the documents."""
    tags: set[str] = set()
    for document in documents:
        for key, value in _list_pairs(document):
            if key == "tags":
                parts = value if isinstance(value, list) else [value]
                tags |= {tag.strip() for part in parts for tag in str(part).split(",")}
    return tags


def _list_pairs(document: t.Any) -> Iterator[tuple[t.Any, t.Any]]:
    """Return each key with its value, from all dictionaries and lists; None for an element."""
    parts: Iterable[tuple[t.Any, t.Any]] = ()
    if isinstance(document, Mapping):
        parts = (
            (key, part)
            for key, part in document.items()
            if key not in _HOLDERS or isinstance(part, dict)
        )
    elif isinstance(document, (list, tuple)):
        parts = ((None, part) for part in document)
    for key, part in parts:
        yield key, part
        yield from _list_pairs(part)


def _list_texts(document: t.Any) -> Iterator[tuple[str, bool]]:
    """Return all texts, each with whether it is an expression."""
    if isinstance(document, str):
        yield document, False
    for key, value in _list_pairs(document):
        is_expression = key in _EXPRESSIONS
        if is_expression and isinstance(value, list):
            yield from ((part, True) for part in value if isinstance(part, str))
        elif key == "vars_prompt":
            # An extra variable answers the question.
            yield from ((str(prompt.get("name")), True) for prompt in value)
        elif isinstance(value, str):
            yield value, is_expression
        # A key can be a template too.
        if isinstance(key, str) and "{{" in key:
            yield key, False


def _list_variables(environment: Environment, text: str, is_expression: bool) -> set[str]:
    if is_expression and "{{" not in text:
        text = "{{ " + text + " }}"
    try:
        template = environment.parse(text)
        variables = set(meta.find_undeclared_variables(template))
    except (TemplateError, RecursionError):
        return set()
    return variables | set(_list_indirect(template))


def _list_indirect(template: nodes.Template) -> Iterator[str]:
    """Return the variables whose names a template has as texts: vars.x, lookup('vars', 'x')."""
    accesses: Iterable[t.Any] = template.find_all((nodes.Getattr, nodes.Getitem))
    for access in accesses:
        if _HOLDERS & {name.name for name in access.find_all(nodes.Name)}:
            yield access.attr if isinstance(access, nodes.Getattr) else _get_text(access.arg)
    for call in template.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in _LOOKUPS and call.args:
            first, *others = map(_get_text, call.args)
            if first in ("vars", "ansible.builtin.vars"):
                yield from others


def _get_text(node: nodes.Expr) -> str:
    return str(node.value) if isinstance(node, nodes.Const) else ""
