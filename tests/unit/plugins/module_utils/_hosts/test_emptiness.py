"""What keeps a host from being empty."""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.models.kinds import KINDS
from ......plugins.module_utils._core.models.placement import Provider, Totals
from ......plugins.module_utils._hosts.draining import GONE, MOVE_OUTCOMES, MOVED
from ......plugins.module_utils._hosts.emptiness import (
    Blocker,
    Contents,
    describe_others,
    find_hidden_usages,
    list_occupants,
)
from ......plugins.module_utils._hosts.host import Host
from ......plugins.module_utils._hosts.migrations import UnfinishedEvacuations
from ..drain_world import build_migration
from ..host_site import Site
from ..world import answer

HOST = Host("compute-1")
EVACUATION = build_migration(1, "done", type="evacuation")


def end(outcome: str, uuid: str = "server") -> t.Any:
    return {"uuid": uuid, "name": "web-1", "outcome": outcome}


@pytest.mark.parametrize(
    ("contents", "kind"),
    [
        (Contents(HOST), None),
        (Contents(HOST, unread="Nova did not answer."), "unsound_reading"),
        (Contents(HOST, late={"consumer": {}}), "claim"),
        (Contents(HOST, hidden=[Blocker("hidden_allocation", "p", "", "")]), "hidden_allocation"),
        (Contents(HOST, evacuations=UnfinishedEvacuations("compute-1")), None),
        (
            Contents(HOST, evacuations=UnfinishedEvacuations("compute-1", (EVACUATION,))),
            "unfinished_evacuation",
        ),
        (Contents(HOST, is_enabled=True), "enabled"),
    ],
)
def test_each_claim_rests_on_what_was_read_for_it(contents: Contents, kind: str | None) -> None:
    found = list_occupants(contents)

    assert [occupant.kind for occupant in found] == ([kind] if kind else [])
    assert {occupant.stops for occupant in found} <= {"disable"}


@pytest.mark.parametrize("outcome", MOVE_OUTCOMES)
def test_a_server_that_was_not_moved_counts_whatever_the_listings_say(outcome: str) -> None:
    occupants = list_occupants(Contents(HOST, outcomes=[end(outcome)]))

    assert [entry.subject for entry in occupants] == (
        [] if outcome in (MOVED, GONE) else ["server"]
    )


def test_a_server_that_a_listing_has_counts_once() -> None:
    site = Site()
    server = site.server(site.old, site.old)

    assert [entry.subject for entry in site.occupants(outcomes=[end("left", server)])] == [server]
    # Also one that only its allocation shows.
    consumer = site.stranger(site.new)
    left = Contents(HOST, consumers={consumer: None}, outcomes=[end("left", consumer)])
    assert [(entry.kind, entry.subject) for entry in list_occupants(left)] == [("claim", consumer)]


def test_what_no_line_about_a_server_shows_is_described() -> None:
    kinds = ["server", "migration", *["claim"] * 5]
    occupants = [Blocker(kind, "", "", f"{number}.") for number, kind in enumerate(kinds)]

    assert describe_others(occupants) == "1. 2. 3. And 3 more."


def test_server_on_the_host_blocks_it() -> None:
    site = Site()
    server = site.server(site.old, site.old, name="web-7")
    (blocker,) = site.occupants()

    assert (blocker.kind, blocker.subject, blocker.name, blocker.stops) == (
        "server",
        server,
        "web-7",
        "disable",
    )
    assert site.left_over() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"status": "SOFT_DELETED"},
            "(SOFT_DELETED) is on old: restore it, or delete it for good.",
        ),
        # Its cell was silent for the listing of servers, or it has moved since.
        ({}, "(ACTIVE) is on old: move, evacuate or delete it."),
        ({"task_state": "migrating"}, "(ACTIVE, migrating) is on old: move, "),
        ({"host": "new"}, "(ACTIVE) was on old and is on new now: run again."),
        (None, "Nova showed no such server"),
    ],
)
def test_server_only_in_the_hypervisor_listing_blocks_the_host(
    changes: dict[str, t.Any] | None, said: str
) -> None:
    """A live server must not be called deleted, or be deleted for good."""
    site = Site()
    server = site.server(site.old, site.old)
    unlisted = ()
    if changes is not None:
        unlisted = (d.replace(site.servers[server], **changes),)
    (blocker,) = site.occupants(servers=(), unlisted=unlisted)

    assert (blocker.kind, blocker.subject) == ("server", server)
    assert said in blocker.reason


@pytest.mark.parametrize(("source", "dest"), [("old", "new"), ("new", "old")])
@pytest.mark.parametrize(("status", "kind"), [("running", "migration"), ("finished", "resize")])
def test_move_from_or_to_the_host_blocks_it(source: str, dest: str, status: str, kind: str) -> None:
    site = Site()
    by_name = {"old": site.old, "new": site.new}
    server = site.server(site.new, site.new)
    move = site.migration(server, by_name[source], by_name[dest], status)

    (blocker,) = site.occupants()
    assert (blocker.kind, blocker.subject) == (kind, move)
    assert f"has been {status} for " in blocker.reason


@pytest.mark.parametrize("state", ["up", "down"])
@pytest.mark.parametrize(("source", "dest"), [("old", "new"), ("new", "old")])
def test_a_resize_to_a_dead_host_is_not_to_be_confirmed(state: str, source: str, dest: str) -> None:
    """That deletes the disk on its source, which may be the last one."""
    site = Site()
    site.services[0] = d.replace(site.services[0], state=state)
    by_name = {"old": site.old, "new": site.new}
    site.migration(site.server(site.new, site.new), by_name[source], by_name[dest], "finished")

    (blocker,) = (each for each in site.occupants() if each.kind == "resize")
    assert ("confirm or revert" in blocker.reason) is (state == "up" or dest == "new")


