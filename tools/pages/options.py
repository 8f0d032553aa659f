"""What derives from the classes of options: fragments, and specifications and defaults of roles.

The text below an option in its class is its description: each paragraph is an item. `...` stands
for the text of the class that it comes from, and `Since 2.0.0.` for the version that added it.
"""

import ast
import inspect
import pathlib
import re
import textwrap
import typing as t

import yaml

from ...plugins.action.validate_variables import ROLES
from ...plugins.module_utils._common.options import Option, Options, Role
from ...plugins.module_utils._core.options.connection import ConnectionOptions
from ...plugins.module_utils._core.options.guest_devices import GuestOptions
from ...plugins.module_utils._core.options.policy import PolicyOptions
from ...plugins.module_utils._core.options.run import (
    FailureOptions,
    LimitOptions,
    ProgressFileOptions,
    StageOptions,
)
from ...plugins.module_utils._core.options.scope import ScopeOptions
from ...plugins.module_utils._hosts.host_decommission import RetirementOptions
from ...plugins.module_utils._hypervisors.hypervisor_cleanup import LeftoverOptions
from ...plugins.module_utils._hypervisors.on_host.options import HypervisorOptions

ROOT = pathlib.Path(__file__).parents[2]
FRAGMENTS: dict[str, type[Options]] = {
    "Connection": ConnectionOptions,
    "Failures": FailureOptions,
    "Guests": GuestOptions,
    "Hypervisor": HypervisorOptions,
    "Leftovers": LeftoverOptions,
    "Limits": LimitOptions,
    "Policy": PolicyOptions,
    "Progress": ProgressFileOptions,
    "Retirement": RetirementOptions,
    "Run": StageOptions,
    "Scope": ScopeOptions,
}
NOTE = "# Written by `make pages`."
PATTERN = ROOT / "extensions/patterns/orphan_cleanup/playbooks/find_orphans.meta.yml"
# The pattern asks for hosts in another form, and a detection has no plans and no changes.
NOT_OF_PATTERN = ("orphan_cleanup_hosts", "orphan_cleanup_plan", "orphan_cleanup_max_failures")

_SINCE = re.compile(r"Since (\d+\.\d+\.\d+)\.")
_NAMED = re.compile(r"\bO\((\w+)([=)])")
_MARKUP = re.compile(r"\b[A-Z]\(([^()]*)\)")
_FRAGMENT = re.compile(r"^(class (\w+):\n(?:.*\n)*?options:\n)(?:  .*\n|\n)*", re.MULTILINE)
_ENTRY_POINT = re.compile(r"  (\w+):")


