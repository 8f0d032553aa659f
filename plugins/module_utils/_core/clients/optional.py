# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services that a cloud may lack, or that may refuse these credentials.

What they say decides only what is known about a server. Nothing that they answer, and no silence,
ends a run.
"""

from __future__ import annotations

import typing as t

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..models.snapshot import NOT_ASKED, Answer
from .api import Api, Reply

T = t.TypeVar("T")

# After so many requests in a row without an answer, a service is not asked again.
_MAX_FAILURES = 3


class OptionalApi:
    """A service that is asked for evidence, and whose absence is an answer too."""

    def __init__(self, api: Api | None) -> None:
        self._api = api
        self._failures = 0

    def ask(self, path: str, read: t.Callable[[Reply], T | None], **params: t.Any) -> Answer[T]:
        """GET `path` and return the reply as evidence: any status is an answer.

        The answer is `NOT_ASKED` for a service that the catalogue does not have, and has the status
        0 where the service did not answer, or not as this service does.
        """
        return self._try(path, lambda api: api.ask(path, None, read, **params))

    def ask_pages(
        self, path: str, key: str, parse: t.Callable[[t.Any], T], **params: t.Any
    ) -> Answer[tuple[T, ...]]:
        """GET all pages of a listing as `Api.read_pages` does, and return them as `ask` does."""
        return self._try(path, lambda api: api.ask_pages(path, key, parse, **params))

    def _try(self, path: str, ask: t.Callable[[Api], Answer[T]]) -> Answer[T]:
        if self._api is None:
            return NOT_ASKED
        if self._failures < _MAX_FAILURES:
            try:
                answer = ask(self._api)
            except CloudError:
                self._failures += 1
            else:
                self._failures = 0
                # Its errors decide nothing, so that another attempt only costs time.
                self._api.believes_errors = answer.status >= 500
                return answer
        return Answer(f"GET {path}", "", 0, get_utc_now())
