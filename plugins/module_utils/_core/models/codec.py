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
from collections.abc import Iterable, Mapping

_T = t.TypeVar("_T")

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
    return t.cast("_T", _convert(kind, value))


def _convert(kind: t.Any, value: t.Any) -> t.Any:
    if kind is t.Any:
        return value
    base = t.get_origin(kind) or kind
    arguments = t.get_args(kind)
    if base in (types.UnionType, t.Union):
        if value is None and types.NoneType in arguments:
            return None
        return _convert(arguments[0], value)
    if t.is_typeddict(base):
        _convert_fields(value, _list_fields(base, arguments))
        return value
    if d.is_dataclass(base):
        make: t.Any = base
        return make(**_convert_fields(value, _list_fields(make, arguments)))
    return _convert_plain(base, arguments, value)


def _convert_plain(base: t.Any, arguments: tuple[t.Any, ...], value: t.Any) -> t.Any:
    """Return JSON as a collection, or as a type that JSON has, too."""
    if base in (Mapping, dict):
        rows = _require(dict, value).items()
        if arguments[1] is t.Any:
            return value
        return _convert_parts((key, arguments[1], part) for key, part in rows)
    if base in (tuple, frozenset, list):
        numbered = enumerate(_require(list, value), 1)
        parts = _convert_parts((str(number), arguments[0], part) for number, part in numbered)
        return base(parts.values())
    if base is float and isinstance(value, int):
        return float(value)
    return _require(base, value)


def _require(kind: type, value: t.Any) -> t.Any:
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


def _convert_parts(parts: Iterable[tuple[str, t.Any, t.Any]]) -> Json:
    """Return the parts of a value, each given by its key, its type and its JSON, by their keys."""
    converted = {}
    for key, kind, value in parts:
        try:
            converted[key] = _convert(kind, value)
        except _WrongValueError as error:
            raise type(error)(key, *error.args) from None
    return converted


def _convert_fields(value: t.Any, fields: Mapping[str, tuple[t.Any, bool]]) -> Json:
    _require(dict, value)
    for key, (_kind, required) in fields.items():
        if required and key not in value:
            raise _MissingFieldError(key)
    return _convert_parts((key, fields[key][0], value[key]) for key in fields if key in value)


@functools.cache
def _list_fields(base: t.Any, arguments: tuple[t.Any, ...]) -> dict[str, tuple[t.Any, bool]]:
    """Return the type of each field of a class, and whether an object must have it."""
    # Only a generic dataclass, such as Answer, has parameters.
    bindings = dict(zip(getattr(base, "__parameters__", ()), arguments, strict=False))
    optional = set()
    if d.is_dataclass(base):
        for field in d.fields(base):
            if field.default is not d.MISSING or field.default_factory is not d.MISSING:
                optional.add(field.name)
    fields = {}
    for name, hint in t.get_type_hints(base, include_extras=True).items():
        kind = t.get_args(hint)[0] if t.get_origin(hint) is t.NotRequired else hint
        if t.get_origin(kind) is t.ClassVar:
            continue
        is_required = kind is hint and name not in optional
        fields[name] = (_resolve_type_variables(kind, bindings), is_required)
    return fields


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
