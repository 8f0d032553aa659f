# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings that a user selects with JMESPath.

That is the query language of Ansible's `json_query` and of many cloud tools:
https://jmespath.org/specification.html
"""

from __future__ import annotations

import traceback
import typing as t
from collections.abc import Sequence

from ..._common.errors import InvalidInput
from .entries import Entry

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:
    JMESPATH_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    JMESPATH_IMPORT_ERROR = None
    # jmespath lets Python's own errors through: for a slice with a step of zero, for a wrong type
    # within a function, and for too many brackets.
    _JMESPATH_ERRORS = (JMESPathError, ValueError, TypeError, RecursionError)


class Selection:
    """A compiled expression over the list of findings that returns findings or their ids."""

    def __init__(self, expression: str) -> None:
        """Compile `expression`.

        Raises InvalidInput when it is not a valid JMESPath expression.
        """
        self._expression = expression
        if JMESPATH_IMPORT_ERROR:
            raise InvalidInput(
                "select needs the Python library jmespath where this module runs: "
                "install it there, or leave select empty."
            )
        try:
            self._compiled = jmespath.compile(expression)
        except _JMESPATH_ERRORS as error:
            raise InvalidInput(
                f"select is not a valid JMESPath expression: {_join_lines(error)}; "
                "an example is [?kind=='extra_host']."
            ) from error

    def select_ids(self, findings: Sequence[Entry]) -> frozenset[str]:
        """Return the ids of those `findings` that the expression selects; null selects none.

        Raises InvalidInput when the expression fails on the findings, or returns something other
        than findings or ids.
        """
        finding_ids = {finding["id"] for finding in findings}
        selected_ids = set()
        for row in self._search(findings):
            identity = row.get("id") if isinstance(row, dict) else row
            # The type comes first: a list cannot be looked up in a set.
            if not isinstance(identity, str) or identity not in finding_ids:
                raise InvalidInput(
                    "select must return findings or their ids, as [?kind=='deleted_server'] does; "
                    f"{self._expression} returns something else."
                )
            selected_ids.add(identity)
        return frozenset(selected_ids)

    def _search(self, findings: Sequence[Entry]) -> list[t.Any]:
        try:
            result = self._compiled.search(list(findings))
        except _JMESPATH_ERRORS as error:
            raise InvalidInput(
                f"select cannot be applied to the findings: {_join_lines(error)}"
            ) from error
        if result is None:
            return []
        if isinstance(result, list):
            return result
        return [result]


def _join_lines(error: Exception) -> str:
    """Return the message of `error` in one line: jmespath marks the place in a line of its own."""
    return " ".join(str(error).split())
