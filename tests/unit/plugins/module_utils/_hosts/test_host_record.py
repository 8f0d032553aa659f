"""Which record of a host is kept, and which one a new look replaces."""

import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._core.models.placement import Provider
from ......plugins.module_utils._hosts.host_record import (
    HostRecords,
    build_record,
    choose_records,
    parse_former_host,
    read_records,
    require_same_cloud,
)

HERE: t.Any = {
    "region": "RegionOne",
    "placement_endpoint": "http://placement/",
    "compute_endpoint": "http://nova/",
}
OWN = ["decommissioned with osops.placement", "drained with osops.placement"]


def _service(
    number: str | None = "s-1",
    status: str = "enabled",
    state: str = "down",
    reason: str | None = None,
) -> t.Any:
    return {
        "id": number,
        "status": status,
        "state": state,
        "zone": "az1",
        "disabled_reason": reason,
    }


def _record(at: str, service: t.Any, begun: bool = False, **parts: t.Any) -> t.Any:
    return {
        "taken_at": at,
        "cloud": HERE,
        "begun": begun,
        "host": "old",
        "service": service,
        "nodes": [],
        "aggregates": [],
        "providers": [],
        **parts,
    }


def _aggregates(*names: str) -> list[dict[str, t.Any]]:
    return [{"uuid": name, "name": name, "zone": None} for name in names]


UP = _service(state="up")
DOWN = _service()
DISABLED = _service(status="disabled", reason=OWN[0])
OTHER = _service("s-2")


@pytest.mark.parametrize(
    ("service", "begun", "now", "expected"),
    [
        # The present state counts, whatever a run has begun.
        (UP, False, UP, ("now", None)),
        (UP, True, UP, ("now", None)),
        (UP, False, DOWN, ("now", None)),
        (UP, True, DISABLED, ("now", None)),
        (UP, True, DOWN, ("now", None)),
        # Another machine has the name.
        (UP, True, OTHER, ("now", "then")),
        (UP, False, OTHER, ("now", "then")),
        (None, True, OTHER, ("now", "then")),
        # The service is gone or its cell does not answer: there is less to see than there was.
        (UP, True, None, ("then", None)),
        (UP, False, None, ("then", None)),
        (UP, False, _service(None), ("then", None)),
        # A tree without a service never had more than the tree.
        (None, False, None, ("now", None)),
    ],
)
def test_the_record_that_counts(
    service: t.Any, begun: bool, now: t.Any, expected: tuple[str, str | None]
) -> None:
    earlier = HostRecords(_record("then", service, begun), seen=service)
    records = choose_records(earlier, _record("now", now), OWN)

    assert records.record is not None
    former = records.former and records.former["taken_at"]
    assert (records.record["taken_at"], former) == expected


def test_a_tree_that_is_partly_deleted_keeps_its_record() -> None:
    whole = _record("then", None, providers=[{"uuid": "root"}, {"uuid": "child"}])
    part = _record("now", None, providers=[{"uuid": "root"}])

    assert choose_records(HostRecords(whole), part, OWN).record == whole


@pytest.mark.parametrize(
    ("now", "status"),
    [
        (_service(status="disabled", reason=OWN[0]), "enabled"),
        (_service(status="disabled", reason=OWN[1]), "enabled"),
        # A person has disabled it since.
        (_service(status="disabled", reason="broken fan"), "disabled"),
        (_service(status="disabled"), "disabled"),
    ],
)
def test_what_a_run_did_to_the_service_is_not_what_the_host_had(now: t.Any, status: str) -> None:
    records = choose_records(HostRecords(_record("then", UP), seen=UP), _record("now", now), OWN)

    assert records.record is not None and records.record["service"] is not None
    assert (records.record["taken_at"], records.record["service"]["status"]) == ("now", status)


@pytest.mark.parametrize(
    ("changes", "now", "aggregates", "expected"),
    [
        # The deletion was interrupted, and the run that continues it knows what it has removed.
        ({}, DISABLED, ["gpu"], ["ssd", "gpu"]),
        ({}, DISABLED, [], ["ssd", "gpu"]),
        ({}, _service(status="disabled", state="up", reason=OWN[0]), [], ["ssd", "gpu"]),
        # It had only been checked.
        ({"begun": False}, DISABLED, [], []),
        # The host was taken into service, or somebody has changed its service or its aggregates.
        ({}, UP, [], []),
        ({}, DOWN, [], []),
        ({}, _service(status="disabled", reason="broken fan"), [], []),
        ({}, DISABLED, ["new"], ["new"]),
    ],
)
def test_only_an_interrupted_deletion_adds_to_the_present_state(
    changes: dict[str, t.Any], now: t.Any, aggregates: list[str], expected: list[str]
) -> None:
    root = {"uuid": "root", "traits": ["NEW"], "aggregates": ["ssd", "gpu"]}
    before = _record("then", UP, **{"begun": True, **changes})
    before.update(aggregates=_aggregates("ssd", "gpu"), providers=[{**root, "traits": ["OLD"]}])
    current = _record("now", now, aggregates=_aggregates(*aggregates))
    current["providers"] = [{**root, "aggregates": aggregates}]

    record = choose_records(HostRecords(before, seen=DISABLED), current, OWN).record

    assert record is not None
    assert [entry["name"] for entry in record["aggregates"]] == expected
    # What somebody changed at the provider meanwhile counts in any case.
    assert record["providers"][0]["traits"] == ["NEW"]
    assert record["begun"] is (expected == ["ssd", "gpu"])


