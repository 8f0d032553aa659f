"""What a run removed is restored from the journal, and nothing else.

Only as far as nobody loses anything.
"""

import collections
import copy
import dataclasses as d
import json
import pathlib
import types
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common.errors import InvalidInput, Reason
from .......plugins.module_utils._core.changes.journal import (
    BEFORE,
    PLANNED,
    Journal,
    build_record,
    read_journal,
)
from .......plugins.module_utils._core.changes.outcomes import Outcome, Restoration
from .......plugins.module_utils._core.changes.records import (
    TreeAddition,
    find_changes,
    find_deleted_providers,
)
from .......plugins.module_utils._core.changes.restore import (
    RestoreCheck,
    Restorer,
    find_restore_steps,
    invert_change,
)
from .......plugins.module_utils._core.clients.allocation_writer import AllocationWriter
from .......plugins.module_utils._core.clients.nova import NovaReader
from .......plugins.module_utils._core.clients.placement import PlacementReader
from .......plugins.module_utils._core.models.change import (
    Change,
    ProviderRemoval,
    build_body,
    build_change,
    is_same_allocation,
)
from .......plugins.module_utils._core.models.placement import Allocation, Provider
from .......plugins.module_utils._core.options.policy import parse_policy
from .......plugins.module_utils._core.plan.plan import Step, TreeStep
from .....examples import count_examples
from ...placement import HERE, THERE, Body, Placement, uuid
from ...service import Service
from ...trees import inventory

ENDPOINT = "http://placement"
A, B, C = (f"aaaaaaa{number}-0000-4000-8000-000000000000" for number in range(3))
SERVER, MIGRATION = "bbbbbbb0-0000-4000-8000-000000000000", "bbbbbbb1-0000-4000-8000-000000000000"


def _held(
    consumer: str = SERVER,
    generation: int | None = 3,
    type: str | None = None,
    **resources: dict[str, int],
) -> Allocation:
    """Return an allocation of `consumer` on the providers a, b and c.

    An empty one has no generation and no owner.
    """
    named = {{"a": A, "b": B, "c": C}[name]: share for name, share in resources.items()}
    if not named:
        return Allocation(consumer, None, None, None, None, {}, None)
    return Allocation(consumer, generation, "project", "user", type, named, 7200)


def _change(before: Allocation, partner: Change | None = None, **after: dict[str, int]) -> Change:
    owner = {} if before.project else {"project": "project", "user": "user"}
    return build_change(before, partner, resources=_held(**after).resources, **owner)


def _now(*allocations: Allocation) -> dict[str, dict[str, t.Any]]:
    return {allocation.consumer: build_body(allocation) for allocation in allocations}


def _step(change: Change, kind: str = "deleted_server") -> Step:
    return Step(f"{kind}/{change.consumer}", kind, change)


VCPU = {"VCPU": 2}
NOTHING = _held()
REMOVED = _change(_held(a=VCPU))
REDUCED = _change(_held(a=VCPU, b=VCPU), b=VCPU)
REDUCED_AMOUNT = _change(_held(a={"VCPU": 2, "DISK_GB": 5}), a={"VCPU": 1, "DISK_GB": 5})
MOVED = _change(_held(a=VCPU), b=VCPU)
CREATED = _change(NOTHING, a=VCPU)
SWAPPED = _change(_held(a=VCPU), _change(_held(MIGRATION, b=VCPU)), b=VCPU)
SWAPPED_FROM_NOTHING = _change(NOTHING, _change(_held(MIGRATION, b=VCPU)), b=VCPU)


def _left(change: Change, generation: int | None = None) -> dict[str, dict[str, t.Any]]:
    """Return the allocations of the consumers of `change` after it was made.

    generation: by default, the one that the write left.
    """
    return _now(
        *(_of(part, part.after, generation or (part.generation or 0) + 1) for part in change.parts)
    )


def _of(part: Change, side: t.Mapping[str, t.Any], generation: int) -> Allocation:
    if not side["allocations"]:
        return Allocation(part.consumer, None, None, None, None, {}, None)
    held = {provider: share["resources"] for provider, share in side["allocations"].items()}
    return Allocation(
        part.consumer,
        generation,
        side["project_id"],
        side["user_id"],
        side.get("consumer_type"),
        held,
        7200,
    )


def _inverse(change: Change, held: t.Mapping[str, t.Mapping[str, t.Any]]) -> Change:
    inverse = invert_change(change, held)
    assert isinstance(inverse, Change)
    return inverse


@pytest.mark.parametrize("change", [REMOVED, _change(_held(a=VCPU, type="INSTANCE"))])
def test_removed_consumer_is_restored_completely_as_a_new_one(change: Change) -> None:
    inverse = _inverse(change, _left(change))

    assert (inverse.action, inverse.generation, inverse.partner) == ("create", None, None)
    assert inverse.after == {**change.before, "consumer_generation": None}


