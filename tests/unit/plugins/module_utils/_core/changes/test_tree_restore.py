"""Providers that nova-compute has created again get their aggregates back.

They get the operators' traits too, and nothing else changes.
"""

import copy
import json
import pathlib
import re
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common.errors import (
    CloudError,
    InvalidInput,
    JournalError,
    ProviderConflict,
    Reason,
)
from .......plugins.module_utils._core.changes.journal import (
    BEFORE,
    PLANNED,
    Journal,
    build_record,
    read_journal,
)
from .......plugins.module_utils._core.changes.outcomes import Restoration
from .......plugins.module_utils._core.changes.records import (
    describe_inventory_changes,
    find_changes,
    find_deleted_trees,
    find_lost_aggregates,
    find_lost_traits,
    select_trees,
)
from .......plugins.module_utils._core.changes.tree_restore import TreeRestorer
from .......plugins.module_utils._core.clients import provider_writer
from .......plugins.module_utils._core.clients.placement import PlacementReader
from .......plugins.module_utils._core.clients.provider_state import ProviderStateReader
from .......plugins.module_utils._core.clients.provider_writer import ProviderWriter
from .......plugins.module_utils._core.models.change import ProviderRemoval
from .......plugins.module_utils._core.models.nova import Aggregate
from .......plugins.module_utils._core.models.placement import (
    Inventory,
    Provider,
    ProviderState,
    parse_provider_state,
)
from .......plugins.module_utils._core.plan.plan import TreeStep
from .....reasons import has_id
from ...trees import CHILD, DISKS, OTHER, RACK, ROOT, Trees, inventory, lost, refused

ENDPOINT = "http://placement/"
OLD_JOURNAL = pathlib.Path(__file__).parents[5] / "fixtures" / "journal" / "1.0.0.jsonl"

CPU = {"VCPU": Inventory(**inventory())}
TREE = TreeStep(
    f"orphaned_provider/{ROOT}",
    "orphaned_provider",
    ProviderRemoval(
        (
            Provider(CHILD, "compute-9_card", 3, ROOT, ROOT),
            Provider(ROOT, "compute-9", 7, ROOT, None),
        )
    ),
)
HAD = {
    ROOT: ProviderState(CPU, frozenset({"COMPUTE_NODE", "CUSTOM_A"}), frozenset({RACK, DISKS}), 7),
    CHILD: ProviderState(CPU, frozenset({"CUSTOM_B"}), frozenset(), 3),
}


def _records(
    step: TreeStep = TREE, states: t.Mapping[str, ProviderState] | None = None, event: str = BEFORE
) -> list[dict[str, t.Any]]:
    told: dict[str, t.Any] = build_record(event, step, ENDPOINT)
    if event == BEFORE:
        had = HAD if states is None else states
        told["details"] = {uuid: state.as_dict() for uuid, state in had.items()}
    return [json.loads(json.dumps(told))]


# The contents of a journal


def test_written_tree_is_read_back_unchanged() -> None:
    (tree,) = find_deleted_trees(_records(), ENDPOINT)

    assert (tree.as_dict(), tree.states, tree.root.name) == (TREE.as_dict(), HAD, "compute-9")
    assert [provider.uuid for provider in tree.providers] == [ROOT, CHILD]


def test_outcome_of_a_tree_names_its_root_and_no_consumer() -> None:
    (tree,) = find_deleted_trees(_records(), ENDPOINT)

    assert Restoration(tree, "skipped", Reason("told", "It is gone.")).as_dict() == {
        "finding": f"orphaned_provider/{ROOT}",
        "kind": "orphaned_provider",
        "consumer": None,
        "provider": {"uuid": ROOT, "name": "compute-9"},
        "outcome": "skipped",
        "reason": "It is gone.",
        "reason_id": "told",
        "write": None,
    }


