# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""For which hosts the operator has said that no guest can still run on them.

Nothing but that word makes a host fenced: it is never concluded from the state of a service.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable

from ...module_utils._common.errors import InvalidInput
from .answers import read_host_names
from .variable_text import show_value

# A survey and the command line give a truth value as a text.
_YES = frozenset({"true", "yes"})
_NO = frozenset({"false", "no", ""})
# Ansible takes these for truth values too. They are refused, because such a word must be clear.
_UNCLEAR = frozenset({"0", "1", "off", "on", "t", "f", "y", "n"})


def read_fenced(value: t.Any) -> bool | list[str]:
    """Return whether the named hosts are fenced, or the names of those that are.

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
    return _read_names(value)


def _read_names(value: t.Any) -> list[str]:
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