@pytest.mark.parametrize("change", [REDUCED, REDUCED_AMOUNT])
def test_reduced_consumer_gets_its_loss_back_at_its_current_generation(change: Change) -> None:
    inverse = _inverse(change, _left(change, 7))

    assert (inverse.generation, inverse.before["consumer_generation"]) == (7, 7)
    assert inverse.after == {**change.before, "consumer_generation": 7}
    assert (inverse.frees, inverse.allocates) == ({}, change.frees)


def test_corrected_owner_is_reverted() -> None:
    change = build_change(_held(a=VCPU), project="theirs")
    inverse = _inverse(change, _left(change))

    assert (inverse.after["project_id"], inverse.frees, inverse.allocates) == ("project", {}, {})


@pytest.mark.parametrize("change", [MOVED, CREATED, _change(_held(a={"VCPU": 1}), a={"VCPU": 2})])
def test_allocation_given_to_a_server_is_not_taken_back(change: Change) -> None:
    why = invert_change(change, _left(change))

    assert isinstance(why, Reason)
    assert why.id == "would_take_allocation" and SERVER in why


@pytest.mark.parametrize("change", [SWAPPED, SWAPPED_FROM_NOTHING])
def test_pair_of_an_unreverted_allocation_is_restored_as_a_whole(change: Change) -> None:
    """The migration gets what the server loses: the two together free nothing."""
    inverse = _inverse(change, _left(change))

    assert inverse.frees == {} and inverse.partner
    assert [part.consumer for part in inverse.parts] == [SERVER, MIGRATION]
    for undoing, made in zip(inverse.parts, change.parts, strict=True):
        assert is_same_allocation(undoing.before, made.after)
        assert is_same_allocation(undoing.after, made.before)


@pytest.mark.parametrize(
    ("change", "held"),
    [
        *(
            (REDUCED, held)
            for held in (
                *(_held(c=VCPU), _held(b=VCPU, c=VCPU), _held(b={"VCPU": 1}), _held(b={"VCPU": 3})),
                *(_held(b={"VCPU": 2, "DISK_GB": 1}), NOTHING),
            )
        ),
        (REMOVED, _held(b=VCPU)),
        (REMOVED, _held(a={"VCPU": 1})),
        (SWAPPED, _held(SERVER, c=VCPU)),
        (SWAPPED, _held(MIGRATION, c=VCPU)),
    ],
)
def test_consumer_with_other_allocations_is_left_alone(change: Change, held: Allocation) -> None:
    why = invert_change(change, _left(change) | _now(held))

    assert isinstance(why, Reason) and why.id == "other_allocations_now"
    assert all(name in why for name in (held.consumer, *held.resources))


@pytest.mark.parametrize("field", ["project_id", "user_id", "consumer_type"])
def test_reduced_consumer_with_another_owner_is_left_alone(field: str) -> None:
    held = {SERVER: {**_left(REDUCED)[SERVER], field: "ANOTHER"}}

    assert isinstance(invert_change(REDUCED, held), Reason)


@pytest.mark.parametrize("change", [REMOVED, REDUCED, MOVED, SWAPPED])
def test_consumer_with_its_old_allocations_needs_nothing(change: Change) -> None:
    """The change was never made, or was restored already."""
    held = _now(*(_of(part, part.before, 9) for part in change.parts))
    why = invert_change(change, held)

    assert isinstance(why, Reason) and why.id == "nothing_to_restore"


def test_neither_a_restored_change_nor_a_restoration_is_restored() -> None:
    again = _inverse(REDUCED, _left(REDUCED))
    assert isinstance(invert_change(REDUCED, _now(_of(again, again.after, 8))), Reason)
    inverse = _inverse(REMOVED, _left(REMOVED))
    assert isinstance(invert_change(inverse, _left(inverse)), Reason)


AMOUNTS = st.dictionaries(st.sampled_from(["VCPU", "DISK_GB"]), st.integers(1, 3), min_size=1)
HOLDINGS = st.dictionaries(st.sampled_from(["a", "b", "c"]), AMOUNTS, max_size=3)


@st.composite
def made(draw: st.DrawFn) -> tuple[Change, dict[str, dict[str, t.Any]]]:
    """Draw a change of one consumer or two, and their current allocations.

    Mostly these are what the change left.
    """
    partner = (
        _change(_held(MIGRATION, **before), **draw(HOLDINGS))
        if (before := draw(HOLDINGS)) and draw(st.booleans())
        else None
    )
    change = _change(_held(**draw(HOLDINGS)), partner, **draw(HOLDINGS))
    held = _left(change, draw(st.none() | st.integers(1, 9)))
    if draw(st.booleans()):
        held |= _now(
            _held(draw(st.sampled_from(list(held))), draw(st.integers(1, 9)), **draw(HOLDINGS))
        )
    return change, held


@hypothesis.settings(max_examples=count_examples(500))
@hypothesis.given(made())
def test_no_consumer_loses_anything_in_any_combination(
    view: tuple[Change, dict[str, dict[str, t.Any]]],
) -> None:
    change, held = view
    untouched = copy.deepcopy(held)
    inverse = invert_change(change, held)
    hypothesis.event(inverse.id if isinstance(inverse, Reason) else "taken back")

    assert held == untouched
    if isinstance(inverse, Reason):
        assert inverse.id
        return
    for part in inverse.parts:
        generation = held[part.consumer]["consumer_generation"]
        assert generation == part.generation == part.after["consumer_generation"]
    now = _sums(held[part.consumer] for part in inverse.parts)
    then = _sums(part.after for part in inverse.parts)
    # One of a pair has afterwards what the other loses.
    assert all(then[share] >= amount for share, amount in now.items())