def test_journal_of_version_1_0_is_read() -> None:
    records, torn = read_journal(str(OLD_JOURNAL))
    (tree,) = find_deleted_trees(records, "http://127.0.0.1:29106/")
    (change,) = find_changes(records, "http://127.0.0.1:29106/", [])

    assert not torn and change.kind == "unknown_consumer" and tree.deleted
    assert [provider.name for provider in tree.providers] == ["compute-10", "compute-10_pgpu"]
    root, child = (tree.states[provider.uuid] for provider in tree.providers)
    assert {"CUSTOM_LICENSED", "STORAGE_DISK_SSD", "COMPUTE_NODE"} <= root.traits
    assert child.traits == {"CUSTOM_VGPU_A"}
    assert len(root.aggregates) == 1 and {"VCPU", "MEMORY_MB", "DISK_GB"} == set(root.inventories)
    assert (root.generation, child.generation, tree.root.generation) == (None, None, 6)


@pytest.mark.parametrize("order", [1, -1])
def test_plan_record_does_not_hide_the_run_record(order: int) -> None:
    (tree,) = find_deleted_trees([*_records(event=PLANNED), *_records()][::order], ENDPOINT)

    assert tree.states == HAD


OTHER_TREE = TreeStep(
    f"orphaned_provider/{OTHER}",
    "orphaned_provider",
    ProviderRemoval((Provider(OTHER, "compute-8", 1, OTHER, None),)),
)


@pytest.mark.parametrize("step", [TREE, OTHER_TREE])
def test_each_tree_is_deleted_and_chosen_alone(step: TreeStep) -> None:
    after = {"format": 1, "event": "after", "finding": step.finding, "outcome": "removed"}
    failed = {**after, "outcome": "failed"}
    records = [*_records(), *_records(OTHER_TREE, {}), after, failed]

    trees = find_deleted_trees(records, ENDPOINT)

    assert {tree.finding: tree.deleted for tree in trees} == {
        other.finding: other is step for other in (TREE, OTHER_TREE)
    }
    name = step.change.providers[-1].name
    for names in ([name], [step.subject.upper()], [name, step.subject]):
        assert [tree.as_dict() for tree in select_trees(trees, names)] == [step.as_dict()]
    assert select_trees(iter(trees), []) == trees


def test_newest_tree_comes_first() -> None:
    records = [*_records(), *_records(OTHER_TREE, {})]

    assert [tree.subject for tree in find_deleted_trees(records, ENDPOINT)] == [OTHER, ROOT]


@pytest.mark.parametrize(
    "edit",
    [
        *({key: ...} for key in ("finding", "kind", "providers", "placement_endpoint")),
        {"placement_endpoint": "http://elsewhere/"},
    ],
    ids=str,
)
def test_record_that_is_incomplete_or_of_another_cloud_is_refused(edit: dict[str, t.Any]) -> None:
    (entry,) = _records()
    edited = {key: value for key, value in {**entry, **edit}.items() if value is not ...}

    with pytest.raises(InvalidInput):
        find_deleted_trees([edited], ENDPOINT)


@pytest.mark.parametrize(
    "edit",
    [
        *({"traits": traits} for traits in (["../../allocations/x"], ["custom_a"], [7], None)),
        *({"aggregates": aggregates} for aggregates in (["rack-1"], [RACK.upper()])),
        *({"inventories": inventories} for inventories in ({"VCPU": {"total": 1}}, [])),
        {"generation": "x"},
    ],
    ids=str,
)
def test_impossible_names_are_refused(edit: dict[str, t.Any]) -> None:
    """They would become part of a request."""
    (entry,) = _records()
    entry["details"][ROOT] |= edit

    with pytest.raises(InvalidInput, match="orphan_remediate"):
        find_deleted_trees([entry], ENDPOINT)


def test_written_state_is_read_back_unchanged() -> None:
    assert parse_provider_state(json.loads(json.dumps(HAD[ROOT].as_dict()))) == HAD[ROOT]


# What is restored


