"""Read what the modules of awx.awx and the roles of infra.aap_configuration accept.

The tests compare the generated data with these facts, so that nobody needs the two collections to
run the tests. To read them again, name the folder and the version of each collection, in a checkout
or as installed:

    PYTHONPATH=collections .venv/controller/bin/python -m \\
        ansible_collections.osops.placement.tools.awx_data.read_awx_modules \\
        ~/awx/awx_collection 24.6.1 ~/aap_configuration 3.0.0

It writes names, types, choices and requirements, and neither code nor documentation.
"""

import argparse
import ast
import pathlib
import re
import typing as t

import yaml

from ..json_text import format_json
from .kinds import KINDS

FACTS = pathlib.Path(__file__).parents[2] / "tests" / "unit" / "extensions" / "awx_modules.json"
# Teams get their roles with the last one.
MODULES = tuple(sorted({kind.module for kind in KINDS.values()} | {"role"}))
ROLES = "controller_roles"
OPTION_FACTS = ("type", "elements", "choices", "required", "aliases")
RULES = ("mutually_exclusive", "required_if", "required_together", "required_one_of")
# A role reads the keys of its entries from its loop variable.
READ_KEY = re.compile(r"\b__\w+_item\.(?:0\.)?(\w+)")

Facts = dict[str, t.Any]


def read_module(path: pathlib.Path) -> Facts:
    """Return the options of a module, and the rules about them."""
    facts: Facts = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if name == "argument_spec":
            facts["options"] = _read_options(node.value)
        elif name in RULES:
            facts[name] = ast.literal_eval(node.value)
    if not facts.get("options"):
        raise SystemExit(f"{path} has no argument_spec that this script can read")
    return facts


def _read_options(spec: ast.expr) -> Facts:
    return {name: _read_option(call) for name, call in _read_keywords(spec).items()}


def _read_option(call: ast.expr) -> Facts:
    keywords = _read_keywords(call)
    return {name: ast.literal_eval(keywords[name]) for name in OPTION_FACTS if name in keywords}


def _read_keywords(call: ast.expr) -> dict[str, ast.expr]:
    """Return the arguments of `dict(…)`."""
    if not isinstance(call, ast.Call) or call.args:
        raise SystemExit(f"line {call.lineno} is not a call of dict() with names only")
    return {str(keyword.arg): keyword.value for keyword in call.keywords}


def read_role(folder: pathlib.Path) -> Facts:
    """Return the keys that a role hands to the option of the same name, for each module."""
    passed: Facts = {}
    for path in sorted((folder / "tasks").glob("*.yml")):
        for task in yaml.safe_load(path.read_text(encoding="utf-8")):
            for module in set(task) & set(MODULES):
                keys = _find_passed_keys(task[module])
                passed[module] = sorted({*passed.get(module, ()), *keys})
    if not passed:
        raise SystemExit(f"{folder} uses none of {', '.join(MODULES)}")
    return passed


def _find_passed_keys(options: t.Mapping[str, t.Any]) -> set[str]:
    return {name for name, value in options.items() if name in READ_KEY.findall(str(value))}


def read_dispatched(path: pathlib.Path) -> dict[str, str]:
    """Return the variable for which the role `dispatch` runs each of the controller's roles."""
    defaults = yaml.safe_load(path.read_text(encoding="utf-8"))
    roles = defaults["controller_configuration_dispatcher_roles"]
    # `dispatch` does not run this one.
    return {**{known["role"]: known["var"] for known in roles}, "controller_roles": ROLES}


def read_facts(awx: pathlib.Path, aap: pathlib.Path) -> tuple[Facts, Facts]:
    """Return the facts about the modules, and about the roles that use them."""
    modules = {name: read_module(awx / "plugins" / "modules" / f"{name}.py") for name in MODULES}
    variables = {kind.variable for kind in KINDS.values()}
    roles = {}
    dispatched = read_dispatched(aap / "roles" / "dispatch" / "defaults" / "main.yml")
    for role, variable in dispatched.items():
        if variable in {*variables, ROLES}:
            roles[role] = {"variable": variable, "passes": read_role(aap / "roles" / role)}
    return modules, roles


def main() -> None:
    """Write the facts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("awx", type=pathlib.Path, help="the folder of the collection awx.awx")
    parser.add_argument("awx_version")
    parser.add_argument("aap", type=pathlib.Path, help="the folder of infra.aap_configuration")
    parser.add_argument("aap_version")
    given = parser.parse_args()
    modules, roles = read_facts(given.awx, given.aap)
    facts = {
        "awx.awx": {"version": given.awx_version, "modules": modules},
        "infra.aap_configuration": {"version": given.aap_version, "roles": roles},
    }
    # The order of the roles is that in which `dispatch` runs them.
    FACTS.write_text(format_json(facts, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
