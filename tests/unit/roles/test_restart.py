"""When the role `hypervisor_cleanup` restarts nova-compute, by what Nova says of it."""

import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

VARIABLES = Path(__file__).parents[3] / "roles" / "hypervisor_cleanup" / "vars" / "main.yml"
HOST = "compute-1.example.org"
BEFORE, AFTER = "2026-11-20T12:00:00Z", "2026-11-20T12:00:10Z"


def _service(**changes: t.Any) -> dict[str, t.Any]:
    up = {"state": "up", "status": "enabled", "forced_down": False, "updated_at": AFTER}
    return {"hosts": [{"service": {**up, **changes}}]}


def _tasks(*busy: str, evacuations: tuple[str, ...] = ()) -> dict[str, t.Any]:
    return {"busy": list(busy), "evacuations": list(evacuations)}


def _explain(check: bool = False, **answers: t.Any) -> str:
    """Return why nova-compute is not restarted, empty if it is."""
    variables: dict[str, t.Any] = {
        name: trust_as_template(value)
        for name, value in DataLoader().load_from_file(str(VARIABLES)).items()
        if isinstance(value, str)
    }
    variables |= {
        "ansible_check_mode": check,
        "hypervisor_cleanup_host": HOST,
        "_hypervisor_cleanup_service": _service(updated_at=BEFORE),
        "_hypervisor_cleanup_service_now": _service(),
        "_hypervisor_cleanup_tasks": _tasks(),
        **{f"_hypervisor_cleanup_{name}": value for name, value in answers.items()},
    }
    templar = Templar(loader=DataLoader(), variables=variables)
    return str(templar.template(variables["_hypervisor_cleanup_hindrance"]))


@pytest.mark.parametrize(
    "answers",
    [{}, {"check": True, "service": _service(updated_at=BEFORE), "service_now": {"skipped": True}}],
)
def test_service_that_reports_and_has_nothing_to_clean_up_is_restarted(
    answers: dict[str, t.Any],
) -> None:
    assert _explain(**answers) == ""


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"service_now": _service(state="down")}, "up and enabled"),
        ({"service_now": _service(status="disabled")}, "up and enabled"),
        ({"service_now": _service(status="UNKNOWN", state=None)}, "up and enabled"),
        ({"service_now": _service(forced_down=True)}, "up and enabled"),
        ({"service_now": _service(updated_at=BEFORE)}, "has not reported"),
        ({"service_now": {"hosts": []}}, "does not list"),
        ({"service_now": {"failed": True, "msg": "Nova is away."}}, "Nova is away."),
        # As where its cell may not answer.
        ({"tasks": {"failed": True, "msg": "Nova is away."}}, "could not be read: Nova is away."),
        # A build would end in ERROR.
        ({"tasks": _tasks("s1")}, "break off what it is doing for servers: s1"),
        ({"tasks": _tasks(evacuations=("s1",))}, "evacuated from it: s1"),
        ({"check": True, "service": _service(state="down")}, "up and enabled"),
    ],
)
def test_service_that_a_restart_would_harm_is_left_alone(
    answers: dict[str, t.Any], why: str
) -> None:
    assert why in _explain(**answers)