def _state(*traits: str, aggregates: t.Iterable[str] = ()) -> ProviderState:
    return ProviderState(CPU, frozenset(traits), frozenset(aggregates), 1)


OPERATORS = ["CUSTOM_LICENSED", "STORAGE_DISK_SSD", "HW_GPU_API_VULKAN", "HW_NIC_SRIOV"]
REPORTED = [
    *("COMPUTE_STATUS_DISABLED", "COMPUTE_NODE", "COMPUTE_NET_VIF_MODEL_E1000"),
    *("COMPUTE_VOLUME_MULTI_ATTACH", "HW_CPU_X86_AVX2", "HW_CPU_HYPERTHREADING", "HW_ARCH_X86_64"),
    *("HW_PCI_LIVE_MIGRATABLE", "HW_NUMA_ROOT", "OWNER_NOVA", "MISC_SHARES_VIA_AGGREGATE"),
    "A_NAMESPACE_OF_TOMORROW",
]


@pytest.mark.parametrize(
    ("trait", "back"),
    [*((trait, True) for trait in OPERATORS), *((trait, False) for trait in REPORTED)],
)
def test_only_traits_not_reported_by_a_service_are_restored(trait: str, back: bool) -> None:
    assert find_lost_traits(_state(trait), _state("CUSTOM_B")) == (
        ({trait}, set()) if back else (set(), {trait})
    )
    assert find_lost_traits(_state(trait), _state(trait)) == (set(), set())


@pytest.mark.parametrize(
    "mark",
    ["COMPUTE_MANAGED_PCI_DEVICE", "OWNER_CYBORG", "CUSTOM_PHYSNET_A", "CUSTOM_VNIC_TYPE_NORMAL"],
)
@pytest.mark.parametrize("since", [True, False])
def test_provider_whose_service_replaces_all_traits_gets_none(mark: str, since: bool) -> None:
    then, now = ("CUSTOM_A",) if since else ("CUSTOM_A", mark), (mark,) if since else ()

    assert find_lost_traits(_state(*then), _state(*now))[0] == set()


TRAITS = st.frozensets(st.sampled_from(["CUSTOM_A", "CUSTOM_B", *REPORTED]))


@hypothesis.given(TRAITS, TRAITS)
def test_restored_traits_never_promise_more_than_before(
    then: frozenset[str], now: frozenset[str]
) -> None:
    back, left = find_lost_traits(_state(*then), _state(*now))

    assert back | left == then - now and not back & left
    assert all(trait.startswith("CUSTOM_") for trait in back)


@pytest.mark.parametrize(
    ("hosts", "back", "left"),
    [(("compute-9",), {RACK}, set()), (("compute-1",), set(), {RACK}), ((), set(), {RACK})],
)
def test_nova_aggregate_is_restored_if_nova_still_has_the_host_in_it(
    hosts: tuple[str, ...], back: set[str], left: set[str]
) -> None:
    known = {RACK: Aggregate(RACK, "rack-1", None, hosts)}

    assert find_lost_aggregates(_state(aggregates=[RACK]), _state(), "compute-9", known) == (
        back,
        left,
    )


def test_aggregate_known_only_to_placement_is_restored() -> None:
    known = {RACK: Aggregate(RACK, "rack-1", None, ())}

    assert find_lost_aggregates(
        _state(aggregates=[DISKS]), _state(aggregates=[RACK]), "compute-9", known
    ) == ({DISKS}, set())


def test_inventory_possibly_set_by_an_operator_is_reported() -> None:
    then = {
        "VCPU": Inventory(**inventory(8, 2, 16.0)),
        "CUSTOM_GOLD": Inventory(**inventory(3)),
        "DISK_GB": Inventory(**inventory()),
    }
    now = {
        "VCPU": Inventory(**inventory(4, 0, 4.0)),
        "DISK_GB": Inventory(**inventory(9)),
        "PCPU": Inventory(**inventory()),
    }

    differences = describe_inventory_changes(ProviderState(then), ProviderState(now))
    assert [re.findall(r"CUSTOM_GOLD|VCPU|[\d.]+", each) for each in differences] == [
        ["CUSTOM_GOLD", "3"],
        ["VCPU", "0", "2"],
        ["VCPU", "4.0", "16.0"],
    ]
    assert "reserved" in differences[1] and "allocation_ratio" in differences[2]


