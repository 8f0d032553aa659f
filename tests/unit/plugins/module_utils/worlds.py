"""Random clouds, sound and unsound, for the properties of the rules.

These are hypothesis strategies over `World`.
"""

import typing as t

import hypothesis.strategies as st

from .....plugins.module_utils._core.models.nova import Migration, Service
from .....plugins.module_utils._core.options.policy import Policy
from .world import CLAIM, NOW, OLD, World

AT_REST = ("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED")
NOT_AT_REST = (
    "VERIFY_RESIZE",
    "SOFT_DELETED",
    "UNKNOWN",
    "ERROR",
    "BUILD",
    "SHELVED_OFFLOADED",
    "REBUILD",
    "MIGRATING",
    "DELETED",
)
OVER = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
UNDER_WAY = (
    "queued",
    "accepted",
    "preparing",
    "pre-migrating",
    "migrating",
    "post-migrating",
    "finished",
    "running",
)
MOVES = ("migration", "resize", "live-migration", "evacuation")

# The API does these at once, such as resetState, so they have no events.
ACTIONS = ("create", "unshelve", "shelve", "shelveOffload", "resetState", "rebuild")
ENDS: list[tuple[str | None, ...]] = [(NOW,), (NOW,), (NOW, NOW), (NOW, None), (None,), ()]

