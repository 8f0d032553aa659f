"""A cloud whose servers change all the time while it is cleaned again and again.

They boot, move, are evacuated, resized, shelved and deleted.

Every kind that can be changed is changed, at any age. Operations begin for LIVE_CLOUD_SECONDS
seconds (60 by default), and those under way are then finished. `LIVE_CLOUD_SECONDS=600 pytest -s
tests/integration/test_live_cloud.py` runs longer, and prints its figures.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses as d
import itertools
import json
import os
import time
import typing as t
from pathlib import Path

import pytest
from minicloud_ctl import holdings, servers

from ...plugins.module_utils._core.models.kinds import CONSUMER_KINDS
from .chronicle import Chronicle, noted
from .lives import STEADY, DoomedLife, Life, claim, prepare
from .support import Ansible, Minicloud, Placement
from .world import World

OWN_CLOUD = True
pytestmark = pytest.mark.long
SECONDS = float(os.environ.get("LIVE_CLOUD_SECONDS", "60"))
LIVES, RESTLESS = 7, 4
# Each round has this many unknown consumers, besides what the lives leave behind.
UNKNOWN = 2
# After everything has ended, this many rounds must be enough.
LAST_ROUNDS = 4

KINDS = [kind.name for kind in CONSUMER_KINDS]

# Changes that only damaged allocations need: the operations here never leave Nova in such a state.
ONLY_SPOILT = (
    "extra_host",
    "unreverted_allocation",
    "misplaced_allocation",
    "missing_allocation",
    "wrong_amount",
    "wrong_owner",
)


@d.dataclass(frozen=True)
class Made:
    """A change that a run reported as made, and the second of its record.

    The record was on the disk just before the write.
    """

    outcome: dict[str, t.Any]
    second: str

    @property
    def consumer(self) -> str:
        return self.outcome["consumer"]

    @property
    def parts(self) -> list[dict[str, t.Any]]:
        return [part for part in (self.outcome, self.outcome["partner"]) if part]


@d.dataclass
class Round:
    """One detection, its plan, and the outcomes."""

    faults: list[str]
    protected: collections.Counter[str]
    outcomes: list[dict[str, t.Any]]
    made: list[Made]


@d.dataclass
class Story:
    """Everything that happened, and what was left at the end.

    `held` is by consumer, without the consumers that existed before.
    """

    rounds: list[Round] = d.field(default_factory=list)
    lives: list[Life] = d.field(default_factory=list)
    chronicle: Chronicle = d.field(default_factory=Chronicle)
    unconfirmed: str = ""
    living: dict[str, dict[str, t.Any]] = d.field(default_factory=dict)
    held: dict[str, t.Any] = d.field(default_factory=dict)

    @property
    def made(self) -> list[Made]:
        return [made for played in self.rounds for made in played.made]

    @property
    def protected(self) -> collections.Counter[str]:
        return sum((played.protected for played in self.rounds), collections.Counter())

    def figures(self) -> str:
        outcomes = [outcome for played in self.rounds for outcome in played.outcomes]
        counters = (
            sum((life.done for life in self.lives), collections.Counter[str]()),
            collections.Counter(f"{one['kind']} {one['outcome']}" for one in outcomes),
            collections.Counter(one["reason_id"] for one in outcomes),
            self.protected,
        )
        lines = [f"  {count:4} {what}" for each in counters for what, count in each.most_common()]
        return "\n".join([f"{len(self.rounds)} rounds", *lines])


@pytest.fixture(scope="module")
def story(
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    minicloud.scenario("healthy")
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("live"), minicloud.environment)
    prepare(world)
    others = placement.everything()
    told = Story()
    end = time.monotonic() + SECONDS

    def over() -> bool:
        return time.monotonic() > end

    def rounds() -> int:
        return len(told.rounds)

    told.lives = [
        Life(world, f"life {number}", over, rounds, restless=number < RESTLESS)
        for number in range(LIVES)
    ]
    told.lives.append(DoomedLife(world, "doomed", over, rounds))
    # A move from or to one of them is then under way during the whole reading or remediation.
    held_up = itertools.cycle(
        [
            (step, f"nova-compute-{host}")
            for host in STEADY
            for step in ("orphan_detect", "orphan_remediate")
        ]
    )
    with (
        noted(world) as told.chronicle,
        concurrent.futures.ThreadPoolExecutor(len(told.lives)) as threads,
    ):
        running = [threads.submit(life.goes_on) for life in told.lives]
        while not all(life.done() for life in running):
            for number in range(UNKNOWN):
                world.claim(STEADY[number])
            told.rounds.append(clean(world, ansible, list(others), next(held_up)))
        for life in running:
            life.result()
        told.unconfirmed = next(
            life.server
            for life in told.lives
            if servers.get(world.cloud, life.server)["status"] == "ACTIVE"
        )
        servers.migrate(world.cloud, told.unconfirmed, elsewhere(world, told.unconfirmed))
        for _count in range(LAST_ROUNDS):
            told.rounds.append(clean(world, ansible, list(others)))
            if not told.rounds[-1].made:
                break
    told.held = {
        consumer: held
        for consumer, held in placement.everything().items()
        if consumer not in others
    }
    living = world.cloud.nova("GET", "/servers/detail?all_tenants=1")["servers"]
    told.living = {server["id"]: server for server in living if server["id"] not in others}
    print(f"\n{told.figures()}")
    return told


def clean(
    world: World, ansible: Ansible, spared: list[str], held_up: tuple[str, str] | None = None
) -> Round:
    """Detect, plan and remediate.

    During one of these steps one service of the cloud is paused.
    """
    folder = ansible.folder / f"round-{time.monotonic()}"
    findings, plan = folder / "findings.json", folder / "plan.json"
    policy = {"min_age": "0", "unknown_min_age": "0", "exclude_consumers": spared}
    limits = {"max_changes": 1000, "max_share": 1.0}
    steps = {
        # If the kinds are named, they are searched for everywhere: a wrong owner is not visible in
        # any listing.
        "orphan_detect": {"kinds": KINDS, "dest": str(findings), **policy},
        "orphan_plan": {"findings": str(findings), "kinds": KINDS, "dest": str(plan), **limits},
        "orphan_remediate": {"plan": str(plan), "output_dir": str(folder), **policy, **limits},
    }
    results = []
    for name, arguments in steps.items():
        with (
            world.paused(held_up[1]) if held_up and held_up[0] == name else contextlib.nullcontext()
        ):
            results.append(ansible.direct(name, **arguments))
    faults = [result["msg"] for result in results if result["failed"]]
    protected = collections.Counter(
        entry["kind"] for entry in json.loads(findings.read_text())["protected"]
    )
    if not (folder / "remediation.json").exists():
        return Round(faults, protected, [], [])
    outcomes = json.loads((folder / "remediation.json").read_text())["outcomes"]
    seconds = {
        record["finding"]: record["at"]
        for record in records(results[-1]["journal"])
        if record["event"] == "before"
    }
    made = [
        Made(outcome, seconds[outcome["finding"]])
        for outcome in outcomes
        if outcome["outcome"] not in ("skipped", "failed")
    ]
    return Round(faults, protected, outcomes, made)


def records(journal: str | None) -> list[dict[str, t.Any]]:
    return [json.loads(line) for line in Path(journal).read_text().splitlines()] if journal else []


def elsewhere(world: World, server: str) -> str:
    host = servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"]
    return next(other for other in STEADY if other != host)


def test_lives_produce_orphans_and_lookalikes(story: Story) -> None:
    kinds = {made.outcome["kind"] for made in story.made}
    happened = sum((life.done for life in story.lives), collections.Counter[str]())

    assert kinds >= {"unknown_consumer", "extra_host"}, story.figures()
    assert len(kinds) >= 5, story.figures()
    assert happened.total() >= LIVES, story.figures()
    assert story.protected["moving"] and story.protected["verify_resize"], story.figures()


def test_every_run_succeeds(story: Story) -> None:
    assert not [fault for played in story.rounds for fault in played.faults]


def test_no_server_lacks_an_allocation_after_an_operation_of_nova(story: Story) -> None:
    assert not [loss for life in story.lives for loss in life.losses]


def test_no_change_takes_a_live_server_its_allocation_on_its_host(
    story: Story, world: World
) -> None:
    """Every write left each server its allocation on the host where it was.

    That host is the one in Nova's database in that second.
    """

    def harmless(part: dict[str, t.Any], host: str | None, status: str | None) -> bool:
        if host is not None:
            return world.provider(host) in part["after"]["allocations"]
        return status in ("error", "shelved_offloaded") and not part["after"]["allocations"]

    for made in story.made:
        for part in made.parts:
            states = [
                state
                for state in story.chronicle.during(part["consumer"], made.second)
                if state.table == "instances"
            ]
            assert not states or any(
                state.gone or harmless(part, state.host, state.status) for state in states
            ), (made, states)


def test_no_change_takes_the_allocation_of_a_running_migration(story: Story) -> None:
    for made in story.made:
        for part in made.parts:
            states = [
                state
                for state in story.chronicle.during(part["consumer"], made.second)
                if state.table == "migrations"
            ]
            assert not states or any(
                state.gone or state.status in servers.ENDED for state in states
            ), (made, states)


@pytest.mark.parametrize("kind", ["deleted_server", "deleted_migration", "unknown_consumer"])
def test_no_server_reported_as_deleted_ever_lives_again(story: Story, kind: str) -> None:
    gone = [made for made in story.made if made.outcome["kind"] == kind]

    assert not [made for made in gone if story.chronicle.lived_after(made.consumer, made.second)]


def test_only_deliberate_damage_is_remediated(story: Story) -> None:
    """This also finds an allocation that one run removed by mistake and another restored."""
    spoilt = sum((life.spoilt for life in story.lives), collections.Counter[tuple[str, str]]())
    healed = collections.Counter(
        (made.consumer, made.outcome["kind"])
        for made in story.made
        if made.outcome["kind"] in ONLY_SPOILT
    )

    assert not healed - spoilt, {
        made.consumer: made
        for made in story.made
        if (made.consumer, made.outcome["kind"]) in healed - spoilt
    }


def test_every_live_server_has_exactly_its_own_host(story: Story, world: World) -> None:
    assert len(story.living) >= LIVES // 2
    for uuid, server in story.living.items():
        if server["status"] == "ERROR":
            continue
        held = holdings.of(world.cloud, uuid)
        assert held.allocations == {
            world.provider(server["OS-EXT-SRV-ATTR:host"]): claim(server)
        }, server
        assert (held.project, held.user) == (server["tenant_id"], server["user_id"])


def test_every_other_consumer_belongs_to_an_unfinished_move(story: Story, world: World) -> None:
    (unconfirmed,) = servers.migrations(world.cloud, story.unconfirmed)[:1]

    assert unconfirmed["status"] == "finished"
    assert set(story.held) - set(story.living) == {unconfirmed["uuid"]}
    assert set(story.held[unconfirmed["uuid"]]) == {world.provider(unconfirmed["source_compute"])}
