"""Which findings explain complaints of the hosts, and which complaints nothing explains."""

import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.plugin_utils._report.log_correlation import correlate_records, extract_records
from ...module_utils.world import World
from ..hostile import told

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
MIGRATION = "f2a1a8b4-6f0e-4a63-9f8f-1d2f9d3b7c55"
SERVER = "b32e5792-427c-43b1-83dc-2d3e3c8d74c4"


def entry(
    kind: str, consumer: str | None = None, server: str | None = None, roots: t.Sequence[str] = ()
) -> dict[str, t.Any]:
    providers = [{"name": f"{root}_port", "root_name": root} for root in roots] + [
        {"name": root, "root_name": root} for root in roots
    ]
    return {
        "id": f"{kind}/{consumer or server or roots[0]}",
        "consumer": consumer,
        "server": {"uuid": server} if server else None,
        "providers": providers,
    }


def findings(
    *found: t.Any, protected: t.Sequence[t.Any] = (), undecided: t.Sequence[t.Any] = ()
) -> dict[str, t.Any]:
    return {"findings": found, "protected": protected, "undecided": undecided}


def complaint(
    instance: str | None, host: str = "compute-1", kind: str = "not_managed", **facts: t.Any
) -> dict[str, t.Any]:
    return {"kind": kind, "host": host, "instance": instance, "provider": None, **facts}


def explained(found: dict[str, t.Any], *records: dict[str, t.Any]) -> list[str]:
    """Return the findings that explain these complaints."""
    correlated = correlate_records(found, records)
    used = [record for each in correlated["explained"].values() for record in each]
    assert all((record in used) != (record in correlated["unexplained"]) for record in records)
    return [finding for finding, each in correlated["explained"].items() for _record in each]


@pytest.mark.parametrize("where", ["findings", "protected", "undecided"])
def test_complaint_about_a_consumer_or_its_server_is_explained_by_any_entry(where: str) -> None:
    own = entry("ended_migration", MIGRATION, SERVER, ["compute-1", "compute-2"])
    found = {**findings(), where: [own]}

    assert (
        explained(found, complaint(MIGRATION)) == explained(found, complaint(SERVER)) == [own["id"]]
    )


def test_complaint_without_a_finding_is_kept() -> None:
    found = findings(entry("deleted_server", CONSUMER, roots=["compute-1"]))
    others = [
        complaint(SERVER),
        complaint(None, kind="power_state_counts"),
        complaint(None, kind="rpc_version_cap"),
    ]

    assert correlate_records(found, others) == {"explained": {}, "unexplained": others}


@pytest.mark.parametrize(
    ("root", "host", "same"),
    [
        ("compute-1", "compute-1", True),
        ("compute-1.example.org", "compute-1", True),
        ("compute-1", "compute-1.example.org", True),
        ("compute-1.example.org", "compute-1.example.org", True),
        ("compute-1.example.org", "compute-1.example.com", False),
        ("compute-1", "compute-11", False),
        ("compute-1", "", False),
    ],
)
def test_host_explains_only_complaints_about_its_own_allocations(
    root: str, host: str, same: bool
) -> None:
    found = findings(entry("deleted_server", CONSUMER, roots=[root]))

    assert bool(explained(found, complaint(CONSUMER, host))) is same


def test_entry_without_providers_is_explained_by_any_host() -> None:
    found = findings(entry("missing_allocation", server=SERVER))

    assert len(explained(found, complaint(SERVER, "compute-9"))) == 1


def test_complaints_and_entries_match_many_to_many() -> None:
    found = findings(
        entry("extra_host", SERVER, SERVER, ["compute-1"]),
        entry("ended_migration", MIGRATION, SERVER, ["compute-1"]),
    )

    assert explained(found, complaint(SERVER), complaint(MIGRATION)) == [
        f"extra_host/{SERVER}",
        f"ended_migration/{MIGRATION}",
        f"ended_migration/{MIGRATION}",
    ]


def test_taken_name_explains_the_provider_and_not_its_consumers() -> None:
    found = findings(
        entry("name_conflict", roots=["compute-1"]),
        entry("deleted_server", CONSUMER, roots=["compute-1"]),
    )
    conflict = complaint(
        None, kind="provider_conflict", provider={"uuid": SERVER, "name": "compute-1"}
    )

    assert explained(found, conflict) == ["name_conflict/compute-1"]


def test_findings_of_detection_can_be_joined() -> None:
    world = World()
    here = world.host("compute-1")
    world.delete(world.server(here, here))
    found = told(world)
    (orphan,) = found["findings"]
    complaints = [complaint(orphan["consumer"], f"compute-{number}") for number in (1, 2)]

    assert correlate_records(found, complaints) == {
        "explained": {orphan["id"]: complaints[:1]},
        "unexplained": complaints[1:],
    }


@pytest.mark.parametrize(
    "contents",
    [[], [complaint(SERVER)], {"records": [complaint(SERVER)], "changed": False, "sources": []}],
)
def test_records_are_read_from_a_list_or_a_result(contents: t.Any) -> None:
    assert extract_records(contents) == (
        contents if isinstance(contents, list) else contents["records"]
    )


@pytest.mark.parametrize(
    "contents",
    [
        None,
        7,
        "records",
        {},
        {"records": {}},
        [SERVER],
        [{"kind": "not_managed"}],
        [complaint(SERVER, host=7)],  # type: ignore[arg-type]
        [complaint([SERVER])],  # type: ignore[arg-type]
        [complaint(SERVER, provider="compute-1")],
        [complaint(SERVER, provider={"name": ["compute-1"]})],
        [complaint(SERVER, amounts=["VCPU"])],
        [complaint(SERVER, counts=2)],
    ],
)
def test_other_input_is_refused(contents: t.Any) -> None:
    with pytest.raises(InvalidInput):
        extract_records(contents)


def guest(kind: str, uuid: str, host: str = "compute-1") -> dict[str, t.Any]:
    return {"id": f"{kind}/{host}/{uuid}", "kind": kind, "uuid": uuid, "host": host}


def unexplained(guests: dict[str, t.Any], *records: dict[str, t.Any]) -> list[t.Any]:
    return correlate_records(findings(), records, guests)["unexplained"]


@pytest.mark.parametrize("where", ["findings", "protected", "undecided"])
@pytest.mark.parametrize("kind", ["leftover_domain", "leftover_directory", "running_leftover"])
def test_leftover_explains_complaints_about_its_server_on_its_host(where: str, kind: str) -> None:
    guests = {**findings(), where: [guest(kind, SERVER)]}
    elsewhere = complaint(SERVER, "compute-2")

    assert unexplained(guests, complaint(SERVER), elsewhere, complaint(CONSUMER)) == [
        elsewhere,
        complaint(CONSUMER),
    ]


@pytest.mark.parametrize(
    ("domains", "database", "hypervisor", "explains"),
    [(1, 1, 2, True), (2, 1, 2, True), (1, 1, 3, False), (1, 2, 1, False), (0, 1, 2, False)],
)
def test_domains_explain_how_many_more_a_hypervisor_has(
    domains: int, database: int, hypervisor: int, explains: bool
) -> None:
    found = [guest("leftover_domain", f"{number}") for number in range(domains)]
    guests = findings(*found, guest("leftover_directory", SERVER))
    counts = {"database": database, "hypervisor": hypervisor}
    record = complaint(None, kind="power_state_counts", counts=counts)

    assert (unexplained(guests, record) == []) == explains
    assert unexplained(guests, {**record, "host": "compute-2"})
