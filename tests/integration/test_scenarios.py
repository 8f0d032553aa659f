"""Every situation of the minicloud, once: found, explained, and remediated or kept.

The maker of each situation states what is an orphan and what is needed, allocation by allocation.
"""

import dataclasses as d
import stat
import typing as t
from pathlib import Path

import pytest
from minicloud_ctl import databases

from ...plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from .support import Ansible, Minicloud, Placement, Run, long
from .world import World

# What the tables show for each situation: the kinds of the orphans, and the reasons that protect
# lookalikes.
EXPECTED: dict[str, set[str]] = {
    "healthy": set(),
    "shared_disk": set(),
    "former_shared_disk": set(),
    "hostile_names": {"deleted_server", "foreign_provider"},
    "deleted_server": {"deleted_server"},
    "deleted_by_sql": {"deleted_server"},
    "deleted_by_hand": {"deleted_server"},
    "purged_server": {"unknown_consumer"},
    "purged_server_mapped": {"unknown_consumer"},
    "nested_child": {"deleted_server"},
    "ended_migration": {"ended_migration"},
    "ended_migration_pool": {"ended_migration"},
    "ended_migration_unshelved": {"ended_migration"},
    "ended_migration_offloaded": {"ended_migration"},
    "reset_resize": {"ended_migration"},
    "ended_migration_deleted": {"ended_migration", "deleted_server"},
    "deleted_migration": {"deleted_migration"},
    "deleted_migration_beside": {"deleted_migration", "unreverted_allocation", "ended_migration"},
    "evacuated_source": {"evacuated_source"},
    "evacuated_source_stale": {"evacuated_source"},
    "evacuated_child": {"evacuated_source"},
    "unfinished_evacuation": set(),
    "extra_host": {"extra_host"},
    "extra_host_left_since": {"extra_host"},
    "extra_host_left_before": {"extra_host"},
    "booting": {"booting"},
    "move_in_flight": {"moving"},
    "unconfirmed_resize": {"verify_resize"},
    "unconfirmed_resize_error": {"verify_resize"},
    "soft_deleted": set(),
    "error_with_host": set(),
    "shelved_offloaded": {"unhosted_server"},
    "shelved_after_long_life": {"unhosted_server"},
    "shelved_from_gone_host": {"unhosted_server"},
    "unreverted_allocation": {"unreverted_allocation", "ended_migration"},
    "failed_cold_migration": {"unreverted_allocation", "ended_migration"},
    "failed_cold_migration_error": {"error_with_host"},
    "killed_while_copying": {"moving"},
    "lost_instance_mapping": set(),
    "lost_mapping_extra_host": {"unproven"},
    "missing_allocation": {"missing_allocation"},
    "foreign_consumer": {"foreign_type"},
    "foreign_uuid": {"foreign_uuid"},
    "foreign_provider": {"foreign_provider"},
    "orphaned_provider": {"deleted_server"},
    "second_nova": {"foreign_provider"},
    "stale_service": set(),
    "misplaced_allocation": {"misplaced_allocation"},
    "wrong_amount": {"wrong_amount"},
    "wrong_owner": set(),
    "leaked_port": {"leaked_port"},
    "leaked_child": {"leaked_child"},
    "ironic_nodes": {"deleted_server", "extra_host"},
    "error_without_host": {"unhosted_server"},
    "over_quota": {"unhosted_server"},
    "reset_without_host": {"unhosted_server"},
    "name_conflict": {"deleted_server"},
}
# Variants of the others, which take long to make. The matrix makes them too.
VARIANTS = frozenset(
    {
        "deleted_by_hand",
        "deleted_by_sql",
        "deleted_migration_beside",
        "ended_migration_deleted",
        "ended_migration_offloaded",
        "ended_migration_pool",
        "ended_migration_unshelved",
        "evacuated_child",
        "evacuated_source_stale",
        "extra_host_left_before",
        "extra_host_left_since",
        "failed_cold_migration",
        "failed_cold_migration_error",
        "foreign_uuid",
        "former_shared_disk",
        "killed_while_copying",
        "lost_mapping_extra_host",
        "nested_child",
        "over_quota",
        "purged_server_mapped",
        "reset_resize",
        "reset_without_host",
        "second_nova",
        "shelved_after_long_life",
        "shelved_from_gone_host",
        "unfinished_evacuation",
    }
)
SITUATIONS = [long(name) if name in VARIANTS else name for name in EXPECTED]
# These cannot be decided if Nova does not show the properties of a server's image.
NEED_IMAGE_PROPERTIES = frozenset({"wrong_amount", "leaked_child"})
# These are proven by a trait that Nova's compute nodes have in later releases than Train.
NEED_NOVA_TRAITS = frozenset({"shelved_from_gone_host"})
EVERY_KIND = {
    "orphan_cleanup_remediate_kinds": [kind.name for kind in ORPHAN_KINDS],
    "orphan_cleanup_max_changes": 1000,
    "orphan_cleanup_max_share": 1,
    "orphan_cleanup_min_age": "1h",
    "orphan_cleanup_unknown_min_age": "1h",
}

