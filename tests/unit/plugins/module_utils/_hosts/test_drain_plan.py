"""The packing never promises a place that is not there, and the plan says why a server stays."""

import dataclasses as d
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ......plugins.module_utils._core.models.nova import Aggregate, Flavor
from ......plugins.module_utils._hosts.drain_plan import (
    Packing,
    Parcel,
    build_drain_plan,
    summarize_plan,
)
from ......plugins.module_utils._hosts.draining import (
    LIVE,
    STAYS,
    DrainPlanDocument,
    DrainServer,
    DrainSettings,
    MoveOption,
    PredictionDocument,
    ServerGroup,
    Way,
)
from ......plugins.module_utils._hosts.move_ways import build_candidate_query, build_need
from ..drain_world import SOURCE, TINY, build_reading, build_server, build_service

PLENTY = {"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 1000}

AMOUNTS = st.fixed_dictionaries({"VCPU": st.integers(1, 5), "MEMORY_MB": st.integers(1, 5)})
SERVERS = st.lists(AMOUNTS, min_size=1, max_size=5)
FREE = st.dictionaries(
    st.sampled_from(["h1", "h2", "h3"]),
    st.fixed_dictionaries({"VCPU": st.integers(0, 8), "MEMORY_MB": st.integers(0, 8)}),
    max_size=3,
)


def build_parcels(
    servers: t.Sequence[t.Mapping[str, int]], free: t.Mapping[str, t.Mapping[str, int]]
) -> list[Parcel]:
    return [
        Parcel(
            f"s{number}",
            amounts,
            [
                MoveOption(host, {host: amounts})
                for host, left in free.items()
                if fits(amounts, left)
            ],
        )
        for number, amounts in enumerate(servers)
    ]


def pack(
    parcels: list[Parcel], free: t.Mapping[str, t.Mapping[str, int]], *groups: t.Any
) -> dict[str, str]:
    packing = Packing({host: dict(left) for host, left in free.items()}, *groups)
    packing.place_all(parcels)
    return packing.hosts


def fits(amounts: t.Mapping[str, int], free: t.Mapping[str, int]) -> bool:
    return all(free[cls] >= amount for cls, amount in amounts.items())


def is_possible(
    hosts: t.Mapping[str, str],
    parcels: t.Sequence[Parcel],
    free: t.Mapping[str, t.Mapping[str, int]],
) -> bool:
    """Return whether an assignment needs no more than is free on any host."""
    left = {host: dict(amounts) for host, amounts in free.items()}
    for parcel in parcels:
        if parcel.uuid not in hosts:
            continue
        for cls, amount in parcel.amounts.items():
            left[hosts[parcel.uuid]][cls] -= amount
    return all(amount >= 0 for amounts in left.values() for amount in amounts.values())


@given(SERVERS, FREE)
def test_what_is_packed_is_possible(
    servers: list[dict[str, int]], free: dict[str, dict[str, int]]
) -> None:
    parcels = build_parcels(servers, free)
    hosts = pack(parcels, free)

    assert is_possible(hosts, parcels, free)
    for parcel in parcels:
        if parcel.uuid in hosts:
            assert hosts[parcel.uuid] in {option.host for option in parcel.options}


@given(AMOUNTS, FREE)
def test_a_server_alone_fits_exactly_if_a_host_has_room(
    amounts: dict[str, int], free: dict[str, dict[str, int]]
) -> None:
    hosts = pack(build_parcels([amounts], free), free)

    assert bool(hosts) == any(fits(amounts, left) for left in free.values())


@given(st.lists(st.sampled_from(["h1", "h2", "h3"]), max_size=3), st.integers(1, 4))
def test_the_packing_keeps_anti_affinity(taken: list[str], count: int) -> None:
    members = [f"s{number}" for number in range(count)]
    places = {f"other-{number}": host for number, host in enumerate(taken)}
    group = ServerGroup("g", "g", "anti-affinity", (*members, *places))
    free = dict.fromkeys(("h1", "h2", "h3"), PLENTY)
    places |= dict.fromkeys(members, SOURCE)
    hosts = pack(build_parcels([{"VCPU": 1}] * count, free), free, [group], places, SOURCE)

    used = [*hosts.values(), *set(taken)]
    assert len(used) == len(set(used))
    assert len(hosts) == min(count, 3 - len(set(taken)))


def plan(
    servers: t.Sequence[DrainServer], free: t.Mapping[str, t.Mapping[str, int]], **changes: t.Any
) -> DrainPlanDocument:
    return build_drain_plan(build_reading(servers, free, **changes), DrainSettings())


def predict(server: DrainServer, **changes: t.Any) -> PredictionDocument:
    free = {"compute-2": PLENTY, "compute-3": PLENTY}
    (prediction,) = plan([server], free, **changes)["servers"]
    return prediction


def test_a_server_may_go_wherever_there_is_room() -> None:
    prediction = predict(build_server())

    assert prediction["how"] == LIVE
    assert prediction["hosts"] == ["compute-2", "compute-3"]
    assert prediction["to"] in prediction["hosts"]


@pytest.mark.parametrize(
    "changes",
    [{"status": "disabled"}, {"state": "down"}, {"forced_down": True}, {"status": "UNKNOWN"}],
)
def test_a_host_that_the_scheduler_does_not_select_is_left_out(changes: dict[str, t.Any]) -> None:
    services = [
        build_service(SOURCE),
        build_service("compute-2", **changes),
        build_service("compute-3"),
    ]

    assert predict(build_server(), services=services)["hosts"] == ["compute-3"]


def group(policy: str, *others: str) -> ServerGroup:
    return ServerGroup("g", "web", policy, ("uuid-of-web-1", *others))


GROUPS: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "apart": ("anti-affinity", {"m2": "compute-2"}, ["compute-3"]),
    "apart, and everywhere": ("anti-affinity", {"m2": "compute-2", "m3": "compute-3"}, []),
    "apart, with a member here": ("anti-affinity", {"m2": SOURCE}, ["compute-2", "compute-3"]),
    "together, and all here": ("affinity", {"m2": SOURCE}, []),
    "together, and alone": ("affinity", {}, []),
    "together, and one elsewhere": ("affinity", {"m2": "compute-3"}, ["compute-3"]),
    "softly apart": ("soft-anti-affinity", {"m2": "compute-2"}, ["compute-2", "compute-3"]),
    "softly together": ("soft-affinity", {"m2": "compute-2"}, ["compute-2", "compute-3"]),
}


