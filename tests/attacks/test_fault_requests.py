"""A fault in any single request of a remediation.

The request is repeated, or the change is reported as not made; never as made without being so.
"""

import dataclasses as d
import re
from pathlib import Path

import pytest

from ..integration.interposer import Fault, Hook, Interposer, Wires
from ..integration.strays import CLAIM, Strays
from ..integration.support import Ansible, long

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# A request with one of these faults is repeated, a write only after its consumers were read.
RETRIED = (
    Fault.EXPIRED,
    Fault.NO_ANSWER,
    Fault.RESET,
    Fault.TOO_MANY,
    Fault.BAD_GATEWAY,
    Fault.UNAVAILABLE,
)
FAULTS = (*RETRIED, Fault.BROKEN, Fault.CONFLICT)
# Each listing ends the run at its first fault that is not retried, so that a run tries only one of
# those.
MOST_RUNS = 60


@d.dataclass
class Shape:
    """A type of request, whatever its UUIDs, and the faults that it has not had yet."""

    wire: Interposer
    request: str
    faults: list[Fault] = d.field(default_factory=lambda: list(FAULTS))

    def meets(self) -> Hook:
        """Give the next request the next fault."""
        method, _space, path = self.request.partition(" ")
        fault = self.faults[0]
        return self.wire.on(
            method, f"^{re.escape(path).replace(re.escape('{}'), '[^/?&]+')}$", before=lambda: fault
        )


def shapes_of(wires: Wires) -> list[Shape]:
    seen = {
        (wire, _UUID.sub("{}", request)): None
        for wire in (wires.nova, wires.placement)
        for request in wire.requests
    }
    return [Shape(wire, request) for wire, request in seen]


@pytest.mark.long
def test_run_survives_each_fault_in_each_request(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))
    left = shapes_of(wires)
    assert {shape.request for shape in left} >= {
        "POST /allocations",
        "GET /allocations/{}",
        "GET /v2.1/os-services",
        "GET /v2.1/servers/{}",
    }
    met: list[tuple[str, Fault]] = []
    for _run in range(MOST_RUNS):
        few.claim()
        wires.nova.clear()
        wires.placement.clear()
        hooks = [(shape, shape.meets()) for shape in left]
        told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

        ran = [(shape, shape.faults.pop(0)) for shape, hook in hooks if hook.ran]
        met += [(shape.request, fault) for shape, fault in ran]
        what = [f"{shape.request}: {fault}" for shape, fault in ran]
        assert ran, [shape.request for shape in left]
        if all(fault in RETRIED for _shape, fault in ran):
            assert set(few.truth(told).values()) == {"removed"}, (what, told)
        elif "outcomes" in told:
            few.truth(told)
        else:
            assert told["failed"] and few.held == few.consumers, (what, told)
            assert "POST /allocations" not in wires.placement.requests
        assert "Traceback" not in str(told) and "unexpected" not in str(told), (what, told)
        left = [shape for shape in left if shape.faults]
        if not left:
            break
    assert not left, [(shape.request, shape.faults) for shape in left]
    assert len(met) == len(set(met)) > 100
    few.others_are_unchanged()


@pytest.mark.parametrize("fault", [Fault.NO_ANSWER, long(Fault.RESET), long(Fault.BAD_GATEWAY)])
def test_run_counts_a_write_whose_answer_was_lost(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault
) -> None:
    few.claim()
    write = wires.placement.on("POST", "^/allocations$", nth=0, after=lambda: fault)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    assert write.ran == 1
    assert set(few.truth(told).values()) == {"removed"}
    assert few.recorded(tmp_path) == few.recorded(tmp_path, "after") == few.consumers


@pytest.mark.parametrize("fault", [Fault.NO_ANSWER, long(Fault.UNAVAILABLE), long(Fault.CONFLICT)])
def test_run_reports_failures_when_no_write_arrives(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path, fault: Fault
) -> None:
    few.claim()
    write = wires.placement.on("POST", "^/allocations$", nth=0, before=lambda: fault)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    assert write.ran > 1
    assert set(few.truth(told).values()) == {"failed"}
    assert few.held == few.consumers