Holdings = dict[str, t.Any]


# Nothing is old enough without a time, so the situations show that Placement's own clock is read.
WITHOUT_DATE = True


@d.dataclass(frozen=True)
class Story:
    """All situations at once, cleaned up and restored.

    The allocations at each stage, and the output and files of each run.
    """

    situations: frozenset[str]
    placement: tuple[int, int]
    before: Holdings
    detected: Run
    after_detection: Holdings
    checked: Run
    after_check: Holdings
    cleaned: Run
    after: Holdings


@pytest.fixture(scope="module")
def play(minicloud: Minicloud, tmp_path_factory: pytest.TempPathFactory) -> t.Callable[..., Run]:
    def run(name: str, *arguments: str, **variables: str) -> Run:
        # Wide enough for whole names, whatever else is in the cloud.
        environment = {**minicloud.environment, "COLUMNS": "200"}
        ansible = Ansible(minicloud.root, tmp_path_factory.mktemp(name), environment)
        return ansible.playbook(name, *arguments, variables={**EVERY_KIND, **variables})

    return run


@pytest.fixture(scope="module")
def situations(request: pytest.FixtureRequest) -> frozenset[str]:
    """The situations of the selected tests, so that nobody waits for the others."""
    named = set()
    for item in request.session.items:
        if item.path == request.path and hasattr(item, "callspec"):
            named.add(item.callspec.params.get("scenario"))
    return frozenset(named - {None} or set(EXPECTED) - VARIANTS)


@pytest.fixture(scope="module")
def story(
    minicloud: Minicloud,
    placement: Placement,
    play: t.Callable[..., Run],
    situations: frozenset[str],
    world: World,
) -> Story:
    minicloud.scenario(*situations)
    databases.set_back(world.paths, hours=2)
    return Story(
        situations=situations,
        placement=placement.newest,
        before=placement.everything(),
        detected=play("detect_orphans"),
        after_detection=placement.everything(),
        checked=play("cleanup_orphans", "--check", "--diff"),
        after_check=placement.everything(),
        cleaned=play("cleanup_orphans"),
        after=placement.everything(),
    )


@pytest.fixture(scope="module")
def long_ago(
    story: Story, minicloud: Minicloud, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, t.Any]:
    """A detection for which everything has lasted long enough."""
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("long_ago"), minicloud.environment)
    return ansible.module(
        "orphan_detect", min_age="0", unconfirmed_min_age="0", stuck_min_age="0", stale_min_age="0"
    )


@pytest.mark.acceptance
@pytest.mark.parametrize("scenario", SITUATIONS)
def test_scenario_is_found_and_explained(
    story: Story, minicloud: Minicloud, placement: Placement, scenario: str
) -> None:
    truth = minicloud.truth(scenario)
    allocations = truth["allocations"]
    consumers = {allocation["consumer"] for allocation in allocations} or set(truth["servers"])
    entries = [entry for entry in story.detected.entries if entry["consumer"] in consumers]

    if scenario in NEED_IMAGE_PROPERTIES:
        minicloud.needs_compute("2.98", "Nova shows the properties of images")
    if scenario in NEED_NOVA_TRAITS:
        placement.needs("1.38", "compute nodes have a trait of Nova")
    assert {entry["kind"] for entry in entries} == EXPECTED[scenario]
    assert all(entry["reason"].endswith((".", "same.")) and entry["evidence"] for entry in entries)
    dropped = {
        (entry["consumer"], provider["uuid"])
        for entry in entries
        for provider in entry["providers"]
        if provider["dropped"]
    }
    assert dropped == _orphaned(truth, story)


