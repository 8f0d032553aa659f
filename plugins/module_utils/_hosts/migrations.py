# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations as the modules return them."""

from __future__ import annotations

import typing as t

from .._common.times import seconds_between
from .._core.models.codec import convert_to_json
from .._core.models.nova import Migration


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
