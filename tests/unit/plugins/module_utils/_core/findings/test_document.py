"""The contents of `findings.json`.

Counts, amounts, and every finding with its evidence and its change.
"""

import dataclasses as d
import json
import typing as t

import pytest

from .......plugins.module_utils._core.findings.entries import FORMAT
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope
from ...judging import NO_MINIMUM_AGE, build_findings
from ...world import ASKED_AT, CLAIM, NOW, OLD, PROJECT, World, answer


class Cloud:
    """Two hosts with an orphan of a deleted server and one of an evacuation.

    And with one consumer of each other verdict.
    """

    def __init__(self) -> None:
        self.world = World()
        self.here = self.world.host("compute-1")
        self.there = self.world.host("compute-2")
        self.child = self.world.provider("compute-1_pci", self.here)
        self.deleted = self.world.server(self.here, self.here)
        self.world.hold(self.deleted, self.child, amounts={"VF": 2})
        self.world.delete(self.deleted)
        self.evacuated = self.world.server(self.there, self.here, self.there)
        self.evacuation = self.world.migration(
            self.evacuated, self.here, self.there, "done", type="evacuation"
        )
        self.building = self.world.server(None, self.here, status="BUILD", task_state="scheduling")
        self.astray = self.world.server(self.here, self.there, node="elsewhere")
        self.moved = self.world.server(self.here, self.there)

    def report(self, **changes: t.Any) -> dict[str, t.Any]:
        return build_findings(self.world.snapshot(**changes), NO_MINIMUM_AGE)


@pytest.fixture(name="cloud")
def _cloud() -> Cloud:
    return Cloud()


def _entry(found: dict[str, t.Any], consumer: str) -> dict[str, t.Any]:
    return next(
        entry
        for key in ("findings", "protected", "undecided")
        for entry in found[key]
        if entry["consumer"] == consumer
    )


def test_document_has_its_format_cloud_versions_and_time(cloud: Cloud) -> None:
    versions = {"collection": "2.0.0", "ansible_core": "2.21.5", "openstacksdk": "4.22.0"}
    found = build_findings(cloud.world.snapshot(), NO_MINIMUM_AGE, versions=versions)

    assert (found["format"], found["started_at"], found["finished_at"]) == (FORMAT, NOW, NOW)
    assert found["cloud"]["placement_endpoint"] == "http://placement"
    assert found["versions"] == versions
    assert cloud.report()["versions"] == dict.fromkeys(versions, "")


def test_every_finding_is_listed_and_counted_under_its_verdict(cloud: Cloud) -> None:
    found = cloud.report()
    kinds = {entry["consumer"]: entry["kind"] for entry in found["findings"]}

    assert kinds == {
        cloud.deleted: "deleted_server",
        cloud.evacuated: "evacuated_source",
        cloud.moved: "misplaced_allocation",
    }
    for verdict, consumer in (("protected", cloud.building), ("undecided", cloud.astray)):
        assert [(entry["consumer"], entry["change"]) for entry in found[verdict]] == [
            (consumer, None)
        ]
    summary = found["summary"]
    assert summary["verdicts"] == {"orphaned": 2, "drifted": 1, "protected": 1, "undecided": 1}
    assert summary["kinds"] == dict.fromkeys(kinds.values(), 1)


def test_stranded_amounts_are_summed_by_class_provider_and_project(cloud: Cloud) -> None:
    twice, thrice = (
        {resource_class: times * amount for resource_class, amount in CLAIM.items()}
        for times in (2, 3)
    )

    assert cloud.report()["summary"]["stranded"] == {
        "resource_classes": {**thrice, "VF": 2},
        "allocated": {"DISK_GB": 6, "MEMORY_MB": 3072, "VCPU": 6, "VF": 2},
        "share_of_claimed": {"DISK_GB": 0.5, "MEMORY_MB": 0.5, "VCPU": 0.5, "VF": 1.0},
        "providers": {"compute-1": twice, "compute-1_pci": {"VF": 2}, "compute-2": CLAIM},
        "projects": {PROJECT: {**thrice, "VF": 2}},
        "quota": {
            PROJECT: {
                **{"name": "", "exists": None, "consumers": 3, "cores": 3, "ram_mib": 1536},
                "resource_classes": {**thrice, "VF": 2},
            }
        },
    }


