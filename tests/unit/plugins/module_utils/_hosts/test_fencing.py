"""How long a nova-compute has to be silent depends on what the others report."""

import contextlib
import typing as t

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._core.models.nova import Service
from ......plugins.module_utils._hosts.fencing import (
    REPORTS,
    SILENT,
    UNKNOWN,
    WAITING,
    SilenceWatch,
    list_heard_hosts,
    list_hosts_silent_with,
    require_witnesses,
)
from ..drain_world import SOURCE, build_service

NOW = "2026-11-20T03:10:00Z"


def at(minute: int, second: int = 0) -> str:
    return f"2026-11-20T03:{minute:02}:{second:02}.000000"


def list_services(*reports: str, source: str = "source", state: str = "up") -> list[Service]:
    """Return services whose last reports are these; a conductor reports in any case."""
    services = [
        build_service(SOURCE, state="down", updated_at=source),
        build_service("controller", binary="nova-conductor", updated_at=at(9, 59)),
    ]
    for number, report in enumerate(reports, 2):
        services.append(build_service(f"compute-{number}", updated_at=report, state=state))
    return services


@pytest.mark.parametrize(
    ("listings", "verdict"),
    [
        ([["a", "a"]], WAITING),
        ([["a", "a"], ["b", "b"]], WAITING),
        # One reports as seldom as the host may.
        ([["a", "a"], ["b", "a"], ["c", "a"], ["d", "a"]], WAITING),
        ([["a", "a"], ["b", "b"], ["c", "b"]], WAITING),
        ([["a", "a"], ["b", "b"], ["c", "c"]], SILENT),
        ([["a"], ["b"], ["c"]], SILENT),
        ([[], [], []], UNKNOWN),
    ],
)
def test_others_decide_how_long_silence_is(listings: list[list[str]], verdict: str) -> None:
    watch = SilenceWatch(SOURCE)

    assert [watch.judge(list_services(*reports)) for reports in listings][-1] == verdict


def test_a_host_that_reports_once_is_not_silent() -> None:
    watch = SilenceWatch(SOURCE)
    watch.judge(list_services("a", "a"))
    watch.judge(list_services("b", "b", source="again"))

    assert watch.judge(list_services("c", "c", source="again")) == REPORTS


def test_others_that_fall_silent_too_show_nothing() -> None:
    watch = SilenceWatch(SOURCE)
    watch.judge(list_services("a", "a"))

    assert watch.judge(list_services("a", "a", state="down")) == UNKNOWN


@pytest.mark.parametrize(
    ("source", "reports", "heard"),
    [
        # The host is dead.
        (at(8), [at(9, 55), at(9, 30)], 2),
        (at(8), [at(9, 55), at(8, 10)], 1),
        # All fell silent in the same ten seconds, and the host was the first to be called down.
        (at(8, 50), [at(8, 59), at(8, 55)], 0),
    ],
)
def test_hosts_that_fell_silent_with_the_host_are_not_heard(
    source: str, reports: list[str], heard: int
) -> None:
    services = list_services(*reports, source=source)

    assert len(list_heard_hosts(services[0], services, NOW)) == heard


def test_the_time_of_a_host_that_is_forced_down_says_nothing() -> None:
    services = list_services(at(9, 50), at(9, 50), source=at(9, 59))
    forced = build_service(SOURCE, state="down", forced_down=True, updated_at=at(9, 59))

    assert len(list_heard_hosts(forced, services, NOW)) == 2


def _list_cells(report: str, **changes: t.Any) -> list[Service]:
    """Return services of two cells; the second one lost its RabbitMQ at 03:00."""
    fields = {"state": "down", "updated_at": at(0, 3), **changes}
    return [
        build_service(SOURCE, state="down", updated_at=at(0, 5)),
        build_service("compute-2", **fields),
        build_service("compute-3", updated_at=report),
    ]


def _judge(**changes: t.Any) -> str:
    watch = SilenceWatch(SOURCE)
    return [watch.judge(_list_cells(at(9, second), **changes)) for second in (0, 10, 20)][-1]


def test_hosts_of_one_cell_that_fall_silent_together_are_not_dead() -> None:
    """The other cell reports as ever, and would have told that the host is silent."""
    services = _list_cells(at(9, 50))

    assert _judge() == UNKNOWN
    assert list_hosts_silent_with(services[0], services) == ["compute-2"]
    assert list_heard_hosts(services[0], services, NOW) == []


@pytest.mark.parametrize(
    "changes",
    [
        # Somebody says that it is dead too.
        {"forced_down": True},
        # It fell silent before or after.
        {"updated_at": at(1, 6)},
        {"updated_at": "2026-11-20T02:59:04.000000"},
        {"updated_at": None},
        {"state": "up", "updated_at": at(9, 50)},
        {"binary": "nova-conductor"},
    ],
)
def test_a_host_that_falls_silent_alone_is_silent(changes: dict[str, t.Any]) -> None:
    services = _list_cells(at(9, 50), **changes)

    assert list_hosts_silent_with(services[0], services) == []
    assert "compute-3" in list_heard_hosts(services[0], services, NOW)
    if changes.get("state") != "up":
        assert _judge(**changes) == SILENT


@pytest.mark.parametrize(
    ("others", "changes", "is_refused"),
    [
        ([], {"state": "up"}, True),
        (["compute-3"], {"state": "up"}, False),
        (["compute-3"], {}, True),
    ],
)
def test_silence_of_a_host_needs_another_one_that_reports(
    others: list[str], changes: dict[str, str], is_refused: bool
) -> None:
    services = _list_cells(at(9, 50), **changes)

    with pytest.raises(InvalidInput) if is_refused else contextlib.nullcontext():
        require_witnesses(services[0], services, others)