def _sums(documents: t.Iterable[t.Mapping[str, t.Any]]) -> collections.Counter[tuple[str, str]]:
    """Return the amounts in all documents together, by provider and resource class."""
    sums: collections.Counter[tuple[str, str]] = collections.Counter()
    for held in documents:
        for provider, share in held["allocations"].items():
            for resource_class, amount in share["resources"].items():
                sums[provider, resource_class] += amount
    return sums


# The changes in a journal


def _records(*steps: Step | TreeStep, event: str = BEFORE) -> list[dict[str, t.Any]]:
    records: list[dict[str, t.Any]] = [build_record(event, step, ENDPOINT) for step in steps]
    return t.cast("list[dict[str, t.Any]]", json.loads(json.dumps(records)))


def _find(records: t.Sequence[t.Any], *consumers: str) -> list[Step]:
    return find_changes(records, ENDPOINT, consumers)


REMOVAL, REDUCTION = (
    _step(REMOVED),
    _step(_change(_held(MIGRATION, a=VCPU, b=VCPU), b=VCPU), "evacuated_source"),
)


@pytest.mark.parametrize("event", [BEFORE, PLANNED])
def test_newest_change_is_restored_first(event: str) -> None:
    assert _find(_records(REMOVAL, REDUCTION, event=event)) == [REDUCTION, REMOVAL]


TREE = TreeStep(
    f"orphaned_provider/{A}",
    "orphaned_provider",
    ProviderRemoval((Provider(A, "compute-9", 4, A, None),)),
)


def test_deleted_trees_come_before_allocations() -> None:
    records = [*_records(REMOVAL, TREE, event=PLANNED), *_records(TREE)]

    tree, change = find_restore_steps(records, ENDPOINT, [], [])

    assert (tree.finding, change.finding) == (TREE.finding, REMOVAL.finding)
    assert _find(records) == [REMOVAL]
    assert find_deleted_providers(records, ENDPOINT) == {A: "compute-9"}


@pytest.mark.parametrize(
    ("consumers", "providers", "chosen"),
    [
        ([], [], [TREE.finding, REMOVAL.finding]),
        ([SERVER], [], [REMOVAL.finding]),
        ([], ["compute-9"], [TREE.finding]),
        ([], [A.upper()], [TREE.finding]),
        ([SERVER], [A], [TREE.finding, REMOVAL.finding]),
    ],
)
def test_unnamed_consumers_are_left_alone(
    consumers: list[str], providers: list[str], chosen: list[str]
) -> None:
    assert [
        step.finding
        for step in find_restore_steps(_records(REMOVAL, TREE), ENDPOINT, consumers, providers)
    ] == chosen


def test_pair_is_chosen_by_either_consumer() -> None:
    pair = _step(SWAPPED, "unreverted_allocation")

    assert _find(_records(pair), SERVER) == _find(_records(pair), MIGRATION) == [pair]


def test_empty_journal_has_nothing_to_restore() -> None:
    assert _find([]) == []


@pytest.mark.parametrize(
    ("consumers", "providers", "unknown"),
    [([SERVER, C], [], C), ([], ["compute-9", "compute-1"], "compute-1")],
)
def test_names_that_the_journal_does_not_have_are_refused(
    consumers: list[str], providers: list[str], unknown: str
) -> None:
    with pytest.raises(InvalidInput, match=unknown):
        find_restore_steps(_records(REMOVAL, TREE), ENDPOINT, consumers, providers)


@pytest.mark.parametrize("there", ["http://elsewhere", "", None, 7])
def test_journal_of_another_cloud_is_refused_as_a_whole(there: t.Any) -> None:
    records = [*_records(REMOVAL), {**_records(REDUCTION)[0], "placement_endpoint": there}]

    with pytest.raises(InvalidInput, match="another cloud"):
        _find(records, SERVER)


@pytest.mark.parametrize("missing", [*REMOVAL.as_dict(), "placement_endpoint"])
def test_incomplete_record_is_refused(missing: str) -> None:
    (told,) = _records(REMOVAL)
    del told[missing]

    with pytest.raises(InvalidInput, match=f"'{missing}'"):
        _find([told])


@pytest.mark.parametrize(
    "edit",
    [{"consumer": "nobody"}, {"consumer": None}, {"generation": 9}, {"before": []}, {"frees": {}}],
    ids=str,
)
def test_contradictory_record_is_refused(edit: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput):
        _find([{**_records(REMOVAL)[0], **edit}])


