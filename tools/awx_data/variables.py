# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the user: those at the top of `apply.yml` that the generated data contains."""

from __future__ import annotations

import dataclasses as d
import pathlib
import re
import typing as t

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.osops.placement.tools.awx_data.expressions import find_variables
from ansible_collections.osops.placement.tools.awx_data.kinds import SetupError

# `    name: value`, in the play of apply.yml.
VARIABLE_LINE = re.compile(r"    (\w+):")
COMMENT_LINE = re.compile(r"    # ")
# In another folder, these defaults would read other files.
READS_FILES = re.compile(r"\bplaybook_dir\b|\blookup\(")


@d.dataclass(frozen=True)
class Variable:
    """A variable with the comment above it."""

    name: str
    default: t.Any
    comment: str


def read_variables(path: pathlib.Path) -> dict[str, Variable]:
    """Return the variables of the play in apply.yml, in their order."""
    text = path.read_text(encoding="utf-8")
    (play,) = yaml.safe_load(text)
    comments = _read_comments(text)
    return {name: Variable(name, default, comments[name]) for name, default in play["vars"].items()}


def _read_comments(text: str) -> dict[str, str]:
    """Return the comment above each variable."""
    comments: dict[str, str] = {}
    above: list[str] = []
    for line in text.splitlines():
        named = VARIABLE_LINE.match(line)
        if named is not None:
            comments.setdefault(named[1], "\n".join(above))
        if COMMENT_LINE.match(line) is None:
            above = []
        else:
            above.append(line.strip())
    return comments


def select_variables(variables: t.Mapping[str, Variable], data: dict[str, t.Any]) -> list[Variable]:
    """Return the variables that the data contains, and those that their defaults contain."""
    needed: set[str] = set()
    # The data can also name another part of itself.
    found = find_variables(data) - set(data)
    while found - needed:
        needed |= found
        unknown = found - set(variables)
        if unknown:
            raise SetupError(f"apply.yml has no variables {sorted(unknown)}")
        found = find_variables([variables[name].default for name in found])
    return [known for name, known in variables.items() if name in needed]


def resolve_default(variable: Variable, folder: pathlib.Path) -> Variable:
    """Return a variable whose default no longer reads the files of this collection."""
    if not isinstance(variable.default, str) or not READS_FILES.search(variable.default):
        return variable
    templar = Templar(DataLoader(), variables={"playbook_dir": str(folder)})
    return d.replace(variable, default=templar.template(trust(variable.default)))


def trust(value: t.Any) -> t.Any:
    """Return a value whose templates Ansible resolves, also from ansible-core 2.19 on."""
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return value
    if isinstance(value, str):
        return trust_as_template(value)
    if isinstance(value, dict):
        return {name: trust(part) for name, part in value.items()}
    if isinstance(value, list):
        return [trust(part) for part in value]
    return value