# Reading a provider


def test_state_is_read_at_one_generation() -> None:
    trees = Trees()
    trees.make(ROOT, "compute-9", traits={"CUSTOM_A"})
    trees.while_read = [
        lambda: trees.give(ROOT, "aggregates", RACK),
        lambda: None,
        lambda: trees.give(ROOT, "traits", "CUSTOM_B"),
    ]

    assert ProviderStateReader(trees.placement()).read(ROOT) == ProviderState(
        CPU, frozenset({"CUSTOM_A", "CUSTOM_B"}), frozenset({RACK}), 3
    )


def test_provider_that_keeps_changing_cannot_be_read() -> None:
    trees = Trees()
    trees.make(ROOT, "compute-9")
    trees.while_read = [lambda: trees.give(ROOT, "traits", "CUSTOM_A") for _request in range(99)]

    with pytest.raises(CloudError, match="changed 5 times"):
        ProviderStateReader(trees.placement()).read(ROOT)


def test_provider_deleted_during_the_reading_does_not_exist() -> None:
    trees = Trees()
    trees.make(ROOT, "compute-9")
    trees.while_read = [lambda: None, trees.providers.clear]

    assert ProviderStateReader(trees.placement()).read(ROOT) is None


# Writing to it


@pytest.fixture(name="trees")
def _trees(monkeypatch: pytest.MonkeyPatch) -> Trees:
    """Return a host that nova-compute has created again, without its card."""
    monkeypatch.setattr(provider_writer, "_PAUSE", 0)
    trees = Trees()
    trees.make(ROOT, "compute-9", traits={"COMPUTE_NODE"})
    trees.node(ROOT, "compute-9")
    trees.rack("compute-9")
    return trees


NOW = Provider(ROOT, "compute-9", 1, ROOT, None)


def _added(trees: Trees) -> tuple[set[str], CloudError | None]:
    return ProviderWriter(trees.placement()).add_traits_and_aggregates(NOW, ["CUSTOM_A"], [RACK])


def test_existing_traits_and_aggregates_are_kept(trees: Trees) -> None:
    trees.give(ROOT, "aggregates", DISKS)

    assert _added(trees) == (set(), None)
    assert trees.providers[ROOT]["traits"] == {"COMPUTE_NODE", "CUSTOM_A"}
    assert trees.providers[ROOT]["aggregates"] == {DISKS, RACK}


def test_existing_traits_and_aggregates_are_not_written_again(trees: Trees) -> None:
    trees.give(ROOT, "traits", "CUSTOM_A")
    trees.give(ROOT, "aggregates", RACK)

    assert _added(trees) == (set(), None) and trees.puts == []


@pytest.mark.parametrize("position", [0, 1])
def test_traits_added_meanwhile_are_kept(trees: Trees, position: int) -> None:
    trees.faults = [*[None] * position, lambda: trees.give(ROOT, "traits", "CUSTOM_B")]
    lacking, _refusal = _added(trees)

    assert lacking == set()
    assert trees.providers[ROOT]["traits"] == {"COMPUTE_NODE", "CUSTOM_A", "CUSTOM_B"}
    assert trees.providers[ROOT]["aggregates"] == {RACK}


def test_provider_that_changes_before_each_write_is_given_up(trees: Trees) -> None:
    trees.faults = [refused] * 9
    lacking, refusal = _added(trees)

    assert lacking == {"CUSTOM_A", RACK} and isinstance(refusal, ProviderConflict)
    assert trees.puts == ["traits"] * 4


