"""Only the hosts of the named aggregates, availability zones and cells are read and changed.

The tests of cells come last, because they add a cell, and depend on each other's cloud.
"""

import dataclasses as d
import shlex
import typing as t
from collections.abc import Iterator

import pytest
from minicloud_ctl import cells

from .cells import CELL, SECOND
from .support import EVERY_KIND, Ansible, Minicloud, Placement
from .world import World

pytestmark = pytest.mark.long

OWN_CLOUD = True
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
HOME, NEAR, FAR = "compute-1", "compute-2", "compute-3"


@pytest.fixture(scope="module")
def aggregates(connection: t.Any, minicloud: Minicloud) -> dict[str, t.Any]:
    """Four aggregates by name: with a host each, without hosts, and one named like a host."""
    minicloud.run("scenario", "healthy")
    made = {}
    for name, host in {"rack-7": NEAR, "rack-8": FAR, "rack-9": None, HOME: NEAR}.items():
        made[name] = connection.compute.create_aggregate(name=name)
        if host:
            connection.compute.add_host_to_aggregate(made[name], host)
    return made


@d.dataclass(frozen=True)
class Cast:
    """A server on HOME with a leftover on NEAR, and one with a leftover on FAR."""

    near: str
    far: str


@pytest.fixture(scope="module")
def cast(aggregates: dict[str, t.Any], world: World) -> Cast:
    servers = Cast(world.boot(HOME), world.boot(HOME))
    world.claim_also(servers.near, NEAR)
    world.claim_also(servers.far, FAR)
    return servers


@pytest.fixture(autouse=True)
def _planted(cast: Cast, world: World) -> None:
    """Give both servers their leftovers again."""
    world.claim_also(cast.near, NEAR)
    world.claim_also(cast.far, FAR)


def _detect(ansible: Ansible, **options: t.Any) -> dict[str, t.Any]:
    result = ansible.direct("orphan_detect", **NO_AGE, **options)
    assert not result.get("failed"), result.get("msg")
    return result


def _consumers(result: dict[str, t.Any]) -> set[str]:
    return {entry["consumer"] for entry in result["findings"]}


@pytest.mark.parametrize("key", ["name", "uuid", "id"])
def test_aggregate_is_named_by_name_uuid_or_id(
    ansible: Ansible, aggregates: dict[str, t.Any], cast: Cast, placement: Placement, key: str
) -> None:
    result = _detect(ansible, aggregates=[str(getattr(aggregates["rack-7"], key))])

    path = f"/resource_providers/{placement.providers()[NEAR]}/allocations"
    coverage = result["summary"]["coverage"]
    assert cast.near in _consumers(result) and cast.far not in _consumers(result)
    assert coverage["consumers"] == len(placement.get(path)["allocations"])
    assert coverage["scope"].endswith("aggregate rack-7")
    assert (coverage["hypervisors"], coverage["complete"]) == (1, True)


def test_aggregate_named_like_a_host_is_not_that_host(ansible: Ansible, cast: Cast) -> None:
    result = _detect(ansible, aggregates=[HOME])

    assert cast.near in _consumers(result) and cast.far not in _consumers(result)
    assert result["summary"]["coverage"]["hypervisors"] == 1


def test_default_zone_has_all_hosts(ansible: Ansible) -> None:
    whole, zone = _detect(ansible), _detect(ansible, availability_zones=["nova"])

    assert _consumers(zone) == _consumers(whole)
    for key in ("hypervisors", "servers"):
        assert zone["summary"]["coverage"][key] == whole["summary"]["coverage"][key]


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({"aggregates": ["rack-77"]}, "rack-7"),
        ({"aggregates": ["rack-9"]}, "rack-9"),
        ({"availability_zones": ["novo"]}, "nova?"),
        ({"aggregates": ["rack-7"], "hosts": [FAR]}, FAR),
        ({"cells": ["cell1"]}, "cell_hosts"),
        ({"cells": ["cell1"], "cell_hosts": {"cell1": ["nonesuch"]}}, "cell1"),
    ],
    ids=str,
)
def test_group_that_names_nothing_is_refused(
    ansible: Ansible, scope: dict[str, t.Any], said: str
) -> None:
    result = ansible.direct("orphan_detect", **NO_AGE, **scope)

    assert result["reason_id"] == "invalid_input" and said in result["msg"], result


