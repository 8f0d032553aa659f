"""Exclusions with an end.

What they protect until then, how they are reported, and what is refused.
"""

from __future__ import annotations

import datetime
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.options.policy import (
    convert_exclusions,
    parse_exclusions,
    parse_policy,
)
from ...judging import judge
from ...world import World

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
DAY = "2026-12-31"
LAST = "2026-12-31T23:59:59Z"
AFTER = "2027-01-01T00:00:00Z"


def _until(until: t.Any, **more: t.Any) -> dict[str, t.Any]:
    return {"name": "compute-1", "until": until, **more}


@pytest.mark.parametrize("until", [DAY, datetime.date(2026, 12, 31)])
def test_end_date_includes_its_day_in_utc(until: t.Any) -> None:
    held, over = (parse_policy({"exclude_providers": [_until(until)]}, at) for at in (LAST, AFTER))

    assert (held.exclude_providers, held.ended_exclusions) == ({"compute-1"}, ())
    assert over.exclude_providers == frozenset()
    (ended,) = over.ended_exclusions
    assert ended.startswith("exclude_providers: compute-1 ") and "2026-12-31" in ended


@pytest.mark.parametrize(
    ("until", "last", "first"),
    [
        ("2026-12-31T18:00:00Z", "2026-12-31T17:59:59Z", "2026-12-31T18:00:00Z"),
        ("2026-12-31T18:00:00", "2026-12-31T17:59:59Z", "2026-12-31T18:00:00Z"),
        ("2026-12-31 18:00", "2026-12-31T17:59:59Z", "2026-12-31T18:00:00Z"),
        ("2026-12-31T18:00:00+02:00", "2026-12-31T15:59:59Z", "2026-12-31T16:00:00Z"),
        ("2026-12-31T18:00:00+00:00", "2026-12-31T17:59:59Z", "2026-12-31T18:00:00Z"),
        (
            datetime.datetime(2026, 12, 31, 18, tzinfo=datetime.UTC),
            "2026-12-31T17:59:59Z",
            "2026-12-31T18:00:00Z",
        ),
        (datetime.datetime(2026, 12, 31, 18), "2026-12-31T17:59:59Z", "2026-12-31T18:00:00Z"),
    ],
)
def test_end_time_is_exact(until: t.Any, last: str, first: str) -> None:
    excluded = [
        parse_policy({"exclude_providers": [_until(until)]}, at).exclude_providers
        for at in (last, first)
    ]

    assert excluded == [{"compute-1"}, frozenset()]


def test_consumer_exclusion_can_have_an_end() -> None:
    entry = {"name": CONSUMER.upper(), "until": DAY}

    assert parse_policy({"exclude_consumers": [entry]}, LAST).exclude_consumers == {CONSUMER}
    assert parse_policy({"exclude_consumers": [entry]}, AFTER).exclude_consumers == frozenset()


@pytest.mark.parametrize("other", ["compute-1", {"name": "compute-1"}, _until("2027-06-30")])
def test_expired_exclusion_does_not_cancel_another_entry(other: t.Any) -> None:
    spare = parse_policy({"exclude_providers": [_until(DAY), other]}, AFTER)

    assert (spare.exclude_providers, spare.ended_exclusions) == ({"compute-1"}, ())


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, "excluded by name until 2026-12-31."),
        ({"reason": "Under repair."}, "excluded by name until 2026-12-31: Under repair."),
        ({"reason": None}, "excluded by name until 2026-12-31."),
        ({"reason": 4711}, "excluded by name until 2026-12-31: 4711."),
    ],
)
def test_finding_shows_the_end_and_reason_of_its_exclusion(
    more: dict[str, t.Any], note: str
) -> None:
    world = World()
    here = world.host("compute-1")
    consumer = world.server(here, here)
    world.delete(consumer)

    def reason(**options: t.Any) -> str:
        (finding,) = judge(world.snapshot(), parse_policy({"min_age": 0, **options}, LAST))
        assert (finding.kind, finding.verdict, finding.change) == ("excluded", "protected", None)
        return finding.reason

    assert reason(exclude_providers=[_until(DAY, **more)]) == f"Provider compute-1 is {note}"
    assert reason(exclude_consumers=[{"name": consumer, "until": DAY, **more}]).endswith(note)