def test_write_with_a_lost_answer_is_read_back(trees: Trees) -> None:
    def unanswered() -> int:
        trees.give(ROOT, "traits", "CUSTOM_A")
        trees.give(ROOT, "aggregates", RACK)
        return lost()

    trees.faults = [unanswered]

    assert _added(trees)[0] == set()


def test_write_that_never_arrives_is_not_counted(trees: Trees) -> None:
    trees.faults = [None, lost]
    lacking, refusal = _added(trees)

    assert lacking == {RACK} and refusal is not None
    assert trees.puts == ["traits", "aggregates"]


def test_custom_trait_deleted_with_its_last_provider_is_created(trees: Trees) -> None:
    trees.traits.clear()

    assert _added(trees) == (set(), None) and trees.traits == {"CUSTOM_A"}


def test_refusal_is_passed_on(trees: Trees) -> None:
    trees.faults = [lambda: 403]
    lacking, refusal = _added(trees)

    assert lacking == {"CUSTOM_A", RACK} and "answered 403" in str(refusal)
    assert trees.puts == ["traits"]


# Deleting a tree

CHILD_OF_NOW = Provider(CHILD, "compute-9_card", 1, ROOT, ROOT)


@pytest.mark.parametrize(
    ("faults", "deletes", "gone", "reason"),
    [
        ([], [CHILD, ROOT], [CHILD, ROOT], None),
        ([None, lambda: 404], [CHILD, ROOT], [CHILD], "deletion_not_shown"),
        ([lambda: 409], [CHILD], [], "cloud_error"),
        ([None, lambda: 409], [CHILD, ROOT], [CHILD], "cloud_error"),
    ],
)
def test_tree_is_deleted_children_first_and_read_back(
    trees: Trees, faults: list[t.Any], deletes: list[str], gone: list[str], reason: str | None
) -> None:
    """A fault with 404 stands for an accepted request that the listing does not show."""
    trees.make(CHILD, "compute-9_card", ROOT)
    trees.faults = faults

    deleted, refusal = ProviderWriter(trees.placement()).delete_tree([CHILD_OF_NOW, NOW])

    assert trees.deletes == deletes
    assert [provider.uuid for provider in deleted] == gone
    assert (refusal.id if refusal else None) == reason


def test_tree_that_cannot_be_listed_may_be_deleted(trees: Trees) -> None:
    trees.listing_status = 500

    with pytest.raises(CloudError):
        ProviderWriter(trees.placement()).delete_tree([NOW])
    assert trees.deletes == [ROOT]


# A whole tree


def _restored(
    trees: Trees,
    journal: Journal | None = None,
    states: t.Mapping[str, ProviderState] | None = None,
    outcome: str = "removed",
    step: TreeStep = TREE,
) -> Restoration:
    """Restore a tree with this outcome in the journal; None when the run was killed."""
    after = {"format": 1, "event": "after", "finding": TREE.finding, "outcome": outcome}
    records = [*_records(step, states), *([after] if outcome else [])]
    (tree,) = find_deleted_trees(records, ENDPOINT)
    placement = trees.placement()
    return TreeRestorer(placement, trees.nova(), journal).restore_tree(
        tree, PlacementReader(placement).list_providers()
    )


@pytest.fixture(name="journal")
def _journal(tmp_path: pathlib.Path) -> Journal:
    return Journal(str(tmp_path), ENDPOINT)


