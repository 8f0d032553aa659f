# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON about what hypervisors have left over.

Times are written as in `models.documents`.
"""

from __future__ import annotations

import typing as t

from .documents import AnswerDocument, CloudDocument, ServerDocument


class GuestEntry(t.TypedDict):
    """A domain or a directory on a hypervisor, and what the rules conclude of it."""

    id: str
    # `running_leftover`, `leftover_domain` or `leftover_directory`.
    kind: str
    # `orphaned`, `protected` or `undecided`.
    verdict: str
    # The name of the hypervisor.
    host: str
    # The uuid of the server.
    uuid: str
    # The name of the domain or of the directory.
    name: str
    reason: str
    # The ID of the reason (docs/reasons.md). Files of older versions do not have it.
    reason_id: t.NotRequired[str]
    # None where Nova does not know it.
    server: ServerDocument | None
    # The facts that the hypervisor reported (`hypervisor_guest_info`).
    guest: dict[str, t.Any]
    evidence: list[AnswerDocument]


class GuestCoverage(t.TypedDict):
    """How much was read of the hypervisors."""

    complete: bool
    # A sentence for each reason why nothing may be changed.
    failed_checks: list[str]
    # How many of each were read.
    hosts: int
    domains: int
    directories: int
    # How many servers were looked up.
    looked_at_closely: int


class GuestSummary(t.TypedDict):
    """The figures of a detection on hypervisors."""

    # How many entries have each verdict.
    verdicts: dict[str, int]
    # How many findings are of each kind.
    kinds: dict[str, int]
    coverage: GuestCoverage


class GuestsDocument(t.TypedDict):
    """The file of `hypervisor_guest_detect`."""

    # The version of this structure.
    format: int
    cloud: CloudDocument
    started_at: str
    finished_at: str
    summary: GuestSummary
    findings: list[GuestEntry]
    protected: list[GuestEntry]
    undecided: list[GuestEntry]