@pytest.mark.long
def test_run_ends_when_no_answer_arrives_in_time(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    """Some requests are never answered, and a write takes effect without an answer."""
    few.claim()
    hooks = [
        wires.nova.on("GET", "/os-services$", before=lambda: Fault.SILENCE),
        wires.nova.on("GET", f"/servers/{few.consumers[0]}$", before=lambda: Fault.SILENCE),
        wires.placement.on(
            "GET", f"^/allocations/{few.consumers[1]}$", before=lambda: Fault.SILENCE
        ),
        wires.placement.on("POST", "^/allocations$", after=lambda: Fault.SILENCE),
    ]

    told = ansible.direct(
        "orphan_remediate", output_dir=str(tmp_path), api_timeout=2, **few.arguments(wires)
    )

    assert [hook.ran for hook in hooks] == [1, 1, 1, 1]
    assert set(few.truth(told).values()) == {"removed"}


@pytest.mark.long
def test_run_counts_a_write_that_takes_effect_after_its_timeout(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    """The repetition then meets the result of the first write, and is refused."""
    few.claim()
    lost = wires.placement.on("POST", "^/allocations$", nth=1, before=lambda: Fault.NO_ANSWER)
    late = wires.placement.on("POST", "^/allocations$", nth=2, before=few.release)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    assert lost.ran and late.ran
    assert set(few.truth(told).values()) == {"removed"}


def test_run_does_not_count_a_write_that_cannot_be_read_back(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    first, *others = few.consumers
    read_back = wires.placement.on(
        "GET",
        f"^/allocations/{first}$",
        nth=0,
        before=lambda: Fault.BROKEN if read_back.seen > 3 else None,
    )

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    outcomes = {outcome["consumer"]: outcome for outcome in told["outcomes"]}
    assert told["failed"] and outcomes[first]["reason_id"] == "cloud_error"
    assert [outcomes[consumer]["outcome"] for consumer in few.consumers] == [
        "failed",
        *("removed" for _other in others),
    ]
    assert few.recorded(tmp_path) == few.consumers


def test_run_skips_a_consumer_that_nova_cannot_show_during_its_renewed_proof(
    ansible: Ansible, wires: Wires, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    first, *others = few.consumers
    look_up = wires.nova.on("GET", f"/servers/{first}$", nth=0, before=lambda: Fault.UNAVAILABLE)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **few.arguments(wires))

    # It is asked again, and then left alone.
    assert look_up.ran > 1 and few.held == [first]
    outcomes = {outcome["consumer"]: outcome for outcome in told["outcomes"]}
    assert outcomes[first]["outcome"] == "skipped"
    assert outcomes[first]["reason_id"] == "server_lookup_failed"
    assert {outcomes[consumer]["outcome"] for consumer in others} == {"removed"}


def test_run_skips_a_consumer_that_changes_between_proof_and_write(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """Placement refuses the request as a whole; split, all others succeed."""
    many.claim()
    moved = many.consumers[3]
    wires.placement.on("POST", "^/allocations$", before=lambda: many.move(moved))

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))

    outcomes = {outcome["consumer"]: outcome for outcome in told["outcomes"]}
    assert {
        consumer for consumer in many.consumers if outcomes[consumer]["outcome"] != "removed"
    } == {moved}
    assert (
        outcomes[moved]["outcome"] == "skipped" and "has just changed" in outcomes[moved]["reason"]
    )
    assert not told.get("failed") and told["tally"]["removed"] == len(many.consumers) - 1
    assert many.amounts(moved) == {**CLAIM, "VCPU": 2}
    assert wires.placement.requests.count("POST /allocations") == 1 + 7 + 2
    many.put(moved, {}, 2)


@pytest.mark.long
def test_run_renews_a_token_that_expires_midway(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """A write and a lookup reach a service that no longer accepts their token."""
    many.claim()
    expired = wires.placement.on("POST", "^/allocations$", nth=2, before=lambda: Fault.EXPIRED)
    also = wires.nova.on("GET", "/servers/[^/]*$", nth=10, before=lambda: Fault.EXPIRED)

    told = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))

    assert expired.ran == also.ran == 1
    assert set(many.truth(told).values()) == {"removed"}


@pytest.mark.long
@pytest.mark.parametrize(("max_failures", "tried"), [(5, 8), (8, 8), (9, 16)])
def test_run_gives_up_after_repeated_write_failures(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path, max_failures: int, tried: int
) -> None:
    many.claim()
    wires.placement.on("POST", "^/allocations$", nth=0, before=lambda: Fault.BROKEN)
    result = ansible.direct(
        "orphan_remediate",
        output_dir=str(tmp_path),
        max_failures=max_failures,
        **many.arguments(wires),
    )

    assert list(many.truth(result).values()) == ["failed"] * tried + ["skipped"] * (20 - tried)
    assert result["outcomes"][-1]["reason_id"] == "too_many_failures"
    assert f"{tried} of 20" in result["msg"]
    many.others_are_unchanged()
