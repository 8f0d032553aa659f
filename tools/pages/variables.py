# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the roles as tables, from their argument specifications.

An option that only another entry point than `main` lists is shown under that entry point.
"""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import yaml

ROLES = pathlib.Path(__file__).parents[2] / "roles"
HEADING = "| variable | type | default | what it does |\n|---|---|---|---|\n"

# Ansible's markup: O(name=value) and the like, and L(text, link).
_LITERAL = re.compile(r"\b[OVCMPR]V?\(((?:[^()\\]|\\.|\([^()]*\))*)\)")
_LINK = re.compile(r"\bL\(([^,()]+),\s*([^()]+)\)")
_STRONG = re.compile(r"\b[BI]\(([^()]*)\)")


def format_role(role: str) -> str:
    """Return one table for `main`, and one for each entry point with more variables."""
    path = ROLES / role / "meta" / "argument_specs.yml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
    common = entries["main"]["options"]
    parts = [_format_options(common)]
    for name, entry in entries.items():
        own = {key: value for key, value in entry.get("options", {}).items() if key not in common}
        if own:
            parts.append(f"Only for the entry point `{name}`:\n\n{_format_options(own)}")
    return "\n".join(parts)


def _format_options(options: dict[str, dict[str, t.Any]]) -> str:
    rows = [_format_option(name, option) for name, option in options.items()]
    return HEADING + "".join(rows)


def _format_option(name: str, option: dict[str, t.Any]) -> str:
    cells = [f"`{name}`", _format_type(option), _format_default(option), _format_text(option)]
    return f"| {' | '.join(cells)} |\n"


def _format_type(option: dict[str, t.Any]) -> str:
    type_ = option.get("type", "str")
    if type_ == "list" and "elements" in option:
        return f"list of {option['elements']}"
    return {"raw": "any"}.get(type_, type_)


def _format_default(option: dict[str, t.Any]) -> str:
    if option.get("required"):
        return "required"
    default = option.get("default")
    if default in (None, "", []):
        return "–"
    if isinstance(default, list):
        return ", ".join(f"`{value}`" for value in default)
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _format_text(option: dict[str, t.Any]) -> str:
    description = option["description"]
    sentences = [description] if isinstance(description, str) else description
    text = " ".join(format_markup(sentence) for sentence in sentences)
    if "choices" in option:
        text += f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}."
    return text.replace("|", "\\|")


def format_markup(text: str) -> str:
    """Return a text in Ansible's markup as Markdown."""
    text = _LITERAL.sub(lambda found: f"`{found[1].replace(chr(92), '')}`", text)
    text = _STRONG.sub(r"**\1**", text)
    return " ".join(_LINK.sub(r"[\1](\2)", text).split())