def _move(site: Site, *held: str) -> str:
    """Have a server move from the host, with allocations of the migration."""
    return site.migration(site.server(site.new, site.new), site.old, site.new, "running", *held)


def _unknown(site: Site) -> str:
    site.server(site.new, site.new)
    return site.stranger(site.old)


def _own_child(site: Site) -> str:
    return site.stranger(site.provider("old_gpu", site.old), type="CYBORG")


def _on_another_host(site: Site) -> None:
    site.stranger(site.new, type="CONTAINER")
    site.server(site.new, site.new)


AT_OLD = "GET /os-migrations?host=old"
CHOSEN = {"kinds": ["unknown_consumer"]}

# What is on the host, how it is read otherwise than by default, and the kinds of its occupants.
SITUATIONS: dict[str, tuple[t.Callable[[Site], t.Any], dict[str, t.Any], list[str]]] = {
    "nothing": (lambda _site: None, {}, []),
    "a server without an allocation": (lambda site: site.server(site.old), {}, ["server"]),
    # Its other allocation is removed, but this one stays.
    "a server on two hosts": (
        lambda site: site.server(site.old, site.old, site.new),
        {},
        ["server"],
    ),
    "a move with an allocation": (lambda site: _move(site, site.old), {}, ["migration"]),
    "a move that one listing has": (_move, {"migrations": answer(AT_OLD, 200, ())}, ["migration"]),
    "no answer": (lambda _site: None, {"migrations": answer(AT_OLD, 500)}, ["unsound_reading"]),
    "a consumer of a child": (_own_child, {}, ["claim"]),
    "an unknown consumer": (_unknown, {}, ["claim"]),
    "an unknown consumer of a kind that is chosen": (_unknown, CHOSEN, []),
    "a consumer of another host": (_on_another_host, {}, []),
}


@pytest.mark.parametrize(("happens", "seen", "kinds"), SITUATIONS.values(), ids=SITUATIONS)
def test_kinds_of_what_keeps_a_host_from_being_empty(
    happens: t.Callable[[Site], t.Any], seen: dict[str, t.Any], kinds: list[str]
) -> None:
    site = Site()
    subject = happens(site)
    found = site.occupants(**seen)

    assert [blocker.kind for blocker in found] == kinds
    if subject and kinds:
        assert found[0].subject == subject
    assert site.left_over() == []


def test_unsound_reading_blocks_the_host() -> None:
    site = Site()
    dead = tuple(d.replace(service, status="UNKNOWN") for service in site.services)
    snapshot = site.snapshot(services_after=answer("GET /os-services", 200, dead))

    assert "unsound_reading" in [blocker.kind for blocker in site.occupants(snapshot=snapshot)]


def test_proven_leftovers_do_not_block_the_host() -> None:
    site = Site()
    site.delete(site.server(site.old, site.old))
    evacuated = site.server(site.new, site.new, site.old)
    site.migration(evacuated, site.old, site.new, "done", type="evacuation")

    assert site.occupants() == []
    assert sorted(site.left_over()) == ["deleted_server", "evacuated_source"]


def test_server_that_keeps_its_allocation_here_is_not_left_over() -> None:
    """Only what it has on the host that it was evacuated from is."""
    site = Site()
    server = site.server(site.old, site.old, site.new)
    site.migration(server, site.new, site.old, "done", type="evacuation")

    site.set_service(site.old, "up")
    site.set_service(site.new, "down")
    (finding,) = filter(None, site.contents().consumers.values())
    assert finding.kind == "evacuated_source" and finding.change
    assert site.left_over() == []


def test_leftovers_of_unchosen_kinds_block_the_host() -> None:
    site = Site()
    site.delete(site.server(site.old, site.old))
    (blocker,) = site.occupants(kinds=["extra_host"])

    assert blocker.kind == "claim"
    assert "not in kinds" in blocker.reason
    assert site.left_over(kinds=["extra_host"]) == []


@pytest.mark.parametrize("type", ["CONTAINER", "MY_THING"])
def test_foreign_consumer_blocks_the_host(type: str) -> None:
    site = Site()
    site.stranger(site.old, type=type)
    (blocker,) = site.occupants(kinds=[kind.name for kind in KINDS])

    assert (blocker.kind, blocker.stops) == ("claim", "disable")
    assert blocker.reason.startswith(f"Consumer {blocker.subject} is protected (foreign_type): ")
    assert type in blocker.reason


ROOT = Provider("11111111-1111-4111-8111-111111111111", "old", 1, "root", None)


@pytest.mark.parametrize(
    ("status", "used", "is_hidden"),
    [(200, {"VCPU": 1}, False), (200, {"VCPU": 3}, True), (200, None, True), (404, None, False)],
)
def test_usages_that_no_listed_allocation_explains(
    status: int, used: dict[str, int] | None, is_hidden: bool
) -> None:
    totals = None if used is None else Totals(used, {"VCPU": 1})
    found = list(find_hidden_usages([ROOT], {ROOT.uuid: answer("GET usages", status, totals)}))

    assert [blocker.kind for blocker in found] == (["hidden_allocation"] if is_hidden else [])
