"""Reads the names that users write or read, from a checkout of the collection.

They are what docs/porting-to-2.0.md is about. `tests/fixtures/porting/interface-1.0.0.json` has
those of version 1.0.0, and was written from its checkout with:

    python -m ansible_collections.osops.placement.tests.unit.docs.interface CHECKOUT
"""

import ast
import itertools
import re
import sys
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from ....tools.json_text import format_json

# The name of a part, and all names in it.
Interface = dict[str, list[str]]

_METRIC = re.compile(r"\bplacement_orphan_[a-z_]+")
_KINDS = "orphan_cleanup_kinds"


def read_interface(root: Path) -> Interface:
    """Return all names of a checkout, by the sections of the guide."""
    roles = {role.name: _read_role(role) for role in sorted((root / "roles").iterdir())}
    variables = sorted(
        name for specs in roles.values() for spec in specs.values() for name in _options(spec)
    )
    metrics = _METRIC.findall((root / "docs" / "reports.md").read_text(encoding="utf-8"))
    return {
        "kinds": sorted(_options(roles["orphan_cleanup"]["main"])[_KINDS]["choices"]),
        "variables": sorted(set(variables)),
        "entry points": sorted(
            f"{role}: {entry_point}" for role, specs in roles.items() for entry_point in specs
        ),
        "playbooks": _list_files(root / "playbooks", "*.yml"),
        "modules": _list_files(root / "plugins" / "modules", "*.py"),
        "filters": _list_files(root / "plugins" / "filter", "*.yml"),
        "options": sorted(_iterate_module_names(root, _iterate_option_names)),
        "return values": sorted(_iterate_module_names(root, _iterate_return_names)),
        "metrics": sorted(set(metrics)),
    }


def _read_role(role: Path) -> dict[str, t.Any]:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    return t.cast("dict[str, t.Any]", specs["argument_specs"])


def _options(spec: Mapping[str, t.Any]) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", spec.get("options", {}))


def _list_files(folder: Path, pattern: str) -> list[str]:
    names = [path.stem for path in folder.glob(pattern)]
    return sorted(name for name in names if not name.startswith("_"))


def _iterate_module_names(
    root: Path, iterate: t.Callable[[Path, dict[str, str]], Iterator[str]]
) -> Iterator[str]:
    for path in (root / "plugins" / "modules").glob("*.py"):
        for name in iterate(root, _read_texts(path)):
            yield f"{path.stem}: {name}"


def _iterate_option_names(root: Path, texts: dict[str, str]) -> Iterator[str]:
    documentation = yaml.safe_load(texts["DOCUMENTATION"])
    parts = [documentation]
    for fragment in documentation.get("extends_documentation_fragment", ()):
        # osops.placement._options.scope; those of _attributes are no options.
        _namespace, _collection, name, *part = fragment.split(".")
        if name == "_options":
            path = root / "plugins" / "doc_fragments" / f"{name}.py"
            texts = _read_texts(path, part[0].capitalize())
            parts.append(yaml.safe_load(texts["DOCUMENTATION"]))
    for part in parts:
        yield from _iterate_nested(part.get("options"), "suboptions")


def _iterate_return_names(_root: Path, texts: dict[str, str]) -> Iterator[str]:
    yield from _iterate_nested(yaml.safe_load(texts.get("RETURN", "{}")), "contains")


def _iterate_nested(names: Mapping[str, t.Any] | None, key: str) -> Iterator[str]:
    for name, description in (names or {}).items():
        yield name
        for inner in _iterate_nested(description.get(key), key):
            yield f"{name}.{inner}"


def _read_texts(path: Path, part: str = "") -> dict[str, str]:
    """Return the texts that a file, or one of its classes, assigns to names."""
    texts = {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [node for node in tree.body if part in ("", getattr(node, "name", None))]
    for node in itertools.chain.from_iterable(map(ast.walk, body)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            target, value = node.targets[0], node.value.value
            if isinstance(target, ast.Name) and isinstance(value, str):
                texts[target.id] = value
    return texts


if __name__ == "__main__":
    print(format_json(read_interface(Path(sys.argv[1]))), end="")
