# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether it is clear that a host is up, or dead and fenced, before its servers are moved.

A nova-compute is silent, measured by what the others report, because no API has
`report_interval`. A nova-compute reports through RabbitMQ and a conductor, and the conductor writes
the time: if one of them fails, every nova-compute falls silent.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable, Collection, Iterable, Sequence

from .._common.errors import InvalidInput
from .._common.progress import PROGRESS
from .._common.text import summarize_names
from .._common.times import format_duration, seconds_between
from .._core.facts.services import COMPUTE, require_service
from .._core.models.nova import Service
from .drain_reader import DrainReader

# REPORTS: it lives. SILENT: the others have reported twice meanwhile. WAITING: not yet.
# UNKNOWN: no other is up to tell, or others fell silent together with it.
REPORTS, SILENT, WAITING, UNKNOWN = "reports", "silent", "waiting", "unknown"

# How often each of the others has to report.
_REPORTS = 2

# Hosts that lost the same RabbitMQ reported last within one `report_interval`, 10 by default.
_TOGETHER = 60

# In seconds: the pause between two listings of the services, while they are watched, and for how
# long. With report_interval = 600, two reports of the others take 20 minutes.
_PAUSE, _WATCH = 3.0, 1800


def is_down(service: Service) -> bool:
    """Return whether Nova sees a service down, by its reports or because somebody said so."""
    return service.state == "down" or service.forced_down


def require_clear_state(
    reader: DrainReader,
    host: str,
    fenced: bool,
    is_run: bool,
    stopped: Callable[[], str],
    sleep: Callable[[float], None],
) -> None:
    """Raise InvalidInput where it is not clear whether a host is up, or dead and fenced.

    Nova calls a service down as long as it is forced down (nova/servicegroup/drivers/db.py, is_up),
    but still saves the time of each report.

    fenced: the word of the operator that no guest can still run on the host.
    """
    services, now = reader.list_services()
    service = require_service(host, services)
    if is_down(service):
        require_witnesses(service, services, list_heard_hosts(service, services, now))
    # To start nova-compute is the first advice otherwise.
    if is_down(service) and not fenced:
        unfinished = reader.read_unfinished_evacuations(host)
        if unfinished.present:
            raise InvalidInput(f"Nothing was changed. {unfinished.explain()}")
    if fenced != is_down(service) and (is_run or fenced):
        raise InvalidInput(explain_contradiction(service))
    if fenced and (is_run or service.forced_down):
        _require_silence(reader, services, service, stopped, sleep)


def explain_contradiction(service: Service) -> str:
    """Return where the operator's word and the state of the service disagree."""
    report = f"(last report {service.updated_at})"
    if is_down(service):
        return (
            f"The compute service of {service.host} is down {report}: nothing was changed. First "
            "start nova-compute there, unset forced_down if it is set, and run again: the servers "
            "then move live and cold. Only if the host itself is dead, its servers have to be "
            "evacuated: cut off its power, and set fenced (host_decommission_fenced) to true. If "
            "guests still run there, an evacuation starts each of them a second time, on the same "
            "volumes."
        )
    return (
        f"fenced=true says that no guest can still run on {service.host}, but its compute service "
        f"is {service.state or 'in an unknown state'} {report}: nothing was changed. Wait until "
        "Nova sees it down, or leave fenced out to move the servers live and cold."
    )


def require_witnesses(
    service: Service, services: Iterable[Service], others: Sequence[object]
) -> None:
    """Raise InvalidInput if no other host reports: then nothing tells that one is silent.

    others: those that do.
    """
    host, together = service.host, list_hosts_silent_with(service, services)
    if together:
        raise InvalidInput(
            f"The nova-compute of {host} fell silent together with that of "
            f"{summarize_names(together)}: this does not show that a host is dead, and nothing was "
            "changed. Look at RabbitMQ and the conductors of their cell, and start nova-compute "
            "where it does not run. If these hosts are dead too, set forced_down for the service "
            "of each, and run again."
        )
    if not others:
        raise InvalidInput(
            f"The nova-compute of {host} does not report to Nova, and neither does any other: this "
            "does not show that a host is dead, and nothing was changed. Look at RabbitMQ, the "
            "database and the clocks of the controllers, start nova-compute where it does not run, "
            "and run again."
        )


def _require_silence(
    reader: DrainReader,
    services: Sequence[Service],
    service: Service,
    stopped: Callable[[], str],
    sleep: Callable[[float], None],
) -> None:
    """Raise InvalidInput unless the nova-compute of a fenced host is silent."""
    host = service.host
    advice = (
        "nothing was changed. Leave fenced out, and unset forced_down if it is set, to move the "
        "servers live and cold; to evacuate them, cut off the power of the host first."
    )
    fenced = f"fenced says that no guest can still run on {host}, but its nova-compute"
    PROGRESS.add_line(f"is nova-compute on {host} dead? The answer takes a minute or more")
    watch = SilenceWatch(host)
    verdict = watch.judge(services)
    # It may report seldom, and still do what Nova asks of it.
    if reader.has_host_answered(host):
        raise InvalidInput(f"{fenced} answers to Nova: {advice}")
    for _look in range(int(_WATCH / _PAUSE)):
        if verdict != WAITING or stopped():
            break
        sleep(_PAUSE)
        services = reader.list_services()[0]
        verdict = watch.judge(services)
    if stopped():
        raise InvalidInput(f"{stopped()} Nothing was changed.")
    if verdict == WAITING:
        raise InvalidInput(
            "Another nova-compute is up for Nova, but did not report twice within "
            f"{format_duration(_WATCH)}, so the silence of {host} does not show that it is dead: "
            "nothing was changed. Look at RabbitMQ, the database and the clocks of all hosts, then "
            "run again."
        )
    if verdict == REPORTS:
        raise InvalidInput(f"{fenced} reports to Nova: {advice}")
    witnesses = list_others_up(host, services)
    require_witnesses(require_service(host, services), services, witnesses)


@d.dataclass
class SilenceWatch:
    """Compares listings of the services, each later than the one before, about one host.

    Only changes count. The times in them are not compared, because conductors have own clocks.
    """

    host: str
    _seen: dict[str, set[str | None]] = d.field(default_factory=dict)

    def judge(self, services: Collection[Service]) -> str:
        """Return what the listings so far and this one show."""
        for service in services:
            if service.binary == COMPUTE:
                self._seen.setdefault(service.host, set()).add(service.updated_at)
        others = [service.host for service in list_others_up(self.host, services)]
        if self._count_reports(self.host):
            return REPORTS
        own = [entry for entry in services if entry.host == self.host and entry.binary == COMPUTE]
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
