# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a nova-compute is silent, measured by what the others report. Pure.

No API has `report_interval`. A nova-compute reports through RabbitMQ and a conductor, and the
conductor writes the time: if one of them fails, every nova-compute falls silent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .._common.times import seconds_between
from .._core.facts.services import COMPUTE
from .._core.models.nova import Service

# REPORTS: it lives. SILENT: the others have reported twice meanwhile. WAITING: not yet.
# UNKNOWN: no other is up to tell, or others fell silent together with it.
REPORTS, SILENT, WAITING, UNKNOWN = "reports", "silent", "waiting", "unknown"

# How often each of the others has to report.
_REPORTS = 2

# Hosts that lost the same RabbitMQ reported last within one `report_interval`, 10 by default.
_TOGETHER = 60


class SilenceWatch:
    """Compares listings of the services, each later than the one before, about one host.

    Only changes count. The times in them are not compared, because conductors have own clocks.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._seen: dict[str, set[str | None]] = {}

    def judge(self, services: Collection[Service]) -> str:
        """Return what the listings so far and this one show."""
        for service in services:
            if service.binary == COMPUTE:
                self._seen.setdefault(service.host, set()).add(service.updated_at)
        others = [service.host for service in list_others_up(self._host, services)]
        if self._count_reports(self._host):
            return REPORTS
        own = [entry for entry in services if entry.host == self._host and entry.binary == COMPUTE]
        if not others or any(list_hosts_silent_with(entry, services) for entry in own):
            return UNKNOWN
        if all(self._count_reports(host) >= _REPORTS for host in others):
            return SILENT
        return WAITING

    def _count_reports(self, host: str) -> int:
        return len(self._seen.get(host, ())) - 1


def list_others_up(host: str, services: Iterable[Service]) -> list[Service]:
    """Return the nova-computes of other hosts that Nova sees up."""
    up = [one for one in services if one.binary == COMPUTE and one.state == "up"]
    return [service for service in up if service.host != host]


def list_hosts_silent_with(service: Service, services: Iterable[Service]) -> list[str]:
    """Return the other hosts whose nova-compute fell silent together with that of a host.

    They may have lost the RabbitMQ of their cell, and no API says which hosts are in a cell. One
    that is forced down counts as dead: a person has said so.
    """
    together = []
    for other in services:
        if other.binary != COMPUTE or other.host == service.host or other.state != "down":
            continue
        later = seconds_between(service.updated_at, other.updated_at)
        earlier = seconds_between(other.updated_at, service.updated_at)
        if later is None or earlier is None or other.forced_down:
            continue
        if max(later, earlier) <= _TOGETHER:
            together.append(other.host)
    return together


def list_heard_hosts(service: Service, services: Collection[Service], now: str) -> list[str]:
    """Return the other hosts whose nova-compute was heard since that of a host that is down.

    When all fall silent, Nova calls them down one after the other: one that still looks up, and
    reported last not much later than the host, is silent too. A host that is forced down may have
    reported just now. None tells anything about a host that fell silent together with others.

    now: by Nova's clock.
    """
    if list_hosts_silent_with(service, services):
        return []
    silence = seconds_between(service.updated_at, now)
    heard = []
    for other in list_others_up(service.host, services):
        age = seconds_between(other.updated_at, now)
        if service.forced_down or silence is None or age is None or age * 2 < silence:
            heard.append(other.host)
    return heard
