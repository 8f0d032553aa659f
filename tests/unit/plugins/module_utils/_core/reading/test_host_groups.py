# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts the named aggregates, availability zones and cells have.

A group that means nothing is refused, and never means everything.
"""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import (
    Aggregate,
    Service,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    HostGroups,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.host_groups import (
    find_hosts_of_groups,
    parse_cell_hosts,
)

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
