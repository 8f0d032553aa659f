"""Removed allocations are restored.

Exactly those, only if they are still missing, and never at anybody's cost.
"""

import json
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .strays import CLAIM, NO_AGE, OWNER, Strays
from .support import Ansible, Placement


@pytest.fixture
def journal(ansible: Ansible, few: Strays, tmp_path: Path) -> Path:
    """The journal of a run that removed three orphans."""
    few.release()
    few.claim()
    told = ansible.direct(
        "orphan_remediate", output_dir=str(tmp_path / "removed"), **few.arguments()
    )
    assert few.held == [] and told["tally"]["removed"] == 3
    (path,) = (tmp_path / "removed").glob("journal-*.jsonl")
    return path


@pytest.fixture
def small(placement: Placement) -> Iterator[str]:
    """A provider with room for one server."""
    provider = placement.create_provider(
        f"small-{uuid.uuid4()}",
        {"VCPU": {"total": 1}, "MEMORY_MB": {"total": 512}, "DISK_GB": {"total": 1}},
    )
    yield provider
    placement.change("DELETE", f"/resource_providers/{provider}")


def test_removed_allocations_are_restored_once(
    ansible: Ansible, few: Strays, journal: Path, tmp_path: Path
) -> None:
    given = {"journal": str(journal), "output_dir": str(tmp_path)}

    predicted = ansible.module("orphan_restore", "--check", "--diff", **given)

    assert predicted["changed"] and predicted["tally"] == {"restored": 3, "skipped": 0, "failed": 0}
    assert all(consumer in predicted["printed_diff"] for consumer in few.consumers)
    assert few.held == [] and not list(tmp_path.glob("journal-*"))

    first = ansible.module("orphan_restore", consumers=few.consumers[:1], **given)

    assert first["tally"]["restored"] == 1 and few.held == few.consumers[:1]

    with journal.open("a") as file:
        file.write('{"at": "2026-')
    every = ansible.module("orphan_restore", **given)

    assert every["torn"] and every["tally"] == {"restored": 2, "skipped": 1, "failed": 0}
    assert few.held == few.consumers

    again = ansible.module("orphan_restore", **given)

    assert (again["changed"], again["failed"], again["journal"]) == (False, False, None)
    assert {outcome["reason_id"] for outcome in again["outcomes"]} == {"nothing_to_restore"}
    few.others_are_unchanged()


@pytest.mark.long
def test_restore_brings_back_project_user_and_type(
    ansible: Ansible, placement: Placement, tmp_path: Path
) -> None:
    consumers = [str(uuid.uuid4()), str(uuid.uuid4())]
    claim = {
        "allocations": {placement.providers()["compute-1"]: {"resources": CLAIM}},
        "consumer_generation": None,
        **OWNER,
    }
    placement.put(consumers[0], claim)
    placement.put(consumers[1], {**claim, "consumer_type": "INSTANCE", "project_id": "q"}, "1.38")
    before = [owned(placement, consumer) for consumer in consumers]
    findings, plan = str(tmp_path / "findings.json"), str(tmp_path / "plan.json")
    ansible.direct("orphan_detect", dest=findings, consumers=consumers, **NO_AGE)
    planned = ansible.direct(
        "orphan_plan", findings=findings, kinds=["unknown_consumer"], dest=plan
    )
    made = ansible.direct("orphan_remediate", plan=plan, output_dir=str(tmp_path), **NO_AGE)
    assert made["tally"]["removed"] == 2 and placement.held(consumers[1]) == {}

    packed = planned["packed"]
    told = ansible.direct("orphan_restore", journal=packed, output_dir=str(tmp_path))

    assert told["tally"]["restored"] == 2
    assert [owned(placement, consumer) for consumer in consumers] == before
    assert [claim["consumer_type"] for claim in before] == ["unknown", "INSTANCE"]
    for consumer in consumers:
        placement.put(consumer, {**claim, "allocations": {}, "consumer_generation": 1})


def test_consumer_that_does_not_fit_does_not_block_the_others(
    ansible: Ansible, placement: Placement, few: Strays, journal: Path, small: str, tmp_path: Path
) -> None:
    """The host of one is gone, and somebody has taken the capacity on that of another."""
    homeless, crowded, fine = few.consumers
    somebody = str(uuid.uuid4())
    taken = {"allocations": {small: {"resources": CLAIM}}, "consumer_generation": None, **OWNER}
    placement.put(somebody, taken)
    host = placement.providers()["compute-1"]
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    elsewhere = {homeless: str(uuid.uuid4()), crowded: small, fine: host}
    moved = [
        json.loads(json.dumps(record).replace(host, elsewhere[record["consumer"]]))
        for record in records
    ]

    for check_mode, held in ((True, []), (False, [fine])):
        told = ansible.direct(
            "orphan_restore",
            journal=moved,
            output_dir=str(tmp_path),
            _ansible_check_mode=check_mode,
        )

        reasons = {outcome["consumer"]: outcome["reason_id"] for outcome in told["outcomes"]}
        tally = {"restored": 1, "skipped": 0, "failed": 1, "blocked": 1}
        assert told["failed"] and told["tally"] == tally
        assert reasons == {homeless: "provider_gone", crowded: "blocked_by_capacity", fine: ""}
        assert few.held == held
    assert placement.held(somebody) == {small: CLAIM}
    placement.put(somebody, {**taken, "allocations": {}, "consumer_generation": 1})

    again = ansible.direct("orphan_restore", journal=str(journal), output_dir=str(tmp_path))

    assert again["tally"] == {"restored": 2, "skipped": 1, "failed": 0}
    assert few.held == few.consumers


@pytest.mark.long
def test_playbook_restores_named_consumers(ansible: Ansible, few: Strays, journal: Path) -> None:
    variables = {
        "orphan_cleanup_journal": str(journal),
        "orphan_cleanup_restore_consumers": few.consumers[:2],
    }

    checked = ansible.playbook("restore_allocations", "--check", variables=variables)
    assert (checked.status, checked.changed, few.held) == (0, 1, [])
    restored = ansible.playbook("restore_allocations", variables=variables)

    assert (restored.status, restored.changed) == (0, 1)
    assert few.held == few.consumers[:2]
    assert restored.read("restoration.json")["tally"]["restored"] == 2


def test_playbook_requires_a_journal(ansible: Ansible) -> None:
    run = ansible.playbook("restore_allocations")

    assert run.status != 0 and "journal" in run.told and run.changed == 0


def owned(placement: Placement, consumer: str) -> dict[str, t.Any]:
    """Return the allocation of a consumer with its owner, type and generation."""
    return {**placement.allocation(consumer), "allocations": placement.held(consumer)}
