"""The hosts of the named aggregates, availability zones and cells, and the named projects."""

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
    ("groups", "said"),
    [
        ({"aggregates": ["rack-9"]}, ["no aggregate rack-9", "rack-7", "rack-8"]),
        ({"aggregates": ["Rack-7"]}, ["no aggregate Rack-7", "rack-7"]),
        ({"aggregates": ["empty"]}, ["empty has no hosts"]),
        # Also beside one that has hosts: it may be the one that was meant.
        ({"aggregates": ["rack-7", "empty"]}, ["empty has no hosts"]),
        ({"aggregates": ["rack-7", "rack-9"]}, ["no aggregate rack-9"]),
        ({"aggregates": ["7"]}, [f"{RACK_7} (name rack-7, id 7)", f"{NUMERIC} (name 7, id 10)"]),
        ({"aggregates": ["a\x1b[2J"]}, [r"no aggregate a\x1b[2J."]),
        ({"availability_zones": ["az2"]}, ["zone az2", "az1, nova"]),
        ({"availability_zones": ["nova", "NOVA"]}, ["zone NOVA"]),
        # The zone of services that have no allocations.
        ({"availability_zones": ["internal"]}, ["zone internal"]),
        ({"cells": ["cell9"]}, ["no cell cell9", "cell3 or"]),
        ({"cells": ["cell3"]}, ["cell3 has no hosts"]),
        ({"aggregates": ["rack-7"], "cells": ["cell2"]}, ["rack-7 within cell cell2"]),
        ({"aggregates": ["c1"], "availability_zones": ["az1"]}, ["c1 within", "zone az1"]),
    ],
    ids=itertools.count(),
)
def test_group_that_means_nothing_is_refused(groups: dict[str, list[str]], said: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        find(**groups)

    assert len(groups) == 2 or str(error.value).startswith(f"{next(iter(groups))}: ")
    assert all(words in str(error.value) for words in said)


def test_cells_without_their_hosts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="set cell_hosts"):
        find_hosts_of_groups(HostGroups(cells=("cell1",)), SERVICES, AGGREGATES, {}, print)


@pytest.mark.parametrize(
    ("groups", "named", "is_read"),
    [
        # A cell does not answer, and only Nova says in which zone a host is.
        ({"availability_zones": ["az1"]}, "lost", False),
        # Nova does not list it, and it may still have a provider.
        ({"cells": ["cell2"]}, "gone", True),
    ],
)
def test_host_of_a_group_of_which_nova_says_too_little_is_named(
    groups: dict[str, list[str]], named: str, is_read: bool
) -> None:
    found, (warning,) = find(**groups)

    assert (named in found.hosts) == is_read
    assert warning.startswith(f"{next(iter(groups))}: ") and f"host {named}" in warning


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
    ("cell_hosts", "said"),
    [
        *(
            ({"cell1": hosts}, r"cell1\b.* not a list")
            for hosts in ("c1", {"a": "b"}, None, ["a", None], ["a", 7], ["a", ""], [" a"])
        ),
        ({"cell1": ["a"], "cell2": ["a"]}, "host a is in cell cell1 and in cell cell2"),
    ],
    ids=itertools.count(),
)
def test_wrong_mapping_of_cells_is_refused(cell_hosts: t.Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"^cell_hosts: .*{said}"):
        parse_cell_hosts({"cell_hosts": cell_hosts})


# Projects by name or uuid, against answers in the form of Keystone's


WEB, TEST = "a" * 32, "b" * 32
OTHER = "c" * 32
GONE = "0" * 32
DASHED = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
FORBIDDEN = Canned(403, {"error": {"code": 403, "message": "You are not authorized."}})


def project(uuid: str, name: str, domain: str = "default") -> dict[str, str]:
    return {"id": uuid, "name": name, "domain_id": domain}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokenCloud]:
    # Failed requests are sent again, but here without the pauses.
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with BrokenCloud() as cloud:
        cloud.projects = [project(WEB, "web-team"), project(TEST, "test"), project(OTHER, "Test")]
        cloud.answers["GET /placement/usages"] = Canned(body={"usages": {}})
        yield cloud


def resolve(cloud: BrokenCloud, *projects: str) -> tuple[Scope, list[str]]:
    """Return the scope with the projects, and the warnings."""
    session = connect({**cloud.build_options(), "api_timeout": 5})
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


@pytest.mark.parametrize(
    ("given", "listed", "said"),
    [
        # A name must be exact, whatever Keystone returns.
        ("web-team", ["Web-Team"], r"no project web-team\. .*Web-Team\?"),
        ("webteam", ["web-team", "test"], r"no project webteam\. .*web-team\?"),
        (GONE, [], f"no project {GONE}"),
        ("", [], "name is empty"),
        ("  ", [], "name is empty"),
    ],
)
def test_project_that_nobody_knows_is_refused(
    cloud: BrokenCloud, given: str, listed: list[str], said: str
) -> None:
    projects = [project(WEB, name) for name in listed]
    cloud.answers["GET /v3/projects"] = Canned(body={"projects": projects})

    with pytest.raises(InvalidInput, match=said):
        resolve(cloud, given)


def test_name_of_two_projects_is_refused_with_both(cloud: BrokenCloud) -> None:
    cloud.projects.append(project(PROJECT, "test", "other"))

    with pytest.raises(InvalidInput, match=r"2 projects .*UUID") as error:
        resolve(cloud, "test")
    assert all(part in str(error.value) for part in (TEST, PROJECT, "(domain other)"))


def test_deleted_project_with_allocations_is_accepted(cloud: BrokenCloud) -> None:
    """Its orphans are what a cleanup is for."""
    cloud.answers["GET /placement/usages"] = Canned(body={"usages": {"VCPU": 2}})
    scope, warnings = resolve(cloud, GONE)

    assert (scope.projects, scope.project_names, warnings) == ((GONE,), ("",), [])


@pytest.mark.parametrize("answer", [FORBIDDEN, Canned(401, {}), Canned(503, HTML)], ids=str)
def test_uuid_is_used_unchecked_where_keystone_may_not_be_read(
    cloud: BrokenCloud, answer: Canned
) -> None:
    cloud.answers["GET /v3/projects/*"] = answer
    scope, (warning,) = resolve(cloud, WEB)

    assert (scope.projects, scope.project_names) == ((WEB,), ("",))
    assert f"not known whether project {WEB}" in warning


@pytest.mark.parametrize("answer", [FORBIDDEN, Canned(503, HTML)], ids=str)
def test_name_is_refused_where_keystone_may_not_be_read(cloud: BrokenCloud, answer: Canned) -> None:
    cloud.answers["GET /v3/projects"] = answer

    with pytest.raises(InvalidInput, match="Give the UUID"):
        resolve(cloud, "web-team")


def test_catalogue_without_keystone_leaves_uuids(cloud: BrokenCloud) -> None:
    cloud.catalog = [cloud.build_service("compute"), cloud.build_service("placement")]
    scope, warnings = resolve(cloud, WEB)

    assert scope.projects == (WEB,) and "no Keystone" in warnings[0]
