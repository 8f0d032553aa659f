"""The hosts of the named aggregates, availability zones and cells, and the named projects."""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Iterator

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.clients.session import connect
from .......plugins.module_utils._core.models.nova import Aggregate, Service
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope
from .......plugins.module_utils._core.options.scope import ScopeOptions, parse_scope
from .......plugins.module_utils._core.reading.host_groups import (
    find_hosts_of_groups,
    parse_cell_hosts,
    resolve_projects,
)
from ..clients.broken_cloud import HTML, PROJECT, BrokenCloud, Canned

# Which hosts the named aggregates, availability zones and cells have


RACK_7, RACK_8, EMPTY, NUMERIC = (
    f"0000000{number}-0000-4000-8000-000000000000" for number in range(4)
)
AGGREGATES = (
    Aggregate(RACK_7, "rack-7", None, ("c1", "c2"), id=7),
    Aggregate(RACK_8, "rack-8", "az1", ("c2", "c3", "dead"), id=8),
    Aggregate(EMPTY, "empty", None, (), id=9),
    # Named like the id of another one, and like a host.
    Aggregate(NUMERIC, "7", None, ("c4",), id=10),
    Aggregate(RACK_7[:-1] + "b", "c1", None, ("c4",), id=11),
)


def _compute(host: str, zone: str | None, status: str = "enabled") -> Service:
    return Service("nova-compute", host, status, "up", zone=zone)


SERVICES = (
    _compute("c1", "nova"),
    _compute("c2", "az1"),
    _compute("c3", "az1"),
    _compute("c4", "nova"),
    Service("nova-conductor", "controller", "enabled", "up", zone="internal"),
    # Of a cell that does not answer: the second one is in no aggregate with a zone.
    _compute("dead", None, "UNKNOWN"),
    _compute("lost", None, "UNKNOWN"),
)
CELLS = {"cell1": ("c1", "c2"), "cell2": ("dead", "lost", "gone"), "cell3": ()}


def find(**groups: t.Any) -> tuple[HostGroups, list[str]]:
    """Return the groups with their hosts, and the warnings."""
    warnings: list[str] = []
    named = HostGroups(**{key: tuple(names) for key, names in groups.items()})
    return find_hosts_of_groups(named, SERVICES, AGGREGATES, CELLS, warnings.append), warnings


@pytest.mark.parametrize(
    ("groups", "hosts"),
    [
        ({"aggregates": ["rack-7"]}, ["c1", "c2"]),
        ({"aggregates": [RACK_7]}, ["c1", "c2"]),
        ({"aggregates": ["8"]}, ["c2", "c3", "dead"]),
        ({"aggregates": ["rack-7", "rack-8"]}, ["c1", "c2", "c3", "dead"]),
        # An aggregate and a host of the same name are two things.
        ({"aggregates": ["c1"]}, ["c4"]),
        ({"availability_zones": ["nova"]}, ["c1", "c4"]),
        ({"availability_zones": ["az1"]}, ["c2", "c3", "dead"]),
        ({"availability_zones": ["nova", "az1"]}, ["c1", "c2", "c3", "c4", "dead"]),
        ({"cells": ["cell1"]}, ["c1", "c2"]),
        ({"cells": ["cell2"]}, ["dead", "gone", "lost"]),
        # Two options narrow each other.
        ({"aggregates": ["rack-7"], "availability_zones": ["az1"]}, ["c2"]),
        ({"aggregates": ["rack-7", "rack-8"], "cells": ["cell1"]}, ["c1", "c2"]),
        ({"availability_zones": ["az1"], "cells": ["cell2"]}, ["dead"]),
    ],
    ids=itertools.count(),
)
def test_hosts_are_in_one_group_of_each_option(
    groups: dict[str, list[str]], hosts: list[str]
) -> None:
    assert list(find(**groups)[0].hosts) == hosts


