"""A machine that runs out of memory or disk at each step of a write, and a second machine."""

import typing as t
from pathlib import Path

import pytest

from ..integration.interposer import Wires
from ..integration.strays import Strays, records
from ..integration.support import Ansible, Minicloud, told
from . import interruptions

pytestmark = pytest.mark.long


@pytest.mark.parametrize("step", interruptions.STEPS)
def test_fault_of_the_machine_at_a_write_leaves_the_truth(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path, step: str
) -> None:
    """The result says what happened, the journal has all of it, and the next run does the rest."""
    many.claim()
    folder = tmp_path / "run"
    interruptions.install(ansible, tmp_path / "site", step)

    result = told(
        ansible.started("orphan_remediate", output_dir=str(folder), **many.arguments(wires))
    )

    gone = set(many.consumers) - set(many.held)
    removed = {entry["consumer"] for entry in result["outcomes"] if entry["outcome"] == "removed"}
    assert removed == gone, result
    recorded = {record["consumer"] for record in records(folder) if record["event"] == "before"}
    assert gone <= recorded
    many.others_are_unchanged()

    interruptions.remove(ansible)
    for journal in sorted(folder.glob("journal-*.jsonl")):
        if recorded:
            ansible.direct(
                "orphan_restore", journal=str(journal), output_dir=str(tmp_path / "restored")
            )
    assert many.held == many.consumers
    last = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))
    many.truth(last)
    many.others_are_unchanged()


def test_restoration_on_another_machine_in_the_middle_of_a_removal_loses_nothing(
    ansible: Ansible, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """The other machine restores what this one has just removed, before it reads that back."""
    many.claim()
    first = many.consumers[0]

    def restore() -> None:
        many.put(first, {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}, None)

    wires.placement.on("POST", "^/allocations$", after=restore)

    result = ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))

    outcomes = {entry["consumer"]: entry["outcome"] for entry in result["outcomes"]}
    assert outcomes[first] != "removed"
    assert many.held == [first]
    assert first in many.recorded(tmp_path)
    many.others_are_unchanged()


def test_same_plan_on_a_second_machine_restores_what_the_first_removed_only_once(
    ansible: Ansible, minicloud: Minicloud, wires: Wires, many: Strays, tmp_path: Path
) -> None:
    """Both machines restore from the same journal at the same time."""
    many.claim()
    ansible.direct("orphan_remediate", output_dir=str(tmp_path), **many.arguments(wires))
    (journal,) = tmp_path.glob("journal-*.jsonl")
    # The other machine reaches the same Placement at its own address.
    address = many.plan["placement_endpoint"]
    copied = [{**record, "placement_endpoint": address} for record in records(tmp_path)]
    second = Ansible(minicloud.root, tmp_path, minicloud.environment)
    other: list[dict[str, t.Any]] = []

    def meanwhile() -> None:
        other.append(
            second.direct("orphan_restore", journal=copied, output_dir=str(tmp_path / "other"))
        )

    assert many.held == []
    result = _restore(ansible, journal, tmp_path, wires, meanwhile)

    made = [entry["outcome"] for run in (result, *other) for entry in run["outcomes"]]
    assert made.count("restored") == len(many.consumers)
    assert many.held == many.consumers
    many.others_are_unchanged()


def _restore(
    ansible: Ansible, journal: Path, folder: Path, wires: Wires, meanwhile: t.Callable[[], None]
) -> dict[str, t.Any]:
    wires.placement.on("POST", "^/allocations$", before=meanwhile)
    return ansible.direct("orphan_restore", journal=str(journal), output_dir=str(folder / "one"))
