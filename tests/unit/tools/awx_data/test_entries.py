"""The generator fails for what it does not know, and keeps the variables of the user."""

import typing as t

import pytest

from .....tools.awx_data.entries import Entry, EntryBuilder
from .....tools.awx_data.expressions import (
    UserVariable,
    build_loop,
    compute_mapping,
    find_variables,
    join_lines,
    parse_json_text,
    to_expression,
)
from .....tools.awx_data.kinds import SetupError

USER = {"awx_playbooks": UserVariable("awx_playbooks")}
PROJECT: Entry = {"in": "projects", "name": "code", "fields": {"scm_type": "git"}}
WORKFLOW: Entry = {"in": "workflow_job_templates", "name": "flow"}
NODE: Entry = {
    "in": "workflow_job_template_nodes",
    "name": "last",
    "by": "identifier",
    "within": {"workflow_job_template": "workflow_job_templates/flow"},
    "edges": {},
}


def _build(*objects: Entry, **shared: t.Any) -> dict[str, list[Entry]]:
    return EntryBuilder({"awx_objects": list(objects), **shared}, USER).build()


UNKNOWN: t.Mapping[str, tuple[list[Entry], str]] = {
    "kind": ([{"in": "labels", "name": "x"}], "labels/x"),
    "key": ([{**PROJECT, "teams": []}], "teams"),
    "object": ([{**PROJECT, "refs": {"default_environment": "execution_environments/x"}}], "x"),
    "link": ([{**PROJECT, "links": {"notification_templates_error": "labels/x"}}], "labels/x"),
    "credential": ([{**PROJECT, "credential": "keys/x"}], "keys/x"),
    "null": ([{**PROJECT, "fields": {"scm_branch": None}}], "scm_branch"),
    "field twice": ([{**PROJECT, "fields": {"organization": "x"}}], "organization"),
    "edge": ([WORKFLOW, {**NODE, "edges": {"denied_nodes": []}}], "denied_nodes"),
    "edge to a later node": (
        [WORKFLOW, {**NODE, "name": "a", "edges": {"success_nodes": [f"{NODE['in']}/last"]}}, NODE],
        "last",
    ),
    "condition of a node": ([WORKFLOW, {**NODE, "when": "{{ awx_x }}"}], "condition"),
    "object of the user": ([{**PROJECT, "refs": {"credential": "credentials/x"}}], "credentials/x"),
    "optional object": ([{**PROJECT, "refs": {"credential": "{{ awx_x }}"}}], "awx_x"),
    "role": ([{**PROJECT, "roles": {"use_role": ["x"]}}], "role for projects/code"),
    "instance groups": ([{**PROJECT, "instance_groups": "x {{ awx_x }}"}], "one expression"),
    "filter": ([{**PROJECT, "fields": "{{ {} | dict2items }}"}], "dict2items"),
    "variable": ([{**PROJECT, "fields": "{{ awx_nothing }}"}], "awx_nothing"),
    "not one expression": ([{**PROJECT, "fields": "{{ {} }}{{ {} }}"}], "one expression"),
    "no mapping": ([{**PROJECT, "fields": "{{ [] }}"}], "mapping"),
}


