# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects by name or uuid, against answers in the form of Keystone's."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.clients.session import connect
from ansible_collections.osops.placement.plugins.module_utils._core.options.scope import (
    parse_scope,
    scope_options,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.host_groups import (
    resolve_projects,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils._core.clients.broken_cloud import (  # noqa: E501
    HTML,
    PROJECT,
    BrokenCloud,
    Canned,
)

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import Scope

WEB, TEST = "a" * 32, "b" * 32
OTHER = "c" * 32
GONE = "0" * 32
DASHED = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
FORBIDDEN = Canned(403, {"error": {"code": 403, "message": "You are not authorized."}})


def project(uuid: str, name: str, domain: str = "default") -> dict[str, str]:
    return {"id": uuid, "name": name, "domain_id": domain}


@pytest.fixture
def cloud() -> Iterator[BrokenCloud]:
    with BrokenCloud() as cloud:
        cloud.projects = [project(WEB, "web-team"), project(TEST, "test"), project(OTHER, "Test")]
        cloud.answers["GET /placement/usages"] = Canned(body={"usages": {}})
        yield cloud


def resolve(cloud: BrokenCloud, *projects: str) -> tuple[Scope, list[str]]:
    """Return the scope with the projects, and the warnings."""
    auth = {
        "auth_url": cloud.auth_url,
        "username": "admin",
        "password": "secret",
        "project_name": "admin",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    names = ("cloud", "auth_type", "region_name", "interface", "validate_certs", "ca_cert")
    options = dict.fromkeys([*names, "client_cert", "client_key"])
    session = connect({**options, "auth": auth, "api_timeout": 5})
    defaults = {name: option.get("default") for name, option in scope_options().items()}
    warnings: list[str] = []
    scope = parse_scope({**defaults, "projects": list(projects)})
    return resolve_projects(session, scope, warnings.append), warnings


@pytest.mark.parametrize(
    ("given", "uuids", "names"),
    [
        (["web-team"], [WEB], ["web-team"]),
        ([" web-team "], [WEB], ["web-team"]),
        ([WEB], [WEB], ["web-team"]),
        ([DASHED], [WEB], ["web-team"]),
        ([DASHED.upper()], [WEB], ["web-team"]),
        # One project named twice is one project.
        (["web-team", WEB], [WEB], ["web-team"]),
        (["test", "web-team"], [WEB, TEST], ["web-team", "test"]),
        # Keystone may take no notice of upper case.
        (["Test"], [OTHER], ["Test"]),
        ([], [], []),
    ],
)
def test_projects_are_named_by_name_or_uuid(
    cloud: BrokenCloud, given: list[str], uuids: list[str], names: list[str]
) -> None:
    scope, warnings = resolve(cloud, *given)

    assert (list(scope.projects), list(scope.project_names)) == (uuids, names)
    assert warnings == []


def test_name_must_be_exact_whatever_keystone_returns(cloud: BrokenCloud) -> None:
    cloud.answers["GET /v3/projects"] = Canned(body={"projects": [project(WEB, "Web-Team")]})

    with pytest.raises(InvalidInput, match=r"no project web-team\. Did you mean Web-Team\?"):
        resolve(cloud, "web-team")


def test_unknown_name_is_refused_with_similar_names(cloud: BrokenCloud) -> None:
    cloud.answers["GET /v3/projects"] = Canned(body={"projects": cloud.projects})

    with pytest.raises(InvalidInput, match=r"no project webteam\. Did you mean web-team\?"):
        resolve(cloud, "webteam")


def test_name_of_two_projects_is_refused_with_both(cloud: BrokenCloud) -> None:
    cloud.projects.append(project(PROJECT, "test", "other"))

    with pytest.raises(InvalidInput, match="2 projects are named test") as error:
        resolve(cloud, "test")
    for part in (TEST, PROJECT, "(domain other)", "Give the UUID"):
        assert part in str(error.value)


def test_unknown_uuid_is_refused(cloud: BrokenCloud) -> None:
    with pytest.raises(InvalidInput, match=f"Keystone has no project {GONE}, and Placement no"):
        resolve(cloud, GONE)


def test_deleted_project_with_allocations_is_accepted(cloud: BrokenCloud) -> None:
    """Its orphans are what a cleanup is for."""
    cloud.answers["GET /placement/usages"] = Canned(body={"usages": {"VCPU": 2}})
    scope, warnings = resolve(cloud, GONE)

    assert (scope.projects, scope.project_names, warnings) == ((GONE,), ("",), [])


@pytest.mark.parametrize("answer", [FORBIDDEN, Canned(401, {}), Canned(503, HTML)], ids=str)
def test_uuid_is_used_unchecked_where_keystone_may_not_be_read(
    cloud: BrokenCloud, answer: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    cloud.answers["GET /v3/projects/*"] = answer
    scope, warnings = resolve(cloud, WEB)

    assert (scope.projects, scope.project_names) == ((WEB,), ("",))
    assert len(warnings) == 1
    assert f"it is not known whether project {WEB} exists" in warnings[0]


@pytest.mark.parametrize("answer", [FORBIDDEN, Canned(503, HTML)], ids=str)
def test_name_is_refused_where_keystone_may_not_be_read(
    cloud: BrokenCloud, answer: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    cloud.answers["GET /v3/projects"] = answer

    with pytest.raises(InvalidInput, match="Give the UUID of the project instead of its name"):
        resolve(cloud, "web-team")


def test_catalogue_without_keystone_leaves_uuids(cloud: BrokenCloud) -> None:
    cloud.catalog = [cloud.build_service("compute"), cloud.build_service("placement")]
    scope, warnings = resolve(cloud, WEB)

    assert scope.projects == (WEB,)
    assert "The service catalogue has no Keystone." in warnings[0]


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_name_is_refused(cloud: BrokenCloud, empty: str) -> None:
    with pytest.raises(InvalidInput, match="projects: a name is empty"):
        resolve(cloud, empty)