@pytest.mark.acceptance
@pytest.mark.parametrize("scenario", SITUATIONS)
def test_scenario_is_remediated_or_kept(story: Story, minicloud: Minicloud, scenario: str) -> None:
    truth = minicloud.truth(scenario)
    orphaned = _orphaned(truth, story)
    every = {(held["consumer"], held["provider"]) for held in truth["allocations"]}

    for consumer, provider in orphaned:
        assert provider not in story.after.get(consumer, {}), f"{consumer} still holds {provider}"
    for consumer, provider in every - orphaned:
        assert (
            story.after[consumer][provider]["resources"]
            == story.before[consumer][provider]["resources"]
        )


@pytest.mark.acceptance
def test_no_other_consumer_changes(story: Story, minicloud: Minicloud) -> None:
    orphaned = {
        allocation
        for scenario in story.situations - minicloud.left_out
        for allocation in _orphaned(minicloud.truth(scenario), story)
    }

    gone = {
        (consumer, provider)
        for consumer, held in story.before.items()
        for provider in held
        if provider not in story.after.get(consumer, {})
    }

    assert gone == orphaned


@pytest.mark.acceptance
def test_detection_never_writes(story: Story) -> None:
    assert (story.detected.status, story.detected.changed) == (0, 0)
    assert story.after_detection == story.before


@pytest.mark.acceptance
def test_check_mode_predicts_without_writing(story: Story) -> None:
    predicted, made = story.checked.read("remediation.json"), story.cleaned.read("remediation.json")

    assert story.checked.status == 0
    assert story.after_check == story.before
    assert predicted["tally"] == made["tally"]
    assert predicted["outcomes"] == made["outcomes"]
    assert not list((story.checked.folder / "orphan-cleanup").glob("journal-*"))


@pytest.mark.acceptance
def test_every_change_is_made_and_journaled(story: Story) -> None:
    remediation = story.cleaned.read("remediation.json")
    records = story.cleaned.records(_journal(story.cleaned))

    assert story.cleaned.status == 0, story.cleaned.output
    assert remediation["tally"]["skipped"] == remediation["tally"]["failed"] == 0
    events = [(record["event"], record["finding"]) for record in records]
    found = {outcome["finding"] for outcome in remediation["outcomes"]}
    assert sorted(events) == sorted(
        (event, finding) for event in ("before", "after") for finding in found
    )
    assert all(
        events.index(("before", finding)) < events.index(("after", finding)) for finding in found
    )
    assert all(record["before"]["project_id"] for record in records if record["event"] == "before")


def test_files_are_private(story: Story) -> None:
    folder = story.cleaned.folder / "orphan-cleanup"

    assert {_mode(file) for file in folder.iterdir()} == {0o600}
    assert _mode(folder) == 0o700


@pytest.mark.acceptance
def test_table_shows_every_finding(story: Story) -> None:
    rows = [line for line in story.checked.output.splitlines() if "  " in line]
    entries = story.checked.read("findings.json")["findings"]

    assert entries
    for entry in entries:
        # Without a terminal there is not always room for the whole name.
        name = entry["id"].partition("/")[2][:8]
        (row,) = [row for row in rows if row.startswith(f"{entry['kind']} ") and name in row]
        is_removed = row.endswith("removes all of it") or " keeps " in row
        assert is_removed is (entry["verdict"] == "orphaned"), row


