# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The generator fails for what it does not know, and keeps the variables of the user."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.tools.awx_data.entries import Entry, EntryBuilder
from ansible_collections.osops.placement.tools.awx_data.expressions import (
    UserVariable,
    compute_mapping,
    join_lines,
    parse_json_text,
    to_expression,
)
from ansible_collections.osops.placement.tools.awx_data.kinds import SetupError

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
    "credential": ([{**PROJECT, "credential": "x"}], "credential"),
    "null": ([{**PROJECT, "fields": {"scm_branch": None}}], "scm_branch"),
    "field twice": ([{**PROJECT, "fields": {"organization": "x"}}], "organization"),
    "edge": ([WORKFLOW, {**NODE, "edges": {"denied_nodes": []}}], "denied_nodes"),
    "edge to a later node": (
        [
            WORKFLOW,
            {**NODE, "name": "a", "edges": {"success_nodes": [f"{NODE['in']}/last"]}},
            NODE,
        ],
        "last",
    ),
    "condition of a node": ([WORKFLOW, {**NODE, "when": "{{ awx_x }}"}], "condition"),
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


def test_objects_of_the_user_need_not_be_in_the_setup() -> None:
    (entry,) = _build({**PROJECT, "refs": {"credential": "credentials/{{ awx_x }}"}})["projects"]

    assert entry["credential"] == "{{ awx_x }}"


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
