"""The requests of a run, counted and sent again."""

import typing as t

from benchmark.replay import split_into_phases
from benchmark.requests_made import count_endpoints, count_for_healthy, hide_limits

ONE = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def _send(path: str, port: int = 1) -> dict[str, t.Any]:
    return {"method": "GET", "url": f"http://127.0.0.1:{port}{path}"}


def test_requests_that_differ_in_identities_and_times_are_of_one_type() -> None:
    requests = [
        _send(f"/allocations/{ONE}"),
        _send(f"/allocations/{OTHER}"),
        _send("/servers?changes-since=2026-11-22T10:00:00Z&host=host-1", 2),
        _send("/servers?changes-since=2026-11-23T10:00:00Z&host=host-2", 2),
        _send("/servers", 2),
    ]

    assert count_endpoints(requests, {1: "placement", 2: "nova-api"}) == [
        ("placement: GET /allocations/{uuid}", 2),
        ("nova-api: GET /servers?changes-since={time}&host={host}", 2),
        ("nova-api: GET /servers", 1),
    ]


def test_requests_that_differ_in_their_limits_are_counted_together() -> None:
    counts = [("a?limit=5", 1), ("b", 4), ("a?limit=1000", 4), ("a?limit=5&marker=x", 1)]

    assert hide_limits(counts) == [("a?limit={n}", 5), ("b", 4), ("a?limit={n}&marker=x", 1)]


def test_only_lookups_of_healthy_consumers_count() -> None:
    requests = [
        _send(f"/allocations/{ONE}"),
        _send(f"/allocations/{OTHER}"),
        _send(f"/resource_providers/{ONE}/allocations"),
    ]

    assert count_for_healthy(requests, {OTHER}) == 1


def test_phase_ends_when_no_request_is_under_way() -> None:
    requests = [
        {"start": 0.0, "end": 2.0, "lane": "a"},
        {"start": 1.0, "end": 3.0, "lane": "b"},
        {"start": 2.5, "end": 4.0, "lane": "a"},
        {"start": 5.0, "end": 6.0, "lane": "a"},
    ]

    assert split_into_phases(requests) == [
        [[requests[0], requests[2]], [requests[1]]],
        [[requests[3]]],
    ]
