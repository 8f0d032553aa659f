# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""A snapshot as JSON and back, without loss: what was read on one cloud can be judged again anywhere."""

from __future__ import annotations

import dataclasses as d
import functools
import types
import typing as t
from collections.abc import Mapping

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

FORMAT = 2


def encode(snapshot: Snapshot) -> dict[str, t.Any]:
    """Return `snapshot` as JSON's types; sets become sorted lists, so that equal snapshots are equal texts."""
    return {"format": FORMAT, "snapshot": d.asdict(snapshot, dict_factory=_sort_sets)}


def _sort_sets(items: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    return {key: sorted(value) if isinstance(value, frozenset) else value for key, value in items}


def decode(document: t.Any) -> Snapshot:
    """Return the snapshot that `encode` made `build_body` of. Raises InvalidInput when it is none, or of another format."""
    try:
        if document["format"] != FORMAT:
            raise InvalidInput(
                f"The snapshot has format {document['format']} and this version reads format {FORMAT}."
            )
        return t.cast("Snapshot", _decode_value(Snapshot, document["snapshot"]))
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"This is no snapshot as orphan_detect writes it ({type(error).__name__}: {error})."
        ) from error


def _decode_value(kind: t.Any, value: t.Any) -> t.Any:
    """Return `value` as the type `kind`, which is one of those that the model is made of."""
    base, arguments = t.get_origin(kind) or kind, t.get_args(kind)
    if kind is t.Any:
        return value
    if base in (types.UnionType, t.Union):
        return (
            None
            if value is None
            else _decode_value(
                next(part for part in arguments if part is not types.NoneType), value
            )
        )
    if base is tuple:
        return tuple(_decode_value(arguments[0], part) for part in value)
    if base is frozenset:
        return frozenset(value)
    if base in (Mapping, dict):
        return {key: _decode_value(arguments[1], part) for key, part in value.items()}
    if d.is_dataclass(base):
        hints = _get_type_hints(t.cast("type", base))
        known = dict(zip(getattr(base, "__parameters__", ()), arguments, strict=False))
        fields = {
            field.name: _decode_value(
                _resolve_type_variables(hints[field.name], known), value[field.name]
            )
            for field in d.fields(base)
        }
        return t.cast("type", base)(**fields)
    if base is float and isinstance(value, int):
        return float(value)
    if not isinstance(value, base):
        raise TypeError(f"{value!r} is no {base.__name__}")
    return value


@functools.cache
def _get_type_hints(kind: type) -> dict[str, t.Any]:
    return t.get_type_hints(kind)


def _resolve_type_variables(hint: t.Any, known: Mapping[t.Any, t.Any]) -> t.Any:
    """Return `hint` with the type variables of a generic dataclass replaced: `T | None` of `Answer[Server]` is `Server | None`."""
    parameters = getattr(hint, "__parameters__", ())
    if hint in known:
        return known[hint]
    return (
        hint[tuple(known[parameter] for parameter in parameters)] if parameters and known else hint
    )