# Usual values are repeated, or hardly any server would be settled and hardly anything an orphan.
STORY = st.sampled_from(["anything", "anything", "evacuated", "moved", "rests", "unhosted"])
STATUS = st.sampled_from(AT_REST * 2 + NOT_AT_REST)
TASK = st.sampled_from([None] * 8 + ["migrating"])
TOLD = st.sampled_from([True] * 8 + [False])
MOVED = st.sampled_from(OVER * 4 + UNDER_WAY)
AGE = st.sampled_from([OLD] * 4 + [7200, 60, None])
TYPE = st.sampled_from([None] * 6 + ["INSTANCE", "MIGRATION", "CONTAINER"])
AMOUNTS = st.sampled_from(
    [CLAIM, CLAIM, {"VCPU": 4, "MEMORY_MB": 64}, {"DISK_GB": 1}, {"CUSTOM_VF": 1}]
)
FATE = st.sampled_from(
    ["lives"] * 5
    + [
        "deleted",
        "deleted",
        "purged",
        "marked by hand",
        "unmapped",
        "unmapped and remembered as deleted",
    ]
)
QUESTION = st.sampled_from(
    ["server", "server", "migrations", "deleted_listing", "actions", "marker", "host_migrations"]
)
STATUS_CODE = st.sampled_from([400, 403, 404, 500, 503])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw any state that a cloud can be in, and some that it cannot."""
    world = World()
    hosts = [world.host(f"compute-{number}") for number in range(draw(st.integers(1, 3)))]
    hosts += [
        world.host(f"node-{number}", service="ironic") for number in range(draw(st.integers(0, 2)))
    ]
    if draw(_seldom()):
        hosts.append(world.host("compute-0"))
    roots = [*hosts, world.provider("gone-0"), world.provider("gone-1")]
    world.were_novas = set(draw(st.lists(st.sampled_from(roots), max_size=4)))
    if draw(_seldom()):
        world.services.append(
            Service("nova-compute", "gone-0", "enabled", draw(st.sampled_from(["up", "down"])))
        )
    for number in range(draw(st.integers(0, 2))):
        world.provider(f"child-{number}", draw(st.sampled_from(roots)))
    pools = [
        world.provider(f"pool-{number}", sharing=True) for number in range(draw(st.integers(0, 1)))
    ]
    if draw(_seldom()):
        world.provider("pool-of-one-host", draw(st.sampled_from(hosts)), sharing=True)

    world.server(hosts[0], hosts[0])  # who may look at this one may look at all
    servers = [_server(draw, world, hosts, roots) for _number in range(draw(st.integers(1, 3)))]
    for _number in range(draw(st.integers(0, 2))):
        _migration(draw, world, draw(st.sampled_from(servers)), roots, pools)
    for _number in range(draw(st.integers(0, 2))):
        stranger = _hold(draw, world, world.uuid(), draw(st.sampled_from(roots)))
        if draw(st.booleans()):
            world.unlisted_migrations.add(stranger)
    for server in servers:
        _fate(draw, world, server)
    for move in world.migrations.values():
        # A cell too slow for the listing of all; the listing by host has it, if its consumer has an
        # allocation on that host.
        if (
            move.uuid in world.allocations
            and _source(world, move) in _roots(world, move.uuid)
            and draw(_seldom())
        ):
            world.left_out_migrations.add(move.uuid)
    for uuid in draw(st.lists(st.sampled_from([*servers, *world.allocations]), max_size=1)):
        question, status = draw(QUESTION), draw(STATUS_CODE)
        if question != "marker" or uuid not in world.left_out_migrations:
            world.answers(question, uuid, status)
    if draw(_seldom()):
        del world.providers[draw(st.sampled_from(sorted(world.providers)))]
    return world


@st.composite
def policies(draw: st.DrawFn, world: World) -> Policy:
    return Policy(
        min_age=draw(st.sampled_from([0, 3600])),
        unknown_min_age=draw(st.sampled_from([0, 86400])),
        exclude_consumers=frozenset(
            draw(st.lists(st.sampled_from(sorted(world.allocations)), max_size=1))
            if draw(_seldom())
            else ()
        ),
        exclude_providers=frozenset(
            draw(st.lists(st.sampled_from(sorted(world.providers)), max_size=1))
            if draw(_seldom())
            else ()
        ),
    )


def _server(draw: st.DrawFn, world: World, hosts: list[str], roots: list[str]) -> str:
    """Add a settled server, evacuated or moved, with more or less than it needs.

    Or one in any state at all.
    """
    story = draw(STORY)
    if story == "anything":
        home = draw(st.sampled_from([*hosts, *hosts, None]))
        fields: dict[str, t.Any] = {
            "status": draw(STATUS),
            "task_state": draw(TASK),
            "task_known": draw(TOLD),
        }
        if draw(_seldom()):
            fields["host" if draw(st.booleans()) else "node"] = draw(
                st.sampled_from([None, "compute-1", "ironic", "elsewhere"])
            )
        server = world.server(home, **fields)
        return _hold(draw, world, server, *([home] if home and draw(_often()) else []))
    if story == "unhosted":
        server = world.server(
            None,
            status=draw(st.sampled_from(["ERROR", "SHELVED_OFFLOADED"])),
            task_state=draw(TASK),
        )
        for _number in range(draw(st.integers(0, 3))):
            action = draw(st.sampled_from(ACTIONS))
            world.did(
                server, action, *(() if action == "resetState" else draw(st.sampled_from(ENDS)))
            )
        return _hold(draw, world, server, draw(st.sampled_from(hosts)))
    home = draw(st.sampled_from(hosts))
    server = world.server(home, home, status=draw(st.sampled_from(AT_REST)))
    source = draw(st.sampled_from([root for root in roots if root != home]))
    if story == "evacuated":
        world.migration(
            server, source, home, draw(st.sampled_from(["done", "completed"])), type="evacuation"
        )
        world.hold(server, source)
    if draw(_seldom()):
        world.did(
            server,
            "unshelve",
            draw(st.sampled_from([NOW, NOW, None])),
            host=world.nodes[draw(st.sampled_from(hosts))].host,
        )
    if story == "moved":
        move = world.migration(
            server, source, home, draw(st.sampled_from(OVER)), type=draw(st.sampled_from(MOVES))
        )
        _hold(draw, world, move, source)
    return _hold(draw, world, server)


def _migration(
    draw: st.DrawFn, world: World, server: str, roots: list[str], pools: list[str]
) -> None:
    """Add a move of `server` from anywhere to anywhere.

    The move's own consumer or the server may still have an allocation on its source.
    """
    source = draw(st.sampled_from(roots))
    move = world.migration(
        server, source, draw(st.sampled_from(roots)), draw(MOVED), type=draw(st.sampled_from(MOVES))
    )
    for holder in draw(st.sampled_from([(), (move,), (move,), (server,), (move, server)])):
        _hold(
            draw,
            world,
            holder,
            source if draw(_often()) else draw(st.sampled_from([*roots, *pools])),
        )


def _hold(draw: st.DrawFn, world: World, consumer: str, *usual: str) -> str:
    more = draw(st.lists(st.sampled_from(sorted(world.providers)), max_size=2))
    age, kind = draw(AGE), draw(TYPE)
    for provider in (*usual, *more):
        world.hold(consumer, provider, amounts=draw(AMOUNTS), age=age, type=kind)
    return consumer


def _source(world: World, move: Migration) -> str | None:
    return next(
        (uuid for uuid, provider in world.providers.items() if provider.name == move.source_node),
        None,
    )


def _roots(world: World, consumer: str) -> set[str]:
    return {
        world.providers[uuid].root
        for uuid in world.allocations[consumer].resources
        if not world.providers[uuid].sharing
    }


def _fate(draw: st.DrawFn, world: World, server: str) -> None:
    fate = draw(FATE)
    if fate.startswith("unmapped"):
        world.unmapped.add(server)
    if fate.endswith("as deleted"):
        world.deleted[server] = world.servers[server]
    if draw(_seldom()):
        world.unlisted_migrations.add(server)
    if fate == "marked by hand":
        world.delete_by_hand(server)
    if fate in ("deleted", "purged"):
        world.delete(server, remembered=fate == "deleted")


def _often() -> st.SearchStrategy[bool]:
    return st.sampled_from([True] * 3 + [False])


def _seldom() -> st.SearchStrategy[bool]:
    return st.sampled_from([False] * 9 + [True])
