"""The kinds of objects in `setup.yml`, and where each is in the other forms."""

import dataclasses as d
import typing as t

NODES = "workflow_job_template_nodes"
# No list of the API: what the `roles` of the other objects become.
ROLES = "roles"
WORKFLOWS = "workflow_job_templates"
EDGES = ("always_nodes", "failure_nodes", "success_nodes")


class SetupError(Exception):
    """`setup.yml` contains something that the generator does not know."""


@d.dataclass(frozen=True)
class Kind:
    """A list of the REST API, and what it is in the other forms."""

    # The name of a task that sets these objects up.
    title: str
    # The module of awx.awx.
    module: str
    # The variable of infra.aap_configuration. The nodes are in the entry of their workflow.
    variable: str = ""
    # What the entries have besides the fields of setup.yml.
    extra: t.Mapping[str, t.Any] = d.field(default_factory=dict)
    # The option for the organization of an object that an entry names, where there is one.
    organization_of_refs: str = ""


# In this order, each object exists before another one names it.
KINDS: t.Mapping[str, Kind] = {
    "execution_environments": Kind(
        "Set up the execution environment",
        "execution_environment",
        "controller_execution_environments",
    ),
    "notification_templates": Kind(
        "Set up the notification", "notification_template", "controller_notifications"
    ),
    "projects": Kind(
        "Set up the project, and fetch it",
        "project",
        "controller_projects",
        # apply.yml fetches the project at each run too.
        {"update_project": True},
    ),
    "inventories": Kind("Set up the inventory", "inventory", "controller_inventories"),
    "hosts": Kind(
        "Set up the host in the inventory",
        "host",
        "controller_hosts",
        # With enforced defaults, the role disables a host that does not say this.
        {"enabled": True},
    ),
    "job_templates": Kind("Set up the job templates", "job_template", "controller_templates"),
    WORKFLOWS: Kind(
        "Set up the workflow",
        "workflow_job_template",
        "controller_workflows",
        # Only so do the modules remove nodes and edges that somebody has added.
        {"destroy_current_nodes": True},
    ),
    NODES: Kind(
        "Set up the nodes of the workflow",
        "workflow_job_template_node",
        organization_of_refs="lookup_organization",
    ),
    "schedules": Kind(
        "Set up the schedule",
        "schedule",
        "controller_schedules",
        organization_of_refs="organization",
    ),
    ROLES: Kind("Give the teams their roles", "role", "controller_roles"),
}

# The objects that teams can have a role for, and the option of the module that names them.
ROLE_OPTIONS = {"job_templates": "job_templates", WORKFLOWS: "workflows"}
# Descriptions of several objects: the list of the user with one item for each, and an item's name.
LOOPS = {"awx_schedule_object": ("awx_schedules", "awx_schedule")}

# The API takes these fields as JSON text, and the modules take them as mappings.
JSON_TEXTS = ("extra_vars", "variables")
# The modules cannot empty these fields. The documentation says so.
NOT_EMPTIED = ((WORKFLOWS, "inventory"),)
