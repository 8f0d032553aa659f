# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user excludes by name: for ever, or until a day or a moment after which it is protected no longer. Pure."""

from __future__ import annotations

import dataclasses as d
import datetime
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import UTC

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable

_KEYS = ("name", "until", "reason")

# Nothing else that Python takes for a date: `20261231` and `2026-W53-4` are more likely a slip.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")

# Some write 9999-12-31 for ever.
_LAST_DAY = datetime.datetime(9999, 12, 30, tzinfo=UTC)


@d.dataclass(frozen=True)
class Exclusion:
    """A consumer or provider that is excluded by name.

    until: the day or the moment of its end as the user wrote it, empty without an end. ends: the first moment at which it is over.
    """

    name: str
    until: str = ""
    reason: str = ""
    ends: datetime.datetime | None = None

    def ended(self, now: str) -> bool:
        """Tell whether it is over at `now`, a time as both APIs write it."""
        return self.ends is not None and _moment(now) >= self.ends

    @property
    def note(self) -> str:
        """What follows the word «excluded» in a sentence: until when, and the operator's reason."""
        until = f" until {self.until}" if self.until else ""
        return f"{until}: {self.reason}" if self.reason else until


def exclusions(told: Iterable[t.Any], option: str) -> list[Exclusion]:
    """Return what the entries of `option` exclude, in their order. Raises InvalidInput for an entry that cannot be understood."""
    return [_exclusion(entry, option) for entry in told]


def _exclusion(told: t.Any, option: str) -> Exclusion:
    if not isinstance(told, dict):
        return Exclusion(_name(told, option))
    if unknown := sorted(str(key) for key in told if key not in _KEYS):
        raise InvalidInput(f"{option}: an entry has {', '.join(unknown)}, which is not known: it may have {', '.join(_KEYS)}.")
    if "name" not in told:
        raise InvalidInput(f"{option}: an entry has no name, so that nothing would be excluded by it.")
    name, reason = _name(told["name"], option), _reason(told.get("reason"), option)
    if "until" not in told:
        return Exclusion(name, reason=reason)
    until = _text(told["until"])
    return Exclusion(name, until, reason, _end(until, f"{option}: until of {name}"))


def _name(told: t.Any, option: str) -> str:
    # YAML takes a name such as 12345 for a number, and one such as `no` for something from which it cannot be told any more.
    name = str(told) if isinstance(told, int) and not isinstance(told, bool) else told
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"{option}: {told!r} is not a name: write it in quotes.")
    if name.lstrip().startswith(("[", "{")):
        raise InvalidInput(
            f"{option}: {name!r} is the text of a list or of an entry, and not a name: give a list, with its dates in quotes."
        )
    return name.strip()


def _reason(told: t.Any, option: str) -> str:
    if isinstance(told, dict | list):
        raise InvalidInput(f"{option}: the reason {told!r} is not text.")
    return "" if told is None else " ".join(str(told).split()).rstrip(".")


def _text(told: t.Any) -> str:
    """Return a date as text: YAML makes an object of its own of one without quotes."""
    return told.isoformat() if isinstance(told, datetime.date) else told if isinstance(told, str) else repr(told)


def _end(until: str, what: str) -> datetime.datetime:
    try:
        if _DAY.fullmatch(until):
            # The day itself still counts.
            return min(_moment(until), _LAST_DAY) + datetime.timedelta(days=1)
        if _MOMENT.fullmatch(until):
            return _moment(until)
    except ValueError:
        pass
    raise InvalidInput(
        f"{what} is {until!r}, which is neither a date nor a time: write a date such as 2026-12-31, whose end in UTC it is, or a time such as "
        "2026-12-31T18:00:00Z."
    )


def _moment(text: str) -> datetime.datetime:
    """Return a time, in UTC where it does not say where."""
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
