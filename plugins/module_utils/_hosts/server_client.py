# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask Nova to move servers.

No request names a host, except the one that takes a server back to a host where it was, and none
of them has `force`: Nova's scheduler decides in each case, with all of its filters.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from .._common.errors import CloudError
from .._core.clients.api import Api

# The headers with the id of a request, which is also that of its instance action. Nova sends both,
# and a proxy may let only one pass.
_REQUEST_IDS = ("x-openstack-request-id", "x-compute-request-id")


@d.dataclass(frozen=True)
class MoveReply:
    """What became of a request.

    status: None if there was no answer, so that the request may or may not have reached Nova.
    request_id: empty where the answer has none.
    """

    status: int | None
    detail: str
    request_id: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def is_refused(self) -> bool:
        """Whether the answer says what is wrong with the request, so that Nova did nothing."""
        return self.status is not None and 400 <= self.status < 500


class ServerMover:
    """Sends the requests that move one server. Each is sent once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        # From 2.68 on Nova knows no `force`. From 2.95 on an evacuated server is stopped, while up
        # to 2.94 it keeps its state.
        self._microversion = api.choose_microversion(2, 68)

    def check_hosts_can_be_named(self) -> None:
        """Raise CloudError if Nova is too old to name the host of a cold migration (2.56)."""
        self._api.require_microversion(2, 56)

    def live_migrate(self, server: str, host: str | None = None) -> MoveReply:
        """Ask for a live migration, to `host` if the scheduler accepts it."""
        return self._act(server, {"os-migrateLive": {"host": host, "block_migration": "auto"}})

    def cold_migrate(self, server: str, host: str | None = None) -> MoveReply:
        """Ask for a cold migration, to `host` if the scheduler accepts it."""
        if host is None:
            return self._act(server, {"migrate": None})
        return self._act(server, {"migrate": {"host": host}})

    def evacuate(self, server: str) -> MoveReply:
        return self._act(server, {"evacuate": {}})

    def confirm_resize(self, server: str) -> MoveReply:
        return self._act(server, {"confirmResize": None})

    def _act(self, server: str, body: Mapping[str, t.Any]) -> MoveReply:
        try:
            reply = self._api.write("POST", f"/servers/{server}/action", self._microversion, body)
        except CloudError as error:
            return MoveReply(None, str(error))
        request_ids = filter(None, map(reply.headers.get, _REQUEST_IDS))
        return MoveReply(reply.status, reply.detail, next(request_ids, ""))
