# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the user excludes by name: for ever, or until a day or a moment. Pure.

After that moment it is not protected any longer.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import json
import re
import typing as t
from collections.abc import Iterable, Mapping

from ..._common.errors import InvalidInput
from ..._common.options import List
from ..._common.times import UTC

_KEYS = ("name", "until", "reason")

# Nothing else that Python takes for a date: `20261231` and `2026-W53-4` are more likely a slip.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")

# Some write 9999-12-31 for ever.
_LAST_DAY = datetime.datetime(9999, 12, 30, tzinfo=UTC)


class Exclusions(List):
    """Names that are excluded, each for ever or until a time."""

    note = (
        "Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally, "
        "C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such "
        "as V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so."
    )


@d.dataclass(frozen=True)
class Exclusion:
    """A consumer or provider that is excluded by name.

    until: the day or the moment of its end as the user wrote it, empty without an end.
    ends: the first moment at which it is over.
    """

    name: str
    until: str = ""
    reason: str = ""
    ends: datetime.datetime | None = None

    def has_ended(self, now: str) -> bool:
        """Return whether it is over at `now`, a time as both APIs write it."""
        return self.ends is not None and _parse_time(now) >= self.ends

    @property
    def note(self) -> str:
        """What follows the word «excluded» in a sentence: until when, and the operator's reason."""
        note = ""
        if self.until:
            note += f" until {self.until}"
        if self.reason:
            note += f": {self.reason}"
        return note


def parse_exclusions(entries: Iterable[t.Any], option: str) -> list[Exclusion]:
    """Return what the entries of `option` exclude, in their order.

    Raises InvalidInput for an entry that cannot be understood.
    """
    return [_parse_exclusion(entry, option) for entry in entries]


def _parse_exclusion(entry: t.Any, option: str) -> Exclusion:
    if not isinstance(entry, dict):
        return Exclusion(_parse_name(entry, option))
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if unknown:
        raise InvalidInput(
            f"{option}: an entry has the unknown keys {', '.join(unknown)}. "
            f"Valid keys are {', '.join(_KEYS)}."
        )
    if "name" not in entry:
        raise InvalidInput(f"{option}: an entry has no name, so it would exclude nothing.")
    name = _parse_name(entry["name"], option)
    reason = _parse_reason(entry.get("reason"), option)
    if "until" not in entry:
        return Exclusion(name, reason=reason)
    until = _convert_to_text(entry["until"])
    return Exclusion(name, until, reason, _parse_end(until, f"{option}: until of {name}"))


def _parse_name(value: t.Any, option: str) -> str:
    # A name cannot be recovered from what YAML takes it for: 5349 can have been written as 012345,
    # and the provider of that name would not be excluded.
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{option}: {value!r} is not a name: write it in quotes.")
    # Ansible can hand over a list as its text, which would exclude nothing.
    if value.lstrip().startswith(("[", "{")):
        raise InvalidInput(
            f"{option}: {value!r} is the text of a list or of an entry, not a name. "
            "Give a list, with its dates in quotes."
        )
    return value.strip()


def _parse_reason(value: t.Any, option: str) -> str:
    if isinstance(value, dict | list):
        raise InvalidInput(f"{option}: the reason {value!r} is not text.")
    if value is None:
        return ""
    return " ".join(str(value).split()).rstrip(".")


def _convert_to_text(value: t.Any) -> str:
    """Return a date as text: YAML makes an object of its own of one without quotes."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        return value
    return repr(value)


def _parse_end(until: str, what: str) -> datetime.datetime:
    try:
        if _DAY.fullmatch(until):
            # The day itself still counts.
            return min(_parse_time(until), _LAST_DAY) + datetime.timedelta(days=1)
        if _MOMENT.fullmatch(until):
            return _parse_time(until)
    except ValueError:
        pass
    raise InvalidInput(
        f"{what} is {until!r}, which is neither a date nor a time. Write a date such as "
        "2026-12-31, which ends at midnight UTC, or a time such as 2026-12-31T18:00:00Z."
    )


def _parse_time(text: str) -> datetime.datetime:
    """Return a time; one without a zone is in UTC."""
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo:
        return moment
    return moment.replace(tzinfo=UTC)


def convert_exclusions(entries: t.Any) -> t.Any:
    """Return a list of exclusions with text in place of dates, as Ansible hands it to a module.

    YAML makes a date of `until: 2026-12-31`, and ansible-core 2.18 makes one text of a whole list
    with a date in it. On the command line, `-e NAME=[…]` gives a JSON text in place of a list.
    """
    if isinstance(entries, str) and entries.startswith("["):
        return json.loads(entries)
    return _convert_dates(entries)


def _convert_dates(value: t.Any) -> t.Any:
    if isinstance(value, Mapping):
        return {key: _convert_dates(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_convert_dates(part) for part in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