def test_a_record_of_2_0_0_began_with_the_first_check_and_adds_nothing() -> None:
    before = _record("then", UP, begun=True, aggregates=_aggregates("ssd"))
    del before["cloud"]

    record = choose_records(HostRecords(before, seen=DISABLED), _record("now", DISABLED), OWN)

    assert record.record is not None and record.record["aggregates"] == []


def test_the_first_record_keeps_a_former_one() -> None:
    former = _record("before", OTHER)

    assert choose_records(HostRecords(None, former), _record("now", UP), OWN) == HostRecords(
        _record("now", UP), former
    )
    assert choose_records(HostRecords(_record("then", UP), former), _record("now", UP), OWN).former


@pytest.mark.parametrize("is_deleting", [True, False])
def test_a_record_says_whether_the_deletion_begins(is_deleting: bool) -> None:
    document: t.Any = {"host": "old", "service": UP, "nodes": [], "aggregates": []}
    record = build_record(document, [], "now", is_deleting, HERE)

    assert (record["begun"], record["cloud"]) == (is_deleting, HERE)


@pytest.mark.parametrize("field", ["region", "placement_endpoint"])
@pytest.mark.parametrize("place", ["record", "former_record"])
def test_a_record_of_another_cloud_is_refused(field: str, place: str) -> None:
    hosts = [{"name": "old", place: {**_record("then", UP), "cloud": {**HERE, field: "other"}}}]

    with pytest.raises(InvalidInput, match=r"another cloud.*host_decommission_output_dir"):
        read_records({"hosts": hosts}, "old", HERE)


@pytest.mark.parametrize("is_now", [True, False])
def test_a_region_that_is_named_only_once_is_told_by_the_endpoint_of_its_nova(is_now: bool) -> None:
    """Several regions can have one Placement."""
    nameless = {**HERE, "region": None}
    clouds = [nameless, HERE] if is_now else [HERE, nameless]
    record = _record("then", UP, cloud=clouds[0])

    require_same_cloud(record, clouds[1])

    with pytest.raises(InvalidInput, match="the record names"):
        require_same_cloud(record, {**clouds[1], "compute_endpoint": "http://nova.region-two"})


def test_records_are_read_from_the_file_of_the_host() -> None:
    record, former = _record("then", UP), _record("before", None)
    hosts = [
        {"name": "new"},
        {"name": "old", "service": DOWN, "record": record, "former_record": former},
    ]

    names = frozenset({"old"})
    found = read_records({"hosts": hosts}, "old", HERE)
    assert found == HostRecords(record, former, name="old", existed=True, seen=DOWN, names=names)
    # An older version, another host, and a host of which nothing was known.
    assert read_records({"hosts": hosts}, "new", HERE) == HostRecords(name="new")
    assert read_records({"hosts": []}, "old", HERE) == HostRecords()


def test_records_are_found_by_the_name_of_the_service_too() -> None:
    host = {"name": "old.example.org", "host": "old", "known": True, "agents": [{"uuid": "a"}]}
    hosts = [{**host, "nodes": [], "providers": [], "record": _record("then", UP)}]

    for name in ("old.example.org", "old"):
        found = read_records({"hosts": hosts}, name, HERE)
        assert (found.name, found.existed, found.had_agents) == ("old.example.org", True, True)


def _read_roots(root: str, node: str = "old.example.org") -> HostRecords:
    record = _record("then", UP, nodes=[{"uuid": "n", "name": node}], providers=[{"root": root}])
    # A later look, without its service, has lost the name of its compute node.
    look = {"name": "old", "host": "old", "nodes": [], "providers": []}
    return read_records({"hosts": [{**look, "record": record}]}, "old", HERE)