@pytest.mark.parametrize(
    ("outcomes", "taken_back"),
    [
        (["removed"], True),
        # The write may have been made.
        (["failed"], True),
        # Nova emptied the consumer meanwhile: it gets nothing back.
        (["skipped"], False),
        (["skipped", "removed"], True),
    ],
)
def test_change_that_placement_refused_is_not_restored(
    tmp_path: pathlib.Path, outcomes: list[str], taken_back: bool
) -> None:
    journal = Journal(str(tmp_path), ENDPOINT)
    for outcome in outcomes:
        journal.record_before([REMOVAL, REDUCTION])
        journal.record_after([Outcome(REMOVAL, outcome), Outcome(REDUCTION, "skipped")])
    journal.record_before([REDUCTION])
    records, _torn = read_journal(journal.path)

    assert _find(records) == [REDUCTION, REMOVAL][: 1 + taken_back]
    if not taken_back:
        with pytest.raises(InvalidInput, match=SERVER):
            _find(records, SERVER)


def test_restoration_in_a_file_has_its_write() -> None:
    inverse = _step(_inverse(REMOVED, _left(REMOVED)))
    shown = {"finding": inverse.finding, "kind": inverse.kind, "consumer": SERVER, "provider": None}

    for outcome, write, is_change in (("restored", inverse.change, True), ("failed", None, False)):
        done = Restoration(inverse, outcome, Reason("told", "Why."), write=write)
        assert done.as_dict() == {
            **shown,
            "outcome": outcome,
            "reason": "Why.",
            "reason_id": "told",
            "write": write and write.as_dict(),
        }
        assert done.changed is is_change


def test_journal_of_a_restoration_is_readable(tmp_path: pathlib.Path) -> None:
    inverse = _step(_inverse(REMOVED, _left(REMOVED)))
    journal = Journal(str(tmp_path), ENDPOINT)
    journal.record_before([inverse])
    journal.record_after([Restoration(inverse, "restored", write=inverse.change)])
    records, _torn = read_journal(journal.path)

    assert _find(records) == [inverse]


# Restoring it


