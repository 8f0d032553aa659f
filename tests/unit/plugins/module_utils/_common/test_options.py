"""Options as attributes: their specifications, their bounds, and the variables of a role."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.options import (
    Age,
    Bool,
    Dict,
    Duration,
    Fraction,
    Int,
    List,
    LongAge,
    Names,
    Option,
    Options,
    Path,
    Raw,
    Role,
    Seconds,
    Text,
)


class Base(Options):
    cloud = Raw(secret=True)
    age = Age("1h")


class Other(Options):
    hosts = Names()


class Both(Base, Other):
    own = Bool(False)
    age = Age("2h")
    hosts = Other.hosts
    return_ = Text()


class Later(Options):
    journal = Path("")


@pytest.mark.parametrize(
    ("option", "spec"),
    [
        (Text(), {"type": "str"}),
        (Text(""), {"type": "str", "default": ""}),
        (Text("a", choices=["a"]), {"type": "str", "default": "a", "choices": ["a"]}),
        (Path(aliases=["key"]), {"type": "path", "aliases": ["key"]}),
        (Raw(secret=True), {"type": "raw", "no_log": True}),
        (Raw(required=True), {"type": "raw", "required": True}),
        (Bool(False), {"type": "bool", "default": False}),
        (Dict({}), {"type": "dict", "default": {}}),
        (List(), {"type": "list", "elements": "str", "default": []}),
        (List(required=True), {"type": "list", "elements": "str", "required": True}),
        (Names(), {"type": "list", "elements": "str", "default": []}),
        (Int(0), {"type": "int", "default": 0}),
        (Fraction(0.1), {"type": "float", "default": 0.1}),
        (Duration("1h"), {"type": "str", "default": "1h"}),
    ],
    ids=str,
)
def test_option_is_a_part_of_an_argument_spec(option: Option, spec: dict[str, t.Any]) -> None:
    assert option.build_spec() == spec


def test_each_spec_is_its_own() -> None:
    """A module may add to its options, which the next one must not see."""
    Other.build_spec()["hosts"]["default"].append("compute-1")

    assert Other.build_spec()["hosts"]["default"] == []


def test_an_option_has_one_name() -> None:
    # Python 3.11 wraps what a name refuses.
    with pytest.raises((TypeError, RuntimeError)):
        type("Renamed", (Options,), {"machines": Other.hosts})
    assert list(Other.list_options()) == ["hosts"]


def test_class_has_the_options_of_its_bases_and_may_replace_them() -> None:
    options = Both.list_options()

    assert list(options) == ["cloud", "age", "hosts", "own", "return"]
    assert (options["age"].default, Base.list_options()["age"].default) == ("2h", "1h")


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        (Int(1), (0, 1, 10**9), (-1,)),
        (Int(2, lowest=1, highest=100), (1, 100), (0, 101)),
        (Seconds(120, lowest=1), (1, 86400), (0, 86401)),
        (Fraction(0.1), (0, 0.5, 1), (-0.1, 1.1, 10, 1000, float("nan"), float("inf"))),
        (
            Duration("1h"),
            ("0", "90", 90, "15m", "7d"),
            ("", "1w", "010", "1:00", "99999999d", None),
        ),
        (LongAge("30d"), ("30d", "12h"), ("30", 30, " 30 ", "old")),
        (Names(), ([], ["a"]), ([""], [" "], ["a "], ["a", ""])),
        (Text(), ("", "a"), ()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Option) else "",
)
def test_values_out_of_bounds_are_refused(
    option: Option, good: tuple[t.Any, ...], bad: tuple[t.Any, ...]
) -> None:
    assert [value for value in good if option.find_fault(value)] == []
    for value in bad:
        with pytest.raises(InvalidInput):
            option.parse(value)


def test_durations_are_parsed_to_seconds() -> None:
    class Waiting(Options):
        patience = Duration("15m")
        tries = Int(3)

    assert Waiting.parse({"patience": "2h", "tries": 4, "more": 1}) == {
        "patience": 7200,
        "tries": 4,
    }
    with pytest.raises(InvalidInput, match=r"^patience is 'soon'"):
        Waiting.parse({"patience": "soon", "tries": 4})


def test_variables_of_a_role_have_its_prefix() -> None:
    role = Role("retire", {"main": Both, "restore": Later}, others=["retire_run"])

    assert list(role.options) == [
        "retire_cloud",
        "retire_age",
        "retire_hosts",
        "retire_own",
        "retire_return",
        "retire_journal",
    ]
    assert role.names == {*role.options, "retire_run"}
