"""Cold migrations that fail at each step, on real services.

With and without a reachable Placement when Nova returns the allocation.

The result is judged twice: as it is, when nothing may be changed, and once the operator has settled
the server. Then a default run leaves each server with the allocation that it needs, and a restore
brings back what it changed.
"""

import contextlib
import dataclasses as d
import typing as t
from collections.abc import Callable, Iterator

import pytest
from minicloud_ctl import holdings, servers, steering

from .interposer import Fault, Interposer
from .support import Ansible, Minicloud, Placement, Run
from .world import CELL1, CLAIM, World

OWN_CLOUD = True
pytestmark = pytest.mark.long

SOURCE, DESTINATION, FULL = "copies", "receives", "compute-1"


class Stage:
    """Two hosts that fail on request, and the proxy between them and Placement."""

    def __init__(self, world: World, placement: Interposer) -> None:
        self.world = world
        self.cloud = world.cloud
        self.placement = placement

    def boot(self) -> str:
        return self.world.boot(SOURCE)

    def copying(self, server: str) -> str:
        """Begin a cold migration that waits while the disks are copied, and return its uuid."""
        return steering.migrate_until_copy(
            self.world.paths, self.cloud, server, SOURCE, DESTINATION
        )

    def finishing(self, server: str) -> str:
        """Begin a cold migration that waits in its last step, and return its uuid."""
        return steering.migrate_until_finish(self.world.paths, self.cloud, server, DESTINATION)

    def fail_copy(self, server: str, how: str = "") -> None:
        steering.fail_copy(self.world.paths, self.cloud, server, SOURCE, how)

    def fail_finish(self, server: str) -> None:
        steering.fail_finish(self.world.paths, self.cloud, server, DESTINATION)

    def lose(self, migration: str) -> None:
        """Make Placement unreachable whenever a host reads the allocation of a migration."""
        self.placement.on("GET", f"/allocations/{migration}", 0, lambda: Fault.NO_ANSWER)

    def refuse_move(self, server: str, migration: str) -> None:
        """Let Placement refuse the return of an allocation.

        Somebody writes the server's allocation just before.
        """
        self.placement.on(
            "POST", r"/allocations$", 1, lambda: self._write_again(server), body=migration
        )

    def refuse_removal(self, migration: str) -> None:
        """Let Placement refuse the removal of a migration's allocation."""
        self.placement.on(
            "PUT", f"/allocations/{migration}", 1, lambda: self._write_again(migration)
        )

    def _write_again(self, consumer: str) -> None:
        held = holdings.of(self.cloud, consumer)
        holdings.put(self.cloud, consumer, held.allocations, held)

    def reset(self, server: str) -> None:
        servers.act(self.cloud, server, "os-resetState", {"state": "active"})
        servers.settle(self.cloud, server, None)

    def restart(self, server: str) -> None:
        """Stop and start a server, as a cautious operator does."""
        for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
            servers.act(self.cloud, server, action)
            servers.settle(self.cloud, server, None, status)

    def end_by_sql(self, migration: str) -> None:
        """No API ends a cold migration that Nova has lost track of."""
        self.world.sql(CELL1, "UPDATE migrations SET status = 'error' WHERE uuid = ?", migration)


Make = t.Callable[[Stage, str], str]
Settle = t.Callable[[Stage, str, str], None]


def copy_fails(stage: Stage, server: str) -> str:
    migration = stage.copying(server)
    stage.fail_copy(server)
    return migration


def copy_fails_without_placement(stage: Stage, server: str) -> str:
    migration = stage.copying(server)
    stage.lose(migration)
    stage.fail_copy(server)
    return migration


def copy_fails_and_placement_refuses(stage: Stage, server: str) -> str:
    migration = stage.copying(server)
    stage.refuse_move(server, migration)
    stage.fail_copy(server)
    return migration


def copy_of_a_stopped_server_is_refused(stage: Stage, server: str) -> str:
    """Source document 000: the server is SHUTOFF all the time, and nobody has to settle it."""
    servers.act(stage.cloud, server, "os-stop")
    servers.settle(stage.cloud, server, SOURCE, "SHUTOFF")
    migration = stage.copying(server)
    stage.lose(migration)
    stage.fail_copy(server, steering.ROLLBACK)
    return migration


def reset_while_it_copies(stage: Stage, server: str) -> str:
    """Nova has saved the destination as the server's host.

    It has returned the allocation on the source.
    """
    migration = stage.copying(server)
    servers.act(stage.cloud, server, "os-resetState", {"state": "active"})
    steering.release(stage.world.paths, SOURCE, steering.COPY)
    servers.await_event(stage.cloud, server, "migrate", "compute_resize_instance")
    return migration


