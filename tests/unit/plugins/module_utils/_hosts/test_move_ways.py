"""How each server would leave its host."""

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.models.nova import Flavor
from ......plugins.module_utils._core.models.other_services import ServerPort
from ......plugins.module_utils._hosts.draining import COLD, EVACUATION, LIVE, STAYS, DrainSettings
from ......plugins.module_utils._hosts.move_ways import decide_way
from ..drain_world import SOURCE, TINY, build_migration, build_server

PLAIN = DrainSettings()
FENCED = DrainSettings(fenced=True)
COLD_ACTIVE = DrainSettings(cold_active=True)


def specs(**extra_specs: str) -> t.Any:
    names = {name.replace("__", ":"): value for name, value in extra_specs.items()}
    return {"flavor": d.replace(TINY, extra_specs=names)}


PCI = specs(pci_passthrough__alias="gpu:1")
ACCELERATOR = specs(accel__device_profile="fpga")

CASES: dict[str, tuple[dict[str, t.Any], bool, DrainSettings, str, str]] = {
    "active": ({}, True, PLAIN, LIVE, "it is ACTIVE"),
    "paused": ({"status": "PAUSED"}, True, PLAIN, LIVE, "it is PAUSED"),
    "shut off": ({"status": "SHUTOFF"}, True, PLAIN, COLD, "it is shut off"),
    "locked": ({"locked": True}, True, PLAIN, LIVE, "it is ACTIVE"),
    "with a PCI device": (PCI, True, PLAIN, STAYS, "it has a PCI device"),
    "with a PCI device, cold": (PCI, True, COLD_ACTIVE, COLD, "it has a PCI device"),
    "paused, with a PCI device": (
        {**PCI, "status": "PAUSED"},
        True,
        COLD_ACTIVE,
        STAYS,
        "cannot move live",
    ),
    "shut off, with a PCI device": ({**PCI, "status": "SHUTOFF"}, True, PLAIN, COLD, "shut off"),
    "with an accelerator": (ACCELERATOR, True, COLD_ACTIVE, STAYS, "Nova migrates no such server"),
    "with a vGPU": (specs(resources__VGPU="1"), True, PLAIN, STAYS, "it has a vGPU"),
    "with encrypted memory": (
        {"image_properties": {"hw_mem_encryption": "true"}},
        True,
        PLAIN,
        STAYS,
        "its memory is encrypted",
    ),
    "suspended": ({"status": "SUSPENDED"}, True, PLAIN, STAYS, "it is SUSPENDED"),
    "in a rescue": ({"status": "RESCUE"}, True, PLAIN, STAYS, "it is RESCUE"),
    "shelved": ({"status": "SHELVED"}, True, PLAIN, STAYS, "it is SHELVED"),
    "with a resize to confirm": ({"status": "VERIFY_RESIZE"}, True, PLAIN, STAYS, "VERIFY_RESIZE"),
    "in ERROR": ({"status": "ERROR"}, True, PLAIN, STAYS, "it is ERROR"),
    "deleted": ({"status": "DELETED"}, True, PLAIN, STAYS, "it is DELETED"),
    "in a dead cell": ({"status": "UNKNOWN"}, True, PLAIN, STAYS, "it is UNKNOWN"),
    "of a status of tomorrow": ({"status": "DREAMING"}, True, PLAIN, STAYS, "it is DREAMING"),
    "without a status": ({"status": ""}, True, PLAIN, STAYS, "no status that Nova shows"),
    "with a task": ({"task_state": "deleting"}, True, PLAIN, STAYS, "its task is deleting"),
    "with a task that is not shown": ({"task_known": False}, True, PLAIN, STAYS, "show its task"),
    "on another host": ({"host": "compute-2"}, True, PLAIN, STAYS, "it is on compute-2"),
    "on a host that is not shown": ({"host_known": False}, True, PLAIN, STAYS, "it is on"),
    "without a host": ({"host": None}, True, PLAIN, STAYS, "no host that Nova shows"),
    "of a dead host": ({}, False, PLAIN, STAYS, "nobody has confirmed"),
    "of a fenced host": ({}, False, FENCED, EVACUATION, "down and fenced"),
    "shut off, of a fenced host": ({"status": "SHUTOFF"}, False, FENCED, EVACUATION, "fenced"),
    "paused, of a fenced host": ({"status": "PAUSED"}, False, FENCED, STAYS, "it is PAUSED"),
    "in ERROR, of a fenced host": ({"status": "ERROR"}, False, FENCED, STAYS, "it is ERROR"),
    "with a task, of a fenced host": (
        {"task_state": "powering-off"},
        False,
        FENCED,
        STAYS,
        "its task",
    ),
    "of a host that is up, with the word of fencing": ({}, True, FENCED, LIVE, "it is ACTIVE"),
}


@pytest.mark.parametrize("name", CASES)
def test_way_of_a_server(name: str) -> None:
    fields, is_up, settings, how, reason = CASES[name]

    way = decide_way(build_server(**fields), SOURCE, is_up, settings)

    assert way.how == how
    assert reason in way.reason
    assert bool(way.advice) == (how == STAYS)


