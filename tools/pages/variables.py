"""The variables of the roles as tables.

The connection is the same in all roles, and described once. So is an option that an earlier role
has in the same way.
"""

import json
import re
import typing as t

from ...plugins.action.validate_variables import ROLES
from ...plugins.module_utils._common.options import Duration
from ...plugins.module_utils._core.options.connection import ConnectionOptions
from .options import describe_options, describe_variables

HEADING = "| variable | type | default | what it does |\n|---|---|---|---|\n"

# Ansible's markup: O(name=value) and the like, and L(text, link).
_LITERAL = re.compile(r"\b[OVCMPR]V?\(((?:[^()\\]|\\.|\([^()]*\))*)\)")
_LINK = re.compile(r"\bL\(([^,()]+),\s*([^()]+)\)")
_STRONG = re.compile(r"\b[BI]\(([^()]*)\)")


def format_role(name: str) -> str:
    """Return one table for `main`, and one for each entry point with more variables."""
    role = ROLES[name]
    connection = {f"{role.prefix}{option}" for option in ConnectionOptions.list_options()}
    earlier = _list_earlier(name)
    parts = []
    for entry_point, options in role.parts.items():
        rows = []
        for variable, option in describe_variables(role, options).items():
            if variable in connection:
                continue
            plain = describe_options(options)[variable.removeprefix(role.prefix)]
            same = earlier.get(json.dumps(plain))
            rows.append(_format_option(variable, option, f"The same as `{same}`." if same else ""))
        start = "" if entry_point == "main" else f"Only for the entry point `{entry_point}`:\n\n"
        parts.append(f"{start}{HEADING}{''.join(rows)}")
    return "\n".join(parts)


def format_connection() -> str:
    """Return the table of the connection, whose variables have the prefix of each role."""
    rows = [
        _format_option(f"…_{name}", option)
        for name, option in describe_options(ConnectionOptions).items()
    ]
    return HEADING + "".join(rows)


def _list_earlier(name: str) -> dict[str, str]:
    """Return the variables of the roles before a role, by all that is said of them."""
    found: dict[str, str] = {}
    for role in ROLES.values():
        if role.name == name:
            break
        for options in role.parts.values():
            for option, described in describe_options(options).items():
                found.setdefault(json.dumps(described), f"{role.prefix}{option}")
    return found


def _format_option(name: str, option: dict[str, t.Any], text: str = "") -> str:
    text = text or _format_text(option)
    return f"| `{name}` | {_format_type(option)} | {_format_default(option)} | {text} |\n"


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
    # The page says once what a duration is.
    sentences = [sentence for sentence in option["description"] if sentence != Duration.note]
    text = " ".join(format_markup(sentence) for sentence in sentences)
    if "choices" in option:
        text += f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}."
    return text.replace("|", "\\|")


def format_markup(text: str) -> str:
    """Return a text in Ansible's markup as Markdown."""
    text = _LITERAL.sub(lambda found: f"`{found[1].replace(chr(92), '')}`", text)
    text = _STRONG.sub(r"**\1**", text)
    return " ".join(_LINK.sub(r"[\1](\2)", text).split())