def test_aggregates_are_remembered_by_all_that_names_them() -> None:
    # One aggregate named three times is one aggregate.
    groups, warnings = find(aggregates=["rack-8", RACK_7, "rack-7", "8"])

    assert groups.aggregates == (RACK_7, RACK_8)
    assert groups.aggregate_names == ("rack-7", "rack-8")
    assert groups.aggregate_numbers == ("7", "8")
    assert warnings == []


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (
            {"aggregates": ["rack-9"]},
            "aggregates: Nova has no aggregate rack-9. Did you mean ",
        ),
        ({"aggregates": ["Rack-7"]}, "aggregates: Nova has no aggregate Rack-7. Did you mean"),
        (
            {"aggregates": ["empty"]},
            "aggregates: aggregate empty has no hosts. Leave it out, or correct the name.",
        ),
        # Also beside one that has hosts: it may be the one that was meant.
        ({"aggregates": ["rack-7", "empty"]}, "aggregates: aggregate empty has no hosts."),
        ({"aggregates": ["rack-7", "rack-9"]}, "aggregates: Nova has no aggregate rack-9."),
        (
            {"aggregates": ["7"]},
            f"aggregates: 7 means 2 aggregates: {RACK_7} (name rack-7, id 7), {NUMERIC} (name 7, "
            "id 10). Give the UUID of the one that you mean.",
        ),
        ({"aggregates": ["a\x1b[2J"]}, r"aggregates: Nova has no aggregate a\x1b[2J."),
        (
            {"availability_zones": ["az2"]},
            "availability_zones: no compute service is in availability zone az2. "
            "There are az1, nova.",
        ),
        ({"availability_zones": ["nova", "NOVA"]}, "availability_zones: no compute service is in"),
        # The zone of services that have no allocations.
        ({"availability_zones": ["internal"]}, "availability_zones: no compute service is in"),
        ({"cells": ["cell9"]}, "cells: cell_hosts has no cell cell9. Did you mean cell3 or"),
        ({"cells": ["cell3"]}, "cells: cell cell3 has no hosts. Leave it out."),
        (
            {"aggregates": ["rack-7"], "cells": ["cell2"]},
            "No host is in aggregate rack-7 within cell cell2. A host must be in one of each",
        ),
        (
            {"aggregates": ["c1"], "availability_zones": ["az1"]},
            "No host is in aggregate c1 within availability zone az1.",
        ),
    ],
    ids=itertools.count(),
)
def test_group_that_means_nothing_is_refused(groups: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(InvalidInput) as error:
        find(**groups)

    assert str(error.value).startswith(sentence)


def test_cells_without_their_hosts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="set cell_hosts"):
        find_hosts_of_groups(HostGroups(cells=("cell1",)), SERVICES, AGGREGATES, {}, print)


def test_hosts_whose_zone_is_unknown_are_left_out_and_named() -> None:
    groups, warnings = find(availability_zones=["az1"])

    assert "lost" not in groups.hosts
    assert warnings == [
        "availability_zones: Nova does not say in which zone host lost is, because a cell does not "
        "answer: it is not read."
    ]


def test_hosts_of_a_cell_that_nova_does_not_list_are_named() -> None:
    _groups, warnings = find(cells=["cell2"])

    assert warnings == [
        "cells: Nova lists no compute service of host gone: if it still has a provider of its "
        "name, that is read."
    ]


@pytest.mark.parametrize(
    ("cell_hosts", "parsed"),
    [
        ({}, {}),
        (None, {}),
        ({"cell1": ["a", "b"], "cell2": []}, {"cell1": ("a", "b"), "cell2": ()}),
        # A cell can be named by its uuid.
        ({RACK_7.upper(): ["a"]}, {RACK_7: ("a",)}),
    ],
)
def test_cells_are_read_with_their_hosts(cell_hosts: t.Any, parsed: t.Any) -> None:
    assert parse_cell_hosts({"cell_hosts": cell_hosts}) == parsed


@pytest.mark.parametrize(
    ("cell_hosts", "sentence"),
    [
        ({"cell1": "compute-1"}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": {"a": "b"}}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": None}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": ["a", None]}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": ["a", 7]}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": ["a", ""]}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        ({"cell1": [" a"]}, "cell_hosts: the hosts of cell cell1 are not a list of names"),
        (
            {"cell1": ["a"], "cell2": ["a"]},
            "cell_hosts: host a is in cell cell1 and in cell cell2, but a host is in one cell "
            "only.",
        ),
    ],
    ids=itertools.count(),
)
def test_wrong_mapping_of_cells_is_refused(cell_hosts: t.Any, sentence: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_cell_hosts({"cell_hosts": cell_hosts})

    assert str(error.value).startswith(sentence)


# Projects by name or uuid, against answers in the form of Keystone's


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
    defaults = {name: option.get("default") for name, option in ScopeOptions.build_spec().items()}
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
