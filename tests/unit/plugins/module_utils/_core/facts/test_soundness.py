"""Whether a reading is sound: each soundness check with its cause, and what must not fail one."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.services import (
    list_down_cell_hosts,
    list_unjudged_hosts,
)
from .......plugins.module_utils._core.facts.soundness import (
    explain_unprovable,
    find_region_mismatch,
    list_failed_absence_checks,
    list_failed_checks,
    list_unmet_requirements,
)
from .......plugins.module_utils._core.models.nova import Hypervisor, Migration, Server, Service
from .......plugins.module_utils._core.models.snapshot import LISTED_BY_SERVERS, Answer, Snapshot
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import build_findings, list_cases
from ...world import OUR_PROJECT, PROJECT, World, answer

UP = Service("nova-compute", "compute-1", "enabled", "up")
DOWN = Service("nova-compute", "compute-2", "disabled", "down")


def _silent(*hosts: str) -> Answer[tuple[Service, ...]]:
    silent = (Service("nova-compute", host, "UNKNOWN", None) for host in hosts)
    return answer("GET /os-services", 200, (UP, *silent))


def _nodes(*uuids: str, on: str = "") -> Answer[tuple[Hypervisor, ...]]:
    nodes = tuple(Hypervisor(uuid, uuid, on or uuid, "up", "enabled", ()) for uuid in uuids)
    return answer("GET /os-hypervisors/detail", 200, nodes)


def _sample(project: str, host: str | None = "compute-1", status: int = 200) -> Answer[Server]:
    world = World()
    server = world.servers[world.server(project=project, host=host)]
    return answer(f"GET /servers/{server.uuid}", status, server if status == 200 else None)


def _sound() -> Snapshot:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    return world.snapshot()


def _hidden_ends() -> Answer[tuple[Migration, ...]]:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.migration(world.server(here), here, there, "error", type="evacuation")
    hidden = {"source_compute": None, "source_node": None, "dest_compute": None, "dest_node": None}
    rows = tuple(d.replace(row, **hidden) for row in world.migrations.values())
    return answer("GET /os-migrations", 200, rows)


CLOSED: dict[str, dict[str, dict[str, t.Any]]] = {
    "services_unread": {
        "services unreadable before": {"services": answer("", 500)},
        "services unreadable after": {"services_after": answer("", 503)},
    },
    "listing_unread": {
        "hypervisors unreadable": {"hypervisors": answer("", 500)},
        "migrations unreadable": {"migrations": answer("", 500)},
        "a proxy sends the request elsewhere": {"migrations": answer("", 301)},
    },
    "listing_not_continued": {
        "a worker does not know the cell of a page": {"migrations": answer("", 400)}
    },
    "migration_hosts_not_shown": {"hosts of migrations hidden": {"migrations": _hidden_ends()}},
    "nodes_not_in_placement": {
        "none of Nova's hosts is here": {"hypervisors": _nodes("elsewhere", on="compute-1")},
        "Nova has no hosts": {"hypervisors": _nodes()},
    },
    "servers_not_shown": {
        "may not look": {"samples": (_sample(PROJECT, status=404),)},
        "may look but is not shown the host": {"samples": (_sample(PROJECT, host=None),)},
        "may not see where even its own are": {"samples": (_sample(OUR_PROJECT, host=None),)},
        "may look at its own alone": {
            "samples": (_sample(PROJECT, status=403), _sample(OUR_PROJECT))
        },
    },
    "filter_ignored": {
        "a live server is listed as deleted": {
            "control": answer("GET /servers/detail?deleted=True", 200, (_sample(PROJECT),))
        },
        "the deleted cannot be listed": {
            "control": answer("GET /servers/detail?deleted=True", 403)
        },
    },
}


@pytest.mark.parametrize(("reason", "changes"), list_cases(CLOSED))
def test_failed_check_names_its_cause(reason: str, changes: dict[str, t.Any]) -> None:
    (sentence,) = list_failed_checks(d.replace(_sound(), **changes))

    assert sentence.id == reason


def test_every_failed_check_is_reported() -> None:
    snapshot = d.replace(
        _sound(),
        services=answer("", 500),
        migrations=answer("", 500),
        hypervisors=_nodes(),
        samples=(_sample("", None),),
    )

    assert [sentence.split()[0] for sentence in list_failed_checks(snapshot)] == [
        "Nova",
        "Nova",
        "0",
        "These",
    ]


def test_empty_cloud_fails_the_check_of_the_region() -> None:
    (sentence,) = list_failed_checks(World().snapshot())

    assert sentence.id == "nodes_not_in_placement"


@pytest.mark.parametrize(
    ("here", "elsewhere", "closed"),
    [(1, 0, False), (1, 1, False), (1, 2, True), (2, 2, False), (2, 3, True)],
)
def test_region_check_passes_when_half_of_the_hosts_are_known(
    here: int, elsewhere: int, closed: bool
) -> None:
    world = World()
    roots = [world.host(f"compute-{number}") for number in range(here)]
    snapshot = world.snapshot(
        hypervisors=_nodes(
            *roots, *(f"other-{number}" for number in range(elsewhere)), on="compute-0"
        )
    )

    assert bool(list_failed_checks(snapshot)) is closed


@pytest.mark.parametrize(
    ("here", "sentence"),
    [
        (1, "1 of 5 hypervisors has a resource provider in this Placement"),
        (2, "2 of 5 hypervisors have a resource provider in this Placement"),
    ],
)
def test_region_check_counts_the_hosts_that_are_known(here: int, sentence: str) -> None:
    nodes = _nodes(*(f"node-{number}" for number in range(5))).value or ()
    known = {node.uuid for node in nodes[:here]}

    assert (find_region_mismatch(nodes, known) or "").startswith(sentence)


OPEN: dict[str, dict[str, t.Any]] = {
    "as it is": {},
    "only our own servers": {"samples": (_sample(OUR_PROJECT),)},
    "another project's": {"samples": (_sample(PROJECT),)},
    "one gone meanwhile": {"samples": (_sample(PROJECT, status=404), _sample(PROJECT))},
    "one of our own gone meanwhile": {
        "samples": (_sample(PROJECT), _sample(OUR_PROJECT, status=404))
    },
    # Its neighbours answer, and the listing says that it is ours.
    "one of our own without mapping": {
        "samples": (_sample(OUR_PROJECT, status=404), _sample(OUR_PROJECT)),
        "sampled_projects": (OUR_PROJECT, OUR_PROJECT),
    },
    "a service is down and disabled": dict.fromkeys(
        ("services", "services_after"), answer("GET /os-services", 200, (UP, DOWN))
    ),
    "no live server for the listing of the deleted": {"control": None},
}


@pytest.mark.parametrize("view", OPEN)
def test_sound_reading_passes_every_check(view: str) -> None:
    assert list_failed_checks(d.replace(_sound(), **OPEN[view])) == ()


def test_credentials_denied_in_several_projects_fail() -> None:
    samples = (_sample(PROJECT, status=404), _sample(OUR_PROJECT))
    changes = {"samples": samples, "sampled_projects": (PROJECT, OUR_PROJECT)}
    (sentence,) = list_failed_checks(d.replace(_sound(), **changes))

    assert sentence.id == "servers_not_shown"


def test_credentials_that_see_no_host_of_any_server_fail() -> None:
    """The host of a server has a policy rule of its own.

    Without that right, every server seems to have no host.
    """
    world = World()
    here = world.host("compute-1")
    world.server(here, here)

    (told,) = list_failed_checks(world.snapshot(samples=(), control=None))

    assert told.id == "server_hosts_not_shown"


def test_cloud_without_servers_needs_no_check_of_the_credentials() -> None:
    world = World()
    world.host("compute-1")

    assert list_failed_checks(world.snapshot()) == ()


def test_silent_hosts_are_named_once_in_order() -> None:
    assert list_down_cell_hosts(_silent("compute-2", "compute-1", "compute-2")) == [
        "compute-1",
        "compute-2",
    ]


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (1, "about compute-1."),
        (3, "about compute-1, compute-2, compute-3."),
        (4, "about compute-1, compute-2, compute-3 and 1 more."),
    ],
)
def test_three_of_many_silent_hosts_are_named_and_the_others_counted(
    count: int, named: str
) -> None:
    silent = _silent(*(f"compute-{number}" for number in range(1, count + 1)))
    both = {"services": silent, "services_after": silent}
    (sentence,) = list_failed_absence_checks(d.replace(_sound(), **both))

    assert sentence.endswith(named)


@pytest.mark.parametrize("when", ["services", "services_after", "both"])
def test_silent_cell_closes_only_proofs_by_absence(when: str) -> None:
    both = {"services": _silent("compute-1"), "services_after": _silent("compute-1")}
    snapshot = d.replace(_sound(), **(both if when == "both" else {when: both[when]}))

    assert list_failed_checks(snapshot) == ()
    assert list_unjudged_hosts(snapshot) == ["compute-1"]
    (failed,) = list_failed_absence_checks(snapshot)
    assert failed.id == "cell_down" and "compute-1" in failed


def test_unreadable_answer_names_no_silent_host() -> None:
    unreadable: Answer[t.Any] = answer("GET /os-services", 500)

    assert list_down_cell_hosts(unreadable) == []


def test_cell_silent_only_during_the_listing_of_nodes_fails_the_check() -> None:
    """Its compute nodes are missing, and no answer about services says so."""
    snapshot = _sound()
    made_up = d.replace(snapshot.hypervisors, request=LISTED_BY_SERVERS)

    (sentence,) = list_failed_checks(d.replace(snapshot, hypervisors=made_up))

    assert sentence.id == "cell_was_down"


def _found(**versions: tuple[int, int]) -> t.Any:
    """Return the findings about a deleted server and an unknown consumer.

    The cloud has these versions.
    """
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    world.delete(world.server(here, here))
    world.stranger(here)
    snapshot = world.snapshot()
    cloud = d.replace(snapshot.cloud, **versions)
    return build_findings(d.replace(snapshot, cloud=cloud), Policy())


def _verdicts(found: t.Any) -> dict[str, str]:
    return {
        entry["kind"]: entry["verdict"] for key in ("findings", "undecided") for entry in found[key]
    }


def test_new_enough_services_prove_everything() -> None:
    found = _found()

    assert _verdicts(found) == {"deleted_server": "orphaned", "unknown_consumer": "orphaned"}
    coverage = found["summary"]["coverage"]
    assert coverage["not_provable"] == coverage["failed_checks"] == []


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (
            {"compute_version": (2, 68)},
            (
                "Nova offers microversions up to 2.68, but 2.69 is needed to see whether every "
                "cell answers"
            ),
        ),
        ({"compute_version": (2, 58)}, "2.59 is needed to see which consumers are migrations"),
        (
            {"placement_version": (1, 27)},
            (
                "Placement offers microversions up to 1.27, but 1.28 is needed to see the "
                "generations of consumers"
            ),
        ),
    ],
    ids=str,
)
def test_missing_common_requirement_leaves_everything_undecided(
    versions: dict[str, tuple[int, int]], said: str
) -> None:
    found = _found(**versions)

    assert set(_verdicts(found).values()) == {"undecided"}
    assert any(said in gate for gate in found["summary"]["coverage"]["failed_checks"])
    assert not found["summary"]["coverage"]["complete"]
    assert all(entry["reason_id"] == "microversion_too_old" for entry in found["undecided"])


def test_missing_requirement_of_one_kind_leaves_that_undecided() -> None:
    found = _found(placement_version=(1, 37))

    assert _verdicts(found) == {"deleted_server": "orphaned", "unknown_consumer": "undecided"}
    assert found["summary"]["coverage"]["complete"]
    (sentence,) = found["summary"]["coverage"]["not_provable"]
    assert all(part in sentence for part in ("Placement", "1.37", "1.38", "unknown_consumer"))


@pytest.mark.parametrize(
    ("version", "sentences"),
    [((2, 100), 0), ((2, 69), 0), ((2, 68), 1), ((2, 59), 1), ((2, 58), 2), ((2, 53), 2)],
)
def test_each_missing_version_is_reported_once(version: tuple[int, int], sentences: int) -> None:
    sound = _sound()
    cloud = d.replace(sound.cloud, compute_version=version)

    snapshot = d.replace(sound, cloud=cloud)

    assert len(list_unmet_requirements(cloud)) == len(list_failed_checks(snapshot)) == sentences
    assert (explain_unprovable("deleted_server", cloud) is None) == (sentences == 0)


def test_placement_that_tells_no_time_is_one_sentence_and_no_requirement() -> None:
    """A minimum age of 0 needs no time, so that nothing is refused."""
    snapshot = World().snapshot()
    cloud = d.replace(snapshot.cloud, tells_time=False)

    (sentence,) = list_unmet_requirements(cloud)
    assert cloud.placement_endpoint in sentence
    assert sentence.id == "placement_sends_no_time"
    assert list_failed_checks(d.replace(snapshot, cloud=cloud)) == list_failed_checks(snapshot)
    assert explain_unprovable("deleted_server", cloud) is None
