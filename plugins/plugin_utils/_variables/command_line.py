# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds what has no effect in the texts after `-e`."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable, Iterable, Mapping

import yaml
from ansible.parsing.splitter import split_args

from ...module_utils._common.text import make_printable
from .unknown import Roles, is_ignored

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


def explain_broken_text(
    extra: Mapping[t.Any, t.Any], values: Mapping[str, t.Any], roles: Roles
) -> str:
    """Return how to write what Ansible did not understand after `-e`; empty if it did."""
    if _LEFTOVER not in extra:
        odd = [name for name in extra if isinstance(name, str) and _NO_NAME.search(name)]
        return "" if all(is_ignored(name, values) for name in odd) else _WORDS
    text = str(extra[_LEFTOVER])
    start = "Ansible does not understand what follows -e, and leaves it out: write"
    file = _FILE.fullmatch(text)
    if file:
        return f"{start} -e @{make_printable(file[1])} for a file."
    assignment = _ASSIGNMENT.fullmatch(text)
    if not assignment:
        return _WORDS
    name, value = assignment.groups()
    options = {name: option for role in roles.values() for name, option in role.options.items()}
    is_public = name in options and not options[name].secret
    if not is_public or not re.fullmatch(r"\[?[\w.,: -]+\]?", value):
        value = "VALUE"
    value = re.sub(r"\s*,\s*", ",", value.strip("[] "))
    quote = "'" if " " in value else ""
    return f"{start} -e {name}={quote}{value}{quote}."
