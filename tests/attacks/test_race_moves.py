"""Servers that begin a move while they are read, judged or written.

Afterwards they have the allocation that Nova gave them.

It is one run in which something happens to one server after the other, each at a moment of its own.
"""

import dataclasses as d
import functools
import typing as t

import pytest
from minicloud_ctl import holdings, servers

from ..integration.interposer import Wires, interposed
from ..integration.support import Ansible, Minicloud, Placement, Run
from ..integration.world import CELLS_ASKED, CLAIM, World

OWN, OTHER, THIRD = "compute-1", "compute-2", "compute-3"
pytestmark = pytest.mark.long

KINDS = ["extra_host", "evacuated_source", "ended_migration", "unhosted_server"]
# Here an answer waits for whole moves.
CHOSEN = {"orphan_cleanup_remediate_kinds": KINDS, "orphan_cleanup_api_timeout": 900}

Happening = t.Callable[["World", str], t.Any]


def moves_to(host: str) -> Happening:
    return lambda world, server: world.live_migrate(server, host)


def leaves_unconfirmed(world: World, server: str) -> None:
    servers.migrate(world.cloud, server, THIRD)


def is_unshelved(world: World, server: str) -> None:
    servers.act(world.cloud, server, "unshelve")
    servers.settle(world.cloud, server, None)


def is_deleted(world: World, server: str) -> None:
    servers.delete(world.cloud, server)
    holdings.await_providers(world.cloud, server)


@d.dataclass(frozen=True)
class Race:
    """What happens to a server when a request arrives for the nth time.

    `said` is why its change was not made, if one was planned.
    """

    service: str
    request: tuple[str, str, int]
    happens: Happening
    host: str | None
    said: str | None = None
    shelved: bool = False


# Each consumer is read by detection, by the renewed proof and before its write.
RACES = {
    "as Placement is about to be listed": Race(
        "placement", ("GET", r"^/resource_providers\?", 1), moves_to(THIRD), THIRD
    ),
    "between two providers": Race(
        "placement", ("GET", "^/resource_providers/[^/]*/allocations", 2), moves_to(THIRD), THIRD
    ),
    "between Placement and Nova": Race(
        "nova", ("GET", "/os-hypervisors/detail", 1), moves_to(THIRD), THIRD
    ),
    "as it is looked up, to a third host": Race(
        "nova", ("GET", "/servers/{}$", 1), moves_to(THIRD), THIRD
    ),
    "as it is looked up, and is deleted": Race(
        "nova", ("GET", "/servers/{}$", 1), is_deleted, None
    ),
    "before the remediation": Race(
        "nova",
        ("GET", "/os-services$", CELLS_ASKED + 1),
        leaves_unconfirmed,
        THIRD,
        "It has changed since detection: its generation was",
    ),
    "before the renewed proof": Race(
        "placement",
        ("GET", "/allocations/{}$", 2),
        moves_to(THIRD),
        THIRD,
        "It has changed since detection: its generation was",
    ),
    "as it is looked up anew": Race(
        "nova", ("GET", "/servers/{}$", 2), moves_to(OTHER), OTHER, "and lists no migration"
    ),
    "after the renewed proof": Race(
        "placement", ("GET", "/allocations/{}$", 3), moves_to(OTHER), OTHER, "has just changed"
    ),
    "as it is written": Race(
        "placement", ("POST", "^/allocations$", 1), moves_to(OTHER), OTHER, "has just changed"
    ),
    "shelved, before the renewed proof": Race(
        "placement",
        ("GET", "/allocations/{}$", 2),
        is_unshelved,
        "any",
        "It has changed since detection: its generation was",
        shelved=True,
    ),
    "shelved, as it is written": Race(
        "placement",
        ("POST", "^/allocations$", 1),
        is_unshelved,
        "any",
        "has just changed",
        shelved=True,
    ),
}


@d.dataclass(frozen=True)
class Story:
    """The run, the server of each race, and the allocations at the end.

    One more server was booted while Nova was listed.
    """

    run: Run
    servers: dict[str, str]
    born: str
    after: dict[str, t.Any]


