"""The generated data for infra.aap_configuration and awx.awx.

It is current, it sets up exactly what `setup.yml` describes, and the modules and roles accept it.
`awx_modules.json` contains what they accept; `tools/awx_data/read_awx_modules.py` has read it.
"""

from __future__ import annotations

import copy
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ....tools.awx_data.files import build_files

PATTERN = Path(__file__).parents[3] / "extensions" / "patterns" / "orphan_cleanup"
FACTS = json.loads(Path(__file__).with_name("awx_modules.json").read_text(encoding="utf-8"))
MODULES = FACTS["awx.awx"]["modules"]
ROLES = FACTS["infra.aap_configuration"]["roles"]

NODES = "simplified_workflow_nodes"
NODE_LIST = "workflow_job_template_nodes"
EDGES = ("always_nodes", "failure_nodes", "success_nodes")
# Each list of the REST API: the role, and the module that the role uses.
KINDS = {
    "execution_environments": ("controller_execution_environments", "execution_environment"),
    "notification_templates": ("controller_notification_templates", "notification_template"),
    "projects": ("controller_projects", "project"),
    "inventories": ("controller_inventories", "inventory"),
    "hosts": ("controller_hosts", "host"),
    "job_templates": ("controller_job_templates", "job_template"),
    "workflow_job_templates": ("controller_workflow_job_templates", "workflow_job_template"),
    NODE_LIST: ("controller_workflow_job_templates", "workflow_job_template_node"),
    "schedules": ("controller_schedules", "schedule"),
    # No list of the API: what the `roles` of the other objects become.
    "roles": ("controller_roles", "role"),
}
# What the modules need besides the fields in setup.yml.
BESIDES = {
    "projects": {"update_project": True},
    "hosts": {"enabled": True},
    "workflow_job_templates": {"destroy_current_nodes": True},
}
ROLE_OPTIONS = {"job_templates": "job_templates", "workflow_job_templates": "workflows"}
ORGANIZATION_OF_REFS = {NODE_LIST: "lookup_organization", "schedules": "organization"}

OMIT = "this option is omitted"

Entry = dict[str, t.Any]


def _load(name: str) -> t.Any:
    return yaml.safe_load((PATTERN / name).read_text(encoding="utf-8"))


def _load_variables() -> Entry:
    """Return the variables of apply.yml."""
    (play,) = _load("apply.yml")
    galaxy = yaml.safe_load((PATTERN / ".." / ".." / ".." / "galaxy.yml").read_text("utf-8"))
    # apply.yml reads the version from galaxy.yml, and the data contains it.
    return {**play["vars"], "awx_version": galaxy["version"]}


def _set_everything() -> Entry:
    """Return other values for all variables of the data, so that none can get lost on the way."""
    names = set(_load("aap_configuration.yml")) & set(_load_variables())
    return {name: _set_other(name, _load_variables()[name]) for name in sorted(names)}


def _set_other(name: str, default: t.Any) -> t.Any:
    if isinstance(default, str):
        return f"set {name}"
    if isinstance(default, int):
        return default + 7
    if not default:
        return [f"set {name}", f"set {name} too", f"set {name}"]
    return [{**item, "name": f"{name} {number}"} for item in default for number in range(2)]


SETTINGS: t.Mapping[str, Entry] = {"defaults": {}, "all": _set_everything()}


def trust(value: t.Any) -> t.Any:
    """Return a value whose templates Ansible resolves, also from ansible-core 2.19 on."""
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return value
    if isinstance(value, str):
        return trust_as_template(value)
    if isinstance(value, dict):
        return {name: trust(part) for name, part in value.items()}
    if isinstance(value, list):
        return [trust(part) for part in value]
    return value


def _resolve(variables: Entry, names: t.Iterable[str]) -> Entry:
    """Return some of the variables as Ansible resolves them."""
    trusted = trust(variables)
    templar = Templar(DataLoader(), variables={"omit": OMIT, **trusted})
    return {name: _drop_omitted(templar.template(trusted[name])) for name in names}