def reset_while_it_copies_without_placement(stage: Stage, server: str) -> str:
    migration = stage.copying(server)
    stage.lose(migration)
    servers.act(stage.cloud, server, "os-resetState", {"state": "active"})
    steering.release(stage.world.paths, SOURCE, steering.COPY)
    servers.await_event(stage.cloud, server, "migrate", "compute_resize_instance")
    return migration


def source_dies_while_it_copies(stage: Stage, server: str) -> str:
    migration = stage.copying(server)
    stage.world.crash(SOURCE)
    steering.release(stage.world.paths, SOURCE, steering.COPY)
    stage.world.restart(SOURCE)
    servers.settle(stage.cloud, server, SOURCE)
    return migration


def finish_fails(stage: Stage, server: str) -> str:
    migration = stage.finishing(server)
    stage.fail_finish(server)
    return migration


def finish_fails_and_placement_refuses(stage: Stage, server: str) -> str:
    migration = stage.finishing(server)
    stage.refuse_removal(migration)
    stage.fail_finish(server)
    return migration


def destination_dies_while_it_finishes(stage: Stage, server: str) -> str:
    migration = stage.finishing(server)
    stage.world.crash(DESTINATION)
    steering.release(stage.world.paths, DESTINATION, steering.FINISH)
    stage.world.restart(DESTINATION)
    return migration


def revert_without_placement(stage: Stage, server: str) -> str:
    migration = servers.migrate(stage.cloud, server, DESTINATION)
    stage.lose(migration)
    servers.act(stage.cloud, server, "revertResize")
    servers.await_event(stage.cloud, server, "revertResize", "compute_finish_revert_resize")
    return migration


def revert_that_placement_refuses(stage: Stage, server: str) -> str:
    migration = servers.migrate(stage.cloud, server, DESTINATION)
    stage.refuse_move(server, migration)
    servers.act(stage.cloud, server, "revertResize")
    servers.await_event(stage.cloud, server, "revertResize", "compute_finish_revert_resize")
    return migration


def server_holds_both(stage: Stage, server: str) -> str:
    """An old Nova left it like this, or somebody gave the server its host back and did no more."""
    migration = copy_fails(stage, server)
    stage.world.claim_also(server, DESTINATION)
    return migration


def both_hold_the_source(stage: Stage, server: str) -> str:
    """Only half of the return is done.

    An old Nova wrote the server's allocation first, and removed the migration's in a second
    request.
    """
    migration = stage.copying(server)
    held = holdings.of(stage.cloud, migration)
    stage.fail_copy(server)
    holdings.write_back(stage.cloud, migration, held)
    return migration


def nothing(stage: Stage, server: str, migration: str) -> None:
    """It is settled as it is."""


def reset(stage: Stage, server: str, migration: str) -> None:
    stage.reset(server)


def reset_and_try_again(stage: Stage, server: str, migration: str) -> None:
    """Step 5 of source document 000: the next migration finds no valid host."""
    stage.reset(server)
    servers.update_service(stage.cloud, FULL, {"status": "disabled"})
    try:
        servers.act(stage.cloud, server, "migrate", {"host": FULL})
        servers.await_migration(stage.cloud, server, "error")
        stage.world.wait(
            "the second migration", lambda: len(servers.migrations(stage.cloud, server)) == 2
        )
        servers.settle(stage.cloud, server, SOURCE)
    finally:
        servers.update_service(stage.cloud, FULL, {"status": "enabled"})


def reset_and_restart(stage: Stage, server: str, migration: str) -> None:
    stage.reset(server)
    stage.restart(server)


def restart_and_end_by_sql(stage: Stage, server: str, migration: str) -> None:
    stage.end_by_sql(migration)
    stage.restart(server)


def reset_and_end_by_sql(stage: Stage, server: str, migration: str) -> None:
    stage.reset(server)
    stage.end_by_sql(migration)


def failed_on_the_destination(stage: Stage, server: str) -> str:
    """The guest, or what exists of it, is on the destination."""
    return finish_fails_and_placement_refuses(stage, server)


def reset_to_the_source_by_sql(stage: Stage, server: str, migration: str) -> None:
    """Somebody considers the move undone: for Nova the server is on the source."""
    stage.reset(server)
    stage.world.sql(
        CELL1, "UPDATE instances SET host = ?, node = ? WHERE uuid = ?", SOURCE, SOURCE, server
    )


@d.dataclass(frozen=True)
class State:
    """A cold migration that failed in some way, and how an operator settles its server.

    left: the allocations of the server and the migration after the failure.
    home: where Nova says that the server is.
    guest_elsewhere: whether its guest or its disk is nevertheless on the other host, so that
    nothing may be changed.
    unsettled, settled: how a run classifies the server and the migration with an allocation: the
    reason of a protection, or the kind.
    """

    make: Make
    left: tuple[set[str], set[str]]
    settle: Settle
    home: str
    unsettled: tuple[str, str]
    settled: tuple[str, str]
    guest_elsewhere: bool = False

    @property
    def name(self) -> str:
        return self.make.__name__


