# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The findings that a user selects with JMESPath, the query language of Ansible's `json_query` and of many cloud tools.

https://jmespath.org/specification.html
"""

from __future__ import annotations

import traceback
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:
    JMESPATH_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    JMESPATH_IMPORT_ERROR = None
    # jmespath lets out Python's own: of a slice by no step, of a wrong type within a function, of too many brackets.
    _JMESPATH_ERRORS = (JMESPathError, ValueError, TypeError, RecursionError)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping, Sequence


class Selection:
    """A compiled expression over the list of findings, which gives finding objects or their ids."""

    def __init__(self, expression: str) -> None:
        """Raises InvalidInput for an expression that is none."""
        self._expression = expression
        if JMESPATH_IMPORT_ERROR:
            raise InvalidInput(
                "select needs the Python library jmespath where this module runs: install it there, or leave select empty."
            )
        try:
            self._compiled = jmespath.compile(expression)
        except _JMESPATH_ERRORS as error:
            raise InvalidInput(
                f"select is no JMESPath expression: {' '.join(str(error).split())}"
            ) from error

    def select_ids(self, findings: Sequence[Mapping[str, t.Any]]) -> frozenset[str]:
        """Return the ids of those `findings` that the expression gives; an answer of null gives none.

        Raises InvalidInput when it fails on them, or gives something else than findings or ids.
        """
        try:
            found = self._compiled.search(list(findings))
        except _JMESPATH_ERRORS as error:
            raise InvalidInput(
                f"select cannot be applied to the findings: {' '.join(str(error).split())}"
            ) from error
        rows = [] if found is None else found if isinstance(found, list) else [found]
        known = {finding["id"] for finding in findings}
        ids = [row.get("id") if isinstance(row, dict) else row for row in rows]
        if not all(isinstance(identity, str) and identity in known for identity in ids):
            raise InvalidInput(
                f"select must give findings or their ids, as [?kind=='deleted_server'] does; {self._expression} gives others."
            )
        return frozenset(map(str, ids))
