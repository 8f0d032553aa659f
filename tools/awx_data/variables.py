"""The variables of the user: those at the top of `apply.yml` that the generated data contains."""

import dataclasses as d
import pathlib
import re
import typing as t

import yaml

from .expressions import find_variables
from .kinds import SetupError

GALAXY = pathlib.Path(__file__).parents[2] / "galaxy.yml"
# The variable of apply.yml with the version of the collection.
VERSION = "awx_version"
# `    name: value`, in the play of apply.yml.
VARIABLE_LINE = re.compile(r"    (\w+):")
COMMENT_LINE = re.compile(r"    # ")
# In another folder, these defaults would read other files.
READS_FILES = re.compile(r"\bplaybook_dir\b")


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
    defaults = {**play["vars"], **_read_version(play["vars"])}
    return {name: Variable(name, default, comments[name]) for name, default in defaults.items()}


def _read_version(variables: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Return the version of this collection, which the data cannot read in another folder."""
    if VERSION not in variables:
        return {}
    return {VERSION: yaml.safe_load(GALAXY.read_text(encoding="utf-8"))["version"]}


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


def select_variables(variables: t.Mapping[str, Variable], named: set[str]) -> list[Variable]:
    """Return the variables that the data names, and those that their defaults name."""
    needed: set[str] = set()
    found = named
    while found - needed:
        needed |= found
        unknown = found - set(variables)
        if unknown:
            raise SetupError(f"apply.yml has no variables {sorted(unknown)}")
        found = find_variables([variables[name].default for name in found])
    selected = [known for name, known in variables.items() if name in needed]
    for known in selected:
        if READS_FILES.search(str(known.default)):
            raise SetupError(f"apply.yml: {known.name} reads the files of this collection")
    return selected
