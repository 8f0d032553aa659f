"""Properties of the rules in every cloud, however strange.

Above all, nothing a live server needs is ever removed.

The truth comes from the `World` here, by the words of the design, and not from the code under test.
"""

import copy
import dataclasses as d
import random
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.kinds import ORPHAN_KINDS
from .......plugins.module_utils._core.options.policy import Policy
from .....examples import count_examples
from ...judging import NO_MINIMUM_AGE, judge
from ...world import World, answer
from ...worlds import AT_REST, OVER, policies, worlds
from ..scene import Scene

many = hypothesis.settings(max_examples=count_examples(200))


@pytest.mark.parametrize("kind", [kind.name for kind in ORPHAN_KINDS])
def test_generated_worlds_have_orphans_of_every_kind(kind: str) -> None:
    """Without them the properties below would prove nothing."""
    hypothesis.find(
        worlds(),
        lambda world: any(finding.kind == kind for finding in _changing(world)),
        settings=hypothesis.settings(max_examples=5000, phases=[hypothesis.Phase.generate]),
    )


@many
@hypothesis.given(worlds())
def test_settled_server_keeps_its_own_host_and_foreign_providers(world: World) -> None:
    for finding in _changing(world):
        if home := _home(world, finding.consumer):
            taken = {
                provider
                for provider in finding.freed_providers
                if not _is_of_another_host(world, provider, finding.consumer, home)
            }
            assert not taken, finding.reason


@many
@hypothesis.given(worlds())
def test_migration_keeps_what_its_server_lacks_on_its_host(world: World) -> None:
    """This includes a shared pool: the guest may use what only the migration has.

    Only a confirmed move shows whose it is.
    """
    for finding in _changing(world):
        move = world.migrations.get(finding.consumer)
        if move and move.status != "confirmed" and (home := _home(world, move.server)):
            claimed = world.allocations[move.server].resources
            for uuid in finding.freed_providers:
                provider = world.providers.get(uuid)
                if provider and (provider.sharing or provider.root == home):
                    for resource_class, amount in finding.allocation.resources[uuid].items():
                        assert claimed.get(uuid, {}).get(resource_class, 0) >= amount, (
                            finding.reason
                        )


@many
@hypothesis.given(worlds())
def test_migration_keeps_everything_while_its_server_has_nothing_on_its_own_host(
    world: World,
) -> None:
    for finding in _changing(world):
        move = world.migrations.get(finding.consumer)
        if move and (home := _home(world, move.server)):
            assert move.server in world.allocations, finding.reason
            assert home in _roots(world, world.allocations[move.server].resources), finding.reason


@many
@hypothesis.given(worlds())
def test_nothing_is_changed_while_a_migration_is_under_way(world: World) -> None:
    on_the_move = {move.server for move in world.migrations.values() if move.status not in OVER}
    for finding in _changing(world):
        assert _server_of(world, finding.consumer) not in on_the_move


@many
@hypothesis.given(worlds())
def test_only_a_settled_or_unhosted_server_or_a_404_proves_an_orphan(world: World) -> None:
    """This covers all protected statuses and every inconclusive answer.

    And a task, and an action that may still run.
    """
    snapshot = world.snapshot()
    for finding in _changing(world):
        server = _server_of(world, finding.consumer)
        looked_up = snapshot.evidence[server].server
        assert looked_up is not None
        resting = looked_up.status == 200 and (_home(world, server) or _has_no_host(world, server))
        assert looked_up.status == 404 or resting, finding.reason


@many
@hypothesis.given(worlds())
def test_contradicted_404_proves_nothing(world: World) -> None:
    listed = {
        server for node in world.snapshot().hypervisors.value or () for server in node.servers
    }
    for finding in _changing(world):
        server = _server_of(world, finding.consumer)
        assert server not in listed or _home(world, server), finding.reason


@many
@hypothesis.given(st.data())
def test_consumers_excluded_by_the_policy_are_never_changed(data: st.DataObject) -> None:
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    for finding in _changing(world, policy):
        allocation, change = finding.allocation, finding.change
        assert allocation is not None and change is not None
        spared = {
            part
            for side in (change.before, change.after)
            for uuid in side["allocations"]
            for part in _names(world, uuid)
        }
        assert finding.consumer not in policy.exclude_consumers
        assert not spared & policy.exclude_providers
        assert allocation.type in (None, "INSTANCE", "MIGRATION")
        assert (
            not policy.min_age
            or not allocation.resources
            or (allocation.age_seconds or 0) >= policy.min_age
        )
        assert (
            finding.kind != "unknown_consumer"
            or (allocation.age_seconds or 0) >= policy.unknown_min_age
        )