@pytest.mark.parametrize(("policy", "others", "hosts"), GROUPS.values(), ids=GROUPS)
def test_hosts_that_a_server_group_allows(
    policy: str, others: dict[str, str], hosts: list[str]
) -> None:
    places = {"uuid-of-web-1": SOURCE, **others}

    prediction = predict(build_server(), groups=[group(policy, *others)], places=places)

    assert prediction["hosts"] == hosts
    if not hosts:
        assert prediction["how"] == STAYS
        assert f"web ({policy})" in prediction["reason"]


@pytest.mark.parametrize(
    ("policy", "others"),
    [
        ("soft-anti-affinity", {"m2": "compute-2", "m3": "compute-3"}),
        ("soft-affinity", {"m2": SOURCE}),
    ],
)
def test_a_soft_policy_that_is_violated_is_a_warning(policy: str, others: dict[str, str]) -> None:
    places = {"uuid-of-web-1": SOURCE, **others}

    prediction = predict(build_server(), groups=[group(policy, *others)], places=places)

    assert prediction["how"] == LIVE
    assert [text for text in prediction["warnings"] if f"group web ({policy})" in text]


def aggregate(*hosts: str, zone: str | None = None, **metadata: str) -> Aggregate:
    named = {name.replace("__", ":"): value for name, value in metadata.items()}
    return Aggregate(f"uuid-of-{'-'.join(hosts)}", "special", zone, hosts, named)


@pytest.mark.parametrize(
    ("metadata", "fields", "hosts"),
    [
        ({"filter_tenant_id": "other"}, {}, ["compute-3"]),
        ({"filter_tenant_id": "other, project"}, {}, ["compute-2", "compute-3"]),
        ({"filter_tenant_id_2": "other"}, {}, ["compute-3"]),
        ({"trait__CUSTOM_FAST": "required"}, {}, ["compute-3"]),
        (
            {"trait__CUSTOM_FAST": "required"},
            {"flavor": d.replace(TINY, extra_specs={"trait:CUSTOM_FAST": "required"})},
            ["compute-2", "compute-3"],
        ),
        ({"anything": "else"}, {}, ["compute-2", "compute-3"]),
    ],
)
def test_hosts_that_aggregates_keep_for_others(
    metadata: dict[str, str], fields: dict[str, t.Any], hosts: list[str]
) -> None:
    aggregates = [aggregate("compute-2", **metadata)]

    assert predict(build_server(**fields), aggregates=aggregates)["hosts"] == hosts


def test_placement_is_asked_for_the_zone_and_the_project() -> None:
    aggregates = [
        aggregate("compute-2", zone="az1"),
        aggregate("compute-3", zone="az2"),
        aggregate("compute-4", filter_tenant_id="project"),
    ]
    need = build_need(build_server(pinned_zone="az1"), None, aggregates)

    assert need is not None
    assert build_candidate_query(need) == {
        "resources": "DISK_GB:1,MEMORY_MB:512,VCPU:1",
        "required": "!COMPUTE_STATUS_DISABLED",
        "member_of": ["in:uuid-of-compute-2", "in:uuid-of-compute-4"],
        "limit": "1000",
    }