def test_permanent_exclusion_can_have_a_reason() -> None:
    (known,) = parse_exclusions([{"name": "compute-1", "reason": "ours"}], "exclude_providers")

    assert (known.note, known.has_ended("9999-01-01T00:00:00Z")) == (": ours", False)


def test_last_representable_day_is_a_valid_end() -> None:
    assert parse_policy({"exclude_providers": [_until("9999-12-31")]}).exclude_providers == {
        "compute-1"
    }


@pytest.mark.parametrize("name", [12345, 5349, 1.5])
def test_name_that_yaml_reads_as_a_number_is_refused(name: t.Any) -> None:
    """It may have been written as 012345, and that provider would not be excluded."""
    for entry in (name, {"name": name}):
        with pytest.raises(InvalidInput, match="in quotes"):
            parse_policy({"exclude_providers": [entry]}, LAST)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            _until("2026-13-01"),
            "until of compute-1 is '2026-13-01', which is neither a date nor a time",
        ),
        (_until("2026-02-30"), "neither a date nor a time"),
        (_until("next week"), "neither a date nor a time"),
        (_until("20261231"), "neither a date nor a time"),
        (_until("2026-W53-4"), "neither a date nor a time"),
        (_until(20261231), "neither a date nor a time"),
        (_until(None), "until of compute-1 is 'None'"),
        (_until(""), "until of compute-1 is ''"),
        (
            _until(DAY, till="x"),
            "an entry has the unknown keys till. Valid keys are name, until, reason.",
        ),
        ({"until": DAY}, "an entry has no name"),
        ({"name": None}, "None is not a name"),
        ({"name": " "}, "' ' is not a name"),
        ({"name": False}, "False is not a name: write it in quotes"),
        (True, "True is not a name"),
        (["compute-1"], "is not a name"),
        (None, "None is not a name"),
        ("[{'name': 'compute-1'", "is the text of a list or of an entry"),
        (_until(DAY, reason=["a"]), "the reason ['a'] is not text"),
    ],
)
def test_invalid_exclusion_is_refused_in_one_sentence(entry: t.Any, why: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_policy({"exclude_providers": [entry]})

    assert why in str(refusal.value) and str(refusal.value).startswith("exclude_providers: ")


def test_blanks_around_a_name_do_not_cancel_its_exclusion() -> None:
    """Ansible splits the text of an extra variable at its commas.

    It leaves the blanks.
    """
    spare = parse_policy(
        {"exclude_providers": ["compute-1", " compute-2 "], "exclude_consumers": [f" {CONSUMER}\n"]}
    )

    assert spare.exclude_providers == {"compute-1", "compute-2"}
    assert spare.exclude_consumers == {CONSUMER}


DATE = datetime.date(2026, 12, 31)
MOMENT = datetime.datetime(2026, 12, 31, 18, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["a"], ["a"]),
        ([{"name": "a", "until": DATE}], [{"name": "a", "until": "2026-12-31"}]),
        ([{"name": "a", "until": MOMENT}], [{"name": "a", "until": "2026-12-31T18:00:00+00:00"}]),
        ([{"name": "a", "until": "2026-12-31"}, "b"], [{"name": "a", "until": "2026-12-31"}, "b"]),
        ('["a", "b"]', ["a", "b"]),
        ('[{"name": "a", "until": "2026-12-31"}]', [{"name": "a", "until": "2026-12-31"}]),
        # The modules split a text, and refuse what is not a list.
        ("a,b", "a,b"),
        ("", ""),
        (None, None),
    ],
)
def test_exclusions_are_a_list_without_dates(given: t.Any, expected: t.Any) -> None:
    assert convert_exclusions(given) == expected
