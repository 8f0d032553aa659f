"""What a module returns, compared with its `RETURN`: each key is documented, with its shape."""

import ast
import functools
import json
import re
import typing as t
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

MODULES = Path(__file__).parents[4] / "plugins" / "modules"

# Ansible itself documents these. The attributes of a file come with each result that has `dest`.
COMMON = {
    *("changed", "deprecations", "diff", "exception", "failed", "invocation", "msg", "warnings"),
    *("gid", "group", "mode", "owner", "printed_diff", "reason_id", "size", "state", "uid"),
}

# Dictionaries whose keys are data: names, UUIDs, resource classes, kinds or options.
FREE = {
    *("allocated", "actions", "allocations", "amounts", "capacity", "claims", "coverage"),
    *("extra_specs", "frees", "free", "guest", "image_properties", "kinds", "metadata", "new"),
    *("partner", "projects", "providers", "quota", "resource_classes", "resources"),
    *("share_of_claimed", "stranded", "tally", "unchecked", "usages", "used", "verdicts"),
}

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "bool": bool,
    "dict": dict,
    "float": (float, int),
    "int": int,
    "list": list,
    "str": str,
}
RESOURCE_CLASS = re.compile(r"[A-Z][A-Z0-9_]*")


def find_undocumented(module: str, result: Mapping[str, t.Any]) -> list[str]:
    """Return what `RETURN` of a module does not say about a result, each as path and fault."""
    documented = read_documentation(module)
    faults = []
    # As Ansible returns it: a tuple is a list there.
    for key, value in json.loads(json.dumps(result)).items():
        if key in COMMON or key.startswith("_ansible"):
            continue
        if key not in documented:
            faults.append(f"{key} is not documented")
        else:
            faults += _check(key, value, documented[key])
    return sorted(set(faults))


@functools.cache
def read_documentation(module: str) -> dict[str, t.Any]:
    """Return `RETURN` of a module; {} where it has none."""
    source = (MODULES / f"{module}.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RETURN":
            documented: dict[str, t.Any] = yaml.safe_load(ast.literal_eval(node.value)) or {}
            return documented
    return {}


def _check(path: str, value: t.Any, entry: Mapping[str, t.Any]) -> Iterator[str]:
    """Yield the faults of one value and of all that is in it."""
    expected = entry["type"]
    # Which values can be null is in the descriptions.
    if value is None or expected == "raw":
        return
    # To Python a bool is an int.
    mistaken = isinstance(value, bool) and expected != "bool"
    if mistaken or not isinstance(value, TYPES[expected]):
        yield f"{path} is a {type(value).__name__} and not a {expected}"
        return
    if expected == "list":
        for part in value:
            if entry["elements"] == "dict":
                yield from _check_fields(f"{path}[]", part, entry)
            else:
                yield from _check(f"{path}[]", part, {"type": entry["elements"]})
    elif expected == "dict":
        yield from _check_fields(path, value, entry)


def _check_fields(
    path: str, value: Mapping[str, t.Any], entry: Mapping[str, t.Any]
) -> Iterator[str]:
    fields = entry.get("contains")
    if fields is None:
        name = path.rpartition(".")[2].removesuffix("[]")
        if value and name not in FREE:
            yield f"{path} is documented without its fields"
        return
    # Inventories are documented by the fields of one of them.
    by_class = bool(value) and all(map(RESOURCE_CLASS.fullmatch, value))
    if by_class and not set(value) & set(fields):
        for part in value.values():
            yield from _check_fields(path, part, entry)
        return
    for key, part in value.items():
        if key in fields:
            yield from _check(f"{path}.{key}", part, fields[key])
        else:
            yield f"{path}.{key} is not documented"