@pytest.mark.parametrize(("objects", "named"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_generator_fails_for_what_it_does_not_know(objects: list[Entry], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        _build(*objects)


@pytest.mark.parametrize(
    "expression",
    [
        "{{ {'x': 1} if awx_playbooks else {} }}",
        "{{ {'x': 1} if awx_playbooks == 'y' else {} }}",
        "{{ {'x': 1} if 'y' in awx_playbooks else {} }}",
        "{{ {'x': awx_playbooks + 'y'} }}",
    ],
)
def test_generator_does_not_decide_about_a_variable_of_the_user(expression: str) -> None:
    with pytest.raises(SetupError, match="awx_playbooks"):
        compute_mapping(expression, USER)


def test_variables_of_the_user_stay_in_computed_fields() -> None:
    fields = "{{ awx_job | combine({'playbook': awx_playbooks ~ '/x.yml', 'forks': 2}) }}"
    job = {"forks": 1, "timeout": "{{ awx_timeout }}"}

    (entry,) = _build({**PROJECT, "fields": fields}, awx_job=job)["projects"]

    assert entry["playbook"] == "{{ awx_playbooks }}/x.yml"
    assert entry["timeout"] == "{{ awx_timeout }}"
    assert entry["forks"] == 2


def test_link_depends_on_the_condition_of_its_object() -> None:
    notification = {
        "in": "notification_templates",
        "name": "it's {{ awx_x }}",
        "when": "{{ awx_y }}",
    }
    links = {"notification_templates_error": "notification_templates/it's {{ awx_x }}"}

    built = _build(notification, {**PROJECT, "links": links})

    assert built["projects"][0]["notification_templates_error"] == (
        r"{{ ['it\'s ' ~ (awx_x)] if (awx_y) else [] }}"
    )
    assert built["notification_templates"][0]["when"] == "{{ awx_y }}"


def test_generator_fails_for_a_description_that_it_does_not_know() -> None:
    with pytest.raises(SetupError, match="awx_label_object"):
        _build(awx_label_object={"in": "labels", "name": "x"})
    with pytest.raises(SetupError, match="awx_more_objects"):
        _build(awx_more_objects=[])


@pytest.mark.parametrize(
    ("label", "option"),
    [
        ("keys/{{ awx_x }}", "{{ awx_x }}"),
        # The module would look for a credential without a name.
        ("{{ 'keys/' ~ awx_x if awx_x else '' }}", "{{ awx_x | default(omit, true) }}"),
    ],
)
def test_object_of_the_user_is_named(label: str, option: str) -> None:
    needed = [{"in": "credentials", "as": "keys"}]

    built = _build({**PROJECT, "refs": {"credential": label}}, awx_needed=needed)

    assert built["projects"][0]["credential"] == option


def test_no_instance_groups_are_omitted() -> None:
    (entry,) = _build({**PROJECT, "instance_groups": "{{ awx_x | unique }}"})["projects"]

    assert entry["instance_groups"] == "{{ (awx_x | unique) | default(omit, true) }}"


def test_roles_become_entries_of_their_own() -> None:
    workflow = {**WORKFLOW, "when": "{{ awx_y }}", "roles": {"execute_role": "{{ awx_x }}"}}

    assert _build(workflow)["roles"] == [
        {
            "role": "execute",
            "teams": "{{ awx_x }}",
            "workflows": ["flow"],
            "lookup_organization": "{{ awx_organization }}",
            "when": "{{ awx_y }}",
        }
    ]


def test_list_of_the_user_becomes_entries() -> None:
    entry = {"name": "{{ awx_item.name }}", "extra_data": {}, "enabled": True, "forks": None}

    assert build_loop(entry, "awx_items", "awx_item") == (
        "{%- set entries = [] -%} {%- for awx_item in awx_items -%} "
        "{%- set _ = entries.append({'name': (awx_item.name), 'extra_data': {}, 'enabled': true,"
        " 'forks': none}) -%} {%- endfor -%} {{ entries }}"
    )
    assert find_variables(build_loop(entry, "awx_items", "awx_item")) == {"awx_items", "awx_item"}


def test_expression_comes_on_one_line() -> None:
    assert join_lines("{{ {'a':\n    awx_x}\n  | to_json }}") == "{{ {'a': awx_x} | to_json }}"
    assert join_lines("a\nb") == "a\nb"
    with pytest.raises(SetupError, match="several spaces"):
        join_lines("{{ 'a  b'\n }}")


def test_json_text_becomes_a_mapping() -> None:
    assert parse_json_text("") == {}
    assert parse_json_text("{{ {'a': 1} | to_json }}") == {"a": 1}
    assert parse_json_text("{{ {'a': awx_x} | to_json }}") == "{{ {'a': awx_x} }}"
    with pytest.raises(SetupError, match="to_json"):
        parse_json_text("{{ awx_x }}")


def test_text_with_templates_becomes_an_expression() -> None:
    assert to_expression("a {{ awx_x }}") == "'a ' ~ (awx_x)"
    assert to_expression("") == "''"