@many
@hypothesis.given(worlds())
def test_change_of_an_orphan_drops_whole_providers_and_keeps_the_others(world: World) -> None:
    for finding in _changing(world):
        assert finding.change is not None
        before, after = finding.change.before["allocations"], finding.change.after["allocations"]
        if finding.verdict != "orphaned":
            continue
        assert finding.change.generation == world.allocations[finding.consumer].generation
        assert {uuid: share["resources"] for uuid, share in before.items()} == world.allocations[
            finding.consumer
        ].resources
        assert after == {
            uuid: share for uuid, share in before.items() if uuid not in finding.freed_providers
        }
        assert set(before) - set(after) == finding.freed_providers != frozenset()


@many
@hypothesis.given(worlds())
def test_change_settles_its_consumer(world: World) -> None:
    for finding in _changing(world):
        assert finding.change is not None
        after = copy.deepcopy(world)
        after.apply(finding.change)
        left = {row.kind for row in _changing(after) if row.consumer == finding.consumer}
        # The amounts are compared only when the server has its own host alone.
        assert left <= {"wrong_amount"} - {finding.kind}


@many
@hypothesis.given(worlds())
def test_all_changes_together_settle_everything(world: World) -> None:
    """The changes of orphans create no new orphan.

    Changes of drifted servers may prove that a migration's allocation is one. A server that has
    lost another host's allocation may have the wrong amounts on its own.
    """
    for kinds in ({"drifted"}, {"orphaned"}, {"drifted"}):
        for finding in _changing(world):
            assert finding.change is not None
            if finding.verdict in kinds:
                world.apply(finding.change)
    assert _changing(world) == []


@many
@hypothesis.given(worlds(), st.randoms(use_true_random=False))
def test_order_of_reading_does_not_matter(world: World, chance: random.Random) -> None:
    assert _told(judge(_shuffled(world, chance).snapshot(), NO_MINIMUM_AGE)) == _told(
        judge(world.snapshot(), NO_MINIMUM_AGE)
    )


@many
@hypothesis.given(worlds(), st.data())
def test_unrelated_consumers_do_not_matter(world: World, data: st.DataObject) -> None:
    before = _told(judge(world.snapshot(), NO_MINIMUM_AGE))
    held = data.draw(st.lists(st.sampled_from(sorted(world.providers)), min_size=1, max_size=3))
    services = sorted({node.host for node in world.nodes.values()})
    new = world.host("compute-new", service=data.draw(st.sampled_from([None, *services])))
    added = {
        world.stranger(*held),
        world.server(new, new, *held),
        world.server(data.draw(st.sampled_from(sorted(world.nodes))), *held),
    }

    after = _told(judge(world.snapshot(), NO_MINIMUM_AGE))

    # A server without an allocation on its host may need that of a migration without a record.
    for consumer, (verdict, kind, *_rest) in after.items():
        if kind == "deleted_migration" and verdict == "undecided":
            before.pop(consumer, None)
            added.add(consumer)
    assert {consumer: told for consumer, told in after.items() if consumer not in added} == before


@many
@hypothesis.given(worlds())
def test_unreadable_listing_of_migrations_proves_no_migration_deleted(world: World) -> None:
    hypothesis.assume(not any(question == "marker" for question, _uuid in world.statuses))
    snapshot = world.snapshot(migrations=answer("GET /os-migrations", 500))
    assert not {
        finding.consumer for finding in judge(snapshot, NO_MINIMUM_AGE) if finding.change
    } & set(world.migrations)


def test_unreadable_listing_of_migrations_proves_no_consumer_unknown() -> None:
    """A cell that fails answers 400 to the marker probe, too."""
    scene = Scene()
    migration = scene.goes(scene.server(scene.here, scene.there), "migrating", scene.here)
    scene.answers("marker", migration, 400)

    assert scene.undecided(migration, migrations=answer("GET /os-migrations", 500))


def test_consumer_visible_in_the_listing_of_its_host_is_never_unknown() -> None:
    """A cell too slow for the listing of all can be too slow for the marker probe as well.

    Nova then answers 200 and 400.
    """
    scene = Scene()
    server = scene.server(scene.there, scene.there, status="VERIFY_RESIZE")
    unconfirmed = scene.goes(server, "finished", scene.here)
    scene.left_out_migrations.add(unconfirmed)

    assert scene.undecided(scene.answers("marker", unconfirmed, 400))


