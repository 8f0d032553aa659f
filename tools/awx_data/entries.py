# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of `setup.yml` as entries of the variables of infra.aap_configuration.

The roles of that collection hand most keys of an entry to the option of the same name of a module
of awx.awx. Therefore one list of entries serves both.
"""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.osops.placement.tools.awx_data.expressions import (
    compute_mapping,
    join_lines,
    parse_json_text,
    to_expression,
)
from ansible_collections.osops.placement.tools.awx_data.kinds import (
    EDGES,
    JSON_TEXTS,
    KINDS,
    NODES,
    NOT_EMPTIED,
    WORKFLOWS,
    Kind,
    SetupError,
)

ORGANIZATION = "{{ awx_organization }}"
# The entry of the workflow that contains a node names it.
IN_WORKFLOW = "workflow_job_template"

# These must exist, and setup.yml does not create them.
OF_THE_USER = ("credentials", "instance_groups", "teams")
FIRST_FIELDS = ("description", "job_type", "playbook")

Entry = dict[str, t.Any]
Setup = t.Mapping[str, t.Any]


class EntryBuilder:
    """Builds the entries of all objects, in their order."""

    def __init__(self, setup: Setup, user: t.Mapping[str, t.Any]) -> None:
        self._known = {**setup, **user}
        self._objects: list[t.Mapping[str, t.Any]] = setup["awx_objects"]
        self._whens: dict[str, t.Any] = {
            _label(known): known["when"] for known in self._objects if "when" in known
        }

    def build(self) -> dict[str, list[Entry]]:
        """Return the entries of each kind, with the condition of an entry as its `when`."""
        entries: dict[str, list[Entry]] = {name: [] for name in KINDS}
        for known in self._objects:
            entry = self._build_entry(known)
            if known["in"] == NODES:
                _add_node(entries[WORKFLOWS], known, entry)
            else:
                entries[known["in"]].append(entry)
        del entries[NODES]
        return entries

    def _build_entry(self, known: t.Mapping[str, t.Any]) -> Entry:
        kind = _find_kind(known)
        entry: Entry = {known.get("by", "name"): known["name"]}
        parts: t.Mapping[str, t.Callable[[Kind, t.Mapping[str, t.Any]], Entry]] = {
            "within": self._place,
            "refs": self._name_refs,
            "fields": self._convert_fields,
            "survey": self._name_survey,
            "credential": self._name_credential,
            "links": self._name_links,
            "approval": self._describe_approval,
            "edges": self._name_edges,
        }
        # The modules always set a mapping as a whole, as `exact` asks for.
        unknown = set(known) - {"in", "name", "by", "when", "exact", *parts}
        if unknown:
            raise SetupError(
                f"setup.yml: the generator does not know {sorted(unknown)} of {_label(known)}"
            )
        for part, build in parts.items():
            if part in known or part == "within":
                _add(entry, build(kind, known), _label(known))
        entry = {**entry, **{name: kind.extra[name] for name in kind.extra if name not in entry}}
        if "when" in known and known["in"] == NODES:
            raise SetupError(f"setup.yml: {_label(known)} cannot have a condition")
        if "when" in known:
            entry["when"] = known["when"]
        return entry

    def _place(self, kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        """Return where the object is looked up: in its organization, or in another object."""
        if "within" not in known:
            return {"organization": ORGANIZATION}
        ((field, label),) = known["within"].items()
        if field == IN_WORKFLOW:
            return {}
        return self._name_object(kind, field, label)

    def _convert_fields(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        fields = known["fields"]
        if isinstance(fields, str):
            fields = compute_mapping(fields, self._known)
        return {
            name: _convert_field(name, value)
            for name, value in sorted(fields.items(), key=_rank_field)
            if not _stays_empty(known, name, value)
        }

    def _name_refs(self, kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        entry: Entry = {}
        for field, label in known["refs"].items():
            entry.update(self._name_object(kind, field, label))
        return entry

    def _name_object(self, kind: Kind, field: str, label: str) -> Entry:
        """Return the option that names another object, and the organization of that object."""
        named = {field: self._find_name(label)}
        if kind.organization_of_refs:
            named[kind.organization_of_refs] = ORGANIZATION
        return named

    def _name_survey(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        return {"survey_spec": f"{{{{ {name_survey(known['survey'])} }}}}"}

    def _name_credential(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        if known["credential"] is not True:
            raise SetupError(f"setup.yml: the credential of {_label(known)} is not `true`")
        return {"credentials": ["{{ awx_credential }}"]}

    def _name_links(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        return {name: self._name_link(label) for name, label in known["links"].items()}

    def _name_link(self, label: str) -> t.Any:
        """Return what is associated: nothing, if there is no such object."""
        name = self._find_name(label)
        if label not in self._whens:
            return [name]
        when = to_expression(self._whens[label])
        return f"{{{{ [{to_expression(name)}] if {when} else [] }}}}"

    def _describe_approval(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        return {"approval_node": dict(known["approval"])}

    def _name_edges(self, _kind: Kind, known: t.Mapping[str, t.Any]) -> Entry:
        unknown = set(known["edges"]) - set(EDGES)
        if unknown:
            raise SetupError(f"setup.yml: {sorted(unknown)} of {_label(known)} are no edges")
        return {
            edge: [self._find_name(label) for label in known["edges"].get(edge, ())]
            for edge in EDGES
        }

    def _find_name(self, label: str) -> str:
        """Return the name of an object from LIST/NAME."""
        kind, _slash, name = label.partition("/")
        if kind not in OF_THE_USER and not any(_label(known) == label for known in self._objects):
            raise SetupError(f"setup.yml: there is no {label}")
        return name


def name_survey(file: str) -> str:
    """Return the name of the variable with the survey in a file."""
    return f"awx_survey_{file.removesuffix('.yml')}"


def split_when(entries: t.Sequence[Entry]) -> list[Entry]:
    """Return entries with their conditions beside them, for a list that depends on them."""
    conditional = []
    for entry in copy.deepcopy(entries):
        when = entry.pop("when", True)
        conditional.append({"when": when, "entry": entry})
    return conditional


def _label(known: t.Mapping[str, t.Any]) -> str:
    return f"{known['in']}/{known['name']}"


def _find_kind(known: t.Mapping[str, t.Any]) -> Kind:
    if known["in"] not in KINDS:
        raise SetupError(f"setup.yml: the generator does not know {_label(known)}")
    return KINDS[known["in"]]


def _rank_field(field: tuple[str, t.Any]) -> int:
    """Let an entry begin with what the object is, and end with what it never asks for."""
    name = field[0]
    if name in FIRST_FIELDS:
        return FIRST_FIELDS.index(name)
    return len(FIRST_FIELDS) + name.startswith("ask_")


def _add(entry: Entry, more: Entry, label: str) -> None:
    repeated = set(entry) & set(more)
    if repeated:
        raise SetupError(f"setup.yml: {label} has {sorted(repeated)} twice")
    entry.update(more)


def _convert_field(name: str, value: t.Any) -> t.Any:
    if value is None:
        raise SetupError(f"setup.yml: no module can set the field {name} to null")
    if isinstance(value, str):
        value = join_lines(value)
    if name in JSON_TEXTS:
        return parse_json_text(value)
    return copy.deepcopy(value)


def _stays_empty(known: t.Mapping[str, t.Any], name: str, value: t.Any) -> bool:
    return value is None and (known["in"], name) in NOT_EMPTIED


def _add_node(workflows: t.Sequence[Entry], known: t.Mapping[str, t.Any], node: Entry) -> None:
    """Add a node to the entry of its workflow."""
    name = known["within"][IN_WORKFLOW].partition("/")[2]
    (workflow,) = (entry for entry in workflows if entry["name"] == name)
    nodes = workflow.setdefault("simplified_workflow_nodes", [])
    there = {other["identifier"] for other in nodes}
    for edge in EDGES:
        missing = set(node.get(edge, ())) - there
        if missing:
            raise SetupError(f"setup.yml: the nodes {sorted(missing)} come after {_label(known)}")
    nodes.append(node)
