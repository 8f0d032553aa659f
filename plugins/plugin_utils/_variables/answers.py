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

from ...module_utils._common.errors import InvalidInput

_QUOTES = ("'", '"')


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
