# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adding a host to an aggregate: only the aggregate itself shows whether it worked."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._core.clients.api import Reply
from ansible_collections.osops.placement.plugins.module_utils._core.clients.groups import (
    AggregateClient,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import Aggregate

SSD = Aggregate("33333333-3333-4333-8333-333333333333", "ssd", "az1", (), id=7)
REFUSAL = {"conflictingRequest": {"message": "One or more hosts already in availability zone(s)."}}


class Nova:
    """The aggregates of a cloud, behind what a client uses."""

    def __init__(self, status: int = 200, accepted: bool = True) -> None:
        self.hosts: list[str] = []
        self.sent: list[t.Any] = []
        self._status = status
        self._accepted = accepted

    newest = (2, 90)

    def choose_microversion(self, major: int, minor: int) -> str:
        return f"{major}.{minor}"

    def read(self, path: str, microversion: str, parse: t.Any) -> tuple[Reply, t.Any]:
        row = {"id": 7, "uuid": SSD.uuid, "name": "ssd", "availability_zone": "az1"}
        reply = Reply(200, {}, {"aggregates": [{**row, "hosts": list(self.hosts)}]})
        return reply, parse(reply)

    def expect(self, reply: Reply, what: str) -> Reply:
        if reply.status != 200:
            raise CloudError(reply.detail)
        return reply

    def write(self, method: str, path: str, microversion: str, body: t.Any) -> Reply:
        self.sent.append((method, path, body))
        if self._accepted:
            self.hosts.append(body["add_host"]["host"])
        return Reply(self._status, {}, REFUSAL if self._status != 200 else {})


def _client(nova: Nova) -> AggregateClient:
    return AggregateClient(t.cast("t.Any", nova))


def test_host_is_added_by_the_number_of_the_aggregate() -> None:
    nova = Nova()
    _client(nova).add_host(SSD, "compute-1")

    assert nova.sent == [("POST", "/os-aggregates/7/action", {"add_host": {"host": "compute-1"}})]
    assert _client(nova).list_aggregates_of("compute-1") == (d.replace(SSD, hosts=("compute-1",)),)


def test_host_that_somebody_else_has_added_is_no_failure() -> None:
    """Nova answers 409 then, as it does where it refuses."""
    nova = Nova(status=409, accepted=True)
    _client(nova).add_host(SSD, "compute-1")

    assert nova.hosts == ["compute-1"]


@pytest.mark.parametrize(
    ("status", "sentence"), [(409, "already in availability zone"), (200, "does not list it")]
)
def test_host_that_is_not_in_it_afterwards_is_a_failure(status: int, sentence: str) -> None:
    with pytest.raises(CloudError, match=sentence):
        _client(Nova(status, accepted=False)).add_host(SSD, "compute-1")
