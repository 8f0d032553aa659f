"""The playbook for awx.awx, which loops over the data for infra.aap_configuration."""

import typing as t

from .entries import CONDITIONS, Entry
from .kinds import EDGES, KINDS, NODES, ROLES, WORKFLOWS, Kind

NODES_OF_WORKFLOW = "simplified_workflow_nodes"

# The options that have the address of a webhook in them, or one of a project with a password.
_SECRETS = frozenset({"notification_configuration", "scm_url", "variables"})


def build_play(data_file: str, tasks_file: str) -> Entry:
    """Return the play, which includes the tasks.

    Where awx.awx is not installed, as in Galaxy's importer, ansible-lint refuses a playbook that
    names its modules. It does not resolve the modules of included tasks.
    """
    return {
        "name": "Set up the cleanup of orphaned allocations in AWX, with the modules of awx.awx",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "vars_files": [data_file],
        "tasks": [{"name": "Set up all objects", "ansible.builtin.include_tasks": tasks_file}],
    }


def build_tasks(entries: t.Mapping[str, t.Sequence[Entry]]) -> list[Entry]:
    """Return one task for each kind, and two for the nodes of workflows."""
    tasks = []
    for name, kind in KINDS.items():
        if name == NODES:
            tasks.extend(_build_nodes_tasks(kind, entries[WORKFLOWS]))
        elif entries[name]:
            tasks.append(_build_task(kind, entries[name]))
    return tasks


def _build_task(kind: Kind, entries: t.Sequence[Entry]) -> Entry:
    # The role creates the nodes in a second step, and so does this playbook.
    options = _build_options("awx_entry", entries, {*CONDITIONS, NODES_OF_WORKFLOW})
    label = "awx_entry.name"
    if kind is KINDS[ROLES]:
        label = "awx_entry.role"
    return _build_loop(kind, options, f"{{{{ {kind.variable} }}}}", label)


def _build_nodes_tasks(kind: Kind, workflows: t.Sequence[Entry]) -> list[Entry]:
    """Return a task for the nodes, and one for their edges.

    With both in one task, the module would look for the edges of an approval in the approval.
    """
    nodes = [node for workflow in workflows for node in workflow[NODES_OF_WORKFLOW]]
    place = {
        "workflow_job_template": "{{ awx_entry.0.name }}",
        "organization": "{{ awx_entry.0.organization }}",
        "identifier": "{{ awx_entry.1.identifier }}",
    }
    options = _build_options("awx_entry.1", nodes, {*EDGES, "identifier"})
    edges = _build_options("awx_entry.1", nodes, set(options) | {"identifier"})
    loop = f"{{{{ {KINDS[WORKFLOWS].variable} | subelements('{NODES_OF_WORKFLOW}') }}}}"
    label = "awx_entry.1.identifier"
    return [
        _build_loop(kind, {**place, **options}, loop, label),
        {
            **_build_loop(kind, {**place, **edges}, loop, label),
            "name": "Set up the edges of the nodes",
        },
    ]


def _build_options(item: str, entries: t.Sequence[Entry], without: set[str]) -> Entry:
    """Return each option that an entry has. Some entries can lack it, or omit it."""
    options = {}
    for entry in entries:
        for name in entry:
            options[name] = f"{{{{ {item}.{name} | default(omit) }}}}"
    for name in options:
        values = [entry.get(name, "omit") for entry in entries]
        if not any("omit" in str(value) for value in values):
            options[name] = f"{{{{ {item}.{name} }}}}"
    return {name: value for name, value in options.items() if name not in without}


def _build_loop(kind: Kind, options: Entry, loop: str, label: str) -> Entry:
    # Ansible shows the whole item that fails, whatever its label is.
    hidden: Entry = {} if _SECRETS.isdisjoint(options) else {"no_log": True}
    return {
        "name": kind.title,
        f"awx.awx.{kind.module}": options,
        "loop": loop,
        "loop_control": {"loop_var": "awx_entry", "label": f"{{{{ {label} }}}}"},
        **hidden,
    }