def test_cleanup_of_an_aggregate_leaves_all_others_unchanged(
    ansible: Ansible, cast: Cast, placement: Placement
) -> None:
    before = placement.everything()

    run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_aggregates": ["rack-7"]})

    after = placement.everything()
    assert run.status == 0, run.output
    changed = {consumer for consumer in before if before[consumer] != after.get(consumer)}
    assert cast.near in changed and cast.far not in changed
    assert placement.providers()[NEAR] not in placement.held(cast.near)
    assert run.read("plan.json")["groups"]["aggregate_names"] == ["rack-7"]


def test_host_that_has_left_its_aggregate_since_the_plan_is_not_changed(
    ansible: Ansible,
    aggregates: dict[str, t.Any],
    cast: Cast,
    connection: t.Any,
    placement: Placement,
) -> None:
    """It is in another aggregate now. Back in its own, the same plan is applied."""
    check = ansible.playbook(
        "cleanup_orphans", "--check", variables={"orphan_cleanup_aggregates": ["rack-7"]}
    )
    assert check.status == 0, check.output
    before = placement.everything()
    plan = str(ansible.folder / "orphan-cleanup" / "plan.json")
    connection.compute.remove_host_from_aggregate(aggregates["rack-7"], NEAR)
    connection.compute.add_host_to_aggregate(aggregates["rack-7"], FAR)
    connection.compute.add_host_to_aggregate(aggregates["rack-8"], NEAR)
    try:
        run = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_plan": plan})
    finally:
        connection.compute.add_host_to_aggregate(aggregates["rack-7"], NEAR)
        connection.compute.remove_host_from_aggregate(aggregates["rack-7"], FAR)
        connection.compute.remove_host_from_aggregate(aggregates["rack-8"], NEAR)

    assert run.status == 0, run.output
    assert placement.everything() == before
    outcome = run.outcome(cast.near)
    assert (outcome["outcome"], outcome["reason_id"]) == ("skipped", "host_left_groups")
    again = ansible.playbook("cleanup_orphans", variables={"orphan_cleanup_plan": plan})
    assert again.outcome(cast.near)["outcome"] == "reduced", again.output


@pytest.mark.parametrize("own", [True, False], ids=["with its own", "without its own"])
def test_live_server_elsewhere_that_nova_does_not_find_keeps_its_allocation(
    ansible: Ansible, placement: Placement, world: World, own: bool
) -> None:
    """Only its host shows that it lives, and that host is not in the aggregate."""
    server = world.boot(FAR)
    world.claim_also(server, NEAR)
    if not own:
        near = placement.providers()[NEAR]
        world.hold(server, {near: placement.held(server)[near]})
    before = placement.everything()

    with world.lost_mapping(server):
        run = ansible.playbook(
            "cleanup_orphans",
            variables={
                "orphan_cleanup_aggregates": ["rack-7"],
                **EVERY_KIND,
                "orphan_cleanup_fail_on": "never",
            },
        )

    assert run.status == 0, run.output
    assert placement.everything()[server] == before[server]
    assert run.entry(server)["verdict"] == "undecided"


@pytest.fixture(scope="module")
def second_cell(world: World) -> Iterator[None]:
    """Another cell with a host."""
    with world.one_region():
        cells.add(world.paths, CELL, [SECOND])
        yield


@d.dataclass(frozen=True)
class Guests:
    """Servers of the second cell: one at rest, and one with a leftover on a host of cell1."""

    rests: str
    reaches: str


@pytest.fixture(scope="module")
def guests(second_cell: None, world: World) -> Guests:
    made = Guests(world.boot(SECOND), world.boot(SECOND))
    world.claim_also(made.reaches, NEAR)
    return made


