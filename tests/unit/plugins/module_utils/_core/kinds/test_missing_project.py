"""Which projects are missing, and which are only not shown."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.groups import find_project
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.kinds import missing_project
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.other_services import Project
from .......plugins.module_utils._core.models.snapshot import (
    NOT_ASKED,
    Projects,
    Scope,
    Shard,
    Surroundings,
)
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import list_cases
from ...world import OUR_PROJECT, PROJECT, World, answer

OURS = Project(OUR_PROJECT, "ours", "default")
SAME_DOMAIN, OTHER_DOMAIN = Project("p1", "one", "default"), Project("p2", "two", "elsewhere")
LISTED = answer("GET /projects", 200, (OURS, SAME_DOMAIN, OTHER_DOMAIN))
ONE_DOMAIN = answer("GET /projects", 200, (OURS, SAME_DOMAIN))


class Site(World):
    """A host with a server of a project that Keystone may not have."""

    def __init__(self) -> None:
        super().__init__()
        self.here = self.host("compute-1")
        self.guest = self.server(self.here, self.here)

    def index(self, status: int = 404, scope: Scope | None = None, **read: t.Any) -> SnapshotIndex:
        found = Project(PROJECT, "web", "default") if status == 200 else None
        lookups = {PROJECT: answer(f"GET /projects/{PROJECT}", status, found)}
        projects = Projects(**{"lookups": lookups, "listing": LISTED, **read})
        surroundings = Surroundings(projects=projects)
        return SnapshotIndex(self.snapshot(surroundings=surroundings, scope=scope or Scope()))

    def find(self, *arguments: t.Any, **read: t.Any) -> list[Finding]:
        return list(missing_project.check(self.index(*arguments, **read), Policy()))


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


@pytest.mark.parametrize(
    "read",
    [
        {"listing": LISTED},
        {"listing": ONE_DOMAIN, "domains": answer("GET /domains", 200, ("default",))},
    ],
    ids=["another domain is visible", "there is one domain"],
)
def test_project_that_keystone_does_not_have_is_found(site: Site, read: dict[str, t.Any]) -> None:
    (finding,) = site.find(**read)

    assert (finding.verdict, finding.subject, finding.change) == ("drifted", PROJECT, None)
    assert finding.reason.id == "project_gone" and site.guest in finding.reason
    assert find_project(PROJECT, site.index(**read).snapshot) == ("", False)


UNPROVEN: dict[str, dict[str, dict[str, t.Any]]] = {
    "projects_unread": {
        "the listing is refused": {"listing": answer("GET /projects", 403)},
        "nothing was listed": {"listing": NOT_ASKED},
    },
    "own_project_not_listed": {
        "the own project is not listed": {
            "listing": answer("GET /projects", 200, (SAME_DOMAIN, OTHER_DOMAIN))
        }
    },
    "only_own_project_listed": {
        "only the own project is listed": {"listing": answer("GET /projects", 200, (OURS,))}
    },
    "other_domains_not_listed": {
        "only one of several domains is listed": {
            "listing": ONE_DOMAIN,
            "domains": answer("GET /domains", 200, ("default", "elsewhere")),
        },
        "the domains are refused": {"listing": ONE_DOMAIN, "domains": answer("GET /domains", 403)},
    },
}


@pytest.mark.parametrize(("reason", "read"), list_cases(UNPROVEN))
def test_project_that_may_only_not_be_shown_is_undecided(
    site: Site, reason: str, read: dict[str, t.Any]
) -> None:
    (finding,) = site.find(**read)

    assert finding.verdict == "undecided"
    assert finding.reason.id == reason
    assert find_project(PROJECT, site.index(**read).snapshot) == ("", None)


@pytest.mark.parametrize("status", [200, 401, 403, 500])
def test_only_a_404_says_that_there_is_no_project(site: Site, status: int) -> None:
    assert site.find(status) == []
    expected = ("web", True) if status == 200 else ("", None)
    assert find_project(PROJECT, site.index(status).snapshot) == expected


def test_servers_of_the_listing_count_beside_the_allocations(site: Site) -> None:
    (finding,) = site.find(servers={PROJECT: (site.guest, "other-server")})

    assert finding.reason.id == "project_gone" and site.guest in finding.reason


@pytest.mark.parametrize(("changed", "found"), [("allocations", 1), ("servers", 0)])
def test_a_server_is_of_the_project_that_nova_has(site: Site, changed: str, found: int) -> None:
    """The other owner of its allocation is a finding of its own, and no reason to delete it."""
    records = getattr(site, changed)
    records[site.guest] = d.replace(records[site.guest], project="another")

    assert len(site.find()) == found


def test_project_of_orphans_alone_is_left_to_their_own_findings(site: Site) -> None:
    site.delete(site.guest)

    assert site.find() == []


def test_projects_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    absent = answer(f"GET /projects/{PROJECT}", 404)
    lookups = {"a": answer("GET /projects/a", 200, SAME_DOMAIN), "b": absent, PROJECT: absent}

    assert [finding.subject for finding in site.find(lookups=lookups)] == [PROJECT]


def test_deleted_server_does_not_hide_a_later_one(site: Site) -> None:
    later = site.server(site.here, site.here)
    site.delete(site.guest)
    (finding,) = site.find()

    assert finding.reason.id == "project_gone" and later in finding.reason


def test_one_shard_reports_a_project_that_all_shards_know(site: Site) -> None:
    found = [
        site.find(404, Scope(shard=Shard(number, 3), kinds=("missing_project",)))
        for number in (1, 2, 3)
    ]

    assert sorted(map(len, found)) == [0, 0, 1]


def test_command_that_names_a_project_is_safe_to_copy(site: Site) -> None:
    """Placement takes almost any text for a project."""
    hostile = "a; reboot"
    lookups = {hostile: answer("GET /projects/…", 404)}
    (finding,) = site.find(lookups=lookups, servers={hostile: (site.guest,)})

    assert f"--project '{hostile}'." in finding.reason
