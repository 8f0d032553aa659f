"""A tree was deleted and nova-compute creates it again.

Its aggregates and the operators' traits return, and nothing else does.
"""

import json
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .interposer import Wires
from .strays import NO_AGE
from .support import Aggregate, Ansible, Minicloud, Placement
from .world import World

OWN_CLOUD = True

STOCK = {"VCPU": {"total": 8}}
# A trait that no driver of the minicloud reports.
STALE = {"COMPUTE_GRAPHICS_MODEL_VGA", "HW_CPU_X86_AVX2", "COMPUTE_STATUS_DISABLED"}
LICENSED, DISK, CARD = "CUSTOM_LICENSED", "STORAGE_DISK_SSD", "CUSTOM_CARD"


@pytest.fixture(scope="module", autouse=True)
def _one_nova(minicloud: Minicloud, world: World) -> Iterator[None]:
    """Where another region has a Nova on the same Placement, no tree is deleted."""
    minicloud.scenario("healthy")
    with world.one_region():
        yield


@pytest.fixture(autouse=True)
def _traits(placement: Placement) -> None:
    for trait in (LICENSED, CARD):
        placement.change("PUT", f"/traits/{trait}")


@pytest.fixture
def host(world: World) -> str:
    name = f"again-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    return name


@pytest.fixture
def aggregate(world: World) -> Iterator[Aggregate]:
    with Aggregate(world.cloud, f"racks {uuid.uuid4()}") as aggregate:
        yield aggregate


def _add(placement: Placement, provider: str, part: str, names: t.Iterable[str]) -> None:
    path = f"/resource_providers/{provider}/{part}"
    now = placement.get(path)
    generation = now["resource_provider_generation"]
    placement.change(
        "PUT",
        path,
        {"resource_provider_generation": generation, part: sorted({*now[part], *names})},
    )


def _has(placement: Placement, provider: str, part: str) -> set[str]:
    return set(placement.get(f"/resource_providers/{provider}/{part}")[part])


def _without_service(world: World, host: str) -> None:
    """Let a host die and Nova delete its service while a consumer has an allocation.

    Its provider stays.
    """
    stray = world.claim(host)
    world.kill(host)
    world.delete_service(host)
    world.hold(stray, {})


def _clean_up(ansible: Ansible, folder: Path, host: str, kind: str) -> list[dict[str, t.Any]]:
    """Remove the one finding of this kind on a host, and return the records of the journal."""
    plan, findings = str(folder / "plan.json"), str(folder / "findings.json")
    ansible.direct("orphan_detect", hosts=[host], dest=findings, **NO_AGE)
    ansible.direct("orphan_plan", findings=findings, kinds=[kind], dest=plan)
    result = ansible.direct("orphan_remediate", plan=plan, output_dir=str(folder), **NO_AGE)
    assert result["tally"]["removed"] == 1 and not result["failed"], result
    return [json.loads(line) for line in Path(result["journal"]).read_text().splitlines()]


def _offered(placement: Placement, aggregate: str) -> set[str]:
    """Return the providers that the scheduler is offered in an aggregate."""
    asked = f"/allocation_candidates?resources=VCPU:1,MEMORY_MB:64&member_of={aggregate}"
    return {
        provider
        for request in placement.get(asked)["allocation_requests"]
        for provider in request["allocations"]
    }


def _await_made(world: World, placement: Placement, host: str) -> str:
    """Wait until nova-compute has created the provider of a host again and reported its traits.

    Returns its uuid.
    """

    def made() -> str | None:
        root = placement.providers().get(host)
        return root if root and "COMPUTE_NODE" in _has(placement, root, "traits") else None

    return world.wait(f"nova-compute to make the provider of {host} again", made)


