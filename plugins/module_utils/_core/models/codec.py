# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot as JSON and back, without loss.

What was read of one cloud can be judged again anywhere.
"""

from __future__ import annotations

import dataclasses as d
import functools
import types
import typing as t
from collections.abc import Mapping

from ..._common.errors import InvalidInput, describe_form_error
from .documents import convert_to_json
from .snapshot import Snapshot

FORMAT = 2


def encode(snapshot: Snapshot) -> dict[str, t.Any]:
    """Return `snapshot` as JSON's types.

    Sets become sorted lists, so that equal snapshots are equal texts.
    """
    return {"format": FORMAT, "snapshot": convert_to_json(snapshot)}


def decode(document: t.Any) -> Snapshot:
    """Return the snapshot of which `encode` made `document`.

    Raises InvalidInput when `document` is not a snapshot, or has another format.
    """
    try:
        if document["format"] != FORMAT:
            raise InvalidInput(
                f"The snapshot has format {document['format']}, "
                f"but this version reads format {FORMAT}: "
                "judge it with the version that wrote it, or read the cloud again."
            )
        return t.cast("Snapshot", _decode_value(Snapshot, document["snapshot"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"This is not a snapshot that orphan_detect wrote ({describe_form_error(error)}). "
            "Set snapshot_src to a whole file of snapshot_dest."
        ) from error


def _decode_value(kind: t.Any, value: t.Any) -> t.Any:
    """Return `value` as the type `kind`, which is one of those of the fields of the models."""
    if kind is t.Any:
        return value
    base = t.get_origin(kind) or kind
    arguments = t.get_args(kind)
    if base in (types.UnionType, t.Union):
        return _decode_optional(arguments, value)
    if base is tuple:
        return tuple(_decode_value(arguments[0], part) for part in value)
    if base is frozenset:
        return frozenset(value)
    if base in (Mapping, dict):
        return {key: _decode_value(arguments[1], part) for key, part in value.items()}
    if d.is_dataclass(base):
        return _decode_dataclass(t.cast("type", base), arguments, value)
    if base is float and isinstance(value, int):
        return float(value)
    if not isinstance(value, base):
        raise ValueError(f"{value!r} has another type")
    return value


def _decode_optional(alternatives: tuple[t.Any, ...], value: t.Any) -> t.Any:
    if value is None:
        return None
    kind = next(kind for kind in alternatives if kind is not types.NoneType)
    return _decode_value(kind, value)


def _decode_dataclass(base: type, arguments: tuple[t.Any, ...], value: t.Any) -> t.Any:
    hints = _get_type_hints(base)
    # Only a generic dataclass, such as Answer, has parameters.
    bindings = dict(zip(getattr(base, "__parameters__", ()), arguments, strict=False))
    fields = {}
    for field in d.fields(base):
        # An older file of this format lacks what was added since, which has a default.
        has_default = field.default is not d.MISSING or field.default_factory is not d.MISSING
        if field.name not in value and has_default:
            continue
        kind = _resolve_type_variables(hints[field.name], bindings)
        fields[field.name] = _decode_value(kind, value[field.name])
    return base(**fields)


@functools.cache
def _get_type_hints(kind: type) -> dict[str, t.Any]:
    return t.get_type_hints(kind)


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
