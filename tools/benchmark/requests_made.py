# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the requests of a recording were. Pure."""

from __future__ import annotations

import collections
import re
import typing as t
import urllib.parse

if t.TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


def endpoints(
    noted: Sequence[Mapping[str, t.Any]], services: Mapping[int, str]
) -> list[tuple[str, int]]:
    """How often each kind of request was sent, most often first.

    `services` are the names by port.
    """
    counts = collections.Counter(_template(request, services) for request in noted)
    return counts.most_common()


def for_healthy(noted: Sequence[Mapping[str, t.Any]], involved: Collection[str]) -> int:
    """How many allocations were asked for one by one, of consumers out of any orphan or move."""
    asked = (
        re.fullmatch(r".*/allocations/([^/]+)", urllib.parse.urlsplit(request["url"]).path)
        for request in noted
    )
    return sum(found is not None and found[1] not in involved for found in asked)


def _template(request: Mapping[str, t.Any], services: Mapping[int, str]) -> str:
    url = urllib.parse.urlsplit(request["url"])
    path = _UUID.sub("{uuid}", url.path)
    query = "&".join(
        f"{name}={_value(name, value)}" for name, value in urllib.parse.parse_qsl(url.query)
    )
    return (
        f"{services.get(url.port or 0, '?')}: {request['method']} "
        f"{path}{'?' if query else ''}{query}"
    )


def _value(name: str, value: str) -> str:
    return "{host}" if name == "host" else _UUID.sub("{uuid}", value)