def test_tree_is_journaled_and_restored_once(trees: Trees, journal: Journal) -> None:
    trees.make(CHILD, "compute-9_card", ROOT)
    trees.give(ROOT, "aggregates", DISKS)
    before = copy.deepcopy(trees.providers)
    done = _restored(trees, journal)

    assert (done.outcome, done.reason) == ("restored", "")
    assert trees.providers[ROOT] == {
        **before[ROOT],
        "traits": {"COMPUTE_NODE", "CUSTOM_A"},
        "aggregates": {RACK, DISKS},
        "generation": before[ROOT]["generation"] + 2,
    }
    assert trees.providers[CHILD]["traits"] == {"CUSTOM_B"}
    (entry,) = read_journal(journal.path)[0]
    assert [provider["name"] for provider in entry["providers"]] == ["compute-9", "compute-9_card"]
    assert entry["providers"][0]["before"] == {"traits": ["COMPUTE_NODE"], "aggregates": [DISKS]}
    assert entry["providers"][0]["after"] == {
        "traits": ["COMPUTE_NODE", "CUSTOM_A"],
        "aggregates": [RACK, DISKS],
    }
    assert find_deleted_trees([entry], ENDPOINT) == [] and find_changes([entry], ENDPOINT, []) == []

    puts = len(trees.puts)
    again = _restored(trees, journal)
    assert (again.outcome, again.reason.id) == ("skipped", "nothing_to_add")
    assert len(trees.puts) == puts


def test_check_mode_shows_the_writes_and_makes_none(trees: Trees) -> None:
    done = _restored(trees)

    assert done.outcome == "restored" and trees.puts == [] and done.write
    assert done.write.get_side("before") == {
        ROOT: {"name": "compute-9", "traits": ["COMPUTE_NODE"], "aggregates": []}
    }
    assert done.write.get_side("after")[ROOT]["aggregates"] == [RACK, DISKS]
    # The card is not there.
    assert CHILD in done.reason


def test_nothing_is_written_without_a_journal(trees: Trees, tmp_path: pathlib.Path) -> None:
    (tmp_path / "occupied").write_text("")

    with pytest.raises(JournalError):
        _restored(trees, Journal(str(tmp_path / "occupied"), ENDPOINT))
    assert trees.puts == []


def _put_below_another(trees: Trees) -> None:
    trees.providers.clear()
    trees.make(OTHER, "compute-8")
    trees.make(CHILD, "compute-9", OTHER)


