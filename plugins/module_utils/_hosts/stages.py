# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads hosts that are to go, and changes them."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from .._common.errors import InvalidInput
from .._core.clients.nova import NovaReader
from .._core.clients.session import CloudContext, Session
from .._core.facts.services import (
    COMPUTE,
    apply_update,
    build_update,
    describe_services,
    filter_services,
    get_listed_services,
    require_service,
)
from .deletion import Deleted, HostDeletion
from .emptiness import DISABLE, DRAINABLE
from .host_info import make_host_reader
from .host_record import read_host_file, write_host_file
from .host_report import HostReport, PartPolicy, describe_removal, explain_refusal
from .nova_client import ServiceWriter


def read_hosts(context: CloudContext) -> dict[str, t.Any]:
    """Return what the services have of the hosts, and what blocks them."""
    options = context.options
    names = options["hosts"] or []
    if not all(name.strip() for name in names):
        raise InvalidInput("hosts: no name may be empty.")
    if options["services_only"]:
        return {"changed": False, "hosts": _read_services(context.connect(), names), "dest": None}
    if not names:
        raise InvalidInput("hosts must name at least one host.")
    # Which of several hosts they belonged to would be a guess.
    if options["providers"] and len(names) > 1:
        raise InvalidInput("providers belong to one host: name only that host in hosts.")
    earlier = read_host_file(options["earlier"])
    reader = make_host_reader(context, context.connect())
    reports = reader.read_hosts(names, options["providers"], options["allow_unknown"], earlier)
    # Each sentence once.
    for sentence in dict.fromkeys(text for report in reports for text in report.parts.unread):
        context.warn(sentence)
    documents: list[t.Any] = [report.describe() for report in reports]
    if options["dest"]:
        reasons = options["disabled_reasons"]
        documents = [reader.record_host(report, False, reasons) for report in reports]
        write_host_file(options["dest"], documents)
    hosts = [
        {**document, **_judge(report, reader.part_policy, options)}
        for report, document in zip(reports, documents, strict=True)
    ]
    return {"changed": False, "hosts": hosts, "dest": options["dest"]}


def _read_services(session: Session, hosts: list[str]) -> list[dict[str, t.Any]]:
    """Return the hosts of compute services with their service alone."""
    services = get_listed_services(NovaReader(session.compute).list_services())
    described = describe_services(filter_services(services, hosts or None, [COMPUTE]))
    return [
        {"name": service["host"], "host": service["host"], "known": True, "service": service}
        for service in described
    ]


def _judge(
    report: HostReport, policy: PartPolicy, options: Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """Return what the blockers of a host come to, and what remains of it."""
    drained = DRAINABLE if options["assume_drained"] else ()
    blockers = [
        blocker
        for blocker in report.blockers
        if blocker.stops == DISABLE and blocker.kind not in drained
    ]
    where = f"see {options['dest']}" if options["dest"] else ""
    what = "decommissioned, and nothing more is changed on it"
    return {
        "refusal": explain_refusal(report.name, blockers, what, where),
        "removal": describe_removal(report, policy),
    }


def change_host(context: CloudContext) -> dict[str, t.Any]:
    """Enable, disable or delete a host as the options say."""
    options = context.options
    if not options["host"].strip():
        raise InvalidInput("host must not be empty.")
    if options["state"] != "absent":
        return _update_service(context)
    if options["forced_down"] is not None:
        raise InvalidInput("forced_down is for state=enabled and state=disabled.")
    return _delete_host(context)


def _update_service(context: CloudContext) -> dict[str, t.Any]:
    """Bring the compute service of the host into the state of the options."""
    options, session = context.options, context.connect()
    services = get_listed_services(NovaReader(session.compute).list_services())
    service = require_service(options["host"], services)
    body = build_update(service, {**options, "enabled": options["state"] == "enabled"})
    updated = service
    if body and context.check_mode:
        updated = apply_update(service, body)
    elif body:
        updated = ServiceWriter(session.compute).update_service(service, body)
    before, after = map(d.asdict, (service, updated))
    return {"changed": bool(body), "service": after, "diff": {"before": before, "after": after}}


def _delete_host(context: CloudContext) -> dict[str, t.Any]:
    """Delete the host, unless something blocks it."""
    options, path = context.options, context.options["record"]
    earlier = read_host_file(path)
    session = context.connect()
    reader = make_host_reader(context, session)
    (report,) = reader.read_hosts([options["host"]], allow_unknown=True, earlier=earlier)
    for sentence in report.parts.unread:
        context.warn(sentence)
    deletion = HostDeletion(session, reader, report)
    refusal = deletion.find_refusal(
        is_cleaned=context.check_mode and options["assume_cleaned"],
        is_stopped=context.check_mode and options["assume_stopped"],
    )
    if refusal is not None:
        return refusal
    foretold = deletion.foretell()
    more = {"service": None, "diff": {"before": foretold["deleted"], "after": Deleted().describe()}}
    if context.check_mode or not foretold["changed"]:
        return {**foretold, **more}
    if path:
        # A part of the host that is gone can be restored only from here.
        write_host_file(path, [reader.record_host(report, True, options["disabled_reasons"])])
    result = deletion.run()
    return result if result.get("failed") else {**result, **more}
