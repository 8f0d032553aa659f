"""Orphans that one plan can remove again and again, and what must be true after each attempt."""

import collections
import json
import typing as t
import uuid
from pathlib import Path

from ..unit.plugins.module_utils._core.plan.signed import sign
from .interposer import Wires
from .support import Ansible, Placement

CLAIM = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
OWNER = {"project_id": "p", "user_id": "u"}


class Strays:
    """Consumers on compute-1 that Nova does not know, and the plan that removes them.

    A consumer that was emptied starts again at the same generation, so allocated again it matches
    the plan.
    """

    def __init__(self, ansible: Ansible, placement: Placement, count: int) -> None:
        self.consumers = sorted(str(uuid.uuid4()) for index in range(count))
        self._placement = placement
        self._host = placement.providers()["compute-1"]
        self.claim()
        findings = str(ansible.folder / "findings.json")
        ansible.direct("orphan_detect", dest=findings, consumers=self.consumers, **NO_AGE)
        dest = ansible.folder / "plan.json"
        planned = ansible.direct(
            "orphan_plan", findings=findings, kinds=["unknown_consumer"], dest=str(dest)
        )
        assert planned["changes"] == count, planned
        self.plan = json.loads(dest.read_text())
        self._others = self._not_ours()

    def arguments(self, wires: Wires | None = None) -> dict[str, t.Any]:
        """Return the options of a remediation that applies the plan, with interposers if given."""
        plan = self.plan
        if wires:
            plan = sign({**plan, "placement_endpoint": f"{wires.placement.url}/"})
        return {"plan": plan, **NO_AGE}

    @property
    def held(self) -> list[str]:
        """The consumers that still have their allocation."""
        return [
            consumer
            for consumer in self.consumers
            if self._placement.held(consumer) == {self._host: CLAIM}
        ]

    def claim(self) -> None:
        """Give all of them the allocation that they had when the plan was made."""
        for consumer in self.consumers:
            if not self._placement.held(consumer):
                self.put(consumer, CLAIM, None)

    def put(self, consumer: str, resources: dict[str, int], generation: int | None) -> None:
        claims = {self._host: {"resources": resources}} if resources else {}
        self._placement.put(
            consumer, {"allocations": claims, "consumer_generation": generation, **OWNER}
        )

    def move(self, consumer: str) -> None:
        """Give one of them a different allocation."""
        self.put(
            consumer,
            {**CLAIM, "VCPU": 2},
            self._placement.allocation(consumer)["consumer_generation"],
        )

    def amounts(self, consumer: str) -> dict[str, int]:
        """Return the amounts of one of them on its host."""
        return self._placement.held(consumer).get(self._host, {})

    def others_are_unchanged(self) -> None:
        assert self._not_ours() == self._others

    def _not_ours(self) -> dict[str, t.Any]:
        return {
            consumer: held
            for consumer, held in self._placement.everything().items()
            if consumer not in self.consumers
        }

    def release(self) -> None:
        for consumer in self.consumers:
            if self._placement.held(consumer):
                self.put(consumer, {}, self._placement.allocation(consumer)["consumer_generation"])

    def truth(self, told: dict[str, t.Any]) -> dict[str, str]:
        """Return the outcome of each consumer.

        Every reported outcome is compared with Placement.
        """
        outcomes = {outcome["consumer"]: outcome["outcome"] for outcome in told["outcomes"]}
        assert list(outcomes) == self.consumers
        held = set(self.held)
        assert {consumer: outcome == "removed" for consumer, outcome in outcomes.items()} == {
            consumer: consumer not in held for consumer in self.consumers
        }, told
        assert {name: count for name, count in told["tally"].items() if count} == dict(
            collections.Counter(outcomes.values())
        )
        assert told["changed"] is ("removed" in outcomes.values())
        assert told.get("failed", False) is bool("failed" in outcomes.values() or told["stopped"])
        return outcomes

    def recorded(self, folder: Path, event: str = "before") -> list[str]:
        """Return the consumers with such a record in the journals in `folder`."""
        return [record["consumer"] for record in records(folder) if record["event"] == event]


def records(folder: Path) -> list[dict[str, t.Any]]:
    """Return the records of all journals in `folder`, older journals first."""
    return [
        json.loads(line)
        for journal in sorted(folder.glob("journal-*.jsonl"))
        for line in journal.read_text().splitlines()
    ]
