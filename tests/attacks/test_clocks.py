"""Clocks that are apart, jump, or are not there, and other releases that leave fields out."""

import email.utils
import json
import random
import time
import typing as t

import pytest

from ..integration.interposer import Answered, Asked, Middlebox
from .bed import Siege
from .liars import UUID, change, edit, hide

pytestmark = pytest.mark.long

DAY = 86400
AGES = {"min_age": "1h", "unknown_min_age": "24h"}


def _date(seconds: float, usegmt: bool = True) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=usegmt)


def _header(name: str, value: t.Callable[[], str | None]) -> t.Callable[[Answered], Answered]:
    return lambda answered: answered.replace_header(name, value())


# What Placement says of the time. The consumers are minutes old in all of these.
PLACEMENT = {
    "no Date": _header("Date", lambda: None),
    "no Last-Modified": _header("Last-Modified", lambda: None),
    "Last-Modified in the future": _header("Last-Modified", lambda: _date(30 * DAY)),
    "Date without a zone": _header("Date", lambda: _date(0, usegmt=False)),
    "Date that is none": _header("Date", lambda: "yesterday"),
    "Last-Modified that is none": _header("Last-Modified", lambda: "0"),
    "Date of a proxy that is ahead": _header("Date", lambda: _date(400 * DAY)),
}
CONSUMERS = {"placement": f"GET /allocations/{UUID}", "nova": f"GET .*/servers/{UUID}"}
JUMPS = {"forwards": 400 * DAY, "back": -400 * DAY}


@pytest.mark.parametrize("lie", PLACEMENT)
def test_age_that_is_unknown_makes_nobody_old(siege: Siege, lie: str) -> None:
    siege.scheduled.policy.update(AGES)
    siege.wires.placement.middlebox = change("GET", PLACEMENT[lie])

    siege.run()

    assert siege.list_changed() == []


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("service", ["placement", "nova"])
def test_clock_that_jumps_between_answers_makes_nobody_old(
    siege: Siege, service: str, jump: str
) -> None:
    siege.scheduled.policy.update(AGES)
    wire = getattr(siege.wires, service)
    # Whoever answers about single consumers has another clock than whoever lists.
    wire.middlebox = change(CONSUMERS[service], _header("Date", lambda: _date(JUMPS[jump])))

    siege.run()

    assert siege.list_changed() == []


TIMES = ("created", "updated", "created_at", "updated_at", "start_time", "finish_time")


def _change_times(body: t.Any, write: t.Callable[[str], t.Any]) -> t.Any:
    if isinstance(body, list):
        return [_change_times(entry, write) for entry in body]
    if not isinstance(body, dict):
        return body
    changed = {}
    for key, value in body.items():
        is_time = key in TIMES and isinstance(value, str)
        changed[key] = write(value) if is_time else _change_times(value, write)
    return changed


NOVA = {
    "without Z": lambda text: text.removesuffix("Z"),
    "with an offset": lambda text: f"{text.removesuffix('Z')}+14:00",
    "of the future": lambda text: f"2099{text[4:]}",
    "of the past": lambda text: f"2001{text[4:]}",
    "null": lambda text: None,
    "no time": lambda text: "soon",
}


@pytest.mark.parametrize("written", NOVA)
def test_times_of_nova_convict_nobody(siege: Siege, written: str) -> None:
    siege.wires.nova.middlebox = edit(
        "GET", lambda body: _change_times(body, NOVA[written]), chance=0.7, seed=3
    )

    siege.run()


# Fields that a worker of another release may leave out, by the request.
FIELDS = {
    "/servers": (
        "id",
        "status",
        "OS-EXT-SRV-ATTR:host",
        "OS-EXT-SRV-ATTR:hypervisor_hostname",
        "OS-EXT-STS:task_state",
        "tenant_id",
        "flavor",
        "updated",
    ),
    "/os-migrations": (
        "uuid",
        "status",
        "instance_uuid",
        "migration_type",
        "source_compute",
        "source_node",
        "dest_compute",
        "dest_node",
        "updated_at",
    ),
    "/os-hypervisors": ("id", "hypervisor_hostname", "service", "servers", "state"),
    "/os-services": ("id", "host", "binary", "status", "state", "forced_down"),
    "/os-instance-actions": (
        "events",
        "result",
        "finish_time",
        "start_time",
        "request_id",
        "action",
    ),
}


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, fields in FIELDS.items() for field in fields]
)
@pytest.mark.parametrize("workers", ["some", "all"])
def test_field_that_a_worker_leaves_out_convicts_nobody(
    siege: Siege, path: str, field: str, workers: str
) -> None:
    siege.wires.nova.middlebox = edit(
        path, hide(field), chance=0.5 if workers == "some" else 1.0, seed=1
    )

    siege.run()


def _other_release(newest: str, chance: float) -> Middlebox:
    """Return workers of which some know no microversion beyond `newest`."""
    dice = random.Random(7)
    most = int(newest.rpartition(".")[2])
    body = {"itemNotAcceptable": {"code": 406, "message": "Version is not supported by the API."}}

    def answer(asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        version = asked.headers.get("openstack-api-version", "").rpartition(".")[2]
        if dice.random() >= chance:
            return ask(asked)
        if version.isdigit() and int(version) > most:
            return Answered(406, [("Content-Type", "application/json")], json.dumps(body).encode())
        return ask(asked)

    return answer


@pytest.mark.parametrize("newest", ["2.96", "2.79", "2.68", "2.1"])
def test_workers_of_two_releases_convict_nobody(siege: Siege, newest: str) -> None:
    siege.wires.nova.middlebox = _other_release(newest, 0.5)

    siege.run()


@pytest.mark.parametrize("offered", ["2.68", "2.79", "2.104"])
def test_versions_of_another_release_than_the_worker_convict_nobody(
    siege: Siege, offered: str
) -> None:
    """The document of the versions comes from one worker, and everything else from another."""

    def lie(body: t.Any) -> t.Any:
        return json.loads(json.dumps(body).replace(_newest(body), offered))

    siege.wires.nova.middlebox = edit(r"GET /(v2.1/?)?$", lie, statuses=(200, 300))

    siege.run()


def _newest(body: t.Any) -> str:
    versions = body.get("versions") or [body["version"]]
    return next(row["version"] for row in versions if row["id"] == "v2.1")
