# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which record of a host counts, and what it says."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._hosts.host_record import parse_former_host

HERE: t.Any = {
    "region": "RegionOne",
    "placement_endpoint": "http://placement/",
    "compute_endpoint": "http://nova/",
}
HOST, NODE = "compute-1", "11111111-1111-4111-8111-111111111111"
AGGREGATE = {"uuid": "33333333-3333-4333-8333-333333333333", "name": "ssd", "zone": "az1"}
STOCK = {
    "total": 8,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 8,
    "step_size": 1,
    "allocation_ratio": 4.0,
}


def _record(service: str = "old", zone: str = "az1") -> dict[str, t.Any]:
    return {
        "host": HOST,
        "service": {"id": service, "zone": zone, "disabled_reason": None},
        "nodes": [{"uuid": NODE, "name": HOST}],
        "aggregates": [{**AGGREGATE, "id": 3, "metadata": {}}],
        "providers": [
            {
                "uuid": NODE,
                "name": HOST,
                "root": NODE,
                "parent": None,
                "generation": 7,
                "inventories": {"VCPU": STOCK},
                "traits": ["COMPUTE_NODE", "CUSTOM_SSD"],
                "aggregates": [AGGREGATE["uuid"]],
            }
        ],
    }


def _document(**host: t.Any) -> dict[str, t.Any]:
    plain = {
        "name": HOST,
        "host": HOST,
        "known": True,
        "service": {"id": "old", "zone": "az1", "disabled_reason": "broken"},
        "nodes": [{"uuid": NODE, "name": HOST}],
        "aggregates": [AGGREGATE],
        "providers": [{"uuid": NODE, "name": HOST, "root": NODE, "parent": None}],
    }
    return {"format": 1, "hosts": [{**plain, **host}]}


def test_record_of_the_former_life_is_read() -> None:
    record = parse_former_host(_document(record=_record(), former_record=None), HOST, "new", HERE)

    assert record is not None and record.provider is not None
    assert (record.node, record.zone) == (NODE, "az1")
    assert [aggregate.name for aggregate in record.aggregates] == ["ssd"]
    assert "CUSTOM_SSD" in record.provider.traits
    assert record.provider.inventories["VCPU"].allocation_ratio == 4.0


def test_record_of_the_present_life_gives_way_to_the_former_one() -> None:
    present, former = _record("new", "nova"), _record("old", "az1")
    document = _document(record=present, former_record=former)
    record = parse_former_host(document, HOST, "new", HERE)

    assert record is not None and record.zone == "az1"
    alone = _document(record=present, former_record=None)
    assert parse_former_host(alone, HOST, "new", HERE) is None


def test_host_without_a_service_has_no_present_life() -> None:
    record = parse_former_host(_document(record=_record(), former_record=None), HOST, None, HERE)

    assert record is not None


def test_file_without_records_has_the_host_aggregates() -> None:
    record = parse_former_host(_document(), HOST, "new", HERE)

    assert record is not None
    assert (record.zone, record.disabled_reason, record.provider) == ("az1", "broken", None)
    assert parse_former_host(_document(), HOST, "old", HERE) is None
    assert parse_former_host(_document(known=False), HOST, "new", HERE) is None


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"format": 2, "hosts": []},
        {"format": 1, "hosts": []},
        {"format": 1, "hosts": [{}]},
        {"format": 1},
        _document(name="compute-2", host="compute-2"),
        _document(record={"host": HOST}),
        _document(record={**_record(), "providers": [{"uuid": NODE, "traits": ["x y"]}]}),
        _document(record=[]),
    ],
)
def test_anything_else_is_refused(document: t.Any) -> None:
    with pytest.raises(InvalidInput):
        parse_former_host(document, HOST, "new", HERE)


def test_a_record_names_its_cloud_and_is_refused_in_another_one() -> None:
    named = {**_record(), "cloud": HERE}
    document = _document(record=named, former_record=None)
    found = parse_former_host(document, HOST, "new", HERE)
    plain = parse_former_host(_document(record=_record(), former_record=None), HOST, "new", HERE)

    assert found is not None and found.names_cloud and found.names == {HOST}
    # One of 2.0.0 does not, and only a person can know.
    assert plain is not None and not plain.names_cloud
    for field in ("region", "placement_endpoint"):
        with pytest.raises(InvalidInput, match="of another cloud"):
            parse_former_host(document, HOST, "new", {**HERE, field: "other"})
