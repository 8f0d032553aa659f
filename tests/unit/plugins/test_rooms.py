"""What a module ships with it: no more than it needs, and to hypervisors only their own rooms."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
PREFIX = "ansible_collections.osops.placement.plugins."

# How many files of module_utils a module may ship to the host that it runs on. One of them is
# `_common.progress` wherever requests are sent in parallel, because these calls are counted there.
CEILINGS = {
    "allocation_candidate_info": 25,
    "compute_host": 117,
    "compute_host_info": 117,
    "compute_host_restore": 52,
    "host_drain": 130,
    "hypervisor_guest": 13,
    "hypervisor_guest_detect": 78,
    "hypervisor_guest_info": 13,
    "migration_info": 26,
    "nova_log_info": 4,
    "orphan_detect": 114,
    "orphan_plan": 25,
    "orphan_remediate": 123,
    "orphan_report": 0,
    "orphan_restore": 54,
    "placement_allocation": 28,
    "placement_allocation_info": 24,
    "placement_provider_info": 24,
    "validate_variables": 0,
}

# hypervisor_guest_detect runs on the controller, because it sends requests to Nova.
ON_HYPERVISORS = {"hypervisor_guest", "hypervisor_guest_info", "nova_log_info"}


@functools.cache
def read_imports(path: Path) -> tuple[str, ...]:
    """Return the dotted name of everything that a file imports, also for type checkers only."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                package = path.relative_to(PLUGINS).parts[: -node.level]
                module = PREFIX + ".".join([*package, *filter(None, [module])])
            names += [f"{module}.{alias.name}" for alias in node.names]
    return tuple(names)


def path_of(name: str) -> Path | None:
    """Return the file of one of our own dotted names: a module, or something in one.

    None for other names.
    """
    if not name.startswith(PREFIX):
        return None
    parts = name.removeprefix(PREFIX).split(".")
    for length in (len(parts), len(parts) - 1):
        path = PLUGINS / Path(*parts[:length])
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
    raise AssertionError(f"{name} is imported, and is not there.")


def find_shipped(path: Path) -> set[Path]:
    """Return the files of module_utils that Ansible ships with a module.

    It follows every import, including those for type checkers.
    """
    shipped: set[Path] = set()
    waiting = [path]
    while waiting:
        for name in read_imports(waiting.pop()):
            needed = path_of(name)
            if needed and needed not in shipped:
                shipped.add(needed)
                waiting.append(needed)
    return shipped


MODULES = sorted((PLUGINS / "modules").glob("*.py"))


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.stem in ON_HYPERVISORS], ids=lambda path: path.stem
)
def test_hypervisor_code_needs_nothing_else(path: Path) -> None:
    rooms = {str(shipped.parent.relative_to(PLUGINS)) for shipped in find_shipped(path)}

    assert rooms <= {"module_utils/_common", "module_utils/_hypervisors/on_host"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_ship_no_more_than_they_need(path: Path) -> None:
    assert len(find_shipped(path)) <= CEILINGS[path.stem], sorted(
        shipped.stem for shipped in find_shipped(path)
    )
