"""From the options of a module to the policy of the rules: exclusions with an end, and ages."""

import dataclasses as d
import datetime
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.options.policy import (
    Policy,
    PolicyOptions,
    convert_exclusions,
    find_absent_allocators,
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
    options = {
        "exclude_providers": [_until(until), {"name": "compute-2", "until": "9999-12-31"}],
        "exclude_consumers": [{"name": CONSUMER.upper(), "until": until}],
    }
    held, over = (parse_policy(options, at) for at in (LAST, AFTER))

    assert (held.exclude_consumers, held.ended_exclusions) == ({CONSUMER}, ())
    assert held.exclude_providers == {"compute-1", "compute-2"}
    assert (over.exclude_consumers, over.exclude_providers) == (frozenset(), {"compute-2"})
    of_consumer, of_provider = over.ended_exclusions
    assert of_consumer.startswith(f"exclude_consumers: {CONSUMER} ") and DAY in of_consumer
    assert of_provider.startswith("exclude_providers: compute-1 ") and DAY in of_provider


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


# A number may have been written as 012345, and that provider would not be excluded.
NUMBERS = (12345, 5349, 1.5)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (_until("2026-13-01"), "until of compute-1 is '2026-13-01', "),
        *(
            (_until(text), "neither a date nor a time")
            for text in ("2026-02-30", "next week", "20261231", "2026-W53-4", 20261231)
        ),
        (_until(""), "until of compute-1 is ''"),
        (_until(None), "until of compute-1 is 'None'"),
        (_until(DAY, till="x"), "unknown keys till. "),
        ({"until": DAY}, "an entry has no name"),
        *(({"name": name}, f"{name!r} is not a name: ") for name in (None, " ", False, *NUMBERS)),
        *((name, f"{name!r} is not a name: ") for name in (True, None, ["compute-1"], *NUMBERS)),
        ("[{'name': 'compute-1'", "is the text of a list or of an entry"),
        (_until(DAY, reason=["a"]), "the reason ['a'] is not text"),
    ],
    ids=str,
)
def test_invalid_exclusion_is_refused_in_one_sentence(entry: t.Any, why: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_policy({"exclude_providers": [entry]})

    assert why in str(refusal.value) and str(refusal.value).startswith("exclude_providers: ")


def test_blanks_around_a_name_do_not_cancel_its_exclusion() -> None:
    """Ansible splits the text of an extra variable at its commas, and leaves the blanks."""
    providers, consumers = ["compute-1", " compute-2 "], [f" {CONSUMER}\n"]
    spare = parse_policy({"exclude_providers": providers, "exclude_consumers": consumers})

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


# --- the other options of the policy


def _options(**given: t.Any) -> dict[str, t.Any]:
    spec = PolicyOptions.build_spec()
    return {**{name: option["default"] for name, option in spec.items()}, **given}


def test_policy_defaults_match_the_rules() -> None:
    assert parse_policy(_options()) == Policy()


def test_ages_are_durations() -> None:
    spared = parse_policy(_options(min_age="15m", unknown_min_age="7d"))

    assert (spared.min_age, spared.unknown_min_age) == (900, 604800)


@pytest.mark.parametrize("option", ["min_age", "unknown_min_age"])
def test_invalid_age_is_refused(option: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{option} is 'soon'"):
        parse_policy(_options(**{option: "soon"}))


@pytest.mark.parametrize("text", [CONSUMER, CONSUMER.upper(), CONSUMER.replace("-", "")])
def test_consumer_is_excluded_in_any_spelling_of_its_uuid(text: str) -> None:
    assert parse_policy(_options(exclude_consumers=[text])).exclude_consumers == {CONSUMER}


def test_excluded_consumer_that_is_not_a_uuid_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^exclude_consumers: 'web-1'"):
        parse_policy(_options(exclude_consumers=[CONSUMER, "web-1"]))


def test_providers_are_excluded_by_name_or_by_uuid_in_any_spelling() -> None:
    spared = parse_policy(_options(exclude_providers=["compute-1", CONSUMER.upper()]))

    assert spared.exclude_providers == {"compute-1", CONSUMER}


def test_unknown_excluded_providers_are_named() -> None:
    world = World()
    here = world.host("compute-1")
    world.host("compute-2", service="nova-2")
    names = [here, "compute-2", "nova-2", "Compute-1", "compute-1.example", "compute-3"]
    spared = parse_policy(_options(exclude_providers=names))

    unknown = ListingsIndex(world.listings()).list_unknown_names(spared.exclude_providers)

    assert unknown == ["compute-3"]


@pytest.mark.parametrize("name", ["container", "application-container"])
def test_service_is_ignored_by_either_of_its_names(name: str) -> None:
    assert parse_policy(_options(ignore_allocators=[name])).ignore_allocators == {"container"}


def test_service_not_known_to_allocate_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'containers' .* accelerator, application-container"):
        parse_policy(_options(ignore_allocators=["container", "containers"]))


def test_service_missing_from_the_catalogue_is_named() -> None:
    cloud = d.replace(World().snapshot().cloud, allocators=("container",))
    policy = parse_policy(_options(ignore_allocators=["container", "reservation"]))

    assert find_absent_allocators(policy, cloud) == ["reservation"]