class Site:
    """A Placement from which three consumers were removed."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.placement = Placement()
        # A Nova that has none of the consumers.
        self.nova = Service({}, newest=(2, 90))
        self.excluded: dict[str, t.Any] = {}
        self.journal = Journal(str(folder), ENDPOINT)
        self.steps: list[t.Any] = []
        for number in range(3):
            held = self.read(self.placement.give(number, VCPU=2))
            self.steps.append(_step(build_change(held, resources={})))
            self.placement.give(number)

    def read(self, consumer: str) -> Allocation:
        held = PlacementReader(self.placement.api()).get_allocation(consumer).value
        assert held
        return held

    def restored(
        self,
        check_mode: bool = False,
        stopped: t.Callable[[], str] = str,
        deleted: t.Mapping[str, str] | None = None,
        max_failures: int = 5,
        became: t.Mapping[str, t.Any] = types.MappingProxyType({}),
    ) -> list[Restoration]:
        """Restore the steps; each tree has become what `became` says."""
        api, journal = self.placement.api(), None if check_mode else self.journal
        trees: t.Any = types.SimpleNamespace(
            restore_tree=lambda tree, _providers: Restoration(tree, **became)
        )
        nova = NovaReader(self.nova.open("Nova", (2, 53)))
        return Restorer(
            PlacementReader(api),
            AllocationWriter(api),
            RestoreCheck(nova, parse_policy(self.excluded)),
            trees,
            deleted or {},
            journal,
            max_failures,
        ).restore(self.steps, stopped)


@pytest.fixture(name="site")
def _site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


def _outcomes(done: t.Iterable[Restoration]) -> list[str]:
    return [restoration.outcome for restoration in done]


@pytest.mark.parametrize("check_mode", [True, False])
def test_restoration_asks_for_the_capacity(site: Site, check_mode: bool) -> None:
    """Many fail for it here without ending the run, and those before them count."""
    site.placement.stock[HERE] = {"VCPU": inventory(3)}

    done = site.restored(check_mode, max_failures=1)

    assert _outcomes(done) == ["restored", "blocked", "blocked"]
    assert done[1].reason.id == "blocked_by_capacity"
    assert len(site.placement.posts) == (0 if check_mode else 1)


def test_record_without_allocations_is_restored_after_another_look(site: Site) -> None:
    first, second = (step.subject for step in site.steps[:2])
    site.placement.records = {first: 0, second: 0}
    # While the second is proven again, somebody else gives it an allocation.
    post = site.placement.take

    def take(body: Body, microversion: str) -> tuple[int, Body]:
        answer = post(body, microversion)
        if second in body and second not in site.placement.held:
            site.placement.held[second] = {**site.placement.held[first], "generation": 1}
            site.placement.held[second]["allocations"] = {THERE: {"resources": {"VCPU": 1}}}
        return answer

    site.placement.take = take  # type: ignore[method-assign]

    assert _outcomes(site.restored()) == ["restored", "skipped", "restored"]
    assert list(site.placement.held[second]["allocations"]) == [THERE]
    records = read_journal(site.journal.path)[0]
    assert [record.get("outcome") for record in records if record["event"] == "after"] == [
        "skipped",
        "restored",
        "skipped",
        "restored",
    ]


def test_everything_is_restored_and_journaled(site: Site) -> None:
    assert _outcomes(site.restored()) == ["restored"] * 3
    held = {consumer: held["allocations"] for consumer, held in site.placement.held.items()}
    assert held == {step.subject: step.change.before["allocations"] for step in site.steps}
    events = [record["event"] for record in read_journal(site.journal.path)[0]]
    assert events == ["before", "after"] * 3


def test_second_restore_does_nothing(site: Site) -> None:
    site.restored()
    held = copy.deepcopy(site.placement.held)

    assert _outcomes(site.restored()) == ["skipped"] * 3
    assert site.placement.held == held


def test_check_mode_shows_the_writes_and_makes_none(site: Site) -> None:
    done = site.restored(check_mode=True)

    assert _outcomes(done) == ["restored"] * 3 and all(known.write for known in done)
    assert site.placement.posts == [] and site.placement.held == {}


def test_consumer_that_returns_at_the_last_moment_keeps_its_allocations(site: Site) -> None:
    site.placement.faults = [None, lambda _body: site.placement.give(1, VCPU=7) and None]

    assert _outcomes(site.restored()) == ["restored", "skipped", "restored"]
    assert site.placement.held[uuid(1)]["allocations"] == {HERE: {"resources": {"VCPU": 7}}}


def test_nothing_is_restored_without_a_journal(site: Site, tmp_path: pathlib.Path) -> None:
    (tmp_path / "occupied").write_text("")
    site.journal = Journal(str(tmp_path / "occupied"), ENDPOINT)

    assert _outcomes(site.restored()) == ["failed"] * 3
    assert site.placement.posts == []


def test_stopped_restore_leaves_the_rest(site: Site) -> None:
    done = site.restored(stopped=lambda: "Stopped." if site.placement.held else "")

    assert _outcomes(done) == ["restored", "skipped", "skipped"] and done[-1].reason == "Stopped."


def _break(_body: t.Any) -> int:
    raise RuntimeError("no thread")


def test_restored_allocations_are_reported_even_after_an_unexpected_error(site: Site) -> None:
    site.placement.faults = [None, _break]
    done = site.restored()

    assert _outcomes(done) == ["restored", "failed", "restored"]
    assert done[1].reason.id == "unexpected_error"


def test_rest_is_not_tried_after_too_many_failures(site: Site) -> None:
    site.placement.faults = [_break] * 3
    done = site.restored(max_failures=2)

    assert _outcomes(done) == ["failed", "failed", "skipped"]
    assert done[-1].reason.id == "too_many_failures"


@pytest.mark.parametrize(
    ("deleted", "outcome", "reason"),
    [
        ({}, "failed", "provider_gone"),
        ({B: "compute-8"}, "failed", "provider_gone"),
        # nova-compute may create it again.
        ({HERE: "compute-9"}, "skipped", "provider_not_recreated"),
        # The allocation is not moved to another provider of the same name.
        ({HERE: THERE}, "skipped", "provider_replaced"),
    ],
)
def test_deleted_provider_is_not_even_requested_and_does_not_block_the_rest(
    site: Site, deleted: dict[str, str], outcome: str, reason: str
) -> None:
    """Placement would keep an empty record of the consumer.

    It would refuse later allocations for it.
    """
    site.placement.providers = [THERE]
    done = site.restored(deleted=deleted, max_failures=1)

    assert [(one.outcome, one.reason.id) for one in done] == [(outcome, reason)] * 3
    assert all(name in done[0].reason for name in (HERE, deleted.get(HERE, "")))
    assert site.placement.posts == [] and site.placement.held == {}


def test_each_deleted_provider_is_named(site: Site) -> None:
    held = Allocation(uuid(0), 3, "p", "u", None, {HERE: VCPU, THERE: VCPU}, 7200)
    site.steps = [_step(build_change(held, resources={}))]
    site.placement.providers = []

    (done,) = site.restored(deleted={HERE: "compute-9", THERE: "compute-8"})

    assert (done.outcome, done.reason.id) == ("skipped", "provider_not_recreated")
    assert "compute-9" in done.reason and "compute-8" in done.reason


def test_consumer_that_changes_while_the_journal_is_written_is_left_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was emptied and claimed anew meanwhile, so its generation is the same again."""
    consumer = site.placement.give(0, VCPU=2)
    change = build_change(site.read(consumer), resources={HERE: {"VCPU": 1}})
    site.steps = [_step(change, "unknown_consumer")]
    site.placement.give(0, VCPU=1)
    monkeypatch.setattr(site.journal, "record_before", lambda steps: site.placement.give(0, VCPU=8))

    assert _outcomes(site.restored()) == ["skipped"]
    assert site.placement.held[consumer]["allocations"] == {HERE: {"resources": {"VCPU": 8}}}


