"""The types of objects that AWX has, as far as its setup needs them."""

from __future__ import annotations

import dataclasses as d
import typing as t

Entry = dict[str, t.Any]

# Each of them starts jobs, so nodes and schedules can name any of them.
TEMPLATES = ("job_templates", "workflow_job_templates", "workflow_approval_templates", "projects")
# The name of the jobs that each of them starts, as `unified_job_type` has it.
JOB_TYPES = {
    "job_templates": "job",
    "workflow_job_templates": "workflow_job",
    "workflow_approval_templates": "workflow_approval",
    "projects": "project_update",
}

_ASKS = (
    "ask_credential_on_launch",
    "ask_diff_mode_on_launch",
    "ask_execution_environment_on_launch",
    "ask_forks_on_launch",
    "ask_instance_groups_on_launch",
    "ask_inventory_on_launch",
    "ask_job_slice_count_on_launch",
    "ask_job_type_on_launch",
    "ask_labels_on_launch",
    "ask_limit_on_launch",
    "ask_scm_branch_on_launch",
    "ask_skip_tags_on_launch",
    "ask_tags_on_launch",
    "ask_timeout_on_launch",
    "ask_variables_on_launch",
    "ask_verbosity_on_launch",
)
_WORKFLOW_ASKS = (
    "ask_inventory_on_launch",
    "ask_labels_on_launch",
    "ask_limit_on_launch",
    "ask_scm_branch_on_launch",
    "ask_skip_tags_on_launch",
    "ask_tags_on_launch",
    "ask_variables_on_launch",
)
# What a workflow, a node or a schedule can set for the jobs that it starts. None is not set.
PROMPTS = ("limit", "scm_branch", "job_tags", "skip_tags")


@d.dataclass(frozen=True)
class Kind:
    """One type of object.

    `refs` are the fields with the id of another object, and the lists that this object is in.
    `links` are the associations with any number of objects.
    """

    type: str
    label: str
    needed: tuple[str, ...] = ()
    defaults: Entry = d.field(default_factory=dict)
    refs: dict[str, tuple[str, ...]] = d.field(default_factory=dict)
    unique: tuple[str, ...] = ("name", "organization")
    links: dict[str, str] = d.field(default_factory=dict)
    # The fields that a request cannot set.
    read_only: tuple[str, ...] = ()
    # The fields that a request can set only when it creates the object.
    fixed: tuple[str, ...] = ()
    # The references that delete the object together with the other one.
    owners: tuple[str, ...] = ()
    # The roles that users and teams can have for the object.
    roles: tuple[str, ...] = ()


_ORGANIZATION: dict[str, tuple[str, ...]] = {"organization": ("organizations",)}
_NOTIFICATIONS = {
    "notification_templates_error": "notification_templates",
    "notification_templates_started": "notification_templates",
    "notification_templates_success": "notification_templates",
}
_EDGES = {
    "always_nodes": "workflow_job_template_nodes",
    "failure_nodes": "workflow_job_template_nodes",
    "success_nodes": "workflow_job_template_nodes",
}