def test_a_server_that_is_not_plain_needs_what_it_has() -> None:
    flavor = d.replace(TINY, extra_specs={"hw:cpu_policy": "dedicated"})
    server = build_server(flavor=flavor)
    need = build_need(server, {"root": {"PCPU": 1, "MEMORY_MB": 512}, "pool": {"DISK_GB": 1}}, [])

    assert need is not None
    assert dict(need.resources) == {"DISK_GB": 1, "MEMORY_MB": 512, "PCPU": 1}


def test_servers_of_one_flavor_are_one_request() -> None:
    servers = [build_server(f"web-{number}") for number in range(30)]
    reading = build_reading(servers, {"compute-2": PLENTY})

    assert len(reading.candidates) == 1
    assert build_drain_plan(reading, DrainSettings())["fitting"] == 30


def test_the_summary_names_what_does_not_fit() -> None:
    big = build_server("db-7", flavor=Flavor(4, 524288, 1, 0, 0, {}))
    servers = [build_server("web-1"), build_server("web-2"), big]
    reading = build_reading(servers, {"compute-2": PLENTY})
    need = reading.get_need(big)
    assert need is not None
    reading = d.replace(reading, shortages={need: ["MEMORY_MB"]})

    document = build_drain_plan(reading, DrainSettings())

    (reason,) = (entry["reason"] for entry in document["servers"] if entry["name"] == "db-7")
    assert "512 GiB of memory" in reason
    assert document["summary"].startswith("2 of 3 ") and f"(db-7: {reason})" in document["summary"]


def test_the_summary_says_each_reason_once() -> None:
    def stay(name: str, reason: str) -> t.Any:
        return {"name": name, "how": STAYS, "to": None, "reason": reason}

    dead = [stay(f"web-{number}", "compute-1 is down") for number in range(5)]
    others = [stay(f"db-{number}", f"reason {number}") for number in range(4)]

    names = "web-0, web-1, web-2 and 2 more"
    reasons = "; ".join(f"db-{number}: reason {number}" for number in range(3))

    assert summarize_plan("compute-1", dead).endswith(f" ({names}: compute-1 is down).")
    assert summarize_plan("compute-1", [*others, *dead]).endswith(f" ({reasons}; and 6 more).")


def test_servers_that_only_fit_alone_are_said_to() -> None:
    servers = [build_server("web-1"), build_server("web-2")]
    room = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    document = plan(servers, {"compute-2": room})

    assert (document["movable"], document["fitting"]) == (2, 1)
    assert [entry["to"] for entry in document["servers"]] == ["compute-2", None]
    assert "together" in document["servers"][1]["warnings"][-1]


def test_what_the_cloud_lacks_without_the_host() -> None:
    document = plan(
        [build_server()],
        {"compute-2": PLENTY},
        services=[build_service(SOURCE, zone="az1"), build_service("compute-2")],
        service=build_service(SOURCE, zone="az1"),
        aggregates=[aggregate(SOURCE), aggregate(SOURCE, "compute-2")],
        last_traits={"CUSTOM_FAST": ["fast.large"]},
    )

    named = ("zone az1", "Aggregate special", "CUSTOM_FAST")
    for text, name in zip(document["warnings"], named, strict=True):
        assert name in text
    assert "fast.large" in document["warnings"][-1]


def test_an_empty_host_says_so() -> None:
    assert plan([], {})["summary"] == f"No server is on {SOURCE}."


def test_a_server_stays_for_what_only_its_allocation_or_the_journal_shows() -> None:
    servers = [build_server("odd"), build_server("parked", "SUSPENDED"), build_server("fine")]
    odd = Way(STAYS, "its allocation is elsewhere", "look there first")
    obstacles = {"uuid-of-odd": odd, "uuid-of-parked": odd}

    document = plan(servers, {"compute-2": PLENTY}, obstacles=obstacles)

    entries = {entry["name"]: entry for entry in document["servers"]}

    assert (entries["odd"]["how"], entries["odd"]["reason"]) == (STAYS, odd.reason)
    assert entries["odd"]["advice"] == odd.advice
    # What the server itself is comes first.
    assert "SUSPENDED" in entries["parked"]["reason"]
    assert entries["fine"]["how"] != STAYS


def test_a_server_stays_where_nova_may_send_it_back_to_be_destroyed() -> None:
    server = build_server("a")
    reading = build_reading([server], {"h1": PLENTY})
    (entry,) = build_drain_plan(
        d.replace(reading, returning={server.uuid: ["h1"]}), DrainSettings()
    )["servers"]

    assert (entry["how"], entry["hosts"]) == (STAYS, [])
    assert "evacuated from h1" in entry["reason"]
    # Another evacuated server may be on h1 again, and a restart would destroy it.
    assert "restart nova-compute on h1" not in entry["advice"]
    assert "host_decommission_target=h1" in entry["advice"]