class Swap:
    """A server whose failed resize left its allocation to the migration, and which got it back."""

    def __init__(self, site: Site) -> None:
        self.site, self.placement = site, site.placement
        self.server, self.migration, self.later_migration = map(uuid, (7, 8, 9))
        self.placement.held.clear()
        self.write({self.server: HERE})
        # The resize: Nova gives the source to the migration, and claims the destination.
        self.write({self.migration: HERE, self.server: None})
        self.write({self.server: THERE})
        held, of_migration = map(site.read, (self.server, self.migration))
        partner = build_change(of_migration, resources={})
        change = build_change(held, partner=partner, resources=of_migration.resources)
        AllocationWriter(self.placement.api()).replace(change)
        self.step = _step(change, "unreverted_allocation")
        self.row = {
            "uuid": self.migration,
            "instance_uuid": self.server,
            "migration_type": "resize",
            "status": "error",
            "source_compute": "here",
            "source_node": HERE,
            "dest_compute": "there",
            "dest_node": THERE,
            "created_at": "2026-11-01T00:00:00.000000",
            "updated_at": "2026-11-01T00:01:00.000000",
        }
        self.show([self.row])

    def show(
        self, migrations: list[dict[str, t.Any]], actions: t.Sequence[str] = (), **server: t.Any
    ) -> None:
        """Let Nova have the server with these migrations, and these actions since the first.

        server: fields of the server, `...` for one that Nova does not show.
        """
        row = {
            "id": self.server,
            "status": "ACTIVE",
            "tenant_id": "p",
            "user_id": "u",
            "OS-EXT-SRV-ATTR:host": "here",
            "OS-EXT-SRV-ATTR:hypervisor_hostname": HERE,
            "OS-EXT-STS:task_state": None,
            **server,
        }
        row = {key: value for key, value in row.items() if value is not ...}
        events = [
            {
                "action": name,
                "request_id": f"req-{name}",
                "user_id": "u",
                "message": None,
                "start_time": "2026-11-02T00:00:00.000000",
            }
            for name in actions
        ]
        self.site.nova.answers |= {
            f"/servers/{self.server}": {"server": row},
            "/os-migrations": {"migrations": migrations},
            f"/servers/{self.server}/os-instance-actions": {"instanceActions": events},
        }

    def write(self, holders: dict[str, str | None]) -> None:
        body = {
            consumer: {
                "allocations": {provider: {"resources": dict(VCPU)}} if provider else {},
                "consumer_generation": self.placement.held.get(consumer, {}).get("generation"),
                "project_id": "p",
                "user_id": "u",
            }
            for consumer, provider in holders.items()
        }
        assert self.placement.take(body, "1.28")[0] == 204

    def move_away_and_back(self) -> None:
        self.write({self.later_migration: HERE, self.server: None})
        self.write({self.server: C})
        self.write({self.server: HERE, self.later_migration: None})

    def restore(self) -> tuple[str, Reason]:
        """Return the outcome and the reason."""
        self.site.steps = [self.step]
        (done,) = self.site.restored()
        return done.outcome, done.reason


def test_server_that_was_moved_away_and_back_keeps_its_allocation(site: Site) -> None:
    """Nova empties the server and claims again, which gives the generation of the change."""
    swap = Swap(site)
    changed = copy.deepcopy(swap.placement.held)
    swap.move_away_and_back()
    assert swap.placement.held == changed

    moves = [
        {**swap.row, "uuid": uuid(day), "created_at": f"2026-11-{day}", "status": "confirmed"}
        for day in (20, 21)
    ]
    swap.show([*moves, swap.row])

    outcome, why = swap.restore()

    assert outcome == "skipped" and why.id == "moved_since"
    assert swap.placement.held == changed


LATER = {"uuid": uuid(20), "created_at": "2026-11-03T00:00:00.000000", "status": "error"}


@pytest.mark.parametrize(
    ("migrations", "shown", "said"),
    [
        ([{}], {}, ""),
        ([LATER, {}], {"actions": ["reboot", "stop"]}, ""),
        # Both were before the failed resize.
        (
            [{**LATER, "status": "completed", "created_at": "2026-10-01T00:00:00.000000"}, {}],
            {},
            "",
        ),
        ([{"created_at": "2026-11-03T00:00:00.000000"}], {"actions": ["unshelve"]}, ""),
        ([], {}, "migration_not_listed"),
        ([{"uuid": uuid(21)}], {}, "migration_not_listed"),
        ([{"status": "confirmed"}], {}, "migration_did_not_fail"),
        ([{"migration_type": "live-migration"}], {}, "migration_did_not_fail"),
        ([{"source_node": THERE, "dest_node": HERE}], {}, "other_hosts_in_journal"),
        ([{"dest_node": "elsewhere"}], {}, "other_hosts_in_journal"),
        ([{}], {"OS-EXT-SRV-ATTR:hypervisor_hostname": THERE}, "other_hosts_in_journal"),
        ([{**LATER, "status": "completed"}, {}], {}, "moved_since"),
        ([{**LATER, "status": "reverted"}, {}], {}, "moved_since"),
        ([{**LATER, "created_at": None, "status": "completed"}, {}], {}, "moved_since"),
        ([{**LATER, "status": "running"}, {}], {}, "server_changing"),
        ([{}], {"OS-EXT-STS:task_state": "rebuilding"}, "server_changing"),
        ([{}], {"OS-EXT-STS:task_state": ...}, "server_changing"),
        ([{}], {"status": "VERIFY_RESIZE"}, "server_changing"),
        ([{}], {"actions": ["unshelve"]}, "moved_since"),
    ],
)
def test_pair_that_nova_does_not_bear_out_is_left_alone(
    site: Site, migrations: list[dict[str, t.Any]], shown: dict[str, t.Any], said: str
) -> None:
    """The journal itself has no fault: its generations and times are right."""
    swap = Swap(site)
    swap.show([{**swap.row, **row} for row in migrations], **shown)
    before = copy.deepcopy(swap.placement.held)

    outcome, why = swap.restore()

    assert (outcome, why.id) == ("skipped" if said else "restored", said)
    assert (swap.placement.held == before) is (said != "")


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/os-migrations", 500, "migrations_of_server_unread"),
        ("/servers/{}/os-instance-actions", 500, "moved_since"),
        ("/servers/{}", 403, "server_unread"),
        ("/servers/{}", 500, "server_unread"),
        ("/servers/{}", 404, "server_gone"),
    ],
)
def test_pair_is_left_alone_without_an_answer_about_its_server_and_moves(
    site: Site, path: str, status: int, reason: str
) -> None:
    swap = Swap(site)
    site.nova.answers[path.format(swap.server)] = status

    outcome, why = swap.restore()

    assert (outcome, why.id) == ("skipped", reason)