@pytest.mark.follows("provider_not_recreated", "tree_restore._RECREATE_HINT")
@pytest.mark.long
def test_orphaned_provider_traits_return_with_their_host(
    ansible: Ansible,
    world: World,
    placement: Placement,
    host: str,
    aggregate: Aggregate,
    tmp_path: Path,
) -> None:
    root, operators = world.provider(host), str(uuid.uuid4())
    stray = world.claim(host)
    removal = _clean_up(ansible, tmp_path, host, "unknown_consumer")
    _without_service(world, host)
    child = placement.create_provider(f"{host}_card", STOCK, parent=root, traits=[CARD])
    reported = _has(placement, root, "traits")
    _add(placement, root, "traits", {LICENSED, DISK, *STALE})
    _add(placement, root, "aggregates", {operators, aggregate.uuid})
    deletion = _clean_up(ansible, tmp_path, host, "orphaned_provider")
    given: dict[str, t.Any] = {"journal": [*removal, *deletion], "output_dir": str(tmp_path)}
    assert not {root, child} & set(placement.providers().values())
    (record,) = [known for known in deletion if known["event"] == "before"]
    for known in record["providers"]:
        assert record["details"][known["uuid"]]["generation"] == known["generation"]
    assert record["details"][child]["traits"] == [CARD]

    early = ansible.direct("orphan_restore", **given)

    assert (early["changed"], early["failed"], early["tally"]) == (
        False,
        False,
        {"restored": 0, "skipped": 2, "failed": 0},
    )
    tree, allocation = early["outcomes"]
    assert tree["provider"] == {"uuid": root, "name": host} and allocation["consumer"] == stray
    assert tree["reason_id"] == "root_not_recreated"
    assert allocation["reason_id"] == "provider_not_recreated"
    assert not {root, child} & set(placement.providers().values())

    world.own_host(host)
    assert _await_made(world, placement, host) == root
    assert (
        _has(placement, root, "aggregates") == set() and _has(placement, root, "traits") == reported
    )
    assert root not in _offered(placement, operators)
    inventory = placement.get(f"/resource_providers/{root}/inventories")["inventories"]
    before = world.picture()
    predicted = ansible.module("orphan_restore", "--check", "--diff", **given)

    assert predicted["changed"] and predicted["tally"] == {"restored": 2, "skipped": 0, "failed": 0}
    assert f'"{operators}"' in predicted["printed_diff"] and LICENSED in predicted["printed_diff"]
    assert world.picture() == before and _has(placement, root, "aggregates") == set()

    (only,) = ansible.direct("orphan_restore", providers=[host], **given)["outcomes"]

    assert only["outcome"] == "restored" and placement.held(stray) == {}
    assert _has(placement, root, "traits") == {*reported, LICENSED, DISK}
    assert _has(placement, root, "aggregates") == {operators}
    assert root in _offered(placement, operators)
    assert placement.get(f"/resource_providers/{root}/inventories")["inventories"] == inventory
    for left in ("aggregate racks", f"{host}_card ({child})", f": {', '.join(sorted(STALE))}"):
        assert left in only["reason"]

    # The service of the child creates it again with another uuid, as nova-compute does.
    child = placement.create_provider(f"{host}_card", STOCK, parent=root)
    every = ansible.direct("orphan_restore", **given)

    assert every["tally"] == {"restored": 2, "skipped": 0, "failed": 0}
    assert _has(placement, child, "traits") == {CARD}
    assert placement.held(stray)

    again = ansible.direct("orphan_restore", **given)

    assert (again["changed"], again["failed"], again["journal"]) == (False, False, None)
    assert again["outcomes"][0]["reason_id"] == "nothing_to_add"
    # Nor does nova-compute undo it.
    world.restart(host)
    assert _has(placement, root, "traits") == {*reported, LICENSED, DISK}
    assert _has(placement, root, "aggregates") == {operators}


@pytest.mark.long
def test_host_with_a_new_uuid_rejoins_its_host_aggregate(
    ansible: Ansible,
    world: World,
    placement: Placement,
    host: str,
    aggregate: Aggregate,
    tmp_path: Path,
) -> None:
    """It was reinstalled and added to its aggregate.

    Nova wrote that to the old provider of that name.
    """
    old = world.provider(host)
    _without_service(world, host)
    (world.paths.compute(host) / "compute_id").unlink()
    world.own_host(host)
    new = world.cloud.hypervisors()[host]
    aggregate.add(host)
    _add(placement, old, "traits", {LICENSED})
    assert new != old and _has(placement, old, "aggregates") == {aggregate.uuid}
    _clean_up(ansible, tmp_path, host, "name_conflict")
    world.restart(host)
    assert _await_made(world, placement, host) == new
    assert _has(placement, new, "aggregates") == set()
    assert new not in _offered(placement, aggregate.uuid)
    (journal,) = tmp_path.glob("journal-*.jsonl")

    run = ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(journal)}
    )

    assert (run.status, run.changed) == (0, 1), run.output
    assert _has(placement, new, "aggregates") == {aggregate.uuid}
    assert LICENSED in _has(placement, new, "traits")
    assert new in _offered(placement, aggregate.uuid)
    assert "1 restored" in run.told
    before, after = run.records(max((run.folder / "orphan-cleanup").glob("journal-*.jsonl")))
    assert (before["action"], before["event"], after["outcome"]) == (
        "restore_providers",
        "before",
        "restored",
    )
    (written,) = before["providers"]
    added = set(written["after"]["aggregates"]) - set(written["before"]["aggregates"])
    assert written["uuid"] == new and added == {aggregate.uuid}

    again = ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(journal)}
    )
    assert (again.status, again.changed) == (0, 0), again.output
    # The journal of a restore is not restored itself.
    assert (
        ansible.direct("orphan_restore", journal=[before, after], output_dir=str(tmp_path))[
            "outcomes"
        ]
        == []
    )