KINDS: dict[str, Kind] = {
    "organizations": Kind("organization", "Organization", ("name",), unique=("name",)),
    "teams": Kind(
        "team",
        "Team",
        ("name", "organization"),
        refs=_ORGANIZATION,
        links={"roles": "roles"},
    ),
    "roles": Kind(
        "role",
        "Role",
        refs={"content": ("job_templates", "workflow_job_templates")},
        owners=("content",),
    ),
    # They belong to no organization. Container groups are instance groups too.
    "instance_groups": Kind("instance_group", "Instance group", ("name",), unique=("name",)),
    "credential_types": Kind(
        "credential_type", "Credential type", ("name",), {"namespace": None}, unique=("name",)
    ),
    "credentials": Kind(
        "credential",
        "Credential",
        ("name", "credential_type"),
        refs={**_ORGANIZATION, "credential_type": ("credential_types",)},
        unique=("name", "organization", "credential_type"),
    ),
    "execution_environments": Kind(
        "execution_environment",
        "Execution environment",
        ("name", "image"),
        {"organization": None, "credential": None, "pull": ""},
        refs={**_ORGANIZATION, "credential": ("credentials",)},
        # Also across organizations.
        unique=("name",),
    ),
    "projects": Kind(
        "project",
        "Project",
        ("name",),
        {
            "scm_type": "",
            "scm_url": "",
            "scm_branch": "",
            "scm_refspec": "",
            "scm_update_on_launch": False,
            "allow_override": False,
            "credential": None,
        },
        refs={**_ORGANIZATION, "credential": ("credentials",)},
        links=_NOTIFICATIONS,
        read_only=("status", "scm_revision", "last_job", "current_job", "last_job_failed"),
    ),
    "inventories": Kind(
        "inventory",
        "Inventory",
        ("name", "organization"),
        {"variables": "", "pending_deletion": False},
        refs=_ORGANIZATION,
    ),
    "hosts": Kind(
        "host",
        "Host",
        ("name", "inventory"),
        {"variables": "", "enabled": True},
        refs={"inventory": ("inventories",)},
        unique=("name", "inventory"),
        owners=("inventory",),
    ),
    "notification_templates": Kind(
        "notification_template",
        "Notification template",
        ("name", "organization", "notification_type", "notification_configuration"),
        refs=_ORGANIZATION,
    ),
    "job_templates": Kind(
        "job_template",
        "Job template",
        ("name", "project"),
        {
            **dict.fromkeys(_ASKS, False),
            "job_type": "run",
            "playbook": "",
            "scm_branch": "",
            "limit": "",
            "job_tags": "",
            "skip_tags": "",
            "start_at_task": "",
            "extra_vars": "",
            "inventory": None,
            "execution_environment": None,
            "verbosity": 0,
            "forks": 0,
            "timeout": 0,
            "job_slice_count": 1,
            "survey_enabled": False,
            "become_enabled": False,
            "diff_mode": False,
            "force_handlers": False,
            "use_fact_cache": False,
            "allow_simultaneous": False,
        },
        refs={
            "project": ("projects",),
            "inventory": ("inventories",),
            "execution_environment": ("execution_environments",),
        },
        links={
            **_NOTIFICATIONS,
            "credentials": "credentials",
            "instance_groups": "instance_groups",
        },
        # It comes from the project.
        read_only=("organization",),
        roles=("admin_role", "execute_role", "read_role"),
    ),
    "workflow_job_templates": Kind(
        "workflow_job_template",
        "Workflow job template",
        ("name",),
        {
            **dict.fromkeys(_WORKFLOW_ASKS, False),
            **dict.fromkeys(PROMPTS),
            "organization": None,
            "inventory": None,
            "extra_vars": "",
            "survey_enabled": False,
            "allow_simultaneous": False,
        },
        refs={**_ORGANIZATION, "inventory": ("inventories",)},
        links={**_NOTIFICATIONS, "notification_templates_approvals": "notification_templates"},
        roles=("admin_role", "execute_role", "approval_role", "read_role"),
    ),
    "workflow_job_template_nodes": Kind(
        "workflow_job_template_node",
        "Workflow job template node",
        ("workflow_job_template",),
        {
            **dict.fromkeys(PROMPTS),
            "extra_data": {},
            "inventory": None,
            "job_type": None,
            "verbosity": None,
            "unified_job_template": None,
            "all_parents_must_converge": False,
        },
        refs={
            "workflow_job_template": ("workflow_job_templates",),
            "unified_job_template": TEMPLATES,
            "inventory": ("inventories",),
        },
        unique=("identifier", "workflow_job_template"),
        links=_EDGES,
        fixed=("workflow_job_template",),
        owners=("workflow_job_template",),
    ),
    "workflow_approval_templates": Kind(
        "workflow_approval_template", "Workflow approval template", ("name",), {"timeout": 0}
    ),
    "schedules": Kind(
        "schedule",
        "Schedule",
        ("name", "unified_job_template", "rrule"),
        {
            **dict.fromkeys(PROMPTS),
            "extra_data": {},
            "inventory": None,
            "job_type": None,
            "verbosity": None,
            "enabled": True,
        },
        refs={"unified_job_template": TEMPLATES, "inventory": ("inventories",)},
        unique=("name", "unified_job_template"),
        owners=("unified_job_template",),
    ),
    "jobs": Kind("job", "Job", refs={"job_template": ("job_templates",)}),
    "project_updates": Kind("project_update", "Project update", refs={"project": ("projects",)}),
    "workflow_jobs": Kind(
        "workflow_job",
        "Workflow job",
        refs={"workflow_job_template": ("workflow_job_templates",)},
    ),
    "workflow_approvals": Kind(
        "workflow_approval",
        "Workflow approval",
        refs={"workflow_approval_template": ("workflow_approval_templates",)},
    ),
}
JOBS = ("jobs", "project_updates", "workflow_jobs", "workflow_approvals")
# These lists contain the objects of several others.
UNIONS = {"unified_job_templates": TEMPLATES, "unified_jobs": JOBS}
EDGES = tuple(_EDGES)
