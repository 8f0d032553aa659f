"""Servers of every shape have what we expect; damage is found, and undone where that is certain."""

import dataclasses as d
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import holdings, nested

from .damages import DAMAGES
from .shaped_servers import boot_all, start_hosts
from .shapes import SHAPES
from .support import Ansible, Minicloud, Placement, Run
from .world import World

REAL_PARTS = ("neutron", "cinder", "cyborg")
pytestmark = pytest.mark.long

OWNER = "other owner"
# Only the host shows whether a guest uses a device that it did not request.
GAINED = "child gained"
RESTORED, LEFT = "as Nova had allocated it", "left as it is"
KINDS = ["wrong_amount", "missing_allocation", "misplaced_allocation", "wrong_owner"]
# No API shows what nova.conf says of them.
ALIASES = {"orphan_cleanup_pci_aliases": nested.ALIASES}
HOST_WITHOUT_DEVICES = "compute-1"


@d.dataclass(frozen=True)
class Booted:
    """A server of each shape, and what Nova had allocated for it."""

    servers: dict[str, str]
    held: dict[str, holdings.Holding]


@d.dataclass(frozen=True)
class Damage:
    """What each damaged server had before a run and after it, by the shape."""

    run: Run
    before: dict[str, holdings.Holding]
    after: dict[str, holdings.Holding]


@pytest.fixture(scope="module")
def booted(world: World, placement: Placement) -> Booted:
    start_hosts(world, placement)
    servers = boot_all(world, SHAPES)
    return Booted(servers, _read(world, servers))


@pytest.fixture(scope="module")
def checked(booted: Booted, minicloud: Minicloud, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A detection that is asked for the amounts of all servers."""
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("booted"), minicloud.environment)
    variables = {"orphan_cleanup_kinds": KINDS, **ALIASES}
    return ansible.playbook("detect_orphans", variables=variables)


@pytest.fixture(scope="module", params=[*DAMAGES, OWNER])
def damage(
    booted: Booted,
    world: World,
    minicloud: Minicloud,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[tuple[str, Damage]]:
    """One kind of damage, done to all servers that can have it, and a run of the clean-up."""
    name: str = request.param
    before = _damage(name, booted, world)
    damaged = {shape: booted.servers[shape] for shape in before}
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("damage"), minicloud.environment)
    run = ansible.playbook(
        "cleanup_orphans",
        variables={
            "orphan_cleanup_consumers": sorted(damaged.values()),
            # Only then ports and devices are read of servers whose sums look right.
            "orphan_cleanup_kinds": [*KINDS, "leaked_child"],
            "orphan_cleanup_remediate_kinds": KINDS,
            **ALIASES,
        },
    )
    yield name, Damage(run, before, _read(world, damaged))
    # Emptied first, so that all of them find room.
    for server in damaged.values():
        world.hold(server, {})
    for shape, server in damaged.items():
        holdings.write_back(world.cloud, server, booted.held[shape])


def _damage(name: str, booted: Booted, world: World) -> dict[str, holdings.Holding]:
    """Damage all servers that can have this damage; return what they have then, by the shape."""
    for shape in SHAPES:
        server, held = booted.servers[shape.name], booted.held[shape.name]
        if name == OWNER:
            somebody = holdings.somebody()
            holdings.put(world.cloud, server, held.allocations, somebody)
            continue
        root, other = world.provider(shape.host), world.provider(HOST_WITHOUT_DEVICES)
        damaged = DAMAGES[name](held.allocations, root, other)
        if damaged is not None:
            holdings.put(world.cloud, server, damaged, held)
    found = _read(world, booted.servers)
    return {
        shape: holding
        for shape, holding in found.items()
        if not _is_same(holding, booted.held[shape])
    }


def _read(world: World, servers: dict[str, str]) -> dict[str, holdings.Holding]:
    return {shape: holdings.of(world.cloud, server) for shape, server in servers.items()}


def _is_same(one: holdings.Holding, other: holdings.Holding) -> bool:
    return d.replace(one, generation=None) == d.replace(other, generation=None)


def test_nothing_is_found_of_servers_as_nova_booted_them(checked: Run, booted: Booted) -> None:
    assert checked.status == 0, checked.output
    shapes = {server: shape for shape, server in booted.servers.items()}
    assert {shapes.get(one["consumer"]): one["reason"] for one in checked.entries} == {}
    assert f"Amounts checked for {len(SHAPES)} of {len(SHAPES)} servers." in checked.told


def test_damage_is_found_and_undone_where_that_is_certain(
    damage: tuple[str, Damage], booted: Booted
) -> None:
    name, done = damage
    assert done.before
    unexpected = {}
    for shape in SHAPES:
        # A server of another shape cannot have this damage.
        if shape.name not in done.before:
            continue
        entry = done.run.entry(booted.servers[shape.name])
        outcome = _describe_outcome(shape.name, entry, done, booted)
        print(f"{name:12} {shape.name:30} {outcome}")
        is_certain = name != GAINED and name not in shape.uncertain
        if outcome != (RESTORED if is_certain else LEFT):
            unexpected[shape.name] = (outcome, entry["reason"])
    assert unexpected == {}


def test_default_run_finds_a_lost_child(ansible: Ansible, booted: Booted, world: World) -> None:
    shape = next(shape for shape in SHAPES if shape.name == "vGPU with a trait")
    server, held = booted.servers[shape.name], booted.held[shape.name]
    lost = DAMAGES["child lost"](held.allocations, world.provider(shape.host), "")
    assert lost
    holdings.put(world.cloud, server, lost, held)
    try:
        run = ansible.playbook("detect_orphans", variables={"orphan_cleanup_min_age": 0})
    finally:
        world.hold(server, held.allocations)

    entry = run.entry(server)
    assert (entry["kind"], entry["change"] is None) == ("wrong_amount", False)


def _describe_outcome(shape: str, entry: dict[str, t.Any], done: Damage, booted: Booted) -> str:
    after = done.after[shape]
    if entry["change"] is not None and _is_same(after, booted.held[shape]):
        return RESTORED
    if entry["change"] is None and _is_same(after, done.before[shape]):
        return LEFT
    return f"changed to {after.allocations}"
