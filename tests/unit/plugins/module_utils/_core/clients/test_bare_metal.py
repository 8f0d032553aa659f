# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the nodes of Ironic are listed: all pages, with the fields that this Ironic has."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._core.clients.api import Reply
from ansible_collections.osops.placement.plugins.module_utils._core.clients.other_services import (
    BareMetalReader,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import Answer

NODE = {
    "uuid": "node-1",
    "provision_state": "active",
    "maintenance": False,
    "power_state": "power on",
    "instance_uuid": "server-1",
    "resource_class": "gold",
    "owner": "project-1",
    "provision_updated_at": "2026-11-01T12:00:00+00:00",
    "updated_at": None,
}


class Ironic:
    """Pages of nodes; a number stands for the status of an answer without a value."""

    endpoint = "http://ironic/v1/"

    def __init__(self, *pages: t.Any, newest: str = "1.94", status: int = 200) -> None:
        self.pages = list(pages)
        self.newest = newest
        self.status = status
        self.sent: list[tuple[str, str, dict[str, t.Any]]] = []

    def read(self, path: str, microversion: None, parse: t.Any) -> tuple[Reply, t.Any]:
        reply = Reply(self.status, {}, {"version": {"version": self.newest}})
        return reply, parse(reply) if self.status == 200 else None

    def expect(self, reply: Reply, what: str) -> Reply:
        if reply.status != 200:
            raise CloudError(f"answered {reply.status}")
        return reply

    def ask(
        self, path: str, microversion: str, parse: t.Any, own: bool = False, **query: t.Any
    ) -> Answer[t.Any]:
        self.sent.append((path, microversion, query))
        page = self.pages.pop(0)
        if isinstance(page, int):
            return Answer(path, microversion, page, "", None)
        return Answer(path, microversion, 200, "", parse(Reply(200, {}, page)))


def list_nodes(ironic: Ironic) -> Answer[t.Any]:
    return BareMetalReader(t.cast("t.Any", ironic)).list_nodes()


def test_every_page_is_read_and_a_repeated_node_counts_once() -> None:
    second = {**NODE, "uuid": "node-2"}
    ironic = Ironic({"nodes": [NODE]}, {"nodes": [NODE, second]}, {"nodes": []})
    nodes = list_nodes(ironic).value

    assert [node.uuid for node in nodes] == ["node-1", "node-2"]
    assert [query.get("marker") for _path, _version, query in ironic.sent] == [
        None,
        "node-1",
        "node-2",
    ]
    assert nodes[0].instance == "server-1"
    # Nova's times have no zone, and both are compared.
    assert nodes[0].changed_at == "2026-11-01T12:00:00"


@pytest.mark.parametrize(
    ("newest", "microversion", "fields"),
    [("1.94", "1.65", {"owner", "lessee"}), ("1.58", "1.58", {"owner"}), ("1.31", "1.31", set())],
)
def test_only_the_fields_of_this_ironic_are_asked_for(
    newest: str, microversion: str, fields: set[str]
) -> None:
    ironic = Ironic({"nodes": []}, newest=newest)
    list_nodes(ironic)

    ((_path, sent, query),) = ironic.sent
    assert sent == microversion
    assert set(query["fields"].split(",")) & {"owner", "lessee"} == fields


def test_page_that_is_refused_leaves_the_listing_without_a_value() -> None:
    answer = list_nodes(Ironic({"nodes": [NODE]}, 403))

    assert (answer.status, answer.value) == (403, None)


def test_ironic_that_does_not_name_its_versions_is_an_error() -> None:
    with pytest.raises(CloudError, match="503"):
        list_nodes(Ironic(status=503))
