"""Text from a cloud, made harmless."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.text import (
    format_count,
    make_printable,
    require_uuid,
    summarize_checks,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web-1 äß 東京 🙂", "web-1 äß 東京 🙂"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\x00b", "a\\x00b"),
        ("\u202e", "\\u202e"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\udc80"),
        (7, "7"),
        ("", ""),
    ],
)
def test_printable_escapes_unprintable_characters(text: t.Any, shown: str) -> None:
    assert make_printable(text) == shown


@pytest.mark.parametrize(
    ("length", "shown"), [(10, "x" * 10), (11, "x" * 9 + "…"), (255, "x" * 9 + "…")]
)
def test_printable_cuts_text_longer_than_the_limit(length: int, shown: str) -> None:
    assert make_printable("x" * length, 10) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 hosts were"), (1, "1 host was"), (2, "2 hosts were")]
)
def test_count_chooses_singular_or_plural(count: int, shown: str) -> None:
    assert format_count(count, "host was", "hosts were") == shown


@pytest.mark.parametrize(
    ("sentences", "shown"),
    [
        ([], ""),
        (["One."], "One."),
        (["One.", "Two."], "One. Two."),
        (["One.", "Two.", "Three."], "One. Two. 1 more check failed."),
        (["x" * 300, "y" * 300], "x" * 300 + " 1 more check failed."),
        (["x" * 300, "y" * 300, "z"], "x" * 300 + " 2 more checks failed."),
    ],
)
def test_two_failed_checks_are_shown_unless_they_are_long(sentences: list[str], shown: str) -> None:
    assert summarize_checks(sentences) == shown


CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


@pytest.mark.parametrize(
    "text", [CONSUMER, CONSUMER.upper(), CONSUMER.replace("-", ""), "{" + CONSUMER + "}"]
)
def test_consumer_uuid_becomes_canonical(text: str) -> None:
    assert require_uuid(text, "consumer") == CONSUMER


@pytest.mark.parametrize("text", ["", "web-1", CONSUMER[:-1], f"{CONSUMER}/../x"])
def test_consumer_that_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^consumer "):
        require_uuid(text, "consumer")