def test_unreadable_listing_of_hosts_proves_no_server_deleted() -> None:
    """That listing is what would contradict a 404 for a live server."""
    scene = Scene()
    server = scene.lose_mapping(scene.server(scene.here, scene.here))
    scene.deleted[server] = scene.servers[server]

    assert scene.undecided(server, hypervisors=answer("GET /os-hypervisors/detail", 500))


def _changing(world: World, policy: Policy = NO_MINIMUM_AGE) -> list[Finding]:
    """Return the findings that a user who chooses all kinds would change."""
    found = [one for one in judge(world.snapshot(), policy) if one.consumer]
    return [one for one in found if one.change or one.freed_providers or one.verdict == "orphaned"]


def _server_of(world: World, consumer: str) -> str:
    return world.migrations[consumer].server if consumer in world.migrations else consumer


def _home(world: World, server: str) -> str | None:
    """Return the compute node of a live, settled `server`, else None."""
    found = world.servers.get(server)
    if (
        found is None
        or found.status not in AT_REST
        or found.task_state is not None
        or not found.task_known
    ):
        return None
    if any(move.server == server and move.status not in OVER for move in world.migrations.values()):
        return None
    at = [
        node.uuid
        for node in world.nodes.values()
        if (node.host, node.name) == (found.host, found.node)
    ]
    return at[0] if len(at) == 1 else None


def _has_no_host(world: World, server: str) -> bool:
    """Return whether `server` failed to boot or is offloaded.

    No action of it may still run.
    """
    found = world.servers[server]
    if (
        found.host
        or found.node
        or found.status not in ("ERROR", "SHELVED_OFFLOADED")
        or found.task_state
        or not found.task_known
    ):
        return False
    did = world.actions.get(server, ())
    placing = ("create", "unshelve", "rebuild")
    placed = next((number for number, one in enumerate(did) if one.action in placing), None)
    shelved = next((number for number, action in enumerate(did) if action.shelving_hosts), None)
    before = len(did) if placed is None else placed
    # Earlier actions than a finished shelve have ended, except the one that placed it; without
    # that, it must be where it was shelved.
    newest = (
        did[: shelved + 1]
        if shelved is not None and shelved < before
        else did[: before + 1]
        if placed is not None
        else ()
    )
    asked = (*newest, *did[before : before + 1])
    return bool(asked) and all(
        any(event.finish_time for event in action.events) for action in asked
    )


def _is_of_another_host(world: World, provider: str, server: str, home: str) -> bool:
    """Return whether `provider` belongs to a compute node other than `home`.

    Or to the named source of a move of `server`.
    """
    found = world.providers.get(provider)
    if found is None or found.sharing or found.root == home:
        return False
    sources = {move.source_node for move in world.migrations.values() if move.server == server}
    if found.root in world.nodes or (
        found.root in world.providers and world.providers[found.root].name in sources
    ):
        return True
    # A deleted host: Nova has marked its provider, and no service of that name is left.
    services = {service.host for service in world.services}
    return (
        found.root in world.were_novas
        and found.root in world.providers
        and world.providers[found.root].name not in services
    )


def _roots(world: World, resources: t.Iterable[str]) -> set[str]:
    return {world.providers[uuid].root for uuid in resources if uuid in world.providers}


def _names(world: World, uuid: str) -> set[str]:
    """Return every name that a user may give this provider: its own and its root's."""
    known = [
        world.providers[part] for part in (uuid, *_roots(world, [uuid])) if part in world.providers
    ]
    return {uuid, *(provider.name for provider in known), *(provider.root for provider in known)}


def _told(findings: t.Iterable[Finding]) -> dict[str, t.Any]:
    """Return the relevant parts of each finding about a consumer.

    Which of several moves explains it may depend on their order.
    """
    about = [finding for finding in findings if finding.consumer]
    return {
        str(one.consumer): (one.verdict, one.kind, one.change, one.freed_providers) for one in about
    }


def _shuffled(world: World, chance: random.Random) -> World:
    other = copy.deepcopy(world)
    for name in ("providers", "nodes", "servers", "migrations", "allocations"):
        setattr(other, name, _reordered(getattr(other, name), chance))
    for consumer, allocation in other.allocations.items():
        other.allocations[consumer] = d.replace(
            allocation, resources=_reordered(allocation.resources, chance)
        )
    return other


def _reordered(table: t.Mapping[str, t.Any], chance: random.Random) -> dict[str, t.Any]:
    keys = list(table)
    chance.shuffle(keys)
    return {key: table[key] for key in keys}