SRC, DST, NONE = {SOURCE}, {DESTINATION}, set[str]()
IN_ERROR, MOVING, FINE = "error_with_host", "moving", ""
SWAPPED, ENDED = "unreverted_allocation", "ended_migration"

STATES = (
    # This comes first, because the guests of Nova's fake driver end with its nova-compute.
    State(
        source_dies_while_it_copies,
        (DST, SRC),
        restart_and_end_by_sql,
        SOURCE,
        (MOVING, MOVING),
        (SWAPPED, ENDED),
    ),
    State(copy_fails, (SRC, NONE), reset, SOURCE, (FINE, FINE), (FINE, FINE)),
    State(
        copy_fails_without_placement,
        (DST, SRC),
        reset_and_try_again,
        SOURCE,
        (IN_ERROR, IN_ERROR),
        (SWAPPED, ENDED),
    ),
    State(
        copy_fails_and_placement_refuses,
        (DST, SRC),
        reset_and_restart,
        SOURCE,
        (IN_ERROR, IN_ERROR),
        (SWAPPED, ENDED),
    ),
    State(
        copy_of_a_stopped_server_is_refused,
        (DST, SRC),
        nothing,
        SOURCE,
        (SWAPPED, ENDED),
        (SWAPPED, ENDED),
    ),
    State(
        reset_while_it_copies,
        (SRC, NONE),
        reset,
        DESTINATION,
        ("task", FINE),
        ("misplaced_allocation", FINE),
    ),
    State(
        reset_while_it_copies_without_placement,
        (DST, SRC),
        reset,
        DESTINATION,
        (FINE, "task"),
        (FINE, ENDED),
    ),
    State(finish_fails, (DST, NONE), reset, DESTINATION, (FINE, FINE), (FINE, FINE)),
    State(
        finish_fails_and_placement_refuses,
        (DST, SRC),
        reset,
        DESTINATION,
        (FINE, IN_ERROR),
        (FINE, ENDED),
    ),
    State(
        destination_dies_while_it_finishes,
        (DST, SRC),
        reset_and_end_by_sql,
        DESTINATION,
        (FINE, MOVING),
        (FINE, ENDED),
    ),
    State(
        revert_without_placement, (DST, SRC), nothing, SOURCE, (SWAPPED, ENDED), (SWAPPED, ENDED)
    ),
    State(
        revert_that_placement_refuses,
        (DST, SRC),
        reset,
        SOURCE,
        (IN_ERROR, IN_ERROR),
        (SWAPPED, ENDED),
    ),
    State(
        failed_on_the_destination,
        (DST, SRC),
        reset_to_the_source_by_sql,
        SOURCE,
        (FINE, IN_ERROR),
        (SWAPPED, ENDED),
        guest_elsewhere=True,
    ),
    State(
        server_holds_both, (SRC | DST, NONE), reset, SOURCE, (IN_ERROR, FINE), ("extra_host", FINE)
    ),
    State(both_hold_the_source, (SRC, SRC), reset, SOURCE, (FINE, IN_ERROR), (FINE, ENDED)),
)
# In these states the server is settled as soon as the migration has failed, or nothing of it is an
# orphan.
SETTLED_AT_ONCE = {state.name for state in STATES if state.settle is nothing}
OWNER = ("project_id", "user_id", "consumer_type")
# Nova has put the server on a host where it has no allocation; an allocation only on another host
# is remediated by choice.
BY_CHOICE = {reset_while_it_copies.__name__}


@d.dataclass
class Story:
    """The server and the migration of each state by its name.

    With their allocations and findings at each point.
    """

    servers: dict[str, str] = d.field(default_factory=dict)
    migrations: dict[str, str] = d.field(default_factory=dict)
    seen: dict[str, dict[str, t.Any]] = d.field(default_factory=dict)
    documents: dict[str, dict[str, t.Any]] = d.field(default_factory=dict)
    runs: dict[str, Run] = d.field(default_factory=dict)

    def consumers(self, state: State) -> tuple[str, str]:
        return self.servers[state.name], self.migrations[state.name]

    def held(self, point: str, state: State) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
        """Return what the server and the migration of a state had at a point, by provider."""
        server, migration = (
            {
                provider: share["resources"]
                for provider, share in self.documents[point][consumer]["allocations"].items()
            }
            for consumer in self.consumers(state)
        )
        return server, migration


@pytest.fixture(scope="module")
def stage(minicloud: Minicloud, world: World) -> Iterator[Stage]:
    minicloud.scenario("healthy")
    with contextlib.ExitStack() as undo:
        placement = undo.enter_context(
            Interposer(f"http://127.0.0.1:{minicloud.ports['placement']}")
        )
        with world.nova_setting(f"[placement]\nendpoint_override = {placement.url}\n"):
            for host in (SOURCE, DESTINATION):
                world.own_host(host, driver=steering.DRIVER)
            yield Stage(world, placement)
        # This precedes the deletion of the hosts' services by the world.
        assert not placement.errors


