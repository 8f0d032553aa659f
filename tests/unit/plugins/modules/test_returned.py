"""The modules document all that they return.

Here it is checked for modules that need no cloud, and for documents of others. The integration
tests check every result of a module.
"""

import json
import typing as t
from pathlib import Path

import pytest

from .....plugins.module_utils._common.context import Context
from .....plugins.module_utils._core.facts.services import describe_services
from .....plugins.module_utils._core.findings.entries import ENTRY_LISTS
from .....plugins.module_utils._core.models.nova import Aggregate, Hypervisor, Migration, Service
from .....plugins.module_utils._core.models.other_services import OtherService
from .....plugins.module_utils._core.models.placement import (
    Allocation,
    Inventory,
    Provider,
    ProviderDetails,
)
from .....plugins.module_utils._core.options.policy import Policy
from .....plugins.module_utils._core.resources.allocations import (
    describe_allocation,
    describe_providers,
)
from .....plugins.module_utils._core.stages.plan import make_plan
from .....plugins.module_utils._hosts.deletion import Deleted
from .....plugins.module_utils._hosts.emptiness import Blocker, Contents
from .....plugins.module_utils._hosts.host import Host
from .....plugins.module_utils._hosts.host_record import HostRecords
from .....plugins.module_utils._hosts.host_report import HostReport, PartPolicy, describe_removal
from .....plugins.module_utils._hosts.migrations import describe_migration
from .....plugins.module_utils._hosts.parts import Agent, BoundPort, HostParts, NetworkParts
from ..module_utils.judging import build_findings
from ..module_utils.world import World
from .returned import MODULES, find_undocumented, read_documentation

FIXTURES = Path(__file__).parents[3] / "fixtures" / "report"
KINDS = [
    "deleted_server",
    "ended_migration",
    "evacuated_source",
    "extra_host",
    "missing_allocation",
    "orphaned_provider",
]
PARTS = ("inventories", "usages", "traits", "aggregates")


def _read(name: str) -> dict[str, t.Any]:
    document: dict[str, t.Any] = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    return document


def _write(folder: Path, document: dict[str, t.Any]) -> str:
    path = folder / "findings.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def _returned_by_detection(document: dict[str, t.Any]) -> dict[str, t.Any]:
    return {key: document[key] for key in ("summary", *ENTRY_LISTS)}


def _plan(**options: t.Any) -> dict[str, t.Any]:
    """Return what `orphan_plan` does, with its defaults for all other options."""
    defaults = {
        "findings": None,
        "plan": None,
        "kinds": KINDS,
        "heal": False,
        "scope": None,
        "dest": None,
        "output_dir": None,
        "max_changes": 100,
        "max_share": 1.0,
    }
    return make_plan(Context({**defaults, **options}, False, True, print))


@pytest.mark.parametrize("name", ["findings.json", "closed.json"])
def test_detection_documents_what_it_returned_for_the_report(name: str) -> None:
    assert find_undocumented("orphan_detect", _returned_by_detection(_read(name))) == []


@pytest.fixture
def document() -> dict[str, t.Any]:
    """Return what detection writes about a small cloud with findings of several kinds."""
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.delete(world.server(here, here))
    world.server(here, here, there)
    world.server(here)
    dead = world.host("compute-4")
    evacuated = world.server(there, dead, there)
    world.migration(evacuated, dead, there, "done", type="evacuation")
    world.stranger(here)
    world.remove_host(world.host("compute-3"))
    policy = Policy(min_age=0, unknown_min_age=0)
    written: dict[str, t.Any] = json.loads(json.dumps(build_findings(world.snapshot(), policy)))
    return written


def test_detection_documents_its_entries(document: dict[str, t.Any]) -> None:
    kinds = {entry["kind"] for entry in document["findings"]}
    assert kinds == {*KINDS, "unknown_consumer"} - {"ended_migration"}
    assert find_undocumented("orphan_detect", _returned_by_detection(document)) == []


def test_a_plan_is_documented(document: dict[str, t.Any], tmp_path: Path) -> None:
    findings = _write(tmp_path, document)
    planned = _plan(findings=findings)

    assert planned["changes"] and find_undocumented("orphan_plan", planned) == []
    packed = _plan(plan=planned["packed"])
    assert find_undocumented("orphan_plan", packed) == []
    healing = _plan(findings=findings, heal=True)
    assert healing["servers"] and find_undocumented("orphan_plan", healing) == []


