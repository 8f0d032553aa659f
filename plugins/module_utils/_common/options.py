# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of modules and variables of roles: each is one attribute of a class.

The attribute has the type, the default and the bounds. The text below it is the documentation, from
which `make pages` writes argument specifications, fragments, defaults and pages. There, O(name) is
another option of the same class.
"""

from __future__ import annotations

import copy
import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .errors import InvalidInput
from .text import show_value
from .times import parse_duration

_DAY = 86_400
_CENTURY = 36_525 * _DAY

Spec = dict[str, dict[str, t.Any]]


@d.dataclass(eq=False)
class Option:
    """An option: its type as Ansible names it, its default, and what it may be.

    secret: whether Ansible hides its value.
    empty: what to do instead of leaving a variable empty, where that is not a value.
    note: what the documentation of each option of this type ends with.
    """

    default: t.Any = None
    choices: Sequence[str] = ()
    elements: str = ""
    required: bool = False
    aliases: Sequence[str] = ()
    secret: bool = False
    empty: str = ""
    name: str = d.field(default="", init=False)

    type: t.ClassVar[str] = "str"
    note: t.ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.default and not self.empty:
            self.empty = "leave it out for its default."

    def __set_name__(self, _owner: t.Any, name: str) -> None:
        # A word of Python ends in an underscore there.
        name = name.rstrip("_")
        if self.name not in ("", name):
            raise TypeError(f"the option {self.name} has a class of its own")
        self.name = name

    def build_spec(self) -> dict[str, t.Any]:
        """Return the option as a part of an argument specification."""
        spec = {
            "type": self.type,
            "elements": self.elements,
            "required": self.required,
            "choices": list(self.choices),
            "aliases": list(self.aliases),
            "no_log": self.secret,
        }
        spec = {field: value for field, value in spec.items() if value}
        return spec if self.default is None else {**spec, "default": copy.copy(self.default)}

    def find_fault(self, _value: t.Any) -> str:
        """Return what is wrong with a value that has the type, as the end of a sentence."""
        return ""

    def parse(self, value: t.Any) -> t.Any:
        """Return what a value stands for. Raises InvalidInput if something is wrong with it."""
        fault = self.find_fault(value)
        if fault:
            raise InvalidInput(f"{self.name} {fault}")
        return value


class Text(Option):
    """A text, or one of some choices."""


class Path(Option):
    type = "path"


class Raw(Option):
    type = "raw"


class Dict(Option):
    type = "dict"


class Bool(Option):
    type = "bool"


class List(Option):
    """A list; by default, nothing."""

    type = "list"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.elements = self.elements or "str"
        if self.default is None and not self.required:
            self.default = []


class Names(List):
    """Names that say what is examined, changed or restored. An empty list means everything."""

    def find_fault(self, value: t.Any) -> str:
        for name in value:
            # Only an empty list may mean everything, and no empty name.
            if not name.strip():
                return "has an empty name. Leave the variable out, or write [], if you mean all."
            if name != name.strip():
                return f"has {show_value(name)}: leave out the spaces around the name."
        return ""


@d.dataclass(eq=False)
class Int(Option):
    """A whole number from `lowest` to `highest`."""

    lowest: int = 0
    highest: int | None = None

    type = "int"

    def find_fault(self, value: t.Any) -> str:
        bounds = (
            f"from {self.lowest} to {self.highest}" if self.highest else f"{self.lowest} or more"
        )
        is_within = self.lowest <= value <= (self.highest or value)
        return "" if is_within else f"is {value}, and must be {bounds}."


@d.dataclass(eq=False)
class Seconds(Int):
    """A number of seconds, at most those of a day."""

    highest: int | None = _DAY


class Fraction(Option):
    """A fraction from 0 to 1."""

    type = "float"

    def find_fault(self, value: t.Any) -> str:
        # Not a number is neither of both.
        if 0 <= value <= 1:
            return ""
        fault = f"is {value:g}, and must be a fraction from 0 to 1"
        if 1 < value <= 100:
            return f"{fault}: if {value:g} % is meant, write {value / 100:g}."
        return f"{fault}: write 0.1 for 10 %."


class Duration(Option):
    """A duration, which is parsed to seconds."""

    note = "A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d)."

    def find_fault(self, value: t.Any) -> str:
        try:
            seconds = parse_duration(value)
        except InvalidInput:
            return (
                f"is {show_value(value)}, which is not a duration: "
                "write seconds or a number with s, m, h or d, such as 90s, 15m, 24h or 7d."
            )
        if seconds > _CENTURY:
            return f"is {show_value(value)}, which is more than 100 years."
        return ""

    def parse(self, value: t.Any) -> int:
        return parse_duration(super().parse(value))


class Age(Duration):
    """A minimum age, which a survey may leave empty for its default.

    That is an empty text, and null from ansible-core 2.19 on.
    """


class LongAge(Age):
    """An age with a unit: days that were taken for seconds would delete too much."""

    note = (
        "A duration is a number with C(s), C(m), C(h) or C(d). A number alone is refused, because "
        "seconds would be meant as days."
    )

    def find_fault(self, value: t.Any) -> str:
        number = str(value).strip()
        if re.fullmatch("[0-9]+", number):
            return f"is {show_value(value)}, which has no unit: write {number}d for days."
        return super().find_fault(value)


class Options:
    """Options that belong together. A class has those of its bases first, and then its own."""

    @classmethod
    def list_options(cls) -> dict[str, Option]:
        """Return the options by their names."""
        options: dict[str, Option] = {}
        for base in cls.__bases__:
            if issubclass(base, Options):
                options.update(base.list_options())
        own = [value for value in vars(cls).values() if isinstance(value, Option)]
        return {**options, **{option.name: option for option in own}}

    @classmethod
    def build_spec(cls) -> Spec:
        """Return the options as an argument specification."""
        return {name: option.build_spec() for name, option in cls.list_options().items()}

    @classmethod
    def parse(cls, params: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return what the values of the options stand for.

        Raises InvalidInput if something is wrong with one of them.
        """
        return {name: option.parse(params[name]) for name, option in cls.list_options().items()}


class Role:
    """The variables of a role: the name of each begins with that of the role.

    parts: the options by the entry point that only they are for; those of `main` are for all.
    others: names with this prefix that are no variables of the role.
    """

    def __init__(
        self, role: str, parts: Mapping[str, type[Options]], others: Iterable[str] = ()
    ) -> None:
        self.name, self.prefix, self.parts = role, f"{role}_", parts
        self.options: dict[str, Option] = {}
        for part in parts.values():
            for name, option in part.list_options().items():
                self.options[f"{self.prefix}{name}"] = option
        self.names = frozenset(self.options).union(others)
