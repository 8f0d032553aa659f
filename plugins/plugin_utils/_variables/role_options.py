# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of a role that are options of the modules it runs."""

from __future__ import annotations

import datetime
import json
import typing as t
from collections.abc import Mapping

# The options by group. A test compares them with those of the modules, whose code imports
# openstacksdk: in each task of a role that would take half a second.
OPTION_GROUPS: Mapping[str, tuple[str, ...]] = {
    "connection": (
        "cloud",
        "auth",
        "auth_type",
        "region_name",
        "interface",
        "validate_certs",
        "ca_cert",
        "client_cert",
        "client_key",
        "api_timeout",
    ),
    "policy": (
        "min_age",
        "unknown_min_age",
        "unconfirmed_min_age",
        "stuck_min_age",
        "stale_min_age",
        "exclude_consumers",
        "exclude_providers",
        "ignore_allocators",
        "pci_aliases",
    ),
}


def list_role_variables(role: str, group: str) -> dict[str, str]:
    """Return for each option of the group the name of the role's variable."""
    return {option: f"{role}_{option}" for option in OPTION_GROUPS[group]}


def is_answered(option: str, value: t.Any) -> bool:
    """Return whether a variable has a value for a module, which otherwise takes its default.

    An age that was left empty in a survey is an empty text, and null from ansible-core 2.19 on.
    """
    return not (option.endswith("_age") and value in (None, ""))


def convert_option(option: str, value: t.Any) -> t.Any:
    """Return the value of a variable as a module takes it."""
    if option.startswith("exclude_"):
        return convert_exclusions(value)
    return value


def convert_exclusions(entries: t.Any) -> t.Any:
    """Return a list of exclusions with text in place of dates.

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
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