@pytest.mark.parametrize(
    ("kind", "of_server", "of_migration", "reason"),
    [
        ("unreverted_allocation", {THERE: VCPU}, {HERE: VCPU}, ""),
        ("extra_host", {THERE: VCPU}, {HERE: VCPU}, "migration_not_listed"),
        ("unreverted_allocation", {}, {HERE: VCPU}, "left_without_allocation"),
        ("unreverted_allocation", {THERE: VCPU}, {HERE: {"VCPU": 3}}, "migration_would_get_more"),
    ],
)
def test_pair_of_a_journal_that_was_made_by_hand_is_left_alone(
    site: Site,
    kind: str,
    of_server: dict[str, dict[str, int]],
    of_migration: dict[str, dict[str, int]],
    reason: str,
) -> None:
    swap = Swap(site)
    had = Allocation(swap.server, 2, "p", "u", None, of_server, 7200)
    held = Allocation(swap.migration, 1, "p", "u", None, of_migration, 7200)
    change = build_change(had, build_change(held, resources={}), resources={HERE: VCPU})
    swap.step = _step(change, kind)

    assert swap.restore()[1].id == reason


def test_nothing_is_read_for_an_empty_journal(site: Site) -> None:
    site.steps = []
    site.placement.providers = None  # type: ignore[assignment]

    assert site.restored() == []


@pytest.mark.parametrize(
    ("kind", "status", "marker", "reason"),
    [
        ("deleted_server", 404, 400, ""),
        ("unknown_consumer", 404, 400, ""),
        ("deleted_server", 500, 400, "server_unread"),
        ("deleted_server", 403, 400, "server_unread"),
        ("ended_migration", 404, 200, ""),
        ("deleted_migration", 404, 400, "consumer_unknown_to_nova"),
        ("ended_migration", 404, 400, "consumer_unknown_to_nova"),
        ("extra_host", 404, 200, "consumer_unknown_to_nova"),
    ],
)
def test_consumer_gets_back_only_what_fits_to_the_answer_of_nova(
    site: Site, kind: str, status: int, marker: int, reason: str
) -> None:
    step = _step(site.steps[0].change, kind)
    site.steps = [step]
    site.nova.answers[f"/servers/{step.subject}"] = status
    site.nova.answers["/os-migrations"] = {"migrations": []} if marker == 200 else marker

    (done,) = site.restored(check_mode=True)

    assert (done.reason.id, done.write is not None) == (reason, not reason)
    assert done.outcome == ("skipped" if reason else "restored")


@pytest.mark.parametrize(
    ("kind", "shown", "reason"),
    [
        ("extra_host", {}, ""),
        # It was removed in error, or Nova has found the server again.
        ("deleted_server", {"OS-EXT-SRV-ATTR:hypervisor_hostname": THERE}, ""),
        # The kind of a journal that was made by hand.
        ("deleted_server", {}, "server_exists"),
        ("unknown_consumer", {}, "server_exists"),
        ("deleted_server", {"OS-EXT-SRV-ATTR:hypervisor_hostname": None}, "server_exists"),
        ("ended_migration", {}, "server_where_migration_was"),
        ("extra_host", {"tenant_id": "other"}, "other_owner_in_journal"),
        ("extra_host", {"OS-EXT-STS:task_state": "migrating"}, "server_changing"),
        ("extra_host", {"status": "BUILD"}, "server_changing"),
    ],
)
def test_live_server_gets_back_only_what_is_its_own(
    site: Site, kind: str, shown: dict[str, t.Any], reason: str
) -> None:
    swap = Swap(site)
    swap.show([swap.row], **shown)
    held = Allocation(swap.server, 3, "p", "u", None, {THERE: VCPU}, 7200)
    swap.placement.held.clear()
    site.steps = [_step(build_change(held, resources={}), kind)]

    (done,) = site.restored(check_mode=True)

    assert done.outcome == ("skipped" if reason else "restored"), done.reason
    assert done.reason.id == reason


