"""What a failing test says in one line, out of a message that can have hundreds of them."""

from __future__ import annotations

import json
import re
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_CONDITION = 120
LONGEST_LINE = 400
# How pytest begins the lines that say where two values differ; the difference itself can follow.
_DIFFERENCES = re.compile(
    r"(At index \d+ diff|Differing items|Extra items in the|"
    r"(Left|Right) contains|.* is contained here)"
)
_FATAL = re.compile(r'(?:fatal|failed): \[.*?"msg": (".*?(?<!\\)")')
_ERROR = re.compile(r"\[ERROR\]: (?:Task failed: )?(?:Action failed: )?(?:Module failed: )?(.+)")


def summarize(message: str) -> str:
    """Return what differs, in one line: the condition, and the reason if the message has one.

    message: of the exception, as pytest shows it: the text of an assertion, which is often the
    output of a run, and then the condition with its values.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return "no message"
    lines[0] = lines[0].removeprefix("AssertionError:").strip()
    condition = _find_condition(lines)
    parts = [condition[:LONGEST_CONDITION]] if condition else []
    reason = _find_reason(message) or _find_difference(lines) or _find_first(lines, condition)
    if reason:
        parts.append(reason)
    return _shorten(_print_safely(": ".join(parts)))


def _find_condition(lines: Sequence[str]) -> str:
    """Return the last condition, because an output before it can have such a line too."""
    found = [line for line in lines if line.startswith("assert ")]
    return found[-1] if found else ""


def _find_reason(message: str) -> str:
    """Return the sentence with which Ansible ended, in the words of any ansible-core."""
    errors = _ERROR.findall(message)
    if errors:
        return str(errors[-1])
    fatal = _FATAL.findall(message)
    if not fatal:
        return ""
    try:
        return str(json.loads(fatal[-1]))
    except json.JSONDecodeError:
        return str(fatal[-1])


def _find_difference(lines: Sequence[str]) -> str:
    for number, line in enumerate(lines):
        if _DIFFERENCES.match(line):
            told = " ".join(lines[number : number + 2])
            return told.partition("Use -v")[0].strip()
    return ""


def _find_first(lines: Sequence[str], condition: str) -> str:
    """Return the first line that says something, which is no heading of an output."""
    for line in lines:
        is_heading = line.startswith(("PLAY", "TASK", "+  where", "assert "))
        if line != condition and not is_heading and re.search(r"\w", line):
            return line
    return ""


def _shorten(text: str) -> str:
    """Leave out the middle of a long text: its cause often stands at its end."""
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[: LONGEST_LINE // 2 - 3]} ... {text[-LONGEST_LINE // 2 + 2 :]}"


def _print_safely(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