def test_document_without_findings_is_empty() -> None:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    found = build_findings(world.snapshot(), NO_MINIMUM_AGE)

    assert set(found["summary"]["verdicts"].values()) == {0}
    assert not any(found["summary"]["stranded"].values())
    assert found["findings"] == found["protected"] == found["undecided"] == []


def test_coverage_says_how_much_was_read(cloud: Cloud) -> None:
    assert cloud.report()["summary"]["coverage"] == {
        "scope": "the whole cloud",
        "reading": "full",
        "full_at": "2026-11-20T12:00:00Z",
        "why_full": "",
        "complete": True,
        "partial": False,
        "failed_checks": [],
        "failed_check_ids": [],
        "not_provable": [],
        "unread": [],
        "silent_hosts": 0,
        "unjudged_hosts": [],
        "hosts_without_service": [],
        "retried": 0,
        "providers": 3,
        "consumers": 5,
        "servers": 0,
        "hypervisors": 2,
        "looked_at_closely": 5,
        "left_out": 0,
        "amounts": {
            "servers": 3,
            "checked": 2,
            "by_server": 2,
            "by_host": 0,
            "unchecked": {"tree": 1},
        },
    }


@pytest.mark.parametrize("listing", ["services_after", "hypervisors"])
def test_unsound_reading_is_incomplete_and_says_why(cloud: Cloud, listing: str) -> None:
    coverage = cloud.report(**{listing: answer(f"GET {listing}", 500)})["summary"]["coverage"]

    assert coverage["complete"] is False and coverage["failed_checks"]
    assert coverage["hypervisors"] == (0 if listing == "hypervisors" else 2)


def test_consumer_without_project_is_listed_under_an_empty_name(cloud: Cloud) -> None:
    """JSON knows no other key that could be sorted among names."""
    held, deleted = cloud.world.allocations, cloud.world.deleted
    held[cloud.deleted] = d.replace(held[cloud.deleted], project=None)
    deleted[cloud.deleted] = d.replace(deleted[cloud.deleted], project=None)

    assert cloud.report()["summary"]["stranded"]["projects"] == {
        "": {**CLAIM, "VF": 2},
        PROJECT: {cls: 2 * amount for cls, amount in CLAIM.items()},
    }


def test_owner_is_that_of_the_server_and_the_quota_that_of_placement(cloud: Cloud) -> None:
    """A removal changes what Placement counts, and it counts by the project that it has."""
    held = cloud.world.allocations
    held[cloud.evacuated] = d.replace(held[cloud.evacuated], project="zero")
    report = cloud.report()

    owners = {entry["consumer"]: entry["project"] for entry in report["findings"]}
    assert set(owners.values()) == {PROJECT}
    stranded = report["summary"]["stranded"]
    assert set(stranded["projects"]) == {PROJECT}
    cores = {project: each["cores"] for project, each in stranded["quota"].items()}
    assert cores == {PROJECT: 2, "zero": 1}


def test_entry_shows_allocations_and_what_would_be_removed(cloud: Cloud) -> None:
    keys = ("name", "root", "root_name", "resources", "dropped")
    told = {
        provider["uuid"]: tuple(provider[key] for key in keys)
        for consumer in (cloud.evacuated, cloud.deleted)
        for provider in _entry(cloud.report(), consumer)["providers"]
    }

    assert told == {
        cloud.here: ("compute-1", cloud.here, "compute-1", CLAIM, True),
        cloud.there: ("compute-2", cloud.there, "compute-2", CLAIM, False),
        cloud.child: ("compute-1_pci", cloud.here, "compute-1", {"VF": 2}, True),
    }


def test_allocations_are_listed_in_the_order_of_the_providers(cloud: Cloud) -> None:
    stranger = cloud.world.stranger(cloud.child, cloud.there, cloud.here)

    assert [provider["uuid"] for provider in _entry(cloud.report(), stranger)["providers"]] == [
        cloud.here,
        cloud.there,
        cloud.child,
    ]


def test_provider_missing_from_the_listing_is_named_by_its_uuid(cloud: Cloud) -> None:
    del cloud.world.providers[cloud.child]
    providers = {each["uuid"]: each for each in _entry(cloud.report(), cloud.deleted)["providers"]}
    told = providers[cloud.child]

    assert (told["name"], told["root"], told["root_name"]) == (cloud.child, None, cloud.child)


