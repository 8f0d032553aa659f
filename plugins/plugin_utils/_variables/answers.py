# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names as users type them into a survey of AWX, and as they arrive.

From ansible-core 2.19 on, an answer is read as if it had no quotes: `12345` is a number, `no` is
False, and an empty answer is null. A name cannot be recovered from what it became: 5349 was typed
as 5349, as 012345 or as 0x14e5, and each of them can be a host.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ...module_utils._common.errors import InvalidInput

_QUOTES = ("'", '"')

# A survey and the command line give a truth value as a text.
_YES = frozenset({"true", "yes"})
_NO = frozenset({"false", "no", ""})
# Ansible takes these for truth values too. They are refused, because such a word must be clear.
_UNCLEAR = frozenset({"0", "1", "off", "on", "t", "f", "y", "n"})


def read_host_names(answer: t.Any, variable: str, split: bool = True) -> list[str]:
    """Return the names in an answer: a text, a list of texts, or nothing at all.

    Quotes around a name are left out. Raises InvalidInput for anything that is not a text.

    variable: the name of the variable with the answer, for the message.
    split: whether a text has several names, with commas between them.
    """
    if answer is None:
        return []
    answers = answer if isinstance(answer, (list, tuple)) else [answer]
    names = []
    for text in answers:
        if not isinstance(text, str):
            raise InvalidInput(
                f"{variable} is {text!r}, which is not a name: put a name that YAML takes for a "
                "number, a date or a truth value (12345, no, on) in quotes, in a survey too."
            )
        names += _read_names(text, variable, split)
    return names


def _read_names(text: str, variable: str, split: bool) -> list[str]:
    parts = text.split(",") if split else [text]
    names = [_remove_quotes(part.strip()) for part in parts]
    named = [name for name in names if name]
    # Without names all hosts are meant, and only an empty answer may say that.
    if text.strip() and not named:
        raise InvalidInput(f"{variable} is {text!r}, which does not name a host.")
    return named


def _remove_quotes(text: str) -> str:
    # In a survey all that is typed is a part of the answer, and no name of a host has a quote.
    if len(text) > 1 and text[0] in _QUOTES and text[0] == text[-1]:
        return text[1:-1]
    return text


def read_fenced(value: t.Any) -> bool | list[str]:
    """Return whether the named hosts are fenced, or the names of those that are.

    Nothing but the word of the operator makes a host fenced: it is never concluded from the state
    of a service.

    Raises InvalidInput, with the end of a sentence, for anything that is neither.
    """
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _YES:
            return True
        if text in _NO:
            return False
    elif not isinstance(value, (list, tuple)):
        # 1 and 0 are refused too: with this word, nothing is guessed.
        raise InvalidInput(_explain(value))
    return _read_fenced_names(value)


def _read_fenced_names(value: t.Any) -> list[str]:
    try:
        names = read_host_names(value, "host_decommission_fenced")
    except InvalidInput as error:
        raise InvalidInput(_explain(value)) from error
    for name in names:
        is_truth_value = name.lower() in _YES | _NO | _UNCLEAR
        # A list in a text is no host either.
        if is_truth_value or name[0] in "[{" or len(name.split()) != 1:
            raise InvalidInput(_explain(value))
    return names


def _explain(value: t.Any) -> str:
    # Ansible reads all filters of a collection in each task that uses one of them.
    from ...module_utils._common.text import show_value

    return (
        f"is {show_value(value)}, which is neither true nor false nor a list of hosts: write true "
        "if no guest can still run on the hosts of host_decommission_target."
    )


def select_fenced_hosts(value: t.Any, targets: Iterable[str]) -> list[str]:
    """Return which of the hosts of a run are fenced by the operator's word.

    A host that is named and is not one of them is left out: the word is about this run only.
    """
    fenced = read_fenced(value)
    if isinstance(fenced, bool):
        return list(targets) if fenced else []
    return [host for host in targets if host in fenced]
