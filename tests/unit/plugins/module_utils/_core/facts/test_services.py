"""Which service is selected, and what must be changed about it."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError, InvalidInput
from .......plugins.module_utils._core.facts.services import (
    apply_update,
    build_update,
    describe_services,
    filter_services,
    get_listed_services,
    require_service,
)
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.snapshot import Answer

ONE = "0a000000-0000-4000-8000-000000000001"
TWO = "0a000000-0000-4000-8000-000000000002"
THREE = "0a000000-0000-4000-8000-000000000003"
ON = Service("nova-compute", "compute-1", "enabled", "up", id=ONE)
OFF = Service("nova-compute", "compute-2", "disabled", "down", disabled_reason="rusty", id=TWO)
CONDUCTOR = Service("nova-conductor", "compute-1", "enabled", "up", id=THREE)
SILENT = Service("nova-compute", "compute-9", "UNKNOWN", None)
ALL = (OFF, CONDUCTOR, ON)


def _params(**given: t.Any) -> dict[str, t.Any]:
    return {
        "host": None,
        "binary": "nova-compute",
        "id": None,
        "enabled": None,
        "disabled_reason": None,
        "forced_down": None,
        **given,
    }


def test_services_are_ordered_by_host_and_binary() -> None:
    assert [entry["id"] for entry in describe_services(ALL)] == [ONE, THREE, TWO]


@pytest.mark.parametrize(
    ("hosts", "binaries", "left"),
    [
        (None, None, {ONE, TWO, THREE}),
        (["compute-1"], None, {ONE, THREE}),
        (None, ["nova-compute"], {ONE, TWO}),
        (["compute-1"], ["nova-compute"], {ONE}),
        ([], None, set()),
        (["compute"], None, set()),
    ],
)
def test_services_are_selected_by_host_and_binary(
    hosts: list[str] | None, binaries: list[str] | None, left: set[str]
) -> None:
    assert {service.id for service in filter_services(ALL, hosts, binaries)} == left


def test_failed_listing_is_not_an_empty_one() -> None:
    with pytest.raises(CloudError):
        get_listed_services(Answer("GET /os-services", "2.90", 500, ""))


def test_the_compute_service_of_a_host_is_selected() -> None:
    assert require_service("compute-1", ALL) == ON
    assert require_service("compute-1", (*ALL, SILENT)) == ON
    with pytest.raises(InvalidInput, match="compute-3"):
        require_service("compute-3", ALL)


@pytest.mark.parametrize("host", ["compute-9", "compute-3"])
def test_no_service_is_absent_while_a_cell_is_down(host: str) -> None:
    with pytest.raises(CloudError, match=r"compute-9"):
        require_service(host, (*ALL, SILENT))


def test_host_in_two_cells_is_ambiguous() -> None:
    twin = Service("nova-compute", "compute-1", "enabled", "up", id=TWO)
    with pytest.raises(InvalidInput, match=f"{ONE}, {TWO}"):
        require_service("compute-1", (ON, twin))


@pytest.mark.parametrize(
    ("service", "wish", "body"),
    [
        (ON, {}, {}),
        (ON, {"enabled": True, "forced_down": False}, {}),
        (ON, {"enabled": False}, {"status": "disabled"}),
        (
            ON,
            {"enabled": False, "disabled_reason": "rusty"},
            {"status": "disabled", "disabled_reason": "rusty"},
        ),
        (ON, {"forced_down": True}, {"forced_down": True}),
        (ON, {"enabled": False, "forced_down": True}, {"status": "disabled", "forced_down": True}),
        (OFF, {"enabled": False}, {}),
        (OFF, {"enabled": False, "disabled_reason": "rusty"}, {}),
        (
            OFF,
            {"enabled": False, "disabled_reason": "gone"},
            {"status": "disabled", "disabled_reason": "gone"},
        ),
        (OFF, {"enabled": True}, {"status": "enabled"}),
    ],
)
def test_only_differences_are_changed(
    service: Service, wish: dict[str, t.Any], body: dict[str, t.Any]
) -> None:
    assert build_update(service, _params(**wish)) == body
    assert build_update(apply_update(service, body), _params(**wish)) == {}


@pytest.mark.parametrize("enabled", [None, True])
def test_reason_requires_a_disabled_service(enabled: bool | None) -> None:
    with pytest.raises(InvalidInput, match="state=disabled"):
        build_update(OFF, _params(enabled=enabled, disabled_reason="rusty"))


def test_change_is_predicted() -> None:
    down = apply_update(OFF, {"status": "enabled", "forced_down": True})

    expected = d.replace(OFF, status="enabled", disabled_reason=None, forced_down=True)
    assert down == expected and down.state == "down"
    assert apply_update(ON, {"forced_down": True}).state == "down"
    assert apply_update(OFF, {"forced_down": True}).disabled_reason == "rusty"
