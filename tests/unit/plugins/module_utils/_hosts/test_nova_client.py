"""Rows of Nova that decide about moves, as older and newer releases write them."""

import types
import typing as t

import pytest

from ......plugins.module_utils._core.clients.api import Reply
from ......plugins.module_utils._core.clients.nova import parse_aggregate
from ......plugins.module_utils._hosts.nova_client import (
    MoveReply,
    ServerMover,
    describe_failed_events,
    parse_drain_server,
    parse_group,
)
from ..moving_nova import MovingNova, lose

ROW: dict[str, t.Any] = {"id": "s1", "name": "web-1", "OS-EXT-AZ:availability_zone": "az1"}


@pytest.mark.parametrize(
    ("row", "zone"),
    [
        # Before 2.96 only the present zone is known, and it may have been requested.
        (ROW, "az1"),
        ({**ROW, "pinned_availability_zone": "az2"}, "az2"),
        # From 2.96 on a null says that no zone was requested.
        ({**ROW, "pinned_availability_zone": None}, None),
        ({"id": "s1", "OS-EXT-AZ:availability_zone": ""}, None),
    ],
)
def test_the_zone_that_was_requested(row: dict[str, t.Any], zone: str | None) -> None:
    assert parse_drain_server(row).pinned_zone == zone


def test_a_server_on_a_volume() -> None:
    volumes = {"os-extended-volumes:volumes_attached": [{"id": "v1"}]}

    assert parse_drain_server({**ROW, "image": "", **volumes}).is_volume_backed
    assert not parse_drain_server({**ROW, "image": {"id": "i1"}, **volumes}).is_volume_backed
    assert not parse_drain_server(ROW).is_volume_backed


@pytest.mark.parametrize(
    ("fields", "policy", "limit"),
    [
        ({"policies": ["anti-affinity"]}, "anti-affinity", 1),
        ({"policy": "anti-affinity", "rules": {"max_server_per_host": 3}}, "anti-affinity", 3),
        ({"policy": "affinity", "rules": {}}, "affinity", 1),
        ({"policies": []}, "", 1),
    ],
)
def test_server_groups(fields: dict[str, t.Any], policy: str, limit: int) -> None:
    group = parse_group({"id": "g1", "name": "web", "members": ["s1"], **fields})

    assert (group.policy, group.max_per_host) == (policy, limit)


def test_an_aggregate_without_metadata() -> None:
    row = {"uuid": "a1", "name": "fast", "hosts": ["compute-1"], "metadata": None}

    assert parse_aggregate(row).metadata == {}


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], ""),
        ([{"result": "Success"}], ""),
        ([{"result": "Error", "details": "No valid host was found."}], "No valid host was found."),
        (
            [{"result": "Error", "traceback": "  File x\nNoValidHost: No valid host.\n"}],
            "NoValidHost: No valid host.",
        ),
        ([{"result": "Error", "traceback": None}], ""),
        (
            [
                {"result": "Error", "details": "second", "start_time": "2"},
                {"result": "Error", "details": "first", "start_time": "1"},
            ],
            "second",
        ),
    ],
)
def test_the_last_words_of_a_failed_action(events: list[dict[str, t.Any]], words: str) -> None:
    assert describe_failed_events({"events": events}) == words


@pytest.mark.parametrize(
    ("status", "accepted", "refused"),
    [
        (202, True, False),
        (204, True, False),
        (400, False, True),
        (404, False, True),
        (409, False, True),
        # After these, Nova may or may not have begun.
        (500, False, False),
        (503, False, False),
        (None, False, False),
    ],
)
def test_what_an_answer_means(status: int | None, accepted: bool, refused: bool) -> None:
    reply = MoveReply(status, "")

    assert reply.is_accepted is accepted
    assert reply.is_refused is refused


@pytest.mark.parametrize(
    ("headers", "request_id"),
    [
        ({"x-openstack-request-id": "req-1", "x-compute-request-id": "req-1"}, "req-1"),
        ({"x-compute-request-id": "req-1"}, "req-1"),
        ({}, ""),
    ],
)
def test_id_of_a_request_is_in_either_header(headers: dict[str, str], request_id: str) -> None:
    api = types.SimpleNamespace(
        choose_microversion=lambda *_version: "2.68",
        write=lambda *_request: Reply(202, headers, {}),
    )

    assert ServerMover(t.cast(t.Any, api)).confirm_resize("a").request_id == request_id


def test_a_lost_answer_is_neither_accepted_nor_refused() -> None:
    nova = MovingNova()
    server = nova.boot("web")
    nova.on("POST", "/action$", after=lose)

    reply = ServerMover(nova.session().compute).move(server, "live")

    assert not reply.is_accepted and not reply.is_refused
    assert "does not answer" in reply.detail
