# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rooms of the shared code.

Imports only go down, pure rooms stay pure, and a module ships no more than it needs.
"""

from __future__ import annotations

import ast
import functools
import typing as t
from pathlib import Path

import pytest

if t.TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PREFIX = "ansible_collections.osops.placement.plugins."

# An import goes to the same room or to a lower level; rooms on one level do not import each other.
LEVELS = {
    "_common": 1,
    "_models": 2,
    "_snapshot": 3,
    "_hypervisor": 3,
    "_clients": 4,
    "_expected": 4,
    "_rules": 5,
    "_collector": 5,
    "_resources": 5,
    "_findings": 6,
    "_plan": 7,
    "_hosts": 7,
    "_remediation": 8,
}

PURE = ("_models", "_snapshot", "_expected", "_rules", "_findings", "_plan")
# Modules with which a pure room could reach the cloud, the clock or the disk.
IMPURE = {
    "ansible",
    "keystoneauth1",
    "openstack",
    "os",
    "pathlib",
    "random",
    "requests",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
IMPURE_ROOMS = {
    "_common.clock",
    "_common.json_files",
    "_common.parallel",
    "_common.progress",
    "_common.runner",
}

# How many files of module_utils a module may ship to the host that it runs on. One of them is
# `_common.progress` wherever requests are sent in parallel, because these calls are counted there.
CEILINGS = {
    "aggregate_host": 94,
    "allocation_candidate_info": 30,
    "compute_host_info": 135,
    "compute_host_restore": 52,
    "compute_service": 39,
    "compute_service_info": 28,
    "host_drain": 158,
    "hypervisor_guest": 13,
    "hypervisor_guest_detect": 119,
    "hypervisor_guest_info": 14,
    "migration_info": 34,
    "network_agent": 97,
    "nova_log_info": 5,
    "orphan_detect": 147,
    "orphan_notification": 0,
    "orphan_plan": 29,
    "orphan_remediate": 146,
    "orphan_report": 0,
    "orphan_result": 0,
    "orphan_restore": 62,
    "orphan_summary": 14,
    "placement_allocation": 30,
    "placement_allocation_info": 28,
    "placement_provider": 38,
    "placement_provider_info": 27,
    "validate_variables": 0,
}

# hypervisor_guest_detect runs on the controller, because it sends requests to Nova.
ON_HYPERVISORS = {"hypervisor_guest", "hypervisor_guest_info", "nova_log_info"}


@functools.cache
def read_imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Return the dotted name of each import, and whether only type checkers read it."""
    return tuple(_walk_imports(ast.parse(path.read_text(encoding="utf-8")), typing_only=False))


def _walk_imports(node: ast.AST, typing_only: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name, typing_only
        elif isinstance(child, ast.ImportFrom):
            for alias in child.names:
                yield f"{child.module}.{alias.name}", typing_only
        else:
            yield from _walk_imports(child, typing_only or _is_for_type_checkers(child))


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "t.TYPE_CHECKING"


def path_of(name: str) -> Path | None:
    """Return the file of one of our own dotted names: a module, or something in one.

    None for other names.
    """
    if not name.startswith(PREFIX):
        return None
    parts = name.removeprefix(PREFIX).split(".")
    for length in (len(parts), len(parts) - 1):
        path = ROOT / "plugins" / Path(*parts[:length])
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
    raise AssertionError(f"{name} is imported, and is not there.")


def room_of(path: Path) -> str:
    return path.parent.name


def find_shipped(path: Path) -> set[Path]:
    """Return the files of module_utils that Ansible ships with a module.

    It follows every import, including those for type checkers.
    """
    shipped: set[Path] = set()
    waiting = [path]
    while waiting:
        for name, _typing_only in read_imports(waiting.pop()):
            needed = path_of(name)
            if needed and needed not in shipped:
                shipped.add(needed)
                waiting.append(needed)
    return shipped


FILES = sorted((ROOT / "plugins" / "module_utils").rglob("*.py"))
MODULES = sorted((ROOT / "plugins" / "modules").glob("*.py"))


def test_every_file_is_in_a_room() -> None:
    assert {path.parent.parent.name for path in FILES} == {"module_utils"}
    assert {room_of(path) for path in FILES} == set(LEVELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{room_of(path)}.{path.stem}")
def test_imports_only_go_down(path: Path) -> None:
    imported = [needed for name, _typing_only in read_imports(path) if (needed := path_of(name))]
    others = {room_of(needed) for needed in imported} - {room_of(path)}

    assert [room for room in others if LEVELS[room] >= LEVELS[room_of(path)]] == []


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if room_of(path) in PURE],
    ids=lambda path: f"{room_of(path)}.{path.stem}",
)
def test_pure_rooms_have_no_input_or_output(path: Path) -> None:
    names = [name for name, typing_only in read_imports(path) if not typing_only]

    assert [name for name in names if name.partition(".")[0] in IMPURE] == []
    ours = [
        name.removeprefix(f"{PREFIX}module_utils.") for name in names if name.startswith(PREFIX)
    ]
    assert [
        name
        for name in ours
        if name.startswith(("_clients.", *(f"{room}." for room in IMPURE_ROOMS)))
    ] == []


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.stem in ON_HYPERVISORS], ids=lambda path: path.stem
)
def test_hypervisor_code_needs_nothing_else(path: Path) -> None:
    assert {room_of(shipped) for shipped in find_shipped(path)} <= {"_common", "_hypervisor"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_ship_no_more_than_they_need(path: Path) -> None:
    assert len(find_shipped(path)) <= CEILINGS[path.stem], sorted(
        shipped.stem for shipped in find_shipped(path)
    )