@pytest.fixture
def dead_cell(guests: Guests, world: World) -> Iterator[Guests]:
    world.close_cell()
    yield guests
    world.open_cell()


def _clean_up_cells(
    ansible: Ansible, minicloud: Minicloud, *names: str, **variables: t.Any
) -> t.Any:
    return ansible.playbook(
        "cleanup_orphans",
        variables={
            "orphan_cleanup_cells": list(names),
            "orphan_cleanup_nova_manage": shlex.join(minicloud.nova_manage),
            **variables,
        },
    )


def test_living_cell_is_cleaned_up_while_the_other_one_is_dead(
    ansible: Ansible, cast: Cast, dead_cell: Guests, minicloud: Minicloud, placement: Placement
) -> None:
    before = placement.everything()

    run = _clean_up_cells(ansible, minicloud, "cell1")

    assert run.status == 0, run.output
    for server, host in ((cast.near, NEAR), (cast.far, FAR)):
        assert placement.providers()[host] not in placement.held(server)
    after = placement.everything()
    for server in (dead_cell.rests, dead_cell.reaches):
        assert after[server] == before[server]
    read = run.read("findings.json")
    assert read["scope"]["groups"]["cells"] == ["cell1"]
    assert SECOND not in read["scope"]["groups"]["hosts"]
    assert run.entry(dead_cell.reaches)["verdict"] == "undecided"


def test_nothing_of_a_dead_cell_is_changed_when_it_is_named(
    ansible: Ansible, dead_cell: Guests, minicloud: Minicloud, placement: Placement
) -> None:
    before = placement.everything()

    run = _clean_up_cells(ansible, minicloud, CELL, orphan_cleanup_fail_on="never")

    assert run.status == 0, run.output
    assert placement.everything() == before
    assert not run.read("findings.json")["findings"]


def test_wrong_mapping_of_cells_changes_nothing_of_the_dead_one(
    ansible: Ansible, dead_cell: Guests, placement: Placement
) -> None:
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans",
        variables={
            "orphan_cleanup_cells": ["cell1"],
            "orphan_cleanup_cell_hosts": {"cell1": [SECOND]},
            "orphan_cleanup_fail_on": "never",
        },
    )

    assert run.status == 0, run.output
    assert placement.everything() == before


@pytest.mark.parametrize(
    ("names", "command", "sentence"),
    [
        (["cell7"], None, "orphan_cleanup_cells: Nova has no cell cell7 with hosts. Did you mean"),
        (["cell1"], "/nonesuch/nova-manage", "did not list the hosts of the cells, and said:"),
        (["cell1"], "echo", "printed no table of hosts."),
    ],
)
def test_cells_that_are_not_certain_stop_the_run(
    ansible: Ansible,
    guests: Guests,
    minicloud: Minicloud,
    placement: Placement,
    names: list[str],
    command: str | None,
    sentence: str,
) -> None:
    before = placement.everything()
    given = {"orphan_cleanup_nova_manage": command} if command else {}

    run = _clean_up_cells(ansible, minicloud, *names, **given)

    assert run.status == 2, run.output
    assert sentence in run.told
    assert placement.everything() == before


def test_cells_that_are_not_certain_leave_nothing_of_an_earlier_run(
    ansible: Ansible, cast: Cast, guests: Guests, placement: Placement
) -> None:
    """The second run of a play must not change what the first one found."""
    role = {"name": "osops.placement.orphan_cleanup"}
    first = {
        "ansible.builtin.include_role": {**role, "tasks_from": "detect"},
        "vars": {"orphan_cleanup_min_age": "0", "orphan_cleanup_unknown_min_age": "0"},
    }
    second = {
        "ansible.builtin.include_role": role,
        "vars": {"orphan_cleanup_cells": ["cell7"], "orphan_cleanup_nova_manage": "echo"},
    }
    before = placement.everything()

    run = ansible.play({"tasks": [first, second]})

    assert run.status == 2, run.output
    assert "no table of hosts." in run.told
    assert placement.everything() == before
