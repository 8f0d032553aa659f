# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dataclasses as JSON and back, without loss: the fields of a class are the keys of its object.

`docs/findings.md` describes the files of a run to users. All times are in UTC, as
`2026-01-31T12:00:00Z` unless another form is named. Amounts are in the unit of their resource
class: VCPU in processors, MEMORY_MB in MiB, DISK_GB in GiB.
"""

from __future__ import annotations

import dataclasses as d
import functools
import types
import typing as t
from collections.abc import Callable, Iterable, Mapping

_T = t.TypeVar("_T")
_Converter = Callable[[t.Any], t.Any]

Json: t.TypeAlias = dict[str, t.Any]
"""A JSON object: that of a dataclass, or one whose keys the code beside it writes."""

Unchecked = Mapping[str, t.Any]
"""A JSON object from a file, whose keys and values are not checked yet."""


def convert_to_json(value: t.Any) -> t.Any:
    """Return the fields of a dataclass as JSON, anything else as it is.

    Sets become sorted lists, so that equal values are equal texts.
    """
    if d.is_dataclass(value) and not isinstance(value, type):
        return d.asdict(value, dict_factory=_list_collections)
    return value


def _list_collections(items: list[tuple[str, t.Any]]) -> Json:
    fields = {}
    for key, value in items:
        if isinstance(value, frozenset):
            fields[key] = sorted(value)
        elif isinstance(value, tuple):
            fields[key] = list(value)
        else:
            fields[key] = value
    return fields


def convert_from_json(kind: type[_T], value: t.Any) -> _T:
    """Return JSON as the type `kind`: a dataclass, or what the fields of a dataclass can be.

    An object that lacks a field with a default is one of an older version. Of a TypedDict, whose
    fields are checked, the object itself is returned.
    Raises ValueError, which names the first field that is missing or has another type.
    """
    return t.cast("_T", _get_converter(t.cast("t.Any", kind))(value))


@functools.cache
def _get_converter(kind: t.Any) -> _Converter:
    """Return what makes a value of a type of its JSON. It is kept, as a file has many of a type."""
    base = t.get_origin(kind) or kind
    arguments = t.get_args(kind)
    if kind is t.Any:
        return lambda value: value
    if base in (types.UnionType, t.Union):
        convert = _get_converter(arguments[0])
        return lambda value: None if value is None else convert(value)
    if d.is_dataclass(base) or t.is_typeddict(base):
        return functools.partial(_convert_object, base, arguments)
    if base in (Mapping, dict) and arguments[1] is not t.Any:
        return functools.partial(_convert_mapping, _get_converter(arguments[1]))
    if base in (tuple, frozenset, list):
        return functools.partial(_convert_list, base, _get_converter(arguments[0]))
    return functools.partial(_require, base)


def _convert_object(base: t.Any, arguments: tuple[t.Any, ...], value: t.Any) -> t.Any:
    converters, required = _list_fields(base, arguments)
    _require(dict, value)
    for key in required:
        if key not in value:
            raise _MissingFieldError(key)
    there = [key for key in converters if key in value]
    fields = _convert_parts((key, converters[key], value[key]) for key in there)
    return value if t.is_typeddict(base) else base(**fields)


def _convert_mapping(convert: _Converter, value: t.Any) -> Json:
    return _convert_parts((key, convert, part) for key, part in _require(dict, value).items())


def _convert_list(base: t.Any, convert: _Converter, value: t.Any) -> t.Any:
    numbered = enumerate(_require(list, value), 1)
    return base(_convert_parts((number, convert, part) for number, part in numbered).values())


def _require(kind: type, value: t.Any) -> t.Any:
    if kind is float and isinstance(value, int):
        return float(value)
    # To Python True is a number, too.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _WrongValueError()
    return value


class _WrongValueError(ValueError):
    """A part of a document has another type: its arguments are the keys that lead to it."""

    def __str__(self) -> str:
        return f"{'.'.join(self.args) or 'it'} has another type"


class _MissingFieldError(_WrongValueError):
    """A part of a document is missing."""

    def __str__(self) -> str:
        return f"{'.'.join(self.args)} is missing"


def _convert_parts(parts: Iterable[tuple[t.Any, _Converter, t.Any]]) -> dict[t.Any, t.Any]:
    """Return the parts of a value by their keys; each is given with what converts it."""
    converted: dict[t.Any, t.Any] = {}
    key = None
    try:
        for key, convert, part in parts:
            converted[key] = convert(part)
    except _WrongValueError as error:
        raise type(error)(str(key), *error.args) from None
    return converted


@functools.cache
def _list_fields(
    base: t.Any, arguments: tuple[t.Any, ...]
) -> tuple[dict[str, _Converter], list[str]]:
    """Return what converts each field of a class, and the fields that an object must have."""
    # Only a generic dataclass, such as Answer, has parameters.
    bindings = dict(zip(getattr(base, "__parameters__", ()), arguments, strict=False))
    optional = set()
    if d.is_dataclass(base):
        for field in d.fields(base):
            if field.default is not d.MISSING or field.default_factory is not d.MISSING:
                optional.add(field.name)
    converters = {}
    for name, hint in t.get_type_hints(base, include_extras=True).items():
        kind = hint
        if t.get_origin(hint) is t.NotRequired:
            optional.add(name)
            kind = t.get_args(hint)[0]
        if t.get_origin(kind) is not t.ClassVar:
            converters[name] = _get_converter(_resolve_type_variables(kind, bindings))
    return converters, [name for name in converters if name not in optional]


def _resolve_type_variables(hint: t.Any, bindings: Mapping[t.Any, t.Any]) -> t.Any:
    """Return `hint` with the type variables of a generic dataclass replaced.

    For example, `T | None` of `Answer[Server]` becomes `Server | None`.
    """
    if hint in bindings:
        return bindings[hint]
    parameters = getattr(hint, "__parameters__", ())
    if not parameters or not bindings:
        return hint
    return hint[tuple(bindings[parameter] for parameter in parameters)]