def test_shared_disk_is_no_host_of_a_live_server(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = Swap(site)
    swap.show([swap.row], **{"OS-EXT-SRV-ATTR:hypervisor_hostname": THERE})
    held = Allocation(swap.server, 3, "p", "u", None, {THERE: VCPU, HERE: {"DISK_GB": 1}}, 7200)
    swap.placement.held.clear()
    site.steps = [_step(build_change(held, resources={}))]
    assert site.restored(check_mode=True)[0].reason.id == "server_exists"

    monkeypatch.setattr(PlacementReader, "_list_sharing_uuids", lambda _self: {HERE})
    assert _outcomes(site.restored(check_mode=True)) == ["restored"]


@pytest.mark.parametrize(("nova", "outcome"), [("p", "skipped"), ("former", "restored")])
def test_live_server_is_not_given_to_an_owner_that_nova_does_not_have(
    site: Site, nova: str, outcome: str
) -> None:
    """The kind `wrong_owner` of a journal says nothing about whose server it is."""
    swap = Swap(site)
    swap.show([swap.row], tenant_id=nova)
    held = site.read(swap.server)
    assert held.generation
    had = d.replace(held, project="former", generation=held.generation - 1)
    change = build_change(had, resources=held.resources, project="p", user="u")
    site.steps = [_step(change, "wrong_owner")]

    (done,) = site.restored(check_mode=True)

    assert done.outcome == outcome, done.reason


@pytest.mark.parametrize(
    "excluded",
    [
        {"exclude_consumers": [uuid(0)]},
        {"exclude_providers": [HERE]},
        {"exclude_providers": [{"name": HERE, "reason": "in repair"}]},
    ],
)
def test_excluded_consumers_and_providers_are_left_alone(
    site: Site, excluded: dict[str, t.Any]
) -> None:
    site.excluded = excluded
    site.steps = site.steps[:1]

    (done,) = site.restored(check_mode=True)

    assert (done.outcome, done.reason.id) == (
        "skipped",
        "consumer_excluded" if "exclude_consumers" in excluded else "provider_excluded",
    )


@pytest.mark.parametrize("named", [A, B, "compute-1", "compute-1_card"])
@pytest.mark.parametrize(
    ("excluded", "is_excluded"),
    [(A, True), (B, True), ("compute-1", True), ("compute-1_card", True), ("compute-2", False)],
)
def test_the_tree_of_an_excluded_provider_is_excluded(
    named: str, excluded: str, is_excluded: bool
) -> None:
    host, card = Provider(A, "compute-1", 1, A, None), Provider(B, "compute-1_card", 1, A, A)
    providers = {A: host, B: card, C: Provider(C, "compute-2", 1, C, None)}
    nova: t.Any = None
    check = RestoreCheck(nova, parse_policy({"exclude_providers": [excluded]}))

    assert bool(check.explain_exclusion(providers, (), [named])) is is_excluded


ADDITION = TreeAddition(TREE.finding, TREE.kind, ())
RESTORED = {"outcome": "restored", "write": ADDITION}
REFUSED, GONE = Reason("told", "no"), Reason("told", "It is gone.")


@pytest.mark.parametrize(
    ("became", "check_mode", "recorded"),
    [
        (RESTORED, False, ["restored"]),
        (RESTORED, True, []),
        ({**RESTORED, "outcome": "failed", "reason": REFUSED, "partly": True}, False, ["failed"]),
        ({"outcome": "skipped", "reason": GONE}, False, []),
    ],
)
def test_outcome_of_a_tree_is_recorded_if_something_was_written(
    site: Site, became: dict[str, t.Any], check_mode: bool, recorded: list[str]
) -> None:
    site.steps = find_restore_steps(_records(TREE), ENDPOINT, [], [])

    (done,) = site.restored(check_mode, became=became)

    assert done == Restoration(site.steps[0], **became)
    records = read_journal(site.journal.path)[0] if site.journal.written else []
    assert [(entry["event"], entry["outcome"]) for entry in records] == [
        ("after", outcome) for outcome in recorded
    ]


@pytest.mark.parametrize("name", [A, "compute-9"])
def test_excluded_tree_is_left_alone(site: Site, name: str) -> None:
    site.excluded = {"exclude_providers": [name]}
    site.steps = find_restore_steps(_records(TREE), ENDPOINT, [], [])

    (done,) = site.restored(became=RESTORED)

    assert done.outcome == "skipped" and done.reason.id == "provider_excluded"


def test_migration_of_an_excluded_server_is_left_alone(site: Site) -> None:
    swap = Swap(site)
    held = Allocation(swap.migration, 3, "p", "u", None, {HERE: VCPU}, 7200)
    site.excluded = {"exclude_consumers": [swap.server]}
    site.steps = [_step(build_change(held, resources={}), "ended_migration")]

    (done,) = site.restored(check_mode=True)

    assert done.outcome == "skipped" and done.reason.id == "consumer_excluded"