@pytest.mark.parametrize(
    ("kind", "scenario", "role"),
    [
        ("name_conflict", "name_conflict", None),
        ("orphaned_provider", "orphaned_provider", None),
        ("stale_service", "stale_service", "host"),
    ],
)
def test_host_and_service_findings_are_reported(
    long_ago: dict[str, t.Any], minicloud: Minicloud, kind: str, scenario: str, role: str | None
) -> None:
    hosts = set(minicloud.truth(scenario)["hosts"].values())
    found = [
        entry
        for key in ("findings", "undecided")
        for entry in long_ago[key]
        if entry["kind"] == kind
    ]
    named = {entry["service"]["host"] if role else entry["providers"][0]["name"] for entry in found}

    assert named & hosts
    assert all(entry["consumer"] is None and entry["evidence"] for entry in found)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["second_nova"])
def test_host_of_the_second_nova_is_not_deletable(
    long_ago: dict[str, t.Any], minicloud: Minicloud, scenario: str
) -> None:
    orphaned_providers = [
        entry
        for key in ("findings", "undecided")
        for entry in long_ago[key]
        if entry["kind"] == "orphaned_provider"
    ]
    names = {entry["providers"][0]["name"] for entry in orphaned_providers}

    assert names & set(minicloud.truth(scenario)["hosts"].values())
    assert len(orphaned_providers) >= 2
    assert {(entry["verdict"], entry["change"]) for entry in orphaned_providers} == {
        ("undecided", None)
    }


@pytest.mark.parametrize(
    ("kind", "scenario"),
    [
        ("unconfirmed_resize", "unconfirmed_resize"),
        ("stuck_migration", "move_in_flight"),
        long("unfinished_evacuation", "unfinished_evacuation"),
    ],
)
def test_stuck_and_unconfirmed_moves_are_reported(
    long_ago: dict[str, t.Any], minicloud: Minicloud, kind: str, scenario: str
) -> None:
    found = {entry["migration"]["uuid"] for entry in long_ago["findings"] if entry["kind"] == kind}

    assert minicloud.truth(scenario)["migration"] in found


@pytest.mark.acceptance
def test_hostile_names_are_printed_as_data(story: Story) -> None:
    printed = story.detected.output

    # In a line with all columns there is no room for more of it.
    assert "{{ look" in printed
    assert r"evil\np" in printed
    assert "\x1b" not in printed
    assert all(len(line) <= 120 for line in printed.splitlines() if line.startswith("    "))


def test_every_minicloud_scenario_is_covered(minicloud: Minicloud) -> None:
    listed = {line.split()[0] for line in minicloud.run("scenario", "--list").splitlines() if line}

    assert listed - {"cell_down"} == set(EXPECTED)


def test_second_run_changes_nothing(
    story: Story, placement: Placement, play: t.Callable[..., Run]
) -> None:
    again = play("cleanup_orphans")

    assert (again.status, again.changed) == (0, 0)
    assert placement.everything() == story.after


@pytest.mark.acceptance
def test_all_removed_allocations_can_be_restored(
    story: Story, placement: Placement, play: t.Callable[..., Run]
) -> None:
    """This runs last: afterwards the orphans exist again."""

    def amounts(holdings: Holdings) -> Holdings:
        return {
            consumer: {provider: allocation["resources"] for provider, allocation in held.items()}
            for consumer, held in holdings.items()
        }

    restored = play("restore_allocations", orphan_cleanup_journal=str(_journal(story.cleaned)))

    assert restored.status == 0, restored.output
    assert amounts(placement.everything()) == amounts(story.before)


def _journal(run: Run) -> Path:
    (journal,) = (run.folder / "orphan-cleanup").glob("journal-*.jsonl")
    return journal


def _orphaned(truth: dict[str, t.Any], story: Story) -> set[tuple[str, str]]:
    """Return the orphaned allocations of known kinds that this cloud lets us prove."""
    known = {kind.name for kind in ORPHAN_KINDS}
    if story.placement < (1, 38):
        known.remove("unknown_consumer")
        if truth["scenario"] in NEED_NOVA_TRAITS:
            return set()
    return {
        (allocation["consumer"], allocation["provider"])
        for allocation in truth["allocations"]
        if allocation["truth"] == "orphaned" and allocation["kind"] in known
    }


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