@pytest.fixture(scope="module")
def story(
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    minicloud.scenario("healthy")
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("moves"), minicloud.environment)
    racers = {
        name: shelved(world) if race.shelved else doubled(world) for name, race in RACES.items()
    }
    world.boot_samples()
    born: list[str] = []
    with interposed(ansible, minicloud) as wires:
        for name, race in RACES.items():
            method, path, nth = race.request
            happens = functools.partial(race.happens, world, racers[name])
            # A few changes are in one write, whose body names them.
            body = racers[name] if method == "POST" else ""
            getattr(wires, race.service).on(
                method, path.format(racers[name]), nth, before=happens, body=body
            )
        wires.nova.on(
            "GET", "/os-hypervisors/detail", before=lambda: born.append(world.boot(THIRD))
        )
        run = ansible.playbook("cleanup_orphans", variables=CHOSEN)
    return Story(run, racers, born[0], placement.everything())


def doubled(world: World) -> str:
    """Create a live server on OWN with another allocation on OTHER.

    That is an orphan while the server stays.
    """
    server = world.boot(OWN)
    world.claim_also(server, OTHER)
    return server


def shelved(world: World) -> str:
    """Create a server without a host that still has an allocation on OWN.

    That is an orphan while it stays shelved.
    """
    server = world.boot(OWN)
    held = holdings.of(world.cloud, server)
    servers.act(world.cloud, server, "shelve")
    servers.settle(world.cloud, server, None, "SHELVED_OFFLOADED")
    holdings.await_providers(world.cloud, server)
    holdings.write_back(world.cloud, server, held)
    return server


def test_run_changes_nothing_and_succeeds(story: Story) -> None:
    assert story.run.status == 0 and story.run.changed == 0
    assert "Traceback" not in story.run.output


@pytest.mark.parametrize("name", RACES)
def test_server_keeps_what_nova_gave_it(story: Story, world: World, name: str) -> None:
    server, race = story.servers[name], RACES[name]
    held = {provider: share["resources"] for provider, share in story.after.get(server, {}).items()}

    if race.shelved:
        assert (
            held[world.provider(servers.get(world.cloud, server)["OS-EXT-SRV-ATTR:host"])] == CLAIM
        )
    else:
        assert held == ({world.provider(race.host): CLAIM} if race.host else {})


@pytest.mark.parametrize("name", [name for name, race in RACES.items() if race.said])
def test_report_says_why_the_server_is_protected(story: Story, name: str) -> None:
    outcome = story.run.outcome(story.servers[name])

    assert outcome["outcome"] == "skipped"
    # On a busy machine a proof may ask once more, and then the race comes before its first answer.
    reasons = (str(RACES[name].said), "It has changed since detection")
    assert any(reason in outcome["reason"] for reason in reasons), outcome


@pytest.mark.parametrize("name", [name for name, race in RACES.items() if not race.said])
def test_server_is_never_planned(story: Story, name: str) -> None:
    assert story.servers[name] not in {
        step["consumer"] for step in story.run.read("plan.json")["changes"]
    }


def test_unconfirmed_move_keeps_its_source(story: Story, world: World) -> None:
    (migration,) = servers.migrations(world.cloud, story.servers["before the remediation"])

    assert set(story.after[migration["uuid"]]) == {world.provider(OWN), world.provider(OTHER)}


def test_server_created_meanwhile_is_kept(story: Story, world: World) -> None:
    assert list(story.after[story.born]) == [world.provider(THIRD)]


def test_move_requested_just_before_the_write_keeps_its_allocation(
    ansible: Ansible, placement: Placement, wires: Wires, world: World
) -> None:
    """Nova has allocated nothing yet, so Placement accepts the write.

    The allocation for the move comes after it and stays.
    """
    server = doubled(world)
    with world.paused("nova-conductor-cell1") as go_on:
        arguments = {"host": OTHER, "block_migration": "auto"}
        asked = wires.placement.on(
            "POST",
            "^/allocations$",
            body=server,
            before=lambda: servers.act(world.cloud, server, "os-migrateLive", arguments),
        )

        run = ansible.playbook("cleanup_orphans", variables=CHOSEN)
        assert servers.get(world.cloud, server)["OS-EXT-STS:task_state"] == "migrating"
        assert placement.held(server) == {world.provider(OWN): CLAIM}
        go_on()

        servers.await_migration(world.cloud, server, "completed")
    assert asked.ran and run.outcome(server)["outcome"] == "reduced"
    holdings.await_providers(world.cloud, server, world.provider(OTHER))