LEFT_ALONE: dict[str, tuple[t.Callable[[Trees], object], str]] = {
    "a provider that is gone": (lambda trees: trees.providers.clear(), "root_not_recreated"),
    "one without a compute node": (lambda trees: trees.nodes.clear(), "not_a_compute_node"),
    "one whose name another node has": (
        lambda trees: setattr(trees, "nodes", [(OTHER, "compute-9")]),
        "not_a_compute_node",
    ),
    "a name below another root": (_put_below_another, "root_is_child_now"),
    "one that is still being created": (
        lambda trees: trees.make(ROOT, "compute-9", inventories={}),
        "inventory_missing",
    ),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_no_host_that_was_created_again_is_left_alone(
    trees: Trees, journal: Journal, name: str
) -> None:
    happen, reason = LEFT_ALONE[name]
    happen(trees)
    before = copy.deepcopy(trees.providers)
    done = _restored(trees, journal)

    assert (done.outcome, done.reason.id) == ("skipped", reason)
    assert (trees.providers, trees.puts, journal.written) == (before, [], False)


def test_same_name_with_another_uuid_is_the_same_host(trees: Trees, journal: Journal) -> None:
    trees.providers.clear()
    trees.make(OTHER, "compute-9")
    trees.nodes = [(OTHER, "compute-9")]

    assert _restored(trees, journal).outcome == "restored"
    assert trees.providers[OTHER]["aggregates"] == {RACK, DISKS}


def test_child_in_another_tree_is_left_alone(trees: Trees, journal: Journal) -> None:
    trees.make(OTHER, "compute-8")
    trees.make(CHILD, "compute-9_card", OTHER)
    done = _restored(trees, journal)

    assert done.outcome == "restored" and "compute-9_card" in done.reason
    assert trees.providers[CHILD]["traits"] == set()


def test_silent_cell_proves_nothing(trees: Trees, journal: Journal) -> None:
    trees.nova_status = 500

    with pytest.raises(CloudError, check=has_id("compute_nodes_unread")):
        _restored(trees, journal)
    assert trees.puts == []


def test_bare_metal_node_gets_the_traits_that_ironic_knows(trees: Trees, journal: Journal) -> None:
    trees.make(ROOT, "compute-9", inventories={"CUSTOM_BAREMETAL": inventory(1)})
    done = _restored(trees, journal)

    assert done.outcome == "restored" and "COMPUTE_NODE, CUSTOM_A" in done.reason
    assert trees.providers[ROOT]["traits"] == set()
    assert trees.providers[ROOT]["aggregates"] == {RACK, DISKS}


def test_host_that_left_its_aggregate_is_not_added_to_it(trees: Trees, journal: Journal) -> None:
    trees.aggregates[0]["hosts"] = ["compute-1"]
    done = _restored(trees, journal)

    assert trees.providers[ROOT]["aggregates"] == {DISKS}
    assert "rack-1" in done.reason and RACK in done.reason


@pytest.mark.parametrize(
    ("faults", "partly", "said", "aggregates"),
    [([None, None, 403], True, ["403"], {RACK, DISKS}), ([403, 500], False, ["403", "500"], set())],
)
def test_each_provider_that_fails_has_its_reason_and_hides_no_other(
    trees: Trees,
    journal: Journal,
    faults: list[int | None],
    partly: bool,
    said: list[str],
    aggregates: set[str],
) -> None:
    trees.make(CHILD, "compute-9_card", ROOT)
    trees.faults = [status and (lambda status=status: status) for status in faults]
    done = _restored(trees, journal)

    assert (done.outcome, done.partly) == ("failed", partly)
    assert all(f"answered {status}" in done.reason for status in said)
    assert trees.providers[ROOT]["aggregates"] == aggregates


def test_child_that_is_deleted_while_it_is_read_is_named(trees: Trees, journal: Journal) -> None:
    trees.make(CHILD, "compute-9_card", ROOT)
    trees.while_read = [lambda: trees.providers.pop(CHILD) and None]
    done = _restored(trees, journal)

    assert done.outcome == "restored"
    assert CHILD in done.reason


@pytest.mark.parametrize("missing", [CHILD, OTHER])
def test_child_that_is_missing_keeps_no_other_from_being_restored(
    trees: Trees, journal: Journal, missing: str
) -> None:
    names = {CHILD: "compute-9_card", OTHER: "compute-9_nic"}
    children = [Provider(uuid, name, 3, ROOT, ROOT) for uuid, name in sorted(names.items())]
    removal = ProviderRemoval((*children, TREE.change.providers[-1]))
    step = TreeStep(TREE.finding, TREE.kind, removal)
    (there,) = set(names) - {missing}
    trees.make(there, names[there], ROOT)

    done = _restored(trees, journal, dict.fromkeys((ROOT, CHILD, OTHER), HAD[CHILD]), step=step)

    assert done.outcome == "restored" and missing in done.reason
    assert trees.providers[there]["traits"] == {"CUSTOM_B"}


@pytest.mark.parametrize("states", [HAD, {CHILD: HAD[CHILD]}])
def test_root_without_a_loss_keeps_no_child_from_being_restored(
    trees: Trees, journal: Journal, states: dict[str, ProviderState]
) -> None:
    trees.make(CHILD, "compute-9_card", ROOT)
    trees.give(ROOT, "traits", *HAD[ROOT].traits)
    trees.give(ROOT, "aggregates", *HAD[ROOT].aggregates)

    done = _restored(trees, journal, states)

    assert done.outcome == "restored"
    assert done.reason.rstrip(".").endswith("compute-9 had") is (states is not HAD)
    assert trees.providers[CHILD]["traits"] == {"CUSTOM_B"}


def test_tree_that_cannot_be_read_back_may_be_changed(trees: Trees, journal: Journal) -> None:
    trees.faults = [lambda: trees.providers.popitem() and None]
    done = _restored(trees, journal)

    assert (done.outcome, done.partly) == ("failed", True)


@pytest.mark.parametrize("accepted", [0, 1])
def test_refused_tree_is_changed_in_part_if_anything_was_written(
    trees: Trees, journal: Journal, accepted: int
) -> None:
    trees.faults = [*[None] * accepted, lambda: 403]
    done = _restored(trees, journal)

    assert (done.outcome, done.partly) == ("failed", bool(accepted))
    assert trees.providers[ROOT]["traits"] == {"COMPUTE_NODE", *["CUSTOM_A"] * accepted}
    assert trees.providers[ROOT]["aggregates"] == set()


@pytest.mark.parametrize("outcome", ["failed", ""])
def test_provider_possibly_never_deleted_is_left_alone(
    trees: Trees, journal: Journal, outcome: str
) -> None:
    """The run failed or was killed there.

    Somebody may have removed meanwhile what it lacks.
    """
    trees.providers[ROOT]["generation"] = 7
    done = _restored(trees, journal, outcome=outcome)

    assert done.outcome == "skipped" and trees.puts == [] and not journal.written
    assert done.reason.id == "nothing_to_add"
    assert f"CUSTOM_A, {RACK}, {DISKS}" in done.reason


@pytest.mark.parametrize("outcome", ["failed", ""])
@pytest.mark.parametrize(("uuid", "generation"), [(ROOT, 6), (OTHER, 7), (OTHER, 8)])
def test_provider_with_another_uuid_or_a_restarted_generation_was_deleted(
    trees: Trees, journal: Journal, uuid: str, generation: int, outcome: str
) -> None:
    trees.providers.clear()
    trees.make(uuid, "compute-9")
    trees.nodes = [(uuid, "compute-9")]
    trees.providers[uuid]["generation"] = generation

    assert _restored(trees, journal, outcome=outcome).outcome == "restored"


def test_root_that_is_deleted_before_it_is_read_is_not_complete(
    trees: Trees, journal: Journal
) -> None:
    known = Provider(ROOT, "compute-9", 1, ROOT, None)
    trees.providers.clear()
    (tree,) = find_deleted_trees(_records(), ENDPOINT)

    done = TreeRestorer(trees.placement(), trees.nova(), journal).restore_tree(tree, {ROOT: known})

    assert (done.outcome, done.reason.id) == ("skipped", "inventory_missing")


@pytest.mark.parametrize(("shown", "partly"), [((), False), (("CUSTOM_A",), True)])
def test_write_that_placement_accepts_and_does_not_show_has_failed(
    trees: Trees, journal: Journal, monkeypatch: pytest.MonkeyPatch, shown: t.Any, partly: bool
) -> None:
    def take(uuid: str, part: str, _body: object) -> tuple[int, dict[str, t.Any]]:
        if part == "traits":
            trees.providers[uuid][part] |= set(shown)
        return trees._told(uuid, part)

    monkeypatch.setattr(trees, "take", take)
    done = _restored(trees, journal)

    assert (done.outcome, done.reason.id, done.partly) == ("failed", "write_not_shown", partly)


def test_provider_seen_to_be_gone_may_have_any_generation(trees: Trees, journal: Journal) -> None:
    trees.providers[ROOT]["generation"] = 99

    assert _restored(trees, journal).outcome == "restored"


def test_lasting_conflict_is_skipped(trees: Trees, journal: Journal) -> None:
    trees.faults = [refused] * 9
    done = _restored(trees, journal)

    assert (done.outcome, done.partly, done.reason.id) == ("skipped", False, "provider_conflict")


def test_plan_records_do_not_say_what_the_provider_had(trees: Trees, journal: Journal) -> None:
    done = _restored(trees, journal, {})

    assert done.outcome == "skipped" and done.reason.id == "records_of_plan"
