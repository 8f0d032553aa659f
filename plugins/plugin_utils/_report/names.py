# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of the providers and servers whose uuids a report shows."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...module_utils._core.findings.entries import Entry, iterate_entries
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.documents import ChangeDocument, RemovalDocument
from .report import Report

UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def map_names(report: Report) -> dict[str, str]:
    """Return the names of all providers and servers of the entries, by uuid."""
    names: dict[str, str] = {}
    for entry in iterate_entries(report.findings):
        for provider in entry["providers"]:
            names[provider["uuid"]] = provider["name"]
        server = entry["server"]
        if server and server["name"]:
            names[server["uuid"]] = server["name"]
    return names


def choose_names(entry: Entry, names: Mapping[str, str]) -> dict[str, str]:
    """Return those of the names whose uuids are in the change or in the evidence of an entry."""
    texts = [answer["request"] for answer in entry["evidence"]]
    texts += _list_uuids(entry["change"])
    chosen = {}
    for uuid in UUID.findall(" ".join(texts)):
        # The name of a node of ironic is its uuid.
        if names.get(uuid, uuid) != uuid:
            chosen[uuid] = names[uuid]
    return chosen


def _list_uuids(change: ChangeDocument | RemovalDocument | None) -> list[str]:
    """Return the consumers and the providers in the documents of a change and of its partner."""
    if not change or change["action"] == DELETE_PROVIDERS:
        return []
    uuids = [
        change["consumer"],
        *change["before"]["allocations"],
        *change["after"]["allocations"],
    ]
    return uuids + _list_uuids(change["partner"])