def test_remediation_documents_its_outcomes() -> None:
    document = _read("remediation.json")
    returned = {key: document[key] for key in ("tally", "outcomes", "journal")}
    returned |= {"packed": "osops.placement.run:1:…", "versions": {"openstacksdk": "4.22.0"}}

    assert returned["outcomes"] and find_undocumented("orphan_remediate", returned) == []


def test_the_resources_of_a_cloud_are_documented() -> None:
    uuid = "f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08"
    providers = {uuid: Provider(uuid, "compute-1", 3, uuid, None)}
    inventory = Inventory(8, 0, 1, 8, 1, 4.0)
    details = {
        uuid: ProviderDetails(
            {"VCPU": inventory}, {"VCPU": 2}, frozenset({"COMPUTE_NODE"}), frozenset({uuid})
        )
    }
    allocation = Allocation(uuid, 1, "project", "user", None, {uuid: {"VCPU": 2}}, 60)
    migration = Migration(
        uuid, uuid, "resize", "error", "compute-1", "compute-1", None, None, None, None
    )
    service = Service("nova-compute", "compute-1", "enabled", "up")

    shown = {"providers": describe_providers(providers, details, PARTS), "unknown": []}
    assert find_undocumented("placement_provider_info", shown) == []
    allocations = [describe_allocation(allocation, providers)]
    for module in ("placement_allocation_info", "placement_allocation"):
        assert find_undocumented(module, {"allocations": allocations}) == []
    migrations = [describe_migration(migration, "2026-11-20T03:04:05Z")]
    assert find_undocumented("migration_info", {"migrations": migrations}) == []
    (described,) = describe_services([service])
    assert find_undocumented("compute_host_info", {"hosts": [{"service": described}]}) == []
    assert find_undocumented("compute_host", {"service": described}) == []


def test_a_host_and_its_deletion_are_documented() -> None:
    service = Service("nova-compute", "compute-1", "enabled", "up", id="s")
    node = Hypervisor("n", "compute-1", "compute-1", "up", "enabled", ())
    root = Provider("n", "compute-1", 3, "n", None)
    agent = Agent("a", "neutron-l3-agent", "L3 agent", "compute-1", alive=True)
    aggregate = Aggregate("g", "ssd", None, ("compute-1",), {"ssd": "true"}, 3)
    cinder = OtherService("block-storage", None, "cinder-volume", "compute-1", "enabled", "up")
    parts = HostParts(
        NetworkParts((agent,), (BoundPort("p", "compute:nova", "x"),)), (cinder,), (aggregate,)
    )
    report = HostReport(
        name="compute-1",
        contents=Contents(Host("compute-1", service, (node,), (root,))),
        parts=parts,
        records=HostRecords(),
        providers=(root,),
        blockers=(Blocker("service_up", "s", "", "It is up."),),
    )
    judged = {"refusal": "", "removal": describe_removal(report, PartPolicy())}
    deleted = Deleted([aggregate], service, [root], [agent])

    shown = {"hosts": [{**report.describe(), **judged}]}
    assert find_undocumented("compute_host_info", shown) == []
    assert find_undocumented("compute_host", {"deleted": deleted.describe()}) == []


@pytest.mark.parametrize("module", sorted(path.stem for path in MODULES.glob("*.py")))
def test_every_value_has_a_type_and_a_description(module: str) -> None:
    faults = list(_find_incomplete(read_documentation(module), ""))

    assert faults == []


def _find_incomplete(documented: dict[str, t.Any], path: str) -> t.Iterator[str]:
    for key, entry in documented.items():
        here = f"{path}{key}"
        if not {"description", "returned", "type"} <= set(entry):
            yield f"{here} lacks a description, a type, or when it is returned"
        if entry.get("type") == "list" and "elements" not in entry:
            yield f"{here} does not say of what it is a list"
        yield from _find_incomplete(entry.get("contains", {}), f"{here}.")


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        ({"more": 1}, "more is not documented"),
        ({"migrations": [{"more": 1}]}, "migrations[].more is not documented"),
        ({"migrations": {}}, "migrations is a dict and not a list"),
        ({"migrations": [{"uuid": 1}]}, "migrations[].uuid is a int and not a str"),
    ],
)
def test_the_check_finds_what_is_not_documented(result: dict[str, t.Any], fault: str) -> None:
    assert find_undocumented("migration_info", result) == [fault]
