"""A custom role that lists everything and may only read servers of its own project.

Everything else looks like an orphan.
"""

import json
import typing as t
from collections.abc import Callable, Iterator

import pytest

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from ..integration.support import Ansible, Minicloud, Placement, assert_nothing_changed, long
from ..integration.world import World

EVERY_KIND = [kind.name for kind in ORPHAN_KINDS]
MIGRATIONS = {
    "os_compute_api:os-migrations:index",
    "os_compute_api:os-migrations:index:all_projects",
    "os_compute_api:os-migrations:index:host",
}
LISTS = MIGRATIONS | {
    "os_compute_api:servers:detail:get_all_tenants",
    "os_compute_api:servers:allow_all_filters",
    "os_compute_api:os-hypervisors:list-detail",
    "os_compute_api:os-services:list",
    "os_compute_api:os-aggregates:index",
    "os_compute_api:os-hosts:show",
    "os_compute_api:os-instance-actions:list",
    "os_compute_api:os-instance-actions:show",
    "os_compute_api:os-instance-actions:events",
}
HOSTS = {"os_compute_api:os-extended-server-attributes"}
PLACEMENT = {
    "placement:resource_providers:list",
    "placement:resource_providers:allocations:list",
    "placement:resource_providers:inventories:list",
    "placement:resource_providers:traits:list",
    "placement:allocations:list",
}

Grant = t.Callable[[set[str]], None]


@pytest.fixture(scope="module")
def grant(world: World) -> Iterator[Grant]:
    """Give the role `auditor` these rights in Nova, and read access to Placement.

    Both services read their policy again when it changes.
    """
    files = {name: world.paths.etc / name / "policy.yaml" for name in ("nova-first", "placement")}

    def write(name: str, rules: set[str]) -> None:
        files[name].write_text(
            json.dumps(dict.fromkeys(sorted(rules), "role:admin or role:service or role:auditor"))
        )

    def apply(rules: set[str]) -> None:
        write("nova-first", rules)
        write("placement", PLACEMENT)

    yield apply
    # The services treat a file that has disappeared as an error.
    for name in files:
        write(name, set())


@pytest.fixture
def auditor(minicloud: Minicloud, world: World) -> Callable[[str], dict[str, t.Any]]:
    """Log the auditor into a project, and return the cloud as a whole configuration."""

    def log_in(project: str) -> dict[str, t.Any]:
        world.assign("auditor", project, "auditor", "reader")
        domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
        auth = {
            "auth_url": minicloud.environment["OS_AUTH_URL"],
            "username": "auditor",
            "password": "auditor",
            "project_name": project,
        }
        return {"auth": {**auth, **domains}, "region_name": "RegionOne"}

    return log_in


@pytest.fixture(scope="module", autouse=True)
def servers(world: World) -> None:
    """Live servers of two projects, the newest of which is looked up first.

    One of them also has an allocation on a host where it is not.
    """
    world.claim_also(world.boot("compute-1"), "compute-2")
    world.claim("compute-1")
    world.boot("compute-2", project="admin")
    world.boot("compute-3")


@pytest.mark.parametrize(
    ("project", "allowed", "said"),
    [
        long(
            "audit",
            LISTS | HOSTS,
            "These credentials list servers that they may not look up (GET /servers/",
        ),
        long(
            "demo",
            LISTS | HOSTS,
            "These credentials list servers that they may not look up (GET /servers/",
        ),
        (
            "audit",
            LISTS,
            (
                "These credentials do not see the host of any server, although there are servers "
                "on hosts"
            ),
        ),
        long("audit", (LISTS | HOSTS) - MIGRATIONS, "refused GET /os-migrations with 403"),
        long(
            "audit",
            (LISTS | HOSTS) - {"os_compute_api:servers:detail:get_all_tenants"},
            "refused GET /servers/detail",
        ),
    ],
    ids=[
        "looks at no server",
        "looks at its own",
        "sees no host",
        "lists no migrations",
        "lists its own servers",
    ],
)
def test_credentials_that_only_list_close_the_soundness_check(
    ansible: Ansible,
    placement: Placement,
    grant: Grant,
    auditor: Callable[[str], dict[str, t.Any]],
    project: str,
    allowed: set[str],
    said: str,
) -> None:
    grant(allowed)
    before = placement.everything()
    variables = {
        "orphan_cleanup_cloud": auditor(project),
        "orphan_cleanup_remediate_kinds": EVERY_KIND,
    }

    run = ansible.playbook("cleanup_orphans", variables=variables)

    assert run.status != 0
    assert said in run.told
    assert_nothing_changed(run, before, placement)
