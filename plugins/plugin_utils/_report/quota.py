# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What projects get back of their quota, as the terminal and all reports say it."""

from __future__ import annotations

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.entries import ProjectQuota, Stranded
from .units import humanize_amount

_MAX_NAME = 80


def label_project(uuid: str, stranded: Stranded) -> str:
    """Return the name of a project with its uuid, and whether Keystone still has it."""
    # Files of older versions do not have it, and an allocation may have no project.
    quota = stranded.get("quota", {}).get(uuid)
    if not uuid:
        return "no project"
    label = make_printable(uuid, _MAX_NAME)
    if quota is None:
        return label
    if quota["name"]:
        label = f"{make_printable(quota['name'], _MAX_NAME)} ({label})"
    if quota["exists"] is False:
        label += ", which no longer exists"
    return label


def list_quota_lines(stranded: Stranded) -> list[str]:
    """Return for each project what it gets back of its quota, the largest amounts first.

    Only of those that Keystone has: what no longer exists has no quota.
    """
    quota = stranded.get("quota", {})
    projects = [uuid for uuid in quota if quota[uuid]["exists"]]
    ordered = sorted(
        projects, key=lambda uuid: (-quota[uuid]["cores"], -quota[uuid]["ram_mib"], uuid)
    )
    lines = []
    for uuid in ordered:
        amounts = _describe_amounts(quota[uuid])
        if amounts:
            lines.append(f"{label_project(uuid, stranded)}: {amounts}")
    return lines


def _describe_amounts(quota: ProjectQuota) -> str:
    parts = []
    if quota["cores"]:
        parts.append(format_count(quota["cores"], "core", "cores"))
    if quota["ram_mib"]:
        parts.append(f"{humanize_amount('MEMORY_MB', quota['ram_mib'])} of RAM")
    return ", ".join(parts)
