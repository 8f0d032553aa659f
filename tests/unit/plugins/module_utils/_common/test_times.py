"""Durations: valid input, refused input, and how they are displayed."""

from __future__ import annotations

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.times import (
    format_duration,
    is_earlier,
    parse_duration,
    read_http_clock,
    seconds_between,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90),
        (90, 90),
        ("90s", 90),
        ("15m", 900),
        ("24h", 86400),
        ("7d", 604800),
        ("0", 0),
        (0, 0),
        (" 15 m ", 900),
    ],
)
def test_number_with_or_without_a_unit_is_a_duration(text: str | int, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "h", "-1h", "1.5h", "1h30m", "1w", "1 hour", "90s\n24h", "{{ '1h' }}", "None", "1e3"],
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_duration(text)

    assert repr(text) in str(refusal.value)
    assert "15m" in str(refusal.value)


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (0, "0s"),
        (59, "59s"),
        (90, "1m 30s"),
        (3600, "1h"),
        (5400, "1h 30m"),
        (86400, "1d"),
        (97200, "1d 3h"),
        (97200 + 1859, "1d 3h"),
        (30 * 86400 + 7200, "30d 2h"),
    ],
)
def test_duration_is_written_in_its_two_largest_units(total: int, expected: str) -> None:
    assert format_duration(total) == expected


@pytest.mark.parametrize(
    ("earlier", "later", "elapsed"),
    [
        ("2026-11-20T12:00:00Z", "2026-11-20T12:00:05Z", 5),
        ("2026-11-20T12:00:00.900000", "2026-11-21T12:00:00Z", 86399),
        ("2026-11-20T12:00:05Z", "2026-11-20T12:00:00Z", 0),
        (None, "2026-11-20T12:00:00Z", None),
        ("2026-11-20T12:00:00Z", "", None),
    ],
)
def test_seconds_between_two_api_timestamps_are_computed(
    earlier: str | None, later: str | None, elapsed: int | None
) -> None:
    assert seconds_between(earlier, later) == elapsed


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("Fri, 20 Nov 2026 12:00:05 GMT", 1795176005.0),
        ("Fri, 20 Nov 2026 13:00:05 +0100", 1795176005.0),
        ("Fri, 20 Nov 2026 12:00:05 -0000", 1795176005.0),
        (None, None),
        ("", None),
        ("0", None),
        ("yesterday", None),
        ("Mon, 23 Nov 99999 10:00:00 GMT", None),
        ("Mon, 23 Nov 2026 10:00:00 +99999999999999", None),
    ],
)
def test_header_with_a_time_is_read(header: str | None, time: float | None) -> None:
    assert read_http_clock(header) == time


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("2026-11-20T12:00:00.000000", "2026-11-20T12:00:01.000000", True),
        ("2026-11-20T12:00:00.000000", "2026-11-20T12:00:00.000001", True),
        ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000001", True),
        ("2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000000", False),
        ("2026-11-20T12:00:01", "2026-11-20T12:00:00", False),
        (None, "2026-11-20T12:00:00", False),
        ("2026-11-20T12:00:00", None, False),
        ("yesterday", "2026-11-20T12:00:00", False),
    ],
)
def test_only_a_known_time_can_be_earlier(
    first: str | None, second: str | None, expected: bool
) -> None:
    assert is_earlier(first, second) == expected
