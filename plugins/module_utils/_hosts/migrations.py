# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations as `migration_info` returns them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._common.errors import CloudError
from .._common.times import seconds_between
from .._common.uuids import require_uuid
from .._core.clients.nova import NovaReader
from .._core.clients.session import CloudContext
from .._core.facts.services import has_every_cell_answered
from .._core.models.documents import convert_to_json
from .._core.models.nova import Migration
from .._core.models.snapshot import Answer


def list_migrations(context: CloudContext) -> dict[str, t.Any]:
    """Return the migrations that the options ask for, newest first."""
    options = context.options
    server = require_uuid(options["server"], "server") if options["server"] else None
    nova = NovaReader(context.connect().compute)
    answer = _ask(nova, server, options["host"])
    if not has_every_cell_answered(nova.list_services()):
        # Nova leaves a dead cell out of its listings without an error.
        context.warn("A cell is not answering: there may be more migrations than Nova lists.")
    if answer.value is None:
        raise CloudError(
            f"Nova answered {answer.status} to {answer.request}, "
            "or with more than it lists at once."
        )
    rows = [row for row in answer.value if _is_chosen(row, options)]
    rows.sort(key=lambda row: row.created_at or "", reverse=True)
    # The age counts to the time of the answer, so that only Nova's clock matters.
    return {"changed": False, "migrations": [describe_migration(row, answer.at) for row in rows]}


def _ask(nova: NovaReader, server: str | None, host: str | None) -> Answer[tuple[Migration, ...]]:
    if server:
        return nova.list_migrations_of_server(server)
    return nova.list_migrations_of_host(host) if host else nova.list_migrations()


def _is_chosen(row: Migration, options: Mapping[str, t.Any]) -> bool:
    """Return whether a migration matches every option that is set."""
    # Nova was asked for the server or for the host, and not for both. Asked for a host, it may
    # take names for the same that differ in case, and does so when nova-compute starts, too.
    hosts = (row.source_compute, row.dest_compute)
    if options["server"] and options["host"] and options["host"] not in hosts:
        return False
    if options["status"] and row.status not in options["status"]:
        return False
    return options["under_way"] in (None, not row.ended)


def describe_migration(migration: Migration, at: str) -> dict[str, t.Any]:
    """Return a migration with its age in seconds and what can be done about it.

    at: the time of Nova's answer, by Nova's own clock.
    """
    return {
        **convert_to_json(migration),
        "age_seconds": seconds_between(migration.changed_at, at),
        "advice": get_advice(migration),
    }


def get_advice(migration: Migration) -> str:
    """Return what to do about a migration that is under way; '' for a migration that has ended."""
    if migration.ended:
        return ""
    # A finished resize holds its source on purpose, until it is confirmed or reverted.
    if migration.status == "finished":
        return "confirm or revert the resize"
    if migration.type == "live-migration":
        return "wait for it, or abort it (openstack server migration abort)"
    return "wait for it; if it makes no progress, check and reset the server's state"
