"""The objects of `setup.yml` as entries of the variables of infra.aap_configuration.

The roles of that collection hand most keys of an entry to the option of the same name of a module
of awx.awx. Therefore one list of entries serves both.
"""

import copy
import typing as t

from .expressions import (
    compute_mapping,
    join_lines,
    name_optional,
    omit_empty,
    parse_json_text,
    to_expression,
)
from .kinds import (
    EDGES,
    JSON_TEXTS,
    KINDS,
    LOOPS,
    NODES,
    NOT_EMPTIED,
    ROLE_OPTIONS,
    ROLES,
    WORKFLOWS,
    Kind,
    SetupError,
)

ORGANIZATION = "{{ awx_organization }}"
# The entry of the workflow that contains a node names it.
IN_WORKFLOW = "workflow_job_template"

CONDITIONS = ("when", "each")
FIRST_FIELDS = ("description", "job_type", "playbook")

Entry = dict[str, t.Any]
Object = t.Mapping[str, t.Any]
Setup = t.Mapping[str, t.Any]


class EntryBuilder:
    """Builds the entries of all objects, in their order.

    Besides the options of its module, an entry can have `when`, which is its condition, and `each`,
    which is the list of which each item becomes an entry.
    """

    def __init__(self, setup: Setup, user: t.Mapping[str, t.Any]) -> None:
        self._known = {**setup, **user}
        self._objects: list[Object] = [*setup["awx_objects"], *_find_looped(setup)]
        self._labels = {_label(known) for known in self._objects}
        self._whens = {_label(known): known["when"] for known in self._objects if "when" in known}
        # These must exist. setup.yml does not create them.
        self._lists_of_the_user = {f"{need['as']}/" for need in setup.get("awx_needed", ())}

    def build(self) -> dict[str, list[Entry]]:
        """Return the entries of each kind."""
        entries: dict[str, list[Entry]] = {name: [] for name in KINDS}
        for known in self._objects:
            entry = self._build_entry(known)
            if known["in"] == NODES:
                _add_node(entries[WORKFLOWS], known, entry)
            else:
                entries[known["in"]].append(entry)
            entries[ROLES].extend(_grant_roles(known))
        del entries[NODES]
        return entries

    def _build_entry(self, known: Object) -> Entry:
        kind = _find_kind(known)
        entry: Entry = {known.get("by", "name"): known["name"]}
        parts: t.Mapping[str, t.Callable[[Kind, Object], Entry]] = {
            "within": self._place,
            "refs": self._name_refs,
            "fields": self._convert_fields,
            "survey": self._name_survey,
            "credential": self._name_credential,
            "instance_groups": self._name_instance_groups,
            "links": self._name_links,
            "approval": self._describe_approval,
            "edges": self._name_edges,
        }
        # The modules always set a mapping as a whole, as `exact` asks for.
        unknown = set(known) - {"in", "name", "by", "when", "each", "exact", "roles", *parts}
        if unknown:
            raise SetupError(
                f"setup.yml: the generator does not know {sorted(unknown)} of {_label(known)}"
            )
        for part, build in parts.items():
            if part in known or part == "within":
                _add(entry, build(kind, known), _label(known))
        entry = {**entry, **{name: kind.extra[name] for name in kind.extra if name not in entry}}
        conditions = {name: known[name] for name in CONDITIONS if name in known}
        if conditions and known["in"] == NODES:
            raise SetupError(f"setup.yml: {_label(known)} cannot have a condition")
        return {**entry, **conditions}

    def _place(self, kind: Kind, known: Object) -> Entry:
        """Return where the object is looked up: in its organization, or in another object."""
        if "within" not in known:
            return {"organization": ORGANIZATION}
        ((field, label),) = known["within"].items()
        if field == IN_WORKFLOW:
            return {}
        return self._name_object(kind, field, label)

    def _convert_fields(self, _kind: Kind, known: Object) -> Entry:
        fields = known["fields"]
        if isinstance(fields, str):
            fields = compute_mapping(fields, self._known)
        return {
            name: _convert_field(name, value)
            for name, value in sorted(fields.items(), key=_rank_field)
            if not _stays_empty(known, name, value)
        }

    def _name_refs(self, kind: Kind, known: Object) -> Entry:
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

    def _name_survey(self, _kind: Kind, known: Object) -> Entry:
        return {"survey_spec": f"{{{{ {name_survey(known['survey'])} }}}}"}

    def _name_credential(self, _kind: Kind, known: Object) -> Entry:
        return {"credentials": [self._find_name(known["credential"])]}

    def _name_instance_groups(self, _kind: Kind, known: Object) -> Entry:
        return {"instance_groups": omit_empty(known["instance_groups"])}

    def _name_links(self, _kind: Kind, known: Object) -> Entry:
        return {name: self._name_link(label) for name, label in known["links"].items()}

    def _name_link(self, label: str) -> t.Any:
        """Return what is associated: nothing, if there is no such object."""
        name = self._find_name(label)
        if label not in self._whens:
            return [name]
        when = to_expression(self._whens[label])
        return f"{{{{ [{to_expression(name)}] if {when} else [] }}}}"

    def _describe_approval(self, _kind: Kind, known: Object) -> Entry:
        return {"approval_node": dict(known["approval"])}

    def _name_edges(self, _kind: Kind, known: Object) -> Entry:
        unknown = set(known["edges"]) - set(EDGES)
        if unknown:
            raise SetupError(f"setup.yml: {sorted(unknown)} of {_label(known)} are no edges")
        return {
            edge: [self._find_name(label) for label in known["edges"].get(edge, ())]
            for edge in EDGES
        }

    def _find_name(self, label: str) -> str:
        """Return the name of an object from LIST/NAME."""
        if label in self._labels:
            return label.partition("/")[2]
        if label.startswith("{{"):
            list_of_the_user, name = name_optional(label)
        else:
            name = label.partition("/")[2]
            list_of_the_user = label.removesuffix(name)
        if list_of_the_user not in self._lists_of_the_user:
            raise SetupError(f"setup.yml: there is no {label}")
        return name


def _find_looped(setup: Setup) -> list[Object]:
    """Return the objects of which there is one for each item of a list of the user."""
    for name, value in setup.items():
        # Other mappings are parts of objects, which the objects contain.
        if name not in {"awx_objects", "awx_needed", *LOOPS} and (
            isinstance(value, list) or "in" in value
        ):
            raise SetupError(f"setup.yml: the generator does not know {name}")
    return [{**setup[name], "each": each} for name, each in LOOPS.items() if name in setup]


def _grant_roles(known: Object) -> list[Entry]:
    """Return the roles of teams for an object, one entry for each role."""
    entries = []
    for role, teams in known.get("roles", {}).items():
        if known["in"] not in ROLE_OPTIONS or "each" in known:
            raise SetupError(f"setup.yml: no team can have a role for {_label(known)}")
        entry = {
            "role": role.removesuffix("_role"),
            "teams": teams,
            ROLE_OPTIONS[known["in"]]: [known["name"]],
            "lookup_organization": ORGANIZATION,
        }
        if "when" in known:
            entry["when"] = known["when"]
        entries.append(entry)
    return entries


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


def _label(known: Object) -> str:
    return f"{known['in']}/{known['name']}"


def _find_kind(known: Object) -> Kind:
    if known["in"] not in KINDS or known["in"] == ROLES:
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


def _stays_empty(known: Object, name: str, value: t.Any) -> bool:
    return value is None and (known["in"], name) in NOT_EMPTIED


def _add_node(workflows: t.Sequence[Entry], known: Object, node: Entry) -> None:
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