@pytest.mark.long
def test_provider_unknown_to_nova_is_left_alone(
    ansible: Ansible, world: World, placement: Placement, host: str, tmp_path: Path
) -> None:
    """One is a provider of the same name that somebody else created.

    The other is the deletion of a tree known only from a plan.
    """
    root = world.provider(host)
    _without_service(world, host)
    _add(placement, root, "traits", {LICENSED})
    deletion = _clean_up(ansible, tmp_path, host, "orphaned_provider")
    made = placement.create_provider(host, STOCK)

    (outcome,) = ansible.direct("orphan_restore", journal=deletion, output_dir=str(tmp_path))[
        "outcomes"
    ]
    without = [
        {key: value for key, value in known.items() if key != "details"} for known in deletion
    ]
    (planned,) = ansible.direct("orphan_restore", journal=without, output_dir=str(tmp_path))[
        "outcomes"
    ]

    assert outcome["outcome"] == planned["outcome"] == "skipped"
    assert outcome["reason_id"] == "not_a_compute_node"
    assert planned["reason_id"] == "records_of_plan"
    assert _has(placement, made, "traits") == set()
    placement.change("DELETE", f"/resource_providers/{made}")
    wrong = ansible.direct(
        "orphan_restore", journal=deletion, providers=["compute-1"], output_dir=str(tmp_path)
    )
    assert wrong["reason_id"] == "invalid_input" and "provider compute-1" in wrong["msg"]


@pytest.mark.long
def test_traits_added_at_the_last_moment_are_kept(
    ansible: Ansible, placement: Placement, world: World, wires: Wires, tmp_path: Path
) -> None:
    """Placement refuses each list that was read before, and the provider is read again."""
    root, operators, others = world.provider("compute-4"), str(uuid.uuid4()), str(uuid.uuid4())
    reported = _has(placement, root, "traits")
    inventories = placement.get(f"/resource_providers/{root}/inventories")["inventories"]
    about = {"format": 1, "finding": f"orphaned_provider/{root}", "kind": "orphaned_provider"}
    before = {
        **about,
        "event": "before",
        "action": "delete_providers",
        "placement_endpoint": f"{wires.placement.url}/",
        "providers": [{"uuid": root, "name": "compute-4", "generation": 1, "parent": None}],
        "details": {
            root: {
                "inventories": inventories,
                "traits": [*reported, LICENSED],
                "aggregates": [operators],
            }
        },
    }
    journal = [before, {**about, "event": "after", "outcome": "removed"}]
    hooks = [
        wires.placement.on(
            "PUT", f"{root}/traits", before=lambda: _add(placement, root, "traits", {CARD})
        ),
        wires.placement.on(
            "PUT",
            f"{root}/aggregates",
            before=lambda: _add(placement, root, "aggregates", {others}),
        ),
    ]

    (outcome,) = ansible.direct("orphan_restore", journal=journal, output_dir=str(tmp_path))[
        "outcomes"
    ]

    assert outcome["outcome"] == "restored" and all(hook.ran for hook in hooks)
    assert _has(placement, root, "traits") == {*reported, LICENSED, CARD}
    assert _has(placement, root, "aggregates") == {operators, others}
    assert (
        sum(request.startswith("PUT") and root in request for request in wires.placement.requests)
        == 4
    )
