"""Wrong allocations of live servers, most of which are remediated by choice.

And servers whose correct allocation is unknown.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
import uuid
from collections.abc import Iterator

import pytest
from minicloud_ctl import servers

from .support import Ansible, Minicloud, Placement, Run
from .world import World

pytestmark = pytest.mark.long

OWN_CLOUD = True
MADE = {
    "unreverted_allocation": "rewritten",
    "misplaced_allocation": "rewritten",
    "missing_allocation": "created",
    "wrong_amount": "reduced",
    "wrong_owner": "rewritten",
}
# test_failed_cold_migrations.py shows that.
BY_DEFAULT = "unreverted_allocation"
TINY = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}


@d.dataclass(frozen=True)
class Story:
    """The server of each kind, the migration with the allocation of one, and special servers.

    With the allocations at each stage.
    """

    servers: dict[str, str]
    migration: str
    special: dict[str, str]
    before: dict[str, t.Any]
    default: Run
    checked: Run
    after_check: dict[str, t.Any]
    healed: Run
    after: dict[str, t.Any]
    again: Run


@pytest.fixture(scope="module")
def story(
    minicloud: Minicloud,
    placement: Placement,
    world: World,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Story]:
    minicloud.scenario(*MADE)
    truths = {name: minicloud.truth(name) for name in MADE}
    live = {name: truth["server"] for name, truth in truths.items()}
    migration = truths["unreverted_allocation"]["migration"]
    flavor = special_flavor(world)
    special = {
        "misplaced_allocation": world.boot("compute-3", flavor),
        "missing_allocation": world.boot("compute-3", flavor),
    }
    world.hold(special["misplaced_allocation"], {world.provider("compute-4"): TINY})
    world.hold(special["missing_allocation"], {})
    documents = {
        consumer: placement.allocation(consumer) for consumer in (*live.values(), migration)
    }
    looked_at = {"orphan_cleanup_consumers": [*live.values(), *special.values()]}
    chosen = {**looked_at, "orphan_cleanup_remediate_kinds": [*MADE]}
    by_choice = {
        "orphan_cleanup_consumers": [server for name, server in live.items() if name != BY_DEFAULT]
        + [*special.values()]
    }

    def play(name: str, *arguments: str, variables: dict[str, t.Any]) -> Run:
        ansible = Ansible(minicloud.root, tmp_path_factory.mktemp(name), minicloud.environment)
        return ansible.playbook("cleanup_orphans", *arguments, variables=variables)

    yield Story(
        servers=live,
        migration=migration,
        special=special,
        before=placement.everything(),
        default=play("default", variables=by_choice),
        checked=play("checked", "--check", "--diff", variables=chosen),
        after_check=placement.everything(),
        healed=play("healed", variables=chosen),
        after=placement.everything(),
        again=play("again", variables=chosen),
    )
    # The scenarios' allocations are damaged again, as other tests expect them; those that now have
    # more than before are emptied first.
    for consumer in sorted(documents, key=lambda known: known == migration):
        world.hold(consumer, {})
    for consumer, held in documents.items():
        owner = {
            "project_id": held.get("project_id", "p"),
            "user_id": held.get("user_id", "u"),
            "consumer_generation": None,
        }
        if held["allocations"]:
            placement.put(consumer, {"allocations": held["allocations"], **owner})


def special_flavor(world: World) -> str:
    """Create a flavor that overrides the resources of its servers, and return its name."""
    name = f"special-{uuid.uuid4()}"
    reference = world.cloud.nova(
        "POST", "/flavors", {"flavor": {"name": name, "vcpus": 2, "ram": 512, "disk": 1}}
    )["flavor"]["id"]
    world.cloud.nova(
        "POST", f"/flavors/{reference}/os-extra_specs", {"extra_specs": {"resources:VCPU": "1"}}
    )
    return name


def test_other_kinds_are_remediated_only_when_chosen(story: Story) -> None:
    by_choice = {server: name for name, server in story.servers.items() if name != BY_DEFAULT}
    found = {
        entry["consumer"]: entry["kind"]
        for entry in story.default.read("findings.json")["findings"]
    }

    assert (story.default.status, story.default.changed) == (0, 0), story.default.output
    assert {server: found[server] for server in by_choice} == by_choice


def test_check_mode_shows_the_changes_and_makes_none(story: Story) -> None:
    assert story.checked.status == 0 and story.checked.changed
    assert story.after_check == story.before
    assert (
        story.checked.read("remediation.json")["outcomes"]
        == story.healed.read("remediation.json")["outcomes"]
    )
    assert not list((story.checked.folder / "orphan-cleanup").glob("journal-*"))


@pytest.mark.parametrize("kind", MADE)
def test_server_gets_the_amounts_of_its_flavor_on_its_own_host(
    story: Story, world: World, kind: str
) -> None:
    server = servers.get(world.cloud, story.servers[kind])
    held = story.after[server["id"]]

    assert story.healed.status == 0
    assert story.healed.outcome(server["id"])["outcome"] == MADE[kind]
    assert {provider: share["resources"] for provider, share in held.items()} == {
        world.provider(server["OS-EXT-SRV-ATTR:host"]): TINY
    }


def test_consumer_gets_the_owner_of_the_server(
    story: Story, world: World, placement: Placement
) -> None:
    for kind in ("wrong_owner", "missing_allocation"):
        server = servers.get(world.cloud, story.servers[kind])
        claim = placement.allocation(server["id"])
        assert (claim["project_id"], claim["user_id"]) == (server["tenant_id"], server["user_id"])


def test_migration_loses_the_allocation_of_its_server(story: Story) -> None:
    assert story.migration in story.before and story.migration not in story.after


def test_no_other_consumer_changes_and_a_second_run_does_nothing(story: Story) -> None:
    concerned = {*story.servers.values(), *story.special.values(), story.migration}

    assert {
        consumer: held for consumer, held in story.before.items() if consumer not in concerned
    } == {consumer: held for consumer, held in story.after.items() if consumer not in concerned}
    assert (story.again.status, story.again.changed) == (0, 0)


@pytest.mark.parametrize("kind", ["misplaced_allocation", "missing_allocation"])
def test_special_server_gets_what_nova_would_allocate(story: Story, kind: str) -> None:
    """Its flavor has two processors, and requests one of them."""
    entry = story.healed.entry(story.special[kind])
    (held,) = story.after[story.special[kind]].values()

    assert (entry["kind"], bool(entry["change"])) == (kind, True)
    assert "(extra spec resources:VCPU)" in entry["reason"]
    assert held["resources"] == TINY
