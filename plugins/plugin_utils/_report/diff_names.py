# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names beside the UUIDs in what `--diff` shows."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Mapping

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.json_files import read_json
from ...module_utils._common.text import make_printable
from ...module_utils._core.findings.entries import FindingsDocument, validate_document
from .._stage.controller import find_path, is_on_controller
from .phrases import MAX_NAME, get_server_name

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase


def add_names(action: ActionBase, result: dict[str, t.Any]) -> None:
    """Add names to the difference in the result of a module, where findings have them."""
    findings = find_findings(action) if result.get("diff") else None
    if findings:
        result["diff"] = name_diff(result["diff"], findings)


def find_findings(action: ActionBase) -> FindingsDocument | None:
    """Return the findings in the folder of a task's output, for the names in them."""
    return find_findings_in(action, action._task.args.get("output_dir"))


def find_findings_in(action: ActionBase, folder: t.Any) -> FindingsDocument | None:
    """Return the findings in a folder on the controller, for the names in them.

    They may be those of another run: a UUID has the same name in all of them.
    """
    if not isinstance(folder, str) or not is_on_controller(action):
        return None
    path = find_path(action, os.path.join(folder, "findings.json"))
    try:
        findings: FindingsDocument = validate_document("findings", read_json(path), path)
    except InvalidInput:
        return None
    return findings


def name_diff(diff: Mapping[str, t.Any], findings: FindingsDocument) -> dict[str, t.Any]:
    """Return a difference of allocations with names.

    diff: as `models.change.build_diff` returns it.
    findings: those that the changes were made of.
    """
    names: dict[str, str] = {}
    for entry in findings["findings"]:
        name = make_printable(get_server_name(entry), MAX_NAME)
        if name and entry["consumer"]:
            names[entry["consumer"]] = name
        for provider in entry["providers"]:
            names[provider["uuid"]] = make_printable(provider["name"], MAX_NAME)
    return {side: _name_side(contents, names) for side, contents in diff.items()}


def _name_side(contents: t.Any, names: Mapping[str, str]) -> t.Any:
    """Return the allocations of all consumers before or after a change."""
    if not isinstance(contents, dict):
        return contents
    named: dict[str, t.Any] = {}
    for consumer, body in contents.items():
        # Of a tree of providers, the contents have the names already.
        if not isinstance(body, dict) or "allocations" not in body:
            named[consumer] = body
            continue
        allocations = {
            _add_name(provider, names): amounts
            for provider, amounts in (body.get("allocations") or {}).items()
        }
        named[_add_name(consumer, names)] = {**body, "allocations": allocations}
    return named


def _add_name(uuid: str, names: Mapping[str, str]) -> str:
    if uuid not in names:
        return uuid
    return f"{uuid} ({names[uuid]})"