class _Dumper(yaml.SafeDumper):
    """Indents lists, as ansible-lint wants it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def read_texts(options: type[Options]) -> dict[str, list[str]]:
    """Return the paragraphs about each option of a class."""
    texts: dict[str, list[str]] = {}
    for base in options.__bases__:
        if issubclass(base, Options):
            texts.update(read_texts(base))
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(options))).body
    assert isinstance(body, ast.ClassDef)
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id.rstrip("_")
            paragraphs: list[str] = []
            for paragraph in _read_text(following):
                paragraphs += texts[name] if paragraph == "..." else [paragraph]
            texts[name] = paragraphs
    return texts


def _read_text(node: ast.stmt | None) -> list[str]:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return []
    return [" ".join(part.split()) for part in inspect.cleandoc(node.value.value).split("\n\n")]


def describe_options(options: type[Options]) -> dict[str, dict[str, t.Any]]:
    """Return the options as the documentation of a module has them."""
    texts = read_texts(options)
    return {
        name: _describe_option(option, texts[name])
        for name, option in options.list_options().items()
    }


def describe_variables(role: Role, options: type[Options]) -> dict[str, dict[str, t.Any]]:
    """Return the options as the specification of a role has them, with its prefix."""

    def add_prefix(found: re.Match[str]) -> str:
        name = f"{role.prefix}{found[1]}"
        assert name in role.options, f"{options.__name__} names {name}, which is no variable"
        return f"O({name}{found[2]}"

    described = {}
    for name, option in describe_options(options).items():
        # A variable has one name.
        option.pop("aliases", None)
        items = [_NAMED.sub(add_prefix, item) for item in option["description"]]
        described[role.prefix + name] = {**option, "description": items}
    return described


def _describe_option(option: Option, items: list[str]) -> dict[str, t.Any]:
    assert items, f"{option.name} has no text"
    since = [found[1] for item in items if (found := _SINCE.fullmatch(item))]
    items = [item for item in items if not _SINCE.fullmatch(item)]
    if option.note:
        items.append(option.note)
    spec = option.build_spec()
    spec.pop("no_log", None)
    order = ("type", "elements", "required", "choices", "default", "aliases")
    described = {"description": items, **{key: spec[key] for key in order if key in spec}}
    if since:
        described["version_added"] = since[-1]
    return described


def _dump(content: t.Any, indent: int) -> str:
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return textwrap.indent(text, " " * indent)


def _format_options(options: dict[str, dict[str, t.Any]], indent: int, width: int) -> str:
    """Return documented options as YAML, whose lines are as long as the width at most."""
    parts = []
    for name, option in options.items():
        rest = {key: value for key, value in option.items() if key != "description"}
        parts += [f"{' ' * indent}{name}:\n", f"{' ' * indent}  description:\n"]
        parts += [_format_item(item, indent + 4, width) for item in option["description"]]
        parts.append(_dump(rest, indent + 2))
    text = "".join(parts)
    # A text that is no plain scalar would have been read as something else.
    assert yaml.safe_load(text) == options
    return text


def _format_item(item: str, indent: int, width: int) -> str:
    scalar = item
    if ": " in item or " #" in item or item[0] in "'\"`@&*!|>%{[":
        scalar = "'" + item.replace("'", "''") + "'"
    lines = textwrap.wrap(
        f"- {scalar}",
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)


def write_options() -> dict[pathlib.Path, str]:
    """Return the contents of all files that derive from the options."""
    path = ROOT / "plugins" / "doc_fragments" / "_options.py"
    files = {path: _FRAGMENT.sub(_renew_fragment, path.read_text(encoding="utf-8"))}
    for role in ROLES.values():
        folder = ROOT / "roles" / role.name
        path = folder / "meta" / "argument_specs.yml"
        files[path] = _renew_specs(path.read_text(encoding="utf-8"), role)
        path = folder / "defaults" / "main.yml"
        head = path.read_text(encoding="utf-8").partition("\n\n")[0]
        files[path] = f"{head}\n\n{NOTE}\n\n{_dump(_list_defaults(role), 0)}"
    files[PATTERN] = _renew_pattern(PATTERN.read_text(encoding="utf-8"))
    return files


def _list_defaults(role: Role) -> dict[str, t.Any]:
    specs = {name: option.build_spec() for name, option in role.options.items()}
    return {name: spec["default"] for name, spec in specs.items() if "default" in spec}


def _renew_fragment(found: re.Match[str]) -> str:
    """Return the beginning of a fragment, up to the end of its options."""
    options = describe_options(FRAGMENTS[found[2]])
    return f"{found[1]}{_format_options(options, 2, 100)}"


def _renew_specs(text: str, role: Role) -> str:
    """Return argument specifications with their options; the texts of entry points stay."""
    lines: list[str] = []
    entry_point = ""
    is_option = False
    for line in text.splitlines(keepends=True):
        is_option = is_option and (line.startswith("      ") or not line.strip())
        found = _ENTRY_POINT.match(line)
        if found:
            entry_point = found[1]
        if line.startswith("    options:"):
            is_option = True
            lines.append(_format_part(role, entry_point))
        elif not is_option:
            lines.append(f"\n{line}" if found and lines[-1].strip() != "argument_specs:" else line)
    return "".join(lines)


def _renew_pattern(text: str) -> str:
    """Return the arguments of the pattern; its own, which come first, stay, and its examples."""
    role = ROLES["orphan_cleanup"]
    before, _options, rest = text.partition(f"      {role.prefix}")
    after = re.sub(r"\A.*\n(?:      .*\n)*", "", rest)
    parts = [before]
    for name, option in describe_variables(role, role.parts["main"]).items():
        if name not in NOT_OF_PATTERN:
            # Automation Platform knows no markup, and shows one text.
            plain = _MARKUP.sub(r"\1", option.pop("description")[0])
            option.pop("version_added", None)
            parts.append(f"      {name}:\n        description: >-\n")
            parts.append(textwrap.indent(textwrap.fill(plain, 125), " " * 10) + "\n")
            parts.append(_dump(option, 8))
    return "".join([*parts, after])


def _format_part(role: Role, entry_point: str) -> str:
    if entry_point not in role.parts:
        return "    options: {}\n"
    described = describe_variables(role, role.parts[entry_point])
    return f"    options:\n{_format_options(described, 6, 140)}"