def test_entry_shows_owner_and_age(cloud: Cloud) -> None:
    entry = _entry(cloud.report(), cloud.deleted)
    keys = ("id", "project", "user", "type", "generation", "age_seconds")

    assert [entry[key] for key in keys] == [
        *(f"deleted_server/{cloud.deleted}", PROJECT, "user", None, 1, OLD)
    ]


def test_entry_names_the_server_and_the_migration_that_explain_it(cloud: Cloud) -> None:
    found = cloud.report()
    evacuated, deleted = (_entry(found, each) for each in (cloud.evacuated, cloud.deleted))

    assert evacuated["server"]["host"] == "compute-2"
    assert evacuated["migration"]["uuid"] == cloud.evacuation
    assert (deleted["server"]["status"], deleted["migration"]) == ("DELETED", None)


def test_evidence_can_be_replayed(cloud: Cloud) -> None:
    evidence = {
        answer["request"].split()[0]: answer
        for answer in _entry(cloud.report(), cloud.deleted)["evidence"]
    }

    assert evidence["server"] == {
        "request": f"server {cloud.deleted}",
        "microversion": "2.68",
        "status": 404,
        "at": ASKED_AT,
        "facts": None,
    }
    assert evidence["deleted_listing"]["facts"][0]["uuid"] == cloud.deleted


def test_evidence_begins_with_the_allocation(cloud: Cloud) -> None:
    findings = cloud.report()["findings"]

    assert findings
    for entry in findings:
        first = entry["evidence"][0]
        assert (first["request"], first["facts"]["consumer"]) == (
            f"GET /allocations/{entry['consumer']}",
            entry["consumer"],
        )


@pytest.mark.parametrize(("others", "facts"), [(8, list), (9, dict)])
def test_listing_of_more_than_ten_rows_is_shortened_to_its_length(
    cloud: Cloud, others: int, facts: type
) -> None:
    stranger = cloud.world.stranger(cloud.here)
    for number in range(others):
        cloud.world.host(f"other-{number}")
    (listing,) = (
        part
        for part in _entry(cloud.report(), stranger)["evidence"]
        if "os-hypervisors" in part["request"]
    )

    assert isinstance(listing["facts"], facts)
    assert len(listing["facts"]) == 10 if facts is list else listing["facts"] == {"rows": 11}


def test_change_has_its_write_and_what_it_frees(cloud: Cloud) -> None:
    entry = _entry(cloud.report(), cloud.evacuated)
    document = {"consumer_generation": 1, "project_id": PROJECT, "user_id": "user"}

    assert entry["change"] == {
        "action": "reduce",
        "consumer": cloud.evacuated,
        "generation": 1,
        "before": {
            **document,
            "allocations": {cloud.here: {"resources": CLAIM}, cloud.there: {"resources": CLAIM}},
        },
        "after": {**document, "allocations": {cloud.there: {"resources": CLAIM}}},
        "frees": {cloud.here: CLAIM},
        "claims": {},
        "partner": None,
    }


def test_only_what_changes_a_named_host_is_selected(cloud: Cloud) -> None:
    """A server on a named host has left an allocation on another one."""
    here, there = cloud.world.providers[cloud.here].name, cloud.world.providers[cloud.there].name
    groups = HostGroups(availability_zones=("az-2",), hosts=(there,))
    selected = []
    for scope, tree in (
        (Scope(hosts=(here,)), cloud.here),
        (Scope(hosts=(there,)), cloud.there),
        (Scope(groups=groups), cloud.there),
        (Scope(hosts=(there,), consumers=(cloud.evacuated,)), cloud.there),
    ):
        entry = _entry(cloud.report(scope=scope, trees=(tree,)), cloud.evacuated)
        assert (entry["kind"], list(entry["change"]["frees"])) == ("evacuated_source", [cloud.here])
        selected.append(entry["selected"])

    assert selected == [True, False, False, True]
    assert _entry(cloud.report(), cloud.evacuated)["selected"]


def test_document_is_json_and_keeps_names_from_the_cloud(cloud: Cloud) -> None:
    name = '{{ 1 }} "quoted"\n\x1b[31m\u202e\x00' + "x" * 255
    cloud.world.delete(hostile := cloud.world.server(cloud.here, cloud.here, name=name))
    found = cloud.report()

    assert _entry(json.loads(json.dumps(found)), hostile)["server"]["name"] == name