@pytest.mark.parametrize("name", ["old", "old.example.org"])
@pytest.mark.parametrize("trait", ["COMPUTE_NODE", "OWNER_NOVA"])
def test_a_recorded_root_with_a_name_of_the_host_is_the_hosts(name: str, trait: str) -> None:
    records = _read_roots("root")

    assert records.is_root(Provider("root", name, 1, "root", None), [trait])
    # Not one of the record, or a sharing provider.
    assert not records.is_root(Provider("other", name, 1, "other", None), [trait])
    assert not records.is_root(Provider("root", name, 1, "root", None, sharing=True), [trait])


@pytest.mark.parametrize(
    ("name", "traits"), [("sriov-pool", ["COMPUTE_NODE"]), ("old", ["CUSTOM_BAR"]), ("old", [])]
)
def test_a_foreign_provider_in_a_record_is_refused(name: str, traits: list[str]) -> None:
    """The file `host.json` was made by hand, and the provider would be deleted."""
    with pytest.raises(InvalidInput, match="has no name"):
        _read_roots("root").is_root(Provider("root", name, 1, "root", None), traits)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"hosts": None},
        {"hosts": ["old"]},
        {"hosts": [{"name": "old", "record": []}]},
        {"hosts": [{"name": "old", "host": "old", "nodes": []}]},
        {"hosts": [{"name": "old", "record": {"taken_at": "now"}}]},
        {"hosts": [{"name": "old", "record": _record("now", "s-1")}]},
        {"hosts": [{"name": "old", "record": _record("now", {"id": "s-1"})}]},
        {"hosts": [{"name": "old", "record": _record("now", UP, cloud="here")}]},
        {"hosts": [{"name": "old", "record": _record("now", UP, cloud={"region": "x"})}]},
    ],
)
def test_anything_else_is_refused(document: t.Any) -> None:
    with pytest.raises(InvalidInput, match="compute_host_info wrote"):
        read_records(document, "old", HERE)


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


def _former(service: str = "old", zone: str = "az1") -> dict[str, t.Any]:
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


def _describe(**host: t.Any) -> dict[str, t.Any]:
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
    record = parse_former_host(_describe(record=_former(), former_record=None), HOST, "new", HERE)

    assert record is not None and record.provider is not None
    assert (record.node, record.zone) == (NODE, "az1")
    assert [aggregate.name for aggregate in record.aggregates] == ["ssd"]
    assert "CUSTOM_SSD" in record.provider.traits
    assert record.provider.inventories["VCPU"].allocation_ratio == 4.0


def test_record_of_the_present_life_gives_way_to_the_former_one() -> None:
    present, former = _former("new", "nova"), _former("old", "az1")
    document = _describe(record=present, former_record=former)
    record = parse_former_host(document, HOST, "new", HERE)

    assert record is not None and record.zone == "az1"
    alone = _describe(record=present, former_record=None)
    assert parse_former_host(alone, HOST, "new", HERE) is None


def test_host_without_a_service_has_no_present_life() -> None:
    record = parse_former_host(_describe(record=_former(), former_record=None), HOST, None, HERE)

    assert record is not None


def test_file_without_records_has_the_host_aggregates() -> None:
    record = parse_former_host(_describe(), HOST, "new", HERE)

    assert record is not None
    assert (record.zone, record.disabled_reason, record.provider) == ("az1", "broken", None)
    assert parse_former_host(_describe(), HOST, "old", HERE) is None
    assert parse_former_host(_describe(known=False), HOST, "new", HERE) is None


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"format": 2, "hosts": []},
        {"format": 1, "hosts": []},
        {"format": 1, "hosts": [{}]},
        {"format": 1},
        _describe(name="compute-2", host="compute-2"),
        _describe(record={"host": HOST}),
        _describe(record={**_former(), "providers": [{"uuid": NODE, "traits": ["x y"]}]}),
        _describe(record=[]),
    ],
)
def test_anything_else_is_no_former_host(document: t.Any) -> None:
    with pytest.raises(InvalidInput):
        parse_former_host(document, HOST, "new", HERE)


def test_a_record_names_its_cloud_and_is_refused_in_another_one() -> None:
    named = {**_former(), "cloud": HERE}
    document = _describe(record=named, former_record=None)
    found = parse_former_host(document, HOST, "new", HERE)
    plain = parse_former_host(_describe(record=_former(), former_record=None), HOST, "new", HERE)

    assert found is not None and found.names_cloud and found.names == {HOST}
    # One of 2.0.0 does not, and only a person can know.
    assert plain is not None and not plain.names_cloud
    for field in ("region", "placement_endpoint"):
        with pytest.raises(InvalidInput, match="of another cloud"):
            parse_former_host(document, HOST, "new", {**HERE, field: "other"})