def _drop_omitted(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {name: _drop_omitted(part) for name, part in value.items() if part != OMIT}
    if isinstance(value, list):
        return [_drop_omitted(part) for part in value]
    return value


def _resolve_data(settings: Entry) -> Entry:
    data = _load("aap_configuration.yml")
    variables = {known["variable"] for known in ROLES.values()} & set(data)
    return _resolve({**data, **settings}, variables)


def _find_entries(data: Entry) -> dict[str, list[Entry]]:
    """Return the entries of each kind; each node names its workflow."""
    entries: dict[str, list[Entry]] = {}
    for kind, (role, _module) in KINDS.items():
        if kind != NODE_LIST:
            entries[kind] = copy.deepcopy(data.get(ROLES[role]["variable"], []))
    entries[NODE_LIST] = []
    for workflow in entries["workflow_job_templates"]:
        for node in workflow.pop(NODES, ()):
            entries[NODE_LIST].append({**node, "workflow_job_template": workflow["name"]})
    return entries


def _resolve_objects(settings: Entry) -> tuple[list[Entry], Entry]:
    """Return the objects that apply.yml would create, and the variables."""
    variables = {**_load_variables(), **_load("setup.yml"), **settings}
    resolved = _resolve(variables, ("awx_objects", "awx_organization"))
    objects = [known for known in resolved["awx_objects"] if known.get("when", True)]
    for awx_schedule in variables.get("awx_schedules", ()):
        name = "awx_schedule_object"
        objects.append(_resolve({**variables, "awx_schedule": awx_schedule}, [name])[name])
    return objects, resolved


def _expect_roles(known: Entry, organization: str) -> list[Entry]:
    """Return the entries that give teams the roles for an object of setup.yml."""
    return [
        {
            "role": role.removesuffix("_role"),
            "teams": teams,
            ROLE_OPTIONS[known["in"]]: [known["name"]],
            "lookup_organization": organization,
        }
        for role, teams in known.get("roles", {}).items()
    ]


def _expect_entry(known: Entry, variables: Entry, labels: set[str]) -> Entry:
    """Return the entry that says the same as an object of setup.yml."""
    kind = known["in"]
    organization = variables["awx_organization"]
    entry = {known.get("by", "name"): known["name"], **BESIDES.get(kind, {})}
    named = {**known.get("within", {}), **known.get("refs", {})}
    if "within" not in known:
        entry["organization"] = organization
    for field, label in named.items():
        # Without a name, the field is left alone.
        if label:
            entry[field] = label.partition("/")[2]
        if kind in ORGANIZATION_OF_REFS and field == "unified_job_template":
            entry[ORGANIZATION_OF_REFS[kind]] = organization
    for field, value in known.get("fields", {}).items():
        if field in ("extra_vars", "variables"):
            value = json.loads(value or "{}")
        # No module can empty this field of a workflow.
        if (kind, field, value) != ("workflow_job_templates", "inventory", None):
            entry[field] = value
    if "survey" in known:
        entry["survey_spec"] = _load(f"template_surveys/{known['survey']}")
    if known.get("credential"):
        entry["credentials"] = [known["credential"].partition("/")[2]]
    if known.get("instance_groups"):
        entry["instance_groups"] = known["instance_groups"]
    for field, label in known.get("links", {}).items():
        entry[field] = [label.partition("/")[2]] if label in labels else []
    if "approval" in known:
        entry["approval_node"] = known["approval"]
    for edge in EDGES:
        if "edges" in known:
            entry[edge] = [label.partition("/")[2] for label in known["edges"].get(edge, ())]
    return entry


def _find_errors(module: str, entry: Entry) -> list[str]:
    """Return why a module would refuse an entry."""
    facts = MODULES[module]
    rules = {name: rule for name, rule in facts.items() if name != "options"}
    errors = ArgumentSpecValidator(facts["options"], **rules).validate(entry).error_messages
    for name, value in entry.items():
        kind = facts["options"].get(name, {}).get("type", "str")
        # Ansible would make a text of it.
        if kind == "str" and isinstance(value, (dict, list)):
            errors.append(f"{name} is no text")
    return list(errors)


@pytest.fixture(name="entries", params=SETTINGS)
def _entries(request: pytest.FixtureRequest) -> dict[str, list[Entry]]:
    return _find_entries(_resolve_data(SETTINGS[request.param]))


GENERATED = ["aap_configuration.yml", "awx_modules.yml", "awx_modules/objects.yml"]


@pytest.mark.parametrize("name", GENERATED)
def test_file_is_current(name: str) -> None:
    (text,) = (text for path, text in build_files().items() if path.as_posix().endswith(f"/{name}"))

    assert (PATTERN / name).read_text(encoding="utf-8") == text, "run make pages"


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
def test_data_says_the_same_as_the_setup(settings: Entry) -> None:
    entries = _find_entries(_resolve_data(settings))
    objects, variables = _resolve_objects(settings)
    labels = {f"{known['in']}/{known['name']}" for known in objects}

    expected: dict[str, list[Entry]] = {kind: [] for kind in KINDS}
    for known in objects:
        expected[known["in"]].append(_expect_entry(known, variables, labels))
        expected["roles"].extend(_expect_roles(known, variables["awx_organization"]))

    assert entries == expected


def test_data_has_the_defaults_of_apply() -> None:
    data, variables = _load("aap_configuration.yml"), _load_variables()
    names = set(variables) & set(data)

    assert {"awx_organization", "awx_image", "awx_credential"} <= names
    assert _resolve(data, names) == _resolve(variables, names)


def test_modules_accept_every_entry(entries: dict[str, list[Entry]]) -> None:
    for kind, (_role, module) in KINDS.items():
        for entry in entries[kind]:
            assert _find_errors(module, entry) == [], (kind, entry)


def test_roles_pass_every_key_to_their_module(entries: dict[str, list[Entry]]) -> None:
    for kind, (role, module) in KINDS.items():
        for entry in entries[kind]:
            assert set(entry) - set(ROLES[role]["passes"][module]) == set(), kind


def test_playbook_sets_every_option_of_every_entry(entries: dict[str, list[Entry]]) -> None:
    options: dict[str, set[str]] = {}
    for task in _load("awx_modules/objects.yml"):
        (action,) = (name for name in task if name.startswith("awx.awx."))
        options.setdefault(action.removeprefix("awx.awx."), set()).update(task[action])

    for kind, (_role, module) in KINDS.items():
        used = options.get(module, set())
        for entry in entries[kind]:
            assert set(entry) - used == set(), kind
        assert used <= set(MODULES[module]["options"])


def test_playbook_never_sets_an_approval_and_edges_at_once() -> None:
    """The module would look for the edges in the approval, and fail."""
    (nodes, edges) = (
        set(task[action])
        for task in _load("awx_modules/objects.yml")
        for action in task
        if action == "awx.awx.workflow_job_template_node"
    )

    assert "approval_node" in nodes and not nodes & set(EDGES)
    assert edges >= set(EDGES) and "approval_node" not in edges


def test_tasks_come_in_the_order_of_the_roles() -> None:
    used = {module: role for role, module in KINDS.values()}
    tasks = _load("awx_modules/objects.yml")
    actions = [name for task in tasks for name in task if name.startswith("awx.awx.")]
    roles = [used[action.removeprefix("awx.awx.")] for action in actions]

    assert list(dict.fromkeys(roles)) == [role for role in ROLES if role in roles]


WRONG: t.Mapping[str, tuple[Entry, str]] = {
    "misspelt": ({"survey_enable": True}, "survey_enable"),
    "type": ({"timeout": "soon"}, "timeout"),
    "list for a text": ({"limit": ["all"]}, "limit"),
    "text for a mapping": ({"extra_vars": "all"}, "extra_vars"),
    "choice": ({"job_type": "scan"}, "job_type"),
    "number out of the choices": ({"verbosity": 6}, "verbosity"),
}


@pytest.mark.parametrize(("wrong", "named"), WRONG.values(), ids=list(WRONG))
def test_check_finds_a_wrong_option(wrong: Entry, named: str) -> None:
    entry = _find_entries(_resolve_data({}))["job_templates"][0]

    errors = _find_errors("job_template", {**entry, **wrong})

    assert len(errors) == 1 and named in errors[0]


def test_check_finds_a_missing_option() -> None:
    (entry,) = _find_entries(_resolve_data({}))["hosts"]
    del entry["inventory"]

    (error,) = _find_errors("host", entry)

    assert "inventory" in error


def test_check_finds_a_node_with_a_job_and_an_approval() -> None:
    node = _find_entries(_resolve_data({}))[NODE_LIST][0]

    (error,) = _find_errors("workflow_job_template_node", {**node, "approval_node": {"name": "x"}})

    assert "mutually exclusive" in error