@pytest.fixture(scope="module")
def story(
    stage: Stage,
    minicloud: Minicloud,
    placement: Placement,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    story = Story()

    def play(
        point: str,
        name: str = "cleanup_orphans",
        servers_of: t.Collection[str] = (),
        **variables: t.Any,
    ) -> None:
        ansible = Ansible(
            minicloud.root, tmp_path_factory.mktemp(point.replace(" ", "-")), minicloud.environment
        )
        scope = (
            {"orphan_cleanup_consumers": [story.servers[state] for state in servers_of]}
            if servers_of
            else {}
        )
        story.runs[point] = ansible.playbook(name, variables={**scope, **variables})
        look(point)

    def look(point: str) -> None:
        consumers = [*story.servers.values(), *story.migrations.values()]
        story.documents[point] = {
            consumer: placement.allocation(consumer) for consumer in consumers
        }

    everybody = [state.name for state in STATES]
    for state in STATES:
        server = stage.boot()
        story.servers[state.name], story.migrations[state.name] = server, state.make(stage, server)
        stage.placement.clear()
    look("failed")
    play("while failed", servers_of=[name for name in everybody if name not in SETTLED_AT_ONCE])
    for state in STATES:
        state.settle(stage, *story.consumers(state))
    look("settled")
    for name, server in story.servers.items():
        story.seen[name] = servers.get(stage.cloud, server)
    play("cleaned", servers_of=everybody)
    (journal,) = (story.runs["cleaned"].folder / "orphan-cleanup").glob("journal-*")
    play("restored", "restore_allocations", orphan_cleanup_journal=str(journal))
    play("cleaned again", servers_of=everybody)
    play("once more", servers_of=everybody)
    return story


def _kind(run: Run, consumer: str) -> str:
    """Return how a run classifies a consumer, empty if it is healthy."""
    return next((one["kind"] for one in run.entries if one["consumer"] == consumer), "")


each_state: Callable[..., t.Any] = pytest.mark.parametrize(
    "state", STATES, ids=lambda state: state.name
)


@each_state
def test_failed_migration_leaves_the_documented_allocations(
    story: Story, world: World, state: State
) -> None:
    """This is the table of docs/failed-cold-migrations.md."""
    left = tuple({world.provider(host) for host in hosts} for hosts in state.left)

    assert tuple(map(set, story.held("failed", state))) == left


@each_state
def test_run_changes_nothing_before_the_server_is_settled(story: Story, state: State) -> None:
    run = story.runs["while failed"]

    assert (run.status, run.changed) == (0, 0), run.output
    assert story.documents["while failed"] == story.documents["failed"]
    if state.name not in SETTLED_AT_ONCE:
        assert tuple(_kind(run, consumer) for consumer in story.consumers(state)) == state.unsettled


@each_state
def test_run_finds_and_reports_the_failed_migration(story: Story, state: State) -> None:
    server = story.seen[state.name]

    assert (server["OS-EXT-STS:task_state"], server["OS-EXT-SRV-ATTR:host"]) == (None, state.home)
    assert (
        tuple(_kind(story.runs["cleaned"], consumer) for consumer in story.consumers(state))
        == state.settled
    )


@each_state
def test_default_run_gives_the_server_its_allocation_and_empties_the_migration(
    story: Story, world: World, state: State
) -> None:
    host = SOURCE if state.name in BY_CHOICE else state.home
    wanted = (
        story.held("settled", state)
        if state.guest_elsewhere
        else ({world.provider(host): CLAIM}, {})
    )

    for point in ("cleaned", "cleaned again"):
        assert story.runs[point].status == 0, story.runs[point].output
        assert story.held(point, state) == wanted
    assert story.runs["once more"].changed == 0


def test_guest_possibly_on_the_destination_is_undecided(story: Story) -> None:
    """The attack: the guest of the server is on the host that would be freed.

    For Nova the server is on the source.
    """
    entry = story.runs["cleaned"].entry(story.servers[failed_on_the_destination.__name__])

    assert (entry["verdict"], entry["change"]) == ("undecided", None)
    assert entry["reason_id"] == "guest_not_proven_at_source"


@each_state
def test_restore_writes_both_documents(story: Story, state: State) -> None:
    assert story.runs["restored"].status == 0, story.runs["restored"].output
    assert story.held("restored", state) == story.held("settled", state)
    for consumer in story.consumers(state):
        before, after = (story.documents[point][consumer] for point in ("settled", "restored"))
        assert [after.get(key) for key in OWNER] == [before.get(key) for key in OWNER]