@pytest.mark.parametrize(
    ("status", "dead_end", "way_out"),
    [
        ("PAUSED", "unpause", "reset its state"),
        ("SUSPENDED", "resume", "reset its state"),
        ("RESCUE", "unrescue it", "reset its state"),
        ("SHELVED", "unshelve", "image that shelving made"),
        ("VERIFY_RESIZE", "have its owner", "deletes the disk on the source"),
    ],
)
def test_nothing_is_to_be_asked_of_a_dead_host(status: str, dead_end: str, way_out: str) -> None:
    """It would leave a task behind, and a confirmation deletes the last disk, on the source."""
    way = decide_way(build_server(status=status), SOURCE, False, FENCED)

    assert way.how == STAYS and status in way.reason
    assert dead_end not in way.advice and way_out in way.advice


def test_a_task_that_only_a_dead_host_would_end_is_not_waited_for() -> None:
    server = build_server(task_state="powering-off")
    moves = [build_migration(1, "accepted", type="evacuation")]

    assert "reset its state" in decide_way(server, SOURCE, False, FENCED).advice
    assert "wait" in decide_way(server, SOURCE, False, FENCED, moves).advice
    assert "wait" in decide_way(server, SOURCE, True, PLAIN).advice


OLD, NEW, AT = "2026-11-18T12:00:00Z", "2026-11-19T12:00:01Z", "2026-11-20T12:00:00Z"
HANGING: dict[str, tuple[dict[str, t.Any], dict[str, t.Any] | None, str]] = {
    "a task": ({"task_state": "powering-off", "updated": OLD}, None, "stuck_server"),
    "a task that goes on": ({"task_state": "powering-off", "updated": NEW}, None, ""),
    "a server at rest": ({"updated": OLD}, None, ""),
    "a migration": ({}, {"updated_at": OLD}, "stuck_migration"),
    "a migration that goes on": (
        {"task_state": "migrating", "updated": OLD},
        {"updated_at": NEW},
        "",
    ),
    "a resize that was reset": ({}, {"status": "finished"}, "stuck_server"),
    "a resize that waits": ({"status": "VERIFY_RESIZE"}, {"status": "finished"}, ""),
}


@pytest.mark.parametrize("name", HANGING)
def test_what_hangs_is_named_and_not_waited_for(name: str) -> None:
    fields, move, kind = HANGING[name]
    moves = [build_migration(1, **{"status": "running", **move})] if move else []
    way = decide_way(build_server(**fields), SOURCE, True, PLAIN, moves, at=AT)

    assert ("detect_orphans" in way.advice) is bool(kind)
    assert kind in way.reason


@pytest.mark.parametrize("status", ["queued", "running", "finished", "accepted", "brand-new"])
def test_a_server_in_a_migration_of_somebody_else_stays(status: str) -> None:
    way = decide_way(build_server(), SOURCE, True, PLAIN, [build_migration(1, status)])

    assert way.how == STAYS
    assert status in way.reason


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"locked": True}, "it is locked"),
        ({"volumes": ("v1", "v2")}, "2 volumes attached"),
        (specs(hw__cpu_policy="dedicated"), "its CPUs are pinned"),
        (specs(hw__numa_nodes="2"), "it has a NUMA topology"),
        ({}, "its disk is copied"),
    ],
)
def test_warnings_about_a_server(fields: dict[str, t.Any], words: str) -> None:
    warnings = decide_way(build_server(**fields), SOURCE, True, PLAIN).warnings

    assert [warning for warning in warnings if words in warning]


FLAVOR = Flavor(vcpus=1, ram=512, disk=1, ephemeral=20, swap=0, extra_specs=None)


@pytest.mark.parametrize("settings", [PLAIN, FENCED])
@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({}, ["its disk is lost"]),
        ({"image": None, "volumes": ("v1",)}, []),
        ({"image": None, "volumes": ("v1",), "flavor": FLAVOR}, ["its ephemeral disk is lost"]),
    ],
)
def test_what_an_evacuation_loses_is_shown_before_the_host_is_called_fenced(
    settings: DrainSettings, fields: dict[str, t.Any], lost: list[str]
) -> None:
    warnings = decide_way(build_server(**fields), SOURCE, False, settings).warnings

    assert [warning.split(" unless")[0] for warning in warnings if " lost " in warning] == lost


def test_a_port_that_is_a_device_is_a_warning() -> None:
    ports = [
        ServerPort("p1", "direct", ()),
        ServerPort("p2", "normal", ()),
        ServerPort("p3", None, None),
    ]

    warnings = decide_way(build_server(), SOURCE, True, PLAIN, ports=ports).warnings

    assert [warning for warning in warnings if "ports" in warning and "(direct)" in warning]


def test_a_server_on_a_volume_loses_nothing() -> None:
    server = build_server(image=None, volumes=("root",))

    live = decide_way(server, SOURCE, True, PLAIN).warnings
    evacuated = decide_way(server, SOURCE, False, FENCED).warnings

    assert not [warning for warning in (*live, *evacuated) if "its disk" in warning]


@pytest.mark.parametrize("is_up", [True, False])
@pytest.mark.parametrize("status", ["ACTIVE", "SHUTOFF", "ERROR"])
def test_a_server_that_is_excluded_stays_in_any_case(is_up: bool, status: str) -> None:
    server = build_server(status=status)
    settings = DrainSettings(True, True, excluded={server.uuid: " until 2026-12-31: pinned"})

    way = decide_way(server, SOURCE, is_up, settings)

    assert way.how == STAYS
    assert way.reason.endswith(settings.excluded[server.uuid])


def test_fencing_is_not_the_first_advice_about_a_dead_host() -> None:
    advice = decide_way(build_server(), SOURCE, False, PLAIN).advice

    assert advice.index("start nova-compute") < advice.index("power") < advice.index("fenced")
