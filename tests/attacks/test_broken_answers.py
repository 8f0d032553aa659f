"""One broken answer of many thousands does not end a run: the request is repeated.

A lasting failure is reported as what it is.
"""

import json
import re
from pathlib import Path

import pytest

from ..integration.interposer import Fault, Hook, Wires
from ..integration.strays import NO_AGE, Strays
from ..integration.support import Ansible, long

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

# The requests of a detection: each of the listings, and each request about one consumer.
QUESTIONS = {
    "nova": (
        "/os-services$",
        r"/os-hypervisors/detail\?",
        r"/os-migrations\?limit=1000$",
        r"/servers/detail\?all_tenants=1&host=[^&]*&limit=4",
        f"/servers/{_UUID}$",
        f"/servers/{_UUID}/os-instance-actions$",
        r"/os-migrations\?.*marker=",
    ),
    "placement": (
        r"^/resource_providers(\?|$)",
        f"^/resource_providers/{_UUID}/allocations$",
        f"^/allocations/{_UUID}$",
    ),
}
# Each of these is a mistake of somebody on the way, or a short failure of the service, and is over
# when the request is repeated.
SHORT = [
    Fault.CUT,
    *(
        pytest.param(fault, marks=pytest.mark.long)
        for fault in (Fault.HALF, Fault.HTML, Fault.BROKEN)
    ),
]
MIGRATIONS = r"/os-migrations\?limit=1000$"
# What the sentence about a lasting failure must contain.
NAMED = {
    Fault.CUT: "(?i)cut|incomplete|broke|ended|closed|short|json",
    Fault.HALF: "(?i)cut|incomplete|json",
    Fault.HTML: "(?i)html|json",
    Fault.OBJECT: "(?i)without|lack|no .*servers|not have|unexpected|json",
    Fault.BROKEN: "500",
}


def each_question(wires: Wires, fault: Fault) -> dict[str, Hook]:
    """Let the first request of each shape get the fault."""
    return {
        path: getattr(wires, service).on("GET", path, before=lambda: fault)
        for service, paths in QUESTIONS.items()
        for path in paths
    }


@pytest.mark.parametrize("fault", SHORT)
def test_detection_survives_one_bad_answer_to_each_request(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault
) -> None:
    few.claim()
    hooks = each_question(wires, fault)
    dest = tmp_path / "findings.json"

    told = ansible.direct("orphan_detect", dest=str(dest), **NO_AGE)

    assert not told["failed"], told.get("msg")
    assert [path for path, hook in hooks.items() if not hook.ran] == []
    coverage = told["summary"]["coverage"]
    assert coverage["complete"] and coverage["failed_checks"] == []
    assert coverage["retried"] == len(hooks)
    found = {entry["consumer"]: entry for entry in json.loads(dest.read_text())["findings"]}
    assert {found[consumer]["kind"] for consumer in few.consumers} == {"unknown_consumer"}
    assert all(found[consumer]["change"] for consumer in few.consumers)


def test_detection_does_not_repeat_requests_after_valid_answers(
    ansible: Ansible, wires: Wires, few: Strays
) -> None:
    """A 404, a 400 and a 200 are answers."""
    few.claim()

    told = ansible.direct("orphan_detect", consumers=few.consumers, **NO_AGE)

    assert wires.nova.requests and told["summary"]["coverage"]["retried"] == 0


@pytest.mark.parametrize(
    ("nth", "fault"),
    [
        (1, Fault.CUT),
        long(1, Fault.HALF),
        long(1, Fault.HTML),
        long(2, Fault.BROKEN),
        long(3, Fault.BROKEN),
    ],
)
def test_remediation_survives_one_bad_listing_of_services(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault, nth: int
) -> None:
    """No cell has stopped answering.

    The services are listed before the renewed proof, after its listings, and before the write.
    """
    few.claim()
    listed = wires.nova.on("GET", "/os-services$", nth=nth, before=lambda: fault)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    assert listed.ran == 1
    assert not told["failed"], told.get("msg")
    assert set(few.truth(told).values()) == {"removed"}
    few.others_are_unchanged()


@pytest.mark.long
@pytest.mark.parametrize("fault", SHORT)
def test_remediation_survives_one_bad_answer_to_each_request(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault
) -> None:
    few.claim()
    hooks = each_question(wires, fault)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    assert sum(hook.ran for hook in hooks.values()) > 5
    assert not told["failed"], told.get("msg")
    assert set(few.truth(told).values()) == {"removed"}
    few.others_are_unchanged()


@pytest.mark.parametrize(
    ("service", "path", "fault"),
    [
        ("nova", MIGRATIONS, Fault.HTML),
        *(long("nova", MIGRATIONS, fault) for fault in NAMED if fault != Fault.HTML),
        long("nova", r"/servers/detail\?all_tenants=1&", Fault.BROKEN),
        long("nova", r"/servers/detail\?all_tenants=1&host=[^&]*&limit=4", Fault.OBJECT),
        ("placement", r"^/resource_providers(\?|$)", Fault.HTML),
    ],
)
def test_detection_reports_a_request_that_keeps_failing(
    ansible: Ansible, wires: Wires, few: Strays, service: str, path: str, fault: Fault
) -> None:
    few.claim()
    getattr(wires, service).on("GET", path, nth=0, before=lambda: fault)

    told = ansible.direct("orphan_detect", **NO_AGE)

    said = told["msg"] if told["failed"] else " ".join(told["summary"]["coverage"]["failed_checks"])
    assert said and "Traceback" not in said
    assert re.search(NAMED[fault], said), said
    assert "credentials" not in said
    # One sentence says it, and at most one more says what to do.
    assert len(re.findall(r"[.?!](?: |$)", said)) <= 2, said
    assert few.held == few.consumers


@pytest.mark.parametrize("fault", [Fault.CUT, long(Fault.HTML), long(Fault.OBJECT)])
def test_consumer_is_left_alone_when_a_request_about_it_keeps_failing(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault
) -> None:
    """No answer is not a 404, so nothing is concluded from it."""
    few.claim()
    victim = few.consumers[0]
    wires.nova.on("GET", f"/servers/{victim}$", nth=0, before=lambda: fault)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    outcomes = {outcome["consumer"]: outcome for outcome in told.get("outcomes", ())}
    assert victim in few.held
    assert victim not in outcomes or outcomes[victim]["outcome"] in ("failed", "skipped")
    few.others_are_unchanged()
