# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that was started, and plays that Ansible skips as if they had succeeded."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ansible import context
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager

from ...module_utils._common.text import show_value

COLLECTION = "osops.placement"
_LOCALHOST = "localhost"

# Without links: in a clone, a playbook finds the plugins through one.
_PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"

LEFT_OUT = (
    "Nothing was done: --start-at-task and --skip-tags always would leave out the checks before "
    "the first change. Run the whole playbook."
)


def get_started_playbook() -> str:
    """Return the playbook of this run as the user has named it, empty if there are several."""
    started = list(context.CLIARGS.get("args") or ())
    return str(started[0]) if len(started) == 1 else ""


def get_started_name() -> str:
    """Return the name of the playbook without its folder or collection, empty if it is not ours."""
    name = Path(get_started_playbook().removeprefix(f"{COLLECTION}.")).stem
    return name if (_PLAYBOOKS / f"{name}.yml").exists() else ""


def leaves_out_checks() -> bool:
    """Return whether the command line leaves out the first tasks of a playbook of this collection.

    A playbook of the user may start at a task before ours.
    """
    if context.CLIARGS.get("start_at_task") and get_started_name():
        return True
    return "always" in (context.CLIARGS.get("skip_tags") or ())


def list_patterns(terms: t.Any) -> list[str]:
    """Return the patterns in the terms of a lookup, none of them empty."""
    if isinstance(terms, (list, tuple)):
        return [pattern for term in terms for pattern in list_patterns(term)]
    return [str(terms)] if terms is not None and str(terms).strip() else []


def has_hosts(
    patterns: Sequence[str], groups: Mapping[str, Iterable[str]], limit: str | None, loader: t.Any
) -> bool:
    """Return whether a host matches the patterns and the limit, as Ansible sees them.

    groups: the hosts of the inventory by group.
    """
    if not patterns:
        return False
    # As the lookup inventory_hostnames of Ansible does.
    inventory: t.Any = InventoryManager(loader, parse=False)
    for group, hosts in groups.items():
        inventory.add_group(group)
        for host in hosts:
            inventory.add_host(host, group=group)
    try:
        inventory.subset(limit)
        return bool(inventory.get_hosts(pattern=list(patterns)))
    except AnsibleError:
        return False


def explain_no_hosts(
    patterns: Sequence[str], limit: str | None, has_inventory: bool, variable: str, scope: str
) -> str:
    """Return why a play has no hosts, and what to do.

    limit: the value of `--limit`, if there is one.
    variable: the variable that changes the patterns, empty if there is none.
    scope: the variable that says what to examine, where that is not `--limit`.
    """
    pattern = ",".join(patterns)
    if not patterns:
        return f"Nothing was done: {variable} is empty, and must name the hosts of this playbook."
    if pattern == _LOCALHOST:
        advice = f", and name what to examine in {scope}" if scope else ""
        return (
            f"Nothing was done: this playbook runs on localhost, which --limit {show_value(limit)} "
            f"leaves out. Leave out --limit{advice}."
        )
    if limit and has_inventory:
        return (
            f"Nothing was done: --limit {show_value(limit)} leaves out all hosts that match "
            f"{show_value(pattern)}, on which this playbook runs."
        )
    missing = "there is no inventory: give one with -i."
    if has_inventory:
        missing = f"add the hosts to the inventory, or name others in {variable}."
    return f"Nothing was done: no host of the inventory matches {show_value(pattern)}; {missing}"
